//! Levels and required hooks at the daemon: which workspace judges an event, and what a missing guard does.

use super::*;

fn denies(reason: &str) -> String {
    hook("guard", "before_tool_dispatch", &format!("echo {reason} >&2; exit 2"))
}

fn in_directory(directory: &Path) -> Value {
    json!({ "event": "before_tool_dispatch", "session_id": "s", "run_id": "r", "cwd": directory,
            "tool_name": "Bash", "tool_input": { "command": "ls" } })
}

#[test]
fn an_event_from_elsewhere_is_not_judged_by_the_only_workspace() {
    let daemon = DaemonSetup::new()
        .settings("workspaces: { shop: { root: $DIR/shop }, gone: { root: $DIR/gone } }")
        .file("shop/.openharness/hooks/guard.yaml", &denies("shop"))
        .file("other/file", "")
        .serve();
    let refusals = [
        ("other", 404, "no_workspace"),
        ("gone", 503, "workspace_not_loaded"),
        ("gone/deep", 503, "workspace_not_loaded"),
    ];
    for (directory, status, code) in refusals {
        let event = in_directory(&daemon.path().join(directory));
        let answer = daemon.send("POST", "/v1/events", Some(&event));
        let body: Value = serde_json::from_slice(&answer.body).unwrap();
        assert_eq!((answer.status, &body["error"]["code"]), (status, &json!(code)), "{directory}");
        let mut named = event.clone();
        named["workspace_id"] = json!("shop");
        assert_eq!(
            daemon.post("/v1/events", &named)["reason"],
            "shop",
            "a workspace that is named judges it"
        );
    }
    let mut bare = in_directory(&daemon.path());
    bare.as_object_mut().unwrap().remove("cwd");
    let answer = daemon.send("POST", "/v1/events", Some(&bare));
    assert_eq!(answer.status, 503, "without a directory it may be for the one that is not loaded");
    daemon.finish();
}

#[test]
fn a_workspace_that_switches_off_its_users_guard_is_reported_and_judged() {
    let daemon = DaemonSetup::new()
        .settings("workspaces: { shop: { root: $DIR/shop } }")
        .file("home/.claude/settings.json", &hooks("PreToolUse", "echo user >&2; exit 2"))
        .file("shop/.openharness/settings.yaml", "kind: chat\n")
        .serve();
    assert_eq!(daemon.post("/v1/events", &call("shop", "r"))["reason"], "user");
    let status = daemon.get("/v1/status");
    let first = status["powerless_switches"][0]["first"].as_str().unwrap();
    assert!(first.contains("`kind: chat` cannot switch off 1 hook"), "{status}");
    assert!(daemon.log().contains("cannot switch off 1 hook"), "{}", daemon.log());
    // A change of the user's file counts, though the workspace is of kind `chat`.
    daemon::write(
        &daemon.path().join("home/.claude/settings.json"),
        &hooks("PreToolUse", "echo now >&2; exit 2"),
    );
    wait_until("the user's new hook runs", || {
        daemon.post("/v1/events", &call("shop", "r2"))["reason"] == "now"
    });
    daemon.finish();
}

#[test]
fn the_daemon_says_which_required_hook_is_missing() {
    let daemon = DaemonSetup::new()
        .settings("workspaces: { shop: { root: $DIR/shop } }\nrequired: [guard]")
        .file("shop/.openharness/hooks/guard.yaml", &denies("guarded"))
        .serve();
    let missing = || {
        let text = String::from_utf8(daemon.send("GET", "/metrics", None).body).unwrap();
        let line = text.lines().find(|line| line.starts_with("hookyard_required_hooks_missing "));
        line.unwrap_or_else(|| panic!("{text}")).rsplit(' ').next().unwrap().to_owned()
    };
    assert_eq!(missing(), "0");
    let file = daemon.path().join("shop/.openharness/hooks/guard.yaml");
    fs::remove_file(&file).unwrap();
    wait_until("it is not ready", || daemon.send("GET", "/readyz", None).status == 503);
    let ready: Value = serde_json::from_slice(&daemon.send("GET", "/readyz", None).body).unwrap();
    assert_eq!(ready["error"]["code"], "required_missing");
    assert!(ready["error"]["message"].as_str().unwrap().contains("`guard`"), "{ready}");
    // A rendering of the metrics is kept for a moment.
    wait_until("it is counted", || missing() == "1");
    assert_eq!(daemon.get("/v1/status")["required_missing"][0]["hook"], "guard");
    let outcome = daemon.post("/v1/events", &call("shop", "r"));
    assert_eq!((&outcome["verdict"], &outcome["by"]), (&json!("block"), &json!("guard")));
    let native = json!({ "session_id": "s", "hook_event_name": "PreToolUse", "cwd": daemon.path().join("shop"),
                         "tool_name": "Bash", "tool_input": {} });
    let answer = daemon.post("/v1/events/claude", &native);
    assert_eq!(answer["hookSpecificOutput"]["permissionDecision"], "deny", "{answer}");
    assert!(daemon.log().contains("the required hook `guard` is not in force"), "{}", daemon.log());
    daemon::write(&file, &denies("back"));
    wait_until("it is ready again", || daemon.send("GET", "/readyz", None).status == 200);
    assert_eq!(daemon.post("/v1/events", &call("shop", "r2"))["reason"], "back");
    wait_until("nothing is missing", || missing() == "0");
    daemon.finish();
}
