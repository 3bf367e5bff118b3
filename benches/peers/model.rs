//! A model for Claude Code, without a network: it asks for the same file again and again, and knows how long each call took.

use std::{sync::Arc, time::Duration};

use axum::{
    body::Bytes,
    extract::{DefaultBodyLimit, State},
    http::{Uri, header::CONTENT_TYPE},
    response::{IntoResponse, Response},
};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::{task::JoinHandle, time::Instant};

/// How long it thinks before it asks. Models take longer, and the agent is done with what it does beside its work by then.
const THINKS: Duration = Duration::from_millis(100);

/// One session of the agent.
struct Script {
    file: String,
    calls: usize,
    turns: Mutex<Vec<Turn>>,
}

/// When the agent asked, and when it had its answer.
struct Turn {
    asked: Instant,
    answered: Instant,
}

/// A model that listens, ended with the value.
pub(crate) struct Model {
    pub(crate) address: String,
    script: Arc<Script>,
    server: JoinHandle<()>,
}

impl Model {
    /// One that asks so many times for a file.
    pub(crate) async fn start(file: String, calls: usize) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = format!("http://{}", listener.local_addr().expect("an address"));
        let script = Arc::new(Script { file, calls, turns: Mutex::default() });
        let router = axum::Router::new().fallback(answer).layer(DefaultBodyLimit::disable());
        let router = router.with_state(Arc::clone(&script));
        let server = tokio::spawn(async move { axum::serve(listener, router).await.expect("it serves") });
        Self { address, script, server }
    }

    /// How long the agent took from each answer to its next request.
    pub(crate) fn calls(&self) -> Vec<Duration> {
        let turns = self.script.turns.lock();
        turns.windows(2).map(|pair| pair[1].asked - pair[0].answered).collect()
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn answer(State(script): State<Arc<Script>>, uri: Uri, body: Bytes) -> Response {
    let asked = Instant::now();
    if !uri.path().ends_with("/messages") {
        return ([(CONTENT_TYPE, "application/json")], r#"{"input_tokens":1}"#).into_response();
    }
    let request: Value = serde_json::from_slice(&body).unwrap_or_default();
    // Requests without tools are of the agent's own: titles, summaries.
    let is_turn = request["tools"].as_array().is_some_and(|tools| !tools.is_empty());
    let number = script.turns.lock().len();
    let calls = is_turn && number < script.calls;
    let text = stream(number, &script.file, calls);
    if is_turn {
        tokio::time::sleep(THINKS).await;
        script.turns.lock().push(Turn { asked, answered: Instant::now() });
    }
    ([(CONTENT_TYPE, "text/event-stream")], text).into_response()
}

/// A message as server-sent events: a call of the tool `Read`, or the end.
fn stream(number: usize, file: &str, calls: bool) -> String {
    let (block, delta, stop) = if calls {
        let input = json!({ "file_path": file }).to_string();
        (
            json!({ "type": "tool_use", "id": format!("toolu_{number}"), "name": "Read", "input": {} }),
            json!({ "type": "input_json_delta", "partial_json": input }),
            "tool_use",
        )
    } else {
        let text = |text: &str| json!({ "type": "text", "text": text });
        (text(""), json!({ "type": "text_delta", "text": "done" }), "end_turn")
    };
    let usage = json!({ "input_tokens": 1, "output_tokens": 1 });
    let message = json!({
        "id": format!("msg_{number}"), "type": "message", "role": "assistant", "model": "mock", "content": [],
        "stop_reason": null, "stop_sequence": null, "usage": usage,
    });
    let delta_of_message = json!({ "stop_reason": stop, "stop_sequence": null });
    let events = [
        json!({ "type": "message_start", "message": message }),
        json!({ "type": "content_block_start", "index": 0, "content_block": block }),
        json!({ "type": "content_block_delta", "index": 0, "delta": delta }),
        json!({ "type": "content_block_stop", "index": 0 }),
        json!({ "type": "message_delta", "delta": delta_of_message, "usage": usage }),
        json!({ "type": "message_stop" }),
    ];
    let line =
        |event: &Value| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().expect("a name"));
    events.iter().map(line).collect()
}
