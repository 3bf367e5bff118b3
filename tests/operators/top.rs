//! `top` and `runs` on a daemon under a small load, as programs read them and on a terminal.

#![allow(clippy::disallowed_methods, reason = "the program is started as its users start it")]

use std::{
    io::{Read, Write},
    process::{Command, Output, Stdio},
    sync::mpsc,
    thread,
    time::Instant,
};

use crate::support::daemon::{self, Daemon, DaemonSetup};
use crate::support::wait::{LONGEST_WAIT, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

/// A hook file; `command` is for the shell.
fn hook(name: &str, command: &str, more: &str) -> String {
    format!(
        "name: {name}\nevents: [before_tool_dispatch]\nhandler:\n  type: command\n  command: '{command}'\n{more}\n"
    )
}

/// A daemon with a hook that blocks, one that fails, and one that runs for long where it is told to.
fn shop() -> Daemon {
    let hooks = "shop/.openharness/hooks";
    DaemonSetup::new()
        .file(&format!("{hooks}/guard.yaml"), &hook("guard", "grep -q rm && exit 2; exit 0", "priority: 1"))
        .file(&format!("{hooks}/odd.yaml"), &hook("odd", "echo boo >&2; exit 3", "priority: 9"))
        .file(
            &format!("{hooks}/slow.yaml"),
            &hook("slow", "while [ -e ../wait ]; do sleep 0.02; done", "priority: 5\nmatcher: ^Wait$"),
        )
        .settings("workspaces: { shop: { root: $DIR/shop } }")
        .serve()
}

fn event(run: &str, tool: &str, command: &str) -> Value {
    json!({
        "event": "before_tool_dispatch", "session_id": "s", "run_id": run, "workspace_id": "shop",
        "tool_name": tool, "tool_input": { "command": command },
    })
}

fn top(daemon: &Daemon, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hookyard"));
    command.arg("top").args(arguments).arg("--socket").arg(daemon.socket()).output().unwrap()
}

/// What `top` shows after a load, which begins when it watches.
fn watched(daemon: &Daemon, arguments: &[&str], load: impl FnOnce()) -> String {
    let done = thread::scope(|scope| {
        let top = scope.spawn(|| top(daemon, arguments));
        wait_until("watched", || daemon.get("/v1/status")["streams"] == 1);
        load();
        top.join().unwrap()
    });
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap()
}

#[test]
fn json_shows_hooks_and_runs() {
    let daemon = shop();
    daemon::write(&daemon.path().join("wait"), "");
    let shown = watched(&daemon, &["--once", "--json", "--seconds", "3"], || {
        for number in 0..6 {
            daemon.post("/v1/events", &event("r", "Bash", if number < 2 { "rm" } else { "ls" }));
        }
        let waiting = event("busy", "Wait", "ls").to_string();
        let client = daemon.client();
        thread::spawn(move || client.send("POST", "/v1/events", Some(waiting.as_bytes())));
        wait_until("busy", || {
            let runs = daemon.get("/v1/runs");
            runs["runs"].as_array().unwrap().iter().any(|run| run["under_way"][0]["hooks"][0] == "slow")
        });
    });
    let runs = Command::new(env!("CARGO_BIN_EXE_hookyard"))
        .args(["runs".as_ref(), "--socket".as_ref(), daemon.socket().as_os_str()])
        .output()
        .unwrap();
    std::fs::remove_file(daemon.path().join("wait")).unwrap();
    let shown: Value = serde_json::from_str(&shown).unwrap();
    let row = |name: &str| shown["hooks"].as_array().unwrap().iter().find(|row| row["hook"] == name).unwrap();
    let guard = row("guard");
    assert_eq!((&guard["runs"], &guard["handler"]), (&json!(6), &json!("command")));
    assert_eq!(guard["verdicts"], json!({ "proceed": 4, "allow": 0, "ask": 0, "block": 2, "halt": 0 }));
    assert!(guard["p50_ms"].as_f64().unwrap() > 0.0 && guard["rate"].as_f64().unwrap() > 1.0, "{guard}");
    assert!(guard["last_failure"].is_null(), "{guard}");
    let odd = row("odd");
    assert_eq!((&odd["runs"], &odd["failures"]), (&json!(4), &json!(4)));
    assert!(odd["last_failure"]["why"].as_str().unwrap().contains("failed"), "{odd}");
    assert_eq!((&shown["events"]["verdicts"]["block"], &shown["dropped"]), (&json!(2), &json!(0)));
    assert_eq!(shown["status"]["phase"], "ready");
    let busy = shown["runs"].as_array().unwrap().iter().find(|run| run["run_id"] == "busy").unwrap();
    assert_eq!(busy["under_way"][0]["hooks"], json!(["slow"]));
    let listed = String::from_utf8(runs.stdout).unwrap();
    assert!(listed.contains("before_tool_dispatch") && listed.contains(": slow"), "{listed}");
}

#[test]
fn without_a_terminal_one_table_is_printed() {
    let daemon = shop();
    let shown = watched(&daemon, &["--seconds", "1", "--id", "shop"], || {
        daemon.post("/v1/events", &event("r", "Bash", "rm"));
    });
    assert!(!shown.contains('\x1b'), "{shown:?}");
    let row = shown.lines().find(|line| line.starts_with("guard")).unwrap_or_else(|| panic!("{shown}"));
    let words: Vec<_> = row.split_whitespace().collect();
    assert_eq!((words[1], words[words.len() - 3], words[words.len() - 1]), ("command", "·", "·"), "{row}");
    let refused = top(&daemon, &["--once", "--id", "no\u{1}"]);
    assert_eq!(refused.status.code(), Some(1));
}

#[test]
fn without_a_daemon_it_says_so() {
    let nowhere = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_hookyard"));
    let done = command.args(["top", "--once", "--socket"]).arg(nowhere.path().join("none")).output().unwrap();
    let errors = String::from_utf8(done.stderr).unwrap();
    assert_eq!(done.status.code(), Some(1));
    assert!(errors.contains("no hookyard listens on") && errors.contains("hookyard serve"), "{errors}");
}

/// A shell in a terminal that runs `top` between two looks at the terminal's modes.
struct InTerminal {
    child: std::process::Child,
    shown: mpsc::Receiver<Vec<u8>>,
    all: Vec<u8>,
}

/// What stands on a screen after all this was written: only what changes is written, so that words come in parts.
fn screen(written: &str) -> String {
    let mut lines = vec![vec![' '; 200]; 50];
    let (mut line, mut column) = (0, 0);
    let mut rest = written.chars();
    while let Some(c) = rest.next() {
        match c {
            '\x1b' if rest.as_str().starts_with('[') => {
                let sequence = &rest.as_str()[1..];
                let Some(end) = sequence.find(|c: char| c.is_alphabetic()) else { break };
                let mut numbers =
                    sequence[..end].split(';').map(|number| number.parse::<usize>().unwrap_or(1));
                match &sequence[end..=end] {
                    "H" => {
                        line = numbers.next().unwrap_or(1) - 1;
                        column = numbers.next().unwrap_or(1) - 1;
                    }
                    "J" => lines.iter_mut().for_each(|line| line.fill(' ')),
                    _ => {}
                }
                rest = sequence[end + 1..].chars();
            }
            '\r' => column = 0,
            '\n' => line += 1,
            c if !c.is_control() && line < 50 && column < 200 => {
                lines[line][column] = c;
                column += 1;
            }
            _ => {}
        }
    }
    lines.into_iter().map(|line| line.into_iter().collect::<String>().trim_end().to_owned() + "\n").collect()
}

impl InTerminal {
    /// None where there is no program that makes terminals.
    fn start(daemon: &Daemon) -> Option<Self> {
        let program = env!("CARGO_BIN_EXE_hookyard");
        let line = format!(
            "stty rows 20 cols 90; echo modes $(stty -g); {program} top --socket {}; echo left-with $? modes $(stty -g) over",
            daemon.socket().display()
        );
        let started = Command::new("script")
            .args(["-q", "-c", &line, "/dev/null"])
            .env("TERM", "xterm")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        let Ok(mut child) = started else {
            eprintln!("COULD NOT RUN: a terminal needs `script` of util-linux, which is not installed");
            return None;
        };
        let mut out = child.stdout.take().unwrap();
        let (sender, shown) = mpsc::channel();
        thread::spawn(move || {
            let mut part = [0; 4096];
            while let Ok(read @ 1..) = out.read(&mut part) {
                if sender.send(part[..read].to_vec()).is_err() {
                    return;
                }
            }
        });
        Some(Self { child, shown, all: Vec::new() })
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.all).into_owned()
    }

    /// Waits until something stands on the screen.
    fn wait_until(&mut self, what: &str) {
        self.wait(what, |all| screen(all).contains(what));
    }

    fn wait(&mut self, what: &str, is_there: impl Fn(&str) -> bool) {
        let deadline = Instant::now() + LONGEST_WAIT;
        while !is_there(&self.text()) {
            let left = deadline.saturating_duration_since(Instant::now());
            let part = self.shown.recv_timeout(left);
            self.all.extend(part.unwrap_or_else(|_| panic!("never: {what} in\n{}", screen(&self.text()))));
        }
    }

    fn type_in(&mut self, keys: &str) {
        self.child.stdin.as_mut().unwrap().write_all(keys.as_bytes()).unwrap();
    }

    /// How `top` ended. The terminal must be as it was.
    fn end(mut self) -> String {
        self.wait("the end", |all| all.contains("over"));
        drop(self.child.kill());
        drop(self.child.wait());
        let text = self.text();
        let modes: Vec<_> =
            text.split("modes ").skip(1).map(|rest| rest.split_whitespace().next().unwrap()).collect();
        assert_eq!(modes[0], modes[1], "{text:?}");
        // The other screen is left, and the cursor is there again.
        let left = text.rfind("\x1b[?1049l").expect("the first screen");
        assert!(left > text.rfind("\x1b[?1049h").unwrap(), "{text:?}");
        assert!(text.rfind("\x1b[?25h") > text.rfind("\x1b[?25l"), "{text:?}");
        text.split("left-with ").nth(1).unwrap().split_whitespace().next().unwrap().to_owned()
    }
}

#[test]
fn the_terminal_is_restored_after_any_end() {
    let daemon = shop();
    for (keys, code) in [("q", "0"), ("\x03", "130")] {
        let Some(mut terminal) = InTerminal::start(&daemon) else { return };
        terminal.wait_until("events/s");
        terminal.type_in("\t");
        terminal.wait_until("pending");
        terminal.type_in(keys);
        assert_eq!(terminal.end(), code);
    }
}

#[test]
fn a_signal_restores_the_terminal() {
    let daemon = shop();
    let Some(mut terminal) = InTerminal::start(&daemon) else { return };
    terminal.wait_until("events/s");
    let socket = daemon.socket().to_str().unwrap().as_bytes();
    let is_top = |id: &i32| {
        let line = std::fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        let mut words = line.split(|byte| *byte == 0);
        words.nth(1) == Some(b"top") && words.any(|word| word == socket)
    };
    let processes = std::fs::read_dir("/proc").unwrap();
    let ids = processes.filter_map(|entry| entry.unwrap().file_name().to_str()?.parse::<i32>().ok());
    let top: Vec<i32> = ids.filter(is_top).collect();
    kill_process(Pid::from_raw(top[0]).unwrap(), Signal::TERM).unwrap();
    assert_eq!(terminal.end(), "143");
}

#[test]
fn top_reports_a_lost_daemon_and_reconnects() {
    let mut daemon = shop();
    let Some(mut terminal) = InTerminal::start(&daemon) else { return };
    terminal.wait_until("events/s");
    daemon.signal(Signal::TERM);
    daemon.wait();
    terminal.wait_until("no hookyard listens on");
    let socket = daemon.socket().to_owned();
    let again = daemon.again().serve();
    assert_eq!(again.socket(), socket);
    wait_until("followed again", || again.get("/v1/status")["streams"] == 1);
    again.post("/v1/events", &event("r", "Bash", "rm"));
    terminal.wait_until("guard");
    terminal.type_in("q");
    assert_eq!(terminal.end(), "0");
}
