//! `record`: write the events that an agent sends as JSON lines, for `replay`, `tune` and `test`.

use std::{
    fs::File,
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use clap::Args;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{
    daemon_flag::ControlSocketFlags,
    escape,
    exit::{CliError, CliResult, Exit},
    paths::shell_quoted,
    screen::Screen,
    units::plural,
};
use crate::{
    daemon::percent_encoded,
    model::{DialectName, io_reason},
};

const FOOTER: &str = "\
Examples:
  hookyard record claude --output session.jsonl
  hookyard record codex --session 0199-1 --events 20 > turn.jsonl

Replay it with `hookyard replay session.jsonl --dialect claude`, or measure hooks with `hookyard tune`. The file contains \
what the agent does, such as commands and the contents of files; only you can read it. Secrets of hooks are replaced by \
`***`. hookyard does not recognise other secrets.

Exit codes: 0 as many events as asked for were recorded; 1 the daemon is down or ended the stream, or the file cannot be \
written. Without `--events`, stop it with Ctrl-C.";

/// Record the events that an agent sends
///
/// Writes each event as the agent sends it to the daemon from now on, one JSON object a line.
#[derive(Debug, Args)]
#[command(after_help = FOOTER)]
pub(super) struct RecordCommand {
    /// Whose events: the agent's format (dialect)
    #[arg(value_name = "AGENT")]
    dialect: DialectName,

    /// File to write, which must not exist yet; without it, standard output
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Only events of the session with this id, as the agent names it
    #[arg(long, value_name = "ID")]
    session: Option<String>,

    /// End after this many events
    #[arg(long, short = 'n', value_name = "NUMBER")]
    events: Option<usize>,

    #[command(flatten)]
    sockets: ControlSocketFlags,
}

/// An event of the stream. Its JSON is written as it comes.
#[derive(Deserialize)]
struct RecordedLine<'l> {
    #[serde(borrow)]
    event: &'l RawValue,
}

#[derive(Deserialize)]
struct DroppedEvents {
    dropped: u64,
}

impl RecordCommand {
    pub(super) fn run(self, screen: &Screen) -> CliResult {
        let dialect = self.dialect.as_str();
        let session = self.session.as_deref().map(|id| format!("&session_id={}", percent_encoded(id)));
        let path = format!("/v1/recording?dialect={dialect}{}", session.unwrap_or_default());
        let mut stream = self.sockets.streaming_client().stream(&path)?;
        let mut file = self.output.as_deref().map(create).transpose()?;
        let target = self.output.as_deref().map(|file| format!(" into {}", shell_quoted(file)));
        screen.note(&format!("recording events of {dialect}{}", target.unwrap_or_default()));
        let mut kind = String::new();
        let mut recorded = 0;
        while self.events.is_none_or(|most| recorded < most) {
            let Some(line) = stream.next()? else {
                let what = format!("the daemon ended the stream after {}", plural(recorded, "event"));
                return Err(CliError::with_help(what, "look at the daemon's log"));
            };
            match line.split_once(": ") {
                Some(("event", name)) => name.clone_into(&mut kind),
                Some(("data", data)) if kind == "event" => {
                    // The daemon may be newer: what is unknown is left out.
                    let Ok(RecordedLine { event }) = serde_json::from_str(data) else { continue };
                    self.write(event.get(), file.as_mut(), screen)?;
                    recorded += 1;
                }
                Some(("data", data)) if kind == "dropped" => {
                    let dropped = serde_json::from_str(data).map_or(0, |DroppedEvents { dropped }| dropped);
                    screen.note(&format!("{dropped} events were lost: they came too fast"));
                }
                _ => {}
            }
        }
        Ok(Exit::Done)
    }

    fn write(&self, event: &str, file: Option<&mut File>, screen: &Screen) -> Result<(), CliError> {
        let Some(file) = file else { return screen.print(&format!("{event}\n")) };
        let written = file.write_all(format!("{event}\n").as_bytes());
        written.map_err(|error| unwritten(self.output.as_deref().unwrap_or(Path::new("")), &error))
    }
}

/// Creates a file that only its owner can read.
fn create(file: &Path) -> Result<File, CliError> {
    let created = File::options().write(true).create_new(true).mode(0o600).open(file);
    created.map_err(|error| unwritten(file, &error))
}

fn unwritten(file: &Path, error: &io::Error) -> CliError {
    CliError::new(format!("{} cannot be written: {}", escape::path(file), io_reason(error)))
}
