//! Intervals of confidence: of a share, of a mean, and of the ratio of two settings. Pure.

use serde::{Deserialize, Serialize};

/// Of a normal distribution, 95 % lie within so many standard deviations.
const NORMAL_95: f64 = 1.959_964;

/// The two-sided 95 % quantiles of Student's t distribution, from 1 to 30 degrees of freedom.
const STUDENT_95: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
];

/// A ratio with the interval in which it lies with a confidence of 95 %.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct RatioInterval {
    pub(super) ratio: f64,
    pub(super) low: f64,
    pub(super) high: f64,
}

impl RatioInterval {
    /// Whether the two settings differ: 1 is outside of the interval.
    pub(super) fn is_difference(&self) -> bool {
        self.low > 1.0 || self.high < 1.0
    }

    /// By the mean of logarithms of ratios, and how far from it the true one may be.
    fn of_logarithm(mean: f64, margin: f64) -> Self {
        Self { ratio: mean.exp(), low: (mean - margin).exp(), high: (mean + margin).exp() }
    }
}

/// The quantile of Student's t distribution, two-sided for 95 %. Between two whole numbers of degrees, the larger one.
fn student(degrees: f64) -> f64 {
    let below = STUDENT_95.iter().zip(1_u8..).take_while(|(_, known)| f64::from(*known) <= degrees);
    match below.last() {
        None => STUDENT_95[0],
        // Cornish and Fisher's first terms; good to three digits from here on.
        Some((_, 30)) if degrees > 30.0 => NORMAL_95 + (NORMAL_95.powi(3) + NORMAL_95) / (4.0 * degrees),
        Some((quantile, _)) => *quantile,
    }
}

/// The mean and the variance of numbers; nothing of fewer than two.
#[expect(clippy::cast_precision_loss, reason = "there are few")]
fn moments(numbers: &[f64]) -> Option<(f64, f64)> {
    let count = numbers.len() as f64;
    if numbers.len() < 2 {
        return None;
    }
    let mean = numbers.iter().sum::<f64>() / count;
    let squares: f64 = numbers.iter().map(|number| (number - mean).powi(2)).sum();
    Some((mean, squares / (count - 1.0)))
}

/// The logarithms of numbers, which all have to be above 0.
fn logarithms(numbers: &[f64]) -> Option<Vec<f64>> {
    let usable = numbers.iter().all(|number| *number > 0.0 && number.is_finite());
    usable.then(|| numbers.iter().map(|number| number.ln()).collect())
}

/// How `after` relates to `before`, measured in pairs, each in the same round: a paired t interval of the logarithms of their
/// ratios.
///
/// Returns nothing of fewer than two pairs, or if a number is not above 0.
#[expect(clippy::cast_precision_loss, reason = "there are few")]
pub(super) fn paired_ratio(before: &[f64], after: &[f64]) -> Option<RatioInterval> {
    let pairs = logarithms(before)?.into_iter().zip(logarithms(after)?);
    let differences: Vec<f64> = pairs.map(|(before, after)| after - before).collect();
    let (mean, variance) = moments(&differences)?;
    let count = differences.len() as f64;
    Some(RatioInterval::of_logarithm(mean, student(count - 1.0) * (variance / count).sqrt()))
}

/// How `after` relates to `before`, measured apart from each other: Welch's t interval of the logarithms.
///
/// Returns nothing of fewer than two numbers on a side, or if one is not above 0.
#[expect(clippy::cast_precision_loss, reason = "there are few")]
pub(super) fn unpaired_ratio(before: &[f64], after: &[f64]) -> Option<RatioInterval> {
    let (first, first_variance) = moments(&logarithms(before)?)?;
    let (second, second_variance) = moments(&logarithms(after)?)?;
    let (first_count, second_count) = (before.len() as f64, after.len() as f64);
    let (a, b) = (first_variance / first_count, second_variance / second_count);
    let spread = a + b;
    // Welch and Satterthwaite; without any spread, the interval is a point whatever the degrees.
    let degrees = if spread > 0.0 {
        spread.powi(2) / (a.powi(2) / (first_count - 1.0) + b.powi(2) / (second_count - 1.0))
    } else {
        1.0
    };
    Some(RatioInterval::of_logarithm(second - first, student(degrees) * spread.sqrt()))
}

/// The share in which so many of so many are, with a confidence of 95 %: Wilson's interval. Everything, of none.
#[expect(clippy::cast_precision_loss, reason = "fewer than 2^53 events are sent")]
pub(super) fn share_interval(some: u64, all: u64) -> (f64, f64) {
    if all == 0 {
        return (0.0, 1.0);
    }
    let (count, share) = (all as f64, some as f64 / all as f64);
    let square = NORMAL_95 * NORMAL_95;
    let center = share + square / (2.0 * count);
    let margin = NORMAL_95 * (share * (1.0 - share) / count + square / (4.0 * count * count)).sqrt();
    let scale = 1.0 + square / count;
    (((center - margin) / scale).max(0.0), ((center + margin) / scale).min(1.0))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{super::random::LoadRandom, *};

    #[test]
    fn quantiles_go_down_to_those_of_the_normal_distribution() {
        let quantiles: Vec<f64> = (1..200_u8).map(|degrees| student(f64::from(degrees))).collect();
        assert!(quantiles.windows(2).all(|pair| pair[0] >= pair[1]), "{quantiles:?}");
        // From printed tables.
        for (degrees, printed) in [(0.5, 12.706), (9.9, 2.262), (40.0, 2.021), (60.0, 2.000), (120.0, 1.980)]
        {
            assert!((student(degrees) - printed).abs() < 0.002, "{degrees}: {}", student(degrees));
        }
    }

    #[test]
    fn too_little_gives_no_interval() {
        assert_eq!(paired_ratio(&[1.0], &[2.0]), None);
        assert_eq!(unpaired_ratio(&[1.0, 2.0], &[1.0]), None);
        assert_eq!(paired_ratio(&[1.0, 0.0], &[1.0, 1.0]), None);
        assert_eq!(share_interval(0, 0), (0.0, 1.0));
    }

    #[test]
    fn a_share_is_as_wilson_has_it() {
        // 10 of 100: 5.52 % to 17.44 %.
        let (low, high) = share_interval(10, 100);
        assert!((low - 0.0552).abs() < 1e-4 && (high - 0.1744).abs() < 1e-4, "{low} {high}");
        let (low, high) = share_interval(0, 100);
        assert!(low == 0.0 && (high - 0.0370).abs() < 1e-4, "{low} {high}");
    }

    /// Rounds whose values vary by some 5 % each, and by some 20 % together from round to round.
    fn rounds(random: &mut LoadRandom, count: usize, ratio: f64) -> (Vec<f64>, Vec<f64>) {
        let mut normal = || (0..12).map(|_| random.share()).sum::<f64>() - 6.0;
        let pair = |_| {
            let round = 10.0 * (0.2 * normal()).exp();
            (round * (0.05 * normal()).exp(), round * ratio * (0.05 * normal()).exp())
        };
        (0..count).map(pair).unzip()
    }

    #[test]
    fn nineteen_of_twenty_intervals_contain_the_true_ratio() {
        let mut random = LoadRandom::new(3);
        let trials = 2_000;
        let mut contained = [0_u32; 2];
        for _ in 0..trials {
            let (before, after) = rounds(&mut random, 10, 1.3);
            for (method, found) in [paired_ratio, unpaired_ratio].into_iter().zip(&mut contained) {
                let interval = method(&before, &after).unwrap();
                *found += u32::from(interval.low <= 1.3 && 1.3 <= interval.high);
            }
        }
        let [paired, unpaired] = contained.map(|found| f64::from(found) / f64::from(trials));
        assert!((0.935..0.965).contains(&paired), "{paired}");
        // Rounds that go up and down together make the other one wider than it has to be.
        assert!(unpaired > 0.99, "{unpaired}");
    }

    proptest! {
        #[test]
        fn an_interval_contains_its_ratio_and_is_turned_around_with_its_sides(
            pairs in prop::collection::vec((0.001_f64..1000.0, 0.001_f64..1000.0), 2..40),
        ) {
            let (before, after): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
            for method in [paired_ratio, unpaired_ratio] {
                let there = method(&before, &after).unwrap();
                let back = method(&after, &before).unwrap();
                prop_assert!(there.low <= there.ratio && there.ratio <= there.high);
                prop_assert!((there.ratio * back.ratio - 1.0).abs() < 1e-9);
                prop_assert!((there.low * back.high - 1.0).abs() < 1e-6);
                prop_assert_eq!(there.is_difference(), back.is_difference());
            }
        }

        #[test]
        fn equal_rounds_with_one_ratio_leave_no_doubt(
            before in prop::collection::vec(0.001_f64..1000.0, 2..40), ratio in 0.1_f64..10.0,
        ) {
            let after: Vec<f64> = before.iter().map(|value| value * ratio).collect();
            let interval = paired_ratio(&before, &after).unwrap();
            prop_assert!((interval.low - ratio).abs() < 1e-6 * ratio);
            prop_assert!((interval.high - ratio).abs() < 1e-6 * ratio);
        }

        #[test]
        fn a_share_is_in_its_interval_which_more_events_narrow(all in 1_u64..100_000, some in 0_u64..100_000) {
            let some = some.min(all);
            let (low, high) = share_interval(some, all);
            #[allow(clippy::cast_precision_loss, reason = "they are small")]
            let share = some as f64 / all as f64;
            prop_assert!(0.0 <= low && low <= share + 1e-12 && share <= high + 1e-12 && high <= 1.0);
            let (narrow_low, narrow_high) = share_interval(some * 10, all * 10);
            prop_assert!(narrow_high - narrow_low < high - low);
        }
    }
}
