//! One table after watching for a while: for programs, and for those who want to keep it. Refuses to repeat itself.

use std::{
    sync::mpsc::{RecvTimeoutError, sync_channel},
    time::Duration,
};

use tokio::time::Instant;

use super::{
    columns::{self, GAP, Sorting, Tabular},
    facts,
    feed::{MOST_NEWS, News, Source},
    ui::Ui,
    watch::{Picture, Watch},
};
use crate::{
    cli::{
        exit::{Exit, Trouble},
        page::Page,
        screen::Screen,
    },
    daemon::Lines,
};

/// Watches for so long, and says what there was to see.
///
/// Returns an error if the daemon goes away meanwhile.
pub(super) fn watch(source: &Source, lines: Lines, time: Duration) -> Result<Picture, Trouble> {
    let start = Instant::now();
    let mut watch = Watch::default();
    let (sender, news) = sync_channel(MOST_NEWS);
    source.clone().tell(lines, sender);
    while let Some(left) = time.checked_sub(start.elapsed()).filter(|left| !left.is_zero()) {
        match news.recv_timeout(left) {
            Ok(News::Told(told)) => watch.told(told, start.elapsed()),
            Ok(News::Stream(Err(why))) => {
                return Err(Trouble::with_help(why, "look at the daemon's log"));
            }
            Ok(_) => {}
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
        }
    }
    watch.look(Ok(source.look()?));
    Ok(watch.picture(start.elapsed()))
}

/// Prints everything.
pub(super) fn print(picture: &Picture, screen: &Screen) -> Result<Exit, Trouble> {
    let room = screen.table_width();
    let ui = Ui::new(screen.out.paint);
    let mut page = Page::default();
    let all = room.unwrap_or(usize::MAX);
    page.line(&facts::joined(&facts::daemon(picture), all));
    page.line(&facts::joined(&facts::events(picture), all));
    add(&mut page, &ui, &picture.hooks, ui.hooks, room);
    add(&mut page, &ui, &picture.runs, ui.runs, room);
    screen.print(&page.into_text())?;
    if picture.hooks.is_empty() {
        screen.note("no hook was run meanwhile; `--seconds` watches for longer");
    }
    if picture.runs_left_out > 0 {
        screen.note(&format!("and {} more; `hookyard runs --limit` shows them", picture.runs_left_out));
    }
    Ok(Exit::Done)
}

fn add<R: Tabular>(page: &mut Page, ui: &Ui, rows: &[R], sorting: Sorting, room: Option<usize>) {
    if rows.is_empty() {
        return;
    }
    let rows: Vec<Vec<String>> = ui.rows(rows, sorting).into_iter().map(columns::cells).collect();
    let header: Vec<String> = R::COLUMNS.iter().map(|column| column.name.to_owned()).collect();
    let placed = columns::place::<R>(&header, &rows, room);
    let line = |cells: &[String]| {
        let cell = |place: &columns::Placed| {
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
