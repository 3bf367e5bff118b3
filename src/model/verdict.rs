//! The verdict of a hook or an event, and the other closed sets that replies and outcomes share.

use std::fmt;

use serde::Serialize;

/// What the host should do, from the mildest to the strictest.
// Exhaustive on purpose: a host is the last guard. A verdict that it does not know must stop its build, not fall into
// a wildcard arm that goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Go on as the host would without hooks.
    #[default]
    Proceed,
    /// Go on without asking a person.
    Allow,
    /// Ask a person.
    Ask,
    /// Don't.
    Block,
    /// End the run.
    Halt,
}

impl Verdict {
    /// Every verdict, from the mildest to the strictest.
    pub const ALL: [Self; 5] = [Self::Proceed, Self::Allow, Self::Ask, Self::Block, Self::Halt];

    /// The name, as in canonical outcomes.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Proceed => "proceed",
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Block => "block",
            Self::Halt => "halt",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// How an invocation ended: each ends in exactly one of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
#[non_exhaustive]
pub enum Ended {
    /// With a reply that could be read.
    Completed,
    /// With a failure of its own: a foreign exit code, a signal, a panic.
    Failed,
    /// At its deadline.
    TimedOut,
    /// Before it began, for example because the program is missing.
    SpawnFailed,
    /// With an answer that could not be read.
    InvalidOutput,
    /// With more output than allowed.
    OutputTooLarge,
    /// Because nobody waited for it any more.
    Cancelled,
    /// Before it began, because there was too much to do.
    Shed,
    /// Before it began, because its files are not trusted.
    Untrusted,
}

impl Ended {
    /// Whether a hook that ended so has failed.
    pub(crate) fn is_failure(self) -> bool {
        !matches!(self, Self::Completed | Self::Cancelled)
    }

    /// Every way of ending.
    pub const ALL: [Self; 9] = [
        Self::Completed,
        Self::Failed,
        Self::TimedOut,
        Self::SpawnFailed,
        Self::InvalidOutput,
        Self::OutputTooLarge,
        Self::Cancelled,
        Self::Shed,
        Self::Untrusted,
    ];

    /// The name, as in outcomes and metric labels.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::TimedOut => "timed_out",
            Self::SpawnFailed => "spawn_failed",
            Self::InvalidOutput => "invalid_output",
            Self::OutputTooLarge => "output_too_large",
            Self::Cancelled => "cancelled",
            Self::Shed => "shed",
            Self::Untrusted => "untrusted",
        }
    }

    /// What the hook did, as a phrase that follows its name.
    pub fn phrase(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::TimedOut => "timed out",
            Self::SpawnFailed => "did not start",
            Self::InvalidOutput => "gave no valid answer",
            Self::OutputTooLarge => "printed too much",
            Self::Cancelled => "was cancelled",
            Self::Shed => "had no place to run",
            Self::Untrusted => "is not trusted",
        }
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Whom a note is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum NoteKind {
    /// For the person at the host.
    SystemMessage,
    /// For the model.
    AdditionalContext,
    /// For the person at the host: hooks kept the agent from stopping too often, so now it stops.
    LoopBroken,
}

/// What a hook's failure policy made of its failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureMode {
    /// The event proceeded.
    FailOpen,
    /// The event was blocked or a person was asked.
    FailClosed,
}
