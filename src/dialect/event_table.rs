//! The columns of a dialect's event table.

use crate::model::{Capability, EventKind, Frequency, MergeRule, Strategy};

/// One event of a dialect.
#[derive(Debug)]
pub(super) struct EventRow {
    /// How the dialect calls it.
    pub(super) name: &'static str,
    /// Its canonical kind.
    pub(super) kind: EventKind,
    /// What matchers of hooks on it look at.
    pub(super) match_source: MatchSource,
    /// How hooks on it run.
    pub(super) strategy: Strategy,
    /// What becomes of equally strict verdicts.
    pub(super) merge_rule: MergeRule,
    /// What a block means.
    pub(super) block: BlockEffect,
    /// What text that is no JSON means on standard output.
    pub(super) plain_text: PlainText,
    /// Whether its hosts accept context for the model.
    pub(super) context: ContextSupport,
    /// How often a hook on it runs by default.
    pub(super) frequency: Frequency,
    /// What its hooks may change.
    pub(super) capabilities: &'static [Capability],
}

/// What matchers look at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MatchSource {
    /// Nothing: they are ignored.
    Unmatched,
    /// The fact that matchers on the kind look at.
    Fact,
    /// A field of an event without a kind of its own.
    Field(&'static str),
    /// The last part of the path in a field of an event without a kind of its own.
    FileName(&'static str),
}

/// What a block means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BlockEffect {
    /// Nothing: the event cannot be blocked.
    Nothing,
    /// What is about to happen does not.
    Prevents,
    /// The same, and hosts learn of it by the exit code.
    PreventsByExit,
    /// The same, and hosts receive it as a field of its own too.
    Declines,
    /// It has happened, and the model receives the reason why it should not have.
    Tells,
    /// A permission is denied, by a decision of its own shape.
    Denies,
}

/// What text that is no JSON means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PlainText {
    /// Nothing.
    Ignored,
    /// It is for the model.
    Told,
}

/// Whether hosts accept context for the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ContextSupport {
    /// They do.
    Taken,
    /// They have no place for them.
    NoPlace,
}

impl EventRow {
    /// Whether its hooks may stop what is about to happen.
    pub(super) fn prevents(&self) -> bool {
        matches!(self.block, BlockEffect::Prevents | BlockEffect::PreventsByExit | BlockEffect::Declines)
    }

    /// For an event without a kind of its own: whether its hooks may stop things, or only watch.
    pub(super) fn host_event_strategy(&self) -> Strategy {
        if self.prevents() { Strategy::Serial } else { Strategy::Parallel }
    }
}

/// The rows of a dialect, a line for each event.
macro_rules! rows {
    ($($name:literal $kind:ident $match_source:expr, $strategy:ident $merge_rule:ident, $block:ident, $plain_text:ident $context:ident,
       $frequency:ident, [$($capability:ident)*];)*) => {
        &[$($crate::dialect::event_table::EventRow {
            name: $name,
            kind: $crate::model::EventKind::$kind,
            match_source: $match_source,
            strategy: $crate::model::Strategy::$strategy,
            merge_rule: $crate::model::MergeRule::$merge_rule,
            block: $crate::dialect::event_table::BlockEffect::$block,
            plain_text: $crate::dialect::event_table::PlainText::$plain_text,
            context: $crate::dialect::event_table::ContextSupport::$context,
            frequency: $crate::model::Frequency::$frequency,
            capabilities: &[$($crate::model::Capability::$capability),*],
        },)*]
    };
}
pub(super) use rows;
