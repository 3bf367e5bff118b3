//! A decision as the page shows it. All that comes from outside is free of the secrets of hooks.

use std::{
    borrow::Cow,
    collections::BTreeMap,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use crate::{
    FinishedEvent,
    model::{
        DialectName, Ended, EventAttributes, EventId, EventKind, EventPeer, FailureMode, HandlerKind,
        HookReport, Json, Redactor, Target, Targets, TokenUsage, ToolCallId, TrustState, Verdict,
        WorkspaceId, milliseconds,
    },
};

/// A row of the list of decisions.
#[derive(Debug, Serialize)]
pub(in crate::daemon) struct DecisionSummary {
    decision_id: String,
    /// In milliseconds since 1970.
    at: u64,
    workspace_id: String,
    session_id: String,
    run_id: String,
    event: EventKind,
    tool: Option<String>,
    verdict: Verdict,
    by: Option<String>,
    reason: Option<String>,
    hooks: usize,
    /// How many of them failed.
    failed: usize,
    failures: Vec<HookFailure>,
    changed: bool,
    /// Whether it is of a daemon before this one, and known by its line in the audit alone.
    from_audit: bool,
    /// From the first hook's wait to the last one's end.
    #[serde(rename = "duration_ms", serialize_with = "milliseconds")]
    duration: Duration,
}

/// How a hook failed.
#[derive(Debug, Serialize)]
struct HookFailure {
    hook: String,
    ended: Ended,
    error: Option<String>,
}

/// A decision with what each hook did.
#[derive(Debug, Serialize)]
pub(in crate::daemon) struct DecisionDetails {
    #[serde(flatten)]
    summary: DecisionSummary,
    dialect: DialectName,
    event_id: Option<String>,
    tool_call_id: Option<String>,
    attributes: Map<String, Value>,
    /// The listener that the event came through, and who sent it.
    client: Option<String>,
    snapshot_version: u64,
    snapshot: Option<String>,
    patched: Vec<Target>,
    notes: Vec<String>,
    reports: Vec<HookStage>,
}

/// What one hook did.
#[derive(Debug, Serialize)]
struct HookStage {
    hook: String,
    handler: HandlerKind,
    ended: Ended,
    verdict: Verdict,
    /// From the beginning of the first wait; none if it did not run.
    #[serde(skip_serializing_if = "Option::is_none")]
    started_ms: Option<f64>,
    #[serde(rename = "queued_ms", serialize_with = "milliseconds")]
    queued: Duration,
    #[serde(rename = "duration_ms", serialize_with = "milliseconds")]
    duration: Duration,
    /// How its policy counted a failure.
    policy: Option<FailureMode>,
    error: Option<String>,
    patched: Vec<Target>,
    trust: Option<TrustState>,
    content: Option<String>,
    warnings: Vec<String>,
    /// What it had to say to a person or a model.
    notes: Vec<String>,
    /// The tokens it used, if it asked a model that reports them.
    tokens: Option<TokenUsage>,
}

/// The payload of an event, as its host sent it and as hooks have changed it.
#[derive(Debug, Serialize)]
pub(in crate::daemon) struct DecisionPayload {
    sent: BTreeMap<&'static str, Json>,
    changed: BTreeMap<&'static str, Json>,
    /// What each hook made of the parts that it changed, in the order of the reports.
    by_hook: Vec<BTreeMap<&'static str, Json>>,
}

/// The beginning of a text, in bytes, where it is one of many.
const BRIEF: usize = 2000;

/// The beginning of a text.
pub(super) fn brief(text: &str) -> &str {
    &text[..text.floor_char_boundary(BRIEF)]
}

/// Whether the payload of an event is not kept: it was too large, or is that of a daemon before this one.
pub(super) fn lacks_payload(FinishedEvent { event, former_changes, .. }: &FinishedEvent) -> bool {
    former_changes.is_some() || event.targets.is_empty() && event.kind.target().is_some()
}

/// What hooks have changed.
fn changed(FinishedEvent { outcome, former_changes, .. }: &FinishedEvent) -> Vec<Target> {
    former_changes.as_ref().map_or_else(
        || outcome.patched.iter().map(|(target, _)| target).collect(),
        |changed| changed.to_vec(),
    )
}

impl DecisionSummary {
    pub(super) fn of(finished: &FinishedEvent) -> Self {
        let FinishedEvent { run, event, outcome, at, redactor, former_changes } = finished;
        let shown = |text: &str| redactor.text(text).into_owned();
        let beginning = |text: &str| brief(&redactor.text(text)).to_owned();
        let failed = outcome.hooks.iter().filter(|report| report.error.is_some()).count();
        let failures = outcome.hooks.iter().filter(|report| report.ended.is_failure());
        let failures = failures.map(|report| HookFailure {
            hook: shown(report.hook.as_str()),
            ended: report.ended,
            error: report.error.as_deref().map(beginning),
        });
        Self {
            decision_id: outcome.decision_id.to_string(),
            at: millis(*at),
            workspace_id: shown(run.workspace_id.as_str()),
            session_id: shown(run.session_id.as_str()),
            run_id: shown(run.run_id.as_str()),
            event: outcome.event,
            tool: event.attributes.tool_name.as_deref().map(shown),
            verdict: outcome.verdict,
            by: outcome.by.as_ref().map(|hook| shown(hook.as_str())),
            reason: outcome.reason.as_deref().map(beginning),
            hooks: outcome.hooks.len(),
            failed,
            failures: failures.collect(),
            changed: !changed(finished).is_empty(),
            from_audit: former_changes.is_some(),
            duration: spanned(&outcome.hooks),
        }
    }
}

impl DecisionDetails {
    pub(super) fn of(finished: &FinishedEvent) -> Self {
        let FinishedEvent { event, outcome, redactor, .. } = finished;
        let first = outcome.hooks.iter().filter_map(queued_at).min();
        let client = event.origin.as_ref().map(|origin| {
            let peer = match origin.peer {
                EventPeer::User(uid) => format!("uid {uid}"),
                EventPeer::Address(address) => address.to_string(),
            };
            format!("{}, {peer}", origin.listener)
        });
        Self {
            dialect: event.dialect,
            event_id: event.id.as_ref().map(|id| redactor.text(id.as_str()).into_owned()),
            tool_call_id: event.tool_call_id.as_ref().map(|id| redactor.text(id.as_str()).into_owned()),
            attributes: attributes(&event.attributes, redactor),
            client,
            snapshot_version: outcome.snapshot_version,
            snapshot: outcome.snapshot_content.as_deref().map(str::to_owned),
            patched: changed(finished),
            notes: outcome.notes.iter().map(|note| redactor.text(&note.text).into_owned()).collect(),
            reports: outcome.hooks.iter().map(|report| HookStage::of(report, finished, first)).collect(),
            summary: DecisionSummary {
                reason: outcome.reason.as_deref().map(|reason| redactor.text(reason).into_owned()),
                ..DecisionSummary::of(finished)
            },
        }
    }
}

impl HookStage {
    fn of(report: &HookReport, finished: &FinishedEvent, first: Option<std::time::Instant>) -> Self {
        let FinishedEvent { outcome, redactor, .. } = finished;
        let notes = outcome.notes.iter().filter(|note| note.hook == report.hook);
        let started = report
            .started
            .zip(first)
            .map(|(started, first)| started.saturating_duration_since(first).as_secs_f64() * 1e3);
        Self {
            hook: redactor.text(report.hook.as_str()).into_owned(),
            handler: report.handler,
            ended: report.ended,
            verdict: report.verdict,
            started_ms: started,
            queued: report.queued,
            duration: report.duration,
            policy: report.failure_mode,
            error: report.error.as_deref().map(|error| redactor.text(error).into_owned()),
            patched: report.patched.clone(),
            trust: report.trust,
            content: report.content.as_ref().map(|content| content.as_str().to_owned()),
            warnings: report.warnings.iter().map(|warning| redactor.text(warning).into_owned()).collect(),
            notes: notes.map(|note| redactor.text(&note.text).into_owned()).collect(),
            tokens: report.tokens,
        }
    }
}

impl DecisionPayload {
    pub(super) fn of(finished: &FinishedEvent) -> Self {
        let FinishedEvent { event, outcome, redactor, .. } = finished;
        Self {
            sent: values(&event.targets, redactor),
            changed: values(&outcome.patched, redactor),
            by_hook: outcome.hooks.iter().map(|report| of_hook(report, redactor)).collect(),
        }
    }
}

fn of_hook(report: &HookReport, redactor: &Redactor) -> BTreeMap<&'static str, Json> {
    report.values.as_deref().map(|made| values(made, redactor)).unwrap_or_default()
}

/// The values as they were written: every digit of a number counts.
fn values(targets: &Targets, redactor: &Redactor) -> BTreeMap<&'static str, Json> {
    let shown = |(target, json): (Target, &_)| Some((target.as_str(), redactor.json(json).ok()?));
    targets.iter().filter_map(shown).collect()
}

/// The texts of an event, by the names of their fields.
fn texts(attributes: &EventAttributes) -> [(&'static str, Option<&str>); 12] {
    [
        ("agent_name", &attributes.agent_name),
        ("effective_agent_name", &attributes.effective_agent_name),
        ("model_ref", &attributes.model_ref),
        ("tool_name", &attributes.tool_name),
        ("trigger_type", &attributes.trigger_type),
        ("run_status", &attributes.run_status),
        ("source", &attributes.source),
        ("reason", &attributes.reason),
        ("trigger", &attributes.trigger),
        ("notification_type", &attributes.notification_type),
        ("message", &attributes.message),
        ("agent_type", &attributes.agent_type),
    ]
    .map(|(name, text)| (name, text.as_deref()))
}

/// Those that a decision has under `attributes`: the tool has a place of its own, and a message is payload.
fn attributes(attributes: &EventAttributes, redactor: &Redactor) -> Map<String, Value> {
    let named = texts(attributes).into_iter().filter(|(name, _)| !["tool_name", "message"].contains(name));
    let shown = named.filter_map(|(name, text)| {
        let text: Cow<'_, str> = redactor.text(text?);
        Some((name.to_owned(), Value::String(text.into_owned())))
    });
    shown.collect()
}

fn queued_at(report: &HookReport) -> Option<std::time::Instant> {
    report.started?.checked_sub(report.queued)
}

/// From the first hook's wait to the last one's end.
fn spanned(hooks: &[HookReport]) -> Duration {
    let first = hooks.iter().filter_map(queued_at).min();
    let last = hooks.iter().filter_map(|report| report.started?.checked_add(report.duration)).max();
    let span = first.zip(last).map(|(first, last)| last.saturating_duration_since(first));
    span.unwrap_or_else(|| {
        hooks.iter().map(|report| report.queued + report.duration).max().unwrap_or_default()
    })
}

/// A moment in milliseconds since 1970.
pub(in crate::daemon) fn millis(at: SystemTime) -> u64 {
    u64::try_from(at.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis()).unwrap_or(u64::MAX)
}

/// An event as it would be sent in the canonical format. All that comes from outside is free of the secrets of hooks.
#[derive(Debug, Serialize)]
pub(in crate::daemon) struct DecisionEvent {
    workspace_id: WorkspaceId,
    event: CanonicalFields,
    gaps: Vec<EventGap>,
}

/// What is missing of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum EventGap {
    /// Its payload was too large to be kept.
    Payload,
    /// Which agent it came from: hooks that this agent runs itself are not left to it.
    Agent,
    /// Secrets of hooks, which are replaced.
    Secrets,
}

/// The fields of an event with their values as they were written, in their order.
#[derive(Debug, Default)]
struct CanonicalFields(Vec<(String, Json)>);

impl DecisionEvent {
    pub(super) fn of(finished: &FinishedEvent) -> Self {
        let FinishedEvent { run, event, redactor, .. } = finished;
        let mut fields = CanonicalFields::default();
        fields.text("event", Some(event.kind.as_str()));
        fields.text("session_id", Some(event.session_id.as_str()));
        fields.text("run_id", Some(event.run_id.as_str()));
        fields.text("host_event", event.host_event.as_ref().map(|host| &*host.name));
        fields.text("event_id", event.id.as_ref().map(EventId::as_str));
        fields.text("tool_call_id", event.tool_call_id.as_ref().map(ToolCallId::as_str));
        fields.text("cwd", event.cwd.as_deref());
        for (name, text) in texts(&event.attributes) {
            fields.text(name, text);
        }
        for (target, json) in event.targets.iter() {
            fields.value(target.as_str(), json.clone());
        }
        for (name, json) in &event.extra {
            fields.value(name, json.clone());
        }
        let mut gaps = Vec::new();
        if lacks_payload(finished) {
            gaps.push(EventGap::Payload);
        }
        if event.dialect != DialectName::Canonical || event.kind == EventKind::HostEvent {
            gaps.push(EventGap::Agent);
        }
        let sent = fields.0.clone();
        fields.0.retain_mut(|(_, json)| redactor.json(json).map(|shown| *json = shown).is_ok());
        if fields.0 != sent {
            gaps.push(EventGap::Secrets);
        }
        Self { workspace_id: run.workspace_id.clone(), event: fields, gaps }
    }
}

impl CanonicalFields {
    fn text(&mut self, name: &str, text: Option<&str>) {
        if let Some(json) = text.and_then(|text| Json::of(text).ok()) {
            self.value(name, json);
        }
    }

    /// Adds a field; the first of a name counts.
    fn value(&mut self, name: &str, json: Json) {
        if self.0.iter().all(|(known, _)| known != name) {
            self.0.push((name.to_owned(), json));
        }
    }
}

impl Serialize for CanonicalFields {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, json)| (name, json)))
    }
}
