//! The signed bundle of this machine: how it is kept on disk, verified again at each start, and loaded as a level above the
//! user's.

mod condition;
mod disk;
mod hooks;
mod in_force;
#[cfg(feature = "cli")]
mod scratch;
mod standing;
mod store;
#[cfg(all(test, feature = "cli"))]
mod tests;

pub(crate) use in_force::{BundleInForce, BundleMoment, BundleTaker, TakenBundle, managed_level};
#[cfg(feature = "cli")]
pub(crate) use scratch::check_bundle;
pub(crate) use standing::BundleStanding;
pub(crate) use store::{BundleStore, ChangedFiles, ClockTrust, KeptFault, OlderBundles};
