//! Lifecycle events are delivered at least once, whatever becomes of the daemon and of their hooks.

use std::{collections::BTreeMap, fs, path::Path, thread};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::daemon::{Daemon, DaemonSetup, read, write};
use crate::support::wait::wait_until;
use crate::trust::agree;

/// A hook that writes a line for each delivery: the run, and the number of the delivery.
const NOTE: &str = r#"name: note
events: [run_completed]
handler:
  type: command
  command: jq -r '"\(.run_id) \(.delivery)"' >> $DIR/notes
"#;

pub(crate) fn setup() -> DaemonSetup {
    let setup = DaemonSetup::new().settings("workspaces: { shop: { root: $DIR/shop } }\ndata: $DIR/data");
    let note = NOTE.replace("$DIR", setup.path().to_str().unwrap());
    setup.file("shop/.openharness/hooks/note.yaml", &note).file("notes", "")
}

pub(crate) fn completed(run: &str) -> Value {
    json!({ "event": "run_completed", "session_id": "s", "run_id": run, "workspace_id": "shop", "wait": false })
}

/// A hook that notes when it begins, and waits for a file before it notes the delivery.
pub(crate) fn slow_hook(directory: &Path) -> String {
    let here = directory.display();
    format!(
        "name: slow\nevents: [run_failed]\nhandler:\n  type: command\n  command: |\n    input=$(cat)\n    \
         echo \"$input\" | jq -r '\"begun \\(.run_id) \\(.delivery)\"' >> {here}/notes\n    \
         while [ ! -e {here}/open ]; do sleep 0.02; done\n    \
         echo \"$input\" | jq -r '\"\\(.run_id) \\(.delivery)\"' >> {here}/notes\n"
    )
}

pub(crate) fn failed(run: &str, wait: bool) -> Value {
    json!({ "event": "run_failed", "session_id": "s", "run_id": run, "workspace_id": "shop", "wait": wait })
}

/// A daemon whose hook `slow` runs for an event of the run `one`, until the file `open` is there.
pub(crate) fn under_way(setup: DaemonSetup) -> Daemon {
    let slow = slow_hook(&setup.path());
    begun(setup.file("shop/.openharness/hooks/slow.yaml", &slow).serve())
}

/// The same, where a person has agreed to the hook.
pub(crate) fn trusted_under_way() -> Daemon {
    let setup = setup().settings("state_directory: $DIR/state").enforces_trust();
    let slow = slow_hook(&setup.path());
    let daemon = setup.file("shop/.openharness/hooks/slow.yaml", &slow).serve();
    agree(&daemon);
    read(&daemon.send("POST", "/v1/reload", None));
    begun(daemon)
}

/// The daemon once its hook `slow` runs for an event of the run `one`.
pub(crate) fn begun(daemon: Daemon) -> Daemon {
    daemon.post("/v1/events", &failed("one", false));
    wait_until("the hook runs", || notes(&daemon.path()).len() == 1);
    daemon
}

pub(crate) fn notes(directory: &Path) -> Vec<String> {
    let text = fs::read_to_string(directory.join("notes")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// How often each run was delivered, and the highest delivery.
pub(crate) fn deliveries(directory: &Path) -> BTreeMap<String, (usize, u32)> {
    let mut found = BTreeMap::new();
    for line in notes(directory) {
        let Some((run, delivery)) = line.rsplit_once(' ') else { continue };
        let (count, highest) = found.entry(run.to_owned()).or_insert((0, 0));
        *count += 1;
        *highest = delivery.parse::<u32>().unwrap().max(*highest);
    }
    found
}

pub(crate) fn killed_and_started(mut daemon: Daemon) -> Daemon {
    daemon.signal(Signal::KILL);
    daemon.wait();
    daemon.again().serve()
}

pub(crate) fn outbox(daemon: &Daemon) -> Vec<Value> {
    daemon.get("/v1/outbox")["events"].as_array().unwrap().clone()
}

pub(crate) fn is_empty(daemon: &Daemon) {
    wait_until("the outbox is empty", || outbox(daemon).is_empty());
}

/// Asks for a change of the outbox.
pub(crate) fn change(daemon: &Daemon, verb: &str, choice: &Value) -> Value {
    let path = format!("/v1/outbox/{verb}");
    read(&daemon.control().send("POST", &path, Some(choice.to_string().as_bytes())).unwrap())["ids"].clone()
}

/// Sends events until one gets no answer. Returns the runs of those that were acknowledged.
fn send_until_killed(daemon: &Daemon, sender: usize, round: usize) -> Vec<String> {
    let client = daemon.client();
    let mut acknowledged = Vec::new();
    for number in 0..10_000 {
        let run = format!("r{round}-{sender}-{number}");
        let body = completed(&run).to_string();
        match client.send("POST", "/v1/events", Some(body.as_bytes())) {
            Ok(answer) if answer.status == 200 => acknowledged.push(run),
            Ok(answer) if answer.status == 503 => {}
            Ok(answer) => panic!("status {}", answer.status),
            Err(_) => break,
        }
    }
    acknowledged
}

#[test]
fn three_kills_under_load_lose_no_acknowledged_event() {
    let mut daemon = setup().serve();
    let mut acknowledged = Vec::new();
    for round in 0..3 {
        thread::scope(|scope| {
            let senders: Vec<_> = (0..4)
                .map(|sender| {
                    scope.spawn({
                        let daemon = &daemon;
                        move || send_until_killed(daemon, sender, round)
                    })
                })
                .collect();
            wait_until("hooks run", || notes(&daemon.path()).len() > (round + 1) * 20);
            daemon.signal(Signal::KILL);
            for sender in senders {
                acknowledged.extend(sender.join().unwrap());
            }
        });
        daemon.wait();
        daemon = daemon.again().serve();
    }
    is_empty(&daemon);
    let delivered = deliveries(&daemon.path());
    let lost: Vec<_> = acknowledged.iter().filter(|run| !delivered.contains_key(*run)).collect();
    assert!(lost.is_empty(), "{} of {} were lost: {lost:?}", lost.len(), acknowledged.len());
    assert!(delivered.values().any(|(_, delivery)| *delivery > 1), "some were delivered again");
    daemon.finish();
}

#[test]
fn what_was_under_way_when_the_daemon_was_killed_is_delivered_again() {
    let setup = setup();
    let slow = slow_hook(&setup.path());
    let daemon = setup.file("shop/.openharness/hooks/slow.yaml", &slow).serve();
    for run in ["one", "two"] {
        assert_eq!(daemon.post("/v1/events", &failed(run, false))["verdict"], "proceed");
    }
    wait_until("both hooks run", || notes(&daemon.path()).len() == 2);
    let listed = outbox(&daemon);
    assert_eq!(listed.len(), 2, "{listed:?}");
    assert_eq!((&listed[0]["state"], &listed[0]["run_id"]), (&json!("under_way"), &json!("one")));
    let decision = listed[0]["decision_id"].clone();
    let daemon = killed_and_started(daemon);
    wait_until("both hooks run again", || notes(&daemon.path()).len() == 4);
    let listed = outbox(&daemon);
    assert_eq!((&listed[0]["deliveries"], &listed[0]["decision_id"]), (&json!(2), &decision), "{listed:?}");
    write(&daemon.path().join("open"), "");
    is_empty(&daemon);
    let found = deliveries(&daemon.path());
    assert_eq!((found["one"], found["two"]), ((1, 2), (1, 2)), "{:?}", notes(&daemon.path()));
    daemon.finish();
}

#[test]
fn an_awaited_event_that_was_under_way_for_long_is_delivered_again() {
    let setup = setup();
    let slow = slow_hook(&setup.path());
    let daemon = setup.file("shop/.openharness/hooks/slow.yaml", &slow).serve();
    let client = daemon.client();
    let waiting = thread::spawn(move || {
        client.send("POST", "/v1/events", Some(failed("one", true).to_string().as_bytes())).is_err()
    });
    wait_until("the hook runs", || notes(&daemon.path()).len() == 1);
    wait_until("the event is on disk", || {
        let log = fs::read(daemon.path().join("data/runs.db-wal")).unwrap_or_default();
        log.windows(12).any(|part| part == b"\"run_failed\"")
    });
    let daemon = killed_and_started(daemon);
    assert!(waiting.join().unwrap(), "it was not answered");
    write(&daemon.path().join("open"), "");
    is_empty(&daemon);
    assert_eq!(deliveries(&daemon.path())["one"], (1, 2));
    daemon.finish();
}

#[test]
fn an_answered_event_leaves_nothing_behind() {
    let daemon = setup().serve();
    let mut event = completed("one");
    event["wait"] = json!(true);
    assert_eq!(daemon.post("/v1/events", &event)["hooks"][0]["ended"], "completed");
    is_empty(&daemon);
    let mut unwanted = completed("two");
    unwanted["event"] = json!("session_started");
    assert_eq!(daemon.post("/v1/events", &unwanted)["verdict"], "proceed");
    assert!(outbox(&daemon).is_empty(), "no hook wants it");
    // Changes are written in their order: what is acknowledged as stored has the removal of the former on disk.
    assert_eq!(daemon.post("/v1/events", &completed("stored"))["verdict"], "proceed");
    let daemon = killed_and_started(daemon);
    is_empty(&daemon);
    let found = deliveries(&daemon.path());
    assert_eq!(found["one"], (1, 1));
    assert!(!found.contains_key("two"), "{found:?}");
    assert!(found["stored"].0 >= 1, "{found:?}");
    daemon.finish();
}

#[test]
fn a_hook_that_fails_is_tried_again_and_the_audit_counts_the_deliveries() {
    let setup = setup().settings("audit: { to: $DIR/audit }");
    let here = setup.path();
    let flaky = format!(
        "name: flaky\nevents: [run_failed]\nhandler:\n  type: command\n  command: |\n    \
         jq -r '\"\\(.run_id) \\(.delivery)\"' >> {0}/notes\n    test -e {0}/open\n",
        here.display()
    );
    let daemon = setup.file("shop/.openharness/hooks/flaky.yaml", &flaky).serve();
    daemon.post("/v1/events", &failed("one", false));
    wait_until("it was tried twice", || notes(&daemon.path()).len() >= 2);
    let listed = outbox(&daemon);
    assert!(listed[0]["error"].as_str().unwrap().contains("hook `flaky`"), "{listed:?}");
    write(&here.join("open"), "");
    is_empty(&daemon);
    let (count, highest) = deliveries(&here)["one"];
    assert_eq!(count, usize::try_from(highest).unwrap(), "each has a number of its own");
    let audited = || -> Vec<u64> {
        let lines = fs::read_to_string(here.join("audit")).unwrap_or_default();
        let lines = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines.map(|line| line["delivery"].as_u64().unwrap()).collect()
    };
    wait_until("each delivery has a line in the audit", || audited().len() >= count);
    assert_eq!(audited(), (1..=u64::from(highest)).collect::<Vec<_>>());
    daemon.finish();
}

#[test]
fn a_drain_leaves_what_is_not_delivered_for_the_next_start() {
    let mut daemon = under_way(setup().settings("shutdown_deadline: 1ms"));
    daemon.signal(Signal::TERM);
    daemon.wait();
    write(&daemon.path().join("open"), "");
    let daemon = daemon.again().serve();
    is_empty(&daemon);
    assert_eq!(deliveries(&daemon.path())["one"], (1, 2));
    daemon.finish();
}

#[test]
fn events_of_one_run_are_delivered_again_in_their_order() {
    let setup = setup();
    let slow = slow_hook(&setup.path());
    let daemon = setup.file("shop/.openharness/hooks/slow.yaml", &slow).serve();
    for number in 0..20 {
        let mut event = failed("one", false);
        event["event_id"] = json!(format!("e{number}"));
        event["event"] = json!("run_failed");
        daemon.post("/v1/events", &event);
    }
    wait_until("all are under way", || outbox(&daemon).len() == 20);
    let here = daemon.path();
    let mut daemon = daemon;
    daemon.signal(Signal::KILL);
    daemon.wait();
    let ordered = format!(
        "name: slow\nevents: [run_failed]\nhandler:\n  type: command\n  command: jq -r .event_id >> {}/order\n",
        here.display()
    );
    write(&here.join("shop/.openharness/hooks/slow.yaml"), &ordered);
    let daemon = daemon.again().serve();
    is_empty(&daemon);
    let order = fs::read_to_string(here.join("order")).unwrap();
    let expected: Vec<String> = (0..20).map(|number| format!("e{number}")).collect();
    assert_eq!(order.lines().collect::<Vec<_>>(), expected);
    daemon.finish();
}

#[test]
fn an_event_that_cannot_be_stored_is_refused_and_its_hooks_do_not_run() {
    let daemon = setup().serve();
    let file = daemon.path().join("data/runs.db");
    let away = daemon.path().join("away.db");
    fs::rename(&file, &away).unwrap();
    let answer = daemon.send("POST", "/v1/events", Some(&completed("one")));
    let error: Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(answer.status, 503, "{error}");
    assert_eq!((&error["error"]["code"], &error["error"]["retry"]), (&json!("not_stored"), &json!("safe")));
    let mut awaited = completed("two");
    awaited["wait"] = json!(true);
    assert_eq!(daemon.post("/v1/events", &awaited)["hooks"][0]["ended"], "completed", "its host hears of it");
    let metrics = String::from_utf8(daemon.send("GET", "/metrics", None).body).unwrap();
    for counted in [r#"{result="refused"} 1"#, r#"{result="cancelled"} 0"#] {
        assert!(metrics.contains(&format!("hookyard_outbox_deliveries_total{counted}")), "{metrics}");
    }
    fs::rename(&away, &file).unwrap();
    wait_until("it can be written again", || daemon.get("/v1/status")["data"]["error"] == Value::Null);
    assert_eq!(daemon.post("/v1/events", &completed("three"))["verdict"], "proceed");
    is_empty(&daemon);
    let found = deliveries(&daemon.path());
    assert_eq!(found.keys().collect::<Vec<_>>(), ["three", "two"], "the one that was refused never ran");
    daemon.finish();
}

#[test]
fn without_data_events_are_answered_at_once_and_forgotten_at_the_end() {
    let setup = DaemonSetup::new().settings("workspaces: { shop: { root: $DIR/shop } }\ndata: null");
    let slow = slow_hook(&setup.path());
    let daemon = setup.file("shop/.openharness/hooks/slow.yaml", &slow).file("notes", "").serve();
    assert_eq!(daemon.post("/v1/events", &failed("one", false))["verdict"], "proceed");
    wait_until("the hook runs", || notes(&daemon.path()).len() == 1);
    let answer = daemon.send("GET", "/v1/outbox", None);
    assert_eq!(answer.status, 409, "{}", String::from_utf8_lossy(&answer.body));
    let daemon = killed_and_started(daemon);
    assert_eq!(daemon.get("/v1/status")["phase"], "ready");
    assert_eq!(notes(&daemon.path()).len(), 1);
    daemon.finish();
}

#[test]
fn an_event_that_is_larger_than_the_outbox_is_refused_for_good() {
    let daemon = setup().settings("outbox: { max_size: 1KiB }").serve();
    let mut large = completed("large");
    large["metadata"] = json!({ "text": "x".repeat(2000) });
    let answer = daemon.send("POST", "/v1/events", Some(&large));
    let error: Value = serde_json::from_slice(&answer.body).unwrap();
    assert_eq!(answer.status, 413, "{error}");
    assert_eq!((&error["error"]["code"], &error["error"]["retry"]), (&json!("too_large"), &json!("never")));
    assert!(error["error"]["message"].as_str().unwrap().contains("outbox.max_size"), "{error}");
    large["wait"] = json!(true);
    assert_eq!(daemon.post("/v1/events", &large)["hooks"][0]["ended"], "completed");
    daemon.post("/v1/events", &completed("small"));
    is_empty(&daemon);
    assert_eq!(deliveries(&daemon.path()).keys().collect::<Vec<_>>(), ["large", "small"]);
    daemon.finish();
}
