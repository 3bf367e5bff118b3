//! The flags of `bench`: the target, the load, and what is searched or compared.

use std::{ops::RangeInclusive, path::PathBuf, time::Duration};

use clap::Args;

use super::{
    super::daemon_flag::SocketFlag,
    find_max::SearchBounds,
    rate_search::LatencyGoal,
    scenario::ScenarioLoad,
    scenario_file::{HIGHEST_RATE, LONGEST_DURATION, LONGEST_WAIT, ROUNDS, SENDERS, time},
    schedule::ArrivalProcess,
};

/// Where the load goes; without any of these, to an orchestrator in this process.
#[derive(Debug, Args)]
#[command(next_help_heading = "Target")]
pub(super) struct TargetFlags {
    /// Put the load on the running daemon, at its event socket
    #[arg(long, conflicts_with = "url")]
    pub(super) daemon: bool,

    #[command(flatten)]
    pub(super) socket: SocketFlag,

    /// Put the load on the daemon's socket of lines, `listen.lines`, all of it on one connection. Its event socket says what it
    /// uses of the machine
    #[arg(long, value_name = "PATH", conflicts_with = "url")]
    pub(super) lines: Option<PathBuf>,

    /// Put the load on a daemon at its TCP address: `http://127.0.0.1:8787`
    #[arg(long, value_name = "URL", conflicts_with = "socket")]
    pub(super) url: Option<String>,

    /// File with the token that the daemon wants of TCP clients
    #[arg(long, value_name = "FILE", requires = "url")]
    pub(super) token_file: Option<PathBuf>,

    /// Let `--url` name another machine, which then bears the load
    #[arg(long, requires = "url")]
    pub(super) allow_remote: bool,

    /// Workspace of the daemon that the events name, by its id
    #[arg(long, value_name = "ID")]
    pub(super) workspace_id: Option<String>,
}

/// How fast events are sent. What these leave open, the scenario says.
#[derive(Debug, Args)]
#[command(next_help_heading = "Load")]
pub(super) struct LoadFlags {
    /// Closed loop: so many senders, each of which waits for its answer before its next event
    #[arg(long, value_name = "N", conflicts_with = "rate", value_parser = whole(&SENDERS))]
    concurrency: Option<u32>,

    /// Open loop: events per second, whatever the answers take. Times count from when an event was due
    #[arg(long, value_name = "RATE", value_parser = rate)]
    rate: Option<f64>,

    /// How the events of an open loop are spread
    #[arg(long, value_name = "PROCESS")]
    arrivals: Option<ArrivalProcess>,

    /// How many events of an open loop may be under way, each on its connection; default: 64, in process 1024
    #[arg(long, value_name = "N", value_parser = whole(&SENDERS))]
    in_flight: Option<u32>,

    /// How long the load rises to its full height; not measured
    #[arg(long, value_name = "DURATION", value_parser = waiting)]
    ramp: Option<Duration>,

    /// How long the load lasts before it is measured
    #[arg(long, value_name = "DURATION", value_parser = waiting)]
    warm_up: Option<Duration>,

    /// How long it is measured
    #[arg(long, value_name = "DURATION", value_parser = measured)]
    duration: Option<Duration>,

    /// How long an answer may take before it counts as none
    #[arg(long, value_name = "DURATION", value_parser = above_zero)]
    timeout: Option<Duration>,

    /// Number of parts of the measured time whose differences say how sure the figures are; with `--versus`, number of turns
    #[arg(long, value_name = "N", value_parser = whole(&ROUNDS))]
    rounds: Option<u32>,

    /// Number from which all that is random follows
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
}

/// The search of the highest rate.
#[derive(Debug, Args)]
#[command(next_help_heading = "Search")]
pub(super) struct SearchFlags {
    /// Find the highest rate at which a percentile is as short as one of the next four flags says
    #[arg(long, requires = "goal", conflicts_with_all = ["concurrency", "versus"])]
    find_max: bool,

    /// Half of all events take at most this
    #[arg(long, group = "goal", requires = "find_max", value_name = "DURATION", value_parser = above_zero)]
    p50: Option<Duration>,

    /// 90 % of all events take at most this
    #[arg(long, group = "goal", requires = "find_max", value_name = "DURATION", value_parser = above_zero)]
    p90: Option<Duration>,

    /// 99 % of all events take at most this
    #[arg(long, group = "goal", requires = "find_max", value_name = "DURATION", value_parser = above_zero)]
    p99: Option<Duration>,

    /// 99.9 % of all events take at most this
    #[arg(long, group = "goal", requires = "find_max", value_name = "DURATION", value_parser = above_zero)]
    p999: Option<Duration>,

    /// Longest time for the whole search
    #[arg(long = "for", value_name = "DURATION", default_value = "5m", value_parser = above_zero)]
    time: Duration,

    /// Shortest time at one rate; it is longer where the percentile needs more events
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = above_zero)]
    step: Duration,
}

impl TargetFlags {
    /// Whether the load goes to a daemon's socket.
    pub(super) fn is_socket(&self) -> bool {
        self.daemon || self.lines.is_some() || self.socket.is_named()
    }
}

impl LoadFlags {
    /// What they say of the load.
    pub(super) fn load(&self) -> ScenarioLoad {
        ScenarioLoad {
            rate: self.rate,
            arrivals: self.arrivals,
            in_flight: self.in_flight,
            concurrency: self.concurrency,
            ramp: self.ramp,
            warm_up: self.warm_up,
            duration: self.duration,
            timeout: self.timeout,
            rounds: self.rounds,
            seed: self.seed,
        }
    }
}

impl SearchFlags {
    /// What is searched, if anything is.
    pub(super) fn goal(&self) -> Option<(LatencyGoal, SearchBounds)> {
        let goals = [(0.5, self.p50), (0.9, self.p90), (0.99, self.p99), (0.999, self.p999)];
        let goal =
            goals.into_iter().find_map(|(quantile, limit)| Some(LatencyGoal { quantile, limit: limit? }));
        let bounds = SearchBounds { time: self.time, step: self.step };
        goal.filter(|_| self.find_max).map(|goal| (goal, bounds))
    }
}

fn whole(range: &RangeInclusive<i64>) -> clap::builder::RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(*range.start()..=*range.end())
}

fn rate(text: &str) -> Result<f64, String> {
    let rate = text.parse::<f64>().ok().filter(|rate| *rate > 0.0 && *rate <= HIGHEST_RATE);
    rate.ok_or_else(|| format!("write a number of events a second above 0, up to {HIGHEST_RATE}"))
}

const A_TIME: &str = "write a number with its unit, such as `500ms` or `10s`";

fn waiting(text: &str) -> Result<Duration, String> {
    bounded(text, LONGEST_WAIT)
}

fn measured(text: &str) -> Result<Duration, String> {
    bounded(text, LONGEST_DURATION).and_then(not_zero)
}

fn above_zero(text: &str) -> Result<Duration, String> {
    bounded(text, LONGEST_WAIT).and_then(not_zero)
}

fn bounded(text: &str, longest: Duration) -> Result<Duration, String> {
    let found = time(text).filter(|found| *found <= longest);
    found.ok_or_else(|| format!("{A_TIME}, up to `{}h`", longest.as_secs() / 3600))
}

fn not_zero(time: Duration) -> Result<Duration, String> {
    if time.is_zero() { Err(A_TIME.to_owned()) } else { Ok(time) }
}
