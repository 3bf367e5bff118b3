//! Policies in Rego in a daemon: a change of the file takes effect, a mistake does not, and what is too large to judge is
//! blocked.

use serde_json::{Value, json};

use crate::support::daemon::{Daemon, DaemonSetup, write};
use crate::support::wait::wait_until;

const POLICY: &str = "shop/.openharness/hooks/policies/guard.rego";

const HOOK: &str = "name: guard\nevents: [before_tool_dispatch]\nmatcher: ^Bash$\nhandler:\n  type: rego\n  \
                    file: .openharness/hooks/policies/guard.rego\non_error: deny\n";

/// A policy that denies a program, with a word.
fn policy(word: &str) -> String {
    format!(
        "package guard\n\nimport rego.v1\n\ndeny contains \"{word}\" if startswith(input.tool_input.command, \"frob\")\n"
    )
}

fn outcome(daemon: &Daemon, input: &Value) -> Value {
    let event = json!({ "event": "before_tool_dispatch", "session_id": "s", "run_id": "r", "workspace_id": "shop",
                        "tool_name": "Bash", "tool_input": input });
    daemon.post("/v1/events", &event)
}

fn reason_of(daemon: &Daemon, command: &str) -> Option<String> {
    let outcome = outcome(daemon, &json!({ "command": command }));
    (outcome["verdict"] == "block").then(|| outcome["reason"].as_str().unwrap().to_owned())
}

fn serve() -> Daemon {
    let setup = DaemonSetup::new().settings("workspaces: { shop: { root: $DIR/shop } }");
    setup.file("shop/.openharness/hooks/guard.yaml", HOOK).file(POLICY, &policy("one")).serve()
}

#[test]
fn a_changed_policy_takes_effect_and_a_mistake_keeps_the_last_one() {
    let daemon = serve();
    assert_eq!(reason_of(&daemon, "frob x").as_deref(), Some("one"));
    assert_eq!(reason_of(&daemon, "ls"), None);
    let file = daemon.path().join(POLICY);
    write(&file, &policy("two"));
    wait_until("the new policy decides", || reason_of(&daemon, "frob x").as_deref() == Some("two"));
    write(&file, "package guard\n\ndeny contains {\n");
    // Of the hook, and of the policy.
    wait_until("the mistake is known", || daemon.get("/v1/workspaces/shop")["errors"] == 2);
    assert_eq!(reason_of(&daemon, "frob x").as_deref(), Some("two"));
    std::fs::remove_file(&file).unwrap();
    wait_until("it is known that the file is gone", || daemon.get("/v1/workspaces/shop")["errors"] == 1);
    assert_eq!(reason_of(&daemon, "frob x").as_deref(), Some("two"), "the last good policy stays");
    write(&file, &policy("three"));
    wait_until("the third policy decides", || reason_of(&daemon, "frob x").as_deref() == Some("three"));
}

#[test]
fn an_event_too_large_to_judge_is_blocked() {
    let daemon = serve();
    let outcome = outcome(&daemon, &json!({ "command": "ls", "description": "d".repeat((1 << 20) + 1) }));
    assert_eq!((&outcome["verdict"], &outcome["by"]), (&json!("block"), &json!("guard")), "{outcome}");
    assert_eq!(outcome["hooks"][0]["ended"], "failed", "{outcome}");
}
