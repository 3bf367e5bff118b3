//! A store that another user owns, that may not be written, or that is in the place of another one.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, chown},
    path::Path,
    process::Command,
};

use rustix::process::{Signal, geteuid};
use serde_json::json;

use crate::{
    nobody,
    restart::{killed_and_started, refused, saved, setup, verdict},
    support::daemon::{Daemon, DaemonSetup},
};

/// A daemon with a halted run.
fn halted(run: &str) -> Daemon {
    let daemon = setup().settings("data: $DIR/data").serve();
    assert_eq!(verdict(&daemon, run, "Halt"), "halt");
    daemon
}

/// Ends a daemon and starts another one in its place, whose settings are the same.
fn ended(mut daemon: Daemon, signal: Signal, change: impl FnOnce(&Path)) -> DaemonSetup {
    daemon.signal(signal);
    daemon.wait();
    change(&daemon.path().join("data"));
    daemon.again()
}

#[test]
fn data_of_another_user_keep_the_daemon_from_starting() {
    if !geteuid().is_root() {
        println!("skipped: only root can give files away");
        return;
    }
    for name in [".", "runs.db", "runs.db-wal"] {
        let setup =
            ended(halted("r"), Signal::KILL, |data| chown(data.join(name), Some(12_345), None).unwrap());
        let log = refused(setup);
        assert!(log.contains("it belongs to another user"), "{name}: {log}");
    }
}

/// Root may write everything, so for root another user runs this test.
#[test]
fn data_that_may_not_be_written_keep_the_daemon_from_starting() {
    if nobody::has_run("data_directory::data_that_may_not_be_written_keep_the_daemon_from_starting") {
        return;
    }
    for (signal, name, mode, usual) in [
        (Signal::TERM, "runs.db", 0o400, 0o600),
        (Signal::TERM, ".", 0o500, 0o700),
        (Signal::KILL, "runs.db", 0o400, 0o600),
        (Signal::KILL, "runs.db-wal", 0o400, 0o600),
    ] {
        let set_mode = |data: &Path, mode| {
            fs::set_permissions(data.join(name), PermissionsExt::from_mode(mode)).unwrap();
        };
        let mut daemon = ended(halted("r"), signal, |data| set_mode(data, mode)).spawn();
        assert_eq!(daemon.wait().code(), Some(1), "{signal:?} {name}: {}", daemon.log());
        let log = daemon.log();
        for part in ["the state of runs cannot be kept in", "ermission denied", "check its permissions"] {
            assert!(log.contains(part), "{signal:?} {name}: {log}");
        }
        set_mode(&daemon.path().join("data"), usual);
        let daemon = daemon.again().serve();
        assert_eq!(verdict(&daemon, "r", "Bash"), "halt", "{signal:?} {name}");
        daemon.finish();
    }
}

#[test]
fn an_older_file_beside_the_log_of_a_killed_daemon_keeps_the_daemon_from_starting() {
    let daemon = halted("early");
    saved(&daemon);
    let copied = |data: &Path| {
        fs::copy(data.join("runs.db"), data.join("older")).unwrap();
    };
    let daemon = ended(daemon, Signal::TERM, copied);
    let daemon = ended(daemon.serve(), Signal::TERM, |_| {}).serve();
    assert_eq!(verdict(&daemon, "late", "Halt"), "halt");
    let restored = |data: &Path| {
        fs::rename(data.join("runs.db"), data.join("away")).unwrap();
        fs::rename(data.join("older"), data.join("runs.db")).unwrap();
    };
    let daemon = ended(daemon, Signal::KILL, restored);
    let data = daemon.path().join("data");
    let mut refused = daemon.spawn();
    assert_eq!(refused.wait().code(), Some(1), "{}", refused.log());
    assert!(refused.log().contains("runs.db-wal is not the log of"), "{}", refused.log());
    // As the message says.
    fs::rename(data.join("away"), data.join("runs.db")).unwrap();
    let daemon = refused.again().serve();
    for run in ["early", "late"] {
        assert_eq!(verdict(&daemon, run, "Bash"), "halt", "{run}");
    }
    daemon.finish();
}

#[test]
fn the_file_of_another_store_in_the_place_of_one_in_use_is_not_written() {
    let (first, second) = (halted("first"), halted("second"));
    saved(&second);
    let other = ended(second, Signal::TERM, |_| {});
    let (file, away) = (first.path().join("data/runs.db"), first.path().join("away.db"));
    fs::rename(&file, &away).unwrap();
    fs::copy(other.path().join("data/runs.db"), &file).unwrap();
    let before = fs::read(&file).unwrap();
    assert_eq!(verdict(&first, "later", "Halt"), "halt");
    let data = first.get("/v1/status")["data"].clone();
    assert!(data["error"].as_str().unwrap().contains("moved away or replaced"), "{data}");
    assert_eq!(fs::read(&file).unwrap(), before);
    fs::rename(&away, &file).unwrap();
    saved(&first);
    let first = killed_and_started(first);
    for run in ["first", "later"] {
        assert_eq!(verdict(&first, run, "Bash"), "halt", "{run}");
    }
    first.finish();
}

/// What a command prints.
#[allow(clippy::disallowed_methods, reason = "the program is started as its users start it")]
fn hookyard(here: &Path, arguments: &[&str], last: &Path) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hookyard"));
    let done =
        command.args(arguments).arg(last).env("HOOKYARD_TEST_HOME", here.join("home")).output().unwrap();
    String::from_utf8(done.stdout).unwrap()
}

#[test]
fn a_store_that_is_gone_is_told_and_a_first_start_is_not() {
    const GONE: &str = "the state of runs is gone";
    let daemon = halted("r");
    let gone = |daemon: &Daemon| {
        let metrics = String::from_utf8(daemon.send("GET", "/metrics", None).body).unwrap();
        let line =
            metrics.lines().find(|line| line.starts_with(r#"hookyard_store_errors_total{reason="gone"}"#));
        let counted = line.and_then(|line| line.rsplit(' ').next()).unwrap().to_owned();
        (daemon.log().contains(GONE), daemon.get("/v1/status")["data"]["former_gone"].clone(), counted)
    };
    let told = |is_gone: bool| (is_gone, json!(is_gone), u8::from(is_gone).to_string());
    assert_eq!(gone(&daemon), told(false), "a first start");
    let started = |setup: DaemonSetup, is_gone: bool, what: &str| {
        let settings = setup.path().join("hookyard.yaml");
        let checked = hookyard(&setup.path(), &["serve", "--check", "--json", "--config"], &settings);
        assert_eq!(checked.contains("the state of runs is gone from"), is_gone, "{what}: {checked}");
        fs::remove_file(setup.path().join("log")).unwrap();
        let daemon = setup.serve();
        assert_eq!(gone(&daemon), told(is_gone), "{what}");
        let status = hookyard(&daemon.path(), &["status", "--socket"], daemon.socket());
        assert_eq!(status.contains("its file was gone when the daemon started"), is_gone, "{what}: {status}");
        daemon
    };
    let daemon = started(ended(daemon, Signal::TERM, |_| {}), false, "a restart");
    let removed = |data: &Path| fs::remove_file(data.join("runs.db")).unwrap();
    let daemon = started(ended(daemon, Signal::TERM, removed), true, "it was removed");
    assert_eq!(verdict(&daemon, "r", "Bash"), "proceed", "nobody knows of the halt any more");
    let daemon = started(ended(daemon, Signal::TERM, |_| {}), false, "the one that was made in its place");
    let with_log = |data: &Path| {
        for name in ["runs.db", "runs.db-wal"] {
            fs::remove_file(data.join(name)).unwrap();
        }
    };
    let daemon = started(ended(daemon, Signal::KILL, with_log), true, "it was removed with its log");
    let on_purpose = |data: &Path| {
        for name in ["runs.db", "store-made"] {
            fs::remove_file(data.join(name)).unwrap();
        }
    };
    let daemon = started(ended(daemon, Signal::TERM, on_purpose), false, "removed with what tells of it");
    // A store of an earlier version says nothing before it is opened once.
    let untold = |data: &Path| fs::remove_file(data.join("store-made")).unwrap();
    let daemon = started(ended(daemon, Signal::TERM, untold), false, "as an earlier version left it");
    started(ended(daemon, Signal::TERM, removed), true, "it was removed after that").finish();
}
