//! The names of workspaces, handlers and models in the settings, and how one is made in code.

use std::{
    num::NonZeroUsize,
    path::{Path, PathBuf},
};

use super::{
    keys::{KeySet, NamedEntry, ValueType},
    table::{HandlerSettings, ModelSettings, Settings, WorkspaceSettings},
};
use crate::{
    dialect::Value,
    model::{FailurePolicy, ModelApi, WorkspaceId},
};

/// The longest name of a model, in bytes.
pub(super) const LONGEST_MODEL_NAME: usize = 256;

/// The longest name or command of a hook, in bytes.
pub(super) const LONGEST_COMMAND: usize = 4096;

/// The most processes of a hook.
pub(super) const MOST_PROCESSES: i64 = 64;

/// A number of processes of a hook.
pub(super) struct ProcessCount;

/// How the process of a command is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HandlerMode {
    /// For each event.
    Oneshot,
    /// For each event, in advance.
    Prespawn,
    /// For many events, over the worker protocol.
    Worker,
}

impl HandlerMode {
    /// Every mode.
    pub const ALL: [Self; 3] = [Self::Oneshot, Self::Prespawn, Self::Worker];

    /// The name as written in settings.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Oneshot => "oneshot",
            Self::Prespawn => "prespawn",
            Self::Worker => "worker",
        }
    }
}

impl ValueType for ProcessCount {
    type Field = NonZeroUsize;

    fn parse(value: &Value<'_>) -> Option<NonZeroUsize> {
        let number = value.integer()?;
        let count = usize::try_from(number).ok().filter(|_| number <= MOST_PROCESSES);
        let count = count.and_then(NonZeroUsize::new);
        if count.is_none() {
            let message = format!("`{}` is out of range", value.name());
            value.error("count", message, format!("use 1 to {MOST_PROCESSES}"));
        }
        count
    }
}

impl ValueType for HandlerMode {
    type Field = Self;

    fn parse(value: &Value<'_>) -> Option<Self> {
        value.choice(&Self::ALL.map(|mode| (mode.as_str(), mode)))
    }
}

/// Only what makes a hook stricter.
impl ValueType for FailurePolicy {
    type Field = Self;

    fn parse(value: &Value<'_>) -> Option<Self> {
        value.choice(&[Self::Ask, Self::Deny].map(|policy| (policy.as_str(), policy)))
    }
}

impl NamedEntry for HandlerSettings {
    type Name = String;

    fn name(entry: &Value<'_>) -> Option<String> {
        let name = entry.name();
        if name.trim().is_empty() || name.len() > LONGEST_COMMAND || name.contains('\0') {
            let message = format!("the name or command of a hook must have 1 to {LONGEST_COMMAND} bytes");
            entry.error_at(entry.key_span(), "handlers", message, "write it as `hookyard list` shows it");
            return None;
        }
        Some(name.to_owned())
    }
}

impl Default for HandlerSettings {
    fn default() -> Self {
        Self::declared()
    }
}

impl WorkspaceSettings {
    /// A workspace in a directory, whose own settings file says the rest.
    ///
    /// ```
    /// use hookyard::config::WorkspaceSettings;
    ///
    /// assert_eq!(WorkspaceSettings::new("/srv/shop").kind, None);
    /// ```
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into(), ..Self::declared() }
    }
}

impl Settings {
    /// The id under which a workspace is declared: the given one if its entry has this root, or else that of the only
    /// entry that has it. `root` has no symbolic links.
    pub(in crate::config) fn declared_id(&self, root: &Path, id: &WorkspaceId) -> Option<&WorkspaceId> {
        let is_at = |workspace: &WorkspaceSettings| {
            workspace.root == root || workspace.root.canonicalize().is_ok_and(|real| real == root)
        };
        if let Some((known, _)) = self.workspaces.get_key_value(id).filter(|(_, workspace)| is_at(workspace))
        {
            return Some(known);
        }
        let mut others = self.workspaces.iter().filter(|(_, workspace)| workspace.root == root);
        let (known, _) = others.next()?;
        others.next().is_none().then_some(known)
    }
}

impl NamedEntry for WorkspaceSettings {
    type Name = WorkspaceId;

    fn name(entry: &Value<'_>) -> Option<WorkspaceId> {
        let id = WorkspaceId::new(entry.name());
        let id = id.map_err(|error| {
            let message = format!("the id of a workspace {error}");
            entry.error_at(entry.key_span(), "workspaces", message, "write it as hosts have it");
        });
        id.ok()
    }
}

impl ModelSettings {
    /// A model of a protocol with everything else at its default.
    ///
    /// ```
    /// use hookyard::{config::ModelSettings, model::ModelApi};
    ///
    /// let settings = ModelSettings::new(ModelApi::Anthropic, "claude-x");
    /// assert_eq!(settings.max_output_tokens.get(), 2048);
    /// ```
    pub fn new(api: ModelApi, model: impl Into<String>) -> Self {
        Self { api, model: model.into(), ..Self::declared() }
    }
}

impl NamedEntry for ModelSettings {
    type Name = String;

    fn name(entry: &Value<'_>) -> Option<String> {
        let name = entry.name();
        if name.trim().is_empty() || name.len() > LONGEST_MODEL_NAME || name.chars().any(char::is_control) {
            let message =
                format!("the name of a model must have 1 to {LONGEST_MODEL_NAME} visible characters");
            entry.error_at(entry.key_span(), "models", message, "write it as hook files have it");
            return None;
        }
        Some(name.to_owned())
    }
}
