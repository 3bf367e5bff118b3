//! `hookyard-relay` answers usual events itself, and leaves everything else to the program beside it.

use std::{
    os::{fd::OwnedFd, unix::net::UnixStream},
    time::{Duration, Instant},
};

use super::{
    relay_answers::{BLOCKS, case, sent, tool},
    *,
};

/// A copy of the small program, under a name, with no other program beside it.
fn alone(name: &str) -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join(name);
    fs::copy(PROGRAMS[1], &program).unwrap();
    (directory, program)
}

fn guarded() -> Daemon {
    DaemonSetup::new()
        .settings("workspaces: { shop: { root: $DIR/shop } }")
        .file("shop/.openharness/hooks/no.yaml", &hook("no", "before_tool_dispatch", BLOCKS))
        .serve()
}

fn tool_call(daemon: &Daemon) -> String {
    sent(&case("claude", "PreToolUse", "", tool()), &daemon.path().join("shop"), "s").to_string()
}

const RELAY: [&str; 5] = ["relay", "--dialect", "claude", "--if-down", "block"];

#[test]
fn a_usual_event_needs_no_other_program() {
    let daemon = guarded();
    let (_directory, program) = alone("hookyard-relay");
    let event = tool_call(&daemon);
    let answers = [Path::new(PROGRAMS[0]), &program].map(|program| {
        let Said { out, err, code } = said(started(program, &daemon, &RELAY), &event);
        let mut answer: Value = serde_json::from_str(&out).unwrap();
        assert_eq!(answer["hookSpecificOutput"]["permissionDecision"], "deny", "{answer}");
        assert_eq!((err.as_str(), code), ("", Some(0)));
        answer.as_object_mut().unwrap().retain(|name, _| name != "decision_id");
        answer
    });
    assert_eq!(answers[0], answers[1]);
    daemon.finish();
}

#[test]
fn without_the_other_program_what_is_unusual_is_blocked_or_noted() {
    let mut daemon = guarded();
    let event = tool_call(&daemon);
    daemon.signal(rustix::process::Signal::TERM);
    daemon.wait();
    // Under the other name it would start itself.
    for name in ["hookyard-relay", "hookyard"] {
        let (_directory, program) = alone(name);
        let blocked = said(started(&program, &daemon, &RELAY), &event);
        assert_eq!((blocked.out.as_str(), blocked.code), ("", Some(2)), "{name}: {blocked:?}");
        assert!(blocked.err.starts_with("no hook could be asked: "), "{name}: {blocked:?}");
        let noted = said(started(&program, &daemon, &RELAY[..3]), &event);
        assert_eq!((noted.out.as_str(), noted.code), ("", Some(0)), "{name}: {noted:?}");
        assert!(
            noted.err.starts_with("note: ") && noted.err.ends_with("going on without hooks\n"),
            "{noted:?}"
        );
        let unknown = said(started(&program, &daemon, &["relay", "--dialect", "latin"]), &event);
        assert_eq!((unknown.out.as_str(), unknown.code), ("", Some(2)), "{name}: {unknown:?}");
    }
}

#[test]
fn other_commands_are_those_of_the_other_program() {
    let daemon = guarded();
    for arguments in [&["--version"][..], &["relay", "--help"], &["relay", "--dialect", "latin"], &["status"]]
    {
        let [whole, small] =
            PROGRAMS.map(|program| said(started(Path::new(program), &daemon, arguments), ""));
        assert_eq!(whole.code, small.code, "{arguments:?}");
        if arguments != ["status"] {
            assert_eq!(whole, small, "{arguments:?}");
        }
    }
    daemon.finish();
}

/// More than a pipe holds.
#[test]
fn a_large_event_is_handed_over_whole() {
    let daemon = guarded();
    let mut event: Value = serde_json::from_str(&tool_call(&daemon)).unwrap();
    event["tool_input"]["command"] = "x".repeat(300 << 10).into();
    // A program that is asked to log is not the small one.
    for log in [None, Some("error")] {
        let mut relay = hookyard(&daemon, &RELAY);
        relay.envs(log.map(|log| ("HOOKYARD_LOG", log)));
        let said = said(relay, &event.to_string());
        assert!(said.out.contains("deny"), "{log:?}: {said:?}");
    }
    let daemon = {
        let mut daemon = daemon;
        daemon.signal(rustix::process::Signal::TERM);
        daemon.wait();
        let relay = hookyard(&daemon, &[&RELAY[..], &["--wait", "50s"]].concat());
        let relayed = std::thread::spawn(move || said(relay, &event.to_string()));
        let daemon = daemon.again().serve();
        let relayed = relayed.join().unwrap();
        assert!(
            relayed.out.contains("deny") && !relayed.out.contains("no hook could be asked"),
            "{relayed:?}"
        );
        daemon
    };
    daemon.finish();
}

/// CodeBuddy takes what it has not read by the end of a process for consent.
#[test]
fn an_answer_to_codebuddy_is_waited_for_until_it_is_read() {
    let asks = "name: ask\nevents: [before_tool_dispatch]\nhandler: { type: rule, ask: \"true\" }\n";
    let daemon = DaemonSetup::new()
        .settings("workspaces: { shop: { root: $DIR/shop } }")
        .file("shop/.openharness/hooks/ask.yaml", asks)
        .serve();
    let event = sent(&case("codebuddy", "PreToolUse", "", tool()), &daemon.path().join("shop"), "s");
    for program in PROGRAMS {
        let (theirs, ours) = UnixStream::pair().unwrap();
        let begun = Instant::now();
        let mut relay = started(Path::new(program), &daemon, &["relay", "--dialect", "codebuddy"]);
        relay.stdout(OwnedFd::from(theirs));
        let said = said(relay, &event.to_string());
        assert_eq!(said.code, Some(0), "{said:?}");
        assert!(
            begun.elapsed() >= Duration::from_secs(1),
            "{program} did not wait for whoever reads nothing"
        );
        let answer = std::io::read_to_string(ours).unwrap();
        assert!(answer.contains(r#""permissionDecision":"ask""#), "{answer}");
    }
    daemon.finish();
}
