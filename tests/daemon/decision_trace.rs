//! What each hook of a decision was told, and which expressions of its rules decided, as the daemon finds it afterwards.

use serde_json::{Value, json};

use crate::support::daemon::{Daemon, DaemonSetup, write};

const RULES: &str = "name: pushes\nevents: [before_tool_dispatch]\nmatcher: Bash\nhandler:\n  type: rule\n  rules:\n    \
                     - name: main\n      ask: tool.input.command.contains(\"main\")\n    \
                     - name: force\n      deny: tool.input.command.contains(\"--force\")\n      reason: '\"not \" + tool.name'\n";
const REWRITE: &str = "name: dry-run\nevents: [before_tool_dispatch]\nmatcher: Write\npriority: 5\n\
                       capabilities: [rewrite_tool_request]\nhandler:\n  type: rule\n  patch:\n    \
                       tool_input: '{\"mode\": \"dry-run\"}'\n";
const PROGRAM: &str = "name: program\nevents: [before_tool_dispatch]\nmatcher: Write\npriority: 10\nhandler:\n  \
                       type: command\n  command: 'exit 0'\n";
const COUNTING: &str = "name: counting\nevents: [before_tool_dispatch]\nmatcher: Deploy\nhandler:\n  type: rule\n  \
                        deny: run.count(\"deploys\") > 1\n";

fn setup() -> DaemonSetup {
    DaemonSetup::new()
        .file("shop/.openharness/hooks/pushes.yaml", RULES)
        .file("shop/.openharness/hooks/dry-run.yaml", REWRITE)
        .file("shop/.openharness/hooks/program.yaml", PROGRAM)
        .file("shop/.openharness/hooks/counting.yaml", COUNTING)
        .settings("workspaces: { shop: { root: $DIR/shop } }")
        .argument("--tcp")
        .argument("127.0.0.1:0")
}

/// The id of the decision about an event.
fn decide(daemon: &Daemon, tool: &str, input: &Value) -> String {
    let event = json!({ "event": "before_tool_dispatch", "session_id": "s", "run_id": "r", "workspace_id": "shop",
                        "tool_name": tool, "tool_input": input });
    daemon.post("/v1/events", &event)["decision_id"].as_str().unwrap().to_owned()
}

/// What the hooks of a decision were told.
fn traced(daemon: &Daemon, decision: &str) -> Vec<Value> {
    let path = format!("/v1/decisions/{decision}/trace");
    let reply = daemon.control().send("GET", &path, None).unwrap();
    let view: Value = serde_json::from_slice(&reply.body).unwrap();
    view["hooks"].as_array().unwrap_or_else(|| panic!("{view}")).clone()
}

#[test]
fn the_expression_that_decided_has_its_values_and_no_secrets() {
    let daemon = setup().serve();
    let command = "git push --force https://me:hunter2hunter2@example.com/main.git";
    let decision = decide(&daemon, "Bash", &json!({ "command": command.replace("main", "x") }));
    let hooks = traced(&daemon, &decision);
    assert_eq!((hooks.len(), &hooks[0]["hook"], &hooks[0]["gap"]), (1, &json!("pushes"), &Value::Null));
    assert!(!hooks[0].to_string().contains("hunter2hunter2"), "{}", hooks[0]);
    let expressions = hooks[0]["expressions"].as_array().unwrap();
    let shown: Vec<_> = expressions
        .iter()
        .map(|one| {
            (one["rule"].as_str(), one["key"].as_str(), one["result"].as_str(), one["decides"].as_bool())
        })
        .collect();
    let expected = [
        (Some("main"), Some("ask"), Some("false"), Some(false)),
        (Some("force"), Some("deny"), Some("true"), Some(true)),
        (Some("force"), Some("reason"), Some("\"not Bash\""), Some(false)),
    ];
    assert_eq!(shown, expected);
    let value = &expressions[1]["values"][0];
    assert_eq!(value["of"], "tool.input.command");
    assert!(value["value"].as_str().unwrap().contains("git push --force"), "{value}");
    // Clients of the event socket may not see what events carry.
    let path = format!("/v1/decisions/{decision}/trace");
    let reader = daemon.send("GET", &path, None);
    assert_eq!(reader.status, 403);
    daemon.finish();
}

#[test]
fn a_hook_was_told_what_those_before_it_had_changed_while_it_is_as_it_was() {
    let daemon = setup().serve();
    let decision = decide(&daemon, "Write", &json!({ "path": "a" }));
    let [rewrite, program] = <[Value; 2]>::try_from(traced(&daemon, &decision)).unwrap();
    assert_eq!((&rewrite["changed_before"], &rewrite["gap"]), (&json!([]), &Value::Null));
    assert_eq!(rewrite["expressions"][0]["key"], "tool_input");
    assert_eq!((&program["changed_before"], &program["gap"]), (&json!(["tool_input"]), &Value::Null));
    assert_eq!(program["told"]["tool_input"], json!({ "path": "a", "mode": "dry-run" }), "{program}");

    let file = daemon.path().join("shop/.openharness/hooks/program.yaml");
    write(&file, &PROGRAM.replace("exit 0", "exit 1"));
    assert_eq!(daemon.control().send("POST", "/v1/reload", None).unwrap().status, 200);
    let [rewrite, program] = <[Value; 2]>::try_from(traced(&daemon, &decision)).unwrap();
    assert_eq!(rewrite["expressions"][0]["key"], "tool_input");
    assert_eq!((&program["told"], &program["gap"]), (&Value::Null, &json!("hook_changed")));
    daemon.finish();
}

#[test]
fn rules_that_come_to_something_else_afterwards_are_said_to_differ() {
    let daemon = setup().serve();
    let first = decide(&daemon, "Deploy", &json!({}));
    let second = decide(&daemon, "Deploy", &json!({}));
    assert_eq!(traced(&daemon, &first)[0]["gap"], Value::Null);
    let differing = traced(&daemon, &second);
    assert_eq!(
        (&differing[0]["gap"], &differing[0]["expressions"][0]["result"]),
        (&json!("differs"), &json!("false"))
    );
    daemon.finish();
}

#[test]
fn what_is_too_large_is_not_shown() {
    let daemon = setup().serve();
    let told = decide(&daemon, "Write", &json!({ "path": "x".repeat(100_000) }));
    assert_eq!(traced(&daemon, &told)[1]["gap"], "too_large");
    let kept = decide(&daemon, "Write", &json!({ "path": "x".repeat(2 << 20) }));
    let hooks = traced(&daemon, &kept);
    assert_eq!(
        (&hooks[0]["gap"], &hooks[1]["gap"]),
        (&json!("payload_not_kept"), &json!("payload_not_kept"))
    );
    daemon.finish();
}
