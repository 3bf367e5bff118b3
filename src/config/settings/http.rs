//! The settings of http hooks.

use super::declare::settings;
use crate::model::HttpTarget;

settings! {
    /// Servers that http hooks may ask.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub section HttpSettings {
        /// Servers that hooks of workspaces may ask although they are on this machine or in a private network: a host,
        /// a host with its port, or a network. Hooks of the user and of the administrator need no entry. Nothing makes
        /// hookyard's own addresses available.
        #[example = "[\"localhost:8377\", 10.1.0.0/16]"]
        allow: Vec<HttpTarget> = Vec::new(),
    }
}
