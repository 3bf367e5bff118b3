//! When a hook runs and who waits for it, beyond its events and its matcher. Refuses to judge any of it.

use std::{fmt, num::NonZeroUsize, sync::Arc};

use super::{Delivery, Event, Scope};

/// When a hook runs and who waits for it, beyond what its dialect says.
#[derive(Debug, Clone, Default)]
pub struct ExecutionPolicy {
    /// The name of the only host event it wants; without one, it wants all that its `events` hold.
    pub host_event: Option<Arc<str>>,
    /// What an event must have besides the text its matcher accepts.
    pub condition: Option<Arc<dyn Condition>>,
    /// Of the hooks of one dialect with the same text here, an event runs the first.
    pub dedup_key: Option<Arc<str>>,
    /// How often it runs.
    pub frequency: Frequency,
    /// Whether the host waits for it; otherwise it has no say.
    pub delivery: Delivery,
    /// Whether it may run at the same time as other hooks of its dialect, where the dialect's hooks do.
    pub concurrency: Concurrency,
    /// Of the parallel hooks of its dialect, how many run for one event at the same time; without it, all.
    pub max_parallel: Option<NonZeroUsize>,
    /// The scope whose turn it has in the order of hooks, where that is not its own.
    pub order_scope: Option<Scope>,
}

/// Two conditions are the same if they read the same.
impl PartialEq for ExecutionPolicy {
    fn eq(&self, other: &Self) -> bool {
        let Self {
            host_event,
            condition,
            dedup_key,
            frequency,
            delivery,
            concurrency,
            max_parallel,
            order_scope,
        } = self;
        let text = |condition: &Option<Arc<dyn Condition>>| condition.as_ref().map(|known| known.text());
        *host_event == other.host_event
            && text(condition) == text(&other.condition)
            && *dedup_key == other.dedup_key
            && *frequency == other.frequency
            && *delivery == other.delivery
            && *concurrency == other.concurrency
            && *max_parallel == other.max_parallel
            && *order_scope == other.order_scope
    }
}

/// Whether a hook may run at the same time as other hooks of its dialect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Concurrency {
    /// It may.
    #[default]
    Shared,
    /// It may not, and where it runs, neither may they.
    Exclusive,
}

/// How often a hook runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Frequency {
    /// For every event it wants.
    #[default]
    Always,
    /// For the first of them in a run.
    OncePerRun,
}

/// Something in an event's payload that a hook cares for.
pub trait Condition: fmt::Debug + Send + Sync {
    /// Whether the event has it.
    fn holds(&self, event: &Event) -> bool;

    /// It in words that follow "needs", as `explain` shows them.
    fn text(&self) -> String;
}
