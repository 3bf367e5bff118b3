//! Hook files that change under a daemon: each change counts soon, once, and only where it is; what is broken keeps
//! its former rules. The real program, whose files are changed as editors, `git` and Kubernetes change them.

#![allow(clippy::disallowed_methods, reason = "a FIFO is made by the program for it")]

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
fn a_changed_file_counts() {
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
fn directories_that_come_later_count() {
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
fn settings_files_of_agents_count_at_all_levels() {
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
fn links_are_followed_to_what_they_lead_to() {
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
fn a_link_that_is_swapped_counts() {
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
fn other_files_do_not_count() {
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

#[test]
fn however_many_ask_for_a_reload_at_once_it_is_a_few() {
    let daemon = shop(&[("shop/.openharness/hooks/guard.yaml", &guard("guard", "old"))]);
    write(&daemon.path().join("shop/.openharness/hooks/guard.yaml"), &guard("guard", "new"));
    let begin = std::sync::Barrier::new(50);
    let version = || daemon.post("/v1/events", &event("shop"))["snapshot_version"].as_u64().unwrap();
    let before = version();
    thread::scope(|scope| {
        for _ in 0..50 {
            scope.spawn(|| {
                begin.wait();
                assert_eq!(daemon.send("POST", "/v1/reload", None).status, 200);
                assert_eq!(word_of(&daemon, "shop"), "new", "whoever asked has what there was then");
            });
        }
    });
    let reloads = version() - before;
    assert!((1..25).contains(&reloads), "{reloads}");
}

#[test]
fn many_changes_at_once_are_one_reload() {
    let daemon = shop(&[(GUARD, &guard("guard", "one"))]);
    settles(&daemon);
    let (before, start) = (version(&daemon, "shop"), Instant::now());
    for number in 0..300 {
        write(
            &daemon.path().join(format!("shop/.openharness/hooks/x{number}.yaml")),
            &format!(
                "name: x{number}\nevents: [run_failed]\nhandler: {{ type: command, command: 'true' }}\n"
            ),
        );
    }
    wait_until("all of them are there", || hooks(&daemon, "shop") == 301);
    // One for each second it took, and the last.
    let reloads = version(&daemon, "shop") - before;
    assert!(reloads <= 2 * start.elapsed().as_secs() + 3, "{reloads} reloads");
}

#[test]
fn a_broken_file_keeps_its_rules_and_others_change() {
    let daemon = shop(&[
        (GUARD, &guard("guard", "one")),
        ("shop/.openharness/hooks/zebra.yaml", &guard("zebra", "z-one").replace("Bash", "Read")),
    ]);
    let hooks_in = daemon.path().join("shop/.openharness/hooks");
    fs::write(hooks_in.join("guard.yaml"), BROKEN).unwrap();
    fs::write(hooks_in.join("zebra.yaml"), guard("zebra", "z-two").replace("Bash", "Read")).unwrap();
    has_errors(&daemon, 1);
    assert_eq!(word_of(&daemon, "shop"), "one");
    let mut read = event("shop");
    read["tool_name"] = json!("Read");
    assert_eq!(daemon.post("/v1/events", &read)["reason"].as_str().unwrap().trim(), "z-two");

    // It is told.
    let broken = &daemon.get("/v1/status")["broken"][0];
    assert_eq!((&broken["id"], &broken["errors"]), (&json!("shop"), &json!(1)));
    assert_eq!(broken["kept"], json!([hooks_in.join("guard.yaml")]));
    wait_until("it is counted", || metric(&daemon, "hookyard_config_last_reload_successful") == "0");
    assert_eq!(log_lines(&daemon, &["ERROR", "guard.yaml", "its former rules stay"]), 1, "{}", daemon.log());

    // Another mistake in another file does not repeat the first.
    fs::write(hooks_in.join("zebra.yaml"), BROKEN).unwrap();
    has_errors(&daemon, 2);
    assert_eq!(log_lines(&daemon, &["ERROR", "guard.yaml"]), 1);
    fs::write(hooks_in.join("zebra.yaml"), guard("zebra", "z").replace("Bash", "Read")).unwrap();
    has_errors(&daemon, 1);

    fs::write(hooks_in.join("guard.yaml"), guard("guard", "two")).unwrap();
    becomes(&daemon, "two");
    wait_until("all is well", || metric(&daemon, "hookyard_config_last_reload_successful") == "1");
    assert_eq!(daemon.get("/v1/status")["broken"], json!([]));
    assert_eq!(log_lines(&daemon, &["INFO", "guard.yaml", "no longer broken"]), 1, "{}", daemon.log());

    fs::write(hooks_in.join("guard.yaml"), "").unwrap();
    has_errors(&daemon, 1);
    assert_eq!(word_of(&daemon, "shop"), "two");
    fs::remove_file(hooks_in.join("guard.yaml")).unwrap();
    becomes(&daemon, "-");
    has_errors(&daemon, 0);
}

#[test]
fn a_file_broken_from_the_start_costs_its_hooks_only() {
    let daemon = shop(&[(GUARD, &guard("guard", "one")), ("shop/.openharness/hooks/bad.yaml", BROKEN)]);
    assert_eq!((word_of(&daemon, "shop"), errors(&daemon, "shop")), ("one".to_owned(), 1));
    assert_eq!(log_lines(&daemon, &["ERROR", "bad.yaml", "left out"]), 1, "{}", daemon.log());
    assert_eq!(metric(&daemon, "hookyard_config_last_reload_successful"), "0");
    fs::remove_file(daemon.path().join("shop/.openharness/hooks/bad.yaml")).unwrap();
    wait_until("all is well", || metric(&daemon, "hookyard_config_last_reload_successful") == "1");
    assert_eq!(errors(&daemon, "shop"), 0);
}

#[test]
fn a_workspace_stays_what_it_was_while_its_settings_are_broken() {
    const OWN: &str = "shop/.openharness/settings.yaml";
    let daemon = shop(&[
        (GUARD, &guard("guard", "one")),
        (OWN, "kind: chat\n"),
        ("shop/.claude/settings.json", &claude("claude")),
    ]);
    let own = daemon.path().join(OWN);
    assert_eq!(word_of(&daemon, "shop"), "-");
    for broken in ["kind: [\n", "kind: project\nno_such_key: 1\n"] {
        fs::write(&own, broken).unwrap();
        has_errors(&daemon, 1);
        assert_eq!(word_of(&daemon, "shop"), "-", "{broken}");
        // Registering what is there already changes nothing.
        let body = json!({ "root": daemon.path().join("shop") });
        assert_eq!(daemon.send("PUT", "/v1/workspaces/shop", Some(&body)).status, 200);
        assert_eq!(word_of(&daemon, "shop"), "-", "{broken}");
        fs::write(&own, "kind: chat\n").unwrap();
        has_errors(&daemon, 0);
    }
    fs::write(&own, "dialects: [claude]\n").unwrap();
    becomes(&daemon, "claude");
    fs::write(&own, "dialects: [openharness]\nkind: nonsense\n").unwrap();
    has_errors(&daemon, 1);
    assert_eq!(word_of(&daemon, "shop"), "claude");
    // What is taken away from a sound file meanwhile goes.
    fs::write(daemon.path().join("shop/.claude/settings.json"), "{}").unwrap();
    becomes(&daemon, "-");
    fs::remove_file(&own).unwrap();
    becomes(&daemon, "one");
}

#[test]
fn a_renamed_hook_goes_while_something_else_is_broken() {
    let daemon =
        shop(&[(GUARD, &guard("guard", "one")), ("shop/.openharness/settings.yaml", "kind: project\n")]);
    fs::write(daemon.path().join("shop/.openharness/settings.yaml"), BROKEN).unwrap();
    fs::write(daemon.path().join(GUARD), guard("watchman", "two")).unwrap();
    becomes(&daemon, "two");
    assert_eq!((errors(&daemon, "shop"), hooks(&daemon, "shop")), (1, 1));
}

#[test]
fn a_broken_file_of_the_user_keeps_its_rules_everywhere() {
    let setting = DaemonSetup::new()
        .file("home/.claude/settings.json", &claude("mine"))
        .settings("workspaces: { shop: { root: $DIR/shop }, depot: { root: $DIR/depot } }");
    fs::create_dir(setting.path().join("shop")).unwrap();
    fs::create_dir(setting.path().join("depot")).unwrap();
    let daemon = setting.serve();
    let file = daemon.path().join("home/.claude/settings.json");
    fs::write(&file, "{ \"hooks\": ").unwrap();
    for workspace in ["shop", "depot"] {
        wait_until("the mistake is noticed", || errors(&daemon, workspace) == 1);
        assert_eq!(word_of(&daemon, workspace), "mine");
    }
    fs::write(&file, claude("yours")).unwrap();
    workspace_becomes(&daemon, "shop", "yours");
    workspace_becomes(&daemon, "depot", "yours");
}

/// A hook that has an agent decide. There is no model, so every event fails, which denies it.
const ASKS: &str = "name: asks\nevents: [before_tool_dispatch]\non_error: deny\nhandler:\n  type: agent\n  agent: x\n  \
                    task: { file: prompts/task.md }\n";

const AGENT: &str = "---\nmodel_ref: m\ntools: []\n---\nYou decide.\n";

#[test]
fn a_hook_stays_while_a_file_it_refers_to_is_broken() {
    let setting = DaemonSetup::new()
        .settings("models: { m: { api: anthropic, model: m-1, key: k } }")
        .settings("workspaces: { shop: { root: $DIR/shop } }");
    let daemon = setting
        .file("shop/.openharness/hooks/asks.yaml", ASKS)
        .file("shop/.openharness/agents/x.md", AGENT)
        .file("shop/prompts/task.md", "Is this right?")
        .serve();
    let details = daemon.get("/v1/workspaces/shop");
    assert_eq!((&details["errors"], &details["hooks"]), (&json!(0), &json!(1)), "{details:#}");
    for (path, sound) in
        [("shop/.openharness/agents/x.md", AGENT), ("shop/prompts/task.md", "Is this right?")]
    {
        let file = daemon.path().join(path);
        fs::write(&file, "").unwrap();
        has_errors(&daemon, 1);
        assert_eq!(hooks(&daemon, "shop"), 1, "{path}");
        fs::write(&file, sound).unwrap();
        has_errors(&daemon, 0);
        fs::remove_file(&file).unwrap();
        has_errors(&daemon, 1);
        assert_eq!(hooks(&daemon, "shop"), 1, "{path}");
        // Also a file that is not there is awaited.
        write(&file, sound);
        has_errors(&daemon, 0);
        assert_eq!(hooks(&daemon, "shop"), 1, "{path}");
    }
}

#[test]
fn a_hook_that_moves_out_of_a_file_that_breaks_is_there_once() {
    let daemon = shop(&[(GUARD, &guard("guard", "one"))]);
    let hooks_in = daemon.path().join("shop/.openharness/hooks");
    fs::write(hooks_in.join("other.yaml"), guard("guard", "two")).unwrap();
    // Two files claim the name: the rule that was there stays.
    has_errors(&daemon, 2);
    assert_eq!((word_of(&daemon, "shop"), hooks(&daemon, "shop")), ("one".to_owned(), 1));
    fs::write(hooks_in.join("guard.yaml"), BROKEN).unwrap();
    becomes(&daemon, "two");
    assert_eq!((errors(&daemon, "shop"), hooks(&daemon, "shop")), (1, 1));
    fs::remove_file(hooks_in.join("guard.yaml")).unwrap();
    has_errors(&daemon, 0);
    assert_eq!((word_of(&daemon, "shop"), hooks(&daemon, "shop")), ("two".to_owned(), 1));
}

#[test]
fn what_takes_the_place_of_a_file_or_directory_keeps_its_rules() {
    let daemon = shop(&[(GUARD, &guard("guard", "one"))]);
    let file = daemon.path().join(GUARD);
    let directory = file.parent().unwrap().to_owned();
    let swap = |path: &Path, make: &dyn Fn()| {
        let aside = path.with_extension("aside");
        fs::rename(path, &aside).unwrap();
        make();
        has_errors(&daemon, 1);
        assert_eq!(word_of(&daemon, "shop"), "one");
        let is_directory = path.symlink_metadata().unwrap().is_dir();
        if is_directory { fs::remove_dir(path) } else { fs::remove_file(path) }.unwrap();
        fs::rename(&aside, path).unwrap();
        has_errors(&daemon, 0);
        assert_eq!(word_of(&daemon, "shop"), "one");
    };
    swap(&file, &|| fs::create_dir(&file).unwrap());
    swap(&file, &|| assert!(Command::new("mkfifo").arg(&file).status().unwrap().success()));
    swap(&file, &|| symlink("/etc/passwd", &file).unwrap());
    swap(&directory, &|| fs::write(&directory, "").unwrap());
    swap(&directory, &|| symlink("/etc", &directory).unwrap());
    fs::write(&file, guard("guard", "two")).unwrap();
    becomes(&daemon, "two");
}

#[test]
fn a_workspace_that_is_renamed_away_keeps_its_rules_until_it_is_back() {
    let daemon = shop(&[(GUARD, &guard("guard", "one")), ("home/.gemini/settings.json", "{}"), ("x/y", "")]);
    write(&daemon.path().join("home/.claude/settings.json"), &claude("mine").replace("Bash", "Read"));
    wait_until("the user's hook is there", || hooks(&daemon, "shop") == 2);
    let (root, aside) = (daemon.path().join("shop"), daemon.path().join("aside"));
    fs::rename(&root, &aside).unwrap();
    has_errors(&daemon, 1);
    assert_eq!(hooks(&daemon, "shop"), 2);
    fs::rename(&aside, &root).unwrap();
    has_errors(&daemon, 0);
    fs::write(daemon.path().join(GUARD), guard("guard", "two")).unwrap();
    becomes(&daemon, "two");
    // Another directory may come in its place.
    fs::rename(&root, &aside).unwrap();
    has_errors(&daemon, 1);
    write(&daemon.path().join(GUARD), &guard("guard", "three"));
    becomes(&daemon, "three");
    fs::write(daemon.path().join(GUARD), guard("guard", "four")).unwrap();
    becomes(&daemon, "four");
}

#[test]
fn workspaces_are_watched_as_they_come_and_no_longer_when_they_go() {
    let setting = DaemonSetup::new().settings("workspace_roots: [$DIR/projects]");
    let daemon = setting
        .file("projects/cart/.openharness/hooks/guard.yaml", &guard("guard", "one"))
        .file("depot/.openharness/hooks/guard.yaml", &guard("guard", "one"))
        .serve();
    let here = daemon.path();
    let body = json!({ "root": here.join("depot") });
    assert_eq!(daemon.send("PUT", "/v1/workspaces/depot", Some(&body)).status, 201);
    fs::write(here.join("depot/.openharness/hooks/guard.yaml"), guard("guard", "two")).unwrap();
    workspace_becomes(&daemon, "depot", "two");
    assert_eq!(daemon.send("DELETE", "/v1/workspaces/depot", None).status, 204);

    // One that an event brings.
    let mut inside = event("");
    inside.as_object_mut().unwrap().remove("workspace_id");
    inside["cwd"] = json!(here.join("projects/cart"));
    let word = || daemon.post("/v1/events", &inside)["reason"].as_str().unwrap_or("-").trim().to_owned();
    assert_eq!(word(), "one");
    fs::write(here.join("projects/cart/.openharness/hooks/guard.yaml"), guard("guard", "two")).unwrap();
    wait_until("the change counts", || word() == "two");

    assert!(watched_files(&daemon) > 0);
    let id = daemon.get("/v1/workspaces")[0]["id"].as_str().unwrap().replace('/', "%2F");
    assert_eq!(daemon.send("DELETE", &format!("/v1/workspaces/{id}"), None).status, 204);
    wait_until("nothing is watched", || watched_files(&daemon) == 0);
}

/// How many files and directories the kernel watches for the daemon.
fn watched_files(daemon: &Daemon) -> usize {
    let fds = fs::read_dir(format!("/proc/{}/fdinfo", daemon.pid())).unwrap();
    let all = fds.filter_map(|fd| fs::read_to_string(fd.ok()?.path()).ok());
    all.map(|text| text.lines().filter(|line| line.starts_with("inotify ")).count()).sum()
}

#[test]
fn watching_can_be_off() {
    let setting = DaemonSetup::new().settings("watch: false\nworkspaces: { shop: { root: $DIR/shop } }");
    let daemon = setting.file(GUARD, &guard("guard", "one")).serve();
    assert_eq!(daemon.get("/v1/status")["watch"], "off");
    fs::write(daemon.path().join(GUARD), guard("guard", "two")).unwrap();
    assert_eq!(watched_files(&daemon), 0, "nothing can tell it of a change");
    assert_eq!(word_of(&daemon, "shop"), "one");
    assert_eq!(daemon.send("POST", "/v1/reload", None).status, 200);
    assert_eq!(word_of(&daemon, "shop"), "two");
}

#[test]
fn a_storm_of_changes_is_read_once_a_second() {
    let daemon = shop(&[(GUARD, &guard("guard", "one"))]);
    settles(&daemon);
    let (before, start) = (version(&daemon, "shop"), Instant::now());
    let (file, over) = (daemon.path().join(GUARD), AtomicBool::new(false));
    let slowest = thread::scope(|scope| {
        let storm = scope.spawn(|| {
            let start = Instant::now();
            for number in 0..1_000_u32 {
                fs::write(&file, guard("guard", &format!("w{number}"))).unwrap();
                let due = start + Duration::from_millis(10) * number;
                thread::sleep(due.saturating_duration_since(Instant::now()));
            }
            fs::write(&file, guard("guard", "last")).unwrap();
            over.store(true, Ordering::Release);
        });
        let mut slowest = Duration::ZERO;
        while !over.load(Ordering::Acquire) {
            let start = Instant::now();
            assert_ne!(word_of(&daemon, "shop"), "-");
            slowest = slowest.max(start.elapsed());
        }
        storm.join().unwrap();
        slowest
    });
    becomes(&daemon, "last");
    let reloads = version(&daemon, "shop") - before;
    let seconds = start.elapsed().as_secs();
    // On a machine under load the storm has pauses in which it seems to be over.
    assert!((seconds / 3..=2 * seconds + 5).contains(&reloads), "{reloads} reloads in {seconds} s");
    assert!(slowest < LONGEST_WAIT / 2, "an event waited {slowest:?}");
}

#[test]
fn a_thousand_workspaces_are_watched() {
    const COUNT: usize = 1_000;
    let mut setting = DaemonSetup::new().settings("limits: { workspaces: 2000 }\nworkspaces:");
    for number in 0..COUNT {
        let root = format!("many/w{number:04}");
        setting = setting
            .file(&format!("{root}/.openharness/hooks/guard.yaml"), &guard("guard", "one"))
            .settings(&format!("  w{number:04}: {{ root: $DIR/{root} }}"));
    }
    let daemon = setting.serve();
    for number in [0, 500, 999] {
        let file = format!("many/w{number:04}/.openharness/hooks/guard.yaml");
        fs::write(daemon.path().join(file), guard("guard", "two")).unwrap();
        workspace_becomes(&daemon, &format!("w{number:04}"), "two");
    }
    assert_eq!(daemon.get("/v1/status")["watch"], "on");
    // The user's own hooks are those of all of them.
    write(&daemon.path().join("home/.claude/settings.json"), &claude("mine").replace("Bash", "Read"));
    for number in 0..COUNT {
        wait_until("all of them have it", || hooks(&daemon, &format!("w{number:04}")) == 2);
    }
}

#[test]
fn hooks_are_reloaded_under_load_without_a_lost_or_wrongly_decided_event() {
    const SWAPS: usize = 40;
    let daemon = shop(&[(GUARD, &guard("guard", "A"))]);
    settles(&daemon);
    let file: PathBuf = daemon.path().join(GUARD);
    let (over, answered) = (AtomicBool::new(false), AtomicUsize::new(0));
    let told = thread::scope(|scope| {
        let senders: Vec<_> = (0..3)
            .map(|_| {
                scope.spawn(|| {
                    let mut told = Vec::new();
                    while !over.load(Ordering::Acquire) {
                        told.push(word_of(&daemon, "shop"));
                        answered.fetch_add(1, Ordering::Relaxed);
                    }
                    told
                })
            })
            .collect();
        for swap in 0..SWAPS {
            let word = if swap % 2 == 0 { "B" } else { "A" };
            if swap % 5 == 4 {
                let version = version(&daemon, "shop");
                fs::write(&file, BROKEN).unwrap();
                wait_until("the mistake is read", || self::version(&daemon, "shop") > version);
                assert_eq!(errors(&daemon, "shop"), 1);
            }
            fs::write(&file, guard("guard", word)).unwrap();
            let before = answered.load(Ordering::Relaxed);
            becomes(&daemon, word);
            wait_until("events are answered", || answered.load(Ordering::Relaxed) > before);
        }
        over.store(true, Ordering::Release);
        senders.into_iter().flat_map(|sender| sender.join().unwrap()).collect::<Vec<_>>()
    });
    let strange: Vec<_> = told.iter().filter(|word| !["A", "B"].contains(&word.as_str())).collect();
    assert!(strange.is_empty(), "{strange:?}");
    assert!(["A", "B"].iter().all(|word| told.iter().any(|told| told == word)));
    assert!(told.len() > 2 * SWAPS, "{} answers", told.len());
    assert_eq!(word_of(&daemon, "shop"), "A");
}
