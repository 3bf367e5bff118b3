//! One rule: its conditions, and what it says and changes where they hold.

use super::{
    evaluate::Evaluation,
    expression::Expression,
    failure::{EvaluationError, EvaluationFailure},
    value::{JsonLength, RuleValue},
};
use crate::model::{Ended, Failure, HookDecision, Json, NoteKind, Patch, Reply, Target, Verdict};

/// The longest reason or note, in bytes.
const LONGEST_NOTE: usize = 16 << 10;

/// The longest JSON of a change, in bytes.
const LONGEST_JSON: usize = 16 << 20;

/// What a rule decides if its expression is true.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum RuleDecision {
    Halt,
    Deny,
    Ask,
    Allow,
}

impl RuleDecision {
    /// Every decision, the strictest first, which is the order in which they are tried.
    pub(crate) const ALL: [Self; 4] = [Self::Halt, Self::Deny, Self::Ask, Self::Allow];

    /// The key of the expression.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Halt => "halt",
            Self::Deny => "deny",
            Self::Ask => "ask",
            Self::Allow => "allow",
        }
    }

    fn with(self, reason: Option<String>) -> HookDecision {
        match self {
            Self::Halt => HookDecision::Halt(reason),
            Self::Deny => HookDecision::Block(reason),
            Self::Ask => HookDecision::Ask(reason),
            Self::Allow => HookDecision::Allow(reason),
        }
    }
}

/// A text that a rule gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RuleText {
    /// Why it decides so.
    Reason,
    /// For the model.
    Context,
    /// For the person.
    Message,
}

impl RuleText {
    /// Every text.
    pub(crate) const ALL: [Self; 3] = [Self::Reason, Self::Context, Self::Message];

    /// The key of the expression.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Reason => "reason",
            Self::Context => "context",
            Self::Message => "message",
        }
    }
}

/// An expression with its text.
pub(super) struct RuleExpression {
    pub(super) text: Box<str>,
    pub(super) expression: Expression,
}

impl RuleExpression {
    pub(super) fn new(text: &str, expression: Expression) -> Self {
        Self { text: text.into(), expression }
    }

    /// The part of the text that a failure is about.
    fn part(&self, failure: &EvaluationFailure) -> &str {
        self.text.get(failure.place.start..failure.place.end).unwrap_or(&self.text)
    }
}

/// One rule.
pub(super) struct HookRule {
    /// Its name, if the hook has several.
    pub(super) label: Option<Box<str>>,
    /// Where its own named expressions begin.
    pub(super) own: usize,
    pub(super) decisions: Vec<(RuleDecision, RuleExpression)>,
    pub(super) texts: Vec<(RuleText, RuleExpression)>,
    pub(super) patches: Vec<(Target, RuleExpression)>,
}

/// Where a rule failed: the key, and the expression.
pub(super) type FailedPart<'a> = (&'static str, &'a RuleExpression);

impl HookRule {
    pub(super) fn new(label: Option<&str>, own: usize) -> Self {
        let (decisions, texts, patches) = (Vec::new(), Vec::new(), Vec::new());
        Self { label: label.map(Into::into), own, decisions, texts, patches }
    }

    /// All of its expressions, but for those with names.
    pub(super) fn expressions(&self) -> impl Iterator<Item = &RuleExpression> {
        let decisions = self.decisions.iter().map(|(_, one)| one);
        let texts = self.texts.iter().map(|(_, one)| one);
        decisions.chain(texts).chain(self.patches.iter().map(|(_, one)| one))
    }

    /// Adds what it says to a reply. Returns what failed first, if that matters: where a condition has no value, or a
    /// change or a note of a rule that decides nothing.
    pub(super) fn judge<'a>(
        &'a self,
        evaluation: &Evaluation<'a>,
        reply: &mut Reply,
    ) -> Option<(FailedPart<'a>, EvaluationFailure)> {
        let mut failed = None;
        let mut decided = None;
        for (decision, condition) in &self.decisions {
            match evaluation.truth(&condition.expression) {
                // What is allowed where a stricter condition has no value is not known.
                Ok(true) if failed.is_some() && *decision == RuleDecision::Allow => {}
                Ok(true) => {
                    decided = Some(*decision);
                    break;
                }
                Ok(false) => {}
                Err(failure) => {
                    failed.get_or_insert(((decision.as_str(), condition), failure));
                }
            }
        }
        if let Some(decided) = decided {
            self.decide(decided, evaluation, reply);
        } else if failed.is_none() {
            // Notes and changes of a rule that has conditions belong to these.
            failed = if self.decisions.is_empty() { self.change(evaluation, reply) } else { None };
        }
        failed
    }

    /// Adds a decision, with its texts. One that has no value does not undo the decision.
    fn decide<'a>(&'a self, decided: RuleDecision, evaluation: &Evaluation<'a>, reply: &mut Reply) {
        let mut reason = self.label.as_ref().map(|label| format!("decided by the rule `{label}`"));
        for (which, text) in &self.texts {
            match (which, said(evaluation, text)) {
                (RuleText::Reason, Ok(said)) => reason = said.or(reason),
                (RuleText::Context, Ok(said)) => {
                    reply.notes.extend(said.map(|text| (NoteKind::AdditionalContext, text)));
                }
                (RuleText::Message, Ok(said)) => {
                    reply.notes.extend(said.map(|text| (NoteKind::SystemMessage, text)));
                }
                (which, Err(failure)) => {
                    reply.warnings.push(format!("`{}` has no value: {}", which.as_str(), failure.error));
                }
            }
        }
        reply.decision = decided.with(reason);
        if reply.decision.verdict() < Verdict::Block {
            for (target, change) in &self.patches {
                match changed(evaluation, change) {
                    Ok(json) => reply.patches.extend(json.map(|json| Patch::Target(*target, json))),
                    // An event that goes on without a change that a rule makes is not what the rule wants.
                    Err(failure) => {
                        let failure = self.failure((target.as_str(), change), &failure);
                        reply.failure.get_or_insert(Box::new(failure));
                    }
                }
            }
        }
    }

    /// Adds the notes and changes of a rule without a decision.
    fn change<'a>(
        &'a self,
        evaluation: &Evaluation<'a>,
        reply: &mut Reply,
    ) -> Option<(FailedPart<'a>, EvaluationFailure)> {
        let mut failed = None;
        for (target, change) in &self.patches {
            match changed(evaluation, change) {
                Ok(json) => reply.patches.extend(json.map(|json| Patch::Target(*target, json))),
                Err(failure) => {
                    failed.get_or_insert(((target.as_str(), change), failure));
                }
            }
        }
        for (which, text) in &self.texts {
            let kind = match which {
                RuleText::Reason => continue,
                RuleText::Context => NoteKind::AdditionalContext,
                RuleText::Message => NoteKind::SystemMessage,
            };
            match said(evaluation, text) {
                Ok(said) => reply.notes.extend(said.map(|text| (kind, text))),
                Err(failure) => {
                    failed.get_or_insert(((which.as_str(), text), failure));
                }
            }
        }
        failed
    }

    /// The failure of the hook that the failure of a part is.
    pub(super) fn failure(&self, (key, part): FailedPart<'_>, failure: &EvaluationFailure) -> Failure {
        let rule = self.label.as_ref().map(|label| format!(" of the rule `{label}`")).unwrap_or_default();
        let message = format!("`{key}`{rule}: {} (`{}`)", failure.error, part.part(failure));
        match failure.error {
            // Whoever writes the event can make it so long, so that this is no milder than another failure.
            EvaluationError::TooManySteps => Failure::new(Ended::TimedOut, message).by_stricter_policy(),
            _ => Failure::new(Ended::Failed, message),
        }
    }
}

/// The text that an expression gives, if it is not null.
fn said<'a>(
    evaluation: &Evaluation<'a>,
    text: &'a RuleExpression,
) -> Result<Option<String>, EvaluationFailure> {
    let place = text.expression.place;
    let failed = |error| EvaluationFailure { error, place };
    match evaluation.value(&text.expression)? {
        RuleValue::Text(said) if said.len() > LONGEST_NOTE => Err(failed(EvaluationError::TooLong)),
        RuleValue::Text(said) => Ok(Some((*said).to_owned())),
        RuleValue::Null => Ok(None),
        other => Err(failed(EvaluationError::WrongType { found: other.kind(), wanted: "a string" })),
    }
}

/// The JSON that an expression gives, if it is not null.
fn changed<'a>(
    evaluation: &Evaluation<'a>,
    change: &'a RuleExpression,
) -> Result<Option<Json>, EvaluationFailure> {
    let value = evaluation.value(&change.expression)?;
    if matches!(value, RuleValue::Null) {
        return Ok(None);
    }
    let place = change.expression.place;
    let failed = |error| EvaluationFailure { error, place };
    let mut text = String::new();
    if value.write_json(&mut text, LONGEST_JSON) == JsonLength::TooLong {
        return Err(failed(EvaluationError::TooLong));
    }
    // A map with one key twice is no acceptable JSON.
    Json::parse(&text).map(Some).map_err(|_| failed(EvaluationError::NoJson))
}
