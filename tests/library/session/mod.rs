//! The recorded session through the example workspace, as in `expected.txt`; `UPDATE_CASES=1` rewrites it.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Stdio,
};

use hookyard::model::{DialectName, Event, Outcome, Target};

use crate::support::trust::orchestrator_in;

fn repository() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Whether a program the example hooks need is there. `scripts/test` installs it where it may, and says at its
/// end what could not run.
fn is_there(program: &str) -> bool {
    #[allow(clippy::disallowed_methods, reason = "a test looks at its machine")]
    let found = std::process::Command::new(program).arg("--version").stdout(Stdio::null()).status().is_ok();
    if !found {
        println!("not run: {program} is missing");
    }
    found
}

/// A copy of the example workspace that writes its audit log into itself.
fn workspace() -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    copy_folder(&repository().join("config/workspaces/openharness"), copy.path());
    let audit = copy.path().join(".openharness/hooks/audit-logger.yaml");
    let file = copy.path().join("audit.jsonl");
    let text =
        fs::read_to_string(&audit).unwrap().replace("hookyard-shop-audit.jsonl", file.to_str().unwrap());
    fs::write(audit, text).unwrap();
    copy
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy_folder(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// What is expected of one event: a line, and a line for its reason and for each note.
fn lines(number: usize, event: &Event, outcome: &Outcome) -> Vec<String> {
    let hooks: Vec<_> =
        outcome.hooks.iter().map(|report| format!("{}:{}", report.hook, report.ended)).collect();
    let patched: Vec<_> = outcome.patched.iter().map(|(target, _)| target.as_str()).collect();
    let suppressed = if outcome.suppress_output { "suppressed" } else { "" };
    let parts = [
        format!("{number:>2} {} {} {}", event.run_id, event.kind, outcome.verdict),
        named("patched", &patched.join(",")),
        named("hooks", &hooks.join(",")),
        suppressed.to_owned(),
    ];
    let mut lines = vec![parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")];
    lines.extend(outcome.reason.iter().map(|reason| format!("     because: {reason}")));
    lines.extend(outcome.notes.iter().map(|note| {
        let first = note.text.lines().next().unwrap_or_default();
        format!("     {}: {}", note.hook, first.chars().take(90).collect::<String>())
    }));
    for report in &outcome.hooks {
        assert!(report.error.is_none() && report.warnings.is_empty(), "line {number}: {report:?}");
    }
    lines
}

fn named(name: &str, values: &str) -> String {
    if values.is_empty() { String::new() } else { format!("{name}={values}") }
}

#[tokio::test]
async fn the_recorded_session_is_decided_as_expected() {
    if !(is_there("node") && is_there("python3")) {
        return;
    }
    let workspace = workspace();
    let orchestrator = orchestrator_in(workspace.path()).await;
    let id = orchestrator.load_reports().into_keys().next().unwrap();
    assert_eq!(orchestrator.load_reports()[&id].diagnostics, []);
    let recording =
        fs::read_to_string(repository().join("config/recordings/openharness-session.jsonl")).unwrap();
    let mut seen = Vec::new();
    for (number, text) in (1..).zip(recording.lines()) {
        let event = orchestrator.read(DialectName::OpenHarness, text.as_bytes()).unwrap();
        let outcome = orchestrator.dispatch_in(&id, event.clone()).await.unwrap();
        seen.extend(lines(number, &event, &outcome));
        if number == 8 {
            let input = outcome.patched.get(Target::ToolInput).unwrap().as_str();
            assert!(input.contains("npm install --ignore-scripts left-pad"), "{input}");
        }
    }
    let audit = fs::read_to_string(workspace.path().join("audit.jsonl")).unwrap();
    assert_eq!(audit.lines().count(), 3, "each run's end is in the audit log");
    assert_eq!(orchestrator.run_count().known, 0, "every run of the recording ends");
    let expected = repository().join("tests/library/session/expected.txt");
    if std::env::var_os("UPDATE_CASES").is_some() {
        fs::create_dir_all(expected.parent().unwrap()).unwrap();
        fs::write(&expected, seen.join("\n") + "\n").unwrap();
    }
    let expected = fs::read_to_string(expected).unwrap();
    let expected: Vec<_> = expected.lines().collect();
    for (seen, expected) in seen.iter().zip(&expected) {
        assert_eq!(seen, expected);
    }
    assert_eq!(seen.len(), expected.len());
}

#[test]
fn the_recording_has_all_ten_kinds_three_runs_and_forty_events() {
    let recording =
        fs::read_to_string(repository().join("config/recordings/openharness-session.jsonl")).unwrap();
    let read =
        |text: &str| hookyard::dialect::named(DialectName::OpenHarness).read_event(text.as_bytes()).unwrap();
    let events: Vec<_> = recording.lines().map(read).collect();
    let mut kinds: Vec<_> = events.iter().map(|event| event.kind).collect();
    let mut runs: Vec<_> = events.iter().map(|event| event.run_id.clone()).collect();
    kinds.sort_unstable();
    kinds.dedup();
    runs.sort_unstable();
    runs.dedup();
    assert_eq!((kinds.len(), runs.len()), (10, 3));
    assert!(events.len() >= 40);
}
