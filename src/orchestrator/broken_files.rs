//! What becomes of the rules of broken files when what was loaded is published.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    handle::Orchestrator,
    load_report::{KeptFile, LoadReport},
};
use crate::{
    config::{self, BrokenFilePolicy, LoadedWorkspace, RulesVersion},
    model::{Diagnostic, Hook},
    registry::{RegisteredHook, keep_rules_of_broken_files},
};

impl Orchestrator {
    /// Has broken files keep their last good rules, or their events blocked, as the settings say. `old` are the hooks in
    /// force. Returns these files.
    pub(super) fn settle_broken_files(
        &self,
        loaded: &mut LoadedWorkspace,
        old: &[Arc<RegisteredHook>],
        before: Option<&LoadReport>,
    ) -> Vec<KeptFile> {
        let LoadedWorkspace { workspace, hooks, versions, last_good, diagnostics, .. } = loaded;
        let files = old.iter().filter_map(|registered| registered.hook.source.file.as_deref());
        let environment = |name: &str| std::env::var(name).ok();
        for missing in config::missing_directories(&self.0.settings, &environment, &files) {
            if !diagnostics.contains(&missing) {
                diagnostics.push(missing);
            }
        }
        // What was read as it was is not taken from memory: the trust in it was checked just now.
        let others = diagnostics.iter().filter(|diagnostic| !last_good.contains_key(&diagnostic.file));
        let others: Vec<Diagnostic> = others.cloned().collect();
        let mut placeholders = config::take_placeholders(hooks);
        let without_hooks = sound_without_hooks(&placeholders, old, before);
        placeholders
            .retain(|hook| hook.source.file.as_deref().is_none_or(|file| !without_hooks.contains(file)));
        let in_memory = keep_rules_of_broken_files(old, hooks, &workspace.root, &others);
        config::add_placeholders(hooks, placeholders);
        carry_versions(versions, in_memory.iter().chain(&without_hooks), before);
        versions.extend(last_good.clone());
        let policy = self.0.settings.broken;
        let kept = kept_files(policy, in_memory, last_good, versions, hooks);
        // What is in force from memory needs no record, and it is trusted as it is.
        let is_kept = |file: &Path| kept.iter().any(|kept| kept.file == file) || without_hooks.contains(file);
        let is_untrusted = |file: &Path| {
            let mut own = hooks.iter().filter(|hook| hook.source.file.as_deref() == Some(file));
            own.any(|hook| hook.trust.approval().is_none())
        };
        diagnostics.retain(|diagnostic| {
            let is_error = diagnostic.skipped && is_kept(&diagnostic.file);
            let is_settled = match diagnostic.code {
                Diagnostic::LAST_GOOD => true,
                Diagnostic::TRUST => !is_untrusted(&diagnostic.file),
                _ => false,
            };
            !(is_error && is_settled)
        });
        let remarks = kept_remarks(&kept, diagnostics);
        diagnostics.extend(remarks);
        config::apply_policy(policy, hooks, kept.iter().map(|kept| kept.file.as_path()));
        kept
    }
}

/// The files of placeholders that had no hooks when they were sound: nothing of theirs is lost.
fn sound_without_hooks(
    placeholders: &[Hook],
    old: &[Arc<RegisteredHook>],
    before: Option<&LoadReport>,
) -> BTreeSet<PathBuf> {
    let files = placeholders.iter().filter_map(|hook| hook.source.file.as_deref());
    let had_hooks = |file: &Path| old.iter().any(|known| known.hook.source.file.as_deref() == Some(file));
    let was_sound = |file: &Path| before.is_some_and(|before| before.versions.contains_key(file));
    files.filter(|file| was_sound(file) && !had_hooks(file)).map(Path::to_path_buf).collect()
}

/// Takes over since when files are what they are, and what kept ones were.
fn carry_versions<'f>(
    versions: &mut BTreeMap<PathBuf, RulesVersion>,
    kept: impl Iterator<Item = &'f PathBuf>,
    before: Option<&LoadReport>,
) {
    let Some(before) = before else { return };
    for (file, version) in versions.iter_mut() {
        if let Some(known) = before.versions.get(file).filter(|known| known.sha256 == version.sha256) {
            version.since = version.since.min(known.since);
        }
    }
    for file in kept {
        if let Some(known) = before.versions.get(file) {
            versions.entry(file.clone()).or_insert_with(|| known.clone());
        }
    }
}

/// The broken files whose last good rules are among the hooks, from memory or from their record.
fn kept_files(
    policy: BrokenFilePolicy,
    in_memory: Vec<PathBuf>,
    last_good: &BTreeMap<PathBuf, RulesVersion>,
    versions: &BTreeMap<PathBuf, RulesVersion>,
    hooks: &[Hook],
) -> Vec<KeptFile> {
    let has_rules = |file: &PathBuf| {
        let mut own = hooks.iter().filter(|hook| hook.source.file.as_deref() == Some(file));
        own.any(|hook| !config::is_placeholder(hook))
    };
    let in_memory = in_memory.into_iter().filter(has_rules);
    let files: BTreeSet<PathBuf> = in_memory.chain(last_good.keys().cloned()).collect();
    let kept = files.into_iter().map(|file| {
        let version = versions.get(&file).cloned();
        KeptFile { file, policy, version }
    });
    kept.collect()
}

/// What is said of kept files that nothing was said of yet.
fn kept_remarks(kept: &[KeptFile], known: &[Diagnostic]) -> Vec<Diagnostic> {
    let is_new = |kept: &&KeptFile| {
        !known.iter().any(|known| known.code == Diagnostic::LAST_GOOD && known.file == kept.file)
    };
    let new = kept.iter().filter(is_new);
    new.map(|kept| config::kept(&kept.file, kept.version.as_ref(), kept.policy)).collect()
}
