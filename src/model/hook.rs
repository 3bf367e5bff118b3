//! Hooks as they are loaded, and the trait of the dialects they are written for: each refers to the other. What only some
//! dialects have is a method with a default; a dialect without one of the others does not compile.

use std::{fmt, num::NonZeroUsize, sync::Arc, time::Duration};

use bytes::Bytes;

use super::{
    Capabilities, DialectName, Draft, Event, EventError, EventKind, EventKinds, ExecutionPolicy, Failure,
    Handler, HookName, HookSource, HookTrust, HostEvent, HostResponse, Json, JsonError, Level, LinkNeeds,
    MatchField, Matcher, MergeRule, Outcome, RawReply, Reply, ResponseFormat, Strategy, Target, Verdict,
    Workspace,
};

/// A named rule, ready to run.
#[derive(Debug, Clone)]
pub struct Hook {
    /// Its name, unique in its workspace.
    pub name: HookName,
    /// The dialect it is written for, which decides its input and how its reply is read.
    pub dialect: &'static dyn Dialect,
    /// The kinds of event it wants.
    pub events: EventKinds,
    /// Which of them; without one, all.
    pub matcher: Option<Matcher>,
    /// What it runs.
    pub handler: Handler,
    /// What it may do besides giving its verdict.
    pub capabilities: Capabilities,
    /// Lower runs earlier.
    pub priority: i32,
    /// A disabled hook is listed and never runs.
    pub enabled: bool,
    /// The longest one invocation may take.
    pub timeout: Duration,
    /// How many invocations of it run at once, over all runs; without it, as many as its pool has places.
    pub max_concurrency: Option<NonZeroUsize>,
    /// What a failure counts as.
    pub on_error: FailurePolicy,
    /// What a timeout counts as.
    pub on_timeout: FailurePolicy,
    /// When it runs and who waits for it, beyond the rules of its dialect.
    pub execution: ExecutionPolicy,
    /// Where it was found.
    pub source: HookSource,
    /// Whether it may run.
    pub trust: HookTrust,
}

impl Hook {
    /// Its level: what it takes to switch it off.
    pub(crate) fn level(&self) -> Level {
        if self.source.bundle.is_some() { Level::Bundle } else { self.source.scope.level(self.distance()) }
    }

    /// How far around the workspace of its snapshot its own workspace is.
    pub(crate) fn distance(&self) -> usize {
        self.execution.outer.as_ref().map_or(0, |outer| outer.distance)
    }

    /// The workspace that it is of: by default that of its snapshot.
    pub(crate) fn workspace<'a>(&'a self, of_snapshot: &'a Workspace) -> &'a Workspace {
        self.execution.outer.as_ref().map_or(of_snapshot, |outer| &outer.workspace)
    }

    /// The workspace that its rules speak of: its own, unless that is not around the event's, as with hooks of the user
    /// for every workspace.
    pub(crate) fn subject<'a>(&'a self, of_snapshot: &'a Workspace) -> &'a Workspace {
        match &self.execution.outer {
            Some(outer) if of_snapshot.root.starts_with(&outer.workspace.root) => &outer.workspace,
            _ => of_snapshot,
        }
    }

    /// What its rules want to know of the links in an event's paths, if they ask for any.
    pub(crate) fn link_needs(&self) -> Option<Arc<LinkNeeds>> {
        match &self.handler {
            Handler::Rule(rule) => rule.program.link_needs(),
            _ => None,
        }
    }

    /// Reads what its handler brought back for an event of this kind.
    ///
    /// Returns a failure if its dialect cannot read it.
    pub(crate) fn read_reply(&self, kind: EventKind, raw: RawReply) -> Result<Reply, Failure> {
        self.dialect.read_reply(self, kind, raw.with_paired_surrogates())
    }
}

/// What the failure of a hook counts as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum FailurePolicy {
    /// No opinion: fail open.
    #[default]
    Ignore,
    /// A block that names the hook and the failure: fail closed.
    Deny,
    /// A question to a person.
    Ask,
}

impl FailurePolicy {
    /// Every policy.
    pub const ALL: [Self; 3] = [Self::Ignore, Self::Deny, Self::Ask];

    /// The policy of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|policy| policy.as_str() == name)
    }

    /// The name as written in hook files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ignore => "ignore",
            Self::Deny => "deny",
            Self::Ask => "ask",
        }
    }

    /// What a failure counts as.
    pub fn verdict(self) -> Verdict {
        match self {
            Self::Ignore => Verdict::Proceed,
            Self::Deny => Verdict::Block,
            Self::Ask => Verdict::Ask,
        }
    }
}

/// One dialect, on both sides: events and responses of hosts, and inputs and replies of hooks.
///
/// Every method is a pure function: it must not block, read a clock or access a file. A panic in a method fails the
/// one invocation in which it happens.
pub trait Dialect: fmt::Debug + Send + Sync {
    /// Its name.
    fn name(&self) -> DialectName;

    /// Reads what a host of this dialect sent.
    ///
    /// Returns an error that names the field if the bytes are no event of this dialect.
    fn read_event(&self, bytes: &[u8]) -> Result<Event, EventError>;

    /// The kind of an event, even if the rest of it cannot be read.
    fn kind_of(&self, bytes: &[u8]) -> Option<EventKind>;

    /// Which event of the dialect's own it is, if it has no other kind, even if the rest of it cannot be read.
    fn host_event_of(&self, bytes: &[u8]) -> Option<HostEvent> {
        let _ = bytes;
        None
    }

    /// The working directory in an event, even if the rest of it cannot be read.
    fn cwd_of(&self, bytes: &[u8]) -> Option<Arc<str>>;

    /// Writes the response for a host of this dialect. A verdict that the dialect cannot express becomes the next
    /// stricter one that it can, never a milder one.
    fn write_response(&self, event: &Event, outcome: &Outcome) -> HostResponse;

    /// The field that matchers of this dialect's hooks are compared with for a kind, or `None` if they are ignored.
    fn match_field(&self, kind: EventKind) -> Option<MatchField>;

    /// How this dialect's hooks for a kind run.
    fn strategy(&self, kind: EventKind) -> Strategy;

    /// Whether a verdict of one of this dialect's interceptors ends the chain after its stage. A halt always does.
    /// One that is milder than a block ends it for this dialect's hooks only; those of others still run.
    fn ends_chain(&self, kind: EventKind, verdict: Verdict) -> bool;

    /// The envelope: the input of this dialect's hooks for an event with the patches so far.
    fn envelope(&self, draft: &Draft, place: &Workspace) -> Bytes;

    /// Whether the envelope ends with a newline on the standard input of a command.
    fn ends_input_with_newline(&self) -> bool {
        false
    }

    /// Whether a command whose output begins so goes on in the background, and has no say.
    fn goes_on_in_background(&self, output: &[u8]) -> bool {
        let _ = output;
        false
    }

    /// The environment variables of this dialect's command hooks, besides the allowed ones and the hook's own.
    fn environment(&self, draft: &Draft, place: &Workspace, timeout: Duration)
    -> Vec<(&'static str, String)>;

    /// The format in which a model has to answer for a hook of this dialect on an event of this kind.
    fn response_format(&self, hook: &Hook, kind: EventKind) -> ResponseFormat;

    /// Reads a hook's answer.
    ///
    /// Returns a failure if the answer is none that this dialect allows.
    fn read_reply(&self, hook: &Hook, kind: EventKind, raw: RawReply) -> Result<Reply, Failure>;

    /// How the replies of this dialect's hooks to one event are merged.
    fn merge_rule(&self, kind: EventKind) -> MergeRule;

    /// Combines a reply with the `earlier` ones of this dialect's hooks for the event, in plan order. `input` is the
    /// draft that its hook was given. Called only where [`Dialect::merge_rule`] combines replies.
    fn combine(&self, input: &Draft, earlier: &[Reply], reply: Reply) -> Reply;

    /// Merges a patch with the current value of its target.
    ///
    /// Returns an error if either is no JSON, which [`Json`] rules out.
    fn apply_patch(&self, target: Target, current: Option<&Json>, patch: &Json) -> Result<Json, JsonError>;
}
