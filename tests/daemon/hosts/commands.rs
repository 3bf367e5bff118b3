//! `status`, `runs`, `reload` and `workspaces`, as text and as JSON.

use std::thread;

use rustix::process::Signal;

use super::*;

fn run(daemon: &Daemon, arguments: &[&str]) -> Said {
    said(hookyard(daemon, arguments), "")
}

fn json_of(daemon: &Daemon, arguments: &[&str]) -> Value {
    let said = run(daemon, arguments);
    assert_eq!((said.err.as_str(), said.code), ("", Some(0)), "{arguments:?}");
    serde_json::from_str(&said.out).unwrap()
}

/// A daemon with a sound workspace and a broken one.
fn daemon() -> (Daemon, PathBuf) {
    let setting = DaemonSetup::new();
    let directory = setting.path();
    let daemon = setting
        .settings("workspaces: { shop: { root: $DIR/shop }, bar: { root: $DIR/bar } }")
        .file("shop/.openharness/hooks/slow.yaml", &hook("slow", "before_tool_dispatch", &hangs(&directory)))
        .file("bar/.openharness/hooks/bad.yaml", "nonsense\n")
        .argument("--tcp=127.0.0.1:0")
        .serve();
    (daemon, directory)
}

#[test]
fn status_says_where_it_listens_what_it_serves_and_what_is_broken() {
    let (daemon, _) = daemon();
    let status = json_of(&daemon, &["status", "--json"]);
    assert_eq!(
        (&status["phase"], &status["workspaces"], &status["hooks"]),
        (&json!("ready"), &json!(2), &json!(1))
    );
    assert_eq!((&status["pid"], &status["broken"][0]["id"]), (&json!(daemon.pid()), &json!("bar")));
    let said = run(&daemon, &["status"]);
    assert_eq!((said.err.as_str(), said.code), ("", Some(0)));
    let lines: Vec<_> = said.out.lines().collect();
    let pid = daemon.pid();
    assert!(
        lines[0].starts_with("hookyard    0.1.0 ready, pid ") && lines[0].contains(&pid.to_string()),
        "{}",
        said.out
    );
    let tcp = status["tcp"].as_str().unwrap();
    assert_eq!(lines[1], format!("listens     {} and http://{tcp}", daemon.socket().display()));
    assert!(lines[2].starts_with("serves      2 workspaces with 1 hook"), "{}", lines[2]);
    assert_eq!(lines[3], "works on    0 events in flight; 0 runs known, 0 active");
    let state = daemon.path().join("home/.local/state/hookyard");
    assert_eq!(lines[4], format!("run state   in {}; 0 runs restored", state.display()));
    assert_eq!(lines[5], "outbox      0 events to deliver");
    assert_eq!(lines[6], "broken bar: 1 error");
    assert!(lines[7].contains("bad.yaml:1:1: "), "{}", lines[7]);
}

#[test]
fn runs_shows_what_a_run_does_and_cancels_it() {
    let (daemon, directory) = daemon();
    let none = run(&daemon, &["runs"]);
    assert_eq!((none.out.as_str(), none.code), ("", Some(0)));
    assert_eq!(none.err, "no run is active or was active recently\n");
    thread::scope(|scope| {
        let first = scope.spawn(|| daemon.post("/v1/events", &call("shop", "7f3a")));
        let pid = hanging(&directory);
        let second = scope.spawn(|| daemon.post("/v1/events", &call("shop", "7f3a")));
        wait_until("the second event waits", || daemon.get("/v1/runs/7f3a")["pending"] == 1);
        let said = run(&daemon, &["runs"]);
        assert_eq!((said.err.as_str(), said.code), ("", Some(0)));
        let lines: Vec<_> = said.out.lines().collect();
        let words: Vec<_> = lines[0].split_whitespace().collect();
        assert_eq!(words, ["run", "workspace", "age", "events", "pending", "now"], "{}", said.out);
        let row: Vec<_> = lines[2].split_whitespace().collect();
        assert_eq!(row[..2], ["7f3a", "shop"]);
        assert!(lines[2].ends_with(": slow") && lines[2].contains("before_tool_dispatch"), "{}", said.out);
        let listed = json_of(&daemon, &["runs", "--json", "--id", "shop"]);
        assert_eq!((&listed["runs"][0]["pending"], &listed["left_out"]), (&json!(1), &json!(0)));
        assert_eq!(json_of(&daemon, &["runs", "--json", "--workspace-id", "bar"])["runs"], json!([]));
        let cancelled = run(&daemon, &["runs", "--cancel", "7f3a"]);
        assert_eq!(cancelled.out, "cancelled 7f3a with 2 events in flight\n");
        for event in [first, second] {
            assert_eq!(event.join().unwrap()["verdict"], "halt");
        }
        gone(&pid);
    });
    let said = run(&daemon, &["runs", "--cancel", "7f3a"]);
    assert!(said.code == Some(1) && said.err.contains("unknown run 7f3a"), "{}", said.err);
}

#[test]
fn a_halted_run_says_who_halted_it() {
    let halts = hook("budget", "before_tool_dispatch", &prints(&json!({ "continue": false })));
    let daemon = DaemonSetup::new()
        .settings("workspaces: { shop: { root: $DIR/shop } }")
        .file("shop/.openharness/hooks/budget.yaml", &halts)
        .serve();
    daemon.post("/v1/events", &call("shop", "r"));
    let said = run(&daemon, &["runs"]);
    assert!(said.out.contains("halted by budget, idle "), "{}", said.out);
}

#[test]
fn reload_says_what_changed_and_what_is_broken() {
    let (daemon, _) = daemon();
    let said = run(&daemon, &["reload"]);
    assert_eq!(said.code, Some(1), "there is a mistake: {said:?}");
    let lines: Vec<&str> = said.out.lines().collect();
    let [bar, broken, shop] = lines[..] else { panic!("{}", said.out) };
    assert!(bar.starts_with("bar  0 hooks, none changed  version "), "{bar}");
    assert!(broken.starts_with("  broken 1 error; `hookyard check --workspace "), "{broken}");
    assert!(
        shop.starts_with("shop  1 hook, none changed  version ") && shop.contains(", content "),
        "{shop}"
    );
    let path = daemon.path().join("bar/.openharness/hooks/bad.yaml");
    daemon::write(&path, &hook("tidy", "run_completed", "true"));
    let said = run(&daemon, &["reload", "--id", "bar"]);
    assert!(
        said.out.starts_with("bar  1 hook  version ") && said.out.ends_with("\n  added tidy\n"),
        "{said:?}"
    );
    assert_eq!(said.code, Some(0));
    daemon::write(&path, "nonsense\n");
    let said = run(&daemon, &["reload", "--id", "bar", "--json"]);
    let report: Value = serde_json::from_str(&said.out).unwrap();
    let report = &report["workspaces"];
    assert_eq!((&report[0]["id"], &report[0]["errors"], said.code), (&json!("bar"), &json!(1), Some(1)));
    assert_eq!(report[0]["hooks"], 1, "a broken file keeps its last good rules");
    let said = run(&daemon, &["reload", "--id", "bar"]);
    assert!(said.out.contains("bad.yaml keeps its last good rules"), "{}", said.out);
    let said = run(&daemon, &["reload", "--workspace-id", "bar"]);
    assert_eq!(said.code, Some(1), "{said:?}");
}

#[test]
fn an_unknown_workspace_id_is_an_error_that_lists_the_known_ones() {
    let (daemon, _) = daemon();
    for arguments in [
        &["runs", "--workspace-id", "elsewhere"][..],
        &["runs", "--id", "elsewhere"],
        &["runs", "--cancel", "7f3a", "--workspace-id", "elsewhere"],
        &["reload", "--workspace-id", "elsewhere"],
        &["reload", "--workspace", "elsewhere"],
        &["top", "--once", "--workspace-id", "elsewhere"],
        &["workspaces", "rm", "elsewhere"],
    ] {
        let said = run(&daemon, arguments);
        let expected = "error: unknown workspace `elsewhere`\n help: known ids: bar, shop\n";
        assert_eq!(
            (said.out.as_str(), said.err.as_str(), said.code),
            ("", expected, Some(1)),
            "{arguments:?}"
        );
    }
}

#[test]
fn a_workspace_is_named_by_its_id_or_its_directory() {
    let (daemon, _) = daemon();
    for name in ["shop", "./shop", "bar/../shop", daemon.path().join("shop").to_str().unwrap()] {
        let said = run(&daemon, &["reload", "--workspace", name]);
        assert!(said.code == Some(0) && said.out.starts_with("shop  1 hook, "), "{name}: {said:?}");
    }
}

#[test]
fn workspaces_are_listed_added_and_removed() {
    let guard = hook("guard", "before_tool_dispatch", "echo no >&2; exit 2");
    let daemon = DaemonSetup::new()
        .settings("workspaces: { shop: { root: $DIR/shop } }")
        .file("shop/.openharness/hooks/bad.yaml", "nonsense\n")
        .file("new/.openharness/hooks/guard.yaml", &guard)
        .file("other/new/file", "")
        .serve();
    let root = daemon.path().join("new");
    let said = run(&daemon, &["workspaces", "add", "new"]);
    assert_eq!(said.out, format!("new: registered {} with 1 hook\n", root.display()), "{said:?}");
    assert_eq!(daemon.post("/v1/events", &call("new", "r"))["by"], "guard");
    let again = run(&daemon, &["workspaces", "add", "new"]);
    assert_eq!(again.out, format!("new: {} is registered already\n", root.display()), "{again:?}");
    assert_eq!(again.code, Some(0));
    let said = run(&daemon, &["workspaces", "add", "other/new"]);
    let expected = format!("error: the id `new` is that of {}\n", root.display());
    assert!(said.code == Some(1) && said.err.starts_with(&expected), "{said:?}");
    assert_eq!(
        json_of(&daemon, &["workspaces", "add", "other/new", "--id", "third", "--json"])["changed"],
        true
    );
    let listed = json_of(&daemon, &["workspaces", "--json"]);
    let ids: Vec<_> = listed["workspaces"].as_array().unwrap().iter().map(|row| &row["id"]).collect();
    assert!(ids == ["new", "shop", "third"] && listed["not_loaded"] == json!([]), "{listed}");
    let table = run(&daemon, &["workspaces"]).out;
    let rows: Vec<Vec<_>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["id", "hooks", "errors", "kind", "directory"], "{table}");
    assert_eq!(rows[2], ["new", "1", "·", "project", root.to_str().unwrap()], "{table}");
    assert_eq!(rows[3][..4], ["shop", "·", "1", "project"], "{table}");
    for name in ["new", "other/new"] {
        let said = run(&daemon, &["workspaces", "rm", name]);
        assert!(said.code == Some(0) && said.out.ends_with(": removed\n"), "{said:?}");
    }
    assert_eq!(daemon.send("POST", "/v1/events", Some(&call("new", "r"))).status, 404);
    let said = run(&daemon, &["workspaces", "rm", "new"]);
    assert_eq!(
        (said.err.as_str(), said.code),
        ("error: unknown workspace `new`\n help: known ids: shop\n", Some(1))
    );
}

#[test]
fn a_workspace_that_cannot_be_registered_is_an_error() {
    let daemon = DaemonSetup::new()
        .settings("workspaces: { shop: { root: $DIR/shop } }")
        .file("shop/file", "")
        .serve();
    for (path, why) in [("nowhere", "cannot be used: no such file"), ("shop/file", "is not a directory")] {
        let said = run(&daemon, &["workspaces", "add", path]);
        assert!(said.code == Some(1) && said.err.to_lowercase().contains(why), "{said:?}");
    }
    let said = run(&daemon, &["workspaces", "add", "shop", "--id", "second"]);
    assert!(said.code == Some(1) && said.err.contains("is the workspace `shop` already"), "{said:?}");
    let said = run(&daemon, &["workspaces", "add", "shop", "--id", ""]);
    assert!(said.code == Some(2) && said.err.contains("--id"), "{said:?}");
    assert_eq!(daemon.get("/v1/workspaces").as_array().unwrap().len(), 1);
}

#[test]
fn without_a_daemon_each_says_how_to_start_one() {
    let (mut daemon, _) = daemon();
    daemon.signal(Signal::TERM);
    daemon.wait();
    for command in ["status", "runs", "reload", "workspaces"] {
        let said = run(&daemon, &[command]);
        assert_eq!((said.out.as_str(), said.code), ("", Some(1)));
        assert!(
            said.err.contains("no hookyard listens on") && said.err.contains("`hookyard serve`"),
            "{}",
            said.err
        );
    }
}

#[test]
fn a_second_daemon_at_a_socket_says_that_there_is_one() {
    let (daemon, _) = daemon();
    let socket = daemon.socket().to_str().unwrap();
    let said = run(&daemon, &["serve", "--socket", socket]);
    assert_eq!(said.code, Some(1));
    assert!(said.err.contains(&format!("another hookyard listens on {socket}")), "{}", said.err);
    assert_eq!(daemon.get("/v1/status")["phase"], "ready");
}

#[test]
fn a_daemon_that_has_no_connection_left_says_so() {
    let daemon = DaemonSetup::new()
        .settings("workspaces: { shop: { root: $DIR/shop } }\nlimits: { connections: 1, header_timeout: 5m, idle_timeout: 5m }")
        .file("shop/file", "")
        .serve();
    let event = json!({ "session_id": "s", "hook_event_name": "PreToolUse", "tool_name": "Bash",
                        "tool_input": { "command": "x".repeat(1 << 20) } });
    let status = || said(hookyard(&daemon, &["status"]), "");
    wait_until("the connection that asked whether it is ready is over", || status().code == Some(0));
    let held = std::os::unix::net::UnixStream::connect(daemon.socket()).unwrap();
    wait_until("the only connection is taken", || status().code == Some(1));
    for _ in 0..20 {
        let refused = status();
        assert!(refused.err.contains("`limits.connections`, is reached"), "{}", refused.err);
        let relayed = said(hookyard(&daemon, &["relay", "--dialect", "claude"]), &event.to_string());
        assert!(relayed.out.contains("`limits.connections`, is reached"), "{relayed:?}");
    }
    drop(held);
}
