//! What is delivered again when the workspace or the hooks are not what they were, and what that leaves to guards.

use std::fs;

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::outbox::{
    begun, change, completed, deliveries, failed, is_empty, killed_and_started, notes, outbox, setup,
    slow_hook, trusted_under_way, under_way,
};
use crate::support::daemon::{Daemon, DaemonSetup, read, write};
use crate::support::wait::wait_until;
use crate::trust::agree;

#[test]
fn redeliveries_leave_a_place_for_a_guard_in_a_pool_of_any_size() {
    for (places, most) in [(1, 1), (2, 1), (4, 3)] {
        let setup = setup().settings(&format!("pools: {{ command: {{ concurrency: {places} }} }}"));
        let slow = slow_hook(&setup.path());
        let guard =
            "name: guard\nevents: [before_tool_dispatch]\nhandler:\n  type: command\n  command: exit 2\n";
        let daemon = setup
            .file("shop/.openharness/hooks/slow.yaml", &slow)
            .file("shop/.openharness/hooks/guard.yaml", guard)
            .serve();
        for number in 0..8 {
            daemon.post("/v1/events", &failed(&format!("r{number}"), false));
        }
        wait_until("hooks run", || notes(&daemon.path()).len() == most);
        let daemon = killed_and_started(daemon);
        wait_until("hooks run again", || notes(&daemon.path()).len() == 2 * most);
        wait_until("all are under way", || outbox(&daemon).iter().all(|event| event["state"] == "under_way"));
        for number in 0..3 {
            let call = json!({ "event": "before_tool_dispatch", "session_id": "s", "run_id": format!("t{number}"),
                               "workspace_id": "shop", "tool_name": "Bash", "tool_input": {} });
            let outcome = daemon.post("/v1/events", &call);
            assert_eq!(
                (&outcome["verdict"], &outcome["by"]),
                (&json!("block"), &json!("guard")),
                "{outcome}"
            );
        }
        assert_eq!(notes(&daemon.path()).len(), 2 * most, "all of it beside the redeliveries");
        write(&daemon.path().join("open"), "");
        is_empty(&daemon);
        daemon.finish();
    }
}

/// A daemon that was killed while the hook `slow` ran for an event, and not started again yet. The hook goes on then.
fn killed_under_way(setup: DaemonSetup) -> Daemon {
    let mut daemon = under_way(setup);
    daemon.signal(Signal::KILL);
    daemon.wait();
    write(&daemon.path().join("open"), "");
    daemon
}

#[test]
fn an_event_waits_while_its_workspace_is_gone() {
    let daemon = killed_under_way(setup());
    let (here, away) = (daemon.path().join("shop"), daemon.path().join("away"));
    fs::rename(&here, &away).unwrap();
    let daemon = daemon.again().serve();
    wait_until("its workspace is looked for", || outbox(&daemon)[0]["state"] == "waiting");
    assert_eq!(daemon.send("GET", "/readyz", None).status, 503, "operators see that it is missing");
    let listed = outbox(&daemon);
    assert_eq!((&listed[0]["deliveries"], &listed[0]["reason"]), (&json!(1), &Value::Null), "that is no try");
    fs::rename(&away, &here).unwrap();
    read(&daemon.send("POST", "/v1/reload", None));
    is_empty(&daemon);
    // The hook of the killed daemon may have come to its end too.
    assert_eq!(deliveries(&daemon.path())["one"].1, 2);
    daemon.finish();
}

#[test]
fn an_event_whose_hook_was_removed_on_purpose_is_removed_too_and_the_log_says_so() {
    let daemon = killed_under_way(setup());
    fs::remove_file(daemon.path().join("shop/.openharness/hooks/slow.yaml")).unwrap();
    let daemon = daemon.again().serve();
    is_empty(&daemon);
    assert!(daemon.log().contains("no hook that is loaded now wants it"), "{}", daemon.log());
    // The hook of the killed daemon may have come to its end too.
    let again: Vec<_> = notes(&daemon.path()).into_iter().filter(|note| note.ends_with(" 2")).collect();
    assert!(again.is_empty(), "{again:?}");
    daemon.finish();
}

/// A workspace whose hook `slow` is required. It guards tool calls and notes runs that failed.
fn required_hook(setup: DaemonSetup) -> (DaemonSetup, String) {
    let slow = slow_hook(&setup.path()).replace("[run_failed]", "[run_failed, before_tool_dispatch]");
    (setup.settings("required: [slow]"), slow)
}

/// Waits until the event of the run `one` has been tried without its required hook.
fn is_kept(daemon: &Daemon) {
    wait_until("it has been tried", || outbox(daemon)[0]["state"] == "waiting");
    let listed = outbox(daemon);
    let error = listed[0]["error"].as_str().unwrap_or_default();
    assert!(error.contains("the required hook `slow` is not in force: no hook has this name"), "{listed:?}");
    assert!(!daemon.log().contains("no hook that is loaded now wants it"), "{}", daemon.log());
}

/// Puts the required hook back and has the event tried again.
fn put_back(daemon: &Daemon, slow: &str) {
    write(&daemon.path().join("shop/.openharness/hooks/slow.yaml"), slow);
    read(&daemon.send("POST", "/v1/reload", None));
    assert_eq!(change(daemon, "retry", &json!({ "ids": [1] })), json!([1]));
    is_empty(daemon);
}

#[test]
fn an_event_whose_required_hook_is_absent_is_kept_until_the_hook_is_back() {
    let (setup, slow) = required_hook(setup());
    let daemon = setup.file("shop/.openharness/hooks/slow.yaml", &slow).serve();
    let mut daemon = begun(daemon);
    daemon.signal(Signal::KILL);
    daemon.wait();
    write(&daemon.path().join("open"), "");
    wait_until("the hook of the killed daemon ends", || notes(&daemon.path()).len() == 2);
    fs::remove_file(daemon.path().join("shop/.openharness/hooks/slow.yaml")).unwrap();
    let daemon = daemon.again().serve();
    is_kept(&daemon);
    put_back(&daemon, &slow);
    let last = notes(&daemon.path()).pop().unwrap();
    assert!(last.starts_with("one ") && last != "one 1", "{last}");
    daemon.finish();
}

#[test]
fn an_event_that_other_hooks_want_too_is_kept_for_an_absent_required_hook_alone() {
    let (setup, slow) = required_hook(setup());
    let here = setup.path();
    let other = format!(
        "name: other\nevents: [run_failed, run_completed]\nhandler:\n  type: command\n  command: echo other >> {}/others\n",
        here.display()
    );
    let daemon = setup
        .file("shop/.openharness/hooks/slow.yaml", &slow)
        .file("shop/.openharness/hooks/other.yaml", &other)
        .serve();
    let mut daemon = begun(daemon);
    daemon.signal(Signal::KILL);
    daemon.wait();
    write(&daemon.path().join("open"), "");
    wait_until("the hook of the killed daemon ends", || notes(&here).len() == 2);
    fs::remove_file(here.join("shop/.openharness/hooks/slow.yaml")).unwrap();
    let daemon = daemon.again().serve();
    is_kept(&daemon);
    let others = || fs::read_to_string(here.join("others")).unwrap_or_default().lines().count();
    assert_eq!(others(), 2, "the other hook got it again");
    put_back(&daemon, &slow);
    assert_eq!((notes(&here).len(), others()), (4, 2), "only the required hook still had to");
    daemon.finish();
}

#[test]
fn an_event_that_an_absent_required_hook_never_wanted_does_not_wait_for_it() {
    let guard = "name: guard\nevents: [before_tool_dispatch]\nhandler:\n  type: command\n  command: exit 2\n";
    let setup = setup().settings("required: [guard]").file("shop/.openharness/hooks/guard.yaml", guard);
    let daemon = killed_under_way(setup);
    fs::remove_file(daemon.path().join("shop/.openharness/hooks/guard.yaml")).unwrap();
    let daemon = daemon.again().serve();
    is_empty(&daemon);
    assert_eq!(deliveries(&daemon.path())["one"].1, 2);
    daemon.finish();
}

#[test]
fn an_event_whose_removed_hook_a_person_has_agreed_to_lose_is_removed() {
    let mut daemon = trusted_under_way();
    let here = daemon.path();
    daemon.signal(Signal::KILL);
    daemon.wait();
    fs::remove_file(here.join("shop/.openharness/hooks/slow.yaml")).unwrap();
    let daemon = daemon.again().enforces_trust().serve();
    wait_until("it is a dead letter", || outbox(&daemon).iter().any(|event| event["reason"] == "untrusted"));
    agree(&daemon);
    read(&daemon.send("POST", "/v1/reload", None));
    assert_eq!(change(&daemon, "retry", &json!({ "dead": true })), json!([1]));
    is_empty(&daemon);
    assert_eq!(notes(&here).len(), 1);
    daemon.finish();
}

#[test]
fn an_event_that_finds_its_hook_untrusted_at_first_is_told_and_not_kept() {
    let setup =
        setup().settings("state_directory: $DIR/state\naudit: { to: $DIR/audit.jsonl, sync: always }");
    let here = setup.path();
    let daemon = setup.enforces_trust().serve();
    assert_eq!(daemon.post("/v1/events", &completed("one"))["verdict"], "proceed");
    is_empty(&daemon);
    let audit = || fs::read_to_string(here.join("audit.jsonl")).unwrap_or_default();
    wait_until("the audit has it", || audit().contains("\"untrusted\""));
    wait_until("the log has it", || daemon.log().contains("ended=untrusted"));
    let metrics = String::from_utf8(daemon.control().send("GET", "/metrics", None).unwrap().body).unwrap();
    let delivery = "hookyard_outbox_deliveries_total{result=\"untrusted\"} 1\n";
    assert!(metrics.contains(delivery), "{metrics}");
    assert!(notes(&here).is_empty());
    daemon.finish();
}
