//! The audit where it is required: no verdict without its line.

use super::*;

#[test]
fn where_the_audit_is_required_no_decision_is_answered_without_its_line() {
    let hooks = [hook("fine", "Fine", "", "true"), hook("guard", "Bash", "", "exit 2")];
    let daemon = setting("required: true", &hooks).serve();
    let pid = Pid::from_raw(daemon.pid().cast_signed());
    for number in 0..10 {
        let outcome = daemon.post("/v1/events", &event("r", "Fine"));
        assert_eq!(lines(&daemon).len(), number + 1, "the line is there when the host has its answer");
        assert_eq!(lines(&daemon)[number]["decision_id"], outcome["decision_id"]);
    }
    let size = fs::metadata(daemon.path().join("audit.jsonl")).unwrap().len();
    prlimit(pid, Resource::Fsize, Rlimit { current: Some(size + 10), maximum: None }).unwrap();
    for tool in ["Fine", "Bash"] {
        let answer = daemon.send("POST", "/v1/events", Some(&event("r", tool)));
        let error: Value = serde_json::from_slice(&answer.body).unwrap();
        assert_eq!((answer.status, &error["error"]["code"]), (503, &json!("not_audited")), "{error}");
    }
    // An agent would take an error for consent.
    let native = json!({ "hook_event_name": "PreToolUse", "session_id": "s", "cwd": daemon.path().join("shop"),
                         "tool_name": "Fine", "tool_input": {} });
    let answer = daemon.post("/v1/events/claude", &native);
    assert_eq!(answer["hookSpecificOutput"]["permissionDecision"], "deny", "{answer}");
    let why = answer["hookSpecificOutput"]["permissionDecisionReason"].as_str().unwrap();
    assert!(why.starts_with("the answer of the hooks is lost: the decision could not be written"), "{why}");
    assert!(why.contains("; make room for the audit"), "{why}");
    prlimit(pid, Resource::Fsize, Rlimit { current: None, maximum: None }).unwrap();
    assert_eq!(daemon.post("/v1/events", &event("r", "Fine"))["verdict"], "proceed");
}

/// Fills the disk of the audit, but for a part of a line.
fn fill_disk(daemon: &Daemon) {
    let size = fs::metadata(daemon.path().join("audit.jsonl")).unwrap().len();
    let pid = Pid::from_raw(daemon.pid().cast_signed());
    prlimit(pid, Resource::Fsize, Rlimit { current: Some(size + 10), maximum: None }).unwrap();
}

#[test]
fn where_the_audit_is_required_events_that_no_hook_wants_have_lines_too() {
    let daemon = setting("required: true", &[hook("fine", "Fine", "", "true")]).serve();
    let call = json!({ "hook_event_name": "PreToolUse", "session_id": "s", "cwd": daemon.path().join("shop"),
                       "tool_name": "Unwanted", "tool_input": {} });
    let ended = json!({ "event": "session_ended", "session_id": "s", "run_id": "r", "workspace_id": "shop" });
    let outcome = daemon.post("/v1/events", &event("r", "Unwanted"));
    let told = lines(&daemon).pop().expect("the line is there when the host has its answer");
    assert_eq!((&told["decision_id"], &told["tool"]), (&outcome["decision_id"], &json!("Unwanted")));
    assert_eq!((&told["verdict"], &told["hooks"]), (&json!("proceed"), &json!([])));
    assert_eq!((&told["client"]["listener"], &told["accepted"]), (&json!("event_socket"), &Value::Null));
    daemon.post("/v1/events/claude", &call);
    daemon.post("/v1/events", &ended);
    let events: Vec<Value> = lines(&daemon).iter().map(|line| line["event"].clone()).collect();
    assert_eq!(events, ["before_tool_dispatch", "before_tool_dispatch", "session_ended"]);

    fill_disk(&daemon);
    for event in [&event("r", "Unwanted"), &ended] {
        let answer = daemon.send("POST", "/v1/events", Some(event));
        let error: Value = serde_json::from_slice(&answer.body).unwrap();
        assert_eq!((answer.status, &error["error"]["code"]), (503, &json!("not_audited")), "{error}");
    }
    let answer = daemon.post("/v1/events/claude", &call);
    assert_eq!(answer["hookSpecificOutput"]["permissionDecision"], "deny", "{answer}");
    assert_eq!(lines(&daemon).len(), 3);
}

#[test]
fn where_the_audit_is_required_an_event_that_nobody_waits_for_is_recorded_when_it_is_accepted() {
    let text = "name: told\nevents: [run_completed]\nhandler:\n  type: command\n  \
                command: while ! test -e go; do sleep 0.01; done\n";
    let hooks = [("shop/.openharness/hooks/told.yaml".to_owned(), text.to_owned())];
    // The outbox would be on the full disk as well.
    let daemon = setting("required: true", &hooks).settings("data: null").serve();
    let ended = json!({ "event": "run_completed", "session_id": "s", "run_id": "r", "workspace_id": "shop",
                        "wait": false });
    let outcome = daemon.post("/v1/events", &ended);
    let [accepted] = &lines(&daemon)[..] else { panic!("{:?}", lines(&daemon)) };
    assert_eq!((&accepted["decision_id"], &accepted["accepted"]), (&outcome["decision_id"], &json!(true)));
    assert_eq!(accepted["hooks"], json!([]));
    fs::write(daemon.path().join("shop/go"), "").unwrap();
    wait_until("its hook has ended", || lines(&daemon).len() == 2);
    let delivered = &lines(&daemon)[1];
    assert_eq!((&delivered["decision_id"], &delivered["accepted"]), (&outcome["decision_id"], &Value::Null));
    assert_eq!(delivered["hooks"][0]["hook"], "told");

    fill_disk(&daemon);
    let answer = daemon.send("POST", "/v1/events", Some(&ended));
    let error: Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!((answer.status, &error["error"]["code"]), (503, &json!("not_audited")), "{error}");
}

#[test]
fn where_the_audit_is_required_answers_that_no_hook_was_asked_for_have_lines_too() {
    let guard = hook("closed", "Closed", "on_error: deny", "true");
    for (guards, canonical, native) in [(vec![], None, "proceed"), (vec![guard], Some("block"), "block")] {
        let daemon = setting("required: true", &guards).serve();
        let unreadable = |path: &str, body: &Value| {
            let answer = daemon.send("POST", path, Some(body));
            serde_json::from_slice::<Value>(&answer.body).unwrap()
        };
        let event = json!({ "event": "before_tool_dispatch", "workspace_id": "shop", "tool_name": "Closed" });
        let answer = unreadable("/v1/events", &event);
        let call = json!({ "hook_event_name": "PreToolUse", "cwd": daemon.path().join("shop") });
        unreadable("/v1/events/claude", &call);
        let told = lines(&daemon);
        let verdicts: Vec<_> = told.iter().map(|line| line["verdict"].as_str().unwrap()).collect();
        let expected: Vec<&str> = canonical.into_iter().chain([native]).collect();
        assert_eq!(verdicts, expected, "{told:?}");
        let of_native = told.last().unwrap();
        assert_eq!(of_native["unasked"], json!({ "status": 400, "code": "bad_event" }));
        assert_eq!(of_native["client"]["dialect"], "claude");
        assert!(
            of_native["client"]["uid"].is_u64() && of_native["event"] == "before_tool_dispatch",
            "{told:?}"
        );
        match canonical {
            Some(verdict) => assert_eq!(
                (&answer["verdict"], &answer["decision_id"]),
                (&json!(verdict), &told[0]["decision_id"])
            ),
            None => assert_eq!(answer["error"]["code"], "bad_event"),
        }
        let (_, shown) = search(&daemon, &["audit", "--last", "1"]);
        assert!(shown[0].contains("no hook asked: bad_event"), "{shown:?}");

        fill_disk(&daemon);
        let code = if canonical.is_some() { "not_audited" } else { "bad_event" };
        assert_eq!(unreadable("/v1/events", &event)["error"]["code"], code);
        let answer = unreadable("/v1/events/claude", &call);
        assert_eq!(answer["hookSpecificOutput"]["permissionDecision"], "deny", "{answer}");
    }
}
