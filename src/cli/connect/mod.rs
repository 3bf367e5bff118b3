//! `connect`: have an agent ask hookyard about its events.

mod agents;
mod change;
mod disconnect;
mod entries;
mod on_demand;
mod place;
mod search_path;
mod service;
mod settings_file;

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use clap::{Args, ValueEnum};

pub(super) use agents::{AGENTS, AgentProfile, holds_back, is_executable};
pub(super) use disconnect::DisconnectCommand;
pub(super) use entries::{AgentEntry, AgentSettings, is_relay};
pub(super) use on_demand::{OnDemandDaemon, StartFailed};
pub(super) use place::is_below;
pub(super) use settings_file::AgentSettingsFile;

use agents::{ENTRY_TIMEOUT, InstalledAgent, RELAY_TIMEOUT, on_path};
use change::{Backup, ConnectionChange, MovedHooks, adopt, adoption_notes, own_hooks_of, settings_in};
use place::{AgentName, AgentPlace, ConnectionFlags, invalid, reload, step, store_of};
use search_path::DaemonSearchPath;
use service::DaemonServices;

use super::{
    escape,
    exit::{CliError, CliResult, Exit},
    paths::shell_quoted,
    screen::Screen,
    table::Page,
};
use crate::config::{
    ADOPTED_FLAG, ConnectionRecord, ConnectionStore, DaemonCommand, DaemonStart, adopted_file, small_relay_of,
};

const FOOTER: &str = "\
Examples:
  hookyard connect claude --dry-run
  hookyard connect claude
  hookyard connect codex
  hookyard connect claude --adopt
  hookyard connect gemini --project ~/projects/shop
  hookyard disconnect claude

It adds one entry for each event to the settings file of the agent, and changes nothing else in it: comments and \
formatting stay. A backup and a record are kept in the state directory. Running it again changes nothing.

The agent still runs the hooks of its own settings files; hookyard leaves them out for its events, so that each runs \
once. With `--adopt`, the hooks of the file are moved into another file beside it. hookyard runs them from there, in the same \
order and as the agent would. Start a new session of the agent afterwards: most agents read their settings at the start.

Exit codes: 0 the agent is connected; 1 it is not, and its settings are as they were, or no daemon answers.";

/// What is offered for command hooks that hookyard runs.
const TUNE_OFFER: &str = "finds out which of the command hooks are faster when their processes are kept warm";

/// The same for those that the agent runs itself.
const TUNE_AFTER_ADOPTION: &str = "hookyard can keep the processes of command hooks warm once it runs them: `--adopt`, \
                                   then `hookyard tune`";

/// Connect an agent: have it ask hookyard about each of its events
///
/// Connects all sessions of the user, or with `--project` those in one directory. The daemon then serves the workspaces
/// below the home directory, or the project. Finally a test event, a call of the tool Bash with `true`, is sent as the
/// agent would send it; hooks on such calls run.
#[derive(Debug, Args)]
#[command(after_help = FOOTER)]
pub(super) struct ConnectCommand {
    /// What the agent does when no daemon answers: `block` holds back prompts, tool and model calls, and permissions
    #[arg(long, value_name = "ANSWER", default_value = "block")]
    if_down: ConnectIfDown,

    /// Move the hooks of the settings file under hookyard, which runs them from then on; `disconnect` moves them back
    #[arg(long)]
    adopt: bool,

    /// Who starts the daemon
    #[arg(long, value_name = "WHO", default_value = "auto")]
    daemon: DaemonChoice,

    /// An event that gets an entry only on demand, such as `WorktreeCreate`; can be repeated
    #[arg(long, value_name = "NAME")]
    event: Vec<String>,

    /// Program in the entries; default: this one
    #[arg(long, value_name = "PATH")]
    program: Option<PathBuf>,

    #[command(flatten)]
    connection: ConnectionFlags,
}

/// What the agent does when no daemon answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ConnectIfDown {
    /// Go on without hooks
    Allow,
    /// Hold back what can be held back
    Block,
}

/// Who starts the daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum DaemonChoice {
    /// As `service` if the user's systemd answers, else as `on-demand`; as `manual` if a daemon that was started otherwise
    /// runs already
    Auto,
    /// The user's systemd, by units that are written
    Service,
    /// The first event without a daemon; the daemon ends after 30 minutes without events
    OnDemand,
    /// You
    Manual,
}

impl ConnectCommand {
    pub(super) fn run(self, screen: &Screen) -> CliResult {
        let ConnectionFlags { agent: AgentName(agent), place, dry_run, sockets, settings } = &self.connection;
        let (settings, store) = store_of(settings, screen)?;
        let place = place.of(agent, &settings)?;
        if self.adopt && !place.is_searched {
            return Err(place.out_of_sight());
        }
        let search_path = std::env::var_os("PATH").unwrap_or_default();
        let daemons_path = DaemonSearchPath::of(&search_path, &settings);
        daemons_path.note(screen);
        let installed = agent.find(&search_path);
        let services = DaemonServices::find(&settings, &search_path);
        if *dry_run {
            let record = store.read()?;
            let daemon = self.daemon((&search_path, &daemons_path), &record, &services)?;
            let change = self.change(agent, installed.as_ref(), place, &record, (daemon, &store))?;
            screen.print(&change.preview(screen))?;
            return Ok(Exit::Done);
        }
        let _lock = store.lock()?;
        let mut record = store.read()?;
        let daemon = self.daemon((&search_path, &daemons_path), &record, &services)?;
        let change = self.change(agent, installed.as_ref(), place, &record, (daemon, &store))?;
        change.file.remove_leftover();
        let changed = change.apply(&store, &mut record)?;
        screen.print(&change.report(changed, &store, &record, screen))?;
        services.start(&change.daemon, &store, screen)?;
        reload(sockets, screen);
        let exit = change::prove(
            agent,
            &change.place.test_directory(),
            &sockets.event_socket.interactive_client(),
            screen,
        )?;
        if let Some(offer) = tune_offer(&change) {
            let mut page = Page::default();
            step(&mut page, screen, "faster", &offer);
            screen.print(&page.into_text())?;
        }
        Ok(exit)
    }

    /// What it takes to connect the agent.
    fn change<'a>(
        &self,
        agent: &'static AgentProfile,
        installed: Option<&'a InstalledAgent>,
        place: AgentPlace,
        record: &ConnectionRecord,
        (daemon, store): (DaemonCommand, &ConnectionStore),
    ) -> Result<ConnectionChange<'a>, CliError> {
        let file = AgentSettingsFile::read(&place.file, &place.boundary)?;
        let text = settings_in(agent, &file)?;
        let known = record.connections.iter().find(|known| known.is_of(agent.dialect, &file.path));
        let version = installed.and_then(|installed| installed.version);
        let present = text.entries(agent);
        let mut wanted = self.event.clone();
        wanted.extend(present.iter().map(|entry| entry.event.clone()));
        wanted.extend(known.into_iter().flat_map(|known| known.events.iter().cloned()));
        self.check_events(agent)?;
        let mut notes = notes(agent, installed, &text);
        let moved = AgentSettingsFile::read(&adopted_file(&place.file), &place.boundary)?;
        let is_adopted = present.iter().any(AgentEntry::is_adopting);
        let moved_before = Some(&moved).filter(|_| is_adopted);
        let before = Backup::of(agent, &file, present.is_empty(), known, moved_before)?;
        let adopted = if is_adopted {
            let count = own_hooks_of(agent, &moved)?;
            Some(MovedHooks { file: moved, text: None, count })
        } else if self.adopt {
            let adopted = adopt(agent, &text, (&file, moved))?;
            notes.extend(adopted.is_none().then(|| "the file has no hooks to adopt".to_owned()));
            adopted
        } else {
            None
        };
        notes.extend(adoption_notes(agent, (&file, &place), adopted.is_some(), record));
        let own_hooks = text.own_hooks(agent).len();
        let entries = self.entries(agent, version, &wanted, (&daemon, store), adopted.is_some())?;
        text.set_entries(agent, &entries).map_err(|error| invalid(&file, &error))?;
        let after = text.text();
        // What was written must be what the agent reads.
        AgentSettings::read(agent, &file.path, Some(after.as_bytes()))
            .map_err(|error| invalid(&file, &error))?;
        if self.if_down == ConnectIfDown::Allow {
            notes.push("without a daemon, the agent goes on without hooks (`--if-down allow`)".to_owned());
        }
        let events = entries.into_iter().map(|entry| entry.event).collect();
        Ok(ConnectionChange {
            agent,
            installed,
            place,
            file,
            before,
            after,
            events,
            daemon,
            own_hooks,
            adopted,
            notes,
        })
    }

    /// Checks the events of `--event`.
    fn check_events(&self, agent: &AgentProfile) -> Result<(), CliError> {
        let known: Vec<_> =
            agent.native().map(|native| agent.connectable(native).collect()).unwrap_or_default();
        let Some(unknown) = self.event.iter().find(|event| known.iter().all(|(name, _)| name != event))
        else {
            return Ok(());
        };
        let names: Vec<_> = known.iter().map(|(name, _)| *name).collect();
        let what = format!("{} has no event `{}`", agent.title, escape::line(unknown));
        Err(CliError::with_help(what, format!("its events are {}", names.join(", "))))
    }

    /// How the daemon is started from now on.
    fn daemon(
        &self,
        (search_path, daemons_path): (&OsString, &DaemonSearchPath),
        record: &ConnectionRecord,
        services: &DaemonServices,
    ) -> Result<DaemonCommand, CliError> {
        let program = match &self.program {
            Some(program) => {
                std::path::absolute(program).map_err(|error| unusable_program(program, &error))?
            }
            None => own_program(search_path)?,
        };
        let socket = self.connection.sockets.event_socket.path();
        let socket = std::path::absolute(&socket).map_err(|error| unusable_program(&socket, &error))?;
        let config = self.connection.settings.config.as_deref().map(std::path::absolute).transpose();
        let config = config.map_err(|error| CliError::new(format!("the settings file: {error}")))?;
        let home = self.connection.settings.home.as_deref().map(std::path::absolute).transpose();
        let home = home.map_err(|error| CliError::new(format!("the home directory: {error}")))?;
        let known = record.daemon.as_ref().filter(|known| known.socket == socket).map(|known| known.start);
        let start = match self.daemon {
            DaemonChoice::Auto => services.choose(&socket, known),
            DaemonChoice::Service => DaemonStart::Service,
            DaemonChoice::OnDemand => DaemonStart::OnDemand,
            DaemonChoice::Manual => DaemonStart::Manual,
        };
        let variable = |name: &&str| Some(((*name).to_owned(), std::env::var(name).ok()?));
        Ok(DaemonCommand {
            program,
            socket,
            config,
            home,
            search_path: daemons_path.value().to_string_lossy().into_owned(),
            environment: on_demand::VARIABLES.iter().filter_map(variable).collect(),
            start,
            sandboxed: on_demand::is_sandboxed(),
        })
    }

    fn entries(
        &self,
        agent: &AgentProfile,
        version: Option<agents::Version>,
        wanted: &[String],
        (daemon, store): (&DaemonCommand, &ConnectionStore),
        is_adopted: bool,
    ) -> Result<Vec<AgentEntry>, CliError> {
        for path in [daemon.program.as_path(), &daemon.socket, store.directory()] {
            if path.to_str().is_none_or(|path| path.chars().any(char::is_control)) {
                let what = format!("the path {} cannot be written into settings", escape::path(path));
                return Err(CliError::with_help(what, "name another one with `--program` or `--socket`"));
            }
        }
        let program = shell_quoted(&relay_program(&daemon.program));
        let socket = shell_quoted(&daemon.socket);
        let start = match daemon.start {
            DaemonStart::OnDemand => format!(" --start {}", shell_quoted(store.directory())),
            DaemonStart::Manual | DaemonStart::Service => String::new(),
        };
        let adopted = if is_adopted { format!(" {ADOPTED_FLAG}") } else { String::new() };
        let command = format!(
            "{program} relay --dialect {} --socket {socket} --timeout {RELAY_TIMEOUT}{start}{adopted}",
            agent.dialect
        );
        let timeout = agent.native().map(|native| native.timeout(ENTRY_TIMEOUT).to_string());
        let events = agent.events(version, wanted).into_iter();
        let entries = events.map(|(event, kind)| {
            let blocks = self.if_down == ConnectIfDown::Block && holds_back(kind);
            let if_down = if blocks { " --if-down block" } else { "" };
            AgentEntry {
                event: event.to_owned(),
                command: format!("{command}{if_down}"),
                timeout: timeout.clone(),
            }
        });
        Ok(entries.collect())
    }
}

/// What is offered if hookyard runs command hooks of the agent, or could.
fn tune_offer(change: &ConnectionChange<'_>) -> Option<String> {
    let root = shell_quoted(&change.place.root);
    let tune = format!("`hookyard tune --dialect {} --workspace {root}` {TUNE_OFFER}", change.agent.dialect);
    let (file, text, offer) = match &change.adopted {
        Some(MovedHooks { file, text: Some(text), .. }) => (file, Some(text.as_bytes()), tune),
        Some(MovedHooks { file, .. }) => (file, file.bytes.as_deref(), tune),
        None => (&change.file, Some(change.after.as_bytes()), TUNE_AFTER_ADOPTION.to_owned()),
    };
    let settings = AgentSettings::read(change.agent, &file.path, text).ok()?;
    settings.has_own_commands(change.agent).then_some(offer)
}

fn unusable_program(path: &Path, error: &std::io::Error) -> CliError {
    CliError::new(format!(
        "the path `{}` cannot be used: {}",
        escape::path(path),
        crate::model::io_reason(error)
    ))
}

/// The path of this program: on the search path where it is there, since that stays the same when it is upgraded.
fn own_program(search_path: &OsString) -> Result<PathBuf, CliError> {
    let own = std::env::current_exe().map_err(|error| CliError::new(format!("this program: {error}")))?;
    let same = |path: &PathBuf| path.canonicalize().is_ok_and(|path| path == own);
    let found = own.file_name().and_then(|name| on_path(name.to_str()?, search_path)).filter(same);
    Ok(found.unwrap_or(own))
}

/// The program of entries: the small one that only passes events on, where it is beside the program.
fn relay_program(program: &Path) -> PathBuf {
    let small = small_relay_of(program);
    small.filter(|small| agents::is_executable(small)).unwrap_or_else(|| program.to_owned())
}

/// What a person should know about an agent before it is connected.
fn notes(agent: &AgentProfile, installed: Option<&InstalledAgent>, text: &AgentSettings) -> Vec<String> {
    let mut notes = Vec::new();
    if installed.is_none() {
        notes.push(format!("{} is not on the PATH; its settings are prepared all the same", agent.title));
    }
    let version = installed.and_then(|installed| installed.version);
    if !agent.is_complete(version) {
        let which =
            version.map_or("its version is not known".to_owned(), |version| format!("it is {version}"));
        notes.push(format!("{which}: only the events that every version has are connected"));
    }
    notes.extend(agent.review.map(str::to_owned));
    let disabled = text.disabled_by(agent);
    notes.extend(disabled.map(|why| format!("{why} in this file: the agent does not run these entries")));
    notes
}
