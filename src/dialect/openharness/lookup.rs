//! What hook files refer to outside themselves: variables, secrets, directories, programs, files, agents and models.

use std::path::{Path, PathBuf};

use crate::model::{Model, Secret, SecretText};

/// A place a hook file names, as it is on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResolvedPath {
    /// It is there: an absolute path.
    Found(PathBuf),
    /// It is not there now, or cannot be used: where it would be, and what the matter is. A hook that names
    /// it is loaded all the same, because a guard that fails closed must not vanish with its program.
    Missing(PathBuf, String),
    /// It may not be used: why.
    Refused(String),
}

/// What a hook file refers to outside itself. Whoever loads hook files looks these things up.
pub trait ReferenceLookup {
    /// The value of a variable of hookyard's own environment.
    fn variable(&self, name: &str) -> Option<SecretText>;

    /// A secret by its name.
    ///
    /// Returns what is wrong and what to do if there is none, or it cannot be had.
    fn secret(&self, name: &str) -> Result<Secret, (String, String)>;

    /// A directory inside the workspace, by its path from the workspace's root.
    fn directory(&self, relative: &str) -> ResolvedPath;

    /// A program: a name is looked up in the `PATH`, a relative path begins at `cwd`.
    fn program(&self, name: &str, cwd: &Path) -> ResolvedPath;

    /// The text of a file inside the workspace, by its path from the workspace's root.
    ///
    /// Returns what is wrong if there is no such file, or it may not be read.
    fn text_file(&self, relative: &str) -> Result<String, String>;

    /// The file of an agent by the agent's name, and what is in it.
    ///
    /// Returns what is wrong and what to do if there is none, or it may not be read.
    fn agent_file(&self, name: &str) -> Result<(PathBuf, Vec<u8>), (String, String)>;

    /// A model by the name that hook files have for it.
    ///
    /// Returns what is wrong and what to do if there is none, or this workspace may not ask it.
    fn model(&self, reference: &str) -> Result<Model, (String, String)>;
}
