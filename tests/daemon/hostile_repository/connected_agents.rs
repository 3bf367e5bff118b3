//! What a repository tries once an agent is connected, its hooks are adopted, or the operator says how hooks are run.

use std::{
    fs,
    path::PathBuf,
    process::{Command, Output},
};

use serde_json::{Value, json};

use crate::support::daemon::{Daemon, DaemonSetup};

/// The settings of an agent with a command before each tool call.
fn hooks(event: &str, command: &str) -> String {
    json!({ "hooks": { event: [{ "hooks": [{ "type": "command", "command": command }] }] } }).to_string()
}

const GUARD: &str = "echo guarded >&2; exit 2";

/// A hook that makes every event of its workspace one with hooks.
const NOISE: &str =
    "name: noise\nevents: [before_tool_dispatch]\nhandler: {type: command, command: 'true'}\n";

/// The program as the daemon's user runs it.
fn program(daemon: &Daemon) -> Command {
    let home = daemon.path().join("home");
    let mut program = Command::new(env!("CARGO_BIN_EXE_hookyard"));
    program.env("HOOKYARD_TEST_HOME", &home).env("HOME", &home).current_dir(daemon.path());
    program
}

/// Connects an agent.
fn connect(daemon: &Daemon, arguments: &[&str]) {
    let output = program(daemon).arg("connect").args(arguments).arg("--socket").arg(daemon.socket()).output();
    let output = output.unwrap();
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {output:?}");
}

/// What an entry of an agent's settings is answered about a tool call in a directory. All entries of one session get the
/// same call.
fn answer(daemon: &Daemon, flags: &[&str], cwd: &str, project: &str) -> String {
    let event = json!({ "hook_event_name": "PreToolUse", "session_id": "s", "cwd": daemon.path().join(cwd),
                        "tool_name": "Bash", "tool_input": { "command": "ls" }, "tool_use_id": "one-call" });
    let file = daemon.path().join("event.json");
    fs::write(&file, event.to_string()).unwrap();
    let output = program(daemon)
        .args(["relay", "--if-down", "block", "--socket"])
        .arg(daemon.socket())
        .args(flags)
        .env("CLAUDE_PROJECT_DIR", daemon.path().join(project))
        .stdin(fs::File::open(file).unwrap())
        .output()
        .unwrap();
    String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
}

#[test]
fn no_entry_of_it_is_answered_for_those_of_its_user() {
    let noise = "home/shop/.openharness/hooks/noise.yaml";
    let nested = "home/shop/nested/.openharness/hooks/noise.yaml";
    let claude = ("home/.claude/settings.json", "home/shop", &["claude", "--adopt"][..]);
    let codebuddy = ("home/.codebuddy/settings.json", "home/shop", &["codebuddy"][..]);
    let outer = ("home/shop/.claude/settings.json", "home/shop/nested", &["claude"][..]);
    // An entry of it says another thing of the session, so that its event goes past the guard.
    let liars: [(_, &[&str], &str, &[&str]); 3] = [
        (claude, &["--dialect", "claude"], "home/shop", &["--dialect", "claude", "--adopted"]),
        (codebuddy, &["--dialect", "codebuddy"], "home/shop", &["--dialect", "claude"]),
        (outer, &["--dialect", "claude"], "home/shop", &["--dialect", "claude"]),
    ];
    for ((guard, cwd, connection), lie, project, flags) in liars {
        let daemon = DaemonSetup::new()
            .settings("workspace_roots: [$DIR/home]")
            .file(guard, &hooks("PreToolUse", GUARD))
            .file(noise, NOISE)
            .file(nested, NOISE)
            .serve();
        connect(&daemon, connection);
        let of_liar = answer(&daemon, lie, cwd, project);
        assert!(!of_liar.contains("guarded"), "{guard}: the agent itself runs the guard: {of_liar}");
        let of_user = answer(&daemon, flags, cwd, cwd);
        assert!(of_user.contains("guarded"), "{guard}: {of_user}");
        daemon.finish();
    }
}

#[test]
fn a_guard_that_it_moves_to_where_no_agent_looks_is_run_by_hookyard() {
    let entry = "/usr/bin/hookyard relay --dialect claude --adopted";
    let daemon = DaemonSetup::new()
        .settings("workspace_roots: [$DIR/home]")
        .file("home/shop/.claude/settings.local.json", &hooks("Notification", entry))
        .file("home/shop/.claude/settings.local.hookyard.json", &hooks("PreToolUse", GUARD))
        .file("home/.claude/settings.json", "{}")
        .serve();
    connect(&daemon, &["claude"]);
    let answered = answer(&daemon, &["--dialect", "claude"], "home/shop", "home/shop");
    assert!(answered.contains("guarded"), "{answered}");
    daemon.finish();
}

/// A project whose settings have a guard, with the settings of hookyard for it.
struct Project {
    directory: tempfile::TempDir,
}

impl Project {
    fn new() -> Self {
        let project = Self { directory: tempfile::tempdir().unwrap() };
        fs::create_dir_all(project.root().join(".claude")).unwrap();
        fs::create_dir(project.path().join("home")).unwrap();
        fs::write(project.settings(), hooks("PreToolUse", GUARD)).unwrap();
        fs::write(project.root().join("event.json"), super::native(&project.root()).to_string()).unwrap();
        project
    }

    fn path(&self) -> PathBuf {
        self.directory.path().canonicalize().unwrap()
    }

    fn root(&self) -> PathBuf {
        self.path().join("shop")
    }

    fn settings(&self) -> PathBuf {
        self.root().join(".claude/settings.json")
    }

    /// Runs a command in the project, with these lines in the settings of hookyard.
    fn run(&self, handlers: &str, arguments: &[&str]) -> Output {
        let config = self.path().join("hookyard.yaml");
        let state = self.path().join("state");
        fs::write(&config, format!("state_directory: {}\n{handlers}\n", state.display())).unwrap();
        Command::new(env!("CARGO_BIN_EXE_hookyard"))
            .args(arguments)
            .args(["--workspace", ".", "--config"])
            .arg(&config)
            .current_dir(self.root())
            .env("HOOKYARD_TEST_HOME", self.path().join("home"))
            .output()
            .unwrap()
    }

    /// The verdict and the reason about a tool call, and how the hook ended.
    fn fire(&self, handlers: &str) -> [String; 3] {
        let output = self.run(handlers, &["fire", "--json", "--dialect", "claude", "--event", "event.json"]);
        let outcome: Value =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{handlers}: {output:?}"));
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        [text(&outcome["verdict"]), text(&outcome["reason"]), text(&outcome["hooks"][0]["ended"])]
    }

    fn agree(&self, handlers: &str) {
        let shown: Value = serde_json::from_slice(&self.run(handlers, &["trust", "--json"]).stdout).unwrap();
        let agreed = self.run(handlers, &["trust", "--yes", shown["digest"].as_str().unwrap()]);
        assert!(agreed.status.success(), "{agreed:?}");
    }
}

#[test]
fn stricter_policies_of_the_operator_hold_whatever_becomes_of_a_trusted_hook() {
    let by_name = "handlers: { claude.project.PreToolUse.1.1: { mode: prespawn, on_error: deny } }";
    let by_command = format!("handlers: {}", json!({ GUARD: { "on_error": "deny" } }));
    let project = Project::new();
    let [verdict, _, ended] = project.fire(by_name);
    assert_eq!([&*verdict, &*ended], ["block", "untrusted"], "nobody has agreed to it");
    project.agree("");
    for handlers in ["", by_name, &by_command] {
        let fired = project.fire(handlers);
        assert_eq!(fired, ["block", "guarded", "completed"], "what was agreed to runs: {handlers}");
        let listed = project.run(handlers, &["trust", "--list"]);
        let listed = String::from_utf8(listed.stdout).unwrap();
        assert!(listed.contains("trusted") && !listed.contains("modified"), "{handlers}: {listed}");
    }
    fs::write(project.settings(), hooks("PreToolUse", "true")).unwrap();
    let verdicts = |handlers: &str| {
        let [verdict, _, ended] = project.fire(handlers);
        [verdict, ended]
    };
    assert_eq!(verdicts(""), ["proceed", "untrusted"], "as was agreed to");
    assert_eq!(verdicts(by_name), ["block", "untrusted"], "modified");
    // An entry that says that the hooks are elsewhere takes the name from what is in the file.
    let entry = "/usr/bin/hookyard relay --dialect claude --adopted";
    fs::write(project.settings(), hooks("PreToolUse", entry)).unwrap();
    assert_eq!(verdicts(by_name), ["block", "untrusted"], "renamed");
    fs::remove_file(project.settings()).unwrap();
    assert_eq!(verdicts(by_name), ["block", "untrusted"], "gone");
    // What was agreed to with them holds without them.
    fs::write(project.settings(), hooks("PreToolUse", GUARD)).unwrap();
    project.agree(&by_command);
    fs::remove_file(project.settings()).unwrap();
    assert_eq!(verdicts(""), ["block", "untrusted"], "agreed to as a guard");
}

#[test]
fn it_does_not_say_how_hooks_are_run() {
    let project = Project::new();
    fs::create_dir_all(project.root().join(".openharness")).unwrap();
    let own = "handlers: { claude.project.PreToolUse.1.1: { mode: worker } }\n";
    fs::write(project.root().join(".openharness/settings.yaml"), own).unwrap();
    let listed = project.run("", &["list", "--json"]);
    let listed: Value = serde_json::from_slice(&listed.stdout).unwrap();
    assert_eq!((&listed[0]["mode"], &listed[0]["trust"]), (&json!("oneshot"), &json!("untrusted")));
    let checked = project.run("", &["check"]);
    let said = String::from_utf8([checked.stdout, checked.stderr].concat()).unwrap();
    assert!(!checked.status.success() && said.contains("unknown key `handlers`"), "{said}");
}
