//! Trust under a daemon: what a person agrees to or takes back, and what happens to scripts and records, counts without
//! a reload.
#![allow(clippy::disallowed_methods, reason = "commands are run as a person runs them")]

mod in_place;
mod places;
mod review;

use std::{
    fs,
    os::unix::fs::{PermissionsExt, chown, symlink},
    path::Path,
    process::{Command, Output},
};

use rustix::process::{Signal, geteuid};
use serde_json::{Value, json};

use crate::support::{
    daemon::{Daemon, DaemonSetup},
    wait::wait_until,
};

const GUARD: &str = "name: guard\nevents: [before_tool_dispatch]\nmatcher: ^Bash$\non_error: deny\nhandler:\n  type: command\n  command: sh .openharness/scripts/guard.sh\n";

const SCRIPT: &str = "echo not on my watch >&2\nexit 2\n";

/// A daemon that enforces trust, with a guard that nobody has agreed to.
fn shop() -> Daemon {
    DaemonSetup::new()
        .enforces_trust()
        .settings("workspaces: { shop: { root: $DIR/shop } }")
        .settings("state_directory: $DIR/state")
        .settings("audit: { to: $DIR/audit.jsonl, sync: always }")
        .file("shop/.openharness/hooks/guard.yaml", GUARD)
        .file("shop/.openharness/scripts/guard.sh", SCRIPT)
        .serve()
}

/// Runs `trust` as the daemon's user does.
fn trust(daemon: &Daemon, arguments: &[&str]) -> Output {
    let here = daemon.path();
    let output = Command::new(env!("CARGO_BIN_EXE_hookyard"))
        .args(["trust", "--workspace", here.join("shop").to_str().unwrap()])
        .args(["--config", here.join("hookyard.yaml").to_str().unwrap()])
        .args(arguments)
        .env("HOOKYARD_TEST_HOME", here.join("home"))
        .current_dir(&here)
        .output();
    output.unwrap()
}

/// Has a person agree to all hooks of the workspace.
pub(crate) fn agree(daemon: &Daemon) {
    let shown = trust(daemon, &["--json"]);
    let shown: Value = serde_json::from_slice(&shown.stdout).unwrap();
    let agreed = trust(daemon, &["--yes", shown["digest"].as_str().unwrap()]);
    assert!(agreed.status.success(), "{agreed:?}");
}

fn fire(daemon: &Daemon) -> Value {
    let event = json!({ "event": "before_tool_dispatch", "session_id": "s", "run_id": "r", "workspace_id": "shop",
                        "tool_name": "Bash", "tool_input": { "command": "ls" } });
    let outcome = daemon.post("/v1/events", &event);
    assert_eq!(outcome["verdict"], "block", "{outcome}");
    outcome
}

/// The verdict about a tool that the guard is not for.
fn other_tool(daemon: &Daemon) -> String {
    let event = json!({ "event": "before_tool_dispatch", "session_id": "s", "run_id": "r", "workspace_id": "shop",
                        "tool_name": "Read", "tool_input": {} });
    daemon.post("/v1/events", &event)["verdict"].as_str().unwrap().to_owned()
}

/// The state of the guard, as the workspace's page shows it.
fn state(daemon: &Daemon) -> String {
    let details = daemon.get("/v1/workspaces/shop");
    let hooks = details["trust"].as_array().unwrap();
    let guards: Vec<_> = hooks.iter().filter(|hook| hook["hook"] != "trust-record").collect();
    assert_eq!((guards.len(), &guards[0]["hook"]), (1, &json!("guard")), "{details}");
    guards[0]["state"].as_str().unwrap().to_owned()
}

fn wait_for(daemon: &Daemon, expected: &str) {
    wait_until(&format!("the guard is {expected}"), || state(daemon) == expected);
    let ended = if expected == "trusted" { "completed" } else { "untrusted" };
    let outcome = fire(daemon);
    assert_eq!(outcome["hooks"][0]["ended"], ended, "{expected}: {outcome}");
}

fn write(daemon: &Daemon, path: &str, text: &str) {
    fs::write(daemon.path().join(path), text).unwrap();
}

#[test]
fn agreeing_changing_and_taking_back_count_without_a_reload() {
    let daemon = shop();
    wait_for(&daemon, "untrusted");
    agree(&daemon);
    wait_for(&daemon, "trusted");
    write(&daemon, "shop/.openharness/scripts/guard.sh", "exit 0\n");
    wait_for(&daemon, "modified");
    write(&daemon, "shop/.openharness/scripts/guard.sh", SCRIPT);
    wait_for(&daemon, "trusted");
    let script = daemon.path().join("shop/.openharness/scripts/guard.sh");
    fs::rename(&script, script.with_extension("old")).unwrap();
    wait_for(&daemon, "modified");
    fs::rename(script.with_extension("old"), &script).unwrap();
    wait_for(&daemon, "trusted");
    fs::remove_file(daemon.path().join("shop/.openharness/hooks/guard.yaml")).unwrap();
    wait_for(&daemon, "missing");
    write(&daemon, "shop/.openharness/hooks/guard.yaml", GUARD);
    wait_for(&daemon, "trusted");
    assert!(trust(&daemon, &["--revoke", "guard"]).status.success());
    wait_for(&daemon, "untrusted");
    daemon.finish();
}

#[test]
fn the_state_of_each_hook_is_in_the_status_the_workspace_and_the_audit() {
    let daemon = shop();
    let status = daemon.get("/v1/status");
    assert_eq!(status["trust"], json!({ "untrusted": 1 }));
    let expected = json!([{ "workspace": "shop", "hook": "guard", "state": "untrusted" }]);
    assert_eq!(status["not_trusted"], expected);
    let shown = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hookyard"));
        let output =
            command.args(["status", "--socket", daemon.socket().to_str().unwrap()]).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let text = shown();
    assert!(
        text.contains("1 untrusted\n") && text.contains("untrusted guard in shop: does not run\n"),
        "{text}"
    );
    fire(&daemon);
    agree(&daemon);
    wait_for(&daemon, "trusted");
    let details = daemon.get("/v1/workspaces/shop");
    let expected = json!([{ "hook": "guard", "state": "trusted", "not_covered": [], "reason": null }]);
    assert_eq!(details["trust"], expected);
    assert_eq!(daemon.get("/v1/status")["trust"], json!({ "trusted": 1 }));
    assert!(shown().contains("1 trusted\n"));
    let audit = || fs::read_to_string(daemon.path().join("audit.jsonl")).unwrap_or_default();
    wait_until("both answers are in the audit", || audit().lines().count() == 2);
    let lines: Vec<Value> = audit().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[0]["hooks"][0]["trust"], "untrusted");
    assert_eq!(lines[1]["hooks"][0]["trust"], "trusted");
    daemon.finish();
}

/// What is done to the record of trust.
type Spoil = fn(&Path);

#[test]
fn a_record_that_is_spoilt_under_a_daemon_is_not_used_until_it_is_mended() {
    let mut spoils: Vec<(&str, Spoil)> = vec![
        ("cut", |file| fs::write(file, &fs::read(file).unwrap()[..100]).unwrap()),
        ("empty", |file| fs::write(file, "").unwrap()),
        ("newer", |file| fs::write(file, r#"{"version":2,"records":[]}"#).unwrap()),
        ("open to others", |file| fs::set_permissions(file, fs::Permissions::from_mode(0o666)).unwrap()),
        ("in a directory open to others", |file| {
            fs::set_permissions(file.parent().unwrap(), fs::Permissions::from_mode(0o777)).unwrap();
        }),
        ("a directory", |file| {
            fs::remove_file(file).unwrap();
            fs::create_dir(file).unwrap();
        }),
        ("gone", |file| fs::remove_file(file).unwrap()),
    ];
    if geteuid().is_root() {
        spoils.push(("of another user", |file| chown(file, Some(65534), None).unwrap()));
    } else {
        spoils.push(("unreadable", |file| {
            fs::set_permissions(file, fs::Permissions::from_mode(0o000)).unwrap();
        }));
    }
    let daemon = shop();
    agree(&daemon);
    wait_for(&daemon, "trusted");
    let file = daemon.path().join("state/trust.json");
    let whole = fs::read(&file).unwrap();
    for (what, spoil) in spoils {
        spoil(&file);
        // A change of rights is no change of a file's content, which is what is watched.
        daemon.send("POST", "/v1/reload", None);
        wait_until(&format!("a record that is {what} is not used"), || state(&daemon) == "untrusted");
        // What it says about the guard, or that nobody knows what it said, which blocks before anything else.
        let outcome = fire(&daemon);
        let ended = if what == "gone" { "untrusted" } else { "failed" };
        assert_eq!(outcome["hooks"][0]["ended"], ended, "{what}: {outcome}");
        // Nobody knows which guards are missing, also of tools that this one does not concern.
        let is_lost = what != "gone";
        assert_eq!(other_tool(&daemon) == "block", is_lost, "{what}");
        let expected = if is_lost { (503, json!("trust_unusable")) } else { (200, Value::Null) };
        assert_eq!(readiness(&daemon), expected, "{what}");
        fs::set_permissions(file.parent().unwrap(), fs::Permissions::from_mode(0o700)).unwrap();
        fs::remove_dir(&file).or_else(|_| fs::remove_file(&file)).ok();
        fs::write(file.with_extension("new"), &whole).unwrap();
        fs::set_permissions(file.with_extension("new"), fs::Permissions::from_mode(0o600)).unwrap();
        fs::rename(file.with_extension("new"), &file).unwrap();
        wait_for(&daemon, "trusted");
    }
    daemon.finish();
}

/// What is done to the directory of a workspace.
type Replacement = fn(&Path);

/// What becomes of an event of the guarded tool in a directory.
fn judged(daemon: &Daemon, directory: &str) -> (Value, Value) {
    let event = json!({ "event": "before_tool_dispatch", "session_id": "s", "run_id": "r", "tool_name": "Bash",
                        "tool_input": {}, "cwd": daemon.path().join(directory) });
    let outcome = daemon.post("/v1/events", &event);
    (outcome["verdict"].clone(), outcome["by"].clone())
}

fn readiness(daemon: &Daemon) -> (u16, Value) {
    let ready = daemon.send("GET", "/readyz", None);
    let body: Value = serde_json::from_slice(&ready.body).unwrap_or_default();
    (ready.status, body["error"]["code"].clone())
}

#[test]
fn a_spoilt_record_and_deleted_files_leave_nothing_unguarded() {
    let daemon = shop();
    agree(&daemon);
    wait_for(&daemon, "trusted");
    assert_eq!(other_tool(&daemon), "proceed");
    let here = daemon.path();
    fs::write(here.join("state/trust.json"), "{").unwrap();
    fs::remove_dir_all(here.join("shop/.openharness")).unwrap();
    wait_until("it is noticed", || readiness(&daemon) == (503, json!("trust_unusable")));
    let outcome = fire(&daemon);
    assert_eq!(outcome["by"], "trust-record", "{outcome}");
    assert!(outcome["reason"].as_str().unwrap().contains("the record of trust cannot be used"), "{outcome}");
    assert_eq!(other_tool(&daemon), "block");
    let checked = Command::new(env!("CARGO_BIN_EXE_hookyard"))
        .args(["check", "--workspace", here.join("shop").to_str().unwrap()])
        .args(["--config", here.join("hookyard.yaml").to_str().unwrap()])
        .env("HOOKYARD_TEST_HOME", here.join("home"))
        .output();
    let checked = checked.unwrap();
    assert_eq!(checked.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&checked.stdout).contains("error[trust-record]"), "{checked:?}");
    fs::remove_file(here.join("state/trust.json")).unwrap();
    wait_until("nobody has agreed to anything", || readiness(&daemon).0 == 200);
    assert_eq!(other_tool(&daemon), "proceed");
    daemon.finish();
}
