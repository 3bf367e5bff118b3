//! Broken files of a workspace that has namesakes, odd names, trust or another kind, or whose file was never whole.

use super::*;

#[test]
fn a_file_name_that_is_no_text_costs_no_other_file_its_rules() {
    let daemon = shop().file(GUARD, &guard("guard", "no")).file(OF_USER, &claude("user")).serve();
    let hooks = daemon.path().join("shop/.openharness/hooks");
    let odd = hooks.join(OsStr::from_bytes(b"odd-\xff.yaml"));
    fs::write(&odd, guard("odd", "odd").replace("^Bash$", "^Read$")).unwrap();
    wait_until("it is loaded", || word(&daemon, "Read") == "odd");
    let daemon = killed(daemon, |here| {
        fs::write(here.join(GUARD), BROKEN).unwrap();
        fs::write(&odd, BROKEN).unwrap();
    })
    .serve();
    assert_eq!((word(&daemon, "Bash"), word(&daemon, "Read")), ("user".into(), "odd".into()));
    assert_eq!(broken_files(&daemon), ["2", "0", "0"]);
    daemon.finish();
}

#[test]
fn a_chat_forgets_no_guard_that_it_does_not_load() {
    let text = guard("guard", "no").replace("handler:", "on_error: deny\nhandler:");
    let daemon = shop().file(GUARD, &text).serve();
    assert_eq!(word(&daemon, "Bash"), "no");
    let own = daemon.path().join("shop/.openharness/settings.yaml");
    let daemon = killed(daemon, |here| {
        fs::write(&own, "kind: chat\n").unwrap();
        fs::write(here.join(GUARD), "a: [").unwrap();
    })
    .serve();
    let details = daemon.get("/v1/workspaces/shop").to_string();
    assert!(details.contains("not loaded, as the workspace is of kind `chat`, and broken"), "{details}");
    assert!(daemon.log().contains("a hook file is broken; its hooks are not loaded"), "{}", daemon.log());
    fs::remove_file(&own).unwrap();
    wait_until("it is no chat any more", || word(&daemon, "Bash") == "no");
    let daemon = killed(daemon, |_| {}).serve();
    assert_eq!(word(&daemon, "Bash"), "no");
    daemon.finish();
}

#[test]
fn a_namesake_in_another_file_takes_the_place_of_no_kept_guard() {
    let namesake = guard("guard", "namesake").replace("^Bash$", "^None$");
    let other = "shop/.openharness/hooks/a.yaml";
    for data in ["data: $DIR/data", "data: null"] {
        let setup = DaemonSetup::new().settings("workspaces: { shop: { root: $DIR/shop } }").settings(data);
        let daemon = setup.file(GUARD, &guard("guard", "no")).serve();
        fs::write(daemon.path().join(GUARD), BROKEN).unwrap();
        fs::write(daemon.path().join(other), &namesake).unwrap();
        for _ in 0..2 {
            assert_eq!(daemon.send("POST", "/v1/reload", None).status, 200);
            assert_eq!(word(&daemon, "Bash"), "no", "{data}");
        }
        if data.ends_with("null") {
            daemon.finish();
            continue;
        }
        let mut daemon = daemon;
        for _ in 0..2 {
            daemon = killed(daemon, |_| {}).serve();
            assert_eq!(word(&daemon, "Bash"), "no", "after a start");
            assert_eq!(broken_files(&daemon)[0], "1");
        }
        daemon.finish();
    }
}

/// A guard in force is not said to be off, nor is it advised to give its trust up.
#[test]
fn the_mistake_of_a_kept_and_trusted_guard_is_shown() {
    let setup = shop().settings("state_directory: $DIR/state").enforces_trust();
    let daemon = setup.file(GUARD, &guard("guard", "no")).serve();
    let shown: Value = serde_json::from_slice(&run(&daemon, &["trust", "--json"]).stdout).unwrap();
    assert!(run(&daemon, &["trust", "--yes", shown["digest"].as_str().unwrap()]).status.success());
    wait_until("it is trusted", || word(&daemon, "Bash") == "no");
    let is_clear = |daemon: &Daemon| {
        assert_eq!(word(daemon, "Bash"), "no");
        let broken = &daemon.get("/v1/status")["broken"][0];
        let first = broken["first"].as_str().unwrap();
        assert!(broken["errors"] == 1 && first.contains("guard.yaml:2:1: not valid YAML"), "{broken}");
        let log = daemon.log();
        assert!(!log.contains("does not run") && !log.contains("--revoke"), "{log}");
        assert!(!log.contains("its hooks are not loaded"), "{log}");
    };
    fs::write(daemon.path().join(GUARD), BROKEN).unwrap();
    wait_until("the mistake is noticed", || broken_files(&daemon) == ["1", "0", "0"]);
    is_clear(&daemon);
    let daemon = killed(daemon, |here| fs::remove_file(here.join("log")).unwrap()).enforces_trust().serve();
    is_clear(&daemon);
    daemon.finish();
}

/// A file of a workspace that was never whole may have guards: with `broken: deny`, nothing passes it by, and no other
/// workspace is concerned.
#[test]
fn a_file_that_was_never_whole_blocks_its_own_workspace_if_the_settings_say_so() {
    for (policy, data) in [("deny", "$DIR/data"), ("deny", "null"), ("keep", "$DIR/data")] {
        for file in [GUARD, "shop/.claude/settings.json"] {
            let daemon = DaemonSetup::new()
                .settings("workspaces: { shop: { root: $DIR/shop }, other: { root: $DIR/other } }")
                .settings(&format!("data: {data}\nbroken: {policy}"))
                .file(file, BROKEN)
                .file("other/README", "")
                .serve();
            let judged = |workspace: &str| {
                let event = json!({ "event": "before_tool_dispatch", "session_id": "s", "run_id": "r",
                                    "workspace_id": workspace, "tool_name": "Read", "tool_input": {} });
                daemon.post("/v1/events", &event)
            };
            let outcome = judged("shop");
            let what = format!("{policy}, {data}, {file}: {outcome}");
            if policy == "deny" {
                assert_eq!(
                    (&outcome["verdict"], &outcome["by"]),
                    (&json!("block"), &json!("broken-file")),
                    "{what}"
                );
                assert!(outcome["reason"].as_str().unwrap().contains("its file is broken"), "{what}");
            } else {
                assert_eq!(outcome["verdict"], "proceed", "{what}");
            }
            assert_eq!(judged("other")["verdict"], "proceed", "{what}");
            let details = daemon.get("/v1/workspaces/shop");
            assert!(details["errors"].as_u64().unwrap() > 0, "{details}");
            let status = daemon.get("/v1/status").to_string();
            assert!(status.contains(file), "{status}");
            let metrics = String::from_utf8(daemon.send("GET", "/metrics", None).body).unwrap();
            assert!(metrics.contains("\nhookyard_config_last_reload_successful 0\n"), "{what}");
            // Mended, it is as any other.
            if file == GUARD {
                fs::write(daemon.path().join(file), guard("guard", "no")).unwrap();
                wait_until("the file is read", || word(&daemon, "Bash") == "no");
                assert_eq!(word(&daemon, "Read"), "-");
            }
            daemon.finish();
        }
    }
}

#[test]
fn lists_say_that_the_last_good_rules_of_a_broken_file_stay() {
    let setup = shop().enforces_trust().file(GUARD, &guard("guard", "no"));
    let daemon = setup.serve();
    let shown: Value = serde_json::from_slice(&run(&daemon, &["trust", "--json"]).stdout).unwrap();
    let agreed = run(&daemon, &["trust", "--yes", shown["digest"].as_str().unwrap()]);
    assert_eq!(agreed.status.code(), Some(0), "{agreed:?}");
    assert_eq!(daemon.send("POST", "/v1/reload", None).status, 200);
    for arguments in [["list", "--color=never"].as_slice(), &["trust", "--list"]] {
        let output = run(&daemon, arguments);
        assert!(!String::from_utf8_lossy(&output.stderr).contains("last good"), "{output:?}");
    }
    fs::write(daemon.path().join(GUARD), BROKEN).unwrap();
    for arguments in [["list", "--color=never"].as_slice(), &["trust", "--list"]] {
        let output = run(&daemon, arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains("guard.yaml: the file is broken; its last good rules stay"), "{output:?}");
    }
    daemon.finish();
}
