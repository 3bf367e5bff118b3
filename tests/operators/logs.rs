//! The log of the daemon: its formats, its filter, and no secrets.

use std::os::unix::fs::MetadataExt;

use crate::support::daemon::{Daemon, DaemonSetup};
use crate::support::wait::wait_until;
use assert_cmd::Command;
use rustix::process::Signal;
use serde_json::{Value, json};

const SECRET: &str = "k3y-0001-of-the-shop";
const PAYLOAD: &str = "pay1oad-of-the-host";

/// Fields with what hooks wrote.
const OF_HOOKS: [&str; 2] = ["reason", "stderr"];

/// Hooks that block and fail, each with words of the payload and of a secret.
fn setting() -> DaemonSetup {
    let hook = |name: &str, tool: &str, more: &str, command: &str| {
        format!(
            "name: {name}\nevents: [before_tool_dispatch]\nmatcher: {tool}\nhandler:\n  type: command\n  \
             environment: {{ KEY: '${{secrets.KEY}}' }}\n{more}  command: '{command}'\n"
        )
    };
    let says = |code: u8| format!("cat >&2; echo \"with $KEY\" >&2; exit {code}");
    let worker = "echo \"with $KEY\" >&2; sleep 0.1; exit 1";
    DaemonSetup::new()
        .file("shop/.openharness/hooks/guard.yaml", &hook("guard", "Bash", "", &says(2)))
        .file("shop/.openharness/hooks/broken.yaml", &hook("broken", "Broken", "", &says(1)))
        .file("shop/.openharness/hooks/fine.yaml", &hook("fine", "Fine", "", &says(0)))
        .file("shop/.openharness/hooks/stays.yaml", &hook("stays", "Stays", "  mode: worker\n", worker))
        .settings("workspaces: { shop: { root: $DIR/shop } }")
        .variable("HOOKYARD_SECRET_KEY", SECRET)
}

fn event(tool: &str) -> Value {
    json!({ "event": "before_tool_dispatch", "session_id": "s", "run_id": "r-1", "workspace_id": "shop",
            "tool_name": tool, "tool_input": { "command": PAYLOAD } })
}

fn post_all(daemon: &Daemon) -> Vec<Value> {
    ["Bash", "Broken", "Fine", "Stays"].map(|tool| daemon.post("/v1/events", &event(tool))).into()
}

/// The lines, each an object whose values are plain: no JSON in a text, and nothing nested. Texts of hooks are theirs.
fn objects(log: &str) -> Vec<Value> {
    let read = |line: &str| -> Value {
        let object: Value = serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
        let own = object.as_object().unwrap().iter().filter(|(field, _)| !OF_HOOKS.contains(&field.as_str()));
        for (field, value) in own {
            let is_plain = match value {
                Value::String(text) => !text.starts_with(['"', '[', '{']) && !text.starts_with("Some("),
                Value::Number(_) | Value::Bool(_) => true,
                Value::Null | Value::Array(_) | Value::Object(_) => false,
            };
            assert!(is_plain, "{field}: {line}");
        }
        object
    };
    log.lines().map(read).collect()
}

#[test]
fn a_log_for_programs_has_an_object_per_line() {
    let mut daemon = setting().argument("--log=auto").serve();
    let outcomes = post_all(&daemon);
    daemon.signal(Signal::TERM);
    daemon.wait();
    let log = daemon.log();
    assert!(!log.contains(PAYLOAD) && !log.contains(SECRET), "{log}");
    let lines = objects(&log);
    for line in &lines {
        for key in ["timestamp", "level", "target", "message"] {
            assert!(line[key].is_string(), "{line}");
        }
    }
    let of = |outcome: &Value| -> Vec<&Value> {
        lines.iter().filter(|line| line["decision_id"] == outcome["decision_id"]).collect()
    };
    let [told] = of(&outcomes[0])[..] else { panic!("{log}") };
    let expected = [
        ("level", "INFO"),
        ("target", "hookyard::events"),
        ("workspace", "shop"),
        ("run", "r-1"),
        ("event", "before_tool_dispatch"),
        ("verdict", "block"),
        ("hook", "guard"),
    ];
    for (key, value) in expected {
        assert_eq!(told[key], value, "{told}");
    }
    assert!(told["duration_ms"].as_f64() > Some(0.0) && told["reason"].is_null(), "{told}");
    let [told] = of(&outcomes[1])[..] else { panic!("{log}") };
    let expected = [
        ("level", "WARN"),
        ("target", "hookyard::events"),
        ("workspace", "shop"),
        ("run", "r-1"),
        ("event", "before_tool_dispatch"),
        ("hook", "broken"),
        ("handler", "command"),
        ("ended", "failed"),
    ];
    for (key, value) in expected {
        assert_eq!(told[key], value, "{told}");
    }
    assert!(told["duration_ms"].as_f64() > Some(0.0) && told["error"].is_null(), "{told}");
    assert!(of(&outcomes[2]).is_empty(), "{log}");
    assert!(lines.iter().any(|line| line["message"].as_str().unwrap().starts_with("listening on ")), "{log}");
}

#[test]
fn a_log_for_people_is_text() {
    let daemon = setting().argument("--log=human").serve();
    post_all(&daemon);
    wait_until("it is logged", || daemon.log().contains("a hook failed"));
    let log = daemon.log();
    assert!(log.contains("listening on ") && log.contains("workspace=shop run=r-1"), "{log}");
    assert!(!log.contains('{') && !log.contains(PAYLOAD) && !log.contains(SECRET), "{log}");
}

#[test]
fn at_level_debug_reasons_and_errors_are_logged_without_secrets() {
    let daemon = setting().argument("--log=json").variable("HOOKYARD_LOG", "hookyard=trace").serve();
    let outcomes = post_all(&daemon);
    wait_until("it is logged", || daemon.log().contains("standard error of a worker"));
    let log = daemon.log();
    assert!(!log.contains(SECRET), "{log}");
    let lines = objects(&log);
    for line in &lines {
        assert!(line["level"] == "DEBUG" || !line.to_string().contains(PAYLOAD), "{line}");
    }
    let said = |message: &str, field: &str, text: &str| {
        let is = |line: &&Value| {
            line["message"] == message && line[field].as_str().is_some_and(|told| told.contains(text))
        };
        lines.iter().find(is).unwrap_or_else(|| panic!("{message}: {log}"))
    };
    let reason = said("reason", "reason", PAYLOAD);
    assert_eq!(reason["decision_id"], outcomes[0]["decision_id"]);
    assert!(reason["reason"].as_str().unwrap().contains("with ***"), "{reason}");
    said("error", "error", "exit code 1: ");
    let errors = said("standard error of a hook", "stderr", "with ***");
    assert!(["guard", "broken", "fine"].contains(&errors["hook"].as_str().unwrap()));
    said("standard error of a worker", "stderr", "withheld");
}

#[test]
fn a_reload_and_a_worker_that_fails_are_logged_in_plain_values() {
    let daemon = setting().argument("--log=json").serve();
    daemon.post("/v1/events", &event("Stays"));
    let hook = |name: &str| {
        format!("name: {name}\nevents: [run_completed]\nhandler: {{ type: command, command: 'true' }}\n")
    };
    for name in ["one", "two"] {
        crate::support::daemon::write(
            &daemon.path().join(format!("shop/.openharness/hooks/{name}.yaml")),
            &hook(name),
        );
    }
    daemon.send("POST", "/v1/reload", None);
    let find = |message: &str| objects(&daemon.log()).into_iter().find(|line| line["message"] == message);
    wait_until("it is logged", || find("hooks reloaded").is_some());
    let names: Vec<_> = objects(&daemon.log())
        .iter()
        .filter(|line| line["message"] == "hooks reloaded")
        .flat_map(|line| line["added"].as_str().unwrap().split(", ").map(str::to_owned).collect::<Vec<_>>())
        .collect();
    assert!(names.contains(&"one".to_owned()), "{names:?}");
    wait_until("a worker has failed", || {
        find("a worker ended; another may be started after the pause").is_some()
            || find("no worker: each event gets a process, and a worker is tried again later").is_some()
    });
    if let Some(ended) = find("a worker ended; another may be started after the pause") {
        assert!(ended["pause_ms"].as_u64() > Some(0), "{ended}");
    }
}

/// A daemon whose standard error is the stream of the journal, as far as it can tell.
fn in_journal(log: &str, of_other: bool) -> Daemon {
    let setting = setting().file("log", "");
    let stream = std::fs::metadata(setting.path().join("log")).unwrap();
    let inode = stream.ino() + u64::from(of_other);
    setting.argument(log).variable("JOURNAL_STREAM", &format!("{}:{inode}", stream.dev())).serve()
}

#[test]
fn lines_in_the_journal_have_their_priorities() {
    for format in ["--log=human", "--log=json"] {
        let mut daemon = in_journal(format, false);
        post_all(&daemon);
        wait_until("it is logged", || daemon.log().contains("a hook failed"));
        daemon.signal(Signal::TERM);
        daemon.wait();
        let log = daemon.log();
        let priority = |text: &str| {
            let line =
                log.lines().find(|line| line.contains(text)).unwrap_or_else(|| panic!("{text}: {log}"));
            line[..3].to_owned()
        };
        assert_eq!(priority("listening on "), "<6>", "{format}");
        assert_eq!(priority("a hook failed"), "<4>", "{format}");
        assert!(log.lines().all(|line| ["<3>", "<4>", "<6>"].contains(&&line[..3])), "{log}");
        assert!(log.lines().all(|line| !line[3..].contains("<6>")), "{log}");
        if format == "--log=json" {
            let lines: Vec<_> = log.lines().map(|line| &line[3..]).collect();
            objects(&lines.join("\n"));
        }
    }
    let mut broken = setting().file("log", "").argument("--log=human").argument("--set=limits.in_fligt=3");
    let stream = std::fs::metadata(broken.path().join("log")).unwrap();
    broken = broken.variable("JOURNAL_STREAM", &format!("{}:{}", stream.dev(), stream.ino()));
    let mut daemon = broken.spawn();
    assert_ne!(daemon.wait().code(), Some(0));
    let log = daemon.log();
    // That the system cannot hide the memory of the daemon is told before.
    let lines =
        log.lines().filter(|line| !cfg!(hookyard_portable) || !line.contains("the memory of the daemon"));
    let lines: Vec<_> = lines.collect();
    assert!(!lines.is_empty() && lines.iter().all(|line| line.starts_with("<3>")), "{log}");
}

#[test]
fn without_the_journal_no_line_has_a_priority() {
    let daemon = in_journal("--log=json", true);
    post_all(&daemon);
    wait_until("it is logged", || daemon.log().contains("a hook failed"));
    objects(&daemon.log());
}

#[test]
fn the_filter_selects_what_is_logged() {
    let daemon = setting().argument("--log=json").variable("HOOKYARD_LOG", "warn").serve();
    post_all(&daemon);
    wait_until("it is logged", || daemon.log().contains("a hook failed"));
    assert!(objects(&daemon.log()).iter().all(|line| line["level"] != "INFO"), "{}", daemon.log());
    let daemon = setting().argument("--log=json").variable("HOOKYARD_LOG", "off").serve();
    post_all(&daemon);
    assert_eq!(daemon.log(), "");
}

#[test]
fn a_start_error_is_logged_in_the_configured_format() {
    let mut daemon = setting().argument("--log=json").argument("--set=limits.in_fligt=3").spawn();
    assert_ne!(daemon.wait().code(), Some(0));
    let lines = objects(&daemon.log());
    assert!(lines.iter().any(|line| line["level"] == "ERROR"), "{lines:?}");
    // No filter silences it.
    let mut daemon = setting()
        .argument("--log=json")
        .variable("HOOKYARD_LOG", "off")
        .argument("--set=audit.to=/dev/full")
        .spawn();
    assert_eq!(daemon.wait().code(), Some(1));
    let [line] = &objects(&daemon.log())[..] else { panic!("{}", daemon.log()) };
    assert!(line["message"].as_str().unwrap().contains("is not a regular file"), "{line}");
}

#[test]
fn a_filter_that_selects_nothing_is_reported() {
    let daemon = setting().argument("--log=human").variable("HOOKYARD_LOG", "debgu").serve();
    assert!(daemon.log().contains("HOOKYARD_LOG=debgu turns all logs of hookyard off"), "{}", daemon.log());
}

#[test]
fn a_secret_in_a_run_id_is_redacted() {
    let daemon = setting().argument("--log=json").serve();
    let mut event = event("Bash");
    event["run_id"] = format!("run-{SECRET}").into();
    daemon.post("/v1/events", &event);
    wait_until("it is logged", || daemon.log().contains("run-***"));
    assert!(!daemon.log().contains(SECRET), "{}", daemon.log());
}

#[test]
fn a_command_that_shows_a_failure_does_not_log_it_as_well() {
    let daemon = setting().serve();
    let workspace = daemon.path().join("shop");
    std::fs::write(workspace.join("event.json"), event("Broken").to_string()).unwrap();
    let mut fire = Command::cargo_bin("hookyard").unwrap();
    fire.env("HOOKYARD_SECRET_KEY", SECRET)
        .args(["fire", "--dialect", "canonical", "--workspace"])
        .arg(&workspace)
        .args(crate::support::trust::OFF);
    let output = fire.arg("--event").arg(workspace.join("event.json")).output().unwrap();
    let (shown, said) =
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert!(shown.contains("broken") && !said.contains("a hook failed"), "{shown} {said}");
}

#[test]
fn the_name_of_a_file_cannot_write_lines_or_escapes_to_the_log() {
    let mut daemon = DaemonSetup::new()
        .file("shop/.openharness/hooks/a\n\u{1b}[2J\u{202e}b.yaml", "nmae: x\n")
        .settings("workspaces: { shop: { root: $DIR/shop } }")
        .argument("--log=human")
        .serve();
    daemon.signal(Signal::TERM);
    daemon.wait();
    let log = daemon.log();
    assert!(log.contains(r"a\n\x1b[2J\u{202e}b.yaml"), "{log}");
    assert!(!log.contains(['\u{1b}', '\u{202e}']), "{log}");
}

#[test]
fn each_change_by_a_client_has_a_line_that_says_who_made_it() {
    let mut daemon = setting().argument("--log=json").serve();
    let uid = std::fs::metadata(daemon.path()).unwrap().uid();
    post_all(&daemon);
    let root = json!({ "root": daemon.path().join("shop/.openharness") });
    assert_eq!(daemon.send("PUT", "/v1/workspaces/other", Some(&root)).status, 201);
    assert_eq!(daemon.send("DELETE", "/v1/workspaces/other", None).status, 204);
    assert_eq!(daemon.send("DELETE", "/v1/workspaces/other", None).status, 404);
    assert_eq!(daemon.send("POST", "/v1/reload", None).status, 200);
    assert_eq!(daemon.send("DELETE", "/v1/runs/r-1?workspace_id=shop", None).status, 200);
    assert_eq!(daemon.control().send("POST", "/v1/drain", None).unwrap().status, 202);
    daemon.wait();
    let lines = objects(&daemon.log());
    let changes: Vec<_> =
        lines.iter().filter(|line| line["message"] == "a client has changed the daemon").collect();
    let made: Vec<_> = changes.iter().map(|line| json!([line["operation"], line["path"]])).collect();
    let expected = [
        json!(["registerWorkspace", "/v1/workspaces/other"]),
        json!(["removeWorkspace", "/v1/workspaces/other"]),
        json!(["reload", "/v1/reload"]),
        json!(["cancelRun", "/v1/runs/r-1"]),
        json!(["drain", "/v1/drain"]),
    ];
    assert_eq!(made, expected);
    for line in changes {
        assert_eq!(
            (&line["level"], &line["peer"], &line["listener"]),
            (&json!("INFO"), &json!(format!("uid {uid}")), &json!("control_socket"))
        );
    }
    let last = lines.last().unwrap();
    assert_eq!((&last["message"], &last["reason"]), (&json!("stopped"), &json!("request of a client")));
}
