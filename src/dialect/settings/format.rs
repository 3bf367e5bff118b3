//! The format of a dialect's settings files: locations, keys, defaults, and how scopes are merged.

use std::{ffi::OsStr, os::unix::ffi::OsStrExt, path::Path, sync::Arc, time::Duration};

use super::{
    super::{document::Value, event_table::EventRow},
    plugins::PluginFormat,
};
use crate::model::{Condition, HandlerKind, Matcher, Scope, check_json};

/// The mark before the text of some files.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// What is so about a dialect's settings files.
pub(in crate::dialect) struct SettingsFormat {
    /// The files, in the order in which their hooks run.
    pub(in crate::dialect) files: &'static [SettingsFile],
    /// Files in which hooks may be that are not read: those that are TOML.
    pub(in crate::dialect) unread: &'static [SettingsFile],
    /// The name of those of its files that have the events at the top, where others have them in `hooks`.
    pub(in crate::dialect) bare_file: Option<&'static str>,
    /// What the agent allows in its files beside JSON.
    pub(in crate::dialect) beside_json: BesideJson,
    /// Which of them the agent itself does not read.
    pub(in crate::dialect) unread_by_agent: UnreadByAgent,
    /// The kinds of handler its hooks may have.
    pub(in crate::dialect) types: &'static [HandlerKind],
    /// How a matcher is written.
    pub(in crate::dialect) matcher_syntax: MatcherSyntax,
    /// Reads a matcher; `None` if it is refused, which has been reported.
    pub(in crate::dialect) matcher: fn(&Value<'_>, &EventRow) -> Option<EventFilter>,
    /// The default timeouts.
    pub(in crate::dialect) timeouts: DefaultTimeouts,
    /// What becomes of handlers that are configured twice for one event.
    pub(in crate::dialect) duplicates: DuplicateHooks,
    /// The keys for all hooks, beside the events.
    pub(in crate::dialect) shared: &'static [SharedKey],
    /// Variables for the project's directory in command lines.
    pub(in crate::dialect) project_variables: &'static [&'static str],
    /// The keys that mean something; any other is as if it were not there.
    pub(in crate::dialect) keys: SettingsKeys,
    /// The default shell of a command line.
    pub(in crate::dialect) shell: Shell,
    /// Where commands run.
    pub(in crate::dialect) directory: StartDirectory,
    /// Which hooks on an event count as one.
    pub(in crate::dialect) identity: HookIdentity,
    /// How a file switches hooks off.
    pub(in crate::dialect) disable: DisableSyntax,
    /// How plugins have hooks.
    pub(in crate::dialect) plugins: PluginFormat,
    /// The flag with which the administrator's file leaves out the hooks of all other files.
    pub(in crate::dialect) managed_only: Option<&'static str>,
}

impl SettingsFormat {
    /// Whether a file has its events at the top.
    pub(in crate::dialect) fn is_bare(&self, file: &Path) -> bool {
        self.bare_file.is_some_and(|name| file.file_name() == Some(OsStr::new(name)))
    }

    /// What the agent allows in this file beside JSON.
    pub(in crate::dialect) fn beside_json_in(&self, file: &Path) -> BesideJson {
        match self.beside_json {
            BesideJson::NothingIn(directory) => {
                let is_in = file.parent().is_some_and(|parent| parent.ends_with(directory));
                if is_in { BesideJson::Nothing } else { BesideJson::CommentsAndCommas }
            }
            other => other,
        }
    }

    /// Why the agent does not read this file, which may be read all the same; a phrase that follows its name.
    pub(in crate::dialect) fn why_unread(&self, text: &str, file: &Path) -> Option<&'static str> {
        let plain = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
        let is_marked = plain.len() < text.len();
        let is_lenient = || check_json(plain).is_err();
        let (is_marked, is_lenient) = match self.unread_by_agent {
            UnreadByAgent::None => (false, false),
            UnreadByAgent::Marked => (is_marked, false),
            UnreadByAgent::LenientIn(directories) => {
                let is_of = |parent: &Path| directories.iter().any(|directory| parent.ends_with(directory));
                let is_in = file.parent().is_some_and(is_of);
                (is_in && is_marked, is_in && is_lenient())
            }
        };
        let mark =
            "begins with a byte order mark, with which the agent does not read it: save it without the mark";
        let lenient = "is not plain JSON, and the agent reads nothing else here: remove what is not JSON";
        is_marked.then_some(mark).or(is_lenient.then_some(lenient))
    }
}

/// Which files an agent does not read, though they can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::dialect) enum UnreadByAgent {
    /// None.
    None,
    /// Those that begin with a byte order mark. The agent runs without them, or not at all.
    Marked,
    /// Those of these directories that begin with one, or have anything else that is not JSON.
    LenientIn(&'static [&'static str]),
}

/// What files may have beside JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::dialect) enum BesideJson {
    Nothing,
    /// Numbers beyond a double, which programs in JavaScript take for infinite.
    LargeNumbers,
    /// These, and comments.
    Comments,
    /// These, and a comma behind the last element.
    CommentsAndCommas,
    /// All that, and nothing in files of this directory.
    NothingIn(&'static str),
}

/// The keys that mean something in settings files.
#[derive(Debug, Clone, Copy)]
pub(in crate::dialect) struct SettingsKeys {
    /// Those of an event's entries.
    pub(in crate::dialect) entry: &'static [&'static str],
    /// Those of the hooks in them.
    pub(in crate::dialect) hook: &'static [&'static str],
    /// Those beside the events that are no events.
    pub(in crate::dialect) beside_events: &'static [&'static str],
}

impl SettingsKeys {
    /// Whether an entry may be a hook itself, as in files of Copilot.
    pub(in crate::dialect) fn allows_bare_hooks(&self) -> bool {
        self.entry.contains(&"type")
    }
}

/// How a matcher is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::dialect) enum MatcherSyntax {
    /// As a name, a list of names, or else a pattern that may match anywhere.
    ListOrPattern,
    /// For tools as a pattern that may match anywhere, or else a text; for anything else as a text.
    PatternOrText,
    /// As a pattern for the whole name.
    Whole,
    /// As an object, whose part `tools` is a list of names, or else a pattern for the whole name.
    Parts,
}

/// What runs a command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::dialect) enum Shell {
    /// `/bin/sh`
    Sh,
    /// `/bin/bash`
    Bash,
}

/// Where commands run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::dialect) enum StartDirectory {
    /// In the workspace.
    Workspace,
    /// In the workspace; those of the user and of the administrator in the directory of their file.
    OfUserFile,
}

/// Which hooks on an event count as one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::dialect) enum HookIdentity {
    /// Those that run the same.
    Handler,
    /// Those that run the same under the same name.
    NameAndHandler,
}

/// How a file switches hooks off.
#[derive(Debug, Clone, Copy)]
pub(in crate::dialect) enum DisableSyntax {
    /// All of them, with this flag of the file.
    All(&'static str),
    /// All of them with `enabled: false`, and some with `disabled`, a list of names and commands, in this section of the
    /// file.
    AllOrSome(&'static str),
    /// All of them, with this flag beside the events.
    BesideEvents(&'static str),
    /// Its own, with this flag.
    Own(&'static str),
    /// Not at all.
    Never,
}

/// One settings file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SettingsFile {
    /// How far its hooks reach.
    pub(crate) scope: Scope,
    /// Where it is.
    pub(crate) location: SettingsLocation,
}

impl SettingsFile {
    /// Whether it is in the workspace.
    pub(crate) fn is_of_workspace(self) -> bool {
        matches!(self.location, SettingsLocation::Workspace(_))
    }
}

/// Where a settings file is. A path that ends with `/*.json` stands for the files of a directory.
#[derive(Debug, Clone, Copy)]
pub(crate) enum SettingsLocation {
    /// Below the directory of the machine's own configuration.
    System(&'static str),
    /// Below the user's home directory.
    Home(&'static str),
    /// Below the workspace.
    Workspace(&'static str),
}

impl SettingsLocation {
    /// Its path below the directory it belongs to.
    pub(crate) fn path(self) -> &'static str {
        match self {
            Self::System(path) | Self::Home(path) | Self::Workspace(path) => path,
        }
    }

    /// The directory whose files it stands for, if it is not one file.
    pub(crate) fn directory(self) -> Option<&'static str> {
        self.path().strip_suffix("/*.json")
    }

    /// Whether a file of that directory counts by its name.
    pub(crate) fn takes(name: &OsStr) -> bool {
        let name = name.as_bytes();
        !name.starts_with(b".") && name.ends_with(b".json")
    }

    /// Whether a path is in this place, below whatever directory.
    pub(crate) fn has(self, file: &Path) -> bool {
        match (self.directory(), file.parent(), file.file_name()) {
            (Some(directory), Some(above), Some(name)) => above.ends_with(directory) && Self::takes(name),
            (Some(_), ..) => false,
            (None, ..) => file.ends_with(self.path()),
        }
    }
}

/// What becomes of handlers that are configured twice for one event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::dialect) enum DuplicateHooks {
    /// They run once.
    RunOnce,
    /// Each runs.
    RunEach,
}

/// A key that applies to all hooks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SharedKey {
    /// Its place in files.
    pub(in crate::dialect) key: &'static str,
    /// The variable of hookyard's environment that counts instead.
    pub(in crate::dialect) variable: &'static str,
    /// What it is.
    pub(in crate::dialect) setting: SharedSetting,
}

impl SharedKey {
    /// Whether it switches hooks off or on.
    pub(in crate::dialect) fn is_switch(&self) -> bool {
        matches!(self.setting, SharedSetting::Enabled)
    }
}

/// The meaning of a key that applies to all hooks.
#[derive(Debug, Clone, Copy)]
pub(in crate::dialect) enum SharedSetting {
    /// Whether they run.
    Enabled,
    /// The default timeout.
    Timeout(TimeUnit),
    /// What a timeout counts as.
    OnTimeout,
    /// What a failure counts as.
    OnError,
    /// How many of those that run in parallel do so at the same time, for one event.
    MaxParallel,
}

/// The default timeouts.
pub(in crate::dialect) struct DefaultTimeouts {
    /// What a number means.
    pub(in crate::dialect) unit: TimeUnit,
    /// The timeout of programs and servers.
    pub(in crate::dialect) usual: Duration,
    /// The timeout of models.
    pub(in crate::dialect) prompt: Duration,
    /// The timeout of agents.
    pub(in crate::dialect) agent: Duration,
    /// The timeout on events that are in a hurry, by their names.
    pub(in crate::dialect) of_events: &'static [(&'static str, Duration)],
    /// The unit and the timeout of servers, where they are others.
    pub(in crate::dialect) of_http: Option<(TimeUnit, Duration)>,
    /// Whether a program that takes longer refuses what is about to happen.
    pub(in crate::dialect) are_refusals: bool,
}

/// What a number is a number of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::dialect) enum TimeUnit {
    /// Seconds.
    Seconds,
    /// Milliseconds.
    Milliseconds,
    /// Seconds below [`FEWEST_MILLISECONDS`], and milliseconds from there on.
    SecondsOrMilliseconds,
}

/// The smallest number that [`TimeUnit::SecondsOrMilliseconds`] takes for milliseconds.
const FEWEST_MILLISECONDS: f64 = 1e3;

/// What a hook wants of the events it is configured for.
#[derive(Default)]
pub(in crate::dialect) struct EventFilter {
    /// The texts it wants; without, all.
    pub(in crate::dialect) matcher: Option<Matcher>,
    /// What else an event must have.
    pub(in crate::dialect) condition: Option<Arc<dyn Condition>>,
}

impl DefaultTimeouts {
    /// What a number in the timeout of a hook means.
    pub(in crate::dialect) fn unit_of(&self, kind: HandlerKind) -> TimeUnit {
        let of_http = self.of_http.filter(|_| kind == HandlerKind::Http);
        of_http.map_or(self.unit, |(unit, _)| unit)
    }

    /// The default timeout of a hook.
    pub(in crate::dialect) fn usual(&self, row: &EventRow, kind: HandlerKind) -> Duration {
        let of_event = self.of_events.iter().find(|(name, _)| *name == row.name).map(|(_, timeout)| *timeout);
        let of_kind = match kind {
            HandlerKind::Prompt => self.prompt,
            HandlerKind::Agent => self.agent,
            HandlerKind::Http => self.of_http.map_or(self.usual, |(_, usual)| usual),
            HandlerKind::Command | HandlerKind::Rule | HandlerKind::Rego | HandlerKind::Native => self.usual,
        };
        of_event.map_or(of_kind, |timeout| timeout.min(of_kind))
    }
}

impl TimeUnit {
    /// So many of it; `None` if that is nothing or more than there is.
    pub(in crate::dialect) fn duration(self, number: f64) -> Option<Duration> {
        let seconds = match self {
            Self::SecondsOrMilliseconds if number < FEWEST_MILLISECONDS => number,
            Self::Seconds => number,
            Self::Milliseconds | Self::SecondsOrMilliseconds => number / 1e3,
        };
        Duration::try_from_secs_f64(seconds).ok().filter(|duration| !duration.is_zero())
    }

    /// How many of it a duration is; a whole number where it is one.
    pub(in crate::dialect) fn number(self, duration: Duration) -> serde_json::Number {
        let seconds = duration.as_secs_f64();
        // From a second on, milliseconds: any version of such an agent reads them as that.
        let is_in_seconds = match self {
            Self::Seconds => true,
            Self::Milliseconds => false,
            Self::SecondsOrMilliseconds => seconds * 1e3 < FEWEST_MILLISECONDS,
        };
        let number = if is_in_seconds { seconds } else { seconds * 1e3 };
        match serde_json::Number::from_f64(number) {
            Some(fraction) if number.fract() != 0.0 => fraction,
            // No duration has more milliseconds than fit.
            _ => {
                let whole = if is_in_seconds { u128::from(duration.as_secs()) } else { duration.as_millis() };
                u64::try_from(whole).unwrap_or(u64::MAX).into()
            }
        }
    }
}
