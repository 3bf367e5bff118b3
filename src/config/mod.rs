//! Settings and the hooks of a workspace, from files: what is read, what is refused, and how it is reported.

mod dialects;
mod discover;
mod disk;
mod levels;
mod load;
mod models;
mod quantity;
mod secrets;
mod section;
mod settings;
#[cfg(feature = "daemon")]
mod watch;
#[cfg(feature = "cli")]
mod written;

pub use dialects::{Dialects, WorkspaceKind};
#[cfg(feature = "daemon")]
pub(crate) use discover::read_private;
pub use discover::{HOOK_FILES, nearest_workspace};
pub(crate) use levels::dialect_of_file;
pub use levels::home;
#[cfg(feature = "daemon")]
pub(crate) use levels::system;
#[cfg(feature = "cli")]
pub(crate) use load::warn_of_mode;
pub use load::{Loaded, load_workspace};
pub(crate) use load::{Outside, load_for_host};
pub use models::ModelSettings;
pub use secrets::SecretSources;
pub use settings::{
    AuditPatches, AuditPlace, AuditSettings, AuditSync, Limits, Listen, NativePool, Pools, Settings,
    TraceSettings, WorkerPool, WorkspaceSettings,
};
#[cfg(feature = "daemon")]
pub(crate) use watch::{Entry, Standing, Watchable, Watches};
#[cfg(feature = "cli")]
pub(crate) use written::{workspace_text, written_hooks};
