//! Hooks in the front matter of agents, commands and skills, which are the agent's alone: notes that say where there are some,
//! and when the agent runs them.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use super::{files, workspace_files::WorkspaceFiles};
use crate::{
    dialect::{NativeDialect, PluginFormat, TextKind, has_hooks_in_front_matter},
    model::{Diagnostic, Severity},
    root_dir::LastLink,
};

/// The most texts of a directory whose front matter is looked at, and the most directories below it.
const MOST_TEXTS: usize = 256;

/// How deep directories of texts are searched.
const DEEPEST: usize = 8;

/// Notes about hooks in the front matter of texts of the user, of the workspace if its own files count, and of plugins, whose
/// directories are given.
///
/// The agent runs such hooks itself while the text is active, whether it asks hookyard or not: run here too, each would run
/// twice. No other agent runs the hooks of such a text.
pub(super) fn note_front_matter(
    native: &NativeDialect,
    home: Option<&Path>,
    own: Option<&WorkspaceFiles>,
    plugins: &BTreeSet<PathBuf>,
) -> Vec<Diagnostic> {
    let PluginFormat::Plugins(files) = native.plugins() else { return Vec::new() };
    let bases: BTreeSet<&Path> = home.into_iter().chain(own.map(WorkspaceFiles::root)).collect();
    let of_agent = bases.into_iter().map(|base| base.join(files.texts_directory));
    let places: BTreeSet<PathBuf> = of_agent.chain(plugins.iter().cloned()).collect();
    let has_hooks = |path: &Path| {
        let own = own.filter(|own| path.starts_with(own.root()));
        let text = match own {
            Some(own) => own.read(path.to_owned(), LastLink::Followed),
            None => files::read_anywhere(path.to_owned()),
        };
        text.is_ok_and(|text| has_hooks_in_front_matter(&text.bytes))
    };
    let mut notes = Vec::new();
    for place in places {
        for (directory, kind) in files.texts {
            let texts = texts_in(&place.join(directory), *kind);
            notes.extend(texts.iter().filter(|path| has_hooks(path)).map(|path| note(path, *kind)));
        }
    }
    notes
}

fn note(path: &Path, kind: TextKind) -> Diagnostic {
    let above = path.parent().and_then(Path::file_name).unwrap_or_default();
    let name = Path::new(above).join(path.file_name().unwrap_or_default());
    let name = name.display();
    let when = match kind {
        TextKind::Agent => "for the events of that agent",
        TextKind::Command | TextKind::Skill => "from its first use to the end of the session",
    };
    let message = format!(
        "the hooks in the front matter of {name} do not run here: Claude Code runs them itself, {when}"
    );
    let help = "hooks that hookyard is to run, for every event, belong in the settings of the agent";
    Diagnostic::of_file(Severity::Info, "front-matter", path, message).help(help)
}

/// The texts of a kind in a directory, in order: those that end with `.md`, however deep, or one with a name of its own in each
/// directory.
fn texts_in(directory: &Path, kind: TextKind) -> Vec<PathBuf> {
    let mut texts = Vec::new();
    let mut directories = vec![(directory.to_owned(), 0)];
    for _ in 0..MOST_TEXTS {
        let Some((directory, depth)) = directories.pop() else { break };
        let entries = directory.read_dir().into_iter().flatten().flatten().map(|entry| entry.path());
        let mut entries: Vec<PathBuf> = entries.take(MOST_TEXTS).collect();
        entries.sort();
        for path in entries {
            if texts.len() == MOST_TEXTS {
                return texts;
            }
            // A link could lead back to a directory above.
            let is_link = path.symlink_metadata().is_ok_and(|found| found.is_symlink());
            if path.is_dir() {
                directories.extend((depth < DEEPEST && !is_link).then(|| (path, depth + 1)));
            } else if kind.takes(&path) {
                texts.push(path);
            }
        }
    }
    texts.sort();
    texts
}
