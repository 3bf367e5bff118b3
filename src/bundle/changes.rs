//! What is different between two bundles.

use std::collections::BTreeSet;

use super::{path::BundlePath, verify::VerifiedBundle};

/// The files that differ, in the order of their paths.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct BundleChanges {
    pub(crate) added: Vec<BundlePath>,
    pub(crate) removed: Vec<BundlePath>,
    /// Another content, or executable in one of the two only.
    pub(crate) changed: Vec<BundlePath>,
    /// Hooks that one of the two requires and the other does not.
    pub(crate) newly_required: Vec<String>,
    pub(crate) no_longer_required: Vec<String>,
}

/// What has changed from one bundle to the other.
pub(crate) fn changes_between(one: &VerifiedBundle, other: &VerifiedBundle) -> BundleChanges {
    let mut changes = BundleChanges::default();
    for file in &other.files {
        match one.files.iter().find(|known| known.path == file.path) {
            None => changes.added.push(file.path.clone()),
            Some(known) if known != file => changes.changed.push(file.path.clone()),
            Some(_) => {}
        }
    }
    let is_gone = |path: &&BundlePath| !other.manifest.files.contains_key(*path);
    changes.removed = one.manifest.files.keys().filter(is_gone).cloned().collect();
    let before: BTreeSet<&String> = one.manifest.required.iter().collect();
    let after: BTreeSet<&String> = other.manifest.required.iter().collect();
    changes.newly_required = after.difference(&before).map(|name| (*name).clone()).collect();
    changes.no_longer_required = before.difference(&after).map(|name| (*name).clone()).collect();
    changes
}
