//! What a rule that is not saved would have decided about the last events, and the events to try it with.

use serde_json::{Value, json};

use crate::support::daemon::{Daemon, DaemonSetup, write};

const RULES: &str = "name: pushes\nevents: [before_tool_dispatch]\nmatcher: Bash\non_error: deny\nhandler:\n  type: rule\n  \
                     deny: tool.input.command.contains(\"--force\")\n  reason: '\"not in a run\"'\n";
/// It comes later, and leaves a trace where it runs.
const PROGRAM: &str = "name: program\nevents: [before_tool_dispatch]\nmatcher: Bash|Write\npriority: 10\nhandler:\n  \
                       type: command\n  command: 'echo ran >>../ran; if grep -q evil; then echo no >&2; exit 2; fi'\n";

const TRIAL: &str = "/v1/workspaces/shop/rule-trial";

fn setup() -> DaemonSetup {
    DaemonSetup::new()
        .file("shop/.openharness/hooks/pushes.yaml", RULES)
        .file("shop/.openharness/hooks/program.yaml", PROGRAM)
        .settings("workspaces: { shop: { root: $DIR/shop } }")
        .argument("--tcp")
        .argument("127.0.0.1:0")
}

/// Sends an event, and returns the id of the decision.
fn decide(daemon: &Daemon, run: &str, tool: &str, input: &Value) -> String {
    let event = json!({ "event": "before_tool_dispatch", "session_id": "s", "run_id": run, "workspace_id": "shop",
                        "tool_name": tool, "tool_input": input });
    daemon.post("/v1/events", &event)["decision_id"].as_str().unwrap().to_owned()
}

fn control(daemon: &Daemon, method: &str, path: &str, body: Option<&Value>) -> (u16, Value) {
    let body = body.map(Value::to_string);
    let reply = daemon.control().send(method, path, body.as_deref().map(str::as_bytes)).unwrap();
    (reply.status, serde_json::from_slice(&reply.body).unwrap())
}

fn tried(daemon: &Daemon, hook: Option<&str>, text: &str) -> Value {
    let mut body = json!({ "text": text });
    if let Some(hook) = hook {
        body["hook"] = json!(hook);
    }
    let (status, answer) = control(daemon, "POST", TRIAL, Some(&body));
    assert_eq!(status, 200, "{answer}");
    answer
}

/// The changes of verdicts, as `now>tried=events`.
fn verdicts(trial: &Value) -> Vec<String> {
    let all = trial["verdicts"].as_array().unwrap_or_else(|| panic!("{trial}"));
    let shown = all.iter().map(|one| {
        format!("{}>{}={}", one["now"].as_str().unwrap(), one["tried"].as_str().unwrap(), one["events"])
    });
    shown.collect()
}

/// How often programs ran.
fn runs(daemon: &Daemon) -> usize {
    std::fs::read_to_string(daemon.path().join("ran")).unwrap_or_default().lines().count()
}

#[test]
fn a_rule_is_tried_with_the_last_events_and_nothing_runs_or_is_saved() {
    let daemon = setup().serve();
    let mut ids = Vec::new();
    for command in ["ls", "git push --force", "git push", "evil", "git push --force evil"] {
        ids.push(decide(&daemon, "r", "Bash", &json!({ "command": command })));
    }
    decide(&daemon, "r", "Write", &json!({ "path": "a" }));
    let ran = runs(&daemon);
    let push = RULES.replace("--force", "push");
    let never = RULES.replace("--force", "never said");
    let broken = RULES.replace("tool.input.command.contains(\"--force\")", "tool.input.no.such > 1");
    let renamed = never.replace("name: pushes", "name: others");
    let wider = RULES
        .replace("matcher: Bash", "matcher: Bash|Write")
        .replace("tool.input.command.contains(\"--force\")", "tool.name == \"Write\"");
    let more = push.replace("name: pushes", "name: more");
    // The text, the hook in whose place it is, what changes, how many events it applies to, and for how many it fails.
    for (text, hook, expected, applies, failed) in [
        (RULES, Some("pushes"), &["proceed>proceed=2", "block>block=3"][..], 5, 0),
        (&*push, Some("pushes"), &["proceed>proceed=1", "proceed>block=1", "block>block=3"], 5, 0),
        // What the program would have said of the pushes, nobody knows.
        (&*never, Some("pushes"), &["proceed>proceed=2", "block>proceed=2", "block>block=1"], 5, 0),
        (&*renamed, Some("pushes"), &["proceed>proceed=2", "block>proceed=2", "block>block=1"], 5, 0),
        (&*broken, Some("pushes"), &["proceed>block=2", "block>block=3"], 5, 5),
        (
            &*wider,
            Some("pushes"),
            &["proceed>proceed=2", "proceed>block=1", "block>proceed=2", "block>block=1"],
            6,
            0,
        ),
        (&*more, None, &["proceed>proceed=1", "proceed>block=1", "block>block=3"], 5, 0),
    ] {
        let answer = tried(&daemon, hook, text);
        let trial = &answer["trial"];
        assert_eq!(verdicts(trial), expected, "{text}\n{answer}");
        assert_eq!(
            [&trial["events"], &trial["applies"], &trial["failed"], &trial["otherwise"], &trial["counts"]],
            [&json!(6), &json!(applies), &json!(failed), &json!(0), &json!(false)],
            "{text}\n{answer}"
        );
        assert_eq!(trial["failure"].is_string(), failed > 0, "{answer}");
    }
    let answer = tried(&daemon, Some("pushes"), &push);
    let changes = answer["trial"]["changes"].as_array().unwrap();
    assert_eq!((changes.len(), &changes[0]["decision_id"]), (1, &json!(ids[2])), "{answer}");
    let verdict = |side: &str| (changes[0][side]["verdict"].clone(), changes[0][side]["by"].clone());
    assert_eq!(
        (verdict("now"), verdict("tried")),
        ((json!("proceed"), Value::Null), (json!("block"), json!("pushes")))
    );
    let answer = tried(&daemon, Some("pushes"), &never);
    let changes = answer["trial"]["changes"].as_array().unwrap();
    assert_eq!(
        changes.iter().map(|one| &one["unasked"]).collect::<Vec<_>>(),
        [&json!(["program"]); 2],
        "{answer}"
    );
    assert_eq!((runs(&daemon), daemon.get("/v1/decisions")["left_out"].clone()), (ran, json!(0)));
    assert_eq!(daemon.get("/v1/decisions")["decisions"].as_array().unwrap().len(), 6);
    let saved = std::fs::read_dir(daemon.path().join("shop/.openharness/hooks")).unwrap().count();
    assert_eq!(saved, 2);
    daemon.finish();
}

#[test]
fn what_would_start_or_connect_something_is_refused_and_mistakes_have_their_places() {
    let daemon = setup().serve();
    decide(&daemon, "r", "Bash", &json!({ "command": "ls" }));
    let with =
        |handler: &str| format!("name: new\nevents: [before_tool_dispatch]\nhandler: {{ {handler} }}\n");
    for (text, hook, status, code) in [
        (with("type: command, command: 'touch ../started'"), None, 400, "not_a_rule"),
        (with("type: http, url: 'http://127.0.0.1:1/'"), None, 400, "not_a_rule"),
        (with("type: prompt, prompt: x"), None, 400, "not_a_rule"),
        (with("type: rego, policy: p.rego"), None, 400, "not_a_rule"),
        (RULES.to_owned(), None, 400, "duplicate_name"),
        (RULES.replace("name: pushes", "name: program"), Some("pushes"), 400, "duplicate_name"),
        (RULES.to_owned(), Some("no"), 404, "unknown_hook"),
    ] {
        let mut body = json!({ "text": text });
        if let Some(hook) = hook {
            body["hook"] = json!(hook);
        }
        let (answered, answer) = control(&daemon, "POST", TRIAL, Some(&body));
        assert_eq!((answered, &answer["error"]["code"]), (status, &json!(code)), "{text}\n{answer}");
    }
    assert!(!daemon.path().join("started").exists());
    for (text, line, column, length, part) in [
        (RULES.replace("contains", "contain"), 7, 28, 7, "contain"),
        ("name: [".to_owned(), 1, 8, 1, ""),
        (with("type: rule"), 3, 10, 14, "does nothing"),
    ] {
        let answer = tried(&daemon, None, &text);
        assert_eq!(answer["trial"], Value::Null, "{answer}");
        let error = &answer["diagnostics"][0];
        let place = (&error["line"], &error["column"], &error["length"]);
        assert_eq!(place, (&json!(line), &json!(column), &json!(length)), "{answer}");
        assert!(error["message"].as_str().unwrap().contains(part), "{answer}");
    }
    // Clients of the event socket may not ask what events carry, and a rule asks that.
    let reader = daemon.send("POST", TRIAL, Some(&json!({ "text": RULES })));
    assert_eq!(reader.status, 403);
    daemon.finish();
}

#[test]
fn rules_count_what_a_run_does_and_what_is_not_kept_is_left_out() {
    let daemon = setup().serve();
    for run in ["a", "a", "b", "a"] {
        decide(&daemon, run, "Bash", &json!({ "command": "ls" }));
    }
    decide(&daemon, "c", "Bash", &json!({ "command": "x".repeat(2 << 20) }));
    let counting = RULES.replace("tool.input.command.contains(\"--force\")", "run.count(\"calls\") > 1");
    let answer = tried(&daemon, Some("pushes"), &counting);
    let trial = &answer["trial"];
    assert_eq!(verdicts(trial), ["proceed>proceed=2", "proceed>block=2"], "{answer}");
    assert_eq!(
        (&trial["counts"], &trial["left_out"]),
        (&json!(true), &json!({ "payload_not_kept": 1 })),
        "{answer}"
    );
    daemon.finish();
}

#[test]
fn the_text_of_a_rule_is_that_in_force() {
    let daemon = setup().serve();
    let text = |hook: &str| control(&daemon, "GET", &format!("{TRIAL}?hook={hook}"), None);
    assert_eq!(text("pushes"), (200, json!({ "hook": "pushes", "text": RULES })));
    for (hook, status, code) in [("program", 409, "no_text"), ("no", 404, "unknown_hook")] {
        let (answered, answer) = text(hook);
        assert_eq!((answered, &answer["error"]["code"]), (status, &json!(code)), "{answer}");
    }
    write(&daemon.path().join("shop/.openharness/hooks/pushes.yaml"), "name: [");
    let (status, answer) = text("pushes");
    assert_eq!((status, &answer["error"]["code"]), (409, &json!("no_text")), "{answer}");
    daemon.finish();
}

#[test]
fn an_event_that_is_kept_can_be_tried_again_with_every_digit() {
    let daemon = setup().serve();
    let event = r#"{"event":"before_tool_dispatch","session_id":"s","run_id":"r","workspace_id":"shop","tool_name":"Bash",
                    "tool_input":{"command":"ls","big":9007199254740993,"cent":1.10},"more":[1.50]}"#;
    let reply = daemon.client().send("POST", "/v1/events", Some(event.as_bytes())).unwrap();
    let decision =
        serde_json::from_slice::<Value>(&reply.body).unwrap()["decision_id"].as_str().unwrap().to_owned();
    let body = |path: &str| {
        let reply = daemon.control().send("GET", &format!("/v1/decisions/{decision}/{path}"), None).unwrap();
        assert_eq!(reply.status, 200, "{path}");
        String::from_utf8_lossy(&reply.body).into_owned()
    };
    for (path, part) in [
        ("event", r#""tool_input":{"command":"ls","big":9007199254740993,"cent":1.10},"more":[1.50]"#),
        ("event", r#""gaps":[]"#),
        ("payload", r#"{"command":"ls","big":9007199254740993,"cent":1.10}"#),
        ("trace", r#""big":9007199254740993,"cent":1.10"#),
    ] {
        let shown = body(path);
        assert!(shown.contains(part), "{path}: {shown}");
    }
    let large = decide(&daemon, "r", "Bash", &json!({ "command": "x".repeat(2 << 20) }));
    let (_, answer) = control(&daemon, "GET", &format!("/v1/decisions/{large}/event"), None);
    assert_eq!(
        (&answer["gaps"], &answer["event"]["tool_input"]),
        (&json!(["payload"]), &Value::Null),
        "{answer}"
    );
    daemon.finish();
}
