//! The JSON of one audit line: its keys, and what is redacted.

use std::{
    borrow::Cow,
    collections::BTreeMap,
    net::IpAddr,
    ops::Not,
    sync::Arc,
    time::{Duration, SystemTime},
};

use serde::Serialize;

use super::{changed_paths, confirmations::LineGuard};
use crate::{
    FinishedEvent, RunRef,
    config::AuditPatches,
    model::{
        Arrival, DecisionId, DialectName, Ended, EventId, EventKind, EventOrigin, EventPeer, FailureMode,
        HandlerKind, HookReport, Json, Outcome, Redactor, Target, Targets, Timestamp, ToolCallId, TrustState,
        Verdict, is_short, milliseconds,
    },
};

/// The parts of a line: an outcome, and the parts of its event that may be shown.
#[derive(Debug)]
pub(super) struct AuditEntry {
    run: Arc<RunRef>,
    pub(super) outcome: Arc<Outcome>,
    /// What hooks changed, as the host sent it.
    pub(super) before: Targets,
    at: SystemTime,
    redactor: Redactor,
    event_id: Option<EventId>,
    tool: Option<Arc<str>>,
    tool_call_id: Option<ToolCallId>,
    client: Client,
    delivery: u32,
    /// Whether it is about the acceptance of an event that nobody waits for.
    pub(super) accepted: bool,
    /// Says what became of the line, where an answer waits for it.
    pub(super) guard: Option<LineGuard>,
}

/// Who sent the event, and in which format.
#[derive(Debug, Clone, Copy, Serialize)]
struct Client {
    #[serde(skip_serializing_if = "Option::is_none")]
    listener: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    uid: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<IpAddr>,
    dialect: DialectName,
}

impl Client {
    fn of(origin: Option<&EventOrigin>, dialect: DialectName) -> Self {
        let peer = origin.map(|origin| origin.peer);
        let uid = match peer {
            Some(EventPeer::User(uid)) => Some(uid),
            _ => None,
        };
        let address = match peer {
            Some(EventPeer::Address(address)) => Some(address),
            _ => None,
        };
        Self { listener: origin.map(|origin| origin.listener), uid, address, dialect }
    }
}

impl AuditEntry {
    pub(super) fn of(finished: FinishedEvent, patches: AuditPatches) -> Self {
        let FinishedEvent { run, event, outcome, at, redactor, .. } = finished;
        let compared = patches == AuditPatches::Paths && !outcome.patched.is_empty();
        let before = if compared { event.targets.clone() } else { Targets::default() };
        Self {
            event_id: event.id.clone(),
            tool: event.attributes.tool_name.clone(),
            tool_call_id: event.tool_call_id.clone(),
            client: Client::of(event.origin.as_ref(), event.dialect),
            delivery: event.arrival.as_ref().map_or(1, Arrival::delivery),
            accepted: false,
            guard: None,
            run,
            outcome,
            before,
            at,
            redactor,
        }
    }
}

/// A line about denied requests of a peer.
#[derive(Debug, Serialize)]
pub(in crate::daemon) struct DenialLine {
    pub(in crate::daemon) at: String,
    pub(in crate::daemon) denied: DenialDetails,
}

/// The denied requests: how many the line stands for, and what the last one was.
#[derive(Debug, Serialize)]
pub(in crate::daemon) struct DenialDetails {
    pub(in crate::daemon) peer: String,
    pub(in crate::daemon) listener: &'static str,
    pub(in crate::daemon) status: u16,
    pub(in crate::daemon) code: &'static str,
    pub(in crate::daemon) method: &'static str,
    pub(in crate::daemon) route: &'static str,
    pub(in crate::daemon) count: u64,
}

/// A line about an answer that no hook was asked for: its event could not be read, or came when it could not be judged.
#[derive(Debug, Serialize)]
pub(super) struct UnaskedLine {
    at: String,
    decision_id: DecisionId,
    event: EventKind,
    verdict: Verdict,
    unasked: UnaskedReason,
    client: Client,
}

/// The error that such an answer stands for.
#[derive(Debug, Clone, Copy, Serialize)]
pub(in crate::daemon) struct UnaskedReason {
    pub(in crate::daemon) status: u16,
    pub(in crate::daemon) code: &'static str,
}

impl UnaskedLine {
    /// The line of an answer that is given now.
    pub(super) fn new(
        outcome: &Outcome,
        unasked: UnaskedReason,
        origin: Option<&EventOrigin>,
        dialect: DialectName,
    ) -> Self {
        Self {
            at: Timestamp::of(SystemTime::now()).to_string(),
            decision_id: outcome.decision_id,
            event: outcome.event,
            verdict: outcome.verdict,
            unasked,
            client: Client::of(origin, dialect),
        }
    }
}

/// What a line has, in this order. What comes from outside is free of secrets; the rest are hookyard's own words.
#[derive(Serialize)]
struct Line<'a> {
    at: String,
    workspace_id: Cow<'a, str>,
    session_id: Cow<'a, str>,
    run_id: Cow<'a, str>,
    decision_id: &'a DecisionId,
    event: EventKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    event_id: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<Cow<'a, str>>,
    verdict: Verdict,
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    patched: Option<Patched>,
    hooks: Vec<HookLine<'a>>,
    snapshot_version: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    snapshot: Option<&'a str>,
    client: Client,
    /// Which delivery of the event this was, from 1.
    delivery: u32,
    #[serde(skip_serializing_if = "Not::not")]
    accepted: bool,
}

/// How one hook fared.
#[derive(Serialize)]
struct HookLine<'a> {
    hook: Cow<'a, str>,
    handler: HandlerKind,
    ended: Ended,
    /// Nothing if trust is off.
    #[serde(skip_serializing_if = "Option::is_none")]
    trust: Option<TrustState>,
    verdict: Verdict,
    #[serde(rename = "duration_ms", serialize_with = "milliseconds")]
    duration: Duration,
    #[serde(rename = "queued_ms", serialize_with = "milliseconds", skip_serializing_if = "is_short")]
    queued: Duration,
    #[serde(skip_serializing_if = "Option::is_none")]
    policy: Option<FailureMode>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Patched {
    Paths(Vec<String>),
    Values(BTreeMap<&'static str, Json>),
}

/// Adds the line of an outcome, with its end.
pub(super) fn write(entry: &AuditEntry, patches: AuditPatches, into: &mut Vec<u8>) -> serde_json::Result<()> {
    let AuditEntry {
        run,
        outcome,
        at,
        redactor,
        event_id,
        tool,
        tool_call_id,
        client,
        delivery,
        accepted,
        ..
    } = entry;
    let line = Line {
        at: Timestamp::of(*at).to_string(),
        workspace_id: redactor.text(run.workspace_id.as_str()),
        session_id: redactor.text(run.session_id.as_str()),
        run_id: redactor.text(run.run_id.as_str()),
        decision_id: &outcome.decision_id,
        event: outcome.event,
        event_id: event_id.as_ref().map(|id| redactor.text(id.as_str())),
        tool: tool.as_deref().map(|tool| redactor.text(tool)),
        tool_call_id: tool_call_id.as_ref().map(|id| redactor.text(id.as_str())),
        verdict: outcome.verdict,
        by: outcome.by.as_ref().map(|hook| redactor.text(hook.as_str())),
        reason: outcome.reason.as_deref().map(|reason| redactor.text(reason)),
        patched: patched(entry, patches, redactor),
        hooks: outcome.hooks.iter().map(|report| hook_line(report, redactor)).collect(),
        snapshot_version: outcome.snapshot_version,
        snapshot: outcome.snapshot_content.as_deref(),
        client: *client,
        delivery: *delivery,
        accepted: *accepted,
    };
    let start = into.len();
    if let Err(error) = serde_json::to_writer(&mut *into, &line) {
        into.truncate(start);
        return Err(error);
    }
    // Parts that come from outside as they are may have line breaks between their values.
    for byte in into[start..].iter_mut().filter(|byte| matches!(byte, b'\n' | b'\r')) {
        *byte = b' ';
    }
    into.push(b'\n');
    Ok(())
}

/// Adds a line that has no text from outside, with its end.
pub(super) fn write_own_words(line: &impl Serialize, into: &mut Vec<u8>) -> serde_json::Result<()> {
    into.extend_from_slice(&serde_json::to_vec(line)?);
    into.push(b'\n');
    Ok(())
}

fn hook_line<'a>(report: &'a HookReport, redactor: &Redactor) -> HookLine<'a> {
    let HookReport {
        hook,
        handler,
        ended,
        trust,
        verdict,
        duration,
        queued,
        failure_mode,
        error,
        content,
        ..
    } = report;
    let hook = redactor.text(hook.as_str());
    HookLine {
        hook,
        handler: *handler,
        ended: *ended,
        trust: *trust,
        verdict: *verdict,
        duration: *duration,
        queued: *queued,
        policy: *failure_mode,
        error: error.as_deref().map(|error| redactor.text(error)),
        content: content.as_ref().map(|content| content.as_str()),
    }
}

fn patched(entry: &AuditEntry, patches: AuditPatches, redactor: &Redactor) -> Option<Patched> {
    let changed = &entry.outcome.patched;
    if changed.is_empty() {
        return None;
    }
    match patches {
        AuditPatches::Nothing => None,
        AuditPatches::Paths => {
            let places = changed_paths::changed_paths(&entry.before, changed).into_iter();
            Some(Patched::Paths(places.map(|place| redactor.text(&place).into_owned()).collect()))
        }
        AuditPatches::Values => {
            let value = |(target, json): (Target, &Json)| Some((target.as_str(), redactor.json(json).ok()?));
            Some(Patched::Values(changed.iter().filter_map(value).collect()))
        }
    }
}
