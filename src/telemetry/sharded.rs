//! Counters and histograms that each thread counts for itself: an observation costs one addition, or two, to numbers in no
//! other processor's cache. Whoever asks adds them up.

use std::sync::{
    OnceLock,
    atomic::{AtomicU64, AtomicUsize, Ordering},
};

use metrics::{CounterFn, HistogramFn};

/// How many threads count apart, at most. More share what there is.
const SHARDS: usize = 8;

/// How many numbers lie in a line of the processor's cache and the one that is fetched with it.
const LINE: usize = 16;

/// The place of the sum of a histogram; the counts of its buckets follow.
const SUM: usize = 0;

/// A number that only grows.
#[derive(Default)]
pub(super) struct ShardedCounter(Shards);

/// Observations in buckets.
pub(super) struct BucketHistogram {
    /// The upper bounds of the buckets but the last, which has none.
    bounds: &'static [f64],
    shards: Shards,
}

/// What a histogram has seen.
pub(super) struct Observations {
    /// How many fell into each bucket.
    pub(super) counts: Vec<u64>,
    pub(super) sum: f64,
}

/// Numbers for each thread that has used them.
#[derive(Default)]
struct Shards([OnceLock<Box<[Line]>>; SHARDS]);

/// Numbers that share a line of the cache with none of another shard.
#[derive(Default)]
#[repr(align(128))]
struct Line([AtomicU64; LINE]);

impl ShardedCounter {
    pub(super) fn value(&self) -> u64 {
        self.0.all().map(|numbers| number(numbers, 0).load(Ordering::Relaxed)).sum()
    }
}

impl CounterFn for ShardedCounter {
    fn increment(&self, value: u64) {
        number(self.0.own(1), 0).fetch_add(value, Ordering::Relaxed);
    }

    /// Nobody sets counters here; one that another program sets never falls.
    fn absolute(&self, value: u64) {
        self.increment(value.saturating_sub(self.value()));
    }
}

impl BucketHistogram {
    pub(super) fn new(bounds: &'static [f64]) -> Self {
        Self { bounds, shards: Shards::default() }
    }

    /// All observations so far; one that is made meanwhile may be counted and not summed yet.
    pub(super) fn observations(&self) -> Observations {
        let mut all = Observations { counts: vec![0; self.bounds.len() + 1], sum: 0.0 };
        for numbers in self.shards.all() {
            all.sum += f64::from_bits(number(numbers, SUM).load(Ordering::Relaxed));
            for (bucket, count) in all.counts.iter_mut().enumerate() {
                *count += number(numbers, SUM + 1 + bucket).load(Ordering::Relaxed);
            }
        }
        all
    }

    fn add(&self, value: f64, count: u64, sum: f64) {
        let numbers = self.shards.own(self.bounds.len() + 2);
        let bucket = self.bounds.iter().take_while(|bound| **bound < value).count();
        number(numbers, SUM + 1 + bucket).fetch_add(count, Ordering::Relaxed);
        let with = |known: u64| Some((f64::from_bits(known) + sum).to_bits());
        // Always done: there is always a new sum.
        let _ = number(numbers, SUM).fetch_update(Ordering::Relaxed, Ordering::Relaxed, with);
    }
}

impl HistogramFn for BucketHistogram {
    fn record(&self, value: f64) {
        self.add(value, 1, value);
    }

    fn record_many(&self, value: f64, count: usize) {
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        self.add(value, count.into(), value * f64::from(count));
    }
}

impl Shards {
    /// The numbers of this thread, at least so many; zero at first.
    fn own(&self, count: usize) -> &[Line] {
        let lines = || (0..count.div_ceil(LINE)).map(|_| Line::default()).collect();
        self.0[own_shard()].get_or_init(lines)
    }

    fn all(&self) -> impl Iterator<Item = &[Line]> {
        self.0.iter().filter_map(OnceLock::get).map(|lines| &**lines)
    }
}

fn number(lines: &[Line], index: usize) -> &AtomicU64 {
    &lines[index / LINE].0[index % LINE]
}

/// The shard of this thread: the next one for each new thread.
fn own_shard() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local!(static OWN: usize = NEXT.fetch_add(1, Ordering::Relaxed) % SHARDS);
    OWN.with(|own| *own)
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn what_all_threads_count_is_added_up() {
        let counter = ShardedCounter::default();
        let histogram = BucketHistogram::new(&[0.1, 1.0]);
        thread::scope(|scope| {
            for _ in 0..3 * SHARDS {
                scope.spawn(|| {
                    for value in [0.05, 0.1, 0.5, 2.0] {
                        counter.increment(2);
                        histogram.record(value);
                    }
                    histogram.record_many(1.0, 3);
                });
            }
        });
        let threads = 3 * SHARDS as u64;
        assert_eq!(counter.value(), 8 * threads);
        let Observations { counts, sum } = histogram.observations();
        assert_eq!(counts, [2 * threads, 4 * threads, threads], "a bound belongs to its bucket");
        assert!((sum - 24.0 * 5.65).abs() < 1e-9, "{sum}");
    }
}
