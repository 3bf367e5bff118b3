//! The daemon as its users meet it: the real program, driven through its socket.

#![cfg(feature = "daemon")]

mod served;

use rustix::process::Signal;
use serde_json::json;
use served::Setting;

const GUARD: &str = "name: guard\nevents: [before_tool_dispatch]\nmatcher: Bash\nhandler:\n  type: command\n  \
                     command: 'echo \"no shells here\" >&2; exit 2'\n";

fn event(workspace: &str, tool: &str) -> serde_json::Value {
    json!({ "event": "before_tool_dispatch", "session_id": "s", "run_id": "r", "workspace_id": workspace,
            "tool_name": tool, "tool_input": { "command": "ls" } })
}

#[test]
fn an_event_comes_in_and_its_outcome_goes_out() {
    let mut served = Setting::new()
        .file("shop/.openharness/hooks/guard.yaml", GUARD)
        .settings("workspaces: { shop: { root: $DIR/shop } }")
        .serve();
    let outcome = served.post("/v1/events", &event("shop", "Bash"));
    assert_eq!((&outcome["verdict"], &outcome["by"]), (&json!("block"), &json!("guard")));
    assert_eq!(served.post("/v1/events", &event("shop", "Read"))["verdict"], "proceed");
    let status = served.get("/v1/status");
    assert_eq!((&status["phase"], &status["hooks"]), (&json!("ready"), &json!(1)));
    served.signal(Signal::TERM);
    assert_eq!(served.wait().code(), Some(0), "{}", served.log());
    assert!(!served.socket().exists());
}
