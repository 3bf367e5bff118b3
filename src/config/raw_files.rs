//! The unparsed hook files of a workspace, for conversion to another dialect.

use std::path::Path;

use super::{agent_settings::SettingsDirectories, discover, files, resolver::text_inside};
use crate::{
    config::Settings,
    dialect::{HookConfigFile, SettingsLocation, natives},
    model::{Dialect, DialectName},
};

/// The files with the hooks of one dialect that belong to the workspace itself, not to its user or machine.
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
    let mut raw = Vec::new();
    for file in paths.into_iter().filter_map(|path| files::read(path).ok()) {
        let path = file.path.strip_prefix(root).unwrap_or(&file.path).to_owned();
        raw.push(HookConfigFile { path, bytes: file.bytes });
    }
    raw
}

/// The text of a file inside the workspace, if there is one that may be read.
pub(crate) fn workspace_text(root: &Path, relative: &str) -> Option<String> {
    text_inside(root, relative).ok()
}
