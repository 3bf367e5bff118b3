//! Where commands print: results to standard output, everything else to standard error. Owns the choice of
//! colours and widths; refuses to fail when the reader of a pipe has gone.

use std::{
    ffi::OsString,
    io::{self, IsTerminal, Write},
};

use clap::ColorChoice;
use serde::Serialize;

use super::{
    escape,
    exit::{Ending, Exit, Trouble},
    logs::{FATAL, LogForm},
    paint::Paint,
};

/// How wide tables and diagnostics are where no terminal says otherwise.
const USUAL_WIDTH: usize = 100;

/// Narrower than this, tables are only noise, so they run over the edge instead.
const NARROWEST: usize = 40;

/// One output of the program.
#[derive(Debug, Clone, Copy)]
pub(super) struct Surface {
    /// Whether a person sees it.
    pub(super) is_terminal: bool,
    /// Whether it has colours.
    pub(super) paint: Paint,
}

/// What a command prints on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Screen {
    /// Standard output.
    pub(super) out: Surface,
    /// Standard error.
    pub(super) err: Surface,
    /// The columns of the terminal, if there is one.
    columns: Option<usize>,
    pub(super) voice: Voice,
}

/// How a command says what is not its result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Voice {
    /// As text on standard error.
    Text,
    /// As lines of the log, for a program that reads them.
    Log,
}

impl Screen {
    pub(super) fn new(choice: ColorChoice) -> Self {
        let out = Surface::new(io::stdout().is_terminal(), choice);
        let err = Surface::new(io::stderr().is_terminal(), choice);
        Self { out, err, columns: super::table::terminal_columns(), voice: Voice::Text }
    }

    /// The same screen for a command that says everything in this form.
    pub(super) fn saying(self, form: LogForm) -> Self {
        Self { voice: if form == LogForm::Json { Voice::Log } else { Voice::Text }, ..self }
    }

    /// The width of text that is laid out.
    pub(super) fn width(&self) -> usize {
        self.columns.map_or(USUAL_WIDTH, |columns| columns.max(NARROWEST))
    }

    /// The width of tables and lists: nothing is folded or cut for a program that reads them.
    pub(super) fn table_width(&self) -> Option<usize> {
        self.out.is_terminal.then(|| self.width())
    }

    /// Prints a part of the result.
    #[expect(clippy::unused_self, reason = "who has no screen has nothing to print")]
    pub(super) fn print(&self, text: &str) -> Result<(), Trouble> {
        let mut out = io::stdout().lock();
        out.write_all(text.as_bytes())?;
        if !text.ends_with('\n') {
            out.write_all(b"\n")?;
        }
        Ok(out.flush()?)
    }

    /// Prints a result for a machine: laid out where a person may look at it, else on one line.
    pub(super) fn print_json<T: Serialize>(&self, value: &T) -> Result<(), Trouble> {
        let text = if self.out.is_terminal {
            serde_json::to_string_pretty(value).map(|text| escape::json(&text))
        } else {
            // Parts that come from outside as they are may have line breaks between their values.
            serde_json::to_string(value).map(|text| text.replace(['\n', '\r'], " "))
        };
        let text = text.map_err(|error| Trouble::new(format!("the result could not be written: {error}")))?;
        self.print(&text)
    }

    /// Says something that is not the result. With nobody listening there is nobody to tell.
    pub(super) fn note(&self, text: &str) {
        match self.voice {
            Voice::Text => drop(writeln!(io::stderr().lock(), "{text}")),
            Voice::Log => tracing::info!("{text}"),
        }
    }

    /// Says what kept a command from its work, and tells how it ends.
    pub(super) fn end(&self, ending: Ending) -> Exit {
        match ending {
            Ok(exit) => exit,
            Err(Trouble::Silent) => Exit::Failed,
            // Whoever closes a pipe has read enough.
            Err(Trouble::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => Exit::Done,
            Err(Trouble::Output(error)) => {
                self.error(&format!("the output could not be written: {error}"), None);
                Exit::Failed
            }
            Err(Trouble::Told { what, help }) => {
                self.error(&what, help.as_deref());
                Exit::Failed
            }
        }
    }

    /// Says that something is wrong.
    pub(super) fn error(&self, what: &str, help: Option<&str>) {
        if self.voice == Voice::Log {
            return tracing::error!(target: FATAL, help, "{what}");
        }
        let paint = self.err.paint;
        self.note(&format!("{} {}", paint.red("error:"), escape::block(what, 7)));
        if let Some(help) = help {
            self.note(&format!(" {} {}", paint.bold("help:"), escape::block(help, 7)));
        }
    }
}

impl Surface {
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
