//! Policies as they are run: compiled, or in a build without the feature `rego`, a failure at each event.

#[cfg(feature = "rego")]
mod compiled;
#[cfg(not(feature = "rego"))]
mod missing;

#[cfg(feature = "rego")]
pub(super) use compiled::program;
#[cfg(not(feature = "rego"))]
pub(super) use missing::program;
