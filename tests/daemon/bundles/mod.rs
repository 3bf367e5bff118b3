//! Signed bundles: from a key to a guard that is in force in a daemon, and what keeps one out or blocks without one.
#![allow(clippy::disallowed_methods, reason = "the program is run as its users run it")]

mod encrypted;
mod publisher;
mod rotation;
mod spoiled;

use std::{fs, os::unix::fs::PermissionsExt};

use rustix::process::Signal;
use serde_json::json;

use crate::support::{daemon::DaemonSetup, wait::wait_until};
use publisher::{Publisher, bundle, judge, metric, verdict, wait_for_version};

#[test]
fn the_guard_of_a_published_bundle_is_in_force_until_a_newer_one_is() {
    let publisher = Publisher::new();
    let daemon = publisher.edge("").serve();
    let (blocked, why) = judge(&daemon, "ls");
    assert_eq!(blocked, "block", "there is no bundle yet");
    assert!(why.contains("no signed bundle has been taken yet; see `hookyard status`"), "{why}");
    publisher.publish(1, "one", &["--require", "guard"]);
    wait_for_version(&daemon, 1);
    assert_eq!((verdict(&daemon, "ls"), verdict(&daemon, "one").as_str()), ("proceed".into(), "block"));
    assert_eq!(bundle(&daemon)["standing"], "current");
    publisher.publish(2, "two", &[]);
    wait_for_version(&daemon, 2);
    assert_eq!((verdict(&daemon, "one"), verdict(&daemon, "two").as_str()), ("proceed".into(), "block"));
    for (series, expected) in [
        ("hookyard_bundle_info{version=\"2\"}", 1.0),
        ("hookyard_bundle_info{version=\"1\"}", 0.0),
        ("hookyard_bundle_polls_total{result=\"taken\"}", 2.0),
    ] {
        wait_until(series, || (metric(&daemon, series) - expected).abs() < 0.5);
    }
    let rows = daemon.get("/v1/hooks?workspace_id=shop");
    assert_eq!(rows[0]["bundle"], json!({ "name": "acme/guards", "version": 2 }), "{rows}");
    assert_eq!((&rows[0]["scope"], &rows[0]["trust"]), (&json!("managed"), &json!("managed")));
    daemon.finish();
}

#[test]
fn a_poll_without_news_takes_less_than_a_kibibyte() {
    let publisher = Publisher::new();
    publisher.publish(1, "one", &[]);
    let daemon = publisher.edge("").serve();
    wait_for_version(&daemon, 1);
    let polls = |status: u16| {
        let served = publisher.server.served().into_iter().filter(|served| served.path == "/guards.bundle");
        served.filter(|served| served.status == status).map(|served| served.bytes).collect::<Vec<_>>()
    };
    wait_until("ten polls without news", || polls(304).len() >= 10);
    let (with_tag, whole) = (polls(304), polls(200));
    println!("{} bytes with an entity tag, {} without", with_tag.iter().max().unwrap(), whole[0]);
    assert!(with_tag.iter().all(|bytes| *bytes <= 512), "{with_tag:?}");
    assert!(whole.iter().all(|bytes| *bytes <= 1024), "also where a server knows no entity tags: {whole:?}");
    assert_eq!(
        publisher.server.served().iter().filter(|served| served.path.ends_with(".archive")).count(),
        1
    );
    daemon.finish();
}

#[test]
fn an_edge_without_network_decides_as_before_also_after_a_restart() {
    let publisher = Publisher::new();
    publisher.publish(1, "one", &[]);
    let mut daemon = publisher.edge("").serve();
    wait_for_version(&daemon, 1);
    publisher.server.set_down(true);
    wait_until("the failure is said", || bundle(&daemon)["last_poll"] == "failed");
    assert!(daemon.log().contains("the server of the bundle could not be asked"), "{}", daemon.log());
    wait_until("it is counted", || metric(&daemon, "hookyard_bundle_polls_total{result=\"failed\"}") >= 1.0);
    assert_eq!((verdict(&daemon, "ls"), verdict(&daemon, "one").as_str()), ("proceed".into(), "block"));
    daemon.signal(Signal::KILL);
    daemon.wait();
    let daemon = daemon.again().serve();
    assert_eq!((verdict(&daemon, "ls"), verdict(&daemon, "one").as_str()), ("proceed".into(), "block"));
    publisher.server.set_down(false);
    publisher.publish(2, "two", &[]);
    wait_for_version(&daemon, 2);
    assert_eq!(verdict(&daemon, "two"), "block");
    daemon.finish();
}

#[test]
fn a_stale_bundle_blocks_where_the_settings_say_so_until_its_server_answers() {
    let publisher = Publisher::new();
    publisher.publish(1, "one", &[]);
    let daemon = publisher.edge(", max_age: 2s, on_stale: deny").serve();
    wait_for_version(&daemon, 1);
    assert_eq!(verdict(&daemon, "ls"), "proceed");
    publisher.server.set_down(true);
    wait_until("it is stale", || verdict(&daemon, "ls") == "block");
    let (_, why) = judge(&daemon, "ls");
    assert!(why.contains("the bundle acme/guards 1 is stale: no server has confirmed it since"), "{why}");
    assert_eq!(bundle(&daemon)["standing"], "unconfirmed");
    publisher.server.set_down(false);
    wait_until("it is confirmed", || verdict(&daemon, "ls") == "proceed");
    assert_eq!(verdict(&daemon, "one"), "block");
    daemon.finish();
}

#[test]
fn a_bundle_expires_while_the_daemon_runs() {
    let publisher = Publisher::new();
    publisher.publish(1, "one", &["--expires", "4s"]);
    let daemon = publisher.edge(", on_stale: ask").serve();
    wait_for_version(&daemon, 1);
    wait_until("it is stale", || verdict(&daemon, "ls") == "ask");
    assert_eq!(
        (&bundle(&daemon)["standing"], verdict(&daemon, "one").as_str()),
        (&json!("expired"), "block")
    );
    publisher.publish(2, "two", &[]);
    wait_until("a newer one counts", || verdict(&daemon, "ls") == "proceed");
    daemon.finish();
}

#[test]
fn a_bundle_that_is_installed_by_hand_is_taken_over_and_an_older_one_needs_a_word() {
    let publisher = Publisher::new();
    let key = &publisher.key;
    let setup = DaemonSetup::new().file("shop/readme", "").settings(&format!(
        "data: $DIR/data\nbundle: {{ keys: [\"{key}\"], poll: 100ms }}\nworkspaces: {{ shop: {{ root: $DIR/shop }} }}"
    ));
    let daemon = setup.serve();
    let (blocked, why) = judge(&daemon, "ls");
    assert!(blocked == "block" && why.contains("hookyard bundle install FILE"), "{why}");
    let config = daemon.path().join("hookyard.yaml").display().to_string();
    for (version, word) in [(1, "one"), (2, "two")] {
        let archive = publisher.build(version, word, &[]);
        publisher.sign(&archive);
        publisher.succeed(&["bundle", "install", &archive, "--config", &config]);
        wait_for_version(&daemon, version);
        assert_eq!(verdict(&daemon, word), "block");
    }
    let refused = publisher.fail(&["bundle", "install", "guards-1.tar.gz", "--config", &config]);
    assert!(
        refused.contains("it is version 1, and 2 is in force") && refused.contains("--allow-older"),
        "{refused}"
    );
    publisher.succeed(&["bundle", "install", "guards-1.tar.gz", "--config", &config, "--allow-older"]);
    wait_for_version(&daemon, 1);
    assert_eq!((verdict(&daemon, "one"), verdict(&daemon, "two").as_str()), ("block".into(), "proceed"));
    let unsigned = publisher.build(3, "three", &[]);
    assert!(
        publisher.fail(&["bundle", "install", &unsigned, "--config", &config]).contains("nobody has signed")
    );
    daemon.finish();
}

#[test]
fn a_bundle_is_uploaded_with_a_token_the_archive_first() {
    let publisher = Publisher::new();
    let archive = publisher.build(1, "one", &[]);
    let url = publisher.server.url("guards.bundle");
    assert!(publisher.fail(&["bundle", "push", &archive, &url]).contains("nobody has signed"));
    publisher.sign(&archive);
    let refused = publisher.fail(&["bundle", "push", &archive, &url]);
    assert!(refused.contains("the server answered 401"), "{refused}");
    assert!(!publisher.path("www/guards.bundle").exists());
    publisher.write("token", "t0ken\n");
    let open = publisher.fail(&["bundle", "push", &archive, &url, "--token-file", "token"]);
    assert!(open.contains("is open to others") && !open.contains("t0ken"), "{open}");
    fs::set_permissions(publisher.path("token"), fs::Permissions::from_mode(0o600)).unwrap();
    publisher.succeed(&["bundle", "push", &archive, &url, "--token-file", "token"]);
    let paths: Vec<String> =
        publisher.server.served().iter().skip(1).map(|served| served.path.clone()).collect();
    assert!(paths.len() == 2 && paths[0].ends_with(".archive") && paths[1] == "/guards.bundle", "{paths:?}");
    let daemon = publisher.edge("").serve();
    wait_for_version(&daemon, 1);
    let elsewhere = publisher.fail(&["bundle", "push", &archive, "http://hooks.example/guards.bundle"]);
    assert!(elsewhere.contains("write an `https://` URL"), "{elsewhere}");
    daemon.finish();
}
