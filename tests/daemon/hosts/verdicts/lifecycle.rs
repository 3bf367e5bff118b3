//! Events while the daemon starts or stops, and in workspaces that are not loaded.

use std::{net::TcpListener, os::unix::fs::PermissionsExt};

use super::*;

#[test]
fn an_event_during_the_shutdown_gets_a_verdict() {
    for policy in ["on_error: deny", ""] {
        let setup = DaemonSetup::new();
        let directory = setup.path();
        let wait = format!(
            "echo $$ > {0}/pid.new; mv {0}/pid.new {0}/pid; until [ -e {0}/go ]; do sleep 0.02; done",
            directory.display()
        );
        let mut slow: Value = serde_json::from_str(&hook("slow", "before_tool_dispatch", &wait)).unwrap();
        if let Some((key, value)) = policy.split_once(": ") {
            slow[key] = json!(value);
        }
        let mut daemon = setup
            .settings("workspaces: { shop: { root: $DIR/shop } }\nshutdown_deadline: 1m")
            .file("shop/.openharness/hooks/slow.yaml", &slow.to_string())
            .serve();
        let mut busy = UnixStream::connect(daemon.socket()).unwrap();
        busy.write_all(&post("/v1/events", JSON, call("shop", "busy").to_string().as_bytes())).unwrap();
        hanging(&directory);
        daemon.signal(Signal::TERM);
        wait_until("it drains", || daemon.send("GET", "/readyz", None).status == 503);
        for dialect in DIALECTS {
            let body = tool(dialect, &directory.join("shop"));
            let told = answer(&daemon, &post(&format!("/v1/events/{dialect}"), JSON, body.as_bytes()), false);
            assert_answer(&told, dialect, !policy.is_empty(), "draining");
        }
        fs::write(directory.join("go"), "").unwrap();
        assert_eq!(daemon.wait().code(), Some(0), "{}", daemon.log());
        wait_until("nothing is left", || daemon.processes().is_empty());
    }
}

/// A daemon that takes its time to load: the guard is in the last of its workspaces.
fn slow_to_load(limits: &str) -> Daemon {
    let mut setup = DaemonSetup::new().settings("workspaces:");
    for number in 0..8 {
        setup = setup.settings(&format!("  a{number}: {{ root: $DIR/a{number} }}"));
        let hooks = setup.path().join(format!("a{number}/.openharness/hooks"));
        fs::create_dir_all(&hooks).unwrap();
        for hook_number in 0..500 {
            let file = hook(&format!("h{hook_number}"), "run_failed", "true");
            fs::write(hooks.join(format!("h{hook_number}.yaml")), file).unwrap();
        }
    }
    let guard = hook("guard", "before_tool_dispatch", "echo no >&2; exit 2");
    let setup = setup
        .settings("  shop: { root: $DIR/shop }")
        .settings(limits)
        .file("shop/.openharness/hooks/guard.yaml", &guard);
    let daemon = setup.spawn();
    let sockets = [daemon.socket().to_owned(), daemon.control_socket()];
    wait_until("it listens", || sockets.iter().all(|socket| UnixStream::connect(socket).is_ok()));
    daemon
}

/// Sends a request, whose answer comes later.
fn begin(socket: &Path, request: &[u8]) -> UnixStream {
    let mut stream = UnixStream::connect(socket).unwrap();
    stream.write_all(request).unwrap();
    stream
}

fn end_of(mut stream: UnixStream) -> String {
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

#[test]
fn events_that_wait_for_a_daemon_that_is_stopped_while_it_loads_get_an_answer() {
    for by_signal in [true, false] {
        let mut daemon = slow_to_load("limits: { pending_deadline: 1m }\nlisten: { lameduck: 1m }");
        // What comes meanwhile waits in the sockets, and is there when it goes on.
        daemon.signal(Signal::STOP);
        let shop = daemon.path().join("shop");
        let waiting: Vec<_> = DIALECTS
            .into_iter()
            .flat_map(|dialect| {
                [(dialect, tool(dialect, &shop), true), (dialect, end(dialect, &shop), false)]
            })
            .map(|(dialect, body, blocked)| {
                let request = post(&format!("/v1/events/{dialect}"), JSON, body.as_bytes());
                (dialect, begin(daemon.socket(), &request), blocked)
            })
            .collect();
        let canonical = post("/v1/events", JSON, call("shop", "run").to_string().as_bytes());
        let canonical = begin(daemon.socket(), &canonical);
        let drain = (!by_signal).then(|| begin(&daemon.control_socket(), &post("/v1/drain", "", b"")));
        if by_signal {
            daemon.signal(Signal::TERM);
        }
        daemon.signal(Signal::CONT);
        for (dialect, stream, blocked) in waiting {
            let told = read_answer(&end_of(stream), false);
            assert_answer(&told, dialect, blocked, "stopped while it loads");
            let reason = format!("{told:?}");
            // ClawdCode has no field for the person.
            assert!(reason.contains("shutting down") || dialect == "clawd", "{reason}");
        }
        let refused = end_of(canonical);
        assert!(refused.starts_with("HTTP/1.1 503"), "{refused}");
        for part in [r#""code":"shutting_down""#, r#""retry":"safe""#] {
            assert!(refused.contains(part), "{refused}");
        }
        if let Some(drain) = drain {
            assert!(end_of(drain).starts_with("HTTP/1.1 2"));
        }
        assert_eq!(daemon.wait().code(), Some(0), "{}", daemon.log());
    }
}

/// Stops the daemon before it binds a TCP address, when its sockets are open.
const STOPPED_BIND: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/daemon/hosts/verdicts/stopped_bind.c");

#[test]
fn events_that_wait_for_a_daemon_that_does_not_start_get_an_answer() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = format!("listen: {{ tcp: '{}' }}", taken.local_addr().unwrap());
    let free = "listen: { tcp: '127.0.0.1:0' }";
    for (settings, said) in [
        (taken, "address already in use"),
        (format!("{free}\naudit: {{ to: $DIR/no/audit.jsonl }}"), "its directory does not exist"),
        (format!("{free}\ndata: $DIR/data"), "runs.db is damaged"),
    ] {
        let setup =
            DaemonSetup::new().settings("workspaces: { shop: { root: $DIR/shop } }").settings(&settings);
        let library = setup.path().join("stopped_bind.so");
        let mut compiler = std::process::Command::new("cc");
        compiler.args(["-O1", "-Wall", "-Werror", "-shared", "-fPIC", "-o"]).arg(&library).arg(STOPPED_BIND);
        assert!(compiler.status().expect("a C compiler").success(), "{STOPPED_BIND} cannot be compiled");
        let setup = setup.file("shop/x", "").file("data/runs.db", &"no store".repeat(200));
        for (path, mode) in [("data", 0o700), ("data/runs.db", 0o600)] {
            fs::set_permissions(setup.path().join(path), fs::Permissions::from_mode(mode)).unwrap();
        }
        let mut daemon = setup.variable("LD_PRELOAD", library.to_str().unwrap()).spawn();
        let stat = format!("/proc/{}/stat", daemon.pid());
        let is_stopped = || fs::read_to_string(&stat).is_ok_and(|stat| stat.contains(") T "));
        wait_until("its sockets are open", is_stopped);
        let shop = daemon.path().join("shop");
        let waiting = DIALECTS.map(|dialect| {
            let request = |body: &str| post(&format!("/v1/events/{dialect}"), JSON, body.as_bytes());
            let call = begin(daemon.socket(), &request(&tool(dialect, &shop)));
            (dialect, call, begin(daemon.socket(), &request(&end(dialect, &shop))))
        });
        let canonical = post("/v1/events", JSON, call("shop", "run").to_string().as_bytes());
        let canonical = begin(daemon.socket(), &canonical);
        daemon.signal(Signal::CONT);
        for (dialect, call, end) in waiting {
            let told = read_answer(&end_of(call), false);
            assert_answer(&told, dialect, true, said);
            let told = format!("{told:?}");
            // ClawdCode has no field for the person.
            let says_why = told.contains("hookyard did not start") && told.contains(said);
            assert!(says_why || dialect == "clawd", "{told}");
            assert_answer(&read_answer(&end_of(end), false), dialect, false, said);
        }
        let refused = end_of(canonical);
        for part in ["HTTP/1.1 503", r#""code":"not_started""#, r#""retry":"safe""#, said] {
            assert!(refused.contains(part), "{refused}");
        }
        assert_eq!(daemon.wait().code(), Some(1), "{}", daemon.log());
        assert!(daemon.log().contains(said), "{}", daemon.log());
        assert!(!daemon.socket().exists() && !daemon.control_socket().exists());
        wait_until("nothing is left", || daemon.processes().is_empty());
    }
}

#[test]
fn a_second_signal_while_the_daemon_loads_ends_it_and_lets_no_call_pass() {
    let mut daemon = slow_to_load("limits: { pending_deadline: 1m }");
    daemon.signal(Signal::STOP);
    let shop = daemon.path().join("shop");
    let waiting = DIALECTS.map(|dialect| {
        let body = tool(dialect, &shop);
        let request = post(&format!("/v1/events/{dialect}"), JSON, body.as_bytes());
        (dialect, begin(daemon.socket(), &request))
    });
    // Two kinds, since a second one of the same kind is lost while the first is pending.
    daemon.signal(Signal::TERM);
    daemon.signal(Signal::INT);
    daemon.signal(Signal::CONT);
    for (dialect, mut stream) in waiting {
        let mut told = String::new();
        // A connection that ends without an answer is an outage for its host, and may be reset.
        let has_ended = stream.read_to_string(&mut told).is_err() || told.is_empty();
        if !has_ended {
            assert_answer(&read_answer(&told, false), dialect, true, "stopped twice while it loads");
        }
    }
    daemon.wait();
    wait_until("nothing is left", || daemon.processes().is_empty());
    let daemon = daemon.again().serve();
    wait_until("it is ready", || daemon.send("GET", "/readyz", None).status == 200);
    let told = answer(&daemon, &post("/v1/events/claude", JSON, tool("claude", &shop).as_bytes()), false);
    assert!(told.is_block("claude"), "{told:?}");
    daemon.finish();
}

/// A daemon and its successor, which is stopped while it loads its workspaces.
fn with_a_stopped_successor() -> (Daemon, Daemon) {
    let daemon = slow_to_load("");
    let loaded = |daemon: &Daemon| daemon.log().matches("workspace=").count();
    wait_until("it is ready", || daemon.send("GET", "/readyz", None).status == 200);
    let before = loaded(&daemon);
    let successor = daemon.replace();
    wait_until("it loads", || loaded(&daemon) > before);
    successor.signal(Signal::STOP);
    (daemon, successor)
}

#[test]
fn a_successor_that_is_stopped_while_it_loads_leaves_everything_to_the_daemon_that_runs() {
    let (daemon, mut successor) = with_a_stopped_successor();
    successor.signal(Signal::TERM);
    successor.signal(Signal::CONT);
    assert_ne!(successor.wait().code(), Some(0), "{}", daemon.log());
    for dialect in DIALECTS {
        let body = tool(dialect, &daemon.path().join("shop"));
        let told = answer(&daemon, &post(&format!("/v1/events/{dialect}"), JSON, body.as_bytes()), false);
        assert!(told.is_block(dialect), "{dialect}: {told:?}");
        assert!(!format!("{told:?}").contains("shutting down"), "{dialect}: {told:?}");
    }
    daemon.finish();
}

#[test]
fn a_successor_of_a_killed_daemon_answers_who_waits_when_it_is_stopped() {
    let (mut daemon, mut successor) = with_a_stopped_successor();
    daemon.signal(Signal::KILL);
    daemon.wait();
    let send = |dialect: &str| {
        let body = tool(dialect, &daemon.path().join("shop"));
        begin(daemon.socket(), &post(&format!("/v1/events/{dialect}"), JSON, body.as_bytes()))
    };
    let waiting = DIALECTS.map(|dialect| (dialect, send(dialect)));
    successor.signal(Signal::TERM);
    successor.signal(Signal::CONT);
    for (dialect, stream) in waiting {
        assert_answer(&read_answer(&end_of(stream), false), dialect, true, "its predecessor was killed");
    }
    assert_eq!(successor.wait().code(), Some(0), "{}", daemon.log());
    wait_until("nothing is left", || daemon.processes().is_empty());
    assert!(!daemon.socket().exists());
}

#[test]
fn no_event_is_judged_before_the_hooks_are_loaded() {
    for deadline in ["1ms", "1m"] {
        let mut daemon = slow_to_load(&format!("limits: {{ pending_deadline: {deadline} }}"));
        let mut early = 0;
        // The first requests come before the hooks are loaded; the last ones are judged by them.
        loop {
            let is_ready = daemon.send("GET", "/readyz", None).status == 200;
            for dialect in DIALECTS {
                let body = tool(dialect, &daemon.path().join("shop"));
                let told =
                    answer(&daemon, &post(&format!("/v1/events/{dialect}"), JSON, body.as_bytes()), false);
                assert!(told.is_block(dialect), "{dialect} {deadline}: {told:?}");
                early += usize::from(told.out.contains("still loading"));
            }
            if is_ready {
                break;
            }
            assert!(!daemon.has_ended(), "{}", daemon.log());
        }
        assert_eq!(early > 0, deadline == "1ms", "{early} were answered early with {deadline}");
        daemon.finish();
    }
}

#[test]
fn an_event_in_a_workspace_that_could_not_be_loaded_is_blocked() {
    let daemon = DaemonSetup::new()
        .settings(
            "workspaces: { shop: { root: $DIR/shop }, gone: { root: $DIR/gone }, more: { root: $DIR/more } }",
        )
        .file("shop/x", "")
        .file("more/x", "")
        .serve();
    for dialect in DIALECTS {
        let body = tool(dialect, &daemon.path().join("gone/sub"));
        let told = answer(&daemon, &post(&format!("/v1/events/{dialect}"), JSON, body.as_bytes()), false);
        assert_answer(&told, dialect, true, "a missing root");
        let body = end(dialect, &daemon.path().join("gone/sub"));
        let told = answer(&daemon, &post(&format!("/v1/events/{dialect}"), JSON, body.as_bytes()), false);
        assert!(!told.is_block(dialect), "{dialect}: {told:?}");
    }
    daemon.finish();
}

#[test]
fn below_the_roots_an_event_of_an_unknown_directory_is_blocked() {
    let guard = hook("guard", "before_tool_dispatch", "exit 0");
    let roots = DaemonSetup::new()
        .settings("workspace_roots: [$DIR/srv]")
        .file("srv/shop/.openharness/hooks/guard.yaml", &guard)
        .serve();
    let none = DaemonSetup::new().file("srv/x", "").serve();
    for (daemon, blocked) in [(&roots, true), (&none, false)] {
        for dialect in DIALECTS {
            let whole = tool(dialect, Path::new("/srv/shop"));
            let without = whole.replace("cwd", "cvd").replace("project_dir", "project_dyr");
            let cut = &without.as_bytes()[..without.len() - 1];
            let path = format!("/v1/events/{dialect}");
            for (what, request) in [
                ("cut off", post(&path, JSON, cut)),
                ("not JSON", post(&path, "content-type: text/plain\r\n", without.as_bytes())),
                ("a wrong query", post(&format!("{path}?more=1"), JSON, without.as_bytes())),
                ("a wrong path", post(&format!("{path}/x"), JSON, without.as_bytes())),
            ] {
                assert_answer(&answer(daemon, &request, false), dialect, blocked, what);
            }
            // What no hook can stop is never blocked.
            let end = end(dialect, Path::new("/srv/shop")).replace("cwd", "cvd");
            let told = answer(daemon, &post(&path, "content-type: text/plain\r\n", end.as_bytes()), false);
            assert!(!told.is_block(dialect), "{told:?}");
        }
        let without = tool("claude", Path::new("/srv/shop")).replace("cwd", "cvd");
        let told = answer(daemon, &post("/v1/events/klaus", JSON, without.as_bytes()), false);
        assert_answer(&told, "claude", blocked, "an unknown dialect");
    }
    roots.finish();
    none.finish();
}
