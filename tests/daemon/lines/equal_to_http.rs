//! Whatever hosts send at the same time on one connection is answered as over HTTP, one after the other.

use proptest::{
    prelude::*,
    test_runner::{Config, TestRunner},
};

use super::*;

/// One event of a host.
#[derive(Debug, Clone)]
struct Sent {
    dialect: Option<&'static str>,
    is_process: bool,
    event: Value,
}

fn canonical() -> impl Strategy<Value = Sent> {
    let tools =
        prop_oneof![Just("Bash"), Just("Patched"), Just("Read"), Just("Asked"), Just("Broken"), Just("")];
    let place = prop_oneof![
        Just(json!({})),
        Just(json!({ "workspace_id": "shop" })),
        Just(json!({ "workspace_id": "none" })),
        Just(json!({ "cwd": "/nowhere" })),
        Just(json!({ "workspace_id": 7 }))
    ];
    let kinds =
        prop_oneof![4 => Just("before_tool_dispatch"), 1 => Just("notification"), 1 => Just("tea_time")];
    (tools, place, kinds, any::<bool>(), ".{0,20}").prop_map(|(tool, place, kind, waits, text)| {
        let mut event = json!({ "event": kind, "session_id": "s", "run_id": "r", "tool_name": tool,
            "tool_input": { "command": text }, "wait": waits });
        event.as_object_mut().unwrap().extend(place.as_object().unwrap().clone());
        Sent { dialect: None, is_process: false, event }
    })
}

fn native() -> impl Strategy<Value = Sent> {
    let dialects = prop_oneof![Just("claude"), Just("codebuddy"), Just("codex"), Just("clawd")];
    let kinds = prop_oneof![4 => Just("PreToolUse"), 1 => Just("Notification"), 1 => Just("TeaTime")];
    (dialects, kinds, prop_oneof![Just("Bash"), Just("Read"), Just("Broken")], any::<bool>(), any::<bool>())
        .prop_map(|(dialect, kind, tool, is_process, has_session)| {
            let mut event = json!({ "hook_event_name": kind, "session_id": "s", "tool_name": tool,
                "tool_input": { "command": "ls" }, "message": "m", "cwd": "/nowhere" });
            if !has_session {
                event.as_object_mut().unwrap().remove("session_id");
            }
            Sent { dialect: Some(dialect), is_process, event }
        })
}

/// What both doors say of an event: without what is different each time.
fn comparable(mut answer: Value) -> Value {
    let outcome = answer.as_object_mut().expect("an object");
    outcome.remove("decision_id");
    outcome.remove("snapshot_version");
    for hook in outcome.get_mut("hooks").and_then(Value::as_array_mut).into_iter().flatten() {
        // It is there if the hook waited at all.
        hook.as_object_mut().unwrap().remove("queued_ms");
        hook.as_object_mut().unwrap().remove("duration_ms");
    }
    answer
}

fn over_http(daemon: &Daemon, sent: &Sent) -> Value {
    let path = match sent.dialect {
        None => "/v1/events".to_owned(),
        Some(dialect) if sent.is_process => format!("/v1/events/{dialect}?as=process"),
        Some(dialect) => format!("/v1/events/{dialect}"),
    };
    let answer = daemon.send("POST", &path, Some(&sent.event));
    let body: Value = serde_json::from_slice(&answer.body).unwrap();
    if answer.status != 200 {
        return json!({ "status": answer.status, "retry_after": answer.header("retry-after"), "error": body["error"] });
    }
    let unasked = answer
        .header("x-hookyard-error")
        .map(|code| json!({ "code": code, "retry": answer.header("x-hookyard-retry") }));
    let exit_code = answer.header("hookyard-exit-code").map(|code| code.parse::<u8>().unwrap());
    json!({ "answer": comparable(body), "unasked": unasked, "exit_code": exit_code })
}

fn on_a_line(mut line: Value) -> Value {
    if let Some(mut error) = line.get_mut("error").map(Value::take) {
        let error = error.as_object_mut().unwrap();
        let status = error.remove("status");
        let retry_after = error.remove("retry_after").map(|seconds| seconds.to_string());
        return json!({ "status": status, "retry_after": retry_after, "error": error });
    }
    let answer = line.get("outcome").or(line.get("answer")).cloned().unwrap_or_else(|| panic!("{line}"));
    json!({ "answer": comparable(answer), "unasked": line.get("unasked"), "exit_code": line.get("exit_code") })
}

#[test]
fn pipelined_answers_are_those_of_http() {
    let hook = |name: &str, tool: &str, command: &str, more: &str| {
        (
            format!("shop/.openharness/hooks/{name}.yaml"),
            format!(
                "name: {name}\nevents: [before_tool_dispatch]\nmatcher: ^{tool}$\n{more}handler:\n  type: command\n  command: {}\n",
                json!(command)
            ),
        )
    };
    let patch = r#"echo '{"hookSpecificOutput":{"updatedInput":{"command":"true"}}}'"#;
    let mut setting = setting();
    for (path, text) in [
        hook("patched", "Patched", patch, "capabilities: [rewrite_tool_request]\n"),
        hook("asked", "Asked", r#"echo '{"decision":"ask","reason":"sure?"}'"#, ""),
        hook("broken", "Broken", "exit 1", "on_error: deny\n"),
    ] {
        setting = setting.file(&path, &text);
    }
    let daemon = setting.serve();
    let number = std::cell::Cell::new(0);
    let mut runner = TestRunner::new(Config {
        failure_persistence: None,
        max_shrink_iters: 200,
        ..Config::with_cases(40)
    });
    let batches = proptest::collection::vec(prop_oneof![2 => canonical(), 1 => native()], 1..40);
    let ran = runner.run(&batches, |batch| {
        let mut host = LineHost::of(&daemon);
        let mut text = String::new();
        for (id, sent) in batch.iter().enumerate() {
            let mut line = json!({ "id": id, "event": sent.event });
            let object = line.as_object_mut().unwrap();
            if let Some(dialect) = sent.dialect {
                object.insert("dialect".to_owned(), json!(dialect));
                object.insert("as".to_owned(), json!(if sent.is_process { "process" } else { "body" }));
            }
            text += &line.to_string();
            text.push('\n');
        }
        host.raw(text);
        let answers = host.lines(batch.len());
        for (id, sent) in batch.iter().enumerate() {
            number.set(number.get() + 1);
            let line = on_a_line(answers[&id.to_string()].clone());
            prop_assert_eq!(line, over_http(&daemon, sent), "{:?}", sent);
        }
        Ok(())
    });
    ran.unwrap_or_else(|error| panic!("{error}"));
    assert!(number.get() > 100, "{} events were compared", number.get());
    daemon.finish();
}
