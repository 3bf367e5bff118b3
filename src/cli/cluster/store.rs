//! The store of the cluster, as the settings have it.

use crate::{
    cli::{
        exit::CliError,
        flags::SettingsFlags,
        screen::Screen,
        settings::{VariablePolicy, settings_of, tell},
    },
    config::Settings,
    daemon::{cluster_options, queue_options},
    store::{ClusterOperator, QueueOperator},
};

/// The settings of a cluster.
///
/// Returns an error if they have mistakes, or name no store.
pub(super) fn cluster_settings(flags: &SettingsFlags, screen: &Screen) -> Result<Settings, CliError> {
    let (settings, diagnostics) = settings_of(flags, VariablePolicy::Ignored)?;
    tell(&diagnostics, screen)?;
    if settings.cluster.is_shared() {
        return Ok(settings);
    }
    Err(CliError::with_help("the settings name no `cluster.store`", "name their file with `--config`"))
}

/// Connects to the store of the cluster.
///
/// Returns an error if it cannot be used.
pub(super) async fn operator(settings: &Settings) -> Result<ClusterOperator, CliError> {
    ClusterOperator::connect(cluster_options(settings)).await.map_err(CliError::new)
}

/// Connects to the queue in the store of the cluster.
///
/// Returns an error if it cannot be used.
pub(super) async fn queue_operator(settings: &Settings) -> Result<QueueOperator, CliError> {
    QueueOperator::connect(queue_options(settings)).await.map_err(CliError::new)
}
