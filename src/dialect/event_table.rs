//! The columns of a dialect's event table, and the attributes that events may have.

use std::sync::Arc;

use crate::model::{Capability, Event, EventAttributes, EventKind, Json, MergeRule, Strategy};

/// One event of a dialect.
#[derive(Debug)]
pub(super) struct EventRow {
    /// Its name in the dialect.
    pub(super) name: &'static str,
    /// Its canonical kind.
    pub(super) kind: EventKind,
    /// What matchers of hooks on it are compared with.
    pub(super) match_source: MatchSource,
    /// How hooks on it run.
    pub(super) strategy: Strategy,
    /// How equally strict verdicts are merged.
    pub(super) merge_rule: MergeRule,
    /// The effect of a block.
    pub(super) block: BlockEffect,
    /// The meaning of text on standard output that is not JSON.
    pub(super) plain_text: PlainText,
    /// Whether its hosts accept context for the model.
    pub(super) context: ContextSupport,
    /// The changes that its hooks may make.
    pub(super) capabilities: &'static [Capability],
}

/// What matchers are compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MatchSource {
    /// Nothing: they are ignored.
    Unmatched,
    /// The attribute that matchers on the kind are compared with.
    Fact,
    /// A field of an event without a kind of its own.
    Field(&'static str),
    /// A field of an event without a kind of its own, behind this.
    Prefixed(&'static str, &'static str),
    /// The last part of the path in a field of an event without a kind of its own.
    FileName(&'static str),
}

/// The effect of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BlockEffect {
    /// Nothing: the event cannot be blocked.
    Nothing,
    /// It prevents what is about to happen.
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

/// The meaning of text that is not JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PlainText {
    /// Nothing.
    Ignored,
    /// It is for the model.
    Told,
    /// Its last line is the path of what the hook has made.
    Path,
}

/// Whether hosts accept context for the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ContextSupport {
    /// They do.
    Taken,
    /// They take all of standard output for it, also what is JSON.
    Printed,
    /// They have no field for it.
    NoPlace,
}

impl EventRow {
    /// Whether its hooks may stop what is about to happen.
    pub(super) fn prevents(&self) -> bool {
        matches!(self.block, BlockEffect::Prevents | BlockEffect::PreventsByExit | BlockEffect::Declines)
    }

    /// For an event without a kind of its own: whether its hooks may stop it, or only observe.
    pub(super) fn host_event_strategy(&self) -> Strategy {
        if self.prevents() { Strategy::Serial } else { Strategy::Parallel }
    }
}

/// The event of a name.
#[derive(Clone, Copy)]
pub(super) enum KnownEvent {
    Kind(EventKind),
    Row(&'static EventRow),
}

impl KnownEvent {
    pub(super) fn kind(self) -> EventKind {
        match self {
            Self::Kind(kind) => kind,
            Self::Row(row) => row.kind,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Kind(kind) => kind.as_str(),
            Self::Row(row) => row.name,
        }
    }
}

/// One of the short texts of an event, by its canonical name.
pub(super) struct FactField {
    pub(super) name: &'static str,
    pub(super) get: fn(&EventAttributes) -> Option<&str>,
    pub(super) set: fn(&mut EventAttributes, Arc<str>),
}

macro_rules! facts {
    ($($name:ident)*) => {
        /// Every attribute that an event may have.
        pub(super) static FACT_FIELDS: &[FactField] = &[$(FactField {
            name: stringify!($name),
            get: |facts| facts.$name.as_deref(),
            set: |facts, text| facts.$name = Some(text),
        },)*];
    };
}

facts! {
    agent_name effective_agent_name model_ref tool_name trigger_type run_status source reason trigger
    notification_type message agent_type
}

/// A field of an event without a canonical name.
pub(super) fn extra_field<'e>(event: &'e Event, name: &str) -> Option<&'e Json> {
    event.extra.iter().find(|(known, _)| **known == *name).map(|(_, value)| value)
}

/// The rows of a dialect, a line for each event.
macro_rules! rows {
    ($($name:literal $kind:ident $match_source:expr, $strategy:ident $merge_rule:ident, $block:ident, $plain_text:ident $context:ident,
       [$($capability:ident)*];)*) => {
        &[$($crate::dialect::event_table::EventRow {
            name: $name,
            kind: $crate::model::EventKind::$kind,
            match_source: $match_source,
            strategy: $crate::model::Strategy::$strategy,
            merge_rule: $crate::model::MergeRule::$merge_rule,
            block: $crate::dialect::event_table::BlockEffect::$block,
            plain_text: $crate::dialect::event_table::PlainText::$plain_text,
            context: $crate::dialect::event_table::ContextSupport::$context,
            capabilities: &[$($crate::model::Capability::$capability),*],
        },)*]
    };
}
pub(super) use rows;
