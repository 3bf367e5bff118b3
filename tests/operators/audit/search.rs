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
    for command in ["log", "audit"] {
        let (code, lines, err) = run(&daemon, &[command]);
        assert_eq!((code, lines.len()), (Some(1), 0), "there is no audit");
        assert!(err.contains("`hookyard log --follow` shows what is blocked from now on"), "{err}");
    }
}
