//! The last good rules: what the files with hooks were when nothing was wrong with them last. A load that finds one broken
//! reads it as it was then.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    Settings, WorkspaceSettings,
    agent_settings::{self, dialect_of_file, missing_directories},
    broken_hooks::{RecordedHook, add_block, add_under_free_name, placeholder, unknown_rules},
    content::RulesVersion,
    digests::sha256,
    discover,
    last_good_store::{GoodFile, GoodFiles, LastGoodStore, NO_GOOD_FILES},
    loaded_workspace::LoadedWorkspace,
    workspace_options::{BrokenFilePolicy, WorkspaceKind},
};
use crate::model::{Diagnostic, Hook, Scope, Severity};

/// How often files are left out that have mistakes even as they were, before none is used.
const MAX_ATTEMPTS: usize = 3;

/// The paths of broken files and directories.
struct BrokenPaths {
    paths: BTreeSet<PathBuf>,
    /// Whether the directory of the workspace is among them: then nothing is read, wherever it is.
    everything: bool,
}

impl BrokenPaths {
    fn of(loaded: &LoadedWorkspace) -> Self {
        let broken = loaded.diagnostics.iter().filter(|diagnostic| diagnostic.is_of_broken_file());
        let paths: BTreeSet<PathBuf> = broken.map(|diagnostic| diagnostic.file.clone()).collect();
        Self { everything: paths.contains(&loaded.workspace.root), paths }
    }

    /// Whether a file or a directory above it is broken.
    fn have(&self, file: &Path) -> bool {
        self.everything || file.ancestors().any(|path| self.paths.contains(path))
    }
}

/// Notes the content of each file that has no mistakes.
pub(super) fn note_versions(loaded: &mut LoadedWorkspace) {
    let broken = BrokenPaths::of(loaded);
    let sound = loaded.definitions.iter().filter(|(file, _)| !broken.paths.contains(*file));
    let versions = sound.map(|(file, bytes)| (file.clone(), RulesVersion::now(sha256(bytes))));
    loaded.versions = versions.collect();
}

/// What the operator says about a workspace, as far as it concerns broken files.
pub(super) struct BrokenFileRules<'a> {
    given: &'a WorkspaceSettings,
    settings: &'a Settings,
    environment: &'a dyn Fn(&str) -> Option<String>,
    /// The settings files of the user and the machine, which apply in every workspace.
    shared: BTreeSet<PathBuf>,
}

impl<'a> BrokenFileRules<'a> {
    pub(super) fn new(
        given: &'a WorkspaceSettings,
        settings: &'a Settings,
        environment: &'a dyn Fn(&str) -> Option<String>,
    ) -> Self {
        let is_read = |file: &PathBuf| {
            given.dialects.as_ref().is_none_or(|dialects| dialects.has(dialect_of_file(file)))
        };
        let shared = agent_settings::shared_files(settings, environment).into_iter().filter(is_read);
        Self { given, settings, environment, shared: shared.collect() }
    }

    /// Whether the hooks of a file would run if it were not broken.
    fn concern(&self, file: &Path) -> bool {
        self.given.dialects.as_ref().is_none_or(|dialects| dialects.has(dialect_of_file(file)))
    }

    /// Blocks what can be stopped for each broken file of which nothing is known, since it may have guards: for those of the
    /// user and the machine always, as no workspace decides whether they count, and with `broken: deny` for those of the
    /// workspace, in which alone they count.
    pub(super) fn block_unknown(&self, loaded: &mut LoadedWorkspace, known: &GoodFiles) {
        if self.given.kind == Some(WorkspaceKind::Chat) {
            return;
        }
        let own_settings = discover::own_settings_file(&loaded.workspace.root);
        let is_known = |path: &Path| known.keys().any(|file| file.starts_with(path));
        for path in BrokenPaths::of(loaded).paths {
            let is_shared = self.shared.contains(&path);
            let is_denied = self.settings.broken == BrokenFilePolicy::Deny
                && path.starts_with(&loaded.workspace.root)
                // It has no hooks.
                && path != own_settings
                && self.concern(&path);
            if (is_shared || is_denied) && !is_known(&path) {
                loaded.diagnostics.push(unknown_rules(&path));
                let scope = if is_shared { Scope::User } else { Scope::Project };
                add_block(&mut loaded.hooks, &path, scope);
            }
        }
    }
}

/// Loads a workspace, with broken files as they were when nothing was wrong with them last, and keeps those without
/// mistakes. `load` reads it, with some files as they were; it has the hooks of the workspaces around it take note of
/// switches.
pub(super) fn load_with_last_good(
    store: &LastGoodStore,
    rules: &BrokenFileRules<'_>,
    outer: &mut Vec<Hook>,
    load: &dyn Fn(&GoodFiles, &mut Vec<Hook>) -> LoadedWorkspace,
) -> LoadedWorkspace {
    let untouched = outer.clone();
    let mut found = load(&NO_GOOD_FILES, outer);
    note_versions(&mut found);
    let is_replaced = found.diagnostics.iter().any(|found| found.code == Diagnostic::REPLACED);
    if is_replaced || rules.given.kind == Some(WorkspaceKind::Chat) {
        return found;
    }
    let records = LastGoodRecords::read(store, &found.workspace.root, &rules.shared);
    let known = records.files();
    let files = known.keys().map(PathBuf::as_path);
    found.diagnostics.extend(missing_directories(rules.settings, rules.environment, &files));
    let broken = BrokenPaths::of(&found);
    // Where every file can be read, they say all that a record said.
    let is_lost = |record: &UnusableRecord| {
        broken.have(&record.subject) || (record.subject == found.workspace.root && !broken.paths.is_empty())
    };
    let lost = records.unusable().iter().any(is_lost);
    let severity = if lost { Severity::Error } else { Severity::Warning };
    found.diagnostics.extend(records.unusable().iter().map(|record| record.diagnostic(severity)));
    if lost {
        for file in &broken.paths {
            let scope = if rules.shared.contains(file) { Scope::User } else { Scope::Project };
            add_block(&mut found.hooks, file, scope);
        }
        return found;
    }
    keep_times(&mut found.versions, &known);
    let is_wanted =
        |file: &Path| broken.have(file) && rules.concern(file) && !found.versions.contains_key(file);
    let wanted: GoodFiles = known
        .iter()
        .filter(|(file, _)| is_wanted(file))
        .map(|(file, good)| (file.clone(), good.clone()))
        .collect();
    let unwritten = records.write(&record_of(&found, &wanted, &known, &rules.shared));
    found.diagnostics.extend(unwritten);
    let mut loaded = if wanted.is_empty() {
        found
    } else {
        let substituted = substitute(&wanted, &untouched, load);
        substituted.outer.clone_into(outer);
        substituted.merged_with(found, &wanted, rules)
    };
    rules.block_unknown(&mut loaded, &known);
    loaded
}

/// A workspace that was read with some files as they were.
struct Substituted {
    loaded: LoadedWorkspace,
    /// The files that were read as they were, and had no mistakes.
    used: GoodFiles,
    /// The files that had mistakes even as they were, with the first of them.
    refused: BTreeMap<PathBuf, String>,
    outer: Vec<Hook>,
}

/// Reads a workspace with the wanted files as they were. Those that have mistakes even so are left as they are: this
/// version of hookyard reads them in another way, or something is gone that they refer to.
fn substitute(
    wanted: &GoodFiles,
    untouched: &[Hook],
    load: &dyn Fn(&GoodFiles, &mut Vec<Hook>) -> LoadedWorkspace,
) -> Substituted {
    let mut used = wanted.clone();
    let mut refused = BTreeMap::new();
    let mut attempts = 0;
    loop {
        let mut outer = untouched.to_vec();
        let loaded = load(&used, &mut outer);
        let broken = BrokenPaths::of(&loaded);
        let is_sound = |file: &PathBuf| loaded.definitions.contains_key(file) && !broken.paths.contains(file);
        let before = used.len();
        let mistaken = used.keys().filter(|file| !is_sound(file));
        let mistaken: Vec<PathBuf> = mistaken.cloned().collect();
        for file in mistaken {
            used.remove(&file);
            let why = first_mistake(&loaded, &file);
            refused.insert(file, why);
        }
        if used.len() == before {
            return Substituted { loaded, used, refused, outer };
        }
        attempts += 1;
        if attempts == MAX_ATTEMPTS {
            used.clear();
        }
    }
}

fn first_mistake(loaded: &LoadedWorkspace, file: &Path) -> String {
    let mut mistakes = loaded.diagnostics.iter().filter(|found| found.is_of_broken_file());
    let found = mistakes.find(|found| found.file == file);
    found.map_or_else(|| "it is not read any more".to_owned(), |found| found.message.clone())
}

impl Substituted {
    /// The same, with what was found of the files as they are.
    fn merged_with(
        self,
        found: LoadedWorkspace,
        wanted: &GoodFiles,
        rules: &BrokenFileRules<'_>,
    ) -> LoadedWorkspace {
        let policy = rules.settings.broken;
        let Self { mut loaded, used, refused, .. } = self;
        for diagnostic in found.diagnostics {
            // Whether a former rule is trusted was found out with it.
            let is_of_kept = diagnostic.code != Diagnostic::TRUST
                && used.keys().any(|file| file.starts_with(&diagnostic.file));
            if !loaded.diagnostics.contains(&diagnostic)
                && (diagnostic.code == Diagnostic::LAST_GOOD || is_of_kept)
            {
                loaded.diagnostics.push(diagnostic);
            }
        }
        for file in found.files {
            if !loaded.files.contains(&file) {
                loaded.files.push(file);
            }
        }
        loaded.versions = found.versions;
        for (file, good) in &used {
            loaded.diagnostics.push(kept(file, Some(&good.version), policy));
            loaded.last_good.insert(file.clone(), good.version.clone());
        }
        for (file, good) in wanted.iter().filter(|(file, _)| !used.contains_key(*file)) {
            let absent = good.hooks.iter().filter(|hook| !has_rule(&loaded.hooks, hook));
            let absent: Vec<&RecordedHook> = absent.collect();
            // Where other files have all of its rules by now, nothing is lost. Shared files are recorded without hooks, too.
            let is_without_guards = good.hooks.is_empty() && !rules.shared.contains(file);
            if is_without_guards || !absent.is_empty() {
                let why = refused.get(file).map_or("another file is in its place", String::as_str);
                loaded.diagnostics.push(unusable(file, &good.version, why));
            }
            for recorded in absent {
                add_under_free_name(&mut loaded.hooks, placeholder(recorded, file));
            }
        }
        loaded
    }
}

/// Whether a hook is the same rule as one that is known, as far as that is recorded. A namesake is not.
fn has_rule(hooks: &[Hook], recorded: &RecordedHook) -> bool {
    let mut namesakes = hooks.iter().filter(|hook| hook.name.as_str() == recorded.name);
    namesakes.any(|hook| RecordedHook::of(hook).as_ref() == Some(recorded))
}

/// Takes over since when files are what they are.
fn keep_times(versions: &mut BTreeMap<PathBuf, RulesVersion>, known: &GoodFiles) {
    for (file, version) in versions {
        if let Some(before) = known.get(file).filter(|before| before.version.sha256 == version.sha256) {
            version.since = before.version.since;
        }
    }
}

/// What there is to keep: files without mistakes as they are, and as they were those that are broken, or not read because
/// the workspace says that it is a chat. Of shared files, also those without hooks: that they have none is worth knowing.
fn record_of(
    found: &LoadedWorkspace,
    wanted: &GoodFiles,
    known: &GoodFiles,
    shared: &BTreeSet<PathBuf>,
) -> GoodFiles {
    let mut good = wanted.clone();
    let unread = known.iter().filter(|(file, _)| found.unread.contains(*file));
    good.extend(unread.map(|(file, known)| (file.clone(), known.clone())));
    for (file, version) in &found.versions {
        let Some(bytes) = found.definitions.get(file) else { continue };
        let own = found.hooks.iter().filter(|hook| hook.source.file.as_deref() == Some(file));
        let own: Vec<&Hook> = own.collect();
        let lists = |hook: &Hook| hook.execution.is_listed_in(file);
        if own.is_empty() && !shared.contains(file) && !found.hooks.iter().any(lists) {
            continue;
        }
        let hooks = own.into_iter().filter_map(RecordedHook::of).collect();
        good.insert(file.clone(), GoodFile { bytes: Arc::clone(bytes), version: version.clone(), hooks });
    }
    good
}

/// Says what becomes of the hooks of a broken file.
pub(crate) fn kept(file: &Path, version: Option<&RulesVersion>, policy: BrokenFilePolicy) -> Diagnostic {
    let shown = version.map(|version| format!(" ({})", version.shown())).unwrap_or_default();
    let message = match policy {
        BrokenFilePolicy::Keep => format!("the file is broken; its last good rules stay{shown}"),
        BrokenFilePolicy::Deny => {
            format!("the file is broken; the events of its last good rules are blocked{shown}")
        }
    };
    Diagnostic::of_file(Severity::Info, Diagnostic::LAST_GOOD, file, message)
}

fn unusable(file: &Path, version: &RulesVersion, why: &str) -> Diagnostic {
    let message = format!("its last good rules ({}) cannot be used either: {why}", version.shown());
    let help = "correct the file; until then, those of its hooks that deny when they fail block their events";
    Diagnostic::of_file(Severity::Error, Diagnostic::LAST_GOOD, file, message).help(help)
}

/// What is known of the files of a workspace, by the directory or the shared file that a record is for.
struct LastGoodRecords<'a> {
    store: &'a LastGoodStore,
    root: PathBuf,
    shared: &'a BTreeSet<PathBuf>,
    records: BTreeMap<PathBuf, GoodFiles>,
    unusable: Vec<UnusableRecord>,
}

/// A record that cannot be used.
struct UnusableRecord {
    /// What it is for.
    subject: PathBuf,
    why: String,
    file: PathBuf,
}

impl<'a> LastGoodRecords<'a> {
    fn read(store: &'a LastGoodStore, root: &Path, shared: &'a BTreeSet<PathBuf>) -> Self {
        let mut found =
            Self { store, root: root.to_owned(), shared, records: BTreeMap::new(), unusable: Vec::new() };
        for subject in [root].into_iter().chain(shared.iter().map(PathBuf::as_path)) {
            match store.read(subject) {
                Ok(known) => drop(found.records.insert(subject.to_owned(), known)),
                Err(why) => {
                    let (subject, file) = (subject.to_owned(), store.file_of(subject));
                    found.unusable.push(UnusableRecord { subject, why, file });
                }
            }
        }
        found
    }

    /// The files as they were. A shared file is as its own record says; before it had one, that of the workspace had it.
    fn files(&self) -> GoodFiles {
        let own = self.records.get(&self.root).cloned().unwrap_or_default();
        let shared = self
            .shared
            .iter()
            .filter_map(|file| Some((file.clone(), self.records.get(file)?.get(file)?.clone())));
        own.into_iter().chain(shared).collect()
    }

    fn unusable(&self) -> &[UnusableRecord] {
        &self.unusable
    }

    /// Writes the records that have changed.
    ///
    /// Returns errors about those that cannot be written.
    fn write(&self, good: &GoodFiles) -> Vec<Diagnostic> {
        let mut records: BTreeMap<&Path, GoodFiles> = BTreeMap::new();
        records.insert(&self.root, GoodFiles::new());
        records.extend(self.shared.iter().map(|file| (file.as_path(), GoodFiles::new())));
        for (file, known) in good {
            let subject = if self.shared.contains(file) { file } else { &self.root };
            records.entry(subject).or_default().insert(file.clone(), known.clone());
        }
        let changed = records.iter().filter(|(subject, good)| self.records.get(**subject) != Some(*good));
        let written = changed.filter_map(|(subject, good)| {
            let why = self.store.write(subject, good).err()?;
            Some(unwritten_record(&self.store.file_of(subject), &why))
        });
        written.collect()
    }
}

impl UnusableRecord {
    fn diagnostic(&self, severity: Severity) -> Diagnostic {
        let message = format!("the record of the last good rules cannot be used: {}", self.why);
        let help = match severity {
            Severity::Error => {
                "correct the broken files, which are listed too; until then, every event that can be stopped is blocked"
            }
            _ => "nothing needs to be done: every hook file can be read, so the record is written again",
        };
        Diagnostic::of_file(severity, Diagnostic::LAST_GOOD, &self.file, message).help(help)
    }
}

fn unwritten_record(file: &Path, why: &str) -> Diagnostic {
    let message = format!("the last good rules cannot be kept: {why}");
    let help = "after a restart, a hook file that is broken then has no last good rules";
    Diagnostic::of_file(Severity::Error, Diagnostic::LAST_GOOD, file, message).help(help)
}
