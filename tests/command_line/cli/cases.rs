//! `test`: cases as data, and what is said where an outcome is another one.

use std::fs;

use super::*;

const PASSING: &str = r"
cases:
  - name: a deletion of everything is blocked
    event: { event: before_tool_dispatch, tool_name: Bash, tool_input: { command: rm -rf / } }
    expect: { verdict: block, reason: my watch, by: guard, hooks: [npm, guard], patched: {} }
  - name: npm i becomes npm ci
    event: { event: before_tool_dispatch, tool_name: Bash, tool_input: { command: npm i x } }
    expect: { verdict: proceed, patched: { tool_input: { command: npm ci } }, hooks: [npm, guard] }
  - name: the same in the words of Claude Code
    dialect: claude
    event: { hook_event_name: PreToolUse, tool_name: Bash, tool_input: { command: rm -rf / } }
    expect: { verdict: block }
";

fn with_cases(files: &[(&str, &str)]) -> TempDir {
    let directory = shop();
    let cases = directory.path().join(".openharness/tests");
    fs::create_dir_all(&cases).unwrap();
    for (name, text) in files {
        fs::write(cases.join(name), text).unwrap();
    }
    directory
}

#[test]
fn cases_pass_in_the_order_of_their_files() {
    // As programs write it that keep to ASCII.
    let last = r#"{"dialect": "claude", "cases": [{"name": "harmless", "event": {"hook_event_name": "PreToolUse",
        "tool_name": "Bash", "tool_input": {"command": "ls \ud83d\ude00"}}, "expect": {"verdict": "proceed"}}]}"#;
    let directory = with_cases(&[("b.json", last), ("a.yaml", PASSING), ("notes.txt", "no cases")]);
    let done = run(directory.path(), &["test"]);
    assert_eq!((done.code, done.err.as_str()), (0, ""), "{}", done.out);
    let order = [
        "tests/a.yaml",
        "ok    a deletion",
        "ok    npm i",
        "ok    the same",
        "tests/b.json",
        "ok    harmless",
    ];
    let places: Vec<_> =
        order.iter().map(|part| done.out.find(part).unwrap_or_else(|| panic!("{}", done.out))).collect();
    assert!(places.is_sorted(), "{}", done.out);
    assert!(done.out.ends_with("4 cases, 0 failed\n"), "{}", done.out);
}

#[test]
fn each_difference_is_shown_with_what_was_expected() {
    let case = |name: &str, command: &str, expect: &str| {
        format!(
            "  - name: {name}\n    event: {{ event: before_tool_dispatch, tool_name: Bash, tool_input: {{ command: {command} }} }}\n    expect: {{ {expect} }}\n"
        )
    };
    let cases = [
        case("verdict", "ls", "verdict: block"),
        case("reason", "rm -rf /", "verdict: block, reason: budget"),
        case("by", "rm -rf /", "verdict: block, by: npm"),
        case("hooks", "ls", "verdict: proceed, hooks: [guard]"),
        case("notes", "ls", "verdict: proceed, notes: [careful]"),
        case("unexpected", "npm i x", "verdict: proceed, patched: {}"),
        case("other", "npm i x", "verdict: proceed, patched: { tool_input: { command: npm install } }"),
        case("absent", "ls", "verdict: proceed, patched: { tool_input: {} }"),
    ];
    let directory = with_cases(&[("a.yaml", &format!("cases:\n{}", cases.concat()))]);
    let done = run(directory.path(), &["test", "--json"]);
    assert_eq!(done.code, 1, "{}", done.err);
    let report = done.json();
    let differences: Vec<(&str, Value)> = report["cases"]
        .as_array()
        .unwrap()
        .iter()
        .map(|case| {
            let [difference] = case["differences"].as_array().unwrap().as_slice() else { panic!("{case}") };
            assert_eq!(case["passed"], false);
            (case["name"].as_str().unwrap(), difference.clone())
        })
        .collect();
    let difference = |part: &str, expected: Value, found: Value| json!({ "part": part, "expected": expected, "found": found });
    let command = |command: &str| json!({ "command": command });
    assert_eq!(
        differences,
        [
            ("verdict", difference("verdict", json!("block"), json!("proceed"))),
            ("reason", difference("reason", json!("… budget …"), json!("not on my watch"))),
            ("by", difference("by", json!("npm"), json!("guard"))),
            ("hooks", difference("hooks", json!(["guard"]), json!(["npm", "guard"]))),
            ("notes", difference("notes", json!("… careful …"), json!([]))),
            ("unexpected", difference("patched.tool_input", json!(null), command("npm ci"))),
            ("other", difference("patched.tool_input", command("npm install"), command("npm ci"))),
            ("absent", difference("patched.tool_input", json!({}), json!(null))),
        ]
    );
    let shown = run(directory.path(), &["test"]);
    assert!(shown.out.contains("FAIL  verdict"), "{}", shown.out);
    assert!(shown.out.contains("expected  \"block\""), "{}", shown.out);
    assert!(shown.out.ends_with("8 cases, 8 failed\n"), "{}", shown.out);
}

#[test]
fn what_is_no_case_file_fails_and_the_others_are_run() {
    for (text, why) in [
        ("", "missing field `cases`"),
        ("cases: [", "line 2 column 1"),
        ("cases:\n  - name: x\n    event: {}\n    expect: { verdikt: block }\n", "unknown field `verdikt`"),
        (
            "cases:\n  - name: x\n    event: {}\n    expect: { verdict: deny }\n",
            "no verdict \"deny\"; use one of",
        ),
        (
            "cases:\n  - name: x\n    dialect: klingon\n    event: {}\n    expect: { verdict: block }\n",
            "no dialect",
        ),
        ("cases:\n  - name: x\n    event: []\n    expect: { verdict: block }\n", "expected a map"),
    ] {
        let directory = with_cases(&[("a.yaml", text), ("b.yaml", PASSING)]);
        let done = run(directory.path(), &["test"]);
        assert_eq!(done.code, 1, "{text}: {}", done.out);
        assert!(done.err.contains(why), "{text}: {}", done.err);
        assert!(done.out.contains("3 cases, 0 failed"), "{text}: {}", done.out);
    }
}

#[test]
fn a_link_that_leads_out_of_the_workspace_is_not_read() {
    let directory = with_cases(&[("b.yaml", PASSING)]);
    let outside = tempfile::NamedTempFile::new().unwrap();
    fs::write(outside.path(), "a line of another file").unwrap();
    let link = directory.path().join(".openharness/tests/a.yaml");
    std::os::unix::fs::symlink(outside.path(), link).unwrap();
    let done = run(directory.path(), &["test"]);
    assert_eq!(done.code, 1, "{}", done.out);
    assert!(done.err.contains("a.yaml: is no readable file of the workspace"), "{}", done.err);
    assert!(!done.err.contains("another file") && done.out.contains("3 cases, 0 failed"), "{}", done.err);
}

#[test]
fn no_cases_and_an_event_without_an_outcome_fail() {
    let directory = shop();
    let done = run(directory.path(), &["test"]);
    assert_eq!((done.code, done.out.as_str()), (1, ""), "{}", done.err);
    assert!(done.err.contains(".openharness/tests cannot be read"), "{}", done.err);
    for (text, code, err) in [("cases: []\n", 1, "the files have no cases"), (PASSING, 0, "")] {
        fs::write(directory.path().join("mine.yaml"), text).unwrap();
        let done = run(directory.path(), &["test", "mine.yaml"]);
        assert_eq!(done.code, code, "{}", done.err);
        assert!(done.err.contains(err), "{}", done.err);
    }
    let invalid =
        "cases:\n  - name: x\n    event: { event: before_tool_dispach }\n    expect: { verdict: proceed }\n";
    fs::write(directory.path().join("mine.yaml"), invalid).unwrap();
    let done = run(directory.path(), &["test", "mine.yaml"]);
    assert_eq!(done.code, 1, "{}", done.err);
    assert!(done.out.contains("no outcome: unknown event"), "{}", done.out);
}

/// A case is a run of its own, unless it says which one it is part of.
#[test]
fn cases_share_a_run_only_if_they_say_so() {
    let halts = hook("halts", "before_tool_dispatch", r#"echo "{\"continue\":false}""#, "matcher: Halts");
    let directory = workspace(&[("halts", &halts)]);
    let case = |tool: &str, ids: &str, verdict: &str| {
        format!(
            "  - name: {tool}{verdict}\n    event: {{ event: before_tool_dispatch, tool_name: {tool}, tool_input: {{}}{ids} }}\n    expect: {{ verdict: {verdict} }}\n"
        )
    };
    let same = ", session_id: s, run_id: r";
    let cases = [
        case("Halts", "", "halt"),
        case("Read", "", "proceed"),
        case("Halts", same, "halt"),
        case("Read", same, "halt"),
    ];
    fs::write(directory.path().join("a.yaml"), format!("cases:\n{}", cases.concat())).unwrap();
    let done = run(directory.path(), &["test", "a.yaml"]);
    assert_eq!(done.code, 0, "{}{}", done.out, done.err);
}

/// A person who writes a case does not take trust from the hooks; code in the same place does.
#[test]
fn cases_are_no_part_of_what_is_trusted() {
    let directory = with_cases(&[("a.yaml", PASSING)]);
    let root = directory.path();
    let state = tempfile::tempdir().unwrap();
    let state = format!("state_directory={}", state.path().display());
    let trust = |arguments: &[&str]| {
        let mut command = program(root);
        let output = command.args(["trust", "--set", &state]).args(arguments).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let review: Value = serde_json::from_str(&trust(&["--json"])).unwrap();
    trust(&["--yes", review["digest"].as_str().unwrap()]);
    let states = || {
        let review: Value = serde_json::from_str(&trust(&["--json"])).unwrap();
        let states: Vec<_> =
            review["hooks"].as_array().unwrap().iter().map(|hook| hook["trust"].clone()).collect();
        states
    };
    assert_eq!(states(), ["trusted", "trusted", "trusted"]);
    fs::write(root.join(".openharness/tests/a.yaml"), "cases: []\n").unwrap();
    fs::write(root.join(".openharness/tests/b.yaml"), "cases: []\n").unwrap();
    assert_eq!(states(), ["trusted", "trusted", "trusted"]);
    fs::write(root.join(".openharness/tests/b.sh"), "exit 0\n").unwrap();
    assert_eq!(states(), ["modified", "modified", "modified"]);
}
