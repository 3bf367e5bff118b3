//! The directory of a workspace is gone, or something else is in its place.

use super::*;

#[test]
fn below_the_roots_a_workspace_without_its_files_is_still_guarded() {
    let daemon = shop();
    agree(&daemon);
    wait_for(&daemon, "trusted");
    let start = |daemon: Daemon| {
        let mut daemon = daemon;
        daemon.signal(Signal::TERM);
        assert!(daemon.wait().success(), "{}", daemon.log());
        let here = daemon.path();
        fs::write(here.join("hookyard.yaml"), "").unwrap();
        daemon.again().enforces_trust()
    };
    // As after a start that has not seen the workspace yet.
    fs::remove_dir_all(daemon.path().join("shop/.openharness")).unwrap();
    fs::create_dir_all(daemon.path().join("shop/src")).unwrap();
    let daemon = start(daemon).settings("workspace_roots: [$DIR]\nstate_directory: $DIR/state").serve();
    for directory in ["shop", "shop/src", "shop/not/there"] {
        let event = json!({ "event": "before_tool_dispatch", "session_id": "s", "run_id": "r", "tool_name": "Bash",
                            "tool_input": {}, "cwd": daemon.path().join(directory) });
        let outcome = daemon.post("/v1/events", &event);
        assert_eq!((&outcome["verdict"], &outcome["by"]), (&json!("block"), &json!("guard")), "{directory}");
    }
    daemon.finish();
}

fn restore(here: &Path) {
    let shop = here.join("shop");
    fs::remove_file(&shop).or_else(|_| fs::remove_dir_all(&shop)).ok();
    fs::rename(here.join("moved"), shop).unwrap();
}

#[test]
fn another_directory_in_the_place_of_a_workspace_takes_no_guard_away() {
    let replacements: [(&str, Replacement); 4] = [
        ("a link to another directory", |here| symlink("other", here.join("shop")).unwrap()),
        ("a link to itself under another name", |here| symlink("moved", here.join("shop")).unwrap()),
        ("an empty directory", |here| fs::create_dir(here.join("shop")).unwrap()),
        ("another workspace", |here| {
            fs::create_dir_all(here.join("shop/.openharness/hooks")).unwrap();
            fs::write(here.join("shop/.openharness/hooks/other.yaml"), GUARD.replace("guard", "other"))
                .unwrap();
        }),
    ];
    let daemon = shop();
    fs::create_dir_all(daemon.path().join("other/.openharness/hooks")).unwrap();
    let here = daemon.path();
    agree(&daemon);
    wait_for(&daemon, "trusted");
    let states = |daemon: &Daemon| {
        let details = daemon.get("/v1/workspaces/shop");
        let hooks = details["trust"].as_array().unwrap().iter();
        hooks.map(|hook| hook["state"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let is_missing = || states(&daemon).contains(&"missing".to_owned());
    // A load that found no directory at all has the state, and no diagnostics.
    let is_told = || {
        let errors = daemon.get("/v1/workspaces/shop")["diagnostics"].to_string();
        errors.contains("the trusted hook `guard` does not run")
    };
    for (what, replace) in replacements {
        fs::rename(here.join("shop"), here.join("moved")).unwrap();
        replace(&here);
        wait_until(&format!("{what} is noticed"), || is_missing() && is_told());
        fire(&daemon);
        let is_link = here.join("shop").is_symlink();
        let expected = if is_link { (503, json!("workspace_replaced")) } else { (200, Value::Null) };
        assert_eq!(readiness(&daemon), expected, "{what}");
        restore(&here);
        wait_until(&format!("{what} is gone"), || states(&daemon) == ["trusted"]);
        assert_eq!(fire(&daemon)["reason"], "not on my watch", "{what}");
        assert_eq!(readiness(&daemon).0, 200);
    }
    daemon.finish();
}

/// A daemon that ended after a person had agreed to the guard, and whose settings file is empty.
fn trusted_and_stopped() -> Daemon {
    let mut daemon = shop();
    agree(&daemon);
    wait_for(&daemon, "trusted");
    daemon.signal(Signal::TERM);
    assert!(daemon.wait().success(), "{}", daemon.log());
    fs::write(daemon.path().join("hookyard.yaml"), "").unwrap();
    daemon
}

/// The next daemon with the same record of trust.
fn started_again(daemon: Daemon, settings: &str) -> Daemon {
    let setup = daemon.again().enforces_trust().settings(settings);
    setup.settings("state_directory: $DIR/state").serve()
}

#[test]
fn a_link_in_the_place_of_a_workspace_takes_no_guard_away_from_a_daemon_that_starts() {
    for settings in ["workspaces: { shop: { root: $DIR/shop } }", "workspace_roots: [$DIR]"] {
        let daemon = trusted_and_stopped();
        let here = daemon.path();
        fs::rename(here.join("shop"), here.join("moved")).unwrap();
        fs::create_dir_all(here.join("other/src")).unwrap();
        symlink("other", here.join("shop")).unwrap();
        let daemon = started_again(daemon, settings);
        let blocked = (json!("block"), json!("guard"));
        for directory in ["shop", "shop/src", "shop/not/there"] {
            assert_eq!(judged(&daemon, directory), blocked, "{settings}: {directory}");
        }
        assert_eq!(readiness(&daemon), (503, json!("workspace_replaced")), "{settings}");
        let status = daemon.get("/v1/status").to_string();
        assert!(status.contains("missing"), "{settings}: {status}");
        let metrics = String::from_utf8(daemon.send("GET", "/metrics", None).body).unwrap();
        let withheld = metrics.lines().find(|line| {
            line.starts_with("hookyard_hooks_loaded{")
                && line.contains("openharness")
                && line.contains("untrusted")
        });
        assert!(withheld.is_some_and(|line| line.ends_with(" 1")), "{settings}: {withheld:?}");
        let shown = trust(&daemon, &["--list"]);
        let shown = String::from_utf8(shown.stdout).unwrap();
        assert!(shown.contains("missing") && shown.contains("guard"), "{settings}: {shown}");
        assert!(trust(&daemon, &["--revoke"]).status.success());
        wait_until("nobody has agreed to anything", || readiness(&daemon).0 == 200);
        daemon.finish();
    }
}

#[test]
fn a_workspace_that_is_registered_by_another_spelling_of_its_path_keeps_its_trust() {
    let daemon = shop();
    agree(&daemon);
    wait_for(&daemon, "trusted");
    let shop = daemon.path().join("shop").to_str().unwrap().to_owned();
    for spelling in
        [format!("{shop}/"), format!("{shop}//"), format!("{shop}/./"), format!("{shop}/../shop/")]
    {
        let put = daemon.send("PUT", "/v1/workspaces/shop", Some(&json!({ "root": spelling })));
        assert_eq!(put.status, 200, "{spelling}");
        assert_eq!(daemon.get("/v1/workspaces/shop")["root"], *shop, "{spelling}");
        wait_for(&daemon, "trusted");
    }
    daemon.finish();
}

#[test]
fn a_workspace_that_is_registered_through_a_link_takes_no_guard_away() {
    let daemon = shop();
    agree(&daemon);
    wait_for(&daemon, "trusted");
    let here = daemon.path();
    let put = |root: &str| {
        daemon.send("PUT", "/v1/workspaces/shop", Some(&json!({ "root": here.join(root) }))).status
    };
    let root = || daemon.get("/v1/workspaces/shop")["root"].clone();
    symlink("shop", here.join("link")).unwrap();
    symlink("nowhere", here.join("dangling")).unwrap();
    symlink("circle", here.join("circle")).unwrap();
    fs::create_dir(here.join("other")).unwrap();
    assert_eq!((put("link"), root()), (200, json!(here.join("shop"))), "it is where the link leads to");
    wait_for(&daemon, "trusted");
    assert_eq!(fire(&daemon)["reason"], "not on my watch");
    for root in ["dangling", "circle", "link/not/there"] {
        assert!((400..500).contains(&put(root)), "{root}");
        assert_eq!(fire(&daemon)["reason"], "not on my watch", "{root}");
    }
    // What was agreed to was agreed to there, wherever the name leads now.
    fs::rename(here.join("shop"), here.join("moved")).unwrap();
    for target in ["other", "moved"] {
        symlink(target, here.join("shop")).unwrap();
        for spelling in ["shop", "link"] {
            assert_eq!((put(spelling), root()), (200, json!(here.join("shop"))), "{spelling}, {target}");
            let states = daemon.get("/v1/workspaces/shop")["trust"].to_string();
            assert!(states.contains("missing"), "{spelling}, {target}: {states}");
            // It asserts that the event is blocked.
            fire(&daemon);
            assert_eq!(readiness(&daemon), (503, json!("workspace_replaced")), "{spelling}, {target}");
        }
        fs::remove_file(here.join("shop")).unwrap();
    }
    daemon.finish();
}

/// The first event after a start may come from a directory that is gone.
#[test]
fn a_workspace_that_is_gone_before_a_start_takes_no_guard_away() {
    for gone in ["shop", "shop/.openharness"] {
        let daemon = trusted_and_stopped();
        let here = daemon.path();
        fs::rename(here.join(gone), here.join("moved")).unwrap();
        let daemon = started_again(daemon, "workspace_roots: [$DIR]");
        for directory in ["shop/not/there", "shop"] {
            let event = json!({ "session_id": "s", "hook_event_name": "PreToolUse", "tool_name": "Bash",
                                "tool_input": {}, "cwd": here.join(directory) });
            let answer = daemon.post("/v1/events/claude", &event);
            assert_eq!(
                answer["hookSpecificOutput"]["permissionDecision"], "deny",
                "{gone}, {directory}: {answer}"
            );
        }
        daemon.finish();
    }
}

/// Where the guards of what the link leads to are trusted as well, they apply too.
#[test]
fn behind_a_link_in_the_place_of_a_workspace_the_guards_of_both_apply() {
    let daemon = DaemonSetup::new()
        .enforces_trust()
        .settings("workspace_roots: [$DIR]\nstate_directory: $DIR/state")
        .file("shop/.openharness/hooks/guard.yaml", &GUARD.replace("deny", "ignore"))
        .file("shop/.openharness/scripts/guard.sh", SCRIPT)
        .file("other/.openharness/hooks/keeper.yaml", &GUARD.replace("guard", "keeper"))
        .file("other/.openharness/scripts/keeper.sh", SCRIPT)
        .serve();
    agree(&daemon);
    let here = daemon.path();
    fs::rename(here.join("shop"), here.join("moved")).unwrap();
    symlink("other", here.join("shop")).unwrap();
    assert_eq!(judged(&daemon, "other"), (json!("block"), json!("keeper")));
    assert_eq!(judged(&daemon, "shop"), (json!("block"), json!("keeper")));
    daemon.finish();
}
