//! The files of a workspace in which hooks of one dialect stand, as they are written. Refuses what loading refuses.

use std::path::Path;

use super::{agent_settings::SettingsDirectories, discover, files, resolver::text_inside};
use crate::{
    config::Settings,
    dialect::{HookConfigFile, SettingsLocation, natives},
    model::{Dialect, DialectName},
};

/// The hooks of one dialect that belong to the workspace itself, not to its user or machine.
pub(crate) fn raw_hook_files(root: &Path, dialect: DialectName, settings: &Settings) -> Vec<HookConfigFile> {
    let paths = match natives().find(|native| native.name() == dialect) {
        None => discover::hook_files(root).0,
        Some(native) => {
            let files = SettingsDirectories::new(root, settings, &|_| None).files(native);
            let own =
                files.into_iter().filter(|(_, file)| matches!(file.location, SettingsLocation::Workspace(_)));
            own.map(|(path, _)| path).collect()
        }
    };
    let read = |path| files::read(path).ok();
    let below = |path: &Path| path.strip_prefix(root).unwrap_or(path).to_owned();
    paths
        .into_iter()
        .filter_map(read)
        .map(|f| HookConfigFile { path: below(&f.path), bytes: f.bytes })
        .collect()
}

/// The text of a file inside the workspace, if there is one that may be read.
pub(crate) fn workspace_text(root: &Path, relative: &str) -> Option<String> {
    text_inside(root, relative).ok()
}
