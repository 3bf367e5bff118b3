//! Compares a command hook with the rule that would take its place, by recorded events and by made-up ones.

use std::{borrow::Cow, collections::BTreeSet, sync::Arc, time::Duration};

use serde_json::{Value, json};
use tokio::time::Instant;

use super::{
    super::guard::{
        GuardRule, GuardSample, GuardSource, ScriptPlaces, SystemCharacters, Unclear, rule_of, samples,
    },
    made_up::made_up_json,
    trial::{HookTrials, TrialEvent, TrialStop},
};
use crate::{
    dialect,
    model::{
        DialectName, Draft, Event, EventKind, FailurePolicy, Handler, Hook, HookDecision, KeyCounts,
        NoteKind, Reply, RuleCache, RuleCall, RuleProgram, Workspace,
    },
    registry::Snapshot,
};

/// How often a rule is evaluated for each event to measure it.
const RULE_ROUNDS: u32 = 20;

/// A rule that gave the same verdict and reason as a command.
#[derive(Debug)]
pub(in crate::cli) struct ProvenRule {
    pub(in crate::cli) rule: GuardRule,
    pub(in crate::cli) recorded: usize,
    pub(in crate::cli) made_up: usize,
    /// Events for which the command fails, which lets them pass; so does the rule.
    pub(in crate::cli) failed: usize,
    pub(in crate::cli) command: Duration,
    pub(in crate::cli) evaluation: Duration,
}

/// Why there is no rule for a command.
#[derive(Debug)]
pub(in crate::cli) enum NoRule {
    /// It is not understood.
    Unclear(String),
    /// It is understood, and did something else.
    Differs(String),
    /// Time was up before they were compared.
    OutOfTime,
}

/// What is compared of two answers.
#[derive(Debug, PartialEq, Eq)]
struct ComparedAnswer {
    decision: HookDecision,
    notes: Vec<(NoteKind, String)>,
}

impl ComparedAnswer {
    fn of(reply: Reply) -> Self {
        Self { decision: reply.decision, notes: reply.notes }
    }
}

/// What is needed to compare.
pub(in crate::cli) struct RuleProof<'a> {
    pub(in crate::cli) trials: &'a HookTrials,
    pub(in crate::cli) snapshot: &'a Snapshot,
    pub(in crate::cli) places: &'a ScriptPlaces,
}

impl RuleProof<'_> {
    /// Finds the rule of a hook, and compares it by these events and by others that its patterns make.
    ///
    /// Returns an error if it was stopped before.
    pub(in crate::cli) async fn find(
        &self,
        hook: &Hook,
        recorded: &[TrialEvent],
        deadline: Instant,
    ) -> Result<Result<ProvenRule, NoRule>, TrialStop> {
        let found = self.recognised(hook);
        let (rule, program) = match found {
            Ok(found) => found,
            Err(Unclear(why)) => return Ok(Err(NoRule::Unclear(why))),
        };
        let made_up = self.made_up(hook, &rule);
        let mut proven = ProvenRule {
            rule,
            recorded: recorded.len(),
            made_up: made_up.len(),
            failed: 0,
            command: Duration::ZERO,
            evaluation: Duration::ZERO,
        };
        let (mut command_times, mut rule_times) = (Vec::new(), Vec::new());
        for TrialEvent { label, event } in recorded.iter().chain(&made_up) {
            let workspace = hook.workspace(self.snapshot.workspace());
            let (judged, took) = judged(&*program, event, workspace);
            rule_times.push(took);
            let answered = match self.trials.reply(hook, event, deadline).await? {
                Ok((reply, took)) => {
                    command_times.push(took);
                    Ok(reply)
                }
                Err(why) => Err(why),
            };
            let is_failure = answered.is_err();
            if let Some(difference) = difference(answered, judged, hook.on_error) {
                return Ok(Err(NoRule::Differs(format!("{difference} ({label})"))));
            }
            proven.failed += usize::from(is_failure);
        }
        proven.command = median(command_times);
        proven.evaluation = median(rule_times);
        Ok(Ok(proven))
    }

    fn recognised(&self, hook: &Hook) -> Result<(GuardRule, Arc<dyn RuleProgram>), Unclear> {
        let Handler::Command(command) = &hook.handler else {
            return Err(Unclear("it is no command".to_owned()));
        };
        let source = GuardSource::of(command, self.places)?;
        let rule = rule_of(hook, &source, SystemCharacters::of_environment())?;
        let program = rule.program(hook.events.iter().collect())?;
        Ok((rule, program))
    }

    /// Events that the patterns of a rule make, and for which the hook runs.
    fn made_up(&self, hook: &Hook, rule: &GuardRule) -> Vec<TrialEvent> {
        let mut events = Vec::new();
        let mut seen = BTreeSet::new();
        for kind in hook.events.iter() {
            for sample in samples(rule) {
                let Some(text) = event_text(kind, &sample, hook) else { continue };
                // The tool that a guard asks for may be that of every made-up event.
                if !seen.insert(text.clone()) {
                    continue;
                }
                let read = dialect::named(DialectName::Canonical).read_event(text.as_bytes());
                let Ok(event) = read else { continue };
                let workspace_id = Some(self.snapshot.workspace().id.clone());
                let event = Event { workspace_id, ..event };
                let runs = self.snapshot.plan(&event).steps().iter().any(|step| step.hook.name == hook.name);
                if runs {
                    let label = format!("made-up {kind} with {}", label_of(&sample));
                    events.push(TrialEvent { label, event: Arc::new(event) });
                }
            }
        }
        events
    }
}

/// What a sample is, in words.
fn label_of(sample: &GuardSample) -> String {
    let text = sample.text.as_ref().map_or_else(|| "no text".to_owned(), |text| format!("{text:?}"));
    match &sample.tool {
        Some(tool) => format!("{text} and the tool {tool}"),
        None => text,
    }
}

fn event_text(kind: EventKind, sample: &GuardSample, hook: &Hook) -> Option<String> {
    let Value::Object(mut event) = made_up_json(hook, kind) else { return None };
    if let Some(tool) = &sample.tool {
        event.insert("tool_name".to_owned(), json!(tool));
    }
    let mut value = sample.text.as_ref().map(|text| json!(text));
    if let [part, rest @ ..] = sample.path.as_slice() {
        for key in rest.iter().rev() {
            value = Some(value.map_or_else(|| json!({}), |value| json!({ key.as_str(): value })));
        }
        match value {
            Some(value) => event.insert(part.clone(), value),
            None => event.remove(part),
        };
    }
    Some(Value::Object(event).to_string())
}

/// What a rule says of an event, or why it has no value, and how long that takes.
fn judged(
    program: &dyn RuleProgram,
    event: &Arc<Event>,
    workspace: &Workspace,
) -> (Result<Reply, Cow<'static, str>>, Duration) {
    let draft = Draft::new(Arc::clone(event));
    let mut reply = None;
    let begun = Instant::now();
    for _ in 0..RULE_ROUNDS {
        let (mut cache, mut counts) = (RuleCache::default(), KeyCounts::default());
        reply = Some(program.judge(RuleCall {
            links: None,
            draft: &draft,
            workspace,
            cache: &mut cache,
            counts: &mut counts,
        }));
    }
    let took = begun.elapsed() / RULE_ROUNDS;
    let reply = match reply {
        Some(Ok(reply)) if reply.failure.is_none() => Ok(reply),
        Some(Ok(_) | Err(_)) | None => Err(Cow::Borrowed("the rule has no value")),
    };
    (reply, took)
}

/// How the answers of a command and of its rule differ. What they say is not repeated: it may be confidential.
fn difference(
    answered: Result<Reply, String>,
    judged: Result<Reply, Cow<'static, str>>,
    on_error: FailurePolicy,
) -> Option<String> {
    let judged = match judged {
        Ok(reply) => ComparedAnswer::of(reply),
        Err(why) => return Some(why.into_owned()),
    };
    let answered = match answered {
        Ok(reply) => ComparedAnswer::of(reply),
        Err(_) if on_error == FailurePolicy::Ignore => ComparedAnswer::of(Reply::proceed()),
        Err(why) => return Some(format!("the command fails: {why}")),
    };
    let (was, is) = (answered.decision.verdict(), judged.decision.verdict());
    if was != is {
        return Some(format!("the verdict of the rule is {is} instead of {was}"));
    }
    (answered != judged).then(|| "the rule gives another reason".to_owned())
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}
