//! How often each verdict was given.

use serde::Serialize;

use crate::model::Verdict;

/// A count for each verdict.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct VerdictCounts([u64; Verdict::ALL.len()]);

impl VerdictCounts {
    /// How often this verdict was given.
    pub(super) fn of(&self, verdict: Verdict) -> u64 {
        self.0[verdict as usize]
    }

    pub(super) fn add(&mut self, verdict: Verdict) {
        self.0[verdict as usize] += 1;
    }
}

impl Serialize for VerdictCounts {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(Verdict::ALL.map(|verdict| (verdict, self.of(verdict))))
    }
}
