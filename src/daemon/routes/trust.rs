//! The trust in hooks, as the status and the page of a workspace show it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    Orchestrator,
    daemon::schema::{object, optional_string, string, strings},
    model::{Hook, TrustState, WorkspaceId},
};

/// A hook that does not run because nobody has agreed to it as it is.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct NotTrusted {
    /// The ID of the workspace.
    pub workspace: String,
    /// The name of the hook.
    pub hook: String,
    /// `modified`, `missing` or `untrusted`.
    pub state: String,
}

pub(super) fn not_trusted_schema() -> Value {
    let hook = object(
        "A hook that does not run because nobody has agreed to it as it is.",
        [
            ("workspace", string("The ID of the workspace.")),
            ("hook", string("The name of the hook.")),
            ("state", string("`modified`, `missing` or `untrusted`.")),
        ],
        &[],
    );
    json!({
        "type": "array",
        "items": hook,
        "description": "The hooks that do not run because nobody has agreed to them as they are; at most 100.",
    })
}

/// The hooks that do not run because nobody has agreed to them as they are.
pub(super) fn not_trusted(orchestrator: &Orchestrator) -> impl Iterator<Item = NotTrusted> {
    orchestrator.snapshots().into_iter().flat_map(|snapshot| {
        let hooks = snapshot.hooks().iter().map(|registered| &registered.hook);
        let refused = hooks.filter(|hook| hook.trust.approval().is_none()).filter_map(|hook| {
            Some(NotTrusted {
                workspace: snapshot.workspace().id.to_string(),
                hook: hook.name.to_string(),
                state: hook.trust.state()?.to_string(),
            })
        });
        refused.collect::<Vec<_>>()
    })
}

pub(super) fn counts_schema() -> Value {
    json!({
        "type": "object",
        "additionalProperties": { "type": "integer", "minimum": 0 },
        "description": "How many hooks there are of each state of trust, such as `trusted`; none if trust is off.",
    })
}

/// How many hooks there are of each state of trust.
pub(super) fn counts(orchestrator: &Orchestrator) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for snapshot in orchestrator.snapshots() {
        for state in snapshot.hooks().iter().filter_map(|registered| registered.hook.trust.state()) {
            *counts.entry(state.to_string()).or_default() += 1;
        }
    }
    counts
}

/// What is known about the trust in one hook.
#[derive(Debug, Serialize)]
pub(super) struct HookTrustView {
    hook: String,
    state: Option<TrustState>,
    not_covered: Vec<String>,
    reason: Option<String>,
}

/// The schema of the trust in each hook of a workspace.
pub(super) fn hook_trust_schema() -> Value {
    let states: Vec<_> = TrustState::ALL.iter().map(|state| Some(state.as_str())).chain([None]).collect();
    let state = json!({
        "enum": states,
        "description": "What is known about the trust in it; null if trust is off.",
    });
    let hook = object(
        "What is known about the trust in one hook.",
        [
            ("hook", string("The name of the hook.")),
            ("state", state),
            ("not_covered", strings("What it runs or reads that the trust does not cover.")),
            ("reason", optional_string("Why it does not run; null if it does.")),
        ],
        &[],
    );
    json!({ "type": "array", "items": hook, "description": "The trust in each hook." })
}

impl HookTrustView {
    fn of(hook: &Hook) -> Self {
        Self {
            hook: hook.name.to_string(),
            state: hook.trust.state(),
            not_covered: hook.trust.not_covered().to_vec(),
            reason: hook.trust.refusal().map(str::to_owned),
        }
    }

    /// The trust in each hook of a workspace.
    pub(super) fn of_workspace(id: &WorkspaceId, orchestrator: &Orchestrator) -> Vec<Self> {
        let snapshot = orchestrator.snapshot(Some(id));
        let hooks = snapshot.iter().flat_map(|snapshot| snapshot.hooks());
        hooks.map(|registered| Self::of(&registered.hook)).collect()
    }
}
