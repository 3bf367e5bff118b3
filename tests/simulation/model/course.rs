//! One event on its way through its hooks, as the reference sees it.

use std::ops::Range;

use hookyard::model::{FailurePolicy, Verdict};

use crate::{
    observed::{Reason, Summary},
    schedule::{Occurrence, Rule, input_of},
    script::{Ending, Script, words},
};

/// An event under way.
#[derive(Debug)]
pub(super) struct Course<'a> {
    pub(super) event: usize,
    /// Its decision, which its callers get, now or as the answer to a repeated event.
    pub(super) decision: usize,
    pub(super) intercepts: bool,
    pub(super) steps: Vec<Step<'a>>,
    pub(super) version: u64,
    pub(super) callers: Vec<usize>,
    pub(super) detached: bool,
    pub(super) is_open: bool,
    pub(super) input: Input,
    /// The steps of the current stage.
    stage: Range<usize>,
    verdict: Verdict,
    by: Option<String>,
    reason: Option<Reason>,
    notes: Vec<(String, String)>,
    reports: Vec<(String, &'static str, Verdict)>,
}

/// One hook of an event.
#[derive(Debug)]
pub(super) struct Step<'a> {
    pub(super) rule: &'a Rule,
    pub(super) job: Option<usize>,
    pub(super) ended: Option<Ended>,
}

/// How a hook ended for an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    /// With a reply.
    Completed(Ending),
    /// With a failure, by its name.
    Failed(&'static str),
}

impl Ended {
    /// How a hook ends that gets its places.
    pub(super) fn of(rule: &Rule, script: Script) -> Self {
        let asks = if script.ending == Ending::Nonsense { 2 } else { 1 };
        if script.ending == Ending::Hang || asks * script.latency > rule.timeout {
            return Self::Failed("timed_out");
        }
        match script.ending {
            Ending::Error | Ending::Panic => Self::Failed("failed"),
            Ending::Nonsense => Self::Failed("invalid_output"),
            ending => Self::Completed(ending),
        }
    }
}

/// The input of a tool: its fields in order.
#[derive(Debug, Clone)]
pub(super) struct Input {
    first: String,
    fields: Vec<(String, usize)>,
}

impl Input {
    pub(super) fn text(&self) -> String {
        let first = self.first.trim_end_matches('}');
        let fields: Vec<_> = self.fields.iter().map(|(name, value)| format!(",\"{name}\":{value}")).collect();
        format!("{first}{}}}", fields.concat())
    }
}

impl<'a> Course<'a> {
    pub(super) fn new(
        (number, decision): (usize, usize),
        event: &Occurrence,
        plan: Vec<&'a Rule>,
        version: u64,
        callers: Vec<usize>,
        detached: bool,
    ) -> Self {
        Self {
            event: number,
            decision,
            intercepts: event.is_interceptor(),
            steps: plan.into_iter().map(|rule| Step { rule, job: None, ended: None }).collect(),
            version,
            callers,
            detached,
            is_open: true,
            input: Input { first: input_of(number), fields: Vec::new() },
            stage: 0..0,
            verdict: Verdict::Proceed,
            by: None,
            reason: None,
            notes: Vec::new(),
            reports: Vec::new(),
        }
    }

    /// The hooks that run next: all that are left if they only watch, all judges, or one.
    pub(super) fn next_stage(&mut self) -> Option<Range<usize>> {
        let first = self.stage.end;
        let rest = self.steps.get(first..)?;
        let together = |step: &&Step<'_>| !self.intercepts || step.rule.is_judge();
        let length = rest.iter().take_while(together).count().max(1).min(rest.len());
        self.stage = first..first + length;
        (length > 0).then(|| self.stage.clone())
    }

    pub(super) fn stage_is_over(&self) -> bool {
        self.steps[self.stage.clone()].iter().all(|step| step.ended.is_some())
    }

    /// Applies what the hooks of the stage replied, in their order. Returns whether later hooks run.
    pub(super) fn settle_stage(&mut self) -> bool {
        let mut goes_on = true;
        for step in self.stage.clone() {
            let verdict = self.settle(step);
            goes_on &= verdict < Verdict::Block;
        }
        goes_on
    }

    fn settle(&mut self, step: usize) -> Verdict {
        let Step { rule, ended, .. } = &self.steps[step];
        let (rule, ended) = (*rule, ended.expect("a stage is settled when it is over"));
        let (name, verdict, reason) = match ended {
            Ended::Completed(ending) => {
                ("completed", self.replied(rule, ending), Reason::Words(words(rule, self.event)))
            }
            Ended::Failed(name) => (name, self.failed(rule, name), Reason::Failure),
        };
        let joins = rule.is_judge() && verdict == Verdict::Block && self.verdict == Verdict::Block;
        if verdict > self.verdict || joins {
            self.verdict = verdict;
            self.by = Some(rule.name.clone());
            self.reason = Some(match (self.reason.take(), reason) {
                // CodeBuddy tells the reasons of all judges that block.
                (Some(Reason::Words(earlier)), Reason::Words(own)) if joins => {
                    Reason::Words(format!("{earlier}\n{own}"))
                }
                (_, own) => own,
            });
        }
        self.reports.push((rule.name.clone(), name, verdict));
        verdict
    }

    fn replied(&mut self, rule: &Rule, ending: Ending) -> Verdict {
        let verdict = match ending {
            Ending::Allow => Verdict::Allow,
            Ending::Ask => Verdict::Ask,
            Ending::Block => Verdict::Block,
            Ending::Halt => Verdict::Halt,
            _ => Verdict::Proceed,
        };
        if ending == Ending::Note {
            self.notes.push((rule.name.clone(), words(rule, self.event)));
        }
        if ending == Ending::Patch && rule.may_patch {
            self.input.fields.push((rule.name.clone(), self.event));
        }
        if self.intercepts { verdict } else { Verdict::Proceed }
    }

    fn failed(&self, rule: &Rule, name: &str) -> Verdict {
        let policy = match name {
            "cancelled" => FailurePolicy::Ignore,
            "timed_out" => rule.on_timeout,
            _ => rule.on_error,
        };
        match policy {
            _ if !self.intercepts => Verdict::Proceed,
            FailurePolicy::Ignore => Verdict::Proceed,
            FailurePolicy::Deny => Verdict::Block,
            FailurePolicy::Ask => Verdict::Ask,
        }
    }

    /// The event is cancelled: hooks that run end as cancelled, and those of the stage that have ended count.
    pub(super) fn cancel_rest(&mut self) {
        self.is_open = false;
        for step in self.stage.clone() {
            self.steps[step].ended.get_or_insert(Ended::Failed("cancelled"));
            self.settle(step);
        }
    }

    pub(super) fn summary(&self) -> Summary {
        let happens = self.verdict < Verdict::Block;
        Summary {
            decision: self.decision,
            verdict: self.verdict,
            by: self.by.clone(),
            reason: self.reason.clone(),
            patched: (!self.input.fields.is_empty() && happens).then(|| self.input.text()),
            notes: self.notes.clone(),
            hooks: self.reports.clone(),
            version: self.version,
        }
    }
}
