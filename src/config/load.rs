//! Loading a workspace: its kind, its hooks and everything that is wrong with its files. A broken file costs
//! its own hook and nothing else.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
};

use super::{
    Settings,
    discover::{self, Found, HOME},
    disk::Disk,
    models::Models,
    secrets::Secrets,
};
use crate::{
    dialect::{self, Document, read_hook},
    model::{Diagnostic, Hook, HookName, Place, Severity, WorkspaceId},
};

/// How large all hook files may be together, in bytes. Each mistake in a file costs another reading of it,
/// so without a bound hundreds of the largest files would take minutes to load.
const LARGEST_TOTAL: usize = 16 << 20;

/// What a workspace is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WorkspaceKind {
    /// Work on files; its hooks run.
    #[default]
    Project,
    /// Conversation; it never runs hooks.
    Chat,
}

/// A workspace as it was found.
#[derive(Debug)]
pub struct Loaded {
    /// Its id and root.
    pub place: Place,
    /// What it is for.
    pub kind: WorkspaceKind,
    /// The hooks of files without errors, in byte order of the file names.
    pub hooks: Vec<Hook>,
    /// Every file that was looked at, also those with errors.
    pub files: Vec<PathBuf>,
    /// What is wrong, by file and line.
    pub diagnostics: Vec<Diagnostic>,
}

/// Loads the workspace in a directory. `environment` looks up variables of hookyard's own environment.
///
/// ```
/// use hookyard::config::{Settings, load_workspace};
///
/// let directory = tempfile::tempdir().unwrap();
/// let loaded = load_workspace(directory.path(), None, &Settings::default(), &|name| std::env::var(name).ok());
/// assert!(loaded.hooks.is_empty() && loaded.diagnostics.is_empty());
/// ```
pub fn load_workspace(
    root: &Path,
    workspace_id: Option<WorkspaceId>,
    settings: &Settings,
    environment: &dyn Fn(&str) -> Option<String>,
) -> Loaded {
    load_for_host(root, workspace_id, settings, &Outside { environment, models: &|_| false })
}

/// What a workspace's files may refer to beside the settings.
pub(crate) struct Outside<'a> {
    /// Looks up variables of hookyard's own environment.
    pub(crate) environment: &'a dyn Fn(&str) -> Option<String>,
    /// Whether the embedding program answers for a model.
    pub(crate) models: &'a dyn Fn(&str) -> bool,
}

/// The same for an embedding program, which may have models of its own.
pub(crate) fn load_for_host(
    root: &Path,
    workspace_id: Option<WorkspaceId>,
    settings: &Settings,
    outside: &Outside<'_>,
) -> Loaded {
    let (root, problem) = match root.canonicalize() {
        Ok(real) if real.is_dir() => (real, None),
        Ok(real) => (real, Some("is not a directory".to_owned())),
        Err(e) => (root.to_path_buf(), Some(format!("cannot be read: {}", e.kind()))),
    };
    let workspace_id = workspace_id.unwrap_or_else(|| WorkspaceId::of_directory(&root));
    let mut loaded = Loaded {
        place: Place { workspace_id, root },
        kind: WorkspaceKind::Project,
        hooks: Vec::new(),
        files: Vec::new(),
        diagnostics: Vec::new(),
    };
    match problem {
        Some(why) => {
            let root = loaded.place.root.clone();
            loaded.error("unreadable", &root, format!("the directory {why}"));
        }
        None => loaded.read(settings, outside),
    }
    loaded.sort();
    loaded
}

impl Loaded {
    fn read(&mut self, settings: &Settings, outside: &Outside<'_>) {
        let root = self.place.root.clone();
        match discover::directory_inside(&root, &root.join(HOME)) {
            Ok(Some(_)) => {}
            Ok(None) => return,
            Err(why) => return self.error("unreadable", &root.join(HOME), format!("the directory {why}")),
        }
        self.read_kind(&root);
        let (paths, diagnostics) = discover::hook_files(&root);
        self.diagnostics.extend(diagnostics);
        if self.kind == WorkspaceKind::Chat {
            return self.ignore(&paths, &root);
        }
        let secrets = Secrets::new(&settings.secrets, outside.environment);
        let workspace = self.place.workspace_id.clone();
        let models = Models { known: &settings.models, of_host: outside.models, workspace: &workspace };
        let disk = Disk::new(&root, outside.environment, &secrets, &models);
        let rules = settings.hook_rules();
        let mut named: Vec<(Hook, Found)> = Vec::new();
        let mut total = 0;
        for path in paths {
            self.files.push(path.clone());
            match discover::read(path) {
                Ok(file) if total + file.bytes.len() > LARGEST_TOTAL => {
                    let why = format!("not loaded: hook files may have {LARGEST_TOTAL} bytes together");
                    self.error("too-large", &file.path, why);
                }
                Ok(file) => {
                    total += file.bytes.len();
                    let (hook, diagnostics) = read_hook(&file.bytes, &file.path, &rules, &disk);
                    self.diagnostics.extend(diagnostics);
                    named.extend(hook.map(|hook| (hook, file)));
                }
                Err(diagnostic) => self.diagnostics.push(*diagnostic),
            }
        }
        self.files.extend(disk.into_read());
        self.keep_unique(named);
    }

    /// Adds what was found out later, at its places.
    pub(crate) fn warn(&mut self, diagnostics: Vec<Diagnostic>) {
        self.diagnostics.extend(diagnostics);
        self.sort();
    }

    fn sort(&mut self) {
        self.diagnostics.sort_by_key(|d| (d.file.clone(), d.line, d.column));
    }

    fn error(&mut self, code: &'static str, file: &Path, message: String) {
        self.diagnostics.push(Diagnostic::of_file(Severity::Error, code, file, message));
    }

    fn ignore(&mut self, paths: &[PathBuf], root: &Path) {
        if paths.is_empty() {
            return;
        }
        let message = format!("the workspace is of kind `chat`: {} ignored", counted(paths.len()));
        let file = root.join(HOME).join("settings.yaml");
        self.diagnostics.push(Diagnostic::of_file(Severity::Info, "chat", &file, message));
    }

    /// Reads the workspace's own settings. With a mistake in them the hooks run: they may be guards.
    fn read_kind(&mut self, root: &Path) {
        let path = root.join(HOME).join("settings.yaml");
        if path.symlink_metadata().is_err() {
            return;
        }
        self.files.push(path.clone());
        match discover::read(path) {
            Ok(file) => {
                let (kind, diagnostics) = kind_in(&file);
                self.kind = kind.unwrap_or_default();
                self.diagnostics.extend(diagnostics);
            }
            Err(diagnostic) => self.diagnostics.push(*diagnostic),
        }
    }

    /// Keeps the hooks whose names are their own. Of two with one name, neither can be told to be the one
    /// that was meant.
    fn keep_unique(&mut self, named: Vec<(Hook, Found)>) {
        let mut places: HashMap<HookName, Vec<String>> = HashMap::new();
        for (hook, file) in &named {
            let file = file.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            places.entry(hook.name.clone()).or_default().push(file);
        }
        for (hook, file) in named {
            match places.get(&hook.name).map(Vec::as_slice) {
                None | Some([_]) => self.hooks.push(hook),
                Some(files) => self.diagnostics.push(duplicate(&hook, &file, files)),
            }
        }
    }
}

/// A warning about the `mode` of a loaded hook; none if its file has changed since and has no mode any more.
pub(crate) fn warn_of_mode(
    hook: &Hook,
    code: &'static str,
    message: String,
    help: &str,
) -> Option<Diagnostic> {
    let file = discover::read(hook.source.file.as_deref()?.to_owned()).ok()?;
    dialect::warn_of_mode(&file.bytes, &file.path, (code, message, help))
}

fn counted(files: usize) -> String {
    if files == 1 { "1 hook file is".to_owned() } else { format!("{files} hook files are") }
}

fn kind_in(file: &Found) -> (Option<WorkspaceKind>, Vec<Diagnostic>) {
    let document = match Document::parse(&file.bytes, &file.path) {
        Ok(document) => document,
        Err(diagnostic) if diagnostic.code == "empty-document" => return (None, Vec::new()),
        Err(diagnostic) => return (None, vec![*diagnostic]),
    };
    let kind = document.root().and_then(|root| {
        root.allow_only(&["kind"]);
        root.get("kind")?.choice(&[("project", WorkspaceKind::Project), ("chat", WorkspaceKind::Chat)])
    });
    (kind, document.into_diagnostics())
}

fn duplicate(hook: &Hook, file: &Found, files: &[String]) -> Diagnostic {
    let name = hook.name.as_str();
    let message = format!("the name `{name}` is used by {} hooks, so none of them is loaded", files.len());
    let mut diagnostic = Diagnostic::of_file(Severity::Error, "duplicate-name", &file.path, message)
        .help(format!("rename all but one; it is in {}", files.join(", ")));
    diagnostic.line = hook.source.line;
    diagnostic.column = column_of(&file.bytes, hook.source.line, name);
    diagnostic.length = name.len();
    diagnostic
}

/// Where a name stands in its line, in characters from 1.
fn column_of(bytes: &[u8], line: usize, name: &str) -> usize {
    let text = String::from_utf8_lossy(bytes);
    let found = text.lines().nth(line.saturating_sub(1)).and_then(|line| {
        let value = line.find(':').map_or(0, |colon| colon + 1);
        let at = value + line[value..].find(name)?;
        Some(line[..at].chars().count() + 1)
    });
    found.unwrap_or(1)
}
