//! The messages of the worker protocol, one JSON line each. Pure.

use std::{borrow::Cow, fmt, io::Write, num::NonZeroUsize, sync::Arc};

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{dialect::shorten, model::Event};

/// The version of the protocol.
pub(super) const VERSION: u64 = 1;

/// The most events that a worker gets at once.
pub(super) const MAX_OPEN_EVENTS: usize = 1024;

/// How much of an invalid line a message repeats, in characters.
const EXCERPT: usize = 80;

/// About the length of a request without its envelope, in bytes.
const KEYS_LENGTH: usize = 256;

/// Asks a worker whether it still answers.
pub(super) const PING: &[u8] = b"{\"ping\":1}\n";

/// A request: one event for a worker.
#[derive(Debug)]
pub(super) struct EventMessage {
    /// Unique in the fleet.
    pub(super) id: u64,
    pub(super) envelope: Bytes,
    pub(super) event: Arc<Event>,
}

/// A message of a worker.
#[derive(Debug)]
pub(super) enum WorkerMessage<'a> {
    /// Its first message.
    Hello { version: u64, flow: EventFlow },
    /// The result of an event: the output, or an error message.
    Reply { id: u64, result: Result<&'a RawValue, Cow<'a, str>> },
    /// The answer to a ping.
    Pong,
}

/// How a worker takes events, as its hello says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EventFlow {
    /// One at a time.
    Single,
    /// One at a time, in the order in which they were sent: each answer is written before the next event begins. So
    /// more may be sent ahead.
    Pipeline,
    /// So many at once, answered in any order.
    Multiplex(NonZeroUsize),
}

impl EventFlow {
    fn of(hello: &RawMessage<'_>) -> Self {
        match (hello.multiplex, hello.pipeline) {
            (Some(true), _) => {
                let most = hello.max_events.and_then(|most| usize::try_from(most).ok()).unwrap_or(usize::MAX);
                Self::Multiplex(NonZeroUsize::new(most.min(MAX_OPEN_EVENTS)).unwrap_or(NonZeroUsize::MIN))
            }
            (_, Some(true)) => Self::Pipeline,
            _ => Self::Single,
        }
    }
}

/// A message with the keys of all kinds.
#[derive(Deserialize)]
struct RawMessage<'a> {
    hookyard: Option<u64>,
    multiplex: Option<bool>,
    pipeline: Option<bool>,
    max_events: Option<u64>,
    #[serde(borrow)]
    id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    output: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<Cow<'a, str>>,
    pong: Option<u64>,
}

/// Reads a line of a worker. Unknown keys are ignored, so that a later version may add some.
///
/// Returns what is wrong with a line that is not a message.
pub(super) fn read(line: &[u8]) -> Result<WorkerMessage<'_>, String> {
    let line: RawMessage<'_> = serde_json::from_slice(line).map_err(|e| not_a_message(&e))?;
    match line {
        RawMessage { hookyard: Some(version), id: None, output: None, error: None, pong: None, .. } => {
            Ok(WorkerMessage::Hello { version, flow: EventFlow::of(&line) })
        }
        RawMessage { hookyard: None, id: Some(id), output, error, pong: None, .. } => {
            let id = id.parse().map_err(|_| "a reply is to an id that was never given".to_owned())?;
            let result = match (output, error) {
                (Some(output), None) => Ok(output),
                (None, Some(error)) => Err(error),
                _ => return Err("a reply has not exactly one of `output` and `error`".to_owned()),
            };
            Ok(WorkerMessage::Reply { id, result })
        }
        RawMessage { hookyard: None, id: None, output: None, error: None, pong: Some(_), .. } => {
            Ok(WorkerMessage::Pong)
        }
        _ => Err("a line is neither hello nor reply nor pong".to_owned()),
    }
}

/// Whether a program that was run without the protocol speaks it all the same: it prints a hello, or its first line is
/// another message. Such an output is no answer.
pub(in crate::handler::command) fn is_protocol_output(stdout: &[u8]) -> bool {
    let mut lines =
        stdout.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii).filter(|line| !line.is_empty());
    let Some(first) = lines.next() else { return false };
    let is_hello = |line: &[u8]| matches!(message(line), Some(WorkerMessage::Hello { .. }));
    message(first).is_some() || lines.any(is_hello)
}

fn message(line: &[u8]) -> Option<WorkerMessage<'_>> {
    line.starts_with(b"{").then(|| read(line).ok()).flatten()
}

/// Describes a line that is not a message, without the parser's text: that repeats parts of the line, which may be long
/// or secret.
fn not_a_message(error: &serde_json::Error) -> String {
    let what = if error.is_data() { "other JSON" } else { "invalid JSON" };
    format!("a line is not a message: {what} at column {}", error.column())
}

/// The beginning of a line, for messages.
pub(super) fn excerpt(line: &[u8]) -> String {
    shorten(String::from_utf8_lossy(line).trim_end(), EXCERPT)
}

/// Appends a request. `deadline_ms` is the time left for the event.
pub(super) fn write_request(line: &mut Vec<u8>, event: &EventMessage, deadline_ms: u128) {
    let EventMessage { id, envelope, event } = event;
    line.reserve(envelope.len() + KEYS_LENGTH);
    append(line, format_args!("{{\"id\":\"{id}\",\"deadline_ms\":{deadline_ms}"));
    if let Some(trace) = event.trace {
        append(line, format_args!(",\"traceparent\":\"{trace}\""));
    }
    if let Some(id) = &event.id {
        // Whoever named the event may have used any characters.
        let id = serde_json::Value::from(id.as_str());
        append(line, format_args!(",\"event_id\":{id}"));
    }
    if let Some(arrival) = event.arrival {
        let (decision, delivery) = (arrival.decision_id(), arrival.delivery());
        append(line, format_args!(",\"decision_id\":\"{decision}\",\"delivery\":{delivery}"));
    }
    line.extend_from_slice(b",\"envelope\":");
    match &envelope[..] {
        [] => line.extend_from_slice(b"null"),
        _ if envelope.contains(&b'\n') || envelope.contains(&b'\r') => compact(line, envelope),
        _ => line.extend_from_slice(envelope),
    }
    line.extend_from_slice(b"}\n");
}

/// Appends the message that nobody waits for an event any more.
pub(super) fn write_cancel(line: &mut Vec<u8>, id: u64) {
    append(line, format_args!("{{\"cancel\":\"{id}\"}}\n"));
}

fn append(line: &mut Vec<u8>, text: fmt::Arguments<'_>) {
    // Memory does not fail.
    drop(line.write_fmt(text));
}

/// Copies JSON without the white space between its tokens. A host's payload may span several lines and is in the
/// envelope as it came; within a JSON string there is no line feed.
fn compact(line: &mut Vec<u8>, json: &[u8]) {
    let mut in_string = false;
    let mut escaped = false;
    for &byte in json {
        if in_string || !matches!(byte, b' ' | b'\t' | b'\n' | b'\r') {
            line.push(byte);
        }
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            _ => {}
        }
    }
}

/// An event without anything that it need not have.
#[cfg(any(test, fuzzing))]
pub(super) fn some_event() -> Event {
    use crate::model::{EventKind, RunId, SessionId};

    let (session, run) = (SessionId::new("s").expect("an id"), RunId::new("r").expect("an id"));
    Event::new(EventKind::BeforeToolDispatch, session, run)
}

/// Reads any line, for the fuzzer: it is a message, or a short text says what is wrong with it. A reply has an id that can
/// be asked with, and its output is one JSON value.
#[cfg(any(test, fuzzing))]
pub(super) fn check_worker_line(line: &[u8]) {
    match read(line) {
        Ok(WorkerMessage::Reply { id, result: Ok(output) }) => {
            assert!(serde_json::from_str::<Box<RawValue>>(output.get()).is_ok(), "{output}");
            let mut request = Vec::new();
            let envelope = Bytes::copy_from_slice(output.get().as_bytes());
            write_request(&mut request, &EventMessage { id, envelope, event: Arc::new(some_event()) }, 1);
            let first_line_end = request.iter().position(|byte| *byte == b'\n');
            assert_eq!(first_line_end, request.len().checked_sub(1), "a request is one line");
            assert!(serde_json::from_slice::<Box<RawValue>>(&request).is_ok(), "a request is one JSON value");
        }
        Ok(_) => {}
        Err(why) => {
            assert!(why.len() < 200 && !why.chars().any(char::is_control), "{why:?}");
        }
    }
    let longest_escape = "\\u{10ffff}".len();
    assert!(excerpt(line).chars().count() <= EXCERPT * longest_escape + 1, "an excerpt is short");
    is_protocol_output(line);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::{Arrival, DecisionId, EventId, TraceParent};

    /// Text that is almost a message.
    fn almost_a_message() -> impl Strategy<Value = String> {
        let pieces = prop::sample::select(vec![
            "{",
            "}",
            "\"id\"",
            "\"7\"",
            "\"x\"",
            ":",
            ",",
            "\"output\"",
            "\"error\"",
            "\"hookyard\"",
            "1",
            "null",
            "\"pong\"",
            "\"multiplex\"",
            "true",
            "[",
            "]",
            " ",
            "\n",
            "\\u0037",
            "\"\\ud800\"",
            "{\"id\":\"7\",\"output\":",
            "{\"hookyard\":1}",
            "1e400",
            "\0",
        ]);
        let piece =
            prop_oneof![6 => pieces.prop_map(str::to_owned), 1 => any::<char>().prop_map(String::from)];
        prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn no_line_breaks_the_reader(line in almost_a_message()) {
            check_worker_line(line.as_bytes());
        }
    }

    #[test]
    fn no_line_of_the_corpus_breaks_the_reader() {
        let corpus = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/worker_line");
        let files: Vec<_> = std::fs::read_dir(corpus).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert!(!files.is_empty());
        for file in files {
            check_worker_line(&std::fs::read(file).unwrap());
        }
    }

    fn request(envelope: &str, trace: Option<TraceParent>) -> String {
        let mut line = Vec::new();
        let envelope = Bytes::copy_from_slice(envelope.as_bytes());
        let event = Arc::new(Event { trace, ..some_event() });
        write_request(&mut line, &EventMessage { id: 7, envelope, event }, 4000);
        String::from_utf8(line).unwrap()
    }

    #[test]
    fn a_request_has_the_trace_of_its_event() {
        let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let line =
            format!("{{\"id\":\"7\",\"deadline_ms\":4000,\"traceparent\":\"{trace}\",\"envelope\":{{}}}}\n");
        assert_eq!(request("{}", Some(trace.parse().unwrap())), line);
    }

    #[test]
    fn a_request_has_the_ids_of_its_event() {
        let mut line = Vec::new();
        let arrival = Some(Arrival::new(std::time::UNIX_EPOCH, DecisionId::new(1, 2)));
        let event = Event { id: EventId::new(r#"a "quoted" id"#).ok(), arrival, ..some_event() };
        let message = EventMessage { id: 7, envelope: Bytes::from("{}"), event: Arc::new(event) };
        write_request(&mut line, &message, 4000);
        let line: serde_json::Value = serde_json::from_slice(&line).unwrap();
        let expected = serde_json::json!({
            "id": "7", "deadline_ms": 4000, "event_id": "a \"quoted\" id",
            "decision_id": "0000000000000001-2", "delivery": 1, "envelope": {},
        });
        assert_eq!(line, expected);
    }

    #[test]
    fn an_envelope_is_copied_and_stays_on_one_line() {
        let start = r#"{"id":"7","deadline_ms":4000,"envelope":"#;
        let cases = [
            (r#"{"a": "x  y", "b": 1.50}"#, r#"{"a": "x  y", "b": 1.50}"#),
            ("{\"a\": \"x \\\" \\\\\",\r\n \"b\":\t[1,\n 2]}", r#"{"a":"x \" \\","b":[1,2]}"#),
            ("", "null"),
        ];
        for (envelope, expected) in cases {
            assert_eq!(request(envelope, None), format!("{start}{expected}}}\n"));
        }
    }

    #[test]
    fn lines_that_are_no_messages_are_refused() {
        let cases = [
            "",
            "garbage",
            "[]",
            "{}",
            "null",
            r#"{"id":7,"output":{}}"#,
            r#"{"id":"x","output":{}}"#,
            r#"{"id":"7"}"#,
            r#"{"id":"7","output":{},"error":"e"}"#,
            r#"{"id":"7","id":"7","output":{}}"#,
            r#"{"id":"7","output":{}}{}"#,
            r#"{"hookyard":"1"}"#,
            r#"{"hookyard":1,"multiplex":8}"#,
            r#"{"hookyard":1,"multiplex":true,"max_events":-1}"#,
            r#"{"hookyard":1,"pipeline":1}"#,
            r#"{"hookyard":1,"id":"7","output":{}}"#,
            r#"{"pong":1,"hookyard":1}"#,
        ];
        for line in cases {
            assert!(read(line.as_bytes()).is_err(), "{line}");
        }
    }

    #[test]
    fn protocol_output_is_recognised() {
        let protocol = [
            "{\"hookyard\":1}",
            " {\"hookyard\": 1, \"multiplex\": true}\r\n",
            "loading\n\n{\"hookyard\":1}\n{}",
            "{\"pong\":1}",
            "{\"id\":\"7\",\"output\":{}}\n",
            "{\"id\":\"7\",\"error\":\"e\"}",
        ];
        for output in protocol {
            assert!(is_protocol_output(output.as_bytes()), "{output}");
        }
        let others = [
            "",
            "\n",
            "{}",
            "hookyard",
            "{\"decision\":\"block\",\"reason\":\"{\\\"hookyard\\\":1}\"}",
            "[{\"hookyard\":1}]",
            "{\"id\":\"x\",\"output\":{}}",
            "{\"id\":7}",
            "{\n\"pong\":1\n}",
        ];
        for output in others {
            assert!(!is_protocol_output(output.as_bytes()), "{output}");
        }
    }

    #[test]
    fn messages_are_read() {
        let most = |count| EventFlow::Multiplex(NonZeroUsize::new(count).unwrap());
        let hellos = [
            (r#"{"hookyard":2}"#, EventFlow::Single),
            (r#"{"hookyard":2,"multiplex":false,"pipeline":false,"max_events":3}"#, EventFlow::Single),
            (r#"{"hookyard":2,"pipeline":true,"new":0}"#, EventFlow::Pipeline),
            (r#"{"hookyard":2,"multiplex":true,"new":0}"#, most(MAX_OPEN_EVENTS)),
            (r#"{"hookyard":2,"multiplex":true,"pipeline":true,"max_events":8}"#, most(8)),
            (r#"{"hookyard":2,"multiplex":true,"max_events":0}"#, most(1)),
            (r#"{"hookyard":2,"multiplex":true,"max_events":18446744073709551615}"#, most(MAX_OPEN_EVENTS)),
        ];
        for (line, expected) in hellos {
            let hello = read(line.as_bytes()).unwrap();
            assert!(matches!(hello, WorkerMessage::Hello { version: 2, flow } if flow == expected), "{line}");
        }
        assert!(matches!(read(br#"{"pong":1}"#).unwrap(), WorkerMessage::Pong));
        let output = read(br#"{"id":"7","output":{"a": 1}}"#).unwrap();
        assert!(
            matches!(output, WorkerMessage::Reply { id: 7, result: Ok(raw) } if raw.get() == r#"{"a": 1}"#)
        );
        let error = read(br#"{"id":"7","error":"a\nb"}"#).unwrap();
        assert!(matches!(error, WorkerMessage::Reply { id: 7, result: Err(why) } if why == "a\nb"));
    }
}
