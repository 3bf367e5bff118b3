//! A dialect that merges the replies of parallel hooks in configured order.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use hookyard::{
    dialect::Canonical,
    model::{
        Conclusion, Dialect, DialectName, Draft, Event, EventError, EventKind, ExecutionPolicy, Failure,
        FailurePolicy, Handler, Hook, HookDecision, HookName, HookSource, HostResponse, Json, JsonError,
        MatchField, MergeRule, NativeHandler, Outcome, RawReply, Reply, ResponseFormat, RunId, Scope,
        SessionId, Strategy, Target, Verdict, Workspace, WorkspaceId,
    },
    registry::Snapshot,
    run::{Course, Progress},
};

/// hookyard's own words, but its hooks run at the same time and their reasons are joined with a `+`.
#[derive(Debug)]
struct Joining;

impl Dialect for Joining {
    fn name(&self) -> DialectName {
        DialectName::Canonical
    }

    fn read_event(&self, bytes: &[u8]) -> Result<Event, EventError> {
        Canonical.read_event(bytes)
    }

    fn kind_of(&self, bytes: &[u8]) -> Option<EventKind> {
        Canonical.kind_of(bytes)
    }

    fn cwd_of(&self, bytes: &[u8]) -> Option<Arc<str>> {
        Canonical.cwd_of(bytes)
    }

    fn write_response(&self, event: &Event, outcome: &Outcome) -> HostResponse {
        Canonical.write_response(event, outcome)
    }

    fn match_field(&self, kind: EventKind) -> Option<MatchField> {
        kind.match_field()
    }

    fn strategy(&self, _: EventKind) -> Strategy {
        Strategy::Parallel
    }

    fn ends_chain(&self, _: EventKind, _: Verdict) -> bool {
        false
    }

    fn envelope(&self, draft: &Draft, place: &Workspace) -> Bytes {
        Canonical.envelope(draft, place)
    }

    fn environment(&self, _: &Draft, _: &Workspace, _: Duration) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    fn read_reply(&self, hook: &Hook, kind: EventKind, raw: RawReply) -> Result<Reply, Failure> {
        Canonical.read_reply(hook, kind, raw)
    }

    fn response_format(&self, hook: &Hook, kind: EventKind) -> ResponseFormat {
        Canonical.response_format(hook, kind)
    }

    fn merge_rule(&self, _: EventKind) -> MergeRule {
        MergeRule::Combined
    }

    fn combine(&self, _: &Draft, earlier: &[Reply], reply: Reply) -> Reply {
        let reason = |reply: &Reply| reply.decision.clone().into_parts().1;
        let reasons: Vec<String> = earlier.iter().chain([&reply]).filter_map(reason).collect();
        Reply { decision: HookDecision::Block(Some(reasons.join("+"))), ..reply }
    }

    fn apply_patch(&self, target: Target, current: Option<&Json>, patch: &Json) -> Result<Json, JsonError> {
        Canonical.apply_patch(target, current, patch)
    }
}

fn hook(name: &str, position: usize) -> Hook {
    Hook {
        name: HookName::new(name).unwrap(),
        dialect: &Joining,
        events: [EventKind::BeforeToolDispatch].into_iter().collect(),
        matcher: None,
        handler: Handler::Native(NativeHandler::Inline(Arc::new(|_| Ok(Reply::proceed())))),
        capabilities: [].into_iter().collect(),
        priority: 0,
        enabled: true,
        timeout: Duration::from_mins(1),
        max_concurrency: None,
        on_error: FailurePolicy::Ignore,
        on_timeout: FailurePolicy::Ignore,
        execution: ExecutionPolicy::default(),
        source: HookSource { scope: Scope::Host, file: None, line: 0, position, content: None, bundle: None },
        trust: hookyard::model::HookTrust::default(),
    }
}

#[test]
fn replies_are_joined_in_configured_order() {
    let place = Arc::new(Workspace::new(WorkspaceId::new("w").unwrap(), "/"));
    let hooks = vec![hook("a", 0), hook("b", 1), hook("c", 2)];
    let snapshot = Arc::new(Snapshot::new(1, place, hooks));
    let (session, run) = (SessionId::new("s").unwrap(), RunId::new("r").unwrap());
    let event = Arc::new(Event::new(EventKind::BeforeToolDispatch, session, run));
    let (mut course, progress) = Course::begin(Arc::clone(&event), snapshot.plan(&event), snapshot);
    assert_eq!(progress, Progress::Run(0..3));
    for (step, reason) in [(2, "third"), (0, "first"), (1, "second")] {
        let result = Ok(Reply::block(reason));
        let _ = course.conclude(step, Conclusion::ran(result, Duration::ZERO));
    }
    let outcome = course.into_outcome(hookyard::run::next_decision_id());
    assert_eq!(outcome.verdict, Verdict::Block);
    assert_eq!(outcome.reason.as_deref(), Some("first+second+third"));
    assert_eq!(outcome.by.unwrap().as_str(), "c");
}
