//! One process group, from the start of its leader to the leader's reaping.
//!
//! The leader is reaped last: as long as it is a zombie its pid, and so the group's id, is not reused, and a signal to
//! the group cannot hit a stranger.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, kill_process_group, test_kill_process_group, waitid,
};
use tokio::time::{Instant, sleep_until};

use super::ledger::{PendingRecord, RecordedGroup, count_marked};
use super::reap::{self, OwnChild};
use super::spawn::{Program, SpawnError, next_mark, spawn};
use crate::platform::{self, ExitWatch, raw};

/// Between two attempts to reap a leader that has exited but is traced, and so cannot be reaped yet.
const TRACED_POLL: Duration = Duration::from_millis(5);

/// A process group. Until its leader is reaped, dropping it kills the group at once.
#[derive(Debug)]
pub(super) struct ProcessGroup {
    /// `None` once it is reaped: from then on `id` may be another group's, and nothing is signalled.
    leader: Option<OwnChild>,
    id: Pid,
    /// The group's line in the ledger, from which the next hookyard ends the group if this one is killed.
    recorded: Option<RecordedGroup>,
    /// By which members are recognised that left the group.
    mark: Option<String>,
}

/// The parent's ends of the standard streams of a leader.
#[derive(Debug)]
pub(super) struct StdioPipes {
    pub(super) stdin: OwnedFd,
    pub(super) stdout: OwnedFd,
    pub(super) stderr: OwnedFd,
}

impl ProcessGroup {
    /// Starts a program as the leader of its own group. A failure leaves no process behind.
    pub(super) fn start(program: &Program) -> Result<(Self, StdioPipes), SpawnError> {
        // Before the start: the ledger recognises a leader by the time window in which it was started.
        let pending = PendingRecord::now();
        let mark = next_mark(program);
        let mut leader = spawn(program, mark.as_deref())?;
        let stdin = leader.process.stdin.take();
        let stdout = leader.process.stdout.take();
        let stderr = leader.process.stderr.take();
        let id = Pid::from_child(&leader.process);
        let group = Self { leader: Some(leader), id, recorded: pending.record(id), mark };
        let (Some(stdin), Some(stdout), Some(stderr)) = (stdin, stdout, stderr) else {
            return Err(SpawnError::of(program, io::Error::other("a piped stream is missing")));
        };
        Ok((group, StdioPipes { stdin: stdin.into(), stdout: stdout.into(), stderr: stderr.into() }))
    }

    /// The leader's pid and the group's id.
    pub(super) fn id(&self) -> Pid {
        self.id
    }

    /// Signals every member. Does nothing once the leader is reaped: the id may be another group's.
    pub(super) fn signal(&self, signal: Signal) {
        if self.leader.is_none() {
            return;
        }
        if let Err(error) = kill_process_group(self.id, signal) {
            tracing::debug!(%error, signal = signal.as_raw(), group = self.id.as_raw_pid(), "hook's process group could not be signalled");
        }
    }

    /// Whether the leader has exited, without reaping it.
    pub(super) fn leader_exited(&self) -> bool {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        !matches!(waitid(WaitId::Pid(self.id), options), Ok(None))
    }

    /// Reaps a leader that has exited, trying until `deadline`. Returns `None` if it cannot be reaped by then.
    pub(super) async fn reap(&mut self, deadline: Instant) -> Option<LeaderStatus> {
        loop {
            let leader = self.leader.as_mut()?;
            let status = match leader.try_wait() {
                // A tracer has not released the exited leader yet.
                Ok(None) if Instant::now() < deadline => {
                    sleep_until(deadline.min(Instant::now() + TRACED_POLL)).await;
                    continue;
                }
                Ok(None) => return None,
                Ok(Some(status)) => LeaderStatus::of(status),
                Err(_) => LeaderStatus::Unknown,
            };
            // From here on nothing may be sent to the id any more.
            self.leader = None;
            // Members that are left were sent SIGKILL; the next hookyard could not do more.
            self.recorded = None;
            return Some(status);
        }
    }

    /// The memory that the leader occupies, in MiB. `None` if it has exited.
    pub(super) fn leader_memory_mib(&self) -> Option<usize> {
        platform::memory_mib(raw(self.id))
    }

    /// Waits for the exit of the leader.
    ///
    /// # Errors
    /// Returns the system's error if it has no descriptor, thread or memory left.
    pub(super) fn watch_exit(&self) -> io::Result<ExitWatch> {
        ExitWatch::on(self.id)
    }

    /// How many processes left the group and still run. Looks at all processes, on a thread of its own.
    pub(super) async fn escaped(&self) -> usize {
        let Some(mark) = self.mark.clone() else { return 0 };
        let group = self.id;
        tokio::task::spawn_blocking(move || count_marked(&mark, group)).await.unwrap_or_default()
    }

    /// Whether the group has members, alive, or dead and not reaped by a parent other than this process. Call it once the
    /// leader is reaped: a zombie leader counts as a member.
    pub(super) fn populated(&self) -> bool {
        test_kill_process_group(self.id) != Err(Errno::SRCH) && reap::has_survivors(self.id)
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
        if let Some(leader) = self.leader.take() {
            reap::later(leader);
        }
    }
}

/// The exit status of a leader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LeaderStatus {
    Exited(i32),
    Signalled(i32),
    /// Somebody else in this process reaped it: it waits for any child, or ignores SIGCHLD.
    Unknown,
}

impl LeaderStatus {
    fn of(status: ExitStatus) -> Self {
        match (status.code(), status.signal()) {
            (Some(code), _) => Self::Exited(code),
            (None, Some(signal)) => Self::Signalled(signal),
            (None, None) => Self::Unknown,
        }
    }
}
