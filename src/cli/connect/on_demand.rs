//! Starts the daemon of the connected agents where none listens: one daemon for all events that come at the same time.

use std::{
    fs::{self, File},
    io::{self, Read, Seek, SeekFrom},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, SystemTime},
};

use tokio::time::Instant;

use super::super::escape;
use crate::{
    config::{ConnectionStore, DaemonCommand, DaemonStart, StateFileError},
    daemon::has_listener,
    handler::command::is_inside_hook,
    model::io_reason,
    platform::has_given_up_privileges,
};

/// How long a daemon without events goes on, as it is written on its command line.
pub(super) const IDLE_TIMEOUT: &str = "30m";

/// Held by the process that starts the daemon.
const LOCK: &str = "daemon-start.lock";

/// What the daemon says of itself.
const LOG: &str = "daemon.log";

/// Where the log goes once it is large.
const FORMER_LOG: &str = "daemon.log.1";

/// A log that is larger is put aside before the next start.
const LARGE_LOG: u64 = 4 << 20;

/// Why the last start failed, for the processes that waited for it.
const FAILURE: &str = "daemon-start.failed";

/// The pause between two looks at a daemon that starts.
const PAUSE: Duration = Duration::from_millis(10);

/// The most that is read of what a daemon said before it ended, in bytes.
const LONGEST_REASON: u64 = 16 << 10;

/// The variables of the user that the daemon gets, as they were when the agent was connected. Nothing of the environment of
/// an agent reaches it: it has secrets of its project.
pub(super) const VARIABLES: [&str; 11] = [
    "HOME",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "LOGNAME",
    "SHELL",
    "TZ",
    "USER",
    "XDG_CONFIG_HOME",
    "XDG_RUNTIME_DIR",
    "XDG_STATE_HOME",
];

/// Why the daemon does not run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the daemon could not be started: {0}")]
pub(in crate::cli) struct StartFailed(String);

impl From<StateFileError> for StartFailed {
    fn from(error: StateFileError) -> Self {
        Self(error.to_string())
    }
}

/// The daemon that a record of connections describes, for one event that needs it.
#[derive(Debug)]
pub(in crate::cli) struct OnDemandDaemon {
    store: ConnectionStore,
    begun: SystemTime,
}

impl OnDemandDaemon {
    /// The daemon of the record in this state directory.
    pub(in crate::cli) fn new(state_directory: &Path) -> Self {
        Self { store: ConnectionStore::at(state_directory), begun: SystemTime::now() }
    }

    /// Starts it, unless it listens at this socket or another process is about to start it. Returns once it listens, or at
    /// once if another process starts it.
    ///
    /// Returns an error if it ends at once, does not listen until the deadline, or this process must not start it.
    pub(in crate::cli) fn attempt(&self, socket: &Path, deadline: Instant) -> Result<(), StartFailed> {
        let Some(_lock) = self.store.try_lock(LOCK)? else { return Ok(()) };
        // Another process may have started it since this one looked, or have failed to.
        if has_listener(socket) {
            return Ok(());
        }
        if let Some(why) = self.failure_since_begun() {
            return Err(StartFailed(why));
        }
        let command = self.command(socket)?;
        let mut log = self.open_log().map_err(|error| self.unusable_log(&error))?;
        let start = log.seek(SeekFrom::End(0)).map_err(|error| self.unusable_log(&error))?;
        let child = log.try_clone().and_then(|log| spawn(&command, log));
        let mut child = child.map_err(|error| {
            self.fail(format!("{}: {}", escape::path(&command.program), io_reason(&error)))
        })?;
        self.wait(&mut child, socket, deadline, (log, start))?;
        // A failure before this start says nothing any more.
        fs::remove_file(self.path(FAILURE)).ok();
        Ok(())
    }

    /// Where it logs.
    pub(in crate::cli) fn log(&self) -> PathBuf {
        self.path(LOG)
    }

    /// Why the last start failed, if none has succeeded since.
    pub(in crate::cli) fn last_failure(&self) -> Option<String> {
        let mut text = String::new();
        File::open(self.path(FAILURE)).ok()?.take(LONGEST_REASON).read_to_string(&mut text).ok()?;
        Some(text)
    }

    /// Why a start failed that ended after this process began: it would fail again.
    fn failure_since_begun(&self) -> Option<String> {
        let at = self.path(FAILURE).metadata().and_then(|found| found.modified()).ok()?;
        self.last_failure().filter(|_| at >= self.begun)
    }

    /// How the daemon at a socket is started.
    fn command(&self, socket: &Path) -> Result<DaemonCommand, StartFailed> {
        let refuse = |why: String| Err(StartFailed(why));
        let Some(command) = self.store.read()?.daemon else {
            return refuse("no agent is connected; run `hookyard connect`".to_owned());
        };
        match () {
            () if command.start != DaemonStart::OnDemand => {
                refuse("it is not one that is started on demand; start it yourself".to_owned())
            }
            () if command.socket != socket => refuse(format!(
                "the one that is started on demand listens on {}",
                escape::path(&command.socket)
            )),
            () if is_inside_hook() => refuse("this process is a hook of hookyard".to_owned()),
            // The daemon would be bound as well, and with it the hooks of every other agent.
            () if is_sandboxed() && !command.sandboxed => refuse(
                "this process is in a sandbox; run `hookyard doctor` or an agent outside of it".to_owned(),
            ),
            () => Ok(command),
        }
    }

    /// Waits until the daemon listens.
    fn wait(
        &self,
        child: &mut Child,
        socket: &Path,
        deadline: Instant,
        log: (File, u64),
    ) -> Result<(), StartFailed> {
        loop {
            if has_listener(socket) {
                return Ok(());
            }
            if let Ok(Some(status)) = child.try_wait() {
                let said = reason(log.0, log.1).unwrap_or_else(|| format!("it ended with {status}"));
                return Err(self.fail(said));
            }
            if Instant::now() >= deadline {
                let log = escape::path(&self.log());
                return Err(StartFailed(format!("it does not listen yet; its log is {log}")));
            }
            thread::sleep(PAUSE);
        }
    }

    /// Notes why the start failed.
    fn fail(&self, why: String) -> StartFailed {
        let written = new_file(&self.path(FAILURE)).and_then(|mut file| {
            file.set_len(0)?;
            io::Write::write_all(&mut file, why.as_bytes())
        });
        if let Err(error) = written {
            tracing::debug!(%error, "the failed start is not noted");
        }
        StartFailed(why)
    }

    fn open_log(&self) -> io::Result<File> {
        let path = self.log();
        if path.metadata().is_ok_and(|found| found.len() > LARGE_LOG) {
            fs::rename(&path, self.path(FORMER_LOG))?;
        }
        new_file(&path)
    }

    fn unusable_log(&self, error: &io::Error) -> StartFailed {
        StartFailed(format!("its log {}: {}", escape::path(&self.log()), io_reason(error)))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.store.directory().join(name)
    }
}

/// Whether this process has given up privileges for good, as what runs in a sandbox has.
pub(super) fn is_sandboxed() -> bool {
    has_given_up_privileges()
}

/// Opens a file of this user to append to it.
fn new_file(path: &Path) -> io::Result<File> {
    let flags = i32::try_from(rustix::fs::OFlags::NOFOLLOW.bits()).unwrap_or_default();
    File::options().create(true).append(true).read(true).mode(0o600).custom_flags(flags).open(path)
}

/// Starts the daemon with the environment of the record, and with none of this process.
#[expect(clippy::disallowed_methods, reason = "the daemon is no hook")]
fn spawn(command: &DaemonCommand, log: File) -> io::Result<Child> {
    let mut process = Command::new(&command.program);
    process.arg("serve").arg("--socket").arg(&command.socket);
    for (flag, path) in [("--config", &command.config), ("--home", &command.home)] {
        if let Some(path) = path {
            process.arg(flag).arg(path);
        }
    }
    process.args(["--exit-when-idle", IDLE_TIMEOUT, "--own-session", "--log", "human"]);
    process.env_clear().envs(&command.environment).env("PATH", &command.search_path);
    // An agent's directory may be removed while the daemon runs.
    process.current_dir("/").stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).spawn()
}

/// What a daemon said before it ended: its error, or its last line.
fn reason(mut log: File, start: u64) -> Option<String> {
    let mut said = Vec::new();
    log.seek(SeekFrom::Start(start)).ok()?;
    log.take(LONGEST_REASON).read_to_end(&mut said).ok()?;
    let said = String::from_utf8_lossy(&said);
    let mut lines = said.lines().map(str::trim).filter(|line| !line.is_empty());
    let error = |line: &&str| line.starts_with("error: ") || line.starts_with('×');
    let error =
        lines.clone().find(error).map(|line| line.trim_start_matches("error: ").trim_start_matches("× "));
    error.or_else(|| lines.next_back()).map(|line| escape::line(line).into_owned())
}
