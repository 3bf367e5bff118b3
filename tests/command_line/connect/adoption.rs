//! `connect --adopt`: the hooks of an agent are moved under hookyard and back.

use std::fs::{self, File};

use assert_cmd::cargo::cargo_bin_cmd;
use serde_json::{Value, json};

use super::{
    Home, json_of,
    sessions::{ran_in, shop},
};
use crate::support::{daemon::Daemon, wait::wait_until};

const SETTINGS: &str = r#"// mine
{
  "theme": "dark", // not light
  "hooks": {
    "enabled": true,
    /* both guard */
    "BeforeTool": [
      { "matcher": "write_file", "hooks": [{ "type": "command", "command": "first.sh", "timeout": 900 }] }, // the first
      { "hooks": [{ "name": "second", "type": "command", "command": "second.sh" }] }
    ],
    "SessionStart": [{ "hooks": [{ "type": "command", "command": "start.sh" }] }]
  }
}
"#;

const ADOPTED: &str = ".gemini/settings.hookyard.json";

/// The settings without their comments.
fn plain(text: &str) -> Value {
    let lines = text.lines().map(|line| line.split("//").next().unwrap());
    let text: String = lines.map(|line| line.replace("/* both guard */", "")).collect();
    serde_json::from_str(&text).unwrap()
}

#[test]
fn hooks_are_moved_with_their_comments_and_come_back_to_the_byte() {
    let home = Home::new();
    let file = home.write(".gemini/settings.json", SETTINGS);
    let shown = home.run(&["connect", "gemini", "--adopt", "--dry-run"]);
    assert!(shown.out.contains("settings.hookyard.json") && shown.out.contains("first.sh"), "{shown:?}");
    assert_eq!(fs::read_to_string(&file).unwrap(), SETTINGS);
    let done = home.run(&["connect", "gemini", "--adopt"]);
    assert!(done.out.contains("3 hooks of Gemini CLI, which hookyard runs now"), "{done:?}");
    let after = fs::read_to_string(&file).unwrap();
    for command in ["first.sh", "second.sh", "start.sh"] {
        assert!(!after.contains(command), "{after}");
    }
    for kept in ["// mine", "// not light", "\"enabled\": true", " --adopted "] {
        assert!(after.contains(kept), "{kept}: {after}");
    }
    let moved = fs::read_to_string(home.path(ADOPTED)).unwrap();
    assert!(moved.contains("/* both guard */") && moved.contains("// the first"), "{moved}");
    let mut expected = plain(SETTINGS)["hooks"].clone();
    expected.as_object_mut().unwrap().remove("enabled");
    assert_eq!(plain(&moved), json!({ "hooks": expected }));
    // Twice, and without the flag, changes nothing.
    for again in [&["connect", "gemini", "--adopt"][..], &["connect", "gemini"]] {
        assert!(home.run(again).out.contains("as before"));
        assert_eq!(fs::read_to_string(&file).unwrap(), after);
        assert_eq!(fs::read_to_string(home.path(ADOPTED)).unwrap(), moved);
    }
    let back = home.run(&["disconnect", "gemini"]);
    assert_eq!(back.code, Some(0), "{back:?}");
    assert_eq!(fs::read_to_string(&file).unwrap(), SETTINGS);
    assert!(!home.path(ADOPTED).exists());
    assert_eq!(home.state(), [home.path(".local/state/hookyard/connections.json")]);
}

#[test]
fn hooks_of_files_that_were_changed_since_come_back_in_front() {
    let home = Home::new();
    let file = home.write(".gemini/settings.json", SETTINGS);
    home.run(&["connect", "gemini"]);
    home.run(&["connect", "gemini", "--adopt"]);
    let moved = fs::read_to_string(home.path(ADOPTED)).unwrap();
    fs::write(home.path(ADOPTED), moved.replace("second.sh", "better.sh")).unwrap();
    let changed = fs::read_to_string(&file).unwrap().replacen(
        "\"BeforeTool\": [",
        "\"BeforeTool\": [{ \"hooks\": [{ \"type\": \"command\", \"command\": \"new.sh\" }] }, ",
        1,
    );
    fs::write(&file, changed.replace("\"dark\"", "\"light\"")).unwrap();
    // Another entry must not forget what was moved.
    home.run(&["connect", "gemini", "--event", "AfterModel"]);
    let done = home.run(&["disconnect", "gemini"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.contains("// not light") && !text.contains(" relay "), "{text}");
    let now = plain(&text);
    let mut expected = plain(&SETTINGS.replace("second.sh", "better.sh").replace("\"dark\"", "\"light\""));
    let new = json!({ "hooks": [{ "type": "command", "command": "new.sh" }] });
    expected["hooks"]["BeforeTool"].as_array_mut().unwrap().push(new);
    assert_eq!(now, expected, "{text}");
    assert!(!home.path(ADOPTED).exists());
}

#[test]
fn an_adoption_that_is_broken_off_loses_no_hook_and_doubles_none() {
    for step in ["backed-up", "recorded", "written", "published", "moved"] {
        for finish in [true, false] {
            let home = Home::new();
            let file = home.write(".gemini/settings.json", SETTINGS);
            let mut command = home.command(&["connect", "gemini", "--adopt"]);
            let killed = command.env("HOOKYARD_TEST_ABORT", step).output().unwrap();
            assert_eq!(killed.status.code(), None, "{step}: {killed:?}");
            // Until the last step, the agent runs them, and no entry says otherwise.
            assert_eq!(fs::read_to_string(&file).unwrap(), SETTINGS, "{step}");
            if finish {
                home.run(&["connect", "gemini", "--adopt"]);
                assert!(!fs::read_to_string(&file).unwrap().contains("first.sh"), "{step}");
                assert!(fs::read_to_string(home.path(ADOPTED)).unwrap().contains("first.sh"), "{step}");
            }
            let done = home.run(&["disconnect", "gemini"]);
            assert_eq!(done.code, Some(0), "{step}: {done:?}");
            assert_eq!(fs::read_to_string(&file).unwrap(), SETTINGS, "{step}");
            let left: Vec<_> = file.parent().unwrap().read_dir().unwrap().flatten().collect();
            assert_eq!(left.len(), 1, "{step}: {left:?}");
        }
    }
    let home = Home::new();
    let file = home.write(".gemini/settings.json", SETTINGS);
    home.run(&["connect", "gemini", "--adopt"]);
    for step in ["written", "published", "restored"] {
        home.command(&["disconnect", "gemini"]).env("HOOKYARD_TEST_ABORT", step).output().unwrap();
        let text = fs::read_to_string(&file).unwrap();
        assert!(text.contains("first.sh") != text.contains(" --adopted "), "{step}: {text}");
        assert!(home.path(ADOPTED).exists(), "{step}");
    }
    assert_eq!(home.run(&["disconnect", "gemini"]).code, Some(0));
    assert_eq!(fs::read_to_string(&file).unwrap(), SETTINGS);
    assert!(!home.path(ADOPTED).exists());
}

#[test]
fn hooks_that_are_nowhere_else_are_not_overwritten() {
    let home = Home::new();
    let file = home.write(".gemini/settings.json", SETTINGS);
    home.run(&["connect", "gemini", "--adopt"]);
    // Somebody has put the file back by hand, without a hook.
    let other = "{\"hooks\":{\"SessionEnd\":[{\"hooks\":[{\"type\":\"command\",\"command\":\"end.sh\"}]}]}}";
    fs::write(&file, other).unwrap();
    let done = home.run(&["connect", "gemini", "--adopt"]);
    assert!(done.code == Some(1) && done.err.contains("hookyard disconnect gemini"), "{done:?}");
    assert!(fs::read_to_string(home.path(ADOPTED)).unwrap().contains("first.sh"));
    fs::write(home.path(ADOPTED), "{").unwrap();
    for verb in ["connect", "disconnect"] {
        let mut words = vec![verb, "gemini"];
        words.extend((verb == "connect").then_some("--adopt"));
        let done = home.run(&words);
        assert!(done.code == Some(1) && done.err.contains("not valid JSON"), "{verb}: {done:?}");
        assert_eq!(fs::read_to_string(&file).unwrap(), other, "{verb}");
    }
    fs::write(home.path(ADOPTED), SETTINGS).unwrap();
    home.run(&["disconnect", "gemini"]);
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.contains("first.sh") && text.contains("end.sh"), "{text}");
}

#[test]
fn settings_that_a_variable_has_moved_out_of_sight_of_the_daemon_keep_their_hooks() {
    for variable in ["GEMINI_CLI_HOME", "HOME"] {
        let home = Home::new();
        let elsewhere = tempfile::tempdir().unwrap();
        let elsewhere = elsewhere.path().canonicalize().unwrap();
        let file = elsewhere.join(".gemini/settings.json");
        fs::create_dir(elsewhere.join(".gemini")).unwrap();
        fs::write(&file, SETTINGS).unwrap();
        let run = |words: &[&str]| home.command(words).env(variable, &elsewhere).output().unwrap();
        let refused = run(&["connect", "gemini", "--adopt"]);
        let said = String::from_utf8(refused.stderr).unwrap();
        assert!(refused.status.code() == Some(1) && said.contains("without `--adopt`"), "{variable}: {said}");
        assert_eq!(fs::read_to_string(&file).unwrap(), SETTINGS, "{variable}");
        assert_eq!(fs::read_dir(elsewhere.join(".gemini")).unwrap().count(), 1, "{variable}");
        run(&["connect", "gemini"]);
        assert!(fs::read_to_string(&file).unwrap().contains("second.sh"), "{variable}");
    }
}

#[test]
fn settings_without_hooks_are_connected_as_always() {
    let home = Home::new();
    let file = home.write(".claude/settings.json", "{\"model\": \"opus\"}");
    let done = home.run(&["connect", "claude", "--adopt"]);
    assert!(done.out.contains("no hooks to adopt"), "{done:?}");
    assert!(!fs::read_to_string(&file).unwrap().contains("--adopted"));
    assert!(!home.path(".claude/settings.hookyard.json").exists());
}

fn run(daemon: &Daemon, arguments: &[&str]) {
    let home = daemon.path().join("home");
    let mut command = cargo_bin_cmd!("hookyard");
    command.args(arguments).arg("--socket").arg(daemon.socket());
    command.env("HOOKYARD_TEST_HOME", &home).env("HOME", &home);
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {output:?}");
}

/// Whether the workspace of the shop has a hook of this name.
fn has_hook(daemon: &Daemon, name: &str) -> bool {
    let workspaces = daemon.get("/v1/workspaces");
    let root = json!(daemon.path().join("home/shop"));
    let shop = workspaces.as_array().unwrap().iter().find(|workspace| workspace["root"] == root).unwrap();
    let hooks = daemon.get(&format!("/v1/hooks?workspace_id={}", shop["id"].as_str().unwrap()));
    hooks.as_array().unwrap().iter().any(|hook| hook["name"] == name)
}

#[test]
fn adopted_hooks_run_once_in_every_session() {
    let daemon = shop().serve();
    let ran = |dialect: &str, flags: &[&str]| ran_in(&daemon, dialect, flags, ("home/shop", "home/shop"));
    assert_eq!(ran("claude", &[]), ["hookyard", "project", "user"]);
    assert!(has_hook(&daemon, "claude.user.PreToolUse.1.1"));
    run(&daemon, &["connect", "claude", "--adopt"]);
    assert!(has_hook(&daemon, "claude.user.PreToolUse.1.1"), "it keeps its name");
    // A session that began before runs what it has read; the project's settings stay with the agent.
    assert_eq!(ran("claude", &[]), ["hookyard"]);
    assert_eq!(ran("claude", &["--adopted"]), ["hookyard", "user"]);
    assert_eq!(ran("gemini", &[]), ["hookyard", "project", "user"]);
    // A guard does not go with its file.
    let moved = daemon.path().join("home/.claude/settings.hookyard.json");
    let text = fs::read(&moved).unwrap();
    fs::remove_file(&moved).unwrap();
    wait_until("the daemon says that the file is gone", || {
        daemon.get("/v1/status").to_string().contains("settings.hookyard.json")
    });
    assert_eq!(ran("claude", &["--adopted"]), ["hookyard", "user"]);
    File::create(&moved).unwrap();
    fs::write(&moved, text).unwrap();
    run(&daemon, &["disconnect", "claude"]);
    assert_eq!(ran("claude", &[]), ["hookyard", "project", "user"]);
}

#[test]
fn adopted_hooks_of_a_project_run_only_after_somebody_has_agreed_to_them() {
    let setup = shop().settings("state_directory: $DIR/state").enforces_trust();
    let hook = fs::read_to_string(setup.path().join("home/shop/.claude/settings.json")).unwrap();
    let daemon =
        setup.file("home/shop/.claude/settings.local.json", &hook.replace("project", "local")).serve();
    let project = daemon.path().join("home/shop");
    let config = daemon.path().join("hookyard.yaml");
    let place = ["--project", project.to_str().unwrap(), "--config", config.to_str().unwrap()];
    run(&daemon, &[&["connect", "claude", "--adopt"][..], &place].concat());
    let ran = || ran_in(&daemon, "claude", &["--adopted"], ("home/shop", "home/shop"));
    assert!(!ran().contains(&"local".to_owned()));
    let trust = |arguments: &[&str]| {
        let mut command = cargo_bin_cmd!("hookyard");
        command.args(["trust", "--workspace"]).arg(&project).arg("--config").arg(&config);
        let output = command.args(arguments).env("HOOKYARD_TEST_HOME", daemon.path().join("home")).output();
        output.unwrap()
    };
    let shown: Value = serde_json::from_slice(&trust(&["--json"]).stdout).unwrap();
    let agreed = trust(&["--yes", shown["digest"].as_str().unwrap()]);
    assert!(agreed.status.success(), "{agreed:?}");
    wait_until("what was agreed to runs", || ran().contains(&"local".to_owned()));
    assert_eq!(
        json_of(&project.join(".claude/settings.local.hookyard.json"))["hooks"]["PreToolUse"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
}
