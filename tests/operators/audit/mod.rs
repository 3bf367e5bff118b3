//! The audit log of the daemon: its lines, rotation, and what happens when it cannot be written.

mod required;
mod search;

use std::{
    fs,
    io::{BufRead, BufReader},
    path::Path,
    thread,
};

use crate::support::daemon::{Daemon, DaemonSetup};
use crate::support::wait::wait_until;
use rustix::process::{Pid, Resource, Rlimit, Signal, prlimit};
use serde_json::{Value, json};

const SECRET: &str = "k3y-0001-of-the-shop";

/// A hook of the workspace `shop`.
fn hook(name: &str, tool: &str, more: &str, command: &str) -> (String, String) {
    let path = format!("shop/.openharness/hooks/{name}.yaml");
    let command = command.replace('\'', "''");
    let text = format!(
        "name: {name}\nevents: [before_tool_dispatch]\nmatcher: {tool}\n{more}\nhandler:\n  type: command\n  \
         command: '{command}'\n"
    );
    (path, text)
}

fn setting(audit: &str, hooks: &[(String, String)]) -> DaemonSetup {
    let setting = DaemonSetup::new()
        .file("shop/.openharness/config", "")
        .settings("workspaces: { shop: { root: $DIR/shop } }")
        .settings(&format!("audit: {{ to: $DIR/audit.jsonl, {audit} }}"));
    hooks.iter().fold(setting, |setting, (path, text)| setting.file(path, text))
}

fn event(run: &str, tool: &str) -> Value {
    json!({ "event": "before_tool_dispatch", "session_id": "s", "run_id": run, "workspace_id": "shop",
            "tool_name": tool, "tool_input": { "command": "ls", "other": [1, 2.50] } })
}

fn lines_of(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"))).collect()
}

fn lines(daemon: &Daemon) -> Vec<Value> {
    lines_of(&daemon.path().join("audit.jsonl"))
}

/// The line of an outcome, when it is there.
fn line(daemon: &Daemon, outcome: &Value) -> Value {
    let mut found = None;
    wait_until("the line of an outcome", || {
        found = lines(daemon).into_iter().find(|line| line["decision_id"] == outcome["decision_id"]);
        found.is_some()
    });
    found.unwrap()
}

fn end(mut daemon: Daemon) -> DaemonSetup {
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.wait().code(), Some(0), "{}", daemon.log());
    daemon.again()
}

fn status(daemon: &Daemon) -> Value {
    daemon.get("/v1/status")["audit"].clone()
}

/// The exit code of a command and what it prints, line by line.
fn search(daemon: &Daemon, arguments: &[&str]) -> (Option<i32>, Vec<String>) {
    let (code, lines, _) = run(daemon, arguments);
    (code, lines)
}

/// Also returns what was printed on standard error.
fn run(daemon: &Daemon, arguments: &[&str]) -> (Option<i32>, Vec<String>, String) {
    #[allow(clippy::disallowed_methods, reason = "it is run as its users run it")]
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_hookyard"));
    let done = command.args(arguments).arg("--socket").arg(daemon.socket()).output().unwrap();
    let lines = String::from_utf8(done.stdout).unwrap().lines().map(str::to_owned).collect();
    (done.status.code(), lines, String::from_utf8(done.stderr).unwrap())
}

#[test]
fn a_line_describes_an_outcome() {
    let hooks = [
        hook("fine", "Fine", "", "true"),
        hook("guard", "Bash", "", "echo no shells >&2; exit 2"),
        hook("open", "Open", "on_error: ignore", "exit 1"),
        hook("closed", "Closed", "on_error: deny", "exit 1"),
    ];
    let daemon = setting("", &hooks).serve();
    let told = |tool: &str| line(&daemon, &daemon.post("/v1/events", &event("r", tool)));

    let fine = told("Fine");
    let at = fine["at"].as_str().unwrap();
    assert!(at.len() == 24 && at.starts_with("20") && at.ends_with('Z') && &at[10..11] == "T", "{at}");
    assert_eq!(
        (&fine["workspace_id"], &fine["session_id"], &fine["run_id"]),
        (&json!("shop"), &json!("s"), &json!("r"))
    );
    assert_eq!((&fine["event"], &fine["verdict"]), (&json!("before_tool_dispatch"), &json!("proceed")));
    assert!(fine["snapshot_version"].as_u64() > Some(0) && fine["by"].is_null() && fine["patched"].is_null());
    let report = &fine["hooks"][0];
    assert_eq!(
        (&report["hook"], &report["handler"], &report["ended"]),
        (&json!("fine"), &json!("command"), &json!("completed"))
    );
    assert!(report["duration_ms"].as_f64() > Some(0.0) && report["policy"].is_null());
    let keys: Vec<&String> = fine.as_object().unwrap().keys().collect();
    assert_eq!(keys.len(), 13, "{keys:?}");
    assert_eq!((&fine["tool"], &fine["delivery"]), (&json!("Fine"), &json!(1)));
    let client = &fine["client"];
    let expected = json!({ "listener": "event_socket", "uid": client["uid"], "dialect": "canonical" });
    assert!(client["uid"].is_u64() && *client == expected, "{client}");

    let guard = told("Bash");
    assert_eq!(
        (&guard["verdict"], &guard["by"], &guard["reason"]),
        (&json!("block"), &json!("guard"), &json!("no shells"))
    );
    let open = told("Open");
    assert_eq!((&open["verdict"], &open["hooks"][0]["ended"]), (&json!("proceed"), &json!("failed")));
    assert_eq!(open["hooks"][0]["policy"], "fail_open");
    assert_eq!(open["hooks"][0]["error"], "exit code 1");
    let closed = told("Closed");
    assert_eq!((&closed["verdict"], &closed["hooks"][0]["policy"]), (&json!("block"), &json!("fail_closed")));
    assert_eq!((&closed["by"], &closed["hooks"][0]["verdict"]), (&json!("closed"), &json!("block")));

    daemon.post("/v1/events", &event("r", "Unwanted"));
    assert_eq!(lines(&daemon).len(), 4, "no hook wanted it");
    assert_eq!(
        status(&daemon),
        json!({ "to": daemon.path().join("audit.jsonl"), "written": 4, "dropped_queue": 0, "dropped_write": 0, "shipping": null })
    );
    assert_eq!(mode(&daemon.path().join("audit.jsonl")), 0o600);
}

fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn changes_are_recorded_as_configured() {
    let patch = r#"echo '{"hookSpecificOutput": {"patch": {"tool_input": {"command": "ls -l"}}}}'"#;
    let hooks = [hook("patch", "Bash", "capabilities: [rewrite_tool_request]", patch)];
    for (form, expected) in [
        ("paths", json!(["/tool_input/command"])),
        ("values", json!({ "tool_input": { "command": "ls -l", "other": [1, 2.50] } })),
        ("none", Value::Null),
    ] {
        let daemon = setting(&format!("patches: {form}"), &hooks).serve();
        let outcome = daemon.post("/v1/events", &event("r", "Bash"));
        assert_eq!(outcome["patched"]["tool_input"]["command"], "ls -l", "{outcome}");
        assert_eq!(line(&daemon, &outcome)["patched"], expected, "{form}");
    }
}

#[test]
fn no_line_has_a_secret_of_any_hook_of_its_workspace() {
    let secret = "handler:\n  environment: { KEY: '${secrets.KEY}' }";
    // The one that knows it, and one that repeats what the host says.
    let (path, text) = hook("knows", "Other", "", "true");
    let knows = (path, text.replace("handler:", secret));
    let wanted = json!({ "command": format!("use {SECRET}"), SECRET: 1 });
    let changes = format!(r#"echo '{{"hookSpecificOutput": {{"patch": {{"tool_input": {wanted}}}}}}}'"#);
    let hooks = [
        knows,
        hook("says", "Says", "", &format!("echo the key is {SECRET} >&2; exit 2")),
        hook("patches", "Patches", "capabilities: [rewrite_tool_request]", &changes),
    ];
    for form in ["values", "paths"] {
        let daemon =
            setting(&format!("patches: {form}"), &hooks).variable("HOOKYARD_SECRET_KEY", SECRET).serve();
        assert_eq!(daemon.get("/v1/status")["hooks"], 3, "{}", daemon.log());
        let answer = daemon.post("/v1/events", &event(&format!("run-{SECRET}"), "Says"));
        let told = line(&daemon, &answer);
        assert_eq!((&told["reason"], &told["run_id"]), (&json!("the key is ***"), &json!("run-***")));
        let outcome = daemon.post("/v1/events", &event("r", "Patches"));
        let told = line(&daemon, &outcome);
        let expected = match form {
            "values" => json!({ "tool_input": { "command": "use ***", "other": [1, 2.50], "***": 1 } }),
            _ => json!(["/tool_input/command", "/tool_input/***"]),
        };
        assert_eq!(told["patched"], expected);
        assert!(!fs::read_to_string(daemon.path().join("audit.jsonl")).unwrap().contains(SECRET));
    }
}

#[test]
fn events_of_a_cancelled_run_are_recorded() {
    let daemon = setting("", &[hook("slow", "Bash", "", "touch began; sleep 60")]).serve();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| daemon.post("/v1/events", &event("r", "Bash")));
        wait_until("the hook runs", || daemon.path().join("shop/began").exists());
        assert_eq!(daemon.send("DELETE", "/v1/runs/r?workspace_id=shop", None).status / 100, 2);
        let outcome = waiting.join().unwrap();
        let told = line(&daemon, &outcome);
        assert_eq!((&told["verdict"], &told["reason"]), (&json!("halt"), &json!("the run was cancelled")));
        assert_eq!(told["hooks"][0]["ended"], "cancelled");
        assert!(told["hooks"][0]["policy"].is_null());
    });
}

#[test]
fn answers_of_a_halted_run_are_recorded() {
    let halts = r#"echo '{"continue": false, "stopReason": "over"}'"#;
    let daemon = setting("", &[hook("ends", "Bash", "", halts)]).serve();
    for tool in ["Bash", "Read"] {
        let outcome = daemon.post("/v1/events", &event("r", tool));
        let told = line(&daemon, &outcome);
        assert_eq!((&told["verdict"], &told["by"]), (&json!("halt"), &json!("ends")));
    }
    assert_eq!(lines(&daemon)[1]["hooks"], json!([]));
}

#[test]
fn a_full_file_is_rotated_and_nothing_is_lost() {
    let daemon = setting("max_size: 2KiB, keep: 3", &[hook("guard", "Bash", "", "exit 2")]).serve();
    let outcomes: Vec<Value> = (0..8).map(|_| daemon.post("/v1/events", &event("r", "Bash"))).collect();
    let path = |number: usize| match number {
        0 => daemon.path().join("audit.jsonl"),
        number => daemon.path().join(format!("audit.jsonl.{number}")),
    };
    wait_until("all is written", || status(&daemon)["written"] == 8);
    assert!(path(1).exists() && !path(4).exists());
    let sizes: Vec<u64> = (0..4).filter_map(|number| Some(fs::metadata(path(number)).ok()?.len())).collect();
    assert!(sizes.iter().all(|size| *size <= 2048), "{sizes:?}");
    let kept: Vec<Value> = (0..4).rev().flat_map(|number| lines_of(&path(number))).collect();
    let id = |value: &Value| value["decision_id"].clone();
    let expected: Vec<Value> = outcomes.iter().map(id).collect();
    assert!(expected.ends_with(&kept.iter().map(id).collect::<Vec<_>>()) && kept.len() > 4, "{kept:?}");
}

#[test]
fn queued_lines_are_written_before_the_end() {
    let daemon = setting("", &[hook("guard", "Bash", "", "exit 2")]).serve();
    let ids: Vec<Value> =
        (0..20).map(|_| daemon.post("/v1/events", &event("r", "Bash"))["decision_id"].clone()).collect();
    let setting = end(daemon);
    let lines = lines_of(&setting.path().join("audit.jsonl"));
    assert_eq!(lines.iter().map(|line| line["decision_id"].clone()).collect::<Vec<_>>(), ids);
    let daemon = setting.serve();
    let outcome = daemon.post("/v1/events", &event("r", "Bash"));
    line(&daemon, &outcome);
    assert_eq!(self::lines(&daemon).len(), 21, "a new life adds to the file");
}

#[test]
fn a_file_that_was_moved_away_is_created_again() {
    let daemon = setting("", &[hook("guard", "Bash", "", "exit 2")]).serve();
    let (path, moved) = (daemon.path().join("audit.jsonl"), daemon.path().join("moved"));
    line(&daemon, &daemon.post("/v1/events", &event("r", "Bash")));
    fs::rename(&path, &moved).unwrap();
    daemon.signal(Signal::HUP);
    wait_until("it is there again", || path.exists());
    line(&daemon, &daemon.post("/v1/events", &event("r", "Bash")));
    fs::remove_file(&path).unwrap();
    wait_until("it is there again, without being told", || path.exists());
    line(&daemon, &daemon.post("/v1/events", &event("r", "Bash")));
    assert_eq!((lines_of(&moved).len(), lines(&daemon).len()), (1, 1));
}

#[test]
fn lines_that_cannot_be_written_are_counted_and_the_service_goes_on() {
    let daemon = setting("", &[hook("guard", "Bash", "", "exit 2")]).serve();
    let pid = Pid::from_raw(daemon.pid().cast_signed());
    for _ in 0..20 {
        daemon.post("/v1/events", &event("r", "Bash"));
    }
    wait_until("all is written", || status(&daemon)["written"] == 20);
    let size = fs::metadata(daemon.path().join("audit.jsonl")).unwrap().len();
    // The part of a line fits, as on a disk that is almost full.
    prlimit(pid, Resource::Fsize, Rlimit { current: Some(size + 10), maximum: None }).unwrap();
    for _ in 0..5 {
        assert_eq!(daemon.post("/v1/events", &event("r", "Bash"))["verdict"], "block");
    }
    wait_until("the loss is counted", || status(&daemon)["dropped_write"] == 5);
    assert_eq!(daemon.log().matches("audit lines are lost").count(), 1, "{}", daemon.log());
    let metrics = String::from_utf8(daemon.send("GET", "/metrics", None).body).unwrap();
    assert!(metrics.contains(r#"hookyard_audit_dropped_total{reason="write"} 5"#), "{metrics}");
    assert_eq!(lines(&daemon).len(), 20, "every line is whole");
    prlimit(pid, Resource::Fsize, Rlimit { current: None, maximum: None }).unwrap();
    line(&daemon, &daemon.post("/v1/events", &event("r", "Bash")));
    assert_eq!((lines(&daemon).len(), &status(&daemon)["written"]), (21, &json!(21)));
}

#[test]
fn a_full_queue_drops_lines_and_no_events() {
    // Nobody reads the pipe for now, so its writer waits.
    let (reader, pipe) = std::io::pipe().unwrap();
    let daemon = setting("", &[hook("guard", "Bash", "", "exit 2")])
        .settings("pools: { command: { concurrency: 8 } }")
        .argument("--set=audit.to=stdout")
        .argument("--set=audit.queue=1")
        .argument("--set=audit.patches=values")
        .stdout(pipe)
        .serve();
    let mut large = event("r", "Bash");
    large["session_id"] = json!("s".repeat(256));
    let dropped = || status(&daemon)["dropped_queue"].as_u64().unwrap();
    let mut sent = 0_u64;
    while dropped() < 3 {
        assert_eq!(daemon.post("/v1/events", &large)["verdict"], "block");
        sent += 1;
        assert!(sent < 2000, "the pipe takes more than expected");
    }
    let written = status(&daemon)["written"].as_u64().unwrap();
    // Some are in the writer's hands.
    assert!((written + dropped()..=written + dropped() + 8).contains(&sent), "{written} {sent}");
    // The log is told although the writer hangs.
    assert_eq!(daemon.log().matches("audit lines are lost").count(), 1, "{}", daemon.log());
    let mut first = String::new();
    BufReader::new(reader).read_line(&mut first).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&first).unwrap()["verdict"], "block");
}

#[test]
fn an_unusable_audit_file_is_refused_at_the_start() {
    for (to, why) in [("/dev/full", "is not a regular file"), ("$DIR/link", "is a symbolic link")] {
        let setting = setting("", &[]);
        std::os::unix::fs::symlink("elsewhere", setting.path().join("link")).unwrap();
        let to = to.replace("$DIR", setting.path().to_str().unwrap());
        let mut daemon = setting.argument(&format!("--set=audit.to={to}")).spawn();
        assert_eq!(daemon.wait().code(), Some(1));
        assert!(daemon.log().contains(&format!("the audit file {to} {why}")), "{}", daemon.log());
    }
}
