//! Hook files of a workspace that are read apart from loading: for conversion to another dialect, and for a warning
//! about a loaded hook.

use std::path::Path;

use super::{
    agent_settings::SettingsDirectories, discover, resolver::text_inside, workspace_files::WorkspaceFiles,
};
use crate::{
    config::Settings,
    dialect::{self, HookConfigFile, SettingsLocation, natives},
    model::{Diagnostic, Dialect, DialectName, Hook},
    root_dir::LastLink,
};

/// The files with the hooks of one dialect that belong to the workspace itself, not to its user or machine.
pub(crate) fn raw_hook_files(root: &Path, dialect: DialectName, settings: &Settings) -> Vec<HookConfigFile> {
    let Ok(workspace) = WorkspaceFiles::open(root) else { return Vec::new() };
    let paths = match natives().find(|native| native.name() == dialect) {
        None => discover::hook_files(&workspace).0,
        Some(native) => {
            let files = SettingsDirectories::new(&workspace, settings, &|_| None).files(native).0;
            let own =
                files.into_iter().filter(|(_, file)| matches!(file.location, SettingsLocation::Workspace(_)));
            own.map(|(path, _)| path).collect()
        }
    };
    let mut raw = Vec::new();
    for file in paths.into_iter().filter_map(|path| workspace.read(path, LastLink::Refused).ok()) {
        let path = file.path.strip_prefix(root).unwrap_or(&file.path).to_owned();
        raw.push(HookConfigFile { path, bytes: file.bytes });
    }
    raw
}

/// The text of a file by its path, which begins with that of the workspace, for a diagnostic that shows a line of it.
pub(crate) fn workspace_source(root: &Path, file: &Path) -> Option<String> {
    let file = WorkspaceFiles::open(root).ok()?.read(file.to_owned(), LastLink::Followed).ok()?;
    Some(String::from_utf8_lossy(&file.bytes).into_owned())
}

/// The text of a file inside the workspace, if there is one that may be read.
pub(crate) fn workspace_text(root: &Path, relative: &str) -> Option<String> {
    text_inside(&WorkspaceFiles::open(root).ok()?, relative).ok()
}

/// A warning about the `mode` of a loaded hook, unless its file no longer has that key.
pub(crate) fn warn_of_mode(
    root: &Path,
    hook: &Hook,
    code: &'static str,
    message: String,
    help: &str,
) -> Option<Diagnostic> {
    let workspace = WorkspaceFiles::open(root).ok()?;
    let file = workspace.read(hook.source.file.as_deref()?.to_owned(), LastLink::Refused).ok()?;
    dialect::warn_of_mode(&file.bytes, &file.path, (code, message, help))
}
