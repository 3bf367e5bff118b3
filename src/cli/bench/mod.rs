//! `bench`: put a load on an orchestrator or a daemon, and measure what its hosts wait for.

mod answer;
mod arrivals;
mod command;
mod compare;
mod events;
mod find_max;
mod flags;
mod load;
mod machine;
mod markdown;
mod output;
mod page;
mod progress;
mod random;
mod rate_search;
mod ratios;
mod report;
mod runner;
mod scenario;
mod scenario_file;
mod schedule;
mod scratch;
mod sessions;
mod side;
mod statistics;
mod tally;
mod target;
#[cfg(test)]
mod tests;
mod versus;

pub(super) use command::BenchCommand;
