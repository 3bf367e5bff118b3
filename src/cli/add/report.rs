//! What `add` has done, and whether the guards are in force.

use serde::Serialize;

use super::{
    super::{
        escape,
        exit::{CliError, CliResult, Exit},
        flags::JsonFlag,
        paths::display_path,
        screen::Screen,
        table::Page,
        workspace::LocatedWorkspace,
    },
    installed::CopyState,
    pack_copy::{CopyChange, PackCopy},
};
use crate::config::LoadedWorkspace;

/// The result as JSON.
#[derive(Debug, Serialize)]
struct AddReport<'a> {
    workspace: String,
    files: Vec<AddedFile<'a>>,
}

#[derive(Debug, Serialize)]
struct AddedFile<'a> {
    pack: &'a str,
    hook: &'a str,
    file: String,
    change: &'static str,
    /// Whether its guard judges events now.
    in_force: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    why_not: Option<String>,
}

/// Shows what was done. The exit code says whether the packs are there as they should be, and in force.
pub(super) fn show(
    copies: &[PackCopy],
    found: &LocatedWorkspace,
    output: JsonFlag,
    screen: &Screen,
) -> CliResult {
    let loaded = found.load();
    let files: Vec<AddedFile<'_>> = copies.iter().map(|copy| added(copy, &loaded, found)).collect();
    let is_done = files.iter().all(|file| file.in_force) && copies.iter().all(PackCopy::is_as_wanted);
    if output.json {
        screen.print_json(&AddReport { workspace: found.root.to_string_lossy().into_owned(), files })?;
    } else {
        print(copies, &files, screen)?;
    }
    Ok(if is_done { Exit::Done } else { Exit::Failed })
}

fn added<'a>(copy: &'a PackCopy, loaded: &LoadedWorkspace, found: &LocatedWorkspace) -> AddedFile<'a> {
    let why_not = why_not(copy, loaded, found);
    AddedFile {
        pack: copy.pack,
        hook: copy.file.hook,
        file: copy.place.path.to_string_lossy().into_owned(),
        change: match copy.change {
            CopyChange::Written => "written",
            CopyChange::Replaced => "replaced",
            CopyChange::Unchanged => "unchanged",
            CopyChange::Left => copy.state.as_str(),
        },
        in_force: why_not.is_none(),
        why_not,
    }
}

/// Why a guard does not judge events.
fn why_not(copy: &PackCopy, loaded: &LoadedWorkspace, found: &LocatedWorkspace) -> Option<String> {
    let own = |file: &std::path::Path| file == copy.place.path;
    let hook = loaded.hooks.iter().find(|hook| hook.source.file.as_deref().is_some_and(own));
    let Some(hook) = hook else {
        let about = loaded.diagnostics.iter().find(|diagnostic| own(&diagnostic.file));
        let about = about.or_else(|| loaded.diagnostics.iter().find(|diagnostic| diagnostic.skipped));
        return Some(match about {
            Some(diagnostic) => format!("it is not loaded: {}", escape::line(&diagnostic.message)),
            None => format!("hooks of this kind are not loaded here; see `hookyard check{}`", found.flag()),
        });
    };
    match (hook.enabled, hook.trust.refusal()) {
        (false, _) => Some("it is disabled".to_owned()),
        (true, Some(_)) => Some(format!("it is not trusted: `hookyard trust{}`", found.flag())),
        (true, None) => None,
    }
}

fn print(copies: &[PackCopy], files: &[AddedFile<'_>], screen: &Screen) -> Result<(), CliError> {
    let mut page = Page::default();
    for (copy, file) in copies.iter().zip(files) {
        let place = display_path(&copy.place.path);
        let (word, more) = match (copy.change, copy.state) {
            (CopyChange::Written, _) => ("wrote", ""),
            (CopyChange::Replaced, _) => ("wrote", ", in the place of the copy that was there"),
            (CopyChange::Unchanged, _) => ("kept ", ", which is as it should be"),
            (CopyChange::Left, CopyState::OtherVersion) => {
                ("kept ", ", a copy of another version of hookyard; `--replace` renews it")
            }
            (CopyChange::Left, _) => {
                ("kept ", ", which was edited; `--replace` puts the pack's in its place")
            }
        };
        page.line(&format!("{word} {place}{more}"));
        if let Some(why) = &file.why_not {
            page.line(&format!("      {}", screen.out.paint.red(&format!("not in force: {why}"))));
        }
    }
    screen.print(&page.into_text())
}
