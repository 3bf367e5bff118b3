//! What a dialect owes the core, as one trait. The core calls nothing else of a dialect; refuses defaults that
//! would make a forgotten method compile.

use std::{fmt, path::PathBuf, sync::Arc, time::Duration};

use bytes::Bytes;

use super::{
    DialectName, Draft, Event, EventError, EventKind, Failure, Hook, Json, JsonError, MatchField, Outcome,
    RawReply, Reply, Strategy, Target, Verdict, WorkspaceId,
};

/// Where a hook runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workspace {
    /// The workspace's id.
    pub id: WorkspaceId,
    /// Its directory: absolute, without symbolic links.
    pub root: PathBuf,
}

/// What a host of a dialect gets: what a hook of that dialect would have printed, and its exit code.
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

/// What the replies of the same dialect's hooks to one event come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MergeRule {
    /// Each reply counts as it is, and of equally strict verdicts the first decides.
    Strictest,
    /// The last decides, with what [`Dialect::combine`] makes of all replies so far; of the notes, all are kept.
    Combined,
    /// The same, but of the notes of one kind, the last reply with any has its say.
    CombinedLatestNotes,
}

/// One dialect, on both sides: what hosts say and expect, and what hooks are told and answer.
///
/// Every method is a pure function: it may not block, read a clock or touch a file. An implementation that
/// panics costs the one invocation in which it does.
pub trait Dialect: fmt::Debug + Send + Sync {
    /// Its name.
    fn name(&self) -> DialectName;

    /// Reads what a host of this dialect sent.
    ///
    /// Returns an error that names the field if the bytes are no event of this dialect.
    fn read_event(&self, bytes: &[u8]) -> Result<Event, EventError>;

    /// The kind of an event, also where the rest of it cannot be read.
    fn kind_of(&self, bytes: &[u8]) -> Option<EventKind>;

    /// The working directory that an event says, also where the rest of it cannot be read.
    fn cwd_of(&self, bytes: &[u8]) -> Option<Arc<str>>;

    /// Writes the answer for a host of this dialect. What the dialect cannot express becomes the stricter
    /// thing it can, never the milder one.
    fn write_response(&self, event: &Event, outcome: &Outcome) -> HostResponse;

    /// What the matchers of this dialect's hooks look at for a kind, or `None` if they are ignored there.
    fn match_field(&self, kind: EventKind) -> Option<MatchField>;

    /// How this dialect's hooks for a kind run.
    fn strategy(&self, kind: EventKind) -> Strategy;

    /// Whether a verdict of one of this dialect's interceptors ends the chain after its stage. A halt always does.
    /// One that is milder than a block ends it for this dialect's hooks only; those of others still have their say.
    fn ends_chain(&self, kind: EventKind, verdict: Verdict) -> bool;

    /// The envelope: what a hook of this dialect is told about the event as it stands.
    fn envelope(&self, draft: &Draft, place: &Workspace) -> Bytes;

    /// The variables a command hook of this dialect gets, beside the allowed ones and its own.
    fn environment(&self, draft: &Draft, place: &Workspace, timeout: Duration)
    -> Vec<(&'static str, String)>;

    /// How a model answers for a hook of this dialect on an event of this kind.
    fn response_format(&self, hook: &Hook, kind: EventKind) -> ResponseFormat;

    /// Reads a hook's answer.
    ///
    /// Returns a failure if the answer is none that this dialect allows.
    fn read_reply(&self, hook: &Hook, kind: EventKind, raw: RawReply) -> Result<Reply, Failure>;

    /// What the replies of this dialect's hooks to one event come to.
    fn merge_rule(&self, kind: EventKind) -> MergeRule;

    /// A reply as it counts after the `earlier` ones of this dialect's hooks for the event, in configured order;
    /// `told` is the draft that its hook was told. Asked only where [`Dialect::merge_rule`] says that replies are joined.
    fn combine(&self, told: &Draft, earlier: &[Reply], reply: Reply) -> Reply;

    /// Joins a patch with what was there.
    ///
    /// Returns an error if either is no JSON, which [`Json`] rules out.
    fn apply_patch(&self, target: Target, current: Option<&Json>, patch: &Json) -> Result<Json, JsonError>;
}
