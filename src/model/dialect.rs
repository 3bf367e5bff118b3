//! The trait that every dialect implements, and what its methods exchange with the core. It has no default methods, so
//! that a forgotten one does not compile.

use std::{fmt, path::PathBuf, sync::Arc, time::Duration};

use bytes::Bytes;

use super::{
    DialectName, Draft, Event, EventError, EventKind, Failure, Hook, Json, JsonError, MatchField, Outcome,
    RawReply, Reply, Strategy, Target, Verdict, WorkspaceId,
};

/// The workspace that a hook runs in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workspace {
    /// The workspace's id.
    pub id: WorkspaceId,
    /// Its directory: absolute, without symbolic links.
    pub root: PathBuf,
}

/// The response to a host, as a hook of its dialect would have printed it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostResponse {
    /// For standard output, or the body of an answer over HTTP.
    pub stdout: String,
    /// For standard error.
    pub stderr: String,
    /// The exit code of a program that answers for hookyard.
    pub exit_code: u8,
}

/// How a model has to answer for a hook, so that its dialect can read the answer.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ResponseFormat {
    /// The form in words, with examples.
    pub instructions: String,
    /// The form as a JSON Schema of an object.
    pub schema: serde_json::Value,
    /// What stands in a prompt where the envelope belongs; without it, or none, the envelope follows the prompt.
    pub placeholder: Option<&'static str>,
}

/// How the replies of a dialect's hooks to one event are merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MergeRule {
    /// Each reply counts by itself: the strictest verdict wins, the first of equally strict ones.
    Strictest,
    /// Replies are combined by [`Dialect::combine`], and the last combination wins; all notes are kept.
    Combined,
    /// As `Combined`, but of each kind of note only those of the last reply that has any are kept.
    CombinedLatestNotes,
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
    /// One that is milder than a block ends it for this dialect's hooks only; those of others still have their say.
    fn ends_chain(&self, kind: EventKind, verdict: Verdict) -> bool;

    /// The envelope: the input of this dialect's hooks for an event with the patches so far.
    fn envelope(&self, draft: &Draft, place: &Workspace) -> Bytes;

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
