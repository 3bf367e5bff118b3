//! Trust in the hooks of workspaces: whether a person has agreed to exactly what they run.

mod apply;
#[cfg(feature = "cli")]
mod copy_writer;
mod coverage;
mod evaluation;
mod in_place;
mod inspect;
mod programs;
mod record;
#[cfg(feature = "cli")]
mod review;
mod scripts;
mod shell_words;
mod store;
#[cfg(feature = "cli")]
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
pub(crate) use review::{ReviewedHook, TrustReview, revoke_trust};
pub(in crate::config) use shell_words::trust_command;
#[cfg(feature = "cli")]
pub(crate) use store::TrustError;
#[cfg(feature = "daemon")]
pub(crate) use store::TrustedRoots;
#[cfg(all(feature = "cli", feature = "daemon"))]
pub(crate) use store::private_copies;
pub(in crate::config) use store::state_directory;
pub(crate) use store::{WorkspacePlace, trusted_roots, workspace_place};
