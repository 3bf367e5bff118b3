//! Text that is collected line by line and printed at once.

/// The lines so far.
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
