//! The settings of a daemon that is one of several nodes behind a balancer.

use super::declare::settings;

settings! {
    /// Whether this daemon is a node: one of several daemons behind a balancer.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub section ClusterSettings {
        /// Whether this daemon is a node of a cluster. A node takes only events whose request names their run, in
        /// `X-Hookyard-Run` or in the path, and their workspace, by its id. Workspaces are those of the settings.
        enabled: bool = false,
    }
}
