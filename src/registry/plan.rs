//! Plans: which hooks run for one event, in which stages; and why the others do not. Refuses to run any.

use std::{fmt, ops::Range, sync::Arc};

use super::Registered;
use crate::model::{Event, EventKind, Strategy};

/// The ordered stages of hooks for one event; the steps of a stage run at the same time.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    steps: Vec<Arc<Registered>>,
    /// Where each stage ends in `steps`.
    ends: Vec<usize>,
}

impl Plan {
    /// The plan of an event from the hooks it concerns, in order. A serial hook is a stage of its own;
    /// parallel hooks that follow one another share a stage, across dialects only for lifecycle kinds.
    pub(super) fn new(kind: EventKind, hooks: impl Iterator<Item = Arc<Registered>>) -> Self {
        let mut plan = Self::default();
        for hook in hooks {
            let joins = plan.steps.last().is_some_and(|last| shares_stage(kind, &last.hook, &hook.hook));
            plan.steps.push(hook);
            if joins {
                plan.ends.pop();
            }
            plan.ends.push(plan.steps.len());
        }
        plan
    }

    /// Whether no hook runs.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Every step, in plan order.
    pub fn steps(&self) -> &[Arc<Registered>] {
        &self.steps
    }

    /// The places of a stage's steps in [`Plan::steps`], or `None` after the last stage.
    pub fn stage(&self, number: usize) -> Option<Range<usize>> {
        let end = *self.ends.get(number)?;
        let start = number.checked_sub(1).map_or(0, |previous| self.ends[previous]);
        Some(start..end)
    }

    /// The stages in order.
    pub fn stages(&self) -> impl Iterator<Item = &[Arc<Registered>]> {
        (0..self.ends.len()).filter_map(|number| self.stage(number)).map(|stage| &self.steps[stage])
    }
}

fn shares_stage(kind: EventKind, last: &crate::model::Hook, next: &crate::model::Hook) -> bool {
    let parallel = |hook: &crate::model::Hook| hook.dialect.strategy(kind) == Strategy::Parallel;
    parallel(last) && parallel(next) && (!kind.is_interceptor() || last.dialect.name() == next.dialect.name())
}

/// A plan, and for each hook that is not in it, why.
#[derive(Debug, Clone)]
pub struct Explanation {
    /// What runs.
    pub plan: Plan,
    /// What does not, in registry order.
    pub skipped: Vec<Skipped>,
}

/// A hook that is not in a plan.
#[derive(Debug, Clone)]
pub struct Skipped {
    /// The hook.
    pub hook: Arc<Registered>,
    /// Why it does not run.
    pub why: Skip,
}

/// Why a hook does not run for an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Skip {
    /// It is switched off.
    Disabled,
    /// It wants other kinds of event.
    OtherEvents(EventKind),
    /// Its matcher does not accept the value.
    NotAccepted {
        /// The pattern.
        pattern: String,
        /// The field that it looks at.
        field: &'static str,
        /// The field's value.
        value: String,
    },
    /// Its matcher has nothing to look at, since the event lacks the field.
    NothingToMatch {
        /// The field.
        field: &'static str,
    },
}

impl Skip {
    /// Why the hook does not run for the event, or `None` if it does.
    pub(super) fn of(hook: &Registered, event: &Event) -> Option<Self> {
        let hook = &hook.hook;
        if !hook.enabled {
            return Some(Self::Disabled);
        }
        if !hook.events.contains(event.kind) {
            return Some(Self::OtherEvents(event.kind));
        }
        let matcher = hook.matcher.as_ref()?;
        let field = hook.dialect.matched(event.kind)?.as_str();
        match event.matched_text() {
            None => Some(Self::NothingToMatch { field }),
            Some(value) if matcher.accepts(value) => None,
            Some(value) => Some(Self::NotAccepted {
                pattern: matcher.pattern().to_owned(),
                field,
                value: value.to_owned(),
            }),
        }
    }
}

impl fmt::Display for Skip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Disabled => f.write_str("it is disabled (`enabled: false`)"),
            Self::OtherEvents(kind) => write!(f, "{kind} is not among its events"),
            Self::NotAccepted { pattern, field, value } => {
                write!(f, "its matcher `{pattern}` does not accept {field} `{value}`")
            }
            Self::NothingToMatch { field } => write!(f, "it has a matcher, and the event has no {field}"),
        }
    }
}
