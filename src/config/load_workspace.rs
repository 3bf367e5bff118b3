//! Loads a workspace for a program that runs no hooks of it, and what a workspace without files has.

use std::path::Path;

use super::{
    Settings, WorkspaceSettings,
    load::load_in_context,
    loaded_workspace::{LoadContext, LoadedWorkspace},
    managed_level,
    managed_level::ManagedLevel,
    outer::OuterHooks,
};
use crate::model::{Workspace, WorkspaceId};

/// Loads the workspace in a directory. `environment` looks up variables of hookyard's own environment.
///
/// ```
/// use hookyard::config::{Settings, load_workspace};
///
/// let directory = tempfile::tempdir().unwrap();
/// let loaded = load_workspace(directory.path(), None, &Settings::default(), &|name| std::env::var(name).ok());
/// assert!(loaded.hooks.is_empty() && loaded.diagnostics.is_empty());
/// ```
#[expect(clippy::needless_pass_by_value, reason = "callers give the id away, as they do to the builder")]
pub fn load_workspace(
    root: &Path,
    workspace_id: Option<WorkspaceId>,
    settings: &Settings,
    environment: &dyn Fn(&str) -> Option<String>,
) -> LoadedWorkspace {
    let workspace = WorkspaceSettings::new(root);
    let managed = managed_level(settings, environment, &|_| false);
    let context = LoadContext { managed: managed.as_ref(), ..LoadContext::new(environment) };
    load_in_context(&workspace, workspace_id.as_ref(), settings, &context)
}

/// A workspace without files, which has the hooks of the signed bundle all the same.
pub(crate) fn without_files(
    place: Workspace,
    settings: &Settings,
    environment: &dyn Fn(&str) -> Option<String>,
    managed: Option<&ManagedLevel>,
) -> LoadedWorkspace {
    let mut loaded = LoadedWorkspace::empty(place);
    if let Some(managed) = managed {
        let mut outer = OuterHooks::default();
        outer.add_managed(managed);
        outer.join(&mut loaded, settings, environment);
    }
    loaded
}
