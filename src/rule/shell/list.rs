//! Where in a list of commands the reader is.
//!
//! Compound commands are kept on a stack, so that how deep they nest does not matter.

use super::reader::Feed;

/// A compound command that is not closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Parenthesis,
    Brace,
    If,
    /// `while`, `until`, `for`, `select`: up to `done`.
    Loop,
    Case,
}

/// In which part of a compound command the reader is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// Up to `then` or `do`.
    Condition,
    Body,
    /// After `else`.
    Last,
}

#[derive(Debug, Clone)]
pub(super) struct Open {
    pub(super) kind: Kind,
    pub(super) part: Part,
    /// How many commands were found before it.
    pub(super) first: usize,
    /// What is piped into it.
    pub(super) feed: Option<Feed>,
}

/// What may follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum ListPlace {
    /// A command, or the end of what is around it.
    #[default]
    Start,
    /// A command, and nothing else: after `&&`, `|`, `then`, `(` and the like.
    Wanted,
    /// An operator, or the end: after a simple command.
    Done,
    /// An operator, or a word that closes: after a compound command.
    Closed,
}

/// Where in a list the reader is.
#[derive(Debug, Clone, Default)]
pub(super) struct List {
    pub(super) open: Vec<Open>,
    /// What is piped into the next command.
    pub(super) feed: Option<Feed>,
    /// The command that was read last, as it would be piped into another.
    pub(super) last: Option<Feed>,
    /// Whether the next command runs only if the one before it did well or not.
    pub(super) is_conditional: bool,
    pub(super) place: ListPlace,
}

impl List {
    /// Whether what is assigned here holds for all that follows in the text.
    pub(super) fn is_straight(&self) -> bool {
        self.open.is_empty() && !self.is_conditional && self.feed.is_none()
    }

    /// Whether a command stands before the place.
    pub(super) fn has_command(&self) -> bool {
        matches!(self.place, ListPlace::Done | ListPlace::Closed)
    }

    /// A list of commands ends with `;`, a line's end and the like.
    pub(super) fn separate(&mut self) {
        self.feed = None;
        self.last = None;
        self.is_conditional = false;
        self.place = ListPlace::Start;
    }

    /// A list begins that may not be empty.
    pub(super) fn begin(&mut self) {
        self.separate();
        self.place = ListPlace::Wanted;
    }

    /// A reserved word leads from one part of a compound command to another. Answers whether it may stand here.
    pub(super) fn enter(&mut self, part: Part, from: Part) -> bool {
        let is_placed = matches!(self.place, ListPlace::Start | ListPlace::Closed);
        self.begin();
        let Some(open) = self.open.last_mut() else { return false };
        std::mem::replace(&mut open.part, part) == from && is_placed
    }
}
