//! What is wrong with a rule.

/// A range of the text of an expression, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct TextPlace {
    /// Where it begins.
    pub(crate) start: usize,
    /// Where it ends.
    pub(crate) end: usize,
}

impl TextPlace {
    /// From this place to the end of another.
    pub(super) fn to(self, other: Self) -> Self {
        Self { start: self.start, end: other.end }
    }
}

/// A mistake in a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RuleMistake {
    /// What is wrong.
    pub(crate) message: String,
    /// What to do.
    pub(crate) help: RuleHelp,
    /// Which part of the text; `None` for all of it.
    pub(crate) place: Option<TextPlace>,
}

/// What to do about a mistake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RuleHelp {
    /// This.
    Text(String),
    /// Write one of the known names, perhaps the one that is most like the unknown one.
    Known(String, Vec<String>),
}

impl RuleMistake {
    pub(super) fn new(message: impl Into<String>, help: impl Into<String>) -> Self {
        Self { message: message.into(), help: RuleHelp::Text(help.into()), place: None }
    }

    /// A name that is none of the known ones. `what` says what it should be.
    pub(super) fn unknown<'n>(what: &str, name: &str, known: impl IntoIterator<Item = &'n str>) -> Self {
        let known = known.into_iter().map(str::to_owned).collect();
        let message = format!("unknown {what} `{name}`");
        Self { message, help: RuleHelp::Known(name.to_owned(), known), place: None }
    }

    /// The same about a part, unless it is about one already.
    pub(super) fn at(self, place: TextPlace) -> Self {
        Self { place: Some(self.place.unwrap_or(place)), ..self }
    }

    /// The same in a text that begins as many bytes earlier.
    pub(super) fn moved(self, by: usize) -> Self {
        let moved = |place: TextPlace| TextPlace { start: place.start + by, end: place.end + by };
        Self { place: self.place.map(moved), ..self }
    }
}

/// Names in backticks, with commas between them.
pub(super) fn listed<'n>(names: impl IntoIterator<Item = &'n str>) -> String {
    names.into_iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}
