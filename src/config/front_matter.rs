//! Hooks in the front matter of texts: those of agents, which run while the agent is at work, and notes about those of commands,
//! skills and plugins, which do not run here.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use super::{
    files::{DefinitionFiles, FileBytes},
    settings_levels::SettingsLevel,
};
use crate::{
    dialect::{
        HookRules, NativeDialect, PluginFormat, ReferenceLookup, TextKind, has_hooks_in_front_matter,
        read_agent_hooks,
    },
    model::{Diagnostic, Scope, Severity},
};

/// The most texts of a directory whose front matter is looked at, and the most directories below it.
const MOST_TEXTS: usize = 256;

/// How deep directories of texts are searched.
const DEEPEST: usize = 8;

/// How texts are read.
pub(super) struct TextReading<'a> {
    /// The directories with texts of the machine, of the user and of the workspace if its own files count, with their scopes.
    pub(super) places: Vec<(Scope, PathBuf)>,
    pub(super) read: &'a dyn Fn(&Path) -> Result<FileBytes, Box<Diagnostic>>,
    pub(super) rules: &'a HookRules,
    pub(super) resolver: &'a dyn ReferenceLookup,
}

/// The hooks of agents, each text as a level of its own, and notes about other texts with hooks.
#[derive(Default)]
pub(super) struct FoundTexts {
    pub(super) levels: Vec<SettingsLevel>,
    pub(super) files: Vec<PathBuf>,
    pub(super) definitions: DefinitionFiles,
    pub(super) diagnostics: Vec<Diagnostic>,
}

impl FoundTexts {
    /// Reads the texts of an agent's program, and of plugins in these directories.
    ///
    /// Whether a command or a skill is in use is not in events: its hooks begin with its use, also where that was refused or
    /// another process has it, and end when the program does. The program runs them itself.
    pub(super) fn of(
        native: &'static NativeDialect,
        reading: &TextReading<'_>,
        plugins: &BTreeSet<PathBuf>,
    ) -> Self {
        let mut found = Self::default();
        let PluginFormat::Plugins(files) = native.plugins() else { return found };
        for (directory, kind) in files.texts {
            for (scope, place) in &reading.places {
                for path in texts_in(&place.join(directory), *kind) {
                    found.text(native, reading, *scope, &path, *kind);
                }
            }
            for place in plugins {
                let texts = texts_in(&place.join(directory), *kind);
                let texts = texts.iter().filter(|path| {
                    (reading.read)(path).is_ok_and(|text| has_hooks_in_front_matter(&text.bytes))
                });
                found.diagnostics.extend(texts.map(|path| note(path, *kind, TextOwner::Plugin)));
            }
        }
        found
    }

    fn text(
        &mut self,
        native: &'static NativeDialect,
        reading: &TextReading<'_>,
        scope: Scope,
        path: &Path,
        kind: TextKind,
    ) {
        let FileBytes { path, bytes } = match (reading.read)(path) {
            Ok(text) if has_hooks_in_front_matter(&text.bytes) => text,
            // An agent that cannot be read may have guards, as it had when it could be.
            Err(diagnostic) if kind == TextKind::Agent => {
                self.files.push(path.to_owned());
                self.diagnostics.push(*diagnostic);
                return;
            }
            _ => return,
        };
        self.diagnostics.push(note(&path, kind, TextOwner::Person));
        if kind == TextKind::Agent {
            let (hooks, diagnostics) =
                read_agent_hooks(native, (&bytes, &path), scope, reading.rules, reading.resolver);
            self.diagnostics.extend(diagnostics);
            self.files.push(path.clone());
            self.definitions.insert(path.clone(), bytes.as_slice().into());
            self.levels.push(SettingsLevel { scope, file: path, found: hooks });
        }
    }
}

/// Whose a text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TextOwner {
    Person,
    Plugin,
}

fn note(path: &Path, kind: TextKind, owner: TextOwner) -> Diagnostic {
    let above = path.parent().and_then(Path::file_name).unwrap_or_default();
    let name = Path::new(above).join(path.file_name().unwrap_or_default());
    let name = name.display();
    let hooks = format!("the hooks in the front matter of {name}");
    let elsewhere = "hooks that hookyard is to run, for every event, belong in the settings of the agent";
    let (message, help) = match (kind, owner) {
        (TextKind::Agent, TextOwner::Person) => (
            format!("{hooks} run for the events of that agent alone"),
            "`hookyard explain` shows for an event whether they run; `agent_type` names its agent",
        ),
        (TextKind::Agent | TextKind::Command, TextOwner::Plugin) => {
            (format!("{hooks} run nowhere: Claude Code ignores those of a plugin"), elsewhere)
        }
        (TextKind::Command | TextKind::Skill, _) => (
            format!(
                "{hooks} do not run here: Claude Code runs them itself, from its first use to the end of the session"
            ),
            elsewhere,
        ),
    };
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
