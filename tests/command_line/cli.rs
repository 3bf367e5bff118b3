//! The command line as a user meets it: what each command prints, where, and its exit code. Owns small
//! workspaces of shell scripts in temporary directories; refuses to depend on anything but a POSIX shell,
//! except in the one test of the example workspace.

use std::{
    io::{BufRead, BufReader, Read},
    path::Path,
    process::Stdio,
};

use assert_cmd::{Command, cargo::cargo_bin, cargo::cargo_bin_cmd};
use serde_json::{Value, json};
use tempfile::TempDir;

/// What one run of the program did.
#[derive(Debug)]
struct Done {
    code: i32,
    out: String,
    err: String,
}

impl Done {
    fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error} in {}", self.out))
    }
}

/// A workspace with the hooks of these names.
fn workspace(hooks: &[(&str, &str)]) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    let files = directory.path().join(".openharness/hooks");
    std::fs::create_dir_all(&files).unwrap();
    for (name, text) in hooks {
        std::fs::write(files.join(format!("{name}.yaml")), text).unwrap();
    }
    directory
}

/// A hook file; `command` is for the shell.
fn hook(name: &str, events: &str, command: &str, more: &str) -> String {
    format!("name: {name}\nevents: [{events}]\nhandler:\n  type: command\n  command: '{command}'\n{more}\n")
}

/// Three hooks on tool calls, and one that has nothing to do with them.
fn shop() -> TempDir {
    let guard = r#"if grep -q "rm -rf"; then echo "not on my watch" >&2; exit 2; fi"#;
    let npm = r#"grep -q "npm i" || exit 0; echo "{\"hookSpecificOutput\":{\"hookEventName\":\"before_tool_dispatch\",\"patch\":{\"tool_input\":{\"command\":\"npm ci\"}}}}""#;
    let tool = "matcher: ^Bash$\npriority: ";
    let patch = "\ncapabilities: [rewrite_tool_request]";
    workspace(&[
        ("guard", &hook("guard", "before_tool_dispatch", guard, &format!("{tool}20\non_error: deny"))),
        ("npm", &hook("npm", "before_tool_dispatch", npm, &format!("{tool}10{patch}"))),
        ("audit", &hook("audit", "run_completed, run_failed", "cat >/dev/null", "")),
    ])
}

/// `shop` with two mistakes in a third file.
fn broken_shop() -> TempDir {
    let directory = shop();
    let text = "name: typo\nevents: [before_tool_dispach]\ncapabilites: []\nhandler: { type: command, command: cat }\n";
    std::fs::write(directory.path().join(".openharness/hooks/typo.yaml"), text).unwrap();
    directory
}

fn tool(command: &str) -> String {
    let input = json!({ "command": command });
    json!({ "event": "before_tool_dispatch", "session_id": "s", "run_id": "r", "tool_name": "Bash", "tool_input": input })
        .to_string()
}

fn program(directory: &Path) -> Command {
    let mut command = cargo_bin_cmd!("hookyard");
    command.current_dir(directory).env_remove("HOOKYARD_LOG").env_remove("NO_COLOR");
    command
}

fn run_with(directory: &Path, arguments: &[&str], input: &str) -> Done {
    let output = program(directory).args(arguments).write_stdin(input).output().unwrap();
    Done {
        code: output.status.code().unwrap(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

fn run(directory: &Path, arguments: &[&str]) -> Done {
    run_with(directory, arguments, "")
}

/// Text whose times and the widths that depend on them are the same every time.
fn timeless(text: &str) -> String {
    let line = |line: &str| {
        let mut words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        for place in 0..words.len() {
            let next = words.get(place + 1).map(|word| word.trim_end_matches([',', ';']).to_owned());
            let is_number = words[place].parse::<f64>().is_ok();
            if is_number && matches!(next.as_deref(), Some("ms" | "s" | "µs" | "per")) {
                words[place] = String::from("[n]");
                words[place + 1] = words[place + 1].replace("ms", "s").replace("µs", "s");
            }
            if words[place].starts_with('─') {
                words[place] = String::from("───");
            }
        }
        words.join(" ")
    };
    text.lines().map(|text| line(text) + "\n").collect()
}

#[test]
fn every_command_has_an_example_in_its_help() {
    let here = tempfile::tempdir().unwrap();
    let commands = hookyard::cli::command();
    for command in std::iter::once(None).chain(commands.get_subcommands().map(Some)) {
        let name = command.map(clap::Command::get_name);
        let arguments: Vec<&str> = name.into_iter().chain(["--help"]).collect();
        let help = run(here.path(), &arguments);
        assert_eq!((help.code, help.err.as_str()), (0, ""), "{name:?}");
        let start = help.out.find("\nExamples:\n").unwrap_or_else(|| panic!("{name:?}: {}", help.out));
        let invocations = help.out[start..].lines().filter_map(|line| {
            let words = line.split("hookyard ").nth(1)?;
            let end = words.find(" > ").or(words.find(" | ")).or(words.find("   ")).unwrap_or(words.len());
            Some(&words[..end])
        });
        let mut examples = 0;
        for example in invocations {
            let words = std::iter::once("hookyard").chain(example.split_whitespace());
            let parsed = hookyard::cli::command().try_get_matches_from(words);
            assert!(parsed.is_ok(), "{name:?}: `hookyard {example}` cannot be typed: {:?}", parsed.err());
            examples += 1;
        }
        assert!(examples > 0, "{name:?} has no example");
    }
}

#[test]
fn arguments_that_make_no_sense_end_with_2() {
    let here = tempfile::tempdir().unwrap();
    for arguments in [
        &[][..],
        &["frobnicate"],
        &["fire"],
        &["replay"],
        &["list", "--colour"],
        &["list", "--color", "sometimes"],
        &["fire", "--event", "-", "--dialect", "klingon"],
        &["replay", "x.jsonl", "--sessions", "0"],
        &["fire", "--event", "-", "--native", "--json"],
        &["fire", "--event", "-", "--native"],
        &["completions", "cmd.exe"],
    ] {
        let done = run(here.path(), arguments);
        assert_eq!((done.code, done.out.as_str()), (2, ""), "{arguments:?}");
        assert!(done.err.contains("Usage:") || done.err.contains("--help"), "{arguments:?}: {}", done.err);
    }
}

#[test]
fn without_a_workspace_it_says_what_was_looked_for_and_what_to_do() {
    let here = tempfile::tempdir().unwrap();
    for arguments in
        [&["check"][..], &["list"], &["explain", "-e", "-"], &["fire", "-e", "-"], &["replay", "-"]]
    {
        let done = run(here.path(), arguments);
        assert_eq!((done.code, done.out.as_str()), (1, ""), "{arguments:?}");
        for expected in [
            "error: no workspace: looked for .openharness/hooks/*.yaml or *.yml, and for the settings of agents, in",
            "--workspace DIR",
        ] {
            assert!(done.err.contains(expected), "{arguments:?}: {}", done.err);
        }
    }
    let done = run(here.path(), &["list", "--workspace", "no\x1bpe"]);
    let expected = "error: the workspace `no\\x1bpe` cannot be used: no such file or directory\n";
    assert_eq!((done.code, done.err.as_str()), (1, expected));
}

#[test]
fn the_workspace_is_found_from_a_directory_inside() {
    let shop = shop();
    let inside = shop.path().join("src/deep");
    std::fs::create_dir_all(&inside).unwrap();
    let done = run(&inside, &["check"]);
    assert_eq!(done.code, 0);
    assert!(done.out.contains("read ../../.openharness/hooks/guard.yaml"), "{}", done.out);
}

#[test]
fn a_workspace_in_order_passes_the_check() {
    let shop = shop();
    let done = run(shop.path(), &["check"]);
    assert_eq!((done.code, done.err.as_str()), (0, ""));
    insta::assert_snapshot!("check_in_order", done.out);
    let report = run(shop.path(), &["check", "--json"]).json();
    assert_eq!(report["hooks"], 3);
    assert_eq!(report["files"].as_array().unwrap().len(), 3);
    assert_eq!(report["diagnostics"], json!([]));
}

#[test]
fn every_mistake_is_shown_with_its_line() {
    let shop = broken_shop();
    let done = run(shop.path(), &["check"]);
    assert_eq!((done.code, done.err.as_str()), (1, ""));
    insta::assert_snapshot!("check_with_mistakes", done.out);
    let done = run(shop.path(), &["check", "--json"]);
    let report = done.json();
    assert_eq!((done.code, &report["hooks"]), (1, &json!(3)));
    let first = &report["diagnostics"][0];
    assert_eq!(
        (&first["severity"], &first["line"], &first["column"]),
        (&json!("error"), &json!(2), &json!(10))
    );
    for key in ["code", "message", "file", "help"] {
        assert!(first[key].is_string(), "{key} in {first}");
    }
}

#[test]
fn control_characters_of_files_do_not_reach_the_terminal() {
    let shop =
        workspace(&[("odd\x1b[31m", "name: odd\nevents: [run_failed]\n\"k\\e[2J\": 1\nhandler: {}\n")]);
    for arguments in [&["check"][..], &["check", "--color", "always"]] {
        let done = run(shop.path(), arguments);
        assert_eq!(done.code, 1);
        assert!(!done.out.contains("\x1b[2J") && !done.out.contains("\x1b[31m["), "{:?}", done.out);
        assert!(done.out.contains("odd\\x1b[31m.yaml"), "{}", done.out);
    }
}

#[test]
fn settings_with_mistakes_are_shown_and_refused() {
    let shop = shop();
    std::fs::write(shop.path().join("bad.yaml"), "max_timeout: 60\n").unwrap();
    std::fs::write(shop.path().join("good.yaml"), "max_timeout: 60s\n").unwrap();
    let done = run(shop.path(), &["check", "--config", "bad.yaml"]);
    assert_eq!(done.code, 1);
    assert!(done.out.contains("bad.yaml:1:14") && done.out.contains("1 error"), "{}", done.out);
    let done = run(shop.path(), &["list", "--config", "bad.yaml"]);
    assert_eq!((done.code, done.out.as_str()), (1, ""));
    assert!(done.err.contains("bad.yaml:1:14"), "{}", done.err);
    assert_eq!(run(shop.path(), &["list", "--config", "good.yaml"]).code, 0);
    // Where there is no workspace, the settings are checked all the same.
    let elsewhere = tempfile::tempdir().unwrap();
    for (name, code, mistakes, said) in
        [("bad", 1, 1, "settings: 1 error, 0 warnings"), ("good", 0, 0, "settings: 0 errors")]
    {
        let file = shop.path().join(format!("{name}.yaml"));
        let done = run(elsewhere.path(), &["check", "--config", file.to_str().unwrap()]);
        assert_eq!(done.code, code);
        assert!(done.out.contains(said) && done.err.contains("only the settings were checked"), "{done:?}");
        let done = run(elsewhere.path(), &["check", "--json", "--config", file.to_str().unwrap()]);
        assert_eq!((done.code, done.json()["diagnostics"].as_array().unwrap().len()), (code, mistakes));
    }
    let done = run(shop.path(), &["list", "--config", "none.yaml"]);
    let expected = "error: the settings file `none.yaml` cannot be read: no such file or directory\n";
    assert_eq!((done.code, done.err.as_str()), (1, expected));
}

#[test]
fn hooks_are_listed_in_the_order_in_which_they_run() {
    let shop = broken_shop();
    let done = run(shop.path(), &["list"]);
    assert_eq!(done.code, 0);
    assert_eq!(done.err, "note: 2 errors in hook files; those hooks are left out; run `hookyard check`\n");
    insta::assert_snapshot!("list", done.out);
    let rows = run(shop.path(), &["list", "--json"]).json();
    let names: Vec<_> = rows.as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["audit", "npm", "guard"]);
    let guard = rows[2].as_object().unwrap();
    for (key, expected) in [
        ("dialect", json!("openharness")),
        ("events", json!(["before_tool_dispatch"])),
        ("matcher", json!("^Bash$")),
        ("handler", json!("command")),
        ("mode", json!("oneshot")),
        ("command", json!(r#"if grep -q "rm -rf"; then echo "not on my watch" >&2; exit 2; fi"#)),
        ("scope", json!("project")),
        ("trust", Value::Null),
        ("priority", json!(20)),
        ("line", json!(1)),
    ] {
        assert_eq!(guard[key], expected, "{key}");
    }
    assert!(guard["file"].as_str().unwrap().ends_with("/guard.yaml"));
}

#[test]
fn a_workspace_without_hooks_says_so() {
    let empty = tempfile::tempdir().unwrap();
    let done = run(empty.path(), &["list", "--workspace", "."]);
    assert_eq!((done.code, done.out.as_str()), (0, ""));
    assert_eq!(
        done.err,
        "note: . has no hook files (.openharness/hooks/*.yaml or *.yml, or settings of agents)\n"
    );
    let done = run(empty.path(), &["list", "--workspace", ".", "--json"]);
    assert_eq!(done.json(), json!([]));
}

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
fn flags_count_before_variables_and_these_before_the_file() {
    let shop = workspace(&[("audit", &hook("audit", "run_failed", "true", ""))]);
    std::fs::write(shop.path().join("small.yaml"), "limits: { payload: 64B }\n").unwrap();
    let explain = |variable: Option<&str>, more: &[&str]| {
        let mut program = program(shop.path());
        if let Some(value) = variable {
            program.env("HOOKYARD_LIMITS_PAYLOAD", value);
        }
        let arguments = ["explain", "--event", "-", "--config", "small.yaml"];
        let output = program.args(arguments).args(more).write_stdin(tool(&"x".repeat(100))).output().unwrap();
        (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    assert_eq!(explain(None, &[]).1, explain(Some(""), &[]).1);
    assert!(explain(None, &[]).1.contains(" 64 bytes"));
    assert!(explain(Some("32B"), &[]).1.contains(" 32 bytes"));
    assert_eq!(explain(Some("1KiB"), &[]).0, 0);
    assert!(explain(Some("1KiB"), &["--set", "limits.payload=16B"]).1.contains(" 16 bytes"));
    let twice = ["--set", "limits.payload=16B", "--set", "limits.payload = 1KiB"];
    assert_eq!(explain(Some("32B"), &twice), (0, String::new()));
}

#[test]
fn mistakes_in_variables_and_flags_are_shown_and_refused() {
    let shop = shop();
    let with = |variable: (&str, &str), arguments: &[&str]| {
        let output = program(shop.path()).env(variable.0, variable.1).args(arguments).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Done { code: output.status.code().unwrap(), out: text(output.stdout), err: text(output.stderr) }
    };
    let bad = ("HOOKYARD_LISTEN_TCP", "0.0.0.0:80");
    let done = with(bad, &["check", "--json"]);
    let told = &done.json()["diagnostics"][0];
    assert_eq!(
        (done.code, &told["code"], &told["file"]),
        (1, &json!("listen"), &json!("HOOKYARD_LISTEN_TCP"))
    );
    let done = with(bad, &["list"]);
    assert_eq!((done.code, done.out.as_str()), (1, ""));
    assert!(done.err.contains("HOOKYARD_LISTEN_TCP") && done.err.contains("`token_file`"), "{}", done.err);
    assert_eq!(with(bad, &["list", "--set", "listen.token_file=/token"]).code, 0);

    let done = with(("HOOKYARD_LIMITS_INFLIGHT", "1"), &["check"]);
    assert_eq!(done.code, 0);
    assert!(
        done.out.contains("1 warning") && done.out.contains("`HOOKYARD_LIMITS_IN_FLIGHT`"),
        "{}",
        done.out
    );

    let done = run(shop.path(), &["check", "--set", "limits.in_flite=1"]);
    assert_eq!(done.code, 1);
    assert!(done.out.contains("did you mean `limits.in_flight`?"), "{}", done.out);
    let done = run(shop.path(), &["check", "--set", "limits.in_flight"]);
    assert_eq!(done.code, 2);
    assert!(done.err.contains("write a key, `=` and its value"), "{}", done.err);
}

#[test]
fn check_tells_what_is_wrong_with_the_settings_of_a_daemon() {
    let shop = shop();
    let bad = "listen: { tcp: here, token_file: token }\nworkspaces: { shop: { root: shop } }\n\
               workspace_roots: [srv]\nwatch: 1\nlimits: { streams: 0, idle_timeout: 5 }\n";
    std::fs::write(shop.path().join("bad.yaml"), bad).unwrap();
    let done = run(shop.path(), &["check", "--config", "bad.yaml", "--json"]);
    let told: Vec<_> = done.json()["diagnostics"]
        .as_array()
        .unwrap()
        .iter()
        .map(|told| (told["line"].as_u64().unwrap(), told["code"].as_str().unwrap().to_owned()))
        .collect();
    let expected = [
        (1, "address"),
        (1, "path"),
        (2, "path"),
        (3, "path"),
        (4, "wrong-type"),
        (5, "count"),
        (5, "quantity"),
    ];
    assert_eq!(told, expected.map(|(line, code)| (line, code.to_owned())));
    assert_eq!(done.code, 1);
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
fn a_failing_hook_is_part_of_the_result() {
    let fails = r#"printf "\033[2Jboo" >&2; exit 3"#;
    let shop = workspace(&[("odd", &hook("odd", "before_tool_dispatch", fails, ""))]);
    let done = run_with(shop.path(), &["replay", "-", "--verbose"], &tool("ls"));
    assert_eq!((done.code, done.err.as_str()), (0, ""));
    assert!(done.out.contains("odd failed"), "{}", done.out);
    assert!(!done.out.contains('\x1b'), "{:?}", done.out);
    assert!(done.out.contains("hooks ran 1 time, 1 of them without a reply"), "{}", done.out);
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
fn findings_that_differ_only_in_words_are_one() {
    let shop = workspace(&[("odd", &hook("odd", "run_completed", "echo $$ >&2; exit 3", ""))]);
    let done = run_with(shop.path(), &["replay", "-", "--sessions", "50"], &recording());
    assert!(done.out.contains("(and the like, in 50 of 50 sessions)"), "{}", done.out);
    assert_eq!(done.out.matches("odd failed").count(), 1, "{}", done.out);
}

#[test]
fn help_is_a_command_too() {
    let here = tempfile::tempdir().unwrap();
    let done = run(here.path(), &["help"]);
    assert_eq!(done.code, 0);
    assert!(done.out.contains("Examples:"), "{}", done.out);
    assert!(run(here.path(), &["help", "fire"]).out.contains("hookyard fire --event event.json"));
}

#[test]
fn an_event_in_other_words_or_without_any_gets_a_hint() {
    let arguments = ["explain", "--event", "-", "--dialect", "openharness"];
    let done = run_with(shop().path(), &arguments, &tool("ls"));
    assert!(done.err.contains("help: this looks like a canonical event; leave out"), "{}", done.err);
    let done = run_with(shop().path(), &["explain", "--event", "-"], "\n");
    assert!(done.err.contains("error: standard input is empty\n"), "{}", done.err);
}

#[test]
fn what_is_no_recording_is_told_in_few_words() {
    let shop = shop();
    let done = run(shop.path(), &["replay", "/dev/zero"]);
    assert_eq!((done.code, done.out.as_str()), (1, ""));
    assert!(done.err.contains("error: /dev/zero:1: this is not a text file\n"), "{}", done.err);
    let done = run_with(shop.path(), &["replay", "-"], &format!("{{\n{}", "\"a\":1,\n".repeat(20)));
    assert!(done.err.contains("help: one event a line; `jq -c .` makes it so"), "{}", done.err);
    assert!(done.err.contains("and 11 more lines\n"), "{}", done.err);
    assert_eq!(done.err.matches("standard input:").count(), 10, "{}", done.err);
}

#[test]
fn what_hooks_said_and_changed_is_shown() {
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
fn colours_come_only_when_asked_for() {
    let shop = shop();
    let plain = run(shop.path(), &["check"]);
    assert!(!plain.out.contains('\x1b'));
    let always = run(shop.path(), &["check", "--color", "always"]);
    assert!(always.out.contains("\x1b["));
    let never = program(shop.path()).args(["list", "--color", "never"]).output().unwrap();
    assert!(!never.stdout.contains(&0x1b));
}

#[test]
fn completions_know_every_command() {
    let here = tempfile::tempdir().unwrap();
    for shell in ["bash", "zsh", "fish"] {
        let done = run(here.path(), &["completions", shell]);
        assert_eq!((done.code, done.err.as_str()), (0, ""));
        assert!(["check", "explain", "replay"].iter().all(|name| done.out.contains(name)), "{shell}");
    }
}

#[expect(clippy::disallowed_methods, reason = "assert_cmd waits for the end, and these tests act before it")]
fn start(directory: &Path, arguments: &[&str]) -> std::process::Child {
    std::process::Command::new(cargo_bin!("hookyard"))
        .current_dir(directory)
        .args(arguments)
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
