//! What operators do with runs: look at them and cancel them. Owns how long is waited for what a run's actor says;
//! refuses to hold up any run for being looked at.

use std::{sync::Arc, time::Duration};

use futures_util::future::join_all;
use serde::Serialize;
use tokio::{
    sync::oneshot,
    time::{Instant, timeout_at},
};

use super::Orchestrator;
use crate::{
    model::{RunId, WorkspaceId},
    run::{RunActivity, RunEntry, RunKey, RunMessage, RunStatus},
};

/// How long actors may take to say what they have in hand. They never wait for a handler, so one that takes longer is
/// held up by a closure of the embedding program.
const PATIENCE: Duration = Duration::from_secs(1);

/// How many runs of a workspace are told to end at once.
const CANCELLED_AT_ONCE: usize = 256;

/// How often a run whose actor comes or goes in this very moment is told to end.
const MOST_ATTEMPTS: usize = 8;

/// Which runs to list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunFilter {
    /// Only those of this workspace.
    pub workspace: Option<WorkspaceId>,
    /// At most so many; 100 unless told otherwise.
    pub limit: usize,
}

impl Default for RunFilter {
    fn default() -> Self {
        Self { workspace: None, limit: 100 }
    }
}

/// Runs that have an actor.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct RunList {
    /// The runs, those that have been there longest first.
    pub runs: Vec<RunStatus>,
    /// How many more there are beyond the limit.
    pub left_out: usize,
}

/// What was cancelled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Cancelled {
    /// How many runs were ended and forgotten.
    pub runs: usize,
    /// How many of their events were under way or waited for their turn.
    pub events: usize,
}

impl Cancelled {
    fn and(self, other: Self) -> Self {
        Self { runs: self.runs + other.runs, events: self.events + other.events }
    }
}

impl Orchestrator {
    /// The runs with an actor: work in flight, or work not long ago. Those that have been there longest come first,
    /// since one that is stuck is among them.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use hookyard::{Orchestrator, RunFilter};
    ///
    /// let orchestrator = Orchestrator::builder().start().await?;
    /// let list = orchestrator.runs(RunFilter { limit: 10, ..RunFilter::default() }).await;
    /// assert!(list.runs.is_empty() && list.left_out == 0);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn runs(&self, filter: RunFilter) -> RunList {
        let directory = Arc::clone(&self.0.context.directory);
        let walk = move || directory.oldest_active(filter.workspace.as_ref(), filter.limit);
        // It ends without a result only if the runtime goes down.
        let (found, left_out) = tokio::task::spawn_blocking(walk).await.unwrap_or_default();
        RunList { runs: self.described(found).await, left_out }
    }

    /// The runs with this id, of one workspace or of all that are registered. Also those without an actor.
    pub async fn run_status(&self, workspace: Option<&WorkspaceId>, run: &RunId) -> Vec<RunStatus> {
        let directory = &self.0.context.directory;
        let found = |key: RunKey| Some(RunEntry { record: directory.find(&key)?, key });
        let found = self.keys(workspace, run).into_iter().filter_map(found).collect();
        self.described(found).await
    }

    /// Ends the runs with this id, of one workspace or of all that are registered, and forgets them: the next event
    /// of such a run begins afresh. The hooks of events under way are cancelled and their processes killed.
    /// Interceptor events under way or waiting for their turn are answered with `halt`, lifecycle events with
    /// `proceed`.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use hookyard::{Orchestrator, model::RunId};
    ///
    /// let orchestrator = Orchestrator::builder().start().await?;
    /// let cancelled = orchestrator.cancel_run(None, &RunId::new("nobody-knows-it")?).await;
    /// assert_eq!(cancelled.runs, 0);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn cancel_run(&self, workspace: Option<&WorkspaceId>, run: &RunId) -> Cancelled {
        self.cancel(&self.keys(workspace, run)).await
    }

    /// The same for all runs of a workspace, registered or not. A run that begins meanwhile may be left out.
    pub async fn cancel_runs_of(&self, workspace: &WorkspaceId) -> Cancelled {
        let (directory, workspace) = (Arc::clone(&self.0.context.directory), workspace.clone());
        let walk = move || directory.of_workspace(&workspace);
        let keys = tokio::task::spawn_blocking(walk).await.unwrap_or_default();
        self.cancel(&keys).await
    }

    /// What a run with this id is called, in one workspace or in all.
    fn keys(&self, workspace: Option<&WorkspaceId>, run: &RunId) -> Vec<RunKey> {
        let key = |workspace: &WorkspaceId| RunKey { workspace: workspace.clone(), run: run.clone() };
        match workspace {
            Some(workspace) => vec![key(workspace)],
            None => self.0.registry.load().workspaces().map(key).collect(),
        }
    }

    /// What is known of runs, with what their actors say. All are asked before any is waited for.
    async fn described(&self, found: Vec<RunEntry>) -> Vec<RunStatus> {
        let by = Instant::now() + PATIENCE;
        let ask = |found: RunEntry| (self.0.context.directory.status(&found), ask(&found));
        let asked: Vec<_> = found.into_iter().map(ask).collect();
        let mut runs = Vec::with_capacity(asked.len());
        for (mut status, answer) in asked {
            if let Some(answer) = answer {
                status.in_hand = timeout_at(by, answer).await.ok().and_then(Result::ok);
            }
            runs.push(status);
        }
        runs
    }

    async fn cancel(&self, keys: &[RunKey]) -> Cancelled {
        let mut cancelled = Cancelled::default();
        for some in keys.chunks(CANCELLED_AT_ONCE) {
            let each = join_all(some.iter().map(|key| self.cancel_one(key))).await;
            cancelled = each.into_iter().fold(cancelled, Cancelled::and);
            // Runs without an actor are forgotten without a wait, however many they are.
            tokio::task::yield_now().await;
        }
        cancelled
    }

    async fn cancel_one(&self, key: &RunKey) -> Cancelled {
        let directory = &self.0.context.directory;
        for _ in 0..MOST_ATTEMPTS {
            let Some(record) = directory.find(key) else { break };
            // A run that has as many events in hand as it may can be cancelled all the same.
            match record.handle().map(|handle| handle.lease(u32::MAX)) {
                Some(Ok(lease)) if lease.is_alive() => {
                    let (reply, answer) = oneshot::channel();
                    let actor = lease.actor().clone();
                    // A send fails only if the actor has just died, and then there is no answer either.
                    drop(actor.cast(RunMessage::Cancel(lease, reply)));
                    if let Ok(events) = answer.await {
                        return Cancelled { runs: 1, events };
                    }
                }
                _ if directory.end(key) => return Cancelled { runs: 1, events: 0 },
                _ => {}
            }
        }
        Cancelled::default()
    }
}

/// Asks the actor of a run, if it has one that takes messages.
fn ask(found: &RunEntry) -> Option<oneshot::Receiver<RunActivity>> {
    let handle = found.record.handle()?;
    let (reply, answer) = oneshot::channel();
    handle.actor.cast(RunMessage::Describe(reply)).ok().map(|()| answer)
}
