//! The rule that a guard is, as a handler of a hook file, and as what evaluates it.

use std::sync::Arc;

use serde::Serialize;

use super::{
    answers::{GuardAnswer, GuardDecision, answer},
    expressions::NamedFields,
    paths::{PathAnswer, ScriptPath},
    text::Unclear,
};
use crate::{
    model::{EventKind, FailurePolicy, Hook, RuleProgram},
    rule::{RuleDecision, RuleSet, RuleText},
};

/// The most rules of a proposal.
const MOST_RULES: usize = 64;

/// A rule in place of a command.
#[derive(Debug)]
pub(in crate::cli) struct GuardRule {
    names: Vec<(String, String)>,
    arms: Vec<RuleArm>,
    steps: Vec<PathAnswer>,
    /// What its failures count as.
    pub(in crate::cli) failures: GuardFailures,
}

/// What the failures of a rule have to count as, so that it is no milder than the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) enum GuardFailures {
    /// As the hook says.
    AsBefore,
    As(FailurePolicy),
}

/// A condition with its decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct RuleArm {
    #[serde(skip_serializing_if = "Option::is_none")]
    halt: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    deny: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ask: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    allow: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    context: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

/// A handler of a hook file.
#[derive(Serialize)]
struct RuleHandlerText<'a> {
    r#type: &'static str,
    #[serde(rename = "let", skip_serializing_if = "Option::is_none")]
    names: Option<serde_yaml::Mapping>,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    only: Option<&'a RuleArm>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rules: Option<&'a [RuleArm]>,
}

impl RuleArm {
    fn of(
        decision: &GuardDecision,
        condition: String,
        names: &mut NamedFields,
        steps: &[PathAnswer],
    ) -> Result<Self, Unclear> {
        let mut arm = Self {
            halt: None,
            deny: None,
            ask: None,
            allow: None,
            reason: None,
            context: None,
            message: None,
        };
        *arm.condition_mut(decision.key) = Some(condition);
        for (of, to) in [
            (&decision.reason, &mut arm.reason),
            (&decision.context, &mut arm.context),
            (&decision.message, &mut arm.message),
        ] {
            *to = of.as_ref().map(|text| names.text(text, steps)).transpose()?;
        }
        Ok(arm)
    }

    fn condition_mut(&mut self, key: &str) -> &mut Option<String> {
        match key {
            "halt" => &mut self.halt,
            "ask" => &mut self.ask,
            "allow" => &mut self.allow,
            _ => &mut self.deny,
        }
    }

    fn decisions(&self) -> [(RuleDecision, Option<&String>); 4] {
        [
            (RuleDecision::Halt, self.halt.as_ref()),
            (RuleDecision::Deny, self.deny.as_ref()),
            (RuleDecision::Ask, self.ask.as_ref()),
            (RuleDecision::Allow, self.allow.as_ref()),
        ]
    }
}

impl GuardRule {
    /// The rule that says on each way what the script says there.
    pub(super) fn of(hook: &Hook, paths: &[ScriptPath]) -> Result<Self, Unclear> {
        let answers = answers(hook, paths)?;
        let mut names = NamedFields::default();
        let mut ways: Vec<DecidedWays<'_>> = Vec::new();
        let mut steps = Vec::new();
        for (place, (path, answer)) in paths.iter().zip(&answers).enumerate() {
            steps.extend(path.steps.iter().cloned());
            let GuardAnswer::Decision(decision) = answer else { continue };
            let own: Vec<PathAnswer> = path
                .steps
                .iter()
                .filter(|step| !is_decided_before(step, place, paths, &answers))
                .cloned()
                .collect();
            match ways.last_mut() {
                Some(last) if last.decision == decision => last.add(own),
                _ => ways.push(DecidedWays { decision, said_with: &path.steps, alternatives: vec![own] }),
            }
        }
        if ways.is_empty() || ways.len() > MOST_RULES {
            return Unclear::new("it never decides, or in too many ways");
        }
        let mut arms = Vec::new();
        for way in &ways {
            let condition = way.condition(&mut names)?;
            arms.push((way.decision, RuleArm::of(way.decision, condition, &mut names, way.said_with)?));
        }
        let keys: Vec<&str> = arms.iter().map(|(decision, _)| decision.key).collect();
        let failures = match hook.on_error {
            FailurePolicy::Ignore if keys.iter().any(|key| matches!(*key, "deny" | "halt")) => {
                GuardFailures::As(FailurePolicy::Deny)
            }
            FailurePolicy::Ignore if keys.contains(&"ask") => GuardFailures::As(FailurePolicy::Ask),
            _ => GuardFailures::AsBefore,
        };
        let arms = arms.into_iter().map(|(_, arm)| arm).collect();
        Ok(Self { names: names.definitions(), arms, steps, failures })
    }

    /// The questions that the script asks.
    pub(super) fn steps(&self) -> &[PathAnswer] {
        &self.steps
    }

    /// Whether it looks for a pattern in the text of a command, which can be written in many ways.
    pub(in crate::cli) fn searches_a_command(&self) -> bool {
        self.steps.iter().any(|step| step.field.path == ["tool_input", "command"])
    }

    /// The handler of a hook file.
    pub(in crate::cli) fn handler(&self) -> Result<serde_yaml::Value, Unclear> {
        let names = self.names.iter().map(|(name, text)| (name.as_str().into(), text.as_str().into()));
        let names: serde_yaml::Mapping = names.collect();
        let text = RuleHandlerText {
            r#type: "rule",
            names: (!names.is_empty()).then_some(names),
            only: if let [only] = self.arms.as_slice() { Some(only) } else { None },
            rules: (self.arms.len() > 1).then_some(&self.arms),
        };
        serde_yaml::to_value(text).map_err(|error| Unclear(format!("it cannot be written: {error}")))
    }

    /// What evaluates it for these kinds of event.
    ///
    /// Returns what is wrong with it, which is a mistake here or a bound.
    pub(in crate::cli) fn program(&self, kinds: Vec<EventKind>) -> Result<Arc<dyn RuleProgram>, Unclear> {
        let mut set = RuleSet::new(kinds);
        let added = self.add_to(&mut set);
        added.map_err(|mistake| Unclear(format!("no rule can say it: {}", mistake.message)))?;
        Ok(Arc::new(set))
    }

    fn add_to(&self, set: &mut RuleSet) -> Result<(), crate::rule::RuleMistake> {
        for (name, text) in &self.names {
            set.name(name, text)?;
        }
        for arm in &self.arms {
            set.begin(None)?;
            for (decision, condition) in arm.decisions() {
                if let Some(condition) = condition {
                    set.decide(decision, condition)?;
                }
            }
            let texts = [
                (RuleText::Reason, &arm.reason),
                (RuleText::Context, &arm.context),
                (RuleText::Message, &arm.message),
            ];
            for (which, text) in texts {
                if let Some(text) = text {
                    set.say(which, text)?;
                }
            }
        }
        set.check_cost()
    }
}

/// Ways that follow each other and end in the same decision.
struct DecidedWays<'p> {
    decision: &'p GuardDecision,
    /// All that holds on the first.
    said_with: &'p [PathAnswer],
    /// What has to hold on each.
    alternatives: Vec<Vec<PathAnswer>>,
}

impl DecidedWays<'_> {
    /// Adds a way. With one that differs in a single answer it makes one without that question.
    fn add(&mut self, mut way: Vec<PathAnswer>) {
        while let Some(joined) = self.alternatives.last().and_then(|last| joined(last, &way)) {
            self.alternatives.pop();
            way = joined;
        }
        self.alternatives.push(way);
    }

    fn condition(&self, names: &mut NamedFields) -> Result<String, Unclear> {
        let mut parts = Vec::new();
        for way in &self.alternatives {
            let condition = names.condition(way)?;
            if condition.is_empty() {
                return Unclear::new("it decides without a question");
            }
            let has_both = self.alternatives.len() > 1 && condition.contains(" && ");
            parts.push(if has_both { format!("({condition})") } else { condition });
        }
        Ok(parts.join(" || "))
    }
}

/// Two ways that differ in one answer only, without it.
fn joined(one: &[PathAnswer], other: &[PathAnswer]) -> Option<Vec<PathAnswer>> {
    let same = |a: &PathAnswer, b: &PathAnswer| a.field == b.field && a.test == b.test;
    let is_alike = one.len() == other.len() && one.iter().zip(other).all(|(a, b)| same(a, b));
    let different: Vec<usize> =
        (0..one.len().min(other.len())).filter(|at| one[*at].holds != other[*at].holds).collect();
    let [place] = different.as_slice() else { return None };
    let kept = one.iter().enumerate().filter(|(at, _)| at != place).map(|(_, step)| step.clone());
    is_alike.then(|| kept.collect())
}

/// The answers of each way, which are the same for all events of the hook.
fn answers(hook: &Hook, paths: &[ScriptPath]) -> Result<Vec<GuardAnswer>, Unclear> {
    let mut found: Option<Vec<GuardAnswer>> = None;
    for kind in hook.events.iter() {
        let of_kind: Result<Vec<GuardAnswer>, Unclear> =
            paths.iter().map(|path| answer(path, hook, kind)).collect();
        let of_kind = of_kind?;
        if found.as_ref().is_some_and(|known| *known != of_kind) {
            return Unclear::new("its events make different answers of the same output");
        }
        found = Some(of_kind);
    }
    found.map_or_else(|| Unclear::new("it has no events"), Ok)
}

/// Whether every way with the other answer to a question decides, and comes before.
fn is_decided_before(step: &PathAnswer, place: usize, paths: &[ScriptPath], answers: &[GuardAnswer]) -> bool {
    let mut others = paths.iter().enumerate().filter(|(_, path)| {
        path.steps.iter().any(|other| other.split == step.split && other.holds != step.holds)
    });
    others.all(|(other, _)| other < place && matches!(answers[other], GuardAnswer::Decision(_)))
}
