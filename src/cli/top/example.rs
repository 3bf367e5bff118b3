//! A snapshot for tests, with text that must be escaped.

use std::time::Duration;

use super::{
    pools,
    state::{DaemonPoll, ListedRuns, TopSnapshot, TopState},
    stream::{HookInvocation, StreamEvent},
};
use crate::{daemon::DaemonStatus, model::Verdict};

/// The status of a daemon.
pub(super) fn status() -> DaemonStatus {
    DaemonStatus {
        version: "0.1.0".into(),
        node: "edge-7".into(),
        pid: 4242,
        phase: "ready".into(),
        started_at: 0,
        uptime_ms: 3_723_000,
        socket: "/run/hookyard.sock".into(),
        control_socket: "/run/hookyard-control.sock".into(),
        lines: None,
        tcp: None,
        metrics: None,
        workspaces: 2,
        hooks: 4,
        runs: 7,
        active_runs: 2,
        events_in_flight: 3,
        streams: 1,
        agents: Vec::new(),
        watch: "on".into(),
        audit: None,
        data: None,
        bundle: None,
        cluster: None,
        broken: Vec::new(),
        required_missing: Vec::new(),
        powerless_switches: Vec::new(),
        trust: std::collections::BTreeMap::new(),
        not_trusted: Vec::new(),
        degraded_workers: Vec::new(),
        not_loaded: Vec::new(),
        token_errors: Vec::new(),
    }
}

/// A state after a minute.
pub(super) fn state() -> TopState {
    let mut state = TopState::default();
    let mut tell = |hook: &str, handler: &str, times: u64, verdict, failure: Option<&str>| {
        for number in 0..times {
            let now = Duration::from_secs(20 + number * 40 / times);
            let invocation = HookInvocation {
                hook: hook.into(),
                handler: handler.into(),
                verdict,
                took: Duration::from_micros(1000 + number * 10),
                queued: Duration::ZERO,
                failure: failure.map(Into::into),
            };
            state.apply(StreamEvent::Invocation(invocation), now);
            state.apply(StreamEvent::Outcome(verdict), now);
        }
    };
    tell("guard", "command", 1200, Verdict::Proceed, None);
    tell("guard", "command", 31, Verdict::Block, None);
    tell("audit", "http", 600, Verdict::Proceed, None);
    tell("naming-police", "command", 40, Verdict::Ask, None);
    tell("naming-police", "command", 2, Verdict::Halt, None);
    tell("slow", "prompt", 3, Verdict::Proceed, Some("timed_out: no answer\x1b[2J\nwithin 5 s"));
    state.apply(StreamEvent::Dropped(12), Duration::from_mins(1));
    let row = |run: &str, text: &str| {
        let fixed = format!(r#""workspace_id":"shop","run_id":"{run}","idle_ms":1500.0"#);
        serde_json::from_str(&format!("{{{fixed},{text}}}")).unwrap()
    };
    let under_way = r#"[{"event":"before_tool_dispatch","since_ms":120.5,"hooks":["guard","audit"]}]"#;
    let shown = vec![
        row("7f3a", &format!(r#""age_ms":65000.0,"events":12,"pending":2,"under_way":{under_way}"#)),
        row("b\\u001b1", r#""age_ms":4000.0,"events":1,"pending":0"#),
    ];
    let metrics =
        "hookyard_queue_depth{pool=\"command\"} 2\nhookyard_pool_slots{pool=\"command\",state=\"used\"} 3\n";
    let runs = Some(ListedRuns { shown, left_out: 5 });
    state.apply_poll(Ok(DaemonPoll {
        status: status(),
        runs,
        pools: pools::read(metrics),
        waiting_at_hooks: 0.0,
    }));
    state
}

/// Its snapshot.
pub(super) fn snapshot() -> TopSnapshot {
    state().snapshot(Duration::from_secs(64))
}
