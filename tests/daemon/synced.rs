//! What is on disk when the daemon answers: the syncs of a daemon are counted by a library that is loaded before its own.

#![allow(clippy::disallowed_methods, reason = "the library is compiled as its users would")]

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::json;

use crate::{
    outbox,
    support::{
        daemon::{Daemon, DaemonSetup, read},
        wait::wait_until,
    },
};

/// Notes the path of each file that is synced, once it is.
const SOURCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/daemon/syncs.c");

const SETTINGS: &str = "workspaces: { shop: { root: $DIR/shop } }\ndata: $DIR/data";

/// A hook that halts runs.
const BUDGET: &str = r#"name: budget
events: [before_tool_dispatch]
handler:
  type: command
  command: echo '{"continue":false,"stopReason":"budget spent"}'
"#;

/// Has the daemon note what it syncs. There is a C compiler wherever hookyard is built: it compiles SQLite.
fn watched(setup: DaemonSetup) -> DaemonSetup {
    let library = setup.path().join("syncs.so");
    let mut compiler = Command::new("cc");
    compiler.args(["-O1", "-Wall", "-Werror", "-shared", "-fPIC", "-o"]).arg(&library).arg(SOURCE);
    assert!(compiler.status().expect("a C compiler").success(), "{SOURCE} cannot be compiled");
    let syncs = setup.path().join("syncs");
    setup.variable("LD_PRELOAD", library.to_str().unwrap()).variable("SYNCS", syncs.to_str().unwrap())
}

/// The files that were synced, in their order.
fn synced(here: &Path) -> Vec<PathBuf> {
    fs::read_to_string(here.join("syncs")).unwrap_or_default().lines().map(PathBuf::from).collect()
}

fn log_syncs(daemon: &Daemon) -> usize {
    let log = daemon.path().join("data/runs.db-wal");
    synced(&daemon.path()).iter().filter(|path| **path == log).count()
}

#[test]
fn each_halt_is_synced_before_it_is_answered() {
    let setup = DaemonSetup::new().settings(SETTINGS);
    let daemon = watched(setup.file("shop/.openharness/hooks/budget.yaml", BUDGET)).serve();
    for number in 0..10 {
        let event = json!({ "event": "before_tool_dispatch", "session_id": "s", "run_id": format!("r{number}"),
                            "workspace_id": "shop", "tool_name": "Bash", "tool_input": {} });
        let before = log_syncs(&daemon);
        assert_eq!(daemon.post("/v1/events", &event)["verdict"], "halt");
        assert!(log_syncs(&daemon) > before, "halt {number}: {:?}", synced(&daemon.path()));
    }
    daemon.finish();
}

#[test]
fn each_event_that_nobody_waits_for_is_synced_before_it_is_accepted() {
    let daemon = outbox::under_way(watched(outbox::setup()));
    for number in 0..10 {
        let before = log_syncs(&daemon);
        let event = outbox::failed(&format!("r{number}"), false);
        assert_eq!(read(&daemon.send("POST", "/v1/events", Some(&event)))["verdict"], "proceed");
        assert!(log_syncs(&daemon) > before, "event {number}: {:?}", synced(&daemon.path()));
    }
    fs::write(daemon.path().join("open"), "").unwrap();
    outbox::is_empty(&daemon);
    daemon.finish();
}

#[test]
fn last_good_rules_and_the_names_of_their_records_are_synced() {
    let setup = DaemonSetup::new().settings(SETTINGS).settings("watch: false");
    let daemon = watched(setup.file("shop/.openharness/hooks/budget.yaml", BUDGET)).serve();
    let rules = daemon.path().join("data/rules");
    let is_record = |path: &Path, ending: &str| {
        path.parent() == Some(&*rules) && path.extension().is_some_and(|found| found == ending)
    };
    // A new record is synced beside the start; only then its name is of use.
    wait_until("the new record and its name are synced", || {
        let synced = synced(&daemon.path());
        let record = synced.iter().position(|path| is_record(path, "json"));
        record.is_some_and(|record| synced[record..].contains(&rules))
    });
    // Another one is synced before it takes the place of the former, and so is its name afterwards.
    let before = synced(&daemon.path()).len();
    fs::write(
        daemon.path().join("shop/.openharness/hooks/budget.yaml"),
        BUDGET.replace("budget spent", "no more"),
    )
    .unwrap();
    assert_eq!(daemon.send("POST", "/v1/reload", None).status, 200);
    wait_until("the name of the next record is synced", || {
        let synced = synced(&daemon.path()).split_off(before);
        let record = synced.iter().position(|path| is_record(path, "new"));
        record.is_some_and(|record| synced[record..].contains(&rules))
    });
    daemon.finish();
}
