//! Places inside the text of a value.

use std::ops::Range;

use super::{
    error::Mistake,
    read::Value,
    span::{Span, character_span},
};

impl Value<'_> {
    /// Where a character of its text is, from 1.
    pub(crate) fn character_span(&self, column: usize) -> Span {
        character_span(self.document.text, self.span(), column)
    }

    /// Where a range of its text is, in bytes. Where that cannot be told, it is where the value is.
    pub(crate) fn range_span(&self, range: Range<usize>) -> Span {
        let text = self.as_text().unwrap_or_default();
        let column = |offset: usize| text.get(..offset).map_or(1, |before| before.chars().count() + 1);
        let first = self.character_span(column(range.start));
        let last = self.character_span(column(range.end).saturating_sub(1).max(column(range.start)));
        if first == self.span() || last == self.span() {
            return self.span();
        }
        Span { start: first.start, end: last.end }
    }

    /// Records a warning elsewhere in this value.
    pub(crate) fn warn_at(
        &self,
        span: Span,
        code: &'static str,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        self.document.report(Mistake::warning(code, span, message).help(help));
    }

    /// Records what is wrong in another file that this one names. This one has a mistake as well.
    #[cfg(feature = "rego")]
    pub(crate) fn report_elsewhere(&self, diagnostic: crate::model::Diagnostic) {
        self.document.elsewhere.borrow_mut().push(diagnostic);
    }
}
