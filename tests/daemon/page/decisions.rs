//! The decisions that the page shows: what is kept of them, for how long, and over a restart.

use std::fs;

use rustix::process::Signal;
use serde_json::{Value, json};

use super::{GUARD, send_event, setup};
use crate::support::{
    daemon::{Daemon, DaemonSetup},
    wait::wait_until,
};

#[test]
fn decisions_are_kept_with_what_each_hook_did() {
    let daemon = setup().serve();
    let decision = send_event(&daemon, "first")["decision_id"].as_str().unwrap().to_owned();
    send_event(&daemon, "second");
    let found = |query: &str| daemon.get(&format!("/v1/decisions{query}"))["decisions"].clone();
    wait_until("both are kept", || found("").as_array().is_some_and(|all| all.len() == 2));
    assert_eq!(found("")[0]["run_id"], "second", "the newest is first");
    let first = found("?run_id=first&verdict=block&tool=Bash&hook=guard&workspace_id=shop");
    assert_eq!(first.as_array().unwrap().len(), 1);
    assert_eq!((&first[0]["by"], &first[0]["decision_id"]), (&json!("guard"), &json!(decision)));
    for query in ["?run_id=third", "?verdict=allow", "?tool=Write", "?hook=other", "?failed=true", "?until=1"]
    {
        assert_eq!(found(query), json!([]), "{query}");
    }
    let details = daemon.get(&format!("/v1/decisions/{decision}"));
    let report = &details["reports"][0];
    assert_eq!(
        (&report["hook"], &report["ended"], &report["verdict"]),
        (&json!("guard"), &json!("completed"), &json!("block"))
    );
    assert!(report["duration_ms"].as_f64().unwrap() > 0.0 && details.get("sent").is_none(), "{details}");
    let payload = daemon.control().send("GET", &format!("/v1/decisions/{decision}/payload"), None).unwrap();
    let payload: Value = serde_json::from_slice(&payload.body).unwrap();
    assert_eq!(
        payload,
        json!({ "sent": { "tool_input": { "command": "ls" } }, "changed": {}, "by_hook": [{}] })
    );
    daemon.finish();
}

#[test]
fn a_payload_says_what_each_hook_made_of_it_also_where_the_event_was_blocked() {
    let patching = |name: &str, priority: u32, patch: &str| {
        format!(
            "name: {name}\nevents: [before_tool_dispatch]\npriority: {priority}\ncapabilities: [rewrite_tool_request]\n\
             handler: {{ type: rule, patch: {{ tool_input: '{patch}' }} }}\n"
        )
    };
    let daemon = setup()
        .file("shop/.openharness/hooks/first.yaml", &patching("first", 10, r#"{"key": "a"}"#))
        .file("shop/.openharness/hooks/second.yaml", &patching("second", 20, r#"{"size": 1234567}"#))
        .file("shop/.openharness/hooks/guard.yaml", &GUARD.replace("guard\n", "guard\npriority: 30\n"))
        .serve();
    let decision = send_event(&daemon, "patched")["decision_id"].as_str().unwrap().to_owned();
    let path = format!("/v1/decisions/{decision}/payload");
    wait_until("it is kept", || daemon.control().send("GET", &path, None).unwrap().status == 200);
    let payload = daemon.control().send("GET", &path, None).unwrap().body;
    let payload: Value = serde_json::from_slice(&payload).unwrap();
    let (first, second) =
        (json!({ "command": "ls", "key": "a" }), json!({ "command": "ls", "key": "a", "size": 1_234_567 }));
    assert_eq!(payload["by_hook"], json!([{ "tool_input": first }, { "tool_input": second }, {}]));
    assert_eq!(payload["changed"], json!({}));
    daemon.finish();
}

#[test]
fn without_an_address_what_was_blocked_is_remembered_without_payloads() {
    let fails = "name: fails\nevents: [before_tool_dispatch]\nmatcher: Write\non_error: ignore\nhandler:\n  type: command\n  command: exit 3\n";
    let daemon = DaemonSetup::new()
        .file("shop/.openharness/hooks/guard.yaml", GUARD)
        .file("shop/.openharness/hooks/fails.yaml", fails)
        .file(
            "shop/.openharness/hooks/fine.yaml",
            &fails.replace("exit 3", "true").replace("fails", "fine").replace("Write", "Read"),
        )
        .settings("workspaces: { shop: { root: $DIR/shop } }")
        .serve();
    let begun = daemon.get("/v1/decisions")["since"].as_u64().unwrap();
    for tool in ["Read", "Bash", "Write"] {
        let event = json!({ "event": "before_tool_dispatch", "session_id": "s", "run_id": tool, "workspace_id": "shop",
                            "tool_name": tool, "tool_input": { "command": "ls" } });
        daemon.post("/v1/events", &event);
    }
    for query in ["", "?notable=true"] {
        let listed = daemon.get(&format!("/v1/decisions{query}"));
        let runs: Vec<_> = listed["decisions"].as_array().unwrap().iter().map(|one| &one["run_id"]).collect();
        assert_eq!(
            (runs, &listed["left_out"], listed["since"].as_u64()),
            (vec![&json!("Write"), &json!("Bash")], &json!(0), Some(begun))
        );
        let failures = json!([{ "hook": "fails", "ended": "failed", "error": listed["decisions"][0]["failures"][0]["error"] }]);
        assert_eq!(listed["decisions"][0]["failures"], failures);
        assert_eq!(
            (&listed["decisions"][1]["failures"], &listed["decisions"][1]["by"]),
            (&json!([]), &json!("guard"))
        );
    }
    let id =
        daemon.get("/v1/decisions?tool=Bash")["decisions"][0]["decision_id"].as_str().unwrap().to_owned();
    assert_eq!(daemon.get(&format!("/v1/decisions/{id}"))["reports"][0]["hook"], "guard");
    for of in ["payload", "event", "trace"] {
        let answer = daemon.control().send("GET", &format!("/v1/decisions/{id}/{of}"), None).unwrap();
        let answer: Value = serde_json::from_slice(&answer.body).unwrap();
        assert_eq!(answer["error"]["code"], "no_history", "{of}: {answer}");
    }
    daemon.finish();
}

/// What hookyard writes to an audit, and never would: nine lines of which five are damaged.
const OTHER_LINES: &[u8] = b"no JSON\n{}\n\xff\xfe\n\
{\"at\":\"2026-01-31T09:30:00.125Z\",\"denied\":{\"peer\":\"127.0.0.1\",\"listener\":\"tcp\",\"status\":401}}\n\
{\"at\":\"2026-01-31T09:30:00.125Z\",\"decision_id\":\"1-3\",\"event\":\"before_tool_dispatch\",\"verdict\":\"block\",\"unasked\":{\"status\":413}}\n\
{\"at\":\"2026-01-31T09:30:00.125Z\",\"workspace_id\":\"shop\",\"session_id\":\"s\",\"run_id\":\"r\",\"decision_id\":\"1-4\",\"event\":\"before_tool_dispatch\",\"verdict\":\"maybe\",\"hooks\":[],\"client\":{\"dialect\":\"claude\"}}\n\
{\"at\":\"2026-01-31T09:30:00.125Z\",\"workspace_id\":\"shop\",\"ses";

#[test]
fn a_restart_keeps_the_decisions_that_the_audit_has() {
    let with_address = |setup: DaemonSetup| setup.argument("--tcp").argument("127.0.0.1:0");
    let mut daemon = setup().settings("audit: { to: $DIR/audit.jsonl }").serve();
    let audit = daemon.path().join("audit.jsonl");
    let listed = |daemon: &Daemon| daemon.get("/v1/decisions?limit=1000");
    let restart = |mut daemon: Daemon| {
        daemon.signal(Signal::TERM);
        daemon.wait();
        with_address(daemon.again()).serve()
    };
    for run in ["one", "two"] {
        send_event(&daemon, run);
    }
    let before = listed(&daemon);
    let id = before["decisions"][0]["decision_id"].as_str().unwrap().to_owned();
    daemon.signal(Signal::TERM);
    daemon.wait();
    let lines = fs::read(&audit).unwrap();
    fs::write(&audit, [&lines, OTHER_LINES].concat()).unwrap();

    let daemon = with_address(daemon.again()).serve();
    let mut after = listed(&daemon);
    for (former, kept) in
        after["decisions"].as_array_mut().unwrap().iter_mut().zip(before["decisions"].as_array().unwrap())
    {
        assert_eq!((&former["from_audit"], &kept["from_audit"]), (&json!(true), &json!(false)));
        // The audit has no waits of less than 10 ms.
        former["duration_ms"] = kept["duration_ms"].clone();
        former["from_audit"] = json!(false);
    }
    assert_eq!(after["decisions"], before["decisions"]);
    assert_eq!(after["since"], before["decisions"][1]["at"]);
    assert!(
        daemon.log().contains("damaged lines of the audit") && daemon.log().contains("lines=5"),
        "{}",
        daemon.log()
    );
    let details = daemon.get(&format!("/v1/decisions/{id}"));
    assert_eq!(
        (&details["reports"][0]["hook"], &details["reports"][0]["verdict"]),
        (&json!("guard"), &json!("block"))
    );
    let payload = daemon.control().send("GET", &format!("/v1/decisions/{id}/payload"), None).unwrap();
    let payload: Value = serde_json::from_slice(&payload.body).unwrap();
    assert_eq!(payload, json!({ "sent": {}, "changed": {}, "by_hook": [{}] }));
    send_event(&daemon, "three");
    assert_eq!(listed(&daemon)["decisions"][0]["from_audit"], false);

    // However much there is, as much is kept as of any other decisions.
    fs::write(&audit, lines.repeat(10_000)).unwrap();
    let daemon = restart(daemon);
    let all = listed(&daemon);
    assert_eq!(all["decisions"].as_array().unwrap().len() as u64 + all["left_out"].as_u64().unwrap(), 2000);
    daemon.finish();
}
