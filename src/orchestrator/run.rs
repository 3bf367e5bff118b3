//! Typed events of one run: a method for each kind of event.

use serde::Serialize;

use super::{error::DispatchError, handle::Orchestrator};
use crate::model::{
    Event, EventAttributes, EventKind, HostEvent, Json, JsonError, Outcome, RunId, SessionId, Target,
    ToolCallId, WorkspaceId,
};

/// One run, for the events that a host sends about it. Cheap to clone; it holds nothing but ids.
///
/// Every method takes one event through its hooks and returns the [`Outcome`]. Every method returns an error as
/// [`Orchestrator::dispatch`] does, and if an argument has no JSON form.
#[derive(Debug, Clone)]
pub struct Run {
    orchestrator: Orchestrator,
    id: RunId,
    session: SessionId,
    workspace: Option<WorkspaceId>,
}

impl Orchestrator {
    /// A run of the only workspace, for typed events; its session has the same id.
    ///
    /// Returns an error if the id is empty, longer than 256 bytes or has control characters.
    pub fn run(&self, id: impl AsRef<str>) -> Result<Run, DispatchError> {
        let id = RunId::new(id).map_err(|source| DispatchError::id("run_id", source))?;
        let session =
            SessionId::new(id.as_str()).map_err(|source| DispatchError::id("session_id", source))?;
        Ok(Run { orchestrator: self.clone(), id, session, workspace: None })
    }
}

impl Run {
    /// The session it is part of, where that has an id of its own.
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

    /// An event of this run, for what the methods below do not take: fill it in and give it to
    /// [`Orchestrator::dispatch`].
    pub fn event(&self, kind: EventKind) -> Event {
        let mut event = Event::new(kind, self.session.clone(), self.id.clone());
        event.workspace_id.clone_from(&self.workspace);
        event
    }

    /// A session began; `source` says from where, such as `startup` or `resume`.
    pub async fn session_started(&self, source: &str) -> Result<Outcome, DispatchError> {
        let attributes = EventAttributes { source: Some(source.into()), ..EventAttributes::default() };
        self.send(Event { attributes, ..self.event(EventKind::SessionStarted) }).await
    }

    /// A session ended, and with it this run, which is forgotten.
    pub async fn session_ended(&self, reason: &str) -> Result<Outcome, DispatchError> {
        let attributes = EventAttributes { reason: Some(reason.into()), ..EventAttributes::default() };
        self.send(Event { attributes, ..self.event(EventKind::SessionEnded) }).await
    }

    /// A person or program sent a prompt; hooks may change it.
    pub async fn prompt_submitted(&self, prompt: &str) -> Result<Outcome, DispatchError> {
        self.send_with(self.event(EventKind::PromptSubmitted), Target::Prompt, prompt).await
    }

    /// The context is about to be compacted; `trigger` is `manual` or `auto`.
    pub async fn before_context_compact(
        &self,
        trigger: &str,
        context: &(impl Serialize + Sync + ?Sized),
    ) -> Result<Outcome, DispatchError> {
        self.compaction(EventKind::BeforeContextCompact, trigger, context).await
    }

    /// The context was compacted; `trigger` is `manual` or `auto`.
    pub async fn after_context_compact(
        &self,
        trigger: &str,
        context: &(impl Serialize + Sync + ?Sized),
    ) -> Result<Outcome, DispatchError> {
        self.compaction(EventKind::AfterContextCompact, trigger, context).await
    }

    /// The context is about to be built from these parts.
    pub async fn before_context_build(
        &self,
        context: &(impl Serialize + Sync + ?Sized),
    ) -> Result<Outcome, DispatchError> {
        self.send_with(self.event(EventKind::BeforeContextBuild), Target::Context, context).await
    }

    /// The context was built.
    pub async fn after_context_build(
        &self,
        context: &(impl Serialize + Sync + ?Sized),
    ) -> Result<Outcome, DispatchError> {
        self.send_with(self.event(EventKind::AfterContextBuild), Target::Context, context).await
    }

    /// A model is about to be called; hooks may change the request.
    pub async fn before_model_call(
        &self,
        model_ref: &str,
        request: &(impl Serialize + Sync + ?Sized),
    ) -> Result<Outcome, DispatchError> {
        let attributes = EventAttributes { model_ref: Some(model_ref.into()), ..EventAttributes::default() };
        let event = Event { attributes, ..self.event(EventKind::BeforeModelCall) };
        self.send_with(event, Target::ModelRequest, request).await
    }

    /// A model answered; hooks may change the response.
    pub async fn after_model_call(
        &self,
        model_ref: &str,
        request: &(impl Serialize + Sync + ?Sized),
        response: &(impl Serialize + Sync + ?Sized),
    ) -> Result<Outcome, DispatchError> {
        let attributes = EventAttributes { model_ref: Some(model_ref.into()), ..EventAttributes::default() };
        let mut event = Event { attributes, ..self.event(EventKind::AfterModelCall) };
        event.targets.set(Target::ModelRequest, Json::of(request)?);
        self.send_with(event, Target::ModelResponse, response).await
    }

    /// The tools that a model may choose from are about to be settled; hooks may change them.
    pub async fn before_tool_selection(
        &self,
        tool_config: &(impl Serialize + Sync + ?Sized),
    ) -> Result<Outcome, DispatchError> {
        self.send_with(self.event(EventKind::BeforeToolSelection), Target::ToolConfig, tool_config).await
    }

    /// A tool is about to run; hooks may block it or change its input. Run it with
    /// [`Outcome::tool_input`] if that is there.
    pub async fn before_tool_dispatch<I: Serialize + Sync + ?Sized>(
        &self,
        call: &ToolCall<'_, I>,
    ) -> Result<Outcome, DispatchError> {
        let mut event = self.event(EventKind::BeforeToolDispatch);
        call.describe(&mut event)?;
        self.send(event).await
    }

    /// A tool ran; hooks may change the output that the model sees.
    pub async fn after_tool_dispatch<I: Serialize + Sync + ?Sized>(
        &self,
        call: &ToolCall<'_, I>,
        output: &(impl Serialize + Sync + ?Sized),
    ) -> Result<Outcome, DispatchError> {
        let mut event = self.event(EventKind::AfterToolDispatch);
        call.describe(&mut event)?;
        self.send_with(event, Target::ToolOutput, output).await
    }

    /// A tool failed; `error` is for people and models to read.
    pub async fn tool_failed<I: Serialize + Sync + ?Sized>(
        &self,
        call: &ToolCall<'_, I>,
        error: &str,
    ) -> Result<Outcome, DispatchError> {
        let mut event = self.event(EventKind::ToolFailed);
        call.describe(&mut event)?;
        event.extra.push(("error".into(), Json::of(error)?));
        self.send(event).await
    }

    /// The host is about to ask a person whether a tool may run; hooks may answer in the person's place.
    pub async fn permission_requested<I: Serialize + Sync + ?Sized>(
        &self,
        call: &ToolCall<'_, I>,
    ) -> Result<Outcome, DispatchError> {
        let mut event = self.event(EventKind::PermissionRequested);
        call.describe(&mut event)?;
        self.send(event).await
    }

    /// The host notifies a person.
    pub async fn notification(
        &self,
        notification_type: &str,
        message: &str,
    ) -> Result<Outcome, DispatchError> {
        let attributes = EventAttributes {
            notification_type: Some(notification_type.into()),
            message: Some(message.into()),
            ..EventAttributes::default()
        };
        self.send(Event { attributes, ..self.event(EventKind::Notification) }).await
    }

    /// The agent is about to stop. A block means that it should keep working.
    pub async fn agent_stopping(&self) -> Result<Outcome, DispatchError> {
        self.send(self.event(EventKind::AgentStopping)).await
    }

    /// A subagent of this type began.
    pub async fn subagent_started(&self, agent_type: &str) -> Result<Outcome, DispatchError> {
        let attributes =
            EventAttributes { agent_type: Some(agent_type.into()), ..EventAttributes::default() };
        self.send(Event { attributes, ..self.event(EventKind::SubagentStarted) }).await
    }

    /// A subagent of this type is about to stop. A block means that it should keep working.
    pub async fn subagent_stopping(&self, agent_type: &str) -> Result<Outcome, DispatchError> {
        let attributes =
            EventAttributes { agent_type: Some(agent_type.into()), ..EventAttributes::default() };
        self.send(Event { attributes, ..self.event(EventKind::SubagentStopping) }).await
    }

    /// The run completed and is forgotten; `trigger_type` says what had started it, such as `user`.
    pub async fn run_completed(&self, trigger_type: &str) -> Result<Outcome, DispatchError> {
        self.ended(EventKind::RunCompleted, trigger_type, "completed").await
    }

    /// The run failed and is forgotten; `trigger_type` says what had started it, such as `user`.
    pub async fn run_failed(&self, trigger_type: &str) -> Result<Outcome, DispatchError> {
        self.ended(EventKind::RunFailed, trigger_type, "failed").await
    }

    /// Something happened that only this host has a name for.
    pub async fn host_event(&self, host_event: HostEvent) -> Result<Outcome, DispatchError> {
        let event = self.event(EventKind::HostEvent);
        self.send(Event { host_event: Some(host_event), ..event }).await
    }

    async fn compaction(
        &self,
        kind: EventKind,
        trigger: &str,
        context: &(impl Serialize + Sync + ?Sized),
    ) -> Result<Outcome, DispatchError> {
        let attributes = EventAttributes { trigger: Some(trigger.into()), ..EventAttributes::default() };
        self.send_with(Event { attributes, ..self.event(kind) }, Target::Context, context).await
    }

    async fn ended(&self, kind: EventKind, trigger: &str, status: &str) -> Result<Outcome, DispatchError> {
        let attributes = EventAttributes {
            trigger_type: Some(trigger.into()),
            run_status: Some(status.into()),
            ..EventAttributes::default()
        };
        self.send(Event { attributes, ..self.event(kind) }).await
    }

    async fn send_with(
        &self,
        mut event: Event,
        target: Target,
        value: &(impl Serialize + Sync + ?Sized),
    ) -> Result<Outcome, DispatchError> {
        event.targets.set(target, Json::of(value)?);
        self.send(event).await
    }

    async fn send(&self, event: Event) -> Result<Outcome, DispatchError> {
        self.orchestrator.dispatch(event).await
    }
}

/// One call of a tool: its name, its input and, if the host has one, its id.
///
/// With an id, the events of the call can be distinguished and sent again safely: the same event of the same call with
/// the same input gets the first outcome again, and no hook runs twice.
///
/// ```
/// use hookyard::{ToolCall, model::ToolCallId};
///
/// # fn main() -> Result<(), hookyard::model::IdError> {
/// let input = serde_json::json!({ "command": "ls" });
/// let call = ToolCall::new("Bash", &input).with_id(ToolCallId::new("call-1")?);
/// # drop(call);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct ToolCall<'a, I: ?Sized> {
    name: &'a str,
    input: &'a I,
    id: Option<ToolCallId>,
}

impl<'a, I: Serialize + ?Sized> ToolCall<'a, I> {
    /// A call of the tool `name` with this input.
    pub fn new(name: &'a str, input: &'a I) -> Self {
        Self { name, input, id: None }
    }

    /// Adds the id that the model or the host gave the call.
    #[must_use]
    pub fn with_id(mut self, id: ToolCallId) -> Self {
        self.id = Some(id);
        self
    }

    /// Writes the call into an event.
    ///
    /// Returns an error if the input has no JSON form.
    pub(super) fn describe(&self, event: &mut Event) -> Result<(), JsonError> {
        event.attributes.tool_name = Some(self.name.into());
        event.tool_call_id.clone_from(&self.id);
        event.targets.set(Target::ToolInput, Json::of(self.input)?);
        Ok(())
    }
}
