//! The keys of hook files that several files check.

use super::super::{Mapping, Value};

/// The keys at the top of a hook file.
pub(super) const HOOK_KEYS: [&str; 9] =
    ["name", "events", "matcher", "handler", "capabilities", "priority", "enabled", "on_error", "on_timeout"];

/// The keys that every handler may have.
const HANDLER_KEYS: [&str; 3] = ["type", "timeout_seconds", "max_concurrency"];

/// Records every key that is none of every handler's or of this type's `own`.
pub(super) fn allow_handler_keys(handler: &Mapping<'_>, own: &[&str]) {
    let known = [&HANDLER_KEYS[..], own].concat();
    handler.allow_only_with(&known, |key| {
        HOOK_KEYS.contains(&key).then(|| format!("write `{key}` beside `handler`, not inside it"))
    });
}

/// The most headers or variables of one hook.
const MOST_ENTRIES: usize = 128;

/// The entries of a mapping such as `headers`; `None` if there are more than a hook may have, which is reported.
pub(in crate::dialect) fn bounded_entries<'d>(value: &Value<'d>) -> Option<Vec<Value<'d>>> {
    let entries: Vec<_> = value.mapping()?.values().collect();
    if entries.len() <= MOST_ENTRIES {
        return Some(entries);
    }
    let message =
        format!("`{}` has {} entries; at most {MOST_ENTRIES} are allowed", value.name(), entries.len());
    value.error("too-many", message, "remove those that the hook does not need");
    None
}
