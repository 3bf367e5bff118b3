//! Events while the daemon starts or stops, and in workspaces that are not loaded.

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

#[test]
fn no_event_is_judged_before_the_hooks_are_loaded() {
    for deadline in ["1ms", "1m"] {
        let mut setup = DaemonSetup::new().settings("workspaces:");
        // The guard is in the workspace that is loaded last.
        for number in 0..8 {
            setup = setup.settings(&format!("  a{number}: {{ root: $DIR/a{number} }}"));
            let hooks = setup.path().join(format!("a{number}/.openharness/hooks"));
            fs::create_dir_all(&hooks).unwrap();
            for hook_number in 0..500 {
                let file = hook(&format!("h{hook_number}"), "run_failed", "true");
                fs::write(hooks.join(format!("h{hook_number}.yaml")), file).unwrap();
            }
        }
        let setup = setup
            .settings("  shop: { root: $DIR/shop }")
            .settings(&format!("limits: {{ pending_deadline: {deadline} }}"))
            .file(
                "shop/.openharness/hooks/guard.yaml",
                &hook("guard", "before_tool_dispatch", "echo no >&2; exit 2"),
            );
        let mut daemon = setup.spawn();
        wait_until("it listens", || UnixStream::connect(daemon.socket()).is_ok());
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
