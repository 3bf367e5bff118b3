//! The variables of rules: what an event has, under the names of the language. This table is the only place that lists
//! them.

use super::types::Type;
use crate::model::{EventKind, Target};

/// A short text of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EventText {
    Kind,
    HostEvent,
    Id,
    Cwd,
    Source,
    Reason,
    Trigger,
    TriggerType,
    RunStatus,
    NotificationType,
    Message,
    SessionId,
    RunId,
    AgentName,
    EffectiveAgentName,
    AgentType,
    AgentDialect,
    ModelRef,
    ToolName,
    ToolCallId,
    WorkspaceId,
    WorkspaceRoot,
}

/// Where a variable comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    Text(EventText),
    Part(Target),
}

impl Source {
    /// The path of the variable.
    pub(super) fn path(self) -> &'static str {
        let variable = VARIABLES.iter().find(|variable| variable.source == self);
        variable.map_or("", |variable| variable.path)
    }
}

/// A variable of rules.
pub(super) struct Variable {
    /// Its path, such as `tool.name`.
    pub(super) path: &'static str,
    pub(super) source: Source,
    /// The event kinds that have it; empty for all.
    pub(super) kinds: &'static [EventKind],
    /// What it is, for the documentation.
    pub(super) about: &'static str,
}

impl Variable {
    pub(super) fn result(&self) -> Type {
        match self.source {
            Source::Text(_) => Type::String,
            Source::Part(_) => Type::Any,
        }
    }

    /// The name before the dot.
    fn group(&self) -> Option<&'static str> {
        self.path.split_once('.').map(|(group, _)| group)
    }

    /// Whether an event of one of these kinds has it.
    pub(super) fn is_of(&self, kinds: &[EventKind]) -> bool {
        self.kinds.is_empty() || kinds.iter().any(|kind| self.kinds.contains(kind))
    }
}

macro_rules! variables {
    ($($path:literal $source:ident($($inner:ident)::+) [$($kind:ident)*] $about:literal;)*) => {
        pub(super) static VARIABLES: &[Variable] = &[$(Variable {
            path: $path,
            source: Source::$source($($inner)::+),
            kinds: &[$(EventKind::$kind),*],
            about: $about,
        },)*];
    };
}

variables! {
    "event.kind" Text(EventText::Kind) [] "the event kind, such as `before_tool_dispatch`";
    "event.name" Text(EventText::HostEvent) [HostEvent] "the agent's own name of the event";
    "event.id" Text(EventText::Id) [] "the host's id of the event";
    "event.cwd" Text(EventText::Cwd) [] "the working directory of the agent";
    "event.source" Text(EventText::Source) [SessionStarted] "where the session came from";
    "event.reason" Text(EventText::Reason) [SessionEnded] "why the session ended";
    "event.trigger" Text(EventText::Trigger) [BeforeContextCompact AfterContextCompact] "`manual` or `auto`";
    "event.message" Text(EventText::Message) [Notification] "the text of the notification";
    "event.notification_type" Text(EventText::NotificationType) [Notification] "the kind of notification";
    "session.id" Text(EventText::SessionId) [] "the conversation";
    "run.id" Text(EventText::RunId) [] "the piece of work in it";
    "run.trigger" Text(EventText::TriggerType) [] "what triggered the run";
    "run.status" Text(EventText::RunStatus) [RunCompleted RunFailed] "how the run ended";
    "agent.name" Text(EventText::AgentName) [] "the agent that the run belongs to";
    "agent.effective_name" Text(EventText::EffectiveAgentName) [] "the agent that acts, where it is another one";
    "agent.type" Text(EventText::AgentType) [SubagentStarted SubagentStopping] "the kind of subagent";
    "agent.dialect" Text(EventText::AgentDialect) [] "the dialect of the host, such as `claude`";
    "workspace.id" Text(EventText::WorkspaceId) [] "the id of the workspace";
    "workspace.root" Text(EventText::WorkspaceRoot) [] "its directory";
    "tool.name" Text(EventText::ToolName)
        [BeforeToolDispatch AfterToolDispatch ToolFailed PermissionRequested] "the tool, as the agent calls it";
    "tool.call_id" Text(EventText::ToolCallId)
        [BeforeToolDispatch AfterToolDispatch ToolFailed PermissionRequested] "the id of the call";
    "tool.input" Part(Target::ToolInput)
        [BeforeToolDispatch AfterToolDispatch ToolFailed PermissionRequested] "what the tool is called with";
    "tool.output" Part(Target::ToolOutput) [AfterToolDispatch ToolFailed] "what the tool returned";
    "prompt" Part(Target::Prompt) [PromptSubmitted] "what a person or program asks";
    "context" Part(Target::Context)
        [BeforeContextCompact AfterContextCompact BeforeContextBuild AfterContextBuild] "the context";
    "model.ref" Text(EventText::ModelRef) [BeforeModelCall AfterModelCall] "the model";
    "model.request" Part(Target::ModelRequest) [BeforeModelCall AfterModelCall] "the request to it";
    "model.response" Part(Target::ModelResponse) [AfterModelCall] "its answer";
    "tool_config" Part(Target::ToolConfig) [BeforeToolSelection] "the tools that the model may choose from";
}

/// The variable of a path.
pub(super) fn variable(path: &str) -> Option<&'static Variable> {
    VARIABLES.iter().find(|variable| variable.path == path)
}

/// Whether variables have this name before the dot.
pub(super) fn is_group(name: &str) -> bool {
    VARIABLES.iter().any(|variable| variable.group() == Some(name))
}

/// The variables that share the name before the dot with a path or a group.
pub(super) fn in_group<'n>(path: &str) -> impl Iterator<Item = &'n str> {
    let group = path.split('.').next();
    VARIABLES.iter().filter(move |variable| variable.group() == group).map(|variable| variable.path)
}

/// The names of variables up to the dot, each once.
pub(super) fn first_names<'n>() -> impl Iterator<Item = &'n str> {
    let names = VARIABLES.iter().map(|variable| variable.group().unwrap_or(variable.path));
    names.enumerate().filter_map(|(at, name)| {
        let is_new = VARIABLES[..at].iter().all(|before| before.group() != Some(name));
        is_new.then_some(name)
    })
}
