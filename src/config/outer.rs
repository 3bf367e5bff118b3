//! The workspaces around a workspace: their hooks apply in it too and run first, and its own files only add to them.

use std::{
    cell::LazyCell,
    collections::{BTreeMap, BTreeSet},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    DialectSelection, RequiredHook, Settings, WorkspaceKind, WorkspaceSettings,
    account::{home_directory, moved_home},
    connections::ConnectionRecord,
    content::RulesVersion,
    declared_roots::DeclaredRoots,
    discover::{self, WORKSPACE_DIRECTORY},
    loaded_workspace::{LoadContext, LoadedWorkspace, OuterSearch, RegisteredWorkspace},
    managed_level::ManagedLevel,
    trust::{trusted_roots, workspace_place},
};
use crate::model::{
    Diagnostic, DialectName, Hook, HookName, OuterWorkspace, Scope, Severity, Workspace, WorkspaceId,
};

/// The most workspaces around one, besides those that somebody has declared or has agreed to hooks of. If there are more,
/// the outermost ones count: whoever writes into one of them could add any number inside.
const MOST_OUTER: usize = 8;

/// The directory in the home directory whose hook files apply in every workspace of the user.
const USER_WORKSPACE: &str = ".config/hookyard";

/// The workspaces around one.
#[derive(Debug, Default)]
struct Surroundings {
    /// From the outermost one.
    workspaces: Vec<RegisteredWorkspace>,
    /// Every directory that could be one.
    directories: Vec<PathBuf>,
    diagnostics: Vec<Diagnostic>,
    /// Of the workspaces, also of those that do not count, the directories that are the project's and not the user's.
    project_roots: Vec<PathBuf>,
}

/// The hooks of the workspaces around one, and what was found with them.
#[derive(Default)]
pub(super) struct OuterHooks {
    pub(super) hooks: Vec<Hook>,
    /// The directories from which hooks take no programs.
    pub(super) project_roots: Vec<PathBuf>,
    workspaces: Vec<Arc<Workspace>>,
    directories: Vec<PathBuf>,
    files: Vec<PathBuf>,
    missing_files: Vec<PathBuf>,
    watched: Vec<PathBuf>,
    last_good: BTreeMap<PathBuf, RulesVersion>,
    diagnostics: Vec<Diagnostic>,
    /// The hooks that the signed bundle requires.
    required: Vec<RequiredHook>,
}

impl OuterHooks {
    /// Loads the workspaces around the one at `root`, each `alone`, with its own root, trust, secrets and models. What
    /// the operator says about a workspace counts for the hooks around it as well. None takes programs from a directory
    /// of the project.
    pub(super) fn load(
        root: &Path,
        given: &WorkspaceSettings,
        settings: &Settings,
        context: &LoadContext<'_>,
        alone: &dyn Fn(&RegisteredWorkspace, &[PathBuf]) -> LoadedWorkspace,
    ) -> Self {
        if given.kind == Some(WorkspaceKind::Chat) {
            return Self::default();
        }
        let Surroundings { workspaces, directories, diagnostics, mut project_roots } =
            Surroundings::of(root, settings, context);
        project_roots.extend(project_root(root, settings, context.environment));
        let dialects = given.dialects.clone().unwrap_or_default();
        let mut found = Self { directories, diagnostics, ..Self::default() };
        let count = workspaces.len();
        for (at, outer) in workspaces.iter().enumerate() {
            found.add(alone(outer, &project_roots), count - at, &dialects);
        }
        Self { project_roots, ..found }
    }

    fn add(&mut self, loaded: LoadedWorkspace, distance: usize, dialects: &DialectSelection) {
        let LoadedWorkspace {
            workspace, hooks, files, missing_files, watched, last_good, diagnostics, ..
        } = loaded;
        let is_own = |file: &PathBuf| file.starts_with(&workspace.root);
        self.last_good.extend(last_good.into_iter().filter(|(file, _)| is_own(file)));
        let workspace = Arc::new(workspace);
        let own = hooks.into_iter().filter(|hook| {
            matches!(hook.source.scope, Scope::Project | Scope::Local) && dialects.has(hook.dialect.name())
        });
        self.hooks.extend(own.map(|mut hook| {
            hook.execution.outer = Some(OuterWorkspace { workspace: Arc::clone(&workspace), distance });
            hook
        }));
        let here = diagnostics.into_iter().filter(|found| found.file.starts_with(&workspace.root));
        self.diagnostics.extend(here);
        self.files.extend(files);
        self.missing_files.extend(missing_files);
        self.watched.extend(watched);
        self.workspaces.push(workspace);
    }

    /// Adds those of the signed bundle, which are around every workspace.
    pub(super) fn add_managed(&mut self, managed: &ManagedLevel) {
        self.hooks.extend(managed.hooks.iter().cloned());
        self.diagnostics.extend(managed.diagnostics.iter().cloned());
        self.required.extend(managed.required.iter().cloned());
    }

    /// Adds them to the workspace they are around. A hook whose name one of a higher level has gets a name of its own,
    /// so that it does not take its place.
    pub(super) fn join(
        self,
        loaded: &mut LoadedWorkspace,
        settings: &Settings,
        environment: &dyn Fn(&str) -> Option<String>,
    ) {
        let Self {
            hooks,
            project_roots,
            workspaces,
            directories,
            files,
            missing_files,
            watched,
            last_good,
            diagnostics,
            required,
        } = self;
        if project_root(&loaded.workspace.root, settings, environment).is_none() {
            loaded.project_roots.clear();
        }
        add_new(&mut loaded.project_roots, project_roots);
        loaded.around = directories;
        add_new(&mut loaded.diagnostics, diagnostics);
        if hooks.is_empty() && workspaces.is_empty() {
            return;
        }
        loaded.required = required;
        loaded.outer = workspaces;
        loaded.last_good.extend(last_good);
        add_new(&mut loaded.files, files);
        add_new(&mut loaded.missing_files, missing_files);
        add_new(&mut loaded.watched, watched);
        let mut all: Vec<Hook> = hooks.into_iter().chain(std::mem::take(&mut loaded.hooks)).collect();
        all.sort_by_key(Hook::level);
        let mut taken = BTreeSet::new();
        for hook in &mut all {
            if taken.contains(&hook.name) {
                let name = hook.name.free_variant("nested", |name| taken.contains(name));
                loaded.diagnostics.extend(renamed(hook, &name));
                hook.name = name;
            }
            taken.insert(hook.name.clone());
        }
        loaded.hooks = all;
    }
}

fn add_new<T: PartialEq>(known: &mut Vec<T>, more: Vec<T>) {
    for item in more {
        if !known.contains(&item) {
            known.push(item);
        }
    }
}

/// The warning about a hook file whose hook has another name here. Other hooks have generated names.
fn renamed(hook: &Hook, name: &HookName) -> Option<Diagnostic> {
    if hook.dialect.name() != DialectName::OpenHarness {
        return None;
    }
    let message = format!("a hook of a higher level is called `{}`, so this one is `{name}` here", hook.name);
    let diagnostic =
        Diagnostic::of_file(Severity::Warning, "duplicate-name", hook.source.file.as_deref()?, message);
    Some(Diagnostic { line: hook.source.line, column: 1, ..diagnostic.help("rename it") })
}

/// The directory of a workspace, whose programs no hook is given; none for the home directory and what is above it: the
/// programs there are the user's own.
pub(super) fn project_root(
    root: &Path,
    settings: &Settings,
    environment: &dyn Fn(&str) -> Option<String>,
) -> Option<PathBuf> {
    let home = home_directory(settings, environment).and_then(|home| home.canonicalize().ok());
    let is_of_user = home.is_some_and(|home| home.starts_with(root));
    (!is_of_user).then(|| root.to_owned())
}

impl Surroundings {
    fn of(root: &Path, settings: &Settings, context: &LoadContext<'_>) -> Self {
        let home = home_directory(settings, context.environment).and_then(|home| home.canonicalize().ok());
        // Behind a link in the place of a workspace, what is there applies too.
        let linked = root.canonicalize().ok().filter(|real| real != root);
        let linked = linked.map(|real| real.join(WORKSPACE_DIRECTORY));
        let places: Vec<&Path> = [root].into_iter().chain(linked.as_deref()).collect();
        let registered = registered_around(&places, settings, context);
        let roots = served_roots(settings, context);
        let is_bounded = |directory: &Path| {
            roots.iter().any(|bound| directory.starts_with(bound))
                || registered.iter().any(|known| directory.starts_with(&known.settings.root))
        };
        let is_below_home = |directory: &Path| {
            home.as_deref().is_none_or(|home| !root.starts_with(home) || directory.starts_with(home))
        };
        let trusted = LazyCell::new(|| trusted_roots(settings, context.environment).read());
        let is_trusted = |directory: &Path| trusted.contains(directory);
        let owner = root.metadata().map(|found| found.uid()).ok();
        let mut found = Self::default();
        let by_name: Vec<&Path> = root.ancestors().skip(1).collect();
        let by_link = linked.iter().flat_map(|linked| linked.ancestors().skip(1));
        let by_link: Vec<&Path> = by_link.filter(|directory| !by_name.contains(directory)).collect();
        for directory in by_name.into_iter().chain(by_link) {
            let is_searched =
                context.search == OuterSearch::EveryParent && roots.is_empty() && is_below_home(directory);
            if !is_bounded(directory) && !is_searched {
                continue;
            }
            let known = registered.iter().find(|known| known.settings.root == directory);
            let has_hooks = discover::is_workspace(directory, home.as_deref()) || is_trusted(directory);
            // What is trusted there is so by its content, whoever can write it.
            if is_bounded(directory) || is_own(directory, owner) || is_trusted(directory) {
                found.directories.push(directory.to_owned());
            } else {
                found.diagnostics.extend(has_hooks.then(|| not_own(directory)));
                continue;
            }
            match known {
                Some(known) => found.workspaces.push(known.clone()),
                None if has_hooks => found.workspaces.push(unregistered(directory)),
                None => {}
            }
        }
        let moved = moved_user(root, settings, context, &found.workspaces, &is_trusted);
        found.workspaces.reverse();
        let is_of_user = |directory: &Path| home.as_deref().is_some_and(|home| home.starts_with(directory));
        let all = found.workspaces.iter().chain(&moved).map(|known| known.settings.root.clone());
        found.project_roots = all.filter(|directory| !is_of_user(directory)).collect();
        let is_known_to_people = |known: &RegisteredWorkspace| {
            is_trusted(&known.settings.root) || settings.workspaces.contains_key(&known.id)
        };
        found.limit(root, &is_known_to_people);
        // Not counted: a variable must not take the place of a workspace.
        found.workspaces.splice(..0, moved);
        found.add_own_of_user(root, settings, context, &is_trusted);
        found
    }

    /// Adds the directory with hook files of the user for every workspace, as the outermost one.
    fn add_own_of_user(
        &mut self,
        root: &Path,
        settings: &Settings,
        context: &LoadContext<'_>,
        is_trusted: &dyn Fn(&Path) -> bool,
    ) {
        let Some(directory) = user_workspace(settings, context.environment) else { return };
        let is_known = |known: &RegisteredWorkspace| known.settings.root == directory;
        if root.starts_with(&directory) || self.workspaces.iter().any(is_known) {
            return;
        }
        let has_hooks = discover::is_workspace(&directory, None) || is_trusted(&directory);
        // What is trusted there is so by its content, and missed where it is gone, whoever can write it.
        if !is_own(&directory, None) && !is_trusted(&directory) {
            self.diagnostics.extend(has_hooks.then(|| not_own(&directory)));
            return;
        }
        self.directories.push(directory.clone());
        if has_hooks {
            self.workspaces.insert(0, unregistered(&directory));
        }
    }

    /// Leaves out the innermost ones beyond the limit, but none that somebody has declared or has agreed to hooks of:
    /// whoever writes into the directories above it could make any number outside of it.
    fn limit(&mut self, root: &Path, is_known_to_people: &dyn Fn(&RegisteredWorkspace) -> bool) {
        let count = self.workspaces.len();
        let mut at = 0;
        self.workspaces.retain(|known| {
            at += 1;
            at <= MOST_OUTER || is_known_to_people(known)
        });
        if self.workspaces.len() < count {
            self.diagnostics.push(too_many(root, count));
        }
    }
}

/// The registered workspaces around any of these places, and those of the settings, which may be registered later.
fn registered_around(
    places: &[&Path],
    settings: &Settings,
    context: &LoadContext<'_>,
) -> Vec<RegisteredWorkspace> {
    let looked_up = DeclaredRoots::default();
    let declared = context.declared.unwrap_or(&looked_up);
    let mut found = Vec::new();
    for place in places {
        found.extend((context.registered)(place));
        for (id, settings) in declared.around(place, settings) {
            if !found.iter().any(|known: &RegisteredWorkspace| known.settings.root == settings.root) {
                found.push(RegisteredWorkspace { id, settings });
            }
        }
    }
    found
}

/// The `workspace_roots` of the settings and, in the daemon, the directories that connected agents work in.
fn served_roots(settings: &Settings, context: &LoadContext<'_>) -> Vec<PathBuf> {
    let connected = context.connections.filter(|_| context.search == OuterSearch::Registered);
    let connected = connected.map(ConnectionRecord::roots).unwrap_or_default();
    let roots = settings.workspace_roots.iter().chain(&connected);
    roots.filter_map(|root| root.canonicalize().ok()).collect()
}

fn unregistered(directory: &Path) -> RegisteredWorkspace {
    let settings = WorkspaceSettings::new(directory);
    RegisteredWorkspace { id: WorkspaceId::of_directory(directory), settings }
}

/// The directory whose hook files apply in every workspace of the user, without links; it may not be there. If a link is
/// in the place of one with trusted hooks, it is that one: what the link leads to is none of the user's.
pub(crate) fn user_workspace(
    settings: &Settings,
    environment: &dyn Fn(&str) -> Option<String>,
) -> Option<PathBuf> {
    let home = home_directory(settings, environment)?;
    let directory = home.canonicalize().unwrap_or(home).join(USER_WORKSPACE);
    let place = workspace_place(&directory, settings, environment);
    Some(place.map_or(directory, |place| place.root))
}

/// What `HOME` names, where that is not the home directory of the account: agents read the settings of their user
/// there. A variable cannot make its hooks those of the user, so they need the trust that those of a workspace need.
fn moved_user(
    root: &Path,
    settings: &Settings,
    context: &LoadContext<'_>,
    known: &[RegisteredWorkspace],
    is_trusted: &dyn Fn(&Path) -> bool,
) -> Option<RegisteredWorkspace> {
    let home = moved_home(settings, context.environment)?;
    let is_known = home == root || known.iter().any(|known| known.settings.root == home);
    let is_one = discover::is_workspace(&home, None) || is_trusted(&home);
    (!is_known && is_one).then(|| unregistered(&home))
}

/// Whether nobody else can put hook files into a directory.
fn is_own(directory: &Path, owner_of_root: Option<u32>) -> bool {
    let user = rustix::process::geteuid().as_raw();
    let may_write = |uid: u32| uid == 0 || uid == user || Some(uid) == owner_of_root;
    let is_safe = |path: &Path| {
        let found = path.symlink_metadata();
        found.map_or(true, |found| may_write(found.uid()) && found.mode() & 0o002 == 0)
    };
    is_safe(directory) && is_safe(&directory.join(WORKSPACE_DIRECTORY))
}

fn not_own(directory: &Path) -> Diagnostic {
    let message = "its hooks do not apply in the workspaces below it: another user can write to it";
    Diagnostic::of_file(Severity::Warning, "outer", directory, message)
        .help("register it in `workspaces` or `workspace_roots` of the settings, or take the permission away")
}

fn too_many(root: &Path, count: usize) -> Diagnostic {
    let message = format!(
        "{count} workspaces are around it; the hooks of the {MOST_OUTER} outermost ones apply, and of those with trusted \
         hooks; the others are left out"
    );
    Diagnostic::of_file(Severity::Error, "outer", root, message)
        .help("remove hook files of the directories in between")
}
