//! The columns of the two tables: their cells, how they are sorted, and which are dropped where there is little room.

use super::super::units::{coarse_duration, precise_duration};
use std::{cmp::Ordering, time::Duration};

use ratatui::text::Span;

use super::state::HookActivity;
use crate::{
    cli::{escape, runs::RunRow, table::EMPTY_CELL},
    model::{Verdict, is_short},
};

/// Between two columns.
pub(super) const GAP: usize = 2;

/// The longest text of a cell, in characters.
const LONGEST_CELL: usize = 200;

/// How a column is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ColumnKind {
    /// Against its right edge, and never cut.
    Number,
    /// Cut where there is little room, but not below this width.
    Words(usize),
}

/// What comes first when a table is sorted by a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SortDirection {
    Smallest,
    Largest,
}

/// How a cell is coloured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CellStyle {
    Plain,
    Verdict(Verdict),
    Failure,
}

/// A column of a table.
#[derive(Debug)]
pub(super) struct TableColumn<R> {
    pub(super) name: &'static str,
    pub(super) shape: ColumnKind,
    pub(super) first: SortDirection,
    pub(super) tone: CellStyle,
    /// The column with the highest number is dropped first; one with 0 never.
    drop_order: u8,
    cell: fn(&R) -> String,
    order: fn(&R, &R) -> Ordering,
}

/// A row of a table.
pub(super) trait TableRow: Sized + 'static {
    const COLUMNS: &'static [TableColumn<Self>];

    /// What a filter matches. Also orders rows that are equal otherwise.
    fn name(&self) -> (&str, &str);
}

/// A column that is shown, and its width.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ColumnLayout {
    pub(super) column: usize,
    pub(super) width: usize,
}

/// How rows are sorted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SortOrder {
    pub(super) column: usize,
    pub(super) is_reversed: bool,
}

impl TableRow for HookActivity {
    const COLUMNS: &'static [TableColumn<Self>] = &[
        words("hook", 16, 0, |row: &Self| text(&row.hook), |a, b| a.hook.cmp(&b.hook)),
        words("handler", 7, 9, |row: &Self| text(&row.handler), |a, b| a.handler.cmp(&b.handler)),
        number("rate/s", 0, |row: &Self| rate(row.rate), |a, b| a.rate.total_cmp(&b.rate)),
        number("p50", 5, |row: &Self| took(p50(row)), |a, b| p50(a).cmp(&p50(b))),
        number("p99", 0, |row: &Self| took(p99(row)), |a, b| p99(a).cmp(&p99(b))),
        number("wait p99", 2, |row: &Self| took(waited(row)), |a, b| waited(a).cmp(&waited(b))),
        verdict(
            4,
            Verdict::Proceed,
            |row| count(row.verdicts.of(Verdict::Proceed)),
            |a, b| a.verdicts.of(Verdict::Proceed).cmp(&b.verdicts.of(Verdict::Proceed)),
        ),
        verdict(
            8,
            Verdict::Allow,
            |row| count(row.verdicts.of(Verdict::Allow)),
            |a, b| a.verdicts.of(Verdict::Allow).cmp(&b.verdicts.of(Verdict::Allow)),
        ),
        verdict(
            7,
            Verdict::Ask,
            |row| count(row.verdicts.of(Verdict::Ask)),
            |a, b| a.verdicts.of(Verdict::Ask).cmp(&b.verdicts.of(Verdict::Ask)),
        ),
        verdict(
            1,
            Verdict::Block,
            |row| count(row.verdicts.of(Verdict::Block)),
            |a, b| a.verdicts.of(Verdict::Block).cmp(&b.verdicts.of(Verdict::Block)),
        ),
        verdict(
            6,
            Verdict::Halt,
            |row| count(row.verdicts.of(Verdict::Halt)),
            |a, b| a.verdicts.of(Verdict::Halt).cmp(&b.verdicts.of(Verdict::Halt)),
        ),
        TableColumn {
            tone: CellStyle::Failure,
            ..number("failed", 0, |row: &Self| count(row.failures), |a, b| a.failures.cmp(&b.failures))
        },
        words("last failure", 14, 3, last_failure, |a, b| failed_at(a).cmp(&failed_at(b))),
    ];

    fn name(&self) -> (&str, &str) {
        (&self.hook, "")
    }
}

impl TableRow for RunRow {
    const COLUMNS: &'static [TableColumn<Self>] = &[
        words("run", 12, 0, |row: &Self| text(&row.run_id), |a, b| a.run_id.cmp(&b.run_id)),
        words(
            "workspace",
            9,
            3,
            |row: &Self| text(&row.workspace_id),
            |a, b| a.workspace_id.cmp(&b.workspace_id),
        ),
        number("age", 0, |row: &Self| coarse_duration(row.age), |a, b| a.age.cmp(&b.age)),
        number("events", 2, |row: &Self| count(row.events), |a, b| a.events.cmp(&b.events)),
        number("pending", 1, |row: &Self| count(row.pending as u64), |a, b| a.pending.cmp(&b.pending)),
        words("now", 12, 0, RunRow::now, |a, b| a.busy().cmp(&b.busy())),
    ];

    fn name(&self) -> (&str, &str) {
        (&self.run_id, &self.workspace_id)
    }
}

impl SortOrder {
    /// By this column, in its usual direction.
    pub(super) fn by(column: usize) -> Self {
        Self { column, is_reversed: false }
    }

    /// Sorts rows; equal ones by their names.
    pub(super) fn sort<R: TableRow>(self, rows: &mut [&R]) {
        let column = &R::COLUMNS[self.column];
        let descending = (column.first == SortDirection::Largest) != self.is_reversed;
        rows.sort_by(|a, b| {
            let order = (column.order)(a, b);
            let order = if descending { order.reverse() } else { order };
            order.then_with(|| a.name().cmp(&b.name()))
        });
    }

    /// The mark beside the name of the column.
    pub(super) fn mark<R: TableRow>(self) -> char {
        if (R::COLUMNS[self.column].first == SortDirection::Largest) == self.is_reversed {
            '▲'
        } else {
            '▼'
        }
    }
}

/// The names of the columns, with the mark of the one that is sorted by.
pub(super) fn header<R: TableRow>(sorting: SortOrder) -> Vec<String> {
    let name = |(index, column): (usize, &TableColumn<R>)| {
        if index == sorting.column {
            format!("{}{}", column.name, sorting.mark::<R>())
        } else {
            column.name.to_owned()
        }
    };
    R::COLUMNS.iter().enumerate().map(name).collect()
}

/// The cells of a row.
pub(super) fn cells<R: TableRow>(row: &R) -> Vec<String> {
    R::COLUMNS.iter().map(|column| (column.cell)(row)).collect()
}

/// The columns that fit into `room`, and their widths; all of them if there is no limit.
pub(super) fn layout<R: TableRow>(
    header: &[String],
    rows: &[Vec<String>],
    room: Option<usize>,
) -> Vec<ColumnLayout> {
    let needed = |column: usize| {
        let cells = rows.iter().map(|row| width(&row[column]));
        cells.chain([width(&header[column])]).max().unwrap_or(0)
    };
    let needed: Vec<usize> = (0..R::COLUMNS.len()).map(needed).collect();
    let Some(room) = room else {
        return needed
            .iter()
            .enumerate()
            .map(|(column, width)| ColumnLayout { column, width: *width })
            .collect();
    };
    let least = |column: usize| match R::COLUMNS[column].shape {
        ColumnKind::Number => needed[column],
        ColumnKind::Words(least) => needed[column].min(least),
    };
    let mut placed: Vec<ColumnLayout> =
        (0..needed.len()).map(|column| ColumnLayout { column, width: least(column) }).collect();
    while total(&placed) > room {
        let sparest = placed.iter().max_by_key(|placed| R::COLUMNS[placed.column].drop_order);
        match sparest.map(|placed| placed.column).filter(|column| R::COLUMNS[*column].drop_order > 0) {
            Some(column) => placed.retain(|placed| placed.column != column),
            None => break,
        }
    }
    let mut left = room.saturating_sub(total(&placed));
    for placed in &mut placed {
        let more = (needed[placed.column] - placed.width).min(left);
        placed.width += more;
        left -= more;
    }
    placed
}

fn total(placed: &[ColumnLayout]) -> usize {
    let widths: usize = placed.iter().map(|placed| placed.width).sum();
    widths + GAP * placed.len().saturating_sub(1)
}

/// A text padded or cut to the width of a column.
pub(super) fn fill(text: &str, width_of_column: usize, shape: ColumnKind) -> String {
    let own = width(text);
    if own > width_of_column {
        let mut cut = String::new();
        let mut used = 0;
        for c in text.chars() {
            used += width(c.encode_utf8(&mut [0; 4]));
            if used + 1 > width_of_column {
                break;
            }
            cut.push(c);
        }
        cut.push('…');
        let missing = width_of_column.saturating_sub(width(&cut));
        return cut + &" ".repeat(missing);
    }
    let space = " ".repeat(width_of_column - own);
    if shape == ColumnKind::Number { space + text } else { text.to_owned() + &space }
}

/// The width of a text on the terminal.
pub(super) fn width(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { Span::raw(text).width() }
}

const fn words<R>(
    name: &'static str,
    least: usize,
    drop_order: u8,
    cell: fn(&R) -> String,
    order: fn(&R, &R) -> Ordering,
) -> TableColumn<R> {
    let (shape, first, tone) = (ColumnKind::Words(least), SortDirection::Smallest, CellStyle::Plain);
    TableColumn { name, shape, first, tone, drop_order, cell, order }
}

const fn number<R>(
    name: &'static str,
    drop_order: u8,
    cell: fn(&R) -> String,
    order: fn(&R, &R) -> Ordering,
) -> TableColumn<R> {
    TableColumn {
        shape: ColumnKind::Number,
        first: SortDirection::Largest,
        ..words(name, 0, drop_order, cell, order)
    }
}

const fn verdict(
    drop_order: u8,
    verdict: Verdict,
    cell: fn(&HookActivity) -> String,
    order: fn(&HookActivity, &HookActivity) -> Ordering,
) -> TableColumn<HookActivity> {
    TableColumn { tone: CellStyle::Verdict(verdict), ..number(verdict.as_str(), drop_order, cell, order) }
}

/// A number; 0 is an empty cell.
pub(super) fn count(number: u64) -> String {
    if number == 0 { EMPTY_CELL.to_owned() } else { number.to_string() }
}

/// A rate with three significant digits.
pub(super) fn rate(rate: f64) -> String {
    match rate {
        r if r <= 0.0 => EMPTY_CELL.to_owned(),
        r if r < 10.0 => format!("{r:.2}"),
        r if r < 100.0 => format!("{r:.1}"),
        r => format!("{r:.0}"),
    }
}

fn text(text: &str) -> String {
    escape::short(text, LONGEST_CELL)
}

fn took(time_taken: Option<Duration>) -> String {
    time_taken.map_or_else(|| EMPTY_CELL.to_owned(), precise_duration)
}

fn p50(row: &HookActivity) -> Option<Duration> {
    row.took.map(|took| took.p50)
}

fn p99(row: &HookActivity) -> Option<Duration> {
    row.took.map(|took| took.p99)
}

/// Waits as short as the way through an idle pool are an empty cell.
fn waited(row: &HookActivity) -> Option<Duration> {
    row.waited.filter(|wait| !is_short(wait))
}

fn last_failure(row: &HookActivity) -> String {
    let Some(last) = &row.last_failure else { return EMPTY_CELL.to_owned() };
    text(&format!("{} ago: {}", coarse_duration(last.ago.max(Duration::from_secs(1))), last.why))
}

/// How long ago; hooks that never failed come last.
fn failed_at(row: &HookActivity) -> Duration {
    row.last_failure.as_ref().map_or(Duration::MAX, |last| last.ago)
}
