//! The commands, their output and their exit codes, on small workspaces of shell scripts.

mod bench;
mod cases;
mod check;
mod fire;
mod inside;
mod levels;
mod links;
mod replay;
mod rules;
mod switches;
mod tune;

use std::{
    io::{BufRead, BufReader, Read},
    path::Path,
    process::Stdio,
};

use assert_cmd::{Command, cargo::cargo_bin, cargo::cargo_bin_cmd};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::trust::without_trust;

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
    let output = program(directory).args(without_trust(arguments)).write_stdin(input).output().unwrap();
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
        let examples = help.out[start..].lines().filter(|line| line.starts_with("  "));
        let invocations = examples.filter_map(|line| {
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
fn invalid_arguments_exit_with_2() {
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
        &["tune", "--rounds", "4"],
        &["tune", "--for", "0s"],
        &["bench", "--rate", "0"],
        &["bench", "--rate", "nan"],
        &["bench", "--rate", "5", "--concurrency", "5"],
        &["bench", "--concurrency", "0"],
        &["bench", "--duration", "0s"],
        &["bench", "--find-max"],
        &["bench", "--p99", "5ms"],
        &["bench", "--find-max", "--p99", "5ms", "--p50", "1ms"],
        &["bench", "--token-file", "x"],
        &["bench", "--compare", "a.json"],
        &["bench", "--daemon", "--url", "http://127.0.0.1:1"],
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
fn ui_sends_its_secret_encrypted_or_to_this_machine_only() {
    let here = tempfile::tempdir().unwrap();
    let ui = |url: &str| run(here.path(), &["ui", "--no-open", "--socket", "no.sock", "--url", url]);
    for (url, expected) in [
        ("http://hooks.example.com", "forward the port with `ssh -L`"),
        ("http://10.0.0.1:8787", "use `https://`"),
        ("http://localhost.example.com:8787", "use `https://`"),
        ("http://127.0.0.1.example.com", "use `https://`"),
        ("http://0.0.0.0:8787", "use `https://`"),
        ("http://127.0.0.1@example.com", "password"),
        ("https://hooks.example.com/#x", "has nothing else"),
        ("hooks.example.com", "such as `https://hooks.example.com`"),
    ] {
        let done = ui(url);
        assert_eq!((done.code, done.out.as_str()), (2, ""), "{url}");
        assert!(done.err.contains(expected), "{url}: {}", done.err);
    }
    for url in ["https://hooks.example.com", "http://127.0.0.1:8787/", "http://[::1]:1", "http://localhost:1"]
    {
        let done = ui(url);
        assert!(done.code == 1 && done.err.contains("no.sock"), "{url}: {}", done.err);
    }
}

#[test]
fn without_a_workspace_it_reports_what_it_searched_for_and_what_to_do() {
    let here = tempfile::tempdir().unwrap();
    for arguments in [
        &["check"][..],
        &["list"],
        &["explain", "-e", "-"],
        &["fire", "-e", "-"],
        &["replay", "-"],
        &["tune"],
        &["bench"],
    ] {
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
fn hooks_are_listed_in_the_order_in_which_they_run() {
    let shop = broken_shop();
    let done = run(shop.path(), &["list"]);
    assert_eq!(done.code, 0);
    assert_eq!(done.err, "note: 2 errors in hook files; not all hooks are in force; run `hookyard check`\n");
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
fn help_is_a_command() {
    let here = tempfile::tempdir().unwrap();
    let done = run(here.path(), &["help"]);
    assert_eq!(done.code, 0);
    assert!(done.out.contains("Examples:"), "{}", done.out);
    assert!(run(here.path(), &["help", "fire"]).out.contains("hookyard fire --event event.json"));
}

#[test]
fn colours_come_only_when_asked_for() {
    let shop = shop();
    let plain = run(shop.path(), &["check"]);
    assert!(!plain.out.contains('\x1b'));
    let always = run(shop.path(), &["check", "--color", "always"]);
    assert!(always.out.contains("\x1b["));
    let never = program(shop.path()).args(without_trust(&["list", "--color", "never"])).output().unwrap();
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

#[test]
fn every_command_has_a_manual_page_with_its_examples() {
    let here = tempfile::tempdir().unwrap();
    let done = run(here.path(), &["man", "--write", "pages/man1"]);
    assert_eq!((done.code, done.out.as_str(), done.err.as_str()), (0, "", ""));
    let page = |name: &str| std::fs::read_to_string(here.path().join("pages/man1").join(name)).unwrap();
    for command in hookyard::cli::command().get_subcommands() {
        let name = command.get_name();
        let page = page(&format!("hookyard-{name}.1"));
        assert_eq!(run(here.path(), &["man", name]).out, page, "{name}");
        for part in [".SH SYNOPSIS", ".SH OPTIONS", ".SH NOTES\n.nf\n", "\n\\&  hookyard"] {
            assert!(page.contains(part), "{name}: {part} is missing: {page}");
        }
        assert!(!page.contains('\u{a0}'), "{name}");
    }
    assert!(page("hookyard.1").contains("hookyard\\-serve(1)"));
    assert!(page("hookyard-workspaces-add.1").contains("hookyard workspaces add"));
    let unknown = run(here.path(), &["man", "workspaces", "frobnicate"]);
    assert!(unknown.code == 1 && unknown.err.contains("there is no command `frobnicate`"), "{}", unknown.err);
}
