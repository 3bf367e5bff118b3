//! Blocks for events whose hooks could not be asked, where a hook that fails closed might have cared for them. Without
//! such a hook there is no block: the host decides.

use std::fmt::Display;

use super::{error::DispatchError, handle::Orchestrator};
use crate::{
    dialect,
    model::{
        DialectName, Event, EventError, EventKind, FailurePolicy, Hook, Outcome, PartialEvent, Verdict,
        WorkspaceId,
    },
    registry::{MissingHook, Snapshot},
    run::next_decision_id,
};

impl Orchestrator {
    /// The block for an unreadable event where a hook that fails closed might have cared for it: what cannot be
    /// read cannot be checked. If not even the event's kind can be read, every such hook counts; without a workspace,
    /// the hooks of every workspace count.
    pub fn block_unreadable(
        &self,
        workspace: Option<&WorkspaceId>,
        dialect: DialectName,
        bytes: &[u8],
        error: &EventError,
    ) -> Option<Outcome> {
        self.block_unasked(workspace, &dialect::read_partial(dialect, bytes), error)
    }

    /// The block for an event of which only a part is known, where a hook of the workspace, or without one of any
    /// workspace, fails closed and might have cared for it.
    pub(crate) fn block_unasked(
        &self,
        workspace: Option<&WorkspaceId>,
        event: &PartialEvent,
        error: &dyn Display,
    ) -> Option<Outcome> {
        let registry = self.0.registry.load();
        match workspace {
            Some(_) => registry
                .find(workspace)
                .and_then(|published| block_by_guard(&published.snapshot, event, error)),
            None => registry.all().find_map(|snapshot| block_by_guard(snapshot, event, error)),
        }
    }

    /// The block for an event that was turned away before its hooks ran, where one of them fails closed. For hosts that
    /// proceed if they get no answer.
    pub fn block_undispatched(&self, event: &Event, error: &DispatchError) -> Option<Outcome> {
        let snapshot = self.snapshot(event.workspace_id.as_ref())?;
        if !event.is_interceptor() {
            return None;
        }
        if let Some(missing) = snapshot.missing_for(event) {
            return Some(block_missing(missing, event.kind, &snapshot));
        }
        let plan = snapshot.plan(event);
        let hook = plan.steps().iter().map(|registered| &registered.hook).find(|hook| is_guard(hook))?;
        Some(block(hook, event.kind, error, &snapshot))
    }
}

/// The block by the first guard that the event might have reached.
fn block_by_guard(snapshot: &Snapshot, event: &PartialEvent, error: &dyn Display) -> Option<Outcome> {
    let mut missing = snapshot.missing_hooks().iter();
    if let Some((missing, kind)) = missing.find_map(|missing| Some((missing, missing.blocked_kind(event)?))) {
        return Some(block_missing(missing, kind, snapshot));
    }
    let mut guards = snapshot.hooks().iter().map(|registered| &registered.hook).filter(|hook| is_guard(hook));
    guards.find_map(|hook| Some(block(hook, possible_kind(hook, event)?, error, snapshot)))
}

/// The first kind among a hook's events that the event may have had and that can be stopped.
fn possible_kind(hook: &Hook, event: &PartialEvent) -> Option<EventKind> {
    if !event.may_be_stopped() {
        return None;
    }
    let wants_another = match (&hook.execution.host_event, &event.host_event) {
        (Some(wanted), Some(known)) => *wanted != known.name,
        _ => false,
    };
    let may_be = |kind: &EventKind| match event.kind {
        Some(known) => known == *kind,
        None => kind.is_interceptor() || *kind == EventKind::HostEvent,
    };
    hook.events.iter().find(may_be).filter(|_| !wants_another)
}

fn is_guard(hook: &Hook) -> bool {
    hook.enabled && closed_policy(hook).is_some()
}

/// The block of an event whose required hook is not in force.
pub(super) fn block_missing(missing: &MissingHook, kind: EventKind, snapshot: &Snapshot) -> Outcome {
    Outcome {
        verdict: Verdict::Block,
        reason: Some(missing.reason().into()),
        by: Some(missing.hook.clone()),
        ..Outcome::proceed(next_decision_id(), kind, snapshot.version())
    }
}

/// The first policy of a hook that does not let an event pass when the hook fails.
fn closed_policy(hook: &Hook) -> Option<(&'static str, FailurePolicy)> {
    let mut policies = [("on_error", hook.on_error), ("on_timeout", hook.on_timeout)].into_iter();
    policies.find(|(_, policy)| *policy != FailurePolicy::Ignore)
}

fn block(hook: &Hook, kind: EventKind, error: &dyn Display, snapshot: &Snapshot) -> Outcome {
    let (name, policy) = closed_policy(hook).unwrap_or(("on_error", hook.on_error));
    let reason = format!("hook `{}` could not be asked: {error} ({name}: {})", hook.name, policy.as_str());
    Outcome {
        verdict: Verdict::Block,
        reason: Some(reason.into()),
        by: Some(hook.name.clone()),
        ..Outcome::proceed(next_decision_id(), kind, snapshot.version())
    }
}
