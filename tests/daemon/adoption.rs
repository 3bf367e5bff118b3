//! What hooks leave: the daemon adopts it, reaps it, and ends it when it stops.

use std::{fs, thread};

use serde_json::{Value, json};

use crate::support::{
    daemon::{Daemon, DaemonSetup},
    wait::wait_until,
};

/// A daemon with a hook that runs a shell script for every tool call, in the directory `shop`.
fn daemon_with(script: &str) -> Daemon {
    let handler = json!({ "type": "command", "command": script, "timeout_seconds": 60 });
    let hook = json!({ "name": "hook", "events": ["before_tool_dispatch"], "handler": handler });
    DaemonSetup::new()
        .settings("workspaces: { shop: { root: $DIR/shop } }")
        .file("shop/.openharness/hooks/hook.yaml", &hook.to_string())
        .serve()
}

fn call(run: &str) -> Value {
    json!({ "event": "before_tool_dispatch", "session_id": "s", "run_id": run, "workspace_id": "shop",
            "tool_name": "Bash", "tool_input": {} })
}

/// The children of the daemon that have ended and that nobody has reaped.
fn zombies(daemon: &Daemon) -> usize {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let stats = entries.filter_map(|entry| fs::read_to_string(entry.path().join("stat")).ok());
    let is_zombie = |stat: &String| {
        let Some((_, rest)) = stat.rsplit_once(") ") else { return false };
        let mut fields = rest.split(' ');
        fields.next() == Some("Z") && fields.next() == Some(&daemon.pid().to_string())
    };
    stats.filter(is_zombie).count()
}

#[test]
#[cfg_attr(hookyard_portable, ignore = "nothing adopts what hooks leave")]
fn what_hides_from_its_hook_is_ended_when_the_daemon_stops() {
    // One of each: without the group, the environment and the output of the hook; and a child of it that outlives it.
    let daemon = daemon_with(
        "env -i setsid sh -c 'env -i setsid sleep 600 & echo $! >pids.new; sleep 600 & echo $! >>pids.new; mv pids.new pids' \
         </dev/null >/dev/null 2>&1 & while [ ! -e pids ]; do sleep 0.01; done",
    );
    daemon.post("/v1/events", &call("r"));
    let pids = fs::read_to_string(daemon.path().join("shop/pids")).unwrap();
    for pid in pids.lines() {
        // It is a shell until it executes its program.
        let stat = || fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        wait_until("it runs while the daemon does", || stat().contains("(sleep)"));
    }
    daemon.finish();
    for pid in pids.lines() {
        assert!(!fs::exists(format!("/proc/{pid}")).unwrap(), "{pid} is left");
    }
}

#[test]
#[cfg_attr(hookyard_portable, ignore = "nothing adopts what hooks leave")]
fn what_hooks_leave_is_reaped_and_no_hook_loses_its_exit_status() {
    // Some of what is left is in the group of the hook and some is not; some ends before the hook and some after it.
    let daemon = daemon_with(
        "(exit 7) & (setsid sh -c 'exit 8' &); (setsid sh -c 'sleep 0.3; exit 9' </dev/null >/dev/null 2>&1 &); exit 2",
    );
    thread::scope(|scope| {
        for host in 0..4 {
            let daemon = &daemon;
            scope.spawn(move || {
                for number in 0..25 {
                    let answer = daemon.post("/v1/events", &call(&format!("r{host}-{number}")));
                    assert_eq!(answer["verdict"], "block", "{answer}");
                }
            });
        }
    });
    wait_until("all that was left is reaped", || zombies(&daemon) == 0);
    daemon.finish();
}

#[test]
#[cfg_attr(hookyard_portable, ignore = "nothing adopts what hooks leave")]
fn a_process_that_had_ended_before_its_hook_is_no_survivor() {
    // A shell that only reads leaves its child a zombie.
    let daemon = daemon_with(
        "(exit 7) & while read -r pid name state rest </proc/$!/stat && [ \"$state\" != Z ]; do :; done 2>/dev/null; exit 0",
    );
    let answer = daemon.post("/v1/events", &call("r"));
    assert_eq!(answer["verdict"], "proceed", "{answer}");
    let metrics = daemon.client().send("GET", "/metrics", None).unwrap();
    let metrics = String::from_utf8(metrics.body).unwrap();
    let survivors =
        metrics.lines().find(|line| line.contains("leaks_total{kind=\"survivor_killed\"}")).unwrap();
    assert!(survivors.ends_with(" 0"), "{survivors}");
    wait_until("it is reaped", || zombies(&daemon) == 0);
    daemon.finish();
}
