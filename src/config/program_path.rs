//! The directories of the `PATH` in which programs of hooks are looked up.

use std::{
    cell::OnceCell,
    env::{join_paths, split_paths},
    path::PathBuf,
};

use crate::root_dir::is_safe_in_path;

/// Where programs are looked up if the environment has no `PATH`.
const USUAL_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// The directories of the `PATH` in which programs of hooks are looked up. They are looked at once somebody asks.
pub(super) struct ProgramPath<'a> {
    environment: &'a dyn Fn(&str) -> Option<String>,
    /// The roots of a project, from which no programs are taken; none if all of the `PATH` is searched.
    project: Option<Vec<PathBuf>>,
    directories: OnceCell<Vec<PathBuf>>,
}

impl<'a> ProgramPath<'a> {
    /// All of it.
    pub(super) fn new(environment: &'a dyn Fn(&str) -> Option<String>) -> Self {
        Self { environment, project: None, directories: OnceCell::new() }
    }

    /// The same without what a project with these roots could put programs into.
    pub(super) fn outside(self, roots: Vec<PathBuf>) -> Self {
        Self { project: Some(roots), directories: OnceCell::new(), ..self }
    }

    pub(super) fn directories(&self) -> &[PathBuf] {
        self.directories.get_or_init(|| {
            let path = (self.environment)("PATH");
            let all = split_paths(path.as_deref().unwrap_or(USUAL_PATH));
            match &self.project {
                None => all.collect(),
                Some(roots) => all.filter(|directory| is_safe_in_path(directory, roots)).collect(),
            }
        })
    }

    /// As a variable has it.
    pub(super) fn text(&self) -> Option<String> {
        join_paths(self.directories()).ok()?.into_string().ok()
    }
}
