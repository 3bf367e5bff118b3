//! The question of `trust` and `new` to a person, on a terminal.
#![allow(clippy::disallowed_methods, reason = "the program is run as a person runs it")]

use std::{fs, path::PathBuf, process::Command};

use serde_json::Value;
use tempfile::TempDir;

use crate::support::python::python;

const GUARD: &str = "name: guard\nevents: [before_tool_dispatch]\non_error: deny\nhandler:\n  type: command\n  command: sh .openharness/scripts/guard.sh && npm run a-rather-long-name-of-a-script\n";

/// A home, and a workspace with a hook that nobody has agreed to.
struct Place(TempDir);

/// What was on the terminal.
#[derive(Debug)]
struct Session {
    seen: String,
    code: i64,
}

impl Place {
    fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        let files = [
            (".openharness/hooks/guard.yaml", GUARD),
            (".openharness/scripts/guard.sh", "exit 2\n"),
            (".openharness/scripts/a-file-with-a-long-name.sh", ""),
            (".openharness/scripts/another-file-with-a-long-name.sh", ""),
        ];
        fs::create_dir(place.path("home")).unwrap();
        for (path, text) in files {
            let path = place.path("shop").join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        place
    }

    fn path(&self, path: &str) -> PathBuf {
        self.0.path().canonicalize().unwrap().join(path)
    }

    /// Runs the program on a terminal of so many columns, and types the answer to the question.
    fn on_terminal(&self, columns: u16, prompt: &str, answer: &str, arguments: &[&str]) -> Session {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/terminal.py");
        let mut words = python().split(' ');
        let output = Command::new(words.next().unwrap())
            .args(words)
            .args([script, &columns.to_string(), prompt, answer, env!("CARGO_BIN_EXE_hookyard")])
            .args(arguments)
            .current_dir(self.path("shop"))
            .env("HOOKYARD_TEST_HOME", self.path("home"))
            .env("TERM", "xterm")
            .env_remove("NO_COLOR")
            .output()
            .unwrap();
        let session: Value =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"));
        let seen = session["seen"].as_str().unwrap().replace("\r\n", "\n");
        assert_eq!(session["asked"], true, "{seen}");
        Session { seen, code: session["code"].as_i64().unwrap() }
    }

    fn trust(&self, answer: &str) -> Session {
        self.on_terminal(80, "[y/N] ", answer, &["trust"])
    }

    /// The states of the hooks, as a program sees them.
    fn states(&self) -> String {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hookyard"));
        command.args(["trust", "--list"]).current_dir(self.path("shop"));
        let output = command.env("HOOKYARD_TEST_HOME", self.path("home")).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    }
}

#[test]
fn a_person_who_says_yes_has_agreed() {
    for answer in [r"y\n", r"YES\n", r" yes \n"] {
        let place = Place::new();
        let session = place.trust(answer);
        assert_eq!(session.code, 0, "{session:?}");
        assert!(session.seen.contains("Trust exactly this? [y/N] "), "{session:?}");
        assert!(session.seen.ends_with("1 hook trusted\n"), "{session:?}");
        assert_eq!(place.states(), "trusted    guard\n");
    }
}

#[test]
fn every_other_answer_changes_nothing() {
    // A line, an empty line, the end of the input with and without a line, and Ctrl-C.
    for (answer, code) in
        [(r"n\n", 1), (r"\n", 1), (r"yess\n", 1), (r"\x04", 1), (r"no\x04\x04", 1), (r"\x03", -2)]
    {
        let place = Place::new();
        let session = place.trust(answer);
        assert_eq!(session.code, code, "{answer}: {session:?}");
        assert_eq!(session.seen.contains("nothing was changed"), code == 1, "{answer}: {session:?}");
        assert_eq!(place.states(), "untrusted  guard\n", "{answer}");
        assert!(!place.path("home/.local").exists(), "{answer}");
    }
}

#[test]
fn what_is_agreed_to_fits_the_terminal() {
    for columns in [60, 80, 140] {
        let place = Place::new();
        let session = place.on_terminal(columns, "[y/N] ", r"n\n", &["trust"]);
        for line in session.seen.lines() {
            // The definition is shown as it is, and a path is a word of its own.
            let is_definition = line.starts_with("    ") && line.contains(':');
            let length = line.replace("\x1b[1m", "").replace("\x1b[0m", "").chars().count();
            let is_one_word =
                !line.trim().contains(' ') || line.starts_with("workspace ") || line.starts_with("digest ");
            assert!(is_definition || is_one_word || length <= usize::from(columns), "{columns}: {line:?}");
        }
        assert!(session.seen.contains("not covered by this trust:"), "{session:?}");
    }
}

#[test]
fn what_new_writes_on_a_terminal_is_trusted_unless_other_hooks_wait() {
    let place = Place::new();
    let asked = place.on_terminal(80, "", "", &["new", "other"]);
    assert_eq!(asked.code, 0, "{asked:?}");
    assert!(asked.seen.contains("hookyard trust\n"), "{asked:?}");
    assert_eq!(place.states(), "untrusted  guard\nuntrusted  other\n");
    assert_eq!(place.trust(r"y\n").code, 0);
    let given = place.on_terminal(80, "", "", &["new", "third"]);
    assert_eq!(given.code, 0, "{given:?}");
    assert!(!given.seen.contains("hookyard trust"), "{given:?}");
    // The new hook's script lies in the directory that all hooks share.
    assert!(place.states().contains("trusted    third\n"), "{}", place.states());
}
