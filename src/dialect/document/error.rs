//! Why a text is refused as a whole.

use super::span::Span;

/// Why a text is no acceptable document.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct DocumentError {
    pub(super) code: &'static str,
    pub(super) message: String,
    pub(super) help: Option<&'static str>,
    /// Where, if one place is to blame.
    pub(super) span: Option<Span>,
}

impl DocumentError {
    pub(super) fn new(code: &'static str, message: impl Into<String>, help: &'static str) -> Self {
        Self { code, message: message.into(), help: Some(help), span: None }
    }

    pub(super) fn at(self, span: Span) -> Self {
        Self { span: Some(span), ..self }
    }
}
