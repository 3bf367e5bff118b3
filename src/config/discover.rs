//! Discovery of hook files and of the workspace that a directory belongs to.

use std::{
    collections::BTreeSet,
    ffi::{OsStr, OsString},
    io::ErrorKind,
    os::{fd::OwnedFd, unix::ffi::OsStrExt},
    path::{Path, PathBuf},
};

use super::workspace_files::{self, WorkspaceFiles};
use crate::{
    dialect::{NativeDialect, SettingsLocation, natives},
    model::{Diagnostic, Severity},
};

/// The pattern of hook files, below a workspace.
pub const HOOK_FILES: &str = ".openharness/hooks/*.yaml";

/// The directory of a workspace with its hooks, its agents and its own settings.
pub(super) const WORKSPACE_DIRECTORY: &str = ".openharness";

/// The settings file of a workspace.
pub(super) fn own_settings_file(root: &Path) -> PathBuf {
    root.join(WORKSPACE_DIRECTORY).join("settings.yaml")
}

/// How many hook files a workspace may have.
const MOST_FILES: usize = 512;

/// The directories beside hook files that have what hooks use.
const FOLDERS: [&str; 3] = ["scripts", "prompts", "resources"];

/// The largest file in another directory that is looked at, in bytes.
const LARGEST_LOOKED_AT: u64 = 64 << 10;

/// How many other names beside them are looked at.
const MOST_OTHERS: usize = 64;

/// The nearest directory with hook files of any dialect: the given one, or one of those above it; without symbolic
/// links. What a home directory has for its user does not make it a workspace.
pub fn nearest_workspace(start: &Path, home: Option<&Path>) -> Option<PathBuf> {
    nearest_of(start, home, &BTreeSet::new())
}

/// The same, where directories without hook files may be workspaces as well: those with hooks that a person has agreed to.
pub(crate) fn nearest_of(start: &Path, home: Option<&Path>, trusted: &BTreeSet<PathBuf>) -> Option<PathBuf> {
    let start = start.canonicalize().ok()?;
    let home = home.and_then(|home| home.canonicalize().ok());
    let is_one = |directory: &&Path| is_workspace(directory, home.as_deref()) || trusted.contains(*directory);
    start.ancestors().find(is_one).map(Path::to_path_buf)
}

/// Whether a directory has hook files of any dialect, or may have some: behind a link that leads nowhere, for instance.
pub(super) fn is_workspace(directory: &Path, home: Option<&Path>) -> bool {
    let absent = [ErrorKind::NotFound, ErrorKind::NotADirectory];
    let own = directory.join(WORKSPACE_DIRECTORY).symlink_metadata();
    own.map_or_else(|error| !absent.contains(&error.kind()), |_| true)
        || (home != Some(directory) && has_settings(directory))
}

/// Whether a directory has a settings file of some agent at the workspace level, or may have one.
fn has_settings(directory: &Path) -> bool {
    let files = natives().flat_map(NativeDialect::files);
    files.into_iter().any(|file| match (file.location, file.location.directory()) {
        (SettingsLocation::Workspace(_), Some(path)) => may_have_files(directory, path),
        (SettingsLocation::Workspace(path), None) => may_be_there(directory, path),
        (SettingsLocation::Home(_) | SettingsLocation::System(_), _) => false,
    })
}

/// Whether a directory below another one has settings files, or what is there keeps them from being read.
fn may_have_files(directory: &Path, path: &str) -> bool {
    match directory.join(path).read_dir() {
        Ok(entries) => entries.flatten().any(|entry| SettingsLocation::takes(&entry.file_name())),
        Err(_) => may_be_there(directory, path),
    }
}

/// Whether something is in the place of a file: the file itself, or what keeps it from being read, such as a link that
/// leads nowhere, a pipe, or a file in the place of its directory.
fn may_be_there(directory: &Path, file: &str) -> bool {
    match directory.join(file).symlink_metadata().map_err(|error| error.kind()) {
        Err(ErrorKind::NotFound) => false,
        Err(ErrorKind::NotADirectory) => directory.is_dir(),
        Ok(_) | Err(_) => true,
    }
}

/// The paths of a workspace's hook files, in byte order of their names.
pub(super) fn hook_files(workspace: &WorkspaceFiles) -> (Vec<PathBuf>, Vec<Diagnostic>) {
    let mut diagnostics = Vec::new();
    let relative = Path::new(WORKSPACE_DIRECTORY).join("hooks");
    let directory = workspace.root().join(&relative);
    let names = match workspace.directory(&relative) {
        Ok(Some(opened)) => hook_file_names(opened),
        Ok(None) => return (Vec::new(), diagnostics),
        Err(why) => Err(why),
    };
    let HookFileNames { names, total, others } = names.unwrap_or_else(|why| {
        diagnostics.push(Diagnostic::of_file(
            Severity::Error,
            "unreadable",
            &directory,
            format!("the directory {why}"),
        ));
        HookFileNames::default()
    });
    diagnostics.extend(ignored_files(workspace, &relative, others));
    if total > MOST_FILES {
        let message = format!("{total} hook files; only the first {MOST_FILES} by name are loaded");
        let diagnostic = Diagnostic::of_file(Severity::Error, "too-many-files", &directory, message);
        diagnostics.push(diagnostic.help("remove files, or join hooks that do the same"));
    }
    (names.into_iter().map(|name| directory.join(name)).collect(), diagnostics)
}

/// Those of these files that are hook files of a workspace by their paths.
pub(super) fn hook_files_of<'p>(root: &Path, files: impl Iterator<Item = &'p PathBuf>) -> BTreeSet<PathBuf> {
    let directory = root.join(WORKSPACE_DIRECTORY).join("hooks");
    files.filter(|file| file.parent() == Some(&*directory)).cloned().collect()
}

/// The names in the directory of hook files.
#[derive(Default)]
struct HookFileNames {
    /// Those of the hook files that are loaded.
    names: BTreeSet<OsString>,
    /// The number of all hook files.
    total: usize,
    /// Other names, the first of them.
    others: BTreeSet<OsString>,
}

fn hook_file_names(directory: OwnedFd) -> Result<HookFileNames, String> {
    let mut found = HookFileNames::default();
    workspace_files::each_name(directory, |name| {
        let (names, most) = if is_hook_file(&name) {
            found.total += 1;
            (&mut found.names, MOST_FILES)
        } else {
            (&mut found.others, MOST_OTHERS)
        };
        names.insert(name);
        if names.len() > most {
            names.pop_last();
        }
    })?;
    Ok(found)
}

/// A warning about the hook files that are not loaded: their endings are in another case, or they are in a directory of
/// their own.
fn ignored_files(
    workspace: &WorkspaceFiles,
    directory: &Path,
    others: BTreeSet<OsString>,
) -> Option<Diagnostic> {
    let mut ignored = Vec::new();
    for name in others {
        let path = directory.join(&name);
        match workspace.directory(&path) {
            Ok(Some(opened)) if !FOLDERS.iter().any(|folder| name == *folder) => {
                ignored.extend(hook_files_below(workspace, &path, opened));
            }
            Ok(None) | Err(_) if has_hook_file_ending(&name) => ignored.push(path),
            Ok(_) | Err(_) => {}
        }
    }
    let (first, rest) = ignored.split_first()?;
    let more = if rest.is_empty() { String::new() } else { format!(" and {} more", rest.len()) };
    let message = format!("not loaded: `{}`{more}", first.display());
    let help = format!("hook files are `{HOOK_FILES}` or `*.yml`: move it there, or give it another ending");
    let path = workspace.root().join(first);
    Some(Diagnostic::of_file(Severity::Warning, "ignored-file", &path, message).help(help))
}

/// The files in a directory that would be hook files outside of it, by their names and their keys.
fn hook_files_below(workspace: &WorkspaceFiles, directory: &Path, opened: OwnedFd) -> Vec<PathBuf> {
    let mut names = BTreeSet::new();
    let listed = workspace_files::each_name(opened, |name| {
        if has_hook_file_ending(&name) && names.len() < MOST_OTHERS {
            names.insert(name);
        }
    });
    let files = names.into_iter().filter(|_| listed.is_ok()).map(|name| directory.join(name));
    files.filter(|file| has_keys_of_hooks(workspace, file)).collect()
}

fn has_keys_of_hooks(workspace: &WorkspaceFiles, file: &Path) -> bool {
    workspace.bytes(file, LARGEST_LOOKED_AT).is_ok_and(|bytes| is_meant_as_hook(&bytes))
}

/// Whether YAML or JSON is meant as a hook file: one of the two keys that each must have is in it. Where it cannot be read,
/// their words decide.
pub(crate) fn is_meant_as_hook(text: &[u8]) -> bool {
    let keys = ["events", "handler"];
    let text = text.strip_prefix("\u{feff}".as_bytes()).unwrap_or(text);
    match serde_yaml::from_slice::<serde_yaml::Value>(text) {
        Ok(read) => keys.iter().any(|key| read.get(key).is_some()),
        Err(_) => keys.iter().any(|key| memchr::memmem::find(text, key.as_bytes()).is_some()),
    }
}

/// Whether a file is a hook file by its name. Hidden files are, as for the agent itself; only the locks of Emacs and the
/// copies of attributes that macOS makes are not.
pub(super) fn is_hook_file(name: &OsStr) -> bool {
    let bytes = name.as_bytes();
    !is_by_product(bytes) && (bytes.ends_with(b".yaml") || bytes.ends_with(b".yml"))
}

/// Whether a name ends like that of a hook file, in whatever case.
fn has_hook_file_ending(name: &OsStr) -> bool {
    let lower = name.as_bytes().to_ascii_lowercase();
    !is_by_product(&lower) && (lower.ends_with(b".yaml") || lower.ends_with(b".yml"))
}

fn is_by_product(name: &[u8]) -> bool {
    [b".#", b"._"].iter().any(|start| name.starts_with(*start))
}
