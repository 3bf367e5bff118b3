//! What a workspace is loaded with besides the settings, and the workspace as it was loaded.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::Arc,
};

#[cfg(feature = "cli")]
use super::trust::data_directory;
use super::{
    Settings, WorkspaceSettings,
    connections::{ConnectedAgents, ConnectionRecord},
    content::RulesVersion,
    declared_roots::DeclaredRoots,
    files::DefinitionFiles,
    last_good_store::{GoodFiles, LastGoodStore, NO_GOOD_FILES},
    managed_level::ManagedLevel,
    workspace_options::{DialectSelection, RequiredHook, WorkspaceKind},
};
use crate::model::{Diagnostic, Hook, Workspace, WorkspaceId};

/// How far up the workspaces around a workspace are looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum OuterSearch {
    /// Up to the outermost registered workspace or workspace root that contains it.
    #[default]
    Registered,
    /// In every directory above it, up to the home directory, that only this user, root or the owner of the workspace
    /// can write to.
    EveryParent,
}

/// How an orchestrator loads workspaces.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LoadOptions {
    /// How far up others are looked for.
    pub(crate) search: OuterSearch,
    /// Whether hooks are left to the agents that run them.
    pub(crate) agents: ConnectedAgents,
    /// Where the last good rules come from.
    pub(crate) last_good: LastGoodSource,
}

/// Where the last good rules of broken files come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum LastGoodSource {
    /// The data directory that is open, if one is.
    #[default]
    OpenData,
    /// The data directory of the settings, which a daemon may have open. Nothing is written there.
    #[cfg(feature = "cli")]
    Settings,
}

impl LastGoodSource {
    /// The records.
    #[cfg_attr(not(feature = "cli"), expect(unused_variables, reason = "commands read the settings"))]
    pub(crate) fn records(
        self,
        open: Option<&LastGoodStore>,
        settings: &Settings,
        environment: &dyn Fn(&str) -> Option<String>,
    ) -> Option<LastGoodStore> {
        match self {
            Self::OpenData => open.cloned(),
            #[cfg(feature = "cli")]
            Self::Settings => {
                data_directory(settings, environment).map(|data| LastGoodStore::read_only(&data))
            }
        }
    }
}

impl LoadOptions {
    /// Those of the command line, which runs every hook.
    #[cfg(feature = "cli")]
    pub(crate) const OF_COMMANDS: Self = Self {
        search: OuterSearch::EveryParent,
        agents: ConnectedAgents::Ignored,
        last_good: LastGoodSource::Settings,
    };

    /// Those of the daemon.
    #[cfg(feature = "daemon")]
    pub(crate) const OF_DAEMON: Self = Self {
        search: OuterSearch::Registered,
        agents: ConnectedAgents::Considered,
        last_good: LastGoodSource::OpenData,
    };
}

/// A registered workspace around another one.
#[derive(Debug, Clone)]
pub(crate) struct RegisteredWorkspace {
    pub(crate) id: WorkspaceId,
    pub(crate) settings: WorkspaceSettings,
}

/// What a workspace is loaded with besides the settings.
pub(crate) struct LoadContext<'a> {
    /// Looks up variables of hookyard's own environment.
    pub(crate) environment: &'a dyn Fn(&str) -> Option<String>,
    /// Whether the embedding program has a client for a model.
    pub(crate) models: &'a dyn Fn(&str) -> bool,
    /// The kind and dialects before a reload, which stay if the workspace's settings file is invalid.
    pub(crate) previous: Option<(WorkspaceKind, DialectSelection)>,
    /// The registered workspaces around a directory.
    pub(crate) registered: &'a dyn Fn(&Path) -> Vec<RegisteredWorkspace>,
    /// Where the roots of the workspaces in the settings lead, if somebody keeps that for several loads.
    pub(crate) declared: Option<&'a DeclaredRoots>,
    /// How far up others are looked for.
    pub(crate) search: OuterSearch,
    /// Directories of the project besides the workspace's own: no programs are taken from these.
    pub(crate) project_roots: &'a [PathBuf],
    /// Where the last good rules are kept, if they are.
    pub(crate) last_good: Option<&'a LastGoodStore>,
    /// The files that are read as they were.
    pub(crate) good: &'a GoodFiles,
    /// The agents that are connected, and run the hooks of their own settings themselves.
    pub(crate) connections: Option<&'a ConnectionRecord>,
    /// The hooks of the signed bundle, if one is configured.
    pub(crate) managed: Option<&'a ManagedLevel>,
}

impl<'a> LoadContext<'a> {
    /// For a workspace by itself.
    pub(crate) fn new(environment: &'a dyn Fn(&str) -> Option<String>) -> Self {
        Self {
            environment,
            models: &|_| false,
            previous: None,
            registered: &|_| Vec::new(),
            declared: None,
            search: OuterSearch::default(),
            project_roots: &[],
            last_good: None,
            good: &NO_GOOD_FILES,
            connections: None,
            managed: None,
        }
    }
}

/// A workspace as it is on disk.
#[derive(Debug)]
#[non_exhaustive]
pub struct LoadedWorkspace {
    /// The workspace.
    pub workspace: Workspace,
    /// What it is for.
    pub kind: WorkspaceKind,
    /// The dialects whose hooks it runs.
    pub dialects: DialectSelection,
    /// The hooks of files without errors, in byte order of the file names.
    pub hooks: Vec<Hook>,
    /// Every file that was examined, also those with errors.
    pub files: Vec<PathBuf>,
    /// Files that hooks refer to and that do not exist, or are not in the workspace.
    pub missing_files: Vec<PathBuf>,
    /// The files that decide whether its hooks are trusted.
    pub watched: Vec<PathBuf>,
    /// The workspaces around it, from the outermost one. Their hooks apply in it too.
    pub outer: Vec<Arc<Workspace>>,
    /// The directories around it whose hook files apply in it too, if they have any.
    pub around: Vec<PathBuf>,
    /// What is wrong, sorted by file and line.
    pub diagnostics: Vec<Diagnostic>,
    /// The files with the definitions of the workspace's hooks, as they were read.
    pub(super) definitions: DefinitionFiles,
    /// The hook files that are not read because the workspace says that it is a chat.
    pub(super) unread: BTreeSet<PathBuf>,
    /// The content of each file with hooks that has no mistakes.
    pub(crate) versions: BTreeMap<PathBuf, RulesVersion>,
    /// The broken files that were read as they were when nothing was wrong with them.
    pub(crate) last_good: BTreeMap<PathBuf, RulesVersion>,
    /// The directories of the project, from which hooks take no programs: its own and those around it.
    pub(crate) project_roots: Vec<PathBuf>,
    /// The hooks that the signed bundle requires.
    pub(crate) required: Vec<RequiredHook>,
}

impl LoadedWorkspace {
    /// A workspace of which nothing is loaded.
    pub(crate) fn empty(workspace: Workspace) -> Self {
        Self {
            project_roots: vec![workspace.root.clone()],
            workspace,
            kind: WorkspaceKind::default(),
            dialects: DialectSelection::default(),
            hooks: Vec::new(),
            files: Vec::new(),
            missing_files: Vec::new(),
            watched: Vec::new(),
            outer: Vec::new(),
            around: Vec::new(),
            diagnostics: Vec::new(),
            definitions: DefinitionFiles::new(),
            unread: BTreeSet::new(),
            versions: BTreeMap::new(),
            last_good: BTreeMap::new(),
            required: Vec::new(),
        }
    }

    /// Adds diagnostics, and keeps all of them sorted.
    #[cfg_attr(not(feature = "cli"), expect(dead_code, reason = "only the command line checks hooks"))]
    pub(crate) fn warn(&mut self, diagnostics: Vec<Diagnostic>) {
        self.diagnostics.extend(diagnostics);
        self.sort();
    }

    pub(super) fn sort(&mut self) {
        self.diagnostics.sort_by_key(|d| (d.file.clone(), d.line, d.column));
    }
}
