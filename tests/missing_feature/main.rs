//! Hooks whose handlers this build lacks. Run by `scripts/test`, which leaves out the features `http` and `rego`.
#![cfg(not(any(feature = "http", feature = "rego")))]
#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

use std::fs;

use hookyard::{
    Orchestrator, ToolCall,
    config::TrustPolicy,
    model::{Ended, Outcome, Verdict},
};

/// A hook file of an http guard.
fn http_guard(matcher: &str, on_error: &str) -> String {
    format!(
        "name: guard\nevents: [before_tool_dispatch]\nmatcher: {matcher}\non_error: {on_error}\n\
         handler: {{ type: http, url: \"https://guard.example.com/check\" }}\n"
    )
}

async fn ask(orchestrator: &Orchestrator) -> Outcome {
    let input = serde_json::json!({});
    orchestrator.run("run").unwrap().before_tool_dispatch(&ToolCall::new("Bash", &input)).await.unwrap()
}

#[tokio::test]
async fn its_policy_decides_its_file_is_reported_and_later_changes_of_the_file_apply() {
    let workspace = tempfile::tempdir().unwrap();
    let hooks = workspace.path().join(".openharness/hooks");
    fs::create_dir_all(&hooks).unwrap();
    fs::write(hooks.join("guard.yaml"), http_guard("Bash", "deny")).unwrap();
    let builder = || Orchestrator::builder().workspace(workspace.path()).trust(TrustPolicy::Off);
    assert!(builder().strict().start().await.is_err(), "a strict start accepts no hook that cannot run");

    let orchestrator = builder().start().await.unwrap();
    let outcome = ask(&orchestrator).await;
    assert_eq!((outcome.verdict, outcome.hooks[0].ended), (Verdict::Block, Ended::SpawnFailed));
    let error = outcome.hooks[0].error.as_deref().unwrap();
    assert!(error.contains("feature `http`"), "{error}");

    // The file is not broken, so a reload takes its new rule instead of keeping the former one.
    fs::write(hooks.join("guard.yaml"), http_guard("Edit", "deny")).unwrap();
    let reports = orchestrator.reload().await.unwrap();
    assert_eq!(reports.iter().map(|(_, report)| report.kept.len()).sum::<usize>(), 0);
    assert!(reports.iter().all(|(_, report)| report.errors().any(|error| error.code == "missing-feature")));
    let outcome = ask(&orchestrator).await;
    assert_eq!((outcome.verdict, outcome.hooks.len()), (Verdict::Proceed, 0));
}

#[tokio::test]
async fn a_policy_without_its_interpreter_fails_at_each_event_and_its_file_is_reported() {
    let workspace = tempfile::tempdir().unwrap();
    let hooks = workspace.path().join(".openharness/hooks");
    fs::create_dir_all(&hooks).unwrap();
    let guard = "name: guard\nevents: [before_tool_dispatch]\nhandler: { type: rego, file: guard.rego }\n";
    fs::write(hooks.join("guard.yaml"), format!("{guard}on_error: deny\n")).unwrap();
    fs::write(workspace.path().join("guard.rego"), "package guard\n").unwrap();
    let builder = Orchestrator::builder().workspace(workspace.path()).trust(TrustPolicy::Off);
    let orchestrator = builder.start().await.unwrap();
    let reports = orchestrator.load_reports();
    assert!(reports.values().all(|report| report.errors().any(|error| error.code == "missing-feature")));
    let outcome = ask(&orchestrator).await;
    assert_eq!((outcome.verdict, outcome.hooks[0].ended), (Verdict::Block, Ended::SpawnFailed));
    let error = outcome.hooks[0].error.as_deref().unwrap();
    assert!(error.contains("feature `rego`"), "{error}");
}
