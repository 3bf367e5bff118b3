//! Hook files that change under a daemon take effect soon, once, and only where they are.
#![allow(clippy::disallowed_methods, reason = "a FIFO is made by the program for it")]

mod many_changes;
mod mistakes;
mod moves;
mod nested;
mod shortage;

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    thread,
    time::{Duration, Instant},
};

use crate::support::daemon::{Daemon, DaemonSetup, write};
use crate::support::wait::{LONGEST_WAIT, wait_until};
use serde_json::{Value, json};

/// Not YAML.
const BROKEN: &str = "name: [guard\n";

/// A hook that blocks `Bash` with a word.
fn guard(name: &str, word: &str) -> String {
    format!(
        "name: {name}\nevents: [before_tool_dispatch]\nmatcher: Bash\nhandler:\n  type: command\n  \
         command: 'echo {word} >&2; exit 2'\n"
    )
}

/// A settings file of Claude Code with such a hook.
fn claude(word: &str) -> String {
    json!({ "hooks": { "PreToolUse": [{ "matcher": "Bash", "hooks": [
        { "type": "command", "command": format!("echo {word} >&2; exit 2") }
    ] }] } })
    .to_string()
}

fn event(workspace: &str) -> Value {
    json!({ "event": "before_tool_dispatch", "session_id": "s", "run_id": "r", "workspace_id": workspace,
            "tool_name": "Bash", "tool_input": { "command": "ls" } })
}

/// A daemon with the workspace `shop`.
fn shop(files: &[(&str, &str)]) -> Daemon {
    let setting = DaemonSetup::new().settings("workspaces: { shop: { root: $DIR/shop } }");
    fs::create_dir(setting.path().join("shop")).unwrap();
    files.iter().fold(setting, |setting, (path, text)| setting.file(path, text)).serve()
}

/// What an event of a workspace is blocked with; `-` if it is not.
fn word_of(daemon: &Daemon, workspace: &str) -> String {
    let outcome = daemon.post("/v1/events", &event(workspace));
    match outcome["verdict"].as_str() {
        Some("block") => outcome["reason"].as_str().unwrap_or_default().trim().to_owned(),
        _ => "-".to_owned(),
    }
}

#[track_caller]
fn becomes(daemon: &Daemon, word: &str) {
    workspace_becomes(daemon, "shop", word);
}

#[track_caller]
fn workspace_becomes(daemon: &Daemon, workspace: &str, word: &str) {
    let deadline = Instant::now() + LONGEST_WAIT;
    loop {
        let found = word_of(daemon, workspace);
        if found == word {
            return;
        }
        let log = || daemon.log();
        assert!(Instant::now() < deadline, "{workspace} stays {found}, never {word}:\n{}", log());
        thread::sleep(Duration::from_millis(5));
    }
}

fn version(daemon: &Daemon, workspace: &str) -> u64 {
    daemon.get(&format!("/v1/workspaces/{workspace}"))["version"].as_u64().unwrap()
}

fn errors(daemon: &Daemon, workspace: &str) -> u64 {
    daemon.get(&format!("/v1/workspaces/{workspace}"))["errors"].as_u64().unwrap()
}

fn hooks(daemon: &Daemon, workspace: &str) -> u64 {
    daemon.get(&format!("/v1/workspaces/{workspace}"))["hooks"].as_u64().unwrap()
}

/// Waits until a workspace has this many mistakes.
fn has_errors(daemon: &Daemon, count: u64) {
    wait_until("the mistakes are noticed", || errors(daemon, "shop") == count);
}

/// Waits until everything is watched as it should be, by way of a hook of its own that comes and goes.
fn settles(daemon: &Daemon) {
    let sentinel = daemon.path().join("shop/.openharness/hooks/sentinel.yaml");
    let before = hooks(daemon, "shop");
    write(&sentinel, "name: sentinel\nevents: [run_failed]\nhandler: { type: command, command: 'true' }\n");
    wait_until("the sentinel is seen", || hooks(daemon, "shop") == before + 1);
    fs::remove_file(&sentinel).unwrap();
    wait_until("the sentinel's end is seen", || hooks(daemon, "shop") == before);
}

fn metric(daemon: &Daemon, name: &str) -> String {
    let answer = daemon.send("GET", "/metrics", None);
    let text = String::from_utf8(answer.body).unwrap();
    let line = text.lines().find(|line| line.starts_with(&format!("{name} ")));
    line.and_then(|line| line.rsplit(' ').next()).unwrap_or("none").to_owned()
}

fn log_lines(daemon: &Daemon, wanted: &[&str]) -> usize {
    daemon.log().lines().filter(|line| wanted.iter().all(|part| line.contains(part))).count()
}

const GUARD: &str = "shop/.openharness/hooks/guard.yaml";

#[test]
fn a_changed_file_takes_effect() {
    let daemon = shop(&[(GUARD, &guard("guard", "one"))]);
    let file = daemon.path().join(GUARD);
    assert_eq!(word_of(&daemon, "shop"), "one");
    assert_eq!(daemon.get("/v1/status")["watch"], "on");
    // Written in place.
    fs::write(&file, guard("guard", "two")).unwrap();
    becomes(&daemon, "two");
    // Put in its place, as editors do.
    let aside = daemon.path().join("shop/.openharness/hooks/.guard.yaml.swp");
    fs::write(&aside, guard("guard", "three")).unwrap();
    fs::rename(&aside, &file).unwrap();
    becomes(&daemon, "three");
    // Moved away, and a new one written.
    fs::rename(&file, daemon.path().join("shop/.openharness/hooks/guard.yaml~")).unwrap();
    fs::write(&file, guard("guard", "four")).unwrap();
    becomes(&daemon, "four");
    fs::remove_file(&file).unwrap();
    becomes(&daemon, "-");
}

#[test]
fn directories_created_later_are_watched() {
    let daemon = shop(&[]);
    assert_eq!(word_of(&daemon, "shop"), "-");
    write(&daemon.path().join(GUARD), &guard("guard", "one"));
    becomes(&daemon, "one");
    let home = daemon.path().join("shop/.openharness");
    let aside = daemon.path().join("shop/aside");
    fs::rename(&home, &aside).unwrap();
    becomes(&daemon, "-");
    // What was moved away is nobody's any more, and what takes its place is.
    fs::create_dir_all(home.join("hooks")).unwrap();
    fs::write(home.join("hooks/guard.yml"), guard("guard", "two")).unwrap();
    becomes(&daemon, "two");
    fs::remove_dir_all(&home).unwrap();
    becomes(&daemon, "-");
    fs::rename(&aside, &home).unwrap();
    becomes(&daemon, "one");
    fs::write(home.join("hooks/guard.yaml"), guard("guard", "three")).unwrap();
    becomes(&daemon, "three");
}

#[test]
fn settings_files_of_agents_are_watched_at_all_levels() {
    let setting = DaemonSetup::new();
    fs::create_dir_all(setting.path().join("etc")).unwrap();
    fs::create_dir_all(setting.path().join("shop")).unwrap();
    let daemon =
        setting.settings("workspaces: { shop: { root: $DIR/shop } }\nsystem_directory: $DIR/etc").serve();
    for (place, word) in [
        ("shop/.claude/settings.json", "project"),
        ("shop/.claude/settings.local.json", "local"),
        ("home/.claude/settings.json", "user"),
        ("etc/claude-code/managed-settings.json", "managed"),
        ("shop/.github/hooks/guard.json", "directory"),
        ("home/.copilot/hooks/mine.json", "mine"),
    ] {
        let file = daemon.path().join(place);
        write(&file, &claude(word));
        becomes(&daemon, word);
        fs::write(&file, claude("other")).unwrap();
        becomes(&daemon, "other");
        fs::remove_dir_all(file.parent().unwrap()).unwrap();
        becomes(&daemon, "-");
    }
}

#[test]
fn the_target_of_a_link_is_watched() {
    let daemon =
        shop(&[("shop/config/claude.json", &claude("one")), ("dotfiles/claude.json", &claude("mine"))]);
    let here = daemon.path();
    fs::create_dir(here.join("shop/.claude")).unwrap();
    symlink("../config/claude.json", here.join("shop/.claude/settings.json")).unwrap();
    becomes(&daemon, "one");
    fs::write(here.join("shop/config/claude.json"), claude("two")).unwrap();
    becomes(&daemon, "two");
    fs::remove_file(here.join("shop/.claude/settings.json")).unwrap();
    becomes(&daemon, "-");
    // A user's dotfiles may be anywhere.
    fs::create_dir(here.join("home/.claude")).unwrap();
    symlink(here.join("dotfiles/claude.json"), here.join("home/.claude/settings.json")).unwrap();
    becomes(&daemon, "mine");
    fs::write(here.join("dotfiles/claude.json"), claude("yours")).unwrap();
    becomes(&daemon, "yours");
}

#[test]
fn a_replaced_link_takes_effect() {
    // As Kubernetes mounts a ConfigMap.
    let daemon = shop(&[]);
    let place = daemon.path().join("home/.claude");
    write(&place.join("..1/settings.json"), &claude("one"));
    symlink("..1", place.join("..data")).unwrap();
    symlink("..data/settings.json", place.join("settings.json")).unwrap();
    becomes(&daemon, "one");
    for (number, word) in [(2, "two"), (3, "three")] {
        write(&place.join(format!("..{number}/settings.json")), &claude(word));
        symlink(format!("..{number}"), place.join("..data_tmp")).unwrap();
        fs::rename(place.join("..data_tmp"), place.join("..data")).unwrap();
        fs::remove_dir_all(place.join(format!("..{}", number - 1))).unwrap();
        becomes(&daemon, word);
    }
}

#[test]
fn other_files_cause_no_reload() {
    let daemon = DaemonSetup::new()
        .settings("workspaces: { shop: { root: $DIR/shop }, other: { root: $DIR/other } }")
        .file(GUARD, &guard("guard", "one"))
        .file("other/.openharness/hooks/guard.yaml", &guard("guard", "one"))
        .serve();
    settles(&daemon);
    let before = version(&daemon, "shop");
    for number in 0..200 {
        write(&daemon.path().join(format!("shop/src/{number}.rs")), "fn main() {}");
        fs::write(daemon.path().join(format!("shop/{number}.md")), "text").unwrap();
        fs::write(daemon.path().join("shop/.openharness/hooks/run.log"), number.to_string()).unwrap();
        fs::write(daemon.path().join("home/.history"), number.to_string()).unwrap();
    }
    // Changes are noticed in their order, so a later one that counts comes after them.
    write(&daemon.path().join("other/.openharness/hooks/guard.yaml"), &guard("guard", "two"));
    workspace_becomes(&daemon, "other", "two");
    assert_eq!(version(&daemon, "shop"), before);
    fs::write(daemon.path().join(GUARD), guard("guard", "two")).unwrap();
    becomes(&daemon, "two");
}
