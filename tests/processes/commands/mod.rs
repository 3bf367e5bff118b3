//! Command hooks from the hook file to the outcome. The hostile children are in `tests/support/children`.

mod endings;
mod queues;

use crate::support::{
    child_processes,
    trust::orchestrator_with,
    wait::{wait_until, wait_until_async},
};
use futures_util::{StreamExt, stream::FuturesUnordered};
use std::{fs, os::unix::fs::PermissionsExt, path::Path, time::Duration};

use hookyard::{
    DispatchError, NativeHook, Orchestrator,
    config::Settings,
    model::{DialectName, Ended, Event, EventKind, Json, Outcome, Reply, RunId, SessionId, Target, Verdict},
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::{Instant, timeout};

/// A workspace with one hook on tool calls, whose `handler` block is given.
fn workspace(handler: &str, policies: &str) -> TempDir {
    let workspace = tempfile::tempdir().unwrap();
    let hooks = workspace.path().join(".openharness/hooks");
    fs::create_dir_all(&hooks).unwrap();
    let handler = format!("  {}\n", handler.replace('\n', "\n  "));
    let file = format!(
        "name: hook\nevents: [before_tool_dispatch]\n{policies}\nhandler:\n  type: command\n{handler}"
    );
    fs::write(hooks.join("hook.yaml"), file).unwrap();
    workspace
}

async fn start(workspace: &Path, settings: Settings) -> Orchestrator {
    let orchestrator = orchestrator_with(workspace, settings).await;
    for report in orchestrator.load_reports().values() {
        assert_eq!(report.hooks, 1, "{:?}", report.diagnostics);
    }
    orchestrator
}

fn event() -> Event {
    let mut event = Event::new(
        EventKind::BeforeToolDispatch,
        SessionId::new("session").unwrap(),
        RunId::new("run").unwrap(),
    );
    event.attributes.tool_name = Some("Bash".into());
    event.targets.set(Target::ToolInput, Json::parse(r#"{"command":"\"; rm -rf ~ #"}"#).unwrap());
    event
}

/// The outcome of one tool call in a workspace with one hook.
async fn outcome(handler: &str, policies: &str) -> Outcome {
    let workspace = workspace(handler, policies);
    let orchestrator = start(workspace.path(), Settings::default()).await;
    orchestrator.dispatch(event()).await.unwrap()
}

/// The outcome of one tool call whose hook runs this line.
async fn line(command: &str) -> Outcome {
    outcome(&format!("command: {}", json!(command)), "").await
}

fn ended(outcome: &Outcome) -> (Ended, &str) {
    let report = &outcome.hooks[0];
    (report.ended, report.error.as_deref().unwrap_or_default())
}

#[tokio::test]
async fn the_end_of_a_command_is_read_by_the_rules_of_its_dialect() {
    let block = r#"echo '{"decision":"block","reason":"no"}'"#;
    let cases = [
        ("true".to_owned(), Ended::Completed, Verdict::Proceed, None),
        (block.to_owned(), Ended::Completed, Verdict::Block, Some("no")),
        (format!("echo log noise; {block}; echo more"), Ended::Completed, Verdict::Block, Some("no")),
        ("echo nope >&2; exit 2".to_owned(), Ended::Completed, Verdict::Block, Some("nope")),
        (
            r#"echo '{"decision":"allow"}'; echo no >&2; exit 2"#.to_owned(),
            Ended::Completed,
            Verdict::Block,
            Some("no"),
        ),
        (
            r#"echo '{"continue":false,"stopReason":"stop"}'"#.to_owned(),
            Ended::Completed,
            Verdict::Halt,
            Some("stop"),
        ),
        (format!("{block}; exit 1"), Ended::Failed, Verdict::Proceed, None),
        ("echo text".to_owned(), Ended::InvalidOutput, Verdict::Proceed, None),
        ("echo '{}{}'".to_owned(), Ended::InvalidOutput, Verdict::Proceed, None),
        (r#"echo '{"decision":"BLOCK"}'"#.to_owned(), Ended::Completed, Verdict::Proceed, None),
        ("printf '{\"reason\":\"\\377\"}'".to_owned(), Ended::InvalidOutput, Verdict::Proceed, None),
        ("does-not-exist-anywhere".to_owned(), Ended::SpawnFailed, Verdict::Proceed, None),
        ("kill -SEGV $$".to_owned(), Ended::Failed, Verdict::Proceed, None),
        ("kill -KILL $$".to_owned(), Ended::Failed, Verdict::Proceed, None),
        ("head -c 2000000 /dev/zero".to_owned(), Ended::OutputTooLarge, Verdict::Proceed, None),
        ("head -c 2000000 /dev/zero; exit 2".to_owned(), Ended::Completed, Verdict::Block, Some("hook")),
    ];
    for (command, end, verdict, reason) in cases {
        let outcome = line(&command).await;
        assert_eq!((ended(&outcome).0, outcome.verdict), (end, verdict), "{command}: {outcome:?}");
        if let Some(reason) = reason {
            assert!(outcome.reason.as_deref().unwrap_or_default().contains(reason), "{command}: {outcome:?}");
        }
    }
}

#[tokio::test]
async fn policies_turn_failures_into_verdicts() {
    let cases = [
        ("exit 1", "on_error: deny", Verdict::Block, "hook `hook` failed"),
        ("exit 1", "on_error: ask", Verdict::Ask, "(on_error: ask)"),
        ("exit 1", "on_timeout: deny", Verdict::Proceed, ""),
        (
            r#"echo '{\"decision\":\"deny\"}'"#,
            "on_error: deny",
            Verdict::Block,
            "hook `hook` gave no valid answer",
        ),
        ("does-not-exist-anywhere", "on_error: deny", Verdict::Block, "hook `hook` did not start"),
        ("sleep 60", "on_timeout: deny", Verdict::Block, "hook `hook` timed out"),
        ("sleep 60", "on_error: deny", Verdict::Proceed, ""),
    ];
    for (command, policy, verdict, reason) in cases {
        let handler = format!(
            "command: \"{}\"\ntimeout_seconds: 1.5",
            command.replace('"', "\\\"").replace("\\\\", "\\")
        );
        let outcome = outcome(&handler, policy).await;
        assert_eq!(outcome.verdict, verdict, "{command}, {policy}: {outcome:?}");
        assert!(
            outcome.reason.as_deref().unwrap_or_default().contains(reason),
            "{command}, {policy}: {outcome:?}"
        );
    }
}

#[tokio::test]
async fn a_program_that_cannot_be_started_says_why() {
    let directory = tempfile::tempdir().unwrap();
    let script = |name: &str, text: &str, mode: u32| {
        let path = directory.path().join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path.display().to_string()
    };
    let cases = [
        (script("no-x.sh", "#!/bin/sh\n", 0o644), "not an executable file"),
        (script("no-interpreter", "#!/no/such/interpreter\n", 0o755), "interpreter"),
        (script("no-format", "\u{7f}ELF nonsense", 0o755), "no format"),
    ];
    for (path, why) in cases {
        let outcome = outcome(&format!("args: [{}]", json!(path)), "").await;
        let (end, error) = ended(&outcome);
        assert_eq!(end, Ended::SpawnFailed, "{path}: {error}");
        assert!(error.contains(why), "{path}: {error}");
    }
}

#[tokio::test]
async fn a_script_deleted_after_loading_is_a_spawn_failure() {
    let workspace = workspace("args: [./scripts/guard.sh]", "on_error: deny");
    let script = workspace.path().join("scripts/guard.sh");
    fs::create_dir_all(script.parent().unwrap()).unwrap();
    fs::write(&script, "#!/bin/sh\nexit 0\n").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    let orchestrator = start(workspace.path(), Settings::default()).await;
    assert_eq!(orchestrator.dispatch(event()).await.unwrap().verdict, Verdict::Proceed);
    fs::remove_file(script).unwrap();
    let outcome = orchestrator.dispatch(event()).await.unwrap();
    assert_eq!((ended(&outcome).0, outcome.verdict), (Ended::SpawnFailed, Verdict::Block));
}

#[tokio::test]
async fn what_is_longer_than_the_system_takes_is_a_spawn_failure_in_every_mode() {
    let secrets = tempfile::tempdir().unwrap();
    let secret = secrets.path().join("BIG");
    fs::write(&secret, "x".repeat(60_000)).unwrap();
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
    for mode in ["oneshot", "prespawn", "worker"] {
        let handler = format!(
            "command: 'true'\nmode: {mode}\nenvironment: {{ A: '${{secrets.BIG}}${{secrets.BIG}}${{secrets.BIG}}' }}"
        );
        let workspace = workspace(&handler, "on_error: deny");
        let mut settings = Settings::default();
        settings.secrets.dir = Some(secrets.path().to_owned());
        let outcome = start(workspace.path(), settings).await.dispatch(event()).await.unwrap();
        let (end, error) = ended(&outcome);
        assert_eq!((end, outcome.verdict), (Ended::SpawnFailed, Verdict::Block), "{mode}: {error}");
        assert!(error.contains("more than the system takes"), "{mode}: {error}");
        assert!(!error.contains("xxx"), "{mode}: {error}");
    }
}

#[tokio::test]
async fn a_hook_gets_the_envelope_on_stdin_and_a_small_environment() {
    let handler =
        "command: cat > envelope.json; env > environment.txt; pwd > cwd.txt\nenvironment:\n  MINE: yes-mine";
    let workspace = workspace(handler, "");
    let orchestrator = start(workspace.path(), Settings::default()).await;
    assert_eq!(ended(&orchestrator.dispatch(event()).await.unwrap()).0, Ended::Completed);
    let read = |name: &str| fs::read_to_string(workspace.path().join(name)).unwrap();
    let envelope: Value = serde_json::from_str(&read("envelope.json")).unwrap();
    let root = workspace.path().canonicalize().unwrap();
    assert_eq!(envelope["hook_event_name"], "before_tool_dispatch");
    assert_eq!(envelope["tool_input"]["command"], "\"; rm -rf ~ #");
    assert_eq!((&envelope["session_id"], &envelope["run_id"]), (&json!("session"), &json!("run")));
    assert_eq!(envelope["cwd"], json!(root));
    assert_eq!(read("cwd.txt").trim(), root.to_str().unwrap());
    let environment = read("environment.txt");
    let mut names: Vec<_> = environment.lines().filter_map(|line| Some(line.split_once('=')?.0)).collect();
    names.retain(|name| {
        !["_", "SHLVL", "OLDPWD", "PWD", "USER", "LOGNAME", "SHELL", "TZ", "TMPDIR", "LANG"].contains(name)
    });
    names.retain(|name| !name.starts_with("LC_"));
    names.sort_unstable();
    let expected = [
        "HOME",
        "HOOKYARD_DEADLINE_MS",
        "HOOKYARD_EVENT",
        "HOOKYARD_HOOK",
        "HOOKYARD_PROCESS",
        "MINE",
        "OPENHARNESS_WORKSPACE_ROOT",
        "PATH",
    ];
    assert_eq!(names, expected);
    assert!(environment.contains(&format!("OPENHARNESS_WORKSPACE_ROOT={}", root.display())));
    assert!(environment.contains("HOOKYARD_EVENT=before_tool_dispatch"));
}

#[tokio::test]
async fn a_hook_gets_the_trace_of_its_event_unless_its_file_sets_another() {
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let hook = r#"command: echo "${TRACEPARENT-none}" >&2; exit 2"#;
    let own = format!("{hook}\nenvironment:\n  TRACEPARENT: own");
    for (handler, trace, told) in
        [(hook, None, "none"), (hook, Some(trace), trace), (&own, None, "own"), (&own, Some(trace), "own")]
    {
        let workspace = workspace(handler, "");
        let orchestrator = start(workspace.path(), Settings::default()).await;
        let mut event = event();
        event.trace = trace.map(|trace| trace.parse().unwrap());
        let outcome = orchestrator.dispatch(event).await.unwrap();
        assert_eq!(outcome.reason.as_deref(), Some(told), "{handler}");
    }
}

#[tokio::test]
async fn an_event_that_cannot_be_read_is_blocked_where_a_hook_fails_closed() {
    let surrogate = |kind: &str| {
        let rest = r#""session_id":"s","run_id":"r","tool_name":"Bash","tool_input":"\ud800"}"#;
        format!(r#"{{"event":"{kind}",{rest}"#)
    };
    let cases = [
        (surrogate("before_tool_dispatch"), "on_error: deny", true),
        (surrogate("before_tool_dispatch"), "", false),
        // No hook wants this one.
        (surrogate("before_model_call"), "on_error: deny", false),
        // What it is cannot be told, so it may be what the hook guards.
        (r#"{"event":"before_tool_dis"#.to_owned(), "on_error: deny", true),
    ];
    for (event, policies, blocked) in cases {
        let workspace = workspace("command: 'true'", policies);
        let orchestrator = start(workspace.path(), Settings::default()).await;
        match orchestrator.dispatch_json(DialectName::Canonical, event.as_bytes()).await {
            Ok(outcome) => assert!(blocked && outcome.verdict == Verdict::Block, "{event}: {outcome:?}"),
            Err(error) => {
                assert!(!blocked && error.to_string().contains("not valid JSON"), "{event}: {error}");
            }
        }
    }
}

#[tokio::test]
async fn a_native_hook_takes_the_place_of_a_file_with_its_name() {
    let workspace = workspace("command: exit 2", "");
    let native = NativeHook::inline("hook", [EventKind::BeforeToolDispatch], |_| Ok(Reply::ask("really?")));
    let builder = Orchestrator::builder()
        .trust(hookyard::config::TrustPolicy::Off)
        .workspace(workspace.path())
        .native_hook(native);
    let orchestrator = builder.start().await.unwrap();
    let outcome = orchestrator.dispatch(event()).await.unwrap();
    assert_eq!((outcome.verdict, outcome.hooks.len()), (Verdict::Ask, 1));
    let report = orchestrator.load_reports().into_values().next().unwrap();
    assert_eq!((report.hooks, report.diagnostics[0].code), (1, "duplicate-name"));
}

#[tokio::test]
async fn a_reload_sees_new_files_and_events_under_way_keep_the_old() {
    let workspace = workspace("command: sleep 1; exit 2", "");
    let orchestrator = start(workspace.path(), Settings::default()).await;
    let old = orchestrator.dispatch(event());
    let new = async {
        let hooks = workspace.path().join(".openharness/hooks");
        fs::write(hooks.join("broken.yaml"), "name: broken\n").unwrap();
        fs::remove_file(hooks.join("hook.yaml")).unwrap();
        let (_, report) = orchestrator.reload().await.unwrap().remove(0);
        assert_eq!((report.version, report.hooks), (2, 0));
        assert!(!report.diagnostics.is_empty());
        let other = Event { run_id: RunId::new("other").unwrap(), ..event() };
        orchestrator.dispatch(other).await.unwrap()
    };
    let (old, new) = tokio::join!(old, new);
    assert_eq!(
        (old.unwrap().verdict, new.verdict, new.snapshot_version),
        (Verdict::Block, Verdict::Proceed, 2)
    );
}

#[tokio::test]
async fn a_hook_that_has_the_name_of_one_that_ran_once_runs() {
    let workspace = tempfile::tempdir().unwrap();
    fs::create_dir(workspace.path().join(".codebuddy")).unwrap();
    // The names of hooks in this file say where they stand.
    let write = |handler: Value| {
        let settings = json!({ "hooks": { "PreToolUse": [{ "hooks": [handler] }] } });
        fs::write(workspace.path().join(".codebuddy/settings.json"), settings.to_string()).unwrap();
    };
    write(json!({ "type": "command", "command": "true", "once": true }));
    let orchestrator = start(workspace.path(), Settings::default()).await;
    let verdict = async || {
        let outcome = orchestrator.dispatch(event()).await.unwrap();
        (outcome.verdict, outcome.hooks.len())
    };
    assert_eq!(verdict().await, (Verdict::Proceed, 1));
    assert_eq!(verdict().await, (Verdict::Proceed, 0));
    write(json!({ "type": "command", "command": "exit 2" }));
    orchestrator.reload().await.unwrap();
    assert_eq!(verdict().await, (Verdict::Block, 1));
    assert_eq!(verdict().await, (Verdict::Block, 1));
}
