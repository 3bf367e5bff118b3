//! What the log is told of a load: each broken file once, when it breaks and when it is sound again, and which hooks
//! are others now. Refuses to repeat what the load before had to say.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use super::LoadReport;
use crate::{
    model::{Diagnostic, WorkspaceId},
    registry::HookChanges,
};

/// Tells the log what a load came to; `before` is the one before.
pub(super) fn tell(id: &WorkspaceId, before: Option<&LoadReport>, report: &LoadReport) {
    let former = before.map(first_mistakes).unwrap_or_default();
    let current = first_mistakes(report);
    for (file, first) in &current {
        if !former.get(file).is_some_and(|known| is_same(known, first)) {
            let file = file.display();
            if is_kept(file_of(first), &report.kept) {
                tracing::error!(workspace = %id, %file, "a hook file is broken; its former rules stay: {first}");
            } else {
                tracing::error!(workspace = %id, %file, "a hook file is broken; its hooks are left out: {first}");
            }
        }
    }
    for file in former.keys().filter(|file| !current.contains_key(*file)) {
        tracing::info!(workspace = %id, file = %file.display(), "the hook file is no longer broken");
    }
    let LoadReport { version, changes, .. } = report;
    if before.is_some() && !changes.is_empty() {
        let HookChanges { added, removed, changed } = changes;
        tracing::info!(workspace = %id, version, ?added, ?removed, ?changed, "hooks reloaded");
    }
}

/// The first mistake of each broken file.
fn first_mistakes(report: &LoadReport) -> BTreeMap<&Path, &Diagnostic> {
    let mut first = BTreeMap::new();
    for error in report.errors() {
        first.entry(file_of(error)).or_insert(error);
    }
    first
}

fn file_of(error: &Diagnostic) -> &Path {
    &error.file
}

/// Whether two mistakes need no two lines: one that has only moved is the same.
fn is_same(one: &Diagnostic, other: &Diagnostic) -> bool {
    (one.code, &one.message) == (other.code, &other.message)
}

/// Whether former rules stay for a broken file, or for files in a broken directory.
fn is_kept(broken: &Path, kept: &[PathBuf]) -> bool {
    kept.iter().any(|file| file.starts_with(broken))
}
