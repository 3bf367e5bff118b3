//! The lines of the worker protocol. Owns how a request is written and what a worker's line says; refuses to know
//! which ids are open. Pure.

use std::borrow::Cow;

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::model::TraceParent;

/// The version of the protocol.
pub(super) const VERSION: u64 = 1;

/// The question whether a worker is still there.
pub(super) const PING: &[u8] = b"{\"ping\":1}\n";

/// An event, as a worker is asked about it.
#[derive(Debug)]
pub(super) struct Question {
    pub(super) id: u64,
    pub(super) envelope: Bytes,
    pub(super) trace: Option<TraceParent>,
}

/// What a worker's line says.
#[derive(Debug)]
pub(super) enum Said<'a> {
    /// It is ready.
    Hello { version: u64, multiplex: bool },
    /// What came of an event: the output, or why there is none.
    Reply { id: u64, result: Result<&'a RawValue, Cow<'a, str>> },
    /// It is still there.
    Pong,
}

/// A line with every key that one may have.
#[derive(Deserialize)]
struct Line<'a> {
    hookyard: Option<u64>,
    multiplex: Option<bool>,
    #[serde(borrow)]
    id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    output: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<Cow<'a, str>>,
    pong: Option<u64>,
}

/// Reads a line of a worker. Keys that nobody knows are let pass, so that a later version may add some.
///
/// Returns what is wrong if it is none of the protocol.
pub(super) fn read(line: &[u8]) -> Result<Said<'_>, String> {
    let line: Line<'_> = serde_json::from_slice(line).map_err(|e| no_message(&e))?;
    match line {
        Line { hookyard: Some(version), id: None, output: None, error: None, pong: None, multiplex } => {
            Ok(Said::Hello { version, multiplex: multiplex.unwrap_or_default() })
        }
        Line { hookyard: None, id: Some(id), output, error, pong: None, .. } => {
            let unknown = |_| "a reply is to an id that was never given".to_owned();
            let id = id.parse().map_err(unknown)?;
            let result = match (output, error) {
                (Some(output), None) => Ok(output),
                (None, Some(error)) => Err(error),
                _ => return Err("a reply has not exactly one of `output` and `error`".to_owned()),
            };
            Ok(Said::Reply { id, result })
        }
        Line { hookyard: None, id: None, output: None, error: None, pong: Some(_), .. } => Ok(Said::Pong),
        _ => Err("a line is neither hello nor reply nor pong".to_owned()),
    }
}

/// Why a line is no message. What the parser says repeats parts of the line, which may be long or secret.
fn no_message(error: &serde_json::Error) -> String {
    let what = if error.is_data() { "other JSON than that of a message" } else { "no JSON" };
    format!("a line is no message: {what}, at column {}", error.column())
}

/// Adds the line that asks a worker about an event.
pub(super) fn write_request(line: &mut Vec<u8>, question: &Question, deadline_ms: u128) {
    let Question { id, envelope, trace } = question;
    line.extend_from_slice(format!("{{\"id\":\"{id}\",\"deadline_ms\":{deadline_ms}").as_bytes());
    if let Some(trace) = trace {
        line.extend_from_slice(format!(",\"traceparent\":\"{trace}\"").as_bytes());
    }
    line.extend_from_slice(b",\"envelope\":");
    match &envelope[..] {
        [] => line.extend_from_slice(b"null"),
        _ if envelope.iter().any(|byte| matches!(byte, b'\n' | b'\r')) => compact(line, envelope),
        _ => line.extend_from_slice(envelope),
    }
    line.extend_from_slice(b"}\n");
}

/// Adds the line that says that nobody waits for an event any more.
pub(super) fn write_cancel(line: &mut Vec<u8>, id: u64) {
    line.extend_from_slice(format!("{{\"cancel\":\"{id}\"}}\n").as_bytes());
}

/// Copies JSON without the white space between its tokens. Hosts may send payloads over several lines, and those
/// are copied into the envelope as they came; within a string no line can end.
fn compact(line: &mut Vec<u8>, json: &[u8]) {
    let (mut in_string, mut escaped) = (false, false);
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

#[cfg(test)]
mod tests {
    use super::*;

    fn request(envelope: &str, trace: Option<TraceParent>) -> String {
        let mut line = Vec::new();
        let envelope = Bytes::copy_from_slice(envelope.as_bytes());
        write_request(&mut line, &Question { id: 7, envelope, trace }, 4000);
        String::from_utf8(line).unwrap()
    }

    #[test]
    fn a_trace_stands_beside_the_envelope() {
        let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let line =
            format!("{{\"id\":\"7\",\"deadline_ms\":4000,\"traceparent\":\"{trace}\",\"envelope\":{{}}}}\n");
        assert_eq!(request("{}", Some(trace.parse().unwrap())), line);
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
    fn lines_that_are_none_of_the_protocol_are_refused() {
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
            r#"{"hookyard":1,"id":"7","output":{}}"#,
            r#"{"pong":1,"hookyard":1}"#,
        ];
        for line in cases {
            assert!(read(line.as_bytes()).is_err(), "{line}");
        }
    }

    #[test]
    fn messages_are_read() {
        let hello = read(br#"{"hookyard":2,"multiplex":true,"new":0}"#).unwrap();
        assert!(matches!(hello, Said::Hello { version: 2, multiplex: true }));
        assert!(matches!(read(br#"{"pong":1}"#).unwrap(), Said::Pong));
        let output = read(br#"{"id":"7","output":{"a": 1}}"#).unwrap();
        assert!(matches!(output, Said::Reply { id: 7, result: Ok(raw) } if raw.get() == r#"{"a": 1}"#));
        let error = read(br#"{"id":"7","error":"a\nb"}"#).unwrap();
        assert!(matches!(error, Said::Reply { id: 7, result: Err(why) } if why == "a\nb"));
    }
}
