//! One table after watching for a while.

use std::{
    sync::mpsc::{RecvTimeoutError, sync_channel},
    time::Duration,
};

use tokio::time::Instant;

use super::{
    columns::{self, GAP, SortOrder, TableRow},
    header,
    sources::{DaemonSource, EVENT_BUFFER, TopEvent},
    state::{TopSnapshot, TopState},
    ui::TopUi,
};
use crate::{
    cli::{
        exit::{CliError, Exit},
        screen::Screen,
        table::Page,
    },
    daemon::ResponseLines,
};

/// Watches for this long.
///
/// Returns an error if the stream ends meanwhile.
pub(super) fn watch(
    source: &DaemonSource,
    lines: ResponseLines,
    time: Duration,
) -> Result<TopSnapshot, CliError> {
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
pub(super) fn print(snapshot: &TopSnapshot, screen: &Screen) -> Result<Exit, CliError> {
    let room = screen.table_width();
    let ui = TopUi::new(screen.out.paint);
    let mut page = Page::default();
    let all = room.unwrap_or(usize::MAX);
    page.line(&header::joined(&header::daemon(snapshot), all));
    page.line(&header::joined(&header::events(snapshot), all));
    add(&mut page, &ui, &snapshot.hooks, ui.hooks, room);
    add(&mut page, &ui, &snapshot.runs, ui.runs, room);
    screen.print(&page.into_text())?;
    if snapshot.hooks.is_empty() {
        screen.note("no hook ran meanwhile; watch for longer with `--seconds`");
    }
    if snapshot.runs_left_out > 0 {
        screen.note(&format!("and {} more; `hookyard runs --limit` shows them", snapshot.runs_left_out));
    }
    Ok(Exit::Done)
}

fn add<R: TableRow>(page: &mut Page, ui: &TopUi, rows: &[R], sorting: SortOrder, room: Option<usize>) {
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
