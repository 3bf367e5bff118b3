//! A dialect with native event names: its event table, its fields, and the functions in which it differs.

use std::{borrow::Cow, fmt, path::Path};

use super::{
    document::{with_finite_numbers, without_comments, without_trailing_commas},
    event_reader::{EventVocabulary, NameTable},
    event_table::EventRow,
    settings::{BesideJson, PluginFormat, SettingsFile, SettingsFormat, SettingsLocation, SharedKey},
};
use crate::model::{
    DialectName, Draft, Event, EventKind, Failure, Hook, HostResponse, Json, JsonError, Outcome, RawReply,
    Reply, ResponseFormat, Scope, Target, Verdict, Workspace,
};

/// A dialect with native event names.
pub struct NativeDialect {
    pub(super) name: DialectName,
    /// Its events.
    pub(super) rows: &'static [EventRow],
    /// Its fields that have a canonical name, each with that name.
    pub(super) fields: &'static [(&'static str, &'static str)],
    /// Its other spelling, if it has two.
    pub(super) spelling: Spelling,
    /// The first fields of its envelopes, in order.
    pub(super) envelope_fields: &'static [(&'static str, EnvelopeField)],
    /// Further fields of its own. Hosts of other dialects that have one of the same name mean the same by it.
    pub(super) own_fields: &'static [&'static str],
    /// Its field with the directories of the workspace, if its events do not all name a working directory.
    pub(super) roots_field: Option<&'static str>,
    /// The session of events that name none, if there are such events.
    pub(super) default_session: Option<&'static str>,
    /// The variables of the agent that its hooks get as it has them.
    pub(super) host_variables: &'static [&'static str],
    /// The field with the id of the prompt that is worked on, if there is one.
    pub(super) prompt_field: Option<&'static str>,
    /// Its configuration.
    pub(super) settings: SettingsFormat,
    /// Whether it ends the standard input of its commands with a newline. Without one, `read` of a shell fails on the
    /// last line.
    pub(super) ends_input_with_newline: bool,
    /// Whether a command whose output begins so goes on in the background.
    pub(super) goes_on_in_background: fn(&[u8]) -> bool,
    /// The variables of its commands.
    pub(super) environment: fn(&Draft, &Workspace) -> Vec<(&'static str, String)>,
    /// The format of a model's answer.
    pub(super) response_format: fn(&EventRow) -> ResponseFormat,
    /// Reads a hook's reply.
    pub(super) read_reply: fn(&Self, &EventRow, &Hook, RawReply) -> Result<Reply, Failure>,
    /// Writes the answer to an event; without a row, to one that could not be read.
    pub(super) write_response: fn(&Event, Option<&EventRow>, &Outcome) -> HostResponse,
    /// Converts a part of the payload of another dialect's host for its hooks; `None` leaves it unchanged.
    pub(super) translate: fn(&Event, Target, &Json) -> Option<Json>,
    /// Merges a patch into the current value.
    pub(super) apply_patch: fn(Target, Option<&Json>, &Json) -> Result<Json, JsonError>,
    /// Merges a reply with the earlier ones, on events whose row demands it.
    pub(super) combine: fn(&EventRow, &Draft, &[Reply], Reply) -> Reply,
    /// The verdicts after whose stage no further hook runs.
    pub(super) ends_chain: fn(EventKind) -> &'static [Verdict],
}

/// How a dialect with two spellings of its events and fields tells them apart. Its hosts send events in the first one.
pub(super) struct Spelling {
    /// The dialect in its second spelling; in that itself, none.
    pub(super) second: Option<&'static NativeDialect>,
    /// The kinds that have the second spelling, however hooks on them are configured.
    pub(super) always_second: &'static [EventKind],
    /// Fields of the second spelling that hosts send, each with its canonical name.
    pub(super) also_read: &'static [(&'static str, &'static str)],
    /// Tools and fields as hosts name them, each with its name in this spelling. Of several, the first counts.
    pub(super) renamed: [&'static [(&'static str, &'static str)]; 2],
}

impl Spelling {
    /// There is one alone.
    pub(super) const ONE: Self =
        Self { second: None, always_second: &[], also_read: &[], renamed: [&[], &[]] };

    /// A name of a host in this spelling.
    pub(super) fn name_of<'n>(&self, name: &'n str) -> &'n str {
        self.renamed.into_iter().flatten().find(|(known, _)| *known == name).map_or(name, |(_, own)| own)
    }

    /// Whether any name differs from that of the hosts.
    pub(super) fn renames(&self) -> bool {
        self.renamed.iter().any(|names| !names.is_empty())
    }
}

/// The source of one of the first fields of an envelope.
#[derive(Debug, Clone, Copy)]
pub(super) enum EnvelopeField {
    /// The session.
    Session,
    /// The event's name in the dialect.
    EventName,
    /// The same, on events of this kind alone.
    EventNameOf(EventKind),
    /// The input of a tool, on events of this kind alone.
    InputOf(EventKind),
    /// The host's working directory; by default, the workspace.
    Cwd,
    /// The host's field of the same name; of hosts of other dialects, their working directory.
    CwdOfOthers,
    /// The host's field of the same name; by default, a list with the workspace's directory.
    Roots,
    /// The host's field of the same name; by default, this.
    Own(Option<&'static str>),
    /// The host's field of the same name; by default, the workspace's directory.
    Project,
    /// The host's field of the same name; by default, the time at which hookyard accepted the event.
    Timestamp,
    /// The time at which hookyard accepted the event, in milliseconds since 1970.
    Milliseconds,
    /// The host's field of the same name; by default, an id of the event in the form of a UUID.
    Uuid,
}

impl NativeDialect {
    /// Its settings files.
    pub(crate) fn files(&self) -> &'static [SettingsFile] {
        self.settings.files
    }

    /// Its events, with their kinds.
    #[cfg(all(feature = "cli", feature = "daemon"))]
    pub(crate) fn events(&self) -> impl Iterator<Item = (&'static str, EventKind)> + use<> {
        self.rows.iter().map(|row| (row.name, row.kind))
    }

    /// The text of this settings file as plain JSON, everything in its line and column.
    pub(crate) fn plain_json<'t>(&self, text: &'t str, file: &Path) -> Cow<'t, str> {
        match self.settings.beside_json_in(file) {
            BesideJson::Nothing | BesideJson::NothingIn(_) => Cow::Borrowed(text),
            BesideJson::LargeNumbers => Cow::Owned(with_finite_numbers(text)),
            BesideJson::Comments => Cow::Owned(with_finite_numbers(&without_comments(text))),
            BesideJson::CommentsAndCommas => {
                Cow::Owned(with_finite_numbers(&without_trailing_commas(&without_comments(text))))
            }
        }
    }

    /// Why the agent does not read this settings file, which may be read all the same; a phrase that follows its name.
    pub(crate) fn why_unread(&self, text: &str, file: &Path) -> Option<&'static str> {
        self.settings.why_unread(text, file)
    }

    /// Whether an entry of an event may be a hook itself.
    #[cfg(all(feature = "cli", feature = "daemon"))]
    pub(crate) fn allows_bare_hooks(&self) -> bool {
        self.settings.keys.allows_bare_hooks()
    }

    /// A timeout in the unit of its settings files.
    #[cfg(all(feature = "cli", feature = "daemon"))]
    pub(crate) fn timeout(&self, timeout: std::time::Duration) -> serde_json::Number {
        self.settings.timeouts.unit.number(timeout)
    }

    /// Its files in which hooks may be that are not read.
    pub(crate) fn unread_files(&self) -> &'static [SettingsFile] {
        self.settings.unread
    }

    /// The names of its events without a kind of their own that hooks can stop.
    pub(crate) fn stoppable_host_events(&self) -> impl Iterator<Item = &'static str> {
        let rows = self.rows.iter().filter(|row| row.kind == EventKind::HostEvent && row.prevents());
        rows.map(|row| row.name)
    }

    /// How plugins have hooks.
    pub(crate) fn plugins(&self) -> PluginFormat {
        self.settings.plugins
    }

    /// The keys of its configuration that apply to all hooks.
    pub(crate) fn shared_keys(&self) -> &'static [SharedKey] {
        self.settings.shared
    }

    /// The environment variables of hookyard with the same meaning.
    pub(crate) fn variables(&self) -> impl Iterator<Item = &'static str> {
        self.shared_keys().iter().map(|word| word.variable)
    }

    /// The key that disables all its hooks.
    pub(crate) fn disable_key(&self) -> &'static str {
        self.settings.disable.word()
    }

    /// The environment variable of hookyard that disables or enables its hooks.
    pub(crate) fn enabled_variable(&self) -> Option<&'static str> {
        let is_switch = |word: &&SharedKey| word.is_switch();
        self.settings.shared.iter().find(is_switch).map(|word| word.variable)
    }

    /// The key that permits hooks of the administrator only.
    pub(crate) fn managed_only_key(&self) -> Option<&'static str> {
        self.settings.managed_only
    }

    /// The scope whose turn the hooks of a file have, so that they run in the order of the files.
    pub(super) fn turn(&self, scope: Scope, file: &Path) -> Scope {
        let files = self.settings.files;
        let mut turns: Vec<Scope> = files.iter().map(|known| known.scope).collect();
        turns.sort_unstable();
        let turn = files.iter().position(|known| known.scope == scope).map_or(scope, |place| turns[place]);
        // Those of one turn run in the order of their paths.
        let of_scope = || files.iter().filter(|known| known.scope == scope).map(|known| known.location);
        let place = of_scope().position(|location| location.has(file)).unwrap_or_default();
        let paths: Vec<_> = of_scope().map(SettingsLocation::path).take(place + 1).collect();
        let is_late = paths.iter().any(|path| *path > paths[place]);
        let next = turns.into_iter().find(|next| is_late && *next > turn && next.level(0) == turn.level(0));
        next.unwrap_or(turn)
    }

    /// The row of an event, also of a host of another dialect.
    pub(super) fn row(&self, event: &Event) -> Option<&'static EventRow> {
        let name = event.host_event.as_ref().map(|host| &*host.name);
        self.row_of(event.kind, name)
    }

    /// The row of a kind; of host events, that of the name.
    pub(super) fn row_of(&self, kind: EventKind, host_event: Option<&str>) -> Option<&'static EventRow> {
        let is_it = |row: &&EventRow| row.kind == kind && host_event.is_none_or(|name| row.name == name);
        self.rows.iter().find(is_it).filter(|_| kind != EventKind::HostEvent || host_event.is_some())
    }

    /// The row of a native name.
    pub(super) fn row_named(&self, name: &str) -> Option<&'static EventRow> {
        self.rows.iter().find(|row| row.name == name)
    }

    /// The event of a name in a settings file, and the dialect in the spelling of its hooks.
    pub(super) fn configured(&'static self, name: &str) -> Option<(&'static Self, &'static EventRow)> {
        let Spelling { second, always_second, .. } = self.spelling;
        match (self.row_named(name), second) {
            (Some(row), Some(second)) if always_second.contains(&row.kind) => Some((second, row)),
            (Some(row), _) => Some((self, row)),
            (None, second) => second.and_then(|second| Some((second, second.row_named(name)?))),
        }
    }

    /// The names by which its events are read.
    pub(super) fn vocabulary(&self) -> EventVocabulary {
        EventVocabulary {
            dialect: self.name,
            roots_field: self.roots_field,
            default_session: self.default_session,
            kind_fields: &["hook_event_name", "hookName"][..=usize::from(self.spelling.second.is_some())],
            names: NameTable::Native {
                rows: self.rows,
                fields: self.fields,
                also_read: self.spelling.also_read,
            },
        }
    }
}

impl fmt::Debug for NativeDialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Native({})", self.name)
    }
}
