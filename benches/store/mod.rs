//! What it costs to keep the state of runs and lifecycle events on disk, beside the least way to have as much on the same
//! disk, and beside keeping nothing.

use std::{fs::File, io::Write, path::Path, time::Duration};

use hookyard::{
    NativeHook, Orchestrator, ToolCall,
    model::{DialectName, EventKind, Reply, RunId, Verdict},
};
use tokio::time::Instant;

use super::{
    PAIRS,
    common::{native_hooks, orchestrator},
    dispatch_p50, median, speed,
};

/// The bytes of the floor's writes: a page.
const PAGE: [u8; 4096] = [b'x'; 4096];

/// An orchestrator that halts each run at its first event, and keeps that in a directory.
async fn halting(data: &Path) -> Orchestrator {
    let hook = NativeHook::inline("budget", [EventKind::BeforeToolDispatch], |_| Ok(Reply::halt("spent")));
    Orchestrator::builder().native_hook(hook).data(data).start().await.expect("it starts")
}

async fn halt(orchestrator: &Orchestrator, run: usize) {
    let run = orchestrator.run(format!("run-{run}")).expect("a valid id");
    let input = serde_json::json!({});
    let call = ToolCall::new("Bash", &input);
    let outcome = run.before_tool_dispatch(&call).await.expect("an outcome");
    assert_eq!(outcome.verdict, Verdict::Halt);
}

fn milliseconds(begun: Instant) -> f64 {
    begun.elapsed().as_secs_f64() * 1e3
}

/// What a write of a page takes until it is on disk, in milliseconds.
fn synced(mut file: &File) -> f64 {
    let begun = Instant::now();
    file.write_all(&PAGE).expect("space");
    file.sync_data().expect("a disk");
    milliseconds(begun)
}

/// The median, and what 99 of 100 stay below.
fn quantiles(mut times: Vec<f64>) -> (f64, f64) {
    times.sort_by(f64::total_cmp);
    (times[times.len() / 2], times[times.len() * 99 / 100])
}

/// What a halt costs that is on disk before it is answered.
pub(crate) async fn halts() {
    let directory = tempfile::tempdir().expect("a directory");
    let orchestrator = halting(&directory.path().join("data")).await;
    let file = File::create(directory.path().join("floor")).expect("a file");
    let (mut ours, mut floors) = (Vec::new(), Vec::new());
    for run in 0..2_000 {
        let begun = Instant::now();
        halt(&orchestrator, run).await;
        ours.push(milliseconds(begun));
        floors.push(synced(&file));
    }
    orchestrator.shutdown(Duration::from_secs(1)).await;
    let ((p50, p99), floor) = (quantiles(ours), median(floors));
    println!(
        "| a halt, on disk | p50 {p50:.2} ms, p99 {p99:.2} ms | 4 KiB and a sync: {floor:.2} ms | {:.1} | p50 ≤ 2 ms |",
        p50 / floor
    );
}

/// What accepting a lifecycle event costs that nobody waits for, and that is on disk before it is answered: one event
/// after the other, and 64 at once, which share a sync.
pub(crate) async fn outbox() {
    let directory = tempfile::tempdir().expect("a directory");
    let hook = NativeHook::inline("note", [EventKind::RunCompleted], |_| Ok(Reply::proceed()));
    let builder = Orchestrator::builder().native_hook(hook).data(directory.path().join("data"));
    let orchestrator = builder.start().await.expect("it starts");
    let file = File::create(directory.path().join("floor")).expect("a file");
    for together in [1, 64] {
        let (mut times, mut floors, mut each) = (Vec::new(), Vec::new(), Vec::new());
        for round in 0..2_048 / together {
            let begun = Instant::now();
            let numbers = (0..together).map(|number| accept(&orchestrator, round * together + number));
            times.extend(futures_util::future::join_all(numbers).await);
            each.push(milliseconds(begun) / together as f64);
            floors.push(synced(&file));
        }
        let ((p50, p99), each, floor) = (quantiles(times), median(each), median(floors));
        println!(
            "| a lifecycle event, on disk, {together} at once | p50 {p50:.2} ms, p99 {p99:.2} ms; {each:.3} ms for each | 4 KiB and a sync: {floor:.2} ms | {:.1} | {} |",
            p50 / floor,
            if together == 1 { "–" } else { "≤ 0.3 ms for each" },
        );
    }
    orchestrator.shutdown(Duration::from_secs(1)).await;
}

/// The milliseconds until a lifecycle event is accepted.
async fn accept(orchestrator: &Orchestrator, number: usize) -> f64 {
    let text = format!(
        r#"{{"event":"run_completed","session_id":"s","run_id":"run-{number}","wait":false,"run_status":"completed"}}"#
    );
    let begun = Instant::now();
    let outcome =
        orchestrator.dispatch_json(DialectName::Canonical, text.as_bytes()).await.expect("an outcome");
    assert_eq!(outcome.verdict, Verdict::Proceed);
    milliseconds(begun)
}

/// What it costs to cancel a run whose halt is on disk: it is off the disk before the answer. One after the other, and 64
/// at once, which share a sync.
pub(crate) async fn cancel() {
    let directory = tempfile::tempdir().expect("a directory");
    let orchestrator = halting(&directory.path().join("data")).await;
    let file = File::create(directory.path().join("floor")).expect("a file");
    for together in [1, 64] {
        let (mut times, mut floors) = (Vec::new(), Vec::new());
        for _ in 0..1_024 / together {
            futures_util::future::join_all((0..together).map(|run| halt(&orchestrator, run))).await;
            times.extend(
                futures_util::future::join_all((0..together).map(|run| forget(&orchestrator, run))).await,
            );
            floors.push(synced(&file));
        }
        let ((p50, p99), floor) = (quantiles(times), median(floors));
        println!(
            "| a cancelled run, off the disk, {together} at once | p50 {p50:.2} ms, p99 {p99:.2} ms | 4 KiB and a sync: {floor:.2} ms | {:.1} | p50 ≤ 2 ms |",
            p50 / floor
        );
    }
    orchestrator.shutdown(Duration::from_secs(1)).await;
}

/// The milliseconds until a run is cancelled.
async fn forget(orchestrator: &Orchestrator, run: usize) -> f64 {
    let run = RunId::new(format!("run-{run}")).expect("an id");
    let begun = Instant::now();
    let summary = orchestrator.cancel_run(None, &run).await;
    assert_eq!(summary.runs, 1);
    milliseconds(begun)
}

/// What events cost that change nothing that is kept, with a directory for the state of runs and without one.
pub(crate) async fn hot_path() {
    const EACH: usize = 2_000;
    let directory = tempfile::tempdir().expect("a directory");
    for (what, matcher, hooks) in
        [("event with nothing to run", "^tool_#$", 10), ("5 serial native hooks", "Bash", 5)]
    {
        let data = directory.path().join(hooks.to_string());
        let with = native_hooks(hooks, matcher).data(data).start().await.expect("it starts");
        let without = orchestrator(hooks, matcher).await;
        let (mut ours, mut floors, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
        let (mut kept, mut bare) = (Vec::new(), Vec::new());
        for _ in 0..PAIRS {
            let (a, b) = (speed(&with, EACH).await, speed(&without, EACH).await);
            ours.push(a);
            floors.push(b);
            ratios.push(a / b);
            kept.push(dispatch_p50(&with).await);
            bare.push(dispatch_p50(&without).await);
        }
        let (ours, floor, ratio) = (median(ours), median(floors), median(ratios));
        println!(
            "| {what}, state kept on disk | {ours:.0} events/s | in memory: {floor:.0}/s | {ratio:.2} | ≥ 0.95 |"
        );
        let (kept, bare) = (median(kept), median(bare));
        println!(
            "| the same, one after the other | p50 {kept:.0} ns | in memory: {bare:.0} ns | {:.2} | ≤ 1.05 |",
            kept / bare
        );
        with.shutdown(Duration::from_secs(1)).await;
    }
}

/// A start with a million halted runs, written by as many halts of which many wait for one sync.
pub(crate) async fn restart() {
    const RUNS: usize = 1_000_000;
    const TOGETHER: usize = 4_096;
    let directory = tempfile::tempdir().expect("a directory");
    let orchestrator = halting(directory.path()).await;
    let begun = Instant::now();
    let each = RUNS / TOGETHER + 1;
    let mut parts = tokio::task::JoinSet::new();
    for part in 0..TOGETHER {
        let orchestrator = orchestrator.clone();
        parts.spawn(async move {
            for run in part * each..((part + 1) * each).min(RUNS) {
                halt(&orchestrator, run).await;
            }
        });
    }
    parts.join_all().await;
    let rate = RUNS as f64 / begun.elapsed().as_secs_f64();
    orchestrator.shutdown(Duration::from_mins(1)).await;
    let begun = Instant::now();
    let orchestrator = halting(directory.path()).await;
    let took = begun.elapsed().as_secs_f64();
    assert_eq!(orchestrator.run_count().known, RUNS);
    println!("| halts on disk, 4,096 at once | {rate:.0}/s | – | – | – |");
    println!("| a start with 1,000,000 halted runs | {took:.1} s | – | – | ≤ 5 s |");
    orchestrator.shutdown(Duration::from_mins(1)).await;
}
