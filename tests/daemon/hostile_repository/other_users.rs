//! The hostile repository where users of the machine differ: its owner, those who look at it, and the daemon's own user.

use std::{
    fs,
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    os::unix::fs::{PermissionsExt, lchown},
    path::Path,
    process::{Child, Command, Stdio},
};

use rustix::process::{Pid, Signal, geteuid, kill_process};
use serde_json::{Value, json};

use super::{COMMANDS, Clone, event};
use crate::support::wait::wait_until;

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
