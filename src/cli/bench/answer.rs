//! What came back for one event, whatever the target.

use std::time::Duration;

use serde::Deserialize;

use super::super::outcome_view::given_verdict;
use crate::model::{Ended, EventKind, HookReport, Outcome, Strategy, Verdict};

/// What came back for one event.
#[derive(Debug)]
pub(super) struct BenchAnswer {
    pub(super) result: AnswerResult,
    /// The hooks that ran, where the target tells it.
    pub(super) hooks: Vec<HookTime>,
    /// How long the host waited for hooks, where the target tells it.
    pub(super) in_hooks: Option<Duration>,
}

/// How an event ended for its host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum AnswerResult {
    /// With an outcome, whose verdict is known unless it is in the words of an agent.
    Outcome(Option<Verdict>),
    /// It was turned away because there was too much to do.
    Shed,
    /// It was refused, with this word.
    Refused(String),
    /// There was no answer in time.
    TimedOut,
    /// The connection ended before there was an answer.
    Broken,
}

/// One invocation of a hook.
#[derive(Debug)]
pub(super) struct HookTime {
    pub(super) hook: Box<str>,
    pub(super) ended: Ended,
    pub(super) blocked: bool,
    pub(super) duration: Duration,
    pub(super) queued: Duration,
}

impl AnswerResult {
    /// The word for it in reports.
    pub(super) fn word(&self) -> &str {
        match self {
            Self::Outcome(verdict) => verdict.map_or("answered", Verdict::as_str),
            Self::Shed => "shed",
            Self::Refused(code) => code,
            Self::TimedOut => "no_answer",
            Self::Broken => "connection_lost",
        }
    }

    /// Whether the host got an outcome.
    pub(super) fn is_outcome(&self) -> bool {
        matches!(self, Self::Outcome(_))
    }
}

impl BenchAnswer {
    /// An answer without hooks.
    pub(super) fn of(result: AnswerResult) -> Self {
        Self { result, hooks: Vec::new(), in_hooks: None }
    }

    /// An outcome in process.
    pub(super) fn of_outcome(outcome: &Outcome) -> Self {
        let hooks: Vec<_> = outcome.hooks.iter().map(hook_time).collect();
        let in_hooks = time_in(&outcome.hooks).unwrap_or_else(|| in_stages(outcome.event, &hooks));
        Self { result: AnswerResult::Outcome(Some(outcome.verdict)), hooks, in_hooks: Some(in_hooks) }
    }

    /// An outcome as canonical JSON; nothing if it is none.
    pub(super) fn of_json(kind: EventKind, json: &[u8]) -> Option<Self> {
        let outcome: OutcomeJson<'_> = serde_json::from_slice(json).ok()?;
        let verdict = Verdict::ALL.into_iter().find(|verdict| verdict.as_str() == outcome.verdict)?;
        let hooks: Vec<_> = outcome.hooks.iter().filter_map(HookJson::time).collect();
        let in_hooks = in_stages(kind, &hooks);
        Some(Self { result: AnswerResult::Outcome(Some(verdict)), hooks, in_hooks: Some(in_hooks) })
    }
}

fn hook_time(report: &HookReport) -> HookTime {
    HookTime {
        hook: report.hook.as_str().into(),
        ended: report.ended,
        blocked: given_verdict(report).is_some_and(|verdict| verdict >= Verdict::Block),
        duration: report.duration,
        queued: report.queued,
    }
}

/// From when on a hook ran, since whatever point in time, and for how long.
type HookSpan = (Duration, Duration);

/// How long at least one hook ran.
fn union(mut spans: Vec<HookSpan>) -> Duration {
    spans.sort_unstable();
    let (mut total, mut end) = (Duration::ZERO, Duration::ZERO);
    for (started, duration) in spans {
        let to = started + duration;
        total += to.saturating_sub(started.max(end));
        end = end.max(to);
    }
    total
}

/// How long at least one hook ran; nothing if it is not known of all when they started.
fn time_in(reports: &[HookReport]) -> Option<Duration> {
    let ran = || reports.iter().filter(|report| !report.duration.is_zero());
    let starts: Option<Vec<_>> = ran().map(|report| report.started).collect();
    let starts = starts?;
    let Some(first) = starts.iter().min() else { return Some(Duration::ZERO) };
    let since_first = starts.iter().map(|started| started.saturating_duration_since(*first));
    Some(union(since_first.zip(ran().map(|report| report.duration)).collect()))
}

/// The same where nothing is known but how long each waited for its place and then took: hooks of interceptor events run one
/// after the other, others at the same time, each from when it has its place.
fn in_stages(kind: EventKind, hooks: &[HookTime]) -> Duration {
    match kind.strategy() {
        Strategy::Serial => hooks.iter().map(|hook| hook.duration).sum(),
        Strategy::Parallel => union(hooks.iter().map(|hook| (hook.queued, hook.duration)).collect()),
    }
}

/// The parts of an outcome that are counted.
#[derive(Deserialize)]
struct OutcomeJson<'j> {
    verdict: &'j str,
    #[serde(borrow)]
    hooks: Vec<HookJson<'j>>,
}

#[derive(Deserialize)]
struct HookJson<'j> {
    hook: &'j str,
    ended: &'j str,
    #[serde(default)]
    verdict: Option<&'j str>,
    duration_ms: f64,
    #[serde(default)]
    queued_ms: f64,
}

impl HookJson<'_> {
    fn time(&self) -> Option<HookTime> {
        let milliseconds = |number: f64| Duration::try_from_secs_f64(number / 1e3).unwrap_or_default();
        let verdict = self.verdict.and_then(|word| Verdict::ALL.into_iter().find(|it| it.as_str() == word));
        Some(HookTime {
            hook: self.hook.into(),
            ended: Ended::ALL.into_iter().find(|ended| ended.as_str() == self.ended)?,
            blocked: verdict.is_some_and(|verdict| verdict >= Verdict::Block),
            duration: milliseconds(self.duration_ms),
            queued: milliseconds(self.queued_ms),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{HandlerKind, HookName};

    const OUTCOME: &str = r#"{"decision_id":"1","event":"before_tool_dispatch","verdict":"block","reason":"r","by":"b",
        "suppress_output":false,"snapshot_version":1,"hooks":[
        {"hook":"a","handler":"command","ended":"timed_out","duration_ms":1.5,"queued_ms":20.0},
        {"hook":"b","handler":"rule","ended":"completed","verdict":"block","duration_ms":0.25}]}"#;

    #[test]
    fn an_outcome_tells_the_time_of_its_hooks() {
        let answer = BenchAnswer::of_json(EventKind::BeforeToolDispatch, OUTCOME.as_bytes()).unwrap();
        assert_eq!(answer.result.word(), "block");
        assert_eq!(answer.in_hooks, Some(Duration::from_micros(1750)), "one after the other");
        let [a, b] = answer.hooks.as_slice() else { panic!("{answer:?}") };
        assert_eq!((a.ended, a.blocked, a.queued), (Ended::TimedOut, false, Duration::from_millis(20)));
        assert_eq!((&*b.hook, b.blocked), ("b", true));
        let answer = BenchAnswer::of_json(EventKind::RunFailed, OUTCOME.as_bytes()).unwrap();
        assert_eq!(
            answer.in_hooks,
            Some(Duration::from_micros(1750)),
            "the first waited until the other had ended"
        );
        assert!(BenchAnswer::of_json(EventKind::RunFailed, b"{}").is_none());
    }

    #[test]
    fn hooks_that_wait_for_places_are_not_taken_for_hooks_that_began_together() {
        // The third hook waits for the place of the first; for 5 ms before the fourth, nothing runs.
        let json = br#"{"verdict":"proceed","hooks":[
            {"hook":"a","ended":"completed","duration_ms":10.0},
            {"hook":"b","ended":"completed","duration_ms":12.0,"queued_ms":0.0},
            {"hook":"c","ended":"completed","duration_ms":10.0,"queued_ms":10.0},
            {"hook":"d","ended":"completed","duration_ms":3.0,"queued_ms":25.0}]}"#;
        let answer = BenchAnswer::of_json(EventKind::RunFailed, json).unwrap();
        assert_eq!(answer.in_hooks, Some(Duration::from_millis(23)));
    }

    #[test]
    fn hooks_that_run_at_the_same_time_are_waited_for_once() {
        let begun = tokio::time::Instant::now().into_std();
        let report = |from: u64, length: u64| {
            let name = HookName::new("a").unwrap();
            let mut report = HookReport::new(name, HandlerKind::Native, Ended::Completed);
            report.duration = Duration::from_millis(length);
            report.started = Some(begun + Duration::from_millis(from));
            report
        };
        let milliseconds = |reports: &[HookReport]| time_in(reports).map(|time| time.as_millis());
        assert_eq!(milliseconds(&[]), Some(0));
        assert_eq!(milliseconds(&[report(20, 5), report(0, 10), report(2, 3), report(8, 6)]), Some(19));
        let unknown = HookReport { started: None, ..report(0, 1) };
        assert_eq!(milliseconds(&[unknown]), None);
    }
}
