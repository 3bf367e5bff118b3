//! A hook file of a pack in a workspace: what is at its place, and what is done about it.

use std::path::Path;

use super::{
    super::{connect::AgentSettingsFile, exit::CliError, paths::display_path},
    installed::{self, CopyState},
    packs::{GuardPack, PackFile},
};

/// Where hook files are in a workspace.
const DIRECTORY: &str = ".openharness/hooks";

/// What is done about copies that are not as this program has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EditedCopies {
    Left,
    Replaced,
}

/// What happened to a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CopyChange {
    Written,
    Replaced,
    /// It was there as it is to be.
    Unchanged,
    /// Something else is there, and stays.
    Left,
}

/// A hook file of a pack in a workspace.
#[derive(Debug)]
pub(super) struct PackCopy {
    pub(super) pack: &'static str,
    pub(super) file: &'static PackFile,
    pub(super) place: AgentSettingsFile,
    /// What was there.
    pub(super) state: CopyState,
    pub(super) change: CopyChange,
    /// What is there now, if it is the program's own and nobody has to look at it.
    pub(super) own_text: Option<String>,
}

impl PackCopy {
    /// Reads what is at its place.
    ///
    /// Returns an error if that is no file that could be replaced, or a link leads out of the workspace.
    pub(super) fn read(
        pack: &'static GuardPack,
        file: &'static PackFile,
        root: &Path,
    ) -> Result<Self, CliError> {
        let path = root.join(DIRECTORY).join(format!("{}.yaml", file.hook));
        if path.is_symlink() {
            let what = format!("{} is a link, which is not loaded", display_path(&path));
            return Err(CliError::with_help(what, "remove it"));
        }
        let place = AgentSettingsFile::read(&path, root)?;
        let state = CopyState::of(text(&place).as_deref(), file);
        Ok(Self { pack: pack.name, file, place, state, change: CopyChange::Left, own_text: None })
    }

    /// Writes it where there is none, or where it is to be replaced.
    pub(super) fn write(&mut self, edited: EditedCopies, trusted: &[String]) -> Result<(), CliError> {
        let present = text(&self.place);
        self.change = match (self.state, edited) {
            (CopyState::Current, _) => CopyChange::Unchanged,
            (CopyState::Absent, _) => CopyChange::Written,
            (CopyState::OtherVersion | CopyState::Edited, EditedCopies::Replaced) => CopyChange::Replaced,
            (CopyState::OtherVersion | CopyState::Edited, EditedCopies::Left) => CopyChange::Left,
        };
        let new = match self.change {
            CopyChange::Unchanged => present,
            CopyChange::Left => None,
            CopyChange::Written | CopyChange::Replaced => {
                let new = installed::copy(self.pack, self.file, present.as_deref());
                self.place.replace(new.as_bytes())?;
                Some(new)
            }
        };
        // Exceptions that nobody here has agreed to may come with a repository.
        let was_trusted = trusted.iter().any(|name| name == self.file.hook);
        self.own_text = new.filter(|text| {
            !installed::has_own_values(text, self.file) || self.change == CopyChange::Replaced && was_trusted
        });
        Ok(())
    }

    pub(super) fn is_as_wanted(&self) -> bool {
        self.change != CopyChange::Left
    }
}

fn text(place: &AgentSettingsFile) -> Option<String> {
    place.bytes.as_deref().map(|bytes| String::from_utf8_lossy(bytes).into_owned())
}
