//! Prints what it costs to read a native event of 1 KiB and to write its answer, beside what `serde_json` needs to
//! parse and print the same bytes as trees. Both are measured in turns, in one run. Dialects can be named:
//! `cargo bench --bench dialects -- claude`. Refuses to judge: it fails nothing.
#![allow(clippy::cast_precision_loss, reason = "figures are printed with three digits")]

use std::hint::black_box;

use hookyard::{
    dialect,
    model::{Dialect, DialectName, EventKind, HookName, Json, Note, NoteKind, Outcome, Target, Verdict},
};
use serde_json::Value;
use tokio::time::Instant;

/// Pairs of rounds; the median of the pairs' ratios is what counts.
const PAIRS: usize = 41;

/// Events in a round.
const ROUND: usize = 5_000;

/// The bytes of an event.
const SIZE: usize = 1024;

/// What a host of each dialect sends before a tool call; `INPUT` stands for the tool's input.
const EVENTS: &[(DialectName, &str)] = &[
    (
        DialectName::Canonical,
        r#"{"event":"before_tool_dispatch","workspace_id":"shop","session_id":"2e33567b-38f8-490d","run_id":"run-7","cwd":"/srv/shop","agent_name":"main","tool_name":"Write","tool_call_id":"call_8z4y2bzy4g","tool_input":INPUT}"#,
    ),
    (
        DialectName::OpenHarness,
        r#"{"workspace_id":"shop","session_id":"2e33567b-38f8-490d","run_id":"run-7","cwd":"/srv/shop","hook_event_name":"before_tool_dispatch","agent_name":"main","effective_agent_name":"main","tool_name":"Write","tool_call_id":"call_8z4y2bzy4g","tool_input":INPUT}"#,
    ),
    (DialectName::Claude, FAMILY),
    (DialectName::CodeBuddy, FAMILY),
    (
        DialectName::Clawd,
        r#"{"hook_event_name":"PreToolUse","hook_execution_id":"6f1c2b1e-0000-4000-8000-000000000001","timestamp":"2026-01-02T03:04:05.678Z","tool_name":"Write","tool_use_id":"call_8z4y2bzy4g","project_dir":"/srv/shop","session_id":"2e33567b-38f8-490d-90a2-7441e58efc66","permission_mode":"default","tool_input":INPUT}"#,
    ),
    (
        DialectName::Gemini,
        r#"{"session_id":"2e33567b-38f8-490d-90a2-7441e58efc66","transcript_path":"/home/dev/.gemini/tmp/2e33567b/chats/session.json","cwd":"/srv/shop","hook_event_name":"BeforeTool","timestamp":"2026-01-02T03:04:05.678Z","tool_name":"write_file","tool_input":INPUT}"#,
    ),
    (
        DialectName::Codex,
        r#"{"session_id":"01a20480-7dfe-70e3-b541-a3015c149090","turn_id":"01a20480-7e1d-7901-9a3f-f526d4b6cb52","transcript_path":"/home/dev/.codex/sessions/2026/01/02/rollout-01a20480.jsonl","cwd":"/srv/shop","hook_event_name":"PreToolUse","model":"gpt-5","permission_mode":"default","tool_name":"mcp__files__write","tool_input":INPUT,"tool_use_id":"call_8z4y2bzy4g"}"#,
    ),
    (
        DialectName::Qwen,
        r#"{"session_id":"2e33567b-38f8-490d-90a2-7441e58efc66","transcript_path":"/home/dev/.qwen/projects/-srv-shop/chats/2e33567b.jsonl","cwd":"/srv/shop","hook_event_name":"PreToolUse","timestamp":"2026-01-02T03:04:05.678Z","permission_mode":"default","tool_name":"write_file","tool_input":INPUT,"tool_use_id":"toolu_1795383551672_pqbb8cpq2"}"#,
    ),
    (
        DialectName::Copilot,
        r#"{"hook_event_name":"PreToolUse","session_id":"89abaca8-e310-4353-8a5f-e0097a215677","timestamp":"2026-01-02T03:04:05.678Z","cwd":"/srv/shop","tool_name":"Write","tool_input":INPUT}"#,
    ),
    (
        DialectName::Cursor,
        r#"{"conversation_id":"89abaca8-e310-4353-8a5f-e0097a215677","generation_id":"5f4f7b6a-2ad1-4ab2-b4e2-aa0c1d35ea87","model":"auto","tool_name":"Write","tool_input":INPUT,"tool_use_id":"toolu_01A8","session_id":"89abaca8-e310-4353-8a5f-e0097a215677","hook_event_name":"preToolUse","cursor_version":"3.0.0","workspace_roots":["/srv/shop"],"user_email":null,"transcript_path":null}"#,
    ),
    (
        DialectName::Droid,
        r#"{"session_id":"2e33567b-38f8-490d-90a2-7441e58efc66","transcript_path":"/home/dev/.factory/sessions/-srv-shop/2e33567b-38f8-490d-90a2-7441e58efc66.jsonl","cwd":"/srv/shop","permission_mode":"auto-low","hook_event_name":"PreToolUse","tool_name":"Create","tool_input":INPUT}"#,
    ),
];

const FAMILY: &str = r#"{"session_id":"2e33567b-38f8-490d-90a2-7441e58efc66","transcript_path":"/home/dev/.claude/projects/-srv-shop/2e33567b-38f8-490d-90a2-7441e58efc66.jsonl","cwd":"/srv/shop","prompt_id":"81c8c696-df3e-425f","permission_mode":"default","effort":{"level":"high"},"hook_event_name":"PreToolUse","tool_name":"Write","tool_use_id":"toolu_msg_8z4y2bzy4g","tool_input":INPUT}"#;

fn main() {
    let named: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    println!("| what | hookyard | floor | ratio | goal |");
    println!("| --- | --- | --- | --- | --- |");
    for name in DialectName::ALL {
        let (_, frame) = EVENTS.iter().find(|(known, _)| known == name).expect("an event of each dialect");
        if named.is_empty() || named.iter().any(|wanted| wanted == name.as_str()) {
            print(dialect::named(*name), frame);
        }
    }
}

fn print(dialect: &dyn Dialect, frame: &str) {
    let event = frame.replace("INPUT", &input("src/cart.js", SIZE + "INPUT".len() - frame.len()));
    assert_eq!(event.len(), SIZE);
    let changed = input("src/shop.js", SIZE + "INPUT".len() - frame.len());
    let outcome = outcome(dialect.name(), &changed);
    let ours = || {
        let read = dialect.read_event(black_box(event.as_bytes())).expect("an event");
        dialect.write_response(&read, black_box(&outcome)).stdout
    };
    let answer: Value = serde_json::from_str(&ours()).expect("JSON");
    let expected = if receives_changes(dialect.name()) { "src/shop.js" } else { "deny" };
    assert!(answer.to_string().contains(expected), "the change is in the answer: {answer}");
    let bare = || {
        let read: Value = serde_json::from_slice(black_box(event.as_bytes())).expect("JSON");
        drop(black_box(read));
        black_box(&answer).to_string()
    };
    let (hookyard, floor, ratio) = compare(ours, bare);
    println!(
        "| {}: event of {SIZE} bytes to answer of {} | {hookyard:.2} µs | serde_json: {floor:.2} µs | {ratio:.2} | ≤ 5 µs, ≤ 1.5 |",
        dialect.name(),
        ours().len()
    );
}

/// A tool's input of so many bytes.
fn input(path: &str, size: usize) -> String {
    let frame = format!(r#"{{"file_path":"{path}","mode":420,"overwrite":true,"content":""}}"#);
    let line = r#"const price = cart.total(\"EUR\");\n"#;
    let mut content = line.repeat((size - frame.len()) / line.len());
    content.extend(std::iter::repeat_n('x', size - frame.len() - content.len()));
    frame.replace(r#""content":"""#, &format!(r#""content":"{content}""#))
}

/// Whether hosts of a dialect receive a changed input. Others get a denial in its place.
fn receives_changes(dialect: DialectName) -> bool {
    dialect != DialectName::Qwen
}

/// A question with a changed input and a word for the model; where a question is a denial, a changed input alone.
fn outcome(dialect: DialectName, changed: &str) -> Outcome {
    let hook = HookName::new("paths").expect("a name");
    let mut outcome = Outcome::proceed(hookyard::run::next_decision_id(), EventKind::BeforeToolDispatch, 1);
    let denies = [
        DialectName::Codex,
        DialectName::OpenHarness,
        DialectName::Clawd,
        DialectName::Cursor,
        DialectName::Droid,
    ];
    let asks = !denies.contains(&dialect);
    outcome.verdict = if asks { Verdict::Ask } else { Verdict::Proceed };
    outcome.reason = Some("this file was moved".into());
    outcome.by = Some(hook.clone());
    outcome.notes = vec![Note::new(hook, NoteKind::AdditionalContext, "carts are in shop.js")];
    outcome.patched.set(Target::ToolInput, Json::parse(changed).expect("JSON"));
    outcome
}

/// Measures two ways in turns; returns the median time of each in microseconds, and of their ratio.
fn compare<A, B>(ours: impl Fn() -> A, bare: impl Fn() -> B) -> (f64, f64, f64) {
    let (mut hookyard, mut floor, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for pair in 0..PAIRS {
        // The order within a pair alternates too: whoever comes second finds the caches warm.
        let (a, b) = if pair % 2 == 0 {
            let a = round(&ours);
            (a, round(&bare))
        } else {
            let b = round(&bare);
            (round(&ours), b)
        };
        hookyard.push(a);
        floor.push(b);
        ratios.push(a / b);
    }
    (median(hookyard), median(floor), median(ratios))
}

/// The mean time of one in a round, in microseconds.
fn round<T>(one: impl Fn() -> T) -> f64 {
    let begun = Instant::now();
    for _ in 0..ROUND {
        black_box(one());
    }
    begun.elapsed().as_secs_f64() * 1e6 / ROUND as f64
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
