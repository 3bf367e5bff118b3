//! The output of Gemini CLI's hooks, and how several outputs become one.

use std::cmp::Reverse;

use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use crate::{
    dialect::{
        event_reader::unquoted,
        event_table::EventRow,
        output::{check_size, excerpt, invalid, misspelt_key, object_of, unknown_keys, value_of, wrong_type},
    },
    model::{EventKind, Failure, Json, JsonFields, MergeRule, Reply},
};

const TOP_KEYS: [&str; 7] =
    ["continue", "stopReason", "decision", "reason", "suppressOutput", "systemMessage", "hookSpecificOutput"];

/// The prefix of the names of fields of `hookSpecificOutput` in messages.
const WITHIN: &str = "hookSpecificOutput.";

/// Fields of `hookSpecificOutput` that mean something on some event.
const SPECIFIC_KEYS: [&str; 8] = [
    "hookEventName",
    "tool_input",
    "additionalContext",
    "llm_request",
    "llm_response",
    "toolConfig",
    "clearContext",
    "tailToolCallRequest",
];

/// Those of them that are objects.
const OBJECTS: [&str; 5] = ["tool_input", "llm_request", "llm_response", "toolConfig", "tailToolCallRequest"];

/// The name under which a reply keeps its hook's output until it is merged with others.
const KEPT: &str = "said";

/// The name under which a reply notes until then that its hook failed.
pub(super) const FAILED: &str = "failed";

/// The decision of a hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(in crate::dialect) enum GeminiDecision {
    Allow,
    Approve,
    Ask,
    Block,
    Deny,
}

impl GeminiDecision {
    const ALL: [(&str, Self); 5] = [
        ("allow", Self::Allow),
        ("approve", Self::Approve),
        ("ask", Self::Ask),
        ("block", Self::Block),
        ("deny", Self::Deny),
    ];

    /// The decision of a name.
    pub(in crate::dialect) fn of(word: &str) -> Option<Self> {
        Self::ALL.iter().find(|(known, _)| *known == word).map(|(_, decision)| *decision)
    }

    /// Whether it stops what is about to happen.
    pub(in crate::dialect) fn blocks(self) -> bool {
        matches!(self, Self::Block | Self::Deny)
    }
}

/// The output of a hook, or of several hooks merged.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::dialect) struct GeminiOutput {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::dialect) r#continue: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::dialect) stop_reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::dialect) suppress_output: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::dialect) system_message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::dialect) decision: Option<GeminiDecision>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::dialect) reason: Option<String>,
    #[serde(skip_serializing_if = "SpecificOutput::is_empty")]
    pub(in crate::dialect) hook_specific_output: SpecificOutput,
}

/// The fields of `hookSpecificOutput`, in the order in which hooks gave them.
#[derive(Debug, Clone, Default)]
pub(in crate::dialect) struct SpecificOutput(pub(in crate::dialect) Vec<(Box<str>, Json)>);

impl SpecificOutput {
    pub(in crate::dialect) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The value of a field.
    pub(in crate::dialect) fn get(&self, name: &str) -> Option<&Json> {
        self.0.iter().find(|(known, _)| **known == *name).map(|(_, value)| value)
    }

    /// Sets a field, or replaces it.
    pub(in crate::dialect) fn set(&mut self, name: &str, value: Json) {
        match self.0.iter_mut().find(|(known, _)| **known == *name) {
            Some((_, former)) => *former = value,
            None => self.0.push((name.into(), value)),
        }
    }

    /// Removes a field.
    pub(super) fn take(&mut self, name: &str) -> Option<Json> {
        let place = self.0.iter().position(|(known, _)| **known == *name)?;
        Some(self.0.remove(place).1)
    }
}

impl Serialize for SpecificOutput {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

impl GeminiOutput {
    /// Whether it says nothing.
    pub(in crate::dialect) fn is_empty(&self) -> bool {
        let Self { r#continue, stop_reason, system_message, decision, reason, .. } = self;
        r#continue.is_none()
            && stop_reason.is_none()
            && system_message.is_none()
            && decision.is_none()
            && reason.is_none()
            && self.suppress_output.is_none()
            && self.hook_specific_output.is_empty()
    }

    /// Reads a hook's output. As for the agent, a field of a wrong type costs no other field.
    ///
    /// Returns a failure if a patch is too large.
    pub(in crate::dialect) fn read(fields: &JsonFields<'_>) -> Result<ReadOutput, Failure> {
        let mut reading = Reading { warnings: unknown_keys(fields, &TOP_KEYS, ""), mistake: None };
        let mut output = Self {
            r#continue: reading.flag(fields, "continue").map(|value| value != "false"),
            stop_reason: reading.text(fields, "stopReason"),
            suppress_output: reading.flag(fields, "suppressOutput").map(is_true),
            system_message: reading.text(fields, "systemMessage"),
            decision: reading.decision(fields),
            reason: reading.text(fields, "reason"),
            hook_specific_output: SpecificOutput::default(),
        };
        if let Some(specific) = value_of(fields, "hookSpecificOutput") {
            match object_of("hookSpecificOutput", specific) {
                Ok(specific) => output.hook_specific_output = reading.specific(&specific)?,
                Err(mistake) => reading.note(mistake),
            }
        }
        Ok(ReadOutput { output, warnings: reading.warnings, mistake: reading.mistake })
    }

    /// Stores it in a reply.
    pub(super) fn keep_in(&self, reply: &mut Reply) {
        reply.native = Json::of(self).map(|output| (KEPT.into(), output)).into_iter().collect();
    }

    /// The output of the hook of a reply; empty if it gave none.
    pub(super) fn kept_in(reply: &Reply) -> Option<Self> {
        let (_, kept) = reply.native.iter().find(|(name, _)| **name == *KEPT)?;
        Self::read(&kept.fields()?).ok().map(|read| read.output)
    }

    /// Merges several outputs by the rule of their event.
    pub(super) fn folded(row: &EventRow, all: Vec<Self>) -> Option<Self> {
        let fold = match (row.kind, row.merge_rule) {
            (EventKind::BeforeToolSelection, _) => |_: Self, _: Self| Self::default(),
            (_, MergeRule::Combined) => Self::and,
            (_, MergeRule::CombinedLatestNotes | MergeRule::Strictest) => Self::replaced_by,
        };
        let first = Self::default();
        (!all.is_empty()).then(|| all.into_iter().fold(first, fold))
    }

    /// The strictest decision, all texts, and flags that either has set.
    fn and(mut self, next: Self) -> Self {
        let strictness = |decision: GeminiDecision| match decision {
            GeminiDecision::Allow | GeminiDecision::Approve => 0,
            GeminiDecision::Ask => 1,
            GeminiDecision::Block | GeminiDecision::Deny => 2,
        };
        // Of equally strict ones the last is reported.
        self.decision = [next.decision, self.decision]
            .into_iter()
            .flatten()
            .min_by_key(|decision| Reverse(strictness(*decision)));
        if next.r#continue == Some(false) {
            self.r#continue = next.r#continue;
            self.stop_reason = lines(self.stop_reason, next.stop_reason);
        }
        self.reason = lines(self.reason, next.reason);
        self.suppress_output = [self.suppress_output, next.suppress_output].into_iter().flatten().max();
        for (name, value) in next.hook_specific_output.0 {
            let stays = *name == *"clearContext" && value.as_str() == "false";
            if !stays || self.hook_specific_output.get(&name).is_none() {
                self.hook_specific_output.set(&name, value);
            }
        }
        self
    }

    /// Replaces fields by those of the next output that has them too.
    fn replaced_by(mut self, next: Self) -> Self {
        for (name, value) in next.hook_specific_output.0 {
            self.hook_specific_output.set(&name, value);
        }
        Self {
            r#continue: next.r#continue.or(self.r#continue),
            stop_reason: next.stop_reason.or(self.stop_reason),
            suppress_output: next.suppress_output.or(self.suppress_output),
            system_message: next.system_message.or(self.system_message),
            decision: next.decision.or(self.decision),
            reason: next.reason.or(self.reason),
            hook_specific_output: self.hook_specific_output,
        }
    }
}

/// A hook's output as it was read.
pub(in crate::dialect) struct ReadOutput {
    pub(in crate::dialect) output: GeminiOutput,
    /// Likely mistakes.
    pub(in crate::dialect) warnings: Vec<String>,
    /// The first field that cannot count as it is written.
    pub(in crate::dialect) mistake: Option<Failure>,
}

/// What is noticed while an output is read.
struct Reading {
    warnings: Vec<String>,
    mistake: Option<Failure>,
}

impl Reading {
    fn note(&mut self, mistake: Failure) {
        self.mistake.get_or_insert(mistake);
    }

    /// A value that should be a flag, as it is written.
    fn flag<'a>(&mut self, fields: &JsonFields<'a>, name: &str) -> Option<&'a str> {
        let value = value_of(fields, name)?;
        if !matches!(value.get(), "true" | "false") {
            self.note(wrong_type(name, "a boolean", value));
        }
        Some(value.get())
    }

    /// A text. JavaScript makes one of any other value that is not false.
    fn text(&mut self, fields: &JsonFields<'_>, name: &str) -> Option<String> {
        let value = value_of(fields, name)?;
        if let Some(text) = unquoted(value) {
            return Some(text.into_owned());
        }
        self.note(wrong_type(name, "a string", value));
        is_true(value.get()).then(|| value.get().to_owned())
    }

    /// The decision. An unknown one is none.
    fn decision(&mut self, fields: &JsonFields<'_>) -> Option<GeminiDecision> {
        let value = value_of(fields, "decision")?;
        let Some(word) = unquoted(value) else {
            self.note(wrong_type("decision", "a string", value));
            return None;
        };
        let decision = GeminiDecision::of(&word);
        if decision.is_none() {
            self.note(no_decision(&word));
        }
        decision
    }

    /// The fields of `hookSpecificOutput` that are of the right type.
    ///
    /// Returns a failure if a patch is too large.
    fn specific(&mut self, fields: &JsonFields<'_>) -> Result<SpecificOutput, Failure> {
        let mut kept = SpecificOutput::default();
        for (name, value) in
            fields.iter().filter(|(name, value)| *name != "hookEventName" && value.get() != "null")
        {
            if !SPECIFIC_KEYS.contains(&name) {
                self.warnings.extend(misspelt_key(name, &SPECIFIC_KEYS, WITHIN));
            }
            if OBJECTS.contains(&name) {
                check_size(value)?;
            }
            match wrong_within(name, value) {
                Some(mistake) => self.note(mistake),
                None => kept.0.push((name.into(), Json::checked(value))),
            }
        }
        Ok(kept)
    }
}

/// Why a field of `hookSpecificOutput` does not count.
fn wrong_within(name: &str, value: &RawValue) -> Option<Failure> {
    let full_name = format!("{WITHIN}{name}");
    match name {
        "additionalContext" if unquoted(value).is_none() => Some(wrong_type(&full_name, "a string", value)),
        "clearContext" if !matches!(value.get(), "true" | "false") => {
            Some(wrong_type(&full_name, "a boolean", value))
        }
        _ if OBJECTS.contains(&name) => object_of(&full_name, value).err(),
        _ => None,
    }
}

/// Whether JavaScript takes a value that is not a text for true.
fn is_true(value: &str) -> bool {
    !matches!(value, "false" | "0" | "-0" | "0.0" | "\"\"")
}

fn no_decision(word: &str) -> Failure {
    let shown = excerpt(word);
    invalid(format!("`decision` is {shown:?}; the decisions are \"allow\", \"ask\" and \"deny\""))
}

/// Two texts, one below the other.
fn lines(first: Option<String>, second: Option<String>) -> Option<String> {
    let texts: Vec<String> = [first, second].into_iter().flatten().filter(|text| !text.is_empty()).collect();
    (!texts.is_empty()).then(|| texts.join("\n"))
}
