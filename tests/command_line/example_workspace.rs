//! The example workspace with every kind of handler and every mode, run as its README says.

use std::{
    fs,
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde_json::{Value, json};

/// Where the stand-ins listen if they are not told otherwise.
const PORT: &str = "8377";

fn config() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("config")
}

#[allow(clippy::disallowed_methods, reason = "a test runs what the README shows")]
fn is_there(program: &str) -> bool {
    let found = Command::new(program).arg("--version").stdout(Stdio::null()).status().is_ok();
    if !found {
        println!("not run: {program} is missing");
    }
    found
}

/// A copy of a folder, with another port wherever the stand-ins are named.
fn copy_folder(from: &Path, to: &Path, port: &str) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy_folder(&entry.path(), &target, port);
        } else {
            let text = fs::read_to_string(entry.path()).unwrap();
            fs::write(target, text.replace(PORT, port)).unwrap();
        }
    }
}

/// What the replay says as JSON.
#[allow(clippy::disallowed_methods, reason = "a test runs what the README shows")]
fn replay() -> Value {
    let workspace = tempfile::tempdir().unwrap();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
    copy_folder(&config().join("workspaces/handlers"), workspace.path(), &port);
    let output = Command::new("python3")
        .arg(workspace.path().join("stubs.py"))
        .args([
            "--port",
            &port,
            env!("CARGO_BIN_EXE_hookyard"),
            "replay",
            "--json",
            "--dialect",
            "openharness",
        ])
        .arg(config().join("recordings/handlers-session.jsonl"))
        .arg("--config")
        .arg(workspace.path().join("hookyard.yaml"))
        .arg("--workspace")
        .arg(workspace.path())
        .args(crate::support::trust::OFF)
        .output()
        .unwrap();
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{message}");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {message}"))
}

#[test]
fn every_handler_and_every_mode_runs() {
    if !is_there("python3") || !is_there("node") {
        return;
    }
    let report = replay();
    assert_eq!(report["totals"]["failures"], 0, "{report:#}");
    let seen: Vec<Value> = report["by_hook"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| json!([row["hook"], row["handler"], row["mode"], row["runs"], row["verdicts"]["block"]]))
        .collect();
    let expected = [
        json!(["guard-oneshot", "command", "oneshot", 24, 1]),
        json!(["guard-prespawn", "command", "prespawn", 23, 0]),
        json!(["guard-worker", "command", "worker", 23, 0]),
        json!(["policy-server", "http", null, 23, 0]),
        json!(["judge", "prompt", null, 23, 1]),
        json!(["script-reviewer", "agent", null, 22, 1]),
    ];
    assert_eq!(seen, expected);
    let blocked: Vec<(&Value, &Value)> = report["events"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|event| event["verdict"] == "block")
        .map(|event| (&event["line"], &event["by"]))
        .collect();
    let expected = [(22, "script-reviewer"), (23, "judge"), (24, "guard-oneshot")];
    assert_eq!(blocked, expected.map(|(line, by)| (json!(line), json!(by))).each_ref().map(|(a, b)| (a, b)));
}

#[test]
fn the_copy_of_the_worker_sdk_is_up_to_date() {
    let read = |path: &str| fs::read_to_string(config().join(path)).unwrap();
    let copy = read("workspaces/handlers/.openharness/hooks/scripts/hookyard-worker.mjs");
    assert_eq!(copy, read("workers/javascript/hookyard-worker.mjs"));
}
