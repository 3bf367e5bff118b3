//! Runs one process from start to end, within one deadline. What an exit code or an output means is the dialects'
//! concern.
//!
//! ```text
//!            ┌─ exit ─────▶ settle: drain pipes ─▶ SIGKILL to the group ─▶ reap ──────────────┐
//! attend ────┼─ deadline ─▶ stop: SIGTERM ─ grace ─▶ SIGKILL to the group ─▶ reap ─▶ drain ───┼─▶ finish
//!            └─ cancel ───▶ stop                                                              ┘
//! ```

use std::time::Duration;

use bytes::Bytes;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Signal;
use tokio::time::{Instant, sleep, sleep_until, timeout_at};
use tokio_util::sync::CancellationToken;

use super::capture::Capture;
pub use super::capture::Captured;
use super::group::{LeaderStatus, ProcessGroup, StdioPipes};
pub use super::spawn::{Program, SpawnError};
use super::streams::ProcessStreams;
use crate::{
    handler::{BackgroundSwitch, Invocation},
    model::Dialect,
    platform::ExitWatch,
};

/// How long to wait for the exit and the last output after SIGKILL. Killing takes the kernel a millisecond; what takes
/// longer is stuck in a system call that cannot be interrupted, and no reply waits for that.
const KILL_TIMEOUT: Duration = Duration::from_millis(250);

/// The limits of one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessLimits {
    /// From before the start to the exit.
    pub timeout: Duration,
    /// Between SIGTERM and SIGKILL.
    pub grace: Duration,
    /// How long the pipes are read after the exit, if a descendant still holds them.
    pub drain: Duration,
    /// Bytes of stdout that are kept: the head.
    pub stdout: usize,
    /// Bytes of stderr that are kept: head and tail, half each.
    pub stderr: usize,
}

impl ProcessLimits {
    /// The default limits, with this `timeout`.
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

/// The result of a process that has ended, or that was sent SIGKILL and is no longer waited for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FinishedProcess {
    /// How it ended.
    pub end: ProcessEnd,
    /// What was kept of stdout.
    pub stdout: Captured,
    /// What was kept of stderr.
    pub stderr: Captured,
    /// What it left behind, which was cleaned up.
    pub leak: Leaks,
    /// How many processes it started that left its group and still run. Counted only if it left something behind or
    /// was stopped at its deadline.
    pub escaped: usize,
    /// How long the start took.
    pub spawn_time: Duration,
    /// Its pid and group id, for logs: both may be reused by now. `None` if it was cancelled before the start.
    pub pid: Option<u32>,
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessEnd {
    /// It exited with this code.
    Exited(i32),
    /// It was killed by this signal, which hookyard did not send.
    Signalled(i32),
    /// It exceeded its deadline and was stopped.
    TimedOut(Stopped),
    /// The caller cancelled, and it was stopped.
    Cancelled,
    /// It exited, but its status is unknown: it is traced, or something else in this process reaped it.
    Lost,
}

/// What it took to stop a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stopped {
    /// SIGTERM was enough.
    ByTerm,
    /// SIGKILL after the grace.
    ByKill,
    /// SIGKILL was sent, but the process has not exited yet. It is reaped when it does.
    StillDying,
}

/// What a process left behind when it ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Leaks {
    /// A descendant still held stdout or stderr at the end of the drain.
    pub pipe_held: bool,
    /// Its group had other members, which were killed. Also true for a dead member that the process which adopted it
    /// has not reaped yet: telling the two apart costs a walk of `/proc`.
    pub survivor_killed: bool,
}

/// Runs `program` once with `stdin` as its input. Returns when it has ended, and whatever it does, at most
/// `bounds.timeout + bounds.grace` and half a second after the call.
///
/// Nothing of its process group is left running, neither on return nor when the future is dropped. Cancellation stops
/// the process as the deadline does: the future returns once it is gone.
///
/// # Errors
/// Returns a [`SpawnError`] if the program cannot be started.
///
/// # Examples
/// ```
/// # use hookyard::handler::command::process::{ProcessEnd, ProcessLimits, Program, run};
/// # use hookyard::model::Approval;
/// # use std::time::Duration;
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// let program = Program {
///     path: "/bin/sh".into(),
///     args: vec!["-c".into(), "cat; exit 3".into()],
///     cwd: "/".into(),
///     environment: vec![],
///     approval: Approval::of_host(),
/// };
/// let finished = run(&program, "hello".into(), ProcessLimits::within(Duration::from_secs(9)), &Default::default()).await?;
/// assert_eq!(finished.end, ProcessEnd::Exited(3));
/// assert_eq!(finished.stdout.bytes, "hello");
/// # Ok::<(), Box<dyn std::error::Error>>(()) }).map(drop).unwrap();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub async fn run(
    program: &Program,
    stdin: Bytes,
    bounds: ProcessLimits,
    cancel: &CancellationToken,
) -> Result<FinishedProcess, SpawnError> {
    run_in(ProcessContext::new(cancel), program, stdin, bounds).await
}

/// The same as [`run`], for a hook.
pub(super) async fn run_in(
    context: ProcessContext<'_>,
    program: &Program,
    stdin: Bytes,
    bounds: ProcessLimits,
) -> Result<FinishedProcess, SpawnError> {
    let started = Instant::now();
    if context.cancel.is_cancelled() {
        return Ok(FinishedProcess::unstarted());
    }
    let waiting = IdleProcess::start(program)?;
    let left = bounds.timeout.saturating_sub(started.elapsed());
    waiting.feed(stdin, ProcessLimits { timeout: left, ..bounds }, context).await
}

/// Who has a process run.
#[derive(Clone, Copy)]
pub(super) struct ProcessContext<'a> {
    cancel: &'a CancellationToken,
    /// The hook, which may go on in the background.
    hook: Option<(&'a dyn Dialect, &'a BackgroundSwitch)>,
}

impl<'a> ProcessContext<'a> {
    fn new(cancel: &'a CancellationToken) -> Self {
        Self { cancel, hook: None }
    }

    /// For a hook that may go on in the background.
    pub(super) fn of_hook(invocation: &'a Invocation, cancel: &'a CancellationToken) -> Self {
        Self { cancel, hook: Some((invocation.hook.hook.dialect, &invocation.background)) }
    }

    /// Asks for the background if the output begins so.
    fn look(&self, output: &[u8]) {
        if let Some((dialect, background)) = self.hook
            && dialect.goes_on_in_background(output)
        {
            background.ask();
        }
    }

    /// Waits until nobody wants the result any more. In the background it is not wanted, and the process goes on.
    async fn given_up(&self) {
        self.cancel.cancelled().await;
        if self.hook.is_some_and(|(_, background)| background.is_agreed()) {
            std::future::pending::<()>().await;
        }
    }
}

/// A process that was started and waits for its input. Dropping it kills its group.
#[derive(Debug)]
pub(super) struct IdleProcess {
    program: Program,
    group: ProcessGroup,
    pipes: StdioPipes,
    spawn_time: Duration,
}

impl IdleProcess {
    /// Starts `program` and leaves its stdin open.
    pub(super) fn start(program: &Program) -> Result<Self, SpawnError> {
        let started = Instant::now();
        let (group, pipes) = ProcessGroup::start(program)?;
        Ok(Self { program: program.clone(), group, pipes, spawn_time: started.elapsed() })
    }

    /// Whether it runs and has written nothing to stdout.
    pub(super) fn is_quiet(&self) -> bool {
        let mut stdout = [PollFd::new(&self.pipes.stdout, PollFlags::IN)];
        let wrote_or_closed = poll(&mut stdout, Some(&Timespec::default())) != Ok(0);
        !wrote_or_closed && !self.group.leader_exited()
    }

    /// Writes its input and runs it to its end, as [`run`] does; the time counts from now.
    pub(super) async fn feed(
        self,
        stdin: Bytes,
        bounds: ProcessLimits,
        context: ProcessContext<'_>,
    ) -> Result<FinishedProcess, SpawnError> {
        let started = Instant::now();
        let spawn_time = self.spawn_time;
        let mut process = RunningProcess::of(self, stdin, bounds)?;
        let ended = match process.attend(bounds.timeout.saturating_sub(started.elapsed()), context).await {
            Wake::Exit => process.settle(bounds.drain).await,
            Wake::Deadline => process.stop(bounds.grace, ProcessEnd::TimedOut).await,
            Wake::Cancel => process.stop(bounds.grace, |_| ProcessEnd::Cancelled).await,
        };
        let escaped = process.count_escaped(&ended).await;
        Ok(FinishedProcess { escaped, ..process.finish(ended, spawn_time) })
    }
}

impl FinishedProcess {
    fn unstarted() -> Self {
        Self {
            end: ProcessEnd::Cancelled,
            stdout: Captured::default(),
            stderr: Captured::default(),
            leak: Leaks::default(),
            escaped: 0,
            spawn_time: Duration::ZERO,
            pid: None,
        }
    }
}

/// The events that a running process is attended until.
enum Wake {
    Exit,
    Cancel,
    Deadline,
}

/// A started process. Dropping it kills its group.
struct RunningProcess {
    group: ProcessGroup,
    exit: ExitWatch,
    streams: ProcessStreams,
}

impl RunningProcess {
    fn of(waiting: IdleProcess, stdin: Bytes, bounds: ProcessLimits) -> Result<Self, SpawnError> {
        let IdleProcess { program, group, pipes, .. } = waiting;
        let stdout = Capture::head(bounds.stdout);
        let stderr = Capture::head_and_tail(bounds.stderr);
        let streams = ProcessStreams::open(pipes, stdin, stdout, stderr);
        let streams = streams.map_err(|error| SpawnError::of(&program, error))?;
        let exit = group.watch_exit().map_err(|error| SpawnError::of(&program, error))?;
        Ok(Self { group, exit, streams })
    }

    /// Serves the pipes until the exit, the deadline or a cancellation. The pipes are polled last: a process that
    /// writes without end would otherwise use up the task's turn before the timer is polled. The time left is a
    /// duration, because the timeout may be too long for an `Instant`.
    async fn attend(&mut self, left: Duration, context: ProcessContext<'_>) -> Wake {
        let look = |output: &[u8]| context.look(output);
        tokio::select! {
            biased;
            () = self.exit.exited() => Wake::Exit,
            () = context.given_up() => Wake::Cancel,
            () = sleep(left) => Wake::Deadline,
            never = self.streams.exchange_watched(Some(&look)) => match never {},
        }
    }

    /// After the leader's exit: drains the pipes, then kills what is left of the group, then reaps. A descendant that
    /// still writes has the time of the drain, so the kill comes after it.
    async fn settle(&mut self, drain: Duration) -> (ProcessEnd, Leaks) {
        let pipe_held = self.drain(drain).await;
        self.group.signal(Signal::KILL);
        let end = match self.group.reap(Instant::now() + KILL_TIMEOUT).await {
            Some(LeaderStatus::Exited(code)) => ProcessEnd::Exited(code),
            Some(LeaderStatus::Signalled(signal)) => ProcessEnd::Signalled(signal),
            Some(LeaderStatus::Unknown) | None => ProcessEnd::Lost,
        };
        (end, Leaks { pipe_held, survivor_killed: self.group.populated() })
    }

    /// SIGTERM, grace, SIGKILL. SIGCONT lets a stopped process handle the SIGTERM. The group is killed even if its
    /// leader exited in time: its children may not have.
    async fn stop(
        &mut self,
        grace: Duration,
        end: impl FnOnce(Stopped) -> ProcessEnd,
    ) -> (ProcessEnd, Leaks) {
        self.streams.close_stdin();
        self.group.signal(Signal::TERM);
        self.group.signal(Signal::CONT);
        let grace_end = Instant::now() + grace;
        let obeyed = self.exited_by(grace_end).await;
        if obeyed {
            // A shell exits at once, while the program of its line may still clean up, holding a pipe. It has the
            // rest of the grace for that. Whether the pipes were closed does not matter: the group is killed anyway.
            drop(timeout_at(grace_end, self.streams.ended()).await);
        }
        self.group.signal(Signal::KILL);
        let deadline = Instant::now() + KILL_TIMEOUT;
        let gone = self.exited_by(deadline).await && self.group.reap(deadline).await.is_some();
        let stopped = match (gone, obeyed) {
            (false, _) => Stopped::StillDying,
            (true, true) => Stopped::ByTerm,
            (true, false) => Stopped::ByKill,
        };
        let survivor_killed = gone && self.group.populated();
        let pipe_held = self.drain(deadline.saturating_duration_since(Instant::now())).await;
        (end(stopped), Leaks { pipe_held, survivor_killed })
    }

    /// Serves the pipes until the leader exits or `deadline` is reached; returns whether it exited.
    async fn exited_by(&mut self, deadline: Instant) -> bool {
        tokio::select! {
            biased;
            () = self.exit.exited() => true,
            () = sleep_until(deadline) => false,
            never = self.streams.exchange() => match never {},
        }
    }

    /// Reads both outputs to their end, for at most `duration`; returns whether a descendant still holds one.
    async fn drain(&mut self, duration: Duration) -> bool {
        self.streams.close_stdin();
        timeout_at(Instant::now() + duration, self.streams.ended()).await.is_err()
    }

    /// Only where something is wrong already: looking at every process of the machine takes milliseconds.
    async fn count_escaped(&self, (end, leak): &(ProcessEnd, Leaks)) -> usize {
        let is_suspect = leak.pipe_held || leak.survivor_killed || matches!(end, ProcessEnd::TimedOut(_));
        if is_suspect { self.group.escaped().await } else { 0 }
    }

    fn finish(self, (end, leak): (ProcessEnd, Leaks), spawn_time: Duration) -> FinishedProcess {
        let pid = u32::try_from(self.group.id().as_raw_nonzero().get()).ok();
        let (stdout, stderr) = self.streams.finish();
        FinishedProcess { end, stdout, stderr, leak, escaped: 0, spawn_time, pid }
    }
}
