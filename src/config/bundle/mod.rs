//! The signed bundle of this machine: how it is kept on disk, verified again at each start, and loaded as a level above the
//! user's.

mod condition;
mod disk;
mod hooks;
mod in_force;
mod record;
#[cfg(feature = "cli")]
mod scratch;
mod standing;
mod store;
mod taking;
#[cfg(all(test, feature = "cli"))]
mod tests;
mod trusted;

pub(crate) use in_force::{
    BundleInForce, BundleMoment, BundleTaker, StatementCheck, TakenBundle, managed_level,
};
pub(crate) use record::ClockTrust;
#[cfg(feature = "cli")]
pub(crate) use scratch::check_bundle;
pub(crate) use standing::BundleStanding;
pub(crate) use store::{BundleStore, ChangedFiles, KeptFault};
pub(crate) use taking::OlderBundles;
#[cfg(feature = "cli")]
pub(crate) use trusted::BundleTrust;
