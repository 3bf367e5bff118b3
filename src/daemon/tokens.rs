//! The tokens of the TCP address: read from files that only their owner can read, and read again on reload.

use std::{
    fmt,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
};

use arc_swap::{ArcSwap, Guard};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::page::{PageSessions, SessionStream};
use crate::{
    config::{self, ListenSettings},
    run::EventSender,
};

/// The shortest token, in bytes. Shorter ones can be guessed.
const MIN_TOKEN_BYTES: usize = 16;

/// The largest file, in bytes.
const MAX_FILE_BYTES: u64 = 4096;

/// Why the token cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TokenError {
    /// The token file cannot be used.
    #[error("the token file {} {why}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// Other machines could send requests without a token.
    #[error("`listen.tcp` is {0}, which other machines can reach; set `listen.token_file`")]
    Needed(SocketAddr),
    /// The token for events would grant control.
    #[error(
        "`listen.token_file` and `listen.control_token_file` hold the same token; use two different ones"
    )]
    Shared,
}

/// The bearer token that clients have to send.
#[derive(Clone)]
pub(super) struct Token(Arc<str>);

impl Token {
    /// Reads a token: one line of a file that only its owner can read.
    fn read(path: &Path) -> Result<Self, TokenError> {
        let wrong = |why: String| TokenError::File { path: path.to_owned(), why };
        let bytes = config::read_private(path, MAX_FILE_BYTES).map_err(wrong)?;
        let text = String::from_utf8(bytes).map_err(|_| wrong("is not UTF-8".to_owned()))?;
        let token = text.trim();
        if token.len() < MIN_TOKEN_BYTES || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            let why = format!(
                "has no token: write one line of at least {MIN_TOKEN_BYTES} printable ASCII characters into it"
            );
            return Err(wrong(why));
        }
        Ok(Self(token.into()))
    }

    /// Compares in constant time.
    pub(super) fn matches(&self, sent: &str) -> bool {
        let own = self.0.as_bytes();
        let sent = sent.as_bytes();
        let different = own.iter().zip(sent).fold(0, |different, (a, b)| different | (a ^ b));
        own.len() == sent.len() && different == 0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

/// The tokens that are valid at one time.
#[derive(Debug, Clone, Default)]
pub(super) struct TokenPair {
    /// Grants events and reads. Without one, programs of this machine may send events, and web pages nothing.
    pub(super) events: Option<Token>,
    /// Grants everything. Without one, nothing over TCP grants control.
    pub(super) control: Option<Token>,
    replaced: CancellationToken,
}

impl TokenPair {
    fn new(events: Option<Token>, control: Option<Token>) -> Result<Self, TokenError> {
        if let (Some(events), Some(control)) = (&events, &control)
            && events.matches(&control.0)
        {
            return Err(TokenError::Shared);
        }
        Ok(Self { events, control, replaced: CancellationToken::new() })
    }

    /// Cancelled when one of the two is no longer valid.
    pub(super) fn replaced(&self) -> CancellationToken {
        self.replaced.clone()
    }
}

/// In the extensions of a request whose response has no end: what it was authorized by, which ends that response.
#[derive(Debug, Clone)]
pub(super) enum StreamAccess {
    /// Tokens, until this is cancelled since they were replaced.
    Tokens(CancellationToken),
    /// A session of the page.
    Session(Arc<SessionStream>),
}

impl StreamAccess {
    /// Returns when the client must authorize itself again.
    pub(super) async fn ended(&self) {
        match self {
            Self::Tokens(replaced) => replaced.cancelled().await,
            Self::Session(stream) => stream.ended().await,
        }
    }
}

/// The tokens of a TCP address.
#[derive(Debug)]
pub(super) struct TcpTokens {
    events_file: Option<PathBuf>,
    control_file: Option<PathBuf>,
    current: ArcSwap<TokenPair>,
    /// What was wrong with the files when they were last read.
    errors: Mutex<Vec<String>>,
    /// Who has signed in to the page.
    pub(super) sessions: PageSessions,
}

impl TcpTokens {
    /// Reads the tokens of the settings.
    pub(super) fn read(listen: &ListenSettings) -> Result<Self, TokenError> {
        let events = listen.token_file.as_deref().map(Token::read).transpose()?;
        let control = listen.control_token_file.as_deref().map(Token::read).transpose()?;
        Ok(Self {
            events_file: listen.token_file.clone(),
            control_file: listen.control_token_file.clone(),
            current: ArcSwap::from_pointee(TokenPair::new(events, control)?),
            errors: Mutex::default(),
            sessions: PageSessions::default(),
        })
    }

    /// The tokens as they are now.
    pub(super) fn current(&self) -> Guard<Arc<TokenPair>> {
        self.current.load()
    }

    /// What was wrong with the files when they were last read. Those tokens are as they were before.
    pub(super) fn errors(&self) -> Vec<String> {
        self.errors.lock().clone()
    }

    /// Reads the files again. A changed token replaces the former one at once; what cannot be read stays as it was.
    pub(super) fn reload(&self) {
        let former = self.current.load_full();
        let mut errors = Vec::new();
        let events = read_again(self.events_file.as_deref(), former.events.as_ref(), &mut errors);
        let control = read_again(self.control_file.as_deref(), former.control.as_ref(), &mut errors);
        let has_changed = is_other(former.events.as_ref(), events.as_ref());
        let control_has_changed = is_other(former.control.as_ref(), control.as_ref());
        if has_changed || control_has_changed {
            match TokenPair::new(events, control) {
                Ok(current) => {
                    self.current.store(Arc::new(current));
                    former.replaced.cancel();
                    self.sessions.end_all();
                    tracing::info!(
                        events = has_changed,
                        control = control_has_changed,
                        "tokens were replaced; the former ones and all sessions of the page are no longer valid"
                    );
                }
                Err(error) => errors.push(kept(&error)),
            }
        }
        let mut known = self.errors.lock();
        for error in errors.iter().filter(|error| !known.contains(error)) {
            tracing::error!("{error}");
        }
        *known = errors;
    }

    /// Whether an address may be listened on: one that other machines can reach needs a token for events.
    pub(super) fn permit(&self, address: SocketAddr) -> Result<(), TokenError> {
        let is_open = self.events_file.is_none() && !address.ip().to_canonical().is_loopback();
        if is_open { Err(TokenError::Needed(address)) } else { Ok(()) }
    }

    /// Who sends events to the address: with a token for them, somebody who was given it.
    pub(super) fn sender(&self) -> EventSender {
        if self.events_file.is_some() { EventSender::Known } else { EventSender::Anonymous }
    }
}

/// The token in a file, or the former one if it cannot be read.
fn read_again(file: Option<&Path>, former: Option<&Token>, errors: &mut Vec<String>) -> Option<Token> {
    match Token::read(file?) {
        Ok(token) => Some(token),
        Err(error) => {
            errors.push(kept(&error));
            former.cloned()
        }
    }
}

fn kept(error: &TokenError) -> String {
    format!("{error}; the token that was read before stays valid")
}

fn is_other(former: Option<&Token>, current: Option<&Token>) -> bool {
    former.map(|token| &token.0) != current.map(|token| &token.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_compared_as_a_whole() {
        let token = Token("0123456789abcdef".into());
        assert!(token.matches("0123456789abcdef"));
        for wrong in ["", "0123456789abcdeg", "0123456789abcde", "0123456789abcdef0"] {
            assert!(!token.matches(wrong), "{wrong}");
        }
        assert_eq!(format!("{token:?}"), "Token(…)");
    }
}
