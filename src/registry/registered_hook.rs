//! A hook of a snapshot, with what is prepared for it when it is registered, and a required hook that is missing.

use std::{collections::BTreeSet, sync::Arc};

use crate::model::{Event, EventKind, EventKinds, Hook, HookName, HostEvent, PartialEvent, Redactor};

/// A hook of a snapshot.
#[derive(Debug)]
pub struct RegisteredHook {
    /// The hook.
    pub hook: Hook,
    /// Its position in [`Snapshot::hooks`](super::Snapshot::hooks).
    pub rank: usize,
    /// Removes the hook's secrets from its output.
    pub(crate) redactor: Redactor,
}

/// The events for which a hook is required. Of host events, which have no kind of their own, these are names.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RequiredEvents {
    /// The kinds. With `host_event`, every host event is meant.
    pub kinds: EventKinds,
    /// Further host events.
    pub host_events: BTreeSet<Arc<str>>,
}

impl RequiredEvents {
    /// Every event that can be stopped.
    pub fn all() -> Self {
        Self { kinds: stoppable_kinds().collect(), host_events: BTreeSet::new() }
    }

    /// The events of a hook that can be stopped.
    pub fn of(hook: &Hook) -> Self {
        let mut events = Self::default();
        for kind in stoppable_kinds().filter(|kind| hook.events.contains(*kind)) {
            match &hook.execution.host_event {
                Some(name) if kind == EventKind::HostEvent => events.host_events.extend([Arc::clone(name)]),
                _ => events.kinds = events.kinds.iter().chain([kind]).collect(),
            }
        }
        events
    }

    /// Adds the event of a name.
    pub(crate) fn add(&mut self, name: &str) {
        match EventKind::from_name(name) {
            Some(kind) => self.kinds = self.kinds.iter().chain([kind]).collect(),
            None => self.host_events.extend([Arc::from(name)]),
        }
    }

    /// Their names.
    pub fn named(&self) -> Vec<&str> {
        let host_events = self.host_events.iter().map(|name| &**name);
        let kinds = self.kinds.iter().map(|kind| -> &str { kind.as_str() });
        kinds.chain(host_events).collect()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.kinds.is_empty() && self.host_events.is_empty()
    }

    /// Those that others do not cover.
    pub(crate) fn without(&self, others: &Self) -> Self {
        let has_all = others.kinds.contains(EventKind::HostEvent);
        let kinds = self.kinds.iter().filter(|kind| !others.kinds.contains(*kind)).collect();
        let host_events = self.host_events.difference(&others.host_events).filter(|_| !has_all).cloned();
        Self { kinds, host_events: host_events.collect() }
    }

    /// Whether an event of a kind, and of a name if it is a host event, may be one of them. What is not known may be
    /// anything.
    fn may_have(&self, kind: Option<EventKind>, host_event: Option<&HostEvent>) -> bool {
        match (kind, host_event) {
            (None, _) => !self.is_empty(),
            (Some(EventKind::HostEvent), Some(known)) => {
                self.kinds.contains(EventKind::HostEvent) || self.host_events.contains(&known.name)
            }
            (Some(EventKind::HostEvent), None) => {
                self.kinds.contains(EventKind::HostEvent) || !self.host_events.is_empty()
            }
            (Some(kind), _) => self.kinds.contains(kind),
        }
    }

    /// The kind of the first one.
    fn first_kind(&self) -> Option<EventKind> {
        self.kinds.iter().next().or_else(|| (!self.host_events.is_empty()).then_some(EventKind::HostEvent))
    }
}

/// The kinds of event that can be stopped; of host events, some can.
fn stoppable_kinds() -> impl Iterator<Item = EventKind> {
    let is_stoppable = |kind: &EventKind| kind.is_interceptor() || *kind == EventKind::HostEvent;
    EventKind::ALL.iter().copied().filter(is_stoppable)
}

/// A required hook that is not in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingHook {
    /// Its name.
    pub hook: HookName,
    /// The events that are blocked, as far as they can be stopped.
    pub events: RequiredEvents,
    /// Why it is not in force, and what to do.
    pub why: String,
}

impl MissingHook {
    /// Whether it blocks an event that can be stopped.
    pub(crate) fn blocks(&self, event: &Event) -> bool {
        self.events.may_have(Some(event.kind), event.host_event.as_ref())
    }

    /// The kind of a blocked event of which only a part is known, if it may be blocked.
    pub(crate) fn blocked_kind(&self, event: &PartialEvent) -> Option<EventKind> {
        let may_block = event.may_be_stopped() && self.events.may_have(event.kind, event.host_event.as_ref());
        event.kind.or_else(|| self.events.first_kind()).filter(|_| may_block)
    }

    /// Why an event is blocked.
    pub(crate) fn reason(&self) -> String {
        format!("the required hook `{}` is not in force: {}", self.hook, self.why)
    }
}
