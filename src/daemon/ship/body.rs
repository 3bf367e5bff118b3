//! The body of a request with lines: as they are with the name of the daemon, or as logs in OTLP.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    bundle::BundleTime,
    config::ShipFormat,
    daemon::otlp::{self, attribute},
};

/// The severities of OTLP.
const INFO: (u8, &str) = (9, "INFO");
const WARN: (u8, &str) = (13, "WARN");

/// What becomes an attribute of a log record.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct LineHead {
    at: String,
    workspace_id: Option<String>,
    event: Option<String>,
    verdict: Option<String>,
    by: Option<String>,
    decision_id: Option<String>,
    state: Option<serde::de::IgnoredAny>,
    denied: Option<serde::de::IgnoredAny>,
}

/// The type of a request.
pub(super) fn content_type(format: ShipFormat) -> &'static str {
    match format {
        ShipFormat::NdJson => "application/x-ndjson",
        ShipFormat::Otlp => "application/json",
    }
}

/// The body of a request with these lines of a daemon.
pub(super) fn write(format: ShipFormat, node: &str, lines: &[u8]) -> Vec<u8> {
    match format {
        ShipFormat::NdJson => with_node(node, lines),
        ShipFormat::Otlp => logs(node, lines),
    }
}

/// How many records a collector says that it has refused.
pub(super) fn refused_records(answer: &[u8]) -> u64 {
    otlp::rejected(answer, "rejectedLogRecords")
}

/// The lines, each of which begins with the name of the daemon.
fn with_node(node: &str, lines: &[u8]) -> Vec<u8> {
    let head = format!("{{\"node\":{},", Value::from(node));
    let mut written = Vec::with_capacity(lines.len() * 5 / 4);
    for line in lines.split_inclusive(|byte| *byte == b'\n') {
        match line.strip_prefix(b"{") {
            Some(rest) => written.extend(head.bytes().chain(rest.iter().copied())),
            // No line of ours; whoever reads them should see it.
            None => written.extend(line),
        }
    }
    written
}

fn logs(node: &str, lines: &[u8]) -> Vec<u8> {
    let [name, version] = otlp::service();
    let resource = [name, version, attribute("service.instance.id", node)];
    let lines = lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let records: Vec<Value> = lines.map(record).collect();
    let body = json!({ "resourceLogs": [{
        "resource": { "attributes": resource },
        "scopeLogs": [{
            "scope": otlp::scope(),
            "logRecords": records,
        }],
    }] });
    body.to_string().into_bytes()
}

fn record(line: &[u8]) -> Value {
    let head: LineHead = serde_json::from_slice(line).unwrap_or_default();
    let kind = match (&head.state, &head.denied) {
        (Some(_), _) => "state",
        (None, Some(_)) => "denied",
        (None, None) => "outcome",
    };
    let is_notable =
        head.denied.is_some() || matches!(head.verdict.as_deref(), Some("ask" | "block" | "halt"));
    let (number, text) = if is_notable { WARN } else { INFO };
    let named = [
        ("hookyard.workspace", &head.workspace_id),
        ("hookyard.event", &head.event),
        ("hookyard.verdict", &head.verdict),
        ("hookyard.by", &head.by),
        ("hookyard.decision_id", &head.decision_id),
    ];
    let mut attributes = vec![attribute("hookyard.line", kind)];
    attributes.extend(named.iter().filter_map(|(key, value)| Some(attribute(key, value.as_deref()?))));
    json!({
        "timeUnixNano": unix_nanoseconds(&head.at).unwrap_or_default().to_string(),
        "severityNumber": number,
        "severityText": text,
        "body": { "stringValue": String::from_utf8_lossy(line) },
        "attributes": attributes,
    })
}

/// The time of a line, such as `2026-01-31T09:30:00.125Z`, since 1970; none if it is no such text.
fn unix_nanoseconds(at: &str) -> Option<u64> {
    let seconds = BundleTime::parse(&format!("{}Z", at.get(..19)?))?.seconds();
    let milliseconds: u64 = at.get(20..23)?.parse().ok()?;
    seconds.checked_mul(1000)?.checked_add(milliseconds)?.checked_mul(1_000_000)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use proptest::prelude::*;

    use super::*;
    use crate::model::Timestamp;

    #[test]
    fn each_line_says_whose_it_is() {
        let lines = b"{\"at\":\"x\"}\n{\"state\":{}}\n";
        let body = String::from_utf8(write(ShipFormat::NdJson, "edge \"7\"", lines)).unwrap();
        let read: Vec<Value> = body.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(
            read,
            [json!({"node": "edge \"7\"", "at": "x"}), json!({"node": "edge \"7\"", "state": {}})]
        );
    }

    #[test]
    fn each_line_is_a_log_record() {
        let lines = b"{\"at\":\"2026-01-31T09:30:00.125Z\",\"event\":\"before_tool_dispatch\",\"verdict\":\"block\"}\n{\"state\":{}}\n";
        let body: Value = serde_json::from_slice(&write(ShipFormat::Otlp, "edge-7", lines)).unwrap();
        let records = &body["resourceLogs"][0]["scopeLogs"][0]["logRecords"];
        assert_eq!(records.as_array().map(Vec::len), Some(2));
        assert_eq!(records[0]["timeUnixNano"], "1769851800125000000");
        assert_eq!(records[0]["severityText"], "WARN");
        assert_eq!(records[1]["severityText"], "INFO");
        assert_eq!(records[1]["attributes"][0]["value"]["stringValue"], "state");
    }

    proptest! {
        #[test]
        fn times_are_read_as_they_are_written(milliseconds in 0_u64..253_402_300_799_999) {
            let at = Timestamp::of(UNIX_EPOCH + Duration::from_millis(milliseconds)).to_string();
            let expected = milliseconds.checked_mul(1_000_000);
            prop_assert_eq!(unix_nanoseconds(&at), expected);
        }

        #[test]
        fn other_texts_are_no_times(text in ".*") {
            let _ = unix_nanoseconds(&text);
        }
    }
}
