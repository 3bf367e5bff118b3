//! The result of a replay as programs read it, and as the view lays it out. Refuses to format anything.

use std::{collections::BTreeMap, path::Path, sync::Arc, time::Duration};

use serde::Serialize;

use super::{
    finding::{Finding, Told},
    play::{Answered, Finished},
    recording::Recording,
    tally::{Row, Tally, Verdicts},
};
use crate::{
    model::{EventKind, HandlerKind, Hook, HookName, HookReport, Note, Target, Verdict},
    registry::Snapshot,
};

/// Everything there is to say about a replay.
#[derive(Debug, Serialize)]
pub(super) struct Report<'a> {
    recording: &'a Path,
    pub(super) sessions: u32,
    events: Vec<PlayedEvent>,
    broken_lines: Vec<BrokenLine<'a>>,
    pub(super) by_event: Vec<EventRow>,
    pub(super) by_hook: Vec<HookRow>,
    pub(super) totals: Totals,
    #[serde(skip)]
    pub(super) findings: BTreeMap<Finding, Told>,
}

#[derive(Debug, Serialize)]
struct PlayedEvent {
    line: usize,
    copy: u32,
    run: String,
    event: EventKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    matched: Option<Arc<str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    verdict: Option<Verdict>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<Arc<str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<HookName>,
    patched: Vec<&'static str>,
    notes: Vec<Note>,
    suppress_output: bool,
    /// Whether the outcome is that of an earlier event, whose hooks these are.
    repeated: bool,
    hooks: Vec<HookReport>,
    duration_ms: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

#[derive(Debug, Serialize)]
struct BrokenLine<'a> {
    line: usize,
    message: &'a str,
}

/// The events of one kind.
#[derive(Debug, Serialize)]
pub(super) struct EventRow {
    pub(super) event: EventKind,
    pub(super) count: u64,
    pub(super) verdicts: BTreeMap<&'static str, u64>,
    pub(super) no_outcome: u64,
    pub(super) p50_ms: Option<f64>,
    pub(super) p99_ms: Option<f64>,
}

/// The invocations of one hook.
#[derive(Debug, Serialize)]
pub(super) struct HookRow {
    pub(super) hook: String,
    pub(super) handler: HandlerKind,
    /// Of a command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) mode: Option<&'static str>,
    pub(super) runs: u64,
    pub(super) verdicts: BTreeMap<&'static str, u64>,
    pub(super) failures: u64,
    pub(super) p50_ms: Option<f64>,
    pub(super) p99_ms: Option<f64>,
}

/// Everything together.
#[derive(Debug, Serialize)]
pub(super) struct Totals {
    pub(super) events: u64,
    pub(super) runs: u64,
    pub(super) no_outcome: u64,
    pub(super) repeated: u64,
    pub(super) broken_lines: usize,
    pub(super) invocations: u64,
    pub(super) failures: u64,
    pub(super) seconds: f64,
    pub(super) events_per_second: f64,
}

impl<'a> Report<'a> {
    pub(super) fn new(
        recording: &'a Recording,
        sessions: u32,
        mut tally: Tally,
        took: Duration,
        snapshot: &Snapshot,
    ) -> Self {
        let mut kept = tally.kept.take().unwrap_or_default();
        kept.sort_by_key(|finished| (finished.copy, finished.line));
        let mut by_hook = Vec::new();
        for registered in snapshot.hooks() {
            let hook = &registered.hook;
            by_hook.push(hook_row(hook, tally.by_hook.get(&hook.name)));
        }
        Self {
            recording: &recording.name,
            sessions,
            events: kept.into_iter().map(|finished| played(finished, sessions)).collect(),
            broken_lines: recording
                .broken
                .iter()
                .map(|broken| BrokenLine { line: broken.line, message: &broken.message })
                .collect(),
            by_event: tally.by_event.iter().map(|(event, row)| event_row(*event, row)).collect(),
            totals: totals(recording, sessions, &tally, took),
            by_hook,
            findings: tally.findings,
        }
    }
}

fn played(finished: Finished, sessions: u32) -> PlayedEvent {
    let run = match sessions {
        1 => finished.run.to_string(),
        _ => format!("{}#{}", finished.run, finished.copy),
    };
    let repeated = finished.answered == Answered::AsBefore;
    let (outcome, error) = match finished.result {
        Ok(outcome) => (Some(outcome), None),
        Err(error) => (None, Some(error)),
    };
    PlayedEvent {
        line: finished.line,
        copy: finished.copy,
        run,
        event: finished.kind,
        matched: finished.matched,
        verdict: outcome.as_ref().map(|outcome| outcome.verdict),
        reason: outcome.as_ref().and_then(|outcome| outcome.reason.clone()),
        by: outcome.as_ref().and_then(|outcome| outcome.by.clone()),
        patched: outcome
            .iter()
            .flat_map(|outcome| outcome.patched.iter().map(|(target, _)| Target::as_str(target)))
            .collect(),
        suppress_output: outcome.as_ref().is_some_and(|outcome| outcome.suppress_output),
        notes: outcome.iter().flat_map(|outcome| outcome.notes.clone()).collect(),
        repeated,
        hooks: outcome.map(|outcome| outcome.hooks).unwrap_or_default(),
        duration_ms: milliseconds(finished.took),
        error,
    }
}

fn event_row(event: EventKind, row: &Row) -> EventRow {
    EventRow {
        event,
        count: row.count,
        verdicts: counts(row.verdicts),
        no_outcome: row.failed,
        p50_ms: row.times.quantile(0.5).map(milliseconds),
        p99_ms: row.times.quantile(0.99).map(milliseconds),
    }
}

/// The row of a hook, also of one that never ran: that may be the surprise.
fn hook_row(hook: &Hook, row: Option<&Row>) -> HookRow {
    HookRow {
        hook: hook.name.to_string(),
        handler: hook.handler.kind(),
        mode: hook.handler.mode(),
        runs: row.map_or(0, |row| row.count),
        verdicts: counts(row.map(|row| row.verdicts).unwrap_or_default()),
        failures: row.map_or(0, |row| row.failed),
        p50_ms: row.and_then(|row| row.times.quantile(0.5)).map(milliseconds),
        p99_ms: row.and_then(|row| row.times.quantile(0.99)).map(milliseconds),
    }
}

fn totals(recording: &Recording, sessions: u32, tally: &Tally, took: Duration) -> Totals {
    let events = tally.events();
    #[expect(clippy::cast_precision_loss, reason = "a rate needs no more digits than a double has")]
    let rate = events as f64 / took.as_secs_f64().max(1e-9);
    Totals {
        events,
        runs: recording.runs.len() as u64 * u64::from(sessions),
        no_outcome: tally.refused(),
        repeated: tally.repeated,
        broken_lines: recording.broken.len(),
        invocations: tally.by_hook.values().map(|row| row.count).sum(),
        failures: tally.by_hook.values().map(|row| row.failed).sum(),
        seconds: milliseconds(took) / 1e3,
        events_per_second: (rate * 10.0).round() / 10.0,
    }
}

fn counts(verdicts: Verdicts) -> BTreeMap<&'static str, u64> {
    Verdict::ALL.into_iter().map(|verdict| (verdict.as_str(), verdicts.get(verdict))).collect()
}

/// In milliseconds, to the microsecond.
fn milliseconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}
