//! Which workspaces are interested in which directory entries, indexed by directory. Pure.

use std::{
    borrow::Borrow,
    collections::{BTreeSet, HashMap, HashSet},
    ffi::OsStr,
    hash::Hash,
    path::{Path, PathBuf},
};

use crate::{
    config::{WatchPlan, WatchedEntry},
    model::WorkspaceId,
};

/// The watch plans of all workspaces, indexed.
#[derive(Debug, Default)]
pub(super) struct Subscriptions {
    known: HashMap<WorkspaceId, WatchPlan>,
    directories: HashMap<PathBuf, HashMap<WatchedEntry, HashSet<WorkspaceId>>>,
    /// Missing directories.
    absent: HashMap<PathBuf, HashSet<WorkspaceId>>,
}

/// What a new plan of a workspace changes.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct SubscriptionChange {
    /// Directories in which no workspace is interested any more.
    pub(super) unwatched: Vec<PathBuf>,
    /// Directories that went missing, or exist again.
    pub(super) absence_changed: Vec<PathBuf>,
}

impl Subscriptions {
    /// Replaces the plan of a workspace; an empty plan removes it.
    pub(super) fn set(&mut self, id: &WorkspaceId, watches: WatchPlan) -> SubscriptionChange {
        let former = self.known.remove(id).unwrap_or_default();
        for (directory, entries) in &watches.directories {
            let old = former.directories.get(directory);
            for entry in entries.iter().filter(|entry| !old.is_some_and(|old| old.contains(*entry))) {
                let known = self.directories.entry(directory.clone()).or_default();
                known.entry(entry.clone()).or_default().insert(id.clone());
            }
        }
        let mut change = SubscriptionChange::default();
        for (directory, entries) in &former.directories {
            let new = watches.directories.get(directory);
            let over = entries.iter().filter(|entry| !new.is_some_and(|new| new.contains(*entry)));
            if self.leave(directory, over, id) {
                change.unwatched.push(directory.clone());
            }
        }
        for base in watches.absent.difference(&former.absent) {
            change.absence_changed.push(base.clone());
            self.absent.entry(base.clone()).or_default().insert(id.clone());
        }
        for base in former.absent.difference(&watches.absent) {
            remove_from(&mut self.absent, base, id);
            change.absence_changed.push(base.clone());
        }
        if watches != WatchPlan::default() {
            self.known.insert(id.clone(), watches);
        }
        change
    }

    /// Removes a workspace from entries of a directory. Returns whether no workspace is interested in it any more.
    fn leave<'a>(
        &mut self,
        directory: &Path,
        entries: impl Iterator<Item = &'a WatchedEntry>,
        id: &WorkspaceId,
    ) -> bool {
        let Some(known) = self.directories.get_mut(directory) else { return false };
        entries.for_each(|entry| remove_from(known, entry, id));
        let is_over = known.is_empty();
        if is_over {
            self.directories.remove(directory);
        }
        is_over
    }

    /// The workspaces to reload when an entry changes.
    pub(super) fn for_entry(&self, directory: &Path, name: &OsStr) -> HashSet<&WorkspaceId> {
        let Some(known) = self.directories.get(directory) else { return HashSet::new() };
        WatchedEntry::of(name).filter_map(|entry| known.get(&entry)).flatten().collect()
    }

    /// The workspaces to reload when a directory itself changes.
    pub(super) fn for_directory(&self, directory: &Path) -> HashSet<&WorkspaceId> {
        self.directories.get(directory).into_iter().flat_map(HashMap::values).flatten().collect()
    }

    /// All workspaces with a plan.
    pub(super) fn all(&self) -> BTreeSet<WorkspaceId> {
        self.known.keys().cloned().collect()
    }

    /// Whether a directory is missing.
    pub(super) fn has_absent(&self) -> bool {
        !self.absent.is_empty()
    }

    /// The missing directories.
    pub(super) fn absent(&self) -> Vec<PathBuf> {
        self.absent.keys().cloned().collect()
    }

    /// The workspaces that wait for a missing directory.
    pub(super) fn for_absent(&self, base: &Path) -> Vec<WorkspaceId> {
        self.absent.get(base).into_iter().flatten().cloned().collect()
    }
}

fn remove_from<K, Q>(map: &mut HashMap<K, HashSet<WorkspaceId>>, key: &Q, id: &WorkspaceId)
where
    K: Borrow<Q> + Hash + Eq,
    Q: Hash + Eq + ?Sized,
{
    if let Some(ids) = map.get_mut(key) {
        ids.remove(id);
        if ids.is_empty() {
            map.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> WorkspaceId {
        WorkspaceId::new(text).unwrap()
    }

    fn watches(directories: &[(&str, &[WatchedEntry])]) -> WatchPlan {
        let entry =
            |(path, entries): &(&str, &[WatchedEntry])| (path.into(), entries.iter().cloned().collect());
        WatchPlan { directories: directories.iter().map(entry).collect(), absent: BTreeSet::new() }
    }

    fn named(name: &str) -> WatchedEntry {
        WatchedEntry::Named(name.into())
    }

    #[test]
    fn a_change_concerns_subscribed_workspaces() {
        let mut subscriptions = Subscriptions::default();
        subscriptions.set(
            &id("a"),
            watches(&[("/a/hooks", &[WatchedEntry::HookFiles]), ("/home", &[named(".claude")])]),
        );
        subscriptions.set(&id("b"), watches(&[("/home", &[named(".claude")])]));
        let of = |directory: &str, name: &str| {
            let mut ids: Vec<_> = subscriptions
                .for_entry(Path::new(directory), OsStr::new(name))
                .into_iter()
                .cloned()
                .collect();
            ids.sort();
            ids
        };
        assert_eq!(of("/a/hooks", "x.yaml"), [id("a")]);
        assert_eq!(of("/home", ".claude"), [id("a"), id("b")]);
        assert!(of("/a/hooks", "x.sh").is_empty() && of("/home", ".bashrc").is_empty());
        assert_eq!(subscriptions.for_directory(Path::new("/home")).len(), 2);
    }

    #[test]
    fn a_directory_is_unwatched_with_its_last_workspace() {
        let mut subscriptions = Subscriptions::default();
        subscriptions.set(&id("a"), watches(&[("/a", &[named("x")]), ("/home", &[named("y")])]));
        subscriptions.set(&id("b"), watches(&[("/home", &[named("y"), named("z")])]));
        assert_eq!(subscriptions.set(&id("a"), WatchPlan::default()).unwatched, [PathBuf::from("/a")]);
        assert_eq!(
            subscriptions.set(&id("b"), watches(&[("/home", &[named("z")])])),
            SubscriptionChange::default()
        );
        assert!(subscriptions.for_entry(Path::new("/home"), OsStr::new("y")).is_empty());
        assert_eq!(subscriptions.set(&id("b"), WatchPlan::default()).unwatched, [PathBuf::from("/home")]);
        assert!(subscriptions.all().is_empty() && subscriptions.directories.is_empty());
    }

    #[test]
    fn a_missing_directory_that_returns_is_reported() {
        let mut subscriptions = Subscriptions::default();
        let gone = WatchPlan { absent: BTreeSet::from(["/a".into()]), ..WatchPlan::default() };
        assert_eq!(subscriptions.set(&id("a"), gone.clone()).absence_changed, [PathBuf::from("/a")]);
        assert_eq!(
            (subscriptions.absent(), subscriptions.for_absent(Path::new("/a"))),
            (vec!["/a".into()], vec![id("a")])
        );
        assert_eq!(subscriptions.set(&id("a"), gone), SubscriptionChange::default());
        let change = subscriptions.set(&id("a"), watches(&[("/a", &[named("x")])]));
        assert_eq!(change.absence_changed, [PathBuf::from("/a")]);
        assert!(subscriptions.absent().is_empty());
    }
}
