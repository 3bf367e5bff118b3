//! What the benches share: events and hooks like those of a busy host.
#![allow(dead_code, reason = "each bench uses its part")]

use std::{sync::Arc, time::Duration};

use hookyard::{
    Builder, NativeHook, Orchestrator,
    config::{Settings, TrustPolicy},
    dialect,
    model::{
        Capabilities, DialectName, Event, EventKind, ExecutionPolicy, FailurePolicy, Handler, Hook, HookName,
        HookSource, Json, Matcher, NativeHandler, Reply, RunId, Scope, SessionId, Target, Workspace,
        WorkspaceId,
    },
};
use tempfile::TempDir;

/// The shapes of matchers: whole names, parts of names, patterns that begin with a text, and patterns that need
/// no text. `#` stands for the hook's number.
pub(crate) const SHAPES: [(&str, &str); 4] = [
    ("exact", "^tool_#$"),
    ("contained", "tool_#_"),
    ("prefixes", "^mcp__server_#__.*_write$"),
    ("patterns", "[a-z]+__#_(read|write)"),
];

/// A runtime like that of a host with two cores.
pub(crate) fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime")
}

/// A tool call of a run.
pub(crate) fn tool_event(run: usize) -> Event {
    let id = format!("run-{run}");
    let session = SessionId::new(&id).expect("an id");
    let mut event = Event::new(EventKind::BeforeToolDispatch, session, RunId::new(&id).expect("an id"));
    event.attributes.tool_name = Some("Bash".into());
    event.targets.set(Target::ToolInput, Json::parse(r#"{"command":"npm run lint"}"#).expect("JSON"));
    event
}

/// So many native hooks on tool calls, whose matchers follow a pattern, and which have no opinion.
pub(crate) fn native_hooks(count: usize, pattern: &str) -> Builder {
    let hook =
        |number: usize| {
            NativeHook::inline(format!("hook-{number}"), [EventKind::BeforeToolDispatch], |_| {
                Ok(Reply::proceed())
            })
            .matcher(pattern.replace('#', &number.to_string()))
        };
    (0..count).fold(Orchestrator::builder(), |builder, number| builder.native_hook(hook(number)))
}

/// An orchestrator with these hooks, which keeps nothing on disk.
pub(crate) async fn orchestrator(count: usize, pattern: &str) -> Orchestrator {
    native_hooks(count, pattern).start().await.expect("an orchestrator")
}

/// A workspace with one hook, whose file is this text, and an orchestrator that runs it.
pub(crate) async fn with_hook(hook: &str, settings: Settings) -> (TempDir, Orchestrator) {
    let workspace = tempfile::tempdir().expect("a directory");
    let hooks = workspace.path().join(".openharness/hooks");
    std::fs::create_dir_all(&hooks).expect("a directory");
    std::fs::write(hooks.join("hook.yaml"), hook).expect("a file");
    let builder = Orchestrator::builder().settings(settings).trust(TrustPolicy::Off);
    let orchestrator = builder.workspace(workspace.path()).start().await.expect("an orchestrator");
    (workspace, orchestrator)
}

/// So many hooks as a registry takes them.
pub(crate) fn hooks(count: usize, pattern: &str) -> Vec<Hook> {
    let hook = |position: usize| Hook {
        name: HookName::new(format!("hook-{position}")).expect("a name"),
        dialect: dialect::named(DialectName::OpenHarness),
        events: [EventKind::BeforeToolDispatch].into_iter().collect(),
        matcher: Some(Matcher::search(&pattern.replace('#', &position.to_string())).expect("a pattern")),
        handler: Handler::Native(NativeHandler::Inline(Arc::new(|_| Ok(Reply::proceed())))),
        capabilities: Capabilities::from_iter([Target::ToolInput.capability()]),
        priority: 0,
        enabled: true,
        timeout: Duration::from_mins(1),
        max_concurrency: None,
        on_error: FailurePolicy::Ignore,
        on_timeout: FailurePolicy::Ignore,
        execution: ExecutionPolicy::default(),
        source: HookSource { scope: Scope::Host, file: None, line: 0, position, content: None, bundle: None },
        trust: hookyard::model::HookTrust::default(),
    };
    (0..count).map(hook).collect()
}

/// A place for a registry.
pub(crate) fn place() -> Arc<Workspace> {
    Arc::new(Workspace::new(WorkspaceId::new("bench").expect("an id"), "/"))
}
