//! The `PATH` that the daemon gets: that of the shell, without what is of a project.

use std::{
    env,
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
};

use super::super::{escape, screen::Screen, workspace::nearest_above};
use crate::config::{self, Settings};

/// Where programs of npm packages are installed for one project. `npx` and `npm run` put these of the current directory
/// and of all above it in front of the `PATH`.
const OF_PACKAGES: &str = "node_modules/.bin";

/// The directories of a `PATH`.
pub(super) struct DaemonSearchPath {
    kept: Vec<PathBuf>,
    /// Those of the project.
    left_out: Vec<PathBuf>,
}

impl DaemonSearchPath {
    /// Keeps the directories with programs of the user, for one who is in the current directory.
    ///
    /// Hooks of the user run for all projects below the home directory. With a directory of one of them in front, its
    /// programs would take the place of those that the guards of all of them call.
    pub(super) fn of(search_path: &OsStr, settings: &Settings) -> Self {
        let project = env::current_dir().and_then(|current| current.canonicalize()).ok();
        let project = project.and_then(|current| project_of(&current, settings));
        let (left_out, kept) =
            env::split_paths(search_path).partition(|directory| is_of_project(directory, project.as_deref()));
        Self { kept, left_out }
    }

    /// As the value of the variable.
    pub(super) fn value(&self) -> OsString {
        env::join_paths(&self.kept).unwrap_or_default()
    }

    /// Says which directories are left out.
    pub(super) fn note(&self, screen: &Screen) {
        if !self.left_out.is_empty() {
            let left_out: Vec<_> = self.left_out.iter().map(|path| escape::path(path)).collect();
            let left_out = left_out.join(", ");
            screen.note(&format!("note: hooks find no programs in {left_out}: these are of a project"));
        }
    }
}

/// The repository or the workspace of a directory, whichever is the outer one; none that the home directory is in.
fn project_of(current: &Path, settings: &Settings) -> Option<PathBuf> {
    let home = config::home_directory(settings, &|name| env::var(name).ok());
    let home = home.and_then(|home| home.canonicalize().ok());
    let is_of_user = |directory: &Path| home.as_deref().is_some_and(|home| home.starts_with(directory));
    let repository = current.ancestors().find(|above| above.join(".git").exists()).map(Path::to_owned);
    let found = repository.into_iter().chain(nearest_above(current, settings));
    found.filter(|directory| !is_of_user(directory)).min_by_key(|directory| directory.components().count())
}

fn is_of_project(directory: &Path, project: Option<&Path>) -> bool {
    let is_inside = |path: &Path| project.is_some_and(|project| path.starts_with(project));
    directory.ends_with(OF_PACKAGES)
        || is_inside(directory)
        || directory.canonicalize().is_ok_and(|real| is_inside(&real))
}
