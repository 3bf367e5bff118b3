//! Rules: an expression, and the text of a command that it judges.

use std::{fs, path::Path, time::Duration};

use hookyard::{
    Orchestrator,
    config::{Settings, TrustPolicy},
    dialect::read_hook,
    model::{Ended, Event, EventKind, Json, Outcome, RunId, SessionId, Severity, Target, Verdict},
};
use tempfile::TempDir;

use super::{Nowhere, check_text, rules};

/// The longest that stopping takes.
const LONG: Duration = Duration::from_secs(5);

/// The condition of a rule on the first line, and a command after it. The rule loads, or an error says why not; it ends, and an
/// event goes on only where the condition is false.
pub fn rule(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let (condition, command) = text.split_once('\n').unwrap_or((text, ""));
    let file = hook_file(condition);
    let (hook, diagnostics) = read_hook(file.as_bytes(), Path::new("a.yaml"), &rules(), &Nowhere);
    let errors = diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error);
    assert_eq!(hook.is_none(), errors, "a rule is missing without an error, or has one: {diagnostics:?}");
    for diagnostic in &diagnostics {
        check_text(&diagnostic.message);
    }
    if hook.is_some() {
        check_outcome(&outcome(&file, command));
    }
}

fn hook_file(condition: &str) -> String {
    let handler = serde_json::json!({
        "type": "rule", "let": { "commands": "shell.commands(tool.input.command)" }, "deny": condition,
        "context": "string(commands.size())",
    });
    format!(
        "name: guard\nevents: [before_tool_dispatch]\non_error: deny\non_timeout: deny\nhandler: {handler}\n"
    )
}

fn outcome(file: &str, command: &str) -> Outcome {
    let workspace = TempDir::new().expect("there is room");
    let hooks = workspace.path().join(".openharness/hooks");
    fs::create_dir_all(&hooks).expect("there is room");
    fs::write(hooks.join("guard.yaml"), file).expect("there is room");
    let mut event = Event::new(
        EventKind::BeforeToolDispatch,
        SessionId::new("s").expect("an id"),
        RunId::new("r").expect("an id"),
    );
    event.attributes.tool_name = Some("Bash".into());
    let input = serde_json::json!({ "command": command, "list": [1, 2.5, null, "x"], "file": command });
    event.targets.set(Target::ToolInput, Json::parse(&input.to_string()).expect("JSON"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    runtime.block_on(async {
        let builder = Orchestrator::builder().settings(Settings::default()).trust(TrustPolicy::Off);
        let orchestrator = builder.workspace(workspace.path()).start().await.expect("a start");
        let outcome = orchestrator.dispatch(event).await.expect("an outcome");
        orchestrator.shutdown(LONG).await;
        outcome
    })
}

fn check_outcome(outcome: &Outcome) {
    let [report] = &*outcome.hooks else { panic!("one hook has run: {outcome:?}") };
    let error = report.error.as_deref().unwrap_or_default();
    assert!(!error.contains("panic"), "{error}");
    assert!(matches!(report.ended, Ended::Completed | Ended::Failed | Ended::TimedOut), "{report:?}");
    assert!(matches!(outcome.verdict, Verdict::Proceed | Verdict::Block), "{outcome:?}");
    if report.ended != Ended::Completed {
        assert_eq!(outcome.verdict, Verdict::Block, "it fails closed: {outcome:?}");
    }
}
