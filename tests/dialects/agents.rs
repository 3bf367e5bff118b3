//! The command line with the settings files of Claude Code, CodeBuddy and ClawdCode.

use std::path::Path;

use assert_cmd::cargo::cargo_bin_cmd;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::trust::without_trust;

struct Done {
    code: i32,
    out: String,
    err: String,
}

fn run(directory: &Path, arguments: &[&str], input: &str) -> Done {
    let mut command = cargo_bin_cmd!("hookyard");
    command
        .current_dir(directory)
        .env_remove("HOOKYARD_LOG")
        .args(without_trust(arguments))
        .write_stdin(input);
    let output = command.output().unwrap();
    Done {
        code: output.status.code().unwrap(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// A settings file with one hook that blocks with these words.
fn blocks(event: &str, words: &str) -> String {
    let command = format!("echo {words} >&2; exit 2");
    json!({ "hooks": { event: [{ "hooks": [{ "type": "command", "command": command }] }] } }).to_string()
}

fn write(directory: &Path, path: &str, text: &str) {
    let path = directory.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// A project with a hook in `project`, and a home directory with one in `home`.
fn places() -> TempDir {
    let places = tempfile::tempdir().unwrap();
    write(places.path(), "project/.claude/settings.json", &blocks("PreToolUse", "project"));
    write(places.path(), "project/.claude/settings.local.json", &blocks("TaskCreated", "local"));
    write(places.path(), "home/.claude/settings.json", &blocks("Stop", "user"));
    places
}

const CALL: &str = r#"{"session_id":"s","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{}}"#;

#[test]
fn hooks_of_every_level_are_listed_with_their_files() {
    let places = places();
    let project = places.path().join("project");
    let done = run(&project, &["list", "--json", "--home", "../home"], "");
    let rows: Value = serde_json::from_str(&done.out).unwrap();
    let rows: Vec<_> = rows
        .as_array()
        .unwrap()
        .iter()
        .map(|row| {
            let file = row["file"].as_str().unwrap().rsplit('/').next().unwrap().to_owned();
            (row["name"].as_str().unwrap().to_owned(), row["scope"].as_str().unwrap().to_owned(), file)
        })
        .collect();
    let row = |name: &str, scope: &str, file: &str| (name.to_owned(), scope.to_owned(), file.to_owned());
    assert_eq!(
        rows,
        [
            row("claude.user.Stop.1.1", "user", "settings.json"),
            row("claude.project.PreToolUse.1.1", "project", "settings.json"),
            row("claude.local.TaskCreated.1.1", "local", "settings.local.json"),
        ]
    );
    let done = run(&project, &["list", "--home", "../home"], "");
    assert!(done.out.contains("TaskCreated") && done.out.contains("local"), "{}", done.out);
    let done = run(&project, &["list", "--json"], "");
    assert!(!done.out.contains("claude.user"), "the tests have a home of their own: {}", done.out);
}

#[test]
fn the_home_directory_comes_from_the_flag_then_the_file_then_the_account_and_from_no_variable() {
    let places = places();
    write(places.path(), "other/.claude/settings.json", &blocks("SubagentStop", "other"));
    let project = places.path().join("project");
    let home = |name: &str| places.path().join(name).display().to_string();
    write(places.path(), "project/h.yaml", &format!("home: {}\n", home("home")));
    let list = |variables: &[(&str, &str)], more: &[&str]| {
        let mut command = assert_cmd::cargo::cargo_bin_cmd!("hookyard");
        // The home directory of the account, as far as tests go.
        command.current_dir(&project).env("HOOKYARD_TEST_HOME", home("other")).env_remove("XDG_STATE_HOME");
        command.envs(variables.iter().copied());
        let output = command.args(without_trust(&["list", "--json"])).args(more).output().unwrap();
        let listed = String::from_utf8(output.stdout).unwrap();
        (listed.contains("claude.user.Stop"), listed.contains("claude.user.SubagentStop"))
    };
    assert_eq!(list(&[], &[]), (false, true));
    assert_eq!(list(&[], &["--config", "h.yaml"]), (true, false));
    assert_eq!(list(&[], &["--config", "h.yaml", "--home", "../other"]), (false, true));
    assert_eq!(list(&[], &["--set", &format!("home={}", home("home"))]), (true, false));
    // A project can set variables of its agent: they move nothing.
    assert_eq!(list(&[("HOME", &home("empty"))], &[]), (false, true));
    for name in ["HOOKYARD_HOME", "HOOKYARD_SYSTEM_DIRECTORY", "HOOKYARD_STATE_DIRECTORY"] {
        let mut command = assert_cmd::cargo::cargo_bin_cmd!("hookyard");
        let refused = command.current_dir(&project).env(name, home("home")).arg("check").output().unwrap();
        let errors = String::from_utf8(refused.stdout).unwrap();
        assert!(
            refused.status.code() == Some(1) && errors.contains("cannot be set by an environment variable"),
            "{name}: {errors}"
        );
    }
}

#[test]
fn a_project_is_found_by_the_settings_of_an_agent_and_a_home_is_none() {
    let places = places();
    let deep = places.path().join("project/a/b");
    std::fs::create_dir_all(&deep).unwrap();
    assert_eq!(run(&deep, &["check"], "").code, 0);
    // Below the home directory, its settings are those of the user and not of a project.
    let inside = places.path().join("home/a");
    std::fs::create_dir_all(&inside).unwrap();
    let done = run(&inside, &["list", "--json", "--home", ".."], "");
    assert_eq!(done.code, 0, "{}", done.err);
    let rows: Vec<Value> = serde_json::from_str(&done.out).unwrap();
    assert!(!rows.is_empty() && rows.iter().all(|row| row["scope"] == "user"), "{}", done.out);
    let bare = places.path().join("bare");
    std::fs::create_dir(&bare).unwrap();
    let done = run(&bare, &["check"], "");
    assert!(done.code == 1 && done.err.contains("no workspace"), "{}", done.err);
}

#[test]
fn a_host_gets_the_answer_and_exit_code_of_its_dialect() {
    let places = places();
    let project = places.path().join("project");
    let fire = ["fire", "--event", "-", "--dialect", "claude", "--native"];
    let done = run(&project, &fire, CALL);
    assert_eq!((done.code, done.err.as_str()), (0, ""));
    let answer: Value = serde_json::from_str(&done.out).unwrap();
    assert_eq!(answer["hookSpecificOutput"]["permissionDecision"], "deny");
    assert_eq!(answer["hookSpecificOutput"]["permissionDecisionReason"], "project");
    let done = run(&project, &fire, r#"{"session_id":"s","hook_event_name":"TaskCreated","task_id":"1"}"#);
    assert_eq!((done.code, done.err.trim()), (2, "local"));
}

#[test]
fn an_event_in_an_agents_dialect_gets_a_hint() {
    let places = places();
    let done = run(&places.path().join("project"), &["fire", "--event", "-"], CALL);
    assert_eq!(done.code, 1);
    assert!(done.err.contains("add `--dialect claude`"), "{}", done.err);
}

#[test]
fn the_plan_says_why_a_hook_is_left_out() {
    let places = tempfile::tempdir().unwrap();
    let hook = json!({ "type": "command", "command": "true" });
    let settings = json!({ "hooks": {
        "PreToolUse": [
            { "hooks": [hook, hook] },
            { "hooks": [{ "type": "command", "command": "false", "if": "Bash(git *)" }] },
        ],
        "TaskCreated": [{ "hooks": [hook] }],
    } });
    write(places.path(), ".claude/settings.json", &settings.to_string());
    let call = CALL.replace("{}", r#"{"command":"ls"}"#);
    let done = run(places.path(), &["explain", "--event", "-", "--dialect", "claude", "--json"], &call);
    let plan: Value = serde_json::from_str(&done.out).unwrap();
    assert_eq!(plan["stages"], json!([["claude.project.PreToolUse.1.1"]]));
    let why: Vec<_> =
        plan["skipped"].as_array().unwrap().iter().map(|s| s["why"].as_str().unwrap()).collect();
    assert_eq!(
        why,
        [
            "`claude.project.PreToolUse.1.1` runs the same, and once is enough",
            "it needs a tool call that fits `Bash(git *)`",
            "before_tool_dispatch is not among its events",
        ]
    );
}

#[test]
fn a_recorded_session_of_an_agent_is_replayed() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (workspace, recording) = ("config/workspaces/claude", "config/recordings/claude-session.jsonl");
    let arguments = ["replay", recording, "--workspace", workspace, "--dialect", "claude", "--json"];
    let done = run(root, &arguments, "");
    assert_eq!((done.code, done.err.as_str()), (0, ""));
    let played: Value = serde_json::from_str(&done.out).unwrap();
    let kinds = played["by_event"].as_array().unwrap();
    let count = kinds.iter().map(|row| row["count"].as_u64().unwrap()).sum::<u64>();
    assert_eq!((count, &played["broken_lines"]), (7, &json!([])), "{played:#}");
}

/// What hooks of an example workspace answer to a host of their own dialect.
fn answer(dialect: &str, event: &str) -> Value {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let workspace = format!("config/workspaces/{dialect}");
    let fire = ["fire", "--event", "-", "--dialect", dialect, "--native", "-w", &workspace];
    let done = run(root, &fire, event);
    // One agent may miss what is printed, and needs to be told of a denial twice.
    let is_told_twice = dialect == "codebuddy" && done.out.contains("deny");
    assert_eq!(done.code, if is_told_twice { 2 } else { 0 }, "{}", done.err);
    // Where there is nothing to say, some say nothing.
    serde_json::from_str(&done.out).unwrap_or(json!({}))
}

#[test]
fn the_example_workspaces_guard_rewrite_and_tell() {
    for (dialect, changed, input) in [
        ("claude", "updatedInput", json!({ "command": "npm ci" })),
        ("codebuddy", "updatedInput", json!({ "command": "npm ci", "timeout": 5 })),
    ] {
        let call = |command: &str| {
            let input = json!({ "command": command, "timeout": 5 });
            answer(dialect, &CALL.replace("{}", &input.to_string()))
        };
        assert_eq!(call("rm -rf / --no")["hookSpecificOutput"]["permissionDecision"], "deny", "{dialect}");
        let rewritten = call("npm install");
        assert_eq!(rewritten["hookSpecificOutput"][changed], input, "{dialect}");
        assert!(
            rewritten.to_string().contains("npm install was changed to npm ci"),
            "{dialect}: {rewritten}"
        );
        assert_eq!(call("ls"), json!({}), "{dialect}");
        let start = r#"{"session_id":"s","hook_event_name":"SessionStart","source":"startup"}"#;
        let output = answer(dialect, start);
        let context = output["hookSpecificOutput"]["additionalContext"].as_str().unwrap();
        assert!(context.contains("TASKS.md"), "{dialect}: {context}");
    }
}

/// The hooks of one agent guard the session of another.
#[test]
fn a_session_of_one_agent_is_replayed_with_the_hooks_of_another() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (workspace, recording) = ("config/workspaces/codebuddy", "config/recordings/claude-session.jsonl");
    let arguments = ["replay", recording, "--workspace", workspace, "--dialect", "claude", "--json"];
    let done = run(root, &arguments, "");
    assert_eq!((done.code, done.err.as_str()), (0, ""));
    let played: Value = serde_json::from_str(&done.out).unwrap();
    let hooks = played["by_hook"].as_array().unwrap();
    assert_eq!((hooks.len(), &played["broken_lines"]), (3, &json!([])), "{played:#}");
}

#[test]
fn a_hook_that_is_hookyard_itself_has_no_opinion_instead_of_recursing() {
    let place = tempfile::tempdir().unwrap();
    let itself = format!("{} fire --native --dialect claude --event -", env!("CARGO_BIN_EXE_hookyard"));
    let hooks = json!([{ "type": "command", "command": itself }, { "type": "command", "command": "echo no >&2; exit 2" }]);
    let settings = json!({ "hooks": { "PreToolUse": [{ "hooks": hooks }] } });
    write(place.path(), ".claude/settings.json", &settings.to_string());
    let done = run(place.path(), &["fire", "--native", "--dialect", "claude", "--event", "-"], CALL);
    let answer: Value =
        serde_json::from_str(&done.out).unwrap_or_else(|e| panic!("{e}: {} {}", done.out, done.err));
    assert_eq!(answer["hookSpecificOutput"]["permissionDecision"], "deny", "{answer}");
    let done = run(place.path(), &["fire", "--json", "--dialect", "claude", "--event", "-"], CALL);
    let outcome: Value = serde_json::from_str(&done.out).unwrap();
    assert_eq!(outcome["hooks"][0]["ended"], "completed", "{outcome}");
}

#[test]
fn the_example_workspace_of_clawdcode_guards_rewrites_and_tells() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let fire = ["fire", "--event", "-", "--dialect", "clawd", "--native", "-w", "config/workspaces/clawd"];
    let answer = |event: Value| -> Value {
        let done = run(root, &fire, &event.to_string());
        assert_eq!((done.code, done.err.as_str()), (0, ""));
        serde_json::from_str(&done.out).unwrap()
    };
    let call = |tool: &str, input: Value| json!({ "session_id": "s", "hook_event_name": "PreToolUse", "tool_name": tool, "tool_input": input });
    let generated = answer(call("Edit", json!({ "file_path": "/srv/shop/src/generated/api.ts" })));
    let reason = "/srv/shop/src/generated/api.ts is generated; change its template instead";
    assert_eq!(generated, json!({ "permissionDecision": "deny", "permissionDecisionReason": reason }));
    assert_eq!(answer(call("Edit", json!({ "file_path": "src/cart.ts" }))), json!({}));
    assert_eq!(answer(call("Bash", json!({ "command": "ls" }))), json!({}));
    let prompt =
        json!({ "session_id": "s", "hook_event_name": "UserPromptSubmit", "prompt_content": "round them" });
    // All that a hook prints about a prompt is context.
    let done = run(root, &fire, &prompt.to_string());
    assert_eq!((done.code, done.out.trim(), done.err.as_str()), (0, "Prices are whole cents.", ""));
    #[expect(clippy::disallowed_methods, reason = "a test looks at its machine")]
    if std::process::Command::new("python3").arg("--version").output().is_ok() {
        let quiet = answer(call("Bash", json!({ "command": "npm install left-pad", "timeout": 5 })));
        let input = json!({ "command": "npm install left-pad --silent", "timeout": 5 });
        assert_eq!(quiet, json!({ "permissionDecision": "allow", "updatedInput": input }));
    } else {
        println!("not run: python3 is missing");
    }
}

#[test]
fn a_prompt_that_the_host_cannot_hold_back_is_told_to_the_model() {
    let places = tempfile::tempdir().unwrap();
    write(places.path(), ".clawdcode/settings.json", &blocks("UserPromptSubmit", "no-secrets"));
    let fire = ["fire", "--event", "-", "--dialect", "clawd", "--native"];
    let prompt = r#"{"session_id":"s","hook_event_name":"UserPromptSubmit","prompt_content":"p"}"#;
    let done = run(places.path(), &fire, prompt);
    assert_eq!(
        (done.code, done.out.trim(), done.err.trim()),
        (0, "Do not follow this prompt: no-secrets", "")
    );
}
