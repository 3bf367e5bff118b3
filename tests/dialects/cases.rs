//! The dialects of agents with settings files, and settings files with mistakes, as data in `tests/cases`.

use std::fs;

use hookyard::{
    dialect::named,
    model::{DialectName, Event, Outcome},
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::{
    support::cases::{Comparison, Files, case_files},
    test_workspace::{TestWorkspace, messages},
};

/// Settings files and scripts, events of a host, and what comes of each.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct DialectCase {
    name: String,
    about: String,
    #[serde(default, skip_serializing_if = "Files::is_empty")]
    files: Files,
    /// Whose events they are, if not the dialect's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    host: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    diagnostics: Vec<String>,
    events: Vec<Exchange>,
}

/// An event and what comes of it.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Exchange {
    event: Value,
    /// What the hook wrote to `told.json`: mostly what it read on standard input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hook_input: Option<Value>,
    outcome: Value,
    answer: Value,
}

/// A workspace whose settings have mistakes, and the messages about them with the names of the hooks that load.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct BadSettingsCase {
    name: String,
    about: String,
    files: Files,
    expect: String,
}

/// An outcome without what differs from one run to the next.
fn stable(outcome: &Outcome) -> Value {
    let mut stable = serde_json::to_value(outcome).unwrap();
    let fields = stable.as_object_mut().unwrap();
    for field in ["decision_id", "snapshot_version", "event"] {
        fields.remove(field);
    }
    if fields["suppress_output"] == json!(false) {
        fields.remove("suppress_output");
    }
    for hook in fields["hooks"].as_array_mut().unwrap() {
        let hook = hook.as_object_mut().unwrap();
        hook.remove("duration_ms");
        hook.remove("queued_ms");
        hook.remove("handler");
    }
    stable
}

fn answer(host: DialectName, event: &Event, outcome: &Outcome) -> Value {
    let answer = named(host).write_response(event, outcome);
    let mut written = Map::new();
    let stdout = serde_json::from_str(&answer.stdout).unwrap_or(Value::String(answer.stdout));
    written.insert("stdout".into(), stdout);
    if answer.exit_code != 0 || !answer.stderr.is_empty() {
        written.insert("stderr".into(), answer.stderr.into());
        written.insert("exit_code".into(), answer.exit_code.into());
    }
    Value::Object(written)
}

/// Replaces the time and the id that hookyard added to a hook's input, if their form is right.
fn hide_arrival(input: &mut Value, event: &Event) {
    let forms = [
        ("timestamp", "0000-00-00T00:00:00.000Z"),
        ("hook_execution_id", "00000000-0000-8000-8000-000000000000"),
    ];
    for (name, form) in forms {
        let is_of_host = event.extra.iter().any(|(known, _)| **known == *name);
        let Some(text) = input.get(name).and_then(Value::as_str).filter(|_| !is_of_host) else { continue };
        let marks = |text: &str| text.chars().filter(|c| "-T:.Z".contains(*c)).collect::<String>();
        assert_eq!(marks(text), marks(form), "{name}");
        input[name] = form.into();
    }
    // One dialect has the time in milliseconds.
    if let Some(time) = input.get("timestamp").and_then(Value::as_u64) {
        assert!(time > 1_700_000_000_000, "{time}");
        input["timestamp"] = 0.into();
    }
}

/// Removes the ids that hookyard added to a hook's input, if they are those of the outcome.
fn hide_ids(input: &mut Value, outcome: &Outcome) {
    let Some(fields) = input.as_object_mut() else { return };
    if let Some(id) = fields.remove("decision_id") {
        assert_eq!(id, json!(outcome.decision_id.to_string()));
        assert_eq!(fields.remove("delivery"), Some(json!(1)));
    }
}

/// The case with everything that is computed in it.
async fn computed(dialect: DialectName, case: &DialectCase) -> DialectCase {
    let workspace = TestWorkspace::of(&case.files);
    let orchestrator = workspace.start().await;
    let host = match &case.host {
        Some(name) => DialectName::ALL.iter().copied().find(|known| known.as_str() == name).unwrap(),
        None => dialect,
    };
    let report = orchestrator.load_reports().into_values().next().unwrap();
    let mut events = Vec::new();
    for Exchange { event, .. } in &case.events {
        let read = orchestrator.read(host, event.to_string().as_bytes()).unwrap();
        let outcome = orchestrator.dispatch(read.clone()).await.unwrap();
        let seen = workspace.path("workspace/told.json");
        let hook_input = fs::read_to_string(&seen).ok().map(|text| {
            let mut input = serde_json::from_str(&text).unwrap_or(Value::String(text));
            hide_arrival(&mut input, &read);
            hide_ids(&mut input, &outcome);
            fs::remove_file(seen).unwrap();
            input
        });
        let answer = answer(host, &read, &outcome);
        events.push(Exchange { event: event.clone(), hook_input, outcome: stable(&outcome), answer });
    }
    orchestrator.shutdown(std::time::Duration::from_secs(5)).await;
    let computed = DialectCase { diagnostics: messages(&report.diagnostics), events, ..case.clone() };
    let text = workspace.with_placeholder(&serde_json::to_string(&computed).unwrap());
    serde_json::from_str(&text).unwrap()
}

async fn hold(dialect: DialectName, at_least: usize) {
    hold_in(dialect.as_str(), dialect, at_least).await;
}

async fn hold_in(folder: &str, dialect: DialectName, at_least: usize) {
    let mut comparison = Comparison::default();
    for file in case_files::<DialectCase>(folder) {
        let mut cases = Vec::new();
        for case in &file.cases {
            cases.push(computed(dialect, case).await);
        }
        comparison.compare(&file, &cases);
    }
    comparison.finish(at_least);
}

#[tokio::test]
async fn every_case_of_rules_holds() {
    hold_in("rules", DialectName::OpenHarness, 20).await;
}

#[cfg(feature = "rego")]
#[tokio::test]
async fn every_case_of_rego_holds() {
    hold_in("rego", DialectName::OpenHarness, 21).await;
}

#[tokio::test]
async fn every_case_of_claude_holds() {
    hold(DialectName::Claude, 146).await;
}

#[tokio::test]
async fn every_case_of_gemini_holds() {
    hold(DialectName::Gemini, 145).await;
}

#[tokio::test]
async fn every_case_of_codebuddy_holds() {
    hold(DialectName::CodeBuddy, 118).await;
}

#[tokio::test]
async fn every_case_of_clawd_holds() {
    hold(DialectName::Clawd, 143).await;
}

#[tokio::test]
async fn every_case_of_codex_holds() {
    hold(DialectName::Codex, 80).await;
}

#[tokio::test]
async fn every_case_of_qwen_holds() {
    hold(DialectName::Qwen, 80).await;
}

#[tokio::test]
async fn every_case_of_copilot_holds() {
    hold(DialectName::Copilot, 80).await;
}

#[tokio::test]
async fn every_case_of_cursor_holds() {
    hold(DialectName::Cursor, 90).await;
}

#[tokio::test]
async fn every_case_of_droid_holds() {
    hold(DialectName::Droid, 60).await;
}

#[tokio::test]
async fn bad_settings_cost_the_entry_they_are_in() {
    let mut comparison = Comparison::default();
    for file in case_files::<BadSettingsCase>("bad-settings") {
        let mut cases = Vec::new();
        for case in &file.cases {
            let workspace = TestWorkspace::of(&case.files);
            let orchestrator = workspace.start().await;
            let report = orchestrator.load_reports().into_values().next().unwrap();
            let mut lines = messages(&report.diagnostics);
            let snapshot = orchestrator.snapshot(None).unwrap();
            lines.extend(snapshot.hooks().iter().map(|known| format!("loaded: {}", known.hook.name)));
            let expect = workspace.with_placeholder(&lines.join("\n")) + "\n";
            cases.push(BadSettingsCase { expect, ..case.clone() });
        }
        comparison.compare(&file, &cases);
    }
    comparison.finish(100);
}
