//! The schemas and the readers agree: each change to a good file is wrong for both or for neither.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    time::Duration,
};

use hookyard::{
    config::Settings,
    dialect::{HookRules, ReferenceLookup, ResolvedPath, UnixSockets, UnsafeVariables, named, read_hook},
    model::{
        Diagnostic, DialectName, Ended, EventKind, HandlerKind, HookName, HookReport, Json, Model,
        ModelAccess, Note, NoteKind, Outcome, Secret, SecretText, Severity, Target, Targets, TokenUsage,
        Verdict,
    },
};
use serde_json::{Value, json};

use crate::authoring::schemas::{objections, printed};

/// A machine on which everything is, with agents of these keys.
struct Anywhere(String);

impl ReferenceLookup for Anywhere {
    fn variable(&self, _: &str) -> Option<SecretText> {
        Some("value".into())
    }

    fn secret(&self, _: &str) -> Result<Secret, (String, String)> {
        Ok(Secret::new("secret-value"))
    }

    fn directory(&self, relative: &str) -> ResolvedPath {
        if leads_out(relative) {
            ResolvedPath::Refused("outside".to_owned())
        } else {
            ResolvedPath::Found(relative.into())
        }
    }

    fn program(&self, name: &str, _: &Path) -> ResolvedPath {
        ResolvedPath::Found(name.into())
    }

    fn text_file(&self, relative: &str) -> Result<String, String> {
        if leads_out(relative) { Err("outside".to_owned()) } else { Ok("text".to_owned()) }
    }

    fn agent_file(&self, name: &str) -> Result<(PathBuf, Vec<u8>), (String, String)> {
        if name.starts_with('.') || HookName::new(name).is_err() {
            return Err(("no name".to_owned(), String::new()));
        }
        Ok(("agent.md".into(), format!("---\n{}\n---\nYou are one.\n", self.0).into()))
    }

    fn model(&self, reference: &str) -> Result<Model, (String, String)> {
        Ok(Model { reference: reference.into(), access: ModelAccess::Host })
    }
}

/// As the disk has it, whose tests say so.
fn leads_out(path: &str) -> bool {
    path.starts_with('/') || path.starts_with("../")
}

const RULES: HookRules = HookRules {
    default_timeout: Duration::from_mins(1),
    max_timeout: Duration::from_hours(1),
    unsafe_variables: UnsafeVariables::Allowed,
    unix_sockets: UnixSockets::Allowed,
};

fn errors(diagnostics: Vec<Diagnostic>) -> Vec<String> {
    let errors = diagnostics.into_iter().filter(|diagnostic| diagnostic.severity == Severity::Error);
    errors.map(|diagnostic| diagnostic.to_string()).collect()
}

/// What the reader of hook files has against one. Every JSON text is YAML.
fn hook_file(value: &Value) -> Vec<String> {
    let machine = Anywhere("model_ref: m".to_owned());
    errors(read_hook(value.to_string().as_bytes(), Path::new("h.yaml"), &RULES, &machine).1)
}

fn agent(value: &Value) -> Vec<String> {
    errors(agent_remarks(value))
}

/// What is said about the file of an agent, warnings too.
fn agent_remarks(value: &Value) -> Vec<Diagnostic> {
    let hook = json!({
        "name": "a", "events": ["run_failed"],
        "handler": { "type": "agent", "agent": "a", "task": { "inline": "x" } },
    });
    let machine = Anywhere(value.to_string());
    read_hook(hook.to_string().as_bytes(), Path::new("h.yaml"), &RULES, &machine).1
}

fn settings(value: &Value) -> Vec<String> {
    errors(Settings::from_yaml(&value.to_string(), Path::new("s.yaml")).1)
}

fn event(value: &Value) -> Vec<String> {
    let read = named(DialectName::Canonical).read_event(value.to_string().as_bytes());
    read.err().map(|error| error.to_string()).into_iter().collect()
}

fn good_hooks() -> Vec<Value> {
    let shared = json!({
        "name": "a", "events": ["before_tool_dispatch", "after_tool_dispatch"], "matcher": "Bash",
        "capabilities": ["rewrite_tool_request", "suppress_output"], "priority": 3, "enabled": true,
        "on_error": "deny", "on_timeout": "ask",
    });
    let text = json!({ "inline": "x" });
    [
        json!({ "type": "command", "command": "true", "cwd": "src", "environment": { "A": "b", "C": "${env.D}" },
                "mode": "oneshot" }),
        json!({ "type": "command", "command": "true",
                "sandbox": { "filesystem": "read_only", "write": ["build"], "network": "none", "require": true,
                             "limits": { "cpu_seconds": 5, "memory_mib": 5, "files": 5, "processes": 5,
                                         "file_size_mib": 5 } } }),
        json!({ "type": "command", "args": ["sh", "x"], "mode": "prespawn", "spares": 2, "timeout_seconds": 1.5 }),
        json!({ "type": "command", "command": "true", "mode": "worker", "workers": 2, "max_requests": 5,
                "max_idle_seconds": 5, "max_age_seconds": 5, "max_rss_mib": 5, "max_concurrency": 3 }),
        json!({ "type": "http", "url": "https://example.com/x?y=z", "method": "PUT",
                "headers": { "X-A": "b" }, "timeout_seconds": 1, "max_concurrency": 1 }),
        json!({ "type": "http", "url": "unix:/run/x.sock:/route" }),
        json!({ "type": "prompt", "prompt": text, "model_ref": "m", "timeout_seconds": 1, "max_concurrency": 1 }),
        json!({ "type": "prompt", "prompt": { "file": "a/b.md" }, "model_ref": "m" }),
        json!({ "type": "agent", "agent": "a", "task": text, "timeout_seconds": 1, "max_concurrency": 1 }),
    ]
    .map(|handler| {
        let mut hook = shared.clone();
        hook["handler"] = handler;
        hook
    })
    .into()
}

fn good_settings() -> Value {
    let mut settings: Value = serde_yaml::from_str(include_str!("../../../config/hookyard.yaml")).unwrap();
    settings["listen"] =
        json!({ "socket": "/run/h.sock", "tcp": "127.0.0.1:8787", "token_file": "/etc/token" });
    settings["audit"]["to"] = json!("/var/log/audit.jsonl");
    settings["workspaces"] = json!({
        "shop": { "root": "/srv/shop", "kind": "chat", "dialects": ["claude", "openharness"] },
        "two words": { "root": "/srv/two", "dialects": "auto" },
    });
    settings["workspace_roots"] = json!(["/srv", "/home"]);
    settings["pass_environment"] = json!(["CI", "AWS_*"]);
    settings["home"] = json!("/home/me");
    settings["models"] = json!({
        "platform/a": { "api": "openai", "base_url": "http://127.0.0.1:1/v1", "model": "m", "key": "${secrets.A}",
                        "json": "words", "max_output_tokens": 5, "max_input": "1KiB", "temperature": 0.5,
                        "workspaces": ["shop"] },
        "b": { "api": "anthropic", "model": "m" },
    });
    settings
}

fn good_events() -> Vec<Value> {
    let full = json!({
        "session_id": "s", "run_id": "r", "event_id": "e", "workspace_id": "w", "tool_call_id": "c", "cwd": "/x",
        "wait": true, "agent_name": "a", "effective_agent_name": "b", "model_ref": "m", "tool_name": "t",
        "trigger_type": "x", "run_status": "x", "source": "x", "reason": "x", "trigger": "x",
        "notification_type": "x", "message": "x", "agent_type": "x", "prompt": "p", "context": {},
        "model_request": {}, "model_response": {}, "tool_config": {}, "tool_input": {}, "tool_output": "x",
        "something_else": [1],
    });
    let kinds = EventKind::ALL.iter().filter(|kind| **kind != EventKind::HostEvent);
    let with = |kind: &EventKind| {
        let mut event = full.clone();
        event["event"] = json!(kind.as_str());
        event
    };
    kinds.map(with).collect()
}

/// What is put in the place of each value.
fn others() -> Vec<Value> {
    vec![
        Value::Null,
        json!(true),
        json!(0),
        json!(7),
        json!(-1),
        json!(1.5),
        json!(9_000_000_000_000_i64),
        json!(""),
        json!(" "),
        json!("zzz"),
        json!("*"),
        json!("../x"),
        json!("/x"),
        json!("60s"),
        json!("0s"),
        json!("1.5 KiB"),
        json!("a\u{0}b"),
        json!("x".repeat(300)),
        json!("name with spaces"),
        json!("worker"),
        json!("run_failed"),
        json!("patch_tool_output"),
        json!("https://user:word@example.com"),
        json!("ftp://example.com"),
        json!([]),
        json!([1]),
        json!(["zzz"]),
        json!(["before_tool_dispatch"]),
        json!({}),
        json!({ "zzz": 1 }),
        json!({ "A B": "x" }),
    ]
}

/// The places in a value, as JSON pointers.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    let inner: Vec<(String, &Value)> = match value {
        Value::Object(keys) => keys.iter().map(|(key, value)| (key.replace('/', "~1"), value)).collect(),
        Value::Array(items) => items.iter().enumerate().map(|(n, value)| (n.to_string(), value)).collect(),
        _ => Vec::new(),
    };
    for (key, value) in inner {
        let at = format!("{at}/{key}");
        places(value, &at, found);
        found.push(at);
    }
}

/// A value with one thing changed, and what was changed.
fn changed(good: &Value) -> Vec<(String, Value)> {
    let mut found = Vec::new();
    places(good, "", &mut found);
    let mut changes = Vec::new();
    for place in &found {
        for other in others() {
            let mut value = good.clone();
            *value.pointer_mut(place).unwrap() = other.clone();
            changes.push((format!("{place} = {other}"), value));
        }
        let (parent, key) = place.rsplit_once('/').unwrap();
        let mut value = good.clone();
        if let Value::Object(keys) = value.pointer_mut(parent).unwrap() {
            keys.remove(&key.replace("~1", "/"));
            changes.push((format!("{place} left out"), value));
        }
    }
    for place in found.iter().map(String::as_str).chain([""]) {
        let mut value = good.clone();
        if let Value::Object(keys) = value.pointer_mut(place).unwrap() {
            keys.insert("unknown".to_owned(), json!("x"));
            changes.push((format!("{place}/unknown added"), value));
        }
    }
    changes
}

/// Changes about which the reader and the schema do not agree, with what each says.
fn disagreements(name: &str, good: &[Value], read: fn(&Value) -> Vec<String>) -> Vec<String> {
    let mut wrong = BTreeSet::new();
    for good in good {
        assert_eq!((read(good), objections(name, good)), (Vec::new(), Vec::new()), "{good}");
        for (what, value) in changed(good) {
            let (by_reader, by_schema) = (read(&value), objections(name, &value));
            if by_reader.is_empty() != by_schema.is_empty() {
                let what: String = what.chars().take(90).collect();
                wrong.insert(format!("{what}: reader {by_reader:?}, schema {by_schema:?}"));
            }
        }
    }
    wrong.into_iter().collect()
}

#[track_caller]
fn agree(name: &str, good: &[Value], read: fn(&Value) -> Vec<String>, excused: &[&str]) {
    let mut wrong = disagreements(name, good, read);
    wrong.retain(|line| !excused.iter().any(|excuse| line.contains(excuse)));
    assert!(wrong.is_empty(), "{} disagreements\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn about_hook_files_they_agree() {
    // The longest timeout is a setting.
    agree("hook-file", &good_hooks(), hook_file, &["timeout_seconds = 9000000000000"]);
}

#[test]
fn about_rules_they_agree() {
    let shared = json!({
        "name": "a", "events": ["before_tool_dispatch"], "capabilities": ["rewrite_tool_request"],
    });
    let rule = json!({ "let": { "x": "1" }, "halt": "x == 2", "deny": "false || x == 3", "ask": "x > 4",
        "allow": "x < 1", "reason": "'r'", "context": "null", "message": "'m'", "patch": { "tool_input": "{}" } });
    let mut handlers =
        [rule.clone(), json!({ "facts": { "f": "f.txt" }, "rules": [rule, { "deny": "'a' in facts.f" }] })];
    handlers[1]["rules"][0]["name"] = "one".into();
    let hooks = handlers.map(|mut handler| {
        handler["type"] = "rule".into();
        let mut hook = shared.clone();
        hook["handler"] = handler;
        hook
    });
    // What is right in an expression is known to the reader alone.
    let is_of_expression = |line: &String| {
        line.ends_with("schema []") && !line.contains("unknown key") && !line.contains("must be a")
    };
    let mut wrong = disagreements("hook-file", &hooks, hook_file);
    wrong.retain(|line| !is_of_expression(line));
    assert!(wrong.is_empty(), "{} disagreements\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn about_agents_they_agree() {
    let good =
        json!({ "model_ref": "m", "tools": ["grep", "glob"], "max_turns": 3, "description": "For tests." });
    // The reader ignores a key that it does not know, as OpenHarness does, and warns of it.
    agree("agent", &[good], agent, &["/unknown added"]);
}

#[test]
fn about_settings_they_agree() {
    agree("settings", &[good_settings()], settings, &[]);
}

#[test]
fn about_events_they_agree() {
    agree("event", &good_events(), event, &[]);
}

/// The keys that the reader names where it is given another one.
fn known(errors: &[String]) -> BTreeSet<String> {
    let list = errors
        .iter()
        .find_map(|error| error.split("known are ").nth(1))
        .unwrap_or_else(|| panic!("{errors:?}"));
    list.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

fn properties(schema: &Value) -> BTreeSet<String> {
    schema["properties"].as_object().unwrap().keys().cloned().collect()
}

#[test]
fn the_keys_are_those_of_the_readers() {
    let schema = printed("hook-file");
    assert_eq!(properties(schema), known(&hook_file(&json!({ "qqqqqqqq": 1 }))));
    for (name, shape) in [
        ("command", "CommandHandler"),
        ("http", "HttpHandler"),
        ("prompt", "PromptHandler"),
        ("agent", "AgentHandler"),
        ("rule", "RuleHandler"),
    ] {
        let hook =
            json!({ "name": "a", "events": ["run_failed"], "handler": { "type": name, "qqqqqqqq": 1 } });
        assert_eq!(properties(&schema["$defs"][shape]), known(&hook_file(&hook)), "{name}");
    }
    let remarks = agent_remarks(&json!({ "qqqqqqqq": 1 }));
    let remarks: Vec<String> = remarks.iter().map(ToString::to_string).collect();
    assert_eq!(properties(printed("agent")), known(&remarks));
    let schema = printed("settings");
    for path in ["", "/pools", "/pools/command", "/pools/native", "/limits", "/audit", "/listen", "/secrets"]
    {
        let mut text = json!({ "qqqqqqqq": 1 });
        for key in path.split('/').skip(1).collect::<Vec<_>>().into_iter().rev() {
            text = json!({ key: text });
        }
        let part = schema.pointer(&path.replace('/', "/properties/")).unwrap();
        assert_eq!(properties(part), known(&settings(&text)), "{path}");
    }
    let workspace = json!({ "workspaces": { "a": { "root": "/a", "qqqqqqqq": 1 } } });
    let part = &schema["properties"]["workspaces"]["additionalProperties"];
    assert_eq!(properties(part), known(&settings(&workspace)));
    let model = json!({ "models": { "a": { "api": "openai", "model": "m", "qqqqqqqq": 1 } } });
    assert_eq!(properties(&schema["properties"]["models"]["additionalProperties"]), known(&settings(&model)));
}

/// An outcome with everything in it.
fn full_outcome(kind: NoteKind) -> Outcome {
    let hook = HookName::new("a").unwrap();
    let mut patched = Targets::default();
    for target in Target::ALL {
        patched.set(target, Json::parse("{}").unwrap());
    }
    let mut report = HookReport::new(hook.clone(), HandlerKind::Agent, Ended::Failed);
    report.verdict = Verdict::Ask;
    report.patched = vec![Target::ToolInput];
    report.duration = Duration::from_millis(3);
    report.queued = Duration::from_millis(20);
    report.tokens = Some(TokenUsage { input: 1, output: 2 });
    report.error = Some("x".into());
    report.warnings = vec!["x".to_owned()];
    let mut outcome = Outcome::proceed(hookyard::run::next_decision_id(), EventKind::BeforeToolDispatch, 1);
    outcome.verdict = Verdict::Block;
    outcome.reason = Some("x".into());
    outcome.by = Some(hook.clone());
    outcome.patched = patched;
    outcome.notes = vec![Note::new(hook, kind, "x")];
    outcome.suppress_output = true;
    outcome.native = vec![("x".into(), Json::parse("1").unwrap())];
    outcome.hooks = vec![report];
    outcome
}

#[test]
fn an_outcome_with_everything_has_every_key_of_its_schema() {
    for kind in [NoteKind::SystemMessage, NoteKind::AdditionalContext, NoteKind::LoopBroken] {
        let outcome = serde_json::to_value(full_outcome(kind)).unwrap();
        assert_eq!(objections("outcome", &outcome), Vec::<String>::new());
        let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<BTreeSet<_>>();
        let schema = printed("outcome");
        assert_eq!(properties(schema), keys(&outcome));
        assert_eq!(properties(&schema["$defs"]["Report"]), keys(&outcome["hooks"][0]));
        assert_eq!(properties(&schema["$defs"]["Note"]), keys(&outcome["notes"][0]));
        assert_eq!(properties(&schema["$defs"]["Tokens"]), keys(&outcome["hooks"][0]["tokens"]));
    }
    let least =
        serde_json::to_value(Outcome::proceed(hookyard::run::next_decision_id(), EventKind::RunFailed, 0))
            .unwrap();
    assert_eq!(objections("outcome", &least), Vec::<String>::new());
}
