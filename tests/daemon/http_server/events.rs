//! Clients that disconnect, hooks that call hookyard, and requests for metrics.

use std::{fs, net::TcpListener, os::unix::fs::PermissionsExt, thread};

use serde_json::Value;

use crate::{
    http_server::raw_connection::{RawConnection, get, post},
    support::daemon::{Daemon, DaemonSetup},
    support::wait::wait_until,
};

/// A hook that nobody waits for to the end, with a child of its own.
pub(crate) const SLOW: &str = "name: slow\nevents: [before_tool_dispatch]\nmatcher: Bash\nhandler:\n  \
                               type: command\n  command: 'sleep 1000 & sleep 1000; true'\n";

/// A daemon with the slow hook.
pub(crate) fn slow(settings: &str) -> Daemon {
    DaemonSetup::new()
        .file("shop/.openharness/hooks/slow.yaml", SLOW)
        .settings("workspaces: { shop: { root: $DIR/shop } }")
        .settings(settings)
        .serve()
}

/// An event that the hooks of these tests want.
pub(crate) fn event(run: &str) -> String {
    format!(
        r#"{{"event":"before_tool_dispatch","session_id":"s","run_id":"{run}","tool_name":"Bash","tool_input":{{}}}}"#
    )
}

fn under_way(daemon: &Daemon) -> usize {
    let runs = daemon.get("/v1/runs");
    let of = |run: &Value| run["under_way"].as_array().map_or(0, Vec::len);
    runs["runs"].as_array().expect("runs").iter().map(of).sum()
}

#[test]
fn a_client_that_disconnects_cancels_its_hooks() {
    let daemon = slow("");
    let waiting: Vec<_> = (0..5)
        .map(|n| {
            let mut wire = RawConnection::unix(&daemon);
            wire.send(post("/v1/events", event(&format!("r{n}")).as_bytes()));
            wire
        })
        .collect();
    wait_until("all hooks run", || daemon.processes().len() > 10 && under_way(&daemon) == 5);
    drop(waiting);
    wait_until("their processes end", || daemon.processes().len() == 1);
    wait_until("nothing is in hand", || under_way(&daemon) == 0);
    assert_eq!(daemon.get("/v1/status")["events_in_flight"], 0);
    daemon.finish();
}

#[test]
fn a_client_that_sent_more_and_disconnects_cancels_its_hooks() {
    let daemon = slow("");
    for more in ["\r\n", "GET /healthz HTTP/1.1\r\nhost: h\r\n\r\n"] {
        let mut wire = RawConnection::unix(&daemon);
        wire.send([post("/v1/events", event("r").as_bytes()), more.as_bytes().to_vec()].concat());
        wait_until("the hook runs", || under_way(&daemon) == 1);
        drop(wire);
        wait_until("nothing is in hand", || under_way(&daemon) == 0);
    }
    daemon.finish();
}

#[test]
fn a_client_that_disconnects_after_half_an_event_leaves_nothing() {
    let daemon = slow("limits: { requests: 4 }");
    for _ in 0..50 {
        let whole = post("/v1/events", event("r").as_bytes());
        RawConnection::unix(&daemon).send(&whole[..whole.len() - 5]);
    }
    wait_until("their places are free and nothing is in hand", || {
        // While some of them are still coming in there may be no place again.
        daemon.send("GET", "/v1/hooks", None).status == 200 && under_way(&daemon) == 0
    });
    daemon.finish();
}

#[test]
fn hookyard_does_not_run_itself_as_a_hook() {
    const TOKEN: &str = "a-token-of-many-letters";
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let hook = |path: &str| {
        format!(
            "name: loop\nevents: [before_tool_dispatch]\non_error: deny\nhandler:\n  type: http\n  \
             url: http://[::ffff:127.0.0.1]:{port}{path}\n  timeout_seconds: 20\n  \
             headers: {{ Authorization: Bearer {TOKEN} }}\n"
        )
    };
    // By a name that is not seen to be its own when the hook is read.
    for path in ["/v1/events", "/v1/events/openharness"] {
        let setting = DaemonSetup::new()
            .file("shop/.openharness/hooks/loop.yaml", &hook(path))
            .file("token", TOKEN)
            .settings("workspaces: { shop: { root: $DIR/shop } }\nlisten: { token_file: $DIR/token }")
            // What the settings allow does not have hookyard's own addresses.
            .settings("http: { allow: [127.0.0.0/8, '::ffff:127.0.0.1'] }")
            .argument("--tcp")
            .argument(&format!("127.0.0.1:{port}"));
        fs::set_permissions(setting.path().join("token"), fs::Permissions::from_mode(0o600)).unwrap();
        let daemon = setting.serve();
        let outcome = daemon.post("/v1/events", &serde_json::from_str(&event("r")).unwrap());
        assert_eq!(outcome["verdict"], "block", "{outcome}");
        assert!(outcome.to_string().contains("hookyard itself listens there"), "{outcome}");
        // One event, and no others that it led to.
        assert_eq!(daemon.get("/v1/runs/r")["events"], 1);
        let direct = post("/v1/events", event("r").as_bytes());
        let text = String::from_utf8(direct).unwrap().replacen("\r\n", "\r\nx-hookyard-event: x\r\n", 1);
        let reply = RawConnection::unix(&daemon).send(text).reply();
        assert_eq!((reply.status, &*reply.code()), (508, "own_hook"));
        daemon.finish();
    }
}

#[test]
fn concurrent_requests_for_metrics_are_all_answered() {
    let daemon =
        DaemonSetup::new().file("shop/x", "").settings("workspaces: { shop: { root: $DIR/shop } }").serve();
    daemon.post("/v1/events", &serde_json::from_str(&event("r")).unwrap());
    thread::scope(|scope| {
        for _ in 0..20 {
            scope.spawn(|| {
                let mut wire = RawConnection::unix(&daemon);
                for _ in 0..20 {
                    let reply = wire.send(get("/metrics")).reply();
                    assert_eq!(reply.status, 200);
                    assert!(
                        reply
                            .header("content-type")
                            .is_some_and(|kind| kind.starts_with("text/plain; version=0.0.4"))
                    );
                    assert_metrics(std::str::from_utf8(&reply.body).unwrap());
                }
            });
        }
    });
    daemon.finish();
}

/// Prometheus' text format: comments, and lines of a name, perhaps labels, and a number.
fn assert_metrics(text: &str) {
    assert!(text.ends_with('\n') && text.contains("hookyard_"), "{text}");
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with("# ")) {
        let (name, value) = line.rsplit_once(' ').unwrap_or_else(|| panic!("{line}"));
        assert!(value.parse::<f64>().is_ok(), "{line}");
        let bare = name.split('{').next().unwrap_or_default();
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
        assert!(!bare.is_empty() && bare.chars().all(is_plain), "{line}");
        assert!(name.contains('{') == name.ends_with('}'), "{line}");
    }
}
