//! What prompt and agent hooks cost beside the question itself: the same question, asked of the same server by a bare
//! client. The server answers at once, so what is left is ours.

use std::sync::{Arc, OnceLock};

use axum::{Router, body::Bytes, routing::post};
use hookyard::{Orchestrator, config::Settings};
use tempfile::TempDir;
use tokio::time::Instant;

use super::{PAIRS, bare_client, common::tool_event, median};

/// The answer of a model that has nothing to object.
const ANSWER: &str = r#"{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"{}","refusal":null},"finish_reason":"stop"}],"usage":{"prompt_tokens":400,"completion_tokens":2,"total_tokens":402}}"#;

/// The questions of one round.
const ROUND: usize = 400;

/// The question as our client sent it first.
type Question = Arc<OnceLock<Bytes>>;

/// Prints the rows.
pub(crate) async fn print() {
    row("prompt", "{ type: prompt, prompt: { inline: Is it safe? }, model_ref: small }").await;
    row("agent", "{ type: agent, agent: reviewer, task: { inline: Is it safe? } }").await;
}

async fn row(kind: &str, handler: &str) {
    let question = Question::default();
    let base_url = model_server(Arc::clone(&question)).await;
    let (_workspace, orchestrator) = asking(handler, &base_url).await;
    let client = bare_client();
    let url = format!("{base_url}/chat/completions");
    let (mut ours, mut bare) = (Vec::new(), Vec::new());
    for pair in 0..PAIRS {
        for call in 0..ROUND {
            let event = tool_event(pair * ROUND + call);
            let begun = Instant::now();
            let outcome = orchestrator.dispatch(event).await.expect("an outcome");
            ours.push(begun.elapsed().as_secs_f64() * 1e6);
            assert!(outcome.hooks[0].error.is_none(), "{outcome:?}");
        }
        let body = question.get().expect("ours was first").clone();
        for _ in 0..ROUND {
            let begun = Instant::now();
            let request = client.post(&url).header("content-type", "application/json").body(body.clone());
            let answer = request.send().await.expect("an answer").bytes().await.expect("a body");
            bare.push(begun.elapsed().as_secs_f64() * 1e6);
            assert_eq!(answer, ANSWER);
        }
    }
    let (hookyard, floor) = (median(ours), median(bare));
    println!(
        "| {kind} hook beside its question, loopback | p50 {hookyard:.0} µs | reqwest → axum: {floor:.0} µs | \
         +{:.0} µs | ≤ 300 µs |",
        hookyard - floor
    );
}

async fn model_server(question: Question) -> String {
    let answer = move |body: Bytes| {
        question.get_or_init(|| body);
        std::future::ready(([("content-type", "application/json")], ANSWER))
    };
    let router = Router::new().route("/v1/chat/completions", post(answer));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move { axum::serve(listener, router).await });
    format!("http://{address}/v1")
}

/// A hook that asks the server, and its workspace.
async fn asking(handler: &str, base_url: &str) -> (TempDir, Orchestrator) {
    let workspace = tempfile::tempdir().expect("a directory");
    let home = workspace.path().join(".openharness");
    std::fs::create_dir_all(home.join("hooks")).expect("a directory");
    std::fs::create_dir_all(home.join("agents")).expect("a directory");
    let hook = format!("name: asks\nevents: [before_tool_dispatch]\nhandler: {handler}\n");
    std::fs::write(home.join("hooks/asks.yaml"), hook).expect("a file");
    let agent = "---\nmodel_ref: small\ntools: [read_file, grep, glob]\n---\nYou review.\n";
    std::fs::write(home.join("agents/reviewer.md"), agent).expect("a file");
    let settings = format!("models: {{ small: {{ api: openai, model: m, base_url: '{base_url}' }} }}");
    let (settings, _) = Settings::from_yaml(&settings, "bench".as_ref());
    let builder = Orchestrator::builder()
        .trust(hookyard::config::TrustPolicy::Off)
        .workspace(workspace.path())
        .settings(settings.expect("settings"));
    let orchestrator = builder.start().await.expect("an orchestrator");
    (workspace, orchestrator)
}
