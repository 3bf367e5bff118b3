//! The settings of the levels of configuration.

use super::{declare::settings, value_types::HookNameText};

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
