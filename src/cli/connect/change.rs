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
    place::{AgentPlace, step},
    settings_file::{AgentSettingsFile, fault_point},
};
use crate::{
    config::{AgentConnection, ConnectionRecord, ConnectionStore, DaemonCommand, sha256},
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
    pub(super) notes: Vec<String>,
}

impl ConnectionChange<'_> {
    /// Writes the record, then the settings: whatever breaks it off, the settings are whole, and the record says how they
    /// were. Returns whether the settings have changed.
    pub(super) fn apply(
        &self,
        store: &ConnectionStore,
        record: &mut ConnectionRecord,
    ) -> Result<bool, CliError> {
        let is_same = self.file.bytes.as_deref() == Some(self.after.as_bytes());
        if !is_same {
            // The record must not name what is refused.
            self.file.check_replaceable()?;
        }
        let position =
            record.connections.iter().position(|known| known.is_of(self.agent.dialect, &self.file.path));
        let written = match position {
            Some(at) if is_same => record.connections[at].written.clone(),
            _ => sha256(self.after.as_bytes()),
        };
        let before = match position {
            Some(at) if is_same => record.connections[at].before.clone(),
            _ => match &self.before {
                Backup::None => None,
                Backup::New(bytes) => Some(store.back_up(bytes)?),
                Backup::Kept(digest) => digest.clone(),
            },
        };
        let connection = AgentConnection {
            agent: self.agent.dialect.as_str().to_owned(),
            reach: self.place.reach,
            root: self.place.root.clone(),
            file: self.file.path.clone(),
            events: self.events.clone(),
            written,
            before,
        };
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
        if !is_same {
            self.file.replace(self.after.as_bytes())?;
        }
        store.remove_unused_backups(record);
        Ok(!is_same)
    }

    /// What would change, for `--dry-run`.
    pub(super) fn preview(&self, screen: &Screen) -> String {
        let mut page = Page::default();
        let before = self.file.bytes.as_deref().map(String::from_utf8_lossy).unwrap_or_default();
        let name = display_path(&self.file.path);
        if before == self.after.as_str() {
            page.line(&format!("{name}: nothing would change"));
        }
        let diff = TextDiff::from_lines(&*before, &self.after);
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
        step(&mut page, screen, "serves", &format!("workspaces in {}", display_path(&self.place.root)));
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
