//! Tables of plain columns. Owns their layout; refuses borders, which get in the way of copying and searching.

use comfy_table::{Cell, CellAlignment, ContentArrangement, LineStyle, Table, presets};

use super::paint::Paint;

/// Rows under a header. Cells must be escaped already.
#[derive(Debug)]
pub(super) struct Rows {
    table: Table,
    paint: Paint,
    right: Vec<usize>,
}

impl Rows {
    /// An empty table, folded to `width` columns if given.
    pub(super) fn new(header: &[&str], paint: Paint, width: Option<usize>) -> Self {
        let mut table = Table::new();
        table.load_style(presets::NOTHING.header_separator(LineStyle::none().fill('─'))).force_no_tty();
        if let Some(width) = width {
            table.set_content_arrangement(ContentArrangement::Dynamic);
            table.set_width(u16::try_from(width).unwrap_or(u16::MAX));
        }
        table.set_header(header.iter().map(Cell::new));
        Self { table, paint, right: Vec::new() }
    }

    /// Puts these columns against their right edge.
    pub(super) fn right(mut self, columns: impl IntoIterator<Item = usize>) -> Self {
        self.right.extend(columns);
        self
    }

    /// The width it takes unless it is folded.
    pub(super) fn natural_width(&self) -> usize {
        let padding = 2;
        self.table.column_max_content_widths().iter().map(|width| usize::from(*width) + padding).sum()
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

/// The columns of the terminal that standard output is, if it is one.
pub(super) fn terminal_columns() -> Option<usize> {
    Table::new().width().map(usize::from).filter(|columns| *columns > 0)
}
