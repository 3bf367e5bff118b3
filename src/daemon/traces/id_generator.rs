//! Random ids of traces and spans, and the sampling of traces by their id.

use std::{
    hash::{BuildHasher, RandomState},
    num::{NonZeroU64, NonZeroU128},
    sync::atomic::{AtomicU64, Ordering},
};

use crate::model::Sampling;

/// Generates ids by hashing a counter with a random key of the system.
#[derive(Debug, Default)]
pub(super) struct IdGenerator {
    key: RandomState,
    next: AtomicU64,
}

impl IdGenerator {
    pub(super) fn span(&self) -> NonZeroU64 {
        NonZeroU64::new(self.draw()).unwrap_or(NonZeroU64::MIN)
    }

    pub(super) fn trace(&self) -> NonZeroU128 {
        let id = u128::from(self.draw()) << 64 | u128::from(self.draw());
        NonZeroU128::new(id).unwrap_or(NonZeroU128::MIN)
    }

    fn draw(&self) -> u64 {
        self.key.hash_one(self.next.fetch_add(1, Ordering::Relaxed))
    }
}

/// Whether a trace is sampled. Every program with the same ratio has the same result.
#[expect(clippy::cast_precision_loss, reason = "53 bits are as many as the number has")]
pub(super) fn sampling(trace: NonZeroU128, sample_ratio: f64) -> Sampling {
    const ALL: u128 = 1 << 53;
    let chance = (trace.get() % ALL) as f64 / ALL as f64;
    if chance < sample_ratio { Sampling::Kept } else { Sampling::Dropped }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn ids_differ_also_between_sources() {
        let sources = [IdGenerator::default(), IdGenerator::default()];
        let spans: HashSet<_> = (0..1000).flat_map(|_| sources.iter().map(IdGenerator::span)).collect();
        let traces: HashSet<_> = (0..1000).flat_map(|_| sources.iter().map(IdGenerator::trace)).collect();
        assert_eq!((spans.len(), traces.len()), (2000, 2000));
    }

    #[test]
    fn a_share_of_traces_is_kept_and_always_the_same() {
        let ids = IdGenerator::default();
        let traces: Vec<_> = (0..4000).map(|_| ids.trace()).collect();
        let kept = |sample_ratio| {
            traces.iter().filter(|trace| sampling(**trace, sample_ratio) == Sampling::Kept).count()
        };
        assert_eq!((kept(0.0), kept(1.0)), (0, 4000));
        assert!((700..1300).contains(&kept(0.25)), "{}", kept(0.25));
        let of_more = traces.iter().filter(|trace| sampling(**trace, 0.1) == Sampling::Kept);
        assert!(of_more.into_iter().all(|trace| sampling(*trace, 0.2) == Sampling::Kept));
        assert_eq!(sampling(NonZeroU128::MAX, 1.0), Sampling::Kept);
    }
}
