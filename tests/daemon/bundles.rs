//! Signed bundles: from a key to a guard that is in force in a daemon, and what keeps one out or blocks without one.
#![allow(clippy::disallowed_methods, reason = "the program is run as its users run it")]

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use rustix::process::Signal;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{
    daemon::{Daemon, DaemonSetup},
    static_files::StaticFiles,
    wait::wait_until,
};

const GUARD: &str = "name: guard\nevents: [before_tool_dispatch]\nmatcher: Bash\non_error: deny\non_timeout: deny\n\
                     handler: {type: command, command: ./scripts/guard.sh}\n";

/// Who makes and publishes bundles.
struct Publisher {
    place: TempDir,
    server: StaticFiles,
    key: String,
}

impl Publisher {
    fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        let server = StaticFiles::start(&place.path().join("www"), Some("t0ken"));
        let new = Self { place, server, key: String::new() };
        let made = new.succeed(&["bundle", "keygen", "key"]);
        Self { key: made.trim().to_owned(), ..new }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hookyard"));
        command.current_dir(self.place.path()).env("HOOKYARD_TEST_HOME", self.path("home"));
        command.env_remove("HOOKYARD_LOG").args(arguments).output().unwrap()
    }

    fn succeed(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(output.status.success(), "{arguments:?}: {}{}", text(&output.stdout), text(&output.stderr));
        text(&output.stdout)
    }

    fn fail(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    /// Makes an archive whose guard blocks what has a word.
    fn build(&self, version: u64, word: &str, more: &[&str]) -> String {
        self.write("guards/core/.openharness/hooks/guard.yaml", GUARD);
        let script = self.path("guards/core/scripts/guard.sh");
        self.write(
            "guards/core/scripts/guard.sh",
            &format!("#!/bin/sh\ngrep -q {word} && {{ echo no {word} >&2; exit 2; }}\nexit 0\n"),
        );
        make_program(&script);
        let archive = format!("guards-{version}.tar.gz");
        let number = version.to_string();
        let fixed = ["bundle", "build", "guards", "--name", "acme/guards", "--version", &number];
        let expires: &[&str] = if more.contains(&"--expires") { &[] } else { &["--expires", "90d"] };
        self.succeed(&[&fixed[..], expires, more, &["--output", &archive]].concat());
        archive
    }

    fn sign(&self, archive: &str) {
        self.succeed(&["bundle", "sign", archive, "--key", "key"]);
    }

    fn publish(&self, version: u64, word: &str, more: &[&str]) {
        let archive = self.build(version, word, more);
        self.sign(&archive);
        self.succeed(&["bundle", "push", &archive, "www/guards.bundle"]);
    }

    /// A daemon with one workspace that follows the bundle.
    fn edge(&self, more: &str) -> DaemonSetup {
        let (url, key) = (self.server.url("guards.bundle"), &self.key);
        let bundle = format!("bundle: {{ url: \"{url}\", keys: [\"{key}\"], poll: 100ms{more} }}");
        let setup = DaemonSetup::new().file("shop/readme", "");
        setup.settings(&format!("{bundle}\nworkspaces: {{ shop: {{ root: $DIR/shop }} }}"))
    }
}

fn make_program(path: &Path) {
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn judge(daemon: &Daemon, command: &str) -> (String, String) {
    let event = json!({ "event": "before_tool_dispatch", "session_id": "s", "run_id": "r", "workspace_id": "shop",
                        "tool_name": "Bash", "tool_input": { "command": command } });
    let outcome = daemon.post("/v1/events", &event);
    let text = |key: &str| outcome[key].as_str().unwrap_or_default().to_owned();
    (text("verdict"), text("reason"))
}

fn verdict(daemon: &Daemon, command: &str) -> String {
    judge(daemon, command).0
}

fn bundle(daemon: &Daemon) -> Value {
    daemon.get("/v1/status")["bundle"].clone()
}

fn wait_for_version(daemon: &Daemon, version: u64) {
    wait_until("the version is in force", || bundle(daemon)["version"] == version);
}

fn metric(daemon: &Daemon, series: &str) -> f64 {
    let text = String::from_utf8(daemon.send("GET", "/metrics", None).body).unwrap();
    let line = text.lines().find(|line| line.starts_with(&format!("{series} ")));
    line.map_or(0.0, |line| line.rsplit(' ').next().unwrap().parse().unwrap())
}

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
    // Under a higher version it is.
    publisher.publish(7, "seven", &[]);
    wait_for_version(&daemon, 7);
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
fn what_is_changed_on_disk_is_unpacked_again_at_a_start_and_never_run_before() {
    let publisher = Publisher::new();
    publisher.publish(1, "one", &[]);
    let mut daemon = publisher.edge("").serve();
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
    assert!(daemon.log().contains("files of the bundle are unpacked again"), "{}", daemon.log());
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

/// The directory in which the daemon keeps its bundles.
fn kept(daemon: &Daemon) -> PathBuf {
    daemon.path().join("home/.local/state/hookyard/bundle")
}

/// The directory of the only bundle that is kept.
fn kept_bundle(daemon: &Daemon) -> PathBuf {
    let mut places = fs::read_dir(kept(daemon)).unwrap().map(|entry| entry.unwrap().path());
    places.find(|path| path.is_dir()).unwrap()
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
    let daemon = publisher.edge("").serve();
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
        let record = kept(&daemon).join("state.json");
        fs::remove_file(&record).unwrap();
        if let Some(text) = spoil {
            fs::write(&record, text).unwrap();
        }
        fs::write(publisher.path("www/guards.bundle"), older).unwrap();
        wait_until("the older one is refused", || {
            bundle(&daemon)["error"]
                .as_str()
                .is_some_and(|why| why.contains("it is version 1, and 2 is in force"))
        });
        assert_eq!((verdict(&daemon, "two"), verdict(&daemon, "one").as_str()), ("block".into(), "proceed"));
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
