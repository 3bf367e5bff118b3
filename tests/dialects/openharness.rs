//! The OpenHarness dialect: as data in `tests/cases/openharness`, and what holds for any input.

use std::{sync::Arc, time::Duration};

use hookyard::{
    dialect::named,
    model::{
        CommandHandler, CommandLine, CommandMode, DialectName, Draft, ExecutionPolicy, Failure, Handler,
        Hook, HookName, HookSource, Json, JsonFields, Note, NoteKind, Outcome, Patch, RawReply, Reply, Scope,
        Target, Verdict, Workspace, WorkspaceId,
    },
};
use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::support::cases::{Comparison, case_files};

/// An event, and any of: what a hook receives, how its reply is read, what the event's target is with the reply's
/// patches, and how an outcome is written for the host.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct OpenHarnessCase {
    name: String,
    about: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    host: Option<String>,
    event: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    envelope: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reply: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reads: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    folded: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    outcome: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    answer: Option<Value>,
}

fn place() -> Workspace {
    Workspace::new(WorkspaceId::new("shop").unwrap(), "/srv/shop")
}

fn hook() -> Hook {
    Hook {
        name: HookName::new("guard").unwrap(),
        dialect: named(DialectName::OpenHarness),
        events: [].into_iter().collect(),
        matcher: None,
        handler: Handler::Command(CommandHandler {
            line: CommandLine::Shell("true".into()),
            cwd: "/srv/shop".into(),
            environment: Vec::new(),
            mode: CommandMode::Oneshot,
            sandbox: None,
        }),
        capabilities: [].into_iter().collect(),
        priority: 0,
        enabled: true,
        timeout: Duration::from_mins(1),
        max_concurrency: None,
        on_error: hookyard::model::FailurePolicy::Ignore,
        on_timeout: hookyard::model::FailurePolicy::Ignore,
        execution: ExecutionPolicy::default(),
        source: HookSource {
            scope: Scope::Project,
            file: None,
            line: 1,
            position: 0,
            content: None,
            bundle: None,
        },
        trust: hookyard::model::HookTrust::default(),
    }
}

fn draft(host: Option<&str>, event: &Value) -> Draft {
    let dialect = match host {
        Some("canonical") => DialectName::Canonical,
        _ => DialectName::OpenHarness,
    };
    let event = named(dialect).read_event(event.to_string().as_bytes()).unwrap();
    Draft::new(Arc::new(event))
}

fn raw(reply: &Value) -> RawReply {
    let bytes = |key: &str| match &reply[key] {
        Value::String(text) => text.clone().into_bytes().into(),
        Value::Array(bytes) => bytes.iter().map(|b| u8::try_from(b.as_u64().unwrap()).unwrap()).collect(),
        Value::Null => bytes::Bytes::new(),
        other => other.to_string().into_bytes().into(),
    };
    if let Some(text) = reply["text"].as_str() {
        RawReply::Text(text.to_owned())
    } else if let Some(status) = reply["status"].as_u64() {
        RawReply::Http { status: u16::try_from(status).unwrap(), body: bytes("body") }
    } else {
        RawReply::Command {
            exit_code: i32::try_from(reply["exit_code"].as_i64().unwrap_or(0)).unwrap(),
            stdout: bytes("stdout"),
            stderr: bytes("stderr"),
            truncated: reply["truncated"].as_bool().unwrap_or(false),
        }
    }
}

fn value(json: &Json) -> Value {
    json.read().unwrap()
}

fn described(read: &Result<Reply, Failure>) -> Value {
    let reply = match read {
        Ok(reply) => reply,
        Err(failure) => return json!({ "failed": failure.ended.as_str(), "message": failure.message }),
    };
    let mut described = Map::new();
    let (verdict, reason) = reply.decision.clone().into_parts();
    described.insert("verdict".into(), verdict.as_str().into());
    described.extend(reason.map(|reason| ("reason".into(), reason.into())));
    for patch in &reply.patches {
        let (name, value) = match patch {
            Patch::Target(target, json) | Patch::HooksOnly(target, json) => {
                (target.as_str().to_owned(), value(json))
            }
            Patch::Unsupported(name) => (name.clone(), "foreign".into()),
            other => panic!("a patch of {}", other.name()),
        };
        let patches = described.entry("patches").or_insert_with(|| json!({}));
        patches.as_object_mut().unwrap().insert(name, value);
    }
    for (kind, text) in &reply.notes {
        described
            .insert(serde_json::to_value(kind).unwrap().as_str().unwrap().to_owned(), text.as_str().into());
    }
    if reply.suppress_output {
        described.insert("suppress_output".into(), true.into());
    }
    if !reply.warnings.is_empty() {
        described.insert("warnings".into(), reply.warnings.clone().into());
    }
    Value::Object(described)
}

/// The event's target with all patches to it.
fn folded(draft: &Draft, reply: &Reply) -> Value {
    let target = draft.event().kind.target().unwrap();
    let mut current = draft.target(target).cloned();
    for patch in &reply.patches {
        if let Patch::Target(patched, json) = patch
            && *patched == target
        {
            current =
                Some(named(DialectName::OpenHarness).apply_patch(target, current.as_ref(), json).unwrap());
        }
    }
    current.as_ref().map_or(Value::Null, value)
}

fn outcome_of(draft: &Draft, written: &Value) -> Outcome {
    let mut outcome = Outcome::proceed(hookyard::run::next_decision_id(), draft.event().kind, 1);
    let verdict = written["verdict"].as_str().unwrap();
    outcome.verdict = Verdict::ALL.into_iter().find(|known| known.as_str() == verdict).unwrap();
    outcome.reason = written["reason"].as_str().map(Into::into);
    outcome.suppress_output = written["suppress_output"].as_bool().unwrap_or(false);
    for (name, value) in written["patched"].as_object().into_iter().flatten() {
        outcome.patched.set(Target::from_name(name).unwrap(), Json::parse(&value.to_string()).unwrap());
    }
    for note in written["notes"].as_array().into_iter().flatten() {
        let kind = match note["kind"].as_str() {
            Some("system_message") => NoteKind::SystemMessage,
            _ => NoteKind::AdditionalContext,
        };
        let text = note["text"].as_str().unwrap();
        outcome.notes.push(Note::new(HookName::new("guard").unwrap(), kind, text));
    }
    outcome
}

/// The case with everything that is computed in it.
fn computed(case: &OpenHarnessCase) -> OpenHarnessCase {
    let dialect = named(DialectName::OpenHarness);
    let draft = draft(case.host.as_deref(), &case.event);
    let mut computed = case.clone();
    if case.envelope.is_some() {
        computed.envelope = Some(serde_json::from_slice(&dialect.envelope(&draft, &place())).unwrap());
    }
    if let Some(reply) = &case.reply {
        let read = dialect.read_reply(&hook(), draft.event().kind, raw(reply));
        computed.reads = Some(described(&read));
        if case.folded.is_some() {
            computed.folded = Some(folded(&draft, &read.unwrap()));
        }
    }
    if let Some(outcome) = &case.outcome {
        let answer = dialect.write_response(draft.event(), &outcome_of(&draft, outcome));
        assert_eq!((answer.exit_code, answer.stderr.as_str()), (0, ""));
        computed.answer = Some(serde_json::from_str(&answer.stdout).unwrap());
    }
    computed
}

#[test]
fn every_case_holds() {
    let mut comparison = Comparison::default();
    for file in case_files::<OpenHarnessCase>("openharness") {
        let cases: Vec<_> = file.cases.iter().map(computed).collect();
        comparison.compare(&file, &cases);
    }
    comparison.finish(98);
}

#[test]
fn the_environment_of_a_command_has_its_directory_and_deadline() {
    let event = json!({ "hook_event_name": "run_failed", "session_id": "s", "run_id": "r" });
    let draft = draft(None, &event);
    let variables =
        named(DialectName::OpenHarness).environment(&draft, &place(), Duration::from_millis(1500));
    assert_eq!(
        variables,
        [
            ("OPENHARNESS_WORKSPACE_ROOT", "/srv/shop".to_owned()),
            ("HOOKYARD_EVENT", "run_failed".to_owned()),
            ("HOOKYARD_DEADLINE_MS", "1500".to_owned()),
        ]
    );
}

#[test]
fn later_hooks_receive_the_patched_values() {
    let event = json!({
        "hook_event_name": "before_tool_dispatch", "session_id": "s", "run_id": "r",
        "tool_name": "Bash", "tool_input": { "command": "ls" },
    });
    let mut draft = draft(None, &event);
    draft.set(Target::ToolInput, Json::parse(r#"{"command":"ls -a"}"#).unwrap());
    let envelope = named(DialectName::OpenHarness).envelope(&draft, &place());
    let envelope: Value = serde_json::from_slice(&envelope).unwrap();
    assert_eq!(envelope["tool_input"]["command"], "ls -a");
}

#[test]
fn patches_that_are_too_large_or_too_deep_are_refused() {
    let dialect = named(DialectName::OpenHarness);
    let read = |patch: String| {
        let stdout = format!(r#"{{"hookSpecificOutput":{{"patch":{{"tool_input":{patch}}}}}}}"#);
        let raw = RawReply::Http { status: 200, body: stdout.into() };
        dialect.read_reply(&hook(), hookyard::model::EventKind::BeforeToolDispatch, raw)
    };
    assert!(read(format!("\"{}\"", "x".repeat(8_000_000))).is_ok());
    let failure = read(format!("\"{}\"", "x".repeat(10_000_000))).unwrap_err();
    assert_eq!(failure.ended, hookyard::model::Ended::OutputTooLarge);
    assert!(failure.message.len() < 200, "{}", failure.message);
    let failure = read(format!("{}1{}", "[".repeat(200), "]".repeat(200))).unwrap_err();
    assert_eq!(failure.ended, hookyard::model::Ended::InvalidOutput);
    assert!(failure.message.len() < 500, "{}", failure.message);
}

/// JSON as hosts may write it: with spaces, escapes, and numbers that no type holds exactly.
fn json_text() -> impl Strategy<Value = String> {
    let number = prop_oneof![
        Just("-0".to_owned()),
        Just("18446744073709551616".to_owned()),
        Just("1.10000000000000000000000000001".to_owned()),
        Just("1E+2".to_owned()),
        any::<i64>().prop_map(|n| n.to_string()),
        (any::<i32>(), 0_u32..999).prop_map(|(whole, fraction)| format!("{whole}.{fraction:03}")),
    ];
    let text = prop_oneof![
        any::<String>().prop_map(|text| serde_json::to_string(&text).unwrap()),
        Just(r#""\u0041\/\ud83d\ude00""#.to_owned()),
    ];
    let leaf = prop_oneof![Just("null".to_owned()), Just("true".to_owned()), number, text];
    let space = prop_oneof![Just(""), Just(" "), Just("\n\t")];
    leaf.prop_recursive(4, 32, 6, move |inner| {
        let keys = prop_oneof!["[a-z_$]{1,8}", Just("__proto__".to_owned()), Just("\\r\\nX".to_owned())];
        prop_oneof![
            (prop::collection::vec(inner.clone(), 0..6), space.clone()).prop_map(|(items, space)| format!(
                "[{space}{}{space}]",
                items.join(&format!("{space},{space}"))
            )),
            (prop::collection::btree_map(keys, inner, 0..6), space.clone()).prop_map(|(entries, space)| {
                let entries: Vec<_> =
                    entries.iter().map(|(key, value)| format!("\"{key}\"{space}:{space}{value}")).collect();
                format!("{{{space}{}}}", entries.join(","))
            }),
        ]
    })
}

proptest! {
    #[test]
    fn a_tool_input_reaches_the_hooks_byte_for_byte(input in json_text()) {
        prop_assume!(Json::parse(&input).is_ok());
        let event = format!(
            r#"{{"hook_event_name":"before_tool_dispatch","session_id":"s","run_id":"r","tool_name":"Bash","tool_input": {input} ,"own":{input}}}"#
        );
        let dialect = named(DialectName::OpenHarness);
        let draft = Draft::new(Arc::new(dialect.read_event(event.as_bytes()).unwrap()));
        let envelope = dialect.envelope(&draft, &place());
        let fields: JsonFields<'_> = serde_json::from_slice(&envelope).unwrap();
        prop_assert_eq!(fields.get("tool_input").unwrap().get(), input.trim());
        prop_assert_eq!(fields.get("own").unwrap().get(), input.trim());
    }
}
