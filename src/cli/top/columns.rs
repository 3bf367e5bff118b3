//! The columns of the two tables: what stands in them, how they are sorted, and which go first where there is little
//! room. Refuses to know what they are drawn on.

use std::{cmp::Ordering, time::Duration};

use ratatui::text::Span;

use super::watch::HookRow;
use crate::{
    cli::{daemon_runs::Row as RunRow, daemon_status::duration, escape, outcome_view::time, table::NOTHING},
    model::Verdict,
};

/// Between two columns.
pub(super) const GAP: usize = 2;

/// The longest text of a cell, in characters: an error may be pages long.
const LONGEST_CELL: usize = 200;

/// How a column is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// Against its right edge, and never cut.
    Number,
    /// Cut where there is little room, but not below this width.
    Words(usize),
}

/// What comes first where a column is sorted by and nothing else is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum First {
    Smallest,
    Largest,
}

/// What a column says beyond its words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tone {
    Plain,
    Verdict(Verdict),
    Failure,
}

/// A column of rows of this kind.
#[derive(Debug)]
pub(super) struct Column<R> {
    pub(super) name: &'static str,
    pub(super) shape: Shape,
    pub(super) first: First,
    pub(super) tone: Tone,
    /// What is given up first has the highest number; what is never has zero.
    spare: u8,
    cell: fn(&R) -> String,
    order: fn(&R, &R) -> Ordering,
}

/// Rows of which there is a table.
pub(super) trait Tabular: Sized + 'static {
    const COLUMNS: &'static [Column<Self>];

    /// What a filter looks at, and what orders rows that are equal otherwise.
    fn name(&self) -> (&str, &str);
}

/// A column that is shown, and how wide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Placed {
    pub(super) column: usize,
    pub(super) width: usize,
}

/// Which way rows go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sorting {
    pub(super) column: usize,
    pub(super) is_reversed: bool,
}

impl Tabular for HookRow {
    const COLUMNS: &'static [Column<Self>] = &[
        words("hook", 16, 0, |row: &Self| text(&row.hook), |a, b| a.hook.cmp(&b.hook)),
        words("handler", 7, 9, |row: &Self| text(&row.handler), |a, b| a.handler.cmp(&b.handler)),
        number("rate/s", 0, |row: &Self| rate(row.rate), |a, b| a.rate.total_cmp(&b.rate)),
        number("p50", 5, |row: &Self| took(p50(row)), |a, b| p50(a).cmp(&p50(b))),
        number("p99", 0, |row: &Self| took(p99(row)), |a, b| p99(a).cmp(&p99(b))),
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
        Column {
            tone: Tone::Failure,
            ..number("failed", 0, |row: &Self| count(row.failures), |a, b| a.failures.cmp(&b.failures))
        },
        words("last failure", 14, 3, last_failure, |a, b| failed_at(a).cmp(&failed_at(b))),
    ];

    fn name(&self) -> (&str, &str) {
        (&self.hook, "")
    }
}

impl Tabular for RunRow {
    const COLUMNS: &'static [Column<Self>] = &[
        words("run", 12, 0, |row: &Self| text(&row.run_id), |a, b| a.run_id.cmp(&b.run_id)),
        words(
            "workspace",
            9,
            3,
            |row: &Self| text(&row.workspace_id),
            |a, b| a.workspace_id.cmp(&b.workspace_id),
        ),
        number("age", 0, |row: &Self| duration(row.age), |a, b| a.age.cmp(&b.age)),
        number("events", 2, |row: &Self| count(row.events), |a, b| a.events.cmp(&b.events)),
        number("pending", 1, |row: &Self| count(row.pending as u64), |a, b| a.pending.cmp(&b.pending)),
        words("now", 12, 0, RunRow::now, |a, b| a.busy().cmp(&b.busy())),
    ];

    fn name(&self) -> (&str, &str) {
        (&self.run_id, &self.workspace_id)
    }
}

impl Sorting {
    /// By this column, the way it usually goes.
    pub(super) fn by(column: usize) -> Self {
        Self { column, is_reversed: false }
    }

    /// Puts rows in order; equal ones by their names.
    pub(super) fn sort<R: Tabular>(self, rows: &mut [&R]) {
        let column = &R::COLUMNS[self.column];
        let descending = (column.first == First::Largest) != self.is_reversed;
        rows.sort_by(|a, b| {
            let order = (column.order)(a, b);
            let order = if descending { order.reverse() } else { order };
            order.then_with(|| a.name().cmp(&b.name()))
        });
    }

    /// The sign beside the name of the column.
    pub(super) fn mark<R: Tabular>(self) -> char {
        if (R::COLUMNS[self.column].first == First::Largest) == self.is_reversed { '▲' } else { '▼' }
    }
}

/// The names of the columns, with the mark of the one that is sorted by.
pub(super) fn header<R: Tabular>(sorting: Sorting) -> Vec<String> {
    let name = |(index, column): (usize, &Column<R>)| {
        if index == sorting.column {
            format!("{}{}", column.name, sorting.mark::<R>())
        } else {
            column.name.to_owned()
        }
    };
    R::COLUMNS.iter().enumerate().map(name).collect()
}

/// What stands in a row.
pub(super) fn cells<R: Tabular>(row: &R) -> Vec<String> {
    R::COLUMNS.iter().map(|column| (column.cell)(row)).collect()
}

/// Which columns are shown where there is so much room, and how wide; all of them, as wide as they are, if there is no
/// edge.
pub(super) fn place<R: Tabular>(header: &[String], rows: &[Vec<String>], room: Option<usize>) -> Vec<Placed> {
    let needed = |column: usize| {
        let cells = rows.iter().map(|row| width(&row[column]));
        cells.chain([width(&header[column])]).max().unwrap_or(0)
    };
    let needed: Vec<usize> = (0..R::COLUMNS.len()).map(needed).collect();
    let Some(room) = room else {
        return needed.iter().enumerate().map(|(column, width)| Placed { column, width: *width }).collect();
    };
    let least = |column: usize| match R::COLUMNS[column].shape {
        Shape::Number => needed[column],
        Shape::Words(least) => needed[column].min(least),
    };
    let mut placed: Vec<Placed> =
        (0..needed.len()).map(|column| Placed { column, width: least(column) }).collect();
    while total(&placed) > room {
        let sparest = placed.iter().max_by_key(|placed| R::COLUMNS[placed.column].spare);
        match sparest.map(|placed| placed.column).filter(|column| R::COLUMNS[*column].spare > 0) {
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

fn total(placed: &[Placed]) -> usize {
    let widths: usize = placed.iter().map(|placed| placed.width).sum();
    widths + GAP * placed.len().saturating_sub(1)
}

/// A text in a column of this width: filled up, or cut.
pub(super) fn fill(text: &str, width_of_column: usize, shape: Shape) -> String {
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
    if shape == Shape::Number { space + text } else { text.to_owned() + &space }
}

/// How many columns of a terminal a text takes.
pub(super) fn width(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { Span::raw(text).width() }
}

const fn words<R>(
    name: &'static str,
    least: usize,
    spare: u8,
    cell: fn(&R) -> String,
    order: fn(&R, &R) -> Ordering,
) -> Column<R> {
    let (shape, first, tone) = (Shape::Words(least), First::Smallest, Tone::Plain);
    Column { name, shape, first, tone, spare, cell, order }
}

const fn number<R>(
    name: &'static str,
    spare: u8,
    cell: fn(&R) -> String,
    order: fn(&R, &R) -> Ordering,
) -> Column<R> {
    Column { shape: Shape::Number, first: First::Largest, ..words(name, 0, spare, cell, order) }
}

const fn verdict(
    spare: u8,
    verdict: Verdict,
    cell: fn(&HookRow) -> String,
    order: fn(&HookRow, &HookRow) -> Ordering,
) -> Column<HookRow> {
    Column { tone: Tone::Verdict(verdict), ..number(verdict.as_str(), spare, cell, order) }
}

/// A number as it is shown: zeros hide the others.
pub(super) fn count(number: u64) -> String {
    if number == 0 { NOTHING.to_owned() } else { number.to_string() }
}

/// A rate with three digits that matter.
pub(super) fn rate(rate: f64) -> String {
    match rate {
        r if r <= 0.0 => NOTHING.to_owned(),
        r if r < 10.0 => format!("{r:.2}"),
        r if r < 100.0 => format!("{r:.1}"),
        r => format!("{r:.0}"),
    }
}

fn text(text: &str) -> String {
    escape::short(text, LONGEST_CELL)
}

fn took(time_taken: Option<Duration>) -> String {
    time_taken.map_or_else(|| NOTHING.to_owned(), time)
}

fn p50(row: &HookRow) -> Option<Duration> {
    row.took.map(|took| took.p50)
}

fn p99(row: &HookRow) -> Option<Duration> {
    row.took.map(|took| took.p99)
}

fn last_failure(row: &HookRow) -> String {
    let Some(last) = &row.last_failure else { return NOTHING.to_owned() };
    text(&format!("{} ago: {}", duration(last.ago.max(Duration::from_secs(1))), last.why))
}

/// The latest first, and those that never failed last.
fn failed_at(row: &HookRow) -> Duration {
    row.last_failure.as_ref().map_or(Duration::MAX, |last| last.ago)
}
