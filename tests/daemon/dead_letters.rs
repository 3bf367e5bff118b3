//! Dead letters, and what operators do with events in the outbox.

use std::{fs, path::Path};

use rustix::process::Signal;
use serde_json::json;

use crate::{
    outbox::{
        change, completed, deliveries, failed, is_empty, killed_and_started, notes, outbox, setup, slow_hook,
        trusted_under_way, under_way,
    },
    support::{
        daemon::{Daemon, read, write},
        wait::wait_until,
    },
};

#[test]
fn dead_letters_are_listed_tried_again_and_dropped() {
    let daemon = setup().serve();
    for run in ["one", "two", "three"] {
        daemon.post("/v1/events", &completed(run));
    }
    is_empty(&daemon);
    let here = daemon.path();
    let failing = "name: failing\nevents: [run_failed]\nhandler:\n  type: command\n  command: exit 7\n";
    write(&here.join("shop/.openharness/hooks/failing.yaml"), failing);
    read(&daemon.send("POST", "/v1/reload", None));
    for run in ["four", "five"] {
        daemon.post("/v1/events", &failed(run, false));
    }
    wait_until("both wait", || outbox(&daemon).iter().all(|event| event["state"] == "waiting"));
    // Five tries would take more than a minute; a person is quicker.
    let letters = || daemon.get("/v1/outbox?state=dead")["events"].as_array().unwrap().len();
    assert_eq!(letters(), 0);
    let data = daemon.get("/v1/status")["data"].clone();
    assert_eq!((&data["undelivered"], &data["dead_letters"]), (&json!(2), &json!(0)), "{data}");
    assert!(data["oldest_undelivered_ms"].is_u64(), "{data}");
    let ids: Vec<u64> = outbox(&daemon).iter().map(|event| event["id"].as_u64().unwrap()).collect();
    let dropped = change(&daemon, "drop", &json!({ "ids": [ids[0], 1_000_000] }));
    assert_eq!(dropped, json!([ids[0]]));
    fs::remove_file(here.join("shop/.openharness/hooks/failing.yaml")).unwrap();
    read(&daemon.send("POST", "/v1/reload", None));
    assert_eq!(change(&daemon, "retry", &json!({ "ids": [ids[1]] })), json!([ids[1]]));
    is_empty(&daemon);
    let denied = daemon.client().send("POST", "/v1/outbox/drop", Some(br#"{"dead":true}"#)).unwrap();
    assert_eq!(denied.status, 403, "the event socket grants no control");
    daemon.finish();
}

#[test]
fn an_event_waits_as_a_dead_letter_while_its_hook_is_not_trusted() {
    let mut daemon = trusted_under_way();
    let here = daemon.path();
    daemon.signal(Signal::KILL);
    daemon.wait();
    let file = here.join("shop/.openharness/hooks/slow.yaml");
    fs::remove_file(&file).unwrap();
    let daemon = daemon.again().enforces_trust().serve();
    // The hook of the daemon that was killed has ended by now.
    write(&here.join("open"), "");
    wait_until("it is a dead letter", || outbox(&daemon).iter().any(|event| event["reason"] == "untrusted"));
    write(&file, &slow_hook(&here));
    read(&daemon.send("POST", "/v1/reload", None));
    assert_eq!(change(&daemon, "retry", &json!({ "dead": true })), json!([1]));
    is_empty(&daemon);
    assert_eq!(deliveries(&here)["one"].0, 1, "{:?}", notes(&here));
    daemon.finish();
}

#[test]
fn an_event_does_not_go_to_another_directory_that_takes_over_the_id() {
    let mut daemon = under_way(setup());
    let here = daemon.path();
    daemon.signal(Signal::KILL);
    daemon.wait();
    write(&here.join("open"), "");
    let settings = here.join("hookyard.yaml");
    let text = fs::read_to_string(&settings).unwrap();
    assert!(text.contains("/shop"), "{text}");
    write(&settings, &text.replace("/shop", "/bakery"));
    let daemon = daemon.again().file("bakery/.openharness/hooks/slow.yaml", &slow_hook(&here)).serve();
    wait_until("it is a dead letter", || {
        outbox(&daemon).iter().any(|event| event["reason"] == "workspace_gone")
    });
    assert_eq!(change(&daemon, "retry", &json!({ "dead": true })), json!([1]));
    is_empty(&daemon);
    assert_eq!(deliveries(&here)["begun one"], (2, 2), "a person sent it there, and nobody else");
    daemon.finish();
}

/// A hook that notes when it begins, and fails unless a file is there.
fn failing_hook(directory: &Path) -> String {
    let here = directory.display();
    format!(
        "name: failing\nevents: [run_failed]\nhandler:\n  type: command\n  command: |\n    \
         jq -r '\"begun \\(.run_id) \\(.delivery)\"' >> {here}/notes\n    [ -e {here}/open ]\n"
    )
}

fn waiting(daemon: &Daemon) -> usize {
    outbox(daemon).iter().filter(|event| event["state"] == "waiting").count()
}

#[test]
fn a_run_that_is_cancelled_takes_its_waiting_events_out_of_the_outbox() {
    let setup = setup();
    let failing = failing_hook(&setup.path());
    let daemon = setup.file("shop/.openharness/hooks/failing.yaml", &failing).serve();
    for run in ["one", "one", "two"] {
        daemon.post("/v1/events", &failed(run, false));
    }
    wait_until("they wait to be tried again", || waiting(&daemon) == 3);
    // Their event has ended the runs, so that only the outbox knows them.
    let cancelled = daemon.control().send("DELETE", "/v1/runs/one", None).unwrap();
    assert_eq!(read(&cancelled)["events"], 2);
    let left = outbox(&daemon);
    assert_eq!((left.len(), &left[0]["run_id"]), (1, &json!("two")));
    let metrics = String::from_utf8(daemon.send("GET", "/metrics", None).body).unwrap();
    let counted = r#"hookyard_outbox_deliveries_total{result="cancelled"} 2"#;
    assert!(metrics.contains(counted), "{metrics}");
    assert_eq!(daemon.control().send("DELETE", "/v1/runs/one", None).unwrap().status, 404);
    let mut daemon = daemon;
    daemon.signal(Signal::TERM);
    daemon.wait();
    let daemon = daemon.again().serve();
    assert!(outbox(&daemon).iter().all(|event| event["run_id"] == "two"), "{:?}", outbox(&daemon));
    write(&daemon.path().join("open"), "");
    is_empty(&daemon);
    daemon.finish();
}

#[test]
fn what_an_operator_does_outlives_a_kill_right_after_the_answer() {
    let setup = setup();
    let failing = failing_hook(&setup.path());
    let daemon = setup.file("shop/.openharness/hooks/failing.yaml", &failing).serve();
    for run in ["one", "two"] {
        daemon.post("/v1/events", &failed(run, false));
    }
    wait_until("both wait to be tried again", || waiting(&daemon) == 2);
    assert_eq!(daemon.control().send("DELETE", "/v1/runs/one", None).unwrap().status, 200);
    let daemon = killed_and_started(daemon);
    wait_until("the other one waits to be tried again", || waiting(&daemon) == 1);
    assert_eq!(outbox(&daemon)[0]["run_id"], "two", "the cancelled one is gone");
    assert_eq!(change(&daemon, "drop", &json!({ "ids": [2] })), json!([2]));
    let daemon = killed_and_started(daemon);
    assert!(outbox(&daemon).is_empty(), "{:?}", outbox(&daemon));
    daemon.post("/v1/events", &failed("three", false));
    wait_until("the last one waits to be tried again", || waiting(&daemon) == 1);
    assert_eq!(daemon.control().send("DELETE", "/v1/workspaces/shop", None).unwrap().status, 204);
    let daemon = killed_and_started(daemon);
    let left = outbox(&daemon);
    assert_eq!((left.len(), &left[0]["reason"]), (1, &json!("workspace_gone")), "{left:?}");
    daemon.finish();
}

#[test]
fn events_of_a_workspace_that_is_removed_are_dead_letters() {
    let setup = setup();
    let here = setup.path();
    let hooks = "shop/.openharness/hooks";
    let failing = failing_hook(&here).replace("run_failed", "run_completed");
    let daemon = setup
        .file(&format!("{hooks}/slow.yaml"), &slow_hook(&here))
        .file(&format!("{hooks}/failing.yaml"), &failing)
        .serve();
    daemon.post("/v1/events", &completed("waits"));
    wait_until("one waits to be tried again", || waiting(&daemon) == 1);
    daemon.post("/v1/events", &failed("runs", false));
    wait_until("one is under way", || notes(&here).iter().any(|line| line.starts_with("begun runs")));
    assert_eq!(daemon.control().send("DELETE", "/v1/workspaces/shop", None).unwrap().status, 204);
    let letters = outbox(&daemon);
    let reasons: Vec<_> = letters.iter().map(|event| event["reason"].as_str()).collect();
    assert_eq!(reasons, [Some("workspace_gone"); 2], "{letters:?}");
    assert!(daemon.log().contains("the events of a workspace that is removed are dead letters now"));
    // They outlive a restart, and a person can have them delivered.
    let mut daemon = daemon;
    daemon.signal(Signal::TERM);
    daemon.wait();
    let daemon = daemon.again().serve();
    assert_eq!(outbox(&daemon).iter().filter(|event| event["state"] == "dead").count(), 2);
    assert_eq!(daemon.get("/v1/status")["data"]["dead_letters"], 2);
    write(&here.join("open"), "");
    assert_eq!(change(&daemon, "retry", &json!({ "dead": true })), json!([1, 2]));
    is_empty(&daemon);
    assert_eq!(deliveries(&here)["runs"].0, 1, "{:?}", notes(&here));
    daemon.finish();
}
