//! Outcomes: the answer to the host, and its canonical JSON.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use serde::{Serialize, Serializer, de::DeserializeOwned};

use super::{
    ContentHash, DecisionId, Ended, EventKind, FailureMode, HandlerKind, HookName, Json, JsonError, NoteKind,
    PatchResults, Target, Targets, TokenUsage, TrustState, Verdict,
};

/// The shortest wait that JSON has: less is the way through an idle pool.
const MIN_SHOWN_WAIT: Duration = Duration::from_millis(10);

/// A message of a hook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Note {
    /// The hook.
    pub hook: HookName,
    /// Whom it is for.
    pub kind: NoteKind,
    /// Its text.
    pub text: Arc<str>,
}

impl Note {
    /// A message of hookyard itself for the person at the host.
    #[cfg(any(feature = "cli", feature = "daemon"))]
    pub(crate) fn of_hookyard(text: &str) -> Option<Self> {
        Some(Self::new(HookName::new("hookyard").ok()?, NoteKind::SystemMessage, text))
    }

    /// A note of a hook.
    pub fn new(hook: HookName, kind: NoteKind, text: impl Into<Arc<str>>) -> Self {
        Self { hook, kind, text: text.into() }
    }
}

/// The report of one invocation.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct HookReport {
    /// The hook.
    pub hook: HookName,
    /// What it runs.
    pub handler: HandlerKind,
    /// How its invocation ended.
    pub ended: Ended,
    /// Its verdict, after its failure policies.
    #[serde(skip_serializing_if = "is_proceed")]
    pub verdict: Verdict,
    /// What it changed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub patched: Vec<Target>,
    /// The parts that it changed, as it left them. Not in the JSON, whose `patched` has what came of all changes.
    #[serde(skip)]
    pub values: Option<Box<Targets>>,
    /// How long it ran.
    #[serde(rename = "duration_ms", serialize_with = "milliseconds")]
    pub duration: Duration,
    /// How long it waited before it ran: for a place in its pool, at the hook's own limit, or for its workers.
    #[serde(rename = "queued_ms", serialize_with = "milliseconds", skip_serializing_if = "is_short")]
    pub queued: Duration,
    /// A hash over its definition and its scripts. Not in the JSON; the audit has it.
    #[serde(skip)]
    pub content: Option<Arc<ContentHash>>,
    /// The tokens it used, if it asked a model that reports them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<TokenUsage>,
    /// Why there is no reply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Arc<str>>,
    /// How its policy counted a failure. Not in the JSON, where `ended` and `verdict` show it.
    #[serde(skip)]
    pub failure_mode: Option<FailureMode>,
    /// What is known about the trust in the hook; nothing if trust is off. Not in the JSON, but in the audit.
    #[serde(skip)]
    pub trust: Option<TrustState>,
    /// The result of each of its patches. Not in the JSON, where `patched` and `warnings` show it.
    #[serde(skip)]
    pub patch_results: PatchResults,
    /// When it started, if it did and that is known. Not in the JSON: it means nothing to another process.
    #[serde(skip)]
    pub started: Option<Instant>,
    /// Warnings about how it was run and about its reply.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

impl HookReport {
    /// An invocation that ended so, without further details.
    pub fn new(hook: HookName, handler: HandlerKind, ended: Ended) -> Self {
        Self {
            hook,
            handler,
            ended,
            verdict: Verdict::Proceed,
            patched: Vec::new(),
            values: None,
            duration: Duration::ZERO,
            queued: Duration::ZERO,
            content: None,
            tokens: None,
            error: None,
            failure_mode: None,
            trust: None,
            patch_results: PatchResults::default(),
            started: None,
            warnings: Vec::new(),
        }
    }

    /// An invocation that ended with a reply, before the reply is applied.
    pub(crate) fn completed(hook: HookName, handler: HandlerKind, duration: Duration) -> Self {
        Self { duration, ..Self::new(hook, handler, Ended::Completed) }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes fields by reference")]
fn is_proceed(verdict: &Verdict) -> bool {
    *verdict == Verdict::Proceed
}

/// Whether a wait is no more than the way through an idle pool, which is in no JSON.
pub(crate) fn is_short(wait: &Duration) -> bool {
    *wait < MIN_SHOWN_WAIT
}

/// Writes a duration as milliseconds, exact to the microsecond.
pub(crate) fn milliseconds<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    let rounded_to_micros = (duration.as_secs_f64() * 1e6).round() / 1e3;
    serializer.serialize_f64(rounded_to_micros)
}

fn as_object<S: Serializer>(words: &[(Box<str>, Json)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(words.iter().map(|(name, value)| (name, value)))
}

/// The answer to the host.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Outcome {
    /// Names this answer in logs and in the audit.
    pub decision_id: DecisionId,
    /// The kind of event it answers.
    pub event: EventKind,
    /// What the host should do.
    pub verdict: Verdict,
    /// Why, for a person or a model to read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Arc<str>>,
    /// The hook that decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<HookName>,
    /// The parts of the payload that hooks changed, with their final values. What a block or a halt keeps from
    /// happening has none; what has already happened, such as a tool's output, has them all the same.
    #[serde(skip_serializing_if = "Targets::is_empty")]
    pub patched: Targets,
    /// The notes of the hooks, in plan order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<Note>,
    /// Whether the tool's output should not be shown.
    pub suppress_output: bool,
    /// Fields without a canonical meaning, from hooks of the host's own dialect.
    #[serde(skip_serializing_if = "Vec::is_empty", serialize_with = "as_object")]
    pub native: Vec<(Box<str>, Json)>,
    /// The report of each hook that ran, in plan order.
    pub hooks: Vec<HookReport>,
    /// The version of the registry that was used.
    pub snapshot_version: u64,
    /// A hash over the contents of all hooks of that version. Not in the JSON; the audit has it.
    #[serde(skip)]
    pub snapshot_content: Option<Arc<str>>,
}

impl Outcome {
    /// The answer to an event for which no hook ran.
    pub fn proceed(decision_id: DecisionId, event: EventKind, snapshot_version: u64) -> Self {
        Self {
            decision_id,
            event,
            verdict: Verdict::Proceed,
            reason: None,
            by: None,
            patched: Targets::default(),
            notes: Vec::new(),
            suppress_output: false,
            native: Vec::new(),
            hooks: Vec::new(),
            snapshot_version,
            snapshot_content: None,
        }
    }

    /// Drops the patches of what does not happen, so that no host runs it with them. A patch of what has happened stays:
    /// it may remove what the model must not see.
    pub(crate) fn drop_unused_patches(&mut self) {
        if self.verdict >= Verdict::Block && !self.event.has_happened() {
            self.patched = Targets::default();
        }
    }

    /// The tool input that hooks put in the place of the host's. `None` means that no hook changed it, so the final
    /// input is `outcome.tool_input()?.unwrap_or(input)`.
    ///
    /// Whether the tool may run is in the verdict, not here. A block or a halt has no changed input.
    ///
    /// ```
    /// use hookyard::{NativeHook, Orchestrator, ToolCall, model::{Capability, EventKind, Json, Reply, Target}};
    ///
    /// #[derive(serde::Serialize, serde::Deserialize)]
    /// struct Bash {
    ///     command: String,
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let faster = Json::parse(r#"{ "command": "npm ci" }"#)?;
    /// let patcher = NativeHook::inline("npm-ci", [EventKind::BeforeToolDispatch], move |_| {
    ///     Ok(Reply::proceed().patch(Target::ToolInput, faster.clone()))
    /// });
    /// let patcher = patcher.capability(Capability::RewriteToolRequest);
    /// let orchestrator = Orchestrator::builder().native_hook(patcher).start().await?;
    /// let input = Bash { command: "npm install".to_owned() };
    /// let call = ToolCall::new("Bash", &input);
    /// let outcome = orchestrator.run("run-1")?.before_tool_dispatch(&call).await?;
    /// let input: Bash = outcome.tool_input()?.unwrap_or(input);
    /// assert_eq!(input.command, "npm ci");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Returns an error if the changed input is no `T`: a hook may write anything.
    pub fn tool_input<T: DeserializeOwned>(&self) -> Result<Option<T>, JsonError> {
        self.patched_as(Target::ToolInput)
    }

    /// The tool output that hooks put in the place of the host's; `None` if no hook changed it.
    ///
    /// Returns an error if it is no `T`.
    pub fn tool_output<T: DeserializeOwned>(&self) -> Result<Option<T>, JsonError> {
        self.patched_as(Target::ToolOutput)
    }

    /// The value that hooks put in the place of this part of the payload; `None` if no hook changed it.
    ///
    /// Returns an error if it is no `T`.
    pub fn patched_as<T: DeserializeOwned>(&self, target: Target) -> Result<Option<T>, JsonError> {
        self.patched.get(target).map(Json::read).transpose()
    }
}
