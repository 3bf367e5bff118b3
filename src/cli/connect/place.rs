//! What `connect` and `disconnect` share: which agent is meant and where, the record, and how steps are shown.

use std::{
    path::{Path, PathBuf},
    sync::LazyLock,
};

use clap::{Args, ValueEnum, builder::PossibleValue};

use super::{
    super::{
        daemon_flag::ControlSocketFlags,
        escape,
        exit::CliError,
        flags::SettingsFlags,
        paths::display_path,
        screen::Screen,
        settings::{VariablePolicy, settings_of, tell},
        table::Page,
        workspace::nearest_above,
        wrap,
    },
    agents::{AGENTS, AgentProfile},
    entries::EntriesError,
    settings_file::AgentSettingsFile,
};
use crate::{
    config::{self, AgentConnection, ConnectionReach, ConnectionStore, Settings, StateFileError},
    daemon::ClientError,
};

/// Where the text of a step begins: after its label.
const INDENT: usize = 10;

/// The flags of `connect` and `disconnect`.
#[derive(Debug, Clone, Args)]
pub(super) struct ConnectionFlags {
    /// The agent
    #[arg(value_name = "AGENT")]
    pub(super) agent: AgentName,

    #[command(flatten)]
    pub(super) place: ConnectionPlace,

    /// Show what would change, and change nothing
    #[arg(long)]
    pub(super) dry_run: bool,

    #[command(flatten)]
    pub(super) sockets: ControlSocketFlags,

    #[command(flatten)]
    pub(super) settings: SettingsFlags,
}

/// Which sessions of the agent are meant.
#[derive(Debug, Clone, Args)]
pub(in crate::cli) struct ConnectionPlace {
    /// All sessions of this user; this is the default
    #[arg(long, conflicts_with = "project")]
    user: bool,

    /// Only those in this directory; default: the current one
    #[arg(long, value_name = "DIR", num_args = 0..=1, default_missing_value = ".")]
    project: Option<PathBuf>,
}

/// An agent, as it is named on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AgentName(pub(super) &'static AgentProfile);

impl PartialEq for AgentProfile {
    fn eq(&self, other: &Self) -> bool {
        self.dialect == other.dialect
    }
}

impl Eq for AgentProfile {}

impl ValueEnum for AgentName {
    fn value_variants<'a>() -> &'a [Self] {
        static NAMES: LazyLock<Vec<AgentName>> = LazyLock::new(|| AGENTS.iter().map(AgentName).collect());
        &NAMES
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.0.dialect.as_str()).help(self.0.title))
    }
}

/// Where an agent is connected.
pub(super) struct AgentPlace {
    pub(super) reach: ConnectionReach,
    /// The home directory or the project.
    pub(super) root: PathBuf,
    /// The workspace of the current directory, if it is outside of it and no setting has it served.
    pub(super) outside: Option<PathBuf>,
    /// The settings file, as it is named.
    pub(super) file: PathBuf,
    /// The directory that the settings file has to be in.
    pub(super) boundary: PathBuf,
    /// Whether the daemon looks for the agent's hooks there. It does not where a variable has moved the file to.
    pub(super) is_searched: bool,
}

impl AgentPlace {
    /// The workspaces outside of the root that are served from now on.
    pub(super) fn outside_with(&self, known: Option<&AgentConnection>) -> Vec<PathBuf> {
        let before = known.map(|known| known.outside.clone()).unwrap_or_default();
        let is_new = |workspace: &&PathBuf| !before.iter().any(|known| workspace.starts_with(known));
        let new = self.outside.as_ref().filter(is_new).cloned();
        before.into_iter().chain(new).collect()
    }

    /// What a person is told about the workspaces that are served.
    pub(super) fn serves(&self, known: Option<&AgentConnection>) -> String {
        let outside = known.map_or(&[][..], |known| &known.outside);
        let roots = outside.iter().chain([&self.root]).rev().map(|root| display_path(root));
        format!("workspaces in {}", roots.collect::<Vec<_>>().join(", "))
    }

    /// Where the test event comes from: the current directory, if it is in a workspace that is served.
    pub(super) fn test_directory(&self) -> PathBuf {
        let current = std::env::current_dir().and_then(|current| current.canonicalize()).ok();
        let is_served = |current: &PathBuf| self.outside.is_some() || is_below(current, &self.root);
        current.filter(is_served).unwrap_or_else(|| self.root.clone())
    }

    /// Hooks that are moved out of this file would run nowhere.
    pub(super) fn out_of_sight(&self) -> CliError {
        CliError::with_help(
            format!(
                "the daemon does not look for hooks beside {}; nothing was changed",
                escape::path(&self.file)
            ),
            "connect the agent without `--adopt`, which leaves its hooks with it",
        )
    }
}

impl ConnectionPlace {
    /// The place of an agent.
    ///
    /// Returns an error if there is no such directory.
    pub(super) fn of(&self, agent: &AgentProfile, settings: &Settings) -> Result<AgentPlace, CliError> {
        let no_file = || CliError::new(format!("{} has no settings file there", agent.title));
        if let Some(project) = &self.project {
            let root = project.canonicalize().ok().filter(|root| root.is_dir()).ok_or_else(|| {
                CliError::new(format!("the project `{}` is not a directory", escape::path(project)))
            })?;
            let file = root.join(agent.project_file().ok_or_else(no_file)?);
            return Ok(AgentPlace {
                reach: ConnectionReach::Project,
                boundary: root.clone(),
                root,
                outside: None,
                file,
                is_searched: true,
            });
        }
        let environment = |name: &str| std::env::var(name).ok();
        let moved = config::moved_home(settings, &environment);
        let searched = config::home_directory(settings, &environment);
        let home = moved.or_else(|| searched.clone()).ok_or_else(|| {
            CliError::with_help("this account has no home directory", "name one with `--home DIR`")
        })?;
        let (file, boundary) = agent.user_settings(&home, &environment).ok_or_else(no_file)?;
        let searched = searched.zip(agent.user_file()).map(|(home, name)| home.join(name));
        let is_searched = searched.as_ref() == Some(&file);
        let outside = current_workspace_outside(&home, settings);
        Ok(AgentPlace { reach: ConnectionReach::User, root: home, outside, file, boundary, is_searched })
    }
}

/// The workspace of the current directory, if it is neither below the home directory nor served by a setting.
fn current_workspace_outside(home: &Path, settings: &Settings) -> Option<PathBuf> {
    let current = std::env::current_dir().ok()?.canonicalize().ok()?;
    let workspace = nearest_above(&current, settings).filter(|root| root.parent().is_some())?;
    let declared = settings.workspaces.values().map(|declared| &declared.root);
    let mut served = settings.workspace_roots.iter().chain(declared).map(PathBuf::as_path).chain([home]);
    let is_served = served.any(|root| is_below(&workspace, root));
    (!is_served).then_some(workspace)
}

/// Whether a directory is another one or below it, links resolved.
pub(in crate::cli) fn is_below(directory: &Path, above: &Path) -> bool {
    directory.starts_with(above.canonicalize().as_deref().unwrap_or(above))
}

/// The settings of a command about connections, and its record.
pub(super) fn store_of(
    flags: &SettingsFlags,
    screen: &Screen,
) -> Result<(Settings, ConnectionStore), CliError> {
    let (settings, diagnostics) = settings_of(flags, VariablePolicy::Ignored)?;
    tell(&diagnostics, screen)?;
    let store = ConnectionStore::of(&settings, &|name| std::env::var(name).ok());
    let store = store.ok_or_else(|| {
        CliError::with_help("there is no state directory", "set `state_directory` in the settings file")
    })?;
    Ok((settings, store))
}

impl From<StateFileError> for CliError {
    fn from(error: StateFileError) -> Self {
        let what = format!("the record of connections cannot be used: {}", escape::line(&error.to_string()));
        Self::with_help(what, "mend it or move it away; agents that are connected stay so")
    }
}

pub(super) fn invalid(file: &AgentSettingsFile, error: &EntriesError) -> CliError {
    let what =
        format!("{} {}; it was not changed", escape::path(&file.path), escape::line(&error.to_string()));
    CliError::with_help(what, "correct it, and run the command again")
}

/// Has a daemon that runs read who is connected.
pub(super) fn reload(sockets: &ControlSocketFlags, screen: &Screen) {
    let reloaded = sockets.interactive_client().ask::<serde_json::Value>("POST", "/v1/reload", None);
    match reloaded {
        Ok(_) | Err(ClientError::Down { .. }) => {}
        Err(error) => {
            let what = escape::line(&error.to_string()).into_owned();
            screen.note(&format!("note: run `hookyard reload`, or restart the daemon: {what}"));
        }
    }
}

/// A step with its label.
pub(super) fn step(page: &mut Page, screen: &Screen, label: &str, text: &str) {
    let label = screen.out.paint.dim(&format!("{label:<width$}", width = INDENT - 2));
    page.line(&format!("{label}  {}", wrap::hanging(&escape::line(text), screen.table_width(), INDENT)));
}
