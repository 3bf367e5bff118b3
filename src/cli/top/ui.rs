//! What the person has chosen (table, order, filter, pause), and what each key does.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::{
    columns::{SortOrder, TableRow},
    state::{HookActivity, TopSnapshot},
};
use crate::cli::{paint::Paint, runs::RunRow};

/// The longest filter, in characters.
const LONGEST_FILTER: usize = 100;

/// How many rows a page is.
const PAGE: usize = 10;

/// The first sort column of hooks: the rate.
const RATE: usize = 2;

/// The first sort column of runs: the age.
const AGE: usize = 2;

/// The table that is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TopView {
    Hooks,
    Runs,
}

/// What keys do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InputMode {
    Commands,
    /// The filter is typed.
    Filter,
}

/// What a key asks for, apart from drawing again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyAction {
    Stay,
    /// Pause, or go on.
    TogglePause,
    Quit,
    /// Ctrl-C, which is no signal in this terminal mode.
    Interrupt,
}

/// The state of the live view.
#[derive(Debug)]
pub(super) struct TopUi {
    pub(super) view: TopView,
    pub(super) hooks: SortOrder,
    pub(super) runs: SortOrder,
    pub(super) filter: String,
    pub(super) keys: InputMode,
    /// How many rows are scrolled out at the top.
    pub(super) scroll_offset: usize,
    /// The snapshot that is shown while paused.
    pub(super) paused: Option<TopSnapshot>,
    pub(super) paint: Paint,
}

impl TopUi {
    pub(super) fn new(paint: Paint) -> Self {
        Self {
            view: TopView::Hooks,
            hooks: SortOrder::by(RATE),
            runs: SortOrder::by(AGE),
            filter: String::new(),
            keys: InputMode::Commands,
            scroll_offset: 0,
            paused: None,
            paint,
        }
    }

    /// Whether the filter is being typed.
    pub(super) fn is_typing(&self) -> bool {
        self.keys == InputMode::Filter
    }

    /// The rows that match the filter, in order.
    pub(super) fn rows<'a, R: TableRow>(&self, rows: &'a [R], sorting: SortOrder) -> Vec<&'a R> {
        let filter = self.filter.to_lowercase();
        let passes = |row: &&R| {
            let (name, other) = row.name();
            name.to_lowercase().contains(&filter) || other.to_lowercase().contains(&filter)
        };
        let mut rows: Vec<&R> = rows.iter().filter(passes).collect();
        sorting.sort(&mut rows);
        rows
    }

    /// Handles a key.
    pub(super) fn press(&mut self, key: KeyEvent) -> KeyAction {
        if key.kind == KeyEventKind::Release {
            return KeyAction::Stay;
        }
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return if key.code == KeyCode::Char('c') { KeyAction::Interrupt } else { KeyAction::Stay };
        }
        match self.keys {
            InputMode::Filter => self.typed(key.code),
            InputMode::Commands => return self.command(key.code),
        }
        KeyAction::Stay
    }

    fn typed(&mut self, key: KeyCode) {
        match key {
            KeyCode::Enter => self.keys = InputMode::Commands,
            KeyCode::Esc => {
                self.filter.clear();
                self.keys = InputMode::Commands;
            }
            KeyCode::Backspace => drop(self.filter.pop()),
            KeyCode::Char(c) if !c.is_control() && self.filter.chars().count() < LONGEST_FILTER => {
                self.filter.push(c);
            }
            _ => {}
        }
        self.scroll_offset = 0;
    }

    fn command(&mut self, key: KeyCode) -> KeyAction {
        match key {
            KeyCode::Char('q') => return KeyAction::Quit,
            KeyCode::Char('p' | ' ') => return KeyAction::TogglePause,
            KeyCode::Tab | KeyCode::BackTab => {
                self.view = if self.view == TopView::Hooks { TopView::Runs } else { TopView::Hooks };
                self.scroll_offset = 0;
            }
            KeyCode::Char('s') | KeyCode::Right => self.sort_by_neighbour(1),
            KeyCode::Left => self.sort_by_neighbour(-1),
            KeyCode::Char('r') => {
                let sorting = self.sorting();
                sorting.is_reversed = !sorting.is_reversed;
            }
            KeyCode::Char('/') => self.keys = InputMode::Filter,
            KeyCode::Esc => self.filter.clear(),
            KeyCode::Down => self.scroll_offset = self.scroll_offset.saturating_add(1),
            KeyCode::Up => self.scroll_offset = self.scroll_offset.saturating_sub(1),
            KeyCode::PageDown => self.scroll_offset = self.scroll_offset.saturating_add(PAGE),
            KeyCode::PageUp => self.scroll_offset = self.scroll_offset.saturating_sub(PAGE),
            KeyCode::Home => self.scroll_offset = 0,
            _ => {}
        }
        KeyAction::Stay
    }

    fn sorting(&mut self) -> &mut SortOrder {
        match self.view {
            TopView::Hooks => &mut self.hooks,
            TopView::Runs => &mut self.runs,
        }
    }

    /// Sorts by the next column to the right or left, around the end.
    fn sort_by_neighbour(&mut self, distance: isize) {
        let columns = match self.view {
            TopView::Hooks => HookActivity::COLUMNS.len(),
            TopView::Runs => RunRow::COLUMNS.len(),
        };
        let sorting = self.sorting();
        *sorting = SortOrder::by((sorting.column + columns).saturating_add_signed(distance) % columns);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::cli::top::example;

    fn press(ui: &mut TopUi, keys: &str) -> KeyAction {
        let code = |c| match c {
            '\n' => KeyCode::Enter,
            '\t' => KeyCode::Tab,
            '<' => KeyCode::Left,
            '>' => KeyCode::Right,
            'v' => KeyCode::Down,
            '^' => KeyCode::Up,
            '!' => KeyCode::Esc,
            '-' => KeyCode::Backspace,
            c => KeyCode::Char(c),
        };
        keys.chars().map(|c| ui.press(KeyEvent::from(code(c)))).last().unwrap()
    }

    fn names(ui: &TopUi) -> Vec<String> {
        let snapshot = example::snapshot();
        ui.rows(&snapshot.hooks, ui.hooks).iter().map(|row| row.hook.clone()).collect()
    }

    #[test]
    fn rows_are_sorted_by_any_column_both_ways() {
        let mut ui = TopUi::new(Paint::Plain);
        assert_eq!(names(&ui), ["guard", "audit", "naming-police", "slow"]);
        press(&mut ui, "r");
        assert_eq!(names(&ui), ["slow", "naming-police", "audit", "guard"]);
        press(&mut ui, "<<");
        assert_eq!(names(&ui), ["audit", "guard", "naming-police", "slow"]);
        press(&mut ui, "<");
        assert_eq!((ui.hooks.column, ui.hooks.mark::<HookActivity>()), (12, '▲'));
        assert_eq!(names(&ui)[0], "slow");
        press(&mut ui, ">s");
        assert_eq!(ui.hooks.column, 1);
        press(&mut ui, "\tss");
        assert_eq!((ui.view, ui.runs.column, ui.hooks.column), (TopView::Runs, 4, 1));
    }

    #[test]
    fn a_filter_is_typed_until_enter_and_removed_by_escape() {
        let mut ui = TopUi::new(Paint::Plain);
        assert_eq!(press(&mut ui, "/Qx-"), KeyAction::Stay);
        assert!(ui.is_typing());
        assert_eq!(names(&ui), Vec::<String>::new());
        press(&mut ui, "-UA\n");
        assert_eq!((names(&ui), ui.is_typing()), (vec!["guard".to_owned()], false));
        press(&mut ui, "!");
        assert_eq!(names(&ui).len(), 4);
        press(&mut ui, "/\u{7}ab!");
        assert_eq!((ui.filter.as_str(), ui.is_typing()), ("", false));
    }

    #[test]
    fn keys_quit_pause_and_scroll() {
        let mut ui = TopUi::new(Paint::Plain);
        assert_eq!(press(&mut ui, "q"), KeyAction::Quit);
        assert_eq!(press(&mut ui, "p"), KeyAction::TogglePause);
        assert_eq!(press(&mut ui, "/q"), KeyAction::Stay);
        let control = |c| KeyEvent::new(KeyCode::Char(c), KeyModifiers::CONTROL);
        assert_eq!(ui.press(control('c')), KeyAction::Interrupt);
        assert_eq!(ui.press(control('q')), KeyAction::Stay);
        press(&mut ui, "\nvv^");
        assert_eq!(ui.scroll_offset, 1);
        assert_eq!(example::snapshot().seconds, Duration::from_secs(64));
    }
}
