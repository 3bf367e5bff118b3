//! What must not grow: memory under a flood of output, descriptors, zombies and threads over many runs.
//! One test in a process of its own, because it measures that process.
#![allow(clippy::unwrap_used, reason = "an error fails its test")]

#[path = "../support/mod.rs"]
mod support;

use std::time::Duration;

use crate::support::child_processes::{bounds, own_memory, program, timed, zombies};
use crate::support::events::tool;
use crate::support::python::python;
use crate::support::trust::orchestrator_in;
use crate::support::wait::{LONGEST_WAIT, wait_until_async};
use bytes::Bytes;
use hookyard::{
    handler::command::process::{ProcessEnd, ProcessLimits, SpawnError, run},
    model::{Json, Target},
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio_util::sync::CancellationToken;

const GIB: u64 = 1024 * 1024 * 1024;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn floods_and_many_runs_leak_no_memory_descriptors_or_processes() {
    a_flood_is_capped_in_flat_memory().await;
    many_runs_leave_nothing_open().await;
    without_descriptors_the_error_says_so().await;
    // Last: what a stopped worker had open may be closed a moment later, while descriptors are counted above.
    a_workers_log_is_read_in_flat_memory().await;
}

async fn a_flood_is_capped_in_flat_memory() {
    timed("silent_success", 0, bounds(20_000, 400)).await;
    let before = own_memory("VmRSS");

    let (out, _) = timed("floods_stdout", 0, bounds(60_000, 400)).await;
    assert_eq!((out.end, out.stdout.seen, out.stdout.bytes.len()), (ProcessEnd::Exited(0), GIB, 1024 * 1024));

    let (err, _) = timed("floods_stderr", 0, bounds(60_000, 400)).await;
    assert_eq!((err.end, err.stderr.seen), (ProcessEnd::Exited(0), GIB + 11));
    assert!(err.stderr.bytes.starts_with(b"first\n\0") && err.stderr.bytes.ends_with(b"\0last\n"));
    let marker = format!("\n[... {} bytes left out ...]\n", GIB + 11 - 64 * 1024);
    assert!(err.stderr.bytes.windows(marker.len()).any(|part| part == marker.as_bytes()));

    let grown = own_memory("VmHWM").saturating_sub(before);
    assert!(grown < 8 * 1024, "grew by {grown} KiB");
}

/// A worker that writes 64 MiB to its log before it answers; the log is read meanwhile, or it could not go on.
async fn a_workers_log_is_read_in_flat_memory() {
    let workspace = tempfile::tempdir().unwrap();
    let hooks = workspace.path().join(".openharness/hooks");
    std::fs::create_dir_all(&hooks).unwrap();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/worker.py");
    let hook = format!(
        "name: noisy\nevents: [before_tool_dispatch]\nhandler:\n  type: command\n  \
         command: exec {} {script} good\n  mode: worker\n",
        python()
    );
    std::fs::write(hooks.join("noisy.yaml"), hook).unwrap();
    let orchestrator = orchestrator_in(workspace.path()).await;
    let answer = async |command: &str| {
        let mut event = tool("run");
        let input = format!(r#"{{"command":"{command}"}}"#);
        event.targets.set(Target::ToolInput, Json::parse(&input).unwrap());
        orchestrator.dispatch(event).await.unwrap().reason.unwrap()
    };
    let first = answer("fine").await;
    let before = own_memory("VmHWM");
    for _ in 0..3 {
        answer("noise").await;
    }
    let last = answer("fine").await;
    let pid = first.strip_suffix(" 1 fine").unwrap();
    assert_eq!(last.as_ref(), format!("{pid} 5 fine"), "one worker has served them all");
    let grown = own_memory("VmHWM").saturating_sub(before);
    assert!(grown < 8 * 1024, "grew by {grown} KiB");
    assert!(orchestrator.shutdown(LONGEST_WAIT).await);
}

async fn many_runs_leave_nothing_open() {
    let open = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    let before = open();
    for round in 0..100 {
        timed("silent_success", 1024, bounds(20_000, 400)).await;
        let (sleeper, cancel) = (program("never_reads_stdin_sleeps"), CancellationToken::new());
        let patient = ProcessLimits::within(Duration::from_mins(1));
        let dropped = run(&sleeper, Bytes::from(vec![0; 1024 * 1024]), patient, &cancel);
        let ended = tokio::time::timeout(Duration::from_millis(round % 10), dropped).await;
        assert!(ended.is_err());
    }
    assert_eq!(open(), before);
    let zombies = zombies(|_| true).await;
    assert!(zombies.is_empty(), "{zombies:?}");
    // A leader that was killed a moment ago may not even be a zombie yet.
    wait_until_async("the killed are reaped", || hookyard::handler::command::unreaped() == 0).await;
}

async fn without_descriptors_the_error_says_so() {
    let limits = getrlimit(Resource::Nofile);
    let scarce = std::fs::read_dir("/proc/self/fd").unwrap().count() as u64 + 3;
    setrlimit(Resource::Nofile, Rlimit { current: Some(scarce), ..limits }).unwrap();
    let sleeper = program("never_reads_stdin_sleeps");
    let result = run(&sleeper, Bytes::new(), bounds(500, 100), &CancellationToken::new()).await;
    setrlimit(Resource::Nofile, limits).unwrap();
    assert!(matches!(result, Err(SpawnError::Exhausted { .. })), "{result:?}");
}
