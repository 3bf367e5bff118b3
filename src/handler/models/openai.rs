//! `OpenAI`'s Chat Completions API, which many servers offer.

use reqwest::header::AUTHORIZATION;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json, value::RawValue};

use super::{
    ApiRequest,
    client::{ModelAnswer, ModelRequest, ModelToolCall, ToolResult, ToolSpecification, ToolUse, Turn},
};
use crate::model::{ApiModel, JsonOutput, TokenUsage};

#[derive(Serialize)]
struct RequestBody<'a> {
    model: &'a str,
    messages: Vec<Value>,
    max_completion_tokens: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<Value>,
}

#[derive(Serialize)]
struct Tool {
    r#type: &'static str,
    function: Function,
}

#[derive(Serialize)]
struct Function {
    name: &'static str,
    description: &'static str,
    parameters: Box<RawValue>,
}

/// Writes a question.
pub(super) fn write(api: &ApiModel, request: &ModelRequest) -> ApiRequest {
    ApiRequest {
        path: "/chat/completions",
        headers: Vec::new(),
        key_header: AUTHORIZATION,
        key_prefix: "Bearer ",
        body: tools(request).and_then(|tools| serde_json::to_vec(&request_body(api, request, tools))),
    }
}

fn request_body<'a>(api: &'a ApiModel, request: &ModelRequest, tools: Vec<Tool>) -> RequestBody<'a> {
    let system = json!({ "role": "system", "content": request.system });
    let forbidden = !tools.is_empty() && request.tool_use == ToolUse::Forbidden;
    RequestBody {
        model: &api.model,
        messages: std::iter::once(system).chain(request.turns.iter().flat_map(messages)).collect(),
        max_completion_tokens: api.max_output_tokens.get(),
        temperature: api.temperature,
        tools,
        tool_choice: forbidden.then_some("none"),
        response_format: match api.json {
            JsonOutput::Object => Some(json!({ "type": "json_object" })),
            JsonOutput::Schema => Some(json!({
                "type": "json_schema",
                "json_schema": { "name": "answer", "strict": false, "schema": request.schema },
            })),
            JsonOutput::Words => None,
        },
    }
}

fn tools(request: &ModelRequest) -> serde_json::Result<Vec<Tool>> {
    request.tools.iter().map(tool).collect()
}

fn tool(tool: &ToolSpecification) -> serde_json::Result<Tool> {
    let parameters = serde_json::from_str(tool.schema)?;
    let function = Function { name: tool.name, description: tool.description, parameters };
    Ok(Tool { r#type: "function", function })
}

fn messages(turn: &Turn) -> Vec<Value> {
    match turn {
        Turn::User(text) => vec![json!({ "role": "user", "content": text })],
        Turn::Model { text, calls } if calls.is_empty() => {
            vec![json!({ "role": "assistant", "content": text })]
        }
        Turn::Model { text, calls } => {
            let calls: Vec<Value> = calls.iter().map(function_call).collect();
            let content = if text.is_empty() { Value::Null } else { json!(text) };
            vec![json!({ "role": "assistant", "content": content, "tool_calls": calls })]
        }
        Turn::Results(results) => results.iter().map(tool_result).collect(),
    }
}

fn function_call(call: &ModelToolCall) -> Value {
    let function = json!({ "name": call.name, "arguments": call.arguments });
    json!({ "id": call.id, "type": "function", "function": function })
}

fn tool_result(result: &ToolResult) -> Value {
    let content = match &result.result {
        Ok(text) => text.clone(),
        Err(text) => format!("error: {text}"),
    };
    json!({ "role": "tool", "tool_call_id": result.call_id, "content": content })
}

#[derive(Deserialize)]
struct Completion {
    choices: Vec<Choice>,
    usage: Option<Usage>,
}

#[derive(Deserialize)]
struct Choice {
    message: Message,
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Message {
    content: Option<String>,
    refusal: Option<String>,
    tool_calls: Option<Vec<Call>>,
}

#[derive(Deserialize)]
struct Call {
    id: String,
    function: Called,
}

#[derive(Deserialize)]
struct Called {
    name: String,
    arguments: String,
}

#[derive(Deserialize)]
struct Usage {
    prompt_tokens: u64,
    completion_tokens: u64,
}

/// Reads an answer.
///
/// Returns what is wrong if it does not follow the protocol, or if the model refused.
pub(super) fn read(bytes: &[u8]) -> Result<ModelAnswer, String> {
    let completion: Completion = serde_json::from_slice(bytes).map_err(|e| e.to_string())?;
    let choice = completion.choices.into_iter().next().ok_or("it has no choice")?;
    let Message { content, refusal, tool_calls } = choice.message;
    if refusal.is_some_and(|text| !text.is_empty()) {
        return Err("the model refused to answer".to_owned());
    }
    Ok(ModelAnswer {
        text: content.unwrap_or_default(),
        calls: tool_calls.unwrap_or_default().into_iter().map(tool_call).collect(),
        tokens: completion
            .usage
            .map(|usage| TokenUsage { input: usage.prompt_tokens, output: usage.completion_tokens }),
        cut_off: choice.finish_reason.as_deref() == Some("length"),
    })
}

fn tool_call(call: Call) -> ModelToolCall {
    ModelToolCall { id: call.id, name: call.function.name, arguments: call.function.arguments }
}
