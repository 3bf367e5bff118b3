//! Puts a rule in the place of a command: both are never in force, and never neither.

use std::{collections::BTreeMap, fs, path::Path};

use super::{
    super::{
        connect::AgentSettingsFile,
        escape,
        exit::CliError,
        handlers::{
            HandlersEdit,
            edit::{HandlerChange, key_text},
        },
        new_file::write_new,
        paths::display_path,
        screen::Screen,
        trust::{NewTrust, agree_to_new},
        workspace::LocatedWorkspace,
    },
    place::RulePlace,
    report::back_up,
    rules::RuleProposal,
};
use crate::{
    config::TrustPolicy,
    model::{Handler, HookName, io_reason},
};

/// Where rules are put.
pub(super) struct RuleAdoption<'a> {
    /// The workspace, with the trust that its daemon has.
    pub(super) found: &'a mut LocatedWorkspace,
    /// The settings file.
    pub(super) config: &'a Path,
    pub(super) screen: &'a Screen,
}

impl RuleAdoption<'_> {
    /// Writes a rule where it would stand. What cannot be in force at once is taken back.
    ///
    /// Returns an error if nothing was changed in the end.
    pub(super) fn adopt(&mut self, proposal: &mut RuleProposal) -> Result<(), CliError> {
        match &proposal.place {
            RulePlace::ByHand(_) => return Ok(()),
            RulePlace::InFile { before, path } => {
                let file = AgentSettingsFile::read(path, &self.found.root)?;
                if file.bytes.as_deref() != Some(before.as_bytes()) {
                    return Err(CliError::new(format!("{} has changed meanwhile", display_path(path))));
                }
                file.replace(proposal.text().as_bytes())?;
                if let Err(error) = self.in_force(&proposal.hook, path) {
                    AgentSettingsFile::read(path, &self.found.root)?.replace(before.as_bytes())?;
                    return Err(error);
                }
            }
            RulePlace::Instead { path, key } => {
                write_new(path, proposal.text()).map_err(|error| {
                    CliError::new(format!("{} cannot be written: {}", display_path(path), io_reason(&error)))
                })?;
                let name = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default().to_owned();
                let put = self.in_force(&name, path).and_then(|()| self.replace(key, &proposal.hook, &name));
                if let Err(error) = put {
                    fs::remove_file(path).ok();
                    return Err(error);
                }
            }
        }
        proposal.written = true;
        Ok(())
    }

    /// Has the rule trusted where that is needed.
    ///
    /// Returns an error if it is not in force then.
    fn in_force(&self, name: &str, file: &Path) -> Result<(), CliError> {
        let is_given = match self.found.settings.trust {
            TrustPolicy::Off => true,
            TrustPolicy::Enforce => {
                let hook_name = HookName::new(name).is_ok();
                hook_name && matches!(agree_to_new(self.found, name, &[file], self.screen)?, NewTrust::Given)
            }
        };
        let loaded = self.found.load();
        let hook = loaded.hooks.iter().find(|hook| hook.name.as_str() == name);
        let is_rule = hook.is_some_and(|hook| matches!(hook.handler, Handler::Rule(_)) && hook.enabled);
        let is_trusted = hook.is_some_and(|hook| hook.trust.approval().is_some());
        if is_rule && is_trusted && is_given {
            return Ok(());
        }
        let what =
            format!("the rule of `{}` would not be in force, so nothing was changed", escape::line(name));
        let help = "a person has to agree to it: call this on a terminal, with every other hook of the workspace trusted";
        Err(CliError::with_help(what, help))
    }

    /// Has the former hook not run where the rule is in force.
    fn replace(&mut self, key: &str, name: &str, rule: &str) -> Result<(), CliError> {
        let by_hand = format!("handlers:\n  {}:\n    replaced_by: {}\n", key_text(key), key_text(rule));
        self.found.settings.handlers.entry(key.to_owned()).or_default().replaced_by = Some(rule.to_owned());
        let changes = BTreeMap::from([(key.to_owned(), HandlerChange::ReplacedBy(rule.to_owned()))]);
        let is_off = |found: &LocatedWorkspace| {
            found.load().hooks.iter().filter(|hook| hook.name.as_str() == name).all(|hook| !hook.enabled)
        };
        if !is_off(self.found) {
            let what = format!(
                "`{}` cannot be switched off by the settings, so nothing was changed",
                escape::line(name)
            );
            return Err(CliError::with_help(what, "remove it from its own file, and write the rule by hand"));
        }
        let Some(edit) = HandlersEdit::of(self.config, &changes, &by_hand)? else { return Ok(()) };
        if let Some(former) = &edit.file.bytes {
            back_up(&edit.file.path, former)?;
        }
        edit.write()
    }
}
