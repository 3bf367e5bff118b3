//! `hookyard serve` from its start to its end.

use std::process::{Command, Stdio};

use crate::support::daemon::{self, DaemonSetup};
use crate::support::wait::{LONGEST_WAIT, wait_until};
use rustix::process::Signal;
use serde_json::json;

const GUARD: &str = "name: guard\nevents: [before_tool_dispatch]\nmatcher: Bash\nhandler:\n  type: command\n  \
                     command: 'echo \"no shells here\" >&2; exit 2'\n";

fn event(workspace: &str, tool: &str) -> serde_json::Value {
    json!({ "event": "before_tool_dispatch", "session_id": "s", "run_id": "r", "workspace_id": workspace,
            "tool_name": tool, "tool_input": { "command": "ls" } })
}

#[test]
#[allow(clippy::disallowed_methods, reason = "the program is started as its users start it")]
fn a_daemon_survives_the_end_of_the_reader_of_its_log() {
    let setting = DaemonSetup::new().file("shop/.openharness/hooks/guard.yaml", GUARD);
    let (here, socket) = (setting.path(), setting.path().join("socket"));
    let mut daemon = Command::new(env!("CARGO_BIN_EXE_hookyard"))
        .args(["serve".as_ref(), "--workspace".as_ref(), here.join("shop").as_os_str()])
        .args(["--socket".as_ref(), socket.as_os_str()])
        .args(crate::support::trust::OFF)
        .env("HOOKYARD_TEST_HOME", here.join("home"))
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(daemon.stderr.take());
    let client = hookyard::daemon::Client::new(&socket).timeout(LONGEST_WAIT);
    let body = event("shop", "Bash").to_string();
    let answers = || client.send("POST", "/v1/events", Some(body.as_bytes()));
    wait_until("it takes events", || answers().is_ok());
    for _ in 0..3 {
        assert_eq!(daemon::read(&answers().unwrap())["verdict"], "block");
    }
    daemon.kill().unwrap();
    daemon.wait().unwrap();
}

#[test]
fn an_event_is_answered_with_its_outcome() {
    let mut daemon = DaemonSetup::new()
        .file("shop/.openharness/hooks/guard.yaml", GUARD)
        .settings("workspaces: { shop: { root: $DIR/shop } }")
        .serve();
    let outcome = daemon.post("/v1/events", &event("shop", "Bash"));
    assert_eq!((&outcome["verdict"], &outcome["by"]), (&json!("block"), &json!("guard")));
    assert_eq!(daemon.post("/v1/events", &event("shop", "Read"))["verdict"], "proceed");
    let status = daemon.get("/v1/status");
    assert_eq!((&status["phase"], &status["hooks"]), (&json!("ready"), &json!(1)));
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.wait().code(), Some(0), "{}", daemon.log());
    assert!(!daemon.socket().exists());
}

#[test]
#[allow(clippy::disallowed_methods, reason = "the program is started as its users start it")]
fn a_check_beside_a_running_daemon_names_it_and_takes_nothing_from_it() {
    let daemon = DaemonSetup::new()
        .file("shop/.openharness/hooks/guard.yaml", GUARD)
        .settings("workspaces: { shop: { root: $DIR/shop } }")
        .settings("data: $DIR/data")
        .argument("--tcp")
        .argument("127.0.0.1:0")
        .serve();
    let socket = daemon.socket().to_str().unwrap().to_owned();
    let control = daemon.control_socket().to_str().unwrap().to_owned();
    let elsewhere = daemon.path().join("elsewhere.sock").to_str().unwrap().to_owned();
    let (pid, tcp) = (daemon.pid(), daemon.tcp());
    let run = |flags: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hookyard"));
        command.args(["serve", "--check", "--config"]).arg(daemon.path().join("hookyard.yaml"));
        command.args(flags).args(crate::support::trust::OFF);
        let output = command.env("HOOKYARD_TEST_HOME", daemon.path().join("home")).output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    let check = |flags: &[&str]| {
        let same = ["--socket", &socket, "--tcp", &tcp, "--json"];
        let (code, text) = run(&[&same, flags].concat());
        let report: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(report["running"], json!({ "pid": pid, "replaced": flags.contains(&"--replace") }));
        let named = format!("pid {pid}");
        let found = report["findings"].as_array().unwrap().iter();
        let found = found.filter(|finding| finding["message"].as_str().unwrap().contains(&named));
        let found = found.map(|finding| (finding["subject"].to_string(), finding["level"].clone()));
        (code, found.collect::<Vec<_>>())
    };
    let used = ["listen.socket", "listen.control_socket", "listen.tcp", "data"];
    let all = |level: &str| used.map(|subject| (format!("{subject:?}"), json!(level))).to_vec();
    assert_eq!(check(&[]), (Some(0), all("warning")));
    assert_eq!(check(&["--strict"]), (Some(1), all("warning")));
    assert_eq!(check(&["--strict", "--replace"]), (Some(0), all("ok")));
    let last = |flags: &[&str]| {
        let (_, text) = run(&[&["--socket", &socket, "--tcp", &tcp], flags].concat());
        text.lines().last().unwrap().split(':').next().unwrap().to_owned()
    };
    assert_eq!(last(&[]), format!("the daemon would start once pid {pid} has stopped, and not before"));
    assert_eq!(last(&["--replace"]), format!("the daemon would start and replace pid {pid}"));
    // The running daemon is asked at the control socket, and hands over what has the same use.
    let metrics = format!("listen.metrics={tcp}");
    let others: [(&[&str], &str); 3] = [
        (&["--socket", &socket, "--control-socket", &elsewhere], "`--replace` looks for it at"),
        (&["--socket", &elsewhere, "--control-socket", &control], "the settings say"),
        (&["--socket", &socket, "--set", &metrics], "listen.metrics: cannot listen on"),
    ];
    for (flags, part) in others {
        let (code, text) = run(&[flags, &["--replace"]].concat());
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(code == Some(1) && text.contains(part), "{flags:?}: {text}");
    }
    assert_eq!(daemon.post("/v1/events", &event("shop", "Bash"))["verdict"], "block");
    assert_eq!(daemon.get("/v1/status")["data"]["error"], json!(null));
    daemon.finish();
}

#[test]
fn a_daemon_without_workspaces_says_how_to_add_one() {
    let empty = DaemonSetup::new().serve();
    wait_until("it says how", || empty.log().contains("`--workspace DIR`"));
    empty.finish();
    for settings in ["workspaces: { shop: { root: $DIR/shop } }", "workspace_roots: [$DIR/shop]"] {
        let setup = DaemonSetup::new().file("shop/.openharness/hooks/guard.yaml", GUARD).settings(settings);
        let mut daemon = setup.serve();
        wait_until("it listens", || daemon.log().contains("listening on "));
        daemon.signal(Signal::TERM);
        assert_eq!(daemon.wait().code(), Some(0));
        assert!(!daemon.log().contains("`--workspace DIR`"), "{}", daemon.log());
    }
}
