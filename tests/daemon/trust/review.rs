//! Trust that is given and taken back through the API: what is agreed to is what was shown, and it counts at once.

use super::*;

const TRUST: &str = "/v1/workspaces/shop/trust";

/// A daemon that watches no files: what counts has to count without that.
fn unwatched(settings: &str) -> Daemon {
    DaemonSetup::new()
        .enforces_trust()
        .settings("workspaces: { shop: { root: $DIR/shop } }")
        .settings("state_directory: $DIR/state\nwatch: false")
        .settings(settings)
        .file("shop/.openharness/hooks/guard.yaml", GUARD)
        .file("shop/.openharness/scripts/guard.sh", SCRIPT)
        .serve()
}

/// A request with the right to control: its status and its body.
fn control(daemon: &Daemon, method: &str, path: &str, body: Option<&Value>) -> (u16, Value) {
    let body = body.map(ToString::to_string);
    let answer = daemon.control().send(method, path, body.as_deref().map(str::as_bytes)).unwrap();
    (answer.status, serde_json::from_slice(&answer.body).unwrap())
}

fn review(daemon: &Daemon) -> Value {
    let (status, review) = control(daemon, "GET", TRUST, None);
    assert_eq!(status, 200, "{review}");
    review
}

fn agree_to(daemon: &Daemon, review: &Value) -> (u16, Value) {
    control(daemon, "POST", TRUST, Some(&json!({ "digest": review["digest"] })))
}

fn records(daemon: &Daemon) -> Option<Vec<u8>> {
    fs::read(daemon.path().join("state/trust.json")).ok()
}

#[test]
fn what_was_shown_is_agreed_to_and_runs_at_once() {
    let daemon = unwatched("");
    let shown = review(&daemon);
    assert_eq!((&shown["enforced"], &shown["agreed"]), (&json!(true), &json!(false)));
    let hook = &shown["hooks"][0];
    assert_eq!(
        (&hook["hook"], &hook["state"], &hook["before"]),
        (&json!("guard"), &json!("untrusted"), &Value::Null)
    );
    assert_eq!(hook["now"]["definition"], GUARD);
    let terms = hook["now"]["terms"].as_array().unwrap();
    for term in
        ["events: before_tool_dispatch", "matcher: ^Bash$", "on error: deny", "runs: from a private copy"]
    {
        assert!(terms.contains(&json!(term)), "{term}: {terms:?}");
    }
    assert_eq!(hook["files"], json!([0]));
    let script = &shown["files"][0];
    assert_eq!((&script["path"], &script["before"]), (&json!(".openharness/scripts/guard.sh"), &Value::Null));
    assert_eq!((&script["now"]["text"], &script["now"]["unshown"]), (&json!(SCRIPT), &Value::Null));
    let (status, then) = agree_to(&daemon, &shown);
    assert_eq!((status, &then["agreed"], &then["files"]), (200, &json!(true), &json!([])), "{then}");
    assert_eq!(state(&daemon), "trusted");
    assert_eq!(fire(&daemon)["hooks"][0]["ended"], "completed");
    // The command knows it too, and says the same.
    assert!(trust(&daemon, &["--list"]).status.success());
    // What is in force is left as it is.
    let before = records(&daemon);
    assert_eq!(agree_to(&daemon, &then).0, 200);
    assert_eq!(records(&daemon), before);
    daemon.finish();
}

#[test]
fn a_change_is_shown_as_it_was_and_as_it_is() {
    let daemon = unwatched("");
    agree_to(&daemon, &review(&daemon));
    write(&daemon, "shop/.openharness/scripts/guard.sh", "exit 0\n");
    fs::write(daemon.path().join("shop/.openharness/scripts/more.bin"), [0xff, 0]).unwrap();
    write(&daemon, "shop/.openharness/scripts/large.txt", &"x".repeat(300 << 10));
    write(&daemon, "shop/.openharness/hooks/guard.yaml", &GUARD.replace("deny", "ignore"));
    let shown = review(&daemon);
    let hook = &shown["hooks"][0];
    assert_eq!(hook["state"], "modified");
    assert!(hook["before"]["terms"].as_array().unwrap().contains(&json!("on error: deny")));
    assert!(hook["now"]["terms"].as_array().unwrap().contains(&json!("on error: ignore")));
    assert_eq!((&hook["before"]["definition"], hook["files"].as_array().unwrap().len()), (&json!(GUARD), 3));
    let file = |name: &str| {
        let files = shown["files"].as_array().unwrap();
        files.iter().find(|file| file["path"].as_str().unwrap().ends_with(name)).unwrap().clone()
    };
    let script = file("guard.sh");
    assert_eq!((&script["before"]["text"], &script["now"]["text"]), (&json!(SCRIPT), &json!("exit 0\n")));
    assert_eq!(file("more.bin")["now"]["unshown"], "it is no text");
    assert!(file("large.txt")["now"]["unshown"].as_str().unwrap().contains("too much to show"));
    // What is in the place of the former text is not taken for it.
    let copies = daemon.path().join("state/trees");
    let copy =
        fs::read_dir(&copies).unwrap().next().unwrap().unwrap().path().join(".openharness/scripts/guard.sh");
    fs::set_permissions(&copy, fs::Permissions::from_mode(0o600)).unwrap();
    fs::write(&copy, "exit 0\n").unwrap();
    let script = review(&daemon)["files"][0].clone();
    assert_eq!(
        (&script["before"]["text"], &script["before"]["unshown"]),
        (&Value::Null, &json!("its former text is not kept"))
    );
    daemon.finish();
}

/// A change between what a person looks at and the agreement.
type Change = fn(&Path);

#[test]
fn nothing_is_agreed_to_that_was_not_shown() {
    const HOOKS: &str = ".openharness/hooks";
    const SCRIPTS: &str = ".openharness/scripts";
    let changes: [(&str, Change); 7] = [
        ("a script", |shop| fs::write(shop.join(SCRIPTS).join("guard.sh"), "exit 0\n").unwrap()),
        ("a new script", |shop| fs::write(shop.join(SCRIPTS).join("more.sh"), "").unwrap()),
        ("a script that is a program", |shop| {
            let program = fs::Permissions::from_mode(0o755);
            fs::set_permissions(shop.join(SCRIPTS).join("guard.sh"), program).unwrap();
        }),
        ("a definition", |shop| {
            fs::write(shop.join(HOOKS).join("guard.yaml"), GUARD.replace("on_error: deny\n", "")).unwrap();
        }),
        ("a new hook", |shop| {
            fs::write(shop.join(HOOKS).join("more.yaml"), GUARD.replace("guard", "more")).unwrap();
        }),
        ("no hook", |shop| fs::remove_file(shop.join(HOOKS).join("guard.yaml")).unwrap()),
        ("a broken hook", |shop| fs::write(shop.join(HOOKS).join("guard.yaml"), "name: [").unwrap()),
    ];
    for (what, change) in changes {
        for is_agreed_before in [false, true] {
            let daemon = unwatched("");
            if is_agreed_before {
                assert_eq!(agree_to(&daemon, &review(&daemon)).0, 200);
            }
            let (shown, before) = (review(&daemon), records(&daemon));
            change(&daemon.path().join("shop"));
            let (status, answer) = agree_to(&daemon, &shown);
            assert_eq!((status, &answer["error"]["code"]), (409, &json!("stale_review")), "{what}: {answer}");
            assert_eq!(records(&daemon), before, "{what}");
            daemon.finish();
        }
    }
    let daemon = unwatched("");
    for digest in ["", "0", &"g".repeat(64), &"A".repeat(64)] {
        let (status, answer) = control(&daemon, "POST", TRUST, Some(&json!({ "digest": digest })));
        assert_eq!((status, &answer["error"]["code"]), (400, &json!("bad_body")), "{digest}");
    }
    assert_eq!(control(&daemon, "POST", TRUST, Some(&json!({ "digest": "0".repeat(64) }))).0, 409);
    assert_eq!(control(&daemon, "POST", TRUST, Some(&json!({}))).0, 400);
    assert_eq!(records(&daemon), None);
    daemon.finish();
}

#[test]
fn trust_that_is_taken_back_is_gone_at_once() {
    let daemon = unwatched("");
    agree_to(&daemon, &review(&daemon));
    let (status, answer) = control(&daemon, "DELETE", &format!("{TRUST}?hook=other"), None);
    assert_eq!((status, &answer["error"]["code"]), (404, &json!("unknown_hook")));
    assert_eq!(state(&daemon), "trusted");
    for path in [format!("{TRUST}?hook=guard"), TRUST.to_owned()] {
        let (status, answer) = control(&daemon, "DELETE", &path, None);
        assert_eq!((status, &answer["hooks"][0]["state"]), (200, &json!("untrusted")), "{answer}");
        assert_eq!(state(&daemon), "untrusted");
        assert_eq!(fire(&daemon)["hooks"][0]["ended"], "untrusted");
        assert_eq!(agree_to(&daemon, &answer).0, 200);
        assert_eq!(state(&daemon), "trusted");
    }
    daemon.finish();
}

#[test]
fn who_may_not_control_is_shown_nothing_and_changes_nothing() {
    let daemon = unwatched("");
    let body = json!({ "digest": review(&daemon)["digest"] }).to_string();
    for (method, body) in [("GET", None), ("POST", Some(body.as_bytes())), ("DELETE", None)] {
        let answer = daemon.client().send(method, TRUST, body).unwrap();
        let body: Value = serde_json::from_slice(&answer.body).unwrap();
        assert_eq!((answer.status, &body["error"]["code"]), (403, &json!("needs_control")), "{method}");
    }
    assert_eq!((records(&daemon), state(&daemon).as_str()), (None, "untrusted"));
    for (method, path) in [("GET", "/v1/workspaces/no/trust"), ("DELETE", "/v1/workspaces/no/trust")] {
        assert_eq!(control(&daemon, method, path, None).0, 404, "{method}");
    }
    daemon.finish();
}

#[test]
fn a_record_that_cannot_be_used_is_told_and_stays_as_it_is() {
    let daemon = unwatched("");
    let shown = review(&daemon);
    agree_to(&daemon, &shown);
    let file = daemon.path().join("state/trust.json");
    fs::write(&file, "{").unwrap();
    let body = json!({ "digest": shown["digest"] });
    for (method, body) in [("GET", None), ("POST", Some(&body)), ("DELETE", None)] {
        let (status, answer) = control(&daemon, method, TRUST, body);
        assert_eq!((status, &answer["error"]["code"]), (409, &json!("trust_unusable")), "{method}: {answer}");
    }
    assert_eq!(fs::read(&file).unwrap(), b"{");
    daemon.finish();
}

#[test]
fn a_node_of_a_cluster_shows_and_changes_nothing() {
    let daemon = unwatched("cluster: { enabled: true }");
    let shown = review(&daemon);
    for (status, answer) in [agree_to(&daemon, &shown), control(&daemon, "DELETE", TRUST, None)] {
        assert_eq!((status, &answer["error"]["code"]), (409, &json!("managed")), "{answer}");
    }
    assert_eq!(records(&daemon), None);
    daemon.finish();
}

#[test]
fn hostile_names_are_texts_and_nothing_else() {
    let daemon = unwatched("");
    let name = "\"><img src=x onerror=alert(1)>\n\u{1b}[2J\u{202e}.sh";
    let text = "</script><script>alert(1)</script>\n";
    write(&daemon, &format!("shop/.openharness/scripts/{name}"), text);
    let shown = review(&daemon);
    let files = shown["files"].as_array().unwrap();
    let hostile = files.iter().find(|file| file["path"] == format!(".openharness/scripts/{name}")).unwrap();
    assert_eq!(hostile["now"]["text"], text);
    assert_eq!(agree_to(&daemon, &shown).0, 200);
    assert_eq!(state(&daemon), "trusted");
    daemon.finish();
}
