//! What an open run costs in memory: with its actor, and after the actor was given up. Each run has had one event with a
//! tool call id, so each remembers an answer.

use std::time::Duration;

use hookyard::{
    NativeHook, Orchestrator,
    config::Settings,
    model::{EventKind, Reply, ToolCallId},
};

use super::common::tool_event;

/// Memory of this process, in bytes.
fn resident() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("a line");
    line.split_whitespace().nth(1).and_then(|kib| kib.parse::<f64>().ok()).expect("a number") * 1024.0
}

/// An orchestrator with one native hook that gives a run's actor up after this time without events.
async fn orchestrator_of_runs(run_idle: Duration) -> Orchestrator {
    let settings = Settings { run_idle, ..Settings::default() };
    let hook = NativeHook::inline("hook", [EventKind::BeforeToolDispatch], |_| Ok(Reply::proceed()));
    Orchestrator::builder().settings(settings).native_hook(hook).start().await.expect("it starts")
}

/// Sends one event with a tool call id in each of these runs.
async fn open_range(orchestrator: &Orchestrator, runs: std::ops::Range<usize>) {
    for run in runs {
        let mut event = tool_event(run);
        event.tool_call_id = Some(ToolCallId::new("toolu_01").expect("an id"));
        orchestrator.dispatch(event).await.expect("an outcome");
    }
}

/// Prints the rows.
pub(crate) async fn print() {
    const LIVE: usize = 20_000;
    const OPEN: usize = 1_000_000;
    // So few that the memory of their actors, which the allocator keeps for the next, is none of the idle runs'.
    const AT_ONCE: usize = 2_000;
    let before = resident();
    let busy = orchestrator_of_runs(Duration::from_mins(10)).await;
    open_range(&busy, 0..LIVE).await;
    assert_eq!(busy.run_count().active, LIVE, "no run is given up meanwhile");
    let each = (resident() - before) / LIVE as f64 / 1024.0;
    drop(busy);

    let idle = orchestrator_of_runs(Duration::from_millis(50)).await;
    for first in (0..OPEN).step_by(AT_ONCE) {
        open_range(&idle, first..first + AT_ONCE).await;
        while idle.run_count().active > 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    let (all, known) = ((resident() - before) / f64::from(1 << 20), idle.run_count().known);
    println!("| open run with its actor | {each:.1} KiB | – | – | ≤ 12 KiB |");
    let each = all / known as f64 * f64::from(1 << 20);
    println!("| {known} open idle runs | {all:.0} MiB, {each:.0} bytes each | – | – | ≤ 400 bytes each |");
}
