//! Typed events of one run, for hosts that embed hookyard. Refuses to keep state: it is a name and a door.

use std::sync::Arc;

use serde::Serialize;

use super::{DispatchError, Orchestrator};
use crate::model::{Event, EventKind, Json, Outcome, RunId, SessionId, Target, ToolCallId, WorkspaceId};

/// One run, as a host sends its events. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Run {
    orchestrator: Orchestrator,
    id: RunId,
    session: SessionId,
    workspace: Option<WorkspaceId>,
}

impl Run {
    pub(super) fn new(orchestrator: Orchestrator, id: RunId) -> Result<Self, DispatchError> {
        let session =
            SessionId::new(id.as_str()).map_err(|source| DispatchError::id("session_id", source))?;
        Ok(Self { orchestrator, id, session, workspace: None })
    }

    /// The session it is part of.
    #[must_use]
    pub fn in_session(mut self, session: SessionId) -> Self {
        self.session = session;
        self
    }

    /// The workspace it runs in, where there are several.
    #[must_use]
    pub fn in_workspace(mut self, workspace: WorkspaceId) -> Self {
        self.workspace = Some(workspace);
        self
    }

    /// An event of this run, to be filled in and given to [`Orchestrator::dispatch`].
    pub fn event(&self, kind: EventKind) -> Event {
        let mut event = Event::new(kind, self.session.clone(), self.id.clone());
        event.workspace_id.clone_from(&self.workspace);
        event
    }

    /// A person or program sent a prompt.
    ///
    /// Returns an error as [`Orchestrator::dispatch`] does.
    pub async fn prompt_submitted(&self, prompt: &str) -> Result<Outcome, DispatchError> {
        self.send(EventKind::PromptSubmitted, |_| {}, &[(Target::Prompt, Json::of(prompt)?)]).await
    }

    /// A model is about to be called.
    ///
    /// Returns an error as [`Orchestrator::dispatch`] does, and if the request has no JSON form.
    pub async fn before_model_call(
        &self,
        model_ref: &str,
        request: &(impl Serialize + Sync),
    ) -> Result<Outcome, DispatchError> {
        let parts = [(Target::ModelRequest, Json::of(request)?)];
        self.send(
            EventKind::BeforeModelCall,
            |event| event.attributes.model_ref = Some(model_ref.into()),
            &parts,
        )
        .await
    }

    /// A model answered.
    ///
    /// Returns an error as [`Orchestrator::dispatch`] does, and if request or response have no JSON form.
    pub async fn after_model_call(
        &self,
        model_ref: &str,
        request: &(impl Serialize + Sync),
        response: &(impl Serialize + Sync),
    ) -> Result<Outcome, DispatchError> {
        let parts =
            [(Target::ModelRequest, Json::of(request)?), (Target::ModelResponse, Json::of(response)?)];
        self.send(
            EventKind::AfterModelCall,
            |event| event.attributes.model_ref = Some(model_ref.into()),
            &parts,
        )
        .await
    }

    /// A tool is about to run.
    ///
    /// Returns an error as [`Orchestrator::dispatch`] does, and if the input has no JSON form.
    pub async fn before_tool_dispatch(
        &self,
        tool_name: &str,
        input: &(impl Serialize + Sync),
    ) -> Result<Outcome, DispatchError> {
        let parts = [(Target::ToolInput, Json::of(input)?)];
        self.send(
            EventKind::BeforeToolDispatch,
            |event| event.attributes.tool_name = Some(tool_name.into()),
            &parts,
        )
        .await
    }

    /// A tool ran. With the same call id again, the first outcome is answered and no hook runs twice.
    ///
    /// Returns an error as [`Orchestrator::dispatch`] does, and if input or output have no JSON form.
    pub async fn after_tool_dispatch(
        &self,
        tool_name: &str,
        call: Option<ToolCallId>,
        input: &(impl Serialize + Sync),
        output: &(impl Serialize + Sync),
    ) -> Result<Outcome, DispatchError> {
        let parts = [(Target::ToolInput, Json::of(input)?), (Target::ToolOutput, Json::of(output)?)];
        let describe = |event: &mut Event| {
            event.attributes.tool_name = Some(tool_name.into());
            event.tool_call_id = call;
        };
        self.send(EventKind::AfterToolDispatch, describe, &parts).await
    }

    /// The agent is about to stop. A block means that it should keep working.
    ///
    /// Returns an error as [`Orchestrator::dispatch`] does.
    pub async fn agent_stopping(&self) -> Result<Outcome, DispatchError> {
        self.send(EventKind::AgentStopping, |_| {}, &[]).await
    }

    /// The run completed; nothing is kept of it.
    ///
    /// Returns an error as [`Orchestrator::dispatch`] does.
    pub async fn completed(&self, trigger_type: &str) -> Result<Outcome, DispatchError> {
        self.ended(EventKind::RunCompleted, trigger_type, "completed").await
    }

    /// The run failed; nothing is kept of it.
    ///
    /// Returns an error as [`Orchestrator::dispatch`] does.
    pub async fn failed(&self, trigger_type: &str) -> Result<Outcome, DispatchError> {
        self.ended(EventKind::RunFailed, trigger_type, "failed").await
    }

    async fn ended(&self, kind: EventKind, trigger: &str, status: &str) -> Result<Outcome, DispatchError> {
        let describe = |event: &mut Event| {
            event.attributes.trigger_type = Some(trigger.into());
            event.attributes.run_status = Some(Arc::from(status));
        };
        self.send(kind, describe, &[]).await
    }

    async fn send(
        &self,
        kind: EventKind,
        describe: impl FnOnce(&mut Event),
        parts: &[(Target, Json)],
    ) -> Result<Outcome, DispatchError> {
        let mut event = self.event(kind);
        describe(&mut event);
        for (target, value) in parts {
            event.targets.set(*target, value.clone());
        }
        self.orchestrator.dispatch(event).await
    }
}
