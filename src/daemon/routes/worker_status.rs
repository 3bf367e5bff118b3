//! The part of the status about workers that do not serve.

use serde::{Deserialize, Serialize};

use crate::{
    Orchestrator,
    daemon::schema::{Component, object, string},
};

/// A hook whose workers do not serve.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct DegradedHook {
    /// The ID of the workspace.
    pub workspace: String,
    /// The name of the hook.
    pub hook: String,
    /// `no_hello`: each event gets a process of its own; `failing`: events wait for the next worker.
    pub reason: String,
    /// What the last worker ended with.
    pub why: String,
}

pub(super) static DEGRADED_HOOK: Component = Component::built("DegradedHook", || {
    object(
        "A hook whose workers do not serve.",
        [
            ("workspace", string("The ID of the workspace.")),
            ("hook", string("The name of the hook.")),
            (
                "reason",
                string("`no_hello`: each event gets a process; `failing`: events wait for the next worker."),
            ),
            ("why", string("What the last worker ended with.")),
        ],
        &[],
    )
});

/// At most so many of the hooks whose workers do not serve.
pub(super) fn degraded_workers(orchestrator: &Orchestrator, most: usize) -> Vec<DegradedHook> {
    let degraded = orchestrator.hook_workers().into_iter().filter_map(|(workspace, workers)| {
        let (degradation, why) = workers.degradation?;
        Some(DegradedHook {
            workspace: workspace.to_string(),
            hook: workers.hook.to_string(),
            reason: degradation.as_str().to_owned(),
            why: why.to_string(),
        })
    });
    degraded.take(most).collect()
}
