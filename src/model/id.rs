//! Names and identifiers, each a type of its own, so that a run id cannot be passed for a session id.

use std::{fmt, sync::Arc};

use serde::{Serialize, Serializer};

/// The longest identifier a host may send, in bytes.
const LONGEST_ID: usize = 256;

/// The longest hook name, in bytes.
const LONGEST_HOOK_NAME: usize = 64;

/// Why a text is not a valid identifier or name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IdError {
    /// Nothing was given.
    #[error("is empty")]
    Empty,
    /// Longer than the limit, in bytes.
    #[error("is {0} bytes long; at most {1} are allowed")]
    TooLong(usize, usize),
    /// A control character, which would garble logs and terminals.
    #[error("contains a control character")]
    Control,
    /// A character that hook names do not allow.
    #[error("contains {0:?}; allowed are letters, digits, `.`, `_` and `-`")]
    Character(char),
}

/// The longest name of a daemon, in bytes: that of a label in a host name.
pub(crate) const LONGEST_NODE_NAME: usize = 63;

/// Whether a daemon may have this name.
pub(crate) fn is_node_name(text: &str) -> bool {
    !text.is_empty() && text.len() <= LONGEST_NODE_NAME && text.chars().all(is_permitted)
}

fn is_permitted(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-')
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Takes the text as an identifier.
            ///
            /// Returns an error if it is empty, longer than 256 bytes or contains a control character.
            pub fn new(text: impl AsRef<str>) -> Result<Self, IdError> {
                check_id(text.as_ref())?;
                Ok(Self(text.as_ref().into()))
            }

            /// The identifier as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:?}", &*self.0)
            }
        }
    };
}

id!(
    /// One conversation, as the host names it.
    SessionId
);
id!(
    /// One piece of agent work inside a session. Hosts without run ids use the session id.
    RunId
);
id!(
    /// A registered workspace.
    WorkspaceId
);
id!(
    /// One tool call of a run; the same call in two events of one kind is the same event sent twice.
    ToolCallId
);
id!(
    /// One occurrence, as the host names it; the same id again is the same event sent twice.
    EventId
);

/// Identifies a run across workspaces.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct RunKey {
    pub(crate) workspace: WorkspaceId,
    pub(crate) run: RunId,
}

impl RunKey {
    /// The key of a run in a workspace.
    pub(crate) fn new(workspace: &WorkspaceId, run: &RunId) -> Self {
        Self { workspace: workspace.clone(), run: run.clone() }
    }

    /// The key of two ids as they were written; none if one of them cannot be one.
    #[cfg(feature = "cluster")]
    pub(crate) fn of_texts(workspace: String, run: String) -> Option<Self> {
        Some(Self { workspace: WorkspaceId::new(workspace).ok()?, run: RunId::new(run).ok()? })
    }
}

impl WorkspaceId {
    /// The id of a workspace that nobody named: its directory's name, with `-` for everything but letters,
    /// digits, `.`, `_` and `-`.
    pub fn of_directory(directory: &std::path::Path) -> Self {
        let name = directory.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        let id: String = name.chars().take(LONGEST_ID).map(|c| if allowed(c) { c } else { '-' }).collect();
        Self(if id.is_empty() { "workspace".into() } else { id.into() })
    }

    /// The same with a number made of the whole path, for directories of which several may have one name. The same
    /// path has the same id in every life of a daemon.
    pub fn of_path(directory: &std::path::Path) -> Self {
        // FNV-1a, which unlike the hasher of the standard library is the same everywhere and for ever.
        let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        let number = directory.as_os_str().as_encoded_bytes().iter().fold(0xcbf2_9ce4_8422_2325, step);
        let name: String = Self::of_directory(directory).as_str().chars().take(LONGEST_ID - 17).collect();
        Self(format!("{name}-{number:016x}").into())
    }
}

fn check_id(text: &str) -> Result<(), IdError> {
    if text.is_empty() {
        return Err(IdError::Empty);
    }
    if text.len() > LONGEST_ID {
        return Err(IdError::TooLong(text.len(), LONGEST_ID));
    }
    if text.chars().any(char::is_control) {
        return Err(IdError::Control);
    }
    Ok(())
}

/// The name of a hook: 1 to 64 of `A-Z a-z 0-9 . _ -`, safe as a metric label, in a file name and in a log line.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct HookName(Arc<str>);

impl HookName {
    /// Takes the text as a hook name.
    ///
    /// Returns an error if it is empty, longer than 64 bytes or has a character outside the set.
    pub fn new(text: impl AsRef<str>) -> Result<Self, IdError> {
        let text = text.as_ref();
        if text.is_empty() {
            return Err(IdError::Empty);
        }
        if text.len() > LONGEST_HOOK_NAME {
            return Err(IdError::TooLong(text.len(), LONGEST_HOOK_NAME));
        }
        let foreign = |c: &char| !(c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'));
        match text.chars().find(foreign) {
            Some(c) => Err(IdError::Character(c)),
            None => Ok(Self(text.into())),
        }
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The name, or where that is taken, the first free one that begins as it does and ends with a word and a number.
    pub(crate) fn free_variant(&self, word: &str, is_taken: impl Fn(&Self) -> bool) -> Self {
        let numbered = |number: usize| {
            let end = format!(".{word}-{number}");
            let begin: String =
                self.as_str().chars().take(LONGEST_HOOK_NAME.saturating_sub(end.len())).collect();
            Self::new(begin + &end).ok()
        };
        let mut names = [self.clone()].into_iter().chain((1..).filter_map(numbered));
        names.find(|name| !is_taken(name)).unwrap_or_else(|| self.clone())
    }
}

impl fmt::Display for HookName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl fmt::Debug for HookName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &*self.0)
    }
}

macro_rules! dialects {
    ($($(#[$doc:meta])* $dialect:ident $name:literal $events:literal;)*) => {
        /// The names of the dialects, in the order in which their hooks run.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum DialectName {
            $($(#[$doc])* $dialect,)*
        }

        impl DialectName {
            /// Every dialect.
            pub const ALL: &'static [Self] = &[$(Self::$dialect,)*];

            /// The name as written in settings and on the command line.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$dialect => $name,)*
                }
            }

            /// Whose events are written in it, as a phrase that follows "events".
            pub fn events(self) -> &'static str {
                match self {
                    $(Self::$dialect => $events,)*
                }
            }
        }
    };
}

dialects! {
    /// hookyard's own format: canonical events and outcomes, and the native hooks of an embedding host.
    Canonical "canonical" "hookyard's own; `hook_event_name` is read like `event`";
    /// OpenHarness.
    OpenHarness "openharness" "as OpenHarness hosts send them";
    /// Claude Code.
    Claude "claude" "as Claude Code sends them";
    /// CodeBuddy.
    CodeBuddy "codebuddy" "as CodeBuddy sends them";
    /// Gemini CLI.
    Gemini "gemini" "as Gemini CLI sends them";
    /// ClawdCode.
    Clawd "clawd" "as ClawdCode sends them";
    /// Codex.
    Codex "codex" "as Codex sends them";
    /// Qwen Code.
    Qwen "qwen" "as Qwen Code sends them";
    /// GitHub Copilot CLI.
    Copilot "copilot" "as GitHub Copilot CLI sends them";
    /// Cursor.
    Cursor "cursor" "as Cursor sends them";
    /// Droid, the agent of Factory.
    Droid "droid" "as Droid sends them";
}

impl Serialize for DialectName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl fmt::Display for DialectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Identifies one outcome, in logs, in the audit and towards the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DecisionId {
    /// The name of the daemon; empty for an embedding program.
    node: &'static str,
    process: u64,
    number: u64,
}

impl DecisionId {
    /// The id with this number within a process; `process` distinguishes processes.
    pub fn new(process: u64, number: u64) -> Self {
        Self { node: "", process, number }
    }

    /// The same id of a daemon with this name.
    #[must_use]
    pub fn of_node(self, node: &'static str) -> Self {
        Self { node, ..self }
    }

    /// The name of the daemon, the number of the process, and the number within the process.
    pub(crate) fn parts(self) -> (&'static str, u64, u64) {
        (self.node, self.process, self.number)
    }

    /// The id as one number.
    pub(super) fn bits(self) -> u128 {
        u128::from(self.process) << 64 | u128::from(self.number)
    }
}

impl fmt::Display for DecisionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { node, process, number } = self;
        let separator = if node.is_empty() { "" } else { "-" };
        write!(f, "{node}{separator}{process:016x}-{number:x}")
    }
}

impl Serialize for DecisionId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
