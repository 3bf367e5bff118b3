//! A workspace for the hooks of a scenario, with a home without hooks beside it; gone with its load.

use std::{
    fs::{self, DirBuilder},
    io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

use super::{super::exit::CliError, scenario::InlineHook};
use crate::model::{Diagnostic, io_reason};

/// How the files of the hooks are called, before their number.
const FILE: &str = "scenario-hook-";

/// The directory, which is removed at the end.
#[derive(Debug)]
pub(super) struct ScratchWorkspace(PathBuf);

impl ScratchWorkspace {
    /// Writes hooks into a new directory that only this user can enter. `label` is in its name.
    pub(super) fn write(hooks: &[InlineHook], label: &str) -> Result<Self, CliError> {
        let scratch = Self(std::env::temp_dir().join(format!("hookyard-{label}")));
        let written = scratch.fill(hooks);
        written.map(|()| scratch).map_err(|error| {
            let why = io_reason(&error);
            CliError::with_help(
                format!("the hooks of the scenario cannot be written: {why}"),
                "`TMPDIR` names the directory for temporary files",
            )
        })
    }

    fn fill(&self, hooks: &[InlineHook]) -> io::Result<()> {
        // It must not be there: somebody else could have made it.
        DirBuilder::new().mode(0o700).create(&self.0)?;
        let directory = self.workspace().join(".openharness/hooks");
        fs::create_dir_all(&directory)?;
        fs::create_dir(self.home())?;
        for (number, hook) in hooks.iter().enumerate() {
            fs::write(directory.join(format!("{FILE}{}.yaml", number + 1)), &hook.text)?;
        }
        Ok(())
    }

    pub(super) fn workspace(&self) -> PathBuf {
        self.0.join("workspace")
    }

    pub(super) fn home(&self) -> PathBuf {
        self.0.join("home")
    }

    /// What is wrong with the hooks, in the scenario that has them.
    pub(super) fn in_scenario(diagnostics: &[Diagnostic], scenario: &Path) -> Vec<Diagnostic> {
        let is_own = |diagnostic: &&Diagnostic| {
            let name = diagnostic.file.file_name().and_then(|name| name.to_str());
            name.is_some_and(|name| name.starts_with(FILE))
        };
        let placed = |diagnostic: &Diagnostic| Diagnostic { file: scenario.to_owned(), ..diagnostic.clone() };
        diagnostics.iter().filter(is_own).map(placed).collect()
    }
}

impl Drop for ScratchWorkspace {
    fn drop(&mut self) {
        // It is in a directory for temporary files; what stays there harms nobody.
        drop(fs::remove_dir_all(&self.0));
    }
}
