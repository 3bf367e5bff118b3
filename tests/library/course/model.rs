//! The reference: what must come of a scenario, as one straight walk over its hooks, without hookyard's rules.

use std::collections::BTreeMap;

use hookyard::model::{Capability, Ended, EventKind, FailurePolicy, NoteKind, Target, Verdict};

use crate::course::{
    double::{Double, Ends, Join},
    planned::{Part, part, stages},
    scenario::{Answer, Change, End, Output, Rule, Says, Scenario},
    tree::Tree,
};

type Payload = BTreeMap<Target, Tree>;

/// What must come of a scenario.
#[derive(Debug, Default)]
pub(crate) struct Expected {
    /// The stages that run, each with the payload its hooks are told.
    pub(crate) ran: Vec<(Vec<&'static str>, Payload)>,
    pub(crate) decision: Decision,
    /// The parts that hooks changed, with their final values.
    pub(crate) patched: Payload,
    pub(crate) notes: Vec<(&'static str, NoteKind, &'static str)>,
    pub(crate) suppressed: bool,
    pub(crate) reports: Vec<Report>,
    /// All counters that are not 0.
    pub(crate) counters: BTreeMap<String, u64>,
}

/// The verdict on an event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Decision {
    pub(crate) verdict: Verdict,
    pub(crate) by: Option<&'static str>,
    pub(crate) reason: Reason,
}

/// What an outcome must give as its reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Reason {
    /// Nothing, since nothing was decided.
    #[default]
    Absent,
    /// What the hook said.
    Said(&'static str),
    /// Nothing or a text that names the hook, which gave no reason.
    Unsaid(&'static str),
    /// A text that names the hook and its failure.
    Failure { hook: &'static str, message: &'static str },
}

/// How one hook must have fared.
#[derive(Debug)]
pub(crate) struct Report {
    /// Its place in the plan.
    pub(crate) step: usize,
    pub(crate) hook: &'static str,
    pub(crate) ended: Ended,
    pub(crate) verdict: Verdict,
    pub(crate) error: Error,
    /// The warnings it came with.
    pub(crate) warnings: Vec<&'static str>,
    /// A word for each further warning there must be.
    pub(crate) complaints: Vec<&'static str>,
}

/// What a report must give as its error.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Error {
    Absent,
    Says(&'static str),
    OfCancellation,
}

/// What must come of a scenario.
pub(crate) fn expect(scenario: &Scenario) -> Expected {
    let mut walk =
        Walk { scenario, payload: scenario.payload.clone(), expected: Expected::default(), step: 0 };
    let mut ended = 0;
    let mut closed = Vec::new();
    let mut after = 0;
    for stage in stages(scenario) {
        let before = after;
        after += stage.len();
        if stage.iter().all(|rule| closed.contains(&rule.dialect.name)) {
            continue;
        }
        walk.expected.ran.push((stage.iter().map(|rule| rule.name).collect(), walk.payload.clone()));
        let cancelled = cancelled(scenario, before, &stage, ended);
        let mut over = !cancelled.is_empty();
        ended += stage.len() - cancelled.len();
        for (step, rule) in (before..).zip(stage) {
            walk.step = step;
            let verdict = match &rule.answer {
                _ if cancelled.contains(&rule.name) => walk.cancelled(rule),
                Answer::Replies(says) => walk.reply(rule, says),
                Answer::Fails(how, message) => walk.failure(rule, *how, message),
            };
            let ends = ends_chain(rule.dialect, verdict);
            let forbids = strictness(verdict) >= strictness(Verdict::Block);
            over |= ends && forbids;
            if ends && !forbids {
                closed.push(rule.dialect.name);
            }
        }
        if over {
            break;
        }
    }
    if !has_happened(scenario.kind)
        && strictness(walk.expected.decision.verdict) >= strictness(Verdict::Block)
    {
        walk.expected.patched.clear();
    }
    walk.expected
}

/// Whether a block comes too late to keep it from happening. Then its patches count all the same.
fn has_happened(kind: EventKind) -> bool {
    matches!(
        kind,
        EventKind::AfterContextCompact
            | EventKind::AfterContextBuild
            | EventKind::AfterModelCall
            | EventKind::AfterToolDispatch
    )
}

/// The hooks of a stage, which has `before` hooks before it, that are still running when the event is cancelled.
fn cancelled(scenario: &Scenario, before: usize, stage: &[&Rule], ended: usize) -> Vec<&'static str> {
    let End::CancelledAfter(most) = scenario.end else { return Vec::new() };
    let mut by_pace: Vec<_> =
        stage.iter().enumerate().map(|(n, rule)| (scenario.pace[before + n], rule.name)).collect();
    by_pace.sort_unstable();
    by_pace.into_iter().skip(most - ended.min(most)).map(|(_, name)| name).collect()
}

fn ends_chain(dialect: &Double, verdict: Verdict) -> bool {
    let from = match dialect.ends {
        Ends::Halt => Verdict::Halt,
        Ends::Block => Verdict::Block,
        Ends::Ask => Verdict::Ask,
        Ends::AnyVerdict => Verdict::Allow,
    };
    strictness(verdict) >= strictness(from)
}

fn strictness(verdict: Verdict) -> u8 {
    match verdict {
        Verdict::Proceed => 0,
        Verdict::Allow => 1,
        Verdict::Ask => 2,
        Verdict::Block => 3,
        Verdict::Halt => 4,
    }
}

struct Walk<'a> {
    scenario: &'a Scenario,
    payload: Payload,
    expected: Expected,
    /// The place in the plan of the hook that is looked at.
    step: usize,
}

impl Walk<'_> {
    /// A reply: its notes count, and where its hook may intercept, its verdict and its patches.
    fn reply(&mut self, rule: &Rule, says: &Says) -> Verdict {
        let mut complaints = Vec::new();
        self.expected.notes.extend(says.notes.iter().map(|(kind, text)| (rule.name, *kind, *text)));
        let verdict = if part(self.scenario.kind) == Part::OnlyWatches {
            complaints.extend((strictness(says.verdict) > 1).then(|| says.verdict.as_str()));
            for change in &says.changes {
                complaints.push(name_of(change));
                self.count_patch(rule, "other", "rejected");
            }
            Verdict::Proceed
        } else {
            if !blocks(says.verdict) {
                says.changes.iter().for_each(|change| self.patch(rule, change, &mut complaints));
            }
            self.expected.suppressed |= self.suppresses(rule, says);
            says.verdict
        };
        let reason = says.reason.map_or(Reason::Unsaid(rule.name), Reason::Said);
        self.decide(rule, verdict, reason);
        self.report(rule, Ended::Completed, verdict, Error::Absent, says.warnings.clone(), complaints);
        verdict
    }

    /// A failure is no verdict, unless a policy makes it one.
    fn failure(&mut self, rule: &Rule, ended: Ended, message: &'static str) -> Verdict {
        let policy = match ended {
            Ended::Cancelled => None,
            Ended::TimedOut => Some(rule.on_timeout),
            _ => Some(rule.on_error),
        };
        let verdict = match policy {
            _ if part(self.scenario.kind) == Part::OnlyWatches => Verdict::Proceed,
            Some(FailurePolicy::Deny) => Verdict::Block,
            Some(FailurePolicy::Ask) => Verdict::Ask,
            Some(FailurePolicy::Ignore) | None => Verdict::Proceed,
        };
        if policy.is_some() && part(self.scenario.kind) == Part::Intercepts {
            let open = verdict == Verdict::Proceed;
            let counter = if open { "hook_fail_open_total" } else { "hook_fail_closed_total" };
            self.count(counter, rule, &[("ended", ended.as_str())]);
        }
        self.decide(rule, verdict, Reason::Failure { hook: rule.name, message });
        self.report(rule, ended, verdict, Error::Says(message), Vec::new(), Vec::new());
        verdict
    }

    fn cancelled(&mut self, rule: &Rule) -> Verdict {
        self.report(rule, Ended::Cancelled, Verdict::Proceed, Error::OfCancellation, Vec::new(), Vec::new());
        Verdict::Proceed
    }

    /// The strictest verdict so far, the first of its strictness.
    fn decide(&mut self, rule: &Rule, verdict: Verdict, reason: Reason) {
        if strictness(verdict) > strictness(self.expected.decision.verdict) {
            self.expected.decision = Decision { verdict, by: Some(rule.name), reason };
        }
    }

    fn patch(&mut self, rule: &Rule, change: &Change, complaints: &mut Vec<&'static str>) {
        let patchable = target_of(self.scenario.kind);
        let (label, result) = match change {
            Change::Of(target, value) if Some(*target) == patchable => {
                let result = self.patch_target(rule, *target, value);
                (target.as_str(), result)
            }
            Change::Of(..) | Change::Foreign(_) => ("other", "rejected"),
        };
        if result == "rejected" || result == "no_capability" {
            complaints.push(name_of(change));
        }
        self.count_patch(rule, label, result);
    }

    fn count_patch(&mut self, rule: &Rule, target: &str, result: &str) {
        let labels = [("hook", rule.name), ("target", target), ("result", result)];
        *self.expected.counters.entry(series("patches_total", &labels)).or_default() += 1;
    }

    fn patch_target(&mut self, rule: &Rule, target: Target, value: &Tree) -> &'static str {
        if !rule.capabilities.contains(&capability_of(target)) {
            return "no_capability";
        }
        let folded = match (self.payload.get(&target), rule.dialect.join) {
            (_, Join::Refuse) => return "rejected",
            (_, Join::Replace) | (None, _) => value.clone(),
            (Some(current), Join::OneLevel) => current.merged_one_level(value),
            (Some(current), Join::Deep) => current.merged_deep(value),
        };
        if self.payload.get(&target) == Some(&folded) {
            return "unchanged";
        }
        self.payload.insert(target, folded.clone());
        self.expected.patched.insert(target, folded);
        "applied"
    }

    fn suppresses(&self, rule: &Rule, says: &Says) -> bool {
        says.output == Output::Suppressed
            && self.scenario.kind == EventKind::AfterToolDispatch
            && rule.capabilities.contains(&Capability::SuppressOutput)
    }

    fn report(
        &mut self,
        rule: &Rule,
        ended: Ended,
        verdict: Verdict,
        error: Error,
        warnings: Vec<&'static str>,
        complaints: Vec<&'static str>,
    ) {
        let handler = rule.hook().handler.kind().as_str();
        self.count("hook_runs_total", rule, &[("handler", handler), ("ended", ended.as_str())]);
        if ended == Ended::Completed || verdict != Verdict::Proceed {
            self.count("hook_verdicts_total", rule, &[("verdict", verdict.as_str())]);
        }
        self.expected.reports.push(Report {
            step: self.step,
            hook: rule.name,
            ended,
            verdict,
            error,
            warnings,
            complaints,
        });
    }

    fn count(&mut self, name: &str, rule: &Rule, labels: &[(&str, &str)]) {
        let mut all = vec![("hook", rule.name), ("event", self.scenario.kind.as_str())];
        all.extend(labels);
        *self.expected.counters.entry(series(name, &all)).or_default() += 1;
    }
}

/// Whether a verdict stops what the event is about: a person who is asked may still say yes.
fn blocks(verdict: Verdict) -> bool {
    matches!(verdict, Verdict::Block | Verdict::Halt)
}

fn name_of(change: &Change) -> &'static str {
    match change {
        Change::Of(target, _) => target.as_str(),
        Change::Foreign(name) => name,
    }
}

/// The part of the payload that hooks on a kind of event may patch.
fn target_of(kind: EventKind) -> Option<Target> {
    use EventKind as K;
    match kind {
        K::PromptSubmitted => Some(Target::Prompt),
        K::BeforeContextCompact | K::AfterContextCompact | K::BeforeContextBuild | K::AfterContextBuild => {
            Some(Target::Context)
        }
        K::BeforeModelCall => Some(Target::ModelRequest),
        K::AfterModelCall => Some(Target::ModelResponse),
        K::BeforeToolSelection => Some(Target::ToolConfig),
        K::BeforeToolDispatch | K::PermissionRequested => Some(Target::ToolInput),
        K::AfterToolDispatch => Some(Target::ToolOutput),
        _ => None,
    }
}

fn capability_of(target: Target) -> Capability {
    match target {
        Target::Prompt => Capability::RewritePrompt,
        Target::Context => Capability::RewriteContext,
        Target::ModelRequest => Capability::RewriteModelRequest,
        Target::ModelResponse => Capability::RewriteModelResponse,
        Target::ToolConfig => Capability::RewriteToolConfig,
        Target::ToolInput => Capability::RewriteToolRequest,
        Target::ToolOutput => Capability::RewriteToolResponse,
        other => panic!("the model knows nothing of {other}"),
    }
}

/// A time series as one line: its name, and its labels by name.
pub(crate) fn series(name: &str, labels: &[(&str, &str)]) -> String {
    let mut labels: Vec<String> = labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    labels.sort_unstable();
    format!("{name}{{{}}}", labels.join(","))
}
