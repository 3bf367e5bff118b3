//! Hostile children: each ends as its row says, in time, and leaves nothing of its group alive.

use std::sync::Arc;
use std::time::Duration;

use crate::support::child_processes::{self, bounds, child, program, survivors, timed, zombies};
use crate::support::wait::wait_until_async;
use bytes::Bytes;
use hookyard::handler::command::process::{
    FinishedProcess, Leaks, ProcessEnd, ProcessLimits, Program, SpawnError, Stopped, run,
};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

const MIB: usize = 1024 * 1024;

/// What a busy machine may add to any time.
const MACHINE: Duration = Duration::from_secs(15);

/// A child of the corpus and the facts about its run. Times are in milliseconds.
#[derive(Clone, Copy)]
struct Row {
    child: &'static str,
    stdin: usize,
    timeout: u64,
    grace: u64,
    /// The answer comes before this; and always before `timeout + grace + 500`.
    before: u64,
    end: &'static [ProcessEnd],
    leak: fn(Leaks) -> bool,
    outputs: fn(&FinishedProcess) -> bool,
}

/// A row without surprises: exits 0 within its generous deadline, leaves nothing.
const PLAIN: Row = Row {
    child: "",
    stdin: 1024,
    timeout: 20_000,
    grace: 400,
    before: 5_000,
    end: &[ProcessEnd::Exited(0)],
    leak: |leak| leak == Leaks::default(),
    outputs: |_| true,
};

/// A row that exceeds its deadline and needs SIGKILL.
const KILLED: Row = Row {
    timeout: 1_000,
    before: 1_900,
    end: &[ProcessEnd::TimedOut(Stopped::ByKill)],
    leak: |leak| !leak.pipe_held,
    ..PLAIN
};

/// A row that exceeds its deadline and obeys SIGTERM.
const OBEYS: Row =
    Row { grace: 5_000, before: 2_200, end: &[ProcessEnd::TimedOut(Stopped::ByTerm)], ..KILLED };

const EMPTY_ANSWER: fn(&FinishedProcess) -> bool = |finished| finished.stdout.bytes == "{}\n";
const HOLDS_PIPE: fn(Leaks) -> bool = |leak| leak == Leaks { pipe_held: true, survivor_killed: true };
const HOLDS_PIPE_OUTSIDE: fn(Leaks) -> bool =
    |leak| leak == Leaks { pipe_held: true, survivor_killed: false };

#[allow(clippy::too_many_lines, reason = "a table")]
fn rows() -> Vec<Row> {
    vec![
        Row { child: "ignores_term", ..KILLED },
        Row {
            child: "grandchild_holds_stdout",
            before: 1_500,
            leak: HOLDS_PIPE,
            outputs: EMPTY_ANSWER,
            ..PLAIN
        },
        Row {
            child: "grandchild_keeps_pipe_after_setsid",
            before: 1_500,
            leak: |leak| leak.pipe_held,
            outputs: EMPTY_ANSWER,
            ..PLAIN
        },
        Row {
            child: "grandchild_writes_late",
            before: 1_500,
            leak: |leak| !leak.pipe_held,
            outputs: |finished| finished.stdout.bytes == "early\nlate\n",
            ..PLAIN
        },
        Row {
            child: "grandchild_writes_forever",
            before: 1_500,
            leak: HOLDS_PIPE,
            outputs: |finished| finished.stdout.truncated() && finished.stdout.bytes.len() == MIB,
            ..PLAIN
        },
        Row {
            child: "silent_grandchild",
            leak: |leak| leak == Leaks { pipe_held: false, survivor_killed: true },
            ..PLAIN
        },
        Row { child: "never_reads_stdin_sleeps", stdin: MIB, ..OBEYS },
        Row { child: "never_reads_stdin_exits", stdin: MIB, outputs: EMPTY_ANSWER, ..PLAIN },
        Row { child: "never_reads_stdin_exits_at_once", stdin: MIB, ..PLAIN },
        Row { child: "closes_stdin", stdin: MIB, outputs: EMPTY_ANSWER, ..PLAIN },
        Row {
            child: "counts_stdin",
            stdin: 5 * MIB + 1,
            outputs: |finished| finished.stdout.bytes == "5242881\n",
            ..PLAIN
        },
        Row { child: "counts_stdin", stdin: 0, outputs: |finished| finished.stdout.bytes == "0\n", ..PLAIN },
        Row {
            child: "writes_before_it_reads",
            stdin: MIB,
            outputs: |finished| {
                let (stdout, stderr) = (&finished.stdout, &finished.stderr);
                stdout.seen == 10 * MIB as u64
                    && stdout.bytes.len() == MIB
                    && stderr.seen == 10 * MIB as u64
                    && stderr.left_out == (10 * MIB - 64 * 1024) as u64
            },
            ..PLAIN
        },
        Row { child: "closes_outputs_and_sleeps", ..OBEYS },
        Row { child: "closes_stdout_then_exits", end: &[ProcessEnd::Exited(7)], ..PLAIN },
        Row {
            child: "silent_success",
            outputs: |finished| finished.stdout.bytes.is_empty() && finished.stderr.bytes.is_empty(),
            ..PLAIN
        },
        Row {
            child: "block_and_allow",
            end: &[ProcessEnd::Exited(2)],
            outputs: |finished| finished.stdout.bytes == "{\"decision\":\"allow\"}\n",
            ..PLAIN
        },
        Row {
            child: "segfaults",
            end: &[ProcessEnd::Signalled(11)],
            outputs: |finished| finished.stdout.bytes == "{\"decision\":\"allow\"}\n",
            ..PLAIN
        },
        Row { child: "kills_itself", end: &[ProcessEnd::Signalled(9)], ..PLAIN },
        Row { child: "terminates_itself", end: &[ProcessEnd::Signalled(15)], ..PLAIN },
        Row { child: "kills_its_group", end: &[ProcessEnd::Signalled(9)], ..PLAIN },
        Row { child: "stops_itself", ..OBEYS },
        Row { child: "stops_itself_ignoring_term", ..KILLED },
        Row {
            child: "invalid_utf8",
            outputs: |finished| {
                finished.stdout.bytes == b"\xff\xfe{\0}\x80"[..] && finished.stderr.bytes == b"\xc3"[..]
            },
            ..PLAIN
        },
        Row { child: "fork_swarm", leak: |leak| leak.survivor_killed, ..KILLED },
        Row { child: "respawn_storm", leak: |leak| !leak.pipe_held, ..KILLED },
        Row { child: "traps_term_and_respawns", grace: 2_000, before: 3_500, ..OBEYS },
        Row {
            child: "traps_term_and_lingers",
            outputs: |finished| finished.stdout.bytes == "goodbye\n",
            ..OBEYS
        },
        Row {
            child: "slow_endless_output",
            outputs: |finished| finished.stdout.bytes.starts_with(b"tick\ntick\n"),
            ..OBEYS
        },
        Row {
            child: "fast_endless_output",
            outputs: |finished| finished.stdout.truncated() && finished.stderr.truncated(),
            ..KILLED
        },
        Row { child: "daemon_leaves_group", outputs: EMPTY_ANSWER, leak: |leak| !leak.pipe_held, ..PLAIN },
        Row {
            child: "double_fork_daemon_writes",
            before: 1_500,
            leak: HOLDS_PIPE_OUTSIDE,
            outputs: |finished| finished.stdout.bytes.windows(5).any(|line| line == b"done\n"),
            ..PLAIN
        },
        Row {
            // With a terminal at hand, the read stops the process, which then obeys the deadline.
            child: "opens_tty",
            end: &[ProcessEnd::Exited(9), ProcessEnd::TimedOut(Stopped::ByTerm)],
            ..OBEYS
        },
        Row { child: "reads_stdin_twice", stdin: MIB, ..PLAIN },
    ]
}

async fn faults(row: Row) -> Vec<String> {
    let (finished, took) = timed(row.child, row.stdin, bounds(row.timeout, row.grace)).await;
    let mut faults = Vec::new();
    let latest = Duration::from_millis(row.before.min(row.timeout + row.grace + 500)) + MACHINE;
    if took > latest {
        faults.push(format!("took {took:?}, more than {latest:?}"));
    }
    if !row.end.contains(&finished.end) {
        faults.push(format!("ended {:?}, not {:?}", finished.end, row.end));
    }
    if !(row.leak)(finished.leak) {
        faults.push(format!("left {:?}", finished.leak));
    }
    if !(row.outputs)(&finished) {
        let start = |bytes: &Bytes| String::from_utf8_lossy(&bytes[..bytes.len().min(200)]).into_owned();
        faults.push(format!(
            "wrote {:?} and {:?}",
            start(&finished.stdout.bytes),
            start(&finished.stderr.bytes)
        ));
    }
    let alive = survivors(finished.pid.unwrap()).await;
    if !alive.is_empty() {
        faults.push(format!("still alive: {alive:?}"));
    }
    let zombies = zombies(|process| Some(process.group) == finished.pid).await;
    if !zombies.is_empty() {
        faults.push(format!("not waited for: {zombies:?}"));
    }
    faults.into_iter().map(|fault| format!("{}: {fault}", row.child)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_hostile_child_ends_in_time_and_leaves_nothing() {
    let places = Arc::new(Semaphore::new(3));
    let mut running = JoinSet::new();
    for row in rows() {
        let places = places.clone();
        running.spawn(async move {
            let _place = places.acquire().await.unwrap();
            faults(row).await
        });
    }
    let faults: Vec<String> = running.join_all().await.into_iter().flatten().collect();
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

#[test]
fn every_child_of_the_corpus_is_run_by_a_test() {
    let elsewhere = ["floods_stdout", "floods_stderr", "traced_leader"];
    let mut files: Vec<String> = std::fs::read_dir(child("x").parent().unwrap())
        .unwrap()
        .map(|entry| entry.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    files.retain(|file| !elsewhere.contains(&file.as_str()) && !rows().iter().any(|row| row.child == file));
    assert!(files.is_empty(), "no row for {files:?}");
}

#[tokio::test]
async fn a_plain_child_pays_no_drain() {
    let mut best = Duration::MAX;
    for _ in 0..20 {
        let bounds = ProcessLimits { drain: Duration::from_secs(20), ..bounds(60_000, 400) };
        best = best.min(timed("silent_success", 0, bounds).await.1);
    }
    assert!(best < Duration::from_secs(5), "{best:?}");
}

#[tokio::test]
async fn endless_output_does_not_starve_the_deadline_on_one_thread() {
    let (finished, took) = timed("fast_endless_output", 0, bounds(300, 100)).await;
    assert_eq!(finished.end, ProcessEnd::TimedOut(Stopped::ByKill));
    assert!(took < Duration::from_millis(400) + MACHINE, "{took:?}");
}

#[tokio::test]
async fn a_leader_that_cannot_be_reaped_does_not_delay_the_answer() {
    let (finished, took) = timed("traced_leader", 0, bounds(800, 100)).await;
    if finished.stdout.bytes != "seized\n" {
        eprintln!("skipped: nothing may be traced here");
        return;
    }
    assert_eq!(finished.end, ProcessEnd::TimedOut(Stopped::StillDying));
    assert!(took < Duration::from_millis(900) + MACHINE, "{took:?}");
    assert!(hookyard::handler::command::unreaped() >= 1);
    // Other tests of this process end children as well, so zero may be seen for a moment only.
    wait_until_async("the leader is reaped", || hookyard::handler::command::unreaped() == 0).await;
    assert!(survivors(finished.pid.unwrap()).await.is_empty());
}

#[tokio::test]
async fn a_cancelled_child_is_gone_when_the_answer_comes() {
    for name in ["never_reads_stdin_sleeps", "ignores_term", "fork_swarm"] {
        let (program, cancel) = (tagged(name, "cancelled"), CancellationToken::new());
        let cancelled = cancel.clone();
        let running =
            tokio::spawn(async move { run(&program, Bytes::new(), bounds(60_000, 500), &cancelled).await });
        child_processes::started("cancelled").await;
        let started = Instant::now();
        cancel.cancel();
        let finished = running.await.unwrap().unwrap();
        assert_eq!(finished.end, ProcessEnd::Cancelled, "{name}");
        assert!(started.elapsed() < MACHINE, "{name} took {:?}", started.elapsed());
        assert!(survivors(finished.pid.unwrap()).await.is_empty(), "{name}");
    }
}

#[tokio::test]
async fn a_run_cancelled_before_its_start_is_not_started() {
    let cancel = CancellationToken::new();
    cancel.cancel();
    let missing = Program { path: "/does/not/exist".into(), ..program("silent_success") };
    let finished = run(&missing, Bytes::new(), bounds(1_000, 100), &cancel).await.unwrap();
    assert_eq!((finished.end, finished.pid), (ProcessEnd::Cancelled, None));
}

/// A child that can be found by its environment, since other tests run the same script.
fn tagged(name: &str, tag: &str) -> Program {
    let mut program = program(name);
    program.environment.push(("TAG".into(), child_processes::tag(tag).into()));
    program
}

#[tokio::test]
async fn dropping_the_future_kills_the_group_and_leaves_no_zombie() {
    for name in ["ignores_term", "fork_swarm", "stops_itself", "fast_endless_output"] {
        let (program, cancel) = (tagged(name, "dropped"), CancellationToken::new());
        let leader = tokio::select! {
            ended = run(&program, Bytes::new(), bounds(60_000, 500), &cancel) => panic!("{name}: {ended:?}"),
            leader = child_processes::started("dropped") => leader,
        };
        assert!(survivors(leader).await.is_empty(), "{name}");
        assert!(
            child_processes::gone(|process| process.pid == leader).await.is_empty(),
            "{name} is a zombie"
        );
    }
}

#[test]
fn the_end_of_the_runtime_kills_the_group_and_leaves_no_zombie() {
    let runtime =
        || tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let ending = runtime();
    ending.spawn(async {
        let program = tagged("ignores_term", "abandoned");
        run(&program, Bytes::new(), bounds(60_000, 500), &CancellationToken::new()).await
    });
    let leader = ending.block_on(child_processes::started("abandoned"));
    drop(ending);
    runtime().block_on(async {
        assert!(survivors(leader).await.is_empty());
        assert!(child_processes::gone(|process| process.pid == leader).await.is_empty(), "a zombie is left");
    });
}

/// A directory of its own, removed at the end.
struct Scratch(std::path::PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("hookyard-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self, name: &str, content: &[u8], mode: u32) -> std::path::PathBuf {
        use std::os::unix::fs::PermissionsExt;
        let path = self.0.join(name);
        std::fs::write(&path, content).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

async fn spawn_error(program: Program) -> SpawnError {
    run(&program, Bytes::new(), bounds(5_000, 100), &CancellationToken::new()).await.unwrap_err()
}

#[tokio::test]
async fn each_reason_not_to_start_has_its_own_error() {
    let scratch = Scratch::new("spawn");
    let sh = |edit: fn(&mut Program)| {
        let mut program = Program { path: "/bin/sh".into(), ..program("silent_success") };
        edit(&mut program);
        spawn_error(program)
    };
    let of = |path: std::path::PathBuf| spawn_error(Program { path, ..program("silent_success") });

    let deleted = scratch.file("deleted", b"#!/bin/sh\n", 0o755);
    std::fs::remove_file(&deleted).unwrap();
    let plain = scratch.file("plain", b"#!/bin/sh\n", 0o644);
    let foreign = scratch.file("foreign", b"\x7fELF rubbish", 0o755);
    let orphan = scratch.file("orphan", b"#!/does/not/exist\n", 0o755);
    let in_file = Program { cwd: plain.clone(), ..program("silent_success") };

    let is = |error: SpawnError, expected: fn(&SpawnError) -> bool| assert!(expected(&error), "{error:?}");
    is(of(deleted).await, |error| matches!(error, SpawnError::MissingProgram { .. }));
    is(of(plain.join("x")).await, |error| matches!(error, SpawnError::MissingProgram { .. }));
    is(of(plain).await, |error| matches!(error, SpawnError::NotExecutable { .. }));
    is(of(scratch.0.clone()).await, |error| matches!(error, SpawnError::NotExecutable { .. }));
    is(of(foreign).await, |error| matches!(error, SpawnError::WrongFormat { .. }));
    is(of(orphan).await, |error| matches!(error, SpawnError::MissingInterpreter { .. }));
    is(of("sh".into()).await, |error| matches!(error, SpawnError::RelativeProgram { .. }));
    is(spawn_error(in_file).await, |error| matches!(error, SpawnError::UnusableCwd { .. }));
    is(sh(|it| it.cwd = "/does/not/exist".into()).await, |error| {
        matches!(error, SpawnError::MissingCwd { .. })
    });
    is(sh(|it| it.args = vec!["x".repeat(200_000).into()]).await, |error| {
        matches!(error, SpawnError::TooLarge { longest: 200_001, .. })
    });
    is(sh(|it| it.args = vec!["x".repeat(100_000).into(); 100]).await, |error| {
        matches!(error, SpawnError::TooLarge { .. })
    });
    is(sh(|it| it.args = vec!["a\0b".into()]).await, |error| matches!(error, SpawnError::NulByte { .. }));
    is(sh(|it| it.environment.push(("A".into(), "\0".into()))).await, |error| {
        matches!(error, SpawnError::NulByte { .. })
    });
    is(sh(|it| it.path = "/bin/s\0h".into()).await, |error| matches!(error, SpawnError::NulByte { .. }));
    is(sh(|it| it.cwd = "/\0".into()).await, |error| matches!(error, SpawnError::NulByte { .. }));
}
