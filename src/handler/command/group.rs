//! Owns one process group from its start to its reaping: who leads it, when the leader exits, which signals it gets.
//! Refuses to decide when to signal. Talks to: `process`, which decides; `reap`, for leaders left behind; `ledger`,
//! for the case that hookyard is killed.
//!
//! The leader is reaped last: as long as it is a zombie its pid, and so the group's id, belongs to nobody else, and
//! a signal to the group cannot hit a stranger.

use std::future::poll_fn;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, kill_process_group, pidfd_open, test_kill_process_group,
    waitid,
};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::time::{Instant, sleep_until};

use super::ledger::{Entry, Stamp};
use super::reap;
use super::spawn::{Program, SpawnError, spawn};

/// Between two looks at a leader that exited but cannot be reaped: somebody traces it.
const TRACED_LOOK: Duration = Duration::from_millis(5);

/// A process group whose leader has not been reaped. Dropping it kills the group at once.
#[derive(Debug)]
pub(super) struct Group {
    leader: Option<Child>,
    id: Pid,
    entry: Option<Entry>,
}

/// Our ends of the three streams of a leader.
#[derive(Debug)]
pub(super) struct Pipes {
    pub(super) stdin: OwnedFd,
    pub(super) stdout: OwnedFd,
    pub(super) stderr: OwnedFd,
}

impl Group {
    /// Starts a program as the leader of its own group. No failure can leave it behind.
    pub(super) fn start(program: &Program) -> Result<(Self, Pipes), SpawnError> {
        let stamp = Stamp::now();
        let mut leader = spawn(program)?;
        let pipes = (leader.stdin.take(), leader.stdout.take(), leader.stderr.take());
        let id = Pid::from_child(&leader);
        let group = Self { leader: Some(leader), id, entry: stamp.record(id) };
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
            return Err(SpawnError::of(program, io::Error::other("a piped stream is missing")));
        };
        Ok((group, Pipes { stdin: stdin.into(), stdout: stdout.into(), stderr: stderr.into() }))
    }

    /// The leader's pid and the group's id.
    pub(super) fn id(&self) -> Pid {
        self.id
    }

    /// Signals every member. Only while the leader is unreaped: afterwards the id may be another group's.
    pub(super) fn signal(&self, signal: Signal) {
        if self.leader.is_none() {
            return;
        }
        if let Err(error) = kill_process_group(self.id, signal) {
            tracing::debug!(%error, ?signal, group = ?self.id, "hook's process group could not be signalled");
        }
    }

    /// Whether the leader has exited; it is not reaped.
    pub(super) fn leader_exited(&self) -> bool {
        let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        !matches!(waitid(WaitId::Pid(self.id), look), Ok(None))
    }

    /// Reaps a leader that was seen to exit, trying until `last`. Returns `None` if it cannot be reaped by then.
    pub(super) async fn reap(&mut self, last: Instant) -> Option<Status> {
        loop {
            let leader = self.leader.as_mut()?;
            let status = match leader.try_wait() {
                Ok(None) if Instant::now() < last => {
                    sleep_until(last.min(Instant::now() + TRACED_LOOK)).await;
                    continue;
                }
                Ok(None) => return None,
                Ok(Some(status)) => Status::of(status),
                Err(_) => Status::Unknown,
            };
            self.leader = None;
            // Whoever was left of it has got SIGKILL, and more the next hookyard could not do either.
            self.entry = None;
            return Some(status);
        }
    }

    /// Returns true if the group has members besides the leader, alive, or dead and not reaped by their parent.
    /// Meaningful once the leader is reaped: a zombie leader counts as a member.
    pub(super) fn populated(&self) -> bool {
        test_kill_process_group(self.id) != Err(Errno::SRCH)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
        if let Some(leader) = self.leader.take() {
            reap::later(leader);
        }
    }
}

/// How the leader ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Status {
    Exited(i32),
    Signalled(i32),
    /// Reaped by someone else in this process, which waits for any child or ignores SIGCHLD.
    Unknown,
}

impl Status {
    fn of(status: ExitStatus) -> Self {
        match (status.code(), status.signal()) {
            (Some(code), _) => Self::Exited(code),
            (None, Some(signal)) => Self::Signalled(signal),
            (None, None) => Self::Unknown,
        }
    }
}

/// Tells when the leader exits, without reaping it.
#[derive(Debug)]
pub(super) struct ExitWatch(AsyncFd<OwnedFd>);

impl ExitWatch {
    /// # Errors
    /// Returns the system's error if it has no descriptor or no memory left.
    #[allow(
        deprecated,
        reason = "its successor is unsafe for types whose descriptor may change; an `OwnedFd`'s cannot"
    )]
    pub(super) fn on(group: &Group) -> io::Result<Self> {
        let pidfd = pidfd_open(group.id(), PidfdFlags::NONBLOCK)?;
        AsyncFd::with_interest(pidfd, Interest::READABLE).map(Self)
    }

    /// Waits until the leader has exited; cancel-safe, and at once from then on.
    pub(super) async fn exited(&self) {
        // An error means that the runtime is going down; the leader then proves unreapable and is killed.
        let _ = poll_fn(|cx| self.0.poll_read_ready(cx).map_ok(drop)).await;
    }
}
