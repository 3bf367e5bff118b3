//! Which workspace an event belongs to, and workspaces that are registered and removed.

use std::{sync::Barrier, thread};

use super::*;

fn error(answer: &hookyard::daemon::ClientResponse) -> (u16, String) {
    let body: Value = serde_json::from_slice(&answer.body).unwrap();
    let error = &body["error"];
    assert!(error["message"].is_string() && error["hint"].is_string(), "{body}");
    (answer.status, error["code"].as_str().unwrap().to_owned())
}

fn in_directory(directory: &Path) -> Value {
    json!({ "event": "before_tool_dispatch", "session_id": "s", "run_id": "r", "cwd": directory,
            "tool_name": "Bash", "tool_input": {} })
}

fn blocks(words: &str) -> String {
    hook("guard", "before_tool_dispatch", &format!("echo {words} >&2; exit 2"))
}

#[test]
fn an_event_belongs_to_the_workspace_its_cwd_is_in() {
    let daemon = DaemonSetup::new()
        .settings("workspaces: { shop: { root: $DIR/shop }, inner: { root: $DIR/shop/inner } }")
        .file("shop/.openharness/hooks/guard.yaml", &blocks("outer"))
        .file("shop/deep/deeper/file", "")
        .file("shop/inner/.openharness/hooks/guard.yaml", &blocks("inner"))
        .file("elsewhere/file", "")
        .serve();
    for (directory, reason) in [("shop", "outer"), ("shop/deep/deeper", "outer"), ("shop/inner", "outer")] {
        let outcome = daemon.post("/v1/events", &in_directory(&daemon.path().join(directory)));
        assert_eq!(outcome["reason"], reason, "{directory}");
    }
    let hooks = daemon.get("/v1/hooks?workspace_id=inner");
    let names: Vec<_> = hooks.as_array().unwrap().iter().map(|hook| &hook["name"]).collect();
    assert_eq!(names, ["guard", "guard.nested-1"], "the hooks of the outer workspace come first");
    fs::remove_dir_all(daemon.path().join("shop/deep/deeper")).unwrap();
    for directory in ["shop/deep/deeper", "shop/deep/deeper/and/more", "shop/never"] {
        let outcome = daemon.post("/v1/events", &in_directory(&daemon.path().join(directory)));
        assert_eq!(outcome["reason"], "outer", "{directory} is gone and its guards are not");
    }
    for directory in ["elsewhere", "not/there", "shop-of-another", "shop/never/../../elsewhere"] {
        let event = in_directory(&daemon.path().join(directory));
        assert_eq!(error(&daemon.send("POST", "/v1/events", Some(&event))), (404, "no_workspace".into()));
    }
    std::os::unix::fs::symlink(daemon.path().join("shop/deep"), daemon.path().join("link")).unwrap();
    let outcome = daemon.post("/v1/events", &in_directory(&daemon.path().join("link")));
    assert_eq!(outcome["reason"], "outer", "a link leads where it leads");
}

#[test]
fn below_the_roots_the_nearest_directory_with_hooks_is_registered() {
    let daemon = DaemonSetup::new()
        .settings("workspace_roots: [$DIR/srv]")
        .file("srv/shop/.openharness/hooks/guard.yaml", &blocks("shop"))
        .file("srv/shop/src/main.rs", "")
        .file("srv/bare/src/main.rs", "")
        .file("out/file", "")
        .serve();
    let send = |directory: &str| {
        daemon.send("POST", "/v1/events", Some(&in_directory(&daemon.path().join(directory))))
    };
    assert_eq!(daemon::read(&send("srv/shop/src"))["reason"], "shop");
    assert_eq!(daemon::read(&send("srv/bare/src"))["verdict"], "proceed");
    assert_eq!(error(&send("out")), (404, "no_workspace".into()));
    assert_eq!(error(&send("srv/shop/../../out")), (404, "no_workspace".into()));
    let roots: Vec<_> =
        daemon.get("/v1/workspaces").as_array().unwrap().iter().map(|row| row["root"].clone()).collect();
    let path = |name: &str| json!(daemon.path().join(name));
    assert!(
        roots.len() == 2 && roots.contains(&path("srv")) && roots.contains(&path("srv/shop")),
        "{roots:?}"
    );
}

#[test]
fn a_workspace_is_registered_replaced_and_removed() {
    let daemon = DaemonSetup::new()
        .file("a/.openharness/hooks/guard.yaml", &blocks("a"))
        .file("a/.claude/settings.json", &hooks("PreToolUse", "echo claude >&2; exit 2"))
        .file("b/.openharness/hooks/guard.yaml", &blocks("b"))
        .serve();
    let put = |id: &str, body: Value| daemon.send("PUT", &format!("/v1/workspaces/{id}"), Some(&body));
    let root = |name: &str| daemon.path().join(name).display().to_string();
    let reason = |id: &str, run: &str| daemon.post("/v1/events", &call(id, run))["reason"].clone();

    let unknown = (404, "unknown_workspace".to_owned());
    assert_eq!(error(&daemon.send("POST", "/v1/events", Some(&call("shop", "r")))), unknown);
    assert_eq!(error(&daemon.send("GET", "/v1/workspaces/shop", None)), unknown);
    assert_eq!(error(&daemon.send("DELETE", "/v1/workspaces/shop", None)), unknown);

    let added = put("shop", json!({ "root": root("a") }));
    assert_eq!(added.status, 201);
    let shown = daemon::read(&added);
    assert_eq!(
        (&shown["id"], &shown["hooks"], &shown["kind"]),
        (&json!("shop"), &json!(2), &json!("project"))
    );
    assert_eq!(reason("shop", "1"), "a");
    assert_eq!(error(&put("other", json!({ "root": root("a") }))), (409, "same_root".into()));

    let only = put("shop", json!({ "root": root("a"), "dialects": ["claude"] }));
    assert_eq!((only.status, &daemon::read(&only)["hooks"]), (200, &json!(1)));
    assert_eq!(reason("shop", "2"), "claude");

    let chat = put("shop", json!({ "root": root("a"), "kind": "chat" }));
    let shown = daemon::read(&chat);
    assert_eq!((&shown["hooks"], &shown["kind"]), (&json!(0), &json!("chat")));
    assert_eq!(daemon.post("/v1/events", &call("shop", "3"))["verdict"], "proceed");

    assert_eq!(daemon::read(&put("shop", json!({ "root": root("b") })))["root"], root("b"));
    assert_eq!(reason("shop", "4"), "b");
    assert_eq!(put("other", json!({ "root": root("a") })).status, 201, "the directory is free again");

    assert_eq!(daemon.send("DELETE", "/v1/workspaces/shop", None).status, 204);
    assert_eq!(error(&daemon.send("POST", "/v1/events", Some(&call("shop", "5")))), unknown);
    assert_eq!(daemon.get("/v1/workspaces").as_array().unwrap().len(), 1);

    for (body, code) in [
        (json!({ "root": "relative" }), "bad_root"),
        (json!({ "root": root("nowhere") }), "bad_root"),
        (json!({ "root": root("b"), "dialects": ["emacs"] }), "unknown_dialect"),
        (json!({ "root": root("b"), "colour": "red" }), "bad_body"),
    ] {
        assert_eq!(error(&put("shop", body)), (400, code.into()));
    }
}

#[test]
fn removing_a_workspace_ends_its_hooks_and_workers() {
    let setting = DaemonSetup::new();
    let directory = setting.path();
    let daemon = setting
        .settings("workspaces: { shop: { root: $DIR/shop } }")
        .file("shop/.openharness/hooks/slow.yaml", &hook("slow", "before_tool_dispatch", &hangs(&directory)))
        .file("shop/.openharness/hooks/worker.yaml", &worker("after_tool_dispatch"))
        .serve();
    let mut after = call("shop", "w");
    after["event"] = json!("after_tool_dispatch");
    after["tool_output"] = json!("a");
    let worker = daemon.post("/v1/events", &after)["reason"].as_str().unwrap().to_owned();
    let slow = thread::scope(|scope| {
        let event = scope.spawn(|| daemon.post("/v1/events", &call("shop", "r")));
        let slow = hanging(&directory);
        assert_eq!(daemon.send("DELETE", "/v1/workspaces/shop", None).status, 204);
        assert_eq!(event.join().unwrap()["verdict"], "halt");
        slow
    });
    gone(&slow);
    gone(&worker);
}

#[test]
fn a_file_name_that_is_no_text_keeps_no_answer_from_being_written() {
    use std::{ffi::OsStr, os::unix::ffi::OsStrExt};
    let setup = DaemonSetup::new()
        .settings("workspaces: { shop: { root: $DIR/shop } }")
        .file("shop/.openharness/hooks/guard.yaml", &blocks("shop"));
    let files = setup.path().join("shop/.openharness/hooks");
    let odd = |bytes: &[u8]| files.join(OsStr::from_bytes(bytes));
    fs::write(odd(b"wrong\xff.yaml"), "name: wrong\ntypo: 1\n").unwrap();
    fs::write(odd(b"right\xff.yaml"), hook("right", "run_failed", "true")).unwrap();
    let daemon = setup.serve();
    let workspace = daemon.get("/v1/workspaces/shop");
    assert!(workspace["diagnostics"].to_string().contains("wrong\u{fffd}.yaml"), "{workspace}");
    let hooks = daemon.get("/v1/hooks?workspace_id=shop");
    assert!(hooks.to_string().contains("right\u{fffd}.yaml"), "{hooks}");
    daemon.finish();
}

#[test]
fn events_that_come_while_the_first_one_registers_their_workspace_wait_for_its_guards() {
    const EVENTS: usize = 12;
    let mut setup = DaemonSetup::new().settings("workspace_roots: [$DIR/srv]");
    let shops = ["a", "b", "c", "d"];
    for shop in shops {
        setup = setup.file(&format!("srv/{shop}/.openharness/hooks/guard.yaml"), &blocks(shop));
        // It takes a while to load them.
        for number in 0..200 {
            let other = hook(&format!("other-{number}"), "after_tool_dispatch", "true");
            setup = setup.file(&format!("srv/{shop}/.openharness/hooks/other-{number}.yaml"), &other);
        }
    }
    let daemon = setup.serve();
    for shop in shops {
        let together = Barrier::new(EVENTS);
        let send = |run: usize| {
            let mut event = in_directory(&daemon.path().join("srv").join(shop));
            event["run_id"] = json!(run.to_string());
            together.wait();
            daemon.post("/v1/events", &event)["reason"].clone()
        };
        let send = &send;
        let reasons = thread::scope(|scope| {
            let events: Vec<_> = (0..EVENTS).map(|run| scope.spawn(move || send(run))).collect();
            events.into_iter().map(|event| event.join().unwrap()).collect::<Vec<_>>()
        });
        assert_eq!(reasons, vec![json!(shop); EVENTS]);
    }
    daemon.finish();
}

#[test]
fn a_workspace_whose_directory_is_gone_keeps_its_place_and_its_guards_until_it_is_removed() {
    let guard = |words: &str| blocks(words).replacen('{', "{\"on_error\": \"deny\", ", 1);
    let daemon = DaemonSetup::new()
        .settings("workspace_roots: [$DIR/srv]\nlimits: { workspaces: 1 }")
        .file("srv/shop/.openharness/hooks/guard.yaml", &guard("shop"))
        .file("srv/bank/.openharness/hooks/guard.yaml", &guard("bank"))
        .serve();
    let event = |directory: &str| in_directory(&daemon.path().join(directory));
    let is_turned_away = || daemon.send("POST", "/v1/events", Some(&event("srv/bank"))).status == 503;
    assert_eq!(daemon.post("/v1/events", &event("srv/shop"))["reason"], "shop");
    assert!(is_turned_away());
    // At once: of a directory that is emptied file by file, a reload may see that the guard's file is deleted.
    fs::rename(daemon.path().join("srv/shop"), daemon.path().join("shop")).unwrap();
    let broken = || daemon.get("/v1/status")["broken"].as_array().unwrap().len();
    wait_until("the status lists it", || broken() == 1);
    let outcome = daemon.post("/v1/events", &event("srv/shop"));
    assert_eq!((&outcome["verdict"], &outcome["by"]), (&json!("block"), &json!("guard")), "{outcome}");
    assert!(is_turned_away());
    let listed = daemon.get("/v1/workspaces");
    let id = listed[0]["id"].as_str().unwrap();
    assert_eq!(daemon.send("DELETE", &format!("/v1/workspaces/{id}"), None).status, 204);
    assert_eq!(daemon.post("/v1/events", &event("srv/bank"))["reason"], "bank");
    daemon.finish();
}

#[test]
fn a_link_that_is_made_while_the_daemon_runs_is_followed_by_rules() {
    let guard = "name: guard\nevents: [before_tool_dispatch]\non_error: deny\nhandler:\n  type: rule\n  \
                 deny: 'path.touches(tool.input.file_path, workspace.root + \"/.env\")'\n  reason: '\"settings\"'\n";
    let daemon = DaemonSetup::new()
        .settings("workspaces: { shop: { root: $DIR/shop } }")
        .file("shop/.openharness/hooks/guard.yaml", guard)
        .file("shop/.env", "A=1")
        .file("shop/notes", "")
        .serve();
    let (notes, env) = (daemon.path().join("shop/notes"), daemon.path().join("shop/.env"));
    let verdict = || {
        let event = json!({ "event": "before_tool_dispatch", "session_id": "s", "run_id": "r", "workspace_id": "shop",
                            "tool_name": "Read", "tool_input": { "file_path": &notes } });
        let outcome = daemon.post("/v1/events", &event);
        (outcome["verdict"].as_str().unwrap().to_owned(), outcome["reason"].clone())
    };
    for _ in 0..3 {
        assert_eq!(verdict(), ("proceed".to_owned(), Value::Null));
        fs::remove_file(&notes).unwrap();
        std::os::unix::fs::symlink(&env, &notes).unwrap();
        assert_eq!(verdict(), ("block".to_owned(), json!("settings")));
        fs::remove_file(&notes).unwrap();
        fs::write(&notes, "").unwrap();
    }
    daemon.finish();
}
