//! A scenario: which events are sent, for which hooks, and how fast. As run: nothing in it is out of bounds.

use std::{path::PathBuf, time::Duration};

use serde::{Deserialize, Serialize};

use super::schedule::ArrivalProcess;
use crate::model::EventKind;

/// Sessions that are open at a time, where the scenario does not say.
pub(super) const DEFAULT_SESSIONS: u32 = 64;

/// How long is measured.
const DEFAULT_DURATION: Duration = Duration::from_secs(10);

/// How long is not measured before that: caches fill, workers start, connections are made.
const DEFAULT_WARM_UP: Duration = Duration::from_secs(2);

/// How long an answer may take before it counts as none.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

/// Into how many parts the measured time is divided, so that their differences say how sure the figures are.
const DEFAULT_ROUNDS: u32 = 10;

/// What is sent, and how fast.
#[derive(Debug, Clone)]
pub(super) struct Scenario {
    /// The file as it was named, or that it is the built-in one.
    pub(super) name: String,
    pub(super) description: Option<String>,
    /// Sessions that are open at a time.
    pub(super) sessions: u32,
    /// How many events a run has before it completes and its session begins another; none for a run that stays open.
    pub(super) events_per_run: Option<u32>,
    pub(super) mix: Vec<EventShare>,
    pub(super) hooks: ScenarioHooks,
    /// The workspace of a daemon that the events name.
    pub(super) workspace_id: Option<String>,
    pub(super) load: ScenarioLoad,
}

/// Events of one kind, and how many of all they are.
#[derive(Debug, Clone)]
pub(super) struct EventShare {
    pub(super) kind: EventKind,
    pub(super) weight: f64,
    /// What matchers see, such as the tool's name.
    pub(super) matched: Option<String>,
    pub(super) payload: PayloadSize,
}

/// The bytes of text in an event: equally likely between two bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PayloadSize {
    pub(super) least: usize,
    pub(super) most: usize,
}

/// The hooks to run with.
#[derive(Debug, Clone)]
pub(super) enum ScenarioHooks {
    /// Those of the workspace that is found as by any other command.
    Unsaid,
    /// Those of a workspace.
    Workspace(PathBuf),
    /// Those of the scenario itself.
    Inline(Vec<InlineHook>),
}

/// A hook that a scenario brings.
#[derive(Debug, Clone)]
pub(super) struct InlineHook {
    /// The text of its hook file. Line and column of each character are those in the scenario.
    pub(super) text: String,
}

/// How fast events are sent, and for how long, as far as a scenario says it.
#[derive(Debug, Clone, Default)]
pub(super) struct ScenarioLoad {
    pub(super) rate: Option<f64>,
    pub(super) arrivals: Option<ArrivalProcess>,
    pub(super) in_flight: Option<u32>,
    pub(super) concurrency: Option<u32>,
    pub(super) ramp: Option<Duration>,
    pub(super) warm_up: Option<Duration>,
    pub(super) duration: Option<Duration>,
    pub(super) timeout: Option<Duration>,
    pub(super) rounds: Option<u32>,
    pub(super) seed: Option<u64>,
}

/// How events follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "loop", rename_all = "snake_case")]
pub(super) enum LoadMode {
    /// So many senders, each of which sends its next event when the one before is answered.
    Closed {
        /// The number of senders.
        concurrency: u32,
    },
    /// Events are due at a rate, whatever the answers take.
    Open {
        /// Events a second.
        rate: f64,
        /// How they are spread.
        arrivals: ArrivalProcess,
        /// How many may be under way; more wait, and their wait counts.
        in_flight: u32,
    },
}

/// How a load is put on a target: all that a scenario and the flags left open has its default.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct LoadPlan {
    #[serde(flatten)]
    pub(super) mode: LoadMode,
    #[serde(rename = "ramp_seconds", with = "seconds")]
    pub(super) ramp: Duration,
    #[serde(rename = "warm_up_seconds", with = "seconds")]
    pub(super) warm_up: Duration,
    #[serde(rename = "duration_seconds", with = "seconds")]
    pub(super) duration: Duration,
    #[serde(rename = "timeout_seconds", with = "seconds")]
    pub(super) timeout: Duration,
    pub(super) rounds: u32,
    pub(super) seed: u64,
}

impl ScenarioLoad {
    /// What these say, and what the others say where these say nothing. A rate or a concurrency decides which loop it is.
    pub(super) fn or(self, others: &Self) -> Self {
        let says_loop = self.rate.is_some() || self.concurrency.is_some();
        let of_loop = if says_loop { None } else { Some(others) };
        Self {
            rate: self.rate.or_else(|| of_loop?.rate),
            concurrency: self.concurrency.or_else(|| of_loop?.concurrency),
            arrivals: self.arrivals.or(others.arrivals),
            in_flight: self.in_flight.or(others.in_flight),
            ramp: self.ramp.or(others.ramp),
            warm_up: self.warm_up.or(others.warm_up),
            duration: self.duration.or(others.duration),
            timeout: self.timeout.or(others.timeout),
            rounds: self.rounds.or(others.rounds),
            seed: self.seed.or(others.seed),
        }
    }

    /// The plan for so many sessions, with so many senders of each loop where nothing says how many. A session has one event
    /// under way at a time, so there are no more senders than sessions.
    pub(super) fn plan(&self, sessions: u32, (closed, open): (u32, u32)) -> LoadPlan {
        let mode = match (self.rate, self.concurrency) {
            (Some(rate), _) => LoadMode::Open {
                rate,
                arrivals: self.arrivals.unwrap_or(ArrivalProcess::Constant),
                in_flight: self.in_flight.unwrap_or(open).min(sessions),
            },
            (None, concurrency) => {
                LoadMode::Closed { concurrency: concurrency.unwrap_or(closed).min(sessions) }
            }
        };
        LoadPlan {
            mode,
            ramp: self.ramp.unwrap_or_default(),
            warm_up: self.warm_up.unwrap_or(DEFAULT_WARM_UP),
            duration: self.duration.unwrap_or(DEFAULT_DURATION),
            timeout: self.timeout.unwrap_or(DEFAULT_TIMEOUT),
            rounds: self.rounds.unwrap_or(DEFAULT_ROUNDS),
            seed: self.seed.unwrap_or(1),
        }
    }
}

impl LoadPlan {
    /// How many events may be under way.
    pub(super) fn senders(&self) -> u32 {
        match self.mode {
            LoadMode::Closed { concurrency } => concurrency,
            LoadMode::Open { in_flight, .. } => in_flight,
        }
    }

    /// When measuring begins, since the start.
    pub(super) fn measured_from(&self) -> Duration {
        self.ramp + self.warm_up
    }

    /// When it ends, since the start.
    pub(super) fn measured_to(&self) -> Duration {
        self.measured_from() + self.duration
    }

    /// The part of the measured time in which a moment is; nothing outside of it.
    pub(super) fn round_of(&self, since_start: Duration) -> Option<usize> {
        let inside =
            since_start.checked_sub(self.measured_from()).filter(|inside| *inside < self.duration)?;
        let round = inside.as_nanos() * u128::from(self.rounds) / self.duration.as_nanos().max(1);
        usize::try_from(round).ok()
    }
}

/// A duration in JSON.
mod seconds {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(duration.as_secs_f64())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        let seconds = f64::deserialize(deserializer)?;
        Duration::try_from_secs_f64(seconds).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_for_the_other_loop_replaces_the_loop_of_the_scenario() {
        let scenario = ScenarioLoad { rate: Some(100.0), seed: Some(5), ..ScenarioLoad::default() };
        let flags = ScenarioLoad { concurrency: Some(4), ..ScenarioLoad::default() };
        let plan = flags.or(&scenario).plan(1000, (8, 64));
        assert_eq!((plan.mode, plan.seed), (LoadMode::Closed { concurrency: 4 }, 5));
        let plan = ScenarioLoad::default().or(&scenario).plan(5, (8, 64));
        assert_eq!(plan.senders(), 5, "no more than there are sessions");
        let plan = ScenarioLoad::default().or(&scenario).plan(1000, (8, 64));
        assert!(matches!(plan.mode, LoadMode::Open { in_flight: 64, .. }));
    }

    #[test]
    fn each_moment_of_the_measured_time_is_in_one_round() {
        let load =
            ScenarioLoad { rounds: Some(4), duration: Some(Duration::from_secs(2)), ..Default::default() };
        let plan = load.plan(1, (1, 1));
        let round = |milliseconds| plan.round_of(Duration::from_millis(milliseconds));
        assert_eq!(
            [1999, 2000, 2499, 2500, 3999, 4000].map(round),
            [None, Some(0), Some(0), Some(1), Some(3), None]
        );
    }
}
