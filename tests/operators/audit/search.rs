//! `audit` searches its lines, and `log` follows what is blocked.

use super::*;

#[test]
fn the_audit_is_searched_with_its_rotated_files() {
    let hooks = [hook("fine", "Fine", "", "true"), hook("guard", "Bash", "", "echo no shells >&2; exit 2")];
    let daemon = setting("max_size: 4KiB, keep: 50", &hooks).serve();
    let mut sent = Vec::new();
    for number in 0..40 {
        let tool = if number % 4 == 0 { "Bash" } else { "Fine" };
        sent.push(daemon.post("/v1/events", &event(&format!("r-{number}"), tool)));
    }
    let last = sent.last().unwrap();
    wait_until("all lines", || search(&daemon, &["audit", "--json"]).1.len() == 40);
    assert!(daemon.path().join("audit.jsonl.2").exists(), "they are in several files");
    let ids = |arguments: &[&str]| {
        let (code, lines) = search(&daemon, &[&["audit", "--json"], arguments].concat());
        let ids = lines.iter().map(|line| {
            serde_json::from_str::<Value>(line).unwrap()["decision_id"].as_str().unwrap().to_owned()
        });
        (code, ids.collect::<Vec<_>>())
    };
    let all: Vec<_> =
        sent.iter().map(|outcome| outcome["decision_id"].as_str().unwrap().to_owned()).collect();
    let blocked: Vec<_> = all.iter().step_by(4).cloned().collect();
    assert_eq!(ids(&[]), (Some(0), all.clone()), "the oldest first");
    for arguments in [&["--verdict", "block"][..], &["--hook", "guard"], &["--tool", "Bash"]] {
        assert_eq!(ids(arguments), (Some(0), blocked.clone()), "{arguments:?}");
    }
    assert_eq!(ids(&["--last", "1"]), (Some(0), vec![all[39].clone()]));
    assert_eq!(ids(&["--run", "r-7"]), (Some(0), vec![all[7].clone()]));
    assert_eq!(ids(&["--decision", &all[9], "--until", "2100"]), (Some(0), vec![all[9].clone()]));
    assert_eq!(ids(&["--since", "2100"]), (Some(1), vec![]));
    let (_, shown) = search(&daemon, &["audit", "--decision", &all[0]]);
    assert!(shown[0].contains("block    before_tool_dispatch  Bash  by guard  in shop/r-0"), "{shown:?}");
    assert_eq!(shown[1], "  no shells");
    let (code, shown) = search(&daemon, &["log", "-n", "2"]);
    assert_eq!((code, shown.len()), (Some(0), 4), "{shown:?}");
    assert!(shown[2].contains("in shop/r-36"), "{shown:?}");
    assert_eq!(last["verdict"], "proceed");
}

#[test]
fn what_is_blocked_is_shown_live_without_an_audit() {
    let (path, guard) = hook("guard", "Bash", "", "echo no shells >&2; exit 2");
    let (other, fine) = hook("fine", "Fine", "", "true");
    let daemon = DaemonSetup::new()
        .file(&path, &guard)
        .file(&other, &fine)
        .settings("workspaces: { shop: { root: $DIR/shop } }")
        .serve();
    let shown = thread::scope(|scope| {
        let log = scope.spawn(|| search(&daemon, &["log", "-f", "-n", "2"]));
        wait_until("it watches", || daemon.get("/v1/status")["streams"] == 1);
        for tool in ["Fine", "Bash", "Fine", "Bash"] {
            daemon.post("/v1/events", &event("r", tool));
        }
        log.join().unwrap()
    });
    let (code, lines) = shown;
    assert_eq!((code, lines.len()), (Some(0), 4), "{lines:?}");
    assert!(lines[0].contains("block    before_tool_dispatch  by guard  in shop/r"), "{lines:?}");
    assert_eq!(lines[1], "  no shells");
    let (code, lines, err) = run(&daemon, &["audit"]);
    assert_eq!((code, lines.len()), (Some(1), 0), "there is no audit");
    assert!(err.contains("`hookyard log` shows what it has blocked lately"), "{err}");
}

#[test]
fn what_was_blocked_is_remembered_without_an_audit() {
    let hooks = [
        hook("guard", "Bash", "", "echo no shells >&2; exit 2"),
        hook("open", "Open", "on_error: ignore", "exit 1"),
        hook("fine", "Fine", "", "true"),
    ];
    let setting = DaemonSetup::new().settings("workspaces: { shop: { root: $DIR/shop } }");
    let daemon = hooks.iter().fold(setting, |setting, (path, text)| setting.file(path, text)).serve();
    let (code, lines, err) = run(&daemon, &["log"]);
    assert_eq!((code, lines.len()), (Some(1), 0), "nothing yet");
    assert!(err.contains("nothing was asked, blocked or halted, and no hook failed, in the last"), "{err}");
    for (number, tool) in ["Bash", "Fine", "Open", "Bash"].into_iter().enumerate() {
        daemon.post("/v1/events", &event(&format!("r-{number}"), tool));
    }
    let (code, lines, err) = run(&daemon, &["log"]);
    assert_eq!((code, lines.len()), (Some(0), 6), "{lines:?}");
    assert!(lines[0].contains("block    before_tool_dispatch  Bash  by guard  in shop/r-0"), "{lines:?}");
    assert!(
        lines[1] == "  no shells"
            && lines[2].contains("Open  in shop/r-2")
            && lines[3].starts_with("  open failed: "),
        "{lines:?}"
    );
    assert!(
        err.starts_with("3 decisions in the last ")
            && err.contains("as far back as the daemon remembers; with `audit.to`"),
        "{err}"
    );
    let (_, lines, err) = run(&daemon, &["log", "-n", "1", "--workspace-id", "shop"]);
    assert!(
        lines.len() == 2 && lines[0].contains("shop/r-3") && err.starts_with("the last 1 of 3 decisions in "),
        "{lines:?} {err}"
    );
    let (_, lines, _) = run(&daemon, &["log", "--json"]);
    let last: Value = serde_json::from_str(lines.last().unwrap()).unwrap();
    assert_eq!((lines.len(), &last["reason"], &last["run_id"]), (3, &json!("no shells"), &json!("r-3")));
    daemon.finish();
}

#[test]
fn what_is_followed_begins_with_what_is_remembered() {
    let (path, guard) = hook("guard", "Bash", "", "echo no shells >&2; exit 2");
    let daemon =
        DaemonSetup::new().file(&path, &guard).settings("workspaces: { shop: { root: $DIR/shop } }").serve();
    daemon.post("/v1/events", &event("before", "Bash"));
    #[allow(clippy::disallowed_methods, reason = "it is run as its users run it")]
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_hookyard"));
    let out = daemon.path().join("followed");
    command
        .args(["log", "-f", "--socket"])
        .arg(daemon.socket())
        .stdout(fs::File::create(&out).unwrap())
        .stderr(std::process::Stdio::null());
    let mut log = command.spawn().unwrap();
    let shown = || {
        fs::read_to_string(&out)
            .unwrap()
            .lines()
            .filter(|line| line.contains("by guard"))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    wait_until("the past is shown", || shown().len() == 1);
    daemon.post("/v1/events", &event("after", "Bash"));
    wait_until("what comes is shown", || shown().len() == 2);
    assert!(shown()[0].contains("in shop/before") && shown()[1].contains("in shop/after"), "{:?}", shown());
    log.kill().unwrap();
    log.wait().unwrap();
    daemon.finish();
}
