//! `tune`: run recorded events through command hooks in each mode, and find out which of them gain by another one.

mod adopt;
mod key;
mod made_up;
mod place;
mod proof;
mod report;
mod rules;
#[cfg(test)]
mod tests;
mod trial;

use std::{
    borrow::Cow,
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use clap::Args;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use super::{
    escape,
    exit::{CliError, CliResult, Exit},
    flags::{DialectFlag, JsonFlag, TrustFlag, WorkspaceFlags},
    guard::ScriptPlaces,
    handlers::restart_advice,
    replay::{Recording, print_unreadable_lines},
    screen::Screen,
    session::{ABORT_GRACE, StopSignals, start_error},
    settings::file_to_change,
    units::plural,
    workspace::{LocatedWorkspace, snapshot},
};
use crate::{
    config::{self, LoadedWorkspace, is_called},
    model::{Event, Handler, Hook, HostRuns},
    registry::Snapshot,
};
use adopt::RuleAdoption;
use made_up::made_up;
use report::{TuneReport, TunedHook};
use rules::{RuleDetail, RuleProposal, RuleRefusal};
use trial::TrialEvent;

pub(super) use place::replaced;
pub(super) use proof::{NoRule, ProvenRule, RuleProof};
pub(super) use rules::remarks as rule_remarks;
pub(super) use trial::{HookTrials, TrialStop};

const FOOTER: &str = "\
Examples:
  hookyard tune --events session.jsonl
  hookyard tune lint-guard --events session.jsonl --dialect claude --rounds 50
  hookyard tune --events session.jsonl --config hookyard.yaml --write
  hookyard tune --events session.jsonl --write --rules
  hookyard tune --json | jq .handlers

Each hook runs as often as `--rounds` says in each mode that it can take, with all its effects. A mode is proposed only \
if every answer is the same as that of a process for each event (exit code, standard output and verdict), and it is \
clearly faster. A process that is started before its event also reads its own files before: a hook whose answer depends \
on such a file, and not only on its input, must stay `oneshot`. Without `--events`, made-up events are used, which may \
not show how the hook works.

A hook that is only a pattern and an answer is shown as a rule if both give the same verdict and reason for the recorded \
events and for others that its patterns make; the hook runs for each of them.

Exit codes: 0 every hook was measured, or no event concerns it; 1 one was not, because it is not trusted, fails, or time \
was up, or the settings could not be written.";

/// Find out which command hooks are faster in warm processes, and propose settings
///
/// Compares the modes `oneshot`, `prespawn` and `worker` of each hook by recorded events, and prints the table `handlers`
/// for the settings; `--write` merges it into the settings file.
#[derive(Debug, Args)]
#[command(after_help = FOOTER)]
pub(super) struct TuneCommand {
    /// Name of a hook, or its command; default: all command hooks
    #[arg(value_name = "HOOK")]
    hooks: Vec<String>,

    /// Recording: one JSON event per line, as for `replay`; `-` reads standard input; default: made-up events
    #[arg(long, value_name = "FILE.jsonl")]
    events: Option<PathBuf>,

    /// Number of events for each hook in each mode; of a longer recording, that many from all over it
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(5..=1000))]
    rounds: u32,

    /// Longest time for all hooks together
    #[arg(long = "for", value_name = "DURATION", default_value = "5m", value_parser = limit)]
    time: Duration,

    /// Write the proposal into the settings file, by default that of the user; the former file is kept beside it
    #[arg(long)]
    write: bool,

    /// With `--write`: also put the rules that are proposed in the place of their commands
    #[arg(long, requires = "write")]
    rules: bool,

    /// Say why the other hooks are no rules
    #[arg(long, short)]
    verbose: bool,

    #[command(flatten)]
    dialect: DialectFlag,

    #[command(flatten)]
    trust: TrustFlag,

    #[command(flatten)]
    workspace: WorkspaceFlags,

    #[command(flatten)]
    output: JsonFlag,
}

/// What was measured of a hook, and whether it is a rule.
type MeasuredHook = (TunedHook, Option<Result<RuleProposal, RuleRefusal>>);

fn limit(text: &str) -> Result<Duration, &'static str> {
    let time = config::duration(text).filter(|time| !time.is_zero());
    time.ok_or("write a number with a unit: `ms`, `s`, `m` or `h`")
}

/// The events that hooks are measured with.
enum EventSource {
    Recorded(Recording),
    MadeUp,
}

impl TuneCommand {
    pub(super) async fn run(self, screen: &Screen) -> CliResult {
        let found = LocatedWorkspace::find_valid(&self.workspace, screen)?;
        let trust = found.settings.trust;
        let mut found = found.trusting(self.trust);
        let file = file_to_change(&self.workspace.settings)?;
        let source = self.source(&found, screen)?;
        let loaded = found.load();
        found.note_problems(&loaded.diagnostics, &loaded.files, screen);
        self.check_names(&loaded)?;
        let mut signals = StopSignals::listen().map_err(|error| start_error(&error))?;
        let cancel = CancellationToken::new();
        let trials = HookTrials::new(&found.settings, &loaded, &cancel);
        let snapshot = snapshot(loaded);
        let places = ScriptPlaces::of(&found.root, &found.settings);
        let mut work = Box::pin(self.measure(&trials, &snapshot, &source, &places, screen));
        let hooks = tokio::select! {
            hooks = &mut work => hooks,
            exit = signals.next() => {
                screen.note("interrupted; stopping running hooks");
                cancel.cancel();
                tokio::select! {
                    _ = timeout(ABORT_GRACE, &mut work) => {}
                    _ = signals.next() => {}
                }
                drop(work);
                trials.end().await;
                return Ok(exit);
            }
        };
        drop(work);
        trials.end().await;
        let report = self.report(hooks, &source);
        found.settings.trust = trust;
        let is_complete = report.is_complete() && source.is_complete();
        self.finish(report, found, &file, screen)?;
        Ok(if is_complete { Exit::Done } else { Exit::Failed })
    }

    fn report(&self, hooks: Vec<MeasuredHook>, source: &EventSource) -> TuneReport {
        let (hooks, rules): (Vec<TunedHook>, Vec<_>) = hooks.into_iter().unzip();
        let detail = if self.verbose { RuleDetail::WithRefusals } else { RuleDetail::Proposals };
        let rules = rules.into_iter().flatten().collect();
        TuneReport::new(hooks, source.name(), self.rounds).with_rules(rules, detail)
    }

    /// Writes what is to be written, and prints the report. The trust of the workspace is that of its daemon: what runs
    /// here without it must not do so later.
    fn finish(
        &self,
        mut report: TuneReport,
        mut found: LocatedWorkspace,
        file: &Path,
        screen: &Screen,
    ) -> Result<(), CliError> {
        let mut adopted = Ok(());
        if self.rules {
            report.without_modes_of_rules();
            let mut adoption = RuleAdoption { found: &mut found, config: file, screen };
            adopted = report.rules.iter_mut().try_for_each(|proposal| adoption.adopt(proposal));
        }
        if self.write && adopted.is_ok() {
            report.write(file)?;
        }
        if self.output.json {
            screen.print_json(&report)?;
        } else {
            screen.print(&report.page(file, screen))?;
        }
        if report.is_written() {
            screen.note(&restart_advice(&found.settings));
        }
        // What was written before the error is in the report.
        adopted
    }

    fn source(&self, found: &LocatedWorkspace, screen: &Screen) -> Result<EventSource, CliError> {
        let Some(file) = &self.events else {
            let hint = "note: made-up events; `--events FILE.jsonl` plays recorded ones";
            screen.note(hint);
            return Ok(EventSource::MadeUp);
        };
        let recording = Recording::read(file, self.dialect.dialect, found.settings.limits.payload)?;
        print_unreadable_lines(&recording, screen);
        if recording.events == 0 {
            let what = format!("{} has no events", escape::path(&recording.name));
            return Err(CliError::with_help(what, "a recording has one JSON event per line"));
        }
        Ok(EventSource::Recorded(recording))
    }

    /// Returns an error if there is no hook of a name that was given.
    fn check_names(&self, loaded: &LoadedWorkspace) -> Result<(), CliError> {
        let unknown = self.hooks.iter().find(|name| !loaded.hooks.iter().any(|hook| is_called(hook, name)));
        unknown.map_or(Ok(()), |name| {
            let what = format!("there is no hook `{}`", escape::line(name));
            Err(CliError::with_help(what, "`hookyard list` shows the hooks of the workspace"))
        })
    }

    /// Measures one hook after the other; each has its share of the time that is left.
    async fn measure(
        &self,
        trials: &HookTrials,
        snapshot: &Snapshot,
        source: &EventSource,
        places: &ScriptPlaces,
        screen: &Screen,
    ) -> Vec<MeasuredHook> {
        let is_meant = |hook: &Hook| match self.hooks.as_slice() {
            [] => {
                let is_entry = hook.execution.host_runs == HostRuns::Entry;
                hook.enabled && !is_entry && matches!(hook.handler, Handler::Command(_))
            }
            names => names.iter().any(|name| is_called(hook, name)),
        };
        let meant: Vec<&Hook> =
            snapshot.hooks().iter().map(|known| &known.hook).filter(|hook| is_meant(hook)).collect();
        let end = Instant::now() + self.time;
        let mut measured = Vec::new();
        for (place, hook) in meant.iter().enumerate() {
            let mut tuned = TunedHook::new(hook, snapshot);
            let mut rule = None;
            let events = source.events(hook, snapshot, self.rounds as usize);
            if let Some(why) = not_measurable(hook) {
                tuned.skip(why);
            } else if events.is_empty() {
                tuned.pass_over(source.why_none(), self.hooks.is_empty());
            } else {
                let left = end.saturating_duration_since(Instant::now());
                let share = left / u32::try_from(meant.len() - place).unwrap_or(u32::MAX);
                if screen.err.is_terminal {
                    screen.note(&format!("{} with {}", tuned.name(), plural(events.len(), "event")));
                }
                let deadline = Instant::now() + share;
                match trials.measure(hook, &events, self.rounds as usize, deadline).await {
                    Ok(modes) => {
                        tuned.measured(events.len(), modes);
                        let recorded: &[TrialEvent] = if source.is_recorded() { &events } else { &[] };
                        let proof = RuleProof { trials, snapshot, places };
                        match rules::rule_for(&proof, hook, recorded, deadline).await {
                            Ok(found) => rule = Some(found),
                            Err(TrialStop::OutOfTime | TrialStop::Cancelled) => return measured,
                        }
                    }
                    Err(TrialStop::OutOfTime) => {
                        tuned.skip("its share of the time was up; `--for` gives more".into());
                    }
                    Err(TrialStop::Cancelled) => return measured,
                }
            }
            measured.push((tuned, rule));
        }
        measured
    }
}

/// Why a hook must not run here.
fn not_measurable(hook: &Hook) -> Option<String> {
    if !matches!(hook.handler, Handler::Command(_)) {
        return Some(format!("it is no command, but of type {}", hook.handler.kind()));
    }
    if !hook.enabled {
        return Some("it is disabled".to_owned());
    }
    let refusal = || hook.trust.refusal().unwrap_or_default().to_owned();
    hook.trust.approval().is_none().then(refusal)
}

impl EventSource {
    /// At most so many events for a hook, from all over the recording.
    fn events(&self, hook: &Hook, snapshot: &Snapshot, most: usize) -> Vec<TrialEvent> {
        let all: Vec<(String, Cow<'_, Event>)> = match self {
            Self::Recorded(recording) => recorded_for(hook, recording, snapshot),
            Self::MadeUp => hook
                .events
                .iter()
                .filter_map(|kind| Some((format!("made-up {kind}"), Cow::Owned(made_up(hook, kind)?))))
                .collect(),
        };
        let count = all.len().min(most);
        let chosen: BTreeSet<usize> = (0..count).map(|place| place * all.len() / count).collect();
        let events = all.into_iter().enumerate().filter(|(place, _)| chosen.contains(place));
        let events = events.map(|(_, (label, event))| {
            let workspace_id = Some(snapshot.workspace().id.clone());
            TrialEvent { label, event: Arc::new(Event { workspace_id, ..event.into_owned() }) }
        });
        events.collect()
    }

    /// The name of the recording.
    fn name(&self) -> Option<String> {
        match self {
            Self::Recorded(recording) => Some(recording.name.to_string_lossy().into_owned()),
            Self::MadeUp => None,
        }
    }

    fn is_recorded(&self) -> bool {
        matches!(self, Self::Recorded(_))
    }

    fn why_none(&self) -> &'static str {
        match self {
            Self::Recorded(_) => "no event of the recording runs it",
            Self::MadeUp => "there is no made-up event for it; record some",
        }
    }

    /// Whether everything of it could be read.
    fn is_complete(&self) -> bool {
        match self {
            Self::Recorded(recording) => recording.unreadable.is_empty(),
            Self::MadeUp => true,
        }
    }
}

/// The events of a recording for which a hook runs, by their lines.
fn recorded_for<'r>(
    hook: &Hook,
    recording: &'r Recording,
    snapshot: &Snapshot,
) -> Vec<(String, Cow<'r, Event>)> {
    let runs = |event: &Event| snapshot.plan(event).steps().iter().any(|step| step.hook.name == hook.name);
    let all = recording.runs.iter().flatten().filter(|recorded| runs(&recorded.event));
    let mut events: Vec<_> = all.collect();
    events.sort_by_key(|recorded| recorded.line);
    let labelled = events
        .into_iter()
        .map(|recorded| (format!("line {}", recorded.line), Cow::Borrowed(&recorded.event)));
    labelled.collect()
}
