//! The workers of one hook in one workspace: which of them serves an event, and when another one is started.

use std::{
    path::Path,
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::{
    sync::{OwnedSemaphorePermit, oneshot, watch},
    time::{Instant, sleep_until, timeout_at},
};
use tokio_util::sync::CancellationToken;

use super::{
    event_loop,
    fleet_state::FleetState,
    handle::{WorkerCapacity, WorkerHandle, WorkerPermit, WorkerPhase},
    health::{EndedWorker, WorkerEnd},
    limits::{RETRY_HELLO, WorkerConfig, after},
    protocol::EventMessage,
};
use crate::{
    handler::{
        command::warm_pool::WarmProcesses,
        runner::{HookWorkers, Invocation, WorkerCounts},
    },
    model::{Ended, Failure, HookName, RawReply},
};

/// How many workers an event is sent to that end before they begin with it.
const MAX_TRIES: usize = 3;

/// The result of an event that was given to a fleet.
#[derive(Debug)]
pub(in crate::handler::command) enum ServeResult {
    /// A worker replied or failed, or the event was cancelled.
    Concluded(Result<RawReply, Failure>),
    /// No worker has read the event. The text says why, if the operator should know.
    NoWorker(Option<String>),
}

/// The workers of one hook.
#[derive(Debug)]
pub(in crate::handler::command) struct Fleet {
    config: WorkerConfig,
    /// The capacity of all workers together.
    shared_capacity: Arc<WorkerCapacity>,
    handles: Mutex<Vec<Arc<WorkerHandle>>>,
    state: Arc<FleetState>,
    next_id: AtomicU64,
}

/// The permits of the fleet and of a worker.
type AcquiredPermits = (OwnedSemaphorePermit, OwnedSemaphorePermit);

/// Who can take an event now.
enum Availability {
    /// This worker, which has not necessarily said hello.
    Free(Arc<WorkerHandle>, OwnedSemaphorePermit),
    /// Nobody, but this worker may take many once it has said hello.
    Starting(Arc<WorkerHandle>),
    /// Nobody.
    None,
}

impl Fleet {
    pub(in crate::handler::command) fn new(config: WorkerConfig) -> Self {
        let shared_capacity = Arc::new(WorkerCapacity::of(config.bounds.workers.get()));
        let state = FleetState::new(&config, Arc::clone(&shared_capacity));
        Self {
            shared_capacity,
            handles: Mutex::default(),
            state: Arc::new(state),
            next_id: AtomicU64::new(0),
            config,
        }
    }

    /// How many events it takes at once, and how that changes.
    pub(in crate::handler::command) fn capacity(&self) -> watch::Receiver<usize> {
        self.state.capacity()
    }

    /// The workers that there are now, of this hook.
    pub(in crate::handler::command) fn shown(&self, root: &Path, hook: &HookName) -> HookWorkers {
        let loads: Vec<usize> = {
            let handles = self.handles.lock();
            handles.iter().filter(|handle| !handle.is_closed()).map(|handle| handle.load()).collect()
        };
        let counts = WorkerCounts {
            workers: loads.len(),
            busy: loads.iter().filter(|load| **load > 0).count(),
            most: self.config.bounds.workers.get(),
            failed: self.state.failed(),
        };
        let degradation = self.state.health.lock().degradation();
        HookWorkers { root: root.to_owned(), hook: hook.clone(), counts, degradation }
    }

    /// Updates the gauge: workers that failed again and again count as serving once none has failed for a while.
    pub(in crate::handler::command) fn sample(&self) {
        self.state.publish();
    }

    /// Starts a worker, waits for its hello at most as long as a fleet would, and stops it. It has exited when the future
    /// ends; when the future is dropped, it exits shortly after.
    ///
    /// Returns why there is no hello.
    pub(in crate::handler::command) async fn probe(self) -> Result<(), String> {
        let (tell, ending) = oneshot::channel();
        let on_end = move |ended: &EndedWorker| drop(tell.send(ended.end.clone()));
        let handle = event_loop::start(self.config, Arc::new(WorkerCapacity::of(1)), || {}, on_end)
            .map_err(|error| error.to_string())?;
        let said_hello = handle.is_ready().await;
        let WorkerHandle { commands, mut phase, .. } = handle;
        // Without a sender of commands it retires; the phase closes once its event loop is gone.
        drop(commands);
        while phase.changed().await.is_ok() {}
        match ending.await {
            _ if said_hello => Ok(()),
            Ok(WorkerEnd::NoHello(why) | WorkerEnd::Died(why) | WorkerEnd::Protocol(why)) => Err(why),
            Ok(WorkerEnd::Late | WorkerEnd::Retired) | Err(_) => Err("it was stopped".to_owned()),
        }
    }

    /// Tries a worker again if it is time, in the background, for a program that said no hello. Returns whether there is
    /// a worker that serves.
    fn retry(&self) -> bool {
        let mut handles = self.handles.lock();
        handles.retain(|handle| !handle.is_closed());
        if handles.is_empty() && self.state.health.lock().may_retry() {
            let mut config = self.config.clone();
            // Nobody waits for it, so it has more time.
            config.timeouts.hello = config.timeouts.hello.max(RETRY_HELLO);
            handles.extend(self.start(config).map(Arc::new));
        }
        handles.iter().any(|handle| !handle.is_in(WorkerPhase::Starting))
    }

    /// Why there is no worker. `None` if one has just reached its limit of requests.
    fn unavailable_reason(&self) -> Option<String> {
        if let Some(reason) = self.state.health.lock().unavailable_reason() {
            return Some(reason);
        }
        let handles = self.handles.lock();
        let is_starting =
            handles.iter().any(|handle| !handle.is_closed() && handle.is_in(WorkerPhase::Starting));
        is_starting.then(|| "no worker is ready: its hello has not arrived yet".to_owned())
    }

    /// Sends an event to a worker and waits for its reply. Dropping the future cancels the event.
    pub(in crate::handler::command) async fn serve(
        &self,
        invocation: &Invocation,
        cancel: &CancellationToken,
    ) -> ServeResult {
        for _ in 0..MAX_TRIES {
            // The time of an event begins again with each try, since no worker has begun with it.
            let deadline = after(Instant::now(), invocation.timeout);
            let acquired = tokio::select! {
                biased;
                () = cancel.cancelled() => return ServeResult::Concluded(Err(Failure::cancelled())),
                acquired = self.acquire(invocation.timeout, deadline) => acquired,
            };
            let (handle, permit) = match acquired {
                Ok(Some(acquired)) => acquired,
                Ok(None) => break,
                Err(failure) => return ServeResult::Concluded(Err(failure)),
            };
            let event = EventMessage {
                id: self.next_id.fetch_add(1, Ordering::Relaxed),
                envelope: invocation.envelope.clone(),
                event: Arc::clone(&invocation.event),
            };
            let permit = WorkerPermit { fleet: permit.0, worker: permit.1, hook: invocation.permit.clone() };
            if let Some(answer) = handle.ask(event, deadline, permit, cancel).await {
                return ServeResult::Concluded(answer.map(raw_reply));
            }
            // The worker ended before its turn. A process for each such event would keep the next worker from starting.
        }
        self.unserved()
    }

    /// The result of an event that no worker has read.
    fn unserved(&self) -> ServeResult {
        let why = self.unavailable_reason();
        if self.speaks_protocol() {
            let message = why.unwrap_or_else(|| "no worker took the event".to_owned());
            return ServeResult::Concluded(Err(Failure::new(Ended::Failed, message)));
        }
        ServeResult::NoWorker(why)
    }

    /// Whether the program is known to speak the protocol, so that it must not be run without it: what it prints then
    /// is no answer.
    fn speaks_protocol(&self) -> bool {
        self.state.health.lock().speaks_protocol()
    }

    /// Takes down that the program speaks the protocol, although no hello came in time.
    pub(in crate::handler::command) fn note_protocol(&self) {
        self.state.note_protocol();
    }

    /// A worker that can be asked now. `None` if there is none and none will be in time.
    ///
    /// Returns a failure if all were busy until the deadline.
    async fn acquire(
        &self,
        timeout: Duration,
        deadline: Instant,
    ) -> Result<Option<(Arc<WorkerHandle>, AcquiredPermits)>, Failure> {
        let (is_stopped, has_no_hello) = {
            let health = self.state.health.lock();
            (health.is_stopped(), health.has_no_hello())
        };
        if is_stopped || has_no_hello && !self.retry() {
            return Ok(None);
        }
        // First a permit of the fleet, so that events queue for all workers rather than for one of them.
        let Ok(shared) = timeout_at(deadline, self.shared_capacity.acquire()).await else {
            return Err(Failure::new(Ended::TimedOut, "the hook's workers were busy with other events"));
        };
        let Some(shared) = shared else { return Ok(None) };
        let acquired = if self.speaks_protocol() {
            self.acquire_in_time(deadline).await?
        } else {
            // At most half of the time: a program that is no worker still has to run once in what is left.
            let hello_timeout = self.config.timeouts.hello.min(timeout / 2);
            tokio::time::timeout(hello_timeout, self.acquire_ready()).await.ok().flatten()
        };
        Ok(acquired.map(|(handle, own)| (handle, (shared, own))))
    }

    /// Waits for a worker until the deadline, also through the pause after one that failed. `None` if no more workers
    /// are started.
    ///
    /// Returns a failure if none is there in time.
    async fn acquire_in_time(
        &self,
        deadline: Instant,
    ) -> Result<Option<(Arc<WorkerHandle>, OwnedSemaphorePermit)>, Failure> {
        loop {
            match timeout_at(deadline, self.acquire_ready()).await {
                Ok(Some(acquired)) => return Ok(Some(acquired)),
                Ok(None) => {}
                Err(_) => return Err(Failure::new(Ended::TimedOut, "no worker said hello in time")),
            }
            let pause = {
                let health = self.state.health.lock();
                if health.is_stopped() {
                    return Ok(None);
                }
                health.pause_end()
            };
            match pause {
                Some(end) if end < deadline => sleep_until(end).await,
                Some(_) => {
                    let message =
                        "no worker in time: one has failed, and the pause before the next is too long";
                    return Err(Failure::new(Ended::TimedOut, message));
                }
                None if Instant::now() >= deadline => {
                    return Err(Failure::new(Ended::TimedOut, "no worker was free in time"));
                }
                // The worker retired just now; the next one is started at once.
                None => tokio::task::yield_now().await,
            }
        }
    }

    /// Waits for a worker that has said hello and has capacity.
    async fn acquire_ready(&self) -> Option<(Arc<WorkerHandle>, OwnedSemaphorePermit)> {
        loop {
            match self.find() {
                Availability::Free(handle, permit) => {
                    let is_ready = handle.is_ready().await;
                    return is_ready.then_some((handle, permit));
                }
                // How many events it takes is known only after its hello.
                Availability::Starting(handle) => handle.is_ready().await.then_some(())?,
                Availability::None => return None,
            }
        }
    }

    /// Finds the worker with the fewest events. Starts another one, as far as the limit of workers allows, if all are
    /// busy or one is near its limit of requests.
    fn find(&self) -> Availability {
        let mut handles = self.handles.lock();
        handles.retain(|handle| !handle.is_closed());
        // A retiring worker has a successor beside it, so it does not count for the limit.
        let staying = handles.iter().filter(|handle| !handle.is_in(WorkerPhase::Retiring)).count();
        handles.sort_by_key(|handle| (handle.is_in(WorkerPhase::Starting), handle.load()));
        let is_wanted = staying < handles.len() || handles.first().is_none_or(|handle| handle.load() > 0);
        let free = handles.iter().find_map(|handle| Some((Arc::clone(handle), handle.try_enter()?)));
        if is_wanted && staying < self.config.bounds.workers.get() && self.state.health.lock().may_start() {
            handles.extend(self.start(self.config.clone()).map(Arc::new));
        }
        if let Some((handle, permit)) = free {
            return Availability::Free(handle, permit);
        }
        // All are busy; the last one may have been started just now.
        if let Some(newest) = handles.last().filter(|newest| newest.is_in(WorkerPhase::Starting)) {
            let newest = Arc::clone(newest);
            return match newest.try_enter() {
                Some(permit) => Availability::Free(newest, permit),
                None => Availability::Starting(newest),
            };
        }
        // A worker that has become slow has more events than it should, and this one was on its way already.
        let ahead = handles.iter().find_map(|handle| Some((Arc::clone(handle), handle.try_acquire()?)));
        ahead.map_or(Availability::None, |(handle, permit)| Availability::Free(handle, permit))
    }

    fn start(&self, config: WorkerConfig) -> Option<WorkerHandle> {
        // Not owned: the capacity is closed once the fleet is gone, although its last workers still finish.
        let at_hello = Arc::downgrade(&self.state);
        let at_end = Weak::clone(&at_hello);
        let meters = Arc::clone(&config.meters.workers);
        let on_capacity = move || {
            if let Some(state) = at_hello.upgrade() {
                state.note_protocol();
            }
        };
        let on_end = move |ended: &EndedWorker| {
            if ended.end.is_failure() {
                meters.failed();
            }
            if let Some(state) = at_end.upgrade() {
                state.record(ended);
            }
        };
        let started = event_loop::start(config, Arc::clone(&self.shared_capacity), on_capacity, on_end);
        started.inspect_err(|error| self.record_failed_start(error.to_string())).ok()
    }

    fn record_failed_start(&self, why: String) {
        self.config.meters.workers.failed();
        let age = Duration::ZERO;
        self.state.record(&EndedWorker { end: WorkerEnd::Died(why), age, said_hello: false });
    }
}

impl WarmProcesses for Fleet {
    fn is_spent(&self) -> bool {
        let health = self.state.health.lock();
        health.has_no_hello() || health.is_stopped()
    }

    fn stop(&self) {
        self.state.health.lock().stop();
        for handle in std::mem::take(&mut *self.handles.lock()) {
            handle.abort.abort();
        }
    }
}

/// A worker's output is read like that of a oneshot process that exits with 0.
fn raw_reply(output: Bytes) -> RawReply {
    RawReply::Command { exit_code: 0, stdout: output, stderr: Bytes::new(), truncated: false }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        handler::{
            command::{
                spawn::Program,
                worker::{
                    limits::{FleetMeters, StderrLogging, WorkerTimeouts},
                    protocol::some_event,
                },
            },
            runner::CommandLimits,
        },
        model::{Approval, WorkerBounds},
        telemetry::{ProcessMeters, WorkerMeters},
    };

    /// A fleet of a shell script that is pinged after `ping` without events, and has the time `answer` for that.
    fn fleet(script: &str, ping: Duration, answer: Duration) -> Fleet {
        let program = Program {
            path: "/bin/sh".into(),
            args: vec!["-c".into(), script.into()],
            cwd: "/".into(),
            environment: vec![],
            approval: Approval::of_host(),
        };
        Fleet::new(WorkerConfig {
            hook: "hook".into(),
            stderr_logging: StderrLogging::Shown,
            program: Arc::new(program),
            bounds: WorkerBounds::default(),
            limits: CommandLimits { stdout: 1 << 20, stderr: 1 << 10 },
            timeouts: WorkerTimeouts { ping, pong: answer, ..WorkerTimeouts::default() },
            meters: FleetMeters {
                workers: Arc::new(WorkerMeters::unread()),
                processes: Arc::new(ProcessMeters::resolve()),
            },
        })
    }

    /// Starts a worker, gives it no event and waits for its end.
    async fn outlive(fleet: &Fleet) {
        let minute = Duration::from_mins(1);
        let (handle, permit) = fleet.acquire(minute, Instant::now() + minute).await.unwrap().unwrap();
        drop(permit);
        tokio::time::timeout(minute, handle.commands.closed()).await.unwrap();
    }

    #[tokio::test]
    async fn a_worker_that_does_not_answer_a_ping_is_killed() {
        let script = r#"echo '{"hookyard":1}'; while read -r line; do :; done"#;
        let fleet = fleet(script, Duration::from_millis(20), Duration::from_millis(20));
        outlive(&fleet).await;
        assert!(!fleet.state.health.lock().may_start() && !fleet.state.health.lock().has_no_hello());
    }

    /// A fleet of a shell script, with the usual times.
    fn usual_fleet(script: &str) -> Fleet {
        let usual = WorkerTimeouts::default();
        fleet(script, usual.ping, usual.pong)
    }

    /// Whether a worker takes an event that may take a minute.
    async fn takes_an_event(fleet: &Fleet) -> bool {
        let minute = Duration::from_mins(1);
        fleet.acquire(minute, Instant::now() + minute).await.unwrap().is_some()
    }

    #[tokio::test]
    async fn a_program_without_a_hello_is_started_again_in_the_background_and_serves_once_it_says_hello() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().display();
        let fleet = usual_fleet(&format!(
            r#"echo >> {place}/starts; [ -e {place}/go ] || exit; echo '{{"hookyard":1}}'; cat > {place}/in"#
        ));
        let starts = || std::fs::read(directory.path().join("starts")).unwrap_or_default().len();
        assert!(!takes_an_event(&fleet).await);
        assert!(!takes_an_event(&fleet).await && starts() == 1, "each event gets a process meanwhile");
        assert_eq!(fleet.state.failed(), 0, "it may be no worker");
        std::fs::write(directory.path().join("go"), "").unwrap();
        tokio::time::pause();
        tokio::time::advance(Duration::from_secs(6)).await;
        tokio::time::resume();
        assert!(!takes_an_event(&fleet).await, "no event waits for the hello");
        let minute = Duration::from_mins(1);
        let serves = async {
            while fleet.state.health.lock().has_no_hello() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(minute, serves).await.expect("a hello");
        assert!(takes_an_event(&fleet).await && starts() == 2);
        fleet.stop();
    }

    #[tokio::test]
    async fn a_program_that_has_spoken_the_protocol_is_never_left_to_a_process_of_its_own() {
        let fleet = usual_fleet("exit");
        assert!(matches!(fleet.unserved(), ServeResult::NoWorker(_)), "it may be no worker");
        fleet.note_protocol();
        let refused = |served| {
            let ServeResult::Concluded(Err(failure)) = served else { panic!("{served:?}") };
            (failure.ended, failure.message)
        };
        assert_eq!(refused(fleet.unserved()), (Ended::Failed, "no worker took the event".to_owned()));
        // It says no hello any more: its events wait, and fail if none comes.
        let until = Instant::now() + Duration::from_millis(50);
        let waited = fleet.acquire(Duration::from_millis(50), until).await;
        assert_eq!(waited.err().map(|failure| failure.ended), Some(Ended::TimedOut));
        assert!(!fleet.state.health.lock().has_no_hello());
        fleet.stop();
        assert!(matches!(fleet.acquire(Duration::MAX, Instant::now()).await, Ok(None)));
        let (ended, message) = refused(fleet.unserved());
        assert_eq!((ended, &*message), (Ended::Failed, "no worker: hookyard is stopping"));
    }

    #[tokio::test]
    async fn a_worker_that_answers_pings_is_kept() {
        let script =
            r#"echo '{"hookyard":1}'; for number in 1 2 3; do read -r line; echo '{"pong":1}'; done; exit"#;
        let fleet = fleet(script, Duration::from_millis(20), Duration::from_mins(1));
        // Only the third ping lets it end.
        outlive(&fleet).await;
        assert!(!fleet.state.health.lock().has_no_hello());
    }

    /// How three events end that are with one worker, in the order in which they were sent; `-` for one that it had not begun.
    async fn three_at_one_worker(script: &str, first_takes: Duration) -> [String; 3] {
        let fleet = usual_fleet(script);
        let minute = Duration::from_mins(1);
        let (handle, permits) = fleet.acquire(minute, Instant::now() + minute).await.unwrap().unwrap();
        let mut permits = Some(permits.1);
        let asked = [1_u64, 2, 3].map(|id| {
            let worker = permits.take().or_else(|| handle.try_acquire()).unwrap();
            let permit =
                WorkerPermit { fleet: fleet.shared_capacity.try_acquire().unwrap(), worker, hook: None };
            let event = Arc::new(some_event());
            let deadline = Instant::now() + if id == 1 { first_takes } else { minute };
            let event = EventMessage { id, envelope: Bytes::from_static(b"{}"), event };
            let handle = Arc::clone(&handle);
            async move {
                let answer = handle.ask(event, deadline, permit, &CancellationToken::new()).await;
                match answer {
                    None => "-".to_owned(),
                    Some(Ok(output)) => String::from_utf8(output.to_vec()).unwrap(),
                    Some(Err(failure)) => failure.message,
                }
            }
        });
        let answers = tokio::time::timeout(minute, futures_util::future::join_all(asked)).await.unwrap();
        answers.try_into().unwrap()
    }

    #[tokio::test]
    async fn a_worker_that_ends_fails_what_it_had_begun_and_leaves_what_was_sent_ahead() {
        let (late, quick) = (Duration::from_millis(300), Duration::from_mins(1));
        let died = "the worker ended: it exited or closed its standard output";
        let out_of_order = "the worker broke the protocol: a reply of a pipeline is out of order";
        let not_open = "the worker broke the protocol: a reply is to an id that is not open";
        let not_json =
            "the worker broke the protocol: a line is not a message: invalid JSON at column 1: `?`";
        let killed = "no answer in time; the worker was killed";
        let with_it = "the worker was killed, late with another event";
        let (pipeline, multiplex) = (r#""pipeline":true"#, r#""multiplex":true"#);
        let answer = |id| format!(r#"echo '{{"id":"{id}","output":{{"n":{id}}}}}';"#);
        let n = |id| format!(r#"{{"n":{id}}}"#);
        let cases = [
            (
                pipeline,
                [answer(1), answer(2), answer(3)].concat(),
                quick,
                [&n(1), &n(2), &n(3)].map(String::clone),
            ),
            (pipeline, "exit".to_owned(), quick, [died, "-", "-"].map(str::to_owned)),
            (pipeline, answer(1) + "exit", quick, [n(1), died.to_owned(), "-".to_owned()]),
            (pipeline, "read rest".to_owned(), late, [killed, "-", "-"].map(str::to_owned)),
            (pipeline, answer(2), quick, [out_of_order; 3].map(str::to_owned)),
            (pipeline, answer(1) + &answer(1), quick, [n(1), not_open.to_owned(), not_open.to_owned()]),
            (pipeline, "echo '?'".to_owned(), quick, [not_json; 3].map(str::to_owned)),
            (multiplex, [answer(3), answer(1), answer(2)].concat(), quick, [n(1), n(2), n(3)]),
            (multiplex, "exit".to_owned(), quick, [died; 3].map(str::to_owned)),
            (multiplex, answer(2) + "exit", quick, [died.to_owned(), n(2), died.to_owned()]),
            (multiplex, "read rest".to_owned(), late, [killed, with_it, with_it].map(str::to_owned)),
        ];
        for (flow, then, first_takes, expected) in cases {
            let script = format!(
                r#"echo '{{"hookyard":1,{flow}}}'; read a; read b; read c; {then}
read rest"#
            );
            assert_eq!(three_at_one_worker(&script, first_takes).await, expected, "{flow}: {then}");
        }
    }
}
