//! Settings of hookyard, and loading of a workspace's hooks from files.

mod account;
mod agent_settings;
mod broken_hooks;
#[cfg(feature = "daemon")]
mod bundle;
#[cfg_attr(
    not(all(feature = "cli", feature = "daemon")),
    allow(
        dead_code,
        unused_imports,
        reason = "the command line connects agents to the daemon; the rest only reads"
    )
)]
mod connections;
mod content;
mod declared_roots;
mod digests;
mod directory_names;
mod discover;
mod files;
mod front_matter;
mod guards;
mod hook_checks;
mod last_good;
mod last_good_store;
mod load;
mod load_workspace;
mod loaded_workspace;
mod managed_level;
mod models;
mod outer;
mod own_settings;
mod plugins;
mod program_path;
mod quantity;
#[cfg(feature = "cli")]
mod raw_files;
mod resolver;
mod sandbox;
mod secrets;
mod settings;
mod settings_levels;
mod shortage;
mod state_directory;
mod trust;
#[cfg(feature = "daemon")]
mod unsaved_rule;
#[cfg(feature = "daemon")]
mod watch;
mod workspace_files;
mod workspace_options;

pub(crate) use account::account_variables;
pub use account::home_directory;
#[cfg(all(feature = "cli", feature = "daemon"))]
pub(crate) use account::moved_home;
#[cfg(feature = "daemon")]
pub(crate) use agent_settings::system_directory;
pub(crate) use agent_settings::{dialect_of_file, missing_directories};
pub(crate) use broken_hooks::{add_placeholders, apply_policy, is_placeholder, take_placeholders};
#[cfg(any(feature = "cli", feature = "daemon"))]
pub(crate) use connections::connections;
#[cfg(all(feature = "cli", feature = "daemon"))]
pub(crate) use connections::{
    AgentConnection, ConnectionReach, ConnectionRecord, ConnectionStore, DaemonCommand, DaemonStart,
    WHOLE_PROGRAM, small_relay_of,
};
pub(crate) use content::hash_of_all;
pub(crate) use declared_roots::DeclaredRoots;
#[cfg(all(feature = "cli", feature = "daemon"))]
pub(crate) use digests::sha256;
#[cfg(all(feature = "cli", feature = "daemon"))]
pub(crate) use discover::is_meant_as_hook;
#[cfg(any(feature = "cli", feature = "daemon"))]
pub(crate) use discover::nearest_of;
pub use discover::{HOOK_FILES, nearest_workspace};
#[cfg(feature = "daemon")]
pub(crate) use files::replaced_directory;
#[cfg(feature = "daemon")]
pub(crate) use files::{read_private, read_sent_token};
#[cfg(all(feature = "cli", feature = "daemon"))]
pub(crate) use guards::is_guard;

#[cfg(feature = "daemon")]
pub(crate) use bundle::{
    BundleInForce, BundleMoment, BundleStanding, BundleStore, BundleTaker, ChangedFiles, ClockTrust,
    KeptFault, OlderBundles, StatementCheck, TakenBundle, managed_level,
};
#[cfg(all(feature = "cli", feature = "daemon"))]
pub(crate) use bundle::{BundleTrust, check_bundle};
pub use content::RulesVersion;
#[cfg(all(feature = "cli", feature = "daemon"))]
pub(crate) use hook_checks::is_called;
pub(crate) use last_good::kept;
pub use last_good_store::LastGoodError;
pub(crate) use last_good_store::LastGoodStore;
pub(crate) use load::load_in_context;
pub use load_workspace::load_workspace;
pub(crate) use load_workspace::without_files;
pub use loaded_workspace::LoadedWorkspace;
#[cfg(feature = "cli")]
pub(crate) use loaded_workspace::{LastGoodSource, OuterSearch};
pub(crate) use loaded_workspace::{LoadContext, LoadOptions, RegisteredWorkspace};
pub(crate) use managed_level::ManagedLevel;
#[cfg(not(feature = "daemon"))]
pub(crate) use managed_level::managed_level;
#[cfg(all(feature = "cli", feature = "daemon"))]
pub(crate) use outer::user_workspace;
#[cfg(all(feature = "cli", feature = "daemon"))]
pub(crate) use quantity::{duration, size};
#[cfg(feature = "cli")]
pub(crate) use raw_files::{raw_hook_files, warn_of_mode, workspace_source, workspace_text};
#[cfg(feature = "daemon")]
pub(crate) use settings::SetKey;
pub use settings::{
    AuditDestination, AuditPatches, AuditSettings, AuditSync, BundleSettings, ClusterSettings, DataDirectory,
    HaltSharing, HandlerMode, HandlerSettings, HttpSettings, LevelSandboxSettings, LevelSettings,
    LifecyclePlace, LimitSettings, ListenSettings, ModelSettings, NativePoolSettings, OutboxSettings,
    PoolSettings, SandboxLimitSettings, SandboxSettings, SecretSources, Settings, ShipFormat, ShipSettings,
    StalePolicy, TraceSettings, UnsurePolicy, WorkerPoolSettings, WorkspaceSettings,
};
#[cfg(all(feature = "cli", feature = "daemon"))]
pub(crate) use settings_levels::{ADOPTED_FLAG, adopted_file, is_adopting_relay};
pub(crate) use shortage::noting_shortage;
#[cfg(all(feature = "cli", feature = "daemon"))]
pub(crate) use state_directory::StateFileError;
#[cfg(feature = "daemon")]
pub(crate) use trust::TrustedRoots;
#[cfg(feature = "daemon")]
pub(crate) use trust::data_directory;
#[cfg(any(feature = "cli", feature = "daemon"))]
pub(crate) use trust::trusted_roots;
pub(crate) use trust::workspace_place;
#[cfg(all(feature = "cli", feature = "daemon"))]
pub(crate) use trust::{NO_COMPILED_CODE, private_copies};
#[cfg(feature = "cli")]
pub(crate) use trust::{ReviewedHook, TrustRecord};
#[cfg(feature = "daemon")]
pub(crate) use trust::{ShownFile, ShownHook};
#[cfg(any(feature = "cli", feature = "daemon"))]
pub(crate) use trust::{TrustError, TrustReview, revoke_trust};
#[cfg(feature = "daemon")]
pub(crate) use unsaved_rule::{NoRuleText, UnsavedRule, read_unsaved_rule, rule_text};
#[cfg(feature = "daemon")]
pub(crate) use watch::{PathState, WatchPlan, WatchedEntry, WatchedWorkspace};
pub(crate) use workspace_options::require;
pub use workspace_options::{BrokenFilePolicy, DialectSelection, RequiredHook, TrustPolicy, WorkspaceKind};
