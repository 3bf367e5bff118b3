//! What is older, damaged, changed or from somebody else: nothing of it is taken, and no guard goes.

use std::{fs, os::unix::fs::PermissionsExt};

use rustix::process::Signal;
use serde_json::{Value, json};

use super::publisher::{
    GUARD, Publisher, bundle, judge, kept, kept_bundle, make_program, metric, verdict, wait_for_version,
};
use crate::support::wait::wait_until;

#[test]
fn what_is_older_or_signed_by_others_or_spoiled_is_not_taken_and_is_said() {
    let publisher = Publisher::new();
    publisher.publish(5, "five", &[]);
    let daemon = publisher.edge("").serve();
    wait_for_version(&daemon, 5);
    let refused = |why: &str, text: &str| {
        wait_until(why, || bundle(&daemon)["error"].as_str().is_some_and(|error| error.contains(text)));
        assert_eq!(
            (&bundle(&daemon)["version"], &bundle(&daemon)["last_poll"]),
            (&json!(5), &json!("rejected"))
        );
        let series = format!("hookyard_bundle_rejected_total{{why=\"{why}\"}}");
        wait_until(&series, || metric(&daemon, &series) >= 1.0);
        assert_eq!(verdict(&daemon, "five"), "block");
    };
    publisher.publish(4, "four", &[]);
    refused("older", "it is version 4, and 5 is in force");
    publisher.succeed(&["bundle", "keygen", "other"]);
    let archive = publisher.build(6, "six", &[]);
    publisher.succeed(&["bundle", "sign", &archive, "--key", "other"]);
    publisher.succeed(&["bundle", "push", &archive, "www/guards.bundle"]);
    refused("signature", "none of the keys in `bundle.keys` has signed it");
    publisher.sign(&archive);
    let statement = fs::read_to_string(publisher.path(&format!("{archive}.sig"))).unwrap();
    let digest = statement.lines().find_map(|line| line.strip_prefix("archive ")).unwrap();
    let stored = publisher.path("www").join(format!("{}.archive", digest.split(' ').next().unwrap()));
    let mut bytes = fs::read(&stored).unwrap();
    bytes[100] ^= 1;
    fs::write(&stored, bytes).unwrap();
    fs::copy(publisher.path(&format!("{archive}.sig")), publisher.path("www/guards.bundle")).unwrap();
    refused("damaged", "its archive is not the one that was signed");
    assert!(daemon.log().contains("the published bundle is not taken; what is in force stays"));
    // What is not there as a whole is not given up. It is put beside the one that the daemon follows until it is spoiled.
    let archive = publisher.build(8, "eight", &[]);
    publisher.sign(&archive);
    publisher.succeed(&["bundle", "push", &archive, "www/next.bundle"]);
    let statement = fs::read_to_string(publisher.path("www/next.bundle")).unwrap();
    let digest = statement.lines().find_map(|line| line.strip_prefix("archive ")).unwrap();
    let stored = publisher.path("www").join(format!("{}.archive", digest.split(' ').next().unwrap()));
    let whole = fs::read(&stored).unwrap();
    fs::write(&stored, &whole[..whole.len() - 1]).unwrap();
    fs::write(publisher.path("www/guards.bundle"), &statement).unwrap();
    wait_until("a part is said", || {
        bundle(&daemon)["error"].as_str().is_some_and(|error| error.contains("not published as a whole yet"))
    });
    assert_eq!((&bundle(&daemon)["version"], &bundle(&daemon)["last_poll"]), (&json!(5), &json!("failed")));
    fs::write(&stored, whole).unwrap();
    wait_for_version(&daemon, 8);
    // Under a higher version the other one is, too.
    publisher.publish(9, "nine", &[]);
    wait_for_version(&daemon, 9);
    wait_until("nothing is wrong any more", || bundle(&daemon)["error"] == Value::Null);
    daemon.finish();
}

#[test]
fn a_server_that_misbehaves_brings_nothing() {
    let publisher = Publisher::new();
    publisher.publish(1, "one", &[]);
    let daemon = publisher.edge("").serve();
    wait_for_version(&daemon, 1);
    let body = |body: &str| format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    let endless =
        format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2000\r\n{}", "x".repeat(8192));
    for (answer, expected) in [
        (
            "HTTP/1.1 302 Found\r\nlocation: https://elsewhere.example/x\r\ncontent-length: 0\r\n\r\n"
                .to_owned(),
            "redirects are not followed",
        ),
        ("HTTP/1.1 304 Not Modified\r\ncontent-length: 0\r\n\r\n".to_owned(), ""),
        ("HTTP/1.1 500 Oops\r\ncontent-length: 0\r\n\r\n".to_owned(), "it answered 500"),
        (body(&"x".repeat(5000)), "its answer has more than 4096 bytes"),
        (endless, "its answer has more than 4096 bytes"),
        (body("<html>sign in to the hotel</html>"), "the signed statement is not as"),
        (body(""), "the signed statement is not as"),
    ] {
        publisher.server.answer_instead(Some(answer.into_bytes()));
        if !expected.is_empty() {
            wait_until(expected, || {
                bundle(&daemon)["error"].as_str().is_some_and(|error| error.contains(expected))
            });
        }
        assert_eq!((&bundle(&daemon)["version"], verdict(&daemon, "one").as_str()), (&json!(1), "block"));
    }
    publisher.server.answer_instead(None);
    wait_until("all is well again", || bundle(&daemon)["error"].is_null());
    daemon.finish();
}

#[test]
fn what_is_changed_on_disk_is_unpacked_again_at_a_start_and_never_run_before() {
    let publisher = Publisher::new();
    publisher.publish(1, "one", &[]);
    let mut daemon = publisher.edge_with("1h", "").serve();
    wait_for_version(&daemon, 1);
    let script = kept_bundle(&daemon).join("files/core/scripts/guard.sh");
    make_program(&script);
    fs::write(&script, "#!/bin/sh\nexit 0\n").unwrap();
    let (blocked, why) = judge(&daemon, "ls");
    assert_eq!(blocked, "block", "{why}");
    assert!(why.contains("was changed since the bundle was verified"), "{why}");
    daemon.signal(Signal::KILL);
    daemon.wait();
    let daemon = daemon.again().serve();
    assert_eq!((verdict(&daemon, "ls"), verdict(&daemon, "one").as_str()), ("proceed".into(), "block"));
    assert!(daemon.log().contains("files of the bundle were changed on this disk"), "{}", daemon.log());
    assert_eq!(bundle(&daemon)["copy_changes"], 1);
    daemon.finish();
}

#[test]
fn what_is_changed_on_disk_is_said_and_unpacked_again_while_the_daemon_runs() {
    let publisher = Publisher::new();
    publisher.publish(1, "one", &[]);
    let daemon = publisher.edge("").serve();
    wait_for_version(&daemon, 1);
    let script = kept_bundle(&daemon).join("files/core/scripts/guard.sh");
    make_program(&script);
    fs::write(&script, "#!/bin/sh\nexit 0\n").unwrap();
    wait_until("it is unpacked again", || bundle(&daemon)["copy_changes"] == 1);
    assert_eq!((verdict(&daemon, "ls"), verdict(&daemon, "one").as_str()), ("proceed".into(), "block"));
    let last = bundle(&daemon)["last_copy_change"].as_str().unwrap().to_owned();
    assert_eq!(
        (last.as_str(), &bundle(&daemon)["standing"]),
        ("`core/scripts/guard.sh` was changed", &json!("current"))
    );
    let series = "hookyard_bundle_copy_changes_total{result=\"restored\"}";
    wait_until("it is counted", || metric(&daemon, series) > 0.5);
    assert!(daemon.log().contains("files of the bundle were changed on this disk, and are unpacked again"));
    // A directory in the place of a file, and something where the new copy goes.
    let files = kept_bundle(&daemon).join("files");
    fs::write(files.with_file_name("files.new"), "x").unwrap();
    fs::set_permissions(&files, fs::Permissions::from_mode(0o700)).unwrap();
    fs::set_permissions(files.join("core"), fs::Permissions::from_mode(0o700)).unwrap();
    fs::rename(files.join("core"), files.join("elsewhere")).unwrap();
    wait_until("that, too", || bundle(&daemon)["copy_changes"] == 2);
    wait_until("it judges again", || verdict(&daemon, "ls") == "proceed");
    assert_eq!(verdict(&daemon, "one"), "block");
    daemon.finish();
}

#[test]
fn a_file_that_is_put_beside_those_of_the_bundle_switches_no_guard_off() {
    let publisher = Publisher::new();
    publisher.publish(1, "one", &[]);
    let lenient = GUARD.replace("on_error: deny\non_timeout: deny\n", "");
    publisher.write(
        "guards/lax/.openharness/hooks/lenient.yaml",
        &lenient.replace("name: guard", "name: lenient"),
    );
    publisher.write("guards/lax/scripts/guard.sh", "#!/bin/sh\nexit 2\n");
    make_program(&publisher.path("guards/lax/scripts/guard.sh"));
    publisher.succeed(&[
        "bundle",
        "build",
        "guards/lax",
        "--name",
        "acme/lax",
        "--version",
        "1",
        "--expires",
        "9d",
        "--output",
        "lax.tar.gz",
    ]);
    publisher.sign("lax.tar.gz");
    publisher.succeed(&["bundle", "push", "lax.tar.gz", "www/guards.bundle"]);
    let daemon = publisher.edge_with("1h", "").serve();
    wait_for_version(&daemon, 1);
    assert_eq!(verdict(&daemon, "ls"), "block");
    let files = kept_bundle(&daemon).join("files");
    fs::set_permissions(&files, fs::Permissions::from_mode(0o700)).unwrap();
    fs::write(files.join("x"), "").unwrap();
    let (blocked, why) = judge(&daemon, "ls");
    assert!(blocked == "block" && why.contains("(bundle: deny)"), "{blocked}: {why}");
    daemon.finish();
}

#[test]
fn a_record_that_is_gone_or_damaged_lets_no_older_bundle_in() {
    for spoil in [None, Some("{")] {
        let publisher = Publisher::new();
        publisher.publish(1, "one", &[]);
        let older = fs::read(publisher.path("www/guards.bundle")).unwrap();
        publisher.publish(2, "two", &[]);
        let daemon = publisher.edge("").serve();
        wait_for_version(&daemon, 2);
        // Its hooks are loaded after it is said to be there.
        wait_until("its guard is in force", || judge(&daemon, "two").1 == "no two");
        let record = kept(&daemon).join("state.json");
        match spoil {
            Some(text) => fs::write(&record, text).unwrap(),
            None => fs::remove_file(&record).unwrap(),
        }
        fs::write(publisher.path("www/guards.bundle"), older).unwrap();
        wait_until("the older one is refused", || {
            bundle(&daemon)["error"]
                .as_str()
                .is_some_and(|why| why.contains("it is version 1, and 2 is in force"))
        });
        assert_eq!(judge(&daemon, "two"), ("block".into(), "no two".into()));
        assert_eq!(judge(&daemon, "one"), ("proceed".into(), String::new()));
        daemon.finish();
    }
}

#[test]
fn a_server_without_news_confirms_only_what_it_has() {
    let publisher = Publisher::new();
    publisher.publish(1, "one", &[]);
    publisher.publish(2, "two", &[]);
    let daemon = publisher.edge("").serve();
    wait_for_version(&daemon, 2);
    let polls = publisher.server.served().len();
    wait_until("the tag is sent", || publisher.server.served().len() > polls + 2);
    let config = daemon.path().join("hookyard.yaml").display().to_string();
    let home = daemon.path().join("home").display().to_string();
    publisher.succeed(&[
        "bundle",
        "install",
        "guards-1.tar.gz",
        "--config",
        &config,
        "--home",
        &home,
        "--allow-older",
    ]);
    // The server has a newer one, and says so again.
    wait_until("the newer one is taken again", || {
        daemon.log().matches("a new bundle was taken").count() == 2
    });
    wait_for_version(&daemon, 2);
    assert_eq!(verdict(&daemon, "two"), "block");
    fs::remove_file(kept_bundle(&daemon).join("archive.tar.gz")).unwrap();
    daemon.send("POST", "/v1/reload", None);
    wait_until("what is damaged is fetched again", || verdict(&daemon, "ls") == "proceed");
    assert_eq!(verdict(&daemon, "two"), "block");
    daemon.finish();
}
