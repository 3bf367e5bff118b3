//! What was measured, the table `handlers` that follows from it, and that table in the settings file.

use std::{
    collections::BTreeMap,
    fs,
    io::{ErrorKind, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    time::Duration,
};

use serde::Serialize;

use super::{
    super::{
        escape,
        exit::CliError,
        handlers::{
            HandlersEdit,
            edit::{HandlerChange, key_text},
        },
        paths::{display_path, shell_quoted},
        screen::Screen,
        table::{EMPTY_CELL, Page, TextTable},
        units::{plural, precise_duration},
        wrap,
    },
    key::key_of,
    rules::{self, RuleDetail, RuleProposal, RuleRefusal},
    trial::ModeTrial,
};
use crate::{
    config::HandlerMode,
    model::{CommandMode, Handler, Hook, io_reason},
    registry::Snapshot,
};

/// A mode must take at most this share of the time of the present one.
const MOST_TIME: f64 = 0.8;

/// A mode must save at least so much.
const LEAST_SAVED: Duration = Duration::from_micros(500);

/// The most backups of a settings file.
const MOST_BACKUPS: usize = 100;

/// How a hook did.
#[derive(Debug, Serialize)]
pub(super) struct TunedHook {
    name: String,
    /// What the settings call it.
    #[serde(skip)]
    key: String,
    /// The mode that it has now.
    mode: Option<&'static str>,
    #[serde(skip)]
    current: Option<HandlerMode>,
    events: usize,
    modes: Vec<MeasuredMode>,
    #[serde(skip_serializing_if = "Option::is_none")]
    proposal: Option<&'static str>,
    /// Why it was not measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    skipped: Option<String>,
    #[serde(skip)]
    failed: bool,
}

/// One mode of a hook.
#[derive(Debug, Serialize)]
struct MeasuredMode {
    mode: &'static str,
    answers: usize,
    median_ms: Option<f64>,
    #[serde(skip)]
    median: Option<Duration>,
    /// Why it cannot be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<String>,
}

/// Everything that was measured.
#[derive(Debug, Serialize)]
pub(super) struct TuneReport {
    recording: Option<String>,
    rounds: u32,
    hooks: Vec<TunedHook>,
    handlers: BTreeMap<String, ProposedEntry>,
    /// The settings file that has it now.
    written: Option<PathBuf>,
    /// Where the former settings are.
    backup: Option<PathBuf>,
    /// Rules that would take the place of commands.
    pub(super) rules: Vec<RuleProposal>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    no_rules: Vec<RuleRefusal>,
}

/// An entry of `handlers`.
#[derive(Debug, Serialize)]
struct ProposedEntry {
    mode: &'static str,
    #[serde(skip)]
    value: HandlerMode,
    #[serde(skip)]
    gain: String,
}

impl TunedHook {
    pub(super) fn new(hook: &Hook, snapshot: &Snapshot) -> Self {
        let current = match &hook.handler {
            Handler::Command(command) => Some(match command.mode {
                CommandMode::Oneshot => HandlerMode::Oneshot,
                CommandMode::Prespawn { .. } => HandlerMode::Prespawn,
                CommandMode::Worker(_) => HandlerMode::Worker,
            }),
            _ => None,
        };
        Self {
            name: hook.name.as_str().to_owned(),
            key: key_of(hook, snapshot),
            mode: current.map(HandlerMode::as_str),
            current,
            events: 0,
            modes: Vec::new(),
            proposal: None,
            skipped: None,
            failed: false,
        }
    }

    pub(super) fn name(&self) -> String {
        escape::line(&self.name).into_owned()
    }

    /// Notes that it could not be measured.
    pub(super) fn skip(&mut self, why: String) {
        self.skipped = Some(why);
        self.failed = true;
    }

    /// Notes that nothing concerns it, which is a failure where it was asked for.
    pub(super) fn pass_over(&mut self, why: &str, is_one_of_all: bool) {
        self.skipped = Some(why.to_owned());
        self.failed = !is_one_of_all;
    }

    /// Notes what was measured, and decides.
    pub(super) fn measured(&mut self, events: usize, modes: [ModeTrial; 3]) {
        self.events = events;
        self.failed = modes[0].fails;
        self.proposal = proposal(self.current, &modes).map(HandlerMode::as_str);
        self.modes = modes.into_iter().map(MeasuredMode::of).collect();
    }

    fn median_of(&self, mode: &str) -> Option<Duration> {
        self.modes.iter().find(|known| known.mode == mode)?.median
    }
}

impl MeasuredMode {
    fn of(trial: ModeTrial) -> Self {
        let median = trial.median();
        Self {
            mode: trial.mode.as_str(),
            answers: trial.times.len(),
            median_ms: median.map(|median| (median.as_secs_f64() * 1e6).round() / 1e3),
            median,
            refused: trial.refused,
        }
    }
}

/// The mode that is clearly faster than the present one, if there is one.
fn proposal(current: Option<HandlerMode>, modes: &[ModeTrial; 3]) -> Option<HandlerMode> {
    let now = modes.iter().find(|trial| Some(trial.mode) == current)?.median()?;
    let usable = modes.iter().filter_map(|trial| Some((trial.median()?, trial.mode)));
    let (best, mode) = usable.min_by_key(|(median, _)| *median)?;
    let is_faster =
        best.as_secs_f64() <= now.as_secs_f64() * MOST_TIME && now.saturating_sub(best) >= LEAST_SAVED;
    is_faster.then_some(mode)
}

impl TuneReport {
    pub(super) fn new(hooks: Vec<TunedHook>, recording: Option<String>, rounds: u32) -> Self {
        let entry = |hook: &TunedHook| {
            let value = *HandlerMode::ALL.iter().find(|mode| Some(mode.as_str()) == hook.proposal)?;
            let now = hook.median_of(hook.mode?)?;
            let then = hook.median_of(value.as_str())?;
            let gain = format!("{} → {}", precise_duration(now), precise_duration(then));
            Some((hook.key.clone(), ProposedEntry { mode: value.as_str(), value, gain }))
        };
        let handlers = hooks.iter().filter_map(entry).collect();
        let (rules, no_rules) = (Vec::new(), Vec::new());
        Self { recording, rounds, hooks, handlers, written: None, backup: None, rules, no_rules }
    }

    /// The same, with what was found about rules.
    pub(super) fn with_rules(
        mut self,
        found: Vec<Result<RuleProposal, RuleRefusal>>,
        detail: RuleDetail,
    ) -> Self {
        for found in found {
            match found {
                Ok(proposal) => self.rules.push(proposal),
                Err(refusal) if detail == RuleDetail::WithRefusals => self.no_rules.push(refusal),
                Err(_) => {}
            }
        }
        self
    }

    /// Leaves out the modes of hooks that a rule takes the place of.
    pub(super) fn without_modes_of_rules(&mut self) {
        for rule in self.rules.iter().filter(|rule| rule.can_be_written()) {
            let key = self.hooks.iter().find(|hook| hook.name == rule.hook).map(|hook| hook.key.clone());
            key.map(|key| self.handlers.remove(&key));
        }
    }

    /// Whether every hook was measured that should be.
    pub(super) fn is_complete(&self) -> bool {
        !self.hooks.iter().any(|hook| hook.failed)
    }

    /// Merges the proposal into a settings file, if that changes it.
    ///
    /// Returns an error if the file cannot be written, or not without a change of anything else.
    pub(super) fn write(&mut self, named: &Path) -> Result<(), CliError> {
        let modes = self
            .handlers
            .iter()
            .map(|(key, entry)| (key.clone(), HandlerChange::Mode(entry.value)))
            .collect();
        let Some(edit) = HandlersEdit::of(named, &modes, &self.table())? else { return Ok(()) };
        let former = edit.file.bytes.as_ref();
        self.backup = former.map(|former| back_up(&edit.file.path, former)).transpose()?;
        edit.write()?;
        self.written = Some(edit.file.path);
        Ok(())
    }

    /// The table as it stands in the settings.
    fn table(&self) -> String {
        let entry = |(key, entry): (&String, &ProposedEntry)| {
            format!("  {}:\n    mode: {} # {}\n", key_text(key), entry.mode, entry.gain)
        };
        format!("handlers:\n{}", self.handlers.iter().map(entry).collect::<String>())
    }

    /// Whether the settings file was changed.
    pub(super) fn is_written(&self) -> bool {
        self.written.is_some() || self.rules.iter().any(RuleProposal::changes_settings)
    }

    /// The report for people.
    pub(super) fn page(&self, config: &Path, screen: &Screen) -> String {
        let mut page = Page::default();
        let events = self
            .recording
            .as_ref()
            .map_or_else(|| "made-up events".to_owned(), |name| format!("events of {}", escape::line(name)));
        page.line(&format!("{} answers of each hook in each mode, {events}", self.rounds));
        page.block(&self.times(screen));
        let width = screen.table_width();
        for hook in &self.hooks {
            let refused =
                hook.modes.iter().filter_map(|mode| Some((Some(mode.mode), mode.refused.as_ref()?)));
            let all = hook.skipped.iter().map(|why| (None, why)).chain(refused);
            for (mode, why) in all {
                let mode = mode.map(|mode| format!(", {mode}")).unwrap_or_default();
                let line = format!("{}{mode}: {}", hook.name(), escape::line(why));
                page.line(&wrap::hanging(&line, width, 2));
            }
        }
        self.add_next(&mut page, config);
        rules::add_to(&mut page, &self.rules, &self.no_rules, screen);
        page.into_text()
    }

    fn times(&self, screen: &Screen) -> String {
        let mut table = TextTable::new(
            &["hook", "mode now", "oneshot", "prespawn", "worker", "proposal"],
            screen.out.paint,
        )
        .right_aligned([2, 3, 4]);
        for hook in self.hooks.iter().filter(|hook| hook.skipped.is_none()) {
            let time = |mode: HandlerMode| {
                hook.median_of(mode.as_str()).map_or_else(|| EMPTY_CELL.to_owned(), precise_duration)
            };
            let [oneshot, prespawn, worker] = HandlerMode::ALL.map(time);
            let or_empty = |word: Option<&str>| word.unwrap_or(EMPTY_CELL).to_owned();
            table.add([hook.name(), or_empty(hook.mode), oneshot, prespawn, worker, or_empty(hook.proposal)]);
        }
        table.render()
    }

    /// What to do with the proposal.
    fn add_next(&self, page: &mut Page, config: &Path) {
        if self.handlers.is_empty() {
            return page.line("\nNothing to change.");
        }
        page.line(&format!("\n{} would be faster:\n", plural(self.handlers.len(), "hook")));
        page.line(&escape::block(&self.table(), 0));
        let Some(file) = &self.written else {
            return page.line(&format!("\n`--write` merges it into {}", shell_quoted(config)));
        };
        let former =
            self.backup.as_ref().map(|backup| format!("; the former file is {}", display_path(backup)));
        page.line(&format!("\nwritten to {}{}", display_path(file), former.unwrap_or_default()));
    }
}

/// Keeps the former settings beside the file, with a mode that only its owner can read.
pub(super) fn back_up(file: &Path, bytes: &[u8]) -> Result<PathBuf, CliError> {
    let fault = |path: &Path, why: &str| CliError::new(format!("the backup {} {why}", escape::path(path)));
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    for number in 1..=MOST_BACKUPS {
        let number = if number == 1 { String::new() } else { format!(".{number}") };
        let path = file.with_file_name(format!("{name}.bak{number}"));
        let mut options = fs::File::options();
        match options.create_new(true).write(true).mode(0o600).open(&path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(fault(&path, &format!("cannot be written: {}", io_reason(&error)))),
            Ok(mut backup) => {
                let written = backup.write_all(bytes).and_then(|()| backup.sync_all());
                let written = written
                    .map_err(|error| fault(&path, &format!("cannot be written: {}", io_reason(&error))));
                return written.map(|()| path);
            }
        }
    }
    Err(fault(file, "cannot be made: there are too many; remove some"))
}
