//! The daemons of a simulated life: each replaces the one before, while the test sends events to whichever takes them.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{
    io::{
        AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf,
        duplex, split,
    },
    task::AbortHandle,
    time::{Instant, sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use super::{
    hooks::{HookPlace, hook, settings, since},
    record::Record,
    schedule::{Handover, Side},
};
use crate::{
    daemon::SimulatedDaemon,
    model::EventKind,
    orchestrator::{Orchestrator, handle::most_in_flight},
    run::Courier,
    store::tests::{SimulatedDisk, SimulatedMount, SimulatedProcess},
    supervisor::SupervisorMessage,
};

/// Where the store is. Nothing is written there.
const DATA: &str = "/";

/// How often it is looked whether something has come.
pub(super) const LOOK_PAUSE: Duration = Duration::from_secs(1);

/// What a link between two daemons holds, in bytes. More than is ever sent.
const LINK_SIZE: usize = 1 << 20;

/// How long a daemon that was replaced lets its last events finish.
const REPLACED_DEADLINE: Duration = Duration::from_secs(3);

/// How long a daemon waits at its end until another one has stored its halts.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a client tries to find a daemon that takes its event.
const CLIENT_PATIENCE: Duration = Duration::from_secs(30);

/// A daemon in a process of its own.
#[derive(Debug)]
pub(super) struct Process {
    /// Which one of the whole simulation it is.
    pub(super) number: usize,
    pub(super) life: Arc<SimulatedProcess>,
    pub(super) orchestrator: Orchestrator,
    daemon: SimulatedDaemon,
    /// What ends with it.
    tasks: Mutex<Vec<AbortHandle>>,
    /// Cancelled once the one that it replaces has ended.
    predecessor_ended: CancellationToken,
}

impl Process {
    /// Ends it, whatever it is doing.
    pub(super) fn end(&self) {
        self.life.kill();
        self.daemon.end();
        self.tasks.lock().iter().for_each(AbortHandle::abort);
    }

    fn is_alive(&self) -> bool {
        self.life.died().is_none()
    }

    fn spawn(self: &Arc<Self>, work: impl Future<Output = ()> + Send + 'static) {
        self.tasks.lock().push(tokio::spawn(work).abort_handle());
    }

    /// Ends it in order, as a signal does.
    async fn stop(self: Arc<Self>, deadline: Duration) {
        self.daemon.refuse().await;
        drop(timeout(deadline, self.predecessor_ended.cancelled()).await);
        self.finish(deadline).await;
        self.end();
    }

    /// What a shutdown does, but for closing the store: with that of another daemon, it blocks a thread, and the clock on which
    /// the other one writes stands still meanwhile. What is left is written.
    async fn finish(&self, deadline: Duration) {
        let inner = &self.orchestrator.0;
        inner.closed.store(true, Ordering::Release);
        inner.context.close_outbox();
        inner.supervisor.cast(SupervisorMessage::Drain).ok();
        let all = u32::try_from(most_in_flight(&inner.settings)).expect("a number of events");
        drop(timeout(deadline, inner.admission.acquire_many(all)).await);
        inner.supervisor.stop(None);
        let ended = inner.supervisor_ended.lock().take();
        if let Some(ended) = ended {
            ended.await.ok();
        }
        drop(timeout(FLUSH_TIMEOUT, self.orchestrator.store_flushed()).await);
    }
}

/// The daemons of one life.
#[derive(Debug)]
pub(super) struct Daemons {
    seed: u64,
    pub(super) life: usize,
    pub(super) began: Instant,
    pub(super) disk: Arc<SimulatedDisk>,
    pub(super) record: Arc<Record>,
    processes: Mutex<Vec<Arc<Process>>>,
    has_handovers: AtomicBool,
    /// Whether all of them are stopping.
    is_ending: AtomicBool,
}

impl Daemons {
    /// Starts the first one.
    pub(super) async fn start(
        seed: u64,
        life: usize,
        disk: &Arc<SimulatedDisk>,
        record: &Arc<Record>,
    ) -> Arc<Self> {
        let daemons = Arc::new(Self {
            seed,
            life,
            began: Instant::now(),
            disk: Arc::clone(disk),
            record: Arc::clone(record),
            processes: Mutex::default(),
            has_handovers: AtomicBool::new(false),
            is_ending: AtomicBool::new(false),
        });
        let first = daemons.start_process().await;
        first.orchestrator.open_store(DATA.into(), Courier::Own).await.expect("nobody else has it open");
        first.predecessor_ended.cancel();
        first.daemon.begin();
        daemons
    }

    /// A daemon that has not opened its store.
    async fn start_process(&self) -> Arc<Process> {
        let number = self.record.processes.fetch_add(1, Ordering::Relaxed);
        let life = Arc::<SimulatedProcess>::default();
        let lifecycle = [EventKind::Notification, EventKind::RunCompleted];
        let place = HookPlace {
            seed: self.seed,
            life: self.life,
            began: self.began,
            record: Arc::clone(&self.record),
            process_number: number,
            process: Arc::clone(&life),
        };
        let orchestrator = Orchestrator::builder()
            .native_hook(hook("guard", &[EventKind::BeforeToolDispatch], &place))
            .native_hook(hook("note", &lifecycle, &place))
            .settings(settings())
            .start()
            .await
            .expect("it starts");
        let mount = SimulatedMount { disk: Arc::clone(&self.disk), process: Arc::clone(&life) };
        orchestrator.0.context.simulated_disk.set(mount).expect("it is set once");
        let process = Arc::new(Process {
            number,
            life,
            daemon: SimulatedDaemon::new(&orchestrator),
            orchestrator,
            tasks: Mutex::default(),
            predecessor_ended: CancellationToken::new(),
        });
        self.processes.lock().push(Arc::clone(&process));
        process
    }

    /// Those that are alive and take events, oldest first.
    fn serving(&self) -> Vec<Arc<Process>> {
        let processes = self.processes.lock();
        let serving = processes.iter().filter(|process| process.is_alive() && process.daemon.is_ready());
        serving.cloned().collect()
    }

    /// The one that a client reaches. A client with an open connection is answered by the daemon that it knows, until
    /// another one has taken over; others come to whichever accepts connections. None if nobody does for long.
    pub(super) async fn reached(&self, has_open_connection: bool) -> Option<Arc<Process>> {
        let looked_for = async {
            loop {
                let serving = self.serving();
                let newest = serving.last().cloned();
                let known = if has_open_connection { serving.first().cloned() } else { newest.clone() };
                let Some(known) = known else {
                    sleep(LOOK_PAUSE).await;
                    continue;
                };
                if !known.daemon.is_engaged() {
                    return known;
                }
                let settled = timeout(LOOK_PAUSE, known.daemon.settled()).await;
                let newest = newest.filter(|newest| newest.number != known.number && newest.is_alive());
                match newest {
                    Some(newest) if settled == Ok(true) => return newest,
                    _ => sleep(Duration::from_millis(20)).await,
                }
            }
        };
        timeout(CLIENT_PATIENCE, looked_for).await.ok()
    }

    /// Has a new daemon replace the one that takes events, unless that one is being replaced already.
    pub(super) async fn replace(self: Arc<Self>, handover: Handover) {
        let Some(predecessor) = self.serving().last().cloned() else { return };
        // One daemon finishes at a time, and none is replaced that stops.
        if !predecessor.predecessor_ended.is_cancelled() || self.is_ending.load(Ordering::Relaxed) {
            return;
        }
        let Some(under_way) = predecessor.daemon.begin_handover() else { return };
        self.has_handovers.store(true, Ordering::Relaxed);
        let successor = self.start_process().await;
        let (of_predecessor, near) = duplex(LINK_SIZE);
        let (far, of_successor) = duplex(LINK_SIZE);
        Lines::new(&self, handover, [&predecessor, &successor]).carry(near, far);
        let replaced = Arc::clone(&predecessor);
        predecessor.spawn(async move { replaced.daemon.hand_over(under_way, of_predecessor).await });
        let replaced = Arc::clone(&predecessor);
        // Not a task of the process, which it ends.
        tokio::spawn(async move {
            replaced.daemon.stop_requested().await;
            replaced.stop(REPLACED_DEADLINE).await;
        });
        let (replacing, death) = (Arc::clone(&successor), predecessor.daemon.death());
        successor.spawn(async move {
            let taken_over = replacing.daemon.take_over(death, Path::new(DATA), of_successor).await;
            replacing.predecessor_ended.cancel();
            if taken_over.is_err() {
                replacing.end();
            }
        });
    }

    /// Stops all that are alive.
    pub(super) async fn stop(&self, deadline: Duration) {
        self.is_ending.store(true, Ordering::Relaxed);
        let processes = self.processes.lock().clone();
        if !self.has_handovers.load(Ordering::Relaxed)
            && let [only] = processes.as_slice()
        {
            only.orchestrator.shutdown(deadline).await;
            return;
        }
        let alive = processes.into_iter().filter(|process| process.is_alive());
        let (ready, starting): (Vec<_>, Vec<_>) = alive.partition(|process| process.daemon.is_ready());
        // What waits for one of two that stop amid a handover is refused, as if that one were killed.
        if starting.len() + ready.len() > 1 {
            self.record.killed.lock().push((self.life, since(self.began)));
        }
        for process in starting {
            process.end();
        }
        let stops = ready.into_iter().map(|process| process.stop(deadline));
        futures_util::future::join_all(stops).await;
    }

    /// Kills all of them.
    pub(super) fn kill(&self) {
        self.processes.lock().iter().for_each(|process| process.end());
    }
}

/// Carries lines between two daemons, and kills one of them after so many.
#[derive(Debug)]
struct Lines {
    daemons: Arc<Daemons>,
    latency: Duration,
    /// How many have arrived.
    carried: AtomicU64,
    /// After how many a daemon is killed, and which one.
    fault: Option<(u64, Side, Arc<Process>)>,
}

impl Lines {
    fn new(
        daemons: &Arc<Daemons>,
        handover: Handover,
        [predecessor, successor]: [&Arc<Process>; 2],
    ) -> Arc<Self> {
        let victim = |side| if side == Side::Predecessor { predecessor } else { successor };
        let fault = handover.fault.map(|(after, side)| (after, side, Arc::clone(victim(side))));
        let daemons = Arc::clone(daemons);
        Arc::new(Self { daemons, latency: handover.latency, carried: AtomicU64::new(0), fault })
    }

    fn carry(self: Arc<Self>, near: DuplexStream, far: DuplexStream) {
        let (from_near, to_near) = split(near);
        let (from_far, to_far) = split(far);
        tokio::spawn(Arc::clone(&self).pass_on(from_near, to_far));
        tokio::spawn(self.pass_on(from_far, to_near));
    }

    async fn pass_on<S>(self: Arc<Self>, from: ReadHalf<S>, mut to: WriteHalf<S>)
    where
        S: AsyncRead + AsyncWrite + Send + 'static,
    {
        let mut lines = BufReader::new(from).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            sleep(self.latency).await;
            if to.write_all(format!("{line}\n").as_bytes()).await.is_err() {
                break;
            }
            self.count();
        }
        // Fails only if the other side is gone as well.
        to.shutdown().await.ok();
    }

    fn count(&self) {
        let number = self.carried.fetch_add(1, Ordering::Relaxed) + 1;
        let Some((after, side, victim)) = &self.fault else { return };
        if number == *after && victim.is_alive() {
            let Daemons { life, began, record, .. } = &*self.daemons;
            record.killed.lock().push((*life, since(*began)));
            record.steps.lock().insert((*after, *side));
            victim.end();
        }
    }
}
