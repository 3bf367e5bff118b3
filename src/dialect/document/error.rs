//! Why a text is refused as a whole.

use std::path::Path;

use super::span::{Span, point_at};
use crate::model::{Diagnostic, Severity};

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

    /// The diagnostic for a file with this text.
    pub(super) fn into_diagnostic(self, text: &str, file: &Path) -> Diagnostic {
        let mut diagnostic = Diagnostic::of_file(Severity::Error, self.code, file, self.message);
        if let Some(span) = self.span {
            point_at(&mut diagnostic, text, span);
        }
        Diagnostic { help: self.help.map(str::to_owned), ..diagnostic }
    }
}
