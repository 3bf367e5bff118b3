//! Lifecycle events while one daemon replaces another: none is lost, and none is delivered twice while both live.

use std::{
    fs,
    path::Path,
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
    thread,
};

use hookyard::daemon::Client;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::outbox::{
    change, completed, deliveries, failed, is_empty, notes, outbox, setup, slow_hook, under_way,
};
use crate::replace::serves;
use crate::support::daemon::{Daemon, DaemonSetup, read, write};
use crate::support::wait::wait_until;

#[test]
fn a_daemon_that_is_replaced_finishes_its_events_and_none_is_delivered_twice() {
    let mut daemon = under_way(setup());
    let successor = daemon.replace();
    serves(&successor, successor.pid());
    let listed = outbox(&successor);
    assert_eq!((listed.len(), &listed[0]["state"]), (1, &json!("under_way")), "{listed:?}");
    let id = &listed[0]["id"];
    assert_eq!(
        change(&successor, "drop", &json!({ "ids": [id] })),
        json!([]),
        "the other daemon delivers it"
    );
    // What comes now is its own, and has another id.
    successor.post("/v1/events", &failed("two", false));
    wait_until("its hook runs", || notes(&daemon.path()).len() == 2);
    assert_ne!(&outbox(&successor)[1]["id"], id);
    write(&daemon.path().join("open"), "");
    assert_eq!(daemon.wait().code(), Some(0), "{}", daemon.log());
    is_empty(&successor);
    let found = deliveries(&successor.path());
    assert_eq!((found["one"], found["two"]), ((1, 1), (1, 1)), "{:?}", notes(&successor.path()));
    let mut successor = successor;
    successor.signal(Signal::TERM);
    assert_eq!(successor.wait().code(), Some(0), "{}", successor.log());
    let third = successor.again().serve();
    assert!(outbox(&third).is_empty(), "that it ended is on disk");
    third.finish();
}

#[test]
fn what_a_replaced_daemon_leaves_when_it_is_killed_is_delivered_by_the_other() {
    let mut daemon = under_way(setup());
    let successor = daemon.replace();
    serves(&successor, successor.pid());
    daemon.signal(Signal::KILL);
    daemon.wait();
    wait_until("the hook runs again", || notes(&successor.path()).len() == 2);
    assert_eq!(outbox(&successor)[0]["deliveries"], 2);
    write(&successor.path().join("open"), "");
    is_empty(&successor);
    // The hook of the one that was killed may have gone on.
    assert_eq!(deliveries(&successor.path())["one"].1, 2);
    successor.finish();
}

/// Sends events until it is to end. Returns the runs of those that were acknowledged.
fn send_until(done: &AtomicBool, daemon: &Daemon, sender: usize) -> Vec<String> {
    let client = daemon.client();
    let mut acknowledged = Vec::new();
    for number in 0.. {
        if done.load(Ordering::Relaxed) {
            break;
        }
        let run = format!("r{sender}-{number}");
        let body = completed(&run).to_string();
        // A daemon that is killed gives no answer; the next event goes to the other.
        let Ok(answer) = client.send("POST", "/v1/events", Some(body.as_bytes())) else { continue };
        match answer.status {
            200 => acknowledged.push(run),
            503 => {
                let error: Value = serde_json::from_slice(&answer.body).unwrap();
                assert_eq!(error["error"]["retry"], "safe", "{error}");
            }
            status => panic!("status {status}"),
        }
    }
    acknowledged
}

/// Replaces a daemon under load, and kills it or lets it end. Returns its successor, and the acknowledged runs.
fn replaced_under_load(mut daemon: Daemon, is_killed: bool) -> (Daemon, Vec<String>) {
    let done = AtomicBool::new(false);
    let mut acknowledged = Vec::new();
    let (socket, here) = (daemon.client(), daemon.path());
    let successor = thread::scope(|scope| {
        let sender = |sender| {
            let (done, daemon) = (&done, &daemon);
            scope.spawn(move || send_until(done, daemon, sender))
        };
        let senders: Vec<_> = (0..4).map(sender).collect();
        wait_until("hooks run", || notes(&here).len() > 20);
        let successor = daemon.replace();
        wait_until("the other daemon serves", || {
            let status = socket.send("GET", "/v1/status", None);
            status.is_ok_and(|answer| read(&answer)["pid"] == successor.pid())
        });
        if is_killed {
            daemon.signal(Signal::KILL);
        }
        let before = notes(&here).len();
        wait_until("hooks run", || notes(&here).len() > before + 20);
        done.store(true, Ordering::Relaxed);
        for sender in senders {
            acknowledged.extend(sender.join().unwrap());
        }
        successor
    });
    let code = daemon.wait().code();
    assert!(is_killed || code == Some(0), "{}", daemon.log());
    is_empty(&successor);
    (successor, acknowledged)
}

#[test]
fn no_acknowledged_event_is_lost_or_repeated_when_a_daemon_is_replaced_under_load() {
    let (successor, acknowledged) = replaced_under_load(setup().serve(), false);
    let delivered = deliveries(&successor.path());
    let wrong: Vec<_> = acknowledged.iter().filter(|run| delivered.get(*run) != Some(&(1, 1))).collect();
    assert!(wrong.is_empty(), "{} of {}: {wrong:?}", wrong.len(), acknowledged.len());
    assert!(delivered.values().all(|found| *found == (1, 1)), "nothing is delivered twice");
    successor.finish();
}

#[test]
fn no_acknowledged_event_is_lost_when_the_replaced_daemon_is_killed_under_load() {
    let (successor, acknowledged) = replaced_under_load(setup().serve(), true);
    let delivered = deliveries(&successor.path());
    let lost: Vec<_> = acknowledged.iter().filter(|run| !delivered.contains_key(*run)).collect();
    assert!(lost.is_empty(), "{} of {} were lost: {lost:?}", lost.len(), acknowledged.len());
    successor.finish();
}

#[test]
fn a_workspace_of_stored_events_is_found_by_its_directory_in_the_daemon_that_takes_over() {
    let setup = DaemonSetup::new().settings("workspace_roots: [$DIR]\ndata: $DIR/data").file("notes", "");
    let here = setup.path();
    let slow = slow_hook(&here);
    let mut daemon =
        setup.file("other/.openharness/hooks/slow.yaml", &slow).file("other/.git/HEAD", "").serve();
    let mut event = failed("one", false);
    event["workspace_id"] = Value::Null;
    event["cwd"] = json!(here.join("other"));
    daemon.post("/v1/events", &event);
    wait_until("the hook runs", || notes(&here).len() == 1);
    let successor = daemon.replace();
    serves(&successor, successor.pid());
    daemon.signal(Signal::KILL);
    daemon.wait();
    wait_until("the hook runs again", || notes(&here).len() == 2);
    write(&here.join("open"), "");
    is_empty(&successor);
    assert_eq!(deliveries(&here)["one"].1, 2);
    successor.finish();
}

/// When a daemon is killed during a handover.
#[derive(Debug, Clone, Copy)]
enum Moment {
    /// So many events after the other one was started.
    Accepted(usize),
    /// The other one asks for the listeners.
    Asks,
    /// The other one serves.
    Serves,
}

/// Which daemon is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Victim {
    Replaced,
    Successor,
}

/// The most events that are accepted and have not come to their hook. More would only take time.
const MOST_WAITING: usize = 12;

/// Sends events, a few at a time, until it is to end. Adds the runs of those that were acknowledged.
fn send_steadily(done: &AtomicBool, client: &Client, here: &Path, accepted: &Mutex<Vec<String>>) {
    for number in 0..100_000 {
        wait_until("hooks run", || {
            let waiting = accepted.lock().unwrap().len().saturating_sub(notes(here).len());
            waiting < MOST_WAITING || done.load(Ordering::Relaxed)
        });
        if done.load(Ordering::Relaxed) {
            return;
        }
        let run = format!("r{number}");
        let body = completed(&run).to_string();
        // A daemon that is killed gives no answer.
        let Ok(answer) = client.send("POST", "/v1/events", Some(body.as_bytes())) else { continue };
        if answer.status == 200 {
            accepted.lock().unwrap().push(run);
        }
    }
}

fn has_happened(moment: Moment, successor: &Daemon, accepted: usize) -> bool {
    match moment {
        Moment::Accepted(events) => accepted >= events,
        // It asks for a moment only, and may be past it.
        Moment::Asks => asks(&successor.path()) || serves_now(successor),
        Moment::Serves => serves_now(successor),
    }
}

fn asks(directory: &Path) -> bool {
    let names = fs::read_dir(directory).unwrap().map(|file| file.unwrap().path());
    names.into_iter().any(|path| path.extension().is_some_and(|ending| ending == "take"))
}

fn serves_now(daemon: &Daemon) -> bool {
    let status = daemon.client().send("GET", "/v1/status", None);
    status.is_ok_and(|answer| read(&answer)["pid"] == daemon.pid())
}

/// Kills one of two daemons during a handover under load. No acknowledged event may be lost; if the one that is left had
/// all of them, none may be repeated.
fn killed_during_a_handover(moment: Moment, victim: Victim) {
    let mut daemon = setup().serve();
    let here = daemon.path();
    let (done, accepted) = (AtomicBool::new(false), Mutex::new(Vec::new()));
    let client = daemon.client();
    let (left, is_new) = thread::scope(|scope| {
        scope.spawn(|| send_steadily(&done, &client, &here, &accepted));
        let count = || accepted.lock().unwrap().len();
        wait_until("events are accepted", || count() > 10);
        let before = count();
        let mut successor = daemon.replace();
        wait_until("the moment has come", || {
            has_happened(moment, &successor, count() - before) || successor.has_ended()
        });
        let killed = if victim == Victim::Successor { &mut successor } else { &mut daemon };
        killed.signal(Signal::KILL);
        killed.wait();
        let left = if victim == Victim::Successor { &mut daemon } else { &mut successor };
        // A daemon that was replaced already ends, even if the other one was killed.
        wait_until("one serves, or both have ended", || serves_now(left) || left.has_ended());
        let serves = !left.has_ended();
        let known = count();
        wait_until("events are accepted again", || !serves || count() > known + 10 || left.has_ended());
        done.store(true, Ordering::Relaxed);
        let is_new = victim == Victim::Replaced;
        (if is_new { successor } else { daemon }, is_new)
    });
    let mut left = left;
    // It was alone all the time: the other never accepted an event.
    let is_alone = !is_new && !left.has_ended() && serves_now(&left);
    // One whose predecessor is killed just when it asks gives up. One that was replaced may have finished.
    if !left.has_ended() {
        left.signal(Signal::TERM);
        assert_eq!(left.wait().code(), Some(0), "{moment:?} {victim:?} {}", left.log());
    }
    let again = left.again().serve();
    is_empty(&again);
    let delivered = deliveries(&here);
    let accepted = accepted.into_inner().unwrap();
    let lost: Vec<_> = accepted.iter().filter(|run| !delivered.contains_key(*run)).collect();
    assert!(lost.is_empty(), "{moment:?} {victim:?}: {} of {} lost: {lost:?}", lost.len(), accepted.len());
    if is_alone {
        let repeated: Vec<_> = delivered.iter().filter(|(_, found)| **found != (1, 1)).collect();
        assert!(repeated.is_empty(), "{moment:?} {victim:?}: {repeated:?}");
    }
    again.finish();
}

#[test]
fn no_acknowledged_event_is_lost_whichever_daemon_is_killed_whenever_in_a_handover() {
    let moments =
        [Moment::Accepted(0), Moment::Asks, Moment::Accepted(20), Moment::Accepted(60), Moment::Serves];
    thread::scope(|scope| {
        for victim in [Victim::Replaced, Victim::Successor] {
            scope.spawn(move || moments.map(|moment| killed_during_a_handover(moment, victim)));
        }
    });
}
