//! Log lines about ended events. Reasons and errors are logged at level debug only: they may quote what a host sent.

use std::time::Duration;

use super::{message::EventRequest, notify::EndedEvent};
use crate::{
    model::{RunKey, Verdict},
    telemetry::EVENTS_TARGET,
};

/// A verdict that is more than the host going on.
pub(super) fn verdict(run: &RunKey, ended: EndedEvent<'_>) {
    let outcome = ended.outcome;
    if outcome.verdict <= Verdict::Allow || !tracing::enabled!(target: EVENTS_TARGET, tracing::Level::INFO) {
        return;
    }
    let (decision_id, event, verdict) = (&outcome.decision_id, outcome.event, outcome.verdict);
    let hook = outcome.by.as_ref().map(tracing::field::display);
    let (duration_ms, id) = (milliseconds(ended.waited), ended.redactor.text(run.run.as_str()));
    tracing::info!(
        target: EVENTS_TARGET, %decision_id, workspace = %run.workspace, run = %id, %event, %verdict, hook, duration_ms,
        "verdict"
    );
    if let Some(reason) = &outcome.reason {
        tracing::debug!(target: EVENTS_TARGET, %decision_id, reason = &*ended.redactor.text(reason), "reason");
    }
}

/// An event id that was used again with another payload.
pub(super) fn reused_id(run: &RunKey, request: &EventRequest) {
    let id = request.snapshot.redactor().text(run.run.as_str());
    tracing::warn!(
        target: EVENTS_TARGET, workspace = %run.workspace, run = %id, event = %request.event.kind,
        "an event id was used again with another payload; it counts as another event"
    );
}

/// The hooks that failed.
pub(super) fn invocations(run: &RunKey, ended: EndedEvent<'_>) {
    let outcome = ended.outcome;
    if !tracing::enabled!(target: EVENTS_TARGET, tracing::Level::WARN) {
        return;
    }
    for report in outcome.hooks.iter().filter(|report| report.ended.is_failure()) {
        let (decision_id, event, hook) = (&outcome.decision_id, outcome.event, &report.hook);
        let (duration_ms, id) = (milliseconds(report.duration), ended.redactor.text(run.run.as_str()));
        tracing::warn!(
            target: EVENTS_TARGET, %decision_id, workspace = %run.workspace, run = %id, %event, %hook,
            handler = %report.handler, ended = %report.ended, verdict = %report.verdict, duration_ms,
            queued_ms = milliseconds(report.queued),
            "a hook failed"
        );
        if let Some(error) = &report.error {
            tracing::debug!(target: EVENTS_TARGET, %decision_id, %hook, error = &*ended.redactor.text(error), "error");
        }
    }
}

/// Exact to a microsecond.
fn milliseconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e6).round() / 1e3
}
