//! The log lines of a load: each broken file once, when it breaks and when it is fixed, and which hooks changed.

use std::{collections::BTreeMap, fmt, path::Path};

use super::load_report::{KeptFile, LoadReport};
use crate::{
    config::BrokenFilePolicy,
    model::{Diagnostic, HookName, Severity, Timestamp, WorkspaceId},
    registry::HookChanges,
};

/// The codes of errors because of which guards are not known.
const UNKNOWN_GUARDS: [&str; 3] = [Diagnostic::LAST_GOOD, Diagnostic::TRUST_RECORD, Diagnostic::REPLACED];

/// Logs what is new in a load; `before` is the report of the load before it.
pub(super) fn log_load(id: &WorkspaceId, before: Option<&LoadReport>, report: &LoadReport) {
    log_mistakes(id, before, report);
    log_shortage(id, before, report);
    for lost in new_errors(before, report) {
        tracing::error!(workspace = %id, "{lost}");
    }
    for warning in new_losses(before, report) {
        tracing::warn!(workspace = %id, file = %warning.file.display(), "a hook is not loaded: {warning}");
    }
    for powerless in report.powerless_switches() {
        let is_known =
            before.is_some_and(|before| before.powerless_switches().any(|known| known == powerless));
        if !is_known {
            tracing::warn!(workspace = %id, "{powerless}");
        }
    }
    for missing in report.missing_required() {
        let is_known = before.is_some_and(|before| before.missing_required().any(|known| known == missing));
        if !is_known {
            tracing::error!(workspace = %id, "{}; its events are blocked", missing.message);
        }
    }
    let is_complete = |report: &LoadReport| report.missing_required().next().is_none();
    if is_complete(report) && before.is_some_and(|before| !is_complete(before)) {
        tracing::info!(workspace = %id, "every required hook is in force again");
    }
    let LoadReport { version, changes, .. } = report;
    if before.is_some() && !changes.is_empty() {
        let HookChanges { added, removed, changed } = changes;
        let (added, removed, changed) = (NameList(added), NameList(removed), NameList(changed));
        tracing::info!(workspace = %id, version, %added, %removed, %changed, "hooks reloaded");
    }
}

/// Logs the files that break, and those that are no longer broken.
fn log_mistakes(id: &WorkspaceId, before: Option<&LoadReport>, report: &LoadReport) {
    let former = before.map(first_mistakes).unwrap_or_default();
    let current = first_mistakes(report);
    for (file, first) in &current {
        let kept = kept_below(file, &report.kept);
        let was_kept = before.is_some_and(|before| kept_below(file, &before.kept).is_some());
        if was_kept == kept.is_some() && former.get(file).is_some_and(|known| is_same(known, first)) {
            continue;
        }
        let file = file.display();
        match kept {
            Some(KeptFile { policy, version, .. }) => {
                let sha256 = version.as_ref().map_or("unknown", |version| &version.sha256);
                let since = version.as_ref().map(|version| Timestamp::of(version.since).to_string());
                let since = since.as_deref().unwrap_or("unknown");
                let fate = match policy {
                    BrokenFilePolicy::Deny => "the events of its last good rules are blocked",
                    _ => "its last good rules stay",
                };
                tracing::error!(workspace = %id, %file, sha256, since, "a hook file is broken; {fate}: {first}");
            }
            // What becomes of its hooks is said with their file.
            None if first.code == Diagnostic::BUNDLE => {
                tracing::error!(workspace = %id, directory = %file, "the signed bundle is not as it should be: {first}");
            }
            None if first.code == Diagnostic::POLICY => {
                tracing::error!(workspace = %id, %file, "a policy is broken: {first}");
            }
            None => {
                tracing::error!(workspace = %id, %file, "a hook file is broken; its hooks are not loaded: {first}");
            }
        }
    }
    for (file, first) in former.iter().filter(|(file, _)| !current.contains_key(*file)) {
        let what = if first.code == Diagnostic::BUNDLE {
            "signed bundle is as it should be again"
        } else {
            "hook file is no longer broken"
        };
        tracing::info!(workspace = %id, file = %file.display(), "the {what}");
    }
}

/// Logs the beginning and the end of a time in which not every file could be read.
fn log_shortage(id: &WorkspaceId, before: Option<&LoadReport>, report: &LoadReport) {
    match (before.and_then(LoadReport::shortage), report.shortage()) {
        (None, Some(shortage)) => tracing::warn!(workspace = %id, "{shortage}"),
        (Some(_), None) => tracing::info!(workspace = %id, "every file can be read again"),
        _ => {}
    }
}

/// Writes names with commas between them.
struct NameList<'a>(&'a [HookName]);

impl fmt::Display for NameList<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, name) in self.0.iter().enumerate() {
            let comma = if position == 0 { "" } else { ", " };
            write!(f, "{comma}{name}")?;
        }
        Ok(())
    }
}

/// The warnings because of which a hook is not loaded, without those of the load before.
fn new_losses<'a>(
    before: Option<&'a LoadReport>,
    report: &'a LoadReport,
) -> impl Iterator<Item = &'a Diagnostic> {
    let is_known = move |warning: &Diagnostic| {
        let mut former = before.into_iter().flat_map(LoadReport::skipped);
        former.any(|known| known.file == warning.file && is_same(known, warning))
    };
    let warnings = report.skipped().filter(|diagnostic| diagnostic.severity == Severity::Warning);
    warnings.filter(move |warning| !is_known(warning))
}

/// The errors about guards that are not known, without those of the load before.
fn new_errors<'a>(
    before: Option<&'a LoadReport>,
    report: &'a LoadReport,
) -> impl Iterator<Item = &'a Diagnostic> {
    let is_known =
        move |error: &Diagnostic| before.is_some_and(|before| before.errors().any(|known| known == error));
    report.errors().filter(move |error| UNKNOWN_GUARDS.contains(&error.code) && !is_known(error))
}

/// The first mistake of each broken file.
fn first_mistakes(report: &LoadReport) -> BTreeMap<&Path, &Diagnostic> {
    let mut first = BTreeMap::new();
    let elsewhere =
        [Diagnostic::REQUIRED_MISSING, Diagnostic::LAST_GOOD, Diagnostic::TRUST_RECORD, Diagnostic::REPLACED];
    for error in report.errors().filter(|error| !elsewhere.contains(&error.code)) {
        first.entry(error.file.as_path()).or_insert(error);
    }
    first
}

/// Whether a mistake was logged before: one that only moved to another line was.
fn is_same(one: &Diagnostic, other: &Diagnostic) -> bool {
    one.code == other.code && one.message == other.message
}

/// The broken file, or the first one in a directory that cannot be read, whose last good rules are known.
fn kept_below<'r>(broken: &Path, kept: &'r [KeptFile]) -> Option<&'r KeptFile> {
    kept.iter().find(|kept| kept.file.starts_with(broken))
}
