//! The agents that can be connected, what is known of each, and where it is installed.

use std::{
    fmt,
    path::{Path, PathBuf},
    time::Duration,
};

use crate::{
    dialect::{self, NativeDialect, SettingsLocation},
    model::{Dialect, DialectName, EventKind, Scope},
};

/// The largest `package.json` that is read, in bytes.
const LARGEST_PACKAGE: u64 = 1 << 20;

/// The timeout of an entry in the settings of an agent: the longest that a hook may have by default.
pub(super) const ENTRY_TIMEOUT: Duration = Duration::from_mins(10);

/// How long `relay` waits for hooks, as it is written in entries. An agent takes a timeout for consent, so `relay` answers
/// before, also if it has waited for a daemon that restarts.
pub(super) const RELAY_TIMEOUT: &str = "590s";

/// The events that Claude Code and CodeBuddy have had in every version.
const FIRST_EVENTS: &[&str] = &[
    "PreToolUse",
    "PostToolUse",
    "UserPromptSubmit",
    "Notification",
    "Stop",
    "SubagentStop",
    "PreCompact",
    "SessionStart",
    "SessionEnd",
];

/// An agent that can be connected. A further one is a further row of [`AGENTS`].
#[derive(Debug)]
pub(in crate::cli) struct AgentProfile {
    pub(in crate::cli) dialect: DialectName,
    /// What people call it.
    pub(in crate::cli) title: &'static str,
    /// Its program.
    program: &'static str,
    /// The variable by which people move its own settings.
    moved_by: Option<MovedSettings>,
    /// The events of every version; none where all versions have those of the dialect.
    early_events: &'static [&'static str],
    /// The first version that is known to have all events of the dialect.
    complete_since: Version,
    /// The events that get an entry only on demand, because an entry has a cost without any hook.
    on_demand: &'static [OnDemandEvent],
    /// The events that get no entry: what the agent sends does not say which they are, or it is sent by another name, too.
    unconnected: &'static [&'static str],
    /// Whether its entries have names.
    pub(super) names_entries: bool,
    /// The version that its settings file has to name, if it has a file for hooks alone: entries stand in an event's list
    /// themselves there.
    pub(super) hooks_version: Option<&'static str>,
    /// What a person has to do in the agent before it runs new entries.
    pub(super) review: Option<&'static str>,
}

/// An event that gets an entry on demand.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct OnDemandEvent {
    pub(super) name: &'static str,
    /// What an entry costs.
    pub(super) cost: &'static str,
}

/// A variable that names another directory for the settings of a user.
#[derive(Debug, Clone, Copy)]
struct MovedSettings {
    variable: &'static str,
    /// The directory that it takes the place of, below the home directory; empty for that itself.
    of: &'static str,
}

/// The version of an agent: its first three numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::cli) struct Version(u32, u32, u32);

/// An agent's program on this machine.
#[derive(Debug)]
pub(in crate::cli) struct InstalledAgent {
    pub(in crate::cli) program: PathBuf,
    /// Its version, if something says it.
    pub(in crate::cli) version: Option<Version>,
}

/// Every agent that can be connected.
pub(in crate::cli) static AGENTS: [AgentProfile; 8] = [
    AgentProfile {
        dialect: DialectName::Claude,
        title: "Claude Code",
        program: "claude",
        moved_by: Some(MovedSettings { variable: "CLAUDE_CONFIG_DIR", of: ".claude" }),
        early_events: FIRST_EVENTS,
        complete_since: Version(2, 1, 197),
        on_demand: &[
            OnDemandEvent {
                name: "WorktreeCreate",
                cost: "with an entry, the agent makes no worktree itself",
            },
            OnDemandEvent { name: "MessageDisplay", cost: "the agent waits with every piece of text" },
            OnDemandEvent { name: "FileChanged", cost: "the agent watches the files that a matcher names" },
        ],
        unconnected: &[],
        names_entries: false,
        hooks_version: None,
        review: None,
    },
    AgentProfile {
        dialect: DialectName::Gemini,
        title: "Gemini CLI",
        program: "gemini",
        moved_by: Some(MovedSettings { variable: "GEMINI_CLI_HOME", of: "" }),
        early_events: &[],
        complete_since: Version(0, 0, 0),
        on_demand: &[OnDemandEvent {
            name: "AfterModel",
            cost: "the agent waits with every piece of a model's answer",
        }],
        unconnected: &[],
        names_entries: true,
        hooks_version: None,
        review: None,
    },
    AgentProfile {
        dialect: DialectName::CodeBuddy,
        title: "CodeBuddy",
        program: "codebuddy",
        moved_by: Some(MovedSettings { variable: "CODEBUDDY_CONFIG_DIR", of: ".codebuddy" }),
        early_events: FIRST_EVENTS,
        complete_since: Version(2, 117, 0),
        on_demand: &[OnDemandEvent {
            name: "WorktreeCreate",
            cost: "with an entry, the agent makes no worktree itself",
        }],
        unconnected: &[],
        names_entries: false,
        hooks_version: None,
        review: None,
    },
    AgentProfile {
        dialect: DialectName::Clawd,
        title: "ClawdCode",
        program: "clawdcode",
        moved_by: None,
        early_events: &[],
        complete_since: Version(0, 0, 0),
        on_demand: &[],
        unconnected: &[],
        names_entries: false,
        hooks_version: None,
        review: None,
    },
    AgentProfile {
        dialect: DialectName::Codex,
        title: "Codex",
        program: "codex",
        moved_by: Some(MovedSettings { variable: "CODEX_HOME", of: ".codex" }),
        early_events: &[],
        complete_since: Version(0, 0, 0),
        on_demand: &[],
        unconnected: &[],
        names_entries: false,
        hooks_version: None,
        review: Some(
            "Codex runs new and changed entries after you have trusted them there: it asks at its start, or type `/hooks`",
        ),
    },
    AgentProfile {
        dialect: DialectName::Qwen,
        title: "Qwen Code",
        program: "qwen",
        moved_by: None,
        early_events: &[],
        complete_since: Version(0, 0, 0),
        on_demand: &[],
        unconnected: &[],
        names_entries: true,
        hooks_version: None,
        review: None,
    },
    AgentProfile {
        dialect: DialectName::Copilot,
        title: "Copilot CLI",
        program: "copilot",
        moved_by: Some(MovedSettings { variable: "COPILOT_HOME", of: ".copilot" }),
        early_events: &[],
        complete_since: Version(0, 0, 0),
        on_demand: &[],
        unconnected: &["SubagentStart", "permissionRequest"],
        names_entries: false,
        hooks_version: None,
        review: None,
    },
    AgentProfile {
        dialect: DialectName::Cursor,
        title: "Cursor",
        program: "cursor-agent",
        moved_by: None,
        early_events: &[],
        complete_since: Version(0, 0, 0),
        on_demand: &[],
        unconnected: &[],
        names_entries: false,
        hooks_version: Some("1"),
        review: None,
    },
];

impl AgentProfile {
    pub(in crate::cli) fn native(&self) -> Option<&'static NativeDialect> {
        dialect::natives().find(|native| Dialect::name(*native) == self.dialect)
    }

    /// The path of its settings file below the home directory.
    pub(in crate::cli) fn user_file(&self) -> Option<&'static str> {
        let files = self.native()?.files().iter().rev();
        files.filter(|file| file.scope == Scope::User).find_map(|file| match file.location {
            SettingsLocation::Home(path) if file.location.directory().is_none() => Some(path),
            SettingsLocation::Home(_) | SettingsLocation::System(_) | SettingsLocation::Workspace(_) => None,
        })
    }

    /// The settings file of its user, and the directory that it has to be in.
    pub(super) fn user_settings(
        &self,
        home: &Path,
        environment: &dyn Fn(&str) -> Option<String>,
    ) -> Option<(PathBuf, PathBuf)> {
        let file = Path::new(self.user_file()?);
        let moved = self.moved_by.and_then(|moved| {
            let directory =
                environment(moved.variable).map(PathBuf::from).filter(|path| path.is_absolute())?;
            Some((directory.join(file.strip_prefix(moved.of).ok()?), directory))
        });
        Some(moved.unwrap_or_else(|| (home.join(file), home.to_owned())))
    }

    /// The path of its settings file below a project: the one that is for this machine alone, where it has one.
    pub(in crate::cli) fn project_file(&self) -> Option<&'static str> {
        let files = self.native()?.files().iter();
        let of_workspace = files.filter_map(|file| match file.location {
            SettingsLocation::Workspace(path) if file.location.directory().is_none() => {
                Some((file.scope, path))
            }
            SettingsLocation::Workspace(_) | SettingsLocation::System(_) | SettingsLocation::Home(_) => None,
        });
        of_workspace.max_by_key(|(scope, _)| *scope == Scope::Local).map(|(_, path)| path)
    }

    /// The events that get an entry in a version of it, and those of `wanted` that it has.
    pub(super) fn events(
        &self,
        version: Option<Version>,
        wanted: &[String],
    ) -> Vec<(&'static str, EventKind)> {
        let Some(native) = self.native() else { return Vec::new() };
        let is_complete = self.is_complete(version);
        let has_entry = |name: &str| {
            let by_default =
                (is_complete || self.early_events.contains(&name)) && self.on_demand(name).is_none();
            by_default || wanted.iter().any(|wanted| wanted == name)
        };
        self.connectable(native).filter(|(name, _)| has_entry(name)).collect()
    }

    /// The events that can have an entry.
    pub(super) fn connectable(
        &self,
        native: &NativeDialect,
    ) -> impl Iterator<Item = (&'static str, EventKind)> + use<> {
        let unconnected = self.unconnected;
        native.events().filter(move |(name, _)| !unconnected.contains(name))
    }

    /// Whether all events of the dialect are known to exist in a version.
    pub(super) fn is_complete(&self, version: Option<Version>) -> bool {
        self.early_events.is_empty() || version.is_some_and(|version| version >= self.complete_since)
    }

    /// What an entry for an event costs, if it gets one on demand only.
    pub(super) fn on_demand(&self, event: &str) -> Option<&'static OnDemandEvent> {
        self.on_demand.iter().find(|known| known.name == event)
    }

    /// Its events that get an entry on demand only.
    pub(super) fn on_demand_events(&self) -> &'static [OnDemandEvent] {
        self.on_demand
    }

    /// Its program on a search path, and the version of it.
    pub(in crate::cli) fn find(&self, search_path: &std::ffi::OsStr) -> Option<InstalledAgent> {
        let program = on_path(self.program, search_path)?;
        let version = version_of(&program);
        Some(InstalledAgent { program, version })
    }
}

/// Whether a block of this event is safe where no hook can be asked: it holds something back. A block of an agent's stop
/// would keep it at work without end, and one of what has happened changes nothing.
pub(in crate::cli) fn holds_back(kind: EventKind) -> bool {
    use EventKind::{BeforeModelCall, BeforeToolDispatch, PermissionRequested, PromptSubmitted};
    matches!(kind, PromptSubmitted | BeforeToolDispatch | PermissionRequested | BeforeModelCall)
}

/// The first file of this name on a search path that can be executed.
pub(in crate::cli) fn on_path(name: &str, search_path: &std::ffi::OsStr) -> Option<PathBuf> {
    let directories = std::env::split_paths(search_path).filter(|directory| directory.is_absolute());
    directories.map(|directory| directory.join(name)).find(|path| is_executable(path))
}

/// Whether this user can run a file, as far as its mode says.
pub(in crate::cli) fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

/// The version of a program: that in its path, or in the `package.json` of its package. The program is not run.
fn version_of(program: &Path) -> Option<Version> {
    let real = program.canonicalize().ok()?;
    let named = real.file_name().and_then(|name| Version::parse(name.to_str()?));
    named.or_else(|| {
        let packages = real.ancestors().skip(1).map(|directory| directory.join("package.json"));
        Version::of_package(&packages.filter(|file| file.is_file()).take(1).next()?)
    })
}

impl Version {
    fn parse(text: &str) -> Option<Self> {
        let mut numbers = text.split(['.', '-', '+']).map(str::parse::<u32>);
        let mut next = || numbers.next()?.ok();
        Some(Self(next()?, next()?, next()?))
    }

    fn of_package(file: &Path) -> Option<Self> {
        use std::io::Read;
        let mut text = String::new();
        std::fs::File::open(file).ok()?.take(LARGEST_PACKAGE).read_to_string(&mut text).ok()?;
        let package: serde_json::Value = serde_json::from_str(&text).ok()?;
        Self::parse(package.get("version")?.as_str()?)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(major, minor, patch) = self;
        write!(f, "{major}.{minor}.{patch}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_three_numbers() {
        assert_eq!(Version::parse("2.1.197"), Some(Version(2, 1, 197)));
        assert_eq!(Version::parse("0.61.0-nightly.3"), Some(Version(0, 61, 0)));
        for text in ["", "2.1", "claude", "v2.1.3", "2.1.x"] {
            assert_eq!(Version::parse(text), None, "{text}");
        }
    }

    #[test]
    fn every_agent_has_its_files_and_only_events_of_its_dialect() {
        for agent in &AGENTS {
            assert!(agent.user_file().is_some() && agent.project_file().is_some(), "{}", agent.title);
            let known: Vec<_> = agent.native().unwrap().events().map(|(name, _)| name).collect();
            let named = agent.early_events.iter().chain(agent.on_demand.iter().map(|event| &event.name));
            for name in named.chain(agent.unconnected) {
                assert!(known.contains(name), "{}: {name}", agent.title);
            }
        }
        assert_eq!(AGENTS[0].project_file(), Some(".claude/settings.local.json"));
        assert_eq!(AGENTS[6].user_file(), Some(".copilot/settings.json"));
        assert_eq!(AGENTS[6].project_file(), Some(".github/copilot/settings.local.json"));
        assert_eq!(AGENTS[7].project_file(), Some(".cursor/hooks.json"));
    }

    #[test]
    fn an_unknown_version_gets_the_events_of_every_version() {
        let claude = &AGENTS[0];
        assert_eq!(claude.events(None, &[]).len(), 9);
        assert_eq!(claude.events(Version::parse("2.1.196"), &[]).len(), 9);
        assert_eq!(claude.events(Version::parse("2.1.197"), &[]).len(), 28);
        let wanted = ["FileChanged".to_owned(), "Nonsense".to_owned()];
        assert_eq!(claude.events(None, &wanted).len(), 10);
    }
}
