//! `explain` and `fire`.

use super::*;

#[test]
fn the_plan_is_explained_and_nothing_is_run() {
    let shop = shop();
    let done = run_with(shop.path(), &["explain", "--event", "-"], &tool("rm -rf /"));
    assert_eq!((done.code, done.err.as_str()), (0, ""));
    insta::assert_snapshot!("explain", done.out);
    let report = run_with(shop.path(), &["explain", "--event", "-", "--json"], &tool("ls")).json();
    let why = "before_tool_dispatch is not among its events";
    let expected = json!({ "stages": [["npm"], ["guard"]], "skipped": [{ "hook": "audit", "why": why }] });
    assert_eq!(report, expected);
    let lifecycle = r#"{"event":"run_failed","session_id":"s","run_id":"r"}"#;
    let done = run_with(broken_shop().path(), &["explain", "--event", "-"], lifecycle);
    assert!(done.err.contains("2 errors in hook files"), "{}", done.err);
}

#[test]
fn a_line_that_needs_no_shell_is_told() {
    let shop = shop();
    for (name, line) in [("plain", "node guard.mjs 'a b'"), ("shell", "node guard.mjs | cat")] {
        let hook = format!(
            "name: {name}\nevents: [before_tool_dispatch]\nhandler: {{type: command, command: \"{line}\"}}\n"
        );
        std::fs::write(shop.path().join(format!(".openharness/hooks/{name}.yaml")), hook).unwrap();
    }
    let done = run_with(shop.path(), &["explain", "--event", "-"], &tool("ls"));
    assert!(done.out.contains("command: node guard.mjs 'a b' (without a shell)\n"), "{}", done.out);
    assert!(done.out.contains("command: node guard.mjs | cat\n"), "{}", done.out);
}

#[test]
fn an_event_is_fired_and_its_outcome_is_canonical_json() {
    let shop = shop();
    let done = run_with(shop.path(), &["fire", "--event", "-"], &tool("npm i x"));
    assert_eq!((done.code, done.err.as_str()), (0, ""));
    let outcome = done.json();
    assert_eq!(outcome["verdict"], "proceed");
    assert_eq!(outcome["patched"]["tool_input"]["command"], "npm ci");
    assert_eq!(done.out.lines().count(), 1);
    std::fs::write(shop.path().join("event.json"), tool("rm -rf /")).unwrap();
    let done = run(shop.path(), &["fire", "--event", "event.json", "--json"]);
    let outcome = done.json();
    assert_eq!((done.code, &outcome["verdict"], &outcome["by"]), (0, &json!("block"), &json!("guard")));
    assert_eq!(outcome["reason"], "not on my watch");
}

#[test]
fn a_broken_hook_file_is_noted_once_by_commands_that_run_hooks() {
    let shop = broken_shop();
    let fired = run_with(shop.path(), &["fire", "--event", "-"], &tool("ls"));
    let replayed = run_with(shop.path(), &["replay", "-"], &tool("ls"));
    for done in [fired, replayed] {
        assert!(done.err.starts_with("note: ") && done.err.contains("run `hookyard check`"), "{}", done.err);
        assert_eq!(done.err.lines().count(), 1, "{}", done.err);
    }
}

#[test]
fn a_native_answer_is_that_of_the_dialect() {
    let shop = shop();
    let event = tool("rm -rf /").replace("\"event\"", "\"hook_event_name\"");
    let arguments = ["fire", "--event", "-", "--native", "--dialect", "openharness"];
    let done = run_with(shop.path(), &arguments, &event);
    assert_eq!((done.code, done.err.as_str()), (0, ""));
    assert_eq!(done.json()["decision"], "block");
    assert_eq!(done.json()["reason"], "not on my watch");
}

#[test]
fn a_broken_event_says_which_field_or_line_is_wrong() {
    let audit = workspace(&[("audit", &hook("audit", "run_failed", "true", ""))]);
    let missing = r#"{"event":"run_failed","session_id":"s"}"#;
    for command in ["fire", "explain"] {
        let done = run_with(audit.path(), &[command, "--event", "-"], missing);
        assert_eq!((done.code, done.out.as_str()), (1, ""), "{command}");
        assert_eq!(done.err, "error: standard input: field `run_id` is missing\n", "{command}");
        std::fs::write(audit.path().join("e.json"), "{\"event\": \"run_failed\",\n \"run_id\" \"r\"}\n")
            .unwrap();
        let done = run(audit.path(), &[command, "--event", "e.json"]);
        assert_eq!((done.code, done.out.as_str()), (1, ""), "{command}");
        insta::assert_snapshot!("broken_json", done.err);
        let done = run(audit.path(), &[command, "--event", "none.json"]);
        assert_eq!(done.code, 1, "{command}");
        assert!(done.err.contains("the event `none.json` cannot be read: no such file"), "{}", done.err);
    }
}

#[test]
fn an_event_beyond_the_limit_is_refused() {
    let shop = workspace(&[("audit", &hook("audit", "run_failed", "true", ""))]);
    std::fs::write(shop.path().join("small.yaml"), "limits: { payload: 64B }\n").unwrap();
    let event = tool(&"x".repeat(100));
    for command in ["fire", "explain"] {
        let done = run_with(shop.path(), &[command, "--event", "-", "--config", "small.yaml"], &event);
        assert_eq!(done.code, 1);
        assert!(done.err.contains("standard input is longer than the 64 bytes allowed"), "{}", done.err);
    }
}

#[test]
fn a_guard_that_fails_closed_blocks_what_cannot_be_read() {
    let done = run_with(shop().path(), &["fire", "--event", "-"], "{\"event\":");
    assert_eq!(done.code, 1);
    assert_eq!((&done.json()["verdict"], &done.json()["by"]), (&json!("block"), &json!("guard")));
    assert!(done.err.contains("not valid JSON"), "{}", done.err);
    // The exit code is part of the dialect's answer: any other would let the event pass.
    let arguments = ["fire", "--event", "-", "--native", "--dialect", "openharness"];
    let done = run_with(shop().path(), &arguments, "{\"event\":");
    assert_eq!((done.code, &done.json()["decision"]), (0, &json!("block")));
}

#[test]
fn a_native_answer_to_what_cannot_be_read_is_no_opinion_and_a_note_where_no_guard_fails_closed() {
    let open = workspace(&[("audit", &hook("audit", "before_tool_dispatch", "touch ran; exit 2", ""))]);
    std::fs::write(open.path().join("small.yaml"), "limits: { payload: 64B }\n").unwrap();
    let read = r#"{"hook_event_name":"PreToolUse","session_id":"s","tool_name":"Bash","tool_input":{}"#;
    for dialect in [
        "openharness",
        "claude",
        "codebuddy",
        "gemini",
        "clawd",
        "codex",
        "qwen",
        "copilot",
        "cursor",
        "droid",
    ] {
        let arguments = ["fire", "--event", "-", "--native", "--dialect", dialect, "--config", "small.yaml"];
        for event in ["{\"event\":", "", "[]", read, &"x".repeat(100), "{\"hook_event_name\": \"Unheard\"}"] {
            let done = run_with(open.path(), &arguments, event);
            assert_eq!(done.code, 0, "{dialect}, {event:?}: {done:?}");
            // ClawdCode, Copilot CLI and Cursor have no such field for the person; the last two show standard error.
            let has_field = !["clawd", "copilot", "cursor"].contains(&dialect);
            let note = if dialect == "clawd" { Value::Null } else { done.json()["systemMessage"].clone() };
            let says_so = |note: &str| note.starts_with("hookyard ran no hooks for this event: ");
            let has_note = note.as_str().is_some_and(says_so);
            assert!(has_note || dialect == "clawd" || says_so(&done.err), "{dialect}, {event:?}: {done:?}");
            assert!(done.err.is_empty() || !has_field, "{dialect}, {event:?}: {done:?}");
        }
    }
    assert!(!open.path().join("ran").exists());
}

#[test]
fn an_event_of_another_dialect_or_without_a_name_gets_a_hint() {
    let arguments = ["explain", "--event", "-", "--dialect", "openharness"];
    let done = run_with(shop().path(), &arguments, &tool("ls"));
    assert!(done.err.contains("help: this looks like a canonical event; leave out"), "{}", done.err);
    let done = run_with(shop().path(), &["explain", "--event", "-"], "\n");
    assert!(done.err.contains("error: standard input is empty\n"), "{}", done.err);
}

#[expect(clippy::disallowed_methods, reason = "assert_cmd waits for the end, and these tests act before it")]
fn start(directory: &Path, arguments: &[&str]) -> std::process::Child {
    std::process::Command::new(cargo_bin!("hookyard"))
        .current_dir(directory)
        .args(without_trust(arguments))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

#[test]
fn a_closed_pipe_is_no_failure() {
    let shop = shop();
    for arguments in [&["list"][..], &["check"], &["completions", "bash"]] {
        let mut child = start(shop.path(), arguments);
        drop(child.stdout.take());
        let mut err = String::new();
        child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
        assert_eq!((child.wait().unwrap().code(), err.as_str()), (Some(0), ""), "{arguments:?}");
    }
}

#[test]
fn an_interrupt_stops_the_hooks_and_ends_with_130() {
    let slow = "exec 3>alive; echo up >&3; exec sleep 60";
    let shop = workspace(&[("slow", &hook("slow", "before_tool_dispatch", slow, ""))]);
    let alive = shop.path().join("alive");
    std::fs::write(shop.path().join("event.json"), tool("ls")).unwrap();
    for arguments in [&["fire", "--event", "event.json"][..], &["replay", "event.json"]] {
        Command::new("mkfifo").arg(&alive).assert().success();
        let mut child = start(shop.path(), arguments);
        let mut hook = BufReader::new(std::fs::File::open(&alive).unwrap());
        let mut line = String::new();
        hook.read_line(&mut line).unwrap();
        assert_eq!(line, "up\n");
        let id = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(id, rustix::process::Signal::INT).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(130), "{arguments:?}");
        // The pipe ends when the last process that has it open does.
        assert_eq!(hook.read_line(&mut line).unwrap(), 0, "{arguments:?}");
        std::fs::remove_file(&alive).unwrap();
    }
}
