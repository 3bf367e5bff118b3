//! Trust: what a workspace runs is what a person has agreed to, and its absence counts as it did then.

mod copies;
mod in_place;
mod places;
mod reach;
mod variables;

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use assert_cmd::cargo::cargo_bin_cmd;
use serde_json::{Value, json};
use tempfile::TempDir;

/// A directory with a workspace, a home and the state of hookyard.
struct Place(TempDir);

/// What one run of the program did.
#[derive(Debug)]
struct Done {
    code: i32,
    out: String,
    err: String,
}

const GUARD: &str = "name: guard\nevents: [before_tool_dispatch]\nmatcher: ^Bash$\non_error: deny\nhandler:\n  type: command\n  command: sh .openharness/hooks/scripts/guard.sh\n";

/// A script that leaves a trace and blocks.
const SCRIPT: &str = ". \"$(dirname \"$0\")/lib.sh\"\nran\necho not on my watch >&2\nexit 2\n";

impl Place {
    fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        place.write("home/file", "");
        place.write("shop/.openharness/hooks/guard.yaml", GUARD);
        place.write("shop/.openharness/hooks/scripts/guard.sh", SCRIPT);
        place.write("shop/.openharness/hooks/scripts/lib.sh", "ran() { echo \"$0\" >> ran; }\n");
        place
    }

    fn path(&self, path: &str) -> std::path::PathBuf {
        self.0.path().canonicalize().unwrap().join(path)
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn run_with(&self, arguments: &[&str], input: &str, variables: &[(&str, &str)]) -> Done {
        let mut command = cargo_bin_cmd!("hookyard");
        command.current_dir(self.path("shop")).env_remove("HOOKYARD_LOG");
        command.env("HOOKYARD_TEST_HOME", self.path("home")).envs(variables.iter().copied());
        let output = command.args(arguments).write_stdin(input).output().unwrap();
        Done {
            code: output.status.code().unwrap(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    fn run(&self, arguments: &[&str]) -> Done {
        self.run_with(arguments, "", &[])
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let done = self.run(arguments);
        serde_json::from_str(&done.out).unwrap_or_else(|error| panic!("{error}: {done:?}"))
    }

    fn fire_with(&self, tool: &str, arguments: &[&str]) -> Value {
        let event = json!({ "event": "before_tool_dispatch", "session_id": "s", "run_id": "r", "tool_name": tool,
                            "tool_input": { "command": "ls" } });
        let all = [&["fire", "--json", "--event", "-"], arguments].concat();
        let done = self.run_with(&all, &event.to_string(), &[]);
        serde_json::from_str(&done.out).unwrap_or_else(|error| panic!("{error}: {done:?}"))
    }

    fn fire(&self) -> Value {
        self.fire_with("Bash", &[])
    }

    /// Agrees to everything, as a script does.
    fn trust(&self, more: &[&str]) {
        let digest = self.json(&[&["trust", "--json"], more].concat())["digest"].as_str().unwrap().to_owned();
        let done = self.run(&[&["trust", "--yes", &digest], more].concat());
        assert_eq!(done.code, 0, "{done:?}");
    }

    /// The state of the only hook.
    fn state(&self) -> String {
        let hooks = self.json(&["list", "--json"]);
        // While the record cannot be used, a block of all events is there too.
        let hooks: Vec<_> =
            hooks.as_array().unwrap().iter().filter(|hook| hook["name"] != "trust-record").collect();
        assert_eq!(hooks.len(), 1, "{hooks:?}");
        hooks[0]["trust"].as_str().unwrap().to_owned()
    }

    fn has_run(&self) -> bool {
        self.path("shop/ran").exists()
    }
}

fn ended(outcome: &Value) -> (&str, &str) {
    (outcome["verdict"].as_str().unwrap(), outcome["hooks"][0]["ended"].as_str().unwrap())
}

#[test]
fn nothing_of_a_workspace_runs_before_a_person_has_agreed() {
    let place = Place::new();
    assert_eq!(place.state(), "untrusted");
    let checked = place.run(&["check"]);
    assert!(
        checked.out.contains("nobody has agreed to it") && checked.out.contains("hookyard trust"),
        "{checked:?}"
    );
    // The policy of its own file can only make it stricter.
    assert_eq!(ended(&place.fire()), ("block", "untrusted"));
    place.write("shop/.openharness/hooks/guard.yaml", &GUARD.replace("on_error: deny\n", ""));
    assert_eq!(ended(&place.fire()), ("proceed", "untrusted"));
    assert!(!place.has_run());
    assert_eq!(ended(&place.fire_with("Bash", &["--trust-workspace"])), ("block", "completed"));
    assert!(place.has_run());
}

/// What somebody does to the files of a workspace.
type Change<'a> = &'a dyn Fn(&Place);

#[test]
fn only_what_was_shown_is_agreed_to_and_never_by_a_hook() {
    let place = Place::new();
    let digest = place.json(&["trust", "--json"])["digest"].as_str().unwrap().to_owned();
    place.write("shop/.openharness/hooks/scripts/guard.sh", "exit 0\n");
    let refused = place.run(&["trust", "--yes", &digest]);
    assert!(refused.code == 1 && refused.err.contains("the digest is"), "{refused:?}");
    let refused = place.run_with(&["trust"], "", &[("HOOKYARD_HOOK", "1")]);
    assert!(refused.code == 1 && refused.err.contains("a hook cannot trust hooks"), "{refused:?}");
    assert_eq!(place.state(), "untrusted");
    let off = place.run_with(&["check"], "", &[("HOOKYARD_TRUST", "off")]);
    assert!(off.code == 1 && off.out.contains("cannot be set by an environment variable"), "{off:?}");
    let inside = format!("state_directory={}", place.path("shop/state").display());
    let inside = place.run(&["check", "--set", &inside]);
    assert!(inside.out.contains("inside the workspace"), "{inside:?}");
}

#[test]
fn agreeing_that_a_hook_is_gone_is_an_agreement_of_its_own() {
    let place = Place::new();
    let digest = |place: &Place| place.json(&["trust", "--json"])["digest"].as_str().unwrap().to_owned();
    let empty = Place::new();
    fs::remove_file(empty.path("shop/.openharness/hooks/guard.yaml")).unwrap();
    place.trust(&[]);
    place.write("shop/.openharness/hooks/guard.yaml", "name: [");
    assert!(place.run(&["trust"]).out.contains("has errors"));
    fs::remove_file(place.path("shop/.openharness/hooks/guard.yaml")).unwrap();
    assert_ne!(digest(&place), digest(&empty));
    assert_eq!(place.run(&["trust", "--yes", &digest(&empty)]).code, 1);
    assert_eq!(ended(&place.fire()), ("block", "untrusted"));
}

#[test]
fn trust_can_be_taken_back() {
    let place = Place::new();
    place.trust(&[]);
    assert_eq!(place.run(&["trust", "--list"]).out, "trusted    guard\n");
    assert_eq!(place.run(&["trust", "--revoke", "nobody"]).code, 1);
    assert_eq!(place.run(&["trust", "--revoke", "guard"]).code, 0);
    assert_eq!(place.state(), "untrusted");
    place.trust(&[]);
    fs::remove_file(place.path("shop/.openharness/hooks/guard.yaml")).unwrap();
    assert_eq!(place.state(), "missing");
    let revoked = place.run(&["trust", "--revoke"]);
    assert_eq!(revoked.code, 0, "{revoked:?}");
    assert_eq!(place.json(&["list", "--json"]), json!([]));
}

#[test]
fn hooks_of_the_user_need_no_trust_unless_the_home_was_moved_into_the_workspace() {
    let place = Place::new();
    fs::remove_dir_all(place.path("shop/.openharness/hooks")).unwrap();
    let settings =
        json!({ "hooks": { "PreToolUse": [{ "hooks": [{ "type": "command", "command": "true" }] }] } });
    place.write("home/.claude/settings.json", &settings.to_string());
    place.write("shop/evil/.claude/settings.json", &settings.to_string());
    assert_eq!(place.state(), "managed");
    let moved = place.path("shop/evil").display().to_string();
    let listed = place.run_with(&["list", "--json"], "", &[("HOOKYARD_TEST_HOME", &moved)]);
    assert!(
        listed.out.contains(r#""trust":"untrusted""#) || listed.out.contains(r#""trust": "untrusted""#),
        "{listed:?}"
    );
}

#[test]
fn no_command_starts_or_asks_anything_of_an_untrusted_workspace() {
    let place = Place::new();
    let worker = "name: guard\nevents: [before_tool_dispatch]\nhandler:\n  type: command\n  mode: worker\n  command: sh .openharness/hooks/scripts/guard.sh\n  environment: { KEY: '${env.PATH}' }\n";
    place.write("shop/.openharness/hooks/guard.yaml", worker);
    place.write("event.json", r#"{"event":"before_tool_dispatch","session_id":"s","run_id":"r","tool_name":"Bash","tool_input":{}}"#);
    let event = place.path("event.json").display().to_string();
    for arguments in [
        &["check"][..],
        &["list"],
        &["explain", "--event", &event],
        &["fire", "--event", &event],
        &["replay", &event],
        &["tune", "--events", &event],
        &["convert", "--from", "openharness", "--to", "claude"],
        &["trust"],
        &["new", "other"],
    ] {
        place.run(arguments);
        assert!(!place.has_run(), "{arguments:?}");
    }
    let shown = place.run(&["trust"]).out;
    assert!(shown.contains("environment: PATH"), "{shown}");
}
