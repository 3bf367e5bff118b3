//! `top`: a live view of hooks and runs.
//!
//! `sources` sends updates, `stream` decodes them, `state` adds them up (with `window` and `pools`) into a snapshot.
//! `columns`, `header` and `ui` say what to show, `draw` draws it. `live` redraws until a key or signal; `once` prints one
//! table.

mod columns;
mod draw;
#[cfg(test)]
mod example;
mod header;
mod live;
mod once;
mod pools;
mod sources;
mod state;
mod stream;
mod ui;
mod window;

use std::time::Duration;

use clap::Args;

use super::{
    daemon_flag::{SocketFlag, WorkspaceIdFlag},
    exit::CliResult,
    exit::Exit,
    flags::JsonFlag,
    screen::Screen,
};
use sources::DaemonSource;

const FOOTER: &str = "\
Examples:
  hookyard top
  hookyard top --workspace-id shop
  hookyard top --once --seconds 10
  hookyard top --json | jq '.hooks[].p99_ms'

Keys: tab switches between hooks and runs; s and the arrow keys choose the sort column; r reverses the order; / filters \
by name; p pauses; q quits.

Rates and times cover the last minute; counts cover the time since the start. Events that a busy daemon could not send \
in time are counted as dropped.";

/// Live view of the daemon's hooks and runs
///
/// Without a terminal, or with `--once` or `--json`, it watches for a while, prints one table and ends.
#[derive(Debug, Args)]
#[command(after_help = FOOTER)]
pub(super) struct TopCommand {
    #[command(flatten)]
    workspace: WorkspaceIdFlag,

    /// Print one table and end
    #[arg(long)]
    once: bool,

    /// Seconds to watch before the table is printed
    #[arg(long, value_name = "NUMBER", default_value = "2", value_parser = clap::value_parser!(u32).range(1..=86_400))]
    seconds: u32,

    #[command(flatten)]
    socket: SocketFlag,

    #[command(flatten)]
    output: JsonFlag,
}

impl TopCommand {
    /// Needs a runtime for signals only; the sources are threads.
    pub(super) fn run(self, screen: &Screen) -> CliResult {
        let client = self.socket.interactive_client();
        let query = self.workspace.query(&client)?;
        let source = DaemonSource::new(client, query);
        let lines = source.open_stream()?;
        if !(self.once || self.output.json) && screen.out.is_terminal {
            return live::show(&source, lines, screen);
        }
        let snapshot = once::watch(&source, lines, Duration::from_secs(self.seconds.into()))?;
        if self.output.json {
            screen.print_json(&snapshot)?;
            return Ok(Exit::Done);
        }
        once::print(&snapshot, screen)
    }
}
