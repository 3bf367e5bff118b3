//! Processes that leave the group of their hook: counted, reported, and ended when hookyard stops.

use std::{fs, path::Path, time::Duration};

use hookyard::{
    Orchestrator,
    config::TrustPolicy,
    model::{Event, EventKind, Outcome, RunId, SessionId},
};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use serde_json::json;
use tempfile::TempDir;

use crate::support::wait::{wait_until, wait_until_async};

/// Ends the process of a test that failed.
struct Escaped(Pid);

impl Escaped {
    /// The process that wrote its id into a file.
    fn of(file: &Path) -> Self {
        let id = || fs::read_to_string(file).ok()?.trim().parse().ok().and_then(Pid::from_raw);
        wait_until("the process writes its id", || id().is_some());
        Self(id().unwrap())
    }

    fn is_alive(&self) -> bool {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.0.as_raw_nonzero())).unwrap_or_default();
        test_kill_process(self.0).is_ok() && !stat.contains(") Z ")
    }
}

impl Drop for Escaped {
    fn drop(&mut self) {
        if self.is_alive() {
            let _ = kill_process(self.0, Signal::KILL);
        }
    }
}

async fn start(keys: &str, command: &str) -> (Orchestrator, TempDir) {
    let workspace = tempfile::tempdir().unwrap();
    let hooks = workspace.path().join(".openharness/hooks");
    fs::create_dir_all(&hooks).unwrap();
    let file = format!(
        "name: hook\nevents: [before_tool_dispatch]\nhandler:\n  type: command\n  command: {}\n{keys}",
        json!(command)
    );
    fs::write(hooks.join("hook.yaml"), file).unwrap();
    let builder = Orchestrator::builder().workspace(workspace.path()).trust(TrustPolicy::Off);
    (builder.start().await.unwrap(), workspace)
}

async fn ask(orchestrator: &Orchestrator) -> Outcome {
    let event = Event::new(
        EventKind::BeforeToolDispatch,
        SessionId::new("session").unwrap(),
        RunId::new("run").unwrap(),
    );
    orchestrator.dispatch(event).await.unwrap()
}

const DAEMON: &str = "setsid sh -c 'echo $$ > pid.new; mv pid.new pid; exec sleep 600'";

/// A hook that ended earlier would take it along: it is still in the hook's group.
const UNTIL_IT_LEFT: &str = "while [ ! -e pid ]; do sleep 0.01; done";

#[tokio::test]
async fn what_escaped_from_a_hook_is_ended_at_shutdown() {
    let line = format!("{DAEMON} </dev/null >/dev/null 2>&1 & {UNTIL_IT_LEFT}; exit 0");
    let (orchestrator, workspace) = start("", &line).await;
    let (other, _other_workspace) = start("", "exit 0").await;
    ask(&orchestrator).await;
    ask(&other).await;
    let escaped = Escaped::of(&workspace.path().join("pid"));
    // Another orchestrator of this process ends only what is its own.
    other.shutdown(Duration::from_secs(5)).await;
    assert!(escaped.is_alive());
    orchestrator.shutdown(Duration::from_secs(5)).await;
    wait_until_async("the process is gone", || !escaped.is_alive()).await;
}

#[tokio::test]
async fn a_hook_cannot_hide_what_escapes_behind_a_mark_of_its_own() {
    let line = format!("{DAEMON} </dev/null >/dev/null 2>&1 & {UNTIL_IT_LEFT}; exit 0");
    let (orchestrator, workspace) = start("  environment: {HOOKYARD_PROCESS: hidden}\n", &line).await;
    ask(&orchestrator).await;
    let escaped = Escaped::of(&workspace.path().join("pid"));
    orchestrator.shutdown(Duration::from_secs(5)).await;
    wait_until_async("the process is gone", || !escaped.is_alive()).await;
}

#[tokio::test]
async fn what_escapes_and_holds_the_output_is_in_the_warnings_of_its_hook() {
    let (orchestrator, workspace) = start("", &format!("{DAEMON} & {UNTIL_IT_LEFT}; exit 0")).await;
    let outcome = ask(&orchestrator).await;
    let warnings = outcome.hooks[0].warnings.join("\n");
    assert!(warnings.contains("1 process of the hook left its process group"), "{warnings:?}");
    let escaped = Escaped::of(&workspace.path().join("pid"));
    assert!(escaped.is_alive());
    orchestrator.shutdown(Duration::from_secs(5)).await;
    wait_until_async("the process is gone", || !escaped.is_alive()).await;
}

#[tokio::test]
async fn what_escapes_from_a_hook_that_times_out_is_in_its_warnings() {
    let line = format!("{DAEMON} </dev/null >/dev/null 2>&1 & {UNTIL_IT_LEFT}; sleep 600");
    let (orchestrator, workspace) = start("  timeout_seconds: 10\n", &line).await;
    let outcome = ask(&orchestrator).await;
    let escaped = Escaped::of(&workspace.path().join("pid"));
    let warnings = outcome.hooks[0].warnings.join("\n");
    assert!(warnings.contains("1 process of the hook left its process group"), "{outcome:?}");
    orchestrator.shutdown(Duration::from_secs(5)).await;
    wait_until_async("the process is gone", || !escaped.is_alive()).await;
}
