//! A start that finds a file with hooks broken uses the rules that it last had, or blocks what they guarded.
#![allow(clippy::disallowed_methods, reason = "commands are run as a person runs them")]

mod records;
mod users;
mod workspaces;

use std::{
    ffi::OsStr,
    fs,
    os::unix::{
        ffi::OsStrExt,
        fs::{MetadataExt, PermissionsExt, chown, symlink},
    },
    path::{Path, PathBuf},
    process::{Command, Output},
};

use rustix::process::{Signal, geteuid};
use serde_json::{Value, json};

use crate::support::{
    daemon::{Daemon, DaemonSetup},
    wait::wait_until,
};

const GUARD: &str = "shop/.openharness/hooks/guard.yaml";

/// Not YAML.
const BROKEN: &str = "name: [guard\n";

/// A hook that blocks `Bash` with a word.
fn guard(name: &str, word: &str) -> String {
    format!(
        "name: {name}\nevents: [before_tool_dispatch]\nmatcher: ^Bash$\nhandler:\n  type: command\n  \
         command: 'echo {word} >&2; exit 2'\n"
    )
}

/// A settings file of Claude Code with such a hook.
fn claude(word: &str) -> String {
    let hook = json!({ "type": "command", "command": format!("echo {word} >&2; exit 2") });
    json!({ "hooks": { "PreToolUse": [{ "matcher": "Bash", "hooks": [hook] }] } }).to_string()
}

fn shop() -> DaemonSetup {
    DaemonSetup::new()
        .settings("workspaces: { shop: { root: $DIR/shop } }")
        .settings("data: $DIR/data")
        .file("shop/README", "")
}

/// What an event of the shop is blocked with; `-` if it is not.
fn word(daemon: &Daemon, tool: &str) -> String {
    let event = json!({ "event": "before_tool_dispatch", "session_id": "s", "run_id": "r", "workspace_id": "shop",
                        "tool_name": tool, "tool_input": { "command": "ls" } });
    let outcome = daemon.post("/v1/events", &event);
    match outcome["verdict"].as_str() {
        Some("block") => outcome["reason"].as_str().unwrap_or_default().trim().to_owned(),
        _ => "-".to_owned(),
    }
}

/// Kills the daemon at once, has the files changed, and prepares another in its place.
fn killed(mut daemon: Daemon, change: impl FnOnce(&Path)) -> DaemonSetup {
    daemon.signal(Signal::KILL);
    daemon.wait();
    change(&daemon.path());
    daemon.again()
}

/// The number of broken files with kept, denied and unknown rules.
fn broken_files(daemon: &Daemon) -> [String; 3] {
    let metrics = String::from_utf8(daemon.send("GET", "/metrics", None).body).unwrap();
    ["kept", "denied", "unknown"].map(|rules| {
        let series = format!("hookyard_broken_files{{rules=\"{rules}\"}} ");
        let line = metrics.lines().find_map(|line| line.strip_prefix(&series));
        line.unwrap_or_else(|| panic!("{series}\n{metrics}")).to_owned()
    })
}

/// The only record of last good rules in the data directory.
fn record(directory: &Path) -> PathBuf {
    let records = fs::read_dir(directory.join("data/rules")).unwrap();
    let records: Vec<PathBuf> = records.map(|entry| entry.unwrap().path()).collect();
    let [record] = records.as_slice() else { panic!("{records:?}") };
    record.clone()
}

/// Runs a command as the daemon's user does.
fn run(daemon: &Daemon, arguments: &[&str]) -> Output {
    let here = daemon.path();
    let output = Command::new(env!("CARGO_BIN_EXE_hookyard"))
        .args(arguments)
        .args(["--workspace", here.join("shop").to_str().unwrap()])
        .args(["--config", here.join("hookyard.yaml").to_str().unwrap()])
        .env("HOOKYARD_TEST_HOME", here.join("home"))
        .current_dir(&here)
        .output();
    output.unwrap()
}

/// What `check` says about last good rules.
fn checked(daemon: &Daemon) -> Vec<String> {
    let output = run(daemon, &["check", "--json"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{report}");
    let remarks =
        report["diagnostics"].as_array().unwrap().iter().filter(|remark| remark["code"] == "last-good");
    remarks.map(|remark| remark["message"].as_str().unwrap().to_owned()).collect()
}

/// What `fire` says of an event, as `word` does, and the hooks that `explain` says would run.
fn fired(daemon: &Daemon, tool: &str) -> (String, Value) {
    let event = json!({ "event": "before_tool_dispatch", "session_id": "s", "run_id": "r",
                        "tool_name": tool, "tool_input": { "command": "ls" } });
    let file = daemon.path().join("event.json");
    fs::write(&file, event.to_string()).unwrap();
    let file = file.to_str().unwrap();
    let answer = run(daemon, &["fire", "--json", "--set", "trust=off", "--event", file]);
    let outcome: Value =
        serde_json::from_slice(&answer.stdout).unwrap_or_else(|error| panic!("{error}: {answer:?}"));
    let selected = run(daemon, &["explain", "--json", "--set", "trust=off", "--event", file]);
    let explained: Value = serde_json::from_slice(&selected.stdout).unwrap();
    let word = match outcome["verdict"].as_str() {
        Some("block") => outcome["reason"].as_str().unwrap_or_default().trim().to_owned(),
        _ => "-".to_owned(),
    };
    (word, explained["stages"].clone())
}

#[test]
fn commands_judge_with_the_last_good_rules_as_a_daemon_does_after_a_start() {
    for policy in ["keep", "deny"] {
        let setup = shop().settings(&format!("broken: {policy}")).file(GUARD, &guard("guard", "no"));
        let daemon = killed(setup.serve(), |here| fs::write(here.join(GUARD), BROKEN).unwrap()).serve();
        let before = fs::read(record(&daemon.path())).unwrap();
        for (tool, stages) in [("Bash", json!([["guard"]])), ("Read", json!([]))] {
            let judged = word(&daemon, tool);
            assert_eq!(judged == "-", tool == "Read", "{policy}: {judged}");
            assert_eq!(fired(&daemon, tool), (judged, stages), "{policy}, {tool}");
        }
        assert_eq!(fs::read(record(&daemon.path())).unwrap(), before, "{policy}");
        daemon.finish();
    }
}

#[test]
fn a_start_with_a_broken_file_uses_the_rules_that_it_last_had() {
    let daemon = shop().file(GUARD, &guard("guard", "no")).serve();
    assert_eq!(
        (word(&daemon, "Bash"), broken_files(&daemon)),
        ("no".into(), ["0", "0", "0"].map(Into::into))
    );
    let kept = record(&daemon.path());
    let found = kept.metadata().unwrap();
    assert_eq!((found.mode() & 0o777, found.uid()), (0o600, geteuid().as_raw()));
    let since =
        serde_json::from_slice::<Value>(&fs::read(&kept).unwrap()).unwrap()["files"][0]["since"].clone();
    let daemon = killed(daemon, |here| fs::write(here.join(GUARD), BROKEN).unwrap()).serve();
    assert_eq!((word(&daemon, "Bash"), word(&daemon, "Read")), ("no".into(), "-".into()));

    // It is told everywhere.
    let status = daemon.get("/v1/status");
    let [broken] = status["broken"].as_array().unwrap().as_slice() else { panic!("{status}") };
    let file = daemon.path().join(GUARD);
    assert_eq!((&broken["errors"], &broken["kept"]), (&json!(1), &json!([file])));
    let [known] = broken["last_good"].as_array().unwrap().as_slice() else { panic!("{broken}") };
    assert_eq!((&known["file"], &known["policy"], &known["since"]), (&json!(file), &json!("keep"), &since));
    let sha256 = known["sha256"].as_str().unwrap();
    assert_eq!(sha256.len(), 64);
    assert_eq!(broken_files(&daemon), ["1", "0", "0"]);
    let log = daemon.log();
    assert!(log.contains("its last good rules stay") && log.contains(sha256), "{log}");
    let [remark] = checked(&daemon).try_into().unwrap();
    assert!(remark.contains("its last good rules stay") && remark.contains(&sha256[..12]), "{remark}");
    let shown = Command::new(env!("CARGO_BIN_EXE_hookyard"))
        .args(["status", "--socket", daemon.socket().to_str().unwrap()])
        .output()
        .unwrap();
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.contains(&format!("keeps its last good rules ({}", &sha256[..12])), "{shown}");

    // Again and again, and until it is mended.
    let daemon = killed(daemon, |_| {}).serve();
    assert_eq!(word(&daemon, "Bash"), "no");
    fs::write(daemon.path().join(GUARD), guard("guard", "never")).unwrap();
    wait_until("the new rule is there", || word(&daemon, "Bash") == "never");
    wait_until("nothing is broken", || {
        daemon.get("/v1/status")["broken"] == json!([]) && broken_files(&daemon) == ["0", "0", "0"]
    });
    let daemon = killed(daemon, |here| fs::write(here.join(GUARD), BROKEN).unwrap()).serve();
    assert_eq!(word(&daemon, "Bash"), "never");
    daemon.finish();
}

#[test]
fn whatever_breaks_a_file_its_rules_stay_and_what_is_deleted_goes() {
    let mut daemon = shop().file(GUARD, &guard("guard", "no")).serve();
    let rest = "#".repeat(300 << 10);
    let texts = ["", "name: guard\n", "\u{0}", &guard("guard", "no").replace("events", "evnts"), &rest];
    for text in texts {
        daemon = killed(daemon, |here| fs::write(here.join(GUARD), text).unwrap()).serve();
        assert_eq!(word(&daemon, "Bash"), "no", "{text:.20}");
    }
    daemon = killed(daemon, |here| {
        fs::remove_file(here.join(GUARD)).unwrap();
        fs::create_dir(here.join(GUARD)).unwrap();
    })
    .serve();
    assert_eq!(word(&daemon, "Bash"), "no", "a directory");
    // The directory of the files is something else now.
    daemon = killed(daemon, |here| {
        fs::remove_dir_all(here.join("shop/.openharness")).unwrap();
        fs::write(here.join("shop/.openharness"), "").unwrap();
    })
    .serve();
    assert_eq!(word(&daemon, "Bash"), "no", "a file in the place of the directory");
    let daemon = killed(daemon, |here| fs::remove_file(here.join("shop/.openharness")).unwrap()).serve();
    assert_eq!((word(&daemon, "Bash"), broken_files(&daemon)), ("-".into(), ["0", "0", "0"].map(Into::into)));
    let daemon = killed(daemon, |here| {
        fs::create_dir_all(here.join("shop/.openharness/hooks")).unwrap();
        fs::write(here.join(GUARD), BROKEN).unwrap();
    })
    .serve();
    assert_eq!((word(&daemon, "Bash"), broken_files(&daemon)), ("-".into(), ["0", "0", "1"].map(Into::into)));
    daemon.finish();
}

#[test]
fn settings_files_of_agents_of_every_level_keep_theirs() {
    let files = [
        "shop/.claude/settings.json",
        "home/.claude/settings.json",
        "system/claude-code/managed-settings.json",
    ];
    for file in files {
        let setup = shop().settings("system_directory: $DIR/system").file(file, &claude("no"));
        let daemon = setup.serve();
        assert_eq!(word(&daemon, "Bash"), "no", "{file}");
        let daemon = killed(daemon, |here| fs::write(here.join(file), "{ \"hooks\": ").unwrap()).serve();
        assert_eq!(word(&daemon, "Bash"), "no", "{file}");
        assert_eq!(broken_files(&daemon), ["1", "0", "0"], "{file}");
        let daemon = killed(daemon, |here| fs::remove_file(here.join(file)).unwrap()).serve();
        assert_eq!(word(&daemon, "Bash"), "-", "{file}");
        daemon.finish();
    }
}

#[test]
fn with_deny_the_events_of_former_rules_are_blocked_at_a_start_and_at_a_reload() {
    let observer =
        "name: observer\nevents: [after_tool_dispatch]\nhandler: { type: command, command: 'true' }\n";
    let daemon = shop()
        .settings("broken: deny")
        .file(GUARD, &guard("guard", "no"))
        .file("shop/.openharness/hooks/observer.yaml", observer)
        .serve();
    let denied = "hook `guard` failed: its file is broken, and the setting `broken` is `deny`; \
                  run `hookyard check` (on_error: deny)";
    let is_denied = |daemon: &Daemon| {
        assert_eq!((word(daemon, "Bash").as_str(), word(daemon, "Read").as_str()), (denied, "-"));
        assert_eq!(daemon.get("/v1/status")["broken"][0]["last_good"][0]["policy"], "deny");
        assert_eq!(broken_files(daemon), ["0", "1", "0"]);
    };
    fs::write(daemon.path().join(GUARD), BROKEN).unwrap();
    wait_until("the mistake is noticed", || word(&daemon, "Bash") == denied);
    is_denied(&daemon);
    assert!(daemon.log().contains("the events of its last good rules are blocked"), "{}", daemon.log());
    let daemon = killed(daemon, |_| {}).serve();
    is_denied(&daemon);
    assert_eq!(daemon.send("POST", "/v1/reload", None).status, 200);
    is_denied(&daemon);
    let [remark] = checked(&daemon).try_into().unwrap();
    assert!(remark.contains("the events of its last good rules are blocked"), "{remark}");
    fs::write(daemon.path().join(GUARD), guard("guard", "no")).unwrap();
    wait_until("it is mended", || word(&daemon, "Bash") == "no");
    daemon.finish();
}

#[test]
fn without_a_data_directory_nothing_outlives_the_daemon() {
    let daemon = DaemonSetup::new()
        .settings("workspaces: { shop: { root: $DIR/shop } }")
        .settings("data: null")
        .file(GUARD, &guard("guard", "no"))
        .serve();
    fs::write(daemon.path().join(GUARD), BROKEN).unwrap();
    wait_until("the mistake is noticed", || broken_files(&daemon) == ["1", "0", "0"]);
    assert_eq!(word(&daemon, "Bash"), "no");
    assert_eq!(daemon.get("/v1/status")["broken"][0]["last_good"][0]["sha256"].as_str().unwrap().len(), 64);
    let daemon = killed(daemon, |_| {}).serve();
    assert_eq!((word(&daemon, "Bash"), broken_files(&daemon)), ("-".into(), ["0", "0", "1"].map(Into::into)));
    assert!(checked(&daemon).is_empty());
    daemon.finish();
}

/// Whoever agreed to a guard agreed to that content: a record gives no content a right that it has not.
#[test]
fn former_rules_run_only_as_a_person_has_agreed_to_them() {
    let guarded = |word: &str| guard("guard", word).replace("handler:", "on_error: deny\nhandler:");
    let setup = shop().settings("state_directory: $DIR/state").enforces_trust();
    let daemon = setup.file(GUARD, &guarded("no")).serve();
    let ended = |daemon: &Daemon| word(daemon, "Bash");
    assert!(ended(&daemon).contains("nobody has agreed to it"), "{}", ended(&daemon));
    let restarted = |daemon: Daemon, text: &str| {
        killed(daemon, |here| fs::write(here.join(GUARD), text).unwrap()).enforces_trust().serve()
    };
    // Nobody has agreed to the former rule either.
    let daemon = restarted(daemon, BROKEN);
    assert!(ended(&daemon).contains("nobody has agreed to it"), "{}", ended(&daemon));
    let daemon = restarted(daemon, &guarded("no"));
    let shown: Value = serde_json::from_slice(&run(&daemon, &["trust", "--json"]).stdout).unwrap();
    assert!(run(&daemon, &["trust", "--yes", shown["digest"].as_str().unwrap()]).status.success());
    wait_until("it is trusted", || ended(&daemon) == "no");
    let daemon = restarted(daemon, BROKEN);
    assert_eq!(ended(&daemon), "no");
    // Somebody changes the rule, which loads, and then breaks it: what was agreed to is not what is kept.
    let daemon = restarted(daemon, &guarded("changed").replace("^Bash$", "^Nothing$"));
    assert!(ended(&daemon).contains("has changed since it was trusted"), "{}", ended(&daemon));
    let daemon = restarted(daemon, BROKEN);
    assert!(ended(&daemon).contains("has changed since it was trusted"), "{}", ended(&daemon));
    // As it was agreed to, then taken back.
    let daemon = restarted(daemon, &guarded("no"));
    assert_eq!(ended(&daemon), "no");
    assert!(run(&daemon, &["trust", "--revoke", "guard"]).status.success());
    let daemon = restarted(daemon, BROKEN);
    assert!(ended(&daemon).contains("nobody has agreed to it"), "{}", ended(&daemon));
    daemon.finish();
}

const OF_USER: &str = "home/.claude/settings.json";

/// What an event of a directory is blocked with; `-` if it is not.
fn word_in(daemon: &Daemon, directory: &str) -> String {
    let event = json!({ "event": "before_tool_dispatch", "session_id": "s", "run_id": "r",
                        "cwd": daemon.path().join(directory), "tool_name": "Bash", "tool_input": {} });
    let outcome = daemon.post("/v1/events", &event);
    outcome["reason"].as_str().unwrap_or("-").trim().to_owned()
}
