//! Signed bundles: hooks as one archive with a manifest, the statement that is signed about it, and how it is checked.
//!
//! Nothing here reads a disk, a network or a clock. What comes from outside has a bound before it is looked at.

mod archive;
#[cfg(any(feature = "cli", test))]
mod changes;
mod hex;
mod keys;
mod manifest;
mod path;
mod rejection;
mod statement;
#[cfg(test)]
mod tests;
mod time;
mod verify;
mod version;

#[cfg(any(feature = "cli", test))]
pub(crate) use archive::write_archive;
pub(crate) use archive::{BundleFile, MAX_ARCHIVE};
#[cfg(any(feature = "cli", test))]
pub(crate) use changes::{BundleChanges, changes_between};
#[cfg(any(feature = "cli", test))]
pub(crate) use keys::BundleSigningKey;
pub(crate) use keys::BundleVerifyingKey;
pub(crate) use manifest::BundleManifest;
#[cfg(any(feature = "cli", test))]
pub(crate) use manifest::{BundleName, sha256_hex};
#[cfg(any(feature = "cli", test))]
pub(crate) use path::BundlePath;
pub(crate) use rejection::{BundleRejection, RejectionKind};
pub(crate) use statement::{BundleStatement, MAX_STATEMENT, SignedStatement};
pub(crate) use time::BundleTime;
#[cfg(any(feature = "cli", test))]
pub(crate) use verify::open_archive;
pub(crate) use verify::{VerifiedBundle, check_time, check_version, open_bundle};
