//! Which hooks an event would run, as the daemon explains it to those who may read.

use serde_json::{Value, json};

use crate::support::daemon::{Daemon, DaemonSetup};

const RULES: &str = "name: pushes\nevents: [before_tool_dispatch]\nmatcher: Bash\nhandler:\n  type: rule\n  \
                     deny: tool.input.command.contains(\"--force\")\n  reason: '\"not so\"'\n";

fn setup() -> DaemonSetup {
    let program = "name: program\nevents: [before_tool_dispatch]\nmatcher: Bash|Write\npriority: 10\nhandler:\n  \
                   type: command\n  command: 'touch ../ran'\n";
    DaemonSetup::new()
        .file("shop/.openharness/hooks/pushes.yaml", RULES)
        .file("shop/.openharness/hooks/program.yaml", program)
        .settings("workspaces: { shop: { root: $DIR/shop } }")
        .argument("--tcp")
        .argument("127.0.0.1:0")
}

fn event(tool: &str, command: &str) -> Value {
    json!({ "event": "before_tool_dispatch", "session_id": "s", "run_id": "r", "tool_name": tool,
            "tool_input": { "command": command } })
}

/// What the daemon answers to a client of its event socket.
fn explained(daemon: &Daemon, query: &str, event: &Value) -> (u16, Value) {
    let reply = daemon.send("POST", &format!("/v1/explain{query}"), Some(event));
    (reply.status, serde_json::from_slice(&reply.body).unwrap())
}

#[test]
fn an_event_has_its_plan_and_nothing_runs() {
    let daemon = setup().serve();
    let names = |list: &Value| -> Vec<String> {
        list.as_array().unwrap().iter().map(|one| one["hook"].as_str().unwrap().to_owned()).collect()
    };
    for (tool, command, runs, skipped, decides) in [
        ("Bash", "git push --force", &["pushes", "program"][..], &[][..], Some(true)),
        ("Bash", "ls", &["pushes", "program"][..], &[][..], Some(false)),
        ("Write", "", &["program"][..], &["pushes"][..], None),
        ("Read", "", &[][..], &["pushes", "program"][..], None),
    ] {
        let (status, plan) = explained(&daemon, "?workspace_id=shop", &event(tool, command));
        assert_eq!(
            (status, &plan["workspace_id"], &plan["matched"]),
            (200, &json!("shop"), &json!(tool)),
            "{plan}"
        );
        let stages: Vec<_> = plan["stages"].as_array().unwrap().iter().flat_map(names).collect();
        assert_eq!(stages, runs, "{plan}");
        assert_eq!(names(&plan["skipped"]), skipped, "{plan}");
        let rule = &plan["stages"][0][0]["expressions"][0];
        assert_eq!(rule["decides"].as_bool(), decides, "{plan}");
        // They may be those of files.
        assert_eq!(rule.get("values").cloned().unwrap_or(json!([])), json!([]), "{plan}");
    }
    assert!(!daemon.path().join("ran").exists());
    assert_eq!(daemon.get("/v1/decisions")["decisions"], json!([]));
    daemon.finish();
}

#[test]
fn the_workspace_is_that_of_the_request_or_of_the_event() {
    let daemon = setup().serve();
    let with = |key: &str, value: Value| {
        let mut event = event("Bash", "ls");
        event[key] = value;
        event
    };
    let inside = json!(daemon.path().join("shop/src").display().to_string());
    let native = json!({ "hook_event_name": "PreToolUse", "session_id": "s", "cwd": inside, "tool_name": "Bash",
                         "tool_input": { "command": "ls" } });
    for (query, event, expected) in [
        ("", with("workspace_id", json!("shop")), (200, Value::Null)),
        ("", with("cwd", inside.clone()), (200, Value::Null)),
        ("?dialect=claude", native, (200, Value::Null)),
        ("", with("cwd", json!("/")), (404, json!("no_workspace"))),
        ("?workspace_id=no", with("cwd", inside), (404, json!("unknown_workspace"))),
        ("?dialect=klingon", event("Bash", "ls"), (404, json!("unknown_dialect"))),
        ("?workspace_id=shop", json!([]), (400, json!("bad_event"))),
        ("?workspace_id=shop", event("Bash", &"x".repeat(1 << 20)), (413, json!("too_large"))),
    ] {
        let (status, answer) = explained(&daemon, query, &event);
        assert_eq!((status, answer["error"]["code"].clone()), expected, "{query} {answer}");
    }
    daemon.finish();
}
