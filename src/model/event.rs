//! Event kinds and events. The table of kinds is the only place that lists their strategy, match field and target.

use std::{fmt, sync::Arc};

use serde::{Serialize, Serializer};

use super::{
    Arrival, DialectName, EventId, EventOrigin, EventSpan, Json, RunId, SessionId, Target, Targets,
    ToolCallId, TraceParent, WorkspaceId,
};

/// Whether the hooks of a kind run one after the other or at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Strategy {
    /// One after the other: interceptors, which may change or stop things.
    Serial,
    /// At the same time: lifecycle hooks, which only watch.
    Parallel,
}

/// Which fact of an event a matcher is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MatchField {
    /// Where a session came from: `startup`, `resume` and so on.
    Source,
    /// Why a session ended.
    Reason,
    /// What triggered a compaction: `manual` or `auto`.
    Trigger,
    /// The model a call goes to, as the host sent it.
    ModelRef,
    /// The tool's name.
    ToolName,
    /// The kind of notification.
    NotificationType,
    /// The kind of subagent.
    AgentType,
    /// What triggered the run.
    TriggerType,
    /// The text that the dialect of an event without a canonical kind provides; see [`HostEvent::match_text`].
    HostEvent,
}

impl MatchField {
    /// The name of the field, as in canonical events.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Source => "source",
            Self::Reason => "reason",
            Self::Trigger => "trigger",
            Self::ModelRef => "model_ref",
            Self::ToolName => "tool_name",
            Self::NotificationType => "notification_type",
            Self::AgentType => "agent_type",
            Self::TriggerType => "trigger_type",
            Self::HostEvent => "host_event",
        }
    }
}

struct Row {
    name: &'static str,
    strategy: Strategy,
    match_field: Option<MatchField>,
    target: Option<Target>,
}

macro_rules! event_kinds {
    ($($(#[$doc:meta])* $kind:ident $name:literal $strategy:ident [$($match_field:ident)?] [$($target:ident)?];)*) => {
        /// What happened in a run.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        #[non_exhaustive]
        pub enum EventKind {
            $($(#[$doc])* $kind,)*
        }

        impl EventKind {
            /// Every kind, in the order of the table.
            pub const ALL: &'static [Self] = &[$(Self::$kind,)*];

            const TABLE: &'static [Row] = &[$(Row {
                name: $name,
                strategy: Strategy::$strategy,
                match_field: event_kinds!(@option MatchField $($match_field)?),
                target: event_kinds!(@option Target $($target)?),
            },)*];
        }
    };
    (@option $type:ident) => { None };
    (@option $type:ident $value:ident) => { Some($type::$value) };
}

event_kinds! {
    /// A session began.
    SessionStarted "session_started" Parallel [Source] [];
    /// A session ended.
    SessionEnded "session_ended" Parallel [Reason] [];
    /// A person or program sent a prompt.
    PromptSubmitted "prompt_submitted" Serial [] [Prompt];
    /// The context is about to be compacted.
    BeforeContextCompact "before_context_compact" Serial [Trigger] [Context];
    /// The context was compacted.
    AfterContextCompact "after_context_compact" Serial [Trigger] [Context];
    /// The context is about to be built.
    BeforeContextBuild "before_context_build" Serial [] [Context];
    /// The context was built.
    AfterContextBuild "after_context_build" Serial [] [Context];
    /// A model is about to be called.
    BeforeModelCall "before_model_call" Serial [ModelRef] [ModelRequest];
    /// A model answered.
    AfterModelCall "after_model_call" Serial [ModelRef] [ModelResponse];
    /// The tools a model may choose from are about to be settled.
    BeforeToolSelection "before_tool_selection" Serial [] [ToolConfig];
    /// A tool is about to run.
    BeforeToolDispatch "before_tool_dispatch" Serial [ToolName] [ToolInput];
    /// A tool ran.
    AfterToolDispatch "after_tool_dispatch" Serial [ToolName] [ToolOutput];
    /// A tool failed.
    ToolFailed "tool_failed" Parallel [ToolName] [];
    /// The host is about to ask a person for permission.
    PermissionRequested "permission_requested" Serial [ToolName] [ToolInput];
    /// The host notifies a person.
    Notification "notification" Parallel [NotificationType] [];
    /// The agent is about to stop; a block means: keep working.
    AgentStopping "agent_stopping" Serial [] [];
    /// A subagent began.
    SubagentStarted "subagent_started" Parallel [AgentType] [];
    /// A subagent is about to stop; a block means: keep working.
    SubagentStopping "subagent_stopping" Serial [AgentType] [];
    /// A run completed.
    RunCompleted "run_completed" Parallel [TriggerType] [];
    /// A run failed.
    RunFailed "run_failed" Parallel [TriggerType] [];
    /// An event of one dialect without a canonical kind, known by its own name.
    HostEvent "host_event" Parallel [HostEvent] [];
}

impl EventKind {
    fn row(self) -> &'static Row {
        &Self::TABLE[self as usize]
    }

    /// The canonical name.
    pub fn as_str(self) -> &'static str {
        self.row().name
    }

    /// The kind of a canonical name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.as_str() == name)
    }

    /// How its hooks run, unless their dialect has another rule.
    pub fn strategy(self) -> Strategy {
        self.row().strategy
    }

    /// Whether its hooks may change or stop something; each host event has a value of its own.
    pub fn is_interceptor(self) -> bool {
        self.strategy() == Strategy::Serial
    }

    /// What a matcher looks at, or `None` if the kind has nothing to match on.
    pub fn match_field(self) -> Option<MatchField> {
        self.row().match_field
    }

    /// The part of the payload its hooks may patch.
    pub fn target(self) -> Option<Target> {
        self.row().target
    }

    /// Whether it reports what has already happened, so that a block cannot undo it.
    pub(crate) fn has_happened(self) -> bool {
        use EventKind::{AfterContextBuild, AfterContextCompact, AfterModelCall, AfterToolDispatch};
        matches!(self, AfterContextCompact | AfterContextBuild | AfterModelCall | AfterToolDispatch)
    }

    /// Whether the run is over after it.
    pub fn ends_run(self) -> bool {
        matches!(self, Self::RunCompleted | Self::RunFailed | Self::SessionEnded)
    }
}

impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl Serialize for EventKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// A set of event kinds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EventKinds(u32);

impl EventKinds {
    /// Whether the kind is in the set.
    pub fn contains(self, kind: EventKind) -> bool {
        self.0 & (1 << kind as u8) != 0
    }

    /// The kinds in the order of the table.
    pub fn iter(self) -> impl Iterator<Item = EventKind> {
        EventKind::ALL.iter().copied().filter(move |kind| self.contains(*kind))
    }

    /// Whether the set has no kind.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl FromIterator<EventKind> for EventKinds {
    fn from_iter<I: IntoIterator<Item = EventKind>>(kinds: I) -> Self {
        Self(kinds.into_iter().fold(0, |set, kind| set | 1 << kind as u8))
    }
}

impl Serialize for EventKinds {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

/// Whether the host waits for the outcome of a lifecycle event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Delivery {
    /// The host gets the outcome when every hook has ended.
    #[default]
    Awaited,
    /// A lifecycle event is answered `proceed` at once and its hooks go on.
    Detached,
}

/// The short texts that describe an event; each is present if the host sent it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct EventAttributes {
    /// The agent that the run belongs to.
    pub agent_name: Option<Arc<str>>,
    /// The agent that acts, where it is another one (a subagent).
    pub effective_agent_name: Option<Arc<str>>,
    /// The model a call goes to.
    pub model_ref: Option<Arc<str>>,
    /// The tool's name.
    pub tool_name: Option<Arc<str>>,
    /// What triggered the run.
    pub trigger_type: Option<Arc<str>>,
    /// How the run ended.
    pub run_status: Option<Arc<str>>,
    /// Where the session came from.
    pub source: Option<Arc<str>>,
    /// Why the session ended.
    pub reason: Option<Arc<str>>,
    /// What triggered the compaction.
    pub trigger: Option<Arc<str>>,
    /// The kind of notification.
    pub notification_type: Option<Arc<str>>,
    /// The text of the notification.
    pub message: Option<Arc<str>>,
    /// The kind of subagent.
    pub agent_type: Option<Arc<str>>,
}

/// What is known of an event that has a name in its own dialect only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostEvent {
    /// Its name there.
    pub name: Arc<str>,
    /// The text that matchers on it are compared with, if it has one.
    pub match_text: Option<Arc<str>>,
    /// Whether its hooks may stop things, or only watch.
    pub strategy: Strategy,
}

impl HostEvent {
    /// An event whose hooks only watch.
    pub fn lifecycle(name: impl Into<Arc<str>>) -> Self {
        Self { name: name.into(), match_text: None, strategy: Strategy::Parallel }
    }

    /// An event whose hooks may stop things.
    pub fn interceptor(name: impl Into<Arc<str>>) -> Self {
        Self { strategy: Strategy::Serial, ..Self::lifecycle(name) }
    }

    /// Sets the text that matchers are compared with.
    #[must_use]
    pub fn match_text(self, text: impl Into<Arc<str>>) -> Self {
        Self { match_text: Some(text.into()), ..self }
    }
}

/// How long a run lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RunLifetime {
    /// Until it completes or fails.
    #[default]
    Run,
    /// As long as its session, whose id it has: the host knows no runs.
    Session,
}

/// One occurrence in a run, as a host reports it.
#[derive(Debug, Clone)]
pub struct Event {
    /// What happened.
    pub kind: EventKind,
    /// What happened, for a kind of event that only one dialect has a name for.
    pub host_event: Option<HostEvent>,
    /// The dialect of the host that sent it.
    pub dialect: DialectName,
    /// The host's id for this occurrence; the same id again runs no hook twice.
    pub id: Option<EventId>,
    /// The workspace it belongs to, where the host names one.
    pub workspace_id: Option<WorkspaceId>,
    /// The conversation.
    pub session_id: SessionId,
    /// The piece of work in it.
    pub run_id: RunId,
    /// How long that lasts.
    pub run_lifetime: RunLifetime,
    /// The tool call it is about.
    pub tool_call_id: Option<ToolCallId>,
    /// The host's working directory, as the host sent it.
    pub cwd: Option<Arc<str>>,
    /// Whether the host waits for the outcome.
    pub delivery: Delivery,
    /// The short texts.
    pub attributes: EventAttributes,
    /// The large parts, of which hooks may patch the one its kind names.
    pub targets: Targets,
    /// Fields without a canonical name, for hooks of the host's own dialect, unchanged and in order.
    pub extra: Vec<(Box<str>, Json)>,
    /// When hookyard took it in; none before that.
    pub arrival: Option<Arrival>,
    /// The trace that the host's request belongs to, as hooks receive it; it is in no payload.
    pub trace: Option<TraceParent>,
    /// What more is known of the span that `trace` names, if that is the event's own.
    pub span: Option<EventSpan>,
    /// Variables that the agent gives its own hooks, for hooks of its dialect; they are in no payload.
    pub environment: Vec<(&'static str, Arc<str>)>,
    /// How it came to the daemon; none of an embedding program's own events.
    pub origin: Option<EventOrigin>,
}

impl Event {
    /// An event with nothing but its kind and its place.
    pub fn new(kind: EventKind, session_id: SessionId, run_id: RunId) -> Self {
        Self {
            kind,
            host_event: None,
            dialect: DialectName::Canonical,
            id: None,
            workspace_id: None,
            session_id,
            run_id,
            run_lifetime: RunLifetime::Run,
            tool_call_id: None,
            cwd: None,
            delivery: Delivery::Awaited,
            attributes: EventAttributes::default(),
            targets: Targets::default(),
            extra: Vec::new(),
            arrival: None,
            trace: None,
            span: None,
            environment: Vec::new(),
            origin: None,
        }
    }

    /// The text a matcher on this event is compared with, if the host sent it.
    pub fn match_text(&self) -> Option<&str> {
        let facts = &self.attributes;
        let text = match self.kind.match_field()? {
            MatchField::Source => &facts.source,
            MatchField::Reason => &facts.reason,
            MatchField::Trigger => &facts.trigger,
            MatchField::ModelRef => &facts.model_ref,
            MatchField::ToolName => &facts.tool_name,
            MatchField::NotificationType => &facts.notification_type,
            MatchField::AgentType => &facts.agent_type,
            MatchField::TriggerType => &facts.trigger_type,
            MatchField::HostEvent => return self.host_event.as_ref()?.match_text.as_deref(),
        };
        text.as_deref()
    }

    /// Whether its run is over after it.
    pub fn ends_run(&self) -> bool {
        match self.run_lifetime {
            RunLifetime::Run => self.kind.ends_run(),
            RunLifetime::Session => self.kind == EventKind::SessionEnded,
        }
    }

    /// Whether it is delivered again. The run that it belonged to may have ended since, and another may have its name.
    pub(crate) fn is_repeated(&self) -> bool {
        self.arrival.is_some_and(|arrival| arrival.delivery() > 1)
    }

    /// Whether its hooks may change or stop things.
    pub fn is_interceptor(&self) -> bool {
        let of_host = self.host_event.as_ref().map(|host| host.strategy);
        of_host.unwrap_or(self.kind.strategy()) == Strategy::Serial
    }
}

/// An event with the patches so far.
#[derive(Debug, Clone)]
pub struct Draft {
    event: Arc<Event>,
    targets: Targets,
    revision: u32,
}

impl Draft {
    /// The draft before any patch.
    pub fn new(event: Arc<Event>) -> Self {
        Self { targets: event.targets.clone(), event, revision: 0 }
    }

    /// The event as the host sent it.
    pub fn event(&self) -> &Arc<Event> {
        &self.event
    }

    /// A part of the payload with the patches so far.
    pub fn target(&self, target: Target) -> Option<&Json> {
        self.targets.get(target)
    }

    /// Puts a patched part in the place of the former one.
    pub fn set(&mut self, target: Target, value: Json) {
        self.targets.set(target, value);
        self.revision += 1;
    }

    /// Grows by one with each patch; equal revisions of one draft are equal drafts.
    pub fn revision(&self) -> u32 {
        self.revision
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_found_by_its_name() {
        for kind in EventKind::ALL {
            assert_eq!(EventKind::from_name(kind.as_str()), Some(*kind));
        }
        assert_eq!(EventKind::ALL.len(), 21);
    }

    #[test]
    fn only_interceptors_have_a_target() {
        for kind in EventKind::ALL {
            assert!(kind.target().is_none() || kind.is_interceptor(), "{kind}");
        }
    }

    #[test]
    fn a_set_holds_what_was_put_in() {
        let set: EventKinds = [EventKind::RunFailed, EventKind::ToolFailed].into_iter().collect();
        assert_eq!(set.iter().collect::<Vec<_>>(), [EventKind::ToolFailed, EventKind::RunFailed]);
        assert!(!set.contains(EventKind::HostEvent));
    }
}
