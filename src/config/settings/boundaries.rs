//! The settings of what hooks may connect to and what levels of configuration may switch off.

use super::{declare::settings, value_types::HookNameText};
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

settings! {
    /// What lower levels of configuration may do to the hooks of higher ones.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub section LevelSettings {
        /// Names of hooks that every level may switch off. All others can be switched off by their own level and by
        /// higher ones only: managed, then user, then project.
        #[example = "[claude.user.Stop.1.1]"]
        allow_disable: Vec<String> as Vec<HookNameText> = Vec::new(),
    }
}
