//! An orchestrator that runs a script and records what it is sent.

use std::sync::Arc;

use super::rule::Rule;
use crate::{
    Builder, Orchestrator, StartError,
    model::{Event, EventKind},
    orchestrator::EventLog,
};

/// An orchestrator whose hooks are [`Rule`]s, with a record of every event that was dispatched.
///
/// Recorded is what reaches a workspace, in the order of the calls: also events that no rule concerns, events of a
/// halted run, and events that are sent again. Not recorded is what could not be read or names no workspace.
#[derive(Debug, Clone)]
pub struct ScriptedOrchestrator {
    orchestrator: Orchestrator,
    log: Arc<EventLog>,
}

impl ScriptedOrchestrator {
    /// Starts an orchestrator with these rules and nothing else.
    ///
    /// Returns an error if a rule cannot work: its pattern is invalid, its patch does not fit its kind of event, or
    /// two rules have the same name.
    pub async fn start(rules: impl IntoIterator<Item = Rule>) -> Result<Self, StartError> {
        Self::start_with(Orchestrator::builder(), rules).await
    }

    /// Starts an orchestrator with these rules after everything that the builder has: workspaces, settings, native
    /// hooks.
    ///
    /// Returns an error as [`Builder::start`] does, and if a rule cannot work.
    pub async fn start_with(
        builder: Builder,
        rules: impl IntoIterator<Item = Rule>,
    ) -> Result<Self, StartError> {
        let log = Arc::new(EventLog::default());
        let mut builder = builder.event_log(Arc::clone(&log));
        for (number, rule) in (1..).zip(rules) {
            builder = builder.native_hook(rule.into_hook(number)?);
        }
        Ok(Self { orchestrator: builder.start().await?, log })
    }

    /// The orchestrator, for the host under test.
    pub fn orchestrator(&self) -> &Orchestrator {
        &self.orchestrator
    }

    /// The events that were dispatched so far.
    pub fn events(&self) -> Vec<Event> {
        self.log.events()
    }

    /// The dispatched events of one kind.
    pub fn events_of(&self, kind: EventKind) -> Vec<Event> {
        self.log.events().into_iter().filter(|event| event.kind == kind).collect()
    }

    /// The kinds of the dispatched events, in order.
    pub fn kinds(&self) -> Vec<EventKind> {
        self.log.events().iter().map(|event| event.kind).collect()
    }

    /// Forgets the recorded events; rules go on where they are.
    pub fn clear_events(&self) {
        self.log.clear();
    }
}
