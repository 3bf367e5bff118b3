//! Where commands print: results to standard output, everything else to standard error.

use std::{
    ffi::OsString,
    io::{self, IsTerminal, Write},
};

use clap::ColorChoice;
use serde::Serialize;
#[cfg(feature = "daemon")]
use serde::de::DeserializeOwned;
use tracing::Level;

use super::{
    escape,
    exit::{CliError, CliResult, Exit},
    journal::{stderr_is_journal, with_priority},
    paint::Paint,
    table::terminal_columns,
    wrap,
};
use crate::model::HostResponse;

/// The width of text where no terminal says otherwise.
const DEFAULT_WIDTH: usize = 100;

/// On narrower terminals text runs over the edge: it would be unreadable in fewer columns.
const LEAST_WIDTH: usize = 40;

/// Where the text of an error begins, after `error:`.
const ERROR_INDENT: usize = 7;

/// Target of the log event with which a service ends after an error. No filter removes it.
pub(super) const FATAL_TARGET: &str = "hookyard::fatal";

/// One output of the program.
#[derive(Debug, Clone, Copy)]
pub(super) struct OutputStream {
    /// Whether a person sees it.
    pub(super) is_terminal: bool,
    /// Whether it has colours.
    pub(super) paint: Paint,
}

/// What a command prints on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Screen {
    /// Standard output.
    pub(super) out: OutputStream,
    /// Standard error.
    pub(super) err: OutputStream,
    /// The columns of the terminal, if there is one.
    columns: Option<usize>,
    /// The format of notes and errors.
    pub(super) message_format: MessageFormat,
    /// Whether standard error goes to systemd's journal, so that its lines have priorities.
    pub(super) is_journal: bool,
}

/// What is printed about a list of the daemon.
#[cfg(feature = "daemon")]
#[derive(Debug, Clone, Copy)]
pub(super) struct ListWords {
    /// What it is called in an error.
    pub(super) list: &'static str,
    /// The note if nothing is in it.
    pub(super) empty: &'static str,
}

/// How a command writes notes and errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MessageFormat {
    /// As text on standard error.
    Text,
    /// As log events, for a program that reads them.
    Log,
}

impl Screen {
    pub(super) fn new(choice: ColorChoice) -> Self {
        let out = OutputStream::new(io::stdout().is_terminal(), choice);
        let err = OutputStream::new(io::stderr().is_terminal(), choice);
        Self {
            out,
            err,
            columns: terminal_columns(),
            message_format: MessageFormat::Text,
            is_journal: stderr_is_journal(),
        }
    }

    /// The screen of a program that speaks to another one: without colours and columns.
    #[cfg(feature = "daemon")]
    pub(super) fn plain() -> Self {
        let plain = OutputStream { is_terminal: false, paint: Paint::Plain };
        Self {
            out: plain,
            err: plain,
            columns: None,
            message_format: MessageFormat::Text,
            is_journal: stderr_is_journal(),
        }
    }

    /// The same screen for a command that writes its messages in this format.
    pub(super) fn with_messages(self, message_format: MessageFormat) -> Self {
        Self { message_format, ..self }
    }

    /// The width of text that is laid out.
    pub(super) fn width(&self) -> usize {
        self.columns.map_or(DEFAULT_WIDTH, |columns| columns.max(LEAST_WIDTH))
    }

    /// The width of tables and lists. `None` where a program reads them: nothing is wrapped or cut.
    pub(super) fn table_width(&self) -> Option<usize> {
        self.out.is_terminal.then(|| self.width())
    }

    /// Prints a part of the result.
    #[expect(clippy::unused_self, reason = "printing needs a screen, as a sign that it is allowed")]
    pub(super) fn print(&self, text: &str) -> Result<(), CliError> {
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes())?;
        if !text.ends_with('\n') {
            out.write_all(b"\n")?;
        }
        Ok(out.flush()?)
    }

    /// Prints the answer of a dialect, as a hook would.
    pub(super) fn print_response(&self, response: &HostResponse) -> CliResult {
        if !response.stdout.is_empty() {
            self.print(&response.stdout)?;
        }
        if !response.stderr.is_empty() {
            self.note(response.stderr.trim_end());
        }
        Ok(Exit::Native(response.exit_code))
    }

    /// Prints a result as JSON: indented on a terminal, else on one line.
    pub(super) fn print_json<T: Serialize>(&self, value: &T) -> Result<(), CliError> {
        let text = if self.out.is_terminal {
            serde_json::to_string_pretty(value).map(|text| escape::json(&text))
        } else {
            // Raw parts of an event may have line breaks between their values.
            serde_json::to_string(value).map(|text| text.replace(['\n', '\r'], " "))
        };
        let text =
            text.map_err(|error| CliError::new(format!("the result could not be written: {error}")))?;
        self.print(&text)
    }

    /// Prints a list of the daemon as a table, and how many items were left out of it.
    ///
    /// Returns an error if an item cannot be read.
    #[cfg(feature = "daemon")]
    pub(super) fn print_list<R: DeserializeOwned>(
        &self,
        items: Vec<serde_json::Value>,
        left_out: usize,
        words: ListWords,
        table: impl FnOnce(&[R], &Self) -> String,
    ) -> CliResult {
        let rows: Result<Vec<R>, _> = items.into_iter().map(serde_json::from_value).collect();
        let rows = rows.map_err(|error| {
            let what = format!("{} cannot be read: {error}", words.list);
            CliError::with_help(what, "it may be another version; `--json` prints the list as it is")
        })?;
        if rows.is_empty() {
            self.note(words.empty);
            return Ok(Exit::Done);
        }
        self.print(&table(&rows, self))?;
        if left_out > 0 {
            self.note(&format!("and {left_out} more; `--limit` shows them"));
        }
        Ok(Exit::Done)
    }

    /// Prints something that is not the result. An error is ignored: there is no other place to report it.
    pub(super) fn note(&self, text: &str) {
        match self.message_format {
            MessageFormat::Text => self.write_message(Level::INFO, text),
            MessageFormat::Log => tracing::info!("{text}"),
        }
    }

    /// Writes lines to standard error.
    pub(super) fn write_message(&self, level: Level, text: &str) {
        let text = if self.is_journal { with_priority(level, text) } else { format!("{text}\n") };
        drop(io::stderr().lock().write_all(text.as_bytes()));
    }

    /// Prints the error of a command, if there is one, and returns its exit code.
    pub(super) fn report(&self, result: CliResult) -> Exit {
        match result {
            Ok(exit) => exit,
            Err(CliError::AlreadyReported) => Exit::Failed,
            // Whoever closes a pipe has read enough.
            Err(CliError::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => Exit::Done,
            Err(CliError::Output(error)) => {
                self.error(&format!("the output could not be written: {error}"), None);
                Exit::Failed
            }
            Err(CliError::Message { what, help }) => {
                self.error(&what, help.as_deref());
                Exit::Failed
            }
        }
    }

    /// Prints an error.
    pub(super) fn error(&self, what: &str, help: Option<&str>) {
        if self.message_format == MessageFormat::Log {
            return tracing::error!(target: FATAL_TARGET, help, "{what}");
        }
        let paint = self.err.paint;
        self.write_message(Level::ERROR, &format!("{} {}", paint.red("error:"), self.error_text(what)));
        if let Some(help) = help {
            let help = format!(" {} {}", paint.bold("help:"), self.error_text(help));
            self.write_message(Level::ERROR, &help);
        }
    }

    /// The text of an error, wrapped where a person reads it.
    fn error_text(&self, text: &str) -> String {
        let width = self.columns.filter(|_| self.err.is_terminal).map(|_| self.width());
        wrap::hanging(&escape::block(text, 0), width, ERROR_INDENT)
    }
}

impl OutputStream {
    fn new(is_terminal: bool, choice: ColorChoice) -> Self {
        let colored = match choice {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => {
                is_terminal && wants_color(|name| std::env::var_os(name).map(OsString::into_encoded_bytes))
            }
        };
        Self { is_terminal, paint: if colored { Paint::Colored } else { Paint::Plain } }
    }
}

/// Whether the environment leaves colours on.
fn wants_color(variable: impl Fn(&str) -> Option<Vec<u8>>) -> bool {
    let refused = variable("NO_COLOR").is_some_and(|value| !value.is_empty());
    !refused && variable("TERM").is_none_or(|term| term != b"dumb")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_color_is_honoured_unless_it_is_empty() {
        let with = |name: &'static str, value: &'static str| {
            wants_color(move |asked| (asked == name).then(|| value.as_bytes().to_vec()))
        };
        assert!(!with("NO_COLOR", "1"));
        assert!(with("NO_COLOR", ""));
        assert!(!with("TERM", "dumb"));
        assert!(with("TERM", "xterm"));
    }
}
