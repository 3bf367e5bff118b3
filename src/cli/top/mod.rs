//! `top`: a live view of hooks and runs.
//!
//! `sources` sends updates, `stream` decodes them, `state` adds them up (with `pools`) into a snapshot.
//! `columns`, `header` and `ui` say what to show, `draw` draws it. `live` redraws until a key or signal; without it one
//! table is printed.

mod columns;
mod draw;
#[cfg(test)]
mod example;
mod header;
mod live;
mod pools;
mod sources;
mod state;
mod stream;
mod ui;

use std::{
    sync::mpsc::{RecvTimeoutError, sync_channel},
    time::Duration,
};

use clap::Args;
use tokio::time::Instant;

use super::{
    daemon_flag::{SocketFlag, WorkspaceIdFlag},
    exit::{CliError, CliResult, Exit},
    flags::JsonFlag,
    screen::Screen,
    table::Page,
};
use crate::daemon::ResponseLines;
use columns::{GAP, SortOrder, TableRow};
use sources::{DaemonSource, EVENT_BUFFER, TopEvent};
use state::{TopSnapshot, TopState};
use ui::TopUi;

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
        let snapshot = watch(&source, lines, Duration::from_secs(self.seconds.into()))?;
        if self.output.json {
            screen.print_json(&snapshot)?;
            return Ok(Exit::Done);
        }
        print(&snapshot, screen)
    }
}

/// Watches for this long.
///
/// Returns an error if the stream ends meanwhile.
fn watch(source: &DaemonSource, lines: ResponseLines, time: Duration) -> Result<TopSnapshot, CliError> {
    let start = Instant::now();
    let mut state = TopState::default();
    let (sender, events) = sync_channel(EVENT_BUFFER);
    source.clone().spawn_stream_reader(lines, sender);
    while let Some(left) = time.checked_sub(start.elapsed()).filter(|left| !left.is_zero()) {
        match events.recv_timeout(left) {
            Ok(TopEvent::Event(event)) => state.apply(event, start.elapsed()),
            Ok(TopEvent::Stream(Err(why))) => {
                return Err(CliError::with_help(why, "look at the daemon's log"));
            }
            Ok(_) => {}
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
        }
    }
    state.apply_poll(Ok(source.poll()?));
    Ok(state.snapshot(start.elapsed()))
}

/// Prints both tables.
fn print(snapshot: &TopSnapshot, screen: &Screen) -> Result<Exit, CliError> {
    let room = screen.table_width();
    let ui = TopUi::new(screen.out.paint);
    let mut page = Page::default();
    let all = room.unwrap_or(usize::MAX);
    page.line(&header::joined(&header::daemon(snapshot), all));
    page.line(&header::joined(&header::events(snapshot), all));
    add_table(&mut page, &ui, &snapshot.hooks, ui.hooks, room);
    add_table(&mut page, &ui, &snapshot.runs, ui.runs, room);
    screen.print(&page.into_text())?;
    if snapshot.hooks.is_empty() {
        screen.note("no hook ran meanwhile; watch for longer with `--seconds`");
    }
    if snapshot.runs_left_out > 0 {
        screen.note(&format!("and {} more; `hookyard runs --limit` shows them", snapshot.runs_left_out));
    }
    Ok(Exit::Done)
}

fn add_table<R: TableRow>(page: &mut Page, ui: &TopUi, rows: &[R], sorting: SortOrder, room: Option<usize>) {
    if rows.is_empty() {
        return;
    }
    let rows: Vec<Vec<String>> = ui.rows(rows, sorting).into_iter().map(columns::cells).collect();
    let header: Vec<String> = R::COLUMNS.iter().map(|column| column.name.to_owned()).collect();
    let placed = columns::layout::<R>(&header, &rows, room);
    let line = |cells: &[String]| {
        let cell = |place: &columns::ColumnLayout| {
            columns::fill(&cells[place.column], place.width, R::COLUMNS[place.column].shape)
        };
        placed.iter().map(cell).collect::<Vec<_>>().join(&" ".repeat(GAP)).trim_end().to_owned()
    };
    page.line("");
    page.line(&ui.paint.bold(&line(&header)));
    for row in &rows {
        page.line(&line(row));
    }
}
