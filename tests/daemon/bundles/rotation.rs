//! Keys that change, names that settings pin, and what becomes of a bundle when the settings of its machine change.

use std::fs;

use rustix::process::Signal;

use super::publisher::{
    GUARD, Publisher, bundle, judge, kept, make_program, metric, verdict, wait_for_version,
};
use crate::support::{
    daemon::{Daemon, DaemonSetup},
    wait::wait_until,
};

/// Ends a daemon, and changes its settings for the next one.
fn stopped(mut daemon: Daemon, from: &str, to: &str) -> DaemonSetup {
    daemon.signal(Signal::KILL);
    daemon.wait();
    let file = daemon.path().join("hookyard.yaml");
    let settings = fs::read_to_string(&file).unwrap();
    assert!(settings.contains(from), "{from}: {settings}");
    fs::write(&file, settings.replace(from, to)).unwrap();
    daemon.again()
}

#[test]
fn a_signature_that_is_published_for_the_version_in_force_outlives_the_first_key() {
    let publisher = Publisher::new();
    let next = publisher.succeed(&["bundle", "keygen", "next"]).trim().to_owned();
    publisher.publish(1, "one", &[]);
    let daemon = publisher.edge("").serve();
    wait_for_version(&daemon, 1);
    publisher.succeed(&["bundle", "sign", "guards-1.tar.gz", "--key", "next"]);
    publisher.succeed(&["bundle", "push", "guards-1.tar.gz", "www/guards.bundle"]);
    wait_until("the signature is kept", || {
        daemon.log().contains("another signature of the bundle in force is kept")
    });
    // Nobody can be asked any more when the old key is revoked.
    publisher.server.set_down(true);
    let daemon = stopped(daemon, &publisher.key, &next).serve();
    assert_eq!((verdict(&daemon, "ls"), verdict(&daemon, "one").as_str()), ("proceed".into(), "block"));
    assert_eq!(bundle(&daemon)["signed_by"], next);
    daemon.finish();
}

#[test]
fn a_bundle_of_another_name_is_refused_where_the_settings_have_one() {
    let publisher = Publisher::new();
    publisher.write("lax/.openharness/hooks/guard.yaml", GUARD);
    publisher.write("lax/scripts/guard.sh", "#!/bin/sh\nexit 0\n");
    make_program(&publisher.path("lax/scripts/guard.sh"));
    let words = ["bundle", "build", "lax", "--name", "acme/lax", "--version", "9", "--expires", "9d"];
    publisher.succeed(&[&words[..], &["--output", "lax.tar.gz"]].concat());
    publisher.sign("lax.tar.gz");
    publisher.succeed(&["bundle", "push", "lax.tar.gz", "www/guards.bundle"]);
    let daemon = publisher.edge(", name: acme/guards").serve();
    wait_until("it is refused", || bundle(&daemon)["last_poll"] == "rejected");
    let (blocked, why) = judge(&daemon, "ls");
    assert_eq!(blocked, "block", "{why}");
    let error = bundle(&daemon)["error"].as_str().unwrap().to_owned();
    assert!(error.contains("it is `acme/lax`, and `bundle.name` is `acme/guards`"), "{error}");
    assert!(metric(&daemon, "hookyard_bundle_rejected_total{why=\"name\"}") >= 1.0);
    publisher.publish(1, "one", &[]);
    wait_for_version(&daemon, 1);
    daemon.finish();
}

#[test]
fn hooks_that_cannot_be_loaded_any_more_block_and_bring_no_second_download() {
    let publisher = Publisher::new();
    let hook = "name: local\nevents: [before_tool_dispatch]\non_error: deny\n\
                handler: {type: http, url: 'unix:/run/guard.sock:/judge'}\n";
    publisher.write("guards/core/.openharness/hooks/local.yaml", hook);
    publisher.publish(1, "one", &[]);
    let daemon = publisher.edge("").settings("allow_unix_sockets: true").serve();
    wait_for_version(&daemon, 1);
    let downloads =
        || publisher.server.served().iter().filter(|served| served.path.ends_with(".archive")).count();
    let daemon = stopped(daemon, "allow_unix_sockets: true", "allow_unix_sockets: false").serve();
    let polls = || publisher.server.served().iter().filter(|served| served.path == "/guards.bundle").count();
    let before = polls();
    wait_until("five more polls", || polls() >= before + 5);
    let (blocked, why) = judge(&daemon, "ls");
    assert!(blocked == "block" && why.contains("cannot be loaded here"), "{blocked}: {why}");
    assert_eq!((downloads(), bundle(&daemon)["last_poll"].as_str()), (1, Some("unchanged")));
    assert!(metric(&daemon, "hookyard_bundle_polls_total{result=\"taken\"}") < 0.5);
    let error = bundle(&daemon)["error"].as_str().unwrap().to_owned();
    assert!(error.contains("local.yaml"), "{error}");
    let log = daemon.log();
    assert!(log.contains("the signed bundle is not as it should be"), "{log}");
    assert!(!log.contains("a hook file is broken"), "{log}");
    let daemon = stopped(daemon, "allow_unix_sockets: false", "allow_unix_sockets: true").serve();
    assert_eq!(verdict(&daemon, "one"), "block");
    assert_eq!(bundle(&daemon)["version"], 1);
    daemon.finish();
}

#[test]
fn a_stale_bundle_is_asked_for_at_once_when_the_daemon_starts() {
    let publisher = Publisher::new();
    publisher.publish(1, "one", &[]);
    let settings = ", max_age: 1s, on_stale: deny";
    let daemon = publisher.edge_with("6h", settings).serve();
    wait_for_version(&daemon, 1);
    let since = bundle(&daemon)["since"].as_u64().unwrap();
    wait_until("its age is above the longest", || {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
        now > since + 2
    });
    let daemon = stopped(daemon, "6h", "6h").serve();
    wait_until("it is confirmed long before the next poll", || {
        bundle(&daemon)["last_poll"] == "unchanged" && verdict(&daemon, "ls") == "proceed"
    });
    daemon.finish();
}

#[test]
fn a_clock_that_was_ahead_for_a_while_keeps_no_newer_bundle_out() {
    let publisher = Publisher::new();
    publisher.publish(1, "one", &[]);
    let mut daemon = publisher.edge("").serve();
    wait_for_version(&daemon, 1);
    daemon.signal(Signal::KILL);
    daemon.wait();
    let record = kept(&daemon).join("state.json");
    let mut state: serde_json::Value = serde_json::from_slice(&fs::read(&record).unwrap()).unwrap();
    for key in ["seen", "confirmed"] {
        state[key] = (state[key].as_u64().unwrap() + 400 * 86_400).into();
    }
    fs::write(&record, state.to_string()).unwrap();
    // By what was seen, both have expired.
    publisher.publish(2, "two", &[]);
    let daemon = daemon.again().serve();
    wait_for_version(&daemon, 2);
    wait_until("it is current", || bundle(&daemon)["standing"] == "current");
    assert_eq!(verdict(&daemon, "two"), "block");
    daemon.finish();
}

#[test]
fn a_clock_that_is_set_back_before_a_start_revives_nothing() {
    let publisher = Publisher::new();
    publisher.publish(1, "one", &["--expires", "90d"]);
    let mut daemon = publisher.edge(", on_stale: deny").serve();
    wait_for_version(&daemon, 1);
    publisher.server.set_down(true);
    daemon.signal(Signal::KILL);
    daemon.wait();
    // As a daemon leaves it that has run until after the end of the bundle.
    let record = kept(&daemon).join("state.json");
    let mut state: serde_json::Value = serde_json::from_slice(&fs::read(&record).unwrap()).unwrap();
    state["seen"] = (state["seen"].as_u64().unwrap() + 90 * 86_400 + 60).into();
    fs::write(&record, state.to_string()).unwrap();
    let daemon = daemon.again().serve();
    assert_eq!(
        (bundle(&daemon)["standing"].as_str(), verdict(&daemon, "ls").as_str()),
        (Some("expired"), "block")
    );
    daemon.finish();
}
