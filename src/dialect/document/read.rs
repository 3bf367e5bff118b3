//! Typed reading of a document: every mistake is recorded and reading goes on. Nothing is converted: `name: 123` is a
//! mistake, not the text "123".

use std::{cell::RefCell, path::Path};

use super::{
    super::suggest::{did_you_mean, shorten},
    error::Mistake,
    json,
    node::{MappingEntry, Node, NodeValue, TextReplacement},
    parse::parse,
    span::{Span, TextLocation, location_of, point_at},
};
use crate::model::{Diagnostic, Severity};

/// How many mistakes of one file are reported.
const MOST_MISTAKES: usize = 20;

/// How much of an unknown key is repeated, in characters.
const LONGEST_ECHO: usize = 64;

/// A document and what is wrong with it so far.
pub(crate) struct Document<'t> {
    pub(super) text: &'t str,
    file: &'t Path,
    root: Node,
    syntax: Syntax,
    mistakes: RefCell<Vec<Mistake>>,
    pub(super) elsewhere: RefCell<Vec<Diagnostic>>,
}

/// How a document is written, and by whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Syntax {
    /// In YAML, for hookyard: a mistake in it is an error.
    Yaml,
    /// In JSON, for another program: a mistake costs what it is in, and is a warning.
    Json,
    /// In YAML, for another program.
    ForeignYaml,
}

impl<'t> Document<'t> {
    /// Takes the bytes of a file as one document.
    ///
    /// Returns a diagnostic if they are none at all.
    pub(crate) fn parse(bytes: &'t [u8], file: &'t Path) -> Result<Self, Box<Diagnostic>> {
        Self::read(bytes, file, Syntax::Yaml)
    }

    /// Takes the bytes of another program's file as one JSON document, mistakes in which are warnings.
    /// Returns a diagnostic, which is an error, if they are none at all.
    pub(crate) fn parse_json(bytes: &'t [u8], file: &'t Path) -> Result<Self, Box<Diagnostic>> {
        Self::read(bytes, file, Syntax::Json)
    }

    /// The same for a document in YAML.
    pub(crate) fn parse_foreign_yaml(bytes: &'t [u8], file: &'t Path) -> Result<Self, Box<Diagnostic>> {
        Self::read(bytes, file, Syntax::ForeignYaml)
    }

    fn read(bytes: &'t [u8], file: &'t Path, syntax: Syntax) -> Result<Self, Box<Diagnostic>> {
        let text = std::str::from_utf8(bytes).map_err(|e| {
            let message = format!("not UTF-8: invalid byte at offset {}", e.valid_up_to());
            Box::new(
                Diagnostic::of_file(Severity::Error, "not-utf8", file, message)
                    .help("save the file as UTF-8"),
            )
        })?;
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let parsed = match syntax {
            Syntax::Yaml | Syntax::ForeignYaml => parse(text),
            Syntax::Json => json::parse(text),
        };
        let root = parsed.map_err(|error| Box::new(error.into_diagnostic(text, file)))?;
        Ok(Self { text, file, root, syntax, mistakes: RefCell::default(), elsewhere: RefCell::default() })
    }

    /// Replaces texts, except below these keys.
    pub(crate) fn replace_texts(&mut self, kept: &[&str], replaced: TextReplacement<'_>) {
        self.root = self.root.with_texts(kept, replaced);
    }

    /// The mapping that the whole document is.
    pub(crate) fn root(&self) -> Option<Mapping<'_>> {
        Value {
            document: self,
            name: "the document",
            role: Role::Document,
            node: &self.root,
            key_span: self.root.span,
        }
        .mapping()
    }

    /// Records a mistake.
    pub(crate) fn report(&self, mistake: Mistake) {
        let gravest = if self.syntax == Syntax::Yaml { Severity::Error } else { Severity::Warning };
        let severity = mistake.severity.min(gravest);
        self.mistakes.borrow_mut().push(Mistake { severity, ..mistake });
    }

    /// Whether any mistake is an error.
    pub(crate) fn has_errors(&self) -> bool {
        self.mistakes.borrow().iter().any(|mistake| mistake.severity == Severity::Error)
    }

    /// The line and column of a span, from 1.
    pub(crate) fn position(&self, span: Span) -> (usize, usize) {
        let TextLocation { line, column, .. } = location_of(self.text, span);
        (line, column)
    }

    /// What is wrong, in the order of the text, and in other files that it names.
    pub(crate) fn into_diagnostics(self) -> Vec<Diagnostic> {
        let mut mistakes = self.mistakes.take();
        mistakes.sort_by_key(|mistake| std::cmp::Reverse(mistake.severity));
        let unreported = mistakes.split_off(mistakes.len().min(MOST_MISTAKES));
        let mut diagnostics: Vec<_> = mistakes.into_iter().map(|mistake| self.placed(mistake)).collect();
        diagnostics.sort_by_key(|diagnostic| (diagnostic.line, diagnostic.column));
        if let Some(worst) = unreported.first() {
            let message = format!("{} more mistakes in this file", unreported.len());
            let is_yaml = self.syntax == Syntax::Yaml;
            let severity = if is_yaml { worst.severity } else { Severity::Warning };
            let diagnostic = Diagnostic::of_file(severity, "more-mistakes", self.file, message);
            diagnostics.push(Diagnostic { skipped: !is_yaml || severity == Severity::Error, ..diagnostic });
        }
        diagnostics.extend(self.elsewhere.take().into_iter().take(MOST_MISTAKES));
        diagnostics
    }

    fn placed(&self, mistake: Mistake) -> Diagnostic {
        let mut diagnostic = Diagnostic::of_file(mistake.severity, mistake.code, self.file, mistake.message);
        point_at(&mut diagnostic, self.text, mistake.span);
        Diagnostic { help: mistake.help, skipped: mistake.skipped, ..diagnostic }
    }
}

/// A mapping in a document.
#[derive(Clone)]
pub(crate) struct Mapping<'d> {
    document: &'d Document<'d>,
    name: &'d str,
    span: Span,
    entries: &'d [MappingEntry],
}

impl<'d> Mapping<'d> {
    /// The document it is in.
    pub(crate) fn document(&self) -> &'d Document<'d> {
        self.document
    }

    /// Where it begins.
    pub(crate) fn span(&self) -> Span {
        self.span
    }

    /// The value of a key.
    pub(crate) fn get(&self, key: &str) -> Option<Value<'d>> {
        self.values().find(|value| value.name == key)
    }

    /// The value of a required key; if it is missing, the diagnostic shows what to write.
    pub(crate) fn require(&self, key: &str, example: &str) -> Option<Value<'d>> {
        let found = self.get(key);
        if found.is_none() {
            let mistake = Mistake::error("missing-key", self.span(), format!("`{key}` is missing"));
            self.document.report(mistake.help(format!("write `{example}`")));
        }
        found
    }

    /// All values in order.
    pub(crate) fn values(&self) -> impl Iterator<Item = Value<'d>> {
        let document = self.document;
        self.entries.iter().map(move |entry| Value {
            document,
            name: &entry.key,
            role: Role::Entry,
            node: &entry.node,
            key_span: entry.key_span,
        })
    }

    /// Records every key that is not among the known ones.
    pub(crate) fn allow_only(&self, known: &[&str]) {
        self.allow_only_with(known, |_| None);
    }

    /// Records every key that is not among the known ones, with the help that there is for it.
    pub(crate) fn allow_only_with(&self, known: &[&str], help: impl Fn(&str) -> Option<String>) {
        for value in self.values().filter(|value| !known.contains(&value.name)) {
            let message = format!("unknown key `{}`", shorten(value.name, LONGEST_ECHO));
            let mistake = Mistake::error("unknown-key", value.key_span(), message);
            let help = help(value.name).unwrap_or_else(|| did_you_mean(value.name, known));
            self.document.report(mistake.help(help));
        }
    }

    /// What messages call it.
    pub(crate) fn name(&self) -> &'d str {
        self.name
    }
}

/// A value in a document, with the key or list it belongs to.
#[derive(Clone)]
pub(crate) struct Value<'d> {
    pub(super) document: &'d Document<'d>,
    name: &'d str,
    role: Role,
    node: &'d Node,
    key_span: Span,
}

/// How a value came by its name.
#[derive(Clone, Copy)]
enum Role {
    Document,
    Entry,
    Item,
}

impl<'d> Value<'d> {
    /// The document it is in.
    pub(crate) fn document(&self) -> &'d Document<'d> {
        self.document
    }

    /// Where it is.
    pub(crate) fn span(&self) -> Span {
        self.node.span
    }

    /// Where its key is.
    pub(crate) fn key_span(&self) -> Span {
        self.key_span
    }

    /// Its key, or that of the list it is in.
    pub(crate) fn name(&self) -> &'d str {
        self.name
    }

    /// Records an error here.
    pub(crate) fn error(&self, code: &'static str, message: impl Into<String>, help: impl Into<String>) {
        self.document.report(Mistake::error(code, self.span(), message).help(help));
    }

    /// Records an error elsewhere in this value.
    pub(crate) fn error_at(
        &self,
        span: Span,
        code: &'static str,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        self.document.report(Mistake::error(code, span, message).help(help));
    }

    /// Records a warning here.
    pub(crate) fn warn(&self, code: &'static str, message: impl Into<String>, help: impl Into<String>) {
        self.document.report(Mistake::warning(code, self.span(), message).help(help));
    }

    /// Records a warning about its key.
    pub(crate) fn warn_key(&self, code: &'static str, message: impl Into<String>, help: impl Into<String>) {
        self.document.report(Mistake::warning(code, self.key_span(), message).help(help));
    }

    /// Records something good to know here.
    pub(crate) fn note(&self, code: &'static str, message: impl Into<String>) {
        self.document.report(Mistake::info(code, self.span(), message));
    }

    /// A text.
    pub(crate) fn text(&self) -> Option<&'d str> {
        match &self.node.value {
            NodeValue::Text(text) => Some(text),
            NodeValue::Bool(_) | NodeValue::Integer(_) | NodeValue::Float(_) => {
                self.wrong_type("a string", Some("put it in quotes"))
            }
            _ => self.wrong_type("a string", None),
        }
    }

    /// Whether it was left empty, or is `null`.
    pub(crate) fn is_null(&self) -> bool {
        matches!(self.node.value, NodeValue::Null)
    }

    /// Whether it is a list.
    pub(crate) fn is_list(&self) -> bool {
        matches!(self.node.value, NodeValue::List(_))
    }

    /// A text, where anything else is the caller's mistake to report.
    pub(crate) fn as_text(&self) -> Option<&'d str> {
        match &self.node.value {
            NodeValue::Text(text) => Some(text),
            _ => None,
        }
    }

    /// `true` or `false`.
    pub(crate) fn flag(&self) -> Option<bool> {
        match &self.node.value {
            NodeValue::Bool(flag) => Some(*flag),
            _ => self.wrong_type("a boolean", Some("write `true` or `false`")),
        }
    }

    /// A whole number.
    pub(crate) fn integer(&self) -> Option<i64> {
        match &self.node.value {
            NodeValue::Integer(number) => Some(*number),
            NodeValue::Float(_) => {
                self.wrong_type("a whole number", Some("write it without fraction, at most 2^63-1"))
            }
            _ => self.wrong_type("a whole number", None),
        }
    }

    /// A number, perhaps with a fraction.
    #[expect(clippy::cast_precision_loss, reason = "numbers in files are small")]
    pub(crate) fn number(&self) -> Option<f64> {
        match &self.node.value {
            NodeValue::Integer(number) => Some(*number as f64),
            NodeValue::Float(number) => Some(*number),
            _ => self.wrong_type("a number", Some("write it plainly, such as `5` or `0.5`")),
        }
    }

    /// A list.
    pub(crate) fn list(&self) -> Option<Vec<Value<'d>>> {
        let NodeValue::List(items) = &self.node.value else {
            let help = matches!(self.node.value, NodeValue::Text(_)).then_some("put it in brackets: `[…]`");
            return self.wrong_type("a list", help);
        };
        let value = |node| Value {
            document: self.document,
            name: self.name,
            role: Role::Item,
            node,
            key_span: self.key_span,
        };
        Some(items.iter().map(value).collect())
    }

    /// A mapping.
    pub(crate) fn mapping(&self) -> Option<Mapping<'d>> {
        self.as_mapping().or_else(|| self.wrong_type("a mapping", None))
    }

    /// A mapping, where anything else is the caller's mistake to report.
    pub(crate) fn as_mapping(&self) -> Option<Mapping<'d>> {
        match &self.node.value {
            NodeValue::Mapping(entries) => {
                Some(Mapping { document: self.document, name: self.name, span: self.node.span, entries })
            }
            _ => None,
        }
    }

    /// One of a set of names.
    pub(crate) fn choice<T: Copy>(&self, choices: &[(&str, T)]) -> Option<T> {
        let text = self.text()?;
        let found = choices.iter().find(|(word, _)| *word == text).map(|(_, choice)| *choice);
        if found.is_none() {
            let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
            let message = format!("unknown value `{}` for `{}`", shorten(text, LONGEST_ECHO), self.name);
            self.error("unknown-word", message, did_you_mean(text, &words));
        }
        found
    }

    fn wrong_type<T>(&self, expected: &str, help: Option<&str>) -> Option<T> {
        let name = match self.role {
            Role::Document => self.name.to_owned(),
            Role::Entry => format!("`{}`", shorten(self.name, LONGEST_ECHO)),
            Role::Item => format!("each item of `{}`", shorten(self.name, LONGEST_ECHO)),
        };
        let is_json = self.document.syntax == Syntax::Json;
        let word = |kind: &str| match kind {
            "a mapping" if is_json => "an object".to_owned(),
            "nothing" if is_json => "`null`".to_owned(),
            kind => kind.to_owned(),
        };
        let expected = word(expected);
        let message = match &self.node.value {
            NodeValue::Null if !is_json => format!("{name} is empty; it must be {expected}"),
            node => format!("{name} must be {expected}, not {}", word(node.kind())),
        };
        let mistake = Mistake::error("wrong-type", self.span(), message);
        let help = help.or(is_json.then_some("it is ignored; the rest of the file is used"));
        self.document.report(Mistake { help: help.map(str::to_owned), ..mistake });
        None
    }
}
