//! Messages, as Anthropic documents them: a question as JSON and an answer from JSON. The answer of a hook is the
//! input of a tool that the model has to call, which is how this protocol has an object of a schema.

use reqwest::header::{HeaderName, HeaderValue};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json, value::RawValue};

use super::{
    api::Wire,
    client::{ModelAnswer, ModelRequest, ToolCall, ToolResult, ToolUse, Turn},
};
use crate::model::{ApiModel, JsonOutput, TokenUsage};

/// The version of the protocol that is spoken.
const VERSION: HeaderValue = HeaderValue::from_static("2023-06-01");

/// The tool that an answer is the input of.
const ANSWER: &str = "answer";

#[derive(Serialize)]
struct Question<'a> {
    model: &'a str,
    max_tokens: usize,
    system: &'a str,
    messages: Vec<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Value>,
}

/// A question on the wire.
pub(super) fn write(api: &ApiModel, request: &ModelRequest) -> Wire {
    Wire {
        path: "/v1/messages",
        headers: vec![(HeaderName::from_static("anthropic-version"), VERSION)],
        key_header: HeaderName::from_static("x-api-key"),
        key_prefix: "",
        body: tools(api, request).and_then(|tools| serde_json::to_vec(&question(api, request, tools))),
    }
}

fn question<'a>(api: &'a ApiModel, request: &'a ModelRequest, tools: Vec<Value>) -> Question<'a> {
    let may_look_around = !request.tools.is_empty() && request.tool_use == ToolUse::Allowed;
    let tool_choice = match (api.json, may_look_around) {
        _ if tools.is_empty() => None,
        (_, true) => Some(json!({ "type": "auto" })),
        (JsonOutput::Words, false) => Some(json!({ "type": "none" })),
        (_, false) => Some(json!({ "type": "tool", "name": ANSWER })),
    };
    Question {
        model: &api.model,
        max_tokens: api.max_output_tokens.get(),
        system: &request.system,
        messages: request.turns.iter().map(message).collect(),
        temperature: api.temperature,
        tools,
        tool_choice,
    }
}

fn tools(api: &ApiModel, request: &ModelRequest) -> serde_json::Result<Vec<Value>> {
    let mut tools = Vec::new();
    for tool in &request.tools {
        let schema: Value = serde_json::from_str(tool.schema)?;
        tools.push(json!({ "name": tool.name, "description": tool.description, "input_schema": schema }));
    }
    if api.json != JsonOutput::Words {
        let description = "Gives your answer. Call it once, when you have made up your mind.";
        tools.push(json!({ "name": ANSWER, "description": description, "input_schema": request.schema }));
    }
    Ok(tools)
}

fn message(turn: &Turn) -> Value {
    match turn {
        Turn::User(text) => json!({ "role": "user", "content": text }),
        Turn::Model { text, calls } => {
            let words = (!text.is_empty()).then(|| json!({ "type": "text", "text": text }));
            let content: Vec<Value> = words.into_iter().chain(calls.iter().map(used)).collect();
            json!({ "role": "assistant", "content": content })
        }
        Turn::Results(results) => {
            json!({ "role": "user", "content": results.iter().map(result).collect::<Vec<_>>() })
        }
    }
}

fn used(call: &ToolCall) -> Value {
    // The protocol has objects here; what a model wrote instead is told to it by the call's result.
    let input = serde_json::from_str(&call.arguments).ok().filter(Value::is_object);
    json!({ "type": "tool_use", "id": call.id, "name": call.name, "input": input.unwrap_or_else(|| json!({})) })
}

fn result(result: &ToolResult) -> Value {
    let (text, is_error) = match &result.result {
        Ok(text) => (text, false),
        Err(text) => (text, true),
    };
    json!({ "type": "tool_result", "tool_use_id": result.call_id, "content": text, "is_error": is_error })
}

#[derive(Deserialize)]
struct Message {
    content: Vec<Block>,
    stop_reason: Option<String>,
    usage: Option<Usage>,
}

/// A part of an answer: words, a tool call, or whatever else a newer model says, which is passed over.
#[derive(Deserialize)]
struct Block {
    r#type: String,
    text: Option<String>,
    id: Option<String>,
    name: Option<String>,
    input: Option<Box<RawValue>>,
}

#[derive(Deserialize)]
struct Usage {
    input_tokens: u64,
    output_tokens: u64,
}

/// An answer from the wire.
///
/// Returns what is wrong if it has not the protocol's form, or the model refused.
pub(super) fn read(bytes: &[u8]) -> Result<ModelAnswer, String> {
    let message: Message = serde_json::from_slice(bytes).map_err(|e| e.to_string())?;
    let stopped = message.stop_reason.as_deref();
    if stopped == Some("refusal") {
        return Err("the model refused to answer".to_owned());
    }
    let usage = message.usage;
    let mut answer = ModelAnswer {
        tokens: usage.map(|usage| TokenUsage { input: usage.input_tokens, output: usage.output_tokens }),
        cut_off: stopped == Some("max_tokens"),
        ..ModelAnswer::default()
    };
    for Block { r#type, text, id, name, input } in message.content {
        match (r#type.as_str(), text, id, name, input) {
            ("text", Some(text), ..) => answer.text.push_str(&text),
            ("tool_use", _, _, Some(name), Some(input)) if name == ANSWER => {
                input.get().clone_into(&mut answer.text);
                answer.calls.clear();
                break;
            }
            ("tool_use", _, Some(id), Some(name), Some(input)) => {
                answer.calls.push(ToolCall { id, name, arguments: input.get().to_owned() });
            }
            _ => {}
        }
    }
    Ok(answer)
}
