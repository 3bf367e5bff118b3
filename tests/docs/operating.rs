//! The incident of `docs/operating.md` with the real daemon.

use std::fs;

use crate::support::daemon::{DaemonSetup, write};
use crate::support::wait::wait_until;
use serde_json::{Value, json};

const PAGE: &str = include_str!("../../docs/operating.md");

/// The fenced blocks of one language in the incident, in order.
fn blocks(language: &str) -> Vec<&'static str> {
    let (_, incident) = PAGE.split_once("\n## Incident: a guard fails open\n").unwrap();
    let fence = format!("\n```{language}\n");
    let rests: Vec<&str> = incident.split(fence.as_str()).skip(1).collect();
    rests.into_iter().map(|rest| rest.split("\n```").next().unwrap()).collect()
}

#[test]
fn a_guard_that_fails_open_is_seen_and_closed() {
    let (hooks, texts) = (blocks("yaml"), blocks("text"));
    let mut daemon = DaemonSetup::new()
        .file("shop/.openharness/hooks/no-force-push.yaml", hooks[0])
        .file("shop/.openharness/guard.py", "import company_policy\n")
        .settings("workspaces: { shop: { root: $DIR/shop } }\naudit: { to: $DIR/audit.jsonl }")
        .serve();
    let push = json!({ "event": "before_tool_dispatch", "session_id": "s", "run_id": "r",
        "tool_name": "Bash", "tool_input": { "command": "git push --force" } });
    let outcome = daemon.post("/v1/events", &push);
    assert_eq!(outcome["verdict"], "proceed");
    assert_eq!(outcome["hooks"][0]["error"], texts[2]);

    let metrics = || String::from_utf8(daemon.send("GET", "/metrics", None).body).unwrap();
    wait_until("the counter of the alert moves", || metrics().contains(&format!("{} 1\n", texts[0])));
    let words: Vec<&str> = texts[1].split(['…', ' ']).filter(|word| !word.is_empty()).collect();
    let is_told = |line: &str| words.iter().all(|word| line.contains(word));
    wait_until("the log tells of it", || daemon.log().lines().any(is_told));

    write(&daemon.path().join("shop/.openharness/hooks/no-force-push.yaml"), hooks[1]);
    wait_until("the daemon has noticed", || daemon.log().contains("changed=no-force-push"));
    let outcome = daemon.post("/v1/events", &push);
    assert_eq!((&outcome["verdict"], &outcome["by"]), (&json!("block"), &json!("no-force-push")));

    daemon.signal(rustix::process::Signal::TERM);
    daemon.wait();
    let audit = fs::read_to_string(daemon.path().join("audit.jsonl")).unwrap();
    let lines: Vec<Value> = audit.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let policies: Vec<_> = lines.iter().map(|line| line["hooks"][0]["policy"].as_str().unwrap()).collect();
    assert_eq!(policies, ["fail_open", "fail_closed"]);
}
