//! Why traces cannot be sent.

use crate::model::AddressError;

/// Why traces cannot be sent.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TracesError {
    /// This build has no traces.
    #[error(
        "`traces.endpoint` is set, but this hookyard is built without the feature `otel`; remove the setting"
    )]
    NotBuilt,
    /// An environment variable is not an address.
    #[error("the environment variable {name} is not an address for traces: {why}")]
    Variable {
        /// The name of the variable.
        name: &'static str,
        /// What is wrong with its value.
        why: AddressError,
    },
}
