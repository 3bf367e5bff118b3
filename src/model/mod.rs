//! The words everything else is written in: events, hooks, replies, outcomes, and the contract a dialect
//! owes the core. Pure data and pure functions; refuses I/O, clocks, actors and native field names.

mod address;
mod arrival;
mod contract;
mod diagnostic;
mod event;
mod event_error;
mod hook;
mod id;
mod json;
mod language_model;
mod manner;
mod matcher;
mod outcome;
mod patch;
mod redaction;
mod reply;
mod secret;
mod trace;

pub use address::{Address, AddressError};
pub use arrival::{Arrival, Timestamp, Uuid};
pub use contract::{AnswerForm, Dialect, NativeAnswer, Place, Ties};
pub use diagnostic::{Diagnostic, Severity};
pub use event::{
    Delivery, Draft, Event, EventKind, EventKinds, Facts, HostEvent, Matched, RunSpan, Strategy,
};
pub use event_error::EventError;
pub use hook::{
    CommandHandler, CommandLine, FailurePolicy, Handler, HandlerKind, Hook, HttpHandler, HttpMethod, Mode,
    NativeHandler, NativeReply, Scope, Source, WorkerBounds,
};
pub use id::{
    DecisionId, DialectName, EventId, HookName, IdError, RunId, SessionId, ToolCallId, WorkspaceId,
};
pub(crate) use json::check as check_json;
pub use json::{Fields, Json, JsonError};
pub use language_model::{
    Agent, AgentHandler, AgentTool, ApiModel, JsonOutput, Model, ModelAccess, ModelApi, PromptHandler, Tokens,
};
pub use manner::{Company, Condition, Frequency, Manner};
pub use matcher::{Literals, Matcher, MatcherError, PathGlobs};
pub(crate) use outcome::milliseconds;
pub use outcome::{Ended, HookReport, Note, NoteKind, Outcome, Upheld, Verdict};
pub use patch::{Capabilities, Capability, Fold, Target, Targets, merge_deep, merge_one_level};
pub(crate) use redaction::Redaction;
pub use reply::{Conclusion, Failure, Opinion, Patch, RawReply, Reply, Weight};
pub use secret::{Guarded, Secret};
pub use trace::{EventSpan, Sampling, TraceParent, TraceParentError};
