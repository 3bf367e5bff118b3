//! Payload parts that Gemini CLI shapes in its own way, converted from and to those of other hosts.

use std::{borrow::Cow, collections::BTreeSet};

use serde::Deserialize;
use serde_json::{json, value::RawValue};

use crate::model::{Event, Json, JsonError, JsonFields, Target};

/// Converts a part of the payload of another dialect's host for a hook; `None` leaves it unchanged.
pub(in crate::dialect) fn translate(event: &Event, target: Target, value: &Json) -> Option<Json> {
    match target {
        Target::ToolOutput => tool_response(value),
        Target::ModelRequest => {
            with(value, "model", || Json::of(&**event.attributes.model_ref.as_ref()?).ok())
        }
        Target::ModelResponse => with(value, "candidates", || Json::of(&candidates(value)?).ok()),
        Target::Prompt | Target::Context | Target::ToolConfig | Target::ToolInput => None,
    }
}

fn tool_response(value: &Json) -> Option<Json> {
    let fits = value.fields().is_some_and(|fields| fields.get("llmContent").is_some());
    if fits { None } else { Json::of(&json!({ "llmContent": value, "returnDisplay": value })).ok() }
}

/// Adds a field to an object that lacks it.
fn with(value: &Json, name: &'static str, field: impl FnOnce() -> Option<Json>) -> Option<Json> {
    let mut fields = value.fields().filter(|fields| fields.get(name).is_none())?;
    let field: Box<RawValue> = field()?.read().ok()?;
    fields.set(Cow::Borrowed(name), &field);
    Json::of(&fields).ok()
}

fn candidates(response: &Json) -> Option<serde_json::Value> {
    let output: Response = response.read().ok()?;
    let mut candidate = json!({ "content": { "role": "model", "parts": [output.text?] } });
    let former = output.candidates.into_iter().next().and_then(|candidate| candidate.finish_reason);
    if let Some(reason) = output.finish_reason.or(former) {
        candidate["finishReason"] = reason;
    }
    Some(json!([candidate]))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Response {
    text: Option<String>,
    finish_reason: Option<serde_json::Value>,
    #[serde(default)]
    candidates: Vec<Candidate>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Candidate {
    content: Option<Content>,
    finish_reason: Option<serde_json::Value>,
}

#[derive(Deserialize)]
struct Content {
    #[serde(default)]
    parts: Vec<serde_json::Value>,
}

impl Candidate {
    /// Its text; parts are texts, or objects with one.
    fn text(&self) -> String {
        let parts = self.content.iter().flat_map(|content| &content.parts);
        parts.filter_map(|part| part.as_str().or_else(|| part["text"].as_str())).collect()
    }
}

/// The text of a model's response.
pub(super) fn text_of(response: &Json) -> Option<String> {
    let output: Response = response.read().ok()?;
    output.candidates.first().map(Candidate::text).or(output.text)
}

/// A response for hosts without candidates.
pub(super) fn response_abroad(response: &Json) -> Json {
    let (Ok(output), Some(mut fields)) = (response.read::<Response>(), response.fields()) else {
        return response.clone();
    };
    let Some(candidate) = output.candidates.first() else { return response.clone() };
    let text = Json::of(&candidate.text()).and_then(|text| text.read::<Box<RawValue>>());
    let reason = candidate.finish_reason.as_ref().map(|reason| Json::of(reason)?.read::<Box<RawValue>>());
    if let Ok(text) = &text {
        fields.set("text".into(), text);
    }
    if let Some(Ok(reason)) = &reason {
        fields.set("finishReason".into(), reason);
    }
    without_candidates(&fields).unwrap_or_else(|_| response.clone())
}

fn without_candidates(fields: &JsonFields<'_>) -> Result<Json, JsonError> {
    let mut rest = JsonFields::default();
    for (name, value) in fields.iter().filter(|(name, _)| *name != "candidates") {
        rest.set(Cow::Owned(name.to_owned()), value);
    }
    Json::of(&rest)
}

/// A patched response for a host that reads the candidates only. A hook of another dialect may have changed just the
/// text.
pub(super) fn response_home(before: Option<&Json>, patched: &Json) -> Json {
    let text = |response: &Json| response.read::<Response>().ok()?.text;
    let (old, new) = (before.and_then(text), text(patched));
    if new.is_none() || new == old || new == text_of(patched) {
        return patched.clone();
    }
    let bare = patched.fields().and_then(|fields| without_candidates(&fields).ok());
    let written = bare.and_then(|bare| with(&bare, "candidates", || Json::of(&candidates(patched)?).ok()));
    written.unwrap_or_else(|| patched.clone())
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ToolConfig {
    mode: Option<String>,
    allowed_function_names: Vec<String>,
}

/// Several tool configurations in one: the strictest mode, with all the names that any has.
pub(super) fn tool_config(configs: &[Json]) -> Result<Json, JsonError> {
    let read = configs.iter().map(Json::read::<ToolConfig>).collect::<Result<Vec<_>, _>>()?;
    let has = |mode: &str| read.iter().any(|config| config.mode.as_deref() == Some(mode));
    let mode = ["NONE", "ANY"].into_iter().find(|mode| has(mode)).unwrap_or("AUTO");
    let names: BTreeSet<&String> = if mode == "NONE" {
        BTreeSet::new()
    } else {
        read.iter().flat_map(|config| &config.allowed_function_names).collect()
    };
    Json::of(&json!({ "mode": mode, "allowedFunctionNames": names }))
}

/// The fields of a model request that hooks changed. From messages the host would build all contents anew, without what
/// is no text.
pub(super) fn changed_fields(before: Option<&Json>, patched: &Json) -> Json {
    let (Some(before), Some(after)) = (before.and_then(Json::fields), patched.fields()) else {
        return patched.clone();
    };
    let tree = |value: &RawValue| serde_json::from_str::<serde_json::Value>(value.get()).ok();
    let mut changed = JsonFields::default();
    for (name, value) in after.iter() {
        if before.get(name).is_none_or(|former| tree(former) != tree(value)) {
            changed.set(Cow::Owned(name.to_owned()), value);
        }
    }
    Json::of(&changed).unwrap_or_else(|_| patched.clone())
}

/// The configuration of a model that may call no tools.
pub(super) fn no_tools() -> Option<Json> {
    Json::of(&json!({ "mode": "NONE", "allowedFunctionNames": [] })).ok()
}

/// A tool's output as the model sees it.
pub(super) fn shown(output: &Json) -> String {
    let text = |json: &Json| json.read::<String>().ok();
    let within = || text(&Json::checked(output.fields()?.get("llmContent")?));
    text(output).or_else(within).unwrap_or_else(|| output.as_str().to_owned())
}
