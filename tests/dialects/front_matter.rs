//! Hooks in the front matter of agents, commands and skills of Claude Code: which ones run, and for which events.

use std::{fs, sync::Arc};

use hookyard::{
    Orchestrator,
    config::{TrustPolicy, load_workspace},
    model::{Event, EventKind, Json, RunId, SessionId, Severity, Target, Verdict},
};
use serde_json::json;

use crate::test_workspace::{TestWorkspace, messages};

const USERS: &str = "home/.claude/agents/reviewer.md";
const OWN: &str = "workspace/.claude/agents/reviewer.md";

fn hooks(event: &str, more: &str) -> String {
    format!(
        "---\nname: reviewer\ndescription: Use it: \"often\"\nhooks:\n  {event}:\n    - {more}hooks:\n        - type: command\n          \
         command: echo no >&2; exit 2\ntools: Read, Bash\n---\nYou review.\n"
    )
}

fn with(path: &str, text: &str) -> TestWorkspace {
    let workspace = TestWorkspace::new();
    write(&workspace, path, text);
    workspace
}

fn write(workspace: &TestWorkspace, path: &str, text: &str) {
    let path = workspace.path(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// The names of the enabled hooks, and the messages apart from notes.
fn load(workspace: &TestWorkspace) -> (Vec<String>, Vec<String>) {
    let loaded = load_workspace(&workspace.path("workspace"), None, &workspace.settings(), &|_| None);
    let enabled = loaded.hooks.iter().filter(|hook| hook.enabled);
    let found: Vec<_> =
        loaded.diagnostics.into_iter().filter(|found| found.severity != Severity::Info).collect();
    (enabled.map(|hook| hook.name.to_string()).collect(), messages(&found))
}

fn event(kind: EventKind, agent: Option<&str>) -> Event {
    let run = format!("{kind}-{}", agent.unwrap_or_default());
    let mut event = Event::new(kind, SessionId::new("s").unwrap(), RunId::new(run).unwrap());
    event.attributes.agent_type = agent.map(Into::into);
    event.attributes.tool_name = Some("Bash".into());
    event.targets.set(Target::ToolInput, Json::of(&json!({ "command": "git push" })).unwrap());
    event
}

async fn verdict(orchestrator: &Orchestrator, event: Event) -> Verdict {
    orchestrator.dispatch(event).await.unwrap().verdict
}

#[tokio::test]
async fn hooks_of_an_agent_run_for_its_events() {
    let call = EventKind::BeforeToolDispatch;
    for path in
        [USERS, OWN, "system/claude-code/.claude/agents/reviewer.md", "workspace/.claude/agents/team/r.md"]
    {
        for text in
            [hooks("PreToolUse", "matcher: Bash\n      "), hooks("PreToolUse", "").replace('\n', "\r\n")]
        {
            let workspace = with(path, &text);
            let orchestrator = workspace.start().await;
            let verdicts = [Some("reviewer"), Some("other"), None].map(|agent| event(call, agent));
            let mut unnamed = event(call, None);
            unnamed.extra.push(("agent_id".into(), Json::of(&json!("a1")).unwrap()));
            let mut acting = event(call, None);
            acting.attributes.effective_agent_name = Some("reviewer".into());
            acting.attributes.agent_name = Some("lead".into());
            let expected =
                [Verdict::Block, Verdict::Proceed, Verdict::Proceed, Verdict::Block, Verdict::Block];
            for (event, expected) in verdicts.into_iter().chain([unnamed, acting]).zip(expected) {
                let found = format!("{path}: {:?} {:?}", event.attributes, event.extra);
                assert_eq!(verdict(&orchestrator, event).await, expected, "{found}");
            }
        }
    }
}

#[tokio::test]
async fn the_stop_of_an_agent_is_that_of_a_subagent() {
    let workspace = with(USERS, &hooks("Stop", ""));
    let orchestrator = workspace.start().await;
    for kind in [EventKind::SubagentStopping, EventKind::AgentStopping] {
        assert_eq!(verdict(&orchestrator, event(kind, Some("reviewer"))).await, Verdict::Block, "{kind}");
        assert_eq!(verdict(&orchestrator, event(kind, Some("other"))).await, Verdict::Proceed, "{kind}");
    }
    assert_eq!(verdict(&orchestrator, event(EventKind::AgentStopping, None)).await, Verdict::Proceed);
}

#[tokio::test]
async fn a_condition_of_its_own_counts_as_well_and_explain_tells_both() {
    let text =
        hooks("PreToolUse", "").replace("type: command", "type: command\n          if: Bash(git push *)");
    let workspace = with(USERS, &text);
    let orchestrator = workspace.start().await;
    let call = event(EventKind::BeforeToolDispatch, Some("reviewer"));
    let mut other = event(EventKind::BeforeToolDispatch, Some("reviewer"));
    other.run_id = RunId::new("other").unwrap();
    other.targets.set(Target::ToolInput, Json::of(&json!({ "command": "ls" })).unwrap());
    let explained = orchestrator.snapshot(None).unwrap().explain(&other);
    let [skipped] = explained.skipped.as_slice() else { panic!("{explained:?}") };
    let why = skipped.why.to_string();
    assert!(why.contains("the agent `reviewer` at work") && why.contains("Bash(git push *)"), "{why}");
    assert_eq!(verdict(&orchestrator, call).await, Verdict::Block);
    assert_eq!(verdict(&orchestrator, other).await, Verdict::Proceed);
}

#[test]
fn names_say_of_which_text_a_hook_is() {
    let workspace = with(USERS, &hooks("PreToolUse", ""));
    write(&workspace, OWN, &hooks("Stop", ""));
    write(&workspace, "workspace/.claude/agents/team/reviewer.md", &hooks("PreToolUse", ""));
    let (mut names, messages) = load(&workspace);
    names.sort();
    assert_eq!(messages, Vec::<String>::new());
    let [own, nested, users] = names.as_slice() else { panic!("{names:?}") };
    assert_eq!(own, "claude.project.agents.reviewer.Stop.1.1");
    assert!(nested.starts_with("claude.project.agents.team-r_"), "{nested}");
    assert_eq!(users, "claude.user.agents.reviewer.PreToolUse.1.1");
}

#[test]
fn a_text_of_the_workspace_needs_trust_and_obeys_switches_of_its_level() {
    let workspace = with(USERS, &hooks("PreToolUse", ""));
    write(&workspace, OWN, &hooks("PreToolUse", ""));
    let settings = hookyard::config::Settings { trust: TrustPolicy::Enforce, ..workspace.settings() };
    let loaded = load_workspace(&workspace.path("workspace"), None, &settings, &|_| None);
    let refused = loaded.hooks.iter().filter(|hook| hook.trust.approval().is_none());
    let refused: Vec<&str> = refused.map(|hook| hook.name.as_str()).collect();
    assert_eq!(refused, ["claude.project.agents.reviewer.PreToolUse.1.1"]);
    write(&workspace, "workspace/.claude/settings.json", r#"{"disableAllHooks": true}"#);
    let (names, messages) = load(&workspace);
    assert_eq!(names, ["claude.user.agents.reviewer.PreToolUse.1.1"]);
    assert!(messages.iter().any(|message| message.contains("cannot switch off")), "{messages:?}");
    write(&workspace, "home/.claude/settings.json", r#"{"disableAllHooks": true}"#);
    assert_eq!(load(&workspace).0, Vec::<String>::new());
}

#[tokio::test]
async fn mistakes_in_front_matter_are_told_and_a_text_that_is_no_yaml_keeps_its_rules() {
    let workspace = with(USERS, &hooks("PreToolUse", ""));
    let orchestrator = Arc::new(workspace.start().await);
    let call = |run: &str| {
        let mut event = event(EventKind::BeforeToolDispatch, Some("reviewer"));
        event.run_id = RunId::new(run).unwrap();
        event
    };
    assert_eq!(verdict(&orchestrator, call("sound")).await, Verdict::Block);
    let place = workspace.path(USERS).display().to_string();
    let cases = [
        (hooks("PreToolUse", "").replace("hooks:\n  Pre", "hooks: [\n  Pre"), "error", ":", Verdict::Block),
        (
            hooks("PreToolUse", "").replace("name: reviewer\n", ""),
            "warning",
            "it has no `name`",
            Verdict::Proceed,
        ),
        (hooks("PreTolUse", ""), "warning", "unknown event `PreTolUse`", Verdict::Proceed),
        (
            hooks("PreToolUse", "").replace("command: echo", "comand: echo"),
            "warning",
            "`command`",
            Verdict::Proceed,
        ),
    ];
    for (text, severity, message, comes_to) in cases {
        write(&workspace, USERS, &hooks("PreToolUse", ""));
        orchestrator.reload().await.unwrap();
        write(&workspace, USERS, &text);
        let (names, messages) = load(&workspace);
        assert_eq!(names, Vec::<String>::new(), "{text}");
        let told = messages
            .iter()
            .any(|told| told.starts_with(severity) && told.contains(message) && told.contains(&place));
        assert!(told, "{message}: {messages:?}");
        orchestrator.reload().await.unwrap();
        assert_eq!(
            verdict(&orchestrator, call(&message.replace(' ', "-").replace('`', ""))).await,
            comes_to,
            "{message}: {messages:?}"
        );
    }
    write(&workspace, USERS, "---\nname: reviewer\n---\nYou review.\n");
    orchestrator.reload().await.unwrap();
    assert_eq!(verdict(&orchestrator, call("without")).await, Verdict::Proceed);
}

#[test]
fn other_texts_with_hooks_are_listed_and_do_not_run() {
    let workspace = TestWorkspace::new();
    let with = "---\nname: x\nhooks:\n  PreToolUse: []\n---\ntext\n";
    let texts = [
        ("workspace/.claude/skills/s/SKILL.md", with),
        ("home/.claude/commands/team/c.md", with),
        ("workspace/.claude/skills/s/other.md", with),
        ("workspace/.claude/commands/c.md", "---\nname: x\n---\nhooks:\n"),
        ("workspace/.claude/agents/d.md", "hooks:\n"),
    ];
    for (path, text) in texts {
        write(&workspace, path, text);
    }
    let loaded = load_workspace(&workspace.path("workspace"), None, &workspace.settings(), &|_| None);
    let found: Vec<_> = loaded.diagnostics.iter().map(|found| (found.severity, found.file.clone())).collect();
    let expected = [1, 0].map(|text: usize| (Severity::Info, workspace.path(texts[text].0)));
    assert_eq!(found, expected, "{:?}", loaded.diagnostics);
    for diagnostic in &loaded.diagnostics {
        assert!(
            diagnostic.message.contains("from its first use to the end of the session"),
            "{diagnostic:?}"
        );
    }
    assert!(loaded.hooks.is_empty());
}
