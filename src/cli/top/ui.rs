//! What a person has chosen: the table, its order, a filter, a pause. Owns what each key does; refuses to draw.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::{
    columns::{Sorting, Tabular},
    watch::{HookRow, Picture},
};
use crate::cli::{daemon_runs::Row as RunRow, paint::Paint};

/// The longest filter, in characters.
const LONGEST_FILTER: usize = 100;

/// How many rows a page is.
const PAGE: usize = 10;

/// The column of hooks that is sorted by in the beginning: the rate.
const RATE: usize = 2;

/// The column of runs that is sorted by in the beginning: the age.
const AGE: usize = 2;

/// Which table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum View {
    Hooks,
    Runs,
}

/// What keys are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keys {
    Commands,
    /// The filter is typed.
    Filter,
}

/// What follows from a key, beyond another picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    Stay,
    /// Hold the picture, or let it go on.
    Pause,
    Quit,
    /// The key that a terminal otherwise makes an interrupt of.
    Interrupt,
}

/// What a person has chosen.
#[derive(Debug)]
pub(super) struct Ui {
    pub(super) view: View,
    pub(super) hooks: Sorting,
    pub(super) runs: Sorting,
    pub(super) filter: String,
    pub(super) keys: Keys,
    /// How many rows are above the first that is shown.
    pub(super) scrolled: usize,
    /// The picture that is held.
    pub(super) held: Option<Picture>,
    pub(super) paint: Paint,
}

impl Ui {
    pub(super) fn new(paint: Paint) -> Self {
        Self {
            view: View::Hooks,
            hooks: Sorting::by(RATE),
            runs: Sorting::by(AGE),
            filter: String::new(),
            keys: Keys::Commands,
            scrolled: 0,
            held: None,
            paint,
        }
    }

    /// Whether the filter is being typed.
    pub(super) fn is_typing(&self) -> bool {
        self.keys == Keys::Filter
    }

    /// The rows that pass the filter, in order.
    pub(super) fn rows<'a, R: Tabular>(&self, rows: &'a [R], sorting: Sorting) -> Vec<&'a R> {
        let filter = self.filter.to_lowercase();
        let passes = |row: &&R| {
            let (name, other) = row.name();
            name.to_lowercase().contains(&filter) || other.to_lowercase().contains(&filter)
        };
        let mut rows: Vec<&R> = rows.iter().filter(passes).collect();
        sorting.sort(&mut rows);
        rows
    }

    /// Does what a key is for.
    pub(super) fn press(&mut self, key: KeyEvent) -> Step {
        if key.kind == KeyEventKind::Release {
            return Step::Stay;
        }
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return if key.code == KeyCode::Char('c') { Step::Interrupt } else { Step::Stay };
        }
        match self.keys {
            Keys::Filter => self.typed(key.code),
            Keys::Commands => return self.command(key.code),
        }
        Step::Stay
    }

    fn typed(&mut self, key: KeyCode) {
        match key {
            KeyCode::Enter => self.keys = Keys::Commands,
            KeyCode::Esc => {
                self.filter.clear();
                self.keys = Keys::Commands;
            }
            KeyCode::Backspace => drop(self.filter.pop()),
            KeyCode::Char(c) if !c.is_control() && self.filter.chars().count() < LONGEST_FILTER => {
                self.filter.push(c);
            }
            _ => {}
        }
        self.scrolled = 0;
    }

    fn command(&mut self, key: KeyCode) -> Step {
        match key {
            KeyCode::Char('q') => return Step::Quit,
            KeyCode::Char('p' | ' ') => return Step::Pause,
            KeyCode::Tab | KeyCode::BackTab => {
                self.view = if self.view == View::Hooks { View::Runs } else { View::Hooks };
                self.scrolled = 0;
            }
            KeyCode::Char('s') | KeyCode::Right => self.sort_by_neighbour(1),
            KeyCode::Left => self.sort_by_neighbour(-1),
            KeyCode::Char('r') => {
                let sorting = self.sorting();
                sorting.is_reversed = !sorting.is_reversed;
            }
            KeyCode::Char('/') => self.keys = Keys::Filter,
            KeyCode::Esc => self.filter.clear(),
            KeyCode::Down => self.scrolled = self.scrolled.saturating_add(1),
            KeyCode::Up => self.scrolled = self.scrolled.saturating_sub(1),
            KeyCode::PageDown => self.scrolled = self.scrolled.saturating_add(PAGE),
            KeyCode::PageUp => self.scrolled = self.scrolled.saturating_sub(PAGE),
            KeyCode::Home => self.scrolled = 0,
            _ => {}
        }
        Step::Stay
    }

    fn sorting(&mut self) -> &mut Sorting {
        match self.view {
            View::Hooks => &mut self.hooks,
            View::Runs => &mut self.runs,
        }
    }

    /// Sorts by a column to the right or to the left, round and round.
    fn sort_by_neighbour(&mut self, distance: isize) {
        let columns = match self.view {
            View::Hooks => HookRow::COLUMNS.len(),
            View::Runs => RunRow::COLUMNS.len(),
        };
        let sorting = self.sorting();
        *sorting = Sorting::by((sorting.column + columns).saturating_add_signed(distance) % columns);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::cli::top::example;

    fn press(ui: &mut Ui, keys: &str) -> Step {
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

    fn names(ui: &Ui) -> Vec<String> {
        let picture = example::picture();
        ui.rows(&picture.hooks, ui.hooks).iter().map(|row| row.hook.clone()).collect()
    }

    #[test]
    fn rows_are_sorted_by_any_column_both_ways() {
        let mut ui = Ui::new(Paint::Plain);
        assert_eq!(names(&ui), ["guard", "audit", "naming-police", "slow"]);
        press(&mut ui, "r");
        assert_eq!(names(&ui), ["slow", "naming-police", "audit", "guard"]);
        press(&mut ui, "<<");
        assert_eq!(names(&ui), ["audit", "guard", "naming-police", "slow"]);
        press(&mut ui, "<");
        assert_eq!((ui.hooks.column, ui.hooks.mark::<HookRow>()), (11, '▲'));
        assert_eq!(names(&ui)[0], "slow");
        press(&mut ui, ">s");
        assert_eq!(ui.hooks.column, 1);
        press(&mut ui, "\tss");
        assert_eq!((ui.view, ui.runs.column, ui.hooks.column), (View::Runs, 4, 1));
    }

    #[test]
    fn a_filter_is_typed_until_enter_and_taken_away_by_escape() {
        let mut ui = Ui::new(Paint::Plain);
        assert_eq!(press(&mut ui, "/Qx-"), Step::Stay);
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
    fn keys_end_and_hold_it() {
        let mut ui = Ui::new(Paint::Plain);
        assert_eq!(press(&mut ui, "q"), Step::Quit);
        assert_eq!(press(&mut ui, "p"), Step::Pause);
        assert_eq!(press(&mut ui, "/q"), Step::Stay);
        let control = |c| KeyEvent::new(KeyCode::Char(c), KeyModifiers::CONTROL);
        assert_eq!(ui.press(control('c')), Step::Interrupt);
        assert_eq!(ui.press(control('q')), Step::Stay);
        press(&mut ui, "\nvv^");
        assert_eq!(ui.scrolled, 1);
        assert_eq!(example::picture().seconds, Duration::from_secs(64));
    }
}
