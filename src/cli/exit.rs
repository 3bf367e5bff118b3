//! How a command ends: its exit code, or the error that stopped it.

use std::{fmt::Display, io, process::ExitCode};

/// The exit code of a block, in every dialect.
pub(super) const BLOCK: u8 = 2;

/// The exit code of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Exit {
    /// 0: success.
    Done,
    /// 1: the command failed or found errors.
    Failed,
    /// 2: invalid arguments.
    Usage,
    /// 128 + n: ended by signal n.
    Signal(u8),
    /// The exit code that a host of the dialect expects.
    Native(u8),
    /// 3 and above: what the help of the command says.
    #[cfg(feature = "daemon")]
    Special(u8),
}

impl Exit {
    /// Ended by Ctrl-C.
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
            #[cfg(feature = "daemon")]
            Self::Special(code) => code,
        })
    }
}

/// The error that stopped a command.
#[derive(Debug)]
pub(super) enum CliError {
    /// An error to print.
    Message {
        /// What is wrong.
        what: String,
        /// What to do.
        help: Option<String>,
    },
    /// The errors have been printed already.
    AlreadyReported,
    /// The output cannot be written.
    Output(io::Error),
}

/// The result of a command.
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
