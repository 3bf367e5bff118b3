//! `replay`.

use super::*;

/// Two runs; the second is completed.
fn recording() -> String {
    let event = |run: &str, command: &str| tool(command).replace("\"r\"", &format!("\"{run}\""));
    let end = r#"{"event":"run_completed","session_id":"s","run_id":"two"}"#;
    [event("one", "ls"), event("two", "npm i x"), event("one", "rm -rf /"), end.to_owned(), String::new()]
        .join("\n")
}

#[test]
fn a_recording_is_played_and_summed_up() {
    let shop = shop();
    let done = run_with(shop.path(), &["replay", "-"], &recording());
    assert_eq!((done.code, done.err.as_str()), (0, ""));
    insta::assert_snapshot!("replay", timeless(&done.out));
}

#[test]
fn a_recording_is_multiplied() {
    let shop = shop();
    std::fs::write(shop.path().join("r.jsonl"), recording()).unwrap();
    let done = run(shop.path(), &["replay", "r.jsonl", "--sessions", "3", "--concurrency", "4"]);
    assert_eq!((done.code, done.err.as_str()), (0, ""));
    insta::assert_snapshot!("replay_three_times", timeless(&done.out));
    let report = run(shop.path(), &["replay", "r.jsonl", "--sessions", "3", "--json"]).json();
    let events = report["events"].as_array().unwrap();
    assert_eq!(events.len(), 12);
    let runs: Vec<_> = events.iter().map(|event| event["run"].as_str().unwrap()).collect();
    assert_eq!(runs[..5], ["one#1", "two#1", "one#1", "two#1", "one#2"]);
    assert_eq!(report["totals"]["runs"], 6);
    assert_eq!(report["totals"]["invocations"], 21);
    let kind =
        report["by_event"].as_array().unwrap().iter().find(|row| row["event"] == "before_tool_dispatch");
    assert_eq!(kind.unwrap()["verdicts"]["block"], 3);
    let played = events.iter().find(|event| event["line"] == 2).unwrap();
    assert_eq!((&played["patched"], &played["verdict"]), (&json!(["tool_input"]), &json!("proceed")));
}

#[test]
fn a_broken_line_is_counted_and_the_others_go_on() {
    let shop = shop();
    let text = format!("{{\"event\": \n{}[]\n", recording());
    std::fs::write(shop.path().join("r.jsonl"), text).unwrap();
    let done = run(shop.path(), &["replay", "r.jsonl"]);
    assert_eq!(done.code, 1);
    assert!(
        done.err.contains("error: r.jsonl:1: not valid JSON: EOF while parsing a value at column"),
        "{}",
        done.err
    );
    assert!(
        done.err.contains("error: r.jsonl:6: the event must be a JSON object, not an array"),
        "{}",
        done.err
    );
    assert!(done.out.contains("4 events of 2 runs"), "{}", done.out);
    assert!(done.out.contains("2 lines could not be read"), "{}", done.out);
    let report = run(shop.path(), &["replay", "r.jsonl", "--json"]).json();
    assert_eq!(report["broken_lines"][1]["line"], 6);
    let done = run_with(shop.path(), &["replay", "-"], "\n");
    assert_eq!((done.code, done.out.as_str()), (1, ""));
    assert!(done.err.contains("standard input has no events"), "{}", done.err);
    let done = run(shop.path(), &["replay", "none.jsonl"]);
    assert_eq!((done.code, done.out.as_str()), (1, ""));
    assert!(done.err.contains("the recording `none.jsonl` cannot be read: no such file"), "{}", done.err);
}

#[test]
fn an_ignored_failure_is_counted_apart_from_proceed() {
    let shop = workspace(&[("odd", &hook("odd", "before_tool_dispatch", "exit 3", ""))]);
    let done = run_with(shop.path(), &["replay", "-", "--json"], &tool("ls"));
    let row = &done.json()["by_hook"][0];
    assert_eq!((&row["failures"], &row["verdicts"]["proceed"]), (&json!(1), &json!(0)), "{row}");
}

#[test]
fn a_failing_hook_is_part_of_the_result() {
    let fails = r#"printf "\033[2Jboo" >&2; exit 3"#;
    let shop = workspace(&[("odd", &hook("odd", "before_tool_dispatch", fails, ""))]);
    let done = run_with(shop.path(), &["replay", "-", "--verbose"], &tool("ls"));
    assert_eq!((done.code, done.err.as_str()), (0, ""));
    assert!(done.out.contains("odd failed"), "{}", done.out);
    assert!(!done.out.contains('\x1b'), "{:?}", done.out);
    assert!(done.out.contains("hooks ran 1 time, 1 of them failed"), "{}", done.out);
}

#[test]
fn an_event_without_an_outcome_is_a_failure() {
    let shop = shop();
    std::fs::write(shop.path().join("one.yaml"), "limits: { runs: 1 }\n").unwrap();
    let arguments = ["replay", "-", "--config", "one.yaml", "--concurrency", "1", "--verbose"];
    let done = run_with(shop.path(), &arguments, &recording());
    assert_eq!((done.code, done.err.as_str()), (1, ""));
    let expected = "no outcome  overloaded: as many runs are known as `limits.runs` allows; try again later";
    assert!(done.out.contains(expected), "{}", done.out);
    let event = tool("ls").replace("\"r\"", "\"r\\u202e\"");
    let done = run_with(shop.path(), &["explain", "--event", "-"], &event);
    assert!(!done.out.contains('\u{202e}') && !done.err.contains('\u{202e}'), "{}", done.out);
}

#[test]
fn warnings_that_differ_only_in_wording_are_counted_as_one() {
    let shop = workspace(&[("odd", &hook("odd", "run_completed", "echo $$ >&2; exit 3", ""))]);
    let done = run_with(shop.path(), &["replay", "-", "--sessions", "50"], &recording());
    assert!(done.out.contains("(and the like, in 50 of 50 sessions)"), "{}", done.out);
    assert_eq!(done.out.matches("odd failed").count(), 1, "{}", done.out);
}

#[test]
fn a_file_that_is_no_recording_gets_a_short_message() {
    let shop = shop();
    std::fs::write(shop.path().join("zeros"), [0; 4096]).unwrap();
    for (file, expected) in [
        ("zeros", "error: zeros:1: this is not a text file\n"),
        ("/dev/zero", "`/dev/zero` cannot be read: it is neither a regular file nor a pipe\n"),
    ] {
        let done = run(shop.path(), &["replay", file]);
        assert_eq!((done.code, done.out.as_str()), (1, ""));
        assert!(done.err.contains(expected), "{}", done.err);
    }
    let done = run_with(shop.path(), &["replay", "-"], &format!("{{\n{}", "\"a\":1,\n".repeat(20)));
    assert!(done.err.contains("help: write one event per line; `jq -c .` does that"), "{}", done.err);
    assert!(done.err.contains("and 11 more lines\n"), "{}", done.err);
    assert_eq!(done.err.matches("standard input:").count(), 10, "{}", done.err);
}

#[test]
fn replies_and_changes_of_hooks_are_shown() {
    let says = |kind: &str, text: &str| format!(r#"cat >/dev/null; echo "{{\"{kind}\":\"{text}\"}}""#);
    let shop = shop();
    let talks =
        hook("talks", "before_tool_dispatch", &says("systemMessage", "About to run it"), "priority: 30");
    std::fs::write(shop.path().join(".openharness/hooks/talks.yaml"), talks).unwrap();
    let done = run_with(shop.path(), &["replay", "-"], &tool("npm i x"));
    for expected in [
        r#"patched  tool_input by npm: command: "npm i x" → "npm ci""#,
        "note     talks to the person: About to run it",
    ] {
        assert!(done.out.contains(expected), "{}", done.out);
    }
    let report = run_with(shop.path(), &["replay", "-", "--json"], &tool("ls")).json();
    let note = json!([{ "hook": "talks", "kind": "system_message", "text": "About to run it" }]);
    assert_eq!(report["events"][0]["notes"], note);
}

#[test]
fn a_repeated_event_runs_no_hook_and_counts_none() {
    let shop = shop();
    let event = tool("rm -rf /").replace("\"tool_name\"", "\"tool_call_id\":\"c\",\"tool_name\"");
    let done = run_with(shop.path(), &["replay", "-", "--verbose"], &format!("{event}\n{event}\n"));
    assert!(done.out.contains("2  r  block    before_tool_dispatch Bash  as before"), "{}", done.out);
    assert!(done.out.contains("by guard, as before"), "{}", done.out);
    assert!(done.out.contains("1 event answered as before; hooks ran 2 times"), "{}", done.out);
    let report = run_with(shop.path(), &["replay", "-", "--json"], &format!("{event}\n{event}\n")).json();
    assert_eq!(
        (&report["events"][1]["repeated"], &report["totals"]["invocations"]),
        (&json!(true), &json!(2))
    );
    let left_alone = tool("ls").replace("Bash", "Read");
    let report = run_with(shop.path(), &["replay", "-", "--json"], &left_alone).json();
    assert_eq!(report["by_event"][0]["p50_ms"], Value::Null);
}

#[test]
fn the_example_workspace_does_what_its_description_says() {
    for program in ["node", "python3"] {
        if Command::new(program).arg("--version").output().is_err() {
            eprintln!("COULD NOT RUN: the example workspace needs {program}, which is not installed");
            return;
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (workspace, recording) =
        ("config/workspaces/openharness", "config/recordings/openharness-session.jsonl");
    let check = run(root, &["check", "--workspace", workspace]);
    assert_eq!(check.code, 0, "{}", check.out);
    let arguments = ["replay", recording, "--workspace", workspace, "--dialect", "openharness", "--json"];
    let done = run(root, &arguments);
    assert_eq!(done.code, 0, "{}", done.err);
    let report = done.json();
    assert_eq!(report["totals"]["events"], 58);
    assert_eq!(report["totals"]["failures"], 0);
    let lines = |verdict: &str| -> Vec<u64> {
        let events = report["events"].as_array().unwrap().iter();
        events
            .filter(|event| event["verdict"] == verdict)
            .map(|event| event["line"].as_u64().unwrap())
            .collect()
    };
    assert_eq!(lines("block"), [25, 32]);
    assert_eq!(lines("halt"), [40, 42, 44, 47, 50, 53]);
}
