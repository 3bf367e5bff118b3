//! The record of the agents that are connected to hookyard, and the backups of their settings files. It is in the state
//! directory, where no workspace can write.

#[cfg(feature = "cli")]
use std::fs::{self, File};
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

#[cfg(feature = "cli")]
use super::digests::sha256;
use super::{
    Settings,
    files::is_inside,
    state_directory::{StateDirectory, StateFileError},
    trust::state_directory,
    workspace_options::RequiredHook,
};
use crate::model::{CommandLine, DialectName, Handler, Hook, HostRuns, Scope};

/// The version of the format.
const VERSION: u32 = 1;

/// The file with the record.
const FILE: &str = "connections.json";

/// The directory with the backups.
#[cfg(feature = "cli")]
const BACKUPS: &str = "connected";

/// The program itself.
pub(crate) const WHOLE_PROGRAM: &str = "hookyard";

/// The program beside it that only passes events on.
const SMALL_RELAY: &str = "hookyard-relay";

/// The largest record or backup, in bytes.
const LARGEST_FILE: u64 = 4 << 20;

/// The agents that are connected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ConnectionRecord {
    version: u32,
    /// The directory that it was read from.
    #[serde(skip)]
    directory: PathBuf,
    /// How their daemon is started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) daemon: Option<DaemonCommand>,
    pub(crate) connections: Vec<AgentConnection>,
}

/// Only the version, which a later format keeps.
#[derive(Deserialize)]
struct RecordVersion {
    version: u32,
}

/// How the daemon of the connected agents is started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DaemonCommand {
    pub(crate) program: PathBuf,
    pub(crate) socket: PathBuf,
    /// Its settings file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) config: Option<PathBuf>,
    /// The home directory with the user's own hooks, if it is not that of the account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) home: Option<PathBuf>,
    /// Its `PATH`, where hooks look for programs.
    pub(crate) search_path: String,
    /// Its other variables.
    #[serde(default)]
    pub(crate) environment: BTreeMap<String, String>,
    /// Who starts it.
    #[serde(default)]
    pub(crate) start: DaemonStart,
    /// Whether the agents were connected in a sandbox, so that the daemon may be in one.
    #[serde(default)]
    pub(crate) sandboxed: bool,
}

/// Who starts the daemon of the connected agents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum DaemonStart {
    /// A person.
    #[default]
    Manual,
    /// The first event that finds none.
    OnDemand,
    /// The service manager of the user.
    Service,
}

/// One agent, connected by one settings file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AgentConnection {
    /// The name of its dialect.
    pub(crate) agent: String,
    pub(crate) reach: ConnectionReach,
    /// The directory of the project, or the home directory.
    pub(crate) root: PathBuf,
    /// Workspaces outside of it that are served as well.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) outside: Vec<PathBuf>,
    /// The settings file, without symbolic links.
    pub(crate) file: PathBuf,
    /// The events that have an entry.
    pub(crate) events: Vec<String>,
    /// The SHA-256 of the file as it was written.
    pub(crate) written: String,
    /// The SHA-256 of the backup; none where there was no file.
    pub(crate) before: Option<String>,
    /// The uppermost directory that was made for the file; none where all were there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) made: Option<PathBuf>,
    /// The SHA-256 of the file with the hooks that were moved out of the settings file; none where they stay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) adopted: Option<String>,
}

/// Which sessions of an agent a connection reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ConnectionReach {
    /// Every session of the user.
    User,
    /// Those in one project.
    Project,
}

/// Whether hooks that connected agents run themselves are left to them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum ConnectedAgents {
    /// They are not: the events do not come from agents.
    #[default]
    Ignored,
    /// They are, by the record.
    #[cfg(any(feature = "cli", feature = "daemon"))]
    Considered,
}

/// The record of one user, and the backups.
#[derive(Debug, Clone)]
pub(crate) struct ConnectionStore {
    directory: PathBuf,
}

impl Default for ConnectionRecord {
    fn default() -> Self {
        Self { version: VERSION, directory: PathBuf::new(), daemon: None, connections: Vec::new() }
    }
}

impl ConnectionRecord {
    /// Marks the hooks of a workspace that connected agents run themselves. Others stay with hookyard: those that the
    /// operator requires, and those that a lower level switches off in the agent, which hookyard does not obey. A record
    /// inside a workspace says nothing about it, but which entries are hookyard's own: the workspace may have written it.
    pub(super) fn mark(&self, root: &Path, hooks: &mut [Hook], required: &[RequiredHook]) {
        let is_believed = !is_inside(&self.directory, root);
        for hook in hooks {
            let name = hook.dialect.name();
            if self.is_entry(hook) {
                hook.execution.host_runs = HostRuns::Entry;
                continue;
            }
            if !is_believed {
                continue;
            }
            let is_connected = self.connections.iter().any(|known| known.reaches(name, root));
            let is_required = required.iter().any(|required| is_meant(required, hook));
            let is_kept = is_required || !hook.execution.switches.without_effect.is_empty();
            if hook.execution.host_runs == HostRuns::BeforeAdoption {
                if is_kept {
                    hook.execution.host_runs = HostRuns::Never;
                }
                continue;
            }
            let is_read = hook.execution.host_runs != HostRuns::NotRead;
            if !is_connected || !is_read || is_kept || hook.source.file.is_none() {
                continue;
            }
            hook.execution.host_runs = match hook.source.scope {
                Scope::Managed | Scope::User => HostRuns::Always,
                Scope::Project | Scope::Local => HostRuns::InProject,
                Scope::Host => HostRuns::Never,
            };
        }
    }

    /// Whether a hook is an entry that was written to connect its agent: a command line that does nothing else than to run
    /// the program of the record as `relay`.
    fn is_entry(&self, hook: &Hook) -> bool {
        let name = hook.dialect.name().as_str();
        if !self.connections.iter().any(|known| known.agent == name) {
            return false;
        }
        let Handler::Command(command) = &hook.handler else { return false };
        let (CommandLine::Shell(line), Some(daemon)) = (&command.line, &self.daemon) else { return false };
        let verb = format!(" relay --dialect {name} ");
        let Some((program, flags)) = line.split_once(&verb) else { return false };
        let is_plain = |c: char| c.is_alphanumeric() || " /._-+=:,@~'".contains(c);
        let program = Path::new(program.trim_matches('\''));
        let is_hookyard =
            program.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"hookyard"));
        let is_recorded = program == daemon.program
            || small_relay_of(&daemon.program).is_some_and(|small| program == small);
        is_hookyard && is_recorded && flags.chars().all(is_plain)
    }

    /// The directories that the connected agents work in.
    pub(crate) fn roots(&self) -> Vec<PathBuf> {
        let roots = self.connections.iter().flat_map(|known| known.outside.iter().chain([&known.root]));
        let mut roots: Vec<PathBuf> = roots.cloned().collect();
        roots.sort();
        roots.dedup();
        roots
    }
}

/// The agents that are connected. None if the record cannot be used, which is logged: hooks of agents then run here too.
#[cfg(any(feature = "cli", feature = "daemon"))]
pub(crate) fn connections(
    settings: &Settings,
    environment: &dyn Fn(&str) -> Option<String>,
) -> ConnectionRecord {
    let Some(store) = ConnectionStore::of(settings, environment) else { return ConnectionRecord::default() };
    store.read().unwrap_or_else(|error| {
        tracing::warn!(%error, "the record of connected agents cannot be used; their own hooks run twice");
        ConnectionRecord::default()
    })
}

/// Where the small program for events is, if it is there: beside the whole one.
pub(crate) fn small_relay_of(program: &Path) -> Option<PathBuf> {
    program.file_name().filter(|name| *name == WHOLE_PROGRAM)?;
    Some(program.with_file_name(SMALL_RELAY))
}

/// Whether the operator requires a hook, by its name or by its definition alone.
fn is_meant(required: &RequiredHook, hook: &Hook) -> bool {
    match &required.hook {
        Some(name) => *name == hook.name,
        None => required.sha256.as_deref() == hook.execution.definition.as_deref(),
    }
}

impl ConnectedAgents {
    /// The record, if it counts.
    #[cfg_attr(
        not(any(feature = "cli", feature = "daemon")),
        expect(unused_variables, reason = "agents are connected to the daemon")
    )]
    pub(crate) fn read(
        self,
        settings: &Settings,
        environment: &dyn Fn(&str) -> Option<String>,
    ) -> Option<ConnectionRecord> {
        match self {
            Self::Ignored => None,
            #[cfg(any(feature = "cli", feature = "daemon"))]
            Self::Considered => Some(connections(settings, environment)),
        }
    }
}

impl AgentConnection {
    /// Whether sessions of an agent in a workspace are connected by it.
    fn reaches(&self, agent: DialectName, workspace: &Path) -> bool {
        let is_there = self.reach == ConnectionReach::User || workspace.starts_with(&self.root);
        self.agent == agent.as_str() && is_there
    }

    /// Whether it reaches every session of the user.
    pub(crate) fn is_user_wide(&self) -> bool {
        self.reach == ConnectionReach::User
    }

    /// Whether it is the connection of an agent by this file.
    pub(crate) fn is_of(&self, agent: DialectName, file: &Path) -> bool {
        self.agent == agent.as_str() && self.file == file
    }
}

impl ConnectionStore {
    /// The store of these settings; none without a state directory.
    pub(crate) fn of(settings: &Settings, environment: &dyn Fn(&str) -> Option<String>) -> Option<Self> {
        state_directory(settings, environment).map(|directory| Self { directory })
    }

    /// The store in a state directory.
    #[cfg(feature = "cli")]
    pub(crate) fn at(directory: &Path) -> Self {
        Self { directory: directory.to_owned() }
    }

    /// The state directory.
    #[cfg(feature = "cli")]
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// The record; an empty one if nothing was ever connected.
    ///
    /// Returns an error if it cannot be read, is damaged, or another user may have written it.
    pub(crate) fn read(&self) -> Result<ConnectionRecord, StateFileError> {
        let directory = StateDirectory(&self.directory);
        let Some(bytes) = directory.read(FILE, LARGEST_FILE)? else { return Ok(self.empty_record()) };
        let unusable = |why: String| StateFileError::unusable(&self.directory.join(FILE), why);
        let damaged = |error: serde_json::Error| unusable(format!("it is damaged: {error}"));
        let RecordVersion { version } = serde_json::from_slice(&bytes).map_err(damaged)?;
        if version != VERSION {
            return Err(unusable(format!("its version is {version}, and this hookyard knows {VERSION}")));
        }
        let record: ConnectionRecord = serde_json::from_slice(&bytes).map_err(damaged)?;
        Ok(ConnectionRecord { directory: self.directory.clone(), ..record })
    }

    fn empty_record(&self) -> ConnectionRecord {
        ConnectionRecord { directory: self.directory.clone(), ..ConnectionRecord::default() }
    }
}

#[cfg(feature = "cli")]
impl ConnectionStore {
    /// Takes the lock under which agents are connected. It ends when the file is dropped.
    pub(crate) fn lock(&self) -> Result<File, StateFileError> {
        StateDirectory(&self.directory).lock("connections.lock")
    }

    /// Takes another lock, by its file; none if a process has it. It ends with the process that has it.
    pub(crate) fn try_lock(&self, file: &str) -> Result<Option<File>, StateFileError> {
        StateDirectory(&self.directory).try_lock(file)
    }

    /// Writes the record at once or not at all.
    pub(crate) fn write(&self, record: &ConnectionRecord) -> Result<(), StateFileError> {
        let unwritable = |error: serde_json::Error| {
            StateFileError::unusable(&self.directory.join(FILE), error.to_string())
        };
        let mut bytes = serde_json::to_vec_pretty(record).map_err(unwritable)?;
        bytes.push(b'\n');
        StateDirectory(&self.directory).replace(FILE, &bytes)
    }

    /// Keeps the bytes of a settings file, under the digest that is returned.
    pub(crate) fn back_up(&self, bytes: &[u8]) -> Result<String, StateFileError> {
        let backups = self.backups();
        StateDirectory(&backups).make()?;
        let digest = sha256(bytes);
        StateDirectory(&backups).replace(&backup_name(&digest), bytes)?;
        Ok(digest)
    }

    /// The bytes of a backup.
    ///
    /// Returns an error if it is gone or is not what was kept.
    pub(crate) fn backup(&self, digest: &str) -> Result<Vec<u8>, StateFileError> {
        let bytes = StateDirectory(&self.backups()).read(backup_name(digest), LARGEST_FILE)?;
        let unusable = |why: &str| StateFileError::unusable(&self.backup_path(digest), why);
        let bytes = bytes.ok_or_else(|| unusable("there is no such file"))?;
        if sha256(&bytes) == digest { Ok(bytes) } else { Err(unusable("it is not what was backed up")) }
    }

    /// The file of a backup.
    pub(crate) fn backup_path(&self, digest: &str) -> PathBuf {
        self.backups().join(backup_name(digest))
    }

    fn backups(&self) -> PathBuf {
        self.directory.join(BACKUPS)
    }

    /// Removes the backups that no connection needs any more. One that stays takes space and nothing else.
    pub(crate) fn remove_unused_backups(&self, record: &ConnectionRecord) {
        let needed = record.connections.iter().filter_map(|connection| connection.before.as_deref());
        let needed: Vec<PathBuf> = needed.map(|digest| self.backup_path(digest)).collect();
        for entry in self.backups().read_dir().into_iter().flatten().flatten() {
            if !needed.contains(&entry.path()) {
                fs::remove_file(entry.path()).ok();
            }
        }
    }
}

/// The name of a backup. A digest of a record that somebody has edited must not lead elsewhere.
#[cfg(feature = "cli")]
fn backup_name(digest: &str) -> String {
    let plain: String = digest.chars().filter(char::is_ascii_hexdigit).collect();
    format!("{plain}.json")
}
