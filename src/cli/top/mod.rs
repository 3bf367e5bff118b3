//! `top`: hooks and runs of a running daemon, as they go. Owns what is typed; refuses to change anything at the daemon.
//!
//! `feed` brings events, `told` reads the stream, `watch` folds it into a picture (with `window` for the last minute and
//! `pools` for the metrics); `columns` and `facts` make words of a picture, `ui` knows what was chosen. `live` draws it
//! with `draw` until it is told to end, `once` prints it a single time.

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

use super::{daemon_flag::SocketFlag, exit::CliResult, exit::Exit, flags::JsonFlag, screen::Screen};
use sources::DaemonSource;

const EXAMPLES: &str = "\
Examples:
  hookyard top
  hookyard top --id shop
  hookyard top --once --seconds 10
  hookyard top --json | jq '.hooks[].p99_ms'

Keys: tab shows hooks or runs; s and the arrows choose what they are sorted by, r turns the order round; / keeps
those with a name; p holds the picture; q ends it.
Rates and times are those of the last minute, counts those since the start. What a busy daemon could not tell
in time is counted as dropped.";

/// Shows hooks and runs of the daemon as they go
///
/// Without a terminal, or with `--once` or `--json`, it watches for a while, prints one table and ends.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct TopCommand {
    /// Those of this workspace only
    #[arg(long, value_name = "ID")]
    id: Option<String>,

    /// Prints one table and ends
    #[arg(long)]
    once: bool,

    /// How long it watches before that
    #[arg(long, value_name = "NUMBER", default_value = "2", value_parser = clap::value_parser!(u32).range(1..=86_400))]
    seconds: u32,

    #[command(flatten)]
    socket: SocketFlag,

    #[command(flatten)]
    output: JsonFlag,
}

impl TopCommand {
    /// Watches. The threads that do so wait by themselves; the runtime is there for the signals.
    pub(super) fn run(self, screen: &Screen) -> CliResult {
        let source = DaemonSource::new(self.socket.interactive_client(), self.id.as_deref());
        let lines = source.follow()?;
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
