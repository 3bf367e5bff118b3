//! One settings file: its switches, and its events with their entries.

use std::{borrow::Cow, path::Path, rc::Rc, sync::Arc};

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
    plugins::{PluginFormat, with_values},
    shared::SharedSettings,
};
use crate::model::{Diagnostic, HostRuns, PluginSource, Scope, Severity};

/// The most hooks of a settings file. Entries without hooks and switched-off names are counted alike: each has its
/// cost, and no file needs as many.
const MOST_HOOKS: usize = 512;

/// What to do about a file with too much.
const NEEDLESS: &str = "remove what is not needed";

/// The hooks of one settings file.
#[derive(Debug, Default)]
pub struct SettingsHooks {
    /// The hooks without mistakes, in the order of the file.
    pub hooks: Vec<SettingsHook>,
    /// Whether the file switches all hooks off, or on again.
    pub all_disabled: Option<(bool, KeyPosition)>,
    /// Where the file switches its own hooks off, if it does.
    own_disabled: Option<KeyPosition>,
    /// The names and the commands of hooks that the file switches off.
    pub disabled: Vec<(String, KeyPosition)>,
    /// Where the file leaves hooks to the administrator alone, if it does.
    pub managed_only: Option<KeyPosition>,
    /// The plugins that the file enables, or disables.
    pub(crate) plugins: Vec<(String, bool, KeyPosition)>,
    /// The events that the file configures.
    pub events: Vec<(&'static str, KeyPosition)>,
    /// Its defaults for all hooks.
    pub shared: SharedSettings,
    /// How many hooks it has, also those with mistakes.
    written: usize,
    /// How many of them are left out because the file has too many.
    left_out: usize,
}

/// Reads a settings file of a dialect.
///
/// Returns its hooks, and all mistakes in the parts about hooks.
pub fn read_settings(
    native: &'static NativeDialect,
    bytes: &[u8],
    file: &Path,
    scope: Scope,
    rules: &HookRules,
    resolver: &dyn ReferenceLookup,
) -> (SettingsHooks, Vec<Diagnostic>) {
    let json = json_of(native, bytes, file);
    let document = match Document::parse_json(&json, file) {
        Ok(document) => document,
        Err(diagnostic) => return (SettingsHooks::default(), vec![*diagnostic]),
    };
    let context = FileContext { native, file, scope, rules, resolver, plugin: None, agent: None };
    let mut found = SettingsHooks::default();
    if let Some(root) = document.root() {
        let hooks = if native.settings.is_bare(file) {
            Some(root.clone())
        } else {
            root.get("hooks").and_then(|value| value.mapping())
        };
        let switches = native.settings.disable;
        let disabling = switches.read(&root, hooks.as_ref());
        found.all_disabled = disabling.all;
        found.disabled = disabling.named;
        found.managed_only = managed_only(native, &root);
        found.plugins = enabled_plugins(native, &root);
        if let Some(position) = switches.own(&root) {
            found.own_disabled = Some(position);
        } else if let Some(hooks) = hooks {
            let beside = native.settings.keys.beside_events;
            switches.warn_of_misplaced(&hooks, beside);
            let events = hooks.values().filter(|value| !beside.contains(&value.name()));
            events.for_each(|value| read_event(&context, &value, &mut found));
        }
    }
    let mut diagnostics = document.into_diagnostics();
    diagnostics.extend(keep_if_unread(native, (bytes, file), &mut found));
    diagnostics.extend(found.cut(file));
    (found, diagnostics)
}

/// Keeps the hooks of a file with hookyard that the agent does not read.
fn keep_if_unread(
    native: &NativeDialect,
    (bytes, file): (&[u8], &Path),
    found: &mut SettingsHooks,
) -> Option<Diagnostic> {
    let why = native.why_unread(str::from_utf8(bytes).ok()?, file)?;
    for SettingsHook { hook, .. } in &mut found.hooks {
        hook.execution.host_runs = HostRuns::NotRead;
    }
    let warning = Diagnostic::of_file(Severity::Warning, "unread-by-agent", file, format!("this file {why}"));
    Some(warning.help("until then, its hooks run through hookyard alone"))
}

/// What a settings file says that keeps its agent from running a hook of the file by this name, as a phrase.
#[cfg(all(feature = "cli", feature = "daemon"))]
pub(crate) fn disabling_phrase(
    native: &NativeDialect,
    (text, file): (&str, &Path),
    hook: &str,
) -> Option<String> {
    let json = json_of(native, text.as_bytes(), file);
    let document = Document::parse_json(&json, file).ok()?;
    let root = document.root()?;
    let hooks = root.get("hooks").and_then(|value| value.mapping());
    let syntax = native.settings.disable;
    let switches = syntax.read(&root, hooks.as_ref());
    if switches.all.is_some_and(|(off, _)| off) || syntax.own(&root).is_some() {
        return Some(syntax.phrase());
    }
    let mut shared = native.settings.shared.iter().filter(|word| word.is_switch());
    let value = shared.find_map(|word| hooks.as_ref()?.get(word.key));
    if value.is_some_and(|value| value.flag() == Some(false)) {
        return Some(super::disable::NOT_ENABLED.to_owned());
    }
    switches.named.iter().any(|(name, _)| name == hook).then(|| format!("`disabled` names `{hook}`"))
}

/// The text of a settings file without what its agent allows beside JSON.
fn json_of<'b>(native: &NativeDialect, bytes: &'b [u8], file: &Path) -> Cow<'b, [u8]> {
    match str::from_utf8(bytes).map(|text| native.plain_json(text, file)) {
        Ok(Cow::Owned(text)) => Cow::Owned(text.into_bytes()),
        _ => Cow::Borrowed(bytes),
    }
}

/// Reads a file with hooks of a plugin. Its switches and defaults count for nothing: only settings files have them.
pub(crate) fn read_plugin_hooks(
    native: &'static NativeDialect,
    (bytes, file): (&[u8], &Path),
    scope: Scope,
    plugin: &Arc<PluginSource>,
    rules: &HookRules,
    resolver: &dyn ReferenceLookup,
) -> (SettingsHooks, Vec<Diagnostic>) {
    let mut document = match Document::parse_json(bytes, file) {
        Ok(document) => document,
        Err(diagnostic) => return (SettingsHooks::default(), vec![*diagnostic]),
    };
    if plugin.replaces_texts {
        document.replace_texts(&[], &mut |text, _| with_values(text, plugin).map(|text| Rc::from(&*text)));
    }
    let context = FileContext { native, file, scope, rules, resolver, plugin: Some(plugin), agent: None };
    let mut found = SettingsHooks::default();
    if let Some(hooks) = document.root().and_then(|root| root.get("hooks")?.mapping()) {
        let is_event = |value: &Value<'_>| !native.settings.keys.beside_events.contains(&value.name());
        hooks.values().filter(is_event).for_each(|value| read_event(&context, &value, &mut found));
    }
    found.shared = SharedSettings::default();
    let mut diagnostics = document.into_diagnostics();
    diagnostics.extend(found.cut(file));
    (found, diagnostics)
}

/// The plugins that a file enables or disables.
fn enabled_plugins(native: &NativeDialect, root: &Mapping<'_>) -> Vec<(String, bool, KeyPosition)> {
    let PluginFormat::Plugins(files) = native.settings.plugins else { return Vec::new() };
    let Some(plugins) = root.get(files.enabled).and_then(|value| value.mapping()) else { return Vec::new() };
    let enabled = plugins.values().take(MOST_HOOKS).filter_map(|value| {
        // In place of `true`, there may be a list of the versions that are wanted.
        let is_enabled = value.is_list() || value.flag()?;
        Some((value.name().to_owned(), is_enabled, KeyPosition::of_key(&value)))
    });
    enabled.collect()
}

/// A warning about a TOML file with hooks, which are not read.
pub(crate) fn unread_hooks(bytes: &[u8], file: &Path) -> Option<Diagnostic> {
    let text = String::from_utf8_lossy(bytes);
    let mut is_in_table = false;
    let line = text.lines().position(|line| {
        let line = line.trim_start();
        let is_header = line.starts_with('[');
        let keys = line.trim_start_matches(['[', ' ']);
        let rest = keys.strip_prefix("hooks").filter(|_| is_header || !is_in_table);
        is_in_table |= is_header;
        // `hooks.state` is what the agent keeps about hooks.
        rest.is_some_and(|rest| {
            let rest = rest.trim_start();
            rest.starts_with(['.', ']', '=']) && !rest[1..].trim_start().starts_with("state")
        })
    })?;
    let message = "hooks in this file run under the agent alone: hookyard does not read them";
    let diagnostic = Diagnostic::of_file(Severity::Warning, "unread-hooks", file, message);
    let diagnostic = diagnostic.help("move them to `hooks.json` beside it, in the shape of JSON");
    Some(Diagnostic { line: line + 1, column: 1, ..diagnostic })
}

/// Where a file leaves hooks to the administrator alone, if it does.
fn managed_only(native: &NativeDialect, root: &Mapping<'_>) -> Option<KeyPosition> {
    let value = root.get(native.settings.managed_only?)?;
    switch(&value).and_then(|(only, position)| only.then_some(position))
}

pub(super) fn read_event(context: &FileContext<'_>, value: &Value<'_>, found: &mut SettingsHooks) {
    let name = value.name();
    let words = context.native.settings.shared;
    if let Some(SharedKey { setting, .. }) = words.iter().find(|word| word.key == name) {
        return found.shared.read(*setting, value, context.rules.max_timeout);
    }
    let Some((native, row)) = context.native.configured(name) else {
        let words: Vec<&str> = words.iter().map(|word| word.key).collect();
        if let Some(near) = nearest(name, &words) {
            return unknown_setting(value, near);
        }
        let known: Vec<&str> = context.native.rows.iter().map(|row| row.name).collect();
        let message = format!("unknown event `{}`; its hooks are not loaded", shorten(name, 64));
        return value.error_at(value.key_span(), "unknown-event", message, did_you_mean(name, &known));
    };
    let context = &FileContext { native, ..*context };
    let Some(entries) = value.list() else { return };
    found.events.push((row.name, KeyPosition::of_key(value)));
    for (number, entry) in (1..).zip(&entries) {
        let written = hooks_in(entry);
        found.written += written;
        if found.written > MOST_HOOKS {
            found.left_out += written;
            continue;
        }
        let position = found.hooks.len();
        found.hooks.extend(entry::read(context, row, number, position, entry));
    }
}

/// How many hooks an entry has, and at least one.
fn hooks_in(entry: &Value<'_>) -> usize {
    let hooks = entry.as_mapping().and_then(|entry| entry.get("hooks"));
    hooks.filter(Value::is_list).and_then(|hooks| hooks.list()).map_or(1, |hooks| hooks.len().max(1))
}

impl SettingsHooks {
    /// Enforces the bounds of a file. Returns an error for each that it exceeds, and a note if its hooks are switched off.
    pub(super) fn cut(&mut self, file: &Path) -> Vec<Diagnostic> {
        let mut errors = Vec::new();
        if let Some(KeyPosition { line, column }) = self.own_disabled {
            let message = "the file switches its own hooks off";
            let note = Diagnostic::of_file(Severity::Info, "switched-off", file, message);
            errors.push(Diagnostic { line, column, ..note });
        }
        if self.left_out > 0 {
            let message = format!(
                "the file has {} hooks; it may have {MOST_HOOKS}, so {} of them are left out",
                self.written, self.left_out
            );
            let error = Diagnostic::of_file(Severity::Error, "too-many-hooks", file, message);
            errors.push(error.help(NEEDLESS));
        }
        if self.disabled.len() > MOST_HOOKS {
            let message = format!(
                "the file switches {} hooks off by name; only the first {MOST_HOOKS} names count",
                self.disabled.len()
            );
            let error = Diagnostic::of_file(Severity::Error, "too-many-names", file, message);
            errors.push(error.help(NEEDLESS));
            self.disabled.truncate(MOST_HOOKS);
        }
        errors
    }
}
