//! Every dialect's hooks for every dialect's host: what a host cannot be told comes out stricter, never milder.

mod dialect_table;
mod replies;
mod words;

use std::{fmt::Write as _, fs, path::Path, time::Duration};

use dialect_table::{DIALECTS, MatrixDialect};
use hookyard::{
    Orchestrator,
    config::Settings,
    dialect::named,
    model::{Diagnostic, DialectName, Json, Outcome, Target, Verdict},
};
use replies::{HOOK_REPLIES, HookReply, HostReading, Move, call};
use serde_json::{Value, json};
use tempfile::TempDir;

/// What hosts cannot be told, and what they do instead: a thing, the host, and what it does.
const INEXPRESSIBLE: &[(HookReply, DialectName, Move)] = &[
    (HookReply::Allow, DialectName::OpenHarness, Move::AsUsual),
    (HookReply::Ask, DialectName::OpenHarness, Move::Refuses),
    (HookReply::Shorten, DialectName::OpenHarness, Move::Refuses),
    (HookReply::Shorten, DialectName::CodeBuddy, Move::Refuses),
    (HookReply::Halt, DialectName::CodeBuddy, Move::Refuses),
    (HookReply::Context, DialectName::CodeBuddy, Move::AsUsual),
    (HookReply::Allow, DialectName::Gemini, Move::AsUsual),
    (HookReply::Shorten, DialectName::Clawd, Move::Refuses),
    (HookReply::Halt, DialectName::Clawd, Move::Refuses),
    (HookReply::Context, DialectName::Clawd, Move::AsUsual),
    (HookReply::Allow, DialectName::Codex, Move::AsUsual),
    (HookReply::Shorten, DialectName::Codex, Move::Refuses),
    (HookReply::Ask, DialectName::Codex, Move::Refuses),
    (HookReply::Halt, DialectName::Codex, Move::Refuses),
    (HookReply::Allow, DialectName::Qwen, Move::AsUsual),
    (HookReply::Rewrite, DialectName::Qwen, Move::Refuses),
    (HookReply::Shorten, DialectName::Qwen, Move::Refuses),
    (HookReply::Ask, DialectName::Qwen, Move::Refuses),
    (HookReply::Halt, DialectName::Qwen, Move::Refuses),
    (HookReply::Context, DialectName::Qwen, Move::AsUsual),
    (HookReply::Halt, DialectName::Copilot, Move::Refuses),
    (HookReply::Allow, DialectName::Cursor, Move::AsUsual),
    (HookReply::Ask, DialectName::Cursor, Move::Refuses),
    (HookReply::Halt, DialectName::Cursor, Move::Refuses),
    (HookReply::Shorten, DialectName::Droid, Move::Refuses),
    (HookReply::Ask, DialectName::Droid, Move::Refuses),
    (HookReply::Context, DialectName::Droid, Move::AsUsual),
];

/// A workspace with one hook of one dialect, which runs this script.
struct Yard {
    directory: TempDir,
    orchestrator: Orchestrator,
}

impl Yard {
    async fn with(dialect_row: &MatrixDialect, script: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        let workspace = root.join("workspace");
        write(&workspace.join("hook.sh"), script);
        let (file, content) =
            (dialect_row.configures)(&format!("sh '{}'", workspace.join("hook.sh").display()));
        write(&workspace.join(file), &content.to_string());
        let settings = Settings {
            home: Some(root.join("home")),
            system_directory: Some(root.join("system")),
            ..Settings::default()
        };
        let builder = Orchestrator::builder()
            .trust(hookyard::config::TrustPolicy::Off)
            .workspace(workspace)
            .settings(settings);
        let orchestrator = builder.start().await.unwrap();
        let report = orchestrator.load_reports().into_values().next().unwrap();
        let diagnostics: Vec<_> = report.diagnostics.iter().map(Diagnostic::to_string).collect();
        assert_eq!((report.hooks, diagnostics), (1, Vec::new()), "{}", dialect_row.name);
        Self { directory, orchestrator }
    }

    /// What a host does about a tool call, having read the answer. Each host has a session of its own.
    async fn asked_by(&self, host: &MatrixDialect, input: &Value) -> HostReading {
        let event = (host.sends)(input).to_string();
        let event = self.orchestrator.read(host.name, event.as_bytes()).unwrap();
        let outcome = self.orchestrator.dispatch(event.clone()).await.unwrap();
        let ended: Vec<_> = outcome.hooks.iter().map(|report| (report.ended, &report.warnings)).collect();
        assert_eq!(ended.len(), 1, "the hook ran once: {ended:?}");
        let report = &outcome.hooks[0];
        // In one dialect, a hook that says something with an exit code has failed as well.
        assert!(report.error.is_none() || report.verdict != Verdict::Proceed, "{outcome:?}");
        assert!(report.warnings.is_empty(), "{outcome:?}");
        (host.reads)(&named(host.name).write_response(&event, &outcome), input)
    }

    async fn close(self) {
        self.orchestrator.shutdown(Duration::from_secs(5)).await;
        drop(self.directory);
    }
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// What the host does instead of the thing, if it cannot be told.
fn instead(thing: HookReply, host: &MatrixDialect) -> Option<Move> {
    let fits = |(known, name, _): &&(HookReply, DialectName, Move)| *known == thing && *name == host.name;
    INEXPRESSIBLE.iter().find(fits).map(|(.., becomes)| *becomes)
}

/// What is wrong with what a host does about a thing that a hook said.
fn wrong(thing: HookReply, host: &MatrixDialect, received: &HostReading) -> Option<String> {
    let meant = thing.meant();
    // A host that cannot end a run does the strictest thing it can: it refuses the call.
    let strictest = if instead(thing, host) == Some(Move::Refuses) { Move::Refuses } else { Move::Ends };
    if received.moves < meant.moves.min(strictest) {
        return Some(format!("milder: it {:?}, not {:?}", received.moves, meant.moves));
    }
    if received.moves < Move::Refuses && received.input != meant.input {
        return Some(format!("the tool would run with {}, not with {}", received.input, meant.input));
    }
    let keeps_reason = meant.reason.is_none_or(|reason| received.reason.contains(reason));
    if !keeps_reason || (received.moves >= Move::Asks && received.reason.trim().is_empty()) {
        return Some(format!("the reason is {:?}", received.reason));
    }
    let exact = received.moves == meant.moves && received.context == meant.context;
    match instead(thing, host) {
        None if exact => None,
        None => Some(format!("not exact, and not in the table: {received:?}")),
        Some(_) if exact => Some("exact, though the table says that it cannot be".to_owned()),
        Some(becomes) if becomes == received.moves && received.context.is_none() => None,
        Some(becomes) => Some(format!("the table says {becomes:?}: {received:?}")),
    }
}

#[test]
fn every_dialect_is_in_the_matrix() {
    let spoken: Vec<_> = DIALECTS.iter().map(|dialect_row| dialect_row.name).collect();
    let own = |name: &&DialectName| **name != DialectName::Canonical;
    assert_eq!(spoken, DialectName::ALL.iter().filter(own).copied().collect::<Vec<_>>());
}

#[tokio::test]
async fn a_reply_reaches_every_host_and_is_never_milder() {
    let mut found = Vec::new();
    for hook in DIALECTS {
        for thing in HOOK_REPLIES {
            let Some(script) = (hook.says)(thing) else { continue };
            let yard = Yard::with(hook, &script).await;
            for host in DIALECTS {
                let received = yard.asked_by(host, &call()).await;
                let what = wrong(thing, host, &received);
                found.extend(
                    what.map(|what| format!("{} hook, {} host, {thing:?}: {what}", hook.name, host.name)),
                );
            }
            yard.close().await;
        }
    }
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}

/// One guard, configured once in each dialect, guards every host.
#[tokio::test]
async fn one_guard_blocks_for_every_host_from_every_dialect() {
    let mut blocked = 0;
    for hook in DIALECTS {
        let yard = Yard::with(hook, replies::GUARD).await;
        for host in DIALECTS {
            let received = yard.asked_by(host, &json!({ "command": "rm -rf /" })).await;
            assert_eq!(received.moves, Move::Refuses, "{} hook, {} host", hook.name, host.name);
            assert!(received.reason.contains(replies::REASON), "{received:?}");
            let harmless = yard.asked_by(host, &call()).await;
            assert_eq!((harmless.moves, harmless.input), (Move::AsUsual, call()));
            blocked += 1;
        }
        yard.close().await;
    }
    assert_eq!(blocked, DIALECTS.len().pow(2));
}

/// Changes that a host cannot be told, on events other than a tool call.
#[test]
fn a_change_that_would_be_lost_is_a_block() {
    let (before, after) = (json!({ "text": "t", "token": "s" }), json!({ "text": "t" }));
    let asked = json!({ "hook_event_name": "PermissionRequest", "session_id": "s", "tool_name": "T", "tool_input": before });
    let ran = json!({ "hook_event_name": "after_tool_dispatch", "session_id": "s", "run_id": "r", "tool_name": "T", "tool_output": before });
    let used = json!({ "hook_event_name": "PostToolUse", "session_id": "s", "tool_name": "T", "tool_response": before });
    let prompt = json!({ "hook_event_name": "UserPromptSubmit", "session_id": "s", "prompt": "before" });
    let cases = [
        (DialectName::Claude, &asked, Target::ToolInput, Verdict::Proceed, r#""behavior":"deny""#),
        (DialectName::Claude, &asked, Target::ToolInput, Verdict::Ask, r#""behavior":"deny""#),
        (DialectName::Claude, &asked, Target::ToolInput, Verdict::Allow, r#""behavior":"allow""#),
        (DialectName::Claude, &prompt, Target::Prompt, Verdict::Allow, r#""decision":"block""#),
        (DialectName::Qwen, &asked, Target::ToolInput, Verdict::Proceed, r#""behavior":"deny""#),
        (DialectName::Qwen, &asked, Target::ToolInput, Verdict::Allow, r#""behavior":"allow""#),
        (DialectName::Qwen, &prompt, Target::Prompt, Verdict::Allow, r#""decision":"block""#),
        (DialectName::Qwen, &used, Target::ToolOutput, Verdict::Proceed, r#""continue":false"#),
        (DialectName::Copilot, &asked, Target::ToolInput, Verdict::Allow, r#""behavior":"deny""#),
        (DialectName::Copilot, &used, Target::ToolOutput, Verdict::Proceed, r#""modifiedResult":"#),
        (DialectName::Copilot, &prompt, Target::Prompt, Verdict::Allow, r#""decision":"block""#),
        (DialectName::OpenHarness, &ran, Target::ToolOutput, Verdict::Proceed, r#""decision":"block""#),
        (DialectName::OpenHarness, &ran, Target::ToolOutput, Verdict::Halt, r#""continue":false"#),
    ];
    for (host, event, target, verdict, expected) in cases {
        let event = named(host).read_event(event.to_string().as_bytes()).unwrap();
        let mut outcome = Outcome::proceed(hookyard::run::next_decision_id(), event.kind, 1);
        outcome.verdict = verdict;
        outcome.patched.set(target, Json::parse(&after.to_string()).unwrap());
        let answer = named(host).write_response(&event, &outcome).stdout;
        assert!(answer.contains(expected), "{host}, {verdict}: {answer}");
    }
}

/// The rows of the matrix, as the page shows them: a row for each pair, a column for each thing.
fn page_rows() -> String {
    let titles = HOOK_REPLIES.map(HookReply::title).join(" | ");
    let mut rows =
        format!("| hook | host | {titles} |\n| --- | --- |{}", " --- |".repeat(HOOK_REPLIES.len()));
    for (hook, host) in DIALECTS.iter().flat_map(|hook| DIALECTS.iter().map(move |host| (hook, host))) {
        write!(rows, "\n| {} | {} |", hook.name, host.name).unwrap();
        for thing in HOOK_REPLIES {
            let cell = match (hook.says)(thing) {
                None => "",
                Some(_) => instead(thing, host).map_or("yes", |becomes| becomes.title(thing)),
            };
            write!(rows, " {cell} |").unwrap();
        }
    }
    rows + "\n"
}

#[test]
fn the_page_shows_the_matrix() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/dialects.md");
    let text = fs::read_to_string(&page).unwrap();
    let start = text.find("| hook | host |").expect("a table");
    let length = text[start..].find("\n\n").map_or(text.len() - start, |end| end + 1);
    if std::env::var_os("UPDATE_CASES").is_some() {
        fs::write(&page, format!("{}{}{}", &text[..start], page_rows(), &text[start + length..])).unwrap();
    } else {
        assert_eq!(&text[start..start + length], page_rows(), "UPDATE_CASES=1 writes it anew");
    }
}
