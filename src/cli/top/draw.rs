//! Draws a snapshot: the header, one of the tables, and the keys.

use ratatui::{
    Frame,
    layout::{Constraint, Layout, Rect},
    style::{Color, Modifier, Style},
    text::{Line, Span},
    widgets::Paragraph,
};

use super::{
    columns::{self, CellStyle, ColumnLayout, GAP, SortOrder, TableColumn, TableRow},
    header,
    state::TopSnapshot,
    ui::{TopUi, TopView},
};
use crate::{
    cli::{escape, paint::Paint, table::EMPTY_CELL},
    model::Verdict,
};

/// The help line, the most important key first.
const KEYS: [&str; 8] = [
    "q quit",
    "tab view",
    "s ←→ sort",
    "r reverse",
    "/ filter",
    "p pause",
    "↑↓ scroll",
    "counts since the start, times of the last minute",
];

/// Draws everything.
pub(super) fn draw(frame: &mut Frame<'_>, snapshot: &TopSnapshot, ui: &mut TopUi) {
    let error = snapshot.error.as_deref();
    let lines = [1, 1, u16::from(error.is_some()), 1];
    let [daemon, events, gone, tabs, table, keys] = Layout::vertical(
        lines.map(Constraint::Length).into_iter().chain([Constraint::Min(0), Constraint::Length(1)]),
    )
    .areas(frame.area());
    let room = |area: Rect| usize::from(area.width);
    let plain = |text: String| Paragraph::new(Line::from(text));
    frame.render_widget(plain(header::joined(&header::daemon(snapshot), room(daemon))), daemon);
    frame.render_widget(plain(header::joined(&header::events(snapshot), room(events))), events);
    if let Some(error) = error {
        let text = escape::short(error, room(gone));
        frame.render_widget(Paragraph::new(Span::styled(text, ui.style(Color::Red).bold())), gone);
    }
    frame.render_widget(Paragraph::new(tabs_line(snapshot, ui)), tabs);
    match ui.view {
        TopView::Hooks => draw_table(frame, table, &snapshot.hooks, ui, ui.hooks),
        TopView::Runs => draw_table(frame, table, &snapshot.runs, ui, ui.runs),
    }
    let help = if ui.is_typing() {
        "enter keeps the filter · esc removes it".to_owned()
    } else {
        header::joined(&KEYS.map(str::to_owned), room(keys))
    };
    frame.render_widget(Paragraph::new(help).style(Style::new().dim()), keys);
}

fn tabs_line(snapshot: &TopSnapshot, ui: &TopUi) -> Line<'static> {
    let tab = |view, name: &str, number: usize| {
        let style = if ui.view == view { Style::new().reversed() } else { Style::new() };
        Span::styled(format!(" {name} {number} "), style)
    };
    let runs = snapshot.runs.len() + snapshot.runs_left_out;
    let mut spans = vec![
        tab(TopView::Hooks, "hooks", snapshot.hooks.len()),
        Span::raw(" "),
        tab(TopView::Runs, "runs", runs),
    ];
    if ui.paused.is_some() {
        spans.push(Span::styled("  paused", ui.style(Color::Yellow).bold()));
    }
    if ui.is_typing() || !ui.filter.is_empty() {
        let cursor = if ui.is_typing() { "▏" } else { "" };
        spans.push(Span::raw(format!("  /{}{cursor}", escape::line(&ui.filter))));
    }
    Line::from(spans)
}

fn draw_table<R: TableRow>(frame: &mut Frame<'_>, area: Rect, all: &[R], ui: &mut TopUi, sorting: SortOrder) {
    let rows: Vec<Vec<String>> = ui.rows(all, sorting).into_iter().map(columns::cells).collect();
    // A line of the area is the header's.
    let visible = usize::from(area.height).saturating_sub(1);
    ui.scroll_offset = ui.scroll_offset.min(rows.len().saturating_sub(visible));
    let header = columns::header::<R>(sorting);
    let placed = columns::layout::<R>(&header, &rows, Some(usize::from(area.width)));
    let mut lines = vec![line(&header, &placed, |_: &TableColumn<R>, _| Style::new().bold().underlined())];
    let shown = rows.iter().skip(ui.scroll_offset).take(visible);
    lines.extend(
        shown.map(|row| line(row, &placed, |column: &TableColumn<R>, cell| ui.tone(column.tone, cell))),
    );
    if rows.is_empty() {
        let why = if all.is_empty() { "nothing yet" } else { "nothing matches the filter" };
        lines.push(Line::from(Span::styled(why, Style::new().dim())));
    }
    frame.render_widget(Paragraph::new(lines), area);
}

fn line<R: TableRow>(
    cells: &[String],
    placed: &[ColumnLayout],
    style: impl Fn(&TableColumn<R>, &str) -> Style,
) -> Line<'static> {
    let mut spans = Vec::with_capacity(placed.len() * 2);
    for place in placed {
        let column = &R::COLUMNS[place.column];
        let cell = &cells[place.column];
        if !spans.is_empty() {
            spans.push(Span::raw(" ".repeat(GAP)));
        }
        spans.push(Span::styled(columns::fill(cell, place.width, column.shape), style(column, cell)));
    }
    Line::from(spans)
}

impl TopUi {
    /// A colour, where there are any.
    fn style(&self, color: Color) -> Style {
        match self.paint {
            Paint::Colored => Style::new().fg(color),
            Paint::Plain => Style::new(),
        }
    }

    fn tone(&self, tone: CellStyle, cell: &str) -> Style {
        if cell == EMPTY_CELL {
            return Style::new().add_modifier(Modifier::DIM);
        }
        match tone {
            CellStyle::Plain | CellStyle::Verdict(Verdict::Proceed | Verdict::Allow) => Style::new(),
            CellStyle::Verdict(Verdict::Ask) => self.style(Color::Yellow),
            CellStyle::Verdict(Verdict::Block) | CellStyle::Failure => self.style(Color::Red),
            CellStyle::Verdict(Verdict::Halt) => self.style(Color::Magenta),
        }
    }
}

#[cfg(test)]
mod tests {
    use ratatui::{Terminal, backend::TestBackend};

    use super::*;
    use crate::cli::top::example;

    fn drawn(width: u16, height: u16, snapshot: &TopSnapshot, ui: &mut TopUi) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, snapshot, ui)).unwrap();
        terminal.backend().to_string()
    }

    #[test]
    fn hooks_are_shown_as_far_as_there_is_room() {
        for width in [120, 80, 50] {
            let shown = drawn(width, 12, &example::snapshot(), &mut TopUi::new(Paint::Plain));
            insta::assert_snapshot!(format!("hooks_{width}"), shown);
        }
    }

    #[test]
    fn runs_are_shown_as_far_as_there_is_room() {
        for width in [120, 80, 50] {
            let mut ui = TopUi { view: TopView::Runs, ..TopUi::new(Paint::Plain) };
            insta::assert_snapshot!(format!("runs_{width}"), drawn(width, 9, &example::snapshot(), &mut ui));
        }
    }

    #[test]
    fn an_error_a_pause_and_a_filter_are_shown() {
        let mut state = example::state();
        state.apply_poll(Err("no hookyard listens on /run/\x1bhookyard.sock: refused".into()));
        let snapshot = state.snapshot(std::time::Duration::from_secs(64));
        let mut ui = TopUi::new(Paint::Colored);
        ui.paused = Some(snapshot.clone());
        ui.filter = "nobody".into();
        insta::assert_snapshot!("error", drawn(80, 10, &snapshot, &mut ui));
    }

    #[test]
    fn no_terminal_is_too_small() {
        for (width, height) in [(1, 1), (3, 2), (10, 3), (20, 5), (300, 100)] {
            for view in [TopView::Hooks, TopView::Runs] {
                let mut ui = TopUi { view, scroll_offset: usize::MAX, ..TopUi::new(Paint::Colored) };
                let shown = drawn(width, height, &example::snapshot(), &mut ui);
                assert!(!shown.contains('\x1b'), "{shown:?}");
            }
        }
    }

    #[test]
    fn scrolling_ends_at_the_last_row() {
        let mut ui = TopUi { scroll_offset: 100, ..TopUi::new(Paint::Plain) };
        let shown = drawn(80, 7, &example::snapshot(), &mut ui);
        assert_eq!(ui.scroll_offset, 2);
        assert!(shown.contains("naming-police") && !shown.contains("guard"), "{shown}");
    }
}
