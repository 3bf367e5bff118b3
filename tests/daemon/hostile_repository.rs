//! A hostile repository: every command and endpoint is tried on it, and nothing of it runs, connects or weakens a guard.
#![allow(clippy::disallowed_methods, reason = "commands are run as a person runs them")]

use std::{
    fs,
    io::{ErrorKind, Read, Write},
    net::{TcpListener, TcpStream},
    os::unix::fs::{PermissionsExt, lchown, symlink},
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
};

use rustix::process::{Pid, Signal, geteuid, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{
    daemon::{Daemon, DaemonSetup},
    wait::wait_until,
};

/// Commands that look at a repository, or send it events.
const COMMANDS: [&[&str]; 18] = [
    &["check"],
    &["check", "--json", "--verbose"],
    &["list"],
    &["list", "--json"],
    &["explain", "--event", "event.json"],
    &["fire", "--event", "event.json"],
    &["fire", "--native", "--dialect", "claude", "--event", "event.json"],
    &["replay", "events.jsonl"],
    &["convert", "--from", "claude", "--to", "openharness"],
    &["convert", "--from", "openharness", "--to", "claude"],
    &["relay", "--dialect", "claude", "--socket", "/nonexistent/hookyard.sock"],
    &["top", "--once", "--socket", "/nonexistent/hookyard.sock"],
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
const MORE_COMMANDS: [&[&str]; 29] = [
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
    &["stop", "--socket", NOBODY],
    &["audit", "events.jsonl"],
    &["schema", "event"],
    &["completions", "bash"],
    &["help"],
];

/// Becomes the program of its second argument as the user of its first. The program is opened before, since its directory
/// may be closed to that user.
const AS_USER: &str = "import os, sys\n\
    uid, program = int(sys.argv[1]), os.open(sys.argv[2], os.O_RDONLY)\n\
    os.setgroups([]); os.setgid(uid); os.setuid(uid)\n\
    os.execve(program, sys.argv[2:], os.environ)";

/// Two users of the machine that are not root.
const USERS: [u32; 2] = [65_534, 54_321];

/// The program, started as another user.
fn program_as(user: u32) -> Command {
    let mut command = Command::new("python3");
    command.args(["-c", AS_USER, &user.to_string(), env!("CARGO_BIN_EXE_hookyard")]);
    command
}

/// Gives a directory and all that is in it to a user.
fn give(directory: &Path, user: u32) {
    lchown(directory, Some(user), Some(user)).unwrap();
    for path in fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()) {
        if path.is_dir() && !path.is_symlink() {
            give(&path, user);
        } else {
            lchown(&path, Some(user), Some(user)).unwrap();
        }
    }
}

/// Whether the tests can be other users. Says so if not: what is not tried is not held.
fn is_root() -> bool {
    let is_root = geteuid().is_root();
    if !is_root {
        eprintln!("NOT RUN: this needs root, to be another user");
    }
    is_root
}

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
    let ran = traces(&clone.root());
    assert!(ran.is_empty(), "{ran:?}");
    daemon.finish();
}

#[test]
fn it_configures_nothing_through_the_doors_for_events() {
    let clone = Clone::new();
    let daemon = DaemonSetup::new().argument("--tcp").argument("127.0.0.1:0").serve();
    let registration = json!({ "root": clone.root() });
    let refused =
        daemon.client().send("PUT", "/v1/workspaces/clone", Some(registration.to_string().as_bytes()));
    assert_eq!(refused.unwrap().status, 403);
    clone.assert_quiet("registration");
    daemon.finish();
}

#[test]
fn commands_that_show_it_run_nothing_and_write_nothing_to_the_terminal() {
    let clone = Clone::new();
    let commands: [&[&str]; 9] = [
        &["check", "--no-start"],
        &["check", "--no-start", "--json", "--verbose"],
        &["list"],
        &["list", "--json"],
        &["explain", "--event", "event.json"],
        &["convert", "--from", "claude", "--to", "openharness"],
        &["convert", "--from", "openharness", "--to", "claude"],
        &["relay", "--dialect", "claude", "--socket", "/nonexistent/hookyard.sock"],
        &["top", "--once", "--socket", "/nonexistent/hookyard.sock"],
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
        .filter_map(|line| line.split_whitespace().next())
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

#[test]
fn it_is_as_powerless_where_it_belongs_to_another_user() {
    if !is_root() {
        return;
    }
    let [owner, reader] = USERS;
    for (owner, user) in [(owner, reader), (reader, owner), (0, owner), (owner, 0)] {
        let clone = Clone::new();
        fs::remove_file(clone.root().join(".openharness/settings.yaml")).unwrap();
        fs::set_permissions(clone.directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
        give(&clone.root(), owner);
        give(&clone.home(), user);
        for command in COMMANDS {
            let output = clone.run_program(program_as(user), command, &event().to_string());
            let text = [output.stdout, output.stderr].concat();
            let what = format!("{command:?} of {owner} as {user}: {}", String::from_utf8_lossy(&text));
            clone.assert_quiet(&what);
            assert!(!text.contains(&0x1b) && !what.contains("Traceback"), "{what}");
        }
    }
}

/// What an agent tries that runs as another user than the daemon: its user, the daemon's directory, the daemon's port,
/// and its own repository.
const AGENT: &str = r#"
import json, os, socket, sys
uid, place, port, clone = int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4]
os.setgroups([]); os.setgid(uid); os.setuid(uid)
tried = {}
for name in ["hookyard.sock", "hookyard-control.sock"]:
    try:
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(os.path.join(place, name))
        connection.sendall(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n")
        tried[name] = "answered" if connection.recv(1) else "closed"
    except OSError as error:
        tried[name] = "refused"
for name in ["hookyard.yaml", "home/.claude/settings.json", "state/x", "x"]:
    try:
        open(os.path.join(place, name), "w")
        tried[name] = "written"
    except OSError as error:
        tried[name] = "refused"
def ask(method, path, body):
    connection = socket.socket()
    connection.connect(("127.0.0.1", port))
    text = json.dumps(body)
    head = f"{method} {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\ncontent-type: application/json\r\n"
    connection.sendall(f"{head}content-length: {len(text)}\r\n\r\n{text}".encode())
    answer = b""
    while True:
        part = connection.recv(65536)
        if not part: break
        answer += part
    return [int(answer.split(b" ")[1]), answer.split(b"\r\n\r\n", 1)[1].decode()]
tried["register"] = ask("PUT", "/v1/workspaces/evil", {"root": clone})
tried["reload"] = ask("POST", "/v1/reload", None)
tried["status"] = ask("GET", "/v1/status", None)
tried["events"] = []
for directory in ["", "sub", "vendor"]:
    event = {"hook_event_name": "PreToolUse", "session_id": "s", "cwd": os.path.join(clone, directory), "tool_name": "Bash",
             "tool_input": {"command": "ls"}, "tool_use_id": "t" + directory, "transcript_path": "/x", "permission_mode": "default"}
    tried["events"].append(ask("POST", "/v1/events/claude", event))
print(json.dumps(tried))
"#;

/// A daemon that runs as a user, in a directory that only this user may enter.
struct UsersDaemon {
    child: Child,
    port: u16,
}

impl UsersDaemon {
    /// Starts it in a directory for a repository, with a guard of its user's own.
    fn start(user: u32, place: &Path, clone: &Clone) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let (here, root) = (place.display(), clone.root());
        let settings = format!(
            "workspaces: {{ clone: {{ root: {}, dialects: auto }} }}\nhome: {here}/home\n\
             state_directory: {here}/state\nlisten: {{ tcp: 127.0.0.1:{port} }}\n",
            root.display()
        );
        fs::write(place.join("hookyard.yaml"), settings).unwrap();
        let guard = json!({ "type": "command", "command": "echo guarded >&2; exit 2" });
        let hooks = json!({ "hooks": { "PreToolUse": [{ "matcher": "Bash", "hooks": [guard] }] } });
        fs::create_dir_all(place.join("home/.claude")).unwrap();
        fs::write(place.join("home/.claude/settings.json"), hooks.to_string()).unwrap();
        fs::create_dir(place.join("state")).unwrap();
        give(place, user);
        fs::set_permissions(place, fs::Permissions::from_mode(0o700)).unwrap();
        let child = program_as(user)
            .args(["serve".as_ref(), "--config".as_ref(), place.join("hookyard.yaml").as_os_str()])
            .args(["--socket".as_ref(), place.join("hookyard.sock").as_os_str()])
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(fs::File::create(place.join("log")).unwrap())
            .spawn()
            .unwrap();
        let daemon = Self { child, port };
        wait_until("it is ready", || daemon.is_ready());
        daemon
    }

    fn is_ready(&self) -> bool {
        let Ok(mut stream) = TcpStream::connect(("127.0.0.1", self.port)) else { return false };
        let request = b"GET /readyz HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n";
        let mut text = String::new();
        stream.write_all(request).is_ok()
            && stream.read_to_string(&mut text).is_ok()
            && text.starts_with("HTTP/1.1 200")
    }

    fn finish(mut self) {
        kill_process(Pid::from_child(&self.child), Signal::TERM).unwrap();
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for UsersDaemon {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            // Both fail only if it has just ended.
            drop(self.child.kill());
            drop(self.child.wait());
        }
    }
}

#[test]
fn its_agent_changes_nothing_of_a_daemon_under_a_user_of_its_own() {
    if !is_root() {
        return;
    }
    let [first, second] = USERS;
    for (user, agent) in [(first, second), (second, first)] {
        let clone = Clone::new();
        fs::set_permissions(clone.directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
        give(&clone.root(), agent);
        let directory = tempfile::tempdir().unwrap();
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let place = directory.path().canonicalize().unwrap().join("daemon");
        fs::create_dir(&place).unwrap();
        let daemon = UsersDaemon::start(user, &place, &clone);
        let output = Command::new("python3")
            .args(["-c", AGENT, &agent.to_string()])
            .arg(&place)
            .arg(daemon.port.to_string())
            .arg(clone.root())
            .output()
            .expect("python3");
        let tried: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
        for (what, result) in tried.as_object().unwrap() {
            match what.as_str() {
                "register" | "reload" | "status" => assert_eq!(result[0], 403, "{what}: {result}"),
                "events" => {}
                _ => assert_eq!(result, "refused", "{what}"),
            }
        }
        for answer in tried["events"].as_array().unwrap() {
            assert_eq!(answer[0], 200, "{answer}");
            assert!(answer[1].as_str().unwrap().contains("guarded"), "the user's guard decides: {answer}");
        }
        clone.assert_quiet("a daemon under another user");
        daemon.finish();
    }
}
