//! `disconnect`: take hookyard out of the settings of an agent.

use clap::Args;

use super::{
    super::{
        escape,
        exit::{CliError, CliResult, Exit},
        paths::display_path,
        screen::Screen,
        table::Page,
    },
    agents::AgentProfile,
    change::settings_in,
    place::{AgentName, ConnectionFlags, reload, step, store_of},
    service::{DaemonEnd, DaemonServices},
    settings_file::{AgentSettingsFile, fault_point},
};
use crate::config::{AgentConnection, ConnectionStore, adopted_file, sha256};

const FOOTER: &str = "\
Examples:
  hookyard disconnect claude
  hookyard disconnect gemini --project ~/projects/shop --dry-run

If nobody has changed the settings file since `connect`, it gets the bytes that it had before. Otherwise only the \
entries of hookyard are removed from it. Hooks that `connect --adopt` has moved out of it are put back.

Exit codes: 0 the agent is not connected any more, or was not; 1 its settings could not be changed.";

/// Remove hookyard from the settings of an agent
#[derive(Debug, Args)]
#[command(after_help = FOOTER)]
pub(in crate::cli) struct DisconnectCommand {
    #[command(flatten)]
    connection: ConnectionFlags,
}

/// What becomes of the settings file.
#[derive(Debug, PartialEq, Eq)]
enum Undoing {
    /// It has no entries of hookyard.
    Nothing,
    /// It gets the bytes that it had.
    Restore(Vec<u8>),
    /// It did not exist.
    Remove,
    /// It was changed since: only the entries go.
    Rewrite(String),
}

impl DisconnectCommand {
    pub(in crate::cli) fn run(self, screen: &Screen) -> CliResult {
        let ConnectionFlags { agent: AgentName(agent), place, dry_run, sockets, settings } = &self.connection;
        let (settings, store) = store_of(settings, screen)?;
        let place = place.of(agent, &settings)?;
        let lock = if *dry_run { None } else { Some(store.lock()?) };
        let mut record = store.read()?;
        let file = AgentSettingsFile::read(&place.file, &place.boundary)?;
        let moved = AgentSettingsFile::read(&adopted_file(&place.file), &place.boundary)?;
        let known = record.connections.iter().position(|known| known.is_of(agent.dialect, &file.path));
        let undoing = undoing(agent, (&file, &moved), known.map(|at| &record.connections[at]), &store)?;
        let page = report(&undoing, agent, &file, screen);
        if lock.is_none() {
            screen.print(&format!("{page}Nothing was changed (`--dry-run`)."))?;
            return Ok(Exit::Done);
        }
        file.remove_leftover();
        moved.remove_leftover();
        match undoing {
            Undoing::Nothing => {}
            Undoing::Restore(bytes) => file.replace(&bytes)?,
            Undoing::Remove => file.remove()?,
            Undoing::Rewrite(text) => file.replace(text.as_bytes())?,
        }
        fault_point("restored");
        // Nobody reads it now.
        if moved.bytes.is_some() {
            moved.remove()?;
        }
        let mut last = None;
        if let Some(at) = known {
            if let Some(made) = record.connections.remove(at).made {
                file.remove_directories(&made);
            }
            last = record.connections.is_empty().then(|| record.daemon.take()).flatten();
            store.write(&record)?;
            store.remove_unused_backups(&record);
        }
        screen.print(&page)?;
        let ended = match last {
            Some(daemon) => {
                let search_path = std::env::var_os("PATH").unwrap_or_default();
                DaemonServices::find(&settings, &search_path).end(&daemon, sockets, screen)?
            }
            None => DaemonEnd::GoesOn,
        };
        if ended == DaemonEnd::GoesOn {
            reload(sockets, screen);
        }
        Ok(Exit::Done)
    }
}

fn undoing(
    agent: &AgentProfile,
    (file, moved): (&AgentSettingsFile, &AgentSettingsFile),
    known: Option<&AgentConnection>,
    store: &ConnectionStore,
) -> Result<Undoing, CliError> {
    let adopted = moved.bytes.as_deref().map(sha256);
    if let (Some(bytes), Some(known)) = (&file.bytes, known)
        && known.written == sha256(bytes)
        && known.adopted == adopted
    {
        let Some(digest) = known.before.as_deref() else { return Ok(Undoing::Remove) };
        // Without the backup, the entries can still be removed.
        if let Ok(before) = store.backup(digest) {
            return Ok(Undoing::Restore(before));
        }
    }
    if file.bytes.is_none() && adopted.is_none() {
        return Ok(Undoing::Nothing);
    }
    let text = settings_in(agent, file)?;
    let before = text.text();
    text.remove_entries(agent);
    if adopted.is_some() {
        text.put_back(&settings_in(agent, moved)?);
    }
    let after = text.text();
    Ok(if after == before { Undoing::Nothing } else { Undoing::Rewrite(after) })
}

fn report(undoing: &Undoing, agent: &AgentProfile, file: &AgentSettingsFile, screen: &Screen) -> String {
    let mut page = Page::default();
    let name = display_path(&file.path);
    let done = match undoing {
        Undoing::Nothing => format!("{name} has no entry of hookyard"),
        Undoing::Restore(_) => format!("{name} is as it was before `hookyard connect {}`", agent.dialect),
        Undoing::Remove => format!("{name} is removed: it did not exist before"),
        Undoing::Rewrite(_) => format!("{name} was changed since: only the entries of hookyard are removed"),
    };
    step(&mut page, screen, "settings", &escape::line(&done));
    if *undoing != Undoing::Nothing {
        step(&mut page, screen, "note", &format!("sessions of {} that run keep their settings", agent.title));
    }
    page.into_text()
}
