//! `add`: put the hook files of a guard pack into a workspace. Runs nothing.

mod installed;
mod listing;
mod pack_copy;
mod packs;
mod report;

use std::{fs::DirBuilder, os::unix::fs::DirBuilderExt, path::Path};

use clap::{
    Args,
    builder::{PossibleValue, PossibleValuesParser, TypedValueParser},
};

use super::{
    exit::{CliError, CliResult},
    flags::{JsonFlag, WorkspaceFlags},
    paths::display_path,
    screen::Screen,
    settings::{VariablePolicy, settings_of},
    trust,
    workspace::LocatedWorkspace,
};
use crate::{
    config::{LoadedWorkspace, TrustPolicy, user_workspace},
    handler::command::is_inside_hook,
};
use pack_copy::{CopyChange, EditedCopies, PackCopy};
use packs::{GuardPack, PACKS};

const FOOTER: &str = "\
Examples:
  hookyard add --list
  hookyard add dangerous-commands git-safety
  hookyard add network --replace
  hookyard add dangerous-commands --user

With `--user` the files are below `~/.config/hookyard` and apply in every workspace of this user, before its own hooks.

A pack is a few hook files of rules, which hookyard evaluates itself: nothing is started. They are trusted when they are \
added. What a rule leaves alone stands under `exceptions` in its file, after which `hookyard trust` asks again. A copy \
that somebody has edited otherwise, or that another version of hookyard has written, is left as it is, unless \
`--replace` is given, which keeps the exceptions.

Exit codes: 0 the pack is there, as this version has it, and in force; 1 it is not.";

/// Add a pack of guards
///
/// Writes its hook files into `.openharness/hooks/` of the workspace, or of the user. Adding it twice changes nothing.
#[derive(Debug, Args)]
#[command(after_help = FOOTER)]
pub(super) struct AddCommand {
    /// Pack to add; several are possible
    #[arg(value_name = "PACK", required_unless_present = "list", value_parser = names())]
    packs: Vec<&'static str>,

    /// List the packs, and which of them the workspace has
    #[arg(long, conflicts_with_all = ["packs", "replace"])]
    list: bool,

    /// Add it for every workspace of this user: the files are written below `~/.config/hookyard`
    #[arg(long, conflicts_with = "workspace")]
    user: bool,

    /// Replace copies that were edited, or are of another version; their exceptions stay
    #[arg(long)]
    replace: bool,

    #[command(flatten)]
    workspace: WorkspaceFlags,

    #[command(flatten)]
    output: JsonFlag,
}

fn names() -> impl TypedValueParser<Value = &'static str> {
    let values = PACKS.iter().map(|pack| PossibleValue::new(pack.name).help(pack.about));
    PossibleValuesParser::new(values)
        .try_map(|name| packs::pack(&name).map(|pack| pack.name).ok_or("no pack"))
}

impl AddCommand {
    pub(super) fn run(self, screen: &Screen) -> CliResult {
        let workspace = self.workspace_flags()?;
        if self.list {
            return listing::show(&workspace, self.output, screen);
        }
        if is_inside_hook() {
            let help = "run `hookyard add` yourself, outside the agent";
            return Err(CliError::with_help("a hook cannot add hooks", help));
        }
        if let Some(directory) = workspace.workspace.as_deref().filter(|_| self.user) {
            make(directory)?;
        }
        let (found, _) = LocatedWorkspace::find_or_current_dir(&workspace, screen)?;
        let mut wanted: Vec<&GuardPack> = Vec::new();
        for pack in self.packs.iter().filter_map(|name| packs::pack(name)) {
            if !wanted.iter().any(|other| other.name == pack.name) {
                wanted.push(pack);
            }
        }
        let mut copies = Vec::new();
        for pack in wanted {
            for file in pack.files {
                copies.push(PackCopy::read(pack, file, &found.root)?);
            }
        }
        refuse_other_hooks(&copies, &found.load())?;
        let is_asked = found.settings.trust == TrustPolicy::Enforce;
        let trusted = if is_asked { trust::trusted_hooks(&found)? } else { Vec::new() };
        let edited = if self.replace { EditedCopies::Replaced } else { EditedCopies::Left };
        for copy in &mut copies {
            copy.write(edited, &trusted)?;
        }
        if is_asked {
            agree(&found, &copies)?;
        }
        report::show(&copies, &found, self.output, screen)
    }

    /// The workspace that is meant: with `--user`, the directory whose hooks apply in all of this user's.
    fn workspace_flags(&self) -> Result<WorkspaceFlags, CliError> {
        let mut flags = self.workspace.clone();
        if self.user {
            let (settings, _) = settings_of(&flags.settings, VariablePolicy::Ignored)?;
            let directory = user_workspace(&settings, &|name| std::env::var(name).ok());
            let unknown = || CliError::with_help("the home directory is not known", "name it with `--home`");
            flags.workspace = Some(directory.ok_or_else(unknown)?);
        }
        Ok(flags)
    }
}

/// Makes a directory for this user alone, with those above it.
fn make(directory: &Path) -> Result<(), CliError> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(directory);
    made.map_err(|error| CliError::new(format!("cannot make {}: {error}", display_path(directory))))
}

/// Of two hooks of one name, neither would be loaded.
fn refuse_other_hooks(copies: &[PackCopy], loaded: &LoadedWorkspace) -> Result<(), CliError> {
    for copy in copies {
        let is_other = |file: &Path| file != copy.place.path;
        let own = loaded.hooks.iter().filter(|hook| hook.distance() == 0);
        let twin = own.filter(|hook| hook.name.as_str() == copy.file.hook);
        if let Some(file) = twin.filter_map(|hook| hook.source.file.as_deref()).find(|file| is_other(file)) {
            let what = format!(
                "a hook `{}` is in {} already, and of two with one name neither runs",
                copy.file.hook,
                display_path(file)
            );
            return Err(CliError::with_help(what, "rename or remove that one; nothing was changed"));
        }
    }
    Ok(())
}

/// Trusts what the program has brought itself.
fn agree(found: &LocatedWorkspace, copies: &[PackCopy]) -> Result<(), CliError> {
    let own: Vec<(&str, &str)> =
        copies.iter().filter_map(|copy| Some((copy.file.hook, copy.own_text.as_deref()?))).collect();
    let is_new = |copy: &&PackCopy| matches!(copy.change, CopyChange::Written | CopyChange::Replaced);
    let written: Vec<&Path> = copies.iter().filter(is_new).map(|copy| copy.place.path.as_path()).collect();
    trust::agree_to_own(found, &own, &written)
}
