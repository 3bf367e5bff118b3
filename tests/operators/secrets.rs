//! No command and no route shows a secret of a hook, also where the hook itself tells it.

use std::{
    collections::BTreeSet,
    fs,
    process::{Command, Stdio},
};

use crate::support::{
    daemon::{Daemon, DaemonSetup},
    python::python,
    trust::without_trust,
    wait::wait_until,
};
use serde_json::{Value, json};

const PROGRAM: &str = env!("CARGO_BIN_EXE_hookyard");

const SECRET: &str = "k3y-0001-of-the-shop";

/// Hooks that are given the secret and tell it: one blocks with it, one fails with it, one changes the input to it, and one
/// fails with it where nobody waits.
const HOOKS: [(&str, &str, &str, &str); 4] = [
    ("blocks", "before_tool_dispatch", "Bash", "echo the key is $KEY >&2; exit 2"),
    ("fails", "before_tool_dispatch", "Fail", "echo the key is $KEY; echo and again $KEY >&2; exit 1"),
    (
        "changes",
        "before_tool_dispatch",
        "Write",
        r#"printf '{"hookSpecificOutput": {"patch": {"tool_input": {"command": "use %s"}}}}' "$KEY""#,
    ),
    ("notes", "run_completed", "", "echo $KEY >&2; exit 1"),
];

fn hook_file(name: &str, event: &str, tool: &str, command: &str) -> String {
    let mut hook = json!({
        "name": name,
        "events": [event],
        "handler": { "type": "command", "command": command, "environment": { "KEY": "${secrets.KEY}" } },
    });
    if event == "before_tool_dispatch" {
        hook["matcher"] = json!(tool);
        hook["capabilities"] = json!(["rewrite_tool_request"]);
    }
    hook.to_string()
}

fn event(tool: &str) -> Value {
    json!({ "event": "before_tool_dispatch", "session_id": "s", "run_id": "r",
            "workspace_id": "shop", "tool_name": tool, "tool_input": { "command": "ls" } })
}

/// A daemon whose hooks have told the secret wherever they can.
fn daemon_that_heard_it() -> Daemon {
    let setup = DaemonSetup::new()
        .settings("workspaces: { shop: { root: $DIR/shop } }")
        .settings("audit: { to: $DIR/audit.jsonl, patches: values }")
        .settings("data: $DIR/data")
        .variable("HOOKYARD_SECRET_KEY", SECRET);
    let setup = HOOKS.iter().fold(setup, |setup, (name, event, tool, command)| {
        let path = format!("shop/.openharness/hooks/{name}.yaml");
        setup.file(&path, &hook_file(name, event, tool, command))
    });
    let daemon = setup.serve();
    assert_eq!(daemon.get("/v1/status")["hooks"], HOOKS.len(), "{}", daemon.log());
    assert_eq!(daemon.post("/v1/events", &event("Bash"))["reason"], "the key is ***");
    daemon.post("/v1/events", &event("Fail"));
    // The one answer that has it: the host gets the input that the hook wants.
    let changed = daemon.post("/v1/events", &event("Write"));
    assert_eq!(changed["patched"]["tool_input"]["command"], format!("use {SECRET}"));
    let end = json!({ "event": "run_completed", "session_id": "s", "run_id": "r", "workspace_id": "shop", "wait": false });
    daemon.send("POST", "/v1/events", Some(&end));
    wait_until("the hook that nobody waits for has failed", || {
        daemon.get("/v1/outbox")["events"][0]["error"].is_string()
    });
    wait_until("the audit has it all", || {
        fs::read_to_string(daemon.path().join("audit.jsonl")).is_ok_and(|lines| lines.lines().count() >= 4)
    });
    daemon
}

/// Where a command prints.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Output {
    Pipe,
    Json,
    Terminal,
}
use Output::{Json, Pipe, Terminal};

/// What a command prints, on both of its outputs.
#[allow(clippy::disallowed_methods, reason = "it is run as its users run it")]
fn printed(daemon: &Daemon, output: Output, arguments: &[&str]) -> String {
    let mut words = python().split(' ');
    let mut command = match output {
        Pipe | Json => Command::new(PROGRAM),
        Terminal => Command::new(words.next().unwrap()),
    };
    if output == Terminal {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/terminal.py");
        command.args(words).args([script, "200", "", "", PROGRAM]);
    }
    command.args(arguments).args((output == Json).then_some("--json"));
    command.current_dir(daemon.path().join("shop")).stdin(Stdio::null()).env("TERM", "xterm");
    command.env("HOOKYARD_SECRET_KEY", SECRET).env("HOOKYARD_TEST_HOME", daemon.path().join("home"));
    let ended = command.output().unwrap();
    let text =
        [ended.stdout, ended.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    assert!(output != Terminal || !text.contains("\"code\": -"), "{arguments:?} does not end: {text}");
    assert!(!text.trim().is_empty() && !text.contains("error: unexpected argument"), "{arguments:?}: {text}");
    text
}

#[test]
fn no_command_that_asks_a_daemon_prints_a_secret() {
    let daemon = daemon_that_heard_it();
    let socket = daemon.socket().to_str().unwrap();
    let commands: [&[&str]; 9] = [
        &["status"],
        &["runs"],
        &["top", "--once", "--seconds", "1"],
        &["log"],
        &["audit"],
        &["outbox", "list"],
        &["workspaces"],
        &["reload"],
        &["doctor"],
    ];
    for command in commands {
        for output in [Pipe, Json, Terminal] {
            let text = printed(&daemon, output, &[command, &["--socket", socket]].concat());
            assert!(!text.contains(SECRET), "{command:?}, {output:?}: {text}");
        }
    }
    let audit = fs::read_to_string(daemon.path().join("audit.jsonl")).unwrap();
    assert!(audit.contains("the key is ***") && !audit.contains(SECRET), "{audit}");
    assert!(!daemon.log().contains(SECRET), "{}", daemon.log());
}

#[test]
fn no_route_that_is_read_shows_a_secret() {
    let daemon = daemon_that_heard_it();
    let document = daemon.get("/v1/openapi.json");
    let paths = document["paths"].as_object().unwrap().iter();
    let read: BTreeSet<&str> =
        paths.filter(|(_, of)| of["get"].is_object()).map(|(path, _)| &**path).collect();
    assert!(read.len() >= 8, "{read:?}");
    for path in read.into_iter().filter(|path| !["/v1/stream", "/v1/recording", "/v1/now"].contains(path)) {
        let path = path.replace("{id}", if path.contains("/runs/") { "r" } else { "shop" });
        for path in [path.clone(), format!("{path}?workspace_id=shop")] {
            let body = daemon.send("GET", &path, None).body;
            let text = String::from_utf8_lossy(&body);
            assert!(!text.contains(SECRET), "{path}: {text}");
        }
    }
}

#[test]
fn no_command_that_loads_hooks_prints_a_secret() {
    let daemon = daemon_that_heard_it();
    let here = daemon.path();
    let mut session = String::new();
    for (_, kind, tool, _) in HOOKS {
        let mut event = event(tool);
        event["event"] = json!(kind);
        session.push_str(&event.to_string());
        session.push('\n');
    }
    let file = |name: &str, text: &str| {
        fs::write(here.join(name), text).unwrap();
        here.join(name).into_os_string().into_string().unwrap()
    };
    let mut lines = session.lines();
    let events: &str = &file("session.jsonl", &session);
    let event: &str = &file("event.json", lines.next().unwrap());
    let changed: &str = &file("changed.json", lines.nth(1).unwrap());
    let case = |line: &str| {
        let event: Value = serde_json::from_str(line).unwrap();
        json!({ "name": "nothing happens", "event": event, "expect": { "verdict": "halt", "patched": {}, "notes": ["x"] } })
    };
    let cases: Vec<Value> = session.lines().map(case).collect();
    let cases: &str = &file("cases.json", &json!({ "cases": cases }).to_string());
    let commands: [&[&str]; 10] = [
        &["check"],
        &["list"],
        &["explain", "--event", event],
        &["fire", "--event", event],
        &["replay", events],
        &["test", cases],
        &["tune", "--events", events, "--rounds", "1", "--for", "5s"],
        &["trust"],
        &["trust", "--list"],
        &["convert", "--from", "openharness", "--to", "claude"],
    ];
    for command in commands {
        // On a terminal, `trust` asks.
        let outputs = if command == ["trust"] { &[Pipe, Json][..] } else { &[Pipe, Json, Terminal] };
        for output in outputs {
            let text = printed(&daemon, *output, &without_trust(command));
            assert!(!text.contains(SECRET), "{command:?}, {output:?}: {text}");
        }
    }
    // What the host gets has it, for who asks for that alone.
    let asked = without_trust(&["fire", "--event", changed]);
    let shown = printed(&daemon, Terminal, &asked);
    assert!(shown.contains("use ***") && !shown.contains(SECRET), "{shown}");
    assert!(printed(&daemon, Json, &asked).contains(SECRET));
}
