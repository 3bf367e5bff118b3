//! `add --list`: the packs, and which of them a workspace has.

use std::path::Path;

use serde::Serialize;

use super::{
    super::{
        exit::{CliResult, Exit},
        flags::{JsonFlag, WorkspaceFlags},
        screen::Screen,
        settings::{VariablePolicy, settings_of},
        table::TextTable,
        workspace::nearest_above,
    },
    installed::CopyState,
    pack_copy::PackCopy,
    packs::{GuardPack, PACKS},
};

#[derive(Debug, Serialize)]
struct PackRow {
    name: &'static str,
    about: &'static str,
    hooks: Vec<&'static str>,
    /// What the workspace has; nothing where there is none.
    workspace: Option<&'static str>,
}

/// Lists the packs.
pub(super) fn show(flags: &WorkspaceFlags, output: JsonFlag, screen: &Screen) -> CliResult {
    let (settings, _) = settings_of(&flags.settings, VariablePolicy::Ignored)?;
    let workspace = match &flags.workspace {
        Some(given) => Some(given.clone()),
        None => std::env::current_dir().ok().and_then(|current| nearest_above(&current, &settings)),
    };
    let rows = PACKS.iter().map(|pack| PackRow {
        name: pack.name,
        about: pack.about,
        hooks: pack.files.iter().map(|file| file.hook).collect(),
        workspace: workspace.as_deref().map(|root| state(pack, root).as_str()),
    });
    let rows: Vec<PackRow> = rows.collect();
    if output.json {
        screen.print_json(&rows)?;
        return Ok(Exit::Done);
    }
    let mut table = TextTable::new(&["pack", "workspace", "guards against"], screen.out.paint);
    for row in rows {
        let word = |state: Option<&str>| state.filter(|state| *state != "absent").unwrap_or("-").to_owned();
        table.add([row.name.to_owned(), word(row.workspace), row.about.to_owned()]);
    }
    screen.print(&table.render())?;
    Ok(Exit::Done)
}

/// What a directory has of a pack: what is least right of its files.
fn state(pack: &'static GuardPack, root: &Path) -> CopyState {
    let states = pack.files.iter().map(|file| {
        // What cannot be read is none of the pack's files.
        PackCopy::read(pack, file, root).map_or(CopyState::Edited, |copy| copy.state)
    });
    let states: Vec<CopyState> = states.collect();
    let is = |state| states.contains(&state);
    match () {
        () if states.iter().all(|state| *state == CopyState::Absent) => CopyState::Absent,
        () if is(CopyState::Edited) || is(CopyState::Absent) => CopyState::Edited,
        () if is(CopyState::OtherVersion) => CopyState::OtherVersion,
        () => CopyState::Current,
    }
}
