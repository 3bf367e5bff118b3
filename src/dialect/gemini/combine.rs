//! Combines the replies of Gemini CLI's hooks to one event, as Gemini CLI itself does.

use super::{
    output::{FAILED, GeminiDecision, GeminiOutput, SpecificOutput},
    payload,
    reply::opinion,
};
use crate::{
    dialect::{event_table::EventRow, patch_merge},
    model::{
        DialectName, Draft, EventKind, HookDecision, Json, JsonError, MergeRule, NoteKind, Patch, Reply,
        Strategy, Target, Verdict, merge_one_level,
    },
};

/// A reply merged with the earlier ones.
pub(super) fn combine(row: &EventRow, draft: &Draft, earlier: &[Reply], mut reply: Reply) -> Reply {
    let has_failed = reply.native.iter().any(|(name, _)| **name == *FAILED);
    reply.native.retain(|(name, _)| **name != *FAILED);
    let all = || earlier.iter().chain([&reply]);
    let Some(mut output) = GeminiOutput::folded(row, all().filter_map(GeminiOutput::kept_in).collect())
    else {
        return reply;
    };
    let is_home = draft.event().dialect == DialectName::Gemini;
    let decides = row.merge_rule == MergeRule::Combined && row.kind != EventKind::BeforeToolSelection;
    if decides && is_home && output.decision.is_none() && output.r#continue != Some(false) {
        output.decision = Some(GeminiDecision::Allow);
    }
    let configs: Vec<Json> = all().flat_map(|reply| &reply.patches).filter_map(tool_config).collect();
    let opinion = given_a_reason(opinion(row, &output), all());
    let mut joined = Reply { decision: opinion, native: words(row, &output), ..std::mem::take(&mut reply) };
    if row.kind == EventKind::BeforeToolSelection {
        joined.notes.clear();
    }
    if row.kind == EventKind::AfterToolDispatch {
        joined.suppress_output = output.suppress_output == Some(true);
    }
    if row.kind == EventKind::BeforeToolSelection && is_home && configs.is_empty() {
        // The agent makes a configuration of any answer.
        joined.patches.extend(Json::parse("{}").ok().map(|none| Patch::Target(Target::ToolConfig, none)));
    }
    joined.patches = joined.patches.into_iter().map(|patch| whole(draft, patch, &configs)).collect();
    joined.patches.extend(next_prompt(row, draft, &joined.notes).filter(|_| !has_failed));
    match row.kind {
        EventKind::BeforeToolDispatch => {
            joined.patches = latest(Target::ToolInput, draft, earlier, joined.patches, has_failed);
        }
        EventKind::BeforeModelCall => {
            joined.patches = latest(Target::ModelRequest, draft, earlier, joined.patches, has_failed);
        }
        // The next hook is given the response of the model all the same.
        EventKind::AfterModelCall if is_home => {
            joined.patches = latest(Target::ModelResponse, draft, earlier, joined.patches, true);
        }
        _ => {}
    }
    if !is_home {
        abroad(row, &output.hook_specific_output, &mut joined);
    }
    joined
}

fn tool_config(patch: &Patch) -> Option<Json> {
    match patch {
        Patch::Target(Target::ToolConfig, value) => Some(value.clone()),
        _ => None,
    }
}

/// A hook that blocks without a reason was given one when its reply was read.
fn given_a_reason<'a>(
    opinion: HookDecision,
    all: impl DoubleEndedIterator<Item = &'a Reply>,
) -> HookDecision {
    let verdict = opinion.verdict();
    match opinion {
        HookDecision::Halt(None) | HookDecision::Block(None) => {
            let given = all.rev().find(|reply| reply.decision.verdict() == verdict);
            given.map_or(opinion, |reply| reply.decision.clone())
        }
        opinion => opinion,
    }
}

/// A patch with the fields that it leaves unchanged. A later patch replaces an earlier one that it did not see.
fn whole(draft: &Draft, patch: Patch, configs: &[Json]) -> Patch {
    let Patch::Target(target, value) = patch else { return patch };
    let current = draft.target(target);
    let is_home = draft.event().dialect == DialectName::Gemini;
    let whole: Result<Json, JsonError> = match target {
        Target::ModelRequest => patch_merge::merge_patch(target, current, &value),
        Target::ModelResponse if !is_home => merge_one_level(current, &payload::response_abroad(&value)),
        Target::ToolConfig => payload::tool_config(configs),
        _ => Ok(value.clone()),
    };
    Patch::Target(target, whole.unwrap_or(value))
}

/// Patches of a target of which the latest that a hook gave takes the place of the host's. The next hook is given all of
/// them, merged, but not that of a hook that is `hidden` from it.
fn latest(target: Target, draft: &Draft, earlier: &[Reply], patches: Vec<Patch>, hidden: bool) -> Vec<Patch> {
    let given = |patch: &Patch| match patch {
        Patch::Target(of, value) if *of == target => Some(value.clone()),
        _ => None,
    };
    let own = patches.iter().find_map(given);
    let before = || earlier.iter().rev().flat_map(|reply| &reply.patches);
    let before = || given(&whole(draft, before().find(|patch| given(patch).is_some())?.clone(), &[]));
    let Some(latest) = own.clone().or_else(before) else { return patches };
    let current = draft.target(target);
    let next = match own.filter(|_| !hidden) {
        Some(own) => merge_one_level(current, &own).ok(),
        None => current.cloned(),
    };
    let mut all: Vec<Patch> = patches.into_iter().filter(|patch| given(patch).is_none()).collect();
    all.push(Patch::Target(target, latest));
    all.extend(next.map(|next| Patch::HooksOnly(target, next)));
    all
}

/// The prompt for the next hook, where hooks run one after the other.
pub(in crate::dialect) fn next_prompt(
    row: &EventRow,
    draft: &Draft,
    notes: &[(NoteKind, String)],
) -> Option<Patch> {
    if row.kind != EventKind::PromptSubmitted {
        return None;
    }
    let (_, context) = notes.iter().find(|(kind, _)| *kind == NoteKind::AdditionalContext)?;
    let prompt: String = draft.target(Target::Prompt)?.read().ok()?;
    let next = Json::of(&format!("{prompt}\n\n{context}")).ok()?;
    Some(Patch::HooksOnly(Target::Prompt, next))
}

/// The fields that hosts of the same dialect receive beyond the outcome.
fn words(row: &EventRow, output: &GeminiOutput) -> Vec<(Box<str>, Json)> {
    let verdict = match row.kind.strategy() {
        Strategy::Serial => opinion(row, output).verdict(),
        // The verdict of a hook that only watches is lost.
        Strategy::Parallel => Verdict::Proceed,
    };
    let mut words = output.hook_specific_output.clone();
    let mut keep = |name: &str, value: Result<Json, JsonError>| {
        if let Ok(value) = value {
            words.set(name, value);
        }
    };
    let usual = match (verdict, output.decision) {
        (Verdict::Allow, Some(GeminiDecision::Allow)) | (Verdict::Block, Some(GeminiDecision::Deny)) => true,
        (Verdict::Ask, _) => row.kind == EventKind::BeforeToolDispatch,
        _ => false,
    };
    if let Some(decision) = output.decision.filter(|_| !usual) {
        keep("decision", Json::of(&decision));
    }
    if let Some(reason) =
        output.reason.as_ref().filter(|_| matches!(verdict, Verdict::Proceed | Verdict::Halt))
    {
        keep("reason", Json::of(reason));
    }
    if verdict == Verdict::Proceed && output.r#continue == Some(false) {
        keep("continue", Json::of(&false));
        if let Some(reason) = &output.stop_reason {
            keep("stopReason", Json::of(reason));
        }
    }
    if row.kind != EventKind::AfterToolDispatch && output.suppress_output == Some(true) {
        keep("suppressOutput", Json::of(&true));
    }
    words.0
}

/// The fields that hosts of other dialects cannot receive.
fn abroad(row: &EventRow, specific: &SpecificOutput, joined: &mut Reply) {
    for name in ["clearContext", "tailToolCallRequest"] {
        if specific.get(name).is_some() {
            joined.warnings.push(format!("`{name}` ignored: this host cannot be told"));
        }
    }
    if row.kind != EventKind::BeforeModelCall || joined.decision.verdict() >= Verdict::Block {
        return;
    }
    // An answer in the model's place means that the model is not to be asked.
    if let Some(answer) = specific.get("llm_response") {
        let text = payload::text_of(answer).unwrap_or_default();
        joined.decision = HookDecision::Block(Some(format!("a hook answered in the model's place: {text}")));
    }
}
