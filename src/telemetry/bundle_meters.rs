//! What is measured of the signed bundle.

use std::time::Duration;

use super::names;

/// What came of asking the bundle's server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PollResult {
    /// What is in force is what it has.
    Unchanged,
    /// A new bundle is in force.
    Taken,
    /// It has one that is not taken.
    Rejected,
    /// It gave no answer that can be used.
    Failed,
}

impl PollResult {
    const ALL: [Self; 4] = [Self::Unchanged, Self::Taken, Self::Rejected, Self::Failed];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Unchanged => "unchanged",
            Self::Taken => "taken",
            Self::Rejected => "rejected",
            Self::Failed => "failed",
        }
    }

    pub(crate) fn emit(self) {
        names::BUNDLE_POLLS.counter([self.as_str()]).increment(1);
    }
}

/// A bundle that was offered was not taken, for this reason.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BundleRejected(pub(crate) &'static str);

impl BundleRejected {
    pub(crate) fn emit(self) {
        names::BUNDLE_REJECTED.counter([self.0]).increment(1);
    }
}

/// Files of the bundle were found changed on the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CopyChanged {
    /// They were unpacked again.
    Restored,
    /// They could not be.
    Failed,
}

impl CopyChanged {
    const ALL: [Self; 2] = [Self::Restored, Self::Failed];

    fn as_str(self) -> &'static str {
        match self {
            Self::Restored => "restored",
            Self::Failed => "failed",
        }
    }

    pub(crate) fn emit(self) {
        names::BUNDLE_CHANGES.counter([self.as_str()]).increment(1);
    }
}

/// What stands for no bundle that can be used.
const NONE: &str = "none";

/// Creates the series of what may happen at zero, so that the rate of the first is seen. Without a bundle they stay so.
pub(crate) fn expect_bundles(reasons: impl Iterator<Item = &'static str>) {
    for result in PollResult::ALL {
        names::BUNDLE_POLLS.counter([result.as_str()]).increment(0);
    }
    for reason in reasons {
        names::BUNDLE_REJECTED.counter([reason]).increment(0);
    }
    for result in CopyChanged::ALL {
        names::BUNDLE_CHANGES.counter([result.as_str()]).increment(0);
    }
    names::BUNDLE_STALE.gauge([]).set(0.0);
    names::BUNDLE_INFO.gauge([NONE]).set(0.0);
    names::BUNDLE_AGE.gauge([]).set(0.0);
}

/// The bundle that is in force, or none.
#[derive(Debug, Default)]
pub(crate) struct BundleGauges {
    /// The label of what was in force last.
    version: Option<String>,
}

impl BundleGauges {
    pub(crate) fn set(&mut self, version: Option<u64>, age: Option<Duration>, is_stale: bool) {
        names::BUNDLE_STALE.gauge([]).set(f64::from(u8::from(is_stale)));
        let version = version.map_or_else(|| NONE.to_owned(), |version| version.to_string());
        if let Some(former) = self.version.replace(version.clone()).filter(|former| *former != version) {
            names::BUNDLE_INFO.gauge([&former]).set(0.0);
        }
        names::BUNDLE_INFO.gauge([&version]).set(1.0);
        if let Some(age) = age {
            names::BUNDLE_AGE.gauge([]).set(age.as_secs_f64());
        }
    }
}
