//! Rules in the files that `convert` writes, in place of commands that are only a pattern and an answer.

use std::path::Path;

use serde::Serialize;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::super::{
    exit::{CliError, Exit},
    guard::{GuardSource, ScriptPlaces, SystemCharacters, rule_of},
    session::{StopSignals, start_error},
    tune::{HookTrials, NoRule, ProvenRule, RuleProof, TrialStop, replaced, rule_remarks},
    units::precise_duration,
    workspace::{LocatedWorkspace, snapshot},
};
use crate::{
    dialect::Conversion,
    model::{CommandHandler, CommandLine, CommandMode, DialectName, Handler, Hook, Scope},
    registry::Snapshot,
};

/// The longest time for all comparisons.
const LONGEST: std::time::Duration = std::time::Duration::from_mins(5);

/// What became of one converted hook.
#[derive(Debug, Serialize)]
pub(super) struct ConvertedRule {
    file: String,
    /// Made-up events by which the command and the rule were compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    events: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<String>,
    /// Why it is no rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    remarks: Vec<&'static str>,
}

impl ConvertedRule {
    /// What is said of it.
    pub(super) fn line(&self) -> String {
        match (&self.events, &self.why) {
            (Some(events), _) => {
                let time = self.time.as_deref().unwrap_or_default();
                format!("{}: a rule; {events} made-up events agree, {time}", self.file)
            }
            (None, why) => format!("{}: no rule: {}", self.file, why.as_deref().unwrap_or_default()),
        }
    }

    /// Where the rule could say more.
    pub(super) fn remarks(&self) -> &[&'static str] {
        &self.remarks
    }

    fn refused(file: &Path, why: String) -> Self {
        let file = file.display().to_string();
        Self { file, events: None, time: None, why: Some(why), remarks: Vec::new() }
    }
}

/// A converted file, and the hook that it was, or why that is not known.
struct CommandFile<'h> {
    /// Its number among the converted files.
    number: usize,
    hook: Result<&'h Hook, String>,
}

/// How many hooks of a conversion look like rules. Nothing is run.
pub(super) fn count(conversion: &Conversion, found: &LocatedWorkspace, from: DialectName) -> usize {
    let loaded = found.load();
    let places = ScriptPlaces::of(&found.root, &found.settings);
    let files = files_of(conversion, &loaded.hooks, from, &places, &found.root);
    let is_rule = |file: &CommandFile<'_>| {
        let Ok(hook) = file.hook else { return false };
        let Handler::Command(command) = &hook.handler else { return false };
        let source = GuardSource::of(command, &places);
        source.and_then(|source| rule_of(hook, &source, SystemCharacters::of_environment())).is_ok()
    };
    files.iter().filter(|file| is_rule(file)).count()
}

/// Compares the hooks of a conversion with their rules, and puts those that say the same into its files.
///
/// Returns an error if no process can be started, or the exit code after a signal.
pub(super) async fn take(
    conversion: &mut Conversion,
    found: &LocatedWorkspace,
    from: DialectName,
) -> Result<Result<Vec<ConvertedRule>, Exit>, CliError> {
    let loaded = found.load();
    let cancel = CancellationToken::new();
    let trials = HookTrials::new(&found.settings, &loaded, &cancel);
    let mut signals = StopSignals::listen().map_err(|error| start_error(&error))?;
    let snapshot = snapshot(loaded);
    let work = compared(conversion, found, from, &snapshot, &trials);
    let done = tokio::select! {
        rules = work => Ok(rules),
        exit = signals.next() => Err(exit),
    };
    cancel.cancel();
    trials.end().await;
    Ok(done)
}

async fn compared(
    conversion: &mut Conversion,
    found: &LocatedWorkspace,
    from: DialectName,
    snapshot: &Snapshot,
    trials: &HookTrials,
) -> Vec<ConvertedRule> {
    let places = ScriptPlaces::of(&found.root, &found.settings);
    let proof = RuleProof { trials, snapshot, places: &places };
    let hooks: Vec<Hook> = snapshot.hooks().iter().map(|known| known.hook.clone()).collect();
    let files = files_of(conversion, &hooks, from, &places, &found.root);
    let deadline = Instant::now() + LONGEST;
    let mut rules = Vec::new();
    let mut changed = Vec::new();
    for file in files {
        let path = &conversion.files[file.number].path;
        let hook = match file.hook {
            Ok(hook) if hook.trust.approval().is_some() => hook,
            Ok(hook) => {
                rules.push(ConvertedRule::refused(path, hook.trust.refusal().unwrap_or_default().to_owned()));
                continue;
            }
            Err(why) => {
                rules.push(ConvertedRule::refused(path, why));
                continue;
            }
        };
        match proof.find(hook, &[], deadline).await {
            Ok(Ok(proven)) => match with_rule(&conversion.files[file.number].text, path, &proven) {
                Some(text) => {
                    changed.push((file.number, text));
                    rules.push(ConvertedRule {
                        file: path.display().to_string(),
                        events: Some(proven.made_up),
                        time: Some(times_of(&proven)),
                        why: None,
                        remarks: rule_remarks(&proven.rule),
                    });
                }
                None => rules.push(ConvertedRule::refused(path, "it cannot be written".to_owned())),
            },
            Ok(Err(NoRule::Unclear(why) | NoRule::Differs(why))) => {
                rules.push(ConvertedRule::refused(path, why));
            }
            Ok(Err(NoRule::OutOfTime)) | Err(TrialStop::OutOfTime | TrialStop::Cancelled) => {
                rules.push(ConvertedRule::refused(path, "time was up before it was compared".to_owned()));
            }
        }
    }
    for (number, text) in changed {
        conversion.files[number].text = text;
    }
    rules
}

fn times_of(proven: &ProvenRule) -> String {
    format!("{} → {}", precise_duration(proven.command), precise_duration(proven.evaluation))
}

fn with_rule(text: &str, path: &Path, proven: &ProvenRule) -> Option<String> {
    let handler = proven.rule.handler().ok()?;
    replaced(text, path, &handler, proven.rule.failures)
}

/// The converted files with commands, each with the loaded hook that runs the same script for the same events.
fn files_of<'h>(
    conversion: &Conversion,
    hooks: &'h [Hook],
    from: DialectName,
    places: &ScriptPlaces,
    root: &Path,
) -> Vec<CommandFile<'h>> {
    let is_of_here = |hook: &&Hook| {
        let is_own = matches!(hook.source.scope, Scope::Project | Scope::Local) && hook.distance() == 0;
        is_own && hook.dialect.name() == from
    };
    let mut left: Vec<&Hook> = hooks.iter().filter(is_of_here).collect();
    let mut files = Vec::new();
    for (number, file) in conversion.files.iter().enumerate() {
        let Some((events, command)) = command_of(&file.text, root) else { continue };
        let source = match GuardSource::of(&command, places) {
            Ok(source) => source,
            Err(why) => {
                files.push(CommandFile { number, hook: Err(why.0) });
                continue;
            }
        };
        let is_same = |hook: &Hook| {
            let Handler::Command(own) = &hook.handler else { return false };
            let kinds: Vec<String> = hook.events.iter().map(|kind| kind.as_str().to_owned()).collect();
            kinds == events && GuardSource::of(own, places).as_ref() == Ok(&source)
        };
        let place = left.iter().position(|hook| is_same(hook));
        let hook = place.map(|place| left.remove(place));
        let hook = hook.ok_or_else(|| "its hook is not loaded; run `hookyard check`".to_owned());
        files.push(CommandFile { number, hook });
    }
    files
}

/// The events and the command of a converted file.
fn command_of(text: &str, root: &Path) -> Option<(Vec<String>, CommandHandler)> {
    let file: serde_json::Value = serde_yaml::from_str(text).ok()?;
    let events =
        file["events"].as_array()?.iter().filter_map(|event| event.as_str().map(str::to_owned)).collect();
    let handler = &file["handler"];
    if handler["type"] != "command" || !handler["environment"].is_null() || !handler["cwd"].is_null() {
        return None;
    }
    let args: Vec<String> = handler["args"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|arg| arg.as_str().map(str::to_owned))
        .collect();
    let line = match (handler["command"].as_str(), args.split_first()) {
        (Some(line), _) => CommandLine::Shell(line.to_owned()),
        (None, Some((program, rest))) => CommandLine::Exec { program: program.into(), args: rest.to_vec() },
        (None, None) => return None,
    };
    let (environment, mode) = (Vec::new(), CommandMode::Oneshot);
    Some((events, CommandHandler { line, cwd: root.to_owned(), environment, mode, sandbox: None }))
}
