//! What a killed hookyard leaves behind, and that the next one ends it and nobody else. The leaders here are shells
//! of this test; what a ledger says of them is written as a killed process would have left it.
//!
//! A binary of its own, because a process has one ledger, which records every process that any test starts.
#![allow(clippy::unwrap_used, reason = "an error fails its test")]

mod left_behind;
#[path = "../support/mod.rs"]
mod support;

use std::{
    fs,
    io::Write,
    os::unix::{
        fs::{PermissionsExt, symlink},
        process::CommandExt,
    },
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use crate::support::{
    child_processes::{self, processes},
    events::tool,
    python::python,
    trust::orchestrator_in,
    wait::{wait_until, wait_until_async},
};
use bytes::Bytes;
use hookyard::{
    handler::command::{
        GroupLedger, LedgerError, Reaped,
        process::{ProcessEnd, ProcessLimits, Program, run},
    },
    model::{Approval, Json, Target},
};
use rustix::{
    process::{Pid, Signal, kill_process, kill_process_group},
    time::{ClockId, clock_gettime},
};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// How long anything here may take at most.
const LONG: Duration = Duration::from_mins(1);

/// Where a test that runs as another process has its ledger.
const PATH: &str = "LEDGER_OF_THE_KILLED";

/// A process has one ledger, so these tests go one by one.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn within<F: Future>(future: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(LONG, future).await.unwrap() })
}

/// A folder with a ledger that a hookyard of this boot has left empty.
fn empty_ledger() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("groups");
    drop(GroupLedger::open(&path).unwrap());
    (folder, path)
}

/// Opens a ledger; returns how many groups were ended.
fn reaped(path: &Path) -> usize {
    let (ledger, Reaped { groups }) = GroupLedger::open(path).unwrap();
    drop(ledger);
    assert_eq!(groups_in(path), Vec::<i32>::new());
    groups
}

/// The groups that a ledger holds.
fn groups_in(path: &Path) -> Vec<i32> {
    let text = fs::read_to_string(path).unwrap();
    text.lines().skip(1).filter_map(|line| line.split_whitespace().next()?.parse().ok()).collect()
}

/// The clock of the starts of processes, as a ledger has it.
fn clock() -> u64 {
    let clock = if cfg!(hookyard_portable) { ClockId::Realtime } else { ClockId::Boottime };
    let time = clock_gettime(clock);
    u64::try_from(time.tv_sec).unwrap() * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap()
}

/// A shell that leads a group, as a killed hookyard would have left it.
struct LeftGroup {
    shell: Child,
    from: u64,
    until: u64,
}

impl LeftGroup {
    /// Whether it is marked as a hook is told by the variables.
    #[expect(clippy::disallowed_methods, reason = "these processes are nobody's hooks")]
    fn of(line: &str, variables: &[(&str, &str)]) -> Self {
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", line]).env_clear().envs(variables.iter().copied());
        Self::led_by(shell)
    }

    fn led_by(mut shell: Command) -> Self {
        let from = clock();
        shell.process_group(0).stdin(Stdio::null()).stdout(Stdio::null());
        let shell = shell.spawn().unwrap();
        Self { shell, from, until: clock() }
    }

    fn id(&self) -> u32 {
        self.shell.id()
    }

    /// Writes it into a ledger, as started in another window.
    fn written(&self, path: &Path, move_by: i64) {
        let moved = |moment: u64| moment.checked_add_signed(move_by * 1_000_000).unwrap();
        let line = format!("{} {} {}", self.id(), moved(self.from), moved(self.until));
        let mut file = fs::OpenOptions::new().append(true).open(path).unwrap();
        writeln!(file, "{line:<63}").unwrap();
    }

    fn living(&self) -> Vec<child_processes::Process> {
        processes(|process| process.group == self.id() && process.alive())
    }

    /// Waits until so many of the group live.
    fn until(&self, count: usize) {
        wait_until(&format!("{count} of the group live"), || self.living().len() == count);
    }
}

impl Drop for LeftGroup {
    fn drop(&mut self) {
        // As long as somebody of the group lives, or its leader is not waited for, the number is its own.
        if !self.living().is_empty() {
            let _ = kill_process_group(Pid::from_raw(self.id().cast_signed()).unwrap(), Signal::KILL);
        }
        let _ = self.shell.wait();
    }
}

/// The mark of the processes that the writer of a ledger starts.
fn mark(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap();
    let head: Vec<_> = text.lines().next().unwrap().split_whitespace().collect();
    format!("{}-{}", head[5], head[6])
}

fn shell(line: &str, tag: &str) -> Program {
    Program {
        path: "/bin/sh".into(),
        args: vec!["-c".into(), line.into()],
        cwd: "/".into(),
        environment: vec![("PATH".into(), std::env::var_os("PATH").unwrap()), ("TAG".into(), tag.into())],
        approval: Approval::of_host(),
    }
}

/// Runs one line to its end.
async fn end_of(line: &str, timeout: Duration) -> ProcessEnd {
    let cancel = CancellationToken::new();
    run(&shell(line, ""), Bytes::new(), ProcessLimits::within(timeout), &cancel).await.unwrap().end
}

#[test]
fn a_hook_is_in_the_ledger_for_as_long_as_it_runs() {
    let _alone = alone();
    let (_folder, path) = empty_ledger();
    let (ledger, _) = GroupLedger::open(&path).unwrap();
    let size = fs::metadata(&path).unwrap().len();
    within(async {
        // A hook sees itself in the ledger, as soon as its start has been written.
        let looks = format!("until grep -q \"^ *$$ \" {}; do sleep 0.01; done", path.display());
        for _ in 0..20 {
            assert_eq!(end_of(&looks, LONG).await, ProcessEnd::Exited(0));
            assert_eq!(groups_in(&path), Vec::<i32>::new());
        }
        let stopped = end_of("sleep 600 & sleep 600", Duration::from_millis(50)).await;
        assert!(matches!(stopped, ProcessEnd::TimedOut(_)), "{stopped:?}");
        assert_eq!(groups_in(&path), Vec::<i32>::new());
        drop(tokio::time::timeout(Duration::from_millis(50), end_of("sleep 600", LONG)).await);
        assert_eq!(groups_in(&path), Vec::<i32>::new(), "a dropped run is killed and taken out");
    });
    assert_eq!(fs::metadata(&path).unwrap().len(), size + 64, "one place is used again and again");
    drop(ledger);
    assert_eq!(reaped(&path), 0);
}

#[test]
fn a_file_is_held_until_the_last_of_its_groups_is_gone() {
    let _alone = alone();
    let (_folder, path) = empty_ledger();
    let (ledger, _) = GroupLedger::open(&path).unwrap();
    within(async {
        let hook = tokio::spawn(end_of("sleep 600", LONG));
        wait_until_async("the hook is recorded", || !groups_in(&path).is_empty()).await;
        drop(ledger);
        let error = GroupLedger::open(&path).unwrap_err();
        assert!(matches!(error, LedgerError::InUse { .. }), "{error}");
        assert_eq!(end_of("true", LONG).await, ProcessEnd::Exited(0));
        assert_eq!(groups_in(&path).len(), 1, "nothing is added any more");
        hook.abort();
        drop(hook.await);
    });
    assert_eq!(reaped(&path), 0);
}

#[test]
fn hooks_of_every_mode_are_recorded_until_their_end() {
    let _alone = alone();
    let (_folder, path) = empty_ledger();
    let workspace = tempfile::tempdir().unwrap();
    let hooks = workspace.path().join(".openharness/hooks");
    fs::create_dir_all(&hooks).unwrap();
    let worker = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/worker.py");
    for (name, handler) in [
        ("oneshot", "command: 'true'".to_owned()),
        ("prespawn", "command: cat >/dev/null\n  mode: prespawn".to_owned()),
        ("worker", format!("command: exec {} {worker} good\n  mode: worker", python())),
    ] {
        let file =
            format!("name: {name}\nevents: [before_tool_dispatch]\nhandler:\n  type: command\n  {handler}\n");
        fs::write(hooks.join(format!("{name}.yaml")), file).unwrap();
    }
    let (ledger, _) = GroupLedger::open(&path).unwrap();
    within(async {
        let orchestrator = orchestrator_in(workspace.path()).await;
        let mut event = tool("run");
        event.targets.set(Target::ToolInput, Json::parse(r#"{"command":"error"}"#).unwrap());
        let outcome = orchestrator.dispatch(event).await.unwrap();
        assert_eq!(outcome.hooks.len(), 3, "{outcome:?}");
        // The worker and a spare stay.
        wait_until_async("a worker and a spare are recorded", || groups_in(&path).len() == 2).await;
        let groups: Vec<_> = groups_in(&path).iter().map(|group| group.cast_unsigned()).collect();
        assert_eq!(processes(|process| groups.contains(&process.pid) && process.alive()).len(), 2);
        orchestrator.shutdown(LONG).await;
        wait_until_async("nobody is recorded", || groups_in(&path).is_empty()).await;
    });
    drop(ledger);
    assert_eq!(reaped(&path), 0);
}

/// Runs hooks until it is killed. It is no test by itself.
#[test]
#[ignore = "another test starts it as a process of its own"]
fn hooks_that_outlive_their_hookyard() {
    let Some(path) = std::env::var_os(PATH) else { return };
    let tag = std::env::var("TAG").unwrap();
    let (_ledger, reaped) = GroupLedger::open(Path::new(&path)).unwrap();
    assert_eq!(reaped.groups, 0);
    let lines =
        ["sleep 600", "trap '' TERM; while :; do sleep 1; done", "sleep 600 & exit 0", "cat; sleep 600"];
    // The pipes that the third line leaves open are read until it is killed.
    let bounds = ProcessLimits { drain: LONG, ..ProcessLimits::within(LONG) };
    let programs = lines.map(|line| shell(line, &tag));
    within(async {
        let cancel = CancellationToken::new();
        let runs = programs.iter().map(|program| run(program, Bytes::new(), bounds, &cancel));
        futures_util::future::join_all(runs).await
    });
}

#[test]
fn processes_of_a_killed_hookyard_are_ended_by_the_next() {
    let _alone = alone();
    let (_folder, path) = empty_ledger();
    #[expect(clippy::disallowed_methods, reason = "this is no hook, but a hookyard")]
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "hooks_that_outlive_their_hookyard", "--ignored"]);
    command.env(PATH, &path).env("TAG", child_processes::tag("outlives")).stdout(Stdio::null());
    let mut killed = command.spawn().unwrap();
    let pid = killed.id();
    let living = || {
        processes(|process| {
            process.alive() && process.pid != pid && child_processes::is_tagged(process, "outlives")
        })
    };
    wait_until("all hooks run", || groups_in(&path).len() == 4 && living().len() >= 6);
    let error = GroupLedger::open(&path).unwrap_err();
    assert!(
        matches!(error, LedgerError::InUse { pid: Some(holder), .. } if holder == pid.cast_signed()),
        "{error}"
    );
    kill_process(Pid::from_child(&killed), Signal::KILL).unwrap();
    killed.wait().unwrap();
    assert!(living().len() >= 4, "they run on");
    let groups = reaped(&path);
    // The shell whose child goes on is a zombie, or gone by now; without the mark its child is left alone.
    assert!(groups == 3 || groups == 4, "{groups}");
    for left in living() {
        assert_eq!((groups, left.name.as_str()), (3, "sleep"));
        kill_process(Pid::from_raw(left.pid.cast_signed()).unwrap(), Signal::KILL).unwrap();
    }
    assert_eq!(reaped(&path), 0, "nobody is left");
}
