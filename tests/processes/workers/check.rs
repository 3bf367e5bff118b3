//! `hookyard check` tries the workers of a workspace.

use super::*;
use crate::support::trust::OFF;

/// What `hookyard check` prints as JSON, and its exit code.
fn check(workspace: &Path, arguments: &[&str]) -> (Value, i32) {
    let mut program = assert_cmd::cargo::cargo_bin_cmd!("hookyard");
    let output =
        program.current_dir(workspace).args(["check", "--json"]).args(OFF).args(arguments).output().unwrap();
    (serde_json::from_slice(&output.stdout).unwrap(), output.status.code().unwrap())
}

/// Gives a workspace a worker of this command.
fn write_worker(workspace: &Path, name: &str, command: &str) {
    let file = format!(
        "name: {name}\nevents: [before_tool_dispatch]\nhandler:\n  type: command\n  command: {}\n  mode: worker\n",
        json!(command)
    );
    let hooks = workspace.join(".openharness/hooks");
    fs::create_dir_all(&hooks).unwrap();
    fs::write(hooks.join(format!("{name}.yaml")), file).unwrap();
}

#[tokio::test]
async fn check_warns_of_workers_that_say_no_hello_and_leaves_none_behind() {
    let workspace = tempfile::tempdir().unwrap();
    write_worker(workspace.path(), "good", &script("good"));
    write_worker(workspace.path(), "exits", &script("exits"));
    write_worker(workspace.path(), "future", &script("future"));
    write_worker(workspace.path(), "noisy", &script("chatter"));
    write_worker(workspace.path(), "raises", &script("raises"));
    write_worker(workspace.path(), "silent", &script("silent"));
    let since = Instant::now();
    let (report, code) = check(workspace.path(), &[]);
    assert!(since.elapsed() < LONG / 2, "{:?}", since.elapsed());
    let warnings: Vec<_> = report["diagnostics"]
        .as_array()
        .unwrap()
        .iter()
        .map(|found| {
            let file = Path::new(found["file"].as_str().unwrap()).file_name().unwrap().to_str().unwrap();
            assert_eq!((&found["code"], &found["severity"]), (&json!("worker-hello"), &json!("warning")));
            assert_eq!((&found["line"], &found["column"]), (&json!(6), &json!(9)));
            format!("{file}: {}", found["message"].as_str().unwrap())
        })
        .collect();
    let expected = [
        "exits.yaml: no hello from the worker: it ended without a hello",
        "future.yaml: no hello from the worker: it uses version 2 of the protocol, not 1",
        "noisy.yaml: no hello from the worker: a line is not a message: invalid JSON at column 1: `starting up`",
        "raises.yaml: no hello from the worker: it ended without a hello: ImportError: no module of this name",
        "silent.yaml: no hello from the worker: it sent no hello within 5 s",
    ];
    assert_eq!((warnings.as_slice(), code), (&expected.map(str::to_owned)[..], 0));
    let left = child_processes::gone(|process| process.alive() && runs_in(process, workspace.path())).await;
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn check_starts_nothing_where_it_should_not() {
    let workspace = tempfile::tempdir().unwrap();
    write_worker(workspace.path(), "worker", "echo > ran");
    let (report, code) = check(workspace.path(), &["--no-start"]);
    assert_eq!((&report["diagnostics"], code), (&json!([]), 0));
    assert!(!workspace.path().join("ran").exists());
    check(workspace.path(), &[]);
    assert!(workspace.path().join("ran").exists());
}
