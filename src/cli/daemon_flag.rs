//! Talking with a running daemon: where it is, and what is said when it does not answer. Refuses to read settings files:
//! the socket's path is a flag, a variable or the usual one.

use std::{path::PathBuf, time::Duration};

use clap::Args;

use super::exit::CliError;
use crate::daemon::{Client, ClientError, default_socket};

/// The variable that sets the daemon's socket, as it does for the daemon.
const VARIABLE: &str = "HOOKYARD_LISTEN_SOCKET";

/// How long a daemon may take to answer a person.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// Which daemon.
#[derive(Debug, Clone, Args)]
pub(super) struct SocketFlag {
    /// The daemon's Unix socket; without it, `$HOOKYARD_LISTEN_SOCKET` or `$XDG_RUNTIME_DIR/hookyard.sock`
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
}

impl SocketFlag {
    /// A client that waits as long as hooks take.
    pub(super) fn client(&self) -> Client {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let named = || variable(VARIABLE).map(PathBuf::from);
        Client::new(self.socket.clone().or_else(named).unwrap_or_else(|| default_socket(&variable)))
    }

    /// A client for a person, who wants to know if there is no answer.
    pub(super) fn interactive_client(&self) -> Client {
        self.client().timeout(ANSWER_TIMEOUT)
    }
}

impl From<ClientError> for CliError {
    fn from(error: ClientError) -> Self {
        let what = error.to_string();
        match error {
            ClientError::Down { .. } => {
                Self::with_help(what, "start it with `hookyard serve`, or name its socket with `--socket`")
            }
            ClientError::Refused { hint, .. } => Self::with_help(what, hint),
            ClientError::Broken { .. } | ClientError::Unreadable { .. } => {
                Self::with_help(what, "look at the daemon's log")
            }
        }
    }
}

/// A text percent-encoded for a path or a query.
pub(super) fn percent_encoded(text: &str) -> String {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~".contains(byte);
    let one = |byte: u8| {
        if is_plain(&byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }
    };
    text.bytes().map(one).collect()
}
