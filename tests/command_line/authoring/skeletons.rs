//! `hookyard new`: every combination loads without a warning and works.

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::authoring::{Done, run, schemas::objections};

const HOOKS: &str = ".openharness/hooks";

/// Interpreters that are not on this machine, beside the shell.
fn is_missing(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let missing = !std::env::split_paths(&path).any(|entry| entry.join(program).is_file());
    if missing {
        println!("not run: {program} is missing");
    }
    missing
}

pub(super) fn fire(workspace: &Path, event: &Value, more: &[&str]) -> Value {
    let arguments = [&["fire", "--event", "-", "--json"], more].concat();
    let done = run(workspace, &arguments, &event.to_string());
    assert_eq!(done.code, 0, "{}", done.err);
    done.json()
}

/// Checks that a workspace is in order, and that its hook files are so for an editor too.
pub(super) fn in_order(workspace: &Path, more: &[&str]) {
    let done = run(workspace, &[&["check", "--json"], more].concat(), "");
    let report = done.json();
    assert_eq!((done.code, &report["diagnostics"]), (0, &json!([])), "{}", done.err);
    assert_eq!(report["hooks"], 1);
    for entry in fs::read_dir(workspace.join(HOOKS)).unwrap().map(Result::unwrap) {
        if entry.path().extension().is_some_and(|extension| extension == "yaml") {
            let text = fs::read_to_string(entry.path()).unwrap();
            let line = text.lines().next().unwrap();
            let schema = line.strip_prefix("# yaml-language-server: $schema=").unwrap();
            assert!(workspace.join(HOOKS).join(schema).is_file(), "{line}");
            assert_eq!(objections("hook-file", &serde_yaml::from_str(&text).unwrap()), Vec::<String>::new());
        }
    }
}

pub(super) fn new(workspace: &Path, arguments: &[&str]) -> Done {
    let done = run(workspace, &[&["new"], arguments].concat(), "");
    assert_eq!((done.code, done.err.as_str()), (0, ""), "{arguments:?}");
    done
}

pub(super) fn empty() -> TempDir {
    tempfile::tempdir().unwrap()
}

/// The programs a skeleton needs.
fn programs(language: &str, mode: &str) -> Vec<&'static str> {
    match (language, mode) {
        ("python", _) => vec!["python3"],
        ("node", _) => vec!["node"],
        (_, "worker") => vec!["jq"],
        _ => vec![],
    }
}

fn guards(language: &str) {
    for mode in ["oneshot", "prespawn", "worker"] {
        if programs(language, mode).iter().any(|program| is_missing(program)) {
            continue;
        }
        let workspace = empty();
        let arguments = ["my-guard", "--type", "command", "--language", language, "--mode", mode, "--json"];
        let report = new(workspace.path(), &arguments).json();
        in_order(workspace.path(), &[]);
        let mut event = report["event"].clone();
        let outcome = fire(workspace.path(), &event, &[]);
        assert_eq!((&outcome["verdict"], &outcome["by"]), (&json!("block"), &json!("my-guard")), "{outcome}");
        assert_eq!(outcome["reason"], "my-guard: nobody frobnicates everything here");
        assert_eq!(outcome["hooks"][0]["warnings"], Value::Null, "{outcome}");
        event["tool_input"]["command"] = json!("ls");
        let outcome = fire(workspace.path(), &event, &[]);
        assert_eq!(
            (&outcome["verdict"], &outcome["hooks"][0]["ended"]),
            (&json!("proceed"), &json!("completed"))
        );
        event["tool_name"] = json!("Read");
        assert_eq!(fire(workspace.path(), &event, &[])["hooks"], json!([]));
    }
}

#[test]
fn shell_guards_work_in_every_mode() {
    guards("sh");
}

#[test]
fn python_guards_work_in_every_mode() {
    guards("python");
}

#[test]
fn node_guards_work_in_every_mode() {
    guards("node");
}

#[test]
fn hooks_on_other_events_say_that_they_saw_them() {
    for (language, mode) in [("sh", "oneshot"), ("sh", "worker"), ("python", "prespawn"), ("node", "worker")]
    {
        if programs(language, mode).iter().any(|program| is_missing(program)) {
            continue;
        }
        for kinds in
            ["after_tool_dispatch", "run_completed,run_failed", "before_model_call", "before_context_compact"]
        {
            let workspace = empty();
            let arguments = ["look", "--language", language, "--mode", mode, "--event", kinds, "--json"];
            let report = new(workspace.path(), &arguments).json();
            assert_eq!(report["event"]["event"], kinds.split(',').next().unwrap());
            assert_eq!(objections("event", &report["event"]), Vec::<String>::new());
            in_order(workspace.path(), &[]);
            let outcome = fire(workspace.path(), &report["event"], &[]);
            assert_eq!(outcome["verdict"], "proceed", "{kinds}: {outcome}");
            let text = outcome["notes"][0]["text"].as_str().unwrap_or_else(|| panic!("{outcome}"));
            assert!(text.starts_with("look saw "), "{text}");
        }
    }
}

#[test]
fn a_rule_guards_or_notes() {
    let workspace = empty();
    let report = new(workspace.path(), &["my-guard", "--type", "rule", "--json"]).json();
    in_order(workspace.path(), &[]);
    let mut event = report["event"].clone();
    let outcome = fire(workspace.path(), &event, &[]);
    assert_eq!((&outcome["verdict"], &outcome["by"]), (&json!("block"), &json!("my-guard")), "{outcome}");
    assert_eq!(outcome["reason"], "my-guard: nobody frobnicates everything here");
    for command in ["sudo bash -c 'fro\\bnicate --everything'", "echo $(frobnicate \"--every\"thing)"] {
        event["tool_input"]["command"] = json!(command);
        assert_eq!(fire(workspace.path(), &event, &[])["verdict"], "block", "{command}");
    }
    for command in [json!("echo frobnicate --everything"), json!("ls"), json!("")] {
        event["tool_input"]["command"] = command.clone();
        assert_eq!(fire(workspace.path(), &event, &[])["verdict"], "proceed", "{command}");
    }
    event["tool_input"]["command"] = json!(5);
    assert_eq!(fire(workspace.path(), &event, &[])["verdict"], "block");
    for kinds in ["after_tool_dispatch", "run_completed,run_failed", "before_context_compact"] {
        let workspace = empty();
        let report = new(workspace.path(), &["look", "--type", "rule", "--event", kinds, "--json"]).json();
        in_order(workspace.path(), &[]);
        let outcome = fire(workspace.path(), &report["event"], &[]);
        let text = outcome["notes"][0]["text"].as_str().unwrap_or_else(|| panic!("{outcome}"));
        assert!(text.starts_with("look has seen "), "{text}");
    }
}

#[test]
fn every_kind_of_event_can_be_asked_for() {
    let help = run(empty().path(), &["new", "--help"], "").out;
    for kind in ["before_context_build", "after_context_build", "after_context_compact", "after_model_call"] {
        assert!(help.contains(kind), "{help}");
        for what in ["command", "http"] {
            let workspace = empty();
            new(workspace.path(), &["a", "--type", what, "--event", kind, "--event", "before_tool_dispatch"]);
            fs::write(workspace.path().join("hookyard.yaml"), "http: { allow: ['127.0.0.1:8377'] }\n")
                .unwrap();
            in_order(workspace.path(), &["--config", "hookyard.yaml"]);
        }
    }
}

#[test]
fn an_http_hook_comes_with_a_server() {
    let workspace = empty();
    let report = new(workspace.path(), &["ask", "--type", "http", "--json"]).json();
    let refused = run(workspace.path(), &["check"], "");
    assert!(
        refused.code == 1 && refused.out.contains("error[http-target]"),
        "{} {}",
        refused.out,
        refused.err
    );
    fs::write(workspace.path().join("hookyard.yaml"), report["settings"].as_str().unwrap()).unwrap();
    in_order(workspace.path(), &["--config", "hookyard.yaml"]);
    assert!(report["next"][0].as_str().unwrap().ends_with("--config hookyard.yaml"), "{report}");
    let server = workspace.path().join(HOOKS).join("scripts/ask-server.py");
    assert!(report["next"][1].as_str().unwrap().contains("ask-server.py"));
    if is_missing("python3") {
        return;
    }
    let question = "import json, runpy, sys\nhook = runpy.run_path(sys.argv[1])['hook']\nprint(json.dumps([hook(json.loads(sys.argv[2])), hook({})]))";
    let arguments = ["-c", question, server.to_str().unwrap(), &report["event"].to_string()];
    let answers = assert_cmd::Command::new("python3").args(arguments).output().unwrap();
    let answers: Value = serde_json::from_slice(&answers.stdout).unwrap();
    assert_eq!((&answers[0]["decision"], &answers[1]), (&json!("block"), &Value::Null));
}

#[test]
fn hooks_that_ask_models_say_what_the_settings_need() {
    for (kind, events) in [
        ("prompt", "before_tool_dispatch"),
        ("agent", "before_tool_dispatch"),
        ("agent", "run_failed"),
        ("prompt", "run_failed"),
    ] {
        let workspace = empty();
        let report = new(workspace.path(), &["judge", "--type", kind, "--event", events, "--json"]).json();
        assert_eq!(report["model"], "local/small");
        let settings = report["settings"].as_str().unwrap();
        fs::write(workspace.path().join("hookyard.yaml"), settings).unwrap();
        assert_eq!(objections("settings", &serde_yaml::from_str(settings).unwrap()), Vec::<String>::new());
        in_order(workspace.path(), &["--config", "hookyard.yaml"]);
        assert!(report["next"][0].as_str().unwrap().ends_with("--config hookyard.yaml"), "{report}");

        let told = run(workspace.path(), &["new", "other", "--type", kind], "").out;
        assert!(told.contains("models:\n") && told.contains("    local/small:\n"), "{told}");
        let text = "models: { a/b: { api: anthropic, model: m } }\n";
        fs::write(workspace.path().join("hookyard.yaml"), text).unwrap();
        let told = new(workspace.path(), &["third", "--type", kind, "--config", "hookyard.yaml"]).out;
        assert!(told.contains("It uses the model `a/b` of the settings."), "{told}");
    }
}

#[test]
fn invalid_flags_and_names_exit_with_2() {
    let workspace = empty();
    for (arguments, expected) in [
        (&["a", "--type", "http", "--language", "node"][..], "`--language` needs `--type command`"),
        (&["a", "--type", "agent", "--mode", "worker"], "`--mode` needs `--type command`"),
        (&["a/b"], "NAME contains '/'"),
        (&[""], "NAME is empty"),
        (&[".a"], "begins with `.`"),
        (&["a\u{1b}[2J"], "NAME contains '\\u{1b}'"),
        (&["a", "--event", "session_begun"], "before_tool_dispatch"),
        (&["a", "--type", "native"], "command, http, prompt, agent, rule"),
    ] {
        let done = run(workspace.path(), &[&["new"], arguments].concat(), "");
        assert_eq!((done.code, done.out.as_str()), (2, ""), "{arguments:?}");
        assert!(done.err.contains(expected) && !done.err.contains('\u{1b}'), "{arguments:?}: {}", done.err);
    }
    assert!(fs::read_dir(workspace.path()).unwrap().next().is_none());
}

#[test]
fn nothing_is_overwritten() {
    let workspace = empty();
    let scripts = workspace.path().join(HOOKS).join("scripts");
    fs::create_dir_all(&scripts).unwrap();
    fs::write(scripts.join("guard.sh"), "mine").unwrap();
    let done = run(workspace.path(), &["new", "guard"], "");
    assert_eq!((done.code, done.out.as_str()), (1, ""));
    let expected = "error: .openharness/hooks/scripts/guard.sh already exists; it is not overwritten\n help: choose another name, or remove the file\n";
    assert_eq!(done.err, expected);
    assert_eq!(fs::read_to_string(scripts.join("guard.sh")).unwrap(), "mine");
    assert!(!workspace.path().join(HOOKS).join("guard.yaml").exists());

    new(workspace.path(), &["other"]);
    let done = run(workspace.path(), &["new", "other"], "");
    assert_eq!(done.code, 1);
    assert!(
        done.err.contains("a hook `other` already exists in .openharness/hooks/other.yaml"),
        "{}",
        done.err
    );
    let done = run(workspace.path(), &["new", "hookyard-worker", "--mode", "worker"], "");
    assert_eq!(done.code, 1);
    assert!(done.err.contains("hookyard-worker.sh already exists"), "{}", done.err);
}

#[test]
fn files_that_hooks_share_are_kept() {
    let workspace = empty();
    new(workspace.path(), &["one", "--mode", "worker"]);
    let told = new(workspace.path(), &["two", "--mode", "worker"]).out;
    assert!(told.contains("kept  .openharness/hooks/scripts/hookyard-worker.sh\n"), "{told}");
    assert!(!told.contains("differs from the one of this version"), "{told}");
    let schema = workspace.path().join(HOOKS).join("resources/openharness-hook.schema.json");
    fs::write(&schema, "{}").unwrap();
    let told = new(workspace.path(), &["three"]).out;
    assert!(told.contains("it differs from the one of this version"), "{told}");
    assert_eq!(fs::read_to_string(&schema).unwrap(), "{}");
}

#[test]
fn links_that_lead_out_of_the_workspace_are_not_followed() {
    let (workspace, outside) = (empty(), empty());
    std::os::unix::fs::symlink(outside.path(), workspace.path().join(".openharness")).unwrap();
    let done = run(workspace.path(), &["new", "guard", "--workspace", "."], "");
    assert_eq!((done.code, done.out.as_str()), (1, ""));
    assert!(done.err.contains("is not a directory inside the workspace"), "{}", done.err);
    assert!(fs::read_dir(outside.path()).unwrap().next().is_none());
}

#[test]
fn it_reports_which_workspace_it_chose_and_why() {
    let workspace = empty();
    let inside = workspace.path().join("src/deep");
    fs::create_dir_all(&inside).unwrap();
    let told = new(workspace.path(), &["one"]).out;
    assert!(told.contains("(the current directory: neither it nor one above has hooks)"), "{told}");
    assert!(told.contains("\n  hookyard check\n"), "{told}");
    let told = new(&inside, &["two"]).out;
    assert!(told.contains("(the nearest with hooks)"), "{told}");
    assert!(told.contains("wrote ../../.openharness/hooks/two.yaml\n"), "{told}");
    let other = empty();
    let given = other.path().to_str().unwrap();
    let told = new(workspace.path(), &["three", "--workspace", given]).out;
    assert!(
        told.contains("(as given)") && told.contains(&format!("hookyard check --workspace {given}")),
        "{told}"
    );
    assert!(other.path().join(HOOKS).join("three.yaml").is_file());
    let done = run(workspace.path(), &["new", "four", "--workspace", "nowhere"], "");
    assert_eq!(done.code, 1);
    assert!(done.err.contains("the workspace `nowhere` cannot be used"), "{}", done.err);
}

#[test]
fn the_commands_it_prints_work() {
    let (workspace, home) = (empty(), empty());
    let mut new = assert_cmd::cargo::cargo_bin_cmd!("hookyard");
    new.env("HOOKYARD_TEST_HOME", home.path()).current_dir(workspace.path()).args(["new", "guard", "--json"]);
    let report: Value = serde_json::from_slice(&new.output().unwrap().stdout).unwrap();
    let programs = Path::new(env!("CARGO_BIN_EXE_hookyard")).parent().unwrap();
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    for command in report["next"].as_array().unwrap() {
        let line = command.as_str().unwrap();
        let mut shell = assert_cmd::Command::new("sh");
        let done = shell
            .args(["-c", line])
            .current_dir(workspace.path())
            .env("PATH", &path)
            .env("HOOKYARD_TEST_HOME", home.path());
        let done = done.output().unwrap();
        assert!(done.status.success(), "{line}");
        let text = String::from_utf8(done.stdout).unwrap();
        assert!(
            line.starts_with("hookyard trust --yes ")
                || text.contains("0 errors, 0 warnings")
                || text.contains("\"verdict\":\"block\""),
            "{line}: {text}"
        );
    }
}

#[test]
fn scripts_can_be_run_by_hand() {
    let workspace = empty();
    new(workspace.path(), &["guard"]);
    let script = workspace.path().join(HOOKS).join("scripts/guard.sh");
    assert_ne!(script.metadata().unwrap().permissions().mode() & 0o100, 0);
    let done = assert_cmd::Command::new(script).write_stdin("frobnicate --everything").output().unwrap();
    assert_eq!(done.status.code(), Some(2));
}

#[test]
fn names_that_are_keywords_of_yaml_or_python_work() {
    for name in ["12", "no", "true", "null", "1.5", "_", "json", "0x1f", "1_000", "Y", "---a", "a..b", "1e3"]
    {
        for kind in ["command", "agent"] {
            let workspace = empty();
            let arguments = ["new", "--type", kind, "--workspace", ".", "--", name];
            let done = run(workspace.path(), &arguments, "");
            assert_eq!((done.code, done.err.as_str()), (0, ""), "{name}");
            fs::write(workspace.path().join("s.yaml"), "models: { local/small: { api: openai, model: m } }")
                .unwrap();
            in_order(workspace.path(), &["--config", "s.yaml"]);
        }
    }
    if is_missing("python3") {
        return;
    }
    let workspace = empty();
    let report = new(workspace.path(), &["json", "--language", "python", "--json"]).json();
    assert_eq!(fire(workspace.path(), &report["event"], &[])["verdict"], "block");
}

#[test]
fn a_chat_workspace_is_reported() {
    let workspace = empty();
    fs::create_dir(workspace.path().join(".openharness")).unwrap();
    fs::write(workspace.path().join(".openharness/settings.yaml"), "kind: chat\n").unwrap();
    let done = run(workspace.path(), &["new", "first"], "");
    assert_eq!(done.code, 0);
    assert!(done.err.contains("the workspace is of kind `chat`"), "{}", done.err);
}
