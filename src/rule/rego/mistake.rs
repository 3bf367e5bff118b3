//! What is wrong with a policy, and where.

/// A mistake in a policy, or what looks like one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PolicyMistake {
    /// What is wrong.
    pub(crate) message: String,
    /// What to do.
    pub(crate) help: String,
    /// Where, if one place is to blame.
    pub(crate) place: Option<PolicyPlace>,
}

/// A place in a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PolicyPlace {
    /// The number of the policy.
    pub(crate) policy: usize,
    /// The line, from 1.
    pub(crate) line: usize,
    /// The column in characters, from 1.
    pub(crate) column: usize,
    /// How many characters are meant.
    pub(crate) length: usize,
}

impl PolicyMistake {
    pub(super) fn new(message: impl Into<String>, help: impl Into<String>) -> Self {
        Self { message: message.into(), help: help.into(), place: None }
    }

    pub(super) fn at(self, place: PolicyPlace) -> Self {
        Self { place: Some(place), ..self }
    }
}

/// The line, the column and the message of an error of the interpreter, which draws the place as compilers do.
pub(super) fn read_error(text: &str) -> (Option<(usize, usize)>, String) {
    let mut place = None;
    let mut message = None;
    for line in text.lines() {
        let line = line.trim();
        // The first place is where the error is; others say how the interpreter came there.
        if let Some(at) = line.strip_prefix("--> ").filter(|_| place.is_none()) {
            place = place_of(at);
        }
        if let Some(said) = line.strip_prefix("error: ").filter(|_| message.is_none()) {
            message = Some(said.to_owned());
        }
    }
    let first = || text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default().to_owned();
    (place, message.unwrap_or_else(first))
}

/// The place in `FILE:LINE:COLUMN`.
fn place_of(at: &str) -> Option<(usize, usize)> {
    let mut parts = at.rsplitn(3, ':');
    let column = parts.next()?.parse().ok()?;
    let line = parts.next()?.parse().ok()?;
    Some((line, column))
}
