//! The domain model: events, hooks, replies, outcomes, and the trait that every dialect implements. Pure data and
//! pure functions: it names no clock, no runtime and no native field.

mod address;
mod arrival;
mod diagnostic;
mod dialect;
mod event;
mod event_error;
mod execution_policy;
mod handler;
mod hex;
mod hook;
mod hook_source;
mod http_target;
mod id;
mod json;
#[cfg(any(feature = "cli", feature = "daemon"))]
mod json_diff;
mod language_model;
mod links;
mod matcher;
mod outcome;
mod patch;
mod redaction;
mod reply;
mod rule;
mod sandbox;
mod secret;
mod shown_text;
mod trace;
mod trust;
mod verdict;

pub use address::{Address, AddressError};
pub use arrival::{Arrival, EventOrigin, EventPeer, Timestamp, Uuid};
pub use diagnostic::{Diagnostic, Severity};
pub use dialect::{HostResponse, MergeRule, ResponseFormat};
pub use event::{
    Delivery, Draft, Event, EventAttributes, EventKind, EventKinds, HostEvent, MatchField, RunLifetime,
    Strategy,
};
pub use event_error::EventError;
pub(crate) use event_error::PartialEvent;
pub(crate) use execution_policy::PluginVariable;
pub use execution_policy::{
    Concurrency, Condition, ExecutionPolicy, Frequency, HookSwitches, HostRuns, PluginSource,
};
pub use handler::{
    CommandHandler, CommandLine, CommandMode, Handler, HandlerKind, HttpHandler, HttpMethod, NativeHandler,
    NativeReply, WorkerBounds,
};
pub(crate) use hex::hex_digits;
pub use hook::{Dialect, FailurePolicy, Hook};
pub(crate) use hook_source::Level;
pub use hook_source::{ContentHash, DirectoryName, HookBundle, HookSource, OuterWorkspace, Scope, Workspace};
#[cfg(feature = "http")]
pub(crate) use http_target::is_public;
pub use http_target::{HttpTarget, HttpTargetError};
pub(crate) use http_target::{is_certainly_private, literal_address};
pub use id::{
    DecisionId, DialectName, EventId, HookName, IdError, RunId, SessionId, ToolCallId, WorkspaceId,
};
pub(crate) use id::{LONGEST_NODE_NAME, RunKey, is_node_name};
pub(crate) use json::check as check_json;
pub use json::{Json, JsonError, JsonFields};
#[cfg(any(feature = "cli", feature = "daemon"))]
pub(crate) use json_diff::{ArrayDiff, JsonChange, PathStep, changes as json_changes};
pub use language_model::{
    Agent, AgentHandler, AgentTool, ApiModel, JsonOutput, Model, ModelAccess, ModelApi, PromptHandler,
    TokenUsage,
};
pub(crate) use links::{KnownLinks, LONGEST_PATH, LinkGap, LinkNeeds, PathEntry, follow};
pub use matcher::{Literals, Matcher, MatcherError, PathGlobs};
#[cfg(feature = "daemon")]
pub(crate) use outcome::is_short;
pub(crate) use outcome::milliseconds;
pub use outcome::{HookReport, Note, Outcome};
pub use patch::{
    Capabilities, Capability, PatchMerge, PatchResult, PatchResults, PatchScope, Target, Targets, merge_deep,
    merge_one_level,
};
pub(crate) use redaction::Redactor;
pub use reply::{Conclusion, Failure, FailureHandling, HookDecision, Patch, RawReply, Reply};
pub use rule::RuleHandler;
pub(crate) use rule::{FactFile, KeyCounts, RuleCache, RuleCall, RuleProgram};
#[cfg(any(feature = "cli", feature = "daemon"))]
pub(crate) use rule::{TracedExpression, TracedValue};
pub use sandbox::{FilesystemAccess, NetworkAccess, ResourceLimits, Sandbox};
pub(crate) use secret::SecretReference;
pub use secret::{Secret, SecretText};
pub(crate) use shown_text::escaped_line;
pub(crate) use shown_text::io_reason;
#[cfg(feature = "cli")]
pub(crate) use shown_text::{is_unsafe_to_show, path_texts};
pub use trace::{EventSpan, Sampling, TraceParent, TraceParentError};
pub(crate) use trust::StartCondition;
pub use trust::{Approval, HookTrust, TrustState};
pub use verdict::{Ended, FailureMode, NoteKind, Verdict};
