//! Replays a recording: the events of a run one after the other, runs in parallel, each copy under its own ids.

use std::{collections::HashSet, future::ready, sync::Arc, time::Duration};

use futures_util::{Stream, StreamExt, stream};
use tokio::time::Instant;

use super::{
    super::session::CommandSession,
    recording::{RecordedEvent, Recording},
};
use crate::{
    Orchestrator,
    model::{
        DecisionId, Event, EventId, EventKind, IdError, Outcome, Redactor, RunId, SessionId, Targets,
        ToolCallId, WorkspaceId,
    },
};

/// An event that was replayed.
#[derive(Debug)]
pub(super) struct PlayedEvent {
    /// Its line in the recording.
    pub(super) line: usize,
    /// Which copy of the recording, from 1.
    pub(super) copy: u32,
    /// Its run, as in the recording.
    pub(super) run: RunId,
    pub(super) kind: EventKind,
    /// What its matchers looked at, such as the tool's name.
    pub(super) matched: Option<Arc<str>>,
    /// The payload before hooks changed it.
    pub(super) before: Targets,
    pub(super) took: Duration,
    /// Whether it was answered by its own hooks.
    pub(super) origin: AnswerOrigin,
    /// The outcome as people may see it, or why there is none.
    pub(super) result: Result<Outcome, String>,
}

/// Where the outcome of an event comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AnswerOrigin {
    /// Its own hooks, if it has any.
    Fresh,
    /// An earlier event of its run, which it repeats. No hook ran.
    Stored,
}

impl PlayedEvent {
    /// Whether hooks ran for it.
    pub(super) fn ran_hooks(&self) -> bool {
        let has_hooks = self.result.as_ref().is_ok_and(|outcome| !outcome.hooks.is_empty());
        has_hooks && self.origin == AnswerOrigin::Fresh
    }

    /// Marks a stored answer, recognised by an earlier decision id of its run.
    fn mark_stored(mut self, earlier: &mut HashSet<DecisionId>) -> Self {
        if self.result.as_ref().is_ok_and(|outcome| !earlier.insert(outcome.decision_id)) {
            self.origin = AnswerOrigin::Stored;
        }
        self
    }
}

/// Replays recordings in one workspace.
#[derive(Debug)]
pub(super) struct ReplayPlayer {
    orchestrator: Orchestrator,
    workspace: WorkspaceId,
    redactor: Redactor,
    sessions: u32,
    concurrency: usize,
}

impl ReplayPlayer {
    pub(super) fn new(session: &CommandSession, sessions: u32, concurrency: usize) -> Self {
        Self {
            orchestrator: session.orchestrator.clone(),
            workspace: session.workspace.clone(),
            redactor: session.redactor.clone(),
            sessions,
            concurrency,
        }
    }

    /// How many times the recording is played.
    pub(super) fn sessions(&self) -> u32 {
        self.sessions
    }

    /// Replays everything, and yields each event once it has its outcome.
    pub(super) fn play<'a>(
        &'a self,
        recording: &'a Recording,
    ) -> impl Stream<Item = PlayedEvent> + Unpin + 'a {
        let runs = (1..=self.sessions).flat_map(|copy| recording.runs.iter().map(move |run| (copy, run)));
        let play_run = move |(copy, run): (u32, &'a Vec<RecordedEvent>)| {
            let played = stream::iter(run).then(move |recorded| self.play_event(copy, recorded));
            let known =
                |earlier: &mut HashSet<_>, played: PlayedEvent| ready(Some(played.mark_stored(earlier)));
            Box::pin(played.scan(HashSet::new(), known))
        };
        stream::iter(runs).flat_map_unordered(self.concurrency, play_run)
    }

    async fn play_event(&self, copy: u32, recorded: &RecordedEvent) -> PlayedEvent {
        let event = &recorded.event;
        let suffix = (self.sessions > 1).then(|| format!("#{copy}"));
        let copied = suffix.map_or_else(|| Ok(event.clone()), |suffix| copy_of(event, &suffix));
        let start = Instant::now();
        let result = match copied {
            Ok(event) => {
                let dispatched = self.orchestrator.dispatch_in(&self.workspace, event).await;
                let shown = dispatched.map(|outcome| self.redactor.outcome(&outcome).into_owned());
                shown.map_err(|error| error.to_string())
            }
            Err(error) => Err(format!("an id with its suffix {error}")),
        };
        PlayedEvent {
            line: recorded.line,
            copy,
            run: event.run_id.clone(),
            kind: event.kind,
            matched: event.match_text().map(Into::into),
            before: event.targets.clone(),
            took: start.elapsed(),
            origin: AnswerOrigin::Fresh,
            result,
        }
    }
}

/// The event with ids of another session.
///
/// Returns an error if an id with the suffix is too long.
fn copy_of(event: &Event, suffix: &str) -> Result<Event, IdError> {
    let with = |id: &str| format!("{id}{suffix}");
    let mut copy = event.clone();
    copy.session_id = SessionId::new(with(event.session_id.as_str()))?;
    copy.run_id = RunId::new(with(event.run_id.as_str()))?;
    copy.id = event.id.as_ref().map(|id| EventId::new(with(id.as_str()))).transpose()?;
    let call = event.tool_call_id.as_ref();
    copy.tool_call_id = call.map(|id| ToolCallId::new(with(id.as_str()))).transpose()?;
    Ok(copy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_id_of_a_copy_is_its_own() {
        let mut event =
            Event::new(EventKind::ToolFailed, SessionId::new("s").unwrap(), RunId::new("r").unwrap());
        event.id = Some(EventId::new("e").unwrap());
        event.tool_call_id = Some(ToolCallId::new("t").unwrap());
        let copy = copy_of(&event, "#2").unwrap();
        assert_eq!((copy.session_id.as_str(), copy.run_id.as_str()), ("s#2", "r#2"));
        assert_eq!((copy.id.unwrap().as_str(), copy.tool_call_id.unwrap().as_str()), ("e#2", "t#2"));
        event.run_id = RunId::new("r".repeat(256)).unwrap();
        assert_eq!(copy_of(&event, "#2").unwrap_err(), IdError::TooLong(258, 256));
    }
}
