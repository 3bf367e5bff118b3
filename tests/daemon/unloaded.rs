//! Workspaces of the settings that cannot be loaded: they are there and broken, and nobody else judges their events.

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use crate::support::daemon::{Daemon, DaemonSetup};
use crate::support::wait::wait_until;
use rustix::process::geteuid;
use serde_json::{Value, json};

const GUARD: &str =
    "name: guard\nevents: [before_tool_dispatch]\nhandler:\n  type: command\n  command: exit 2\n";

/// Two workspaces, of which `gone` has no directory.
fn daemon() -> Daemon {
    DaemonSetup::new()
        .settings("workspaces: { shop: { root: $DIR/shop }, gone: { root: $DIR/shop/gone } }")
        .file("shop/README", "")
        .serve()
}

fn event(keys: &Value) -> Value {
    let mut event = json!({
        "event": "before_tool_dispatch", "session_id": "s", "run_id": "r",
        "tool_name": "Bash", "tool_input": { "command": "ls" },
    });
    event.as_object_mut().unwrap().extend(keys.as_object().unwrap().clone());
    event
}

fn body(answer: &hookyard::daemon::ClientResponse) -> Value {
    serde_json::from_slice(&answer.body).unwrap()
}

/// The status and the error code, or the verdict, of an event.
fn fate(daemon: &Daemon, keys: &Value) -> (u16, String) {
    let answer = daemon.send("POST", "/v1/events", Some(&event(keys)));
    let body = body(&answer);
    let word = body["error"]["code"].as_str().or(body["verdict"].as_str());
    (answer.status, word.unwrap_or_default().to_owned())
}

fn gauge(daemon: &Daemon) -> String {
    let metrics = String::from_utf8(daemon.send("GET", "/metrics", None).body).unwrap();
    let line = metrics.lines().find(|line| line.starts_with("hookyard_workspaces_not_loaded "));
    line.unwrap().rsplit(' ').next().unwrap().to_owned()
}

fn cwd(path: &Path) -> Value {
    json!({ "cwd": path })
}

#[test]
fn events_of_a_workspace_that_is_not_loaded_are_refused_until_it_is() {
    let daemon = daemon();
    let gone = daemon.path().join("shop/gone");
    let refused = (503, "workspace_not_loaded".to_owned());
    // The directory of `shop` is above it, and `shop` is the only workspace that is loaded.
    for keys in [cwd(&gone), cwd(&gone.join("sub")), json!({ "workspace_id": "gone" }), json!({})] {
        assert_eq!(fate(&daemon, &keys), refused, "{keys}");
    }
    let proceeds = (200, "proceed".to_owned());
    assert_eq!(fate(&daemon, &cwd(&daemon.path().join("shop"))), proceeds);
    assert_eq!(fate(&daemon, &json!({ "workspace_id": "shop" })), proceeds);
    let ready = daemon.send("GET", "/readyz", None);
    assert_eq!((ready.status, &body(&ready)["error"]["code"]), (503, &json!("workspace_not_loaded")));
    let status = daemon.get("/v1/status");
    let [named] = status["not_loaded"].as_array().unwrap().as_slice() else { panic!("{status}") };
    assert_eq!((&named["id"], &named["root"]), (&json!("gone"), &json!(gone)));
    assert!(named["why"].as_str().unwrap().contains("gone"), "{named}");
    assert_eq!(gauge(&daemon), "1");
    assert!(daemon.log().contains("cannot load the workspace; its events are refused"), "{}", daemon.log());
    // It is tried again without being asked.
    fs::create_dir_all(gone.join(".openharness/hooks")).unwrap();
    fs::write(gone.join(".openharness/hooks/guard.yaml"), GUARD).unwrap();
    wait_until("it is loaded", || {
        daemon.client().send("GET", "/readyz", None).is_ok_and(|is| is.status == 200)
    });
    let blocked = (200, "block".to_owned());
    assert_eq!(fate(&daemon, &cwd(&gone)), blocked);
    assert_eq!(fate(&daemon, &json!({ "workspace_id": "gone" })), blocked);
    assert_eq!((gauge(&daemon), &daemon.get("/v1/status")["not_loaded"]), ("0".to_owned(), &json!([])));
    daemon.finish();
}

/// Nobody knows which guards a workspace has that is not loaded.
#[test]
fn an_agents_event_that_cannot_be_read_is_blocked_while_a_workspace_is_not_loaded() {
    let daemon = daemon();
    let cwd = daemon.path().join("shop/gone");
    let tool = json!({ "session_id": "s", "hook_event_name": "PreToolUse", "cwd": cwd, "tool_name": "Bash",
                       "tool_input": { "command": "ls" } });
    let send = |body: &str| {
        let answer = daemon.client().send("POST", "/v1/events/claude", Some(body.as_bytes())).unwrap();
        serde_json::from_slice::<Value>(&answer.body).unwrap()
    };
    let decision = |answer: &Value| answer["hookSpecificOutput"]["permissionDecision"].clone();
    assert_eq!(decision(&send(&tool.to_string())), "deny");
    assert_eq!(decision(&send(&format!("{tool} x"))), "deny");
    assert!(!send("{").to_string().contains("ran no hooks"));
    for name in ["Stop", "SubagentStop"] {
        let stop = json!({ "session_id": "s", "hook_event_name": name, "cwd": cwd });
        let answer = send(&stop.to_string());
        assert!(answer["decision"].is_null() && answer["systemMessage"].is_string(), "{name}: {answer}");
    }
}

#[test]
fn a_workspace_that_is_not_loaded_can_be_registered_elsewhere_and_removed() {
    let daemon = daemon();
    let other = daemon.path().join("other");
    fs::create_dir(&other).unwrap();
    let reload = daemon.send("POST", "/v1/reload?workspace_id=gone", None);
    assert_eq!((reload.status, &body(&reload)["error"]["code"]), (503, &json!("workspace_not_loaded")));
    assert_eq!(daemon.send("GET", "/v1/workspaces/gone", None).status, 503);
    assert_eq!(daemon.send("PUT", "/v1/workspaces/gone", Some(&json!({ "root": other }))).status, 201);
    assert_eq!(fate(&daemon, &json!({ "workspace_id": "gone" })), (200, "proceed".to_owned()));
    assert_eq!(daemon.send("GET", "/readyz", None).status, 200);
    assert_eq!(daemon.send("DELETE", "/v1/workspaces/gone", None).status, 204);
    assert_eq!(fate(&daemon, &json!({ "workspace_id": "gone" })).0, 404);
    daemon.finish();
}

/// Nobody knows which guards are in a directory that cannot be read.
#[test]
fn a_workspace_whose_hooks_cannot_be_read_is_not_loaded() {
    if geteuid().is_root() {
        println!("skipped: root reads every directory");
        return;
    }
    for unreadable in ["shop", "shop/.openharness", "shop/.openharness/hooks"] {
        let setup = DaemonSetup::new()
            .settings("workspaces: { shop: { root: $DIR/shop } }")
            .file("shop/.openharness/hooks/guard.yaml", GUARD);
        let directory = setup.path().join(unreadable);
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o000)).unwrap();
        let daemon = setup.serve();
        let shop = json!({ "workspace_id": "shop" });
        assert_eq!(fate(&daemon, &shop), (503, "workspace_not_loaded".to_owned()), "{unreadable}");
        assert_eq!((daemon.send("GET", "/readyz", None).status, gauge(&daemon)), (503, "1".to_owned()));
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o700)).unwrap();
        wait_until("it is loaded", || fate(&daemon, &shop).1 == "block");
        daemon.finish();
    }
}
