//! A hostile repository: every command and endpoint is tried on it, and nothing of it runs, connects or weakens a guard.
#![allow(clippy::disallowed_methods, reason = "commands are run as a person runs them")]

use std::{
    fs,
    io::{ErrorKind, Write},
    net::TcpListener,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use serde_json::json;
use tempfile::TempDir;

use crate::support::daemon::{Daemon, DaemonSetup};

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
        fs::write(self.root().join("events.jsonl"), format!("{}\n", event())).unwrap();
    }

    /// Runs a command of the program in the repository.
    fn run(&self, arguments: &[&str], stdin: &str) -> Output {
        let home = self.directory.path().join("home");
        fs::create_dir_all(&home).unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_hookyard"))
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
        let native = json!({ "hook_event_name": "PreToolUse", "session_id": "s", "cwd": cwd, "tool_name": "Bash",
                             "tool_input": { "command": "ls" }, "tool_use_id": "t", "transcript_path": "/x",
                             "permission_mode": "default" });
        let requests =
            [("/v1/events", &canonical), ("/v1/events/claude", &native), ("/v1/events/codebuddy", &native)];
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
    let listed = clone.run(&["list", "--json"], "");
    assert!(String::from_utf8_lossy(&listed.stdout).contains("oneshot"), "{listed:?}");
    let commands: [&[&str]; 14] = [
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
    ];
    for command in commands {
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
