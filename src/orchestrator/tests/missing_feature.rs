//! A hook whose handler this build lacks. Run by `scripts/test`, which leaves the feature `http` out.

use std::fs;

use super::super::Orchestrator;
use super::tool;
use crate::{
    config::TrustPolicy,
    model::{Ended, Verdict},
};

/// A hook file of an http guard.
fn http_guard(matcher: &str, on_error: &str) -> String {
    format!(
        "name: guard\nevents: [before_tool_dispatch]\nmatcher: {matcher}\non_error: {on_error}\n\
         handler: {{ type: http, url: \"https://guard.example.com/check\" }}\n"
    )
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
    let outcome = orchestrator.dispatch(tool("run")).await.unwrap();
    assert_eq!((outcome.verdict, outcome.hooks[0].ended), (Verdict::Block, Ended::SpawnFailed));
    let error = outcome.hooks[0].error.as_deref().unwrap();
    assert!(error.contains("feature `http`"), "{error}");

    // The file is not broken, so a reload takes its new rule instead of keeping the former one.
    fs::write(hooks.join("guard.yaml"), http_guard("Edit", "deny")).unwrap();
    let reports = orchestrator.reload().await.unwrap();
    assert_eq!(reports.iter().map(|(_, report)| report.kept.len()).sum::<usize>(), 0);
    assert!(reports.iter().all(|(_, report)| report.errors().any(|error| error.code == "missing-feature")));
    let outcome = orchestrator.dispatch(tool("run")).await.unwrap();
    assert_eq!((outcome.verdict, outcome.hooks.len()), (Verdict::Proceed, 0));
}
