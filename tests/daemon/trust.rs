//! Trust under a daemon: what a person agrees to or takes back, and what happens to scripts and records, counts without
//! a reload.
#![allow(clippy::disallowed_methods, reason = "commands are run as a person runs them")]

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

/// Agrees to the guard, which is to run in the workspace.
fn agree_in_place(daemon: &Daemon) {
    let shown = trust(daemon, &["--in-place", "--json"]);
    let shown: Value = serde_json::from_slice(&shown.stdout).unwrap();
    let agreed = trust(daemon, &["--in-place", "--yes", shown["digest"].as_str().unwrap()]);
    assert!(agreed.status.success(), "{agreed:?}");
}

/// How the guard ended, and why.
fn end(daemon: &Daemon) -> (String, String) {
    let hook = fire(daemon)["hooks"][0].clone();
    (hook["ended"].as_str().unwrap().to_owned(), hook["error"].as_str().unwrap_or_default().to_owned())
}

#[test]
fn what_starts_in_place_is_what_was_agreed_to_without_any_reload() {
    const SCRIPTS: &str = "shop/.openharness/scripts";
    type Change<'c> = &'c dyn Fn(&Path);
    // Each change, what undoes it, and the file that is named.
    let changes: [(Change<'_>, Change<'_>, &str); 7] = [
        (
            &|dir| {
                let script = dir.join(SCRIPTS).join("guard.sh");
                let before = fs::metadata(&script).unwrap().modified().unwrap();
                fs::write(&script, format!("{:width$}", "exit 0 #", width = SCRIPT.len())).unwrap();
                fs::File::options().write(true).open(&script).unwrap().set_modified(before).unwrap();
            },
            &|dir| fs::write(dir.join(SCRIPTS).join("guard.sh"), SCRIPT).unwrap(),
            "guard.sh",
        ),
        (
            &|dir| fs::write(dir.join(SCRIPTS).join("lib.py"), "").unwrap(),
            &|dir| fs::remove_file(dir.join(SCRIPTS).join("lib.py")).unwrap(),
            "lib.py",
        ),
        (
            &|dir| fs::write(dir.join("shop/.openharness/state/env"), "").unwrap(),
            &|dir| fs::remove_file(dir.join("shop/.openharness/state/env")).unwrap(),
            "state/env",
        ),
        (
            &|dir| {
                fs::write(dir.join("shop/.openharness/state/run.txt"), "#!/bin/sh\n").unwrap();
                let program = fs::Permissions::from_mode(0o700);
                fs::set_permissions(dir.join("shop/.openharness/state/run.txt"), program).unwrap();
            },
            &|dir| fs::remove_file(dir.join("shop/.openharness/state/run.txt")).unwrap(),
            "state/run.txt",
        ),
        (
            &|dir| {
                fs::rename(dir.join(SCRIPTS), dir.join("shop/away")).unwrap();
                symlink("../../other", dir.join(SCRIPTS)).unwrap();
            },
            &|dir| {
                fs::remove_file(dir.join(SCRIPTS)).unwrap();
                fs::rename(dir.join("shop/away"), dir.join(SCRIPTS)).unwrap();
            },
            "a link that leads outside",
        ),
        (
            &|dir| fs::rename(dir.join("shop"), dir.join("moved")).unwrap(),
            &|dir| fs::rename(dir.join("moved"), dir.join("shop")).unwrap(),
            "the directory of the workspace is gone",
        ),
        (
            &|dir| {
                fs::rename(dir.join("shop"), dir.join("moved")).unwrap();
                symlink("moved", dir.join("shop")).unwrap();
            },
            &|dir| {
                fs::remove_file(dir.join("shop")).unwrap();
                fs::rename(dir.join("moved"), dir.join("shop")).unwrap();
            },
            "or a link is in its place",
        ),
    ];
    let daemon = in_place_shop(GUARD);
    let dir = daemon.path();
    assert_eq!(end(&daemon).0, "completed");
    for (change, undo, named) in changes {
        change(&dir);
        let (ended, why) = end(&daemon);
        assert!(ended == "untrusted" && why.contains(named), "{named}: {ended}, {why}");
        undo(&dir);
        assert_eq!(end(&daemon).0, "completed", "{named}");
    }
    // What hooks write there, and a file that is only touched, change nothing.
    write(&daemon, "shop/.openharness/state/count.json", "2");
    write(&daemon, "shop/.openharness/guard.log", "2");
    write(&daemon, &format!("{SCRIPTS}/guard.sh"), SCRIPT);
    assert_eq!(end(&daemon).0, "completed");
    daemon.finish();
}

#[test]
fn a_worker_that_starts_in_place_is_what_was_agreed_to() {
    let guard = GUARD.replace("  command:", "  mode: worker\n  command:");
    let daemon = in_place_shop(&guard);
    write(&daemon, "shop/.openharness/scripts/guard.sh", "echo changed >> ran; exit 0\n");
    assert_eq!(end(&daemon).0, "untrusted");
    assert!(!daemon.path().join("shop/ran").exists());
    daemon.finish();
}

/// A daemon that watches no files, and a guard that somebody has agreed to, which runs in the workspace.
fn in_place_shop(guard: &str) -> Daemon {
    let daemon = DaemonSetup::new()
        .enforces_trust()
        .settings("workspaces: { shop: { root: $DIR/shop } }")
        .settings("state_directory: $DIR/state\nwatch: false")
        .file("shop/.openharness/hooks/guard.yaml", guard)
        .file("shop/.openharness/scripts/guard.sh", SCRIPT)
        .file("shop/.openharness/state/count.json", "1")
        .file("other/guard.sh", "exit 0\n")
        .serve();
    agree_in_place(&daemon);
    assert_eq!(daemon.send("POST", "/v1/reload", None).status, 200);
    assert_eq!(state(&daemon), "trusted");
    daemon
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

#[test]
fn below_the_roots_a_workspace_without_its_files_is_still_guarded() {
    let daemon = shop();
    agree(&daemon);
    wait_for(&daemon, "trusted");
    let start = |daemon: Daemon| {
        let mut daemon = daemon;
        daemon.signal(Signal::TERM);
        assert!(daemon.wait().success(), "{}", daemon.log());
        let here = daemon.path();
        fs::write(here.join("hookyard.yaml"), "").unwrap();
        daemon.again().enforces_trust()
    };
    // As after a start that has not seen the workspace yet.
    fs::remove_dir_all(daemon.path().join("shop/.openharness")).unwrap();
    fs::create_dir_all(daemon.path().join("shop/src")).unwrap();
    let daemon = start(daemon).settings("workspace_roots: [$DIR]\nstate_directory: $DIR/state").serve();
    for directory in ["shop", "shop/src", "shop/not/there"] {
        let event = json!({ "event": "before_tool_dispatch", "session_id": "s", "run_id": "r", "tool_name": "Bash",
                            "tool_input": {}, "cwd": daemon.path().join(directory) });
        let outcome = daemon.post("/v1/events", &event);
        assert_eq!((&outcome["verdict"], &outcome["by"]), (&json!("block"), &json!("guard")), "{directory}");
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

fn restore(here: &Path) {
    let shop = here.join("shop");
    fs::remove_file(&shop).or_else(|_| fs::remove_dir_all(&shop)).ok();
    fs::rename(here.join("moved"), shop).unwrap();
}

#[test]
fn another_directory_in_the_place_of_a_workspace_takes_no_guard_away() {
    let replacements: [(&str, Replacement); 4] = [
        ("a link to another directory", |here| symlink("other", here.join("shop")).unwrap()),
        ("a link to itself under another name", |here| symlink("moved", here.join("shop")).unwrap()),
        ("an empty directory", |here| fs::create_dir(here.join("shop")).unwrap()),
        ("another workspace", |here| {
            fs::create_dir_all(here.join("shop/.openharness/hooks")).unwrap();
            fs::write(here.join("shop/.openharness/hooks/other.yaml"), GUARD.replace("guard", "other"))
                .unwrap();
        }),
    ];
    let daemon = shop();
    fs::create_dir_all(daemon.path().join("other/.openharness/hooks")).unwrap();
    let here = daemon.path();
    agree(&daemon);
    wait_for(&daemon, "trusted");
    let states = |daemon: &Daemon| {
        let details = daemon.get("/v1/workspaces/shop");
        let hooks = details["trust"].as_array().unwrap().iter();
        hooks.map(|hook| hook["state"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let is_missing = || states(&daemon).contains(&"missing".to_owned());
    // A load that found no directory at all has the state, and no diagnostics.
    let is_told = || {
        let errors = daemon.get("/v1/workspaces/shop")["diagnostics"].to_string();
        errors.contains("the trusted hook `guard` does not run")
    };
    for (what, replace) in replacements {
        fs::rename(here.join("shop"), here.join("moved")).unwrap();
        replace(&here);
        wait_until(&format!("{what} is noticed"), || is_missing() && is_told());
        fire(&daemon);
        let is_link = here.join("shop").is_symlink();
        let expected = if is_link { (503, json!("workspace_replaced")) } else { (200, Value::Null) };
        assert_eq!(readiness(&daemon), expected, "{what}");
        restore(&here);
        wait_until(&format!("{what} is gone"), || states(&daemon) == ["trusted"]);
        assert_eq!(fire(&daemon)["reason"], "not on my watch", "{what}");
        assert_eq!(readiness(&daemon).0, 200);
    }
    daemon.finish();
}

/// A daemon that ended after a person had agreed to the guard, and whose settings file is empty.
fn trusted_and_stopped() -> Daemon {
    let mut daemon = shop();
    agree(&daemon);
    wait_for(&daemon, "trusted");
    daemon.signal(Signal::TERM);
    assert!(daemon.wait().success(), "{}", daemon.log());
    fs::write(daemon.path().join("hookyard.yaml"), "").unwrap();
    daemon
}

/// The next daemon with the same record of trust.
fn started_again(daemon: Daemon, settings: &str) -> Daemon {
    let setup = daemon.again().enforces_trust().settings(settings);
    setup.settings("state_directory: $DIR/state").serve()
}

#[test]
fn a_link_in_the_place_of_a_workspace_takes_no_guard_away_from_a_daemon_that_starts() {
    for settings in ["workspaces: { shop: { root: $DIR/shop } }", "workspace_roots: [$DIR]"] {
        let daemon = trusted_and_stopped();
        let here = daemon.path();
        fs::rename(here.join("shop"), here.join("moved")).unwrap();
        fs::create_dir_all(here.join("other/src")).unwrap();
        symlink("other", here.join("shop")).unwrap();
        let daemon = started_again(daemon, settings);
        let blocked = (json!("block"), json!("guard"));
        for directory in ["shop", "shop/src", "shop/not/there"] {
            assert_eq!(judged(&daemon, directory), blocked, "{settings}: {directory}");
        }
        assert_eq!(readiness(&daemon), (503, json!("workspace_replaced")), "{settings}");
        let status = daemon.get("/v1/status").to_string();
        assert!(status.contains("missing"), "{settings}: {status}");
        let metrics = String::from_utf8(daemon.send("GET", "/metrics", None).body).unwrap();
        let withheld = metrics.lines().find(|line| {
            line.starts_with("hookyard_hooks_loaded{")
                && line.contains("openharness")
                && line.contains("untrusted")
        });
        assert!(withheld.is_some_and(|line| line.ends_with(" 1")), "{settings}: {withheld:?}");
        let shown = trust(&daemon, &["--list"]);
        let shown = String::from_utf8(shown.stdout).unwrap();
        assert!(shown.contains("missing") && shown.contains("guard"), "{settings}: {shown}");
        assert!(trust(&daemon, &["--revoke"]).status.success());
        wait_until("nobody has agreed to anything", || readiness(&daemon).0 == 200);
        daemon.finish();
    }
}

#[test]
fn a_workspace_that_is_registered_by_another_spelling_of_its_path_keeps_its_trust() {
    let daemon = shop();
    agree(&daemon);
    wait_for(&daemon, "trusted");
    let shop = daemon.path().join("shop").to_str().unwrap().to_owned();
    for spelling in
        [format!("{shop}/"), format!("{shop}//"), format!("{shop}/./"), format!("{shop}/../shop/")]
    {
        let put = daemon.send("PUT", "/v1/workspaces/shop", Some(&json!({ "root": spelling })));
        assert_eq!(put.status, 200, "{spelling}");
        assert_eq!(daemon.get("/v1/workspaces/shop")["root"], *shop, "{spelling}");
        wait_for(&daemon, "trusted");
    }
    daemon.finish();
}

#[test]
fn a_workspace_that_is_registered_through_a_link_takes_no_guard_away() {
    let daemon = shop();
    agree(&daemon);
    wait_for(&daemon, "trusted");
    let here = daemon.path();
    let put = |root: &str| {
        daemon.send("PUT", "/v1/workspaces/shop", Some(&json!({ "root": here.join(root) }))).status
    };
    let root = || daemon.get("/v1/workspaces/shop")["root"].clone();
    symlink("shop", here.join("link")).unwrap();
    symlink("nowhere", here.join("dangling")).unwrap();
    symlink("circle", here.join("circle")).unwrap();
    fs::create_dir(here.join("other")).unwrap();
    assert_eq!((put("link"), root()), (200, json!(here.join("shop"))), "it is where the link leads to");
    wait_for(&daemon, "trusted");
    assert_eq!(fire(&daemon)["reason"], "not on my watch");
    for root in ["dangling", "circle", "link/not/there"] {
        assert!((400..500).contains(&put(root)), "{root}");
        assert_eq!(fire(&daemon)["reason"], "not on my watch", "{root}");
    }
    // What was agreed to was agreed to there, wherever the name leads now.
    fs::rename(here.join("shop"), here.join("moved")).unwrap();
    for target in ["other", "moved"] {
        symlink(target, here.join("shop")).unwrap();
        for spelling in ["shop", "link"] {
            assert_eq!((put(spelling), root()), (200, json!(here.join("shop"))), "{spelling}, {target}");
            let states = daemon.get("/v1/workspaces/shop")["trust"].to_string();
            assert!(states.contains("missing"), "{spelling}, {target}: {states}");
            // It asserts that the event is blocked.
            fire(&daemon);
            assert_eq!(readiness(&daemon), (503, json!("workspace_replaced")), "{spelling}, {target}");
        }
        fs::remove_file(here.join("shop")).unwrap();
    }
    daemon.finish();
}

/// The first event after a start may come from a directory that is gone.
#[test]
fn a_workspace_that_is_gone_before_a_start_takes_no_guard_away() {
    for gone in ["shop", "shop/.openharness"] {
        let daemon = trusted_and_stopped();
        let here = daemon.path();
        fs::rename(here.join(gone), here.join("moved")).unwrap();
        let daemon = started_again(daemon, "workspace_roots: [$DIR]");
        for directory in ["shop/not/there", "shop"] {
            let event = json!({ "session_id": "s", "hook_event_name": "PreToolUse", "tool_name": "Bash",
                                "tool_input": {}, "cwd": here.join(directory) });
            let answer = daemon.post("/v1/events/claude", &event);
            assert_eq!(
                answer["hookSpecificOutput"]["permissionDecision"], "deny",
                "{gone}, {directory}: {answer}"
            );
        }
        daemon.finish();
    }
}

/// Where the guards of what the link leads to are trusted as well, they apply too.
#[test]
fn behind_a_link_in_the_place_of_a_workspace_the_guards_of_both_apply() {
    let daemon = DaemonSetup::new()
        .enforces_trust()
        .settings("workspace_roots: [$DIR]\nstate_directory: $DIR/state")
        .file("shop/.openharness/hooks/guard.yaml", &GUARD.replace("deny", "ignore"))
        .file("shop/.openharness/scripts/guard.sh", SCRIPT)
        .file("other/.openharness/hooks/keeper.yaml", &GUARD.replace("guard", "keeper"))
        .file("other/.openharness/scripts/keeper.sh", SCRIPT)
        .serve();
    agree(&daemon);
    let here = daemon.path();
    fs::rename(here.join("shop"), here.join("moved")).unwrap();
    symlink("other", here.join("shop")).unwrap();
    assert_eq!(judged(&daemon, "other"), (json!("block"), json!("keeper")));
    assert_eq!(judged(&daemon, "shop"), (json!("block"), json!("keeper")));
    daemon.finish();
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
