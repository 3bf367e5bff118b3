//! Canonical events of a run.

use hookyard::model::{Event, EventKind, Json, RunId, SessionId, Target, ToolCallId};

/// An event of a run in the session `session`, with the tool `Bash`.
pub(crate) fn event(kind: EventKind, run: &str) -> Event {
    let mut event = Event::new(kind, SessionId::new("session").unwrap(), RunId::new(run).unwrap());
    event.attributes.tool_name = Some("Bash".into());
    event
}

/// A call of the tool `Bash`.
pub(crate) fn tool(run: &str) -> Event {
    let mut event = event(EventKind::BeforeToolDispatch, run);
    event.targets.set(Target::ToolInput, Json::parse(r#"{"command":"ls"}"#).unwrap());
    event
}

/// A call of the tool `Bash` with an id.
pub(crate) fn call(run: &str, id: &str) -> Event {
    Event { tool_call_id: Some(ToolCallId::new(id).unwrap()), ..tool(run) }
}

/// Lets every task that can run do so, without the clock moving.
pub(crate) async fn settle() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}
