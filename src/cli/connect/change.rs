//! A connection that is about to be made: what it writes, how it is shown, and the proof that it works: a test event,
//! sent as the agent would send it.

use std::path::Path;

use serde_json::json;
use similar::TextDiff;
use tokio::time::Instant;

use super::{
    super::{
        escape,
        exit::{CliError, CliResult, Exit},
        paths::display_path,
        screen::Screen,
        table::Page,
        units::{plural, precise_duration},
    },
    agents::{AgentProfile, InstalledAgent},
    entries::AgentSettings,
    place::{AgentPlace, invalid, step},
    settings_file::{AgentSettingsFile, fault_point},
};
use crate::{
    config::{AgentConnection, ConnectionReach, ConnectionRecord, ConnectionStore, DaemonCommand, sha256},
    daemon::{Client, ClientError, DaemonStatus, ProcessAnswer},
    dialect::NativeDialect,
    model::EventKind,
};

/// The session of test events.
const TEST_SESSION: &str = "hookyard-connect";

/// The tool call of test events, which does nothing.
const TEST_COMMAND: &str = "true";

/// The lines around a change in a diff.
const CONTEXT_LINES: usize = 2;

/// What becomes of the settings at `disconnect`, if nobody changes them until then.
pub(super) enum Backup {
    /// The file is removed: there was none.
    None,
    /// It gets these bytes.
    New(Vec<u8>),
    /// It gets what was kept for it before.
    Kept(Option<String>),
}

impl Backup {
    /// What to keep of a settings file, which may have entries already, and hooks that were moved out of it.
    pub(super) fn of(
        agent: &AgentProfile,
        file: &AgentSettingsFile,
        is_unconnected: bool,
        known: Option<&AgentConnection>,
        moved: Option<&AgentSettingsFile>,
    ) -> Result<Self, CliError> {
        Ok(match &file.bytes {
            None => Self::None,
            Some(bytes) if is_unconnected => Self::New(bytes.clone()),
            Some(bytes) => match known {
                Some(known) if known.written == sha256(bytes) => Self::Kept(known.before.clone()),
                _ => Self::New(before_connecting(agent, file, moved)?),
            },
        })
    }
}

/// The file with the hooks that are moved out of the settings, where they are.
pub(super) struct MovedHooks {
    pub(super) file: AgentSettingsFile,
    /// Its text, if it is to be written.
    pub(super) text: Option<String>,
    /// How many hooks it has.
    pub(super) count: usize,
}

/// What a connection writes.
pub(super) struct ConnectionChange<'a> {
    pub(super) agent: &'static AgentProfile,
    pub(super) installed: Option<&'a InstalledAgent>,
    pub(super) place: AgentPlace,
    pub(super) file: AgentSettingsFile,
    pub(super) before: Backup,
    pub(super) after: String,
    pub(super) events: Vec<String>,
    pub(super) daemon: DaemonCommand,
    pub(super) own_hooks: usize,
    pub(super) adopted: Option<MovedHooks>,
    pub(super) notes: Vec<String>,
}

impl ConnectionChange<'_> {
    /// Writes the record, then the settings: whatever breaks it off, the settings are whole, and the record says how they
    /// were. Hooks are moved by the last step alone, which replaces the settings: before it, nobody reads the file that they
    /// are moved to. Returns whether the settings have changed.
    pub(super) fn apply(
        &self,
        store: &ConnectionStore,
        record: &mut ConnectionRecord,
    ) -> Result<bool, CliError> {
        let is_same = self.file.bytes.as_deref() == Some(self.after.as_bytes());
        let moved = self.adopted.as_ref().and_then(|adopted| Some((&adopted.file, adopted.text.as_deref()?)));
        if !is_same {
            // The record must not name what is refused.
            self.file.check_replaceable()?;
            moved.map_or(Ok(()), |(file, _)| file.check_replaceable())?;
        }
        let position =
            record.connections.iter().position(|known| known.is_of(self.agent.dialect, &self.file.path));
        let connection = self.connection(position.map(|at| &record.connections[at]), is_same, store)?;
        let mut changed = record.clone();
        changed.daemon = Some(self.daemon.clone());
        match position {
            Some(at) => changed.connections[at] = connection,
            None => changed.connections.push(connection),
        }
        fault_point("backed-up");
        if changed != *record {
            store.write(&changed)?;
        }
        *record = changed;
        fault_point("recorded");
        if let Some((file, text)) = moved {
            file.remove_leftover();
            file.replace(text.as_bytes())?;
            fault_point("moved");
        }
        if !is_same {
            self.file.replace(self.after.as_bytes())?;
        }
        store.remove_unused_backups(record);
        Ok(!is_same)
    }

    /// What the record says about the agent from now on. What was there before is backed up.
    fn connection(
        &self,
        known: Option<&AgentConnection>,
        is_same: bool,
        store: &ConnectionStore,
    ) -> Result<AgentConnection, CliError> {
        let known_if_same = known.filter(|_| is_same);
        let written = known_if_same.map(|known| known.written.clone());
        let before = match (known_if_same, &self.before) {
            (Some(known), _) => known.before.clone(),
            (None, Backup::None) => None,
            (None, Backup::New(bytes)) => Some(store.back_up(bytes)?),
            (None, Backup::Kept(digest)) => digest.clone(),
        };
        let is_kept = is_same || matches!(self.before, Backup::Kept(_));
        let adopted = self.adopted.as_ref().and_then(|MovedHooks { file, text, .. }| match (text, known) {
            (Some(text), _) => Some(sha256(text.as_bytes())),
            // With the backup of before, for which it must be as it was then.
            (None, Some(known)) if is_kept => known.adopted.clone(),
            (None, _) => file.bytes.as_deref().map(sha256),
        });
        Ok(AgentConnection {
            agent: self.agent.dialect.as_str().to_owned(),
            reach: self.place.reach,
            root: self.place.root.clone(),
            outside: self.place.outside_with(known),
            file: self.file.path.clone(),
            events: self.events.clone(),
            written: written.unwrap_or_else(|| sha256(self.after.as_bytes())),
            before,
            made: self.file.made_directory(known.and_then(|known| known.made.as_deref())),
            adopted,
        })
    }

    /// What would change, for `--dry-run`.
    pub(super) fn preview(&self, screen: &Screen) -> String {
        let mut page = Page::default();
        if self.file.bytes.as_deref() == Some(self.after.as_bytes()) {
            page.line(&format!("{}: nothing would change", display_path(&self.file.path)));
        }
        add_diff(&mut page, &self.file, &self.after, screen);
        if let Some(MovedHooks { file, text: Some(text), .. }) = &self.adopted {
            add_diff(&mut page, file, text, screen);
        }
        self.add_notes(&mut page, screen);
        page.line("Nothing was changed (`--dry-run`).");
        page.into_text()
    }

    /// What was done.
    pub(super) fn report(
        &self,
        changed: bool,
        store: &ConnectionStore,
        record: &ConnectionRecord,
        screen: &Screen,
    ) -> String {
        let mut page = Page::default();
        let title = self.agent.title;
        let found = self.installed.map_or_else(
            || "not found".to_owned(),
            |installed| {
                let version = installed.version.map(|version| format!(" {version}")).unwrap_or_default();
                format!("{title}{version}, {}", escape::path(&installed.program))
            },
        );
        step(&mut page, screen, "agent", &found);
        let events = plural(self.events.len(), "event");
        let file = display_path(&self.file.path);
        let what = if changed { format!("{file}: {events}") } else { format!("{file}: {events}, as before") };
        step(&mut page, screen, "settings", &what);
        let known = record.connections.iter().find(|known| known.is_of(self.agent.dialect, &self.file.path));
        if let Some(digest) = known.and_then(|known| known.before.as_deref()) {
            step(&mut page, screen, "backup", &display_path(&store.backup_path(digest)));
        }
        step(&mut page, screen, "serves", &self.place.serves(known));
        if let Some(adopted) = &self.adopted {
            let hooks = plural(adopted.count, "hook");
            let file = display_path(&adopted.file.path);
            let text = format!("{hooks} of {title}, which hookyard runs now: {file}");
            step(&mut page, screen, "adopted", &text);
        }
        if self.own_hooks > 0 {
            let hooks = plural(self.own_hooks, "hook");
            step(
                &mut page,
                screen,
                "hooks",
                &format!("{hooks} of this file stay with {title}, which runs them"),
            );
        }
        self.add_notes(&mut page, screen);
        page.into_text()
    }

    fn add_notes(&self, page: &mut Page, screen: &Screen) {
        for note in &self.notes {
            step(page, screen, "note", note);
        }
        for event in self.agent.on_demand_events() {
            if !self.events.iter().any(|known| known == event.name) {
                let how = format!("`--event {}` connects it", event.name);
                step(page, screen, "left out", &format!("{}: {}; {how}", event.name, event.cost));
            }
        }
    }
}

/// The lines that would change in a file.
fn add_diff(page: &mut Page, file: &AgentSettingsFile, after: &str, screen: &Screen) {
    let before = file.bytes.as_deref().map(String::from_utf8_lossy).unwrap_or_default();
    let name = display_path(&file.path);
    let diff = TextDiff::from_lines(&*before, after);
    let paint = screen.out.paint;
    let mut diff = diff.unified_diff();
    for line in diff.context_radius(CONTEXT_LINES).header(&name, &name).to_string().lines() {
        let shown = escape::source(line);
        page.line(&match line.as_bytes().first() {
            Some(b'+') => paint.green(&shown),
            Some(b'-') => paint.red(&shown),
            Some(b'@') => paint.dim(&shown),
            _ => shown,
        });
    }
}

/// The settings as they would be without hookyard: without its entries, and with the hooks that it has adopted.
fn before_connecting(
    agent: &AgentProfile,
    file: &AgentSettingsFile,
    adopted: Option<&AgentSettingsFile>,
) -> Result<Vec<u8>, CliError> {
    let settings = settings_in(agent, file)?;
    settings.remove_entries(agent);
    if let Some(adopted) = adopted {
        settings.put_back(&settings_in(agent, adopted)?);
    }
    Ok(settings.text().into_bytes())
}

/// The settings in a file.
pub(super) fn settings_in(agent: &AgentProfile, file: &AgentSettingsFile) -> Result<AgentSettings, CliError> {
    AgentSettings::read(agent, &file.path, file.bytes.as_deref()).map_err(|error| invalid(file, &error))
}

pub(super) fn own_hooks_of(agent: &AgentProfile, file: &AgentSettingsFile) -> Result<usize, CliError> {
    Ok(settings_in(agent, file)?.own_hooks(agent).len())
}

/// Moves the hooks of settings to another file; none if there are none.
///
/// Returns an error if that file has hooks that are nowhere else.
pub(super) fn adopt(
    agent: &AgentProfile,
    settings: &AgentSettings,
    (file, moved): (&AgentSettingsFile, AgentSettingsFile),
) -> Result<Option<MovedHooks>, CliError> {
    if moved.bytes.is_some() && !settings_in(agent, &moved)?.missing_in(settings).is_empty() {
        let what = format!(
            "{} has hooks that {} does not have; nothing was changed",
            escape::path(&moved.path),
            escape::path(&file.path)
        );
        let help = format!("`hookyard disconnect {}` puts them back", agent.dialect);
        return Err(CliError::with_help(what, help));
    }
    let taken = settings.take_own_hooks(agent).map_err(|error| invalid(file, &error))?;
    let adopted = taken.map(|taken| {
        let count = taken.own_hooks(agent).len();
        MovedHooks { file: moved, text: Some(taken.text()), count }
    });
    Ok(adopted)
}

/// What a person should know about where the hooks of the agent run.
pub(super) fn adoption_notes(
    agent: &AgentProfile,
    (file, place): (&AgentSettingsFile, &AgentPlace),
    is_adopted: bool,
    record: &ConnectionRecord,
) -> Vec<String> {
    let mut notes = Vec::new();
    if is_adopted && place.reach == ConnectionReach::Project {
        notes.push("hooks of a project run once they are agreed to: `hookyard trust` shows them".to_owned());
    }
    let others = record.connections.iter().filter(|known| {
        known.agent == agent.dialect.as_str()
            && known.file != file.path
            && known.adopted.is_some() != is_adopted
    });
    notes.extend(others.map(|other| {
        let file = escape::path(&other.file);
        format!(
            "it is connected by {file}, too: connect both with `--adopt` or neither, or events come twice"
        )
    }));
    notes
}

/// Sends a test event and shows the answer.
pub(super) fn prove(agent: &AgentProfile, root: &Path, client: &Client, screen: &Screen) -> CliResult {
    let mut page = Page::default();
    let begun = Instant::now();
    let exit = match send(agent, root, client) {
        Ok((event, answer)) => {
            let daemon: Result<DaemonStatus, _> = client.ask("GET", "/v1/status", None);
            let daemon = daemon.map_or_else(
                |_| "hookyard".to_owned(),
                |status| format!("hookyard {}, pid {},", status.version, status.pid),
            );
            let took = precise_duration(begun.elapsed());
            let said = said(&answer);
            step(&mut page, screen, "proof", &format!("{daemon} answered {event} in {took}: {said}"));
            step(&mut page, screen, "next", &format!("start a new session of {}", agent.title));
            Exit::Done
        }
        Err(error) => {
            step(&mut page, screen, "no proof", &escape::line(&error.to_string()));
            step(&mut page, screen, "next", "start the daemon with `hookyard serve`, and run this again");
            Exit::Failed
        }
    };
    screen.print(&page.into_text())?;
    Ok(exit)
}

/// The name of the test event, and the answer to it.
fn send(
    agent: &AgentProfile,
    root: &Path,
    client: &Client,
) -> Result<(&'static str, ProcessAnswer), ClientError> {
    let events = agent.native().into_iter().flat_map(NativeDialect::events);
    let event =
        events.filter(|(_, kind)| *kind == EventKind::BeforeToolDispatch).map(|(name, _)| name).next();
    let event = event.unwrap_or("PreToolUse");
    let root = root.to_string_lossy();
    let body = json!({
        "hook_event_name": event,
        "session_id": TEST_SESSION,
        "transcript_path": "",
        "cwd": root,
        "project_dir": root,
        "tool_name": "Bash",
        "tool_input": { "command": TEST_COMMAND },
    });
    let path = format!("/v1/events/{}?as=process", agent.dialect);
    let answer = client.ask("POST", &path, Some(body.to_string().as_bytes()))?;
    Ok((event, answer))
}

/// What the daemon answered, in a few words.
fn said(answer: &ProcessAnswer) -> String {
    let ProcessAnswer { stdout, stderr, exit_code } = answer;
    match (*exit_code, stdout.trim(), stderr.trim()) {
        (0, "" | "{}", "") => "no objection".to_owned(),
        (0, said, "") | (0, _, said) => escape::short(said, 200),
        (code, said, "") | (code, _, said) => format!("exit code {code}, {}", escape::short(said, 200)),
    }
}
