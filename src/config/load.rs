//! Loading of a workspace: its kind, its hooks, and diagnostics about its files.
//! An invalid file costs its own hook and nothing else.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use super::{
    Settings, WorkspaceSettings,
    account::referenced_variable,
    agent_settings::{self, OwnFiles, SettingsDirectories, SettingsReading},
    content, directory_names,
    discover::{self, WORKSPACE_DIRECTORY},
    files::{self, FileBytes},
    guards,
    hook_checks::{
        configure, duplicate_commands, hook_rules, missing_features, refused_targets, replace, switch_off,
        switched_off, unique_names,
    },
    last_good::{BrokenFileRules, load_with_last_good, note_versions},
    last_good_store::GoodFiles,
    loaded_workspace::{LoadContext, LoadedWorkspace, RegisteredWorkspace},
    models::ModelCatalog,
    outer::OuterHooks,
    own_settings::OwnSettings,
    resolver::{ReferenceResolver, ReferenceSources},
    sandbox,
    secrets::SecretStore,
    trust::{self, CheckedHooks, WorkspacePlace},
    workspace_files::WorkspaceFiles,
    workspace_options::{DialectSelection, WorkspaceKind},
};
use crate::{
    dialect::{HookRules, NativeDialect, natives, read_hook},
    model::{Diagnostic, Dialect, DialectName, Hook, Severity, Workspace, WorkspaceId},
    root_dir::LastLink,
};

/// The largest size of all hook files together, in bytes. Each mistake in a file costs another reading of it, so
/// without a bound hundreds of the largest files would take minutes to load.
const LARGEST_TOTAL: usize = 16 << 20;

/// Loads a workspace for an embedding program, which may have models of its own, or again; with the hooks of the
/// workspaces around it.
pub(crate) fn load_in_context(
    workspace: &WorkspaceSettings,
    workspace_id: Option<&WorkspaceId>,
    settings: &Settings,
    context: &LoadContext<'_>,
) -> LoadedWorkspace {
    let place = trust::workspace_place(&workspace.root, settings, context.environment);
    let alone = |outer: &RegisteredWorkspace, project_roots: &[PathBuf]| {
        let context = LoadContext { previous: None, project_roots, ..*context };
        load_with(&outer.settings, Some(&outer.id), settings, &context, OuterHooks::default())
    };
    let outer = place.map(|place| OuterHooks::load(&place.root, workspace, settings, context, &alone));
    let mut outer = outer.unwrap_or_default();
    if let Some(managed) = context.managed {
        outer.add_managed(managed);
    }
    load_with(workspace, workspace_id, settings, context, outer)
}

/// Loads a workspace without any hooks around it.
#[cfg(feature = "daemon")]
pub(super) fn load_alone(
    workspace: &WorkspaceSettings,
    workspace_id: &WorkspaceId,
    settings: &Settings,
    context: &LoadContext<'_>,
) -> LoadedWorkspace {
    load_with(workspace, Some(workspace_id), settings, context, OuterHooks::default())
}

fn load_with(
    workspace: &WorkspaceSettings,
    workspace_id: Option<&WorkspaceId>,
    settings: &Settings,
    context: &LoadContext<'_>,
    mut outer: OuterHooks,
) -> LoadedWorkspace {
    let project_roots = [context.project_roots, &outer.project_roots].concat();
    let context =
        &LoadContext { project_roots: &project_roots, previous: context.previous.clone(), ..*context };
    let load = |good: &GoodFiles, outer: &mut Vec<Hook>| {
        let context = &LoadContext { good, previous: context.previous.clone(), ..*context };
        let mut loaded = read_workspace(workspace, workspace_id.cloned(), settings, context, outer);
        loaded.check_trust(workspace, settings, context);
        loaded
    };
    let rules = BrokenFileRules::new(workspace, settings, context.environment);
    let mut loaded = if let Some(store) = context.last_good {
        load_with_last_good(store, &rules, &mut outer.hooks, &load)
    } else {
        let mut loaded = load(context.good, &mut outer.hooks);
        note_versions(&mut loaded);
        rules.block_unknown(&mut loaded, &GoodFiles::new());
        loaded
    };
    if let Some(connections) = context.connections {
        connections.mark(&loaded.workspace.root, &mut loaded.hooks, &settings.required);
    }
    outer.join(&mut loaded, settings, context.environment);
    loaded.sort();
    loaded
}

/// Reads a workspace. Nobody has agreed to its hooks yet; if somebody must, nothing that they refer to is looked up.
pub(super) fn read_workspace(
    workspace: &WorkspaceSettings,
    workspace_id: Option<WorkspaceId>,
    settings: &Settings,
    context: &LoadContext<'_>,
    outer: &mut [Hook],
) -> LoadedWorkspace {
    let place = trust::workspace_place(&workspace.root, settings, context.environment);
    let (root, link, problem) = match place {
        Ok(WorkspacePlace { root, link }) if link.is_some() || root.is_dir() => (root, link, None),
        Ok(WorkspacePlace { root, .. }) => (root, None, Some("is not a directory".to_owned())),
        Err(error) => (workspace.root.clone(), None, Some(files::unreadable(error))),
    };
    let workspace_id = workspace_id.unwrap_or_else(|| WorkspaceId::of_directory(&root));
    let names = directory_names::of(&root, &workspace_id, settings, context);
    let mut loaded = LoadedWorkspace::empty(Workspace { names, ..Workspace::new(workspace_id, root) });
    (loaded.kind, loaded.dialects) = context.previous.clone().unwrap_or_default();
    let root = loaded.workspace.root.clone();
    let files = match (problem, link) {
        (Some(why), _) => {
            loaded.error("unreadable", &root, format!("the directory {why}"));
            None
        }
        // Nothing of what the link leads to is read as this workspace.
        (None, Some(link)) => {
            loaded.diagnostics.push(guards::replaced(&root, &link));
            loaded.watched.push(link);
            Some(WorkspaceFiles::none(&root))
        }
        (None, None) => loaded.open(&root),
    };
    if let Some(files) = files {
        loaded.read(&files, workspace, settings, context, outer);
    }
    loaded
}

impl LoadedWorkspace {
    /// Decides which hooks may run.
    fn check_trust(&mut self, given: &WorkspaceSettings, settings: &Settings, context: &LoadContext<'_>) {
        let off = switched_off(&self.hooks, &settings.handlers);
        let CheckedHooks { hooks, watched, diagnostics } = trust::check_trust(
            &self.workspace,
            std::mem::take(&mut self.hooks),
            &self.definitions,
            given,
            settings,
            context.environment,
        );
        self.hooks = hooks;
        self.diagnostics.extend(switch_off(&mut self.hooks, &off).into_iter().chain(diagnostics));
        replace(&mut self.hooks, &settings.handlers);
        let scripts = content::hash_hooks(&mut self.hooks, &self.workspace.root);
        self.watched.extend(watched.into_iter().chain(scripts));
        let LoadContext { models, project_roots, .. } = *context;
        let environment = &|name: &str| referenced_variable(settings, context.environment, name);
        let sources =
            ReferenceSources { workspace: &self.workspace, settings, environment, models, project_roots };
        let found = sources.resolve(&mut self.hooks, &self.definitions, &self.diagnostics);
        self.diagnostics.extend(found);
    }

    fn open(&mut self, root: &Path) -> Option<WorkspaceFiles> {
        let opened = WorkspaceFiles::open(root).map_err(files::unreadable);
        opened.map_err(|why| self.error("unreadable", root, format!("the directory {why}"))).ok()
    }

    /// Reads the files of the workspace and those of the levels above it. The hooks of `outer` workspaces take note of
    /// switches without effect.
    fn read(
        &mut self,
        workspace: &WorkspaceFiles,
        given: &WorkspaceSettings,
        settings: &Settings,
        context: &LoadContext<'_>,
        outer: &mut [Hook],
    ) {
        let root = self.workspace.root.clone();
        let (own, mut paths) = self.examine(workspace, context);
        // What the operator says about the workspace overrides what the workspace says about itself.
        self.kind = given.kind.unwrap_or(own.kind);
        self.dialects = given.dialects.clone().unwrap_or_else(|| own.dialects.clone());
        let operators = given.dialects.clone().unwrap_or_default();
        paths.retain(|_| operators.has(DialectName::OpenHarness));
        let directories =
            SettingsDirectories::new(workspace, settings, context.environment).with_good(context.good);
        let natives_in_use: Vec<_> = natives().filter(|native| operators.has(native.name())).collect();
        if given.kind == Some(WorkspaceKind::Chat) {
            let others = natives_in_use.iter().flat_map(|native| directories.files(native).0);
            return self.ignore(paths.len() + others.count(), &root);
        }
        let is_chat = self.kind == WorkspaceKind::Chat;
        let id = self.workspace.id.clone();
        let declared = settings.declared_id(&root, &id);
        let secrets = SecretStore::new(&settings.secrets, context.environment, declared);
        let models =
            ModelCatalog { known: &settings.models, of_host: context.models, workspace: &id, declared };
        let variable = |name: &str| referenced_variable(settings, context.environment, name);
        let resolver = ReferenceResolver::new(workspace, &variable, &secrets, &models);
        let resolver = resolver.in_project(settings, context.project_roots).under(settings.trust);
        let reading = SettingsReading {
            directories: &directories,
            own_files: if is_chat { OwnFiles::Ignored } else { OwnFiles::Read },
            rules: &hook_rules(settings),
            resolver: &resolver,
            exceptions: &settings.levels.allow_disable.iter().cloned().collect(),
        };
        if is_chat {
            let others = natives_in_use.iter().flat_map(|native| directories.files(native).0);
            let others = others.filter(|(_, file)| file.is_of_workspace());
            self.ignore(paths.len() + others.count(), &root);
            self.report_unread_guards(&directories, paths, reading.rules, &resolver);
        } else {
            self.read_hook_files(&directories, paths, reading.rules, &resolver);
        }
        for native in natives_in_use {
            self.read_settings_files(native, &reading, outer);
        }
        if is_chat || given.dialects.is_none() {
            let file = discover::own_settings_file(&root);
            let all = self.hooks.iter_mut().chain(outer);
            self.diagnostics.extend(own.apply(self.kind, &file, all, reading.exceptions));
        }
        let examined = resolver.into_examined();
        self.files.extend(examined.read);
        self.missing_files.extend(examined.missing);
        self.configure_hooks(settings);
        self.report_hooks(workspace, settings);
    }

    /// Has the hooks run as the settings say, in the sandboxes of their levels.
    fn configure_hooks(&mut self, settings: &Settings) {
        self.diagnostics.extend(configure(&mut self.hooks, &settings.handlers));
        self.diagnostics.extend(sandbox::apply(&mut self.hooks, &settings.sandbox, &self.workspace.root));
    }

    /// Reports loaded hooks that cannot run as they are, those that do the same as another one, and a directory that
    /// was not read as a whole.
    fn report_hooks(&mut self, workspace: &WorkspaceFiles, settings: &Settings) {
        self.diagnostics.extend(missing_features(&self.hooks));
        self.diagnostics.extend(refused_targets(&self.hooks, settings));
        guards::escalate(&mut self.diagnostics, &self.hooks);
        self.diagnostics.extend(guards::silenced(&self.hooks));
        self.diagnostics.extend(duplicate_commands(&self.hooks));
        self.check_place(workspace);
    }

    /// Reports a directory that was moved or replaced meanwhile, whose files may have looked deleted. As an error of
    /// the directory, this keeps the former hooks.
    fn check_place(&mut self, workspace: &WorkspaceFiles) {
        if !workspace.is_in_place() {
            let why = "the directory was moved or replaced while it was read".to_owned();
            self.error("unreadable", workspace.root(), why);
        }
    }

    /// Reads the workspace's own settings, and finds its hook files.
    fn examine(
        &mut self,
        workspace: &WorkspaceFiles,
        context: &LoadContext<'_>,
    ) -> (OwnSettings, Vec<PathBuf>) {
        let former = context.previous.as_ref();
        let good = discover::hook_files_of(workspace.root(), context.good.keys());
        match workspace.has_directory(Path::new(WORKSPACE_DIRECTORY)) {
            Ok(false) => (OwnSettings::default(), good.into_iter().collect()),
            Ok(true) => {
                let own = self.read_own_settings(workspace, former);
                let (paths, diagnostics) = discover::hook_files(workspace);
                self.diagnostics.extend(diagnostics);
                (own, paths.into_iter().chain(good).collect::<BTreeSet<_>>().into_iter().collect())
            }
            Err(why) => {
                let directory = workspace.root().join(WORKSPACE_DIRECTORY);
                self.error("unreadable", &directory, format!("the directory {why}"));
                (former.map(OwnSettings::former).unwrap_or_default(), good.into_iter().collect())
            }
        }
    }

    fn read_hook_files(
        &mut self,
        directories: &SettingsDirectories<'_>,
        paths: Vec<PathBuf>,
        rules: &HookRules,
        resolver: &ReferenceResolver<'_>,
    ) {
        let mut named: Vec<(Hook, FileBytes)> = Vec::new();
        let mut total = 0;
        for path in paths {
            self.files.push(path.clone());
            match directories.read_hook_file(path) {
                Ok(file) if total + file.bytes.len() > LARGEST_TOTAL => {
                    let why = format!("not loaded: hook files may have {LARGEST_TOTAL} bytes together");
                    self.error("too-large", &file.path, why);
                }
                Ok(file) => {
                    total += file.bytes.len();
                    let (hook, diagnostics) = read_hook(&file.bytes, &file.path, rules, resolver);
                    self.diagnostics.extend(diagnostics);
                    self.definitions.insert(file.path.clone(), file.bytes.as_slice().into());
                    named.extend(hook.map(|hook| (hook, file)));
                }
                Err(diagnostic) => self.diagnostics.push(*diagnostic),
            }
        }
        let (unique, diagnostics) = unique_names(named, directories.good());
        self.hooks.extend(unique);
        self.diagnostics.extend(diagnostics);
    }

    /// Reports the guards among hook files that are not loaded, because the workspace says that it is a chat.
    fn report_unread_guards(
        &mut self,
        directories: &SettingsDirectories<'_>,
        paths: Vec<PathBuf>,
        rules: &HookRules,
        resolver: &ReferenceResolver<'_>,
    ) {
        let mut unread = Self::empty(self.workspace.clone());
        unread.read_hook_files(directories, paths, rules, resolver);
        let file = discover::own_settings_file(&self.workspace.root);
        self.diagnostics.extend(guards::unread(&unread.hooks, &file));
        self.diagnostics.extend(guards::unreadable(unread.diagnostics));
        self.unread.extend(unread.files);
    }

    /// Reads the settings files of one agent. The names of their hooks are generated, so a hook file with such a name
    /// is rejected.
    fn read_settings_files(
        &mut self,
        native: &'static NativeDialect,
        reading: &SettingsReading<'_>,
        outer: &mut [Hook],
    ) {
        let collected = agent_settings::collect(native, reading, outer);
        self.files.extend(collected.files);
        self.missing_files.extend(collected.missing_files);
        self.definitions.extend(collected.definitions);
        self.diagnostics.extend(collected.diagnostics);
        for hook in collected.hooks {
            if let Some(at) = self.hooks.iter().position(|known| known.name == hook.name) {
                let Hook { name, source, .. } = self.hooks.remove(at);
                let message = format!("the name `{name}` is that of a hook in a settings file");
                let file = source.file.unwrap_or_else(|| self.workspace.root.as_path().into());
                let diagnostic = Diagnostic::of_file(Severity::Error, "duplicate-name", &file, message);
                let diagnostic = diagnostic.help("rename it");
                self.diagnostics.push(Diagnostic { line: source.line, column: 1, ..diagnostic });
            }
            self.hooks.push(hook);
        }
    }

    fn error(&mut self, code: &'static str, file: &Path, message: String) {
        self.diagnostics.push(Diagnostic::of_file(Severity::Error, code, file, message));
    }

    fn ignore(&mut self, files: usize, root: &Path) {
        if files == 0 {
            return;
        }
        let message = format!("the workspace is of kind `chat`: {} ignored", counted(files));
        let file = discover::own_settings_file(root);
        self.diagnostics.push(Diagnostic::of_file(Severity::Info, "chat", &file, message));
    }

    fn read_own_settings(
        &mut self,
        workspace: &WorkspaceFiles,
        former: Option<&(WorkspaceKind, DialectSelection)>,
    ) -> OwnSettings {
        let path = discover::own_settings_file(workspace.root());
        if path.symlink_metadata().is_err() {
            return OwnSettings::default();
        }
        self.files.push(path.clone());
        let (own, diagnostics) = OwnSettings::read(workspace.read(path, LastLink::Refused), former);
        self.diagnostics.extend(diagnostics);
        own
    }
}

fn counted(files: usize) -> String {
    if files == 1 { "1 hook file is".to_owned() } else { format!("{files} hook files are") }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::config::{HttpSettings, load_workspace};

    #[test]
    fn a_hook_whose_handler_is_not_compiled_in_stays_loaded_and_is_reported() {
        let root = tempfile::tempdir().unwrap();
        let hooks = root.path().join(".openharness/hooks");
        fs::create_dir_all(&hooks).unwrap();
        let guard = "name: guard\nevents: [before_tool_dispatch]\nhandler: {type: http, url: \"http://localhost/\"}\n";
        fs::write(hooks.join("guard.yaml"), guard).unwrap();
        let http = HttpSettings { allow: vec!["localhost".parse().unwrap()] };
        let settings = Settings { http, trust: super::super::TrustPolicy::Off, ..Settings::default() };
        let loaded = load_workspace(root.path(), None, &settings, &|_| None);
        let codes: Vec<_> = loaded.diagnostics.iter().map(|diagnostic| diagnostic.code).collect();
        let expected: &[&str] = if cfg!(feature = "http") { &[] } else { &["missing-feature"] };
        assert_eq!((loaded.hooks.len(), codes.as_slice()), (1, expected));
    }
}
