//! The log of the daemon: its formats, its filter, and no secrets.

use crate::support::daemon::{Daemon, DaemonSetup};
use crate::support::wait::wait_until;
use assert_cmd::Command;
use rustix::process::Signal;
use serde_json::{Value, json};

const SECRET: &str = "k3y-0001-of-the-shop";
const PAYLOAD: &str = "pay1oad-of-the-host";

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

fn objects(log: &str) -> Vec<Value> {
    log.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"))).collect()
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
