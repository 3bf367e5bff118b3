//! Anthropic's Messages API. The protocol has no JSON output of a schema, so a hook's reply is the input of a tool that
//! the model has to call.

use reqwest::header::{HeaderName, HeaderValue};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json, value::RawValue};

use super::{
    ApiRequest,
    client::{ModelAnswer, ModelRequest, ModelToolCall, ToolResult, ToolUse, Turn},
};
use crate::model::{ApiModel, JsonOutput, TokenUsage};

/// The version of the API.
const VERSION: HeaderValue = HeaderValue::from_static("2023-06-01");

/// The tool whose input is the hook's reply.
const ANSWER_TOOL: &str = "answer";

#[derive(Serialize)]
struct RequestBody<'a> {
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

/// Writes a question.
pub(super) fn write(api: &ApiModel, request: &ModelRequest) -> ApiRequest {
    ApiRequest {
        path: "/v1/messages",
        headers: vec![(HeaderName::from_static("anthropic-version"), VERSION)],
        key_header: HeaderName::from_static("x-api-key"),
        key_prefix: "",
        body: tools(api, request).and_then(|tools| serde_json::to_vec(&request_body(api, request, tools))),
    }
}

fn request_body<'a>(api: &'a ApiModel, request: &'a ModelRequest, tools: Vec<Value>) -> RequestBody<'a> {
    let may_use_tools = !request.tools.is_empty() && request.tool_use == ToolUse::Allowed;
    let tool_choice = match (api.json, may_use_tools) {
        _ if tools.is_empty() => None,
        (_, true) => Some(json!({ "type": "auto" })),
        (JsonOutput::Words, false) => Some(json!({ "type": "none" })),
        (_, false) => Some(json!({ "type": "tool", "name": ANSWER_TOOL })),
    };
    RequestBody {
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
        tools
            .push(json!({ "name": ANSWER_TOOL, "description": description, "input_schema": request.schema }));
    }
    Ok(tools)
}

fn message(turn: &Turn) -> Value {
    match turn {
        Turn::User(text) => json!({ "role": "user", "content": text }),
        Turn::Model { text, calls } => {
            let text = (!text.is_empty()).then(|| json!({ "type": "text", "text": text }));
            let content: Vec<Value> = text.into_iter().chain(calls.iter().map(tool_use)).collect();
            json!({ "role": "assistant", "content": content })
        }
        Turn::Results(results) => {
            json!({ "role": "user", "content": results.iter().map(tool_result).collect::<Vec<_>>() })
        }
    }
}

fn tool_use(call: &ModelToolCall) -> Value {
    // The protocol wants an object. If the model wrote something else, the call's result tells it so.
    let input = serde_json::from_str(&call.arguments).ok().filter(Value::is_object);
    json!({ "type": "tool_use", "id": call.id, "name": call.name, "input": input.unwrap_or_else(|| json!({})) })
}

fn tool_result(result: &ToolResult) -> Value {
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

/// A part of an answer: text, a tool call, or a kind of a newer model, which is ignored.
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

/// Reads an answer.
///
/// Returns what is wrong if it does not follow the protocol, or if the model refused.
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
            ("tool_use", _, _, Some(name), Some(input)) if name == ANSWER_TOOL => {
                input.get().clone_into(&mut answer.text);
                answer.calls.clear();
                break;
            }
            ("tool_use", _, Some(id), Some(name), Some(input)) => {
                answer.calls.push(ModelToolCall { id, name, arguments: input.get().to_owned() });
            }
            _ => {}
        }
    }
    Ok(answer)
}
