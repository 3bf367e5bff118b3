//! What a host in Rust calls: an event of every kind, strict starts, subscriptions, and the scripted test double.

use std::{collections::BTreeSet, fs, sync::Arc, time::Duration};

use hookyard::{
    NativeHook, Notice, Orchestrator, Run, StartError, ToolCall,
    model::{
        Capability, Draft, EventKind, FailurePolicy, HostEvent, Json, Reply, Target, ToolCallId, Verdict,
    },
    testing::{Rule, ScriptedOrchestrator},
};
use serde_json::{Value, json};
use tokio::time::Instant;

/// Sends an event of every kind.
async fn send_all(run: &Run) {
    let value = json!({ "key": "value" });
    let call = ToolCall::new("Bash", &value).with_id(ToolCallId::new("call-1").unwrap());
    run.session_started("startup").await.unwrap();
    run.prompt_submitted("hello").await.unwrap();
    run.before_context_compact("auto", &value).await.unwrap();
    run.after_context_compact("auto", &value).await.unwrap();
    run.before_context_build(&value).await.unwrap();
    run.after_context_build(&value).await.unwrap();
    run.before_model_call("model", &value).await.unwrap();
    run.after_model_call("model", &value, &value).await.unwrap();
    run.before_tool_selection(&value).await.unwrap();
    run.before_tool_dispatch(&call).await.unwrap();
    run.after_tool_dispatch(&call, &value).await.unwrap();
    run.tool_failed(&call, "exit code 1").await.unwrap();
    run.permission_requested(&call).await.unwrap();
    run.notification("idle", "done").await.unwrap();
    run.agent_stopping().await.unwrap();
    run.subagent_started("reviewer").await.unwrap();
    run.subagent_stopping("reviewer").await.unwrap();
    run.host_event(HostEvent::lifecycle("deployed").match_text("shop")).await.unwrap();
    run.run_completed("user").await.unwrap();
    run.run_failed("user").await.unwrap();
    run.session_ended("logout").await.unwrap();
}

#[tokio::test]
async fn every_kind_of_event_has_a_method() {
    let scripted = ScriptedOrchestrator::start([]).await.unwrap();
    send_all(&scripted.orchestrator().run("run-1").unwrap()).await;
    let sent: BTreeSet<EventKind> = scripted.kinds().into_iter().collect();
    assert_eq!(sent.into_iter().collect::<Vec<_>>(), EventKind::ALL);
    for event in scripted.events() {
        let has_target = event.kind.target().is_none_or(|target| event.targets.get(target).is_some());
        let is_matchable = event.kind.match_field().is_none() || event.match_text().is_some();
        assert!(has_target && is_matchable, "{}", event.kind);
        let is_tool_event = event.attributes.tool_name.is_some();
        assert_eq!(event.tool_call_id.is_some(), is_tool_event, "{}", event.kind);
    }
}

#[tokio::test]
async fn a_strict_start_lists_the_mistakes_of_all_hook_files() {
    let workspaces = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    for workspace in &workspaces {
        let hooks = workspace.path().join(".openharness/hooks");
        fs::create_dir_all(&hooks).unwrap();
        fs::write(hooks.join("broken.yaml"), "name: broken\nevents: [no_such_event]\n").unwrap();
    }
    let builder = || {
        let first = Orchestrator::builder()
            .trust(hookyard::config::TrustPolicy::Off)
            .workspace_as("one".parse_id(), workspaces[0].path());
        first.workspace_as("two".parse_id(), workspaces[1].path())
    };
    let Err(StartError::HookFiles(errors)) = builder().strict().start().await else { panic!("it started") };
    for workspace in &workspaces {
        let root = workspace.path().canonicalize().unwrap();
        assert!(errors.iter().any(|error| error.file.starts_with(&root)), "{errors:?}");
    }
    let text = StartError::HookFiles(errors).to_string();
    assert!(text.contains("errors in hook files\n") && text.contains("broken.yaml"), "{text}");
    builder().start().await.unwrap();
}

#[tokio::test]
async fn a_strict_start_counts_hooks_of_agents_settings_that_are_not_loaded() {
    let lost = json!({ "hooks": [{ "type": "command", "comand": "./guard.sh" }] });
    let connection =
        json!({ "hooks": [{ "type": "http", "url": "http://127.0.0.1:8787/v1/events/claude" }] });
    let misspelt = json!({ "matchr": "Bash", "hooks": [{ "type": "command", "command": "true" }] });
    for (entry, starts) in [(lost, false), (connection, true), (misspelt, true)] {
        let workspace = tempfile::tempdir().unwrap();
        fs::create_dir_all(workspace.path().join(".claude")).unwrap();
        let settings = json!({ "hooks": { "PreToolUse": [entry] } });
        fs::write(workspace.path().join(".claude/settings.json"), settings.to_string()).unwrap();
        let builder = || Orchestrator::builder().workspace(workspace.path());
        assert_eq!(builder().strict().start().await.is_ok(), starts, "{settings}");
        builder().start().await.unwrap();
    }
}

/// Ids in tests are valid.
trait ParseId {
    fn parse_id(self) -> hookyard::model::WorkspaceId;
}

impl ParseId for &str {
    fn parse_id(self) -> hookyard::model::WorkspaceId {
        hookyard::model::WorkspaceId::new(self).unwrap()
    }
}

#[tokio::test]
async fn a_patched_input_is_read_as_its_type_and_an_unchanged_one_is_absent() {
    let scripted = ScriptedOrchestrator::start([
        Rule::tool("Bash").patch(Target::ToolInput, &json!({ "command": "npm ci" })),
        Rule::tool("Odd").patch(Target::ToolInput, &json!(["no", "object"])),
    ])
    .await
    .unwrap();
    let run = scripted.orchestrator().run("run-1").unwrap();
    let input = json!({ "command": "npm install" });
    let bash = run.before_tool_dispatch(&ToolCall::new("Bash", &input)).await.unwrap();
    assert_eq!(bash.tool_input::<Value>().unwrap(), Some(json!({ "command": "npm ci" })));
    let read = run.before_tool_dispatch(&ToolCall::new("Read", &input)).await.unwrap();
    assert_eq!(read.tool_input::<Value>().unwrap(), None);
    let odd = run.before_tool_dispatch(&ToolCall::new("Odd", &input)).await.unwrap();
    assert!(odd.tool_input::<std::collections::BTreeMap<String, String>>().is_err());
}

#[tokio::test(start_paused = true)]
async fn a_script_decides_fails_and_is_slow_as_real_hooks_are() {
    let scripted = ScriptedOrchestrator::start([
        Rule::tool("Bash").once().block("not in tests"),
        Rule::tool("Slow").wait(Duration::from_secs(5)).ask("sure?"),
        Rule::tool("Late").wait(Duration::from_secs(9)).timeout(Duration::from_secs(1)),
        Rule::tool("Guarded").named("guard").fail("it crashed").on_failure(FailurePolicy::Deny),
        Rule::tool("Loose").fail("it crashed"),
        Rule::on(EventKind::AfterModelCall).matching("^big").halt("too expensive"),
    ])
    .await
    .unwrap();
    let run = scripted.orchestrator().run("run-1").unwrap();
    let verdict = async |tool: &str| {
        let input = json!({});
        run.before_tool_dispatch(&ToolCall::new(tool, &input)).await.unwrap().verdict
    };
    assert_eq!(verdict("Bash").await, Verdict::Block);
    assert_eq!(verdict("Bash").await, Verdict::Proceed, "the rule was for one event");
    assert_eq!(verdict("Bashful").await, Verdict::Proceed, "names are compared as a whole");
    let since = Instant::now();
    assert_eq!((verdict("Slow").await, since.elapsed().as_secs()), (Verdict::Ask, 5));
    assert_eq!(verdict("Late").await, Verdict::Proceed, "a timeout is no verdict");
    assert_eq!(verdict("Guarded").await, Verdict::Block);
    assert_eq!(verdict("Loose").await, Verdict::Proceed);
    assert_eq!(run.after_model_call("small", &1, &2).await.unwrap().verdict, Verdict::Proceed);
    assert_eq!(run.after_model_call("big-1", &1, &2).await.unwrap().verdict, Verdict::Halt);
    assert_eq!(verdict("Loose").await, Verdict::Halt, "a halted run stays halted");
    assert_eq!(scripted.events_of(EventKind::BeforeToolDispatch).len(), 8, "events of a halted run count");
    scripted.clear_events();
    assert!(scripted.events().is_empty());
}

#[tokio::test]
async fn a_rule_that_cannot_work_is_a_start_error() {
    let misplaced = Rule::on(EventKind::AgentStopping).patch(Target::Prompt, "x");
    let broken_pattern = Rule::on(EventKind::ToolFailed).matching("(");
    let no_json = Rule::tool("Bash").patch(Target::ToolInput, &std::collections::BTreeMap::from([((), 1)]));
    for rule in [misplaced, broken_pattern, no_json] {
        let started = ScriptedOrchestrator::start([rule.clone()]).await;
        assert!(matches!(started, Err(StartError::NativeHook { .. })), "{rule:?}");
    }
}

#[tokio::test]
async fn a_subscriber_that_is_too_slow_is_told_how_many_notices_it_lost() {
    let scripted = ScriptedOrchestrator::start([Rule::tool("Bash").allow()]).await.unwrap();
    let mut notices = scripted.orchestrator().subscribe();
    let run = scripted.orchestrator().run("run-1").unwrap();
    // Two notices for each event; 4,096 are kept.
    for number in 0..2_100 {
        let outcome = run.before_tool_dispatch(&ToolCall::new("Bash", &number)).await.unwrap();
        assert_eq!(outcome.verdict, Verdict::Allow);
    }
    let lost = notices.next().await.unwrap().unwrap_err().count;
    assert_eq!(lost, 2 * 2_100 - 4_096);
    assert!(matches!(notices.next().await, Some(Ok(Notice::Invocation { .. }))), "the oldest that is left");
}

#[tokio::test]
async fn native_hooks_see_the_call_that_a_host_describes() {
    let seen = |draft: &Draft| {
        let event = draft.event();
        let input = draft.target(Target::ToolInput).map(Json::as_str).map(str::to_owned);
        format!(
            "{:?} {:?} {input:?}",
            event.attributes.tool_name,
            event.tool_call_id.as_ref().map(ToolCallId::as_str)
        )
    };
    let hook = NativeHook::inline("seen", [EventKind::BeforeToolDispatch], move |draft| {
        Ok(Reply::block(seen(draft)))
    });
    let orchestrator = Orchestrator::builder().native_hook(hook.capability(Capability::RewriteToolRequest));
    let orchestrator = orchestrator.start().await.unwrap();
    let call = ToolCall::new("Bash", "ls").with_id(ToolCallId::new("call-1").unwrap());
    let outcome = orchestrator.run("run-1").unwrap().before_tool_dispatch(&call).await.unwrap();
    let expected: Arc<str> = r#"Some("Bash") Some("call-1") Some("\"ls\"")"#.into();
    assert_eq!(outcome.reason, Some(expected));
}

#[test]
fn what_a_host_holds_can_be_sent_and_shared() {
    fn is_send<T: Send + 'static>() {}
    fn is_sync<T: Sync>() {}
    is_send::<Orchestrator>();
    is_sync::<Orchestrator>();
    is_send::<Run>();
    is_sync::<Run>();
    is_send::<hookyard::NoticeStream>();
    is_send::<ScriptedOrchestrator>();
    is_send::<StartError>();
    is_sync::<StartError>();
}
