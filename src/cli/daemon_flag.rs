//! Which daemon a command talks to, how it is restarted, what is known of one that does not run, and how its errors are
//! reported.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    time::Duration,
};

use clap::Args;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{
    escape,
    exit::CliError,
    flags::SettingsFlags,
    paths::display_path,
    settings::{VariablePolicy, file_to_change, settings_of},
};
use crate::{
    config::{AuditDestination, ConnectionStore, DaemonCommand, DaemonStart, Settings},
    daemon::{Client, ClientError, default_control_socket, default_socket, percent_encoded},
    model::{Diagnostic, Severity},
};

/// The variables with the daemon's sockets. The daemon reads them too.
const SOCKET_VARIABLE: &str = "HOOKYARD_LISTEN_SOCKET";
const CONTROL_SOCKET_VARIABLE: &str = "HOOKYARD_LISTEN_CONTROL_SOCKET";

/// How long a daemon may take to answer a person.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// The daemon's event socket.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub(super) struct SocketFlag {
    /// Event socket of the daemon; default: `$HOOKYARD_LISTEN_SOCKET`, or `$XDG_RUNTIME_DIR/hookyard.sock`
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
}

impl SocketFlag {
    /// The flag with this value.
    pub(super) fn at(socket: Option<OsString>) -> Self {
        Self { socket: socket.map(PathBuf::from) }
    }

    /// A client without a timeout: hooks take as long as their own timeouts allow.
    pub(super) fn client(&self) -> Client {
        Client::new(self.path())
    }

    /// Whether the command line names one.
    pub(super) fn is_named(&self) -> bool {
        self.socket.is_some()
    }

    /// The path of the socket.
    pub(super) fn path(&self) -> PathBuf {
        let named = self.socket.clone().or_else(|| variable(SOCKET_VARIABLE).map(PathBuf::from));
        named.unwrap_or_else(|| default_socket(&variable))
    }

    /// A client for a person, who wants to know if there is no answer.
    pub(super) fn interactive_client(&self) -> Client {
        self.client().timeout(ANSWER_TIMEOUT)
    }
}

/// The sockets of a daemon that a command controls.
#[derive(Debug, Clone, Args)]
pub(super) struct ControlSocketFlags {
    #[command(flatten)]
    pub(super) event_socket: SocketFlag,

    /// Control socket of the daemon; default: `$HOOKYARD_LISTEN_CONTROL_SOCKET`, or beside the event socket:
    /// `hookyard-control.sock` beside `hookyard.sock`
    #[arg(long, value_name = "PATH")]
    control_socket: Option<PathBuf>,
}

impl ControlSocketFlags {
    /// A client for a person who controls the daemon.
    pub(super) fn interactive_client(&self) -> Client {
        self.streaming_client().timeout(ANSWER_TIMEOUT)
    }

    /// The same without a timeout, for an answer that does not end.
    pub(super) fn streaming_client(&self) -> Client {
        let named =
            self.control_socket.clone().or_else(|| variable(CONTROL_SOCKET_VARIABLE).map(PathBuf::from));
        let path = named.unwrap_or_else(|| default_control_socket(&self.event_socket.path()));
        Client::new(path)
    }
}

/// What a person does to have a daemon start anew, by who starts it.
pub(super) fn how_to_restart(start: Option<DaemonStart>) -> &'static str {
    match start {
        Some(DaemonStart::OnDemand) => "end it with `hookyard stop`, and the next event starts it anew",
        Some(DaemonStart::Service) => "run `systemctl --user restart hookyard`",
        Some(DaemonStart::Manual) | None => "replace it with `hookyard serve --replace`",
    }
}

/// A daemon that does not run, by the record of connections and by its settings.
#[derive(Debug)]
pub(super) struct StoppedDaemon {
    /// Whether the next event of a connected agent starts it.
    is_on_demand: bool,
    flags: SettingsFlags,
    /// None if they cannot be read, or are those of another daemon.
    settings: Option<Settings>,
}

impl StoppedDaemon {
    /// The one that would listen at a socket.
    pub(super) fn at(socket: &Path) -> Self {
        let own = SettingsFlags { home: None, config: None, set: Vec::new() };
        let settings = usable_settings(&own);
        let is_its = |settings: &Settings| {
            settings.listen.socket.clone().unwrap_or_else(|| default_socket(&variable)) == socket
        };
        let Some((is_on_demand, command)) = settings.as_ref().and_then(|known| recorded(known, socket))
        else {
            return Self { is_on_demand: false, flags: own, settings: settings.filter(is_its) };
        };
        let flags = SettingsFlags { home: command.home, config: command.config, ..own };
        Self { is_on_demand, settings: usable_settings(&flags), flags }
    }

    /// The audit that it has left.
    pub(super) fn audit(&self) -> Option<PathBuf> {
        match self.settings.as_ref()?.audit.to.as_ref()? {
            AuditDestination::File(file) if file.exists() => Some(file.clone()),
            AuditDestination::File(_) | AuditDestination::Stdout => None,
        }
    }

    /// The error of a command that wants to know what was decided.
    pub(super) fn no_decisions(&self, error: &ClientError) -> CliError {
        let start = if self.is_on_demand {
            "the next event of a connected agent starts it"
        } else {
            "start it with `hookyard serve`, or name its socket with `--socket`"
        };
        let file = file_to_change(&self.flags)
            .map_or_else(|_| "its settings".to_owned(), |file| display_path(&file));
        let help = format!(
            "{start}. What a daemon remembers ends with it: to keep decisions in a file, set `audit.to` in {file}; \
             `hookyard audit FILE` searches one"
        );
        CliError::with_help(error, help)
    }
}

/// The settings by these flags, if they have no errors.
fn usable_settings(flags: &SettingsFlags) -> Option<Settings> {
    let (settings, diagnostics) = settings_of(flags, VariablePolicy::Ignored).ok()?;
    let is_error = |diagnostic: &Diagnostic| diagnostic.severity == Severity::Error;
    (!diagnostics.iter().any(is_error)).then_some(settings)
}

/// How the daemon of the connected agents is started, if it is the one at this socket, and whether an event does it.
fn recorded(settings: &Settings, socket: &Path) -> Option<(bool, DaemonCommand)> {
    let record = ConnectionStore::of(settings, &variable)?.read().ok()?;
    let command = record.daemon.filter(|daemon| daemon.socket == socket)?;
    let is_on_demand = command.start == DaemonStart::OnDemand && !record.connections.is_empty();
    Some((is_on_demand, command))
}

/// An environment variable that is not empty.
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// One of the daemon's workspaces.
#[derive(Debug, Clone, Args)]
pub(super) struct WorkspaceIdFlag {
    /// Only this workspace, by its id in the daemon or its directory; `hookyard workspaces` lists them
    #[arg(long, visible_alias = "workspace", alias = "id", value_name = "ID")]
    pub(super) workspace_id: Option<String>,
}

/// A workspace as the daemon lists it.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ServedWorkspace {
    pub(super) id: String,
    pub(super) root: String,
    /// What else the daemon says, which may be of another version.
    #[serde(flatten)]
    pub(super) rest: Map<String, Value>,
}

impl ServedWorkspace {
    /// The workspaces of a daemon.
    pub(super) fn all(client: &Client) -> Result<Vec<Self>, CliError> {
        Ok(client.ask("GET", "/v1/workspaces", None)?)
    }

    /// The one with this id, or else the only one with this directory.
    pub(super) fn named<'w>(known: &'w [Self], name: &str) -> Option<&'w Self> {
        let by_id = known.iter().find(|workspace| workspace.id == name);
        by_id.or_else(|| {
            let root = Path::new(name).canonicalize().ok()?;
            let mut here = known.iter().filter(|workspace| Path::new(&workspace.root) == root);
            here.next().filter(|_| here.next().is_none())
        })
    }

    /// The error about a workspace that the daemon does not have, with those that it has.
    pub(super) fn unknown(known: &[Self], name: &str) -> CliError {
        let ids: Vec<_> = known.iter().map(|workspace| escape::line(&workspace.id)).collect();
        let help = match ids.as_slice() {
            [] => "the daemon has no workspaces".to_owned(),
            ids => format!("known ids: {}", ids.join(", ")),
        };
        CliError::with_help(format!("unknown workspace `{}`", escape::line(name)), help)
    }
}

impl WorkspaceIdFlag {
    /// The workspace as a query parameter, without `?`; `None` for all workspaces.
    ///
    /// Returns an error that lists the known ids if the daemon has no such workspace.
    pub(super) fn query(&self, client: &Client) -> Result<Option<String>, CliError> {
        let Some(id) = self.id(client)? else { return Ok(None) };
        Ok(Some(format!("workspace_id={}", percent_encoded(&id))))
    }

    /// The id of the workspace; `None` for all workspaces.
    ///
    /// Returns an error that lists the known ids if the daemon has no such workspace.
    fn id(&self, client: &Client) -> Result<Option<String>, CliError> {
        let Some(name) = self.workspace_id.as_deref() else { return Ok(None) };
        let known = ServedWorkspace::all(client)?;
        if let Some(workspace) = ServedWorkspace::named(&known, name) {
            return Ok(Some(workspace.id.clone()));
        }
        Err(ServedWorkspace::unknown(&known, name))
    }
}

impl From<ClientError> for CliError {
    fn from(error: ClientError) -> Self {
        let what = error.to_string();
        match error {
            ClientError::Down { .. } => {
                Self::with_help(what, "start it with `hookyard serve`, or name its socket with `--socket`")
            }
            ClientError::Untrusted { .. } => Self::with_help(
                what,
                "end that program, or name the socket of your own daemon with `--socket`",
            ),
            ClientError::Refused { hint, .. } => Self::with_help(what, hint),
            ClientError::Broken { .. } | ClientError::Unreadable { .. } => {
                Self::with_help(what, "look at the daemon's log")
            }
        }
    }
}
