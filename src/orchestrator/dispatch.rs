//! The path of one event: its plan, its admission, its run's actor and its outcome.

use std::{
    future::{Ready, ready},
    sync::{Arc, atomic::Ordering},
    time::SystemTime,
};

use futures_util::future::{BoxFuture, Either};
use tokio::{
    sync::{Semaphore, oneshot},
    time::Instant,
};

use super::{
    error::{DispatchError, Overload},
    fail_closed,
    handle::{Inner, Orchestrator, most_anonymous, most_in_flight},
};
use crate::{
    dialect,
    model::{Arrival, Delivery, DialectName, Event, EventError, EventKind, Outcome, RunKey, WorkspaceId},
    registry::Plan,
    run::{
        AdmissionPermit, Caller, CourseTicket, EventRequest, EventSender, HaltNotStored, IdempotencyKey,
        InFlightGuard, LeaseError, RunLease, RunMessage, detached_part_of, next_decision_id,
    },
    store::Unsure,
    supervisor::{PublishedSnapshot, SpawnRunError, SupervisorMessage},
    telemetry::{ShedReason, ShedStage},
};

/// How often a lease is tried again after the run's actor went away in between. Once is rare; more means that
/// something kills the actors of this run as fast as they are made.
const MAX_ATTEMPTS: usize = 3;

impl Orchestrator {
    /// Takes an event through its hooks and returns one outcome. Planning happens at the call, not at the first poll;
    /// dropping the future cancels the event and kills its processes.
    ///
    /// Returns an error if the event has no workspace, a limit is reached, hookyard is shutting down, or the
    /// run's actor dies.
    pub fn dispatch(&self, event: Event) -> impl Future<Output = Result<Outcome, DispatchError>> + Send {
        self.dispatch_from(EventSender::Known, event)
    }

    /// Dispatches an event of this sender.
    ///
    /// Returns an error as [`Orchestrator::dispatch`] does.
    pub(crate) fn dispatch_from(
        &self,
        sender: EventSender,
        event: Event,
    ) -> impl Future<Output = Result<Outcome, DispatchError>> + Send + Unpin {
        let snapshots = self.0.registry.load();
        let id = event.workspace_id.as_ref();
        match (snapshots.find(id), id) {
            (Some(published), _) => self.begin(sender, published, event),
            (None, Some(id)) => immediate(Err(DispatchError::UnknownWorkspace(id.clone()))),
            (None, None) => immediate(Err(DispatchError::NoWorkspace)),
        }
    }

    /// Dispatches an event in a workspace that the caller chooses, whatever workspace the event names.
    ///
    /// Returns an error as [`Orchestrator::dispatch`] does.
    pub fn dispatch_in(
        &self,
        workspace: &WorkspaceId,
        event: Event,
    ) -> impl Future<Output = Result<Outcome, DispatchError>> + Send {
        match self.0.registry.load().find(Some(workspace)) {
            Some(published) => self.begin(EventSender::Known, published, event),
            None => immediate(Err(DispatchError::UnknownWorkspace(workspace.clone()))),
        }
    }

    /// Dispatches an event in the JSON of a dialect's hosts. An event that cannot be read is blocked where a hook
    /// with `on_error: deny` might have cared for it.
    ///
    /// Returns an error as [`Orchestrator::dispatch`] does, and if the event cannot be read.
    pub async fn dispatch_json(&self, dialect: DialectName, bytes: &[u8]) -> Result<Outcome, DispatchError> {
        match self.read(dialect, bytes) {
            Ok(event) => self.dispatch(event).await,
            Err(error) => {
                self.block_unreadable(None, dialect, bytes, &error).ok_or(DispatchError::Event(error))
            }
        }
    }

    /// Reads an event in the JSON of a dialect's hosts.
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

    /// Plans an event and does everything that needs no waiting, which is all for an event that no hook wants.
    fn begin<'a>(
        &'a self,
        sender: EventSender,
        published: &PublishedSnapshot,
        event: Event,
    ) -> DispatchFuture<'a> {
        let inner = &*self.0;
        if let Some(log) = &inner.event_log {
            log.record(&event);
        }
        if inner.closed.load(Ordering::Acquire) {
            return immediate(Err(inner.shutting_down()));
        }
        if let Some(freshness) = inner.context.freshness.get()
            && !freshness.is_fresh()
        {
            let published = published.clone();
            return Either::Right(Box::pin(async move {
                freshness.settled().await.map_err(|Unsure| DispatchError::ClusterUnsure)?;
                self.plan_and_run(sender, &published, event).await
            }));
        }
        self.plan_and_run(sender, published, event)
    }

    /// Does so for an event of which it is known whether its run is halted, or that is answered all the same.
    fn plan_and_run<'a>(
        &'a self,
        sender: EventSender,
        published: &PublishedSnapshot,
        event: Event,
    ) -> DispatchFuture<'a> {
        let inner = &*self.0;
        let snapshot = &published.snapshot;
        let directory = &inner.context.directory;
        let workspace = &snapshot.workspace().id;
        if event.is_interceptor()
            && let Some((halt, receipt)) = directory.halted(workspace, &event.run_id)
        {
            let key = RunKey::new(workspace, &event.run_id);
            if !halt.is_over_for(&event) {
                let outcome = halt.outcome(event.kind, snapshot.version());
                inner.context.tell_without_run(&key, event, &outcome, snapshot);
                return match receipt {
                    None => immediate(Ok(outcome)),
                    Some(receipt) => Either::Right(Box::pin(async move {
                        receipt.settled().await.map_err(|HaltNotStored| DispatchError::HaltNotStored)?;
                        Ok(outcome)
                    })),
                };
            }
            directory.resume(&key);
        }
        if shows_work(event.kind) {
            directory.note_work(workspace, &event.run_id);
        }
        if let Some(missing) = snapshot.missing_for(&event) {
            let key = RunKey::new(workspace, &event.run_id);
            let outcome = fail_closed::block_missing(missing, event.kind, snapshot);
            inner.context.tell_without_run(&key, event, &outcome, snapshot);
            return immediate(Ok(outcome));
        }
        let plan = snapshot.plan(&event);
        if !plan.is_empty() {
            let key = RunKey::new(workspace, &event.run_id);
            return Either::Right(Box::pin(inner.run(sender, published.clone(), key, event, plan)));
        }
        let outcome = Outcome::proceed(next_decision_id(), event.kind, snapshot.version());
        if event.ends_run()
            && let Some(acknowledged) = directory.end_unplanned(&RunKey::new(workspace, &event.run_id))
        {
            return Either::Right(Box::pin(async move {
                // Not acknowledged only if the actor has died, and the run with it.
                acknowledged.await.ok();
                Ok(outcome)
            }));
        }
        immediate(Ok(outcome))
    }
}

/// Whether an event shows that an agent works: a prompt came, or a tool runs.
fn shows_work(kind: EventKind) -> bool {
    use EventKind as K;
    matches!(kind, K::PromptSubmitted | K::BeforeToolDispatch | K::AfterToolDispatch | K::ToolFailed)
}

type DispatchResult = Result<Outcome, DispatchError>;

/// An event in flight. The part that waits is boxed: most events are wanted by no hook, and their future then stays
/// small.
type DispatchFuture<'a> = Either<Ready<DispatchResult>, BoxFuture<'a, DispatchResult>>;

fn immediate<'a>(result: DispatchResult) -> DispatchFuture<'a> {
    Either::Left(ready(result))
}

impl Inner {
    /// Sends an event to its run's actor and waits for the outcome.
    async fn run(
        &self,
        sender: EventSender,
        published: PublishedSnapshot,
        key: RunKey,
        mut event: Event,
        plan: Plan,
    ) -> DispatchResult {
        let PublishedSnapshot { snapshot, meters } = published;
        let accepted = Instant::now();
        event.arrival.get_or_insert_with(|| Arrival::new(SystemTime::now(), next_decision_id()));
        let is_detached = event.delivery == Delivery::Detached && !event.is_interceptor();
        if is_detached && self.is_queued(&event, &plan) {
            return self.put_aside(sender, &snapshot, &key, event, &plan).await;
        }
        let permit = self.admit(sender, is_detached)?;
        let claim = self.claim(&key, &event, &plan).await?;
        let (waiter, answer) = oneshot::channel();
        let lease = self.lease(&key, sender, is_detached).await?;
        let event = Arc::new(event);
        let ticket = if event.is_interceptor() {
            None
        } else {
            self.accept(snapshot.workspace(), &event, &plan).await?
        };
        let detached = self.admit_detached(&plan, &lease, &permit);
        let actor = lease.actor().clone();
        let request = EventRequest {
            key: IdempotencyKey::of(&event),
            event,
            plan,
            snapshot,
            meters,
            accepted,
            caller: Caller { waiter, guard: Arc::new(InFlightGuard { _lease: lease, permit }) },
            detached,
            ticket: ticket.map(CourseTicket::sent),
            claim,
        };
        // A send fails only if the actor has just died; its record is cleared and the host may try again.
        actor.cast(RunMessage::Dispatch(Box::new(request))).map_err(|_| DispatchError::RunLost)?;
        let mut abandon = AbandonOnDrop { actor: Some(actor) };
        let answer = answer.await;
        abandon.actor = None;
        match answer {
            Ok(Ok(outcome)) => Ok(outcome),
            Ok(Err(rejection)) => Err(rejection.into()),
            Err(_) if self.closed.load(Ordering::Acquire) => Err(DispatchError::Interrupted),
            Err(_) => Err(DispatchError::RunLost),
        }
    }

    /// The permit of an event of this sender, and whether no host waits for it.
    ///
    /// Returns an error if all that it may have are taken.
    pub(super) fn admit(
        &self,
        sender: EventSender,
        is_detached: bool,
    ) -> Result<Arc<AdmissionPermit>, DispatchError> {
        let take = |permits: &Arc<Semaphore>| {
            Arc::clone(permits).try_acquire_owned().map_err(|_| self.not_admitted())
        };
        let anonymous = match sender {
            EventSender::Known | EventSender::Outbox => None,
            EventSender::Anonymous => Some(take(&self.anonymous)?),
        };
        let permit = take(&self.admission)?;
        if is_detached && !leaves_room(&self.admission, most_in_flight(&self.settings)) {
            return Err(self.not_admitted());
        }
        Ok(Arc::new(AdmissionPermit { _permit: permit, anonymous }))
    }

    /// What keeps the detached hooks of an event in flight after its answer. Those of a run, and of all runs, may only take
    /// so much: `None` if there is no room left, or if the event has no such hooks.
    pub(super) fn admit_detached(
        &self,
        plan: &Plan,
        lease: &RunLease,
        permit: &Arc<AdmissionPermit>,
    ) -> Option<InFlightGuard> {
        if !plan.has_detached() {
            return None;
        }
        let is_anonymous = permit.anonymous.is_some();
        let has_permits = leaves_room(&self.admission, most_in_flight(&self.settings))
            && (!is_anonymous || leaves_room(&self.anonymous, most_anonymous(&self.settings)));
        if !has_permits {
            self.shed(Overload::InFlight);
            return None;
        }
        let most = u32::try_from(self.settings.limits.pending_per_run.get()).unwrap_or(u32::MAX);
        let Some(lease) = lease.for_detached(most) else {
            self.shed(Overload::PendingPerRun);
            return None;
        };
        Some(InFlightGuard { _lease: lease, permit: Arc::clone(permit) })
    }

    /// Why there is no admission permit. A shutdown takes all of them.
    fn not_admitted(&self) -> DispatchError {
        if self.closed.load(Ordering::Acquire) { self.shutting_down() } else { self.shed(Overload::InFlight) }
    }

    /// A lease of the run's actor; the supervisor spawns the actor if there is none. Events that no host waits for leave
    /// leases to others.
    pub(super) async fn lease(
        &self,
        key: &RunKey,
        sender: EventSender,
        is_detached: bool,
    ) -> Result<RunLease, DispatchError> {
        let most = self.settings.limits.pending_per_run.get();
        let limit = if is_detached { detached_part_of(most) } else { most };
        let limit = u32::try_from(limit).unwrap_or(u32::MAX);
        let mut handle = self.context.directory.find(key).and_then(|record| record.handle());
        for _ in 0..MAX_ATTEMPTS {
            match handle.map(|handle| handle.lease(limit)) {
                Some(Ok(lease)) if lease.is_alive() => return Ok(lease),
                Some(Err(LeaseError::Full)) => return Err(self.shed(Overload::PendingPerRun)),
                Some(Ok(_) | Err(LeaseError::Closed)) | None => {}
            }
            let spawn = ractor::call!(self.supervisor, |reply| SupervisorMessage::SpawnRun(
                key.clone(),
                sender,
                reply
            ));
            handle = match spawn {
                Ok(Ok(handle)) => Some(handle),
                Ok(Err(SpawnRunError::TooManyRuns)) => return Err(self.shed(Overload::Runs)),
                Ok(Err(SpawnRunError::ShuttingDown)) | Err(_) => return Err(self.shutting_down()),
            };
        }
        Err(DispatchError::RunLost)
    }

    pub(super) fn shed(&self, overload: Overload) -> DispatchError {
        let at = match overload {
            Overload::InFlight | Overload::Runs | Overload::Outbox => ShedStage::Admission,
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

/// Whether the permits that are out, of so many, leave those that are kept for events that some host waits for. Two events at
/// the same moment may both find that they do not, which harms nobody.
fn leaves_room(permits: &Semaphore, most: usize) -> bool {
    permits.available_permits() >= most - detached_part_of(most)
}

/// RAII guard: a dropped dispatch tells the run's actor that its caller stopped waiting.
struct AbandonOnDrop {
    actor: Option<ractor::ActorRef<RunMessage>>,
}

impl Drop for AbandonOnDrop {
    fn drop(&mut self) {
        if let Some(actor) = self.actor.take() {
            // A send fails only if the actor is gone, and the event with it.
            drop(actor.cast(RunMessage::Abandoned));
        }
    }
}
