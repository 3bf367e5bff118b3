//! Trust in the hooks of workspaces: whether a person has agreed to what they run.

mod policy;

pub use policy::TrustPolicy;
