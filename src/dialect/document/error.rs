//! What is wrong with a text: mistakes in it, why it is refused as a whole, and what messages say about YAML that the parser
//! rejects.

use std::path::Path;

use super::{
    super::suggest::shorten,
    span::{Span, point_at},
};
use crate::model::{Diagnostic, Severity};

/// The most characters of a message. It may have names out of the document, which are as long as somebody likes.
const LONGEST_MESSAGE: usize = 500;

/// One thing that is wrong with a document.
#[derive(Debug, Clone)]
pub(crate) struct Mistake {
    pub(super) severity: Severity,
    pub(super) code: &'static str,
    pub(super) message: String,
    pub(super) help: Option<String>,
    pub(super) span: Span,
    /// Whether what it is about is not loaded.
    pub(super) skipped: bool,
}

impl Mistake {
    /// Something for which the document is refused.
    pub(crate) fn error(code: &'static str, span: Span, message: impl Into<String>) -> Self {
        let message = shorten(&message.into(), LONGEST_MESSAGE);
        Self { severity: Severity::Error, code, message, help: None, span, skipped: true }
    }

    /// Something that is probably not meant.
    pub(crate) fn warning(code: &'static str, span: Span, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, skipped: false, ..Self::error(code, span, message) }
    }

    /// Something that is good to know.
    pub(crate) fn info(code: &'static str, span: Span, message: impl Into<String>) -> Self {
        Self { severity: Severity::Info, skipped: false, ..Self::error(code, span, message) }
    }

    /// Adds what to do.
    pub(crate) fn help(self, help: impl Into<String>) -> Self {
        Self { help: Some(help.into()), ..self }
    }
}

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

/// Translates the parser's error at an offset.
pub(super) fn translate(info: &str, text: &str, offset: usize) -> DocumentError {
    let error = if info.contains("recursion limit") {
        too_deep()
    } else if info.contains("handle") {
        tags()
    } else {
        let message = format!("not valid YAML: {}", reworded(info));
        DocumentError { help: advice(text, offset), ..DocumentError::new("yaml-syntax", message, "") }
    };
    let indented = text[..offset].trim_end_matches('\t').len();
    error.at(Span::at(indented))
}

/// The parser's message without its context.
fn reworded(info: &str) -> &str {
    let problem = info
        .strip_prefix("while ")
        .and_then(|rest| rest.split_once(", "))
        .map_or(info, |(_, problem)| problem);
    match problem {
        "found unknown anchor" => "unknown anchor",
        // The second is a key in an open list, below the list's line: its bracket was forgotten.
        "expected ',' or ']'" | "illegal placement of ':' indicator" => "did not find expected ',' or ']'",
        _ if problem.contains("tab") => "tabs are not allowed as indentation",
        _ => problem,
    }
}

/// What to do about the usual slips, by the characters around the place where the parser gave up.
fn advice(text: &str, offset: usize) -> Option<&'static str> {
    let before = text[..offset].chars().next_back();
    let next = text[offset..].chars().next();
    if before == Some('\t') || next == Some('\t') {
        Some("indent with spaces; YAML allows no tabs there")
    } else if before == Some('*') || next == Some('*') {
        Some(
            "`*` begins an alias: put the value in quotes, or leave out a `matcher` that should match everything",
        )
    } else if matches!(next, Some('%' | '@' | '`')) {
        Some("put the value in quotes")
    } else {
        None
    }
}

pub(super) fn tags() -> DocumentError {
    DocumentError::new(
        "tag",
        "YAML tags are not allowed",
        "remove the `!…`; put the value in quotes if it is meant",
    )
}

pub(super) fn too_deep() -> DocumentError {
    DocumentError::new("too-deep", "the document is nested too deeply", "at most 127 levels are allowed")
}
