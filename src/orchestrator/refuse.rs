//! Blocks for events that no hook could be asked about. Owns when there is one: where a hook with `on_error: deny`
//! would have had its say, or might have. Refuses to block anything else: without such a hook it is the host's to
//! decide.

use super::{DispatchError, Orchestrator};
use crate::{
    dialect,
    model::{DialectName, Event, EventError, EventKind, FailurePolicy, Hook, Outcome, Verdict, WorkspaceId},
    registry::Snapshot,
    run::next_decision_id,
};

impl Orchestrator {
    /// The block that an unreadable event gets where a hook with `on_error: deny` might have cared for it:
    /// what cannot be read cannot be checked. Where not even its kind can be read, that is any such hook; where no
    /// workspace is given, that of any workspace.
    pub fn refuse_unread(
        &self,
        workspace: Option<&WorkspaceId>,
        dialect: DialectName,
        bytes: &[u8],
        error: &EventError,
    ) -> Option<Outcome> {
        let known = dialect::named(dialect).kind_of(bytes);
        let might_be = |kind: &EventKind| kind.is_interceptor() && known.is_none_or(|known| known == *kind);
        let guard = |snapshot: &Snapshot| {
            snapshot.hooks().iter().find_map(|registered| {
                let hook = &registered.hook;
                let kind = hook.events.iter().filter(|_| guards(hook)).find(might_be)?;
                Some(block(hook, kind, error, snapshot))
            })
        };
        let registry = self.0.registry.load();
        match workspace {
            Some(_) => registry.find(workspace).and_then(|published| guard(&published.snapshot)),
            None => registry.all().find_map(|snapshot| guard(snapshot)),
        }
    }

    /// The block that an event gets which was turned away before its hooks were asked, where one of them has
    /// `on_error: deny`. For hosts that take no answer for consent.
    pub fn refuse_unserved(&self, event: &Event, error: &DispatchError) -> Option<Outcome> {
        let snapshot = self.snapshot(event.workspace_id.as_ref())?;
        if !event.is_interceptor() {
            return None;
        }
        let plan = snapshot.plan(event);
        let hook = plan.steps().iter().map(|registered| &registered.hook).find(|hook| guards(hook))?;
        Some(block(hook, event.kind, error, &snapshot))
    }
}

fn guards(hook: &Hook) -> bool {
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
