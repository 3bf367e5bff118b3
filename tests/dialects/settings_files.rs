//! Settings files of agents beyond single cases: where they may be, and what hooks in them mean.

use std::fs;

use hookyard::{
    Orchestrator,
    config::Settings,
    dialect::named,
    model::{DialectName, EventKind, Hook, RawReply, Verdict},
};
use serde_json::{Map, Value, json};

use crate::{
    support::wait::wait_until_async,
    test_workspace::{TestWorkspace, messages},
};

/// A user may keep settings elsewhere and link to them; a workspace may not lead hookyard out of it.
#[tokio::test]
async fn files_are_read_only_where_they_may_be() {
    let hook = r#"{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"true"}]}]}}"#;
    let workspace = TestWorkspace::new();
    for folder in ["workspace/.claude", "home/.claude", "dotfiles", "system/claude-code"] {
        fs::create_dir_all(workspace.path(folder)).unwrap();
    }
    fs::write(workspace.path("dotfiles/claude.json"), hook).unwrap();
    let link = |at: &str| {
        std::os::unix::fs::symlink(workspace.path("dotfiles/claude.json"), workspace.path(at)).unwrap();
    };
    link("home/.claude/settings.json");
    link("workspace/.claude/settings.json");
    let fifo = workspace.path("workspace/.claude/settings.local.json");
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    fs::write(workspace.path("system/claude-code/managed-settings.json"), " ".repeat(300 << 10)).unwrap();
    let orchestrator = workspace.start().await;
    let report = orchestrator.load_reports().into_values().next().unwrap();
    let found = workspace.with_placeholder(&messages(&report.diagnostics).join("\n"));
    let expected = "error: $DIR/system/claude-code/managed-settings.json: the file is larger than the 262144 bytes allowed\n\
                    error: $DIR/system/claude-code/managed-settings.json: nothing is known of the rules that the file had, \
                    so every event that can be stopped is blocked (correct the file, or remove it if it is not wanted)\n\
                    error: $DIR/workspace/.claude/settings.json: the file is a symbolic link that leads outside the workspace\n\
                    error: $DIR/workspace/.claude/settings.local.json: the file is not a regular file";
    assert_eq!(found, expected);
    let snapshot = orchestrator.snapshot(None).unwrap();
    let names: Vec<_> = snapshot.hooks().iter().map(|known| known.hook.name.to_string()).collect();
    assert_eq!(names, ["broken-file", "claude.user.Stop.1.1"]);
}

/// A directory of settings files is bounded, and nothing in it is passed over in silence.
#[tokio::test]
async fn a_directory_of_settings_files_has_bounds() {
    let hook = r#"{"hooks":{"agentStop":[{"bash":"true"}]}}"#;
    let workspace = TestWorkspace::new();
    let hooks = workspace.path("workspace/.github/hooks");
    fs::create_dir_all(hooks.join("below")).unwrap();
    for number in 10..75 {
        fs::write(hooks.join(format!("{number}.json")), hook).unwrap();
    }
    fs::write(workspace.path("outside.json"), hook).unwrap();
    fs::remove_file(hooks.join("10.json")).unwrap();
    std::os::unix::fs::symlink(workspace.path("outside.json"), hooks.join("00.json")).unwrap();
    std::os::unix::fs::symlink("nowhere", hooks.join("01.json")).unwrap();
    fs::create_dir_all(workspace.path("home/.copilot")).unwrap();
    std::os::unix::fs::symlink("nowhere", workspace.path("home/.copilot/hooks")).unwrap();
    let orchestrator = workspace.start().await;
    let report = orchestrator.load_reports().into_values().next().unwrap();
    let found = workspace.with_placeholder(&messages(&report.diagnostics).join("\n"));
    for expected in [
        "error: $DIR/workspace/.github/hooks: 66 settings files; only the first 64 by name are loaded",
        "warning: $DIR/workspace/.github/hooks/below: files of this directory are not read",
        "error: $DIR/workspace/.github/hooks/00.json: the file is a symbolic link that leads outside",
        "error: $DIR/workspace/.github/hooks/01.json: the file does not exist",
        "error: $DIR/home/.copilot/hooks: the directory cannot be read: no such file or directory",
        "error: $DIR/home/.copilot/hooks: nothing is known of the rules that the file had",
    ] {
        assert!(found.contains(expected), "{expected}\n{found}");
    }
    let snapshot = orchestrator.snapshot(None).unwrap();
    let stops = snapshot.hooks().iter().filter(|known| known.hook.name.to_string().contains("agentStop"));
    assert_eq!(stops.count(), 62);
}

/// The same script in two dialects runs twice, and the second is warned of.
#[tokio::test]
async fn the_same_script_in_two_dialects_is_a_warning() {
    let workspace = TestWorkspace::new();
    let hook = r#"{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"true"}]}]}}"#;
    for folder in ["workspace/.claude", "workspace/.codebuddy"] {
        fs::create_dir_all(workspace.path(folder)).unwrap();
        fs::write(workspace.path(folder).join("settings.json"), hook).unwrap();
    }
    fs::create_dir_all(workspace.path("workspace/.gemini")).unwrap();
    let gemini = hook.replace("Stop", "AfterAgent");
    fs::write(workspace.path("workspace/.gemini/settings.json"), gemini).unwrap();
    let orchestrator = workspace.start().await;
    let report = orchestrator.load_reports().into_values().next().unwrap();
    let found = messages(&report.diagnostics).join("\n");
    assert!(
        found.contains("`codebuddy.project.Stop.1.1` runs what `claude.project.Stop.1.1` runs"),
        "{found}"
    );
    assert!(
        found.contains("`gemini.project.AfterAgent.1.1` runs what `claude.project.Stop.1.1` runs"),
        "{found}"
    );
    assert_eq!(report.hooks, 3);
}

/// Hooks as the settings of a project have them.
async fn hooks(settings: &Value, file: &str) -> Vec<Hook> {
    let workspace = TestWorkspace::new();
    let path = workspace.path("workspace").join(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, settings.to_string()).unwrap();
    let orchestrator = workspace.start().await;
    let snapshot = orchestrator.snapshot(None).unwrap();
    snapshot.hooks().iter().map(|known| known.hook.clone()).collect()
}

/// What servers and models answer, as a hook on tool calls: the verdict and the reason, or how it ended.
#[tokio::test]
async fn answers_of_servers_and_models_are_read() {
    let settings = json!({ "hooks": { "PreToolUse": [{ "hooks": [{ "type": "http", "url": "http://127.0.0.1:9/" }] }] } });
    let hook = hooks(&settings, ".claude/settings.json").await.remove(0);
    let deny = r#"{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"no"}}"#;
    let http = |status, body: &str| RawReply::Http { status, body: body.to_owned().into() };
    let text = |text: &str| RawReply::Text(text.to_owned());
    let cases = [
        (http(200, ""), "proceed"),
        (http(204, " \n"), "proceed"),
        (http(200, "{}"), "proceed"),
        (http(200, deny), "block no"),
        (http(201, deny), "block no"),
        (http(200, "ok"), "invalid_output"),
        (http(200, "null"), "invalid_output"),
        (http(200, "[]"), "invalid_output"),
        (http(200, "<html>"), "invalid_output"),
        (http(302, deny), "failed"),
        (http(403, deny), "failed"),
        (http(500, ""), "failed"),
        (text(r#"{"ok": true}"#), "proceed"),
        (text(r#"{"ok": true, "reason": "fine"}"#), "proceed"),
        (text(r#"{"ok": false, "reason": "no"}"#), "block no"),
        (text("```json\n{\"ok\": false, \"reason\": \"no\"}\n```"), "block no"),
        (text(r#"{"ok": false}"#), "block blocked by hook `claude.project.PreToolUse.1.1`"),
        (text(r#"{"ok": "no"}"#), "invalid_output"),
        (text(r#"{"reason": "no"}"#), "invalid_output"),
        (text("no"), "invalid_output"),
        (text(""), "invalid_output"),
    ];
    for (raw, expected) in cases {
        let asked = format!("{raw:?}");
        let found = match hook.dialect.read_reply(&hook, EventKind::BeforeToolDispatch, raw) {
            Ok(reply) => {
                let (verdict, reason) = reply.decision.into_parts();
                format!("{verdict} {}", reason.unwrap_or_default()).trim_end().to_owned()
            }
            Err(failure) => failure.ended.to_string(),
        };
        assert_eq!(found, expected, "{asked}");
    }
}

/// How long hooks may take that do not say, in seconds.
#[tokio::test]
async fn timeouts_are_those_of_the_dialect() {
    let command = json!({ "type": "command", "command": "true" });
    let own = json!({ "type": "command", "command": "false", "timeout": 2.5 });
    let entry = json!([{ "hooks": [command, own, { "type": "http", "url": "http://127.0.0.1:9/" }] }]);
    let settings = json!({ "hooks": { "PreToolUse": entry, "UserPromptSubmit": entry } });
    let seconds = |hooks: Vec<Hook>| hooks.iter().map(|hook| hook.timeout.as_secs_f64()).collect::<Vec<_>>();
    let found = seconds(hooks(&settings, ".claude/settings.json").await);
    assert_eq!(found, [600.0, 2.5, 600.0, 30.0, 2.5, 30.0]);
    let found = seconds(hooks(&settings, ".codebuddy/settings.json").await);
    assert_eq!(found, [60.0, 2.5, 60.0, 60.0, 2.5, 60.0]);
    let own = json!({ "type": "command", "command": "false", "timeout": 2500 });
    let settings = json!({ "hooks": { "BeforeTool": [{ "hooks": [command, own] }] } });
    let found = seconds(hooks(&settings, ".gemini/settings.json").await);
    assert_eq!(found, [60.0, 2.5]);
}

/// All 31 events of Claude Code can be read, told and answered, and a hook for one of them runs for no other.
#[tokio::test]
async fn every_event_of_claude_reaches_its_own_hooks() {
    let names = [
        "SessionStart",
        "Setup",
        "SessionEnd",
        "UserPromptSubmit",
        "UserPromptExpansion",
        "PreToolUse",
        "PermissionRequest",
        "PermissionDenied",
        "PostToolUse",
        "PostToolUseFailure",
        "PostToolBatch",
        "Notification",
        "MessageDisplay",
        "Stop",
        "StopFailure",
        "SubagentStart",
        "SubagentStop",
        "TaskCreated",
        "TaskCompleted",
        "TeammateIdle",
        "PreCompact",
        "PostCompact",
        "InstructionsLoaded",
        "ConfigChange",
        "CwdChanged",
        "DirectoryAdded",
        "FileChanged",
        "WorktreeCreate",
        "WorktreeRemove",
        "Elicitation",
        "ElicitationResult",
    ];
    // A block of these is one to the host as well, by an exit code of 2.
    let blocked = [
        "PreToolUse",
        "UserPromptSubmit",
        "Stop",
        "SubagentStop",
        "PreCompact",
        "PostToolUse",
        "PostToolBatch",
        "ConfigChange",
        "TaskCreated",
        "TaskCompleted",
        "TeammateIdle",
        "Elicitation",
    ];
    let workspace = TestWorkspace::new();
    fs::create_dir_all(workspace.path("workspace/.claude")).unwrap();
    let hook =
        |name: &str| json!([{ "hooks": [{ "type": "command", "command": format!(": {name}; exit 2") }] }]);
    let hooks: Map<String, Value> = names.iter().map(|name| ((*name).to_owned(), hook(name))).collect();
    let settings = json!({ "hooks": hooks }).to_string();
    fs::write(workspace.path("workspace/.claude/settings.json"), settings).unwrap();
    let orchestrator = workspace.start().await;
    for name in names {
        let event = json!({
            "session_id": format!("s-{name}"), "hook_event_name": name, "prompt": "p", "tool_name": "Bash",
            "tool_input": {},
        });
        let event = orchestrator.read(DialectName::Claude, event.to_string().as_bytes()).unwrap();
        let outcome = orchestrator.dispatch(event.clone()).await.unwrap();
        let ran: Vec<_> = outcome.hooks.iter().map(|report| report.hook.to_string()).collect();
        assert_eq!(ran, [format!("claude.project.{name}.1.1")]);
        assert_eq!(outcome.verdict == Verdict::Block, blocked.contains(&name), "{name}");
        let answer = named(DialectName::Claude).write_response(&event, &outcome);
        let is_block = answer.exit_code == 2
            || [r#""decision":"block""#, r#""permissionDecision":"deny""#]
                .iter()
                .any(|w| answer.stdout.contains(w));
        assert_eq!(is_block, blocked.contains(&name), "{name}: {answer:?}");
    }
}

/// What a run remembers outlives its actor.
#[tokio::test]
async fn a_hook_that_ran_once_per_session_does_not_run_again_after_passivation() {
    let workspace = TestWorkspace::new();
    fs::create_dir_all(workspace.path("workspace/.codebuddy")).unwrap();
    let hook =
        r#"{"hooks":{"SessionStart":[{"hooks":[{"type":"command","command":"echo hello","once":true}]}]}}"#;
    fs::write(workspace.path("workspace/.codebuddy/settings.json"), hook).unwrap();
    let settings = Settings { run_idle: std::time::Duration::from_millis(10), ..workspace.settings() };
    let builder = Orchestrator::builder()
        .trust(hookyard::config::TrustPolicy::Off)
        .workspace(workspace.path("workspace"))
        .settings(settings);
    let orchestrator = builder.start().await.unwrap();
    let event = r#"{"session_id":"s","hook_event_name":"SessionStart","source":"resume"}"#;
    let start = || orchestrator.dispatch_json(DialectName::CodeBuddy, event.as_bytes());
    assert_eq!(start().await.unwrap().notes.len(), 1);
    wait_until_async("the run's actor is gone", || orchestrator.run_count().active == 0).await;
    assert_eq!(start().await.unwrap().notes.len(), 0);
}
