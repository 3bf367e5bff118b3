//! Owns one process from start to end: one deadline, the order of exit, drain, kill and reaping, and the answer in time.
//! Refuses to judge an exit code or an output, and to start anything twice.
//! Talks to: `streams` and `group`, which know the pieces; its callers are the modes of the command handler.

use std::time::Duration;

use bytes::Bytes;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Signal;
use tokio::time::{Instant, sleep, sleep_until, timeout_at};
use tokio_util::sync::CancellationToken;

use super::capture::Capture;
pub use super::capture::Captured;
use super::group::{ExitWatch, Group, Pipes, Status};
pub use super::spawn::{Program, SpawnError};
use super::streams::Streams;

/// After SIGKILL, how long the exit and the last output are waited for. Killing takes the kernel a millisecond;
/// what takes longer is stuck in a system call that cannot be interrupted, and no answer waits for that.
const SETTLE: Duration = Duration::from_millis(250);

/// The limits within which a process runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// From before the spawn to the exit.
    pub timeout: Duration,
    /// Between SIGTERM and SIGKILL.
    pub grace: Duration,
    /// How long the pipes are read after the exit, if somebody still holds them.
    pub drain: Duration,
    /// Bytes of stdout kept: the head.
    pub stdout: usize,
    /// Bytes of stderr kept: head and tail, half each.
    pub stderr: usize,
}

impl Bounds {
    /// The usual limits, with `timeout`.
    #[must_use]
    pub fn within(timeout: Duration) -> Self {
        Self {
            timeout,
            grace: Duration::from_secs(2),
            drain: Duration::from_millis(200),
            stdout: 1024 * 1024,
            stderr: 64 * 1024,
        }
    }
}

/// A process that has ended, or that is killed and given up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// How it ended.
    pub end: End,
    /// What was kept of stdout.
    pub stdout: Captured,
    /// What was kept of stderr.
    pub stderr: Captured,
    /// What it left behind.
    pub leak: Leaks,
    /// How long the start took.
    pub spawn_time: Duration,
    /// Its pid and group id, for logs: both may be another's by now. `None` if it was cancelled before the start.
    pub pid: Option<u32>,
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// By itself, with this code.
    Exited(i32),
    /// By this signal, which hookyard did not send.
    Signalled(i32),
    /// It exceeded its deadline and was stopped.
    TimedOut(Stopped),
    /// The caller gave up, and it was stopped.
    Cancelled,
    /// It exited, but its status cannot be had: somebody traces it, or something else in hookyard's process reaped it.
    Lost,
}

/// What it took to stop a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stopped {
    /// SIGTERM was enough.
    ByTerm,
    /// SIGKILL after the grace.
    ByKill,
    /// SIGKILL was sent, but the process has not gone yet. It is reaped when it goes.
    StillDying,
}

/// What a process left behind when it ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Leaks {
    /// Somebody still held stdout or stderr when the drain was over.
    pub pipe_held: bool,
    /// Its group had other members, which were killed. Also true for a member that was dead already, but not yet
    /// reaped by the process that adopted it: the system tells the two apart only at the price of a walk of `/proc`.
    pub survivor_killed: bool,
}

/// Runs `program` once, writing `stdin` to it, and returns when it has ended, or at the latest
/// `bounds.timeout + bounds.grace` and half a second after the call, whatever the process does.
///
/// Nothing of its process group is left running, neither on return nor when the future is dropped.
/// Cancellation stops it as the deadline does: the future returns once it is gone.
///
/// # Errors
/// Returns a [`SpawnError`] if the program cannot be started.
///
/// # Examples
/// ```
/// # use hookyard::handler::command::process::{Bounds, End, Program, run};
/// # use std::time::Duration;
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// let program = Program {
///     path: "/bin/sh".into(),
///     args: vec!["-c".into(), "cat; exit 3".into()],
///     cwd: "/".into(),
///     environment: vec![],
/// };
/// let finished = run(&program, "hello".into(), Bounds::within(Duration::from_secs(9)), &Default::default()).await?;
/// assert_eq!(finished.end, End::Exited(3));
/// assert_eq!(finished.stdout.bytes, "hello");
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).map(drop).unwrap();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub async fn run(
    program: &Program,
    stdin: Bytes,
    bounds: Bounds,
    cancel: &CancellationToken,
) -> Result<Finished, SpawnError> {
    let started = Instant::now();
    if cancel.is_cancelled() {
        return Ok(Finished::unstarted());
    }
    let waiting = Waiting::start(program)?;
    let left = bounds.timeout.saturating_sub(started.elapsed());
    waiting.feed(stdin, Bounds { timeout: left, ..bounds }, cancel).await
}

/// A process that was started and has been told nothing yet. Dropping it kills its group.
#[derive(Debug)]
pub(super) struct Waiting {
    program: Program,
    group: Group,
    pipes: Pipes,
    spawn_time: Duration,
}

impl Waiting {
    /// Starts `program` and leaves its stdin open.
    pub(super) fn start(program: &Program) -> Result<Self, SpawnError> {
        let started = Instant::now();
        let (group, pipes) = Group::start(program)?;
        Ok(Self { program: program.clone(), group, pipes, spawn_time: started.elapsed() })
    }

    /// Whether it lives and has written nothing to stdout.
    pub(super) fn is_quiet(&self) -> bool {
        let mut stdout = [PollFd::new(&self.pipes.stdout, PollFlags::IN)];
        let wrote_or_closed = poll(&mut stdout, Some(&Timespec::default())) != Ok(0);
        !wrote_or_closed && !self.group.leader_exited()
    }

    /// Tells it everything, as [`run`] does; the time counts from now.
    pub(super) async fn feed(
        self,
        stdin: Bytes,
        bounds: Bounds,
        cancel: &CancellationToken,
    ) -> Result<Finished, SpawnError> {
        let (started, spawn_time) = (Instant::now(), self.spawn_time);
        let mut process = Process::of(self, stdin, bounds)?;
        let verdict = match process.attend(bounds.timeout.saturating_sub(started.elapsed()), cancel).await {
            Wake::Exit => process.settle(bounds.drain).await,
            Wake::Deadline => process.stop(bounds.grace, End::TimedOut).await,
            Wake::Cancel => process.stop(bounds.grace, |_| End::Cancelled).await,
        };
        Ok(process.finish(verdict, spawn_time))
    }
}

impl Finished {
    fn unstarted() -> Self {
        Self {
            end: End::Cancelled,
            stdout: Captured::default(),
            stderr: Captured::default(),
            leak: Leaks::default(),
            spawn_time: Duration::ZERO,
            pid: None,
        }
    }
}

/// Why attending a running process ends.
enum Wake {
    Exit,
    Cancel,
    Deadline,
}

/// A started process. Dropping it kills its group.
struct Process {
    group: Group,
    exit: ExitWatch,
    streams: Streams,
}

impl Process {
    fn of(waiting: Waiting, stdin: Bytes, bounds: Bounds) -> Result<Self, SpawnError> {
        let Waiting { program, group, pipes, .. } = waiting;
        let streams = Streams::open(
            (pipes.stdin, stdin),
            (pipes.stdout, Capture::head(bounds.stdout)),
            (pipes.stderr, Capture::head_and_tail(bounds.stderr)),
        );
        let watched = streams.and_then(|streams| Ok((ExitWatch::on(&group)?, streams)));
        let (exit, streams) = watched.map_err(|error| SpawnError::of(&program, error))?;
        Ok(Self { group, exit, streams })
    }

    /// Serves the pipes until something happens. The pipes come last: a process that writes without end
    /// would otherwise use up the task's turn before the clock is looked at. The time left is a length, since a
    /// point in time may not be beyond all time.
    async fn attend(&mut self, left: Duration, cancel: &CancellationToken) -> Wake {
        tokio::select! {
            biased;
            () = self.exit.exited() => Wake::Exit,
            () = cancel.cancelled() => Wake::Cancel,
            () = sleep(left) => Wake::Deadline,
            never = self.streams.exchange() => match never {},
        }
    }

    /// After the leader's exit: drains, then kills what is left of the group, then reaps. A grandchild that
    /// still writes gets the drain's time, so the kill comes after it.
    async fn settle(&mut self, drain: Duration) -> (End, Leaks) {
        let pipe_held = self.drain(drain).await;
        self.group.signal(Signal::KILL);
        let end = match self.group.reap(Instant::now() + SETTLE).await {
            Some(Status::Exited(code)) => End::Exited(code),
            Some(Status::Signalled(signal)) => End::Signalled(signal),
            Some(Status::Unknown) | None => End::Lost,
        };
        (end, Leaks { pipe_held, survivor_killed: self.group.populated() })
    }

    /// SIGTERM, a grace, SIGKILL. SIGCONT lets a stopped process take the SIGTERM. The group is killed also when
    /// its leader obeyed: its children may not have.
    async fn stop(&mut self, grace: Duration, end: impl FnOnce(Stopped) -> End) -> (End, Leaks) {
        self.streams.close_stdin();
        self.group.signal(Signal::TERM);
        self.group.signal(Signal::CONT);
        let patience = Instant::now() + grace;
        let obeyed = self.exited_by(patience).await;
        if obeyed {
            // A shell that ran a line is gone at once, while the program it ran may still be tidying up. It
            // holds a pipe as long as it does. Nothing is made of who holds on: the group is killed either way.
            drop(timeout_at(patience, self.streams.ended()).await);
        }
        self.group.signal(Signal::KILL);
        let last = Instant::now() + SETTLE;
        let gone = self.exited_by(last).await && self.group.reap(last).await.is_some();
        let stopped = match (gone, obeyed) {
            (false, _) => Stopped::StillDying,
            (true, true) => Stopped::ByTerm,
            (true, false) => Stopped::ByKill,
        };
        let survivor_killed = gone && self.group.populated();
        let pipe_held = self.drain(last.saturating_duration_since(Instant::now())).await;
        (end(stopped), Leaks { pipe_held, survivor_killed })
    }

    /// Serves the pipes until the leader exits or `last` is reached; returns whether it exited.
    async fn exited_by(&mut self, last: Instant) -> bool {
        tokio::select! {
            biased;
            () = self.exit.exited() => true,
            () = sleep_until(last) => false,
            never = self.streams.exchange() => match never {},
        }
    }

    /// Reads both outputs to their end, for at most `length`; returns whether somebody still holds one.
    async fn drain(&mut self, length: Duration) -> bool {
        self.streams.close_stdin();
        timeout_at(Instant::now() + length, self.streams.ended()).await.is_err()
    }

    fn finish(self, (end, leak): (End, Leaks), spawn_time: Duration) -> Finished {
        let pid = u32::try_from(self.group.id().as_raw_nonzero().get()).ok();
        let (stdout, stderr) = self.streams.finish();
        Finished { end, stdout, stderr, leak, spawn_time, pid }
    }
}
