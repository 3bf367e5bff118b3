//! Listing, inspecting and cancelling runs, for operators.

use std::{sync::Arc, time::Duration};

use futures_util::future::join_all;
use serde::Serialize;
use tokio::{
    sync::oneshot,
    time::{Instant, timeout, timeout_at},
};

use super::handle::Orchestrator;
use crate::{
    model::{RunId, RunKey, WorkspaceId},
    run::{OutboxEntry, RunActivity, RunEntry, RunMessage, RunStatus},
};

/// How long run actors may take to describe what they have in hand. They never wait for a handler, so one that takes
/// longer is held up by a closure of the embedding program.
const DESCRIBE_TIMEOUT: Duration = Duration::from_secs(1);

/// How long the answer to an operator waits for a disk that hangs.
const LONGEST_SAVE: Duration = Duration::from_secs(2);

/// How many runs of a workspace are cancelled concurrently.
const CONCURRENT_CANCELS: usize = 256;

/// How often cancelling is tried for a run whose actor starts or stops at that very moment.
const MAX_ATTEMPTS: usize = 8;

/// Which runs to list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunFilter {
    /// Only those of this workspace.
    pub workspace: Option<WorkspaceId>,
    /// At most this many; the default is 100.
    pub limit: usize,
}

impl Default for RunFilter {
    fn default() -> Self {
        Self { workspace: None, limit: 100 }
    }
}

/// Runs that have an actor.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RunList {
    /// The runs, those that have been there longest first.
    pub runs: Vec<RunStatus>,
    /// How many more there are beyond the limit.
    pub left_out: usize,
}

/// How much was cancelled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct CancelSummary {
    /// How many runs were ended and forgotten.
    pub runs: usize,
    /// How many of their events ran hooks, waited for their turn, or waited in the outbox.
    pub events: usize,
}

impl CancelSummary {
    fn plus(self, other: Self) -> Self {
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
        let keys = self.keys(workspace, run).into_iter();
        let found = keys.filter_map(|key| Some(RunEntry { record: directory.find(&key)?, key })).collect();
        self.described(found).await
    }

    /// Ends the runs with this id, of one workspace or of all that are registered, and forgets them: the next event
    /// of such a run begins afresh. The hooks of events under way are cancelled and their processes killed.
    /// Interceptor events under way or waiting for their turn are answered with `halt`, lifecycle events with
    /// `proceed`. Lifecycle events that wait in the outbox are removed; dead letters stay.
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
    pub async fn cancel_run(&self, workspace: Option<&WorkspaceId>, run: &RunId) -> CancelSummary {
        let keys = self.keys(workspace, run);
        let is_cancelled = |entry: &OutboxEntry| {
            entry.event.run_id == *run && keys.iter().any(|key| key.workspace == entry.workspace)
        };
        self.cancel_with_outbox(&keys, is_cancelled).await
    }

    /// Cancels all runs of a workspace, registered or not. A run that begins meanwhile may be left out.
    pub async fn cancel_runs_of(&self, workspace: &WorkspaceId) -> CancelSummary {
        let keys = self.keys_of(workspace).await;
        self.cancel_with_outbox(&keys, |entry| entry.workspace == *workspace).await
    }

    /// Cancels all runs of a workspace, and leaves its outbox as it is.
    pub(super) async fn cancel_actors_of(&self, workspace: &WorkspaceId) -> CancelSummary {
        self.cancel(&self.keys_of(workspace).await).await
    }

    /// Cancels runs, and takes their events out of the outbox.
    async fn cancel_with_outbox(
        &self,
        keys: &[RunKey],
        is_cancelled: impl Fn(&OutboxEntry) -> bool,
    ) -> CancelSummary {
        let outbox = self.0.context.outbox.load_full();
        let take_back = || outbox.as_ref().map_or(0, |outbox| outbox.cancel(&is_cancelled));
        // Before, so that none of them starts again; and after, because one that has just failed waits again.
        let before = take_back();
        let mut cancelled = self.cancel(keys).await;
        cancelled.events += before + take_back();
        self.changes_stored().await;
        cancelled
    }

    /// Waits until what an operator has changed is stored. A disk that takes too long, or cannot be written, is no reason to
    /// refuse it.
    pub(crate) async fn changes_stored(&self) {
        if let Some(store) = self.0.context.directory.store()
            && timeout(LONGEST_SAVE, store.flushed()).await.is_err()
        {
            tracing::warn!("a change is answered before it is on disk: the disk takes too long");
        }
    }

    /// The runs of a workspace.
    async fn keys_of(&self, workspace: &WorkspaceId) -> Vec<RunKey> {
        let directory = Arc::clone(&self.0.context.directory);
        let workspace = workspace.clone();
        let walk = move || directory.of_workspace(&workspace);
        tokio::task::spawn_blocking(walk).await.unwrap_or_default()
    }

    /// The keys that a run with this id may have, in one workspace or in all.
    fn keys(&self, workspace: Option<&WorkspaceId>, run: &RunId) -> Vec<RunKey> {
        let workspaces: Vec<WorkspaceId> = match workspace {
            Some(workspace) => vec![workspace.clone()],
            None => self.0.registry.load().workspaces().cloned().collect(),
        };
        workspaces.into_iter().map(|workspace| RunKey { workspace, run: run.clone() }).collect()
    }

    /// The status of runs, with what their actors have in hand. All actors are asked before any answer is awaited.
    async fn described(&self, found: Vec<RunEntry>) -> Vec<RunStatus> {
        let by = Instant::now() + DESCRIBE_TIMEOUT;
        let directory = &self.0.context.directory;
        let asked: Vec<_> = found.iter().map(|run| (directory.status(run), ask(run))).collect();
        let mut runs = Vec::with_capacity(asked.len());
        for (mut status, answer) in asked {
            if let Some(answer) = answer {
                status.in_hand = timeout_at(by, answer).await.ok().and_then(Result::ok);
            }
            runs.push(status);
        }
        runs
    }

    async fn cancel(&self, keys: &[RunKey]) -> CancelSummary {
        let mut cancelled = CancelSummary::default();
        for some in keys.chunks(CONCURRENT_CANCELS) {
            let each = join_all(some.iter().map(|key| self.cancel_one(key))).await;
            cancelled = each.into_iter().fold(cancelled, CancelSummary::plus);
            // Runs without an actor are forgotten without a wait, however many they are.
            tokio::task::yield_now().await;
        }
        cancelled
    }

    async fn cancel_one(&self, key: &RunKey) -> CancelSummary {
        let directory = &self.0.context.directory;
        for _ in 0..MAX_ATTEMPTS {
            let Some(record) = directory.find(key) else { break };
            // A run that has as many events in hand as it may can be cancelled all the same.
            match record.handle().map(|handle| handle.lease(u32::MAX)) {
                Some(Ok(lease)) if lease.is_alive() => {
                    let (reply, answer) = oneshot::channel();
                    let actor = lease.actor().clone();
                    // A send fails only if the actor has just died, and then there is no answer either.
                    drop(actor.cast(RunMessage::Cancel(lease, reply)));
                    if let Ok(events) = answer.await {
                        return CancelSummary { runs: 1, events };
                    }
                }
                _ if directory.end(key) => return CancelSummary { runs: 1, events: 0 },
                _ => {}
            }
        }
        // Other nodes may know it.
        #[cfg(feature = "cluster")]
        if self.0.end_elsewhere(key).await {
            return CancelSummary { runs: 1, events: 0 };
        }
        CancelSummary::default()
    }
}

/// Asks the actor of a run, if it has one that takes messages.
fn ask(found: &RunEntry) -> Option<oneshot::Receiver<RunActivity>> {
    let handle = found.record.handle()?;
    let (reply, answer) = oneshot::channel();
    handle.actor.cast(RunMessage::Describe(reply)).ok().map(|()| answer)
}

#[cfg(not(feature = "cluster"))]
impl super::handle::Inner {
    /// Claims nothing: there is no cluster in this build.
    #[expect(clippy::unused_async, reason = "as with clusters")]
    pub(super) async fn claim(
        &self,
        _: &RunKey,
        _: &crate::model::Event,
        _: &crate::registry::Plan,
    ) -> Result<Option<u64>, super::error::DispatchError> {
        Ok(None)
    }
}
