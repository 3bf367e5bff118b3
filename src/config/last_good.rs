//! The last good rules: what the files with hooks were when nothing was wrong with them last. A load that finds one broken
//! reads it as it was then.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    WorkspaceSettings,
    agent_settings::dialect_of_file,
    broken_hooks::{RecordedHook, placeholder},
    last_good_store::{GoodFile, GoodFiles, LastGoodStore, NO_GOOD_FILES, RulesVersion},
    loaded_workspace::LoadedWorkspace,
    workspace_options::{BrokenFilePolicy, WorkspaceKind},
};
use crate::{
    model::{Diagnostic, DialectName, FailurePolicy, Hook, Scope, Severity},
    registry::RequiredEvents,
};

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
    let versions = sound.map(|(file, bytes)| (file.clone(), RulesVersion::now(bytes)));
    loaded.versions = versions.collect();
}

/// What the operator says about a workspace, as far as it concerns broken files.
pub(super) struct BrokenFileRules<'a> {
    pub(super) given: &'a WorkspaceSettings,
    pub(super) policy: BrokenFilePolicy,
}

impl BrokenFileRules<'_> {
    /// Whether the hooks of a file would run if it were not broken.
    fn concern(&self, file: &Path) -> bool {
        self.given.dialects.as_ref().is_none_or(|dialects| dialects.has(dialect_of_file(file)))
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
    if rules.given.kind == Some(WorkspaceKind::Chat) {
        return found;
    }
    let root = found.workspace.root.clone();
    let broken = BrokenPaths::of(&found);
    let known = match store.read(&root) {
        Ok(known) => known,
        Err(why) if broken.paths.is_empty() => {
            // Every file can be read: they say all that the record said.
            found.diagnostics.push(unreadable_record(store, &root, &why, Severity::Warning));
            GoodFiles::new()
        }
        Err(why) => {
            found.diagnostics.push(unreadable_record(store, &root, &why, Severity::Error));
            block_unknown_rules(&mut found, &broken);
            return found;
        }
    };
    keep_times(&mut found.versions, &known);
    let is_wanted =
        |file: &Path| broken.have(file) && rules.concern(file) && !found.versions.contains_key(file);
    let wanted: GoodFiles = known
        .iter()
        .filter(|(file, _)| is_wanted(file))
        .map(|(file, good)| (file.clone(), good.clone()))
        .collect();
    let good = record_of(&found, &wanted);
    if good != known
        && let Err(why) = store.write(&root, &good)
    {
        found.diagnostics.push(unwritten_record(store, &root, &why));
    }
    if wanted.is_empty() {
        return found;
    }
    let substituted = substitute(&wanted, &untouched, load);
    substituted.outer.clone_into(outer);
    substituted.merged_with(found, &wanted, rules.policy)
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
        policy: BrokenFilePolicy,
    ) -> LoadedWorkspace {
        let Self { mut loaded, used, refused, .. } = self;
        for diagnostic in found.diagnostics {
            if !loaded.diagnostics.contains(&diagnostic)
                && (diagnostic.code == Diagnostic::LAST_GOOD || used.contains_key(&diagnostic.file))
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
            let absent = good.hooks.iter().filter(|hook| !has_hook(&loaded.hooks, &hook.name));
            let absent: Vec<Hook> = absent.filter_map(|hook| placeholder(hook, file)).collect();
            // Where other files have all of its hooks by now, nothing is lost.
            if good.hooks.is_empty() || !absent.is_empty() {
                let why = refused.get(file).map_or("another file is in its place", String::as_str);
                loaded.diagnostics.push(unusable(file, &good.version, why));
            }
            loaded.hooks.extend(absent);
        }
        loaded
    }
}

fn has_hook(hooks: &[Hook], name: &str) -> bool {
    hooks.iter().any(|hook| hook.name.as_str() == name)
}

/// Takes over since when files are what they are.
fn keep_times(versions: &mut BTreeMap<PathBuf, RulesVersion>, known: &GoodFiles) {
    for (file, version) in versions {
        if let Some(before) = known.get(file).filter(|before| before.version.sha256 == version.sha256) {
            version.since = before.version.since;
        }
    }
}

/// What there is to keep: files without mistakes as they are, and broken ones as they were.
fn record_of(found: &LoadedWorkspace, wanted: &GoodFiles) -> GoodFiles {
    let mut good = wanted.clone();
    for (file, version) in &found.versions {
        let Some(bytes) = found.definitions.get(file) else { continue };
        let own = found.hooks.iter().filter(|hook| hook.source.file.as_deref() == Some(file));
        let own: Vec<&Hook> = own.collect();
        if own.is_empty() {
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

fn unreadable_record(store: &LastGoodStore, root: &Path, why: &str, severity: Severity) -> Diagnostic {
    let message = format!("the record of the last good rules cannot be used: {why}");
    let help = match severity {
        Severity::Error => {
            "correct the broken files, which are listed too; until then, every event that can be stopped is blocked"
        }
        _ => "nothing needs to be done: every hook file can be read, so the record is written again",
    };
    Diagnostic::of_file(severity, Diagnostic::LAST_GOOD, &store.file_of(root), message).help(help)
}

fn unwritten_record(store: &LastGoodStore, root: &Path, why: &str) -> Diagnostic {
    let message = format!("the last good rules cannot be kept: {why}");
    let help = "after a restart, a hook file that is broken then has no former rules";
    Diagnostic::of_file(Severity::Warning, Diagnostic::LAST_GOOD, &store.file_of(root), message).help(help)
}

/// Blocks what can be stopped for each broken file: nobody knows which of them had guards.
fn block_unknown_rules(loaded: &mut LoadedWorkspace, broken: &BrokenPaths) {
    let mut names = (1..).map(|number: usize| format!("broken-file-{number}"));
    for file in &broken.paths {
        let free = names.find(|name| !has_hook(&loaded.hooks, name));
        let events = RequiredEvents::all().kinds.iter().map(|kind| kind.as_str().to_owned());
        let hook = RecordedHook {
            name: free.unwrap_or_default(),
            dialect: DialectName::OpenHarness.to_string(),
            scope: Scope::Project.to_string(),
            events: events.collect(),
            host_event: None,
            matcher: None,
            on_error: FailurePolicy::Deny.as_str().to_owned(),
        };
        loaded.hooks.extend(placeholder(&hook, file));
    }
}
