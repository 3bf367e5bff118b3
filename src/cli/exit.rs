//! How a command ends: its exit code, or the trouble that kept it from its work. Refuses to print.

use std::{fmt::Display, io, process::ExitCode};

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Exit {
    /// It did what it was asked.
    Done,
    /// The work failed or found errors.
    Failed,
    /// The arguments make no sense.
    Usage,
    /// A signal of this number ended it.
    Signal(u8),
    /// With the exit code a host of the dialect expects.
    Native(u8),
}

impl Exit {
    /// Ended by a person, with the keys for it.
    #[cfg(feature = "daemon")]
    pub(super) const INTERRUPTED: Self = Self::Signal(2);

    pub(super) fn code(self) -> ExitCode {
        ExitCode::from(match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            // What shells report for a program that a signal killed.
            Self::Signal(number) => 128 + number,
            Self::Native(code) => code,
        })
    }
}

/// What keeps a command from its work.
#[derive(Debug)]
pub(super) enum CliError {
    /// Something to tell, and what to do about it.
    Message {
        /// What is wrong.
        what: String,
        /// What to do.
        help: Option<String>,
    },
    /// Everything has been said already.
    AlreadyReported,
    /// The output cannot be written.
    Output(io::Error),
}

/// The end of a command.
pub(super) type CliResult = Result<Exit, CliError>;

impl CliError {
    pub(super) fn new(what: impl Display) -> Self {
        Self::Message { what: what.to_string(), help: None }
    }

    pub(super) fn with_help(what: impl Display, help: impl Into<String>) -> Self {
        Self::Message { what: what.to_string(), help: Some(help.into()) }
    }
}

impl From<io::Error> for CliError {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}
