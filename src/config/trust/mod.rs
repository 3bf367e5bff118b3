//! Trust in the hooks of workspaces: whether a person has agreed to exactly what they run.

mod apply;
#[cfg(any(feature = "cli", feature = "daemon"))]
mod copy_writer;
mod coverage;
mod evaluation;
mod in_place;
mod inspect;
mod programs;
mod record;
#[cfg(any(feature = "cli", feature = "daemon"))]
mod review;
mod scripts;
mod shell_words;
mod store;
#[cfg(any(feature = "cli", feature = "daemon"))]
mod store_writer;
mod tree;

#[cfg(all(feature = "cli", feature = "daemon"))]
pub(crate) use apply::NO_COMPILED_CODE;
#[cfg(feature = "daemon")]
pub(in crate::config) use apply::keep_sources_alone;
pub(in crate::config) use apply::{CheckedHooks, check_trust};
#[cfg(any(feature = "cli", feature = "daemon"))]
pub(crate) use store::data_directory;

#[cfg(feature = "cli")]
pub(crate) use record::TrustRecord;
#[cfg(feature = "cli")]
pub(crate) use review::ReviewedHook;
#[cfg(feature = "daemon")]
pub(crate) use review::{ShownFile, ShownHook};
#[cfg(any(feature = "cli", feature = "daemon"))]
pub(crate) use review::{TrustReview, revoke_trust};
pub(in crate::config) use shell_words::trust_command;
#[cfg(any(feature = "cli", feature = "daemon"))]
pub(crate) use store::TrustError;
#[cfg(feature = "daemon")]
pub(crate) use store::TrustedRoots;
#[cfg(all(feature = "cli", feature = "daemon"))]
pub(crate) use store::private_copies;
pub(in crate::config) use store::state_directory;
pub(crate) use store::{WorkspacePlace, trusted_roots, workspace_place};
