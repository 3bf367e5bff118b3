//! What a restart forgets and what not, however the daemon ended.

use std::{
    fs,
    os::unix::{fs::PermissionsExt, net::UnixListener},
};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::daemon::{Daemon, DaemonSetup};
use crate::support::wait::wait_until;

/// A hook that halts runs before the tool `Halt`.
const BUDGET: &str = r#"name: budget
events: [before_tool_dispatch]
matcher: ^Halt$
handler:
  type: command
  command: echo '{"continue":false,"stopReason":"budget spent"}'
"#;

/// Hooks of CodeBuddy: one that runs once in a run, and one that keeps the agent from stopping.
fn claude_settings() -> String {
    let once = json!({ "type": "command", "command": "true", "once": true });
    let stop = json!({ "type": "command", "command": "echo go on >&2; exit 2" });
    json!({ "hooks": { "PreToolUse": [{ "matcher": "Read", "hooks": [once] }], "Stop": [{ "hooks": [stop] }] } })
        .to_string()
}

pub(crate) fn setup() -> DaemonSetup {
    DaemonSetup::new()
        .settings("workspaces: { shop: { root: $DIR/shop } }")
        .file("shop/.openharness/hooks/budget.yaml", BUDGET)
        .file("shop/.codebuddy/settings.json", &claude_settings())
}

fn event(run: &str, tool: &str) -> Value {
    json!({ "event": "before_tool_dispatch", "session_id": "s", "run_id": run, "workspace_id": "shop",
            "tool_name": tool, "tool_input": {} })
}

pub(crate) fn verdict(daemon: &Daemon, run: &str, tool: &str) -> Value {
    daemon.post("/v1/events", &event(run, tool))["verdict"].clone()
}

/// Kills the daemon at once, and starts another in its place.
pub(crate) fn killed_and_started(mut daemon: Daemon) -> Daemon {
    daemon.signal(Signal::KILL);
    daemon.wait();
    daemon.again().serve()
}

/// Waits until everything is on disk.
pub(crate) fn saved(daemon: &Daemon) {
    wait_until("the state of runs is on disk", || daemon.get("/v1/status")["data"]["unsaved"] == 0);
}

#[test]
fn a_halt_that_was_answered_holds_after_a_kill() {
    let mut daemon = setup().serve();
    for number in 0..100 {
        let run = format!("run-{number}");
        assert_eq!(verdict(&daemon, &run, "Bash"), "proceed");
        assert_eq!(verdict(&daemon, &run, "Halt"), "halt");
        daemon = killed_and_started(daemon);
        let outcome = daemon.post("/v1/events", &event(&run, "Bash"));
        assert_eq!(
            (&outcome["verdict"], &outcome["reason"]),
            (&json!("halt"), &json!("budget spent")),
            "{run}"
        );
    }
    for number in 0..100 {
        assert_eq!(verdict(&daemon, &format!("run-{number}"), "Bash"), "halt", "run-{number}");
    }
    assert_eq!(daemon.get("/v1/status")["data"]["restored"], 100);
    let run = &daemon.get("/v1/runs/run-0?workspace_id=shop");
    assert_eq!(run["halted"]["by"], "budget", "{run}");
    daemon.finish();
}

#[test]
fn a_start_waits_for_a_socket_that_a_killed_daemon_has_just_left() {
    let setup = setup();
    let left = UnixListener::bind(setup.path().join("hookyard.sock")).unwrap();
    let daemon = setup.spawn();
    // The process that a killed daemon was starting runs its program, and closes what it had.
    drop(left.accept().unwrap());
    drop(left);
    wait_until("the daemon serves", || {
        daemon.client().send("GET", "/v1/status", None).is_ok_and(|status| status.status == 200)
    });
    assert_eq!(verdict(&daemon, "r", "Bash"), "proceed", "{}", daemon.log());
    daemon.finish();
}

#[test]
fn hooks_that_had_their_turn_and_stops_are_counted_on() {
    let daemon = setup().serve();
    let read = event("r", "Read");
    let reports = |daemon: &Daemon| daemon.post("/v1/events", &read)["hooks"].as_array().unwrap().len();
    let stop = json!({ "event": "agent_stopping", "session_id": "s", "run_id": "r", "workspace_id": "shop" });
    let stops = |daemon: &Daemon| daemon.post("/v1/events", &stop)["verdict"].clone();
    assert_eq!(reports(&daemon), 1);
    for _ in 0..5 {
        assert_eq!(stops(&daemon), "block");
    }
    saved(&daemon);
    let daemon = killed_and_started(daemon);
    for _ in 0..3 {
        assert_eq!(stops(&daemon), "block");
    }
    assert_eq!(stops(&daemon), "proceed", "the ninth time in a row");
    assert_eq!(reports(&daemon), 0, "it has had its turn");
    daemon.finish();
}

#[test]
fn another_hook_in_the_place_of_one_that_had_its_turn_has_its_own() {
    let daemon = setup().settings("watch: false").serve();
    let read = event("r", "Read");
    let reports = |daemon: &Daemon| daemon.post("/v1/events", &read)["hooks"].as_array().unwrap().len();
    let replace = |daemon: &Daemon, command: &str| {
        let settings = claude_settings().replace("\"true\"", &format!("{command:?}"));
        fs::write(daemon.path().join("shop/.codebuddy/settings.json"), settings).unwrap();
        assert_eq!(daemon.send("POST", "/v1/reload", None).status, 200);
    };
    assert_eq!((reports(&daemon), reports(&daemon)), (1, 0));
    replace(&daemon, "true # other");
    assert_eq!((reports(&daemon), reports(&daemon)), (1, 0), "another hook with the same name");
    saved(&daemon);
    let daemon = killed_and_started(daemon);
    assert_eq!(reports(&daemon), 0, "both have had their turn");
    replace(&daemon, "true");
    assert_eq!(reports(&daemon), 0);
    replace(&daemon, "true # third");
    assert_eq!(reports(&daemon), 1);
    daemon.finish();
}

#[test]
fn a_run_that_was_ended_is_not_halted_again() {
    let daemon = setup().serve();
    assert_eq!(verdict(&daemon, "r", "Halt"), "halt");
    assert_eq!(daemon.send("DELETE", "/v1/runs/r", None).status, 200);
    saved(&daemon);
    let daemon = killed_and_started(daemon);
    assert_eq!(verdict(&daemon, "r", "Bash"), "proceed");
    assert_eq!(daemon.get("/v1/status")["data"]["restored"], 0);
    wait_until("the log says that the run had ended", || {
        daemon.log().contains("a run that has ended") || {
            verdict(&daemon, "r", "Halt");
            false
        }
    });
    daemon.finish();
}

#[test]
fn a_halted_run_is_forgotten_after_its_time_also_when_it_was_restored() {
    let daemon = setup().settings("run_idle: 10ms\nrun_forget: 500ms").serve();
    assert_eq!(verdict(&daemon, "r", "Halt"), "halt");
    let daemon = killed_and_started(daemon);
    assert_eq!(daemon.get("/v1/status")["data"]["restored"], 1);
    wait_until("it is forgotten", || daemon.get("/v1/status")["runs"] == 0);
    saved(&daemon);
    let daemon = killed_and_started(daemon);
    assert_eq!(daemon.get("/v1/status")["data"]["restored"], 0);
    daemon.finish();
}

#[test]
fn without_data_a_restart_forgets() {
    let daemon = setup().settings("data: null").serve();
    assert_eq!(daemon.get("/v1/status")["data"], Value::Null);
    assert_eq!(verdict(&daemon, "r", "Halt"), "halt");
    let daemon = killed_and_started(daemon);
    assert_eq!(verdict(&daemon, "r", "Bash"), "proceed");
    daemon.finish();
}

/// Starts a daemon that cannot, and returns its log.
pub(crate) fn refused(setup: DaemonSetup) -> String {
    let mut daemon = setup.spawn();
    assert_eq!(daemon.wait().code(), Some(1), "{}", daemon.log());
    daemon.log()
}

#[test]
fn two_daemons_do_not_share_their_data() {
    let first = setup().settings("data: $DIR/data").serve();
    let data = first.path().join("data");
    let second = || setup().settings(&format!("data: {}", data.display()));
    let log = refused(second());
    assert!(log.contains("is used by another hookyard"), "{log}");
    assert_eq!(verdict(&first, "r", "Halt"), "halt");
    first.finish();
}

#[test]
fn data_that_cannot_be_read_keep_the_daemon_from_starting() {
    let mut daemon = setup().settings("data: $DIR/data").serve();
    assert_eq!(verdict(&daemon, "r", "Halt"), "halt");
    daemon.signal(Signal::TERM);
    daemon.wait();
    let file = daemon.path().join("data/runs.db");
    let whole = fs::read(&file).unwrap();
    fs::write(&file, &whole[..whole.len() / 2]).unwrap();
    let mut daemon = daemon.again().spawn();
    assert_eq!(daemon.wait().code(), Some(1));
    assert!(daemon.log().contains("runs.db is damaged"), "{}", daemon.log());
    fs::write(&file, &whole).unwrap();
    let daemon = daemon.again().serve();
    assert_eq!(verdict(&daemon, "r", "Bash"), "halt");
    daemon.finish();
}

#[test]
fn a_log_that_a_killed_daemon_left_is_missed() {
    let mut daemon = setup().settings("data: $DIR/data").serve();
    assert_eq!(verdict(&daemon, "r", "Halt"), "halt");
    daemon.signal(Signal::KILL);
    daemon.wait();
    let log = daemon.path().join("data/runs.db-wal");
    let whole = fs::read(&log).unwrap();
    for rest in [None, Some(&[][..]), Some(&whole[1000..])] {
        match rest {
            None => fs::remove_file(&log).unwrap(),
            Some(rest) => fs::write(&log, rest).unwrap(),
        }
        fs::set_permissions(&log, fs::Permissions::from_mode(0o600)).ok();
        daemon = daemon.again().spawn();
        assert_eq!(daemon.wait().code(), Some(1), "{}", daemon.log());
        let said = daemon.log();
        assert!(said.contains("runs.db was not closed, and its log"), "{said}");
        assert!(said.contains("halts may be forgotten"), "{said}");
    }
    fs::write(&log, &whole).unwrap();
    let daemon = daemon.again().serve();
    assert_eq!(verdict(&daemon, "r", "Bash"), "halt");
    daemon.finish();
}

#[test]
fn a_disk_that_cannot_be_written_takes_no_verdict_and_is_reported() {
    let daemon = setup().settings("data: $DIR/data").serve();
    assert_eq!(verdict(&daemon, "before", "Halt"), "halt");
    let file = daemon.path().join("data/runs.db");
    let away = daemon.path().join("away.db");
    fs::rename(&file, &away).unwrap();
    assert_eq!(verdict(&daemon, "r", "Halt"), "halt");
    assert_eq!(verdict(&daemon, "r", "Bash"), "halt");
    let data = daemon.get("/v1/status")["data"].clone();
    assert_eq!((&data["unsaved"], &data["unsaved_halts"]), (&json!(1), &json!(1)), "{data}");
    assert!(data["error"].as_str().unwrap().contains("moved away"), "{data}");
    let metrics = daemon.client().send("GET", "/metrics", None).unwrap().body;
    let metrics = String::from_utf8(metrics).unwrap();
    assert!(metrics.contains(r#"hookyard_store_unsaved_runs{state="halted"} 1"#), "{metrics}");
    assert!(!metrics.contains(r#"hookyard_store_errors_total{reason="write"} 0"#), "{metrics}");
    assert!(daemon.log().contains("the state of runs cannot be written"), "{}", daemon.log());
    fs::rename(&away, &file).unwrap();
    saved(&daemon);
    let daemon = killed_and_started(daemon);
    assert_eq!(verdict(&daemon, "r", "Bash"), "halt");
    daemon.finish();
}
