//! Children of the process runner: how they are started, and what `/proc` says of them.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use hookyard::handler::command::process::{FinishedProcess, ProcessLimits, Program, run};
use hookyard::model::Approval;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::support::wait::LONGEST_WAIT;

pub(crate) fn child(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/support/children").join(format!("{name}.sh"))
}

/// The program of one child of the corpus.
pub(crate) fn program(name: &str) -> Program {
    Program {
        path: child(name),
        args: vec![],
        cwd: "/".into(),
        environment: vec![("PATH".into(), std::env::var_os("PATH").unwrap())],
        approval: Approval::of_host(),
    }
}

pub(crate) fn bounds(timeout: u64, grace: u64) -> ProcessLimits {
    ProcessLimits {
        grace: Duration::from_millis(grace),
        ..ProcessLimits::within(Duration::from_millis(timeout))
    }
}

/// Runs a child with `stdin` bytes and returns how long that took.
pub(crate) async fn timed(name: &str, stdin: usize, bounds: ProcessLimits) -> (FinishedProcess, Duration) {
    let started = Instant::now();
    let input = Bytes::from(vec![b'x'; stdin]);
    let finished = run(&program(name), input, bounds, &CancellationToken::new()).await.unwrap();
    (finished, started.elapsed())
}

/// A process as `/proc/PID/stat` shows it.
#[derive(Debug, Clone)]
pub(crate) struct Process {
    pub(crate) pid: u32,
    pub(crate) name: String,
    pub(crate) state: char,
    pub(crate) parent: u32,
    pub(crate) group: u32,
}

impl Process {
    pub(crate) fn alive(&self) -> bool {
        !matches!(self.state, 'Z' | 'X')
    }

    fn read(pid: u32) -> Option<Self> {
        let line = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let (start, rest) = line.rsplit_once(')')?;
        let mut fields = rest.split_whitespace();
        Some(Self {
            pid,
            name: start.split_once('(')?.1.into(),
            state: fields.next()?.chars().next()?,
            parent: fields.next()?.parse().ok()?,
            group: fields.next()?.parse().ok()?,
        })
    }
}

pub(crate) fn processes(which: impl Fn(&Process) -> bool) -> Vec<Process> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(Process::read).filter(|process| which(process)).collect()
}

/// How long processes may take to be gone: shorter than those of the corpus sleep, so that none ends by itself.
const GONE_WITHIN: Duration = Duration::from_secs(20);

/// Polls until no process is found, for at most [`GONE_WITHIN`]; returns those still found then.
pub(crate) async fn gone(which: impl Fn(&Process) -> bool) -> Vec<Process> {
    let last = Instant::now() + GONE_WITHIN;
    loop {
        let found = processes(&which);
        if found.is_empty() || Instant::now() > last {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Living members of a process group that are not gone in time.
pub(crate) async fn survivors(group: u32) -> Vec<Process> {
    gone(|process| process.group == group && process.alive()).await
}

/// Zombies of this process that are not gone in time, of those that are looked for.
pub(crate) async fn zombies(which: impl Fn(&Process) -> bool) -> Vec<Process> {
    let own = std::process::id();
    gone(|process| process.parent == own && !process.alive() && which(process)).await
}

/// `tag`, made different from that of any other run of the tests.
pub(crate) fn tag(tag: &str) -> String {
    format!("{tag}-{}", std::process::id())
}

/// Whether the process has `TAG` in its environment, set to this tag.
pub(crate) fn is_tagged(process: &Process, tag: &str) -> bool {
    let wanted = format!("TAG={}", self::tag(tag));
    let environment = fs::read(format!("/proc/{}/environ", process.pid)).unwrap_or_default();
    environment.split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes())
}

/// Waits for the process that was started as a leader with `TAG` in its environment set to this tag; returns its pid.
pub(crate) async fn started(tag: &str) -> u32 {
    let last = Instant::now() + LONGEST_WAIT;
    let tagged = |process: &Process| process.group == process.pid && is_tagged(process, tag);
    loop {
        if let Some(process) = processes(tagged).first() {
            return process.pid;
        }
        assert!(Instant::now() < last, "{tag} was not started");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// A field of `/proc/self/status`, in KiB.
pub(crate) fn own_memory(field: &str) -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(field)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}
