//! Links that a case wants to be there: in a directory of their own in the workspace, which goes with the case.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::symlink,
    path::{Component, Path, PathBuf},
    sync::Arc,
};

use crate::model::io_reason;

/// The most links of one case.
const MOST_LINKS: usize = 64;

/// A directory with the links of a case. Events without a directory of their own happen in it.
pub(super) struct CaseDirectory {
    path: PathBuf,
}

impl CaseDirectory {
    /// Makes the links below the workspace: each name, which is relative, leads to its target.
    ///
    /// Returns why that is not possible.
    pub(super) fn new(root: &Path, number: usize, links: &BTreeMap<String, String>) -> Result<Self, String> {
        if links.len() > MOST_LINKS {
            return Err(format!("`links`: more than {MOST_LINKS}"));
        }
        let path = root.join(format!(".hookyard-case-{}-{number}", std::process::id()));
        let failed = |what: &str, error: &std::io::Error| {
            format!("`links`: `{what}` cannot be made in the workspace: {}", io_reason(error))
        };
        fs::create_dir(&path).map_err(|error| failed(&path.display().to_string(), &error))?;
        let directory = Self { path };
        for (name, target) in links {
            let name_path = Path::new(name);
            let is_below = name_path.components().all(|part| matches!(part, Component::Normal(_)));
            // What is below a link of the case would be made where that leads.
            let is_behind = links.keys().any(|other| other != name && name_path.starts_with(other));
            if name.is_empty() || !is_below || is_behind {
                return Err(format!(
                    "`links`: `{name}` must be a relative path that is not below another link"
                ));
            }
            let link = directory.path.join(name_path);
            let parent = link.parent().unwrap_or(&directory.path);
            fs::create_dir_all(parent)
                .and_then(|()| symlink(target, &link))
                .map_err(|error| failed(name, &error))?;
        }
        Ok(directory)
    }

    /// The directory, as an event names it.
    pub(super) fn cwd(&self) -> Arc<str> {
        self.path.to_string_lossy().into()
    }
}

impl Drop for CaseDirectory {
    fn drop(&mut self) {
        // It has links and directories of this case alone. What stays is seen in the workspace.
        drop(fs::remove_dir_all(&self.path));
    }
}
