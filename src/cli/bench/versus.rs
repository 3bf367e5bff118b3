//! Two settings in turns: each round measures both, so that what changes on the machine meanwhile changes both.

use std::time::Duration;

use super::{
    load::{LoadEnd, LoadResult, LoadSubject},
    runner::LoadRunner,
    scenario::LoadPlan,
    target::TargetGone,
};

/// What is not counted of a round after the first.
const ROUND_WARM_UP: Duration = Duration::from_millis(200);

/// One of two settings.
#[derive(Debug, Clone)]
pub(super) struct VersusSide {
    pub(super) subject: LoadSubject,
    pub(super) plan: LoadPlan,
}

/// Measures two settings in turns, and returns one load of each with as many rounds as planned. Ends with the first load
/// that does not go as planned.
///
/// Returns an error if a target cannot be reached.
pub(super) async fn measure(
    runner: &LoadRunner<'_>,
    first: &VersusSide,
    other: &VersusSide,
) -> Result<[LoadResult; 2], TargetGone> {
    let rounds = first.plan.rounds;
    let mut totals: [Option<LoadResult>; 2] = [None, None];
    'rounds: for round in 0..rounds {
        // Whoever is second in a round finds the machine as the other has left it.
        let order = if round % 2 == 0 { [0, 1] } else { [1, 0] };
        for place in order {
            let side = if place == 0 { first } else { other };
            let what = format!("{} round {} of {rounds}", if place == 0 { "A" } else { "B" }, round + 1);
            let result = runner.run(&side.subject, &round_plan(&side.plan, round, rounds), &what).await;
            let total = match (result, totals[place].take()) {
                (Ok(result), Some(before)) => before.followed_by(result),
                (Err(TargetGone(why)), Some(before)) => {
                    LoadResult { end: LoadEnd::TargetGone(why), ..before }
                }
                (result, None) => result?,
            };
            let is_complete = total.end == LoadEnd::Complete;
            totals[place] = Some(total);
            if !is_complete {
                break 'rounds;
            }
        }
    }
    match totals {
        [Some(first), Some(other)] => Ok([first, other]),
        _ => Err(TargetGone("it ended before both settings were measured".to_owned())),
    }
}

/// One round of a plan.
fn round_plan(plan: &LoadPlan, round: u32, rounds: u32) -> LoadPlan {
    let warm_up = if round == 0 { plan.warm_up } else { plan.warm_up.min(ROUND_WARM_UP) };
    LoadPlan {
        ramp: if round == 0 { plan.ramp } else { Duration::ZERO },
        warm_up,
        duration: plan.duration / rounds.max(1),
        rounds: 1,
        seed: plan.seed.wrapping_add(u64::from(round)),
        ..plan.clone()
    }
}
