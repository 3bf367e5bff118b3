//! What a guard is made of: fields of its input, tests of them, and texts with fields in them.

use super::pattern::escaped;
use crate::model::Matcher;

/// What a cut text that is empty was.
pub(super) const NOTHING_WHOLE: &str = r"\A\n*\z";

/// Why a script is left alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::cli) struct Unclear(pub(in crate::cli) String);

impl Unclear {
    pub(super) fn new<T>(why: impl Into<String>) -> Result<T, Self> {
        Err(Self(why.into()))
    }
}

/// A text of the input that a guard tests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::cli) struct GuardField {
    /// Its keys, from the input on.
    pub(super) path: Vec<String>,
    pub(super) absent: AbsentField,
    /// Whether the line ends at its end are cut off, as by `$(…)`.
    pub(super) is_cut: bool,
}

/// What a field counts as where the event lacks it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::cli) enum AbsentField {
    Text(String),
    Undefined,
}

/// What a guard asks of a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::cli) enum FieldTest {
    /// Whether it has a match of a pattern, in the syntax of rules.
    Matches(String),
    Contains(String),
    StartsWith(String),
    EndsWith(String),
    OneOf(Vec<String>),
    /// Whether the event has it.
    IsThere,
}

impl FieldTest {
    /// Whether it holds for a text.
    pub(super) fn holds(&self, text: &str) -> bool {
        match self {
            Self::Matches(pattern) => Matcher::search(pattern).is_ok_and(|pattern| pattern.accepts(text)),
            Self::Contains(part) => text.contains(part.as_str()),
            Self::StartsWith(part) => text.starts_with(part.as_str()),
            Self::EndsWith(part) => text.ends_with(part.as_str()),
            Self::OneOf(texts) => texts.iter().any(|known| known == text),
            Self::IsThere => true,
        }
    }

    /// The test of a field whose end is cut, for the field as it is in the event.
    fn of_whole(self) -> Self {
        let ending = |texts: &[String]| {
            let texts: Vec<String> = texts.iter().map(|text| escaped(text)).collect();
            texts.join("|")
        };
        match self {
            Self::EndsWith(part) => Self::Matches(format!(r"{}\n*\z", ending(&[part]))),
            Self::OneOf(texts) if texts != [""] => Self::Matches(format!(r"\A(?:{})\n*\z", ending(&texts))),
            Self::OneOf(_) => Self::Matches(NOTHING_WHOLE.to_owned()),
            other => other,
        }
    }
}

impl GuardField {
    pub(super) fn new(path: &[&str], absent: AbsentField) -> Self {
        let path = path.iter().map(|&key| key.to_owned()).collect();
        Self { path, absent, is_cut: false }
    }

    /// Whether every event of a tool or prompt has it, without a line's end at its end.
    pub(super) fn is_always_there(&self) -> bool {
        self.path == ["tool_name"]
    }

    /// A test of the field, and the field, as simple as they can be without another result.
    pub(super) fn tested(mut self, test: FieldTest) -> (Self, FieldTest) {
        let is_cut = std::mem::take(&mut self.is_cut) && !self.is_always_there();
        let test = if is_cut { test.of_whole() } else { test };
        let is_same = match &self.absent {
            AbsentField::Text(text) => test.holds(text) == test.holds(""),
            AbsentField::Undefined => !matches!(test, FieldTest::IsThere),
        };
        if is_same || self.is_always_there() {
            self.absent = AbsentField::Text(String::new());
        }
        (self, test)
    }
}

/// A text with fields in it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::cli) struct GuardText(pub(super) Vec<TextPiece>);

/// A part of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::cli) enum TextPiece {
    Literal(String),
    Field(GuardField),
    /// A field within a string of JSON.
    Quoted(GuardField),
}

impl GuardText {
    pub(super) fn literal(text: impl Into<String>) -> Self {
        let text = text.into();
        if text.is_empty() { Self::default() } else { Self(vec![TextPiece::Literal(text)]) }
    }

    pub(super) fn field(field: GuardField) -> Self {
        Self(vec![TextPiece::Field(field)])
    }

    pub(super) fn add(&mut self, other: Self) {
        for piece in other.0 {
            match (self.0.last_mut(), piece) {
                (Some(TextPiece::Literal(text)), TextPiece::Literal(more)) => text.push_str(&more),
                (_, piece) => self.0.push(piece),
            }
        }
    }

    pub(super) fn with(mut self, other: Self) -> Self {
        self.add(other);
        self
    }

    /// The text, if no field is in it.
    pub(super) fn known(&self) -> Option<&str> {
        match self.0.as_slice() {
            [] => Some(""),
            [TextPiece::Literal(text)] => Some(text),
            _ => None,
        }
    }

    /// The field that it is.
    pub(super) fn only_field(&self) -> Option<&GuardField> {
        match self.0.as_slice() {
            [TextPiece::Field(field)] => Some(field),
            _ => None,
        }
    }
}
