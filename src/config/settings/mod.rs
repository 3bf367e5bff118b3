//! The settings of hookyard: their declaration, and how they are read.

mod audit;
mod boundaries;
mod bundle;
mod check;
mod cluster;
mod data;
mod declare;
#[cfg(test)]
mod described;
#[cfg(test)]
mod described_types;
mod entries;
#[cfg(test)]
mod generated;
mod keys;
#[cfg(test)]
mod layer_tests;
mod layers;
mod overrides;
mod sandbox;
mod ship;
mod table;
#[cfg(test)]
mod tests;
mod urls;
mod value_types;

pub use audit::{AuditDestination, AuditPatches, AuditSync};
pub use boundaries::{HttpSettings, LevelSettings, LimitSettings, ListenSettings, OutboxSettings};
pub use bundle::{BundleSettings, StalePolicy};
pub use cluster::{ClusterSettings, HaltSharing, LifecyclePlace, UnsurePolicy};
pub use data::DataDirectory;
pub use entries::HandlerMode;
#[cfg(feature = "daemon")]
pub(crate) use layers::SetKey;
pub use sandbox::{LevelSandboxSettings, SandboxLimitSettings, SandboxSettings};
pub use ship::{ShipFormat, ShipSettings};
pub use table::{
    AuditSettings, HandlerSettings, ModelSettings, NativePoolSettings, PoolSettings, SecretSources, Settings,
    TraceSettings, WorkerPoolSettings, WorkspaceSettings,
};
