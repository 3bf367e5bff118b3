//! Versions by content: what is in force has a hash, and an edited script is another version.

use std::fs;

use crate::support::daemon::{Daemon, DaemonSetup, read};
use crate::support::wait::wait_until;
use serde_json::{Value, json};

const HOOK: &str = "name: guard\nevents: [before_tool_dispatch]\nhandler:\n  type: command\n  command: sh scripts/guard.sh\n";

fn daemon(watch: bool) -> Daemon {
    DaemonSetup::new()
        .file("shop/.openharness/hooks/guard.yaml", HOOK)
        .file("shop/scripts/guard.sh", "exit 0\n")
        .settings(&format!("watch: {watch}\nworkspaces: {{ shop: {{ root: $DIR/shop }} }}"))
        .settings("audit: { to: $DIR/audit.jsonl }")
        .serve()
}

fn workspace(daemon: &Daemon) -> Value {
    daemon.get("/v1/workspaces/shop")
}

fn verdict(daemon: &Daemon, run: &str) -> Value {
    let event = json!({
        "event": "before_tool_dispatch", "session_id": "s", "run_id": run, "workspace_id": "shop",
        "tool_name": "Bash", "tool_input": { "command": "ls" },
    });
    daemon.post("/v1/events", &event)["verdict"].clone()
}

#[test]
fn an_edited_script_is_another_version_and_the_same_script_the_same() {
    let daemon = daemon(true);
    let script = daemon.path().join("shop/scripts/guard.sh");
    let first = workspace(&daemon);
    assert_eq!(first["content"].as_str().unwrap().len(), 32, "{first}");
    assert_eq!(verdict(&daemon, "a"), "proceed");
    // Nobody asks for a reload: the script is watched.
    fs::write(&script, "exit 2\n").unwrap();
    wait_until("another content", || workspace(&daemon)["content"] != first["content"]);
    let second = workspace(&daemon);
    assert_eq!(second["changes"]["changed"], json!(["guard"]), "{second}");
    assert!(second["version"].as_u64() > first["version"].as_u64(), "{second}");
    assert_eq!(verdict(&daemon, "b"), "block");
    fs::write(&script, "exit 0\n").unwrap();
    wait_until("the first content", || workspace(&daemon)["content"] == first["content"]);
    daemon.finish();
}

#[test]
fn a_reload_says_that_a_script_was_edited_and_the_audit_what_ran() {
    let daemon = daemon(false);
    let first = workspace(&daemon);
    verdict(&daemon, "a");
    fs::write(daemon.path().join("shop/scripts/guard.sh"), "exit 2\n").unwrap();
    let reloaded = read(&daemon.send("POST", "/v1/reload", None));
    let reloaded = &reloaded["workspaces"][0];
    assert_eq!(reloaded["changes"]["changed"], json!(["guard"]), "{reloaded}");
    assert_ne!(reloaded["content"], first["content"]);
    verdict(&daemon, "b");
    let lines = || -> Vec<Value> {
        let text = fs::read_to_string(daemon.path().join("audit.jsonl")).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    wait_until("two lines", || lines().len() == 2);
    let lines = lines();
    assert_eq!((&lines[0]["snapshot"], &lines[1]["snapshot"]), (&first["content"], &reloaded["content"]));
    assert_ne!(lines[0]["hooks"][0]["content"], lines[1]["hooks"][0]["content"], "{lines:?}");
    daemon.finish();
}
