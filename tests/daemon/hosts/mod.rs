//! Hosts of every dialect at the daemon: over HTTP, through `relay`, and the programs of `docs/hosts.md`.

#![allow(clippy::disallowed_methods, reason = "programs are started as their users start them")]

mod claude;
mod commands;
mod control_from_hooks;
mod foreign_sockets;
mod handlers;
mod isolation;
mod levels;
mod page;
mod recording;
mod relay;
mod relay_answers;
mod relay_wait;
mod remote_relay;
mod runs;
mod small_relay;
mod stream;
mod verdict_conditions;
mod verdicts;
mod workspaces;

use std::{
    fs,
    io::{Read, Write},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use crate::support::daemon::{self, Daemon, DaemonSetup};
use crate::support::trust::without_trust;
use crate::support::wait::{LONGEST_WAIT, wait_until};
use serde_json::{Value, json};

/// A settings file of Claude Code, CodeBuddy or Gemini CLI with one command for an event.
fn hooks(event: &str, command: &str) -> String {
    json!({ "hooks": { event: [{ "hooks": [{ "type": "command", "command": command }] }] } }).to_string()
}

/// A hook file with one command for an event.
fn hook(name: &str, event: &str, command: &str) -> String {
    let handler = json!({ "type": "command", "command": command, "timeout_seconds": 60 });
    json!({ "name": name, "events": [event], "handler": handler }).to_string()
}

/// A hook file with a worker that blocks everything; the reason is its process's id.
fn worker(event: &str) -> String {
    let command = r#"echo '{"hookyard":1}'
while read -r line; do
  id=$(printf %s "$line" | sed 's/^{"id":"\([^"]*\)".*/\1/')
  echo "{\"id\":\"$id\",\"output\":{\"decision\":\"block\",\"reason\":\"$$\"}}"
done"#;
    let handler = json!({ "type": "command", "command": command, "mode": "worker" });
    json!({ "name": "worker", "events": [event], "handler": handler }).to_string()
}

/// A command that prints an object.
fn prints(output: &Value) -> String {
    format!("cat <<'END'\n{output}\nEND")
}

/// A command that writes its process's id to a file and then takes for ever.
fn hangs(directory: &Path) -> String {
    format!("echo $$ > {0}/pid.new; mv {0}/pid.new {0}/pid; exec sleep 300", directory.display())
}

/// The process that such a command has become.
fn hanging(directory: &Path) -> String {
    let file = directory.join("pid");
    wait_until("the hook runs", || file.exists());
    let pid = fs::read_to_string(&file).unwrap().trim().to_owned();
    fs::remove_file(file).unwrap();
    pid
}

/// Waits until a process has ended.
fn gone(pid: &str) {
    let stat = PathBuf::from(format!("/proc/{pid}/stat"));
    wait_until("the hook's process ends", || {
        fs::read_to_string(&stat).map_or(true, |text| text.rsplit(") ").next().unwrap().starts_with('Z'))
    });
}

/// A canonical event before a tool.
fn call(workspace: &str, run: &str) -> Value {
    json!({ "event": "before_tool_dispatch", "session_id": "s", "run_id": run, "workspace_id": workspace,
            "tool_name": "Bash", "tool_input": { "command": "ls" } })
}

/// An answer with its head.
struct Raw {
    status: u16,
    head: String,
    body: String,
}

/// Sends a request as it stands over a connection, and reads the answer.
fn ask(mut connection: impl Read + Write, line: &str, headers: &[(&str, &str)], body: &str) -> Raw {
    let headers: Vec<_> = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let headers = headers.concat();
    let length = body.len();
    let head = format!(
        "{line} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n{headers}content-length: {length}\r\n\r\n"
    );
    connection.write_all(head.as_bytes()).unwrap();
    connection.write_all(body.as_bytes()).unwrap();
    let mut text = String::new();
    connection.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {text:?}"));
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Raw { status, head: head.to_lowercase(), body: body.to_owned() }
}

/// What a program printed, and its exit code.
#[derive(Debug, PartialEq, Eq)]
struct Said {
    out: String,
    err: String,
    code: Option<i32>,
}

/// The whole program, and the small one for events.
const PROGRAMS: [&str; 2] = [env!("CARGO_BIN_EXE_hookyard"), env!("CARGO_BIN_EXE_hookyard-relay")];

/// The program, beside a daemon: the small one for events, as the entries of agents have it.
fn hookyard(daemon: &Daemon, arguments: &[&str]) -> Command {
    let is_relay = arguments.first() == Some(&"relay");
    started(Path::new(PROGRAMS[usize::from(is_relay)]), daemon, arguments)
}

/// A program, beside a daemon.
fn started(program: &Path, daemon: &Daemon, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command
        .args(without_trust(arguments))
        .current_dir(daemon.path())
        .env("HOOKYARD_LISTEN_SOCKET", daemon.socket())
        .env_remove("HOOKYARD_LISTEN_CONTROL_SOCKET")
        .env("HOOKYARD_TEST_HOME", daemon.path().join("home"))
        .env_remove("HOOKYARD_LOG")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Runs it to its end.
fn said(mut command: Command, input: &str) -> Said {
    let mut child = command.spawn().unwrap();
    // A program that does not want its input may have ended.
    drop(child.stdin.take().unwrap().write_all(input.as_bytes()));
    let output = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Said { out: text(output.stdout), err: text(output.stderr), code: output.status.code() }
}

/// A daemon with a guard of tool calls that takes for ever, and the directory in which it says that it runs.
fn hanging_guard() -> (Daemon, PathBuf) {
    let setting = DaemonSetup::new();
    let directory = setting.path();
    let daemon = setting
        .settings("workspaces: { shop: { root: $DIR/shop } }")
        .file("shop/.openharness/hooks/slow.yaml", &hook("slow", "before_tool_dispatch", &hangs(&directory)))
        .serve();
    (daemon, directory)
}
