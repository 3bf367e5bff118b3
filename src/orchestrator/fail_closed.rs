//! Blocks for events whose hooks could not be asked, where a hook with `on_error: deny` might have cared for them.
//! Without such a hook there is no block: the host decides.

use super::{error::DispatchError, handle::Orchestrator};
use crate::{
    dialect,
    model::{DialectName, Event, EventError, EventKind, FailurePolicy, Hook, Outcome, Verdict, WorkspaceId},
    registry::Snapshot,
    run::next_decision_id,
};

impl Orchestrator {
    /// The block for an unreadable event where a hook with `on_error: deny` might have cared for it: what cannot be
    /// read cannot be checked. If not even the event's kind can be read, every such hook counts; without a workspace,
    /// the hooks of every workspace count.
    pub fn block_unreadable(
        &self,
        workspace: Option<&WorkspaceId>,
        dialect: DialectName,
        bytes: &[u8],
        error: &EventError,
    ) -> Option<Outcome> {
        let kind = dialect::named(dialect).kind_of(bytes);
        let registry = self.0.registry.load();
        match workspace {
            Some(_) => registry
                .find(workspace)
                .and_then(|published| block_by_guard(&published.snapshot, kind, error)),
            None => registry.all().find_map(|snapshot| block_by_guard(snapshot, kind, error)),
        }
    }

    /// The block for an event that was turned away before its hooks ran, where one of them has `on_error: deny`. For
    /// hosts that proceed if they get no answer.
    pub fn block_undispatched(&self, event: &Event, error: &DispatchError) -> Option<Outcome> {
        let snapshot = self.snapshot(event.workspace_id.as_ref())?;
        if !event.is_interceptor() {
            return None;
        }
        let plan = snapshot.plan(event);
        let hook = plan.steps().iter().map(|registered| &registered.hook).find(|hook| is_guard(hook))?;
        Some(block(hook, event.kind, error, &snapshot))
    }
}

/// The block by the first guard that an event of this kind, or of any kind if none is known, might have reached.
fn block_by_guard(snapshot: &Snapshot, kind: Option<EventKind>, error: &EventError) -> Option<Outcome> {
    let mut guards = snapshot.hooks().iter().map(|registered| &registered.hook).filter(|hook| is_guard(hook));
    guards.find_map(|hook| Some(block(hook, possible_kind(hook, kind)?, error, snapshot)))
}

/// The first interceptor kind among a hook's events that the unreadable event may have had.
fn possible_kind(hook: &Hook, known: Option<EventKind>) -> Option<EventKind> {
    hook.events.iter().find(|kind| kind.is_interceptor() && known.is_none_or(|known| known == *kind))
}

fn is_guard(hook: &Hook) -> bool {
    hook.enabled && hook.on_error == FailurePolicy::Deny
}

fn block(hook: &Hook, kind: EventKind, error: &dyn std::error::Error, snapshot: &Snapshot) -> Outcome {
    let reason = format!("hook `{}` could not be asked: {error} (on_error: deny)", hook.name);
    Outcome {
        verdict: Verdict::Block,
        reason: Some(reason.into()),
        by: Some(hook.name.clone()),
        ..Outcome::proceed(next_decision_id(), kind, snapshot.version())
    }
}
