//! Levels and required hooks, as the commands report them.

use std::{fs, path::Path};

use super::*;

/// Settings of Claude Code with one hook.
const CLAUDE: &str = r#"{ "hooks": { "PreToolUse": [{ "hooks": [{ "type": "command", "command": "echo user >&2; exit 2" }] }] } }"#;

fn guard() -> String {
    hook("guard", "before_tool_dispatch", "echo guarded >&2; exit 2", "on_error: deny")
}

fn write(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// A workspace with a guard, a user with another one, and settings with these lines.
fn leveled(own: &str, settings: &str) -> TempDir {
    let directory = workspace(&[("guard", &guard())]);
    let root = directory.path();
    write(root, ".openharness/settings.yaml", own);
    write(root, "home/.claude/settings.json", CLAUDE);
    write(root, "s.yaml", &format!("trust: off\n{settings}\n"));
    directory
}

fn with_settings(directory: &TempDir, command: &[&str], input: &str) -> Done {
    let arguments: Vec<&str> =
        command.iter().copied().chain(["--config", "s.yaml", "--home", "home"]).collect();
    run_with(directory.path(), &arguments, input)
}

#[test]
fn a_workspace_cannot_switch_off_a_guard_of_its_user() {
    for own in ["kind: chat\n", "dialects: []\n", "dialects: [openharness]\n"] {
        let directory = leveled(own, "");
        // A guard of its own that it switches off is an error, and another subject.
        fs::remove_file(directory.path().join(".openharness/hooks/guard.yaml")).unwrap();
        let checked = with_settings(&directory, &["check"], "");
        assert_eq!(checked.code, 0, "{}", checked.out);
        assert!(checked.out.contains("cannot switch off 1 hook of a higher level"), "{own}: {}", checked.out);
        assert!(checked.out.contains("settings.yaml:1:1"), "{own}: {}", checked.out);
        let listed = with_settings(&directory, &["list"], "");
        assert!(listed.err.contains("cannot switch off 1 hook"), "{own}: {}", listed.err);
        let rows = with_settings(&directory, &["list", "--json"], "").json();
        let users = rows.as_array().unwrap().iter().find(|row| row["scope"] == "user").unwrap();
        assert_eq!(users["enabled"], true, "{own}");
        assert!(users["cannot_be_disabled_by"][0].as_str().unwrap().contains("settings.yaml:1"), "{users}");
        let fired = with_settings(&directory, &["fire", "--event", "-", "--json"], &tool("ls"));
        assert_eq!(fired.json()["verdict"], "block", "{own}: {}", fired.out);
    }
}

#[test]
fn the_hooks_of_the_user_are_found_from_a_directory_without_any() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    write(root, "s.yaml", "trust: off\n");
    for name in ["shop", "home"] {
        fs::create_dir(root.join(name)).unwrap();
    }
    let run = |command: &[&str], input: &str| {
        let flags = ["--config", "../s.yaml", "--home", "../home"];
        run_with(&root.join("shop"), &[command, &flags].concat(), input)
    };
    let none = run(&["list"], "");
    assert!(none.code == 1 && none.err.contains("no workspace"), "{}", none.err);
    write(root, "home/.claude/settings.json", CLAUDE);
    let rows = run(&["list", "--json"], "").json();
    assert_eq!(rows[0]["scope"], "user", "{rows}");
    assert_eq!(run(&["fire", "--event", "-", "--json"], &tool("ls")).json()["verdict"], "block");
    assert_eq!(run(&["check"], "").code, 0);
}

#[test]
fn a_guard_that_dialects_leave_out_is_reported() {
    let directory = leveled("dialects: [claude]\n", "");
    let checked = with_settings(&directory, &["check"], "");
    assert!(checked.out.contains("`dialects` switches off 1 hook of openharness"), "{}", checked.out);
    assert!(checked.out.contains("1 hook loaded, 1 switched off,"), "{}", checked.out);
    assert!(checked.out.contains("1 warning"), "{}", checked.out);
    let explained = with_settings(&directory, &["explain", "--event", "-", "--json"], &tool("ls")).json();
    assert_eq!(explained["skipped"][0]["hook"], "guard");
    assert!(explained["skipped"][0]["why"].as_str().unwrap().contains("`dialects` in "), "{explained}");
    let rows = with_settings(&directory, &["list", "--json"], "").json();
    let guard = rows.as_array().unwrap().iter().find(|row| row["name"] == "guard").unwrap();
    assert!(guard["disabled_by"].as_str().unwrap().contains("`dialects`"), "{guard}");
}

#[test]
fn the_operator_allows_an_exception_by_name() {
    let directory = leveled("kind: chat\n", "levels: { allow_disable: [claude.user.PreToolUse.1.1] }");
    let fired = with_settings(&directory, &["fire", "--event", "-", "--json"], &tool("ls"));
    assert_eq!(fired.json()["verdict"], "proceed", "{}", fired.out);
    let checked = with_settings(&directory, &["check"], "");
    assert!(!checked.out.contains("cannot switch off"), "{}", checked.out);
}

#[test]
fn an_event_is_blocked_while_a_required_hook_is_missing() {
    let absent = |settings: &str| leveled("kind: project\n", settings);
    let reason = |directory: &TempDir| {
        let fired = with_settings(directory, &["fire", "--event", "-", "--json"], &tool("ls")).json();
        assert_eq!(fired["verdict"], "block", "{fired}");
        fired["reason"].as_str().unwrap().to_owned()
    };
    let directory = absent("required: [watchman]");
    assert!(
        reason(&directory).contains("the required hook `watchman` is not in force: no hook has this name")
    );
    let checked = with_settings(&directory, &["check"], "");
    assert_eq!(checked.code, 1, "{}", checked.out);
    assert!(checked.out.contains("required-missing") && checked.out.contains("watchman"), "{}", checked.out);

    let directory = absent("required: [guard]");
    assert_eq!(with_settings(&directory, &["check"], "").code, 0);
    assert_eq!(reason(&directory), "user", "it is there, and each hook has its say");
    write(directory.path(), ".openharness/hooks/guard.yaml", &(guard() + "enabled: false\n"));
    assert!(reason(&directory).contains("it is disabled"), "{}", reason(&directory));
    write(directory.path(), ".openharness/hooks/guard.yaml", "name: guard\n");
    assert!(reason(&directory).contains("guard.yaml"), "{}", reason(&directory));
    write(directory.path(), ".openharness/hooks/guard.yaml", &guard());
    write(directory.path(), ".openharness/settings.yaml", "dialects: [claude]\n");
    assert!(reason(&directory).contains("`dialects` in "), "{}", reason(&directory));
}

#[test]
fn a_requirement_is_limited_to_events_and_workspaces() {
    let verdict = |settings: &str| {
        let directory = leveled("kind: project\n", settings);
        fs::remove_file(directory.path().join("home/.claude/settings.json")).unwrap();
        fs::remove_file(directory.path().join(".openharness/hooks/guard.yaml")).unwrap();
        let fired = with_settings(&directory, &["fire", "--event", "-", "--json"], &tool("ls")).json();
        fired["verdict"].as_str().unwrap().to_owned()
    };
    assert_eq!(verdict("required: [watchman]"), "block");
    assert_eq!(verdict("required: [{ hook: watchman, events: [before_tool_dispatch] }]"), "block");
    assert_eq!(verdict("required: [{ hook: watchman, events: [prompt_submitted] }]"), "proceed");
    assert_eq!(verdict("required: [{ hook: watchman, workspaces: [elsewhere] }]"), "proceed");
}

#[test]
fn a_failure_of_a_required_hook_blocks_whatever_its_own_policy() {
    for (more, command) in [("on_error: ignore", "exit 1"), ("on_timeout: ignore", "sleep 60")] {
        let text = hook("guard", "before_tool_dispatch", command, more)
            .replace("type: command", "type: command\n  timeout_seconds: 0.2");
        let directory = leveled("kind: project\n", "required: [guard]");
        fs::remove_file(directory.path().join("home/.claude/settings.json")).unwrap();
        write(directory.path(), ".openharness/hooks/guard.yaml", &text);
        let fired = with_settings(&directory, &["fire", "--event", "-", "--json"], &tool("ls")).json();
        assert_eq!((&fired["verdict"], &fired["by"]), (&json!("block"), &json!("guard")), "{fired}");
        assert!(fired["reason"].as_str().unwrap().contains("required"), "{fired}");
    }
}

#[test]
fn a_required_hook_can_be_required_by_its_definition() {
    let directory = leveled("kind: project\n", "");
    fs::remove_file(directory.path().join("home/.claude/settings.json")).unwrap();
    let rows = with_settings(&directory, &["list", "--json"], "").json();
    let digest = rows[0]["sha256"].as_str().unwrap().to_owned();
    write(
        directory.path(),
        "s.yaml",
        &format!("trust: off\nrequired: [{{ hook: guard, sha256: {digest} }}]\n"),
    );
    let fire = || with_settings(&directory, &["fire", "--event", "-", "--json"], &tool("ls")).json();
    assert_eq!(fire()["reason"], "guarded", "it is the one");
    // Whoever may edit the file may make it do nothing under the same name.
    let other = hook("guard", "before_tool_dispatch", "exit 0", "on_error: deny");
    write(directory.path(), ".openharness/hooks/guard.yaml", &other);
    let outcome = fire();
    let reason = outcome["reason"].as_str().unwrap();
    assert!(reason.contains("its definition is not the required one; its SHA-256 is "), "{outcome}");
    write(directory.path(), "s.yaml", "trust: off\nrequired: [{ hook: guard, sha256: 12ab }]\n");
    let wrong = with_settings(&directory, &["check"], "");
    assert!(wrong.code == 1 && wrong.out.contains("64 hexadecimal digits"), "{}{}", wrong.out, wrong.err);
}

#[test]
fn a_definition_can_be_required_under_any_name() {
    let directory = leveled("kind: project\n", "");
    fs::remove_file(directory.path().join("home/.claude/settings.json")).unwrap();
    let rows = with_settings(&directory, &["list", "--json"], "").json();
    let digest = rows[0]["sha256"].as_str().unwrap().to_owned();
    let require = |item: &str| {
        write(directory.path(), "s.yaml", &format!("trust: off\nrequired: [{{ {item} }}]\n"));
    };
    let fire = || with_settings(&directory, &["fire", "--event", "-", "--json"], &tool("ls")).json();
    require(&format!("sha256: {digest}"));
    assert_eq!(with_settings(&directory, &["check"], "").code, 0);
    assert_eq!(fire()["reason"], "guarded", "it is the one");
    let moved = hook("moved", "before_tool_dispatch", "exit 0", "on_error: deny");
    write(directory.path(), ".openharness/hooks/guard.yaml", &moved);
    let outcome = fire();
    let reason = outcome["reason"].as_str().unwrap();
    let expected =
        format!("the required hook `sha256.{}` is not in force: no hook has this definition", &digest[..16]);
    assert!(outcome["verdict"] == "block" && reason.starts_with(&expected), "{outcome}");
    assert_eq!(with_settings(&directory, &["check"], "").code, 1);
    require("events: [before_tool_dispatch]");
    let wrong = with_settings(&directory, &["check"], "");
    assert!(wrong.code == 1 && wrong.out.contains("`hook`"), "{}{}", wrong.out, wrong.err);
}

#[test]
fn a_required_hook_of_host_events_is_required_for_exactly_these() {
    let native = |event: &str| {
        json!({ "session_id": "s", "hook_event_name": event, "cwd": "/", "tool_name": "Bash", "tool_input": {},
                "task": { "subject": "x" } })
        .to_string()
    };
    let created =
        json!({ "hooks": { "TaskCreated": [{ "hooks": [{ "type": "command", "command": "exit 0" }] }] } });
    let blocked = |required: &str, files: &str, event: &str| {
        let directory = leveled("kind: project\n", &format!("required: [{required}]"));
        fs::remove_file(directory.path().join(".openharness/hooks/guard.yaml")).unwrap();
        fs::remove_file(directory.path().join("home/.claude/settings.json")).unwrap();
        write(directory.path(), ".claude/settings.json", files);
        let fire = ["fire", "--dialect", "claude", "--event", "-", "--json"];
        let outcome = with_settings(&directory, &fire, &native(event)).json();
        outcome["verdict"] == "block"
    };
    let (hook, there, off) = ("claude.project.TaskCreated.1.1", created.to_string(), "{\"hooks\": {}}");
    let disabled = created.to_string().replacen('{', "{\"disableAllHooks\": true, ", 1);
    for (required, files, events) in [
        (hook.to_owned(), &*there, [false, false, false]),
        (hook.to_owned(), &*disabled, [true, false, false]),
        // Nobody knows the events of a hook that is not there.
        (hook.to_owned(), off, [true, true, true]),
        (format!("{{hook: {hook}, events: [TaskCreated]}}"), off, [true, false, false]),
        (format!("{{hook: {hook}, events: [TaskCompleted]}}"), &*there, [false, true, false]),
        (format!("{{hook: {hook}, events: [before_tool_dispatch]}}"), &*there, [false, false, true]),
    ] {
        let found =
            ["TaskCreated", "TaskCompleted", "PreToolUse"].map(|event| blocked(&required, files, event));
        assert_eq!(found, events, "{required} {files}");
    }
}

#[test]
fn a_required_hook_that_nobody_trusts_or_waits_for_is_missing_and_none_runs_only_once() {
    let directory = leveled("kind: project\n", "required: [guard]");
    fs::remove_file(directory.path().join("home/.claude/settings.json")).unwrap();
    let fire = |more: &[&str]| {
        let command = [&["fire", "--event", "-", "--json"], more].concat();
        with_settings(&directory, &command, &tool("ls")).json()
    };
    write(directory.path(), "s.yaml", "trust: enforce\nrequired: [guard]\n");
    let enforced = program(directory.path())
        .args(["fire", "--event", "-", "--json", "--config", "s.yaml", "--home", "home"])
        .write_stdin(tool("ls"))
        .output()
        .unwrap();
    let enforced: Value = serde_json::from_slice(&enforced.stdout).unwrap();
    assert!(enforced["reason"].as_str().unwrap().contains("nobody has agreed to it"), "{enforced}");
    write(directory.path(), "s.yaml", "trust: off\nrequired: [claude.project.PreToolUse.1.1]\n");
    fs::remove_file(directory.path().join(".openharness/hooks/guard.yaml")).unwrap();
    let claude = |key: &str| {
        let hook = json!({ "type": "command", "command": "exit 0", key: true });
        json!({ "hooks": { "PreToolUse": [{ "hooks": [hook] }] } }).to_string()
    };
    write(directory.path(), ".claude/settings.json", &claude("async"));
    assert!(fire(&[])["reason"].as_str().unwrap().contains("nobody waits for it"), "{}", fire(&[]));
    write(directory.path(), ".claude/settings.json", &claude("once"));
    assert_eq!(fire(&[])["verdict"], "proceed");
    let checked = with_settings(&directory, &["check"], "");
    assert!(checked.out.contains("the hook runs each time"), "{}", checked.out);
    write(directory.path(), "twice.jsonl", &format!("{0}\n{0}\n", tool("ls").replace("\"r\"", "\"q\"")));
    let replayed = with_settings(&directory, &["replay", "twice.jsonl", "--json"], "").json();
    assert_eq!(replayed["by_hook"][0]["runs"], 2, "{replayed}");
}

/// "The same command runs once" is a courtesy of the dialect, not a way to put a copy in the place of a hook.
#[test]
fn a_copy_at_a_lower_level_stands_in_for_no_hook() {
    let gemini = |timeout: u32| {
        let hook = json!({ "type": "command", "name": "guard", "command": "exit 2", "timeout": timeout });
        json!({ "hooks": { "BeforeTool": [{ "hooks": [hook] }] } }).to_string()
    };
    let claude = |more: Value| {
        let mut hook = json!({ "type": "command", "command": "exit 2" });
        hook.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({ "hooks": { "PreToolUse": [{ "hooks": [hook] }] } }).to_string()
    };
    let directory = workspace(&[]);
    let root = directory.path();
    let system = root.join("etc").display().to_string();
    let explained = || {
        let command = ["explain", "--event", "-", "--json", "--home", "home", "--set"];
        let set = format!("system_directory={system}");
        let report = run_with(root, &[&command[..], &[&set]].concat(), &tool("ls")).json();
        let stages = report["stages"].as_array().unwrap().iter().flat_map(|stage| stage.as_array().unwrap());
        stages.map(|hook| hook.as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    write(root, "home/file", "");
    write(root, "etc/gemini-cli/settings.json", &gemini(60_000));
    write(root, ".gemini/settings.json", &gemini(1));
    // Gemini runs the administrator's hooks last.
    assert_eq!(explained(), ["gemini.managed.BeforeTool.1.1"]);
    fs::remove_file(root.join("etc/gemini-cli/settings.json")).unwrap();
    write(root, "home/.gemini/settings.json", &gemini(60_000));
    assert_eq!(explained(), ["gemini.user.BeforeTool.1.1"]);
    fs::remove_file(root.join(".gemini/settings.json")).unwrap();
    fs::remove_file(root.join("home/.gemini/settings.json")).unwrap();
    write(root, "home/.claude/settings.json", &claude(json!({ "async": true })));
    write(root, ".claude/settings.json", &claude(json!({})));
    let both = ["claude.user.PreToolUse.1.1", "claude.project.PreToolUse.1.1"];
    assert_eq!(explained(), both, "one that nobody waits for is no guard");
    write(root, "home/.claude/settings.json", &claude(json!({})));
    assert_eq!(explained(), both[..1]);
}
