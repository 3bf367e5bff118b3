//! Resolves what hook files refer to: directories, programs, text files, agents, models, secrets.
//! Files and directories must be inside the workspace.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    os::unix::fs::PermissionsExt,
    path::{Component, Path, PathBuf},
    sync::Arc,
};

use super::{
    Settings,
    discover::WORKSPACE_DIRECTORY,
    files::DefinitionFiles,
    hook_checks::hook_rules,
    models::ModelCatalog,
    outer::project_root,
    program_path::ProgramPath,
    secrets::SecretStore,
    workspace_files::{UnreadFile, WorkspaceFiles},
    workspace_options::TrustPolicy,
};
use crate::{
    dialect::{ReferenceLookup, ResolvedPath, natives, read_hook, read_hooks_of},
    model::{
        Diagnostic, Dialect, DialectName, Hook, HookTrust, Model, PluginSource, Scope, Secret,
        SecretReference, SecretText, TrustState, Workspace,
    },
};

/// The longest name of an agent, in bytes.
const LONGEST_AGENT: usize = 64;

/// The largest text file a handler may name, in bytes.
const LARGEST_TEXT: u64 = 256 << 10;

/// Resolves references with a workspace on disk, the environment, secrets and models.
pub(super) struct ReferenceResolver<'a> {
    workspace: &'a WorkspaceFiles,
    environment: &'a dyn Fn(&str) -> Option<String>,
    secrets: &'a SecretStore<'a>,
    models: &'a ModelCatalog<'a>,
    path: ProgramPath<'a>,
    /// The only variables and secrets that are looked up, if not all are.
    permitted: Option<BTreeSet<SecretReference>>,
    examined: RefCell<ExaminedFiles>,
    /// The programs that were looked up in the `PATH`: many hooks name the same shell.
    programs: RefCell<BTreeMap<String, ResolvedPath>>,
}

/// The files that hooks refer to.
#[derive(Debug, Default)]
pub(super) struct ExaminedFiles {
    /// Those that exist, also if they could not be read.
    pub(super) read: BTreeSet<PathBuf>,
    /// Those that do not exist or are outside the workspace.
    pub(super) missing: BTreeSet<PathBuf>,
}

impl<'a> ReferenceResolver<'a> {
    /// A resolver for a workspace. It searches all of the `PATH`: see [`Self::in_project`].
    pub(super) fn new(
        workspace: &'a WorkspaceFiles,
        environment: &'a dyn Fn(&str) -> Option<String>,
        secrets: &'a SecretStore<'a>,
        models: &'a ModelCatalog<'a>,
    ) -> Self {
        Self {
            workspace,
            environment,
            secrets,
            models,
            path: ProgramPath::new(environment),
            permitted: None,
            examined: RefCell::default(),
            programs: RefCell::default(),
        }
    }

    /// The same, which of the `PATH` searches only directories into which neither the project of the workspace nor one
    /// `around` it can put a program of a common name.
    pub(super) fn in_project(self, settings: &Settings, around: &[PathBuf]) -> Self {
        let own = project_root(self.workspace.root(), settings, self.environment);
        let path = self.path.outside(own.into_iter().chain(around.iter().cloned()).collect());
        Self { path, ..self }
    }

    /// The same, which looks up no other variables and secrets than these.
    pub(super) fn limited_to(self, permitted: BTreeSet<SecretReference>) -> Self {
        Self { permitted: Some(permitted), ..self }
    }

    /// The same, which looks up no variable and no secret where somebody has to agree to hooks first.
    pub(super) fn under(self, trust: TrustPolicy) -> Self {
        match trust {
            TrustPolicy::Enforce => self.limited_to(BTreeSet::new()),
            TrustPolicy::Off => self,
        }
    }

    fn may_look_up(&self, reference: &SecretReference) -> bool {
        self.permitted.as_ref().is_none_or(|permitted| permitted.contains(reference))
    }

    /// The files that were examined for the hooks, besides hook files.
    pub(super) fn into_examined(self) -> ExaminedFiles {
        self.examined.into_inner()
    }

    /// The bytes of a small regular file inside the workspace.
    fn read(&self, relative: &str) -> Result<Vec<u8>, String> {
        let root = self.workspace.root();
        let path = inside(root, root, relative);
        let bytes = bytes_inside(self.workspace, path.as_deref());
        let mut examined = self.examined.borrow_mut();
        match bytes {
            Err(UnreadFile::Missing | UnreadFile::Outside) => examined.missing.extend(path),
            Ok(_) | Err(UnreadFile::Other(_)) => examined.read.extend(path),
        }
        bytes.map_err(|unread| unread_message(&unread, relative))
    }

    fn in_path(&self, name: &str) -> ResolvedPath {
        let found =
            self.path.directories().iter().map(|entry| entry.join(name)).find(|path| problem(path).is_none());
        found.map_or_else(
            || {
                let entry = self.path.directories().first().map_or(Path::new("/usr/bin"), PathBuf::as_path);
                ResolvedPath::Missing(entry.join(name), format!("`{name}` was not found in PATH"))
            },
            ResolvedPath::Found,
        )
    }
}

impl ReferenceLookup for ReferenceResolver<'_> {
    fn variable(&self, name: &str) -> Option<SecretText> {
        let reference = SecretReference::Variable(name.to_owned());
        if !self.may_look_up(&reference) {
            return Some(SecretText::deferred(reference));
        }
        let value = (self.environment)(name)?;
        let value = if name == "PATH" { self.path.text()? } else { value };
        let is_secret = self.secrets.is_variable(name);
        Some(if is_secret { SecretText::secret(Secret::new(value)) } else { value.into() })
    }

    fn definition_variable(&self, name: &str) -> Result<Option<String>, (String, String)> {
        if self.secrets.is_variable(name) {
            let message = format!("the variable `{name}` is a secret, which is shown nowhere");
            return Err((message, "use it in `headers` or `environment`".to_owned()));
        }
        Ok(if name == "PATH" { self.path.text() } else { (self.environment)(name) })
    }

    fn secret(&self, name: &str) -> Result<Secret, (String, String)> {
        self.secrets.find(name)
    }

    fn secret_text(&self, name: &str) -> Result<SecretText, (String, String)> {
        let reference = SecretReference::Secret(name.to_owned());
        if !self.may_look_up(&reference) {
            return Ok(SecretText::deferred(reference));
        }
        self.secret(name).map(SecretText::secret)
    }

    fn option(&self, name: &str) -> Option<String> {
        (self.environment)(name)
    }

    fn directory(&self, relative: &str) -> ResolvedPath {
        let root = self.workspace.root();
        let Some(path) = inside(root, root, relative) else {
            return ResolvedPath::Refused(format!("`{relative}` leads outside the workspace"));
        };
        // It is open, whatever another look at it says, which may fail for lack of descriptors.
        if path == root {
            return ResolvedPath::Found(path);
        }
        match self.workspace.has_directory(relative_to(root, &path)) {
            // The hook will start in it, so the path without links counts, where it leads now.
            Ok(true) => match path.canonicalize() {
                Ok(real) if real.starts_with(root) => ResolvedPath::Found(real),
                _ => ResolvedPath::Refused(format!("`{relative}` leads outside the workspace")),
            },
            Ok(false) => ResolvedPath::Missing(path, format!("`{relative}` does not exist")),
            Err(why) => ResolvedPath::Refused(format!("`{relative}` {why}")),
        }
    }

    fn program(&self, name: &str, cwd: &Path) -> ResolvedPath {
        if name.is_empty() {
            return ResolvedPath::Refused("the program's name is empty".to_owned());
        }
        if !name.contains('/') {
            let mut known = self.programs.borrow_mut();
            return known.entry(name.to_owned()).or_insert_with(|| self.in_path(name)).clone();
        }
        let is_absolute = name.starts_with('/');
        let path = if is_absolute { Some(name.into()) } else { inside(self.workspace.root(), cwd, name) };
        let Some(path) = path else {
            return ResolvedPath::Refused(format!("`{name}` leads outside the workspace"));
        };
        match problem(&path) {
            None => ResolvedPath::Found(path),
            Some(why) => ResolvedPath::Missing(path, format!("`{name}` {why}")),
        }
    }

    fn text_file(&self, relative: &str) -> Result<String, String> {
        text_of(self.read(relative)?, relative)
    }

    fn agent_file(&self, name: &str) -> Result<(PathBuf, Vec<u8>), (String, String)> {
        if !is_agent_name(name) {
            let help = format!("use 1 to {LONGEST_AGENT} of `A-Z a-z 0-9 . _ -`, not beginning with `.`");
            return Err(("this is not a valid name of an agent".into(), help));
        }
        let relative = format!("{WORKSPACE_DIRECTORY}/agents/{name}.md");
        let path = self.workspace.root().join(&relative);
        match self.read(&relative) {
            Ok(bytes) => Ok((path, bytes)),
            Err(why) => Err((why, "write the agent there, or name another one".into())),
        }
    }

    fn model(&self, reference: &str) -> Result<Model, (String, String)> {
        self.models.find(reference, self)
    }
}

/// A file with hooks, and how it is read.
pub(super) type HookFileKey = (PathBuf, DialectName, Scope, Option<Arc<PluginSource>>);

/// Where the variables and secrets of the hooks of a workspace are looked up.
pub(super) struct ReferenceSources<'a> {
    pub(super) workspace: &'a Workspace,
    pub(super) settings: &'a Settings,
    pub(super) environment: &'a dyn Fn(&str) -> Option<String>,
    /// The directories of the project: no programs are found there.
    pub(super) project_roots: &'a [PathBuf],
    /// Whether the embedding program has a client for a model.
    pub(super) models: &'a dyn Fn(&str) -> bool,
}

impl ReferenceSources<'_> {
    /// Looks up what the hooks refer to that may run, and nothing else: their files, as they were read, are read again
    /// with these values. Of hooks that cannot be given theirs, those of the workspace are refused, and others are left
    /// out. Returns what is wrong besides what is `known`.
    pub(super) fn resolve(
        &self,
        hooks: &mut Vec<Hook>,
        definitions: &DefinitionFiles,
        known: &[Diagnostic],
    ) -> Vec<Diagnostic> {
        let mut files: BTreeMap<HookFileKey, BTreeSet<SecretReference>> = BTreeMap::new();
        for hook in hooks.iter().filter(|hook| hook.trust.approval().is_some()) {
            let references = hook.handler.references();
            if let (Some(file), false) = (&hook.source.file, references.is_empty()) {
                let plugin = hook.execution.plugin.clone();
                let key = (file.to_path_buf(), hook.dialect.name(), hook.source.scope, plugin);
                files.entry(key).or_default().extend(references);
            }
        }
        let mut diagnostics = Vec::new();
        for (key, permitted) in files {
            let bytes = definitions.get(&key.0).map(|bytes| &**bytes).unwrap_or_default();
            let (resolved, found) = self.read(bytes, &key, permitted);
            let (file, dialect, ..) = key;
            diagnostics.extend(found.into_iter().filter(|found| !known.contains(found)));
            hooks.retain_mut(|hook| {
                let is_of_file =
                    hook.source.file.as_deref() == Some(&*file) && hook.dialect.name() == dialect;
                if !is_of_file || hook.trust.approval().is_none() || hook.handler.references().is_empty() {
                    return true;
                }
                match resolved.iter().find(|other| other.name == hook.name) {
                    Some(other) => {
                        hook.handler.take_values(&other.handler);
                        true
                    }
                    None => refuse(hook),
                }
            });
        }
        diagnostics
    }

    /// Reads a file with hooks, and looks up no other variables and secrets than these.
    pub(super) fn read(
        &self,
        bytes: &[u8],
        (file, dialect, scope, plugin): &HookFileKey,
        permitted: BTreeSet<SecretReference>,
    ) -> (Vec<Hook>, Vec<Diagnostic>) {
        // The workspace was readable a moment ago; if it is not any more, its hooks are refused.
        let Ok(workspace) = WorkspaceFiles::open(&self.workspace.root) else {
            return (Vec::new(), Vec::new());
        };
        let id = &self.workspace.id;
        let declared = self.settings.declared_id(&self.workspace.root, id);
        let secrets = SecretStore::new(&self.settings.secrets, self.environment, declared);
        let models =
            ModelCatalog { known: &self.settings.models, of_host: self.models, workspace: id, declared };
        let resolver = ReferenceResolver::new(&workspace, self.environment, &secrets, &models);
        let resolver = resolver.in_project(self.settings, self.project_roots).limited_to(permitted);
        let rules = hook_rules(self.settings);
        match natives().find(|native| native.name() == *dialect) {
            None => {
                let (hook, diagnostics) = read_hook(bytes, file, &rules, &resolver);
                (hook.into_iter().collect(), diagnostics)
            }
            Some(native) => {
                let file = (bytes, &**file);
                let (found, diagnostics) =
                    read_hooks_of(native, file, *scope, plugin.as_ref(), &rules, &resolver);
                (found.hooks.into_iter().map(|configured| configured.hook).collect(), diagnostics)
            }
        }
    }
}

/// Refuses a hook whose variables or secrets cannot be had. Returns whether it stays loaded: a guard of the workspace
/// that somebody agreed to must not vanish, and others are left out like every hook with a mistake.
fn refuse(hook: &mut Hook) -> bool {
    let why = "a variable or a secret that it refers to cannot be had; run `hookyard check`";
    hook.trust = HookTrust::refused(TrustState::Modified, why);
    matches!(hook.source.scope, Scope::Project | Scope::Local)
}

fn is_agent_name(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with('.')
        && name.len() <= LONGEST_AGENT
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
}

/// The text of a small regular file inside a workspace.
#[cfg(feature = "cli")]
pub(super) fn text_inside(workspace: &WorkspaceFiles, relative: &str) -> Result<String, String> {
    let bytes = bytes_inside(workspace, inside(workspace.root(), workspace.root(), relative).as_deref());
    text_of(bytes.map_err(|unread| unread_message(&unread, relative))?, relative)
}

fn text_of(bytes: Vec<u8>, relative: &str) -> Result<String, String> {
    String::from_utf8(bytes).map_err(|_| format!("`{relative}` is not UTF-8"))
}

/// The bytes of a small regular file; `None` is a path that leads outside.
fn bytes_inside(workspace: &WorkspaceFiles, path: Option<&Path>) -> Result<Vec<u8>, UnreadFile> {
    let path = path.ok_or(UnreadFile::Outside)?;
    workspace.bytes(relative_to(workspace.root(), path), LARGEST_TEXT)
}

fn unread_message(unread: &UnreadFile, relative: &str) -> String {
    match unread {
        UnreadFile::Missing => format!("`{relative}` does not exist"),
        UnreadFile::Outside => format!("`{relative}` leads outside the workspace"),
        UnreadFile::Other(why) => format!("`{relative}` {why}"),
    }
}

/// A path of the workspace, relative to its root.
fn relative_to<'p>(root: &Path, path: &'p Path) -> &'p Path {
    let relative = path.strip_prefix(root).ok().filter(|relative| !relative.as_os_str().is_empty());
    relative.unwrap_or(Path::new("."))
}

/// A path relative to a directory of the workspace, without `.` and `..`, if it stays in the workspace.
/// Links in it are not resolved: a program in the workspace may be a link to one outside, as in Python's environments.
fn inside(root: &Path, from: &Path, relative: &str) -> Option<PathBuf> {
    let mut path = from.to_path_buf();
    for component in Path::new(relative).components() {
        match component {
            Component::Normal(name) => path.push(name),
            Component::CurDir => {}
            Component::ParentDir => {
                path.pop();
            }
            Component::RootDir | Component::Prefix(_) => return None,
        }
        if !path.starts_with(root) {
            return None;
        }
    }
    path.starts_with(root).then_some(path)
}

/// Why a program cannot be run, or `None`.
fn problem(path: &Path) -> Option<&'static str> {
    match path.metadata() {
        Err(_) => Some("does not exist"),
        Ok(metadata) if !metadata.is_file() => Some("is not a file"),
        Ok(metadata) if metadata.permissions().mode() & 0o111 == 0 => Some("is not executable"),
        Ok(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::{config::SecretSources, model::WorkspaceId};

    #[test]
    fn paths_stay_in_the_workspace() {
        let root = Path::new("/w");
        let cases = [
            ("a/b", Some("/w/a/b")),
            ("./a", Some("/w/a")),
            ("a/../b", Some("/w/b")),
            ("..", None),
            ("a/../../w/b", None),
            ("/w/a", None),
            ("", Some("/w")),
        ];
        for (relative, expected) in cases {
            assert_eq!(inside(root, root, relative).as_deref(), expected.map(Path::new), "{relative}");
        }
        assert_eq!(inside(root, Path::new("/w/a"), "../b").as_deref(), Some(Path::new("/w/b")));
    }

    #[test]
    fn programs_are_found_where_a_child_would_find_them() {
        let directory = tempfile::tempdir().unwrap();
        let root = &directory.path().canonicalize().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        let link = elsewhere.path().join("linked");
        std::fs::create_dir(root.join("bin")).unwrap();
        std::os::unix::fs::symlink(root.join("bin"), &link).unwrap();
        let path = format!(".::{0}/bin:{0}:{1}:/bin:/usr/bin", root.display(), link.display());
        let environment = |name: &str| (name == "PATH").then(|| path.clone());
        let sources = SecretSources::default();
        let workspace = WorkspaceId::of_directory(root);
        let secrets = SecretStore::new(&sources, &environment, None);
        let models = ModelCatalog {
            known: &BTreeMap::new(),
            of_host: &|_| false,
            workspace: &workspace,
            declared: None,
        };
        let workspace_files = WorkspaceFiles::open(root).unwrap();
        let disk = ReferenceResolver::new(&workspace_files, &environment, &secrets, &models)
            .in_project(&Settings::default(), &[]);
        assert_eq!(disk.path.directories(), [Path::new("/bin"), Path::new("/usr/bin")]);
        assert_eq!(disk.program("sh", root), ResolvedPath::Found("/bin/sh".into()));
        assert_eq!(disk.program("/bin/sh", root), ResolvedPath::Found("/bin/sh".into()));
        let missing = |path: &str, why: &str| ResolvedPath::Missing(path.into(), why.into());
        assert_eq!(disk.program("no-such", root), missing("/bin/no-such", "`no-such` was not found in PATH"));
        assert_eq!(
            disk.program("./x", root),
            missing(root.join("x").to_str().unwrap(), "`./x` does not exist")
        );
        assert_eq!(
            disk.program("/etc/passwd", root),
            missing("/etc/passwd", "`/etc/passwd` is not executable")
        );
        assert!(matches!(disk.program("../x", root), ResolvedPath::Refused(_)));
    }
}
