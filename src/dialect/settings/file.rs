//! One settings file: its switches, and its events with their entries.

use std::path::Path;

use super::{
    super::{
        document::{Document, Mapping, Value},
        native::NativeDialect,
        openharness::{HookRules, ReferenceLookup},
        suggest::{did_you_mean, nearest, shorten},
    },
    context::{FileContext, SettingsHook, unknown_setting},
    disable::{KeyPosition, switch},
    entry,
    format::SharedKey,
    shared::SharedSettings,
};
use crate::model::{Diagnostic, Scope};

/// The hooks of one settings file.
#[derive(Debug, Default)]
pub struct SettingsHooks {
    /// The hooks without mistakes, in the order of the file.
    pub hooks: Vec<SettingsHook>,
    /// Whether the file switches all hooks off, or on again.
    pub all_disabled: Option<(bool, KeyPosition)>,
    /// The names and the commands of hooks that the file switches off.
    pub disabled: Vec<(String, KeyPosition)>,
    /// Where the file leaves hooks to the administrator alone, if it does.
    pub managed_only: Option<KeyPosition>,
    /// The events that the file configures.
    pub events: Vec<(&'static str, KeyPosition)>,
    /// What it says about all hooks.
    pub shared: SharedSettings,
}

/// Reads a settings file of a dialect.
///
/// Returns its hooks, and everything that is wrong with what it says about hooks.
pub fn read_settings(
    native: &'static NativeDialect,
    bytes: &[u8],
    file: &Path,
    scope: Scope,
    rules: &HookRules,
    resolver: &dyn ReferenceLookup,
) -> (SettingsHooks, Vec<Diagnostic>) {
    let document = match Document::parse_json(bytes, file) {
        Ok(document) => document,
        Err(diagnostic) => return (SettingsHooks::default(), vec![*diagnostic]),
    };
    let context = FileContext { native, file, scope, rules, resolver };
    let mut found = SettingsHooks::default();
    if let Some(root) = document.root() {
        let hooks = root.get("hooks").and_then(|value| value.mapping());
        let switches = native.settings.disable;
        let disabling = switches.read(&root, hooks.as_ref());
        found.all_disabled = disabling.all;
        found.disabled = disabling.named;
        found.managed_only = managed_only(native, &root);
        if let Some(hooks) = hooks {
            let events = hooks.values().filter(|value| !switches.stands_beside_events(value.name()));
            events.for_each(|value| read_event(&context, &value, &mut found));
        }
    }
    (found, document.into_diagnostics())
}

/// Where a file leaves hooks to the administrator alone, if it does.
fn managed_only(native: &NativeDialect, root: &Mapping<'_>) -> Option<KeyPosition> {
    let value = root.get(native.settings.managed_only?)?;
    switch(&value).and_then(|(only, position)| only.then_some(position))
}

fn read_event(context: &FileContext<'_>, value: &Value<'_>, found: &mut SettingsHooks) {
    let name = value.name();
    let words = context.native.settings.shared;
    if let Some(SharedKey { setting, .. }) = words.iter().find(|word| word.key == name) {
        return found.shared.read(*setting, value, context.rules.max_timeout);
    }
    let Some(row) = context.native.row_named(name) else {
        let words: Vec<&str> = words.iter().map(|word| word.key).collect();
        if let Some(near) = nearest(name, &words) {
            return unknown_setting(value, near);
        }
        let known: Vec<&str> = context.native.rows.iter().map(|row| row.name).collect();
        let message = format!("unknown event `{}`; its hooks are not loaded", shorten(name, 64));
        return value.error_at(value.key_span(), "unknown-event", message, did_you_mean(name, &known));
    };
    let Some(entries) = value.list() else { return };
    found.events.push((row.name, KeyPosition::of_key(value)));
    for (number, entry) in (1..).zip(&entries) {
        let position = found.hooks.len();
        found.hooks.extend(entry::read(context, row, number, position, entry));
    }
}
