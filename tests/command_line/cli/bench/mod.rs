//! `bench`: loads in process and on daemons, and their reports.

mod daemons;
mod scenarios;

use super::*;
use crate::support::wait::wait_until;

/// A rule that blocks what has `forbidden` in it.
const RULE: &str = "name: guard\nevents: [before_tool_dispatch]\nhandler:\n  type: rule\n  \
    deny: 'tool.name == \"Forbidden\"'\n  reason: '\"no\"'\non_error: deny\n";

/// Events of two kinds, of which a third is blocked.
const SCENARIO: &str = "description: a small mix
sessions: 4
events_per_run: 20
events:
  - { kind: before_tool_dispatch, match: Bash, weight: 1 }
  - { kind: before_tool_dispatch, match: Forbidden, weight: 1, payload: [1KiB, 2KiB] }
  - { kind: prompt_submitted, weight: 1 }
";

/// Flags for loads that take no time.
const SHORT: [&str; 4] = ["--warm-up", "100ms", "--duration", "400ms"];

/// A workspace with the rule and the scenario.
fn place() -> TempDir {
    let place = workspace(&[("guard", RULE)]);
    std::fs::write(place.path().join("mix.yaml"), SCENARIO).unwrap();
    place
}

fn bench(place: &TempDir, more: &[&str]) -> Done {
    run(place.path(), &[&["bench", "mix.yaml"], &SHORT[..], more].concat())
}

fn row<'r>(report: &'r Value, list: &str, key: &str, name: &str) -> &'r Value {
    let rows = report[list].as_array().unwrap_or_else(|| panic!("{report}"));
    rows.iter().find(|row| row[key] == name).unwrap_or_else(|| panic!("{name}: {report}"))
}

#[test]
fn a_closed_loop_in_process_is_counted_by_kind_and_by_hook() {
    let place = place();
    let done = bench(&place, &["--concurrency", "4", "--json", "-"]);
    assert_eq!((done.code, done.err.as_str()), (0, ""), "{}", done.out);
    let report = done.json();
    let tools = row(&report, "events", "event", "before_tool_dispatch");
    let [blocked, went_on] = ["block", "proceed"].map(|word| tools["results"][word].as_f64().unwrap());
    assert!((0.6..1.6).contains(&(blocked / went_on)), "half of them are forbidden: {tools}");
    assert!(tools["ours"]["p99_ms"].as_f64().unwrap() <= tools["latency"]["max_ms"].as_f64().unwrap());
    let hook = row(&report, "hooks", "hook", "guard");
    assert_eq!(hook["runs"], tools["count"]);
    assert_eq!(hook["blocked"].as_f64(), Some(blocked));
    assert_eq!(hook["ended"]["completed"], hook["runs"]);
    row(&report, "events", "event", "run_completed");
    assert_eq!(report["sent"], report["outcomes"]);
    let sum: u64 =
        report["events"].as_array().unwrap().iter().map(|row| row["count"].as_u64().unwrap()).sum();
    assert_eq!(report["sent"], sum);
    assert_eq!((&report["ended"], &report["unsent"]), (&json!("complete"), &json!(0)));
    assert_eq!(report["rounds"].as_array().unwrap().len(), 10);
    assert!(report["generator"]["against_nothing"]["latency"]["p50_ms"].is_number(), "{report}");
    assert!(report["machine"]["cores"].as_u64().unwrap() > 0);
    assert!(report["target"].as_str().unwrap().starts_with("in process, workspace "));
    assert!(report["command"].as_str().unwrap().contains("bench --set trust=off mix.yaml"), "{report}");
}

#[test]
fn an_open_loop_sends_at_its_rate() {
    let place = place();
    let done = bench(&place, &["--rate", "200", "--arrivals", "poisson", "--seed", "3", "--json", "-"]);
    let report = done.json();
    // A machine that is busy with other tests may say that it was late.
    assert!([0, 4].contains(&done.code), "{}", done.err);
    let sent = report["sent"].as_u64().unwrap() + report["unsent"].as_u64().unwrap();
    assert!((40..=130).contains(&sent), "80 are due, at random: {report}");
    assert_eq!(report["load"]["arrivals"], "poisson");
    assert_eq!(report["generator"]["kept_schedule"] == json!(true), done.code == 0, "{}", done.err);
}

#[test]
fn a_report_is_a_page_and_files() {
    let place = place();
    let flags = ["--concurrency", "2", "--json", "report.json", "--markdown", "report.md"];
    let done = bench(&place, &flags);
    assert_eq!((done.code, done.err.as_str()), (0, ""));
    for shown in [
        "mix.yaml, 4 sessions, to in process",
        "before_tool_dispatch",
        "guard",
        "ours p50",
        "generator against nothing",
    ] {
        assert!(done.out.contains(shown), "{shown} is not in\n{}", done.out);
    }
    let read = |file: &str| std::fs::read_to_string(place.path().join(file)).unwrap();
    let report: Value = serde_json::from_str(&read("report.json")).unwrap();
    assert_eq!(report["scenario"]["description"], "a small mix");
    let markdown = read("report.md");
    for shown in [
        "# hookyard bench",
        "| before\\_tool\\_dispatch |",
        "| guard |",
        "`hookyard bench --set trust=off mix.yaml",
    ] {
        assert!(markdown.contains(shown), "{shown} is not in\n{markdown}");
    }
    // What cannot be written is found out before anything is measured.
    let done = bench(&place, &["--json", "no/such/report.json"]);
    assert_eq!((done.code, done.out.as_str()), (1, ""));
    assert!(done.err.contains("the report cannot be written to no/such/report.json"), "{}", done.err);
}

#[test]
fn two_settings_are_measured_in_turns_and_compared() {
    let place = place();
    let slower =
        workspace(&[("slow", &hook("slow", "before_tool_dispatch", "exec sleep 0.02", "matcher: ^Bash$"))]);
    let other = slower.path().to_str().unwrap();
    let flags = [
        "--concurrency",
        "1",
        "--rounds",
        "4",
        "--versus",
        other,
        "--duration",
        "800ms",
        "--json",
        "ab.json",
    ];
    let done = run(place.path(), &[&["bench", "mix.yaml", "--warm-up", "100ms"], &flags[..]].concat());
    assert_eq!((done.code, done.err.as_str()), (0, ""), "{}", done.out);
    assert!(done.out.contains("B / A with an interval of 95 % confidence: paired t"), "{}", done.out);
    let report: Value =
        serde_json::from_str(&std::fs::read_to_string(place.path().join("ab.json")).unwrap()).unwrap();
    let versus = &report["versus"];
    assert_eq!(
        (report["rounds"].as_array().unwrap().len(), versus["other"]["rounds"].as_array().unwrap().len()),
        (4, 4)
    );
    let rate = row(versus, "ratios", "figure", "outcomes per second");
    let interval = &rate["interval"];
    assert!(interval["high"].as_f64().unwrap() < 1.0, "a hook that sleeps is slower: {rate}");
    assert!(interval["low"].as_f64().unwrap() <= interval["ratio"].as_f64().unwrap());
    row(&report, "hooks", "hook", "guard");
    row(&versus["other"], "hooks", "hook", "slow");
}

#[test]
fn two_reports_are_compared() {
    let place = place();
    for (name, sessions) in [("a.json", "4"), ("b.json", "5")] {
        let done = bench(&place, &["--concurrency", "2", "--sessions", sessions, "--json", name]);
        assert_eq!(done.code, 0, "{}", done.err);
    }
    let done = run(place.path(), &["bench", "--compare", "a.json", "b.json"]);
    assert_eq!(done.code, 0, "{}", done.err);
    assert!(done.err.contains("A and B sent different events"), "{}", done.err);
    for shown in ["p50", "p99", "outcomes per second", "Welch's t"] {
        assert!(done.out.contains(shown), "{shown} is not in\n{}", done.out);
    }
    std::fs::write(place.path().join("c.json"), "{\"hookyard_bench\": 1}").unwrap();
    for (file, why) in [("c.json", "is no report of `bench`"), ("d.json", "cannot be read: no such file")] {
        let done = run(place.path(), &["bench", "--compare", "a.json", file]);
        assert!(done.code == 1 && done.err.contains(why), "{}", done.err);
    }
}

/// A hook that does one thing at a time and takes 20 ms for it is good for 50 a second.
#[test]
fn the_highest_rate_of_a_known_limit_is_found() {
    let scenario = "events: [{ kind: before_tool_dispatch }]
sessions: 100
hooks:
  inline:
    - name: one-at-a-time
      events: [before_tool_dispatch]
      handler: { type: command, command: exec sleep 0.02, max_concurrency: 1 }
load: { rate: 20, warm_up: 0s, timeout: 5s }
";
    let place = tempfile::tempdir().unwrap();
    std::fs::write(place.path().join("limit.yaml"), scenario).unwrap();
    let search = [
        "bench",
        "limit.yaml",
        "--trust-workspace",
        "--find-max",
        "--p50",
        "60ms",
        "--step",
        "700ms",
        "--for",
        "12s",
    ];
    let done = run(place.path(), &[&search[..], &["--json", "-"]].concat());
    let report = done.json();
    assert!([0, 4].contains(&done.code), "{} {report}", done.err);
    let found = report["find_max"]["found"].as_f64().unwrap();
    // A process has to be started and ended as well, and the machine may be busy. Above 50, the queue grows: half of the events
    // of 0.7 s wait longer than 60 ms from 54 on.
    assert!((4.0..=54.0).contains(&found), "{report}");
    let steps = report["find_max"]["steps"].as_array().unwrap();
    assert!(steps.iter().any(|step| step["met"] == json!(false)), "{report}");
    assert!(
        steps.iter().all(|step| step["met"] == json!(false) || step["rate"].as_f64().unwrap() <= 54.0),
        "{report}"
    );
    let hook = row(&report, "hooks", "hook", "one-at-a-time");
    assert!(hook["duration"]["p50_ms"].as_f64().unwrap() >= 20.0, "{hook}");
}

#[test]
fn a_goal_that_no_rate_meets_has_an_exit_code_of_its_own() {
    let place = workspace(&[("slow", &hook("slow", "before_tool_dispatch", "exec sleep 0.05", ""))]);
    std::fs::write(
        place.path().join("mix.yaml"),
        "events: [{ kind: before_tool_dispatch }]\nload: { rate: 50 }\n",
    )
    .unwrap();
    let search = [
        "bench",
        "mix.yaml",
        "--warm-up",
        "0s",
        "--find-max",
        "--p50",
        "1ms",
        "--step",
        "300ms",
        "--for",
        "3s",
    ];
    let done = run(place.path(), &search);
    assert_eq!(done.code, 5, "{}{}", done.out, done.err);
    assert!(done.out.contains("no rate that was tried has p50 at most 1.0 ms"), "{}", done.out);
}

#[test]
fn a_search_without_time_for_one_rate_says_how_much_it_needs() {
    let done = bench(&place(), &["--rate", "100", "--find-max", "--p99", "10ms", "--for", "5s"]);
    assert_eq!((done.code, done.out.as_str()), (1, ""), "{}", done.err);
    assert!(done.err.contains("p99 takes 20.00 s to tell at 100 events per second"), "{}", done.err);
    assert!(done.err.contains("`--for`") && done.err.contains("`--rate`"), "{}", done.err);
}

#[test]
fn a_recording_is_sent_with_ids_of_its_own() {
    let place = place();
    let recorded = ["Bash", "Forbidden"].map(|tool| {
        json!({ "event": "before_tool_dispatch", "session_id": "s", "run_id": "r", "tool_name": tool, "tool_call_id": format!("call-{tool}"),
            "tool_input": { "command": "ls" } })
        .to_string()
    });
    std::fs::write(place.path().join("session.jsonl"), recorded.join("\n")).unwrap();
    let done = bench(&place, &["--recording", "session.jsonl", "--concurrency", "2", "--json", "-"]);
    assert_eq!((done.code, done.err.as_str()), (0, ""), "{}", done.out);
    let report = done.json();
    let tools = row(&report, "events", "event", "before_tool_dispatch");
    let results = &tools["results"];
    let difference = results["block"].as_u64().unwrap().abs_diff(results["proceed"].as_u64().unwrap());
    assert!(difference <= 8, "each second one is forbidden: {tools}");
    // A call that were repeated would have run no hook.
    assert_eq!(row(&report, "hooks", "hook", "guard")["runs"], tools["count"]);
    assert_eq!(report["scenario"]["recording"], "session.jsonl");
}

#[test]
fn a_rate_beyond_the_machine_is_told_apart_from_a_slow_target() {
    let place = place();
    let done = bench(&place, &["--rate", "1000000", "--timeout", "1s", "--json", "-"]);
    assert_eq!(done.code, 4, "{}", done.err);
    assert!(done.err.contains("the generator could not keep its own schedule"), "{}", done.err);
    let report = done.json();
    assert_eq!(report["generator"]["kept_schedule"], false);
    assert!(report["unsent"].as_u64().unwrap() > 0, "{report}");
    // A slow hook at a low rate is the target's.
    let slow = workspace(&[("slow", &hook("slow", "before_tool_dispatch", "exec sleep 0.2", ""))]);
    std::fs::write(slow.path().join("mix.yaml"), "events: [{ kind: before_tool_dispatch }]\n").unwrap();
    let done = bench(&slow, &["--rate", "20", "--in-flight", "1", "--json", "-"]);
    let report = done.json();
    assert!(
        report["generator"]["waited"].as_u64().unwrap() > 0 || report["unsent"].as_u64().unwrap() > 0,
        "{report}"
    );
    assert_eq!((done.code, &report["generator"]["kept_schedule"]), (0, &json!(true)), "{}", done.err);
}

/// The program while it runs; it is killed with its test if it must be.
struct Running(Option<std::process::Child>);

impl Running {
    #[allow(clippy::disallowed_methods, reason = "the program is started as its users start it")]
    fn start(directory: &Path, arguments: &[&str]) -> Self {
        let mut command = std::process::Command::new(cargo_bin("hookyard"));
        let command = command.current_dir(directory).args(without_trust(arguments));
        Self(Some(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()))
    }

    #[allow(clippy::disallowed_methods, reason = "a signal is sent to it while it runs")]
    fn interrupt(&self) {
        let pid = self.0.as_ref().unwrap().id().to_string();
        assert!(std::process::Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    }

    fn finish(mut self) -> std::process::Output {
        self.0.take().unwrap().wait_with_output().unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            drop(child.kill());
            drop(child.wait());
        }
    }
}

#[test]
fn a_signal_leaves_a_report_of_what_was_measured() {
    let line = "echo x >> ran; exec sleep 0.05";
    let place = workspace(&[("seen", &hook("seen", "before_tool_dispatch", line, ""))]);
    std::fs::write(place.path().join("mix.yaml"), "events: [{ kind: before_tool_dispatch }]\n").unwrap();
    let times = ["--warm-up", "0s", "--duration", "50s"];
    let arguments = [&["bench", "mix.yaml", "--concurrency", "1", "--json", "-"], &times[..]].concat();
    let running = Running::start(place.path(), &arguments);
    let lines = || std::fs::read_to_string(place.path().join("ran")).map_or(0, |text| text.lines().count());
    wait_until("an event is answered", || lines() >= 3);
    running.interrupt();
    let output = running.finish();
    assert_eq!(output.status.code(), Some(130));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["ended"], "interrupted");
    assert!(report["outcomes"].as_u64().unwrap() >= 2, "{report}");
    assert!(report["measured_seconds"].as_f64().unwrap() < 50.0, "{report}");
}

#[test]
#[allow(clippy::disallowed_methods, reason = "the program is run as a person runs it")]
fn a_terminal_shows_how_it_goes_on_and_a_page_that_fits() {
    let place = place();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/support/terminal.py");
    for columns in ["60", "80", "140"] {
        let mut words = crate::support::python::python().split(' ');
        let arguments = ["bench", "mix.yaml", "--concurrency", "2", "--warm-up", "0s", "--duration", "600ms"];
        let output = std::process::Command::new(words.next().unwrap())
            .args(words)
            .args([script, columns, "", "", cargo_bin("hookyard").to_str().unwrap()])
            .args(without_trust(&arguments))
            .current_dir(place.path())
            .env("TERM", "xterm")
            .output()
            .unwrap();
        let session: Value = serde_json::from_slice(&output.stdout).unwrap();
        let seen = session["seen"].as_str().unwrap();
        assert_eq!(session["code"], 0, "{seen}");
        assert!(seen.contains("/s, p99 ") && seen.contains(" left"), "{seen}");
        let page = seen.rsplit("mix.yaml, 4 sessions").next().unwrap();
        for line in page.replace("\r\n", "\n").lines() {
            let plain = without_colors(line);
            assert!(plain.chars().count() <= columns.parse().unwrap(), "{columns}: {plain}");
        }
    }
}

/// A line without the sequences that colour it.
fn without_colors(line: &str) -> String {
    let mut parts = line.split('\x1b');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + part.split_once('m').map_or(part, |(_, rest)| rest))
}

#[test]
fn hooks_of_a_scenario_need_somebody_who_agrees() {
    let place = tempfile::tempdir().unwrap();
    let scenario = "events: [{ kind: prompt_submitted }]\nhooks:\n  inline:\n    - name: x\n      \
        events: [before_tool_dispatch]\n      handler: { type: command, command: 'touch ran' }\n";
    std::fs::write(place.path().join("own.yaml"), scenario).unwrap();
    let done = program(place.path()).args(["bench", "own.yaml"]).output().unwrap();
    assert_eq!(done.status.code(), Some(1));
    let said = String::from_utf8(done.stderr).unwrap();
    assert!(said.contains("nobody has agreed to run them") && said.contains("--trust-workspace"), "{said}");
    assert!(!place.path().join("ran").exists());
}
