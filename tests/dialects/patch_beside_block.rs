//! A patch of what does not happen is told to no host; one of what has happened is.

use hookyard::{
    NativeHook, Orchestrator, dialect,
    model::{DialectName, Event, EventKind, HookName, Json, Reply, RunId, SessionId, Target, Verdict},
};

/// What the first hook changes and the second then refuses.
const CHANGED: &str = "changed-by-a-hook";

/// The kinds with something to change, and whether a refusal comes before it happens.
const KINDS: [(EventKind, bool); 11] = [
    (EventKind::PromptSubmitted, true),
    (EventKind::BeforeContextCompact, true),
    (EventKind::AfterContextCompact, false),
    (EventKind::BeforeContextBuild, true),
    (EventKind::AfterContextBuild, false),
    (EventKind::BeforeModelCall, true),
    (EventKind::AfterModelCall, false),
    (EventKind::BeforeToolSelection, true),
    (EventKind::BeforeToolDispatch, true),
    (EventKind::AfterToolDispatch, false),
    (EventKind::PermissionRequested, true),
];

fn value(target: Target, text: &str) -> Json {
    let value = match target {
        Target::Prompt => serde_json::json!(text),
        Target::ModelResponse => serde_json::json!({ "text": text }),
        _ => serde_json::json!({ "command": text }),
    };
    Json::of(&value).unwrap()
}

async fn orchestrator(kind: EventKind, verdict: Verdict) -> Orchestrator {
    let target = kind.target().unwrap();
    let patcher = NativeHook::inline("patcher", [kind], move |_| {
        Ok(Reply::proceed().patch(target, value(target, CHANGED)))
    });
    let refuser = NativeHook::inline("refuser", [kind], move |_| {
        Ok(if verdict == Verdict::Block { Reply::block("no") } else { Reply::halt("no") })
    });
    let patcher = patcher.capability(target.capability()).priority(0);
    let builder = Orchestrator::builder().native_hook(patcher).native_hook(refuser.priority(1));
    builder.start().await.unwrap()
}

#[tokio::test]
async fn a_patch_of_what_does_not_happen_is_told_to_no_host() {
    assert!(KINDS.iter().all(|(kind, _)| kind.target().is_some()));
    assert_eq!(EventKind::ALL.iter().filter(|kind| kind.target().is_some()).count(), KINDS.len());
    for (kind, prevents) in KINDS {
        for verdict in [Verdict::Block, Verdict::Halt] {
            for name in DialectName::ALL {
                let orchestrator = orchestrator(kind, verdict).await;
                let id = format!("{kind}-{verdict}-{name}");
                let mut event = Event::new(kind, SessionId::new(&*id).unwrap(), RunId::new(&*id).unwrap());
                event.dialect = *name;
                event.attributes.tool_name = Some("Bash".into());
                event.attributes.model_ref = Some("m".into());
                let target = kind.target().unwrap();
                event.targets.set(target, value(target, "as the host sent it"));
                let outcome = orchestrator.dispatch(event.clone()).await.unwrap();
                assert_eq!(
                    (outcome.verdict, outcome.by.as_ref().map(HookName::as_str)),
                    (verdict, Some("refuser"))
                );
                assert_eq!(outcome.hooks[0].patched, [target], "{id}");
                assert_eq!(outcome.patched.is_empty(), prevents, "{id}: {outcome:?}");
                let answer = dialect::named(*name).write_response(&event, &outcome);
                let is_changed = answer.stdout.contains(CHANGED);
                assert!(!(prevents && is_changed), "{id}: {answer:?}");
                if *name == DialectName::Canonical {
                    assert_eq!(is_changed, !prevents, "{id}: {answer:?}");
                }
            }
        }
    }
}
