//! Trust: what a workspace runs is what a person has agreed to, and its absence counts as it did then.

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

#[test]
fn what_was_agreed_to_runs_from_a_private_copy() {
    let place = Place::new();
    let shown = place.run(&["trust"]);
    assert_eq!(shown.code, 1, "{shown:?}");
    for text in ["guard.sh", "lib.sh", "runs from a private copy", "sh .openharness/hooks/scripts/guard.sh"] {
        assert!(shown.out.contains(text), "{text}: {}", shown.out);
    }
    let command = shown.err.lines().find_map(|line| line.strip_prefix("to agree: hookyard ")).unwrap();
    let agreed = place.run(&command.split(' ').collect::<Vec<_>>());
    assert_eq!(agreed.code, 0, "{agreed:?}");
    assert_eq!(place.state(), "trusted");
    let outcome = place.fire();
    assert_eq!(ended(&outcome), ("block", "completed"));
    assert_eq!(outcome["reason"], "not on my watch");
    let ran = fs::read_to_string(place.path("shop/ran")).unwrap();
    assert!(Path::new(ran.trim()).starts_with(place.path("home/.local/state/hookyard/trees")), "{ran}");
    assert_eq!(place.run(&["trust"]).code, 0);
}

#[test]
fn the_private_copy_can_be_read_in_a_sandbox() {
    let place = Place::new();
    place.trust(&[]);
    let outcome = place.fire_with("Bash", &["--set", "sandbox.project.filesystem=read_only"]);
    assert_eq!(ended(&outcome), ("block", "completed"));
    assert!(outcome["reason"].as_str().unwrap().contains("not on my watch"), "{outcome}");
}

/// What somebody does to the files of a workspace.
type Change<'a> = &'a dyn Fn(&Place);

#[test]
fn a_guard_that_is_modified_or_gone_counts_as_it_was_agreed_to() {
    let changes: [(&str, Change<'_>); 7] = [
        ("modified", &|place| place.write("shop/.openharness/hooks/scripts/guard.sh", "exit 0\n")),
        ("modified", &|place| place.write("shop/.openharness/hooks/scripts/lib.sh", "ran() { :; }\n")),
        ("modified", &|place| {
            let milder = GUARD.replace("deny", "ignore").replace("^Bash$", "^Nothing$");
            place.write("shop/.openharness/hooks/guard.yaml", &milder);
        }),
        ("modified", &|place| place.write("shop/.openharness/hooks/guard.yaml", "name: guard\nevents: [")),
        ("missing", &|place| fs::remove_file(place.path("shop/.openharness/hooks/guard.yaml")).unwrap()),
        ("missing", &|place| {
            fs::remove_dir_all(place.path("shop/.openharness")).unwrap();
            place.write("shop/.claude/settings.json", "{}");
        }),
        ("missing", &|place| fs::remove_dir_all(place.path("shop/.openharness")).unwrap()),
    ];
    for (number, (state, change)) in changes.into_iter().enumerate() {
        let place = Place::new();
        place.trust(&[]);
        change(&place);
        assert_eq!(place.state(), state, "change {number}");
        let outcome = place.fire();
        assert_eq!(ended(&outcome), ("block", "untrusted"), "change {number}: {outcome}");
        assert!(!place.has_run());
        assert_eq!(place.run(&["check"]).code, 1, "change {number}");
        assert_eq!(
            place.fire_with("Read", &[])["verdict"],
            "proceed",
            "its matcher decides: change {number}"
        );
    }
}

#[test]
fn a_hook_that_was_no_guard_fails_open_with_a_note() {
    let place = Place::new();
    place.write("shop/.openharness/hooks/guard.yaml", &GUARD.replace("on_error: deny\n", ""));
    place.trust(&[]);
    place.write("shop/.openharness/hooks/scripts/guard.sh", "exit 0\n");
    let outcome = place.fire();
    assert_eq!(ended(&outcome), ("proceed", "untrusted"));
    let note = outcome["notes"][0]["text"].as_str().unwrap();
    assert!(note.contains("`guard` did not run") && note.contains("scripts/guard.sh"), "{note}");
}

#[test]
fn a_damaged_copy_or_record_is_not_used() {
    let place = Place::new();
    place.trust(&[]);
    let state = place.path("home/.local/state/hookyard");
    let copy = fs::read_dir(state.join("trees")).unwrap().next().unwrap().unwrap().path();
    let script = copy.join(".openharness/hooks/scripts/guard.sh");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o700)).unwrap();
    fs::write(&script, "exit 0\n").unwrap();
    assert_eq!(ended(&place.fire()), ("block", "untrusted"));
    fs::write(state.join("trust.json"), "{").unwrap();
    assert_eq!(place.state(), "untrusted");
    let checked = place.run(&["check"]);
    assert!(checked.code == 1 && checked.out.contains("it is damaged"), "{checked:?}");
    let digest = "0".repeat(64);
    assert_eq!(place.run(&["trust", "--yes", &digest]).code, 1);
    assert_eq!(fs::read_to_string(state.join("trust.json")).unwrap(), "{");
    fs::remove_file(place.path("shop/.openharness/hooks/guard.yaml")).unwrap();
    let checked = place.run(&["check"]);
    assert!(
        checked.code == 1 && checked.out.contains("it is damaged"),
        "nobody knows what is missing: {checked:?}"
    );
}

#[test]
fn however_its_path_is_written_a_workspace_is_the_same() {
    let place = Place::new();
    place.trust(&[]);
    let shop = place.path("shop").to_str().unwrap().to_owned();
    let parent = place.path("").to_str().unwrap().to_owned();
    std::os::unix::fs::symlink("shop", place.path("link")).unwrap();
    for path in [
        format!("{shop}/"),
        format!("{shop}//."),
        format!("{parent}/.//shop"),
        format!("{shop}/../shop/"),
        format!("{parent}/link/"),
        ".".to_owned(),
        "./".to_owned(),
        "../link/../shop/".to_owned(),
    ] {
        // In the settings, a path is absolute.
        let declared =
            path.starts_with('/').then(|| format!("workspaces: {{ front: {{ root: '{path}' }} }}\n"));
        for settings in [String::new()].into_iter().chain(declared) {
            place.write("settings.yaml", &settings);
            let config = place.path("settings.yaml");
            let arguments = ["--workspace", &path, "--config", config.to_str().unwrap()];
            let outcome = place.fire_with("Bash", &arguments);
            assert_eq!(ended(&outcome), ("block", "completed"), "{path}, {settings}: {outcome}");
        }
    }
}

#[test]
fn a_link_in_the_place_of_a_workspace_is_an_error_of_every_command_until_trust_is_taken_back() {
    let place = Place::new();
    place.trust(&[]);
    let own = GUARD.replace("name: guard", "name: own").replace("on_error: deny\n", "");
    place.write("other/.openharness/hooks/own.yaml", &own);
    fs::rename(place.path("shop"), place.path("moved")).unwrap();
    std::os::unix::fs::symlink("other", place.path("shop")).unwrap();
    let shop = place.path("shop").to_str().unwrap().to_owned();
    let place_is = |arguments: &[&str]| place.run(&[arguments, &["--workspace", &shop]].concat());
    let checked = place_is(&["check"]);
    assert_eq!(checked.code, 1, "{checked:?}");
    for text in ["error[replaced]", "the trusted hook `guard` does not run", "--revoke"] {
        assert!(checked.out.contains(text), "{text}: {checked:?}");
    }
    let outcome = place.fire_with("Bash", &["--workspace", &shop]);
    let untrusted: Vec<_> = outcome["hooks"].as_array().unwrap().iter().map(|hook| &hook["hook"]).collect();
    assert_eq!((&outcome["verdict"], untrusted.len()), (&json!("block"), 2), "{outcome}");
    let listed = place_is(&["list"]);
    assert!(listed.out.contains("missing"), "{listed:?}");
    let shown = place_is(&["trust", "--list"]);
    assert!(shown.code == 1 && shown.out.starts_with("missing"), "{shown:?}");
    assert_eq!(place_is(&["trust", "--revoke"]).code, 0);
    let checked = place_is(&["check"]);
    assert!(checked.code == 0 && checked.out.contains("nobody has agreed to it"), "{checked:?}");
}

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
fn no_variable_moves_the_guards_of_the_user_or_the_record_of_trust_out_of_sight() {
    let place = Place::new();
    let hooks = json!([{ "hooks": [{ "type": "command", "command": "exit 2" }] }]);
    place.write("home/.claude/settings.json", &json!({ "hooks": { "PreToolUse": hooks } }).to_string());
    place.trust(&[]);
    fs::remove_file(place.path("shop/.openharness/hooks/guard.yaml")).unwrap();
    place.write("elsewhere/file", "");
    let elsewhere = place.path("elsewhere").display().to_string();
    let event =
        json!({ "event": "before_tool_dispatch", "session_id": "s", "run_id": "r", "tool_name": "Bash" });
    for name in ["HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME"] {
        let listed = place.run_with(&["list", "--json"], "", &[(name, &elsewhere)]);
        let hooks: Value = serde_json::from_str(&listed.out).unwrap();
        let states: Vec<_> = hooks.as_array().unwrap().iter().map(|hook| &hook["trust"]).collect();
        assert_eq!(states, ["managed", "missing"], "{name}");
        let fire = ["fire", "--json", "--event", "-"];
        let done = place.run_with(&fire, &event.to_string(), &[(name, &elsewhere)]);
        let outcome: Value = serde_json::from_str(&done.out).unwrap();
        assert_eq!(outcome["verdict"], "block", "{name}: {done:?}");
    }
}

#[test]
fn a_hook_that_was_trusted_in_place_stays_in_place_until_its_trust_is_taken_back() {
    let place = Place::new();
    place.trust(&["--in-place"]);
    assert_eq!(place.run(&["trust", "--list"]).out, "trusted    guard\n");
    assert_eq!(place.run(&["trust"]).code, 0);
    place.write("shop/.openharness/hooks/scripts/lib.sh", "ran() { :; }\n");
    let shown = place.run(&["trust"]);
    assert!(shown.code == 1 && shown.out.contains("runs in the workspace"), "{shown:?}");
    place.run(&["trust", "--revoke"]);
    assert!(place.run(&["trust"]).out.contains("runs from a private copy"));
}

#[test]
fn in_place_everything_that_an_interpreter_opens_beside_a_script_counts() {
    const SCRIPTS: &str = "shop/.openharness/hooks/scripts";
    let changes: [(&str, Change<'_>); 9] = [
        ("modified", &|place| place.write(&format!("{SCRIPTS}/json.py"), "")),
        ("modified", &|place| place.write(&format!("{SCRIPTS}/__pycache__/lib.cpython-311.pyc"), "other")),
        ("modified", &|place| place.write(&format!("{SCRIPTS}/other.pyc"), "")),
        ("modified", &|place| place.write("shop/common/lib.py", "other")),
        ("modified", &|place| place.write(&format!("{SCRIPTS}/cache/__init__.py"), "")),
        ("modified", &|place| {
            std::os::unix::fs::symlink("/usr/lib", place.path(&format!("{SCRIPTS}/json"))).unwrap();
        }),
        ("modified", &|place| {
            std::os::unix::fs::symlink("..", place.path(&format!("{SCRIPTS}/up"))).unwrap();
        }),
        ("trusted", &|place| place.write("shop/.openharness/state/count.json", "2")),
        ("trusted", &|place| place.write("shop/.openharness/guard.log", "2")),
    ];
    for (number, (state, change)) in changes.into_iter().enumerate() {
        let place = Place::new();
        place.write(&format!("{SCRIPTS}/__pycache__/lib.cpython-311.pyc"), "code");
        place.write("shop/.openharness/state/count.json", "1");
        place.write("shop/common/lib.py", "");
        std::os::unix::fs::symlink("../../../common", place.path(&format!("{SCRIPTS}/common"))).unwrap();
        place.trust(&["--in-place"]);
        assert_eq!(place.state(), "trusted");
        change(&place);
        assert_eq!(place.state(), state, "change {number}");
    }
}

#[test]
fn in_place_a_python_script_can_import_everything_beside_it() {
    let place = Place::new();
    place.write(
        "shop/.openharness/hooks/guard.yaml",
        &GUARD.replace("sh .openharness/hooks/scripts/guard.sh", "python3 tools/guard.py"),
    );
    place.write("shop/tools/guard.py", "import lib, sys\nsys.exit(lib.code)\n");
    place.write("shop/tools/lib.py", "code = 2\n");
    place.write("shop/tools/README.md", "");
    place.trust(&["--in-place"]);
    assert_eq!(ended(&place.fire()), ("block", "completed"));
    assert!(!place.path("shop/tools/__pycache__").exists());
    place.write("shop/tools/README.md", "changed");
    assert_eq!(place.state(), "trusted");
    place.write("shop/tools/selectors.py", "");
    assert_eq!(place.state(), "modified");
}

#[test]
fn links_that_lead_in_circles_or_out_are_refused_in_place_and_left_out_of_a_copy() {
    for target in ["/usr/lib", "..", "../../.."] {
        let place = Place::new();
        let link = place.path("shop/.openharness/hooks/scripts/linked");
        std::os::unix::fs::symlink(target, link).unwrap();
        let shown = place.run(&["trust", "--in-place"]).out;
        assert!(shown.contains("cannot be trusted: ") && shown.contains("linked` is a link"), "{shown}");
        place.trust(&[]);
        assert_eq!(ended(&place.fire()), ("block", "completed"), "{target}");
    }
}

#[test]
fn what_a_hook_gets_is_shown_however_it_is_spelt() {
    let place = Place::new();
    let guard = r#"{"name": "guard", "events": ["before_tool_dispatch"], "handler": {"type": "command",
        "command": "true", "environment": {"A": "$\u007benv.NOT_SET}", "B": "\u0024{secrets.k}"}}}"#;
    place.write("shop/.openharness/hooks/guard.yaml", guard);
    let hook = json!({ "type": "http", "url": "https://guard.example/", "headers": { "X-Key": "$FIRST ${SECOND} $THIRD" },
                       "allowedEnvVars": ["FIRST", "SECOND"] });
    let settings = json!({ "hooks": { "PreToolUse": [{ "hooks": [hook] }] } });
    place.write("shop/.claude/settings.json", &settings.to_string());
    let shown = place.run(&["trust"]).out;
    for line in ["  environment: NOT_SET\n", "  secrets: k\n", "  environment: FIRST, SECOND\n"] {
        assert!(shown.contains(line), "{line:?}: {shown}");
    }
}

#[test]
fn nothing_that_a_hook_refers_to_is_looked_up_before_somebody_has_agreed_to_it() {
    let place = Place::new();
    let secrets = place.path("home/secrets");
    fs::create_dir(&secrets).unwrap();
    let guard = GUARD.replace("sh .openharness/hooks/scripts/guard.sh", "'test \"$KEY\" = value && exit 2'");
    place.write(
        "shop/.openharness/hooks/guard.yaml",
        &format!("{guard}  environment: {{ KEY: '${{secrets.key}}' }}\n"),
    );
    let settings = format!("secrets.dir={}", secrets.display());
    let with = ["--set", settings.as_str()];
    // There is no such secret, and nobody has looked.
    let checked = place.run(&[&["check"], &with[..]].concat());
    assert!(checked.code == 0 && !checked.out.contains("secret `key`"), "{checked:?}");
    assert_eq!(place.state(), "untrusted");
    place.trust(&with);
    let checked = place.run(&[&["check"], &with[..]].concat());
    assert!(checked.code == 1 && checked.out.contains("secret `key` not found"), "{checked:?}");
    assert_eq!(ended(&place.fire_with("Bash", &with)), ("block", "untrusted"));
    place.write("home/secrets/key", "value\n");
    fs::set_permissions(secrets.join("key"), fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(place.run(&[&["check"], &with[..]].concat()).code, 0);
    assert_eq!(ended(&place.fire_with("Bash", &with)), ("block", "completed"));
}

#[test]
fn a_file_of_the_workspace_is_none_of_the_users_whatever_variables_say() {
    let place = Place::new();
    let settings = r#"{"hooks":{"PreToolUse":[{"hooks":[{"type":"command","command":"touch ran"}]}]}}"#;
    place.write("shop/evil/.claude/settings.json", settings);
    let event =
        json!({ "event": "before_tool_dispatch", "session_id": "s", "run_id": "r", "tool_name": "Bash" });
    for home in ["/proc/self/cwd/evil", "evil/../evil"] {
        let home = [("HOOKYARD_TEST_HOME", home)];
        place.run_with(&["fire", "--json", "--event", "-"], &event.to_string(), &home);
        assert!(!place.has_run(), "{home:?}");
    }
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
fn scripts_of_agents_settings_are_copied_with_their_directory() {
    let place = Place::new();
    fs::remove_dir_all(place.path("shop/.openharness/hooks")).unwrap();
    let command = "sh \"$CLAUDE_PROJECT_DIR\"/.claude/hooks/guard.sh";
    let hooks = json!([{ "matcher": "Bash", "hooks": [{ "type": "command", "command": command }] }]);
    place.write("shop/.claude/settings.json", &json!({ "hooks": { "PreToolUse": hooks } }).to_string());
    place.write("shop/.claude/hooks/guard.sh", SCRIPT);
    place.write("shop/.claude/hooks/lib.sh", "ran() { echo \"$0\" >> ran; }\n");
    place.trust(&[]);
    assert_eq!(ended(&place.fire()), ("block", "completed"));
    assert!(fs::read_to_string(place.path("shop/ran")).unwrap().contains("/state/hookyard/trees/"));
    place.write("shop/.claude/hooks/lib.sh", "ran() { exit 0; }\n");
    assert_eq!(place.state(), "modified");
}

#[test]
fn what_a_command_reaches_outside_is_shown_and_in_place_is_agreed_to_by_name() {
    let place = Place::new();
    place.write("shop/.openharness/hooks/scripts/guard.sh", "echo \"$0\" >> ran; exit 2\n");
    place.write(
        "shop/.openharness/hooks/lint.yaml",
        "name: lint\nevents: [run_completed]\nhandler: { type: command, command: npm run lint }\n",
    );
    let shown = place.run(&["trust"]).out;
    assert!(
        shown.contains("not covered by this trust: `npm` runs what files of the workspace say"),
        "{shown}"
    );
    place.trust(&["--in-place"]);
    assert_eq!(ended(&place.fire()), ("block", "completed"));
    assert_eq!(fs::read_to_string(place.path("shop/ran")).unwrap(), ".openharness/hooks/scripts/guard.sh\n");
    place.write("shop/.openharness/hooks/scripts/guard.sh", "exit 0\n");
    assert_eq!(ended(&place.fire()), ("block", "untrusted"));
}

#[test]
fn a_command_that_reaches_a_script_in_another_way_is_trusted_in_part() {
    for command in [
        "X=src/a.sh; sh $X",
        "bash -lc 'sh src/a.sh'",
        "timeout 5 sh -c 'sh src/a.sh'",
        "BASH_ENV=src/a.sh bash .openharness/hooks/scripts/guard.sh",
        "sh /proc/self/cwd/src/a.sh",
        "sh linked/../a.sh",
    ] {
        let place = Place::new();
        let guard = json!({ "type": "command", "command": command });
        let hook = json!({ "name": "guard", "events": ["before_tool_dispatch"], "handler": guard });
        place.write("shop/.openharness/hooks/guard.yaml", &hook.to_string());
        place.write("shop/src/a.sh", "exit 2\n");
        place.write("shop/src/sub/b.sh", "");
        std::os::unix::fs::symlink("src/sub", place.path("shop/linked")).unwrap();
        let shown = place.run(&["trust"]).out;
        assert!(shown.contains("  not covered by this trust: "), "{command}: {shown}");
        place.trust(&[]);
        let listed = place.json(&["list", "--json"]);
        assert_eq!(listed[0]["trust"], "trusted");
        assert!(listed[0]["not_covered"][0].is_string(), "{command}: {listed}");
        assert!(place.run(&["list"]).out.contains("trusted, in part"), "{command}");
        let checked = place.run(&["check"]);
        assert!(checked.code == 0 && checked.out.contains("does not cover all of it"), "{checked:?}");
        let record = fs::read_to_string(place.path("home/.local/state/hookyard/trust.json")).unwrap();
        let record: Value = serde_json::from_str(&record).unwrap();
        assert_eq!(record["records"][0]["record"]["outside"], listed[0]["not_covered"]);
    }
}

#[test]
fn a_program_that_links_out_of_the_workspace_is_trusted_by_name() {
    let place = Place::new();
    let command = ".venv/bin/python .openharness/hooks/scripts/guard.py";
    place.write(
        "shop/.openharness/hooks/guard.yaml",
        &GUARD.replace("sh .openharness/hooks/scripts/guard.sh", command),
    );
    place.write("shop/.openharness/hooks/scripts/guard.py", "import sys\nsys.exit(2)\n");
    fs::create_dir_all(place.path("shop/.venv/bin")).unwrap();
    std::os::unix::fs::symlink("/bin/sh", place.path("shop/.venv/bin/python")).unwrap();
    let shown = place.run(&["trust"]).out;
    assert!(shown.contains("`.venv/bin/python` is a link to `"), "{shown}");
    place.trust(&[]);
    assert_eq!(place.state(), "trusted");
    let script = place.json(&["list", "--json"])[0]["command"].as_str().unwrap().to_owned();
    assert!(script.starts_with(".venv/bin/python '") && script.contains("/hookyard/trees/"), "{script}");
    fs::remove_file(place.path("shop/.venv/bin/python")).unwrap();
    std::os::unix::fs::symlink("/bin/cat", place.path("shop/.venv/bin/python")).unwrap();
    assert_eq!(place.state(), "modified");
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

#[test]
fn no_variable_that_a_project_sets_says_what_the_account_is_or_leads_hooks_into_the_project() {
    let place = Place::new();
    let handler = json!({
        "type": "command",
        "command": "env > ../environment.txt; exit 2",
        "environment": { "OF_HOME": "${env.HOME}", "OF_USER": "${env.USER}", "OF_PATH": "${env.PATH}" },
    });
    let hook = json!({ "name": "guard", "events": ["before_tool_dispatch"], "handler": handler });
    place.write("shop/.openharness/hooks/guard.yaml", &hook.to_string());
    for path in ["shop/bin/file", "shop/tmp/file"] {
        place.write(path, "");
    }
    place.trust(&[]);
    let inside = |path: &str| place.path("shop").join(path).display().to_string();
    let path = format!("{}:{}", inside("bin"), std::env::var("PATH").unwrap());
    let event = json!({ "event": "before_tool_dispatch", "session_id": "s", "run_id": "r", "tool_name": "Bash",
                        "tool_input": {} });
    let (shop, tmp) = (inside(""), inside("tmp"));
    let variables = [
        ("HOME", &*shop),
        ("USER", "mallory"),
        ("LOGNAME", "mallory"),
        ("SHELL", &shop),
        ("TMPDIR", &tmp),
        ("LANG", &tmp),
        ("LC_ALL", &tmp),
        ("TZ", &tmp),
        ("PATH", &path),
    ];
    let done = place.run_with(&["fire", "--json", "--event", "-"], &event.to_string(), &variables);
    let outcome: Value = serde_json::from_str(&done.out).unwrap();
    assert_eq!(ended(&outcome), ("block", "completed"), "{done:?}");
    let environment = fs::read_to_string(place.path("environment.txt")).unwrap();
    let value = |name: &str| environment.lines().find_map(|line| line.strip_prefix(&format!("{name}=")));
    let home = place.path("home").display().to_string();
    assert_eq!((value("HOME"), value("OF_HOME")), (Some(&*home), Some(&*home)), "{environment}");
    assert_eq!(value("USER"), value("OF_USER"));
    assert_eq!(value("USER"), value("LOGNAME"));
    for name in ["USER", "LOGNAME", "SHELL", "OF_PATH", "PATH", "TMPDIR", "LANG", "LC_ALL", "TZ"] {
        let value = value(name).unwrap_or_default();
        assert!(!value.contains("mallory") && !value.contains(&shop), "{name}: {environment}");
    }
}
