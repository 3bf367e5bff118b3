//! A bundle from a server with HTTPS, whose authority is the company's own, and a daemon that takes over from another one.

use std::{
    fs,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    thread,
};

use super::publisher::{Publisher, bundle, verdict, wait_for_version};
use crate::{
    replace::successor_of,
    support::{
        daemon::DaemonSetup,
        static_files::{Authority, StaticFiles},
        wait::wait_until,
    },
};

/// A daemon that follows what an encrypted server has.
fn edge(publisher: &Publisher, server: &StaticFiles) -> DaemonSetup {
    let (url, key) = (server.url("guards.bundle"), &publisher.key);
    DaemonSetup::new().file("shop/readme", "").settings(&format!(
        "bundle: {{ url: \"{url}\", keys: [\"{key}\"], poll: 100ms }}\nworkspaces: {{ shop: {{ root: $DIR/shop }} }}"
    ))
}

#[test]
fn a_bundle_comes_over_https_from_a_server_that_a_private_authority_vouches_for() {
    let publisher = Publisher::new();
    let authority = Authority::new();
    let server = StaticFiles::start_encrypted(&publisher.path("www"), &authority);
    publisher.publish(1, "one", &[]);
    publisher.write("authority.pem", &authority.pem);
    let authorities = publisher.path("authority.pem").display().to_string();
    // Whose authority nobody knows is not asked for anything.
    let stranger = edge(&publisher, &server).serve();
    wait_until("the failure is said", || bundle(&stranger)["last_poll"] == "failed");
    let error = bundle(&stranger)["error"].as_str().unwrap().to_owned();
    assert!(error.contains("certificate"), "{error}");
    assert_eq!((verdict(&stranger, "ls").as_str(), server.served().len()), ("block", 0));
    stranger.finish();
    let daemon = edge(&publisher, &server).variable("SSL_CERT_FILE", &authorities).serve();
    wait_for_version(&daemon, 1);
    assert_eq!((verdict(&daemon, "ls"), verdict(&daemon, "one").as_str()), ("proceed".into(), "block"));
    assert!(bundle(&daemon)["error"].is_null());
    daemon.finish();
}

#[test]
fn a_daemon_that_takes_over_has_the_bundle_from_its_first_event_on() {
    let publisher = Publisher::new();
    publisher.publish(1, "one", &[]);
    let mut daemon = publisher.edge("").serve();
    wait_for_version(&daemon, 1);
    // What is in force is on the disk: the successor needs no server.
    publisher.server.set_down(true);
    let (is_over, judged) = (AtomicBool::new(false), AtomicUsize::new(0));
    let event = serde_json::json!({ "event": "before_tool_dispatch", "session_id": "s", "run_id": "r",
                                    "workspace_id": "shop", "tool_name": "Bash", "tool_input": { "command": "one" } });
    let successor = thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                let answer = daemon.post("/v1/events", &event);
                if answer["verdict"] != "block" || !answer["reason"].as_str().unwrap().contains("no one") {
                    is_over.store(true, Ordering::Relaxed);
                    panic!("{answer}");
                }
                judged.fetch_add(1, Ordering::Relaxed);
            }
        });
        let successor = successor_of(&daemon);
        let then = judged.load(Ordering::Relaxed);
        wait_until("the successor has judged", || {
            judged.load(Ordering::Relaxed) > then + 10 || is_over.load(Ordering::Relaxed)
        });
        is_over.store(true, Ordering::Relaxed);
        successor
    });
    daemon.wait();
    assert!(judged.load(Ordering::Relaxed) > 10);
    assert_eq!(bundle(&successor)["version"], 1);
    assert!(fs::read_dir(super::publisher::kept(&successor)).is_ok());
    successor.finish();
}
