//! Plans: which hooks run for an event, in which stages, and why the others do not.

use std::{collections::HashMap, fmt, ops::Range, path::Path, sync::Arc};

use super::registered_hook::RegisteredHook;
use crate::model::{
    Concurrency, Delivery, DialectName, Event, EventKind, Frequency, Hook, HookName, HostRuns, Scope,
    Strategy, Workspace,
};

/// The ordered stages of hooks for one event; the steps of a stage run at the same time.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    steps: Vec<Arc<RegisteredHook>>,
    /// Where each stage ends in `steps`.
    ends: Vec<usize>,
}

impl Plan {
    /// The plan of an event from the hooks it concerns, in order. A serial hook is a stage of its own;
    /// parallel hooks that follow one another share a stage, across dialects only for lifecycle kinds, and no
    /// more of them than may run together.
    pub(super) fn new(event: &Event, hooks: impl Iterator<Item = Arc<RegisteredHook>>) -> Self {
        let steps: Vec<_> = hooks.collect();
        let is_alone =
            |step: &&Arc<RegisteredHook>| step.hook.execution.concurrency == Concurrency::Exclusive;
        let alone: Vec<_> = steps.iter().filter(is_alone).map(|step| step.hook.dialect.name()).collect();
        let mut ends: Vec<usize> = Vec::with_capacity(steps.len());
        for (number, step) in steps.iter().enumerate() {
            let last = number.checked_sub(1).map(|last| &steps[last].hook);
            let begun = ends.len().checked_sub(2).map_or(0, |before| ends[before]);
            if last.is_some_and(|last| shares_stage(event, &alone, last, &step.hook))
                && has_room(&steps[begun..number], &step.hook)
            {
                ends.pop();
            }
            ends.push(number + 1);
        }
        Self { steps, ends }
    }

    /// The same plan with only the hooks for which the condition holds.
    pub(crate) fn filter(self, event: &Event, wanted: impl Fn(&Hook) -> bool) -> Self {
        if self.steps.iter().all(|step| wanted(&step.hook)) {
            return self;
        }
        Self::new(event, self.steps.into_iter().filter(|step| wanted(&step.hook)))
    }

    /// The hooks the host waits for, and those that only have to be started.
    pub(crate) fn split(self, event: &Event) -> (Self, Self) {
        let awaited = |hook: &Hook| hook.execution.delivery == Delivery::Awaited;
        if self.steps.iter().all(|step| awaited(&step.hook)) {
            return (self, Self::default());
        }
        (self.clone().filter(event, awaited), self.filter(event, |hook| !awaited(hook)))
    }

    /// Whether some hook only has to be started.
    pub(crate) fn has_detached(&self) -> bool {
        self.steps.iter().any(|step| step.hook.execution.delivery == Delivery::Detached)
    }

    /// The required hooks.
    pub(crate) fn required(&self) -> Vec<HookName> {
        let required = self.steps.iter().filter(|step| step.hook.execution.required);
        required.map(|step| step.hook.name.clone()).collect()
    }

    /// Whether no hook runs.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Every step, in plan order.
    pub fn steps(&self) -> &[Arc<RegisteredHook>] {
        &self.steps
    }

    /// The places of a stage's steps in [`Plan::steps`], or `None` after the last stage.
    pub fn stage(&self, number: usize) -> Option<Range<usize>> {
        let end = *self.ends.get(number)?;
        let start = number.checked_sub(1).map_or(0, |previous| self.ends[previous]);
        Some(start..end)
    }

    /// The stages in order.
    pub fn stages(&self) -> impl Iterator<Item = &[Arc<RegisteredHook>]> {
        (0..self.ends.len()).filter_map(|number| self.stage(number)).map(|stage| &self.steps[stage])
    }
}

/// Whether a stage has room for another hook of its dialect.
fn has_room(stage: &[Arc<RegisteredHook>], next: &Hook) -> bool {
    let own = |step: &&Arc<RegisteredHook>| step.hook.dialect.name() == next.dialect.name();
    next.execution.max_parallel.is_none_or(|most| stage.iter().filter(own).count() < most.get())
}

fn shares_stage(event: &Event, alone: &[DialectName], last: &Hook, next: &Hook) -> bool {
    let parallel = |hook: &Hook| hook.dialect.strategy(event.kind) == Strategy::Parallel;
    parallel(last)
        && parallel(next)
        && (!event.is_interceptor() || last.dialect.name() == next.dialect.name())
        && ![last, next].iter().any(|hook| alone.contains(&hook.dialect.name()))
}

/// Whether the agent that sent an event runs a hook itself, by what the operator or the user has recorded.
pub(super) fn is_left_to_host(hook: &Hook, event: &Event, of_snapshot: &Workspace) -> bool {
    let is_of_project = || {
        let project = event.origin.as_ref().and_then(|origin| origin.project.as_deref());
        project.is_some_and(|project| Path::new(project) == hook.workspace(of_snapshot).root)
    };
    match hook.execution.host_runs {
        HostRuns::Never | HostRuns::NotRead => false,
        HostRuns::Entry => true,
        HostRuns::Always => hook.dialect.name() == event.dialect,
        HostRuns::InProject => hook.dialect.name() == event.dialect && is_of_project(),
        // The workspace itself says that its hooks are adopted: it could have moved a guard where nobody runs it. Its
        // hooks run twice in a session that began before, and never not at all.
        HostRuns::BeforeAdoption => {
            matches!(hook.source.scope, Scope::Managed | Scope::User)
                && hook.dialect.name() == event.dialect
                && event.origin.as_ref().is_some_and(|origin| origin.keeps_hooks)
        }
    }
}

/// Drops hooks that another one stands in for: it has the same deduplication key.
pub(super) fn deduplicated(hooks: Vec<Arc<RegisteredHook>>) -> Vec<Arc<RegisteredHook>> {
    if hooks.iter().filter_map(|registered| identity(&registered.hook)).nth(1).is_none() {
        return hooks;
    }
    let mut first: HashMap<_, usize> = HashMap::new();
    for (at, registered) in hooks.iter().enumerate() {
        let Some(key) = identity(&registered.hook) else { continue };
        let known = first.entry(key).or_insert(at);
        // A lower level must not take the place of a higher one, whatever the order in which they run.
        if registered.hook.level() < hooks[*known].hook.level() {
            *known = at;
        }
    }
    let stays = |at: usize, hook: &Hook| identity(hook).is_none_or(|key| first[&key] == at);
    let kept = hooks.iter().enumerate().filter(|(at, registered)| stays(*at, &registered.hook));
    kept.map(|(_, registered)| Arc::clone(registered)).collect()
}

/// What must be the same about hooks of which one stands in for the others. A hook that may not run stands in for none,
/// and none for it: its policy decides.
fn identity(hook: &Hook) -> Option<(DialectName, &str, Frequency, Delivery)> {
    let key = hook.execution.dedup_key.as_deref().filter(|_| hook.trust.refusal().is_none())?;
    Some((hook.dialect.name(), key, hook.execution.frequency, hook.execution.delivery))
}

/// A plan, and for each hook that is not in it, why.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Explanation {
    /// What runs.
    pub plan: Plan,
    /// What does not, in registry order.
    pub skipped: Vec<SkippedHook>,
}

/// A hook that is not in a plan.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SkippedHook {
    /// The hook.
    pub hook: Arc<RegisteredHook>,
    /// Why it does not run.
    pub why: SkipReason,
}

/// Why a hook does not run for an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SkipReason {
    /// It is disabled.
    Disabled,
    /// This switch of a settings file disables it: the key and the file.
    SwitchedOff(Arc<str>),
    /// It wants other kinds of event.
    OtherEvents(EventKind),
    /// It wants another host event.
    OtherHostEvent(Arc<str>),
    /// The agent that sent the event runs it itself.
    RunByHost(DialectName),
    /// A hook with the same deduplication key runs.
    SameAs(HookName),
    /// The event does not meet its condition.
    LacksCondition(String),
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

impl SkipReason {
    /// Why the hook is not in the plan of the event, or `None` if it is.
    pub(super) fn of(
        hook: &Arc<RegisteredHook>,
        event: &Event,
        of_snapshot: &Workspace,
        plan: &Plan,
    ) -> Option<Self> {
        if plan.steps().iter().any(|step| Arc::ptr_eq(step, hook)) {
            return None;
        }
        Self::unwanted(hook, event).or_else(|| {
            let own = &hook.hook;
            if is_left_to_host(own, event, of_snapshot) {
                return Some(Self::RunByHost(own.dialect.name()));
            }
            let same = |step: &&Arc<RegisteredHook>| identity(&step.hook) == identity(own);
            Some(Self::SameAs(plan.steps().iter().find(same)?.hook.name.clone()))
        })
    }

    /// Why the hook does not want the event, or `None` if it does.
    fn unwanted(hook: &RegisteredHook, event: &Event) -> Option<Self> {
        let hook = &hook.hook;
        if !hook.enabled {
            let switch = hook.execution.switches.disabled_by.clone();
            return Some(switch.map_or(Self::Disabled, Self::SwitchedOff));
        }
        if !hook.events.contains(event.kind) {
            return Some(Self::OtherEvents(event.kind));
        }
        if let (Some(wanted), Some(host)) = (&hook.execution.host_event, &event.host_event)
            && *wanted != host.name
        {
            return Some(Self::OtherHostEvent(Arc::clone(&host.name)));
        }
        Self::by_matcher(hook, event).or_else(|| {
            let condition = hook.execution.condition.as_ref()?;
            (!condition.holds(event)).then(|| Self::LacksCondition(condition.text()))
        })
    }

    fn by_matcher(hook: &Hook, event: &Event) -> Option<Self> {
        let matcher = hook.matcher.as_ref()?;
        let field = hook.dialect.match_field(event.kind)?.as_str();
        match event.match_text() {
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

impl fmt::Display for SkipReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Disabled => f.write_str("it is disabled"),
            Self::SwitchedOff(switch) => write!(f, "{switch} switches it off"),
            Self::OtherEvents(kind) => write!(f, "{kind} is not among its events"),
            Self::OtherHostEvent(name) => write!(f, "`{name}` is not among its events"),
            Self::RunByHost(host) => write!(f, "{host} runs it itself, since it is connected"),
            Self::SameAs(hook) => write!(f, "`{hook}` runs the same, and once is enough"),
            Self::LacksCondition(text) => write!(f, "it needs {text}"),
            Self::NotAccepted { pattern, field, value } => {
                write!(f, "its matcher `{pattern}` does not accept {field} `{value}`")
            }
            Self::NothingToMatch { field } => write!(f, "it has a matcher, and the event has no {field}"),
        }
    }
}
