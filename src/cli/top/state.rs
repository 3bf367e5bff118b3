//! What is known from watching a daemon, and a snapshot of it. Pure: clock, connection and terminal are elsewhere.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    time::Duration,
};

use serde::Serialize;

use super::{
    super::outcome_view::VerdictCounts,
    pools::PoolUsage,
    stream::{HookInvocation, StreamEvent},
};
use crate::{
    cli::runs,
    daemon::DaemonStatus,
    telemetry::{LatencyQuantiles, SlidingWindow},
};

/// The most hooks that are counted. Further ones are ignored.
const MOST_HOOKS: usize = 5000;

/// What is known. Times count from the start of watching.
#[derive(Debug, Default)]
pub(super) struct TopState {
    hooks: BTreeMap<String, HookTally>,
    events: SlidingWindow,
    verdicts: VerdictCounts,
    dropped: u64,
    poll: Option<DaemonPoll>,
    stream_error: Option<String>,
    poll_error: Option<String>,
}

/// The result of a poll.
#[derive(Debug, Clone)]
pub(super) struct DaemonPoll {
    pub(super) status: DaemonStatus,
    /// `None` if the daemon was too busy to list them.
    pub(super) runs: Option<ListedRuns>,
    pub(super) pools: Vec<PoolUsage>,
    /// How many invocations wait at hooks' own limits and for their workers.
    pub(super) waiting_at_hooks: f64,
}

/// Runs that are or were recently active.
#[derive(Debug, Clone, Default)]
pub(super) struct ListedRuns {
    pub(super) shown: Vec<runs::RunRow>,
    pub(super) left_out: usize,
}

#[derive(Debug)]
struct HookTally {
    handler: String,
    runs: u64,
    window: SlidingWindow,
    waits: SlidingWindow,
    verdicts: VerdictCounts,
    failures: u64,
    last_failure: Option<(Duration, String)>,
}

/// Everything that is shown at one moment.
#[derive(Debug, Clone, Serialize)]
pub(super) struct TopSnapshot {
    /// How long the daemon has been watched.
    #[serde(serialize_with = "seconds")]
    pub(super) seconds: Duration,
    /// Why the snapshot may be out of date.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
    pub(super) status: Option<DaemonStatus>,
    /// How many events were lost because they were not read in time.
    pub(super) dropped: u64,
    pub(super) events: EventTotals,
    pub(super) pools: Vec<PoolUsage>,
    /// How many invocations wait at hooks' own limits and for their workers.
    pub(super) waiting_at_hooks: f64,
    pub(super) hooks: Vec<HookActivity>,
    pub(super) runs: Vec<runs::RunRow>,
    pub(super) runs_left_out: usize,
}

/// The answered events that selected a hook.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct EventTotals {
    /// Per second, within the last minute.
    #[serde(serialize_with = "rounded")]
    pub(super) rate: f64,
    pub(super) verdicts: VerdictCounts,
}

/// The activity of a hook.
#[derive(Debug, Clone, Serialize)]
pub(super) struct HookActivity {
    pub(super) hook: String,
    pub(super) handler: String,
    /// How often it ran.
    pub(super) runs: u64,
    /// Per second, within the last minute.
    #[serde(serialize_with = "rounded")]
    pub(super) rate: f64,
    /// How long it took within the last minute.
    #[serde(flatten, serialize_with = "quantiles")]
    pub(super) took: Option<LatencyQuantiles>,
    /// The 99th percentile of what it waited within the last minute before it ran.
    #[serde(rename = "wait_p99_ms", skip_serializing_if = "Option::is_none", serialize_with = "some_ms")]
    pub(super) waited: Option<Duration>,
    pub(super) verdicts: VerdictCounts,
    pub(super) failures: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) last_failure: Option<LastFailure>,
}

/// The last failure of a hook.
#[derive(Debug, Clone, Serialize)]
pub(super) struct LastFailure {
    #[serde(rename = "seconds_ago", serialize_with = "seconds")]
    pub(super) ago: Duration,
    pub(super) why: String,
}

impl TopState {
    /// Adds an event of the stream.
    pub(super) fn apply(&mut self, event: StreamEvent, now: Duration) {
        match event {
            StreamEvent::Invocation(invocation) => self.invocation(invocation, now),
            StreamEvent::Outcome(verdict) => {
                self.events.count(now);
                self.verdicts.add(verdict);
            }
            StreamEvent::Dropped(number) => self.dropped += number,
        }
    }

    /// Sets why there is no stream; `None` while there is one.
    pub(super) fn set_stream_error(&mut self, error: Option<String>) {
        self.stream_error = error;
    }

    /// Adds the result of a poll. What it does not have stays as it was.
    pub(super) fn apply_poll(&mut self, poll: Result<DaemonPoll, String>) {
        match poll {
            Ok(mut poll) => {
                let former = self.poll.take().and_then(|former| former.runs);
                poll.runs = poll.runs.or(former);
                self.poll = Some(poll);
                self.poll_error = None;
            }
            Err(error) => self.poll_error = Some(error),
        }
    }

    fn invocation(&mut self, invocation: HookInvocation, now: Duration) {
        let known = self.hooks.len();
        let tally = match self.hooks.entry(invocation.hook) {
            Entry::Vacant(_) if known >= MOST_HOOKS => return,
            entry => entry.or_insert_with(|| HookTally::new(invocation.handler.clone())),
        };
        tally.handler = invocation.handler;
        tally.runs += 1;
        tally.window.measure(now, invocation.took);
        tally.waits.measure(now, invocation.queued);
        tally.verdicts.add(invocation.verdict);
        if let Some(why) = invocation.failure {
            tally.failures += 1;
            tally.last_failure = Some((now, why));
        }
    }

    /// Everything at this moment.
    pub(super) fn snapshot(&self, now: Duration) -> TopSnapshot {
        let hooks = self.hooks.iter().map(|(name, tally)| tally.row(name, now)).collect();
        let poll = self.poll.as_ref();
        let runs = poll.and_then(|poll| poll.runs.clone()).unwrap_or_default();
        TopSnapshot {
            seconds: now,
            error: self.poll_error.clone().or_else(|| self.stream_error.clone()),
            status: poll.map(|poll| poll.status.clone()),
            dropped: self.dropped,
            events: EventTotals { rate: self.events.rate(now), verdicts: self.verdicts },
            pools: poll.map(|poll| poll.pools.clone()).unwrap_or_default(),
            waiting_at_hooks: poll.map(|poll| poll.waiting_at_hooks).unwrap_or_default(),
            hooks,
            runs: runs.shown,
            runs_left_out: runs.left_out,
        }
    }
}

impl HookTally {
    fn new(handler: String) -> Self {
        Self {
            handler,
            runs: 0,
            window: SlidingWindow::default(),
            waits: SlidingWindow::default(),
            verdicts: VerdictCounts::default(),
            failures: 0,
            last_failure: None,
        }
    }

    fn row(&self, name: &str, now: Duration) -> HookActivity {
        let last = self.last_failure.as_ref();
        HookActivity {
            hook: name.to_owned(),
            handler: self.handler.clone(),
            runs: self.runs,
            rate: self.window.rate(now),
            took: self.window.quantiles(now),
            waited: self.waits.quantiles(now).map(|waits| waits.p99),
            verdicts: self.verdicts,
            failures: self.failures,
            last_failure: last
                .map(|(at, why)| LastFailure { ago: now.saturating_sub(*at), why: why.clone() }),
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes fields by reference")]
fn rounded<S: serde::Serializer>(rate: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64((rate * 1e3).round() / 1e3)
}

#[expect(clippy::ref_option, reason = "serde passes fields by reference")]
fn some_ms<S: serde::Serializer>(time: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    match time {
        Some(time) => crate::model::milliseconds(time, serializer),
        None => serializer.serialize_none(),
    }
}

fn seconds<S: serde::Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    rounded(&time.as_secs_f64(), serializer)
}

#[expect(clippy::ref_option, reason = "serde passes fields by reference")]
fn quantiles<S: serde::Serializer>(
    took: &Option<LatencyQuantiles>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let milliseconds = |time: Duration| (time.as_secs_f64() * 1e6).round() / 1e3;
    let p50 = took.map(|took| milliseconds(took.p50));
    let p99 = took.map(|took| milliseconds(took.p99));
    serializer.collect_map([("p50_ms", p50), ("p99_ms", p99)])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{super::example::status, *};
    use crate::model::Verdict;

    const NOW: Duration = Duration::from_secs(2);

    fn invocation(hook: &str, verdict: Verdict, failure: Option<&str>) -> StreamEvent {
        StreamEvent::Invocation(HookInvocation {
            hook: hook.into(),
            handler: "command".into(),
            verdict,
            took: Duration::from_millis(1),
            queued: Duration::from_millis(2),
            failure: failure.map(Into::into),
        })
    }

    #[test]
    fn events_are_added_to_the_rows_of_their_hooks() {
        let mut state = TopState::default();
        state.apply(invocation("guard", Verdict::Proceed, None), Duration::ZERO);
        state.apply(invocation("guard", Verdict::Block, Some("timed_out")), Duration::from_secs(1));
        state.apply(invocation("audit", Verdict::Proceed, None), NOW);
        state.apply(StreamEvent::Outcome(Verdict::Block), NOW);
        state.apply(StreamEvent::Dropped(3), NOW);
        state.apply(StreamEvent::Dropped(4), NOW);
        let snapshot = serde_json::to_value(state.snapshot(NOW)).unwrap();
        let expected = json!({
            "hook": "guard", "handler": "command", "runs": 2, "rate": 1.0, "p50_ms": 1.003, "p99_ms": 1.003,
            "wait_p99_ms": 2.007,
            "verdicts": { "proceed": 1, "allow": 0, "ask": 0, "block": 1, "halt": 0 },
            "failures": 1, "last_failure": { "seconds_ago": 1.0, "why": "timed_out" },
        });
        assert_eq!(snapshot["hooks"][1], expected);
        assert_eq!(snapshot["hooks"][0]["hook"], "audit");
        assert_eq!((&snapshot["dropped"], &snapshot["events"]["rate"]), (&json!(7), &json!(0.5)));
        assert_eq!(snapshot["events"]["verdicts"]["block"], 1);
    }

    #[test]
    fn the_number_of_hooks_is_bounded() {
        let mut state = TopState::default();
        for number in 0..=MOST_HOOKS {
            state.apply(invocation(&number.to_string(), Verdict::Proceed, None), NOW);
        }
        state.apply(invocation("0", Verdict::Proceed, None), NOW);
        let hooks = state.snapshot(NOW).hooks;
        assert_eq!((hooks.len(), hooks[0].runs), (MOST_HOOKS, 2));
    }

    #[test]
    fn an_unreachable_daemon_is_reported_until_it_is_back() {
        let status = status();
        let poll =
            |runs| DaemonPoll { status: status.clone(), runs, pools: Vec::new(), waiting_at_hooks: 0.0 };
        let mut state = TopState::default();
        state.apply_poll(Ok(poll(Some(ListedRuns { shown: Vec::new(), left_out: 5 }))));
        state.set_stream_error(Some("the stream ended".into()));
        state.apply_poll(Err("gone".into()));
        assert_eq!(state.snapshot(NOW).error.as_deref(), Some("gone"));
        assert!(state.snapshot(NOW).status.is_some());
        state.apply_poll(Ok(poll(None)));
        assert_eq!(state.snapshot(NOW).error.as_deref(), Some("the stream ended"));
        state.set_stream_error(None);
        let snapshot = state.snapshot(NOW);
        assert_eq!((snapshot.error, snapshot.runs_left_out), (None, 5));
    }
}
