//! Which hooks run in the sessions of an agent: each once, by the agent or by hookyard.

use std::{fs, os::unix::fs::PermissionsExt};

use assert_cmd::cargo::cargo_bin_cmd;
use serde_json::{Value, json};

use crate::support::daemon::{Daemon, DaemonSetup};

/// A daemon with a project whose Claude settings have a hook, beside one of hookyard.
pub(super) fn shop() -> DaemonSetup {
    let note = "{\"hooks\":{\"PreToolUse\":[{\"hooks\":[{\"type\":\"command\",\"command\":\"echo SCOPE >> $DIR/ran\"}]}]}}";
    let setup = DaemonSetup::new().settings("workspace_roots: [$DIR/home]");
    let directory = setup.path();
    let hooks = |scope: &str| note.replace("SCOPE", scope).replace("$DIR", directory.to_str().unwrap());
    let guard = format!(
        "name: guard\nevents: [before_tool_dispatch]\nhandler: {{type: command, command: 'echo hookyard >> {}/ran'}}\n",
        directory.display()
    );
    setup
        .file("home/.claude/settings.json", &hooks("user"))
        .file("home/shop/.claude/settings.json", &hooks("project"))
        .file("home/shop/.openharness/hooks/guard.yaml", &guard)
        .file("home/shop/nested/.claude/settings.json", &hooks("nested"))
}

/// Which hooks ran for a tool call in a directory, in a session of a project.
fn ran(daemon: &Daemon, dialect: &str, cwd: &str, project: &str) -> Vec<String> {
    ran_in(daemon, dialect, &[], (cwd, project))
}

/// The same, of an entry with more flags.
pub(super) fn ran_in(
    daemon: &Daemon,
    dialect: &str,
    flags: &[&str],
    (cwd, project): (&str, &str),
) -> Vec<String> {
    let log = daemon.path().join("ran");
    fs::remove_file(&log).ok();
    let cwd = daemon.path().join(cwd);
    let event = match dialect {
        "gemini" => {
            json!({ "hook_event_name": "BeforeTool", "session_id": "s", "cwd": cwd, "tool_name": "ls", "tool_input": {} })
        }
        _ => {
            json!({ "hook_event_name": "PreToolUse", "session_id": "s", "cwd": cwd, "tool_name": "Bash", "tool_input": {} })
        }
    };
    let mut relay = cargo_bin_cmd!("hookyard");
    relay.args(["relay", "--dialect", dialect, "--socket"]).arg(daemon.socket()).args(flags);
    relay.env("CLAUDE_PROJECT_DIR", daemon.path().join(project)).write_stdin(event.to_string());
    let output = relay.output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let mut ran: Vec<String> =
        fs::read_to_string(&log).unwrap_or_default().lines().map(str::to_owned).collect();
    ran.sort();
    ran
}

#[test]
fn a_connected_agent_runs_its_own_hooks_and_hookyard_the_others() {
    let daemon = shop().serve();
    assert_eq!(ran(&daemon, "claude", "home/shop", "home/shop"), ["hookyard", "project", "user"]);
    let mut connect = cargo_bin_cmd!("hookyard");
    connect.args(["connect", "claude", "--socket"]).arg(daemon.socket());
    connect.env("HOOKYARD_TEST_HOME", daemon.path().join("home")).env("HOME", daemon.path().join("home"));
    let output = connect.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(text.contains("answered PreToolUse"), "{text}");
    assert_eq!(ran(&daemon, "claude", "home/shop", "home/shop"), ["hookyard"]);
    // Nobody else runs them for another agent.
    assert_eq!(ran(&daemon, "gemini", "home/shop", "home/shop"), ["hookyard", "project", "user"]);
    // The agent has not read the settings of a directory that its session went to later.
    assert_eq!(ran(&daemon, "claude", "home/shop/nested", "home/shop"), ["hookyard", "nested"]);
    assert_eq!(ran(&daemon, "claude", "home/shop/nested", "home/shop/nested"), ["hookyard", "project"]);
    let status: Value = daemon.client().ask("GET", "/v1/status", None).unwrap();
    let agents = status["agents"].as_array().unwrap();
    let claude = agents.iter().find(|agent| agent["agent"] == "claude").unwrap();
    assert_eq!(claude["last_event"], "before_tool_dispatch", "{status}");
    let mut disconnect = cargo_bin_cmd!("hookyard");
    disconnect.args(["disconnect", "claude", "--socket"]).arg(daemon.socket());
    let output = disconnect
        .env("HOOKYARD_TEST_HOME", daemon.path().join("home"))
        .env("HOME", daemon.path().join("home"))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(ran(&daemon, "claude", "home/shop", "home/shop"), ["hookyard", "project", "user"]);
}

#[test]
fn a_daemon_that_runs_serves_the_directories_of_an_agent_once_it_is_connected() {
    let guard = "name: guard\nevents: [before_tool_dispatch]\nhandler: {type: command, command: 'echo no >&2; exit 2'}\n";
    let daemon = DaemonSetup::new()
        .file("home/shop/.openharness/hooks/guard.yaml", guard)
        .file("elsewhere/.openharness/hooks/guard.yaml", guard)
        .serve();
    let event = |cwd: &str| {
        let cwd = daemon.path().join(cwd);
        let event = json!({ "hook_event_name": "PreToolUse", "session_id": "s", "cwd": cwd, "tool_name": "Bash", "tool_input": {} });
        daemon.post("/v1/events/claude?as=process", &event)["stdout"].to_string().contains("deny")
    };
    assert!(!event("home/shop"), "it serves nothing yet");
    let run = |verb: &str, project: &str| {
        let mut command = cargo_bin_cmd!("hookyard");
        command.args([verb, "claude", "--project"]).arg(daemon.path().join(project));
        command
            .arg("--socket")
            .arg(daemon.socket())
            .env("HOOKYARD_TEST_HOME", daemon.path().join("home"))
            .env("HOME", daemon.path().join("home"));
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{output:?}");
    };
    run("connect", "home/shop");
    assert!(event("home/shop"));
    assert!(!event("elsewhere"), "nobody has connected it");
    run("connect", "elsewhere");
    assert!(event("home/shop") && event("elsewhere"));
}

#[test]
fn the_workspace_in_which_an_agent_is_connected_is_served_also_outside_of_the_home_directory() {
    let guard = "name: guard\nevents: [before_tool_dispatch]\nhandler: {type: command, command: 'echo no >&2; exit 2'}\n";
    let daemon = DaemonSetup::new()
        .file("home/.claude/settings.json", "{}")
        .file("elsewhere/.openharness/hooks/guard.yaml", guard)
        .file("other/.openharness/hooks/guard.yaml", guard)
        .serve();
    let event = |cwd: &str| {
        let cwd = daemon.path().join(cwd);
        let event = json!({ "hook_event_name": "PreToolUse", "session_id": "s", "cwd": cwd, "tool_name": "Bash", "tool_input": {} });
        daemon.post("/v1/events/claude?as=process", &event)["stdout"].to_string().contains("deny")
    };
    let run = |arguments: &[&str], directory: &str| {
        let mut command = cargo_bin_cmd!("hookyard");
        command
            .args(arguments)
            .arg("--socket")
            .arg(daemon.socket())
            .current_dir(daemon.path().join(directory));
        command.env("HOOKYARD_TEST_HOME", daemon.path().join("home")).env("HOME", daemon.path().join("home"));
        let output = command.output().unwrap();
        (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap())
    };
    let doctor = ["doctor", "--set", "trust=off"];
    let (code, text) = run(&["connect", "claude"], "home");
    assert!(code == 0 && !event("elsewhere"), "{text}");
    let (code, text) = run(&doctor, "elsewhere");
    assert!(code == 1 && text.contains("do not run for events of claude"), "{text}");
    for _ in 0..2 {
        let (code, text) = run(&["connect", "claude"], "elsewhere");
        assert!(code == 0 && text.contains("workspaces in ../home, ."), "{text}");
    }
    assert!(event("elsewhere") && !event("other"));
    let (code, text) = run(&doctor, "elsewhere");
    assert_eq!(code, 0, "{text}");
    // Who connects it elsewhere later does not end that.
    assert_eq!(run(&["connect", "claude"], "home").0, 0);
    assert!(event("elsewhere"));
}

#[test]
fn hooks_of_the_user_find_the_programs_in_directories_of_their_home() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path().canonicalize().unwrap();
    let write = |below: &str, text: &str| {
        let path = home.join(below);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    };
    write("bin/guard-of-mine", "#!/bin/sh\necho no >&2\nexit 2\n");
    let hook = json!({ "type": "command", "command": "guard-of-mine" });
    write(".claude/settings.json", &json!({ "hooks": { "PreToolUse": [{ "hooks": [hook] }] } }).to_string());
    write(
        "shop/.openharness/hooks/other.yaml",
        "name: other\nevents: [run_failed]\nhandler: {type: command, command: 'true'}\n",
    );
    write("shop/bin/guard-of-mine", "#!/bin/sh\nexit 0\n");
    // The directory of a project is not searched in it.
    for (directory, path) in [("", "HOME/bin:/bin"), ("shop", "HOME/shop/bin:HOME/bin:/bin")] {
        let event = json!({
            "hook_event_name": "PreToolUse", "session_id": "s", "cwd": home.join(directory), "tool_name": "Bash",
            "tool_input": {},
        });
        let mut fire = cargo_bin_cmd!("hookyard");
        fire.args(["fire", "--event", "-", "--dialect", "claude", "--json", "--workspace"])
            .arg(home.join(directory))
            .current_dir(&home);
        fire.env("HOOKYARD_TEST_HOME", &home).env("HOME", &home).env_remove("HOOKYARD_LOG");
        let path = path.replace("HOME", home.to_str().unwrap());
        let output = fire.env("PATH", path).write_stdin(event.to_string()).output().unwrap();
        let outcome: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
        assert_eq!(outcome["verdict"], "block", "{directory}: {output:?}");
    }
}

#[test]
fn a_record_inside_a_workspace_takes_no_hook_from_hookyard_there() {
    for (state, expected) in
        [("state", vec!["hookyard"]), ("home/shop/state", vec!["hookyard", "project", "user"])]
    {
        let setup = shop().settings(&format!("state_directory: $DIR/{state}"));
        let (here, directory) = (setup.path(), setup.path().join(state));
        let connection = json!({ "agent": "claude", "reach": "user", "root": here.join("home"),
            "file": here.join("home/.claude/settings.json"), "events": ["PreToolUse"], "written": "", "before": null });
        let record = json!({ "version": 1, "connections": [connection] }).to_string();
        let setup = setup.file(&format!("{state}/connections.json"), &record);
        fs::set_permissions(directory.join("connections.json"), fs::Permissions::from_mode(0o600)).unwrap();
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o700)).unwrap();
        let daemon = setup.serve();
        assert_eq!(ran(&daemon, "claude", "home/shop", "home/shop"), expected, "{state}");
        daemon.finish();
    }
}

#[test]
fn what_an_agent_would_not_run_stays_with_hookyard() {
    // In Gemini CLI, the project's file switches off the user's hook; hookyard does not obey that.
    let note = |scope: &str| format!("echo {scope} >> $DIR/ran");
    let setup = DaemonSetup::new()
        .settings("workspace_roots: [$DIR/home]\nrequired: [gemini.project.BeforeTool.1.1]");
    let directory = setup.path().to_str().unwrap().to_owned();
    let hooks = |name: &str, more: &str| {
        let command = note(name).replace("$DIR", &directory);
        format!(
            "{{\"hooks\":{{\"BeforeTool\":[{{\"hooks\":[{{\"type\":\"command\",\"name\":\"{name}\",\"command\":\"{command}\"}}]}}]}}{more}}}"
        )
    };
    let daemon = setup
        .file("home/.gemini/settings.json", &hooks("user", ""))
        .file(
            "home/shop/.gemini/settings.json",
            &hooks("project", ",\"hooksConfig\":{\"disabled\":[\"user\"]}"),
        )
        .file("home/other/.gemini/settings.json", "{\"hooks\":{}}")
        .serve();
    let mut connect = cargo_bin_cmd!("hookyard");
    connect.args(["connect", "gemini", "--socket"]).arg(daemon.socket());
    connect.env("HOOKYARD_TEST_HOME", daemon.path().join("home")).env("HOME", daemon.path().join("home"));
    assert_eq!(connect.output().unwrap().status.code(), Some(0));
    let of = |cwd: &str| {
        let log = daemon.path().join("ran");
        fs::remove_file(&log).ok();
        let cwd = daemon.path().join(cwd);
        let event = json!({ "hook_event_name": "BeforeTool", "session_id": "s", "cwd": cwd, "tool_name": "ls", "tool_input": {} });
        let mut relay = cargo_bin_cmd!("hookyard");
        relay.args(["relay", "--dialect", "gemini", "--socket"]).arg(daemon.socket());
        relay.env("GEMINI_PROJECT_DIR", &cwd).write_stdin(event.to_string());
        relay.output().unwrap();
        let mut ran: Vec<String> =
            fs::read_to_string(&log).unwrap_or_default().lines().map(str::to_owned).collect();
        ran.sort();
        ran
    };
    assert_eq!(of("home/shop"), ["project", "user"]);
    assert_eq!(of("home/other"), Vec::<String>::new());
}
