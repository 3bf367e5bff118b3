//! A hostile repository: every command and endpoint is tried on it, and nothing of it runs, connects or weakens a guard.
#![allow(clippy::disallowed_methods, reason = "commands are run as a person runs them")]

mod connected_agents;
mod other_users;

use std::{
    fs,
    io::{ErrorKind, Read, Write},
    net::{TcpListener, TcpStream},
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::daemon::{Daemon, DaemonSetup};

/// Commands that look at a repository, or send it events.
const COMMANDS: [&[&str]; 23] = [
    &["check"],
    &["check", "--json", "--verbose"],
    &["list"],
    &["list", "--json"],
    &["explain", "--event", "event.json"],
    &["fire", "--event", "event.json"],
    &["fire", "--native", "--dialect", "claude", "--event", "event.json"],
    &["replay", "events.jsonl"],
    &["test"],
    &["tune", "--events", "events.jsonl"],
    &["bench", "--recording", "events.jsonl", "--warm-up", "0s", "--duration", "200ms"],
    &["convert", "--from", "claude", "--to", "openharness"],
    &["convert", "--from", "claude", "--to", "openharness", "--rules"],
    &["convert", "--from", "openharness", "--to", "claude"],
    &["relay", "--dialect", "claude", "--socket", "/nonexistent/hookyard.sock"],
    &["top", "--once", "--socket", "/nonexistent/hookyard.sock"],
    &["ui", "--no-open", "--socket", "/nonexistent/hookyard.sock"],
    &["new", "mine"],
    &["trust"],
    &["doctor", "--socket", "/nonexistent/hookyard.sock"],
    &["connect", "claude", "--project", ".", "--socket", "/nonexistent/hookyard.sock"],
    &["doctor", "--socket", "/nonexistent/hookyard.sock"],
    &["disconnect", "claude", "--project", ".", "--socket", "/nonexistent/hookyard.sock"],
];

/// A socket that nobody serves.
const NOBODY: &str = "/nonexistent/hookyard.sock";

/// The same for each agent whose settings it has, and commands that ask a daemon.
const MORE_COMMANDS: [&[&str]; 48] = [
    &["fire", "--native", "--dialect", "claude", "--event", "native.json"],
    &["fire", "--native", "--dialect", "codebuddy", "--event", "native.json"],
    &["fire", "--native", "--dialect", "clawd", "--event", "native.json"],
    &["fire", "--native", "--dialect", "codex", "--event", "native.json"],
    &["fire", "--native", "--dialect", "qwen", "--event", "native.json"],
    &["fire", "--native", "--dialect", "gemini", "--event", "gemini.json"],
    &["explain", "--dialect", "codex", "--event", "native.json"],
    &["explain", "--dialect", "qwen", "--event", "native.json"],
    &["convert", "--from", "gemini", "--to", "openharness"],
    &["convert", "--from", "clawd", "--to", "claude"],
    &["relay", "--dialect", "codex", "--socket", NOBODY],
    &["relay", "--dialect", "qwen", "--socket", NOBODY],
    &["connect", "codex", "--project", ".", "--socket", NOBODY],
    &["connect", "qwen", "--project", ".", "--socket", NOBODY],
    &["connect", "gemini", "--project", ".", "--socket", NOBODY],
    &["fire", "--native", "--dialect", "qwen", "--event", "native.json"],
    &["disconnect", "codex", "--project", "."],
    &["disconnect", "qwen", "--project", "."],
    &["disconnect", "gemini", "--project", "."],
    &["status", "--socket", NOBODY],
    &["runs", "--socket", NOBODY],
    &["log", "--socket", NOBODY],
    &["outbox", "--socket", NOBODY],
    &["reload", "--socket", NOBODY],
    &["workspaces", "--socket", NOBODY],
    &["stop", "--socket", NOBODY],
    &["record", "claude", "--socket", NOBODY],
    &["audit", "events.jsonl"],
    &[
        "bundle",
        "build",
        ".",
        "--name",
        "a",
        "--version",
        "1",
        "--expires",
        "1d",
        "--output",
        "bundle.tar.gz",
    ],
    &["bundle", "verify", "bundle.tar.gz"],
    &["cluster", "status"],
    &["cluster", "dead", "list"],
    &["work", "--check"],
    &["schema", "event"],
    &["completions", "bash"],
    &["man"],
    &["help"],
    &["disable", "oneshot"],
    &["enable", "oneshot"],
    &["add", "--list"],
    &["add", "git-safety"],
    &["add", "git-safety", "--replace"],
    &["add", "--list", "--user"],
    &["add", "network", "--user"],
    &["fire", "--trace", "--event", "event.json"],
    &["tune", "--events", "events.jsonl", "--verbose"],
    &["tune", "--events", "events.jsonl", "--write", "--rules"],
    &["convert", "--from", "claude", "--to", "openharness", "--rules", "--write"],
];

/// A copy of the repository, and a server that its hooks try to reach.
struct Clone {
    directory: TempDir,
    server: TcpListener,
}

impl Clone {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        server.set_nonblocking(true).unwrap();
        let port = server.local_addr().unwrap().port().to_string();
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/hostile-repository");
        let clone = Self { directory, server };
        copy(&source, &clone.root(), &port);
        clone.plant();
        clone
    }

    fn root(&self) -> PathBuf {
        self.directory.path().canonicalize().unwrap().join("clone")
    }

    /// What no repository of ours should have: links that lead out, and names that write to a terminal.
    fn plant(&self) {
        let hooks = self.root().join(".openharness/hooks");
        symlink("/etc/passwd", hooks.join("link.yaml")).unwrap();
        fs::write(hooks.join("\u{1b}[2J\nevil.yaml"), "name: evil\n").unwrap();
        let cases = self.root().join(".openharness/tests");
        fs::create_dir_all(&cases).unwrap();
        symlink("/etc/passwd", cases.join("link.yaml")).unwrap();
        let case = json!({ "name": "\u{1b}[2J", "event": event(), "expect": { "verdict": "halt", "reason": "\u{1b}[2J" } });
        fs::write(cases.join("\u{1b}[2J\nevil.json"), json!({ "cases": [case] }).to_string()).unwrap();
        fs::write(self.root().join("event.json"), event().to_string()).unwrap();
        fs::write(self.root().join("native.json"), native(&self.root()).to_string()).unwrap();
        fs::write(self.root().join("gemini.json"), gemini(&self.root()).to_string()).unwrap();
        fs::write(self.root().join("events.jsonl"), format!("{}\n", event())).unwrap();
    }

    /// The home of those who run commands in the repository. Their agent knows its marketplace of plugins.
    fn home(&self) -> PathBuf {
        let home = self.directory.path().join("home");
        let market = self.root().join("market");
        let known = json!({ "market": { "source": { "source": "directory", "path": market }, "installLocation": market } });
        let plugins = home.join(".claude/plugins");
        fs::create_dir_all(&plugins).unwrap();
        fs::write(plugins.join("known_marketplaces.json"), known.to_string()).unwrap();
        home
    }

    /// Runs a command of the program in the repository.
    fn run(&self, arguments: &[&str], stdin: &str) -> Output {
        self.run_program(Command::new(env!("CARGO_BIN_EXE_hookyard")), arguments, stdin)
    }

    fn run_program(&self, mut program: Command, arguments: &[&str], stdin: &str) -> Output {
        let home = self.home();
        let mut child = program
            .args(arguments)
            .current_dir(self.root())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", &home)
            .env("HOOKYARD_TEST_HOME", &home)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // A command that reads nothing may have ended.
        drop(child.stdin.take().unwrap().write_all(stdin.as_bytes()));
        child.wait_with_output().unwrap()
    }

    /// Asserts that no hook of it ran, and none connected.
    fn assert_quiet(&self, what: &str) {
        let ran = traces(&self.directory.path().join("clone"));
        assert!(ran.is_empty(), "{what}: {ran:?}");
        let connected = self.server.accept().map_err(|error| error.kind());
        assert!(matches!(connected, Err(ErrorKind::WouldBlock)), "{what}: {connected:?}");
    }
}

fn event() -> serde_json::Value {
    json!({ "event": "before_tool_dispatch", "session_id": "s", "run_id": "r", "tool_name": "Bash",
            "tool_input": { "command": "ls" } })
}

/// The event of an agent with the words of Claude Code.
fn native(cwd: &Path) -> Value {
    json!({ "hook_event_name": "PreToolUse", "session_id": "s", "cwd": cwd, "tool_name": "Bash",
            "tool_input": { "command": "ls" }, "tool_use_id": "t", "transcript_path": "/x",
            "permission_mode": "default" })
}

fn gemini(cwd: &Path) -> Value {
    json!({ "hook_event_name": "BeforeTool", "session_id": "s", "cwd": cwd, "tool_name": "run_shell_command",
            "tool_input": { "command": "ls" }, "transcript_path": "/x", "timestamp": "2026-01-01T00:00:00Z" })
}

fn copy(from: &Path, to: &Path, port: &str) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target, port);
        } else {
            let text = fs::read_to_string(entry.path()).unwrap();
            fs::write(target, text.replace("$PORT", port)).unwrap();
        }
    }
}

/// What hooks wrote.
fn traces(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    entries
        .flat_map(|path| if path.is_dir() && !path.is_symlink() { traces(&path) } else { vec![path] })
        .filter(|path| path.ends_with("RAN"))
        .collect()
}

/// Sends events of every dialect, from the workspace and from a directory in it.
fn send_everything(daemon: &Daemon, clone: &Clone) {
    for directory in ["", "sub", "vendor"] {
        let cwd = clone.root().join(directory);
        let mut canonical = event();
        canonical["workspace_id"] = json!("clone");
        canonical["cwd"] = json!(cwd);
        let native = native(&cwd);
        let gemini = gemini(&cwd);
        let requests = [
            ("/v1/events", &canonical),
            ("/v1/events/claude", &native),
            ("/v1/events/codebuddy", &native),
            ("/v1/events/codex", &native),
            ("/v1/events/qwen", &native),
            ("/v1/events/clawd", &native),
            ("/v1/events/gemini", &gemini),
        ];
        for (path, body) in requests {
            daemon.send("POST", path, Some(body));
        }
    }
}

#[test]
#[cfg_attr(hookyard_portable, ignore = "no kernel restricts files, calls and sockets")]
fn its_hooks_run_in_the_sandbox_of_the_settings() {
    let clone = Clone::new();
    let daemon = DaemonSetup::new()
        .settings(&format!(
            "workspaces: {{ clone: {{ root: {}, kind: project, dialects: auto }} }}",
            clone.root().display()
        ))
        .settings("sandbox: { project: { filesystem: read_only, network: none, require: true } }")
        .serve();
    assert_ne!(daemon.get("/v1/status")["hooks"], 0);
    send_everything(&daemon, &clone);
    let mut control = event();
    control["workspace_id"] = json!("clone");
    let outcome = daemon.post("/v1/events", &control);
    let ended = |hook: &Value| ["completed", "failed"].contains(&hook["ended"].as_str().unwrap());
    assert!(outcome["hooks"].as_array().unwrap().iter().any(ended), "they do run: {outcome}");
    let ran = traces(&clone.root());
    assert!(ran.is_empty(), "{ran:?}");
    daemon.finish();
}

#[test]
fn it_configures_nothing_through_what_takes_events() {
    let clone = Clone::new();
    let daemon = DaemonSetup::new()
        .file("srv/file", "")
        .settings("workspace_roots: [$DIR/srv]")
        .argument("--tcp")
        .argument("127.0.0.1:0")
        .serve();
    send_everything(&daemon, &clone);
    let registration = json!({ "root": clone.root() }).to_string();
    let refused = daemon.client().send("PUT", "/v1/workspaces/clone", Some(registration.as_bytes()));
    assert_eq!(refused.unwrap().status, 403);
    let mut stream = TcpStream::connect(daemon.tcp()).unwrap();
    let length = registration.len();
    let head = "PUT /v1/workspaces/clone HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n";
    write!(stream, "{head}content-type: application/json\r\ncontent-length: {length}\r\n\r\n{registration}")
        .unwrap();
    let mut refused = String::new();
    stream.read_to_string(&mut refused).unwrap();
    assert!(refused.starts_with("HTTP/1.1 403 "), "{refused}");
    let registered = daemon.get("/v1/workspaces").to_string();
    assert!(!registered.contains(clone.root().to_str().unwrap()), "{registered}");
    clone.assert_quiet("registration");
    daemon.finish();
}

#[test]
fn commands_that_show_it_run_nothing_and_write_nothing_to_the_terminal() {
    let clone = Clone::new();
    let commands: [&[&str]; 10] = [
        &["check", "--no-start"],
        &["check", "--no-start", "--json", "--verbose"],
        &["list"],
        &["list", "--json"],
        &["explain", "--event", "event.json"],
        &["convert", "--from", "claude", "--to", "openharness"],
        &["convert", "--from", "openharness", "--to", "claude"],
        &["relay", "--dialect", "claude", "--socket", "/nonexistent/hookyard.sock"],
        &["top", "--once", "--socket", "/nonexistent/hookyard.sock"],
        &["ui", "--no-open", "--socket", "/nonexistent/hookyard.sock"],
    ];
    for command in commands {
        let output = clone.run(command, &event().to_string());
        clone.assert_quiet(&command.join(" "));
        let text = [output.stdout, output.stderr].concat();
        assert!(
            !text.contains(&0x1b),
            "{command:?} writes to the terminal: {}",
            String::from_utf8_lossy(&text)
        );
    }
}

#[test]
fn no_command_runs_or_connects_anything_of_it() {
    let clone = Clone::new();
    // Its own settings would switch off its hooks too, and so prove nothing.
    fs::remove_file(clone.root().join(".openharness/settings.yaml")).unwrap();
    for settings in [".gemini/settings.json", ".clawdcode/settings.json"] {
        let settings = clone.root().join(settings);
        let text = fs::read_to_string(&settings).unwrap();
        fs::write(&settings, text.replace("\"enabled\": false", "\"enabled\": true")).unwrap();
    }
    let listed = clone.run(&["list", "--json"], "");
    for hook in [
        "oneshot",
        "codex.project.PreToolUse",
        "qwen.project.PreToolUse",
        "clawd.project.PreToolUse",
        "gemini.project.BeforeTool",
        "claude.project.evil_market.PreToolUse",
    ] {
        assert!(String::from_utf8_lossy(&listed.stdout).contains(hook), "{hook}: {listed:?}");
    }
    for command in COMMANDS.into_iter().chain(MORE_COMMANDS) {
        let output = clone.run(command, &event().to_string());
        let text = [output.stdout, output.stderr].concat();
        clone.assert_quiet(&command.join(" "));
        assert!(
            !text.contains(&0x1b),
            "{command:?} writes to the terminal: {}",
            String::from_utf8_lossy(&text)
        );
    }
}

#[test]
fn every_command_is_tried_on_it() {
    let help = Clone::new().run(&["help"], "");
    let text = String::from_utf8(help.stdout).unwrap();
    let commands = text.split_once("Commands:\n").unwrap().1.split_once("\n\n").unwrap().0;
    let tried: Vec<&str> = COMMANDS.into_iter().chain(MORE_COMMANDS).map(|command| command[0]).collect();
    // A daemon is tried by other tests.
    let left: Vec<&str> = commands
        .lines()
        // A longer text goes on in further lines, which are indented.
        .filter_map(|line| line.strip_prefix("  ")?.split(' ').next().filter(|name| !name.is_empty()))
        .filter(|name| !tried.contains(name) && *name != "serve")
        .collect();
    assert_eq!(left, [""; 0], "{text}");
}

#[test]
fn a_daemon_runs_and_connects_nothing_of_it() {
    let clone = Clone::new();
    let daemon = DaemonSetup::new()
        .settings(&format!(
            "workspaces: {{ clone: {{ root: {}, kind: project, dialects: auto }} }}",
            clone.root().display()
        ))
        .enforces_trust()
        .serve();
    assert_ne!(daemon.get("/v1/status")["hooks"], 0);
    send_everything(&daemon, &clone);
    clone.assert_quiet("serve");
    daemon.finish();
}
