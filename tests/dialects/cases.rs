//! The dialects of agents with settings files, as data. Each folder of `tests/cases/<dialect>` is one case: settings
//! files, scripts, and `case.json` with events of a host and what each is answered. `UPDATE_CASES=1` writes the
//! answers anew, to be read before they are kept.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use hookyard::{
    Orchestrator,
    config::Settings,
    dialect::named,
    model::{Diagnostic, DialectName, Event, EventKind, Hook, Outcome, RawReply, Verdict},
};
use serde_json::{Map, Value, json};
use tempfile::TempDir;

/// A workspace and the directories around it, made of the files of a case.
struct Bench {
    directory: TempDir,
}

impl Bench {
    fn of(case: &Path, dialect: DialectName) -> Self {
        let bench = Self { directory: tempfile::tempdir().unwrap() };
        for folder in ["workspace", "home", "system"] {
            fs::create_dir(bench.path(folder)).unwrap();
        }
        let settings = match dialect {
            DialectName::Clawd => ".clawdcode".to_owned(),
            other => format!(".{other}"),
        };
        for entry in fs::read_dir(case).unwrap() {
            let from = entry.unwrap().path();
            let name = from.file_name().unwrap().to_str().unwrap();
            let to = match name {
                "case.json" | "expected.txt" => continue,
                "managed.json" if dialect == DialectName::Gemini => {
                    "system/gemini-cli/settings.json".to_owned()
                }
                "managed.json" => "system/claude-code/managed-settings.json".to_owned(),
                "user.json" => format!("home/{settings}/settings.json"),
                "project.json" => format!("workspace/{settings}/settings.json"),
                "claude.json" => "workspace/.claude/settings.json".to_owned(),
                "local.json" => format!("workspace/{settings}/settings.local.json"),
                "own.yaml" => "workspace/.openharness/settings.yaml".to_owned(),
                name if from.extension().is_some_and(|extension| extension == "yaml") => {
                    format!("workspace/.openharness/hooks/{name}")
                }
                name => format!("workspace/{name}"),
            };
            let to = bench.path(&to);
            fs::create_dir_all(to.parent().unwrap()).unwrap();
            fs::copy(&from, &to).unwrap();
            fs::set_permissions(&to, fs::Permissions::from_mode(0o755)).unwrap();
        }
        bench
    }

    fn path(&self, below: &str) -> PathBuf {
        self.directory.path().canonicalize().unwrap().join(below)
    }

    fn settings(&self) -> Settings {
        Settings {
            home: Some(self.path("home")),
            system_directory: Some(self.path("system")),
            ..Settings::default()
        }
    }

    async fn start(&self) -> Orchestrator {
        let builder = Orchestrator::builder().workspace(self.path("workspace"));
        builder.settings(self.settings()).start().await.unwrap()
    }

    /// A text without the places of this one run.
    fn plain(&self, text: &str) -> String {
        text.replace(self.directory.path().canonicalize().unwrap().to_str().unwrap(), "$DIR")
    }
}

fn cases(below: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases").join(below);
    let mut cases: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    cases.sort();
    cases
}

fn updating() -> bool {
    std::env::var_os("UPDATE_CASES").is_some()
}

/// What is worth telling of an outcome.
fn told(outcome: &Outcome) -> Value {
    let mut told = serde_json::to_value(outcome).unwrap();
    let fields = told.as_object_mut().unwrap();
    for field in ["decision_id", "snapshot_version", "event"] {
        fields.remove(field);
    }
    if fields["suppress_output"] == json!(false) {
        fields.remove("suppress_output");
    }
    for hook in fields["hooks"].as_array_mut().unwrap() {
        let hook = hook.as_object_mut().unwrap();
        hook.remove("duration_ms");
        hook.remove("handler");
    }
    told
}

fn answer(host: DialectName, event: &Event, outcome: &Outcome) -> Value {
    let answer = named(host).write_response(event, outcome);
    let mut told = Map::new();
    let stdout = serde_json::from_str(&answer.stdout).unwrap_or(Value::String(answer.stdout));
    told.insert("stdout".into(), stdout);
    if answer.exit_code != 0 || !answer.stderr.is_empty() {
        told.insert("stderr".into(), answer.stderr.into());
        told.insert("exit_code".into(), answer.exit_code.into());
    }
    Value::Object(told)
}

/// Takes out of an envelope what differs from one arrival to the next, once its form is right.
fn hide_arrival(told: &mut Value, event: &Event) {
    let forms = [
        ("timestamp", "0000-00-00T00:00:00.000Z"),
        ("hook_execution_id", "00000000-0000-8000-8000-000000000000"),
    ];
    for (name, form) in forms {
        let said = event.extra.iter().any(|(known, _)| **known == *name);
        let Some(text) = told.get(name).and_then(Value::as_str).filter(|_| !said) else { continue };
        let marks = |text: &str| text.chars().filter(|c| "-T:.Z".contains(*c)).collect::<String>();
        assert_eq!(marks(text), marks(form), "{name}");
        told[name] = form.into();
    }
}

fn messages(diagnostics: &[Diagnostic]) -> Vec<String> {
    diagnostics.iter().map(|d| format!("{}: {d}", format!("{:?}", d.severity).to_lowercase())).collect()
}

/// The case with everything that is computed in it.
async fn computed(folder: &Path, dialect: DialectName, case: &Map<String, Value>) -> Map<String, Value> {
    let bench = Bench::of(folder, dialect);
    let orchestrator = bench.start().await;
    let host = match case.get("host").and_then(Value::as_str) {
        Some(name) => DialectName::ALL.iter().copied().find(|known| known.as_str() == name).unwrap(),
        None => dialect,
    };
    let mut found = case.clone();
    let report = orchestrator.load_reports().into_values().next().unwrap();
    if report.diagnostics.is_empty() {
        found.remove("diagnostics");
    } else {
        found.insert("diagnostics".into(), messages(&report.diagnostics).into());
    }
    let mut answers = Vec::new();
    for event in case["events"].as_array().unwrap() {
        let event = orchestrator.read(host, event.to_string().as_bytes()).unwrap();
        let outcome = orchestrator.dispatch(event.clone()).await.unwrap();
        let mut both = json!({ "outcome": told(&outcome), "answer": answer(host, &event, &outcome) });
        let seen = bench.path("workspace/told.json");
        if let Ok(text) = fs::read_to_string(&seen) {
            both["told"] = serde_json::from_str(&text).unwrap_or(Value::String(text));
            hide_arrival(&mut both["told"], &event);
            fs::remove_file(seen).unwrap();
        }
        answers.push(both);
    }
    found.insert("expected".into(), answers.into());
    orchestrator.shutdown(std::time::Duration::from_secs(5)).await;
    let text = bench.plain(&serde_json::to_string(&found).unwrap());
    serde_json::from_str(&text).unwrap()
}

async fn hold(dialect: DialectName) {
    let cases = cases(dialect.as_str());
    assert!(cases.len() >= 40, "only {} cases", cases.len());
    let mut wrong = Vec::new();
    for folder in cases {
        let file = folder.join("case.json");
        let case: Map<String, Value> = serde_json::from_str(&fs::read_to_string(&file).unwrap())
            .unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        let found = computed(&folder, dialect, &case).await;
        if updating() {
            fs::write(&file, serde_json::to_string_pretty(&found).unwrap() + "\n").unwrap();
        } else if found != case {
            let (found, case) = (Value::Object(found), Value::Object(case));
            wrong.push(format!("{}\nexpected: {case:#}\nfound: {found:#}\n", folder.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn every_case_of_claude_holds() {
    hold(DialectName::Claude).await;
}

#[tokio::test]
async fn every_case_of_gemini_holds() {
    hold(DialectName::Gemini).await;
}

#[tokio::test]
async fn every_case_of_codebuddy_holds() {
    hold(DialectName::CodeBuddy).await;
}

#[tokio::test]
async fn every_case_of_clawd_holds() {
    hold(DialectName::Clawd).await;
}

/// Each folder of `bad-settings` has a settings file with mistakes, and what is said of them.
#[tokio::test]
async fn bad_settings_cost_the_entry_they_are_in() {
    let mut wrong = Vec::new();
    for folder in cases("bad-settings") {
        let name = folder.file_name().unwrap().to_str().unwrap().to_owned();
        let own = [DialectName::Clawd, DialectName::Gemini];
        let dialect = own.into_iter().find(|dialect| name.starts_with(&format!("{dialect}-")));
        let bench = Bench::of(&folder, dialect.unwrap_or(DialectName::Claude));
        let orchestrator = bench.start().await;
        let report = orchestrator.load_reports().into_values().next().unwrap();
        let mut lines = messages(&report.diagnostics);
        let snapshot = orchestrator.snapshot(None).unwrap();
        lines.extend(snapshot.hooks().iter().map(|known| format!("loaded: {}", known.hook.name)));
        let found = bench.plain(&lines.join("\n")) + "\n";
        let file = folder.join("expected.txt");
        if updating() {
            fs::write(&file, &found).unwrap();
        }
        let expected = fs::read_to_string(&file).unwrap_or_default();
        if found != expected {
            wrong.push(format!("{}\nexpected:\n{expected}found:\n{found}", folder.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A user may keep settings elsewhere and link to them; a workspace may not lead hookyard out of it.
#[tokio::test]
async fn files_are_read_only_where_they_may_be() {
    let hook = r#"{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"true"}]}]}}"#;
    let bench = Bench { directory: tempfile::tempdir().unwrap() };
    for folder in ["workspace/.claude", "home/.claude", "dotfiles", "system/claude-code"] {
        fs::create_dir_all(bench.path(folder)).unwrap();
    }
    fs::write(bench.path("dotfiles/claude.json"), hook).unwrap();
    let link =
        |at: &str| std::os::unix::fs::symlink(bench.path("dotfiles/claude.json"), bench.path(at)).unwrap();
    link("home/.claude/settings.json");
    link("workspace/.claude/settings.json");
    let fifo = bench.path("workspace/.claude/settings.local.json");
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    fs::write(bench.path("system/claude-code/managed-settings.json"), " ".repeat(300 << 10)).unwrap();
    let orchestrator = bench.start().await;
    let report = orchestrator.load_reports().into_values().next().unwrap();
    let found = bench.plain(&messages(&report.diagnostics).join("\n"));
    let expected = "error: $DIR/system/claude-code/managed-settings.json: the file is larger than the 262144 bytes allowed\n\
                    error: $DIR/workspace/.claude/settings.json: the file is a symbolic link that leads outside the workspace\n\
                    error: $DIR/workspace/.claude/settings.local.json: the file is not a regular file";
    assert_eq!(found, expected);
    let snapshot = orchestrator.snapshot(None).unwrap();
    let names: Vec<_> = snapshot.hooks().iter().map(|known| known.hook.name.to_string()).collect();
    assert_eq!(names, ["claude.user.Stop.1.1"]);
}

/// The same script in two dialects runs twice, and the second is warned of.
#[tokio::test]
async fn twins_in_two_dialects_are_warned_of() {
    let bench = Bench { directory: tempfile::tempdir().unwrap() };
    let hook = r#"{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"true"}]}]}}"#;
    for folder in ["workspace/.claude", "workspace/.codebuddy"] {
        fs::create_dir_all(bench.path(folder)).unwrap();
        fs::write(bench.path(folder).join("settings.json"), hook).unwrap();
    }
    fs::create_dir_all(bench.path("workspace/.gemini")).unwrap();
    let gemini = hook.replace("Stop", "AfterAgent");
    fs::write(bench.path("workspace/.gemini/settings.json"), gemini).unwrap();
    let orchestrator = bench.start().await;
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
    let bench = Bench { directory: tempfile::tempdir().unwrap() };
    let path = bench.path("workspace").join(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, settings.to_string()).unwrap();
    let orchestrator = bench.start().await;
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
        "PostToolBatch",
        "ConfigChange",
        "TaskCreated",
        "TaskCompleted",
        "TeammateIdle",
        "Elicitation",
    ];
    let bench = Bench { directory: tempfile::tempdir().unwrap() };
    fs::create_dir_all(bench.path("workspace/.claude")).unwrap();
    let hook =
        |name: &str| json!([{ "hooks": [{ "type": "command", "command": format!(": {name}; exit 2") }] }]);
    let hooks: Map<String, Value> = names.iter().map(|name| ((*name).to_owned(), hook(name))).collect();
    let settings = json!({ "hooks": hooks }).to_string();
    fs::write(bench.path("workspace/.claude/settings.json"), settings).unwrap();
    let orchestrator = bench.start().await;
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
async fn a_hook_that_had_its_only_turn_has_had_it() {
    let bench = Bench { directory: tempfile::tempdir().unwrap() };
    fs::create_dir_all(bench.path("workspace/.codebuddy")).unwrap();
    let hook = r#"{"hooks":{"SessionStart":[{"hooks":[{"type":"command","command":"echo hello"}]}]}}"#;
    fs::write(bench.path("workspace/.codebuddy/settings.json"), hook).unwrap();
    let settings = Settings { run_idle: std::time::Duration::from_millis(10), ..bench.settings() };
    let builder = Orchestrator::builder().workspace(bench.path("workspace")).settings(settings);
    let orchestrator = builder.start().await.unwrap();
    let event = r#"{"session_id":"s","hook_event_name":"SessionStart","source":"resume"}"#;
    let start = || orchestrator.dispatch_json(DialectName::CodeBuddy, event.as_bytes());
    assert_eq!(start().await.unwrap().notes.len(), 1);
    let passivated = async {
        while orchestrator.run_count().active > 0 {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(20), passivated).await.unwrap();
    assert_eq!(start().await.unwrap().notes.len(), 0);
}
