//! Servers of language models that answer by a script and refuse what breaks their protocol.

use std::{
    collections::{HashSet, VecDeque},
    sync::{Arc, Mutex, PoisonError},
};

use axum::{
    Router,
    body::Bytes,
    extract::State,
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
    routing::post,
};
use serde_json::{Value, json};

use super::Server;

/// The key that callers must have.
pub(crate) const KEY: &str = "sk-k3y-0001";

/// The protocols.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocol {
    OpenAi,
    Anthropic,
}

impl Protocol {
    pub(crate) const ALL: [Self; 2] = [Self::OpenAi, Self::Anthropic];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Anthropic => "anthropic",
        }
    }
}

/// What the model does when it is asked.
#[derive(Debug, Clone)]
pub(crate) enum Says {
    /// It answers with these words. Where it has to call a tool to answer and the words are an object, it does.
    Words(String),
    /// The same, cut off at the tokens it may have.
    CutOff(String),
    /// It wants tools run: names and arguments.
    Calls(Vec<(&'static str, Value)>),
    /// It refuses.
    Refusal,
    /// The server refuses with a status and a body.
    Status(u16, String),
    /// Nothing comes.
    Silence,
    /// The beginning of an answer comes, and nothing more.
    Stall,
    /// Words without end.
    Flood,
}

pub(crate) fn words(text: &str) -> Says {
    Says::Words(text.to_owned())
}

/// A server of one protocol.
pub(crate) struct ModelServer {
    pub(crate) server: Server,
    script: Arc<Script>,
}

struct Script {
    protocol: Protocol,
    says: Mutex<VecDeque<Says>>,
    asked: Mutex<Vec<Value>>,
}

impl ModelServer {
    /// A model that says these things one after the other; the last again and again.
    pub(crate) async fn start(protocol: Protocol, says: impl IntoIterator<Item = Says>) -> Self {
        let says = Mutex::new(says.into_iter().collect());
        let script = Arc::new(Script { protocol, says, asked: Mutex::default() });
        let path = match protocol {
            Protocol::OpenAi => "/v1/chat/completions",
            Protocol::Anthropic => "/v1/messages",
        };
        let router = Router::new().route(path, post(answer)).with_state(Arc::clone(&script));
        Self { server: Server::start(router).await, script }
    }

    /// The base address as the settings have it.
    pub(crate) fn base_url(&self) -> String {
        match self.script.protocol {
            Protocol::OpenAi => self.server.url("/v1"),
            Protocol::Anthropic => self.server.url(""),
        }
    }

    /// Everything it was asked, in order.
    pub(crate) fn asked(&self) -> Vec<Value> {
        self.script.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

async fn answer(State(script): State<Arc<Script>>, headers: HeaderMap, body: Bytes) -> Response {
    let Ok(question) = serde_json::from_slice::<Value>(&body) else { return refused(400, "not JSON") };
    script.asked.lock().unwrap().push(question.clone());
    let checked = match script.protocol {
        Protocol::OpenAi => check_openai(&headers, &question),
        Protocol::Anthropic => check_anthropic(&headers, &question),
    };
    if let Err(why) = checked {
        return refused(400, &why);
    }
    let says = {
        let mut says = script.says.lock().unwrap();
        if says.len() > 1 { says.pop_front() } else { says.front().cloned() }
    };
    let says = says.expect("a script says something");
    match (says, script.protocol) {
        (Says::Status(status, body), _) => with_status(status, body),
        (Says::Silence, _) => std::future::pending().await,
        (Says::Stall, _) => unfinished(Ending::Stalls),
        (Says::Flood, _) => unfinished(Ending::Floods),
        (says, Protocol::OpenAi) => ok(&openai(&says, &question)),
        (says, Protocol::Anthropic) => ok(&anthropic(&says, &question)),
    }
}

fn ok(body: &Value) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], body.to_string()).into_response()
}

fn with_status(status: u16, body: String) -> Response {
    let headers = [(header::CONTENT_TYPE, "application/json"), (header::RETRY_AFTER, "7")];
    (StatusCode::from_u16(status).unwrap(), headers, body).into_response()
}

fn refused(status: u16, message: &str) -> Response {
    let error = json!({ "type": "invalid_request_error", "message": message });
    with_status(status, json!({ "type": "error", "error": error }).to_string())
}

/// How an answer goes on for ever.
#[derive(Clone, Copy)]
enum Ending {
    Stalls,
    Floods,
}

fn unfinished(ending: Ending) -> Response {
    let (sender, receiver) = tokio::sync::mpsc::channel::<Result<Bytes, std::io::Error>>(1);
    tokio::spawn(async move {
        let first = Bytes::from_static(br#"{"choices":[{"message":{"content":""#);
        let mut open = sender.send(Ok(first)).await.is_ok();
        while open {
            match ending {
                Ending::Stalls => sender.closed().await,
                Ending::Floods => {}
            }
            open = sender.send(Ok(Bytes::from(vec![b'a'; 64 << 10]))).await.is_ok();
        }
    });
    let stream = futures_util::stream::unfold(receiver, |mut receiver| async {
        receiver.recv().await.map(|chunk| (chunk, receiver))
    });
    ([(header::CONTENT_TYPE, "application/json")], axum::body::Body::from_stream(stream)).into_response()
}

// ## Chat completions

fn check_openai(headers: &HeaderMap, question: &Value) -> Result<(), String> {
    let key = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    ensure(key == Some(&format!("Bearer {KEY}")), "no valid key")?;
    ensure(question["model"].is_string(), "model is missing")?;
    let messages = question["messages"].as_array().ok_or("messages is missing")?;
    let mut open: HashSet<String> = HashSet::new();
    for message in messages {
        match message["role"].as_str() {
            Some("tool") => {
                let id = message["tool_call_id"].as_str().ok_or("tool_call_id is missing")?;
                ensure(open.remove(id), "a tool message answers no call")?;
                ensure(message["content"].is_string(), "content is missing")?;
            }
            Some("assistant") => {
                ensure(open.is_empty(), "calls are unanswered")?;
                for call in message["tool_calls"].as_array().into_iter().flatten() {
                    ensure(call["type"] == "function", "a call has no type")?;
                    ensure(call["function"]["arguments"].is_string(), "arguments must be a string")?;
                    open.insert(call["id"].as_str().ok_or("a call has no id")?.to_owned());
                }
                ensure(message["content"].is_string() || !open.is_empty(), "content is missing")?;
            }
            Some("system" | "user") => ensure(message["content"].is_string(), "content is missing")?,
            _ => return Err("unknown role".to_owned()),
        }
    }
    ensure(open.is_empty(), "calls are unanswered")?;
    for tool in question["tools"].as_array().into_iter().flatten() {
        ensure(tool["type"] == "function" && tool["function"]["name"].is_string(), "a tool is malformed")?;
        ensure(tool["function"]["parameters"]["type"] == "object", "parameters are no schema")?;
    }
    ensure(
        question.get("tool_choice").is_none() || question.get("tools").is_some(),
        "tool_choice without tools",
    )
}

fn openai(says: &Says, question: &Value) -> Value {
    let mut message = json!({ "role": "assistant", "content": null, "refusal": null });
    let mut reason = "stop";
    match says {
        Says::Words(text) => message["content"] = json!(text),
        Says::CutOff(text) => {
            message["content"] = json!(text);
            reason = "length";
        }
        Says::Refusal => message["refusal"] = json!("I cannot help with that."),
        Says::Calls(calls) => {
            let calls = calls.iter().enumerate().map(|(number, (name, arguments))| {
                let function = json!({ "name": name, "arguments": arguments.to_string() });
                json!({ "id": format!("call_{number}"), "type": "function", "function": function })
            });
            message["tool_calls"] = calls.collect();
            reason = "tool_calls";
        }
        Says::Status(..) | Says::Silence | Says::Stall | Says::Flood => unreachable!("answered before"),
    }
    json!({
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1_700_000_000, "model": question["model"],
        "choices": [{ "index": 0, "message": message, "logprobs": null, "finish_reason": reason }],
        "usage": { "prompt_tokens": 100, "completion_tokens": 7, "total_tokens": 107 },
    })
}

// ## Messages

fn check_anthropic(headers: &HeaderMap, question: &Value) -> Result<(), String> {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    ensure(header("x-api-key") == Some(KEY), "no valid key")?;
    ensure(header("anthropic-version") == Some("2023-06-01"), "anthropic-version is missing")?;
    ensure(question["model"].is_string(), "model is missing")?;
    ensure(question["max_tokens"].is_u64(), "max_tokens is missing")?;
    ensure(question["system"].is_string(), "system must be a text")?;
    let messages = question["messages"].as_array().ok_or("messages is missing")?;
    let mut open: HashSet<String> = HashSet::new();
    for (number, message) in messages.iter().enumerate() {
        let expected = if number % 2 == 0 { "user" } else { "assistant" };
        ensure(message["role"] == expected, "roles must alternate, and the user begins")?;
        ensure(message["content"].as_str() != Some(""), "content is empty")?;
        let blocks = message["content"].as_array().map(Vec::as_slice).unwrap_or_default();
        ensure(message["content"].is_string() || !blocks.is_empty(), "content is empty")?;
        for block in blocks {
            match block["type"].as_str() {
                Some("text") => ensure(block["text"].as_str() != Some(""), "text is empty")?,
                Some("tool_use") => {
                    ensure(block["input"].is_object(), "input must be an object")?;
                    open.insert(block["id"].as_str().ok_or("a call has no id")?.to_owned());
                }
                Some("tool_result") => {
                    let id = block["tool_use_id"].as_str().ok_or("tool_use_id is missing")?;
                    ensure(open.remove(id), "a result answers no call")?;
                }
                _ => return Err("unknown block".to_owned()),
            }
        }
        ensure(expected == "assistant" || open.is_empty(), "calls are unanswered")?;
    }
    let tools = question["tools"].as_array().map(Vec::as_slice).unwrap_or_default();
    for tool in tools {
        ensure(tool["input_schema"]["type"] == "object", "input_schema is no schema")?;
    }
    let choice = &question["tool_choice"];
    ensure(choice.is_null() || !tools.is_empty(), "tool_choice without tools")?;
    let named = choice["type"] == "tool";
    ensure(!named || tools.iter().any(|tool| tool["name"] == choice["name"]), "tool_choice names no tool")
}

fn anthropic(says: &Says, question: &Value) -> Value {
    let tool_use = |number: usize, name: &str, input: &Value| json!({ "type": "tool_use", "id": format!("toolu_{number}"), "name": name, "input": input });
    let forced = question["tool_choice"]["name"].as_str();
    let (content, reason) = match says {
        Says::Words(text) => {
            if let (Some(name), Ok(input)) = (forced, serde_json::from_str::<Value>(text)) {
                (json!([tool_use(0, name, &input)]), "tool_use")
            } else {
                let thoughts = json!({ "type": "thinking", "thinking": "…", "signature": "s" });
                (json!([thoughts, { "type": "text", "text": text }]), "end_turn")
            }
        }
        Says::CutOff(text) => (json!([{ "type": "text", "text": text }]), "max_tokens"),
        Says::Refusal => (json!([]), "refusal"),
        Says::Calls(calls) => {
            let calls = calls.iter().enumerate().map(|(number, (name, input))| tool_use(number, name, input));
            let words = json!({ "type": "text", "text": "Let me look." });
            (std::iter::once(words).chain(calls).collect(), "tool_use")
        }
        Says::Status(..) | Says::Silence | Says::Stall | Says::Flood => unreachable!("answered before"),
    };
    json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": question["model"], "content": content,
        "stop_reason": reason, "stop_sequence": null, "usage": { "input_tokens": 100, "output_tokens": 7 },
    })
}

fn ensure(holds: bool, otherwise: &str) -> Result<(), String> {
    if holds { Ok(()) } else { Err(otherwise.to_owned()) }
}
