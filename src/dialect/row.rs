//! The columns of a dialect's table: what each of its events is, what its hooks may do there and what their
//! words mean. Refuses to hold any dialect's rows.

use crate::model::{Capability, EventKind, Frequency, MergeRule, Strategy};

/// One event of a dialect.
#[derive(Debug)]
pub(super) struct Row {
    /// How the dialect calls it.
    pub(super) name: &'static str,
    /// What it is in hookyard's words.
    pub(super) kind: EventKind,
    /// What matchers of hooks on it look at.
    pub(super) looks: Looks,
    /// How hooks on it run.
    pub(super) strategy: Strategy,
    /// What becomes of equally strict verdicts.
    pub(super) ties: MergeRule,
    /// What a block means.
    pub(super) block: Block,
    /// What text that is no JSON means on standard output.
    pub(super) plain: Plain,
    /// Whether its hosts take words for the model.
    pub(super) context: Context,
    /// How often a hook on it runs, where the hook does not say.
    pub(super) frequency: Frequency,
    /// What its hooks may change.
    pub(super) may: &'static [Capability],
}

/// What matchers look at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Looks {
    /// Nothing: they are ignored.
    Nowhere,
    /// The fact that matchers on the kind look at.
    Fact,
    /// A field of an event without a kind of its own.
    Field(&'static str),
    /// The last part of the path in a field of an event without a kind of its own.
    FileName(&'static str),
}

/// What a block means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Block {
    /// Nothing: the event cannot be blocked.
    Nothing,
    /// What is about to happen does not.
    Prevents,
    /// The same, and hosts learn of it by the exit code.
    PreventsByExit,
    /// The same, and hosts learn of it by a word of its own too.
    Declines,
    /// It has happened, and the model is told why it should not have.
    Tells,
    /// A permission is denied, by a decision of its own shape.
    Denies,
}

/// What text that is no JSON means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Plain {
    /// Nothing.
    Ignored,
    /// It is for the model.
    Told,
}

/// Whether hosts take words for the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Context {
    /// They do.
    Taken,
    /// They have no place for them.
    NoPlace,
}

impl Row {
    /// Whether its hooks may stop what is about to happen.
    pub(super) fn prevents(&self) -> bool {
        matches!(self.block, Block::Prevents | Block::PreventsByExit | Block::Declines)
    }

    /// For an event without a kind of its own: whether its hooks may stop things, or only watch.
    pub(super) fn part(&self) -> Strategy {
        if self.prevents() { Strategy::Serial } else { Strategy::Parallel }
    }
}

/// The rows of a dialect, a line for each event.
macro_rules! rows {
    ($($name:literal $kind:ident $looks:expr, $strategy:ident $ties:ident, $block:ident, $plain:ident $context:ident,
       $frequency:ident, [$($may:ident)*];)*) => {
        &[$($crate::dialect::row::Row {
            name: $name,
            kind: $crate::model::EventKind::$kind,
            looks: $looks,
            strategy: $crate::model::Strategy::$strategy,
            ties: $crate::model::MergeRule::$ties,
            block: $crate::dialect::row::Block::$block,
            plain: $crate::dialect::row::Plain::$plain,
            context: $crate::dialect::row::Context::$context,
            frequency: $crate::model::Frequency::$frequency,
            may: &[$($crate::model::Capability::$may),*],
        },)*]
    };
}
pub(super) use rows;
