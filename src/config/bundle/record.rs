//! What is remembered beside the bundles of this machine: which one is in force, times, and the versions that were taken.

use std::{collections::BTreeMap, time::Duration};

use serde::{Deserialize, Serialize};

use crate::bundle::BundleTime;

/// What names the bundle in force.
pub(super) const STATE: &str = "state.json";

/// The largest of these files, in bytes.
pub(super) const LARGEST_STATE: u64 = 8192;

/// The digits of the digest of an archive, which names its directory.
pub(super) const ARCHIVE_DIGITS: usize = 64;

/// How far the remembered time may lag behind before it is written again.
pub(super) const SEEN_STEP: Duration = Duration::from_mins(5);

/// Whether anything else says the time that a clock says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClockTrust {
    Alone,
    Confirmed,
}

/// What is remembered beside the bundle. Times are seconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WrittenState {
    pub(super) v: u32,
    /// The SHA-256 of the archive of the bundle in force.
    pub(super) archive: String,
    /// The one before: processes of its hooks may still run.
    pub(super) former: Option<String>,
    /// Since when it is in force.
    pub(super) since: u64,
    /// When a server has confirmed it last.
    pub(super) confirmed: u64,
    /// The latest time that was seen: a clock that is set back revives nothing.
    pub(super) seen: u64,
    /// The version that was taken last of those that a key has signed. A key that is revoked takes its version along: it may
    /// have been stolen, and used for the highest one there is.
    #[serde(default)]
    pub(super) versions: BTreeMap<String, TakenVersion>,
}

/// A bundle that was taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TakenVersion {
    pub(super) name: String,
    pub(super) version: u64,
}

/// The latest time that was seen.
pub(super) fn seen_after(state: &WrittenState, now: BundleTime, trust: ClockTrust) -> BundleTime {
    match trust {
        ClockTrust::Confirmed => now,
        ClockTrust::Alone => now.max(BundleTime::from_seconds(state.seen)),
    }
}
