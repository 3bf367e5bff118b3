//! What is known from watching a daemon, and the picture of it at a moment. Owns the folding of what is told; refuses to
//! look at a clock, a connection or a terminal.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    time::Duration,
};

use serde::Serialize;

use super::{
    pools::PoolUse,
    told::{Invocation, Told},
    window::{Quantiles, Window},
};
use crate::{cli::daemon_runs, daemon::Status, model::Verdict};

/// How many hooks are told apart. Beyond this only those that are known are counted.
const MOST_HOOKS: usize = 5000;

/// How often each verdict was given, from the mildest to the strictest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Verdicts([u64; Verdict::ALL.len()]);

/// What is known. Times are counted from the start of watching.
#[derive(Debug, Default)]
pub(super) struct Watch {
    hooks: BTreeMap<String, Tally>,
    events: Window,
    verdicts: Verdicts,
    dropped: u64,
    look: Option<Look>,
    stream_trouble: Option<String>,
    look_trouble: Option<String>,
}

/// What a look at the daemon shows.
#[derive(Debug, Clone)]
pub(super) struct Look {
    pub(super) status: Status,
    /// None if the daemon had other things to do than to list them.
    pub(super) runs: Option<Runs>,
    pub(super) pools: Vec<PoolUse>,
}

/// The runs with work in flight, or not long ago.
#[derive(Debug, Clone, Default)]
pub(super) struct Runs {
    pub(super) shown: Vec<daemon_runs::Row>,
    pub(super) left_out: usize,
}

#[derive(Debug)]
struct Tally {
    handler: String,
    runs: u64,
    window: Window,
    verdicts: Verdicts,
    failures: u64,
    last_failure: Option<(Duration, String)>,
}

/// Everything that is shown, as of a moment.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Picture {
    /// How long the daemon has been watched.
    #[serde(serialize_with = "seconds")]
    pub(super) seconds: Duration,
    /// What keeps the picture from being true any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) trouble: Option<String>,
    pub(super) status: Option<Status>,
    /// How much was lost, because it was not read in time.
    pub(super) dropped: u64,
    pub(super) events: EventsRow,
    pub(super) pools: Vec<PoolUse>,
    pub(super) hooks: Vec<HookRow>,
    pub(super) runs: Vec<daemon_runs::Row>,
    pub(super) runs_left_out: usize,
}

/// The answered events that concerned a hook.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct EventsRow {
    /// A second, within the last minute.
    #[serde(serialize_with = "rounded")]
    pub(super) rate: f64,
    pub(super) verdicts: Verdicts,
}

/// How a hook fares.
#[derive(Debug, Clone, Serialize)]
pub(super) struct HookRow {
    pub(super) hook: String,
    pub(super) handler: String,
    /// How often it was run.
    pub(super) runs: u64,
    /// A second, within the last minute.
    #[serde(serialize_with = "rounded")]
    pub(super) rate: f64,
    /// How long it ran within the last minute.
    #[serde(flatten, serialize_with = "quantiles")]
    pub(super) took: Option<Quantiles>,
    pub(super) verdicts: Verdicts,
    pub(super) failures: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) last_failure: Option<LastFailure>,
}

/// The last time that a hook brought no reply.
#[derive(Debug, Clone, Serialize)]
pub(super) struct LastFailure {
    #[serde(rename = "seconds_ago", serialize_with = "seconds")]
    pub(super) ago: Duration,
    pub(super) why: String,
}

impl Watch {
    /// Takes in what happened.
    pub(super) fn told(&mut self, told: Told, now: Duration) {
        match told {
            Told::Invocation(invocation) => self.invocation(invocation, now),
            Told::Outcome(verdict) => {
                self.events.count(now);
                self.verdicts.add(verdict);
            }
            Told::Dropped(number) => self.dropped += number,
        }
    }

    /// Takes in whether the stream is there.
    pub(super) fn stream(&mut self, trouble: Option<String>) {
        self.stream_trouble = trouble;
    }

    /// Takes in what a look showed. What it did not show stays as it was.
    pub(super) fn look(&mut self, look: Result<Look, String>) {
        match look {
            Ok(mut look) => {
                let former = self.look.take().and_then(|former| former.runs);
                look.runs = look.runs.or(former);
                self.look = Some(look);
                self.look_trouble = None;
            }
            Err(trouble) => self.look_trouble = Some(trouble),
        }
    }

    fn invocation(&mut self, invocation: Invocation, now: Duration) {
        let known = self.hooks.len();
        let tally = match self.hooks.entry(invocation.hook) {
            Entry::Vacant(_) if known >= MOST_HOOKS => return,
            entry => entry.or_insert_with(|| Tally::new(invocation.handler.clone())),
        };
        tally.handler = invocation.handler;
        tally.runs += 1;
        tally.window.measure(now, invocation.took);
        tally.verdicts.add(invocation.verdict);
        if let Some(why) = invocation.failure {
            tally.failures += 1;
            tally.last_failure = Some((now, why));
        }
    }

    /// Everything as of now.
    pub(super) fn picture(&self, now: Duration) -> Picture {
        let hooks = self.hooks.iter().map(|(name, tally)| tally.row(name, now)).collect();
        let look = self.look.as_ref();
        let runs = look.and_then(|look| look.runs.clone()).unwrap_or_default();
        Picture {
            seconds: now,
            trouble: self.look_trouble.clone().or_else(|| self.stream_trouble.clone()),
            status: look.map(|look| look.status.clone()),
            dropped: self.dropped,
            events: EventsRow { rate: self.events.rate(now), verdicts: self.verdicts },
            pools: look.map(|look| look.pools.clone()).unwrap_or_default(),
            hooks,
            runs: runs.shown,
            runs_left_out: runs.left_out,
        }
    }
}

impl Tally {
    fn new(handler: String) -> Self {
        Self {
            handler,
            runs: 0,
            window: Window::default(),
            verdicts: Verdicts::default(),
            failures: 0,
            last_failure: None,
        }
    }

    fn row(&self, name: &str, now: Duration) -> HookRow {
        let last = self.last_failure.as_ref();
        HookRow {
            hook: name.to_owned(),
            handler: self.handler.clone(),
            runs: self.runs,
            rate: self.window.rate(now),
            took: self.window.quantiles(now),
            verdicts: self.verdicts,
            failures: self.failures,
            last_failure: last
                .map(|(at, why)| LastFailure { ago: now.saturating_sub(*at), why: why.clone() }),
        }
    }
}

impl Verdicts {
    /// How often this one was given.
    pub(super) fn of(&self, verdict: Verdict) -> u64 {
        self.0[verdict as usize]
    }

    fn add(&mut self, verdict: Verdict) {
        self.0[verdict as usize] += 1;
    }
}

impl Serialize for Verdicts {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(Verdict::ALL.map(|verdict| (verdict, self.of(verdict))))
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes fields by reference")]
fn rounded<S: serde::Serializer>(rate: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64((rate * 1e3).round() / 1e3)
}

fn seconds<S: serde::Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    rounded(&time.as_secs_f64(), serializer)
}

#[expect(clippy::ref_option, reason = "serde passes fields by reference")]
fn quantiles<S: serde::Serializer>(took: &Option<Quantiles>, serializer: S) -> Result<S::Ok, S::Error> {
    let milliseconds = |time: Duration| (time.as_secs_f64() * 1e6).round() / 1e3;
    let p50 = took.map(|took| milliseconds(took.p50));
    let p99 = took.map(|took| milliseconds(took.p99));
    serializer.collect_map([("p50_ms", p50), ("p99_ms", p99)])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const NOW: Duration = Duration::from_secs(2);

    fn invocation(hook: &str, verdict: Verdict, failure: Option<&str>) -> Told {
        Told::Invocation(Invocation {
            hook: hook.into(),
            handler: "command".into(),
            verdict,
            took: Duration::from_millis(1),
            failure: failure.map(Into::into),
        })
    }

    #[test]
    fn what_happens_is_folded_into_rows() {
        let mut watch = Watch::default();
        watch.told(invocation("guard", Verdict::Proceed, None), Duration::ZERO);
        watch.told(invocation("guard", Verdict::Block, Some("timed_out")), Duration::from_secs(1));
        watch.told(invocation("audit", Verdict::Proceed, None), NOW);
        watch.told(Told::Outcome(Verdict::Block), NOW);
        watch.told(Told::Dropped(3), NOW);
        watch.told(Told::Dropped(4), NOW);
        let picture = serde_json::to_value(watch.picture(NOW)).unwrap();
        let expected = json!({
            "hook": "guard", "handler": "command", "runs": 2, "rate": 1.0, "p50_ms": 1.003, "p99_ms": 1.003,
            "verdicts": { "proceed": 1, "allow": 0, "ask": 0, "block": 1, "halt": 0 },
            "failures": 1, "last_failure": { "seconds_ago": 1.0, "why": "timed_out" },
        });
        assert_eq!(picture["hooks"][1], expected);
        assert_eq!(picture["hooks"][0]["hook"], "audit");
        assert_eq!((&picture["dropped"], &picture["events"]["rate"]), (&json!(7), &json!(0.5)));
        assert_eq!(picture["events"]["verdicts"]["block"], 1);
    }

    #[test]
    fn numbers_of_hooks_have_a_bound() {
        let mut watch = Watch::default();
        for number in 0..=MOST_HOOKS {
            watch.told(invocation(&number.to_string(), Verdict::Proceed, None), NOW);
        }
        watch.told(invocation("0", Verdict::Proceed, None), NOW);
        let hooks = watch.picture(NOW).hooks;
        assert_eq!((hooks.len(), hooks[0].runs), (MOST_HOOKS, 2));
    }

    #[test]
    fn a_daemon_that_is_gone_is_told_until_it_is_back() {
        let status = Status {
            version: "1".into(),
            pid: 1,
            phase: "ready".into(),
            started_at: 0,
            uptime_ms: 0,
            socket: "s".into(),
            tcp: None,
            metrics: None,
            workspaces: 0,
            hooks: 0,
            runs: 0,
            active_runs: 0,
            events_in_flight: 0,
            streams: 0,
            watch: "on".into(),
            audit: None,
            broken: Vec::new(),
        };
        let look = |runs| Look { status: status.clone(), runs, pools: Vec::new() };
        let mut watch = Watch::default();
        watch.look(Ok(look(Some(Runs { shown: Vec::new(), left_out: 5 }))));
        watch.stream(Some("the stream ended".into()));
        watch.look(Err("gone".into()));
        assert_eq!(watch.picture(NOW).trouble.as_deref(), Some("gone"));
        assert!(watch.picture(NOW).status.is_some());
        watch.look(Ok(look(None)));
        assert_eq!(watch.picture(NOW).trouble.as_deref(), Some("the stream ended"));
        watch.stream(None);
        let picture = watch.picture(NOW);
        assert_eq!((picture.trouble, picture.runs_left_out), (None, 5));
    }
}
