//! The `mode` of a command handler and the keys of each mode.

use std::{num::NonZeroUsize, path::Path, time::Duration};

use super::super::{Document, Mapping, Value};
use crate::model::{CommandMode, Diagnostic, WorkerBounds};

/// The most workers or spares of one hook.
const MOST_WORKERS: usize = 64;

/// The longest that a worker may be kept, in seconds: a year.
const LONGEST_KEEP: usize = 366 * 24 * 60 * 60;

/// Keys that only workers have.
const OF_WORKERS: [&str; 5] =
    ["workers", "max_requests", "max_idle_seconds", "max_age_seconds", "max_rss_mib"];

/// The keys of a command handler that concern its mode.
pub(super) const KEYS: [&str; 7] =
    ["mode", "spares", "workers", "max_requests", "max_idle_seconds", "max_age_seconds", "max_rss_mib"];

/// The names of the modes.
#[derive(Clone, Copy, PartialEq)]
enum Name {
    Oneshot,
    Prespawn,
    Worker,
}

const NAMES: [(&str, Name); 3] =
    [("oneshot", Name::Oneshot), ("prespawn", Name::Prespawn), ("worker", Name::Worker)];

/// The mode as it is run, or `None` if anything about it is wrong.
pub(super) fn read(handler: &Mapping<'_>) -> Option<CommandMode> {
    let name = match handler.get("mode") {
        Some(mode) => mode.choice(&NAMES)?,
        None => Name::Oneshot,
    };
    let foreign: &[&str] = match name {
        Name::Oneshot => &KEYS[1..],
        Name::Prespawn => &OF_WORKERS,
        Name::Worker => &["spares"],
    };
    let mut misplaced = foreign.iter().filter_map(|key| handler.get(key)).peekable();
    if misplaced.peek().is_some() {
        misplaced.for_each(|value| misplaced_key(&value));
        return None;
    }
    Some(match name {
        Name::Oneshot => CommandMode::Oneshot,
        Name::Prespawn => {
            let spares = handler.get("spares").map(|value| count(&value, MOST_WORKERS));
            CommandMode::Prespawn { spares: spares.unwrap_or(Some(NonZeroUsize::MIN))? }
        }
        Name::Worker => CommandMode::Worker(bounds(handler)?),
    })
}

/// A warning about the `mode` of a hook file; none if it has no mode.
#[cfg_attr(not(feature = "cli"), expect(dead_code, reason = "only the command line checks workers"))]
pub(crate) fn warn_of_mode(
    bytes: &[u8],
    file: &Path,
    (code, message, help): (&'static str, String, &str),
) -> Option<Diagnostic> {
    let document = Document::parse(bytes, file).ok()?;
    document.root()?.get("handler")?.mapping()?.get("mode")?.warn(code, message, help);
    document.into_diagnostics().pop()
}

fn misplaced_key(value: &Value<'_>) {
    let key = value.name();
    let owner = if OF_WORKERS.contains(&key) { "worker" } else { "prespawn" };
    let message = format!("`{key}` belongs to `mode: {owner}`");
    value.error_at(value.key_span(), "mode", message, "remove it, or change the mode");
}

fn bounds(handler: &Mapping<'_>) -> Option<WorkerBounds> {
    let usual = WorkerBounds::default();
    let optional = |key, most| match handler.get(key) {
        Some(value) => count(&value, most).map(Some),
        None => Some(None),
    };
    let required = |key, usual, most| optional(key, most).map(|given| given.unwrap_or(usual));
    let seconds = |count: NonZeroUsize| Duration::from_secs(count.get() as u64);
    let workers = required("workers", usual.workers, MOST_WORKERS);
    let max_requests = required("max_requests", usual.max_requests, usize::MAX);
    let max_idle = optional("max_idle_seconds", LONGEST_KEEP);
    let max_age = optional("max_age_seconds", LONGEST_KEEP);
    let max_rss_mib = optional("max_rss_mib", usize::MAX);
    Some(WorkerBounds {
        workers: workers?,
        max_requests: max_requests?,
        max_idle: max_idle?.map_or(usual.max_idle, seconds),
        max_age: max_age?.map(seconds),
        max_rss_mib: max_rss_mib?,
    })
}

/// A whole number from 1 to `most`.
pub(super) fn count(value: &Value<'_>, most: usize) -> Option<NonZeroUsize> {
    let number = value.integer()?;
    let count = usize::try_from(number).ok().and_then(NonZeroUsize::new).filter(|count| count.get() <= most);
    if count.is_none() {
        let help = if most == usize::MAX {
            "write a number from 1".into()
        } else {
            format!("write a number from 1 to {most}")
        };
        value.error("number", format!("`{}` is out of range", value.name()), help);
    }
    count
}
