//! How the figures of two loads relate, by their rounds. Pure.

use super::{
    report::{LatencySummary, MeasuredLoad, RatioRow, RoundFigures},
    statistics::RatioInterval,
};

/// How an interval is made of the rounds of two loads.
pub(super) type IntervalMethod = fn(&[f64], &[f64]) -> Option<RatioInterval>;

/// A figure of a whole load.
type TotalFigure = fn(&MeasuredLoad) -> Option<f64>;

/// The same of a round.
type RoundFigure = fn(&RoundFigures) -> Option<f64>;

/// The figures that are compared, of a whole load and of a round.
const FIGURES: [(&str, TotalFigure, RoundFigure); 3] = [
    ("p50", |load| latency(load, |it| it.p50_ms), |round| round.p50_ms),
    ("p99", |load| latency(load, |it| it.p99_ms), |round| round.p99_ms),
    ("outcomes per second", |load| Some(load.outcomes_per_second), |round| Some(round.outcomes_per_second)),
];

fn latency(load: &MeasuredLoad, pick: fn(&LatencySummary) -> f64) -> Option<f64> {
    load.latency.as_ref().map(pick)
}

/// How the figures of another load relate to those of the first.
pub(super) fn rows(first: &MeasuredLoad, other: &MeasuredLoad, method: IntervalMethod) -> Vec<RatioRow> {
    let row = |(name, total, of_round): &(&str, TotalFigure, RoundFigure)| {
        let rounds = |load: &MeasuredLoad| load.rounds.iter().map(*of_round).collect::<Option<Vec<f64>>>();
        let (first_total, other_total) = (total(first)?, total(other)?);
        let interval = rounds(first).zip(rounds(other)).and_then(|(first, other)| method(&first, &other));
        Some(RatioRow { figure: (*name).to_owned(), first: first_total, other: other_total, interval })
    };
    FIGURES.iter().filter_map(row).collect()
}
