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
