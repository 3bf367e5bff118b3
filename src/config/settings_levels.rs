//! How the levels of an agent's settings files are merged: a file adds hooks to those of higher levels, and its
//! switches and defaults reach the hooks of its own level and of lower ones.

use std::path::{Path, PathBuf};

use super::own_settings::{Switch, SwitchExceptions};
use crate::{
    dialect::{
        HookRules, KeyPosition, NativeDialect, ReferenceLookup, SettingsHook, SettingsHooks, SharedSettings,
    },
    model::{Diagnostic, Dialect, Handler, Hook, HookName, HostRuns, Level, Scope, Severity},
};

/// What the name of a file with adopted hooks ends with.
const ADOPTED_EXTENSION: &str = "hookyard.json";

/// The flag of `relay` in the entries of a settings file whose hooks are adopted.
pub(crate) const ADOPTED_FLAG: &str = "--adopted";

/// The file beside a settings file with the hooks that `connect --adopt` has moved there. The agent does not read it.
pub(crate) fn adopted_file(settings: &Path) -> PathBuf {
    settings.with_extension(ADOPTED_EXTENSION)
}

/// The hooks and switches of one settings file.
pub(super) struct SettingsLevel {
    pub(super) scope: Scope,
    pub(super) file: PathBuf,
    pub(super) found: SettingsHooks,
}

impl SettingsLevel {
    /// Whether entries of hookyard in the file say that its hooks are adopted.
    pub(super) fn is_adopted(&self) -> bool {
        self.found.hooks.iter().any(|configured| is_adopting(&configured.hook))
    }

    /// Has hookyard run these hooks in place of the agent, under the names that they had in its settings file: settings of
    /// hookyard may have them.
    pub(super) fn adopt_from(&mut self, settings: &mut Self) {
        for SettingsHook { hook, .. } in &mut self.found.hooks {
            hook.execution.host_runs = HostRuns::BeforeAdoption;
        }
        for SettingsHook { hook, .. } in &mut settings.found.hooks {
            if let Ok(name) = HookName::new(format!("{}.kept", hook.name)) {
                hook.name = name;
            }
        }
    }

    fn level(&self) -> Level {
        self.scope.level(0)
    }

    /// Which of several files decides for a hook: the administrator's, and otherwise the most specific one.
    fn weight(&self) -> (bool, Level, Scope) {
        (self.scope == Scope::Managed, self.level(), self.scope)
    }

    fn switch(&self, key: &str, position: KeyPosition) -> Switch {
        Switch::new(self.level(), key, &self.file, position)
    }
}

/// Whether a hook is an entry of hookyard that says so.
fn is_adopting(hook: &Hook) -> bool {
    let Handler::Command(command) = &hook.handler else { return false };
    is_adopting_relay(&command.line.in_a_shell())
}

/// Whether a command passes events to hookyard, and says that the hooks of its file are adopted.
pub(crate) fn is_adopting_relay(command: &str) -> bool {
    let flags = command.split_once(" relay ").map(|(_, flags)| flags);
    flags.is_some_and(|flags| flags.split_whitespace().any(|flag| flag == ADOPTED_FLAG))
}

/// A warning about hooks in a file that no settings file says to be adopted.
pub(super) fn unadopted(native: &NativeDialect, file: &Path) -> Diagnostic {
    let agent = native.name();
    let message =
        format!("the hooks in this file do not run: the settings of {agent} beside it do not say so");
    let help = format!(
        "put them back by `hookyard disconnect {agent}`, and adopt them by `hookyard connect {agent} --adopt`"
    );
    Diagnostic::of_file(Severity::Warning, "not-adopted", file, message).help(help)
}

/// A file's statement about all hooks.
struct AllStatement {
    off: bool,
    weight: (bool, Level, Scope),
    switch: Switch,
}

/// Merges the levels of a dialect, in the order of its files. The hooks of `outer` workspaces are final: they only take
/// note of switches without effect.
pub(super) fn merge(
    mut levels: Vec<SettingsLevel>,
    outer: &mut [Hook],
    native: &'static NativeDialect,
    rules: &HookRules,
    resolver: &dyn ReferenceLookup,
    exceptions: &SwitchExceptions,
) -> (Vec<Hook>, Vec<Diagnostic>) {
    let mut diagnostics = apply_shared(&mut levels, outer, native, rules, resolver, exceptions);
    diagnostics.extend(disable_named(&mut levels, exceptions));
    let statements = levels.iter().filter_map(|level| {
        let (off, position) = level.found.all_disabled?;
        Some(AllStatement {
            off,
            weight: level.weight(),
            switch: level.switch(native.disable_key(), position),
        })
    });
    let statements = statements.collect();
    diagnostics.extend(decide(&mut levels, outer, statements, native, exceptions));
    diagnostics.extend(leave_to_managed(&mut levels, native, exceptions));
    let hooks = levels.into_iter().flat_map(|level| level.found.hooks);
    (hooks.map(|configured| configured.hook).collect(), diagnostics)
}

/// Every hook of the levels.
fn all_hooks(levels: &mut [SettingsLevel]) -> impl Iterator<Item = &mut Hook> {
    levels.iter_mut().flat_map(|level| &mut level.found.hooks).map(|configured| &mut configured.hook)
}

/// Applies the settings that files make for all hooks. For a hook, a more specific file overrides a less specific
/// one, up to the hook's own level; lower levels can only make failures count for more. A variable has the authority of
/// the workspace, whose files can set variables of an agent: it overrides the files for hooks of the workspace.
fn apply_shared(
    levels: &mut [SettingsLevel],
    outer: &mut [Hook],
    native: &'static NativeDialect,
    rules: &HookRules,
    resolver: &dyn ReferenceLookup,
    exceptions: &SwitchExceptions,
) -> Vec<Diagnostic> {
    let Some(file) = levels.last().map(|level| level.file.clone()) else { return Vec::new() };
    let (variables, mut diagnostics) =
        SharedSettings::from_variables(native.shared_keys(), &file, rules.max_timeout, resolver);
    let files: Vec<_> = levels.iter().map(|level| (level.level(), level.found.shared.clone())).collect();
    for level in levels.iter_mut() {
        let own = level.level();
        let reaching = files.iter().filter(|(from, _)| *from <= own).map(|(_, shared)| shared);
        let common = reaching.fold(SharedSettings::default(), SharedSettings::overridden_by);
        let lower = files.iter().filter(|(from, _)| *from > own).map(|(_, shared)| shared);
        let common = lower.fold(common, SharedSettings::tightened_by);
        let is_of_workspace = own == Scope::Project.level(0);
        let common =
            if is_of_workspace { common.overridden_by(&variables) } else { common.tightened_by(&variables) };
        level.found.hooks.iter_mut().for_each(|configured| common.apply(configured));
    }
    let mut statements: Vec<_> = levels.iter().filter_map(enabled_statement).collect();
    if let (Some((off, position)), Some(name)) = (variables.all_disabled(), native.enabled_variable()) {
        let switch = Switch::new(Scope::Project.level(0), format!("{name}=false"), &file, position);
        statements.push(AllStatement { off, weight: (true, Level::Managed, Scope::Managed), switch });
    }
    diagnostics.extend(decide(levels, outer, statements, native, exceptions));
    diagnostics
}

fn enabled_statement(level: &SettingsLevel) -> Option<AllStatement> {
    let (off, position) = level.found.shared.all_disabled()?;
    Some(AllStatement { off, weight: level.weight(), switch: level.switch("enabled: false", position) })
}

/// Disables the hooks for which the deciding statement says so. A statement decides only for hooks of its own level
/// and of lower ones.
fn decide(
    levels: &mut [SettingsLevel],
    outer: &mut [Hook],
    mut statements: Vec<AllStatement>,
    native: &NativeDialect,
    exceptions: &SwitchExceptions,
) -> Vec<Diagnostic> {
    statements.sort_by_key(|statement| std::cmp::Reverse(statement.weight));
    for hook in all_hooks(levels) {
        let decisive = statements.iter().position(|statement| statement.switch.reaches(hook, exceptions));
        if let Some(at) = decisive.filter(|at| statements[*at].off) {
            statements[at].switch.disable(hook);
            continue;
        }
        // What another file overrides for hooks in its reach was not in vain.
        let out_of_reach = |other: &&mut AllStatement| other.off && !other.switch.reaches(hook, exceptions);
        let others: Vec<_> = statements.iter_mut().filter(out_of_reach).collect();
        for other in others {
            other.switch.keep(hook);
        }
    }
    for hook in outer.iter_mut().filter(|hook| hook.dialect.name() == native.name()) {
        let out_of_reach = |other: &&mut AllStatement| other.off && !other.switch.reaches(hook, exceptions);
        let others: Vec<_> = statements.iter_mut().filter(out_of_reach).collect();
        for other in others {
            other.switch.keep(hook);
        }
    }
    report(statements.iter().map(|statement| &statement.switch), native)
}

/// Disables the hooks of all other levels if the administrator's file says so.
fn leave_to_managed(
    levels: &mut [SettingsLevel],
    native: &NativeDialect,
    exceptions: &SwitchExceptions,
) -> Vec<Diagnostic> {
    let Some(key) = native.managed_only_key() else { return Vec::new() };
    let mut switches: Vec<Switch> = Vec::new();
    for level in levels.iter().filter(|level| level.scope == Scope::Managed) {
        switches.extend(level.found.managed_only.map(|position| level.switch(key, position)));
    }
    for switch in &mut switches {
        let others = all_hooks(levels).filter(|hook| hook.level() > Level::Managed);
        others.for_each(|hook| switch.apply(hook, exceptions));
    }
    report(switches.iter(), native)
}

fn report<'a>(switches: impl Iterator<Item = &'a Switch>, native: &NativeDialect) -> Vec<Diagnostic> {
    let found = switches.flat_map(|switch| [switch.effect(native.name().as_str()), switch.failure()]);
    found.flatten().collect()
}

/// Disables the hooks that some file disables by name.
fn disable_named(levels: &mut [SettingsLevel], exceptions: &SwitchExceptions) -> Vec<Diagnostic> {
    let mut switches: Vec<(String, Switch)> = Vec::new();
    for level in levels.iter() {
        let named = level.found.disabled.iter();
        switches
            .extend(named.map(|(called, position)| (called.clone(), level.switch("disabled", *position))));
    }
    for (called, switch) in &mut switches {
        let hooks = levels.iter_mut().flat_map(|level| &mut level.found.hooks);
        let named = hooks.filter(|configured| configured.aliases.contains(called));
        named.for_each(|configured| switch.apply(&mut configured.hook, exceptions));
    }
    switches.iter().filter_map(|(_, switch)| switch.failure()).collect()
}
