//! A daemon that is a node of a cluster: what it asks of requests, and whose workspaces it has.

use serde_json::{Value, json};

use crate::{
    balancers::send,
    support::daemon::{Daemon, DaemonSetup},
};

const GUARD: &str = "name: guard\nevents: [before_tool_dispatch]\nmatcher: ^Bash$\nhandler:\n  type: command\n  \
                     command: echo >> seen; exit 2\non_error: deny\n";

fn node() -> DaemonSetup {
    DaemonSetup::new()
        .settings("cluster: { enabled: true }\nworkspaces: { shop: { root: $DIR/shop }, idle: { root: $DIR/idle } }")
        .file("shop/.openharness/hooks/guard.yaml", GUARD)
        .file("idle/.openharness/README", "no hooks")
        .file("root/new/.openharness/hooks/guard.yaml", GUARD)
}

fn event(workspace: Option<&str>) -> Value {
    json!({ "event": "before_tool_dispatch", "session_id": "s", "run_id": "r", "workspace_id": workspace,
            "cwd": "/home/alice/shop", "tool_name": "Bash", "tool_input": {} })
}

fn claude(daemon: &Daemon, cwd: &str) -> Value {
    json!({ "hook_event_name": "PreToolUse", "session_id": "s", "cwd": cwd.replace("$DIR", &daemon.path().display().to_string()),
        "tool_name": "Bash", "tool_input": { "command": "ls" } })
}

fn runs(daemon: &Daemon) -> usize {
    std::fs::read_to_string(daemon.path().join("shop/seen")).map_or(0, |text| text.lines().count())
}

#[test]
fn a_node_takes_only_events_whose_requests_say_where_they_belong() {
    let daemon = node().serve();
    let run = ("X-Hookyard-Run", "r");
    let shop = ("X-Hookyard-Workspace", "shop");
    let (in_event, nowhere) = (event(Some("shop")), event(None));
    for (path, headers, event, expected) in [
        ("/v1/events", &[run][..], &in_event, Ok("block")),
        ("/v1/events", &[run, shop], &nowhere, Ok("block")),
        ("/v1/events", &[run, shop, shop], &in_event, Ok("block")),
        ("/v1/events/canonical", &[run, shop], &nowhere, Ok("block")),
        ("/v1/runs/r/events", &[], &in_event, Ok("block")),
        ("/v1/events", &[], &in_event, Err("no_run")),
        ("/v1/events", &[shop], &nowhere, Err("no_run")),
        ("/v1/events", &[run], &nowhere, Err("no_workspace_id")),
        ("/v1/runs/r/events", &[], &nowhere, Err("no_workspace_id")),
        ("/v1/events", &[run, ("X-Hookyard-Workspace", "idle")], &in_event, Err("other_workspace")),
        ("/v1/events", &[run, shop, ("X-Hookyard-Workspace", "idle")], &nowhere, Err("other_workspace")),
        ("/v1/events", &[run, ("X-Hookyard-Workspace", "sh%FFop")], &in_event, Err("other_workspace")),
        ("/v1/events", &[("X-Hookyard-Run", "r2")], &in_event, Err("other_run")),
    ] {
        let before = runs(&daemon);
        let (status, answer) = send(&daemon, path, headers, event);
        let what = format!("{path} {headers:?} {answer}");
        match expected {
            Ok(verdict) => assert_eq!((status, &answer["verdict"]), (200, &json!(verdict)), "{what}"),
            Err(code) => {
                assert_eq!((status, &answer["error"]["code"]), (400, &json!(code)), "{what}");
                assert_eq!(answer["error"]["retry"], "never");
                assert_eq!(runs(&daemon), before, "no hook runs: {what}");
            }
        }
    }
    let (_, answer) = send(&daemon, "/v1/events", &[run], &nowhere);
    assert!(answer["error"]["hint"].as_str().unwrap().contains("`workspace_id`"), "{answer}");
    // Nothing that a hostile client says is repeated at its length.
    let long = "%0a".repeat(10_000);
    let (_, answer) = send(&daemon, "/v1/events", &[run, ("X-Hookyard-Workspace", &long)], &in_event);
    assert!(answer["error"]["message"].as_str().unwrap().len() < 1024, "{answer}");
    daemon.finish();
}

#[test]
fn an_agents_event_that_a_node_cannot_place_is_blocked_where_a_hook_fails_closed() {
    let daemon = node().settings("limits: { payload: 64KiB }").serve();
    let elsewhere = claude(&daemon, "/home/alice/shop");
    let run = ("X-Hookyard-Run", "s");
    let shop = ("X-Hookyard-Workspace", "shop");
    for (headers, judged) in [(&[run, shop][..], true), (&[run], false), (&[shop], false), (&[], false)] {
        let before = runs(&daemon);
        let (status, answer) = send(&daemon, "/v1/events/claude", headers, &elsewhere);
        assert_eq!(
            (status, &answer["hookSpecificOutput"]["permissionDecision"]),
            (200, &json!("deny")),
            "{headers:?} {answer}"
        );
        assert_eq!(runs(&daemon) - before, usize::from(judged), "{headers:?}");
    }
    // Too large to be read: the directory is of another machine, and says nothing about whose guards count.
    let mut large = elsewhere;
    large["tool_input"]["command"] = json!("x".repeat(100_000));
    for headers in [&[run, shop][..], &[run]] {
        let (_, answer) = send(&daemon, "/v1/events/claude", headers, &large);
        assert_eq!(answer["hookSpecificOutput"]["permissionDecision"], "deny", "{headers:?} {answer}");
    }
    // No guard is where the event belongs.
    let (_, answer) = send(&daemon, "/v1/events/claude", &[run, ("X-Hookyard-Workspace", "idle")], &large);
    assert_eq!(answer["hookSpecificOutput"]["permissionDecision"], Value::Null, "{answer}");
    daemon.finish();
}

#[test]
fn the_directory_of_an_event_registers_nothing_on_a_node() {
    let daemon = node().settings("workspace_roots: [$DIR/root]").serve();
    let (_, answer) =
        send(&daemon, "/v1/events/claude", &[("X-Hookyard-Run", "s")], &claude(&daemon, "$DIR/root/new"));
    assert_eq!(answer["hookSpecificOutput"]["permissionDecision"], "deny", "{answer}");
    let ids = daemon.get("/v1/workspaces");
    let ids: Vec<_> =
        ids.as_array().unwrap().iter().map(|workspace| workspace["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["idle", "shop"]);
    daemon.finish();
}

#[test]
fn the_workspaces_of_a_node_are_those_of_its_settings() {
    let daemon = node().serve();
    let body = json!({ "root": daemon.path().join("root/new") }).to_string();
    for (method, id, body) in [("PUT", "new", Some(body.as_bytes())), ("DELETE", "shop", None)] {
        let answer = daemon.control().send(method, &format!("/v1/workspaces/{id}"), body).unwrap();
        let told: Value = serde_json::from_slice(&answer.body).unwrap();
        assert_eq!((answer.status, &told["error"]["code"]), (409, &json!("managed")), "{told}");
    }
    assert_eq!(daemon.get("/v1/workspaces").as_array().unwrap().len(), 2);
    daemon.finish();
}

#[test]
fn a_node_says_that_it_is_one() {
    let named = node().settings("node: n1").serve();
    let nameless = node().serve();
    let alone = DaemonSetup::new().serve();
    let (one, other) =
        (named.get("/v1/status")["cluster"].clone(), nameless.get("/v1/status")["cluster"].clone());
    assert_eq!((&one["named_by"], &other["named_by"]), (&json!("settings"), &json!("machine")));
    assert_ne!(one["instance"], other["instance"]);
    assert_eq!(named.get("/v1/status")["cluster"], one);
    assert_eq!(alone.get("/v1/status")["cluster"], Value::Null);
    for daemon in [named, nameless, alone] {
        daemon.finish();
    }
}
