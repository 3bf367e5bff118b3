//! Command hooks from the hook file to the outcome. The hostile children are in `tests/support/children`.

use crate::support::child_processes;
use crate::support::wait::{wait_until, wait_until_async};
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
    let orchestrator = Orchestrator::builder()
        .trust(hookyard::config::TrustPolicy::Off)
        .workspace(workspace)
        .settings(settings)
        .start()
        .await
        .unwrap();
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
        (r#"echo '{"decision":"BLOCK"}'"#.to_owned(), Ended::InvalidOutput, Verdict::Proceed, None),
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
        !["_", "SHLVL", "OLDPWD", "PWD", "USER", "SHELL", "TZ", "TMPDIR", "LANG"].contains(name)
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

/// A hook that runs a child of the corpus, and can be found by its environment.
fn hostile(child: &str, tag: &str, timeout_seconds: f64) -> TempDir {
    let path = json!(child_processes::child(child));
    let tag = json!(child_processes::tag(tag));
    workspace(&format!("args: [{path}]\ntimeout_seconds: {timeout_seconds}\nenvironment:\n  TAG: {tag}"), "")
}

#[tokio::test]
async fn the_answer_comes_within_timeout_and_grace_whatever_the_child_does() {
    let children =
        ["ignores_term", "stops_itself_ignoring_term", "fork_swarm", "respawn_storm", "fast_endless_output"];
    let answers = children.map(|child| async move {
        let workspace = hostile(child, child, 0.5);
        let orchestrator = start(workspace.path(), Settings::default()).await;
        let since = Instant::now();
        let outcome = orchestrator.dispatch(event()).await.unwrap();
        // Timeout, two seconds of grace, half a second, and what a busy machine may add. The child never ends.
        assert!(since.elapsed() < Duration::from_secs(20), "{child} took {:?}", since.elapsed());
        assert_eq!(ended(&outcome).0, Ended::TimedOut, "{child}");
        assert!(
            child_processes::gone(|process| child_processes::is_tagged(process, child)).await.is_empty(),
            "{child} lives on"
        );
    });
    futures_util::future::join_all(answers).await;
}

#[tokio::test]
async fn a_program_that_a_shell_runs_has_time_to_clean_up() {
    // The line's second command keeps the shell from becoming the program.
    let script = "trap 'sleep 0.3; echo tidy > tidied; exit' TERM; while :; do sleep 0.1; done";
    let handler = format!("command: {}\ntimeout_seconds: 2", json!(format!("sh -c \"{script}\"; true")));
    let workspace = workspace(&handler, "");
    let orchestrator = start(workspace.path(), Settings::default()).await;
    assert_eq!(ended(&orchestrator.dispatch(event()).await.unwrap()).0, Ended::TimedOut);
    assert_eq!(fs::read_to_string(workspace.path().join("tidied")).unwrap(), "tidy\n");
}

#[tokio::test]
async fn dropping_a_dispatch_kills_its_processes() {
    let workspace = hostile("fork_swarm", "dropped-dispatch", 60.0);
    let orchestrator = start(workspace.path(), Settings::default()).await;
    tokio::select! {
        outcome = orchestrator.dispatch(event()) => panic!("{outcome:?}"),
        _ = child_processes::started("dropped-dispatch") => {}
    }
    // SIGTERM, then two seconds of grace for those who ignore it.
    let lives = |process: &child_processes::Process| child_processes::is_tagged(process, "dropped-dispatch");
    wait_until_async("the processes are killed", || child_processes::processes(lives).is_empty()).await;
}

#[tokio::test]
async fn shutdown_leaves_no_process() {
    let workspace = hostile("ignores_term", "shut-down", 60.0);
    let orchestrator = start(workspace.path(), Settings::default()).await;
    let waiting = tokio::spawn({
        let orchestrator = orchestrator.clone();
        async move { orchestrator.dispatch(event()).await }
    });
    child_processes::started("shut-down").await;
    assert!(!orchestrator.shutdown(Duration::from_millis(50)).await, "it did not finish by itself");
    assert!(waiting.await.unwrap().is_err());
    assert!(
        child_processes::gone(|process| child_processes::is_tagged(process, "shut-down")).await.is_empty()
    );
}

/// A command that runs until there is a file `go`.
fn holds() -> String {
    "command: 'touch started; until [ -e go ]; do sleep 0.02; done'".to_owned()
}

#[tokio::test]
async fn a_full_pool_sheds_and_says_so() {
    let workspace = workspace(&holds(), "on_error: deny");
    let mut settings = Settings::default();
    settings.pools.command.concurrency = 2.try_into().unwrap();
    settings.pools.command.queue = 3.try_into().unwrap();
    let orchestrator = start(workspace.path(), settings).await;
    let events = (0..20).map(|run| Event { run_id: RunId::new(format!("run-{run}")).unwrap(), ..event() });
    let mut running: FuturesUnordered<_> = events.map(|event| orchestrator.dispatch(event)).collect();
    let mut outcomes: Vec<_> = running.by_ref().take(15).map(Result::unwrap).collect().await;
    fs::write(workspace.path().join("go"), "").unwrap();
    outcomes.extend(running.map(Result::unwrap).collect::<Vec<_>>().await);
    let shed: Vec<_> = outcomes.iter().filter(|outcome| ended(outcome).0 == Ended::Shed).collect();
    assert_eq!(shed.len(), 15, "two run, three wait");
    for outcome in shed {
        assert_eq!(outcome.verdict, Verdict::Block, "a guard that is shed still guards");
        assert!(outcome.reason.as_deref().unwrap_or_default().contains("queue of the command pool is full"));
    }
}

#[tokio::test]
async fn a_job_beyond_the_queue_deadline_is_shed() {
    let workspace = workspace("command: sleep 2", "");
    let mut settings = Settings::default();
    settings.pools.command.concurrency = 1.try_into().unwrap();
    settings.pools.command.queue_deadline = Duration::from_millis(300);
    let orchestrator = start(workspace.path(), settings).await;
    let other = Event { run_id: RunId::new("other").unwrap(), ..event() };
    let (first, second) = tokio::join!(orchestrator.dispatch(event()), orchestrator.dispatch(other));
    let mut ends = [ended(&first.unwrap()).0, ended(&second.unwrap()).0];
    ends.sort_unstable();
    assert_eq!(ends, [Ended::Completed, Ended::Shed]);
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
async fn the_longest_timeout_is_no_timeout() {
    let workspace = workspace("command: 'true'", "");
    let settings =
        Settings { default_timeout: Duration::MAX, max_timeout: Duration::MAX, ..Settings::default() };
    let orchestrator = start(workspace.path(), settings).await;
    let outcome = orchestrator.dispatch(event()).await.unwrap();
    assert_eq!(ended(&outcome), (Ended::Completed, ""));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shutdown_is_no_failure_that_a_guard_lets_pass() {
    let workspace = workspace("command: exec sleep 60", "");
    for round in 0..30 {
        let orchestrator = start(workspace.path(), Settings::default()).await;
        let calls: Vec<_> = (0..16)
            .map(|run| Event { run_id: RunId::new(format!("run-{run}")).unwrap(), ..event() })
            .map(|event| (orchestrator.clone(), event))
            .map(|(orchestrator, event)| tokio::spawn(async move { orchestrator.dispatch(event).await }))
            .collect();
        orchestrator.shutdown(Duration::from_millis(30)).await;
        for call in calls {
            assert_eq!(call.await.unwrap(), Err(DispatchError::ShuttingDown), "round {round}");
        }
    }
}

#[tokio::test]
async fn every_process_is_killed_when_shutdown_returns() {
    let workspace = hostile("ignores_term", "killed-at-return", 60.0);
    let orchestrator = start(workspace.path(), Settings::default()).await;
    let runs = (0..70).map(|run| Event { run_id: RunId::new(format!("run-{run}")).unwrap(), ..event() });
    for event in runs {
        let orchestrator = orchestrator.clone();
        tokio::spawn(async move { orchestrator.dispatch(event).await });
    }
    child_processes::started("killed-at-return").await;
    orchestrator.shutdown(Duration::from_millis(50)).await;
    // No task runs from here on, as in a host that exits now: what lives was forgotten.
    let lives = |process: &child_processes::Process| {
        process.alive() && child_processes::is_tagged(process, "killed-at-return")
    };
    wait_until("they are gone", || child_processes::processes(lives).is_empty());
}

#[tokio::test]
async fn a_dropped_invocation_frees_its_place_in_the_queue() {
    let workspace = workspace(&holds(), "on_error: deny");
    let mut settings = Settings::default();
    settings.pools.command.concurrency = 1.try_into().unwrap();
    settings.pools.command.queue = 1.try_into().unwrap();
    let orchestrator = start(workspace.path(), settings).await;
    let of_run = |run: &str| Event { run_id: RunId::new(run).unwrap(), ..event() };
    let others = async {
        wait_until_async("the first runs", || workspace.path().join("started").exists()).await;
        let dropped = timeout(Duration::from_millis(100), orchestrator.dispatch(of_run("dropped"))).await;
        assert!(dropped.is_err(), "it waits in the queue");
        let go = async { fs::write(workspace.path().join("go"), "").unwrap() };
        tokio::join!(orchestrator.dispatch(of_run("next")), go).0.unwrap()
    };
    let (first, next) = tokio::join!(orchestrator.dispatch(of_run("first")), others);
    assert_eq!(ended(&first.unwrap()).0, Ended::Completed);
    assert_eq!(ended(&next), (Ended::Completed, ""));
}
