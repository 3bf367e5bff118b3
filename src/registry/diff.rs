//! What a reload changed: added, removed and changed hooks, and those kept because their file is broken.

use std::{
    collections::{BTreeSet, HashMap},
    path::{Path, PathBuf},
    sync::Arc,
};

use super::registered_hook::RegisteredHook;
use crate::model::{Diagnostic, Hook, HookName, Matcher};

/// What is different between two registries of a workspace, by the names of hooks and in their order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HookChanges {
    /// Those that were not there.
    pub added: Vec<HookName>,
    /// Those that are no longer there.
    pub removed: Vec<HookName>,
    /// Those that are another rule than before.
    pub changed: Vec<HookName>,
}

impl HookChanges {
    /// What is different in `new`.
    pub fn between(old: &[Arc<RegisteredHook>], new: &[Arc<RegisteredHook>]) -> Self {
        let known: HashMap<&HookName, &Hook> = by_name(old);
        let current: HashMap<&HookName, &Hook> = by_name(new);
        let mut changes = Self::default();
        for registered in new {
            let hook = &registered.hook;
            match known.get(&hook.name) {
                None => changes.added.push(hook.name.clone()),
                Some(before) if !is_same_rule(before, hook) => changes.changed.push(hook.name.clone()),
                Some(_) => {}
            }
        }
        let gone = old.iter().map(|registered| &registered.hook.name);
        changes.removed.extend(gone.filter(|name| !current.contains_key(name)).cloned());
        changes
    }

    /// Whether nothing is different.
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty() && self.changed.is_empty()
    }
}

fn by_name(hooks: &[Arc<RegisteredHook>]) -> HashMap<&HookName, &Hook> {
    hooks.iter().map(|registered| (&registered.hook.name, &registered.hook)).collect()
}

/// Whether two hooks are the same rule, wherever they stand in their files.
fn is_same_rule(one: &Hook, other: &Hook) -> bool {
    let Hook {
        name,
        dialect,
        events,
        matcher,
        handler,
        capabilities,
        priority,
        enabled,
        timeout,
        max_concurrency,
        on_error,
        on_timeout,
        execution,
        source,
        trust,
    } = one;
    let pattern = |matcher: &Option<Matcher>| matcher.as_ref().map(|known| known.pattern().to_owned());
    *name == other.name
        && dialect.name() == other.dialect.name()
        && *events == other.events
        && pattern(matcher) == pattern(&other.matcher)
        && *handler == other.handler
        && *capabilities == other.capabilities
        && *priority == other.priority
        && *enabled == other.enabled
        && *timeout == other.timeout
        && *max_concurrency == other.max_concurrency
        && *on_error == other.on_error
        && *on_timeout == other.on_timeout
        && *execution == other.execution
        && *trust == other.trust
        && (source.scope, &source.file, &source.content)
            == (other.source.scope, &other.source.file, &other.source.content)
}

/// Puts the old rules of broken files in the place of what could be read of them: a guard must not go because
/// somebody is in the middle of changing it. Returns the files whose old rules
/// stay, in order.
///
/// A file that is no longer there is not broken; its rules go. A directory that cannot be read keeps those of all
/// files below it, and the workspace's own directory those of all its files, wherever they are.
pub fn keep_rules_of_broken_files(
    old: &[Arc<RegisteredHook>],
    new: &mut Vec<Hook>,
    root: &Path,
    diagnostics: &[Diagnostic],
) -> Vec<PathBuf> {
    let errors = diagnostics.iter().filter(|diagnostic| diagnostic.is_of_broken_file());
    let broken: BTreeSet<&Path> = errors.map(|diagnostic| &*diagnostic.file).collect();
    if broken.is_empty() {
        return Vec::new();
    }
    // Without the content that was agreed to, the former rule may not run either.
    let outlasts = |hook: &Hook| hook.trust.approval().is_none_or(|approval| approval.outlasts_changes());
    // A bundle is loaded as a whole, whatever becomes of other files.
    let can_stay = |hook: &Hook| outlasts(hook) && hook.source.bundle.is_none();
    let old = || old.iter().filter(|registered| can_stay(&registered.hook));
    let of_hooks = old().filter_map(|registered| registered.hook.source.file.as_deref());
    let of_hooks: BTreeSet<&Path> = of_hooks.collect();
    new.retain(|hook| {
        hook.source.file.as_deref().is_none_or(|file| !broken.contains(file) || !of_hooks.contains(file))
    });
    let mut kept = BTreeSet::new();
    for registered in old() {
        let hook = &registered.hook;
        let Some(file) = hook.source.file.as_deref() else { continue };
        let unreachable = file.ancestors().skip(1).any(|above| broken.contains(above));
        let is_lost = broken.iter().any(|file| hook.execution.is_listed_in(file));
        let is_broken = broken.contains(file) || unreachable || is_lost || broken.contains(root);
        if is_broken && !new.iter().any(|other| stands_for(other, hook)) {
            let name = hook.name.free_variant("kept", |name| new.iter().any(|other| other.name == *name));
            new.push(Hook { name, ..hook.clone() });
            kept.insert(file.to_owned());
        }
    }
    kept.into_iter().collect()
}

/// Whether a namesake is a hook by now: it is of the same file, or takes the same care of the same events in another one.
/// Any other namesake only took its name.
fn stands_for(namesake: &Hook, hook: &Hook) -> bool {
    namesake.name == hook.name && (namesake.source.file == hook.source.file || guards_alike(namesake, hook))
}

/// Whether two hooks take the same care of the same events, whatever they run.
pub(crate) fn guards_alike(one: &Hook, other: &Hook) -> bool {
    let pattern = |hook: &Hook| hook.matcher.as_ref().map(|matcher| matcher.pattern().to_owned());
    let policies = |hook: &Hook| (hook.enabled, hook.on_error, hook.on_timeout, hook.execution.delivery);
    one.dialect.name() == other.dialect.name()
        && one.source.scope == other.source.scope
        && one.events == other.events
        && one.execution.host_event == other.execution.host_event
        && pattern(one) == pattern(other)
        && policies(one) == policies(other)
}
