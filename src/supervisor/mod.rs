//! The supervisor: publishes snapshots, spawns runs and pools, and restarts what dies. An event that finds its run's
//! actor does not meet it.
//!
//! It decides which run has which actor, and how often a pool may be restarted. It overrides `ractor`'s default, which
//! stops a parent when any child ends.

mod message;

use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use arc_swap::ArcSwap;
use futures_util::future::join_all;
use ractor::{Actor, ActorId, ActorProcessingErr, ActorRef, ActorRuntime, SupervisionEvent};
use tokio::{task::JoinHandle, time::Instant};

pub(crate) use self::message::{PublishedSnapshot, SpawnRunError, SupervisorMessage, WorkspaceSnapshots};
use crate::{
    model::{HandlerKind, RunKey},
    pool::Pool,
    run::{EventSender, RunActor, RunContext, RunHandle, RunMessage},
    telemetry::{ActorRestarted, Panicked},
};

/// How often a pool may die within [`RESTART_WINDOW`] and still be restarted.
const MOST_RESTARTS: usize = 5;

/// The window in which restarts are counted. A pool that dies more often is broken, and restarting it for ever would
/// hide that.
const RESTART_WINDOW: Duration = Duration::from_secs(10);

/// The longest interval between two sweeps for idle runs.
const LONGEST_SWEEP: Duration = Duration::from_secs(15);

/// How many walks over all records there are in the time after which a run is forgotten, and the longest time between two.
const TIDIED_PER_FORGET: u32 = 8;
const LONGEST_TIDY: Duration = Duration::from_mins(1);

/// The most records that are walked over while new runs wait for the supervisor.
const MOST_TIDIED_AT_ONCE: usize = 4096;

/// How long a run may take to cancel its events at shutdown.
const RUN_STOP_TIMEOUT: Duration = Duration::from_secs(1);

/// The supervisor.
#[derive(Debug)]
pub(crate) struct Supervisor;

/// What the supervisor starts with.
#[derive(Debug)]
pub(crate) struct SupervisorArguments {
    pub(crate) context: Arc<RunContext>,
    pub(crate) registry: Arc<ArcSwap<WorkspaceSnapshots>>,
    /// How many runs may be kept.
    pub(crate) most_runs: usize,
    /// After which a run without events gives up its actor.
    pub(crate) run_idle: Duration,
    /// After which a run without an actor is forgotten.
    pub(crate) run_forget: Duration,
}

/// The state of the supervisor.
#[derive(Debug)]
pub(crate) struct SupervisorState {
    arguments: SupervisorArguments,
    myself: ActorRef<SupervisorMessage>,
    runs: HashMap<ActorId, (RunKey, Arc<RunHandle>)>,
    /// The latest walk over all records.
    tidying: Option<JoinHandle<()>>,
    tidied: Instant,
    /// Which pool a factory belongs to.
    factories: HashMap<ActorId, HandlerKind>,
    /// When each pool was restarted lately.
    restarts: HashMap<HandlerKind, VecDeque<Instant>>,
    draining: bool,
}

impl Actor for Supervisor {
    type Msg = SupervisorMessage;
    type State = SupervisorState;
    type Arguments = SupervisorArguments;

    async fn pre_start(
        &self,
        myself: ActorRef<SupervisorMessage>,
        arguments: SupervisorArguments,
    ) -> Result<SupervisorState, ActorProcessingErr> {
        let mut factories = HashMap::new();
        for pool in arguments.context.pools.staffed.iter() {
            factories.insert(pool.start(myself.get_cell()).await?, pool.kind());
        }
        let period = (arguments.run_idle / 2).clamp(Duration::from_millis(10), LONGEST_SWEEP);
        myself.send_interval(period, || SupervisorMessage::Sweep);
        Ok(SupervisorState {
            arguments,
            myself,
            runs: HashMap::new(),
            tidying: None,
            tidied: Instant::now(),
            factories,
            restarts: HashMap::new(),
            draining: false,
        })
    }

    async fn handle(
        &self,
        _: ActorRef<SupervisorMessage>,
        message: SupervisorMessage,
        state: &mut SupervisorState,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            // A reply fails only if the caller has stopped waiting.
            SupervisorMessage::SpawnRun(key, sender, reply) => {
                drop(reply.send(state.spawn_run(key, sender)));
            }
            SupervisorMessage::Publish(snapshot, reply) => {
                let registry = &state.arguments.registry;
                let workspace = snapshot.snapshot.workspace().id.clone();
                registry.store(Arc::new(WorkspaceSnapshots::clone(&registry.load()).with(snapshot)));
                if let Some(outbox) = state.arguments.context.outbox.load_full() {
                    outbox.workspace_loaded(&workspace);
                }
                drop(reply.send(()));
            }
            SupervisorMessage::Retire(id, reply) => {
                let registry = &state.arguments.registry;
                registry.store(Arc::new(WorkspaceSnapshots::clone(&registry.load()).without(&id)));
                drop(reply.send(()));
            }
            SupervisorMessage::Sweep => state.sweep(),
            SupervisorMessage::Drain => state.draining = true,
            SupervisorMessage::RestartPool(kind) => state.restart_pool(kind).await?,
        }
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        _: ActorRef<SupervisorMessage>,
        event: SupervisionEvent,
        state: &mut SupervisorState,
    ) -> Result<(), ActorProcessingErr> {
        let (who, failure) = match event {
            SupervisionEvent::ActorTerminated(who, ..) => (who, None),
            SupervisionEvent::ActorFailed(who, error) => (who, Some(error)),
            _ => return Ok(()),
        };
        if let Some(kind) = state.factories.remove(&who.get_id()) {
            return state.pool_died(kind, failure);
        }
        if let Some((key, handle)) = state.runs.remove(&who.get_id()) {
            state.arguments.context.directory.count_actors(state.runs.len());
            state.run_gone(&key, &handle, failure);
        }
        Ok(())
    }

    async fn post_stop(
        &self,
        _: ActorRef<SupervisorMessage>,
        state: &mut SupervisorState,
    ) -> Result<(), ActorProcessingErr> {
        // Runs before pools: a run that outlived its pool by a moment would take the loss of its jobs for a
        // failure of their hooks, which most policies let pass.
        let (idle, busy): (Vec<_>, Vec<_>) = state.runs.values().partition(|(_, handle)| handle.is_idle());
        for (_, handle) in idle {
            handle.actor.kill();
        }
        // Those with events in hand count them as cancelled. One that does not in time is stuck in an inline hook.
        join_all(busy.iter().map(|(_, handle)| handle.actor.stop_and_wait(None, Some(RUN_STOP_TIMEOUT))))
            .await;
        for (_, handle) in busy {
            handle.actor.kill();
        }
        state.arguments.context.pools.staffed.iter().for_each(Pool::stop);
        Ok(())
    }
}

impl SupervisorState {
    /// The run's actor; made, and linked to the supervisor, if it has none that takes messages.
    fn spawn_run(&mut self, key: RunKey, sender: EventSender) -> Result<Arc<RunHandle>, SpawnRunError> {
        if self.draining {
            return Err(SpawnRunError::ShuttingDown);
        }
        let context = &self.arguments.context;
        let ended_before = context.directory.has_ended(&key);
        let record = context
            .directory
            .find_or_make(&key, sender.part_of(self.arguments.most_runs))
            .ok_or(SpawnRunError::TooManyRuns)?;
        if let Some(handle) = record.handle().filter(|handle| handle.is_open() && self.knows(handle)) {
            return Ok(handle);
        }
        if ended_before && sender != EventSender::Outbox {
            tracing::warn!(run = %key.run, "an event came for a run that has ended; it gets a fresh record");
        }
        let actor = RunActor { context: Arc::clone(context), key: key.clone(), record: Arc::clone(&record) };
        let spawned = ActorRuntime::spawn_linked_instant(None, actor, (), self.myself.get_cell());
        // Only an actor's name can be refused here, and runs have none.
        let (actor, _) = spawned.map_err(|_| SpawnRunError::ShuttingDown)?;
        let handle = Arc::new(RunHandle::new(actor));
        record.attach(Arc::clone(&handle));
        self.runs.insert(handle.actor.get_id(), (key, Arc::clone(&handle)));
        context.directory.count_actors(self.runs.len());
        Ok(handle)
    }

    /// Whether the handle's actor is alive, as far as its supervisor knows.
    fn knows(&self, handle: &RunHandle) -> bool {
        self.runs.contains_key(&handle.actor.get_id())
            && !matches!(
                handle.actor.get_status(),
                ractor::ActorStatus::Stopping | ractor::ActorStatus::Stopped
            )
    }

    /// A run's actor has ended, by its own choice or not. The record stays for the next event.
    fn run_gone(&mut self, key: &RunKey, handle: &RunHandle, failure: Option<ActorProcessingErr>) {
        if let Some(error) = failure {
            tracing::error!(run = %key.run, %error, "the actor of a run died; its next event gets a new one");
            // Its messages are handled without errors, so it panicked.
            Panicked("run").emit();
            ActorRestarted("run").emit();
        }
        let Some(record) = self.arguments.context.directory.find(key) else { return };
        if record.handle().is_some_and(|current| current.actor.get_id() == handle.actor.get_id()) {
            self.arguments.context.directory.detach(&record, handle);
        }
    }

    /// Asks idle runs to give up their actors, and forgets those that gave them up long ago.
    fn sweep(&mut self) {
        let idle = |handle: &RunHandle| handle.idle_for() >= self.arguments.run_idle;
        for (_, handle) in self.runs.values().filter(|(_, handle)| idle(handle)) {
            // A send fails only if the actor is ending anyway.
            drop(handle.actor.cast(RunMessage::Passivate));
        }
        self.tidy();
    }

    /// Walks over all records from time to time, on a thread of its own where there are many.
    fn tidy(&mut self) {
        let forget = self.arguments.run_forget;
        let is_due = self.tidied.elapsed() >= (forget / TIDIED_PER_FORGET).min(LONGEST_TIDY);
        let context = &self.arguments.context;
        if !(is_due || context.answers_are_full())
            || self.tidying.as_ref().is_some_and(|walk| !walk.is_finished())
        {
            return;
        }
        self.tidied = Instant::now();
        if context.directory.count().0 < MOST_TIDIED_AT_ONCE {
            return context.tidy(forget);
        }
        let context = Arc::clone(context);
        self.tidying = Some(tokio::task::spawn_blocking(move || context.tidy(forget)));
    }

    fn pool_died(
        &mut self,
        kind: HandlerKind,
        failure: Option<ActorProcessingErr>,
    ) -> Result<(), ActorProcessingErr> {
        if let Some(pool) = self.arguments.context.pools.of(kind) {
            pool.stop();
        }
        let restarts = self.restarts.entry(kind).or_default();
        restarts.retain(|when| when.elapsed() < RESTART_WINDOW);
        let reason = failure.map_or_else(|| "it stopped".to_owned(), |error| error.to_string());
        if restarts.len() >= MOST_RESTARTS {
            tracing::error!(%kind, reason, "a pool died too often and stays down; its hooks end as shed");
            return Ok(());
        }
        tracing::error!(%kind, reason, "a pool died and is restarted");
        restarts.push_back(Instant::now());
        self.myself.cast(SupervisorMessage::RestartPool(kind))?;
        Ok(())
    }

    async fn restart_pool(&mut self, kind: HandlerKind) -> Result<(), ActorProcessingErr> {
        let pools = self.arguments.context.pools.clone();
        if let Some(pool) = pools.of(kind) {
            self.factories.insert(pool.start(self.myself.get_cell()).await?, kind);
            ActorRestarted("pool").emit();
        }
        Ok(())
    }
}
