//! The spans of an event and its invocations, their random ids, and the sampling of traces by their id.
//! Spans hold names, ids and results, but no payloads, reasons or errors.

use std::{
    hash::{BuildHasher, RandomState},
    num::{NonZeroU64, NonZeroU128},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use crate::{
    FinishedEvent, RunRef,
    model::{
        DecisionId, Ended, EventKind, EventSpan, HandlerKind, HookName, HookReport, Redactor, Sampling,
        TraceParent, Verdict,
    },
};

/// A finished span in the export queue.
#[derive(Debug)]
pub(super) struct TraceSpan {
    pub(super) trace: NonZeroU128,
    pub(super) id: NonZeroU64,
    pub(super) parent: Option<NonZeroU64>,
    /// In nanoseconds since 1970.
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) of: SpanSubject,
    /// Secrets to remove from its texts.
    pub(super) redactor: Redactor,
}

/// What a span represents.
#[derive(Debug)]
pub(super) enum SpanSubject {
    Event { run: Arc<RunRef>, kind: EventKind, answer: Option<EventAnswer> },
    Hook { hook: HookName, handler: HandlerKind, ended: Ended, verdict: Verdict },
}

/// The result of an event.
#[derive(Debug)]
pub(super) struct EventAnswer {
    pub(super) decision_id: DecisionId,
    pub(super) verdict: Verdict,
    pub(super) by: Option<HookName>,
}

/// Which spans to create.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SpanScope {
    /// An event with an outcome, and its hooks.
    Answered,
    /// An event without an outcome, and its hooks.
    GivenUp,
    /// Hooks that ran in the background.
    Background,
}

/// The spans of an event; none if it has no span of its own.
pub(super) fn of(
    finished: FinishedEvent,
    scope: SpanScope,
    ids: &IdGenerator,
    now: Instant,
) -> Vec<TraceSpan> {
    let FinishedEvent { run, event, outcome, at, redactor, .. } = finished;
    let (Some(trace), Some(own)) = (event.trace, event.span) else { return Vec::new() };
    let clock = SpanClock { now, at: since_epoch(at) };
    let mut spans = Vec::with_capacity(1 + outcome.hooks.len());
    if scope != SpanScope::Background {
        let answer = (scope == SpanScope::Answered).then(|| EventAnswer {
            decision_id: outcome.decision_id,
            verdict: outcome.verdict,
            by: outcome.by.clone(),
        });
        let of = SpanSubject::Event { run, kind: event.kind, answer };
        spans.push(event_span(trace, own, of, clock, redactor.clone()));
    }
    let hook = |report| hook_span(trace, report, ids.span(), clock, redactor.clone());
    spans.extend(outcome.hooks.iter().map(hook));
    spans
}

fn event_span(
    trace: TraceParent,
    own: EventSpan,
    of: SpanSubject,
    clock: SpanClock,
    redactor: Redactor,
) -> TraceSpan {
    TraceSpan {
        trace: trace.trace(),
        id: trace.span(),
        parent: own.parent,
        start: clock.read(own.started),
        end: clock.at,
        of,
        redactor,
    }
}

fn hook_span(
    trace: TraceParent,
    report: &HookReport,
    id: NonZeroU64,
    clock: SpanClock,
    redactor: Redactor,
) -> TraceSpan {
    // A hook that did not run gets a span at the end of the event.
    let start = report.started.map_or(clock.at, |started| clock.read(started));
    let HookReport { hook, handler, ended, verdict, duration, .. } = report;
    TraceSpan {
        trace: trace.trace(),
        id,
        parent: Some(trace.span()),
        start,
        end: start.saturating_add(nanoseconds(*duration)),
        of: SpanSubject::Hook { hook: hook.clone(), handler: *handler, ended: *ended, verdict: *verdict },
        redactor,
    }
}

/// Wall-clock times derived from the monotonic clock, so that durations and order stay right when the clock is set.
#[derive(Debug, Clone, Copy)]
struct SpanClock {
    now: Instant,
    /// The current wall-clock time.
    at: u64,
}

impl SpanClock {
    fn read(self, moment: Instant) -> u64 {
        self.at.saturating_sub(nanoseconds(self.now.saturating_duration_since(moment)))
    }
}

fn since_epoch(time: SystemTime) -> u64 {
    nanoseconds(time.duration_since(UNIX_EPOCH).unwrap_or_default())
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Generates ids by hashing a counter with a random key of the system.
#[derive(Debug, Default)]
pub(super) struct IdGenerator {
    key: RandomState,
    next: AtomicU64,
}

impl IdGenerator {
    pub(super) fn span(&self) -> NonZeroU64 {
        NonZeroU64::new(self.draw()).unwrap_or(NonZeroU64::MIN)
    }

    pub(super) fn trace(&self) -> NonZeroU128 {
        let id = u128::from(self.draw()) << 64 | u128::from(self.draw());
        NonZeroU128::new(id).unwrap_or(NonZeroU128::MIN)
    }

    fn draw(&self) -> u64 {
        self.key.hash_one(self.next.fetch_add(1, Ordering::Relaxed))
    }
}

/// Whether a trace is sampled. Every program with the same ratio has the same result.
#[expect(clippy::cast_precision_loss, reason = "53 bits are as many as the number has")]
pub(super) fn sampling(trace: NonZeroU128, sample_ratio: f64) -> Sampling {
    const ALL: u128 = 1 << 53;
    let chance = (trace.get() % ALL) as f64 / ALL as f64;
    if chance < sample_ratio { Sampling::Kept } else { Sampling::Dropped }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn ids_differ_also_between_sources() {
        let sources = [IdGenerator::default(), IdGenerator::default()];
        let spans: HashSet<_> = (0..1000).flat_map(|_| sources.iter().map(IdGenerator::span)).collect();
        let traces: HashSet<_> = (0..1000).flat_map(|_| sources.iter().map(IdGenerator::trace)).collect();
        assert_eq!((spans.len(), traces.len()), (2000, 2000));
    }

    #[test]
    fn a_share_of_traces_is_kept_and_always_the_same() {
        let ids = IdGenerator::default();
        let traces: Vec<_> = (0..4000).map(|_| ids.trace()).collect();
        let kept = |sample_ratio| {
            traces.iter().filter(|trace| sampling(**trace, sample_ratio) == Sampling::Kept).count()
        };
        assert_eq!((kept(0.0), kept(1.0)), (0, 4000));
        assert!((700..1300).contains(&kept(0.25)), "{}", kept(0.25));
        let of_more = traces.iter().filter(|trace| sampling(**trace, 0.1) == Sampling::Kept);
        assert!(of_more.into_iter().all(|trace| sampling(*trace, 0.2) == Sampling::Kept));
        assert_eq!(sampling(NonZeroU128::MAX, 1.0), Sampling::Kept);
    }
}
