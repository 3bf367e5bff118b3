//! The picture on a terminal: the facts of the daemon, one of the tables, and what keys are for. Refuses to know more than
//! the picture, and to show a text from outside that was not escaped.

use ratatui::{
    Frame,
    layout::{Constraint, Layout, Rect},
    style::{Color, Modifier, Style},
    text::{Line, Span},
    widgets::Paragraph,
};

use super::{
    columns::{self, Column, GAP, Placed, Sorting, Tabular, Tone},
    facts,
    ui::{Ui, View},
    watch::Picture,
};
use crate::{
    cli::{escape, paint::Paint, table::NOTHING},
    model::Verdict,
};

/// What keys are for, the most important first.
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
pub(super) fn draw(frame: &mut Frame<'_>, picture: &Picture, ui: &mut Ui) {
    let trouble = picture.trouble.as_deref();
    let lines = [1, 1, u16::from(trouble.is_some()), 1];
    let [daemon, events, gone, tabs, table, keys] = Layout::vertical(
        lines.map(Constraint::Length).into_iter().chain([Constraint::Min(0), Constraint::Length(1)]),
    )
    .areas(frame.area());
    let room = |area: Rect| usize::from(area.width);
    let plain = |text: String| Paragraph::new(Line::from(text));
    frame.render_widget(plain(facts::joined(&facts::daemon(picture), room(daemon))), daemon);
    frame.render_widget(plain(facts::joined(&facts::events(picture), room(events))), events);
    if let Some(trouble) = trouble {
        let text = escape::short(trouble, room(gone));
        frame.render_widget(Paragraph::new(Span::styled(text, ui.style(Color::Red).bold())), gone);
    }
    frame.render_widget(Paragraph::new(tabs_line(picture, ui)), tabs);
    match ui.view {
        View::Hooks => draw_table(frame, table, &picture.hooks, ui, ui.hooks),
        View::Runs => draw_table(frame, table, &picture.runs, ui, ui.runs),
    }
    let help = if ui.is_typing() {
        "enter keeps the filter · esc takes it away".to_owned()
    } else {
        facts::joined(&KEYS.map(str::to_owned), room(keys))
    };
    frame.render_widget(Paragraph::new(help).style(Style::new().dim()), keys);
}

fn tabs_line(picture: &Picture, ui: &Ui) -> Line<'static> {
    let tab = |view, name: &str, number: usize| {
        let style = if ui.view == view { Style::new().reversed() } else { Style::new() };
        Span::styled(format!(" {name} {number} "), style)
    };
    let runs = picture.runs.len() + picture.runs_left_out;
    let mut spans =
        vec![tab(View::Hooks, "hooks", picture.hooks.len()), Span::raw(" "), tab(View::Runs, "runs", runs)];
    if ui.held.is_some() {
        spans.push(Span::styled("  paused", ui.style(Color::Yellow).bold()));
    }
    if ui.is_typing() || !ui.filter.is_empty() {
        let cursor = if ui.is_typing() { "▏" } else { "" };
        spans.push(Span::raw(format!("  /{}{cursor}", escape::line(&ui.filter))));
    }
    Line::from(spans)
}

fn draw_table<R: Tabular>(frame: &mut Frame<'_>, area: Rect, all: &[R], ui: &mut Ui, sorting: Sorting) {
    let rows: Vec<Vec<String>> = ui.rows(all, sorting).into_iter().map(columns::cells).collect();
    // A line of the area is the header's.
    let visible = usize::from(area.height).saturating_sub(1);
    ui.scrolled = ui.scrolled.min(rows.len().saturating_sub(visible));
    let header = columns::header::<R>(sorting);
    let placed = columns::place::<R>(&header, &rows, Some(usize::from(area.width)));
    let mut lines = vec![line(&header, &placed, |_: &Column<R>, _| Style::new().bold().underlined())];
    let shown = rows.iter().skip(ui.scrolled).take(visible);
    lines.extend(shown.map(|row| line(row, &placed, |column: &Column<R>, cell| ui.tone(column.tone, cell))));
    if rows.is_empty() {
        let why = if all.is_empty() { "nothing yet" } else { "nothing passes the filter" };
        lines.push(Line::from(Span::styled(why, Style::new().dim())));
    }
    frame.render_widget(Paragraph::new(lines), area);
}

fn line<R: Tabular>(
    cells: &[String],
    placed: &[Placed],
    style: impl Fn(&Column<R>, &str) -> Style,
) -> Line<'static> {
    let mut spans = Vec::with_capacity(placed.len() * 2);
    for place in placed {
        let (column, cell) = (&R::COLUMNS[place.column], &cells[place.column]);
        if !spans.is_empty() {
            spans.push(Span::raw(" ".repeat(GAP)));
        }
        spans.push(Span::styled(columns::fill(cell, place.width, column.shape), style(column, cell)));
    }
    Line::from(spans)
}

impl Ui {
    /// A colour, where there are any.
    fn style(&self, color: Color) -> Style {
        match self.paint {
            Paint::Colored => Style::new().fg(color),
            Paint::Plain => Style::new(),
        }
    }

    fn tone(&self, tone: Tone, cell: &str) -> Style {
        if cell == NOTHING {
            return Style::new().add_modifier(Modifier::DIM);
        }
        match tone {
            Tone::Plain | Tone::Verdict(Verdict::Proceed | Verdict::Allow) => Style::new(),
            Tone::Verdict(Verdict::Ask) => self.style(Color::Yellow),
            Tone::Verdict(Verdict::Block) | Tone::Failure => self.style(Color::Red),
            Tone::Verdict(Verdict::Halt) => self.style(Color::Magenta),
        }
    }
}

#[cfg(test)]
mod tests {
    use ratatui::{Terminal, backend::TestBackend};

    use super::*;
    use crate::cli::top::example;

    fn drawn(width: u16, height: u16, picture: &Picture, ui: &mut Ui) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, picture, ui)).unwrap();
        terminal.backend().to_string()
    }

    #[test]
    fn hooks_are_shown_as_far_as_there_is_room() {
        for width in [120, 80, 50] {
            let shown = drawn(width, 12, &example::picture(), &mut Ui::new(Paint::Plain));
            insta::assert_snapshot!(format!("hooks_{width}"), shown);
        }
    }

    #[test]
    fn runs_are_shown_as_far_as_there_is_room() {
        for width in [120, 80, 50] {
            let mut ui = Ui { view: View::Runs, ..Ui::new(Paint::Plain) };
            insta::assert_snapshot!(format!("runs_{width}"), drawn(width, 9, &example::picture(), &mut ui));
        }
    }

    #[test]
    fn trouble_a_pause_and_a_filter_are_shown() {
        let mut watch = example::watch();
        watch.look(Err("no hookyard listens on /run/\x1bhookyard.sock: refused".into()));
        let picture = watch.picture(std::time::Duration::from_secs(64));
        let mut ui = Ui::new(Paint::Colored);
        ui.held = Some(picture.clone());
        ui.filter = "nobody".into();
        insta::assert_snapshot!("trouble", drawn(80, 10, &picture, &mut ui));
    }

    #[test]
    fn no_terminal_is_too_small() {
        for (width, height) in [(1, 1), (3, 2), (10, 3), (20, 5), (300, 100)] {
            for view in [View::Hooks, View::Runs] {
                let mut ui = Ui { view, scrolled: usize::MAX, ..Ui::new(Paint::Colored) };
                let shown = drawn(width, height, &example::picture(), &mut ui);
                assert!(!shown.contains('\x1b'), "{shown:?}");
            }
        }
    }

    #[test]
    fn scrolling_ends_at_the_last_row() {
        let mut ui = Ui { scrolled: 100, ..Ui::new(Paint::Plain) };
        let shown = drawn(80, 7, &example::picture(), &mut ui);
        assert_eq!(ui.scrolled, 2);
        assert!(shown.contains("naming-police") && !shown.contains("guard"), "{shown}");
    }
}
