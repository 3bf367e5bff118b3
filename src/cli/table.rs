//! Tables of plain columns, without borders, which get in the way of copying and searching; and pages of lines.

use comfy_table::{Cell, CellAlignment, LineStyle, Table, presets};

use super::{paint::Paint, wrap};

/// An empty cell, also instead of 0: zeros hide the other numbers.
pub(super) const EMPTY_CELL: &str = "·";

/// A table of text. Cells must be escaped already.
#[derive(Debug)]
pub(super) struct TextTable {
    table: Table,
    paint: Paint,
    right: Vec<usize>,
}

impl TextTable {
    /// An empty table.
    pub(super) fn new(header: &[&str], paint: Paint) -> Self {
        let mut table = Table::new();
        table.load_style(presets::NOTHING.header_separator(LineStyle::none().fill('─'))).force_no_tty();
        table.set_header(header.iter().map(Cell::new));
        Self { table, paint, right: Vec::new() }
    }

    /// Aligns these columns to the right.
    pub(super) fn right_aligned(mut self, columns: impl IntoIterator<Item = usize>) -> Self {
        self.right.extend(columns);
        self
    }

    /// Whether it is no wider than this.
    pub(super) fn fits(&self, width: Option<usize>) -> bool {
        let padding = 2;
        let widths = self.table.column_max_content_widths();
        let needed: usize = widths.iter().map(|width| usize::from(*width) + padding).sum();
        width.is_none_or(|width| needed <= width)
    }

    pub(super) fn add(&mut self, cells: impl IntoIterator<Item = String>) {
        self.table.add_row(cells.into_iter().collect::<Vec<_>>());
    }

    /// The table, with a dim rule under its header.
    pub(super) fn render(mut self) -> String {
        for column in self.right {
            if let Some(column) = self.table.column_mut(column) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        let mut lines: Vec<String> = self.table.lines().map(|line| line.trim_end().to_owned()).collect();
        if let Some(rule) = lines.iter_mut().find(|line| line.trim_start().starts_with('─')) {
            *rule = self.paint.dim(rule);
        }
        lines.join("\n") + "\n"
    }
}

/// A table of names with numbers for each, which adapts to narrow terminals.
#[derive(Debug)]
pub(super) struct AdaptiveTable {
    header: Vec<&'static str>,
    text: &'static [&'static str],
    rows: Vec<Vec<String>>,
    paint: Paint,
}

impl AdaptiveTable {
    /// A table without rows. The first column has the names.
    pub(super) fn new(header: Vec<&'static str>, paint: Paint) -> Self {
        Self { header, text: &[], rows: Vec::new(), paint }
    }

    /// These columns have text, not numbers.
    pub(super) fn text_columns(self, columns: &'static [&'static str]) -> Self {
        Self { text: columns, ..self }
    }

    pub(super) fn add(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// The table. Where it is too wide, the column `spare` is left out, then empty columns. If that is not enough,
    /// each name gets a line, with its numbers below it.
    pub(super) fn render(&self, spare: &str, width: Option<usize>) -> String {
        let is_spare = |column: &usize| self.header[*column] == spare;
        let is_empty = |column: &usize| self.rows.iter().all(|row| row[*column] == EMPTY_CELL);
        let all = 0..self.header.len();
        let choices = [
            all.clone().collect::<Vec<_>>(),
            all.clone().filter(|column| !is_spare(column)).collect(),
            all.filter(|column| !is_spare(column) && !is_empty(column)).collect(),
        ];
        let tables = choices.iter().map(|columns| self.table(columns));
        tables
            .into_iter()
            .find(|table| table.fits(width))
            .map_or_else(|| self.blocks(width.unwrap_or(usize::MAX)), TextTable::render)
    }

    fn table(&self, columns: &[usize]) -> TextTable {
        let header: Vec<_> = columns.iter().map(|column| self.header[*column]).collect();
        let numbers = (1..columns.len()).filter(|column| !self.text.contains(&header[*column]));
        let mut table = TextTable::new(&header, self.paint).right_aligned(numbers);
        for row in &self.rows {
            table.add(columns.iter().map(|column| row[*column].clone()));
        }
        table
    }

    fn blocks(&self, width: usize) -> String {
        const INDENT: &str = "  ";
        let mut page = Page::default();
        for row in &self.rows {
            let (names, numbers) = row.split_at(1);
            for name in names {
                page.line(&self.paint.bold(name));
            }
            let known = self.header[1..].iter().zip(numbers).filter(|(_, number)| *number != EMPTY_CELL);
            let known: Vec<_> = known.map(|(column, number)| format!("{column} {number}")).collect();
            let fitting = width.saturating_sub(INDENT.len());
            for line in wrap::lines(known.iter().map(String::as_str), fitting, INDENT) {
                page.line(&format!("{INDENT}{line}"));
            }
        }
        page.into_text()
    }
}

/// The width of the terminal, if standard output is one.
pub(super) fn terminal_columns() -> Option<usize> {
    Table::new().width().map(usize::from).filter(|columns| *columns > 0)
}

/// Text that is collected line by line and printed at once.
#[derive(Debug, Default)]
pub(super) struct Page(String);

impl Page {
    /// Adds a line.
    pub(super) fn line(&mut self, line: &str) {
        self.block(line);
        self.0.push('\n');
    }

    /// Adds a text that ends its own lines.
    pub(super) fn block(&mut self, text: &str) {
        self.0.push_str(text);
    }

    pub(super) fn into_text(self) -> String {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_narrow_table_drops_columns_before_it_breaks_a_word() {
        let mut table = AdaptiveTable::new(vec!["event", "count", "ask", "p50", "p99"], Paint::Plain);
        table.add(["run_failed", "12", EMPTY_CELL, "1 ms", "2 ms"].map(str::to_owned).to_vec());
        let header = |width| table.render("p99", Some(width)).lines().next().unwrap().to_owned();
        assert_eq!(header(80), " event       count  ask   p50   p99");
        assert_eq!(header(35), " event       count  ask   p50");
        assert_eq!(header(26), " event       count   p50");
        let blocks = "run_failed\n  count 12\n  p50 1 ms\n  p99 2 ms\n";
        assert_eq!(table.render("p99", Some(16)), blocks);
    }
}
