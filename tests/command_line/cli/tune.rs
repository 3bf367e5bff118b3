//! `tune`: hooks are run in each mode, and only a mode with the same answers is proposed.

use std::time::Duration;

use super::*;
use crate::support::wait::wait_until;

/// Takes its time to start, as an interpreter with imports does, and then answers by its input alone.
const SLOW_START: &str = r#"import sys, time
time.sleep(0.15)
if "rm -rf" in sys.stdin.read():
    print("not on my watch", file=sys.stderr)
    sys.exit(2)
"#;

/// Answers as a process and as a worker, with the same text.
const WORKER: &str = r#"import json, os, sys, time
time.sleep(0.15)
def answer(envelope):
    return {"decision": "block", "reason": "not on my watch"} if "rm -rf" in json.dumps(envelope) else {}
if os.environ.get("HOOKYARD_WORKER") != "1":
    said = answer(json.load(sys.stdin))
    if said:
        print(json.dumps(said))
    sys.exit(0)
print(json.dumps({"hookyard": 1}), flush=True)
for line in sys.stdin:
    message = json.loads(line)
    if "ping" in message:
        print(json.dumps({"pong": 1}), flush=True)
    elif "envelope" in message:
        print(json.dumps({"id": message["id"], "output": answer(message["envelope"])}), flush=True)
"#;

/// The same, but as a worker it forgets to object.
const FORGETFUL: &str = r#"import json, os, sys
if os.environ.get("HOOKYARD_WORKER") != "1":
    sys.exit(2 if "rm -rf" in sys.stdin.read() else 0)
print(json.dumps({"hookyard": 1}), flush=True)
for line in sys.stdin:
    message = json.loads(line)
    if "envelope" in message:
        print(json.dumps({"id": message["id"], "output": {}}), flush=True)
"#;

/// A workspace whose only hook runs a Python script, with recorded events.
fn scripted(script: &str) -> TempDir {
    let directory =
        workspace(&[("guard", &hook("guard", "before_tool_dispatch", "exec python3 guard.py", ""))]);
    std::fs::write(directory.path().join("guard.py"), script).unwrap();
    recorded(directory)
}

/// A workspace whose only hook is a line for the shell, with recorded events.
fn of_line(line: &str) -> TempDir {
    recorded(workspace(&[("guard", &hook("guard", "before_tool_dispatch", line, ""))]))
}

/// A line that objects with a reason.
fn reason(first: &str, reason: &str) -> String {
    format!(r#"{first}; echo "{{\"decision\":\"block\",\"reason\":\"{reason}\"}}""#)
}

fn recorded(directory: TempDir) -> TempDir {
    let events = ["ls", "rm -rf /", "make"].map(tool).join("\n");
    std::fs::write(directory.path().join("session.jsonl"), events).unwrap();
    directory
}

const TUNE: [&str; 5] = ["tune", "--events", "session.jsonl", "--rounds", "6"];

fn tuned(directory: &TempDir, more: &[&str]) -> Done {
    run(directory.path(), &[&TUNE[..], more].concat())
}

/// What is said about a mode of the only hook.
fn mode(report: &Value, name: &str) -> Value {
    let modes = report["hooks"][0]["modes"].as_array().unwrap();
    modes.iter().find(|mode| mode["mode"] == name).unwrap_or_else(|| panic!("{report}")).clone()
}

#[test]
fn a_slow_interpreter_with_equal_answers_is_proposed_to_be_started_before() {
    let directory = scripted(SLOW_START);
    let done = tuned(&directory, &["--json"]);
    assert_eq!((done.code, done.err.as_str()), (0, ""));
    let report = done.json();
    assert_eq!(report["handlers"], json!({ "guard": { "mode": "prespawn" } }), "{report}");
    let median = |name: &str| mode(&report, name)["median_ms"].as_f64().unwrap();
    let (oneshot, prespawn) = (median("oneshot"), median("prespawn"));
    assert!(oneshot >= 150.0 && prespawn <= oneshot * 0.8, "{report}");
    assert_eq!(mode(&report, "prespawn")["answers"], 6);
    let why = mode(&report, "worker")["refused"].as_str().unwrap().to_owned();
    assert!(why.contains("does not speak the worker protocol"), "{why}");
    assert_eq!(report["hooks"][0]["events"], 3);
}

#[test]
fn a_worker_with_equal_answers_is_proposed_and_runs_as_one() {
    let directory = scripted(WORKER);
    let config = directory.path().join("hookyard.yaml");
    std::fs::write(&config, "# ours\n").unwrap();
    let done = tuned(&directory, &["--json", "--config", "hookyard.yaml", "--write"]);
    assert!(done.code == 0 && done.err.contains("keeps the former settings"), "{}", done.err);
    let report = done.json();
    assert_eq!(mode(&report, "worker")["answers"], 6, "{report}");
    assert_eq!(mode(&report, "worker").get("refused"), None, "{report}");
    let chosen = report["handlers"]["guard"]["mode"].as_str().unwrap();
    let text = std::fs::read_to_string(&config).unwrap();
    assert_eq!(text, format!("# ours\nhandlers:\n  guard:\n    mode: {chosen}\n"));
    // The mode of the settings counts, and the answers stay.
    let worker = "worker.yaml";
    std::fs::write(directory.path().join(worker), "handlers: { guard: { mode: worker } }").unwrap();
    let list = run(directory.path(), &["list", "--json", "--config", worker]).json();
    assert_eq!(list[0]["mode"], "worker");
    for (command, verdict) in [("rm -rf /", "block"), ("ls", "proceed")] {
        let fired =
            run_with(directory.path(), &["fire", "-e", "-", "--config", worker], &tool(command)).json();
        assert_eq!(
            (&fired["verdict"], &fired["hooks"][0]["error"]),
            (&json!(verdict), &Value::Null),
            "{fired}"
        );
        assert_eq!(fired["hooks"][0].get("warnings"), None, "{fired}");
    }
}

#[test]
fn a_mode_with_other_answers_is_refused() {
    for (name, directory, refused, why) in [
        ("forgetful", scripted(FORGETFUL), "worker", "its exit code is 0 instead of 2 (line 2)"),
        (
            "pid",
            of_line(&reason("cat >/dev/null", "$$")),
            "oneshot",
            "its standard output differs from time to time",
        ),
        (
            "time",
            of_line(&reason("cat >/dev/null", "$(date +%s%N)")),
            "oneshot",
            "its standard output differs from time to time",
        ),
        (
            "time since its start",
            of_line(
                "now=$(date +%s%N); cat >/dev/null; test $(( ($(date +%s%N) - now) / 1000000 )) -lt 900 || exit 2",
            ),
            "prespawn",
            "its exit code is 2 instead of 0",
        ),
        ("acts before", of_line("echo; cat >/dev/null"), "prespawn", "does not wait for it"),
    ] {
        let report = tuned(&directory, &["--json"]).json();
        let said = mode(&report, refused);
        assert!(said["refused"].as_str().is_some_and(|said| said.contains(why)), "{name}: {report}");
        assert_ne!(report["hooks"][0]["proposal"], refused, "{name}: {report}");
        assert_eq!(said["median_ms"], Value::Null, "{name}");
        if refused == "oneshot" {
            assert_eq!(report["handlers"], json!({}), "{name}: {report}");
        }
    }
}

#[test]
fn a_hook_that_reads_a_part_of_its_input_can_be_started_before() {
    let directory = of_line("sleep 0.15; head -c 5 >/dev/null; echo ok >&2; exit 2");
    let done = tuned(&directory, &["--json"]);
    assert_eq!((done.code, done.err.as_str()), (0, ""));
    assert_eq!(done.json()["handlers"], json!({ "guard": { "mode": "prespawn" } }), "{}", done.out);
}

#[test]
fn a_hook_that_fails_is_not_measured() {
    let directory = of_line("cat >/dev/null; exit 3");
    let done = tuned(&directory, &["--json"]);
    assert_eq!(done.code, 1, "{}", done.err);
    let report = done.json();
    assert!(mode(&report, "oneshot")["refused"].as_str().unwrap().starts_with("it fails"), "{report}");
    assert_eq!(report["handlers"], json!({}));
    let done = tuned(&directory, &[]);
    assert!(
        done.out.contains("guard, oneshot: it fails") && done.out.contains("Nothing to change"),
        "{}",
        done.out
    );
}

#[test]
fn a_hook_that_nobody_trusts_does_not_run() {
    let directory = of_line("echo ran >> ran; cat >/dev/null");
    let state = tempfile::tempdir().unwrap();
    let state = format!("state_directory={}", state.path().display());
    let output = program(directory.path()).args(TUNE).args(["--set", &state]).output().unwrap();
    let out = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{out}");
    assert!(out.contains("guard: "), "{out}");
    assert!(!directory.path().join("ran").exists());
}

#[test]
fn the_proposal_is_merged_into_the_settings_once() {
    let directory = scripted(SLOW_START);
    let config = directory.path().join("hookyard.yaml");
    let before =
        "# first\nwatch: false # no\nhandlers: # by name\n  # of others\n  other:\n    max_concurrency: 2\n";
    std::fs::write(&config, before).unwrap();
    let write = ["--config", "hookyard.yaml", "--write"];
    let done = tuned(&directory, &write);
    assert!(done.code == 0 && done.err.contains("keeps the former settings"), "{}{}", done.out, done.err);
    let after = std::fs::read_to_string(&config).unwrap();
    let entry = "handlers: # by name\n  guard:\n    mode: prespawn\n  # of others";
    assert_eq!(after, before.replace("handlers: # by name\n  # of others", entry));
    let backup = directory.path().join("hookyard.yaml.bak");
    assert_eq!(std::fs::read_to_string(&backup).unwrap(), before);
    let done = tuned(&directory, &write);
    assert_eq!(done.code, 0, "{}", done.err);
    assert!(done.out.contains("Nothing to change"), "{}", done.out);
    assert_eq!(std::fs::read_to_string(&config).unwrap(), after);
    assert!(!directory.path().join("hookyard.yaml.bak.2").exists());
}

#[test]
fn the_time_is_bounded_and_an_unknown_hook_is_an_error() {
    let directory = of_line("cat >/dev/null; sleep 600");
    let mut tune = program(directory.path());
    let arguments = [&without_trust(&TUNE)[..], &["--for", "300ms", "--json"]].concat();
    let output = tune.args(arguments).timeout(Duration::from_mins(1)).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let out = String::from_utf8(output.stdout).unwrap();
    assert!(out.contains("time was up"), "{out}");
    let done = tuned(&directory, &["gaurd"]);
    assert_eq!((done.code, done.out.as_str()), (1, ""));
    assert!(done.err.contains("there is no hook `gaurd`"), "{}", done.err);
}

#[test]
fn made_up_events_are_used_where_none_are_recorded_and_are_said_to_be() {
    let directory = of_line("cat >/dev/null");
    let done = run(directory.path(), &["tune", "guard", "--rounds", "5"]);
    assert_eq!(done.code, 0, "{}", done.err);
    assert!(done.err.contains("made-up events"), "{}", done.err);
    assert!(done.out.contains("made-up events"), "{}", done.out);
}

#[test]
#[allow(clippy::disallowed_methods, reason = "a signal is sent to it while it runs")]
fn a_signal_ends_it_and_everything_that_it_started() {
    let directory = of_line("echo $$ > pid; cat >/dev/null; exec sleep 600");
    let mut command = std::process::Command::new(cargo_bin("hookyard"));
    let tune = command.current_dir(directory.path()).args(without_trust(&TUNE));
    let mut tune = tune.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let pid = directory.path().join("pid");
    let read = || std::fs::read_to_string(&pid).ok()?.trim().parse::<i32>().ok();
    wait_until("the hook runs", || read().is_some());
    let hook = read().unwrap();
    let interrupt = std::process::Command::new("kill").args(["-INT", &tune.id().to_string()]).status();
    assert!(interrupt.unwrap().success());
    assert_eq!(tune.wait().unwrap().code(), Some(130));
    let place = format!("/proc/{hook}");
    wait_until("the hook has ended", || !Path::new(&place).exists());
}
