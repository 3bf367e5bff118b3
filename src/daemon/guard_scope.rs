//! Whose guards count for an event that cannot be handled, by what is known of it.

use std::{
    path::{Component, Path},
    sync::Arc,
};

use super::workspace_locator::{EventDirectories, LookupResult, WorkspaceLocator, is_loaded};
use crate::{
    Orchestrator,
    config::Settings,
    model::{PartialEvent, WorkspaceId},
    run::EventSender,
};

/// Whose guards an event that cannot be handled would have reached.
#[derive(Debug, Clone)]
pub(super) enum GuardScope {
    /// Nobody's: it is in no workspace.
    Nowhere,
    Workspace(WorkspaceId),
    /// It is not known whose: the guards of every workspace count.
    AnyWorkspace,
    /// Those of a workspace that is not loaded, so that nobody knows them.
    NotLoaded,
}

impl WorkspaceLocator {
    /// Whose guards an event would have reached that cannot be handled. Registers its directory as
    /// [`WorkspaceLocator::locate`] would.
    pub(super) async fn guards(
        &self,
        orchestrator: &Orchestrator,
        sender: EventSender,
        settings: &Settings,
        event: &PartialEvent,
    ) -> GuardScope {
        if let Some(scope) = of_named(orchestrator, event) {
            return scope;
        }
        let Some(cwd) = self.directory_of(event) else { return self.guards_of_unknown(event) };
        match self.find(orchestrator, cwd).await {
            Ok(LookupResult::Registered(id)) if is_loaded(orchestrator, &id).await => {
                GuardScope::Workspace(id)
            }
            Ok(LookupResult::Registered(_)) => GuardScope::NotLoaded,
            Ok(LookupResult::Unregistered(directory)) => {
                match self.register(orchestrator, sender, directory).await {
                    Ok(id) => GuardScope::Workspace(id),
                    Err(_) => GuardScope::NotLoaded,
                }
            }
            Ok(LookupResult::Outside) if is_in_missing_workspace(cwd, orchestrator, settings) => {
                GuardScope::NotLoaded
            }
            Ok(LookupResult::Outside) if is_plain(cwd) => GuardScope::Nowhere,
            Ok(LookupResult::Outside) | Err(_) => self.guards_of_unknown(event),
        }
    }

    /// The same without looking at the disk, for an event that comes when there is too much to do.
    pub(super) fn known_guards(&self, orchestrator: &Orchestrator, event: &PartialEvent) -> GuardScope {
        if let Some(scope) = of_named(orchestrator, event) {
            return scope;
        }
        let known = self.directory_of(event).and_then(|cwd| self.cached(orchestrator, cwd));
        let is_below_root =
            |cwd: &Arc<str>| self.roots.load().real.iter().any(|root| Path::new(&**cwd).starts_with(root));
        match known.map(|known| known.workspace) {
            Some(id) => GuardScope::Workspace(id),
            // Its workspace is registered with its first event, and may have guards.
            None if self.directory_of(event).is_some_and(is_below_root) => GuardScope::NotLoaded,
            None => self.guards_of_unknown(event),
        }
    }

    /// The directory that says in which workspace an event is. One that names a workspace is not looked for by its directory.
    fn directory_of<'e>(&self, event: &'e PartialEvent) -> Option<&'e Arc<str>> {
        let says_so = self.directories == EventDirectories::Here && event.workspace_id.is_none();
        event.cwd.as_ref().filter(|_| says_so)
    }

    /// Whose guards count for an event whose directory is not known or not relied on: those of every workspace. It may be
    /// in one that is not loaded, and without a directory in one below the roots that is not registered yet: nobody knows
    /// the guards of these.
    fn guards_of_unknown(&self, event: &PartialEvent) -> GuardScope {
        let may_be_unregistered = self.directory_of(event).is_none() && !self.roots.load().real.is_empty();
        if may_be_unregistered || !self.unloaded.is_empty() {
            GuardScope::NotLoaded
        } else {
            GuardScope::AnyWorkspace
        }
    }

    /// Whose guards count for an event that cannot be read. Its directory is not relied on, and is registered as
    /// [`WorkspaceLocator::locate`] would, so that its guards count as well.
    pub(super) async fn guards_of_unreadable(
        &self,
        orchestrator: &Orchestrator,
        sender: EventSender,
        event: &PartialEvent,
    ) -> GuardScope {
        let registered = match self.directory_of(event) {
            Some(cwd) => self.register_for_unreadable(orchestrator, sender, cwd).await,
            None => Ok(()),
        };
        if registered.is_err() { GuardScope::NotLoaded } else { self.guards_of_unknown(event) }
    }
}

/// Whose guards an event would have reached that names a workspace. Nobody knows those of one that is not loaded.
fn of_named(orchestrator: &Orchestrator, event: &PartialEvent) -> Option<GuardScope> {
    let id = event.workspace_id.as_ref()?;
    let is_loaded = orchestrator.snapshot(Some(id)).is_some();
    Some(if is_loaded { GuardScope::Workspace(id.clone()) } else { GuardScope::NotLoaded })
}

/// Whether a directory is in a workspace of the settings that could not be loaded.
fn is_in_missing_workspace(cwd: &str, orchestrator: &Orchestrator, settings: &Settings) -> bool {
    let is_missing = |id: &WorkspaceId| orchestrator.snapshot(Some(id)).is_none();
    settings
        .workspaces
        .iter()
        .any(|(id, workspace)| Path::new(cwd).starts_with(&workspace.root) && is_missing(id))
}

/// Whether a path says by itself which directory it means: it is absolute, and has no `..` and no NUL.
fn is_plain(cwd: &str) -> bool {
    let is_plain = |part: Component<'_>| matches!(part, Component::RootDir | Component::Normal(_));
    cwd.starts_with('/') && !cwd.contains('\0') && Path::new(cwd).components().all(is_plain)
}
