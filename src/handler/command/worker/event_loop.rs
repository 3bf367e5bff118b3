//! The task of one worker: a loop over its output, its exit, its timers and the commands of callers.
//!
//! However the loop ends, even by being dropped, the worker's process group is killed.
//!
//! ```text
//! Starting ──hello──▶ Ready ──served 90 % of max_requests──▶ Retiring ──limit reached, open events done──▶ Retired
//!    │                  └── line that is not a message, missed deadline, missed pong, exit ──▶ Protocol, Late, Died
//!    └── anything else, or no hello in time ──▶ NoHello
//! ```

mod ends;

use std::{
    io,
    ops::ControlFlow::{self, Break, Continue},
    sync::Arc,
    time::Duration,
};

use tokio::{
    sync::{mpsc, watch},
    time::{Instant, timeout, timeout_at},
};

use super::{
    alarm::Alarm,
    handle::{WorkerAnswer, WorkerCapacity, WorkerCommand, WorkerHandle, WorkerPhase, WorkerRequest},
    health::{EndedWorker, WorkerEnd, reported},
    limits::{WorkerConfig, after},
    open_events::{OpenEvent, OpenEvents, Unexpected},
    pipes::{LineReader, NextLine, RequestWriter, StderrLog},
    protocol::{self, EventFlow, WorkerMessage},
    timers::{IdleAction, WorkerTimers},
};
use crate::{
    handler::{
        command::{
            group::{ProcessGroup, StdioPipes},
            spawn::SpawnError,
        },
        runner::CommandLimits,
    },
    platform::ExitWatch,
    telemetry::{WorkerState, WorkerThere},
};

/// How often a worker's memory is measured, at most: the system is asked for it.
const MEMORY_CHECK: Duration = Duration::from_secs(1);

/// A worker's successor is started when this part of its limit of requests is left (a tenth), so that no event waits for
/// the start.
const SUCCESSOR_SHARE: usize = 10;

/// A running worker.
struct WorkerLoop {
    config: WorkerConfig,
    group: ProcessGroup,
    exit: ExitWatch,
    requests: RequestWriter,
    lines: LineReader,
    log: StderrLog,
    commands: mpsc::UnboundedReceiver<WorkerCommand>,
    phase: watch::Sender<WorkerPhase>,
    capacity: Arc<WorkerCapacity>,
    /// The capacity of the whole fleet.
    shared_capacity: Arc<WorkerCapacity>,
    open: OpenEvents,
    served: usize,
    timers: WorkerTimers,
    alarm: Alarm,
    memory_checked: Option<Instant>,
    gauge: WorkerThere,
    /// Called at the hello, and when the worker should have more events or fewer.
    on_capacity: Box<dyn Fn() + Send>,
}

/// The events that the loop waits for.
enum Wake {
    Output(NextLine),
    Exited,
    Timer,
    /// `None` once all handles are dropped, or the worker takes no more events.
    Command(Option<WorkerCommand>),
}

/// Starts a worker and its task. `on_capacity` is called at the hello, before the first event is sent, and whenever the
/// number of events changes that the worker should have. When the worker ends, `on_end` gets its end, before the callers
/// of its open events get their failures.
pub(super) fn start(
    config: WorkerConfig,
    shared_capacity: Arc<WorkerCapacity>,
    on_capacity: impl Fn() + Send + 'static,
    on_end: impl FnOnce(&EndedWorker) + Send + 'static,
) -> Result<WorkerHandle, SpawnError> {
    let begun = Instant::now();
    let (group, pipes) = ProcessGroup::start(&config.program)?;
    config.meters.processes.spawned(begun.elapsed());
    let (requests, lines, log) =
        open(pipes, config.limits).map_err(|error| SpawnError::of(&config.program, error))?;
    let exit = group.watch_exit().map_err(|error| SpawnError::of(&config.program, error))?;
    let (sender, commands) = mpsc::unbounded_channel();
    let (phase, seen) = watch::channel(WorkerPhase::Starting);
    let capacity = Arc::new(WorkerCapacity::of(1));
    let worker = WorkerLoop {
        group,
        requests,
        lines,
        log,
        exit,
        commands,
        phase,
        capacity: Arc::clone(&capacity),
        shared_capacity,
        open: OpenEvents::of(EventFlow::Single, begun),
        served: 0,
        timers: WorkerTimers::start(config.timeouts, config.bounds, begun),
        alarm: Alarm::at(after(begun, config.timeouts.hello)),
        memory_checked: None,
        gauge: WorkerThere::starting(&config.meters.workers),
        on_capacity: Box::new(on_capacity),
        config,
    };
    let abort = tokio::spawn(worker.run(on_end)).abort_handle();
    Ok(WorkerHandle { commands: sender, phase: seen, capacity, abort })
}

fn open(pipes: StdioPipes, limits: CommandLimits) -> io::Result<(RequestWriter, LineReader, StderrLog)> {
    let requests = RequestWriter::open(pipes.stdin)?;
    let lines = LineReader::open(pipes.stdout, limits.stdout)?;
    let log = StderrLog::open(pipes.stderr, limits.stderr)?;
    Ok((requests, lines, log))
}

impl WorkerLoop {
    /// Serves until something ends the worker.
    async fn run(mut self, on_end: impl FnOnce(&EndedWorker)) {
        let running = self.config.meters.processes.running();
        let end = loop {
            // Output first: a reply that is in the pipe counts even if its deadline or the exit comes with it. New
            // events last, so that a reply frees capacity before more is sent.
            let wake = tokio::select! {
                biased;
                next = self.lines.next() => Wake::Output(next),
                () = self.exit.exited() => Wake::Exited,
                () = self.alarm.rings() => Wake::Timer,
                message = self.commands.recv() => Wake::Command(message),
                never = self.requests.flush() => match never {},
                never = self.log.pass_on(&self.config) => match never {},
            };
            let flow = match wake {
                Wake::Output(next) => self.on_output(next),
                Wake::Exited => Break(self.drain_stdout().await),
                Wake::Timer => self.on_alarm(),
                Wake::Command(Some(message)) => self.on_command(message),
                Wake::Command(None) if self.open.is_empty() => Break(WorkerEnd::Retired),
                // Ready | Retiring => Retired, once the open events are done.
                Wake::Command(None) => self.finish_open().await,
            };
            if let Break(end) = flow {
                break end;
            }
        };
        // First of all: whoever finds this worker gone must see the pause before starting another one.
        let ended = EndedWorker { end, age: self.timers.age(Instant::now()), said_hello: self.is_ready() };
        on_end(&ended);
        let end = ended.end;
        self.commands.close();
        self.fail_open_events(&end);
        if end == WorkerEnd::Retired {
            self.requests.close();
            // If it does not exit by itself, dropping the group kills it.
            drop(timeout(self.config.timeouts.grace, self.exit.exited()).await);
        }
        drop(running);
    }

    /// Whether it has said hello.
    fn is_ready(&self) -> bool {
        *self.phase.borrow() != WorkerPhase::Starting
    }

    /// Serves the open events and takes no more. Callers whose commands were not received try another worker.
    async fn finish_open(&mut self) -> ControlFlow<WorkerEnd> {
        while !self.open.is_empty() {
            let flow = tokio::select! {
                biased;
                next = self.lines.next() => self.on_output(next),
                () = self.exit.exited() => Break(self.drain_stdout().await),
                () = self.alarm.rings() => self.on_alarm(),
                never = self.requests.flush() => match never {},
                never = self.log.pass_on(&self.config) => match never {},
            };
            if let Break(end) = flow {
                return Break(end);
            }
        }
        Break(WorkerEnd::Retired)
    }

    /// When the next timer fires: of the hello, of the first open event, or of an idle worker.
    fn next_timer(&self) -> Option<Instant> {
        if !self.is_ready() {
            return self.timers.hello_deadline();
        }
        self.open.first_deadline().or_else(|| self.timers.next_idle())
    }

    /// For what may make the next timer an earlier one.
    fn bring_alarm_forward(&mut self) {
        if let Some(next) = self.next_timer() {
            self.alarm.not_after(next);
        }
    }

    /// The alarm is not moved when a timer is put off, so it may ring too early.
    fn on_alarm(&mut self) -> ControlFlow<WorkerEnd> {
        let now = Instant::now();
        let flow = match self.next_timer() {
            Some(due) if due <= now => self.on_timer(now),
            _ => Continue(()),
        };
        self.alarm.set(self.next_timer(), now);
        flow
    }

    fn on_timer(&mut self, now: Instant) -> ControlFlow<WorkerEnd> {
        if !self.is_ready() {
            let seconds = self.config.timeouts.hello.as_secs_f64();
            return Break(self.no_hello(&format!("it sent no hello within {seconds} s")));
        }
        if !self.open.is_empty() {
            return Break(WorkerEnd::Late);
        }
        match self.timers.idle_action(now) {
            IdleAction::Wait => Continue(()),
            IdleAction::Ping => {
                self.requests.buffer().extend_from_slice(protocol::PING);
                self.timers.on_ping(now);
                Continue(())
            }
            IdleAction::Retire => Break(WorkerEnd::Retired),
            IdleAction::GiveUp => Break(WorkerEnd::Died("it does not answer a ping".to_owned())),
        }
    }

    fn on_command(&mut self, message: WorkerCommand) -> ControlFlow<WorkerEnd> {
        match message {
            WorkerCommand::Event(request) => self.send_event(request),
            WorkerCommand::Cancel(id) => {
                if let Some(open) = self.open.get_mut(id) {
                    open.reply = None;
                    protocol::write_cancel(self.requests.buffer(), id);
                }
            }
        }
        Continue(())
    }

    fn send_event(&mut self, WorkerRequest { event, deadline, reply, permit }: WorkerRequest) {
        let now = Instant::now();
        let left = deadline.saturating_duration_since(now);
        protocol::write_request(self.requests.buffer(), &event, left.as_millis());
        self.log.renew();
        self.timers.on_event(now);
        self.served += 1;
        let max = self.config.bounds.max_requests.get();
        if self.served == max - max / SUCCESSOR_SHARE {
            // Ready => Retiring: the fleet starts a successor.
            self.phase.send_replace(WorkerPhase::Retiring);
        }
        if self.served >= max {
            self.commands.close();
        }
        self.gauge.enter(WorkerState::Busy);
        self.open.insert(event.id, OpenEvent { allowance: left, reply: Some(reply), permit }, now);
        self.alarm.not_after(deadline);
    }

    fn on_output(&mut self, next: NextLine) -> ControlFlow<WorkerEnd> {
        let line = match next {
            NextLine::Line(line) => line,
            NextLine::TooLong => {
                return Break(
                    self.protocol_error(format!("a line is longer than {} bytes", self.config.limits.stdout)),
                );
            }
            NextLine::Ended(remainder) => return Break(self.stdout_closed(remainder)),
        };
        let message = match protocol::read(&line) {
            Ok(message) => message,
            Err(why) => return Break(self.invalid_line(&line, &why)),
        };
        match message {
            WorkerMessage::Hello { version: protocol::VERSION, flow } if !self.is_ready() => {
                self.on_hello(flow);
            }
            WorkerMessage::Hello { version, .. } if !self.is_ready() => {
                let known = protocol::VERSION;
                let why = format!("it uses version {version} of the protocol, not {known}");
                return Break(self.protocol_error(why));
            }
            WorkerMessage::Pong if self.timers.on_pong(Instant::now()) => self.bring_alarm_forward(),
            WorkerMessage::Reply { id, result } if self.is_ready() => {
                let answer = result
                    .map(|output| line.slice_ref(output.get().as_bytes()))
                    .map_err(|error| reported(&error));
                return self.on_reply(id, answer);
            }
            WorkerMessage::Hello { .. } | WorkerMessage::Pong | WorkerMessage::Reply { .. } => {
                return Break(self.protocol_error("an unexpected message".to_owned()));
            }
        }
        Continue(())
    }

    /// Starting => Ready.
    fn on_hello(&mut self, flow: EventFlow) {
        let now = Instant::now();
        self.open = OpenEvents::of(flow, now);
        self.capacity.allow(flow);
        self.shared_capacity.allow(flow);
        self.log.forget_start();
        self.timers.on_hello(now);
        self.gauge.enter(WorkerState::Idle);
        (self.on_capacity)();
        self.phase.send_replace(WorkerPhase::Ready);
        self.alarm.set(self.next_timer(), now);
    }

    fn on_reply(&mut self, id: u64, answer: WorkerAnswer) -> ControlFlow<WorkerEnd> {
        let now = Instant::now();
        let open = match self.open.answered(id, now) {
            Ok(open) => open,
            Err(Unexpected::Unknown) => {
                return Break(self.protocol_error("a reply is to an id that is not open".to_owned()));
            }
            Err(Unexpected::OutOfOrder) => {
                return Break(self.protocol_error("a reply of a pipeline is out of order".to_owned()));
            }
        };
        self.timers.on_event(now);
        if self.open.is_empty() {
            self.gauge.enter(WorkerState::Idle);
        }
        // Idle, or at an event that may have less time.
        if self.open.is_empty() || self.open.is_in_order() {
            self.bring_alarm_forward();
        }
        self.follow_pace();
        open.answer(answer);
        self.retire_if_spent(now);
        Continue(())
    }

    /// Passes on how many events the worker should have, if its pace decides that and has changed.
    fn follow_pace(&self) {
        let Some(window) = self.open.window() else { return };
        let is_new = self.capacity.set_window(window);
        if is_new && self.shared_capacity.set_window(window) {
            (self.on_capacity)();
        }
    }

    /// Ready | Retiring => Retired, once the open events are done, for a worker that is too old or too large.
    fn retire_if_spent(&mut self, now: Instant) {
        if self.timers.is_too_old(now) {
            self.commands.close();
        }
        if let Some(max) = self.config.bounds.max_rss_mib
            && self.memory_checked.is_none_or(|seen| seen.elapsed() >= MEMORY_CHECK)
        {
            self.memory_checked = Some(now);
            if self.group.leader_memory_mib().is_some_and(|mib| mib > max.get()) {
                self.commands.close();
            }
        }
    }

    /// Reads what an exited worker wrote before, up to the end of the pipe or of the drain: a descendant may still hold
    /// the pipe.
    async fn drain_stdout(&mut self) -> WorkerEnd {
        let deadline = Instant::now() + self.config.timeouts.drain;
        while let Ok(next) = timeout_at(deadline, self.lines.next()).await {
            if let Break(end) = self.on_output(next) {
                return end;
            }
        }
        let remainder = self.lines.remainder();
        self.stdout_closed(remainder)
    }
}
