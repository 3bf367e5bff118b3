//! `hookyard outbox list|retry|drop` as a person and a script use it.
#![allow(clippy::disallowed_methods, reason = "the program is run as a person runs it")]

use std::{
    fs,
    process::{Command, Output},
};

use serde_json::{Value, json};

use crate::support::daemon::{Daemon, DaemonSetup, read, write};
use crate::support::python::python;
use crate::support::wait::wait_until;

/// A hook that writes to a terminal what it should not, and fails until there is the file `open`.
const FAILING: &str = r"name: report
events: [run_failed]
handler:
  type: command
  command: |
    test -e $DIR/open || { printf '\033[31mthe server says\007 no\r\nand again no' >&2; exit 7; }
";

/// A run whose name turns text around on a terminal.
const HOSTILE: &str = "run-\u{202e}evil";

fn setup() -> DaemonSetup {
    let setup = DaemonSetup::new().settings("workspaces: { shop: { root: $DIR/shop } }\ndata: $DIR/data");
    let hook = FAILING.replace("$DIR", setup.path().to_str().unwrap());
    setup.file("shop/.openharness/hooks/report.yaml", &hook)
}

fn send(daemon: &Daemon, run: &str) {
    let event = json!({ "event": "run_failed", "session_id": "s", "run_id": run, "workspace_id": "shop", "wait": false });
    daemon.post("/v1/events", &event);
}

fn events(daemon: &Daemon) -> Vec<Value> {
    daemon.get("/v1/outbox")["events"].as_array().unwrap().clone()
}

/// A daemon with an event that waits, and another one of a hostile name.
fn with_two_events() -> Daemon {
    let daemon = setup().serve();
    for run in ["nightly", HOSTILE] {
        send(&daemon, run);
    }
    wait_until("both wait for another try", || {
        let events = events(&daemon);
        events.len() == 2
            && events.iter().all(|event| event["state"] == "waiting" && event["deliveries"] == 3)
    });
    daemon
}

fn hookyard(daemon: &Daemon, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hookyard"));
    command.arg("outbox").args(arguments).env("HOOKYARD_TEST_HOME", daemon.path().join("home"));
    command.env("HOOKYARD_LISTEN_SOCKET", daemon.socket()).env_remove("HOOKYARD_LISTEN_CONTROL_SOCKET");
    command
}

fn outbox(daemon: &Daemon, arguments: &[&str]) -> Output {
    hookyard(daemon, arguments).output().unwrap()
}

/// What the program printed, and its exit code.
fn printed(output: &Output) -> (&str, &str, i32) {
    let text = |bytes| std::str::from_utf8(bytes).unwrap();
    (text(&output.stdout), text(&output.stderr), output.status.code().unwrap())
}

fn json_of(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

/// What a terminal of so many columns shows.
fn on_terminal(daemon: &Daemon, columns: u16, arguments: &[&str]) -> String {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/terminal.py");
    let mut words = python().split(' ');
    let output = Command::new(words.next().unwrap())
        .args(words)
        .args([script, &columns.to_string(), "", "", env!("CARGO_BIN_EXE_hookyard"), "outbox"])
        .args(arguments)
        .env("HOOKYARD_TEST_HOME", daemon.path().join("home"))
        .env("HOOKYARD_LISTEN_SOCKET", daemon.socket())
        .env("TERM", "xterm")
        .env("NO_COLOR", "1")
        .output()
        .unwrap();
    let session = json_of(&output);
    assert_eq!(session["code"], 0, "{session}");
    session["seen"].as_str().unwrap().replace("\r\n", "\n")
}

#[test]
fn a_terminal_of_any_width_shows_each_event_with_its_last_error() {
    let daemon = with_two_events();
    for columns in [60, 80, 140] {
        let seen = on_terminal(&daemon, columns, &["list"]);
        for line in seen.lines() {
            let width = line.chars().count();
            assert!(width <= usize::from(columns), "{width} columns of {columns}: {line:?}\n{seen}");
        }
        for word in ["waiting", "run_failed", "shop", "nightly", "run-\\u{202e}evil", "exit code 7"] {
            assert!(seen.contains(word), "{word} is not in {columns} columns:\n{seen}");
        }
        assert!(!seen.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{seen:?}");
    }
    daemon.finish();
}

#[test]
fn a_pipe_gets_a_line_for_each_event_and_json_if_asked() {
    let daemon = with_two_events();
    let output = outbox(&daemon, &["list"]);
    let (text, notes, code) = printed(&output);
    assert_eq!((text.lines().count(), notes, code), (4, "", 0), "{text}");
    assert!(text.lines().nth(2).unwrap().trim_start().starts_with("1 "), "{text}");
    assert!(!text.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{text:?}");
    let listed = json_of(&outbox(&daemon, &["list", "--json"]));
    assert_eq!((&listed["events"][0]["id"], &listed["left_out"]), (&json!(1), &json!(0)), "{listed}");
    assert_eq!(listed["events"][1]["run_id"], HOSTILE, "a program gets it as it is");
    let limited = outbox(&daemon, &["list", "--limit", "1"]);
    assert_eq!(printed(&limited).1, "and 1 more; `--limit` shows them\n");
    assert_eq!(
        printed(&outbox(&daemon, &["list", "--state", "dead"])),
        ("", "there are no dead letters\n", 0)
    );
    let dead = json_of(&outbox(&daemon, &["list", "--state", "dead", "--json"]));
    assert_eq!(dead, json!({ "events": [], "left_out": 0 }));
    daemon.finish();
}

#[test]
fn events_are_tried_again_and_dropped_by_their_ids() {
    let daemon = with_two_events();
    let unknown = outbox(&daemon, &["drop", "1", "99", "98"]);
    assert_eq!(printed(&unknown), ("1 event dropped\n", "unknown or under way: 98, 99\n", 1));
    assert_eq!(events(&daemon).len(), 1);
    let none = outbox(&daemon, &["retry", "1"]);
    assert_eq!(printed(&none), ("no event tried again\n", "unknown or under way: 1\n", 1));
    let repeated = outbox(&daemon, &["retry", "2", "2", "--json"]);
    assert_eq!((json_of(&repeated), repeated.status.code()), (json!({ "ids": [2], "missing": [] }), Some(0)));
    write(&daemon.path().join("open"), "");
    wait_until("the hook fails or has ended", || {
        outbox(&daemon, &["retry", "2"]).status.success() || events(&daemon).is_empty()
    });
    wait_until("the outbox is empty", || events(&daemon).is_empty());
    assert_eq!(printed(&outbox(&daemon, &["list"])), ("", "the outbox is empty\n", 0));
    daemon.finish();
}

#[test]
fn all_means_all_dead_letters_and_nothing_else() {
    let setup = setup().settings("state_directory: $DIR/state").enforces_trust();
    let file = setup.path().join("shop/.openharness/hooks/report.yaml");
    let daemon = setup.serve();
    crate::trust::agree(&daemon);
    read(&daemon.send("POST", "/v1/reload", None));
    for run in ["one", "two", "three"] {
        send(&daemon, run);
    }
    wait_until("all were tried", || events(&daemon).iter().all(|event| event["state"] == "waiting"));
    // From now on nobody has agreed to the hook.
    let text = fs::read_to_string(&file).unwrap();
    write(&file, &text.replace("exit 7", "exit 8"));
    read(&daemon.send("POST", "/v1/reload", None));
    assert_eq!(printed(&outbox(&daemon, &["retry", "1", "2"])).2, 0);
    let dead = || json_of(&outbox(&daemon, &["list", "--state", "dead", "--json"]))["events"].clone();
    wait_until("two are dead letters", || dead().as_array().unwrap().len() >= 2);
    wait_until("the third is too", || dead().as_array().unwrap().len() == 3);
    let seen = on_terminal(&daemon, 140, &["list", "--state", "dead"]);
    assert!(seen.contains("not trusted") && seen.contains("dead"), "{seen}");
    assert_eq!(printed(&outbox(&daemon, &["drop", "--all"])), ("3 dead letters dropped\n", "", 0));
    assert_eq!(printed(&outbox(&daemon, &["drop", "--all"])), ("no dead letter dropped\n", "", 0));
    assert_eq!(json_of(&outbox(&daemon, &["retry", "--all", "--json"])), json!({ "ids": [], "missing": [] }));
    daemon.finish();
}

#[test]
fn what_cannot_be_done_is_an_error_that_says_what_to_do() {
    let daemon = setup().serve();
    for (arguments, word) in [
        (&["retry"] as &[&str], "<ID>"),
        (&["drop", "1", "--all"], "--all"),
        (&["drop", "first"], "first"),
        (&["list", "--state", "gone"], "under_way, waiting, dead"),
        (&["list", "--limit", "0"], "--limit"),
    ] {
        let output = outbox(&daemon, arguments);
        let (text, notes, code) = printed(&output);
        assert_eq!((text, code), ("", 2), "{arguments:?}: {notes}");
        assert!(notes.contains(word), "{arguments:?}: {notes}");
    }
    // The event socket lists, and changes nothing.
    let mut without_rights = hookyard(&daemon, &["drop", "--all", "--control-socket"]);
    let refused = without_rights.arg(daemon.socket()).output().unwrap();
    let (text, notes, code) = printed(&refused);
    assert_eq!((text, code), ("", 1), "{notes}");
    assert!(notes.contains("needs the right to control it") && notes.contains("control socket"), "{notes}");
    let memory_only = DaemonSetup::new().settings("data: null").serve();
    let none = outbox(&memory_only, &["list"]);
    assert_eq!(printed(&none).2, 1);
    assert!(printed(&none).1.contains("set `data` to a directory"), "{none:?}");
    memory_only.finish();
    let mut gone = hookyard(&daemon, &["list"]);
    gone.env("HOOKYARD_LISTEN_SOCKET", daemon.path().join("gone.sock"));
    daemon.finish();
    let down = gone.output().unwrap();
    assert_eq!(printed(&down).2, 1);
    assert!(printed(&down).1.contains("start it with `hookyard serve`"), "{down:?}");
}
