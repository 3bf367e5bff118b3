//! Loads on daemons: at the socket, over TCP, and on one that dies.

use std::{fs, os::unix::fs::PermissionsExt};

use rustix::process::Signal;

use super::*;
use crate::support::daemon::{Daemon, DaemonSetup};

/// A rate and a goal that every daemon meets.
const FIND_MAX: [&str; 9] = ["--rate", "50", "--find-max", "--p50", "10s", "--step", "100ms", "--for", "2s"];

const TOKEN: &str = "a-token-of-many-letters";

fn setup() -> DaemonSetup {
    DaemonSetup::new()
        .file("shop/.openharness/hooks/guard.yaml", RULE)
        .file("mix.yaml", SCENARIO)
        .file("tools.yaml", "events: [{ kind: before_tool_dispatch, match: Bash }]\n")
        .settings("workspaces: { shop: { root: $DIR/shop } }\nwatch: false")
}

fn load(daemon: &Daemon, more: &[&str]) -> Done {
    run(&daemon.path(), &[&["bench", "mix.yaml"], &SHORT[..], more].concat())
}

#[test]
fn a_daemon_is_measured_at_its_socket() {
    let daemon = setup().serve();
    let socket = daemon.socket().to_str().unwrap().to_owned();
    let done = load(&daemon, &["--socket", &socket, "--concurrency", "4", "--json", "-"]);
    assert_eq!((done.code, done.err.as_str()), (0, ""), "{}", done.out);
    let report = done.json();
    let tools = row(&report, "events", "event", "before_tool_dispatch");
    assert!(tools["results"]["block"].as_u64().unwrap() > 0, "{tools}");
    assert!(tools["ours"]["p50_ms"].is_number() && tools["in_hooks"]["p50_ms"].is_number(), "{tools}");
    assert_eq!(row(&report, "hooks", "hook", "guard")["runs"], tools["count"]);
    assert_eq!(report["target"], format!("socket {socket}"));
    let usage = &report["usage"];
    assert!(usage["resident_after_bytes"].as_u64().unwrap() > 1 << 20, "{usage}");
    assert!(usage["runs_after"].as_u64().unwrap() > 0, "{usage}");
    // The whole load names a workspace that is not there: nothing is measured, and it is said why.
    let done =
        load(&daemon, &["--socket", &socket, "--workspace-id", "none", "--concurrency", "1", "--json", "-"]);
    assert_eq!(done.code, 1, "{}", done.out);
    assert!(done.err.contains("no event got an outcome"), "{}", done.err);
    let report = done.json();
    let refused = &row(&report, "events", "event", "prompt_submitted")["results"];
    assert_eq!(refused.as_object().unwrap().keys().collect::<Vec<_>>(), ["unknown_workspace"], "{refused}");
    daemon.finish();
}

#[test]
fn a_daemon_is_measured_at_its_socket_of_lines() {
    let daemon = setup().settings("listen: { lines: $DIR/lines.sock }").serve();
    let socket = daemon.socket().to_str().unwrap().to_owned();
    let lines = daemon.path().join("lines.sock").to_str().unwrap().to_owned();
    for loop_flags in [["--concurrency", "4"], ["--rate", "100"]] {
        let flags = [&["--lines", &lines, "--socket", &socket, "--json", "-"], &loop_flags[..]].concat();
        let done = load(&daemon, &flags);
        assert!([0, 4].contains(&done.code), "{}", done.err);
        let report = done.json();
        assert_eq!((&report["target"], &report["failed"]), (&json!(format!("lines {lines}")), &json!(0)));
        let tools = row(&report, "events", "event", "before_tool_dispatch");
        assert!(tools["results"]["block"].as_u64().unwrap() > 0, "{tools}");
        assert!(tools["ours"]["p50_ms"].is_number() && tools["in_hooks"]["p50_ms"].is_number(), "{tools}");
        assert_eq!(row(&report, "hooks", "hook", "guard")["runs"], tools["count"]);
        assert!(report["usage"]["resident_after_bytes"].as_u64().unwrap() > 1 << 20, "{report}");
    }
    let lines_flags = ["--lines", lines.as_str(), "--socket", &socket, "--json", "-"];
    let searched = load(&daemon, &[&lines_flags[..], &FIND_MAX].concat());
    assert!([0, 4].contains(&searched.code), "{}", searched.err);
    assert!(searched.json()["find_max"]["found"].as_f64().unwrap() >= 50.0, "{}", searched.out);
    let versus = ["--concurrency", "4", "--versus", "tools.yaml", "--rounds", "4"];
    let compared = load(&daemon, &[&lines_flags[..], &versus].concat());
    assert!([0, 4].contains(&compared.code), "{}", compared.err);
    let compared = compared.json();
    let other = &compared["versus"]["other"];
    assert_eq!((&other["target"], &other["failed"]), (&json!(format!("lines {lines}")), &json!(0)));
    let rate = row(&compared["versus"], "ratios", "figure", "outcomes per second");
    assert!(rate["interval"]["ratio"].is_number(), "{rate}");
    let none = load(&daemon, &["--lines", "/none.sock", "--socket", &socket]);
    assert_eq!((none.code, none.out.as_str()), (1, ""), "{}", none.err);
    assert!(none.err.contains("/none.sock"), "{}", none.err);
    daemon.finish();
}

#[test]
fn a_daemon_is_measured_over_tcp_with_its_token() {
    let setup = setup().file("token", TOKEN).settings("listen: { token_file: $DIR/token }");
    fs::set_permissions(setup.path().join("token"), fs::Permissions::from_mode(0o600)).unwrap();
    let daemon = setup.argument("--tcp").argument("127.0.0.1:0").serve();
    let url = format!("http://{}", daemon.tcp());
    let flags = ["--url", &url, "--token-file", "token", "--rate", "100", "--json", "-"];
    let done = load(&daemon, &flags);
    assert!([0, 4].contains(&done.code), "{}", done.err);
    let report = done.json();
    assert_eq!((&report["target"], &report["failed"]), (&json!(url), &json!(0)), "{report}");
    assert!(!done.out.contains(TOKEN), "{}", done.out);
    let done = load(&daemon, &["--url", &url]);
    assert!(done.code == 1 && done.err.contains("refuses: "), "{}", done.err);
    daemon.finish();
}

#[test]
fn no_other_machine_is_loaded_by_mistake() {
    let place = place();
    for (url, why) in [
        ("http://192.0.2.1:8787", "is another machine, and nothing was sent to it"),
        ("https://127.0.0.1:8787", "has the scheme `https`; a daemon speaks `http`"),
        ("http://me:secret@127.0.0.1:1", "has more than a host and a port"),
        ("127.0.0.1:8787", "is not valid"),
        ("http://127.0.0.1:1/v1/events", "has more than a host and a port"),
        ("http://127.0.0.1:1", "no hookyard listens on 127.0.0.1:1"),
    ] {
        let done = bench(&place, &["--url", url]);
        assert_eq!((done.code, done.out.as_str()), (1, ""), "{url}");
        assert!(done.err.contains(why) && !done.err.contains("secret"), "{url}: {}", done.err);
    }
    let done = bench(&place, &["--socket", "/nonexistent/hookyard.sock"]);
    assert_eq!((done.code, done.out.as_str()), (1, ""));
    assert!(done.err.contains("no hookyard listens on /nonexistent/hookyard.sock"), "{}", done.err);
}

#[test]
fn a_daemon_that_dies_leaves_a_report_and_an_exit_code_of_its_own() {
    let mut daemon = setup().serve();
    let socket = daemon.socket().to_str().unwrap().to_owned();
    let times = ["--warm-up", "0s", "--duration", "50s"];
    let arguments = [&["bench", "mix.yaml", "--concurrency", "2", "--socket", &socket], &times[..]].concat();
    let running = Running::start(&daemon.path(), &arguments);
    wait_until("events are answered", || {
        let metrics = String::from_utf8(daemon.send("GET", "/metrics", None).body).unwrap();
        let line = metrics.lines().find(|line| line.starts_with("hookyard_hook_runs_total{hook=\"guard\""));
        line.and_then(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).is_some_and(|count| count >= 20.0)
    });
    daemon.signal(Signal::KILL);
    daemon.wait();
    let output = running.finish();
    let (out, err) = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap()).into();
    assert_eq!(output.status.code(), Some(3), "{out}{err}");
    assert!(err.contains("the target ended: no hookyard listens on"), "{err}");
    assert!(out.contains("the target ended after") && out.contains("before_tool_dispatch"), "{out}");
}

#[test]
fn hooks_of_a_scenario_are_not_those_of_a_daemon() {
    let daemon =
        setup().file("own.yaml", "events: [{ kind: prompt_submitted }]\nhooks: { inline: [] }\n").serve();
    let socket = daemon.socket().to_str().unwrap().to_owned();
    let done = run(&daemon.path(), &["bench", "own.yaml", "--socket", &socket]);
    assert!(done.code == 1 && done.err.contains("which a daemon does not run"), "{}", done.err);
    daemon.finish();
}
