//! `doctor`, and what `check` says about hooks that run twice.

use std::{
    fs,
    io::{Read, Write},
    os::unix::net::{UnixListener, UnixStream},
    path::PathBuf,
    thread::{self, JoinHandle},
};

use assert_cmd::{Command, cargo::cargo_bin_cmd};
use serde_json::{Value, json};

use crate::support::{
    daemon::{Daemon, DaemonSetup, write},
    wait::wait_until,
};

/// A home with hooks of Claude Code in a project, and a daemon for it.
fn shop() -> DaemonSetup {
    let hooks = |command: &str| {
        json!({ "hooks": { "PreToolUse": [{ "hooks": [{ "type": "command", "command": command }] }] } })
            .to_string()
    };
    DaemonSetup::new()
        .settings("workspace_roots: [$DIR/home]")
        .file("home/.claude/settings.json", &hooks("true"))
        .file("home/shop/.claude/settings.json", &hooks("true"))
}

fn command(daemon: &Daemon, arguments: &[&str]) -> Command {
    let mut command = cargo_bin_cmd!("hookyard");
    command.args(arguments).current_dir(daemon.path().join("home/shop"));
    command
        .env("HOOKYARD_TEST_HOME", daemon.path().join("home"))
        .env("HOME", daemon.path().join("home"))
        .env_remove("HOOKYARD_LOG");
    command
}

fn connect(daemon: &Daemon) {
    let output = command(daemon, &["connect", "claude", "--socket"]).arg(daemon.socket()).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
}

/// The exit code and the findings, each as its level, subject and message with its help, without those of trust.
fn doctor(daemon: &Daemon, socket: &str) -> (i32, Vec<(String, String, String)>) {
    let socket = if socket.is_empty() { daemon.socket().to_owned() } else { daemon.path().join(socket) };
    let output = command(daemon, &["doctor", "--json", "--set", "trust=off", "--socket"])
        .arg(socket)
        .output()
        .unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
    let text = |finding: &Value, key: &str| finding[key].as_str().unwrap_or_default().to_owned();
    let findings = report["findings"].as_array().unwrap().iter();
    let message = |finding: &Value| {
        let (message, help) = (text(finding, "message"), text(finding, "help"));
        assert!(help.is_empty() || !message.contains(&help), "told twice: {message}");
        format!("{message}\n{help}")
    };
    let findings =
        findings.map(|finding| (text(finding, "level"), text(finding, "subject"), message(finding)));
    (output.status.code().unwrap(), findings.collect())
}

fn assert_found(findings: &[(String, String, String)], level: &str, subject: &str, message: &str) {
    let is_it = |known: &&(String, String, String)| {
        known.0 == level && known.1 == subject && known.2.contains(message)
    };
    assert!(findings.iter().any(|known| is_it(&known)), "{level} {subject} {message}: {findings:#?}");
}

#[test]
fn a_connected_agent_is_well() {
    let daemon = shop().serve();
    connect(&daemon);
    let (code, findings) = doctor(&daemon, "");
    assert_found(&findings, "ok", "daemon", "pid");
    assert_found(&findings, "ok", "claude", "9 entries");
    assert_found(&findings, "ok", "claude", "before_tool_dispatch");
    assert_found(&findings, "ok", "workspace", "run by their agent");
    assert_found(&findings, "ok", "trust", "off");
    // What a system cannot do is told, and is nothing to mend.
    let notes = findings.iter().filter(|(level, subject, _)| (&**level, &**subject) == ("note", "system"));
    assert_eq!(notes.count() > 0, cfg!(hookyard_portable), "{findings:#?}");
    assert_eq!(code, 0, "{findings:#?}");
}

#[test]
fn a_daemon_that_is_down_is_an_error_once_an_agent_is_connected() {
    let daemon = shop().serve();
    let (code, findings) = doctor(&daemon, "other.sock");
    assert_found(&findings, "warning", "daemon", "no hookyard listens");
    assert_found(&findings, "warning", "daemon", "connect an agent, as by `hookyard connect claude`");
    assert_eq!(code, 1);
    connect(&daemon);
    let (code, findings) = doctor(&daemon, "other.sock");
    assert_found(&findings, "error", "daemon", "no hookyard listens");
    assert_eq!(code, 1);
}

#[test]
fn entries_that_lead_nowhere_or_are_lost_are_found() {
    let daemon = shop().serve();
    connect(&daemon);
    let file = daemon.path().join("home/.claude/settings.json");
    let connected = fs::read_to_string(&file).unwrap();
    let mut settings: Value = serde_json::from_str(&connected).unwrap();
    settings["hooks"].as_object_mut().unwrap().remove("Stop");
    for entry in ["SessionStart", "SessionEnd"] {
        let command = &mut settings["hooks"][entry][0]["hooks"][0]["command"];
        *command = json!("'/gone/bin/hookyard' relay --dialect claude --socket '/gone/other one.sock'");
    }
    settings["disableAllHooks"] = json!(true);
    fs::write(&file, settings.to_string()).unwrap();
    let (code, findings) = doctor(&daemon, "");
    assert_found(&findings, "error", "claude", "lost its entries for Stop");
    assert_found(&findings, "error", "claude", "2 entries run /gone/bin/hookyard, which is gone");
    assert_found(
        &findings,
        "error",
        "claude",
        "2 entries lead nowhere: no hookyard listens on /gone/other one.sock",
    );
    assert_found(&findings, "error", "claude", "`disableAllHooks` is true");
    assert_eq!(code, 1);
    fs::write(&file, "{\"hooks\": {}}").unwrap();
    assert_found(&doctor(&daemon, "").1, "error", "claude", "has no entry of hookyard");
    fs::write(&file, "{").unwrap();
    assert_found(&doctor(&daemon, "").1, "error", "claude", "is not valid JSON");
}

#[test]
fn switches_that_keep_an_agent_from_running_the_entries_are_found() {
    let daemon = shop().file("home/.copilot/settings.json", "{}").serve();
    for (agent, file, switches, phrase) in [
        ("gemini", ".gemini/settings.json", r#"{"hooksConfig": {"enabled": false}}"#, "`enabled` is false"),
        (
            "gemini",
            ".gemini/settings.json",
            r#"{"hooksConfig": {"disabled": ["hookyard"]}} // by `/hooks disable`"#,
            "`disabled` names `hookyard`",
        ),
        ("clawd", ".clawdcode/settings.json", r#"{"hooks": {"enabled": false}}"#, "`enabled` is false"),
        ("copilot", ".copilot/settings.json", r#"{"disableAllHooks": true}"#, "`disableAllHooks` is true"),
    ] {
        write(&daemon.path().join("home").join(file), switches);
        let output = command(&daemon, &["connect", agent, "--socket"]).arg(daemon.socket()).output().unwrap();
        let shown = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        assert!(shown.contains(phrase), "{agent}: {output:?}");
        assert_found(&doctor(&daemon, "").1, "error", agent, phrase);
        let output = command(&daemon, &["disconnect", agent]).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{output:?}");
    }
    // CodeBuddy has no such switch.
    write(&daemon.path().join("home/.codebuddy/settings.json"), r#"{"disableAllHooks": true}"#);
    let output =
        command(&daemon, &["connect", "codebuddy", "--socket"]).arg(daemon.socket()).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let (_, findings) = doctor(&daemon, "");
    assert!(findings.iter().all(|known| !known.2.contains("disableAllHooks")), "{findings:#?}");
}

#[test]
fn entries_that_let_the_agent_go_on_without_a_daemon_are_found_beside_guards() {
    let guard = "name: guard\nevents: [before_tool_dispatch]\non_error: deny\nhandler: {type: command, command: 'true'}\n";
    let daemon = shop().serve();
    let arguments = ["connect", "claude", "--if-down", "allow", "--socket"];
    let output = command(&daemon, &arguments).arg(daemon.socket()).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(doctor(&daemon, "").0, 0, "without a guard, that is the choice of the person");
    write(&daemon.path().join("home/shop/.openharness/hooks/guard.yaml"), guard);
    let (code, findings) = doctor(&daemon, "");
    assert_found(&findings, "warning", "claude", "goes on past the guard guard");
    assert_eq!(code, 1);
    connect(&daemon);
    assert!(doctor(&daemon, "").1.iter().all(|known| !known.2.contains("goes on past")));
}

#[test]
fn broken_files_and_workers_that_do_not_serve_are_found() {
    let worker = "name: worker\nevents: [before_tool_dispatch]\nhandler: {type: command, command: 'exit 3', mode: worker}\n";
    let daemon = shop()
        .file("home/shop/.openharness/hooks/worker.yaml", worker)
        .file("home/shop/.openharness/hooks/broken.yaml", "name: [")
        .serve();
    let event = json!({ "event": "before_tool_dispatch", "session_id": "s", "run_id": "r", "tool_name": "Bash",
                        "tool_input": {}, "cwd": daemon.path().join("home/shop") });
    let is_degraded = || {
        daemon.post("/v1/events", &event);
        let (code, findings) = doctor(&daemon, "");
        assert_found(&findings, "error", "daemon", "are broken");
        assert_eq!(code, 1);
        findings.iter().any(|known| known.0 == "warning" && known.2.contains("workers of worker in"))
    };
    wait_until("doctor sees that the worker does not serve", is_degraded);
}

/// A daemon that answers every request with the same status, until it is dropped.
struct FixedStatus {
    socket: PathBuf,
    server: Option<JoinHandle<()>>,
}

impl FixedStatus {
    fn start(socket: PathBuf, status: &Value) -> Self {
        let listener = UnixListener::bind(&socket).unwrap();
        let body = status.to_string();
        let server = thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut head = Vec::new();
                let mut byte = [0];
                while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap() > 0 {
                    head.extend(byte);
                }
                if head.is_empty() {
                    return;
                }
                let length = body.len();
                write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{body}").unwrap();
            }
        });
        Self { socket, server: Some(server) }
    }
}

impl Drop for FixedStatus {
    fn drop(&mut self) {
        // A connection without a request ends it.
        drop(UnixStream::connect(&self.socket));
        self.server.take().unwrap().join().unwrap();
    }
}

#[test]
fn a_daemon_of_another_version_is_found() {
    let daemon = shop().serve();
    let mut status = daemon.get("/v1/status");
    status["version"] = json!("0.0.1");
    status["phase"] = json!("draining");
    let other = FixedStatus::start(daemon.path().join("other.sock"), &status);
    let (code, findings) = doctor(&daemon, "other.sock");
    assert_found(&findings, "warning", "daemon", "the daemon is version 0.0.1, and this program is");
    assert_found(&findings, "warning", "daemon", "it is draining");
    assert_found(&findings, "warning", "daemon", "replace it with `hookyard serve --replace`");
    assert_eq!(code, 1);
    connect(&daemon);
    let file = daemon.path().join("home/.local/state/hookyard/connections.json");
    let mut record: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    for (start, help) in [
        ("manual", "replace it with `hookyard serve --replace`"),
        ("on_demand", "end it with `hookyard stop`, and the next event starts it anew"),
        ("service", "run `systemctl --user restart hookyard`"),
    ] {
        record["daemon"]["start"] = json!(start);
        record["daemon"]["socket"] = json!(other.socket);
        fs::write(&file, record.to_string()).unwrap();
        assert_found(&doctor(&daemon, "other.sock").1, "warning", "daemon", help);
    }
    drop(other);
}

#[test]
fn hooks_that_run_twice_are_found_by_doctor_and_check() {
    let daemon = shop().serve();
    let by_hand = json!({ "hooks": { "PreToolUse": [
        { "hooks": [{ "type": "command", "command": "true" }] },
        { "hooks": [{ "type": "command", "command": "hookyard relay --dialect claude --if-down block" }] },
    ] } });
    fs::write(daemon.path().join("home/.claude/settings.json"), by_hand.to_string()).unwrap();
    let (code, findings) = doctor(&daemon, "");
    assert_found(&findings, "warning", "claude", "2 hooks of the settings of claude run twice");
    assert_eq!(code, 1);
    let check = || {
        let output =
            command(&daemon, &["check", "--strict", "--set", "trust=off", "--json"]).output().unwrap();
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        let codes = report["diagnostics"].as_array().unwrap().iter();
        (output.status.code(), codes.filter(|known| known["code"] == "runs-twice").count())
    };
    assert_eq!(check(), (Some(1), 1));
    connect(&daemon);
    assert_eq!(check().1, 0);
    let (_, findings) = doctor(&daemon, "");
    assert!(findings.iter().all(|known| !known.2.contains("run twice")), "{findings:#?}");
}

#[test]
fn hooks_of_an_agents_text_are_left_to_claude_where_it_is_connected() {
    const NAME: &str = "claude.user.agents.reviewer.PreToolUse.1.1";
    let text = "---\nname: reviewer\nhooks:\n  PreToolUse:\n    - hooks: [{ type: command, command: 'exit 2' }]\n---\nYou review.\n";
    let daemon = shop().file("home/.claude/agents/reviewer.md", text).serve();
    let listed = || {
        let output = command(&daemon, &["list", "--json", "--set", "trust=off"]).output().unwrap();
        let hooks: Value = serde_json::from_slice(&output.stdout).unwrap();
        let hooks = hooks["hooks"].as_array().or_else(|| hooks.as_array()).unwrap().clone();
        hooks.into_iter().find(|hook| hook["name"] == NAME).unwrap()
    };
    let found = listed();
    assert_eq!(found["condition"], "the agent `reviewer` at work", "{found}");
    assert_eq!(found["run_by_agent"], Value::Null, "{found}");
    let event = json!({
        "hook_event_name": "PreToolUse", "session_id": "s", "cwd": daemon.path().join("home/shop"), "agent_id": "a", "agent_type": "other",
        "tool_name": "Bash", "tool_input": { "command": "ls" }, "tool_use_id": "t",
    });
    let explain = |event: &Value| {
        let arguments = ["explain", "--set", "trust=off", "--dialect", "claude", "--event", "-"];
        let output = command(&daemon, &arguments).write_stdin(event.to_string()).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let explained = explain(&event);
    assert!(explained.contains("it needs the agent `reviewer` at work"), "{explained}");
    connect(&daemon);
    assert_eq!(listed()["run_by_agent"], true);
    let mut own = event;
    own["agent_type"] = "reviewer".into();
    let explained = explain(&own);
    assert!(explained.contains("claude runs it itself, since it is connected"), "{explained}");
}

#[test]
fn hooks_that_nobody_trusts_are_found_with_what_to_do() {
    let guard = "name: guard\nevents: [before_tool_dispatch]\non_error: deny\nhandler: {type: command, command: 'true'}\n";
    let daemon = shop().file("home/shop/.openharness/hooks/guard.yaml", guard).serve();
    connect(&daemon);
    let output = command(&daemon, &["doctor", "--socket"]).arg(daemon.socket()).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(
        text.contains("hook guard does not run") && text.contains("hookyard trust --workspace"),
        "{text}"
    );
    // What the agent runs by itself needs no trust here.
    assert!(!text.contains("hook claude."), "{text}");
}

#[test]
fn what_cannot_be_looked_at_is_exit_code_2() {
    let daemon = shop().serve();
    for arguments in [["--config", "nowhere.yaml"], ["--workspace", "nowhere"]] {
        let output = command(&daemon, &["doctor"]).args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{output:?}");
    }
}
