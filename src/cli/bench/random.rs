//! Random numbers that depend on a seed alone, so that a load can be repeated: `SplitMix64`.

/// The step of the sequence.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// A sequence of random numbers.
#[derive(Debug, Clone)]
pub(super) struct LoadRandom(u64);

impl LoadRandom {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The sequence that belongs to one item of a seed.
    pub(super) fn of_item(seed: u64, item: u64) -> Self {
        Self(Self(seed ^ item.wrapping_mul(STEP)).next_number())
    }

    pub(super) fn next_number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from 0, below 1.
    #[expect(clippy::cast_precision_loss, reason = "53 bits fit")]
    pub(super) fn share(&mut self) -> f64 {
        (self.next_number() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A waiting time with the mean 1: exponential, as between the arrivals of a Poisson process.
    pub(super) fn exponential(&mut self) -> f64 {
        -(1.0 - self.share()).ln()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_numbers() {
        let numbers = |seed| {
            let mut random = LoadRandom::new(seed);
            [random.next_number(), random.next_number()]
        };
        assert_eq!(numbers(1), numbers(1));
        assert_ne!(numbers(1), numbers(2));
    }

    #[test]
    fn waiting_times_have_the_mean_and_the_deviation_of_a_poisson_process() {
        let mut random = LoadRandom::new(7);
        let times: Vec<f64> = (0..100_000).map(|_| random.exponential()).collect();
        let mean = times.iter().sum::<f64>() / 1e5;
        let variance = times.iter().map(|time| (time - mean).powi(2)).sum::<f64>() / 1e5;
        assert!((mean - 1.0).abs() < 0.02 && (variance - 1.0).abs() < 0.05, "{mean} {variance}");
    }
}
