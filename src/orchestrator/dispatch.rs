//! The path of one event: its plan, admission, its run's actor, its outcome. Owns every reason for which an
//! event gets no outcome; refuses to queue without bound.

use std::{
    future::{Ready, ready},
    sync::{Arc, atomic::Ordering},
    time::SystemTime,
};

use futures_util::future::{BoxFuture, Either};
use tokio::{sync::oneshot, time::Instant};

use super::{Inner, Orchestrator};
use crate::{
    dialect,
    model::{Arrival, DialectName, Event, EventError, JsonError, Outcome, WorkspaceId},
    registry::Plan,
    run::{
        Caller, EventRequest, InFlightGuard, LeaseError, RunKey, RunLease, RunMessage, RunRejection,
        next_decision_id,
    },
    supervisor::{PublishedSnapshot, SpawnRunError, SupervisorMessage},
    telemetry::{ShedReason, ShedStage},
};

/// How often an actor that went away between two steps is looked for again. Once is rare; more means that
/// something kills the actors of this run as fast as they are made.
const MOST_ATTEMPTS: usize = 3;

/// Why an event got no outcome. The host decides what that means; nothing was decided for it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DispatchError {
    /// The event cannot be read.
    #[error(transparent)]
    Event(#[from] EventError),
    /// The event names a workspace that is not registered.
    #[error("unknown workspace `{0}`")]
    UnknownWorkspace(WorkspaceId),
    /// The event names no workspace, and there is more than one.
    #[error("the event names no workspace, and there is more than one; set `workspace_id`")]
    NoWorkspace,
    /// There is too much to do.
    #[error("overloaded: {0}; try again later")]
    Overloaded(Overload),
    /// The actor of the run died while the event was in its hands.
    #[error("the run's actor died while it worked on the event; hooks may have run")]
    RunLost,
    /// hookyard takes no more events.
    #[error("hookyard is shutting down")]
    ShuttingDown,
}

/// Which limit was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Overload {
    /// `limits.in_flight`
    #[error("as many events are under way as `limits.in_flight` allows")]
    InFlight,
    /// `limits.pending_per_run`
    #[error("the run has as many events in hand as `limits.pending_per_run` allows")]
    PendingPerRun,
    /// `limits.pending_deadline`
    #[error("the event waited longer for its turn than `limits.pending_deadline`")]
    PendingDeadline,
    /// `limits.runs`
    #[error("as many runs are known as `limits.runs` allows")]
    Runs,
}

impl DispatchError {
    pub(super) fn id(field: &'static str, source: crate::model::IdError) -> Self {
        Self::Event(EventError::Id { field, source })
    }
}

impl From<JsonError> for DispatchError {
    fn from(error: JsonError) -> Self {
        Self::Event(error.into())
    }
}

impl Orchestrator {
    /// Takes an event through its hooks and answers with one outcome. What needs no waiting is done at the call;
    /// dropping the future cancels the event and kills its processes.
    ///
    /// Returns an error if the event has no workspace, a limit is reached, hookyard is shutting down, or the
    /// run's actor dies.
    pub fn dispatch(&self, event: Event) -> impl Future<Output = Result<Outcome, DispatchError>> + Send {
        let snapshots = self.0.registry.load();
        let id = event.workspace_id.as_ref();
        match (snapshots.find(id), id) {
            (Some(published), _) => self.begin(published, event),
            (None, Some(id)) => now(Err(DispatchError::UnknownWorkspace(id.clone()))),
            (None, None) => now(Err(DispatchError::NoWorkspace)),
        }
    }

    /// The same for a workspace that the caller chooses, whatever workspace the event names.
    ///
    /// Returns an error as [`Orchestrator::dispatch`] does.
    pub fn dispatch_in(
        &self,
        workspace: &WorkspaceId,
        event: Event,
    ) -> impl Future<Output = Result<Outcome, DispatchError>> + Send {
        match self.0.registry.load().find(Some(workspace)) {
            Some(published) => self.begin(published, event),
            None => now(Err(DispatchError::UnknownWorkspace(workspace.clone()))),
        }
    }

    /// The same for an event as a host of a dialect sends it. One that cannot be read is blocked where a hook
    /// with `on_error: deny` might have cared for it.
    ///
    /// Returns an error as [`Orchestrator::dispatch`] does, and if the event cannot be read.
    pub async fn dispatch_json(&self, dialect: DialectName, bytes: &[u8]) -> Result<Outcome, DispatchError> {
        match self.read(dialect, bytes) {
            Ok(event) => self.dispatch(event).await,
            Err(error) => self.refuse_unread(None, dialect, bytes, &error).ok_or(DispatchError::Event(error)),
        }
    }

    /// Reads an event as a host of a dialect sends it.
    ///
    /// Returns an error that names the field if it cannot be read, or if it is larger than `limits.payload`.
    pub fn read(&self, dialect: DialectName, bytes: &[u8]) -> Result<Event, EventError> {
        let limit = self.0.settings.limits.payload;
        if bytes.len() > limit {
            return Err(EventError::TooLarge { size: bytes.len(), limit });
        }
        dialect::named(dialect).read_event(bytes)
    }

    /// Counts an event that was turned away before it was read.
    #[cfg(feature = "daemon")]
    pub(crate) fn turned_away(&self) {
        self.0.context.meters.shed(ShedStage::Admission, ShedReason::Full);
    }

    /// Does for an event what needs no waiting: all there is to do for one that no hook wants.
    fn begin<'a>(&'a self, published: &PublishedSnapshot, event: Event) -> Dispatch<'a> {
        let inner = &*self.0;
        let snapshot = &published.snapshot;
        if inner.closed.load(Ordering::Acquire) {
            return now(Err(inner.shutting_down()));
        }
        let directory = &inner.context.directory;
        let key = RunKey { workspace: snapshot.workspace().id.clone(), run: event.run_id.clone() };
        if event.is_interceptor()
            && let Some(halt) = directory.halted(&key)
        {
            let outcome = halt.outcome(event.kind, snapshot.version());
            inner.context.tell_halted(&key, event, &outcome, snapshot);
            return now(Ok(outcome));
        }
        let plan = snapshot.plan(&event);
        if !plan.is_empty() {
            return Either::Right(Box::pin(inner.run(published.clone(), key, event, plan)));
        }
        let outcome = Outcome::proceed(next_decision_id(), event.kind, snapshot.version());
        if event.ends_run()
            && let Some(heard) = directory.end_quietly(&key)
        {
            return Either::Right(Box::pin(async move {
                // It ends without a word only if the actor has died, and the run with it.
                heard.await.ok();
                Ok(outcome)
            }));
        }
        now(Ok(outcome))
    }
}

/// What becomes of an event.
type Answer = Result<Outcome, DispatchError>;

/// An event under way. What has to be waited for has a place of its own: most events are wanted by no hook, and whoever
/// sends them carries no room for more.
type Dispatch<'a> = Either<Ready<Answer>, BoxFuture<'a, Answer>>;

fn now<'a>(answer: Answer) -> Dispatch<'a> {
    Either::Left(ready(answer))
}

impl Inner {
    /// Brings an event to its run's actor, and waits for the outcome.
    async fn run(&self, published: PublishedSnapshot, key: RunKey, mut event: Event, plan: Plan) -> Answer {
        let PublishedSnapshot { snapshot, meters } = published;
        let accepted = Instant::now();
        event.arrival.get_or_insert_with(|| Arrival::new(SystemTime::now(), next_decision_id()));
        let permit = Arc::clone(&self.admission).try_acquire_owned().map_err(|_| self.no_place())?;
        let (waiter, answer) = oneshot::channel();
        let request = |lease| EventRequest {
            event: Arc::new(event),
            plan,
            workspace: Arc::clone(snapshot.workspace()),
            meters,
            snapshot_version: snapshot.version(),
            accepted,
            caller: Caller { waiter, guard: Arc::new(InFlightGuard { _lease: lease, _permit: permit }) },
        };
        let lease = self.lease(&key).await?;
        let actor = lease.actor().clone();
        // A send fails only if the actor has just died; its record is cleared and the host may try again.
        actor.cast(RunMessage::Dispatch(Box::new(request(lease)))).map_err(|_| DispatchError::RunLost)?;
        let mut waiting = Waiting { actor: Some(actor) };
        let answer = answer.await;
        waiting.actor = None;
        match answer {
            Ok(Ok(outcome)) => Ok(outcome),
            Ok(Err(RunRejection::PendingDeadline)) => {
                Err(DispatchError::Overloaded(Overload::PendingDeadline))
            }
            Err(_) if self.closed.load(Ordering::Acquire) => Err(DispatchError::ShuttingDown),
            Err(_) => Err(DispatchError::RunLost),
        }
    }

    /// Why there is no place for an event. A shutdown takes them all.
    fn no_place(&self) -> DispatchError {
        if self.closed.load(Ordering::Acquire) { self.shutting_down() } else { self.shed(Overload::InFlight) }
    }

    /// A lease of the run's actor, which the supervisor makes if there is none.
    async fn lease(&self, key: &RunKey) -> Result<RunLease, DispatchError> {
        let limit = u32::try_from(self.settings.limits.pending_per_run.get()).unwrap_or(u32::MAX);
        let mut handle = self.context.directory.find(key).and_then(|record| record.handle());
        for _ in 0..MOST_ATTEMPTS {
            match handle.map(|handle| handle.lease(limit)) {
                Some(Ok(lease)) if lease.is_alive() => return Ok(lease),
                Some(Err(LeaseError::Full)) => return Err(self.shed(Overload::PendingPerRun)),
                Some(Ok(_) | Err(LeaseError::Closed)) | None => {}
            }
            let spawn =
                ractor::call!(self.supervisor, |reply| SupervisorMessage::SpawnRun(key.clone(), reply));
            handle = match spawn {
                Ok(Ok(handle)) => Some(handle),
                Ok(Err(SpawnRunError::TooManyRuns)) => return Err(self.shed(Overload::Runs)),
                Ok(Err(SpawnRunError::ShuttingDown)) | Err(_) => return Err(self.shutting_down()),
            };
        }
        Err(DispatchError::RunLost)
    }

    fn shed(&self, overload: Overload) -> DispatchError {
        let at = match overload {
            Overload::InFlight | Overload::Runs => ShedStage::Admission,
            Overload::PendingPerRun | Overload::PendingDeadline => ShedStage::Run,
        };
        self.context.meters.shed(at, ShedReason::Full);
        DispatchError::Overloaded(overload)
    }

    fn shutting_down(&self) -> DispatchError {
        self.context.meters.shed(ShedStage::Admission, ShedReason::Shutdown);
        DispatchError::ShuttingDown
    }
}

/// Tells the run's actor when the caller stops waiting.
struct Waiting {
    actor: Option<ractor::ActorRef<RunMessage>>,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some(actor) = self.actor.take() {
            // A send fails only if the actor is gone, and the event with it.
            drop(actor.cast(RunMessage::Abandoned));
        }
    }
}
