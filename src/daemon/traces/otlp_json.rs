//! OTLP in JSON: the body of an `ExportTraceServiceRequest` with spans, and the reading of its response.

use serde_json::{Value, json};

use super::span::{EventAnswer, SpanSubject, TraceSpan};
use crate::daemon::otlp::{self, attribute};

/// The numbers of the span kinds.
const INTERNAL: u8 = 1;
const SERVER: u8 = 2;

/// The status code of a failed span.
const ERROR: u8 = 2;

/// The body of a request with these spans.
pub(super) fn request(spans: &[TraceSpan]) -> Vec<u8> {
    let spans: Vec<Value> = spans.iter().map(span).collect();
    let body = json!({ "resourceSpans": [{
        "resource": { "attributes": otlp::service() },
        "scopeSpans": [{
            "scope": otlp::scope(),
            "spans": spans,
        }],
    }] });
    body.to_string().into_bytes()
}

/// The number of spans that the collector rejected from an accepted request.
pub(super) fn rejected(answer: &[u8]) -> usize {
    usize::try_from(otlp::rejected(answer, "rejectedSpans")).unwrap_or_default()
}

fn span(span: &TraceSpan) -> Value {
    let redactor = &span.redactor;
    let (name, kind, attributes) = match &span.of {
        SpanSubject::Event { run, kind, answer } => {
            let mut attributes = vec![
                attribute("hookyard.workspace", &redactor.text(run.workspace_id.as_str())),
                attribute("hookyard.session", &redactor.text(run.session_id.as_str())),
                attribute("hookyard.run", &redactor.text(run.run_id.as_str())),
                attribute("hookyard.event", kind.as_str()),
            ];
            if let Some(EventAnswer { decision_id, verdict, by }) = answer {
                attributes.push(attribute("hookyard.decision_id", &decision_id.to_string()));
                attributes.push(attribute("hookyard.verdict", verdict.as_str()));
                attributes.extend(by.iter().map(|by| attribute("hookyard.by", &redactor.text(by.as_str()))));
            }
            (format!("event {kind}"), SERVER, attributes)
        }
        SpanSubject::Hook { hook, handler, ended, verdict } => {
            let hook = redactor.text(hook.as_str());
            let attributes = vec![
                attribute("hookyard.hook", &hook),
                attribute("hookyard.handler", &handler.to_string()),
                attribute("hookyard.ended", ended.as_str()),
                attribute("hookyard.verdict", verdict.as_str()),
            ];
            (format!("hook {hook}"), INTERNAL, attributes)
        }
    };
    let mut written = json!({
        "traceId": format!("{:032x}", span.trace),
        "spanId": format!("{:016x}", span.id),
        "name": name,
        "kind": kind,
        "startTimeUnixNano": span.start.to_string(),
        "endTimeUnixNano": span.end.to_string(),
        "attributes": attributes,
    });
    if let Some(parent) = span.parent {
        written["parentSpanId"] = format!("{parent:016x}").into();
    }
    if has_failed(&span.of) {
        written["status"] = json!({ "code": ERROR });
    }
    written
}

fn has_failed(of: &SpanSubject) -> bool {
    match of {
        SpanSubject::Event { .. } => false,
        SpanSubject::Hook { ended, .. } => ended.is_failure(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_collector_refuses_is_read() {
        for (answer, expected) in [
            ("{}", 0),
            ("", 0),
            ("no JSON", 0),
            (r#"{"partialSuccess":{}}"#, 0),
            (r#"{"partialSuccess":{"rejectedSpans":"3","errorMessage":"x"}}"#, 3),
            (r#"{"partialSuccess":{"rejectedSpans":4}}"#, 4),
            (r#"{"partialSuccess":{"rejectedSpans":-4}}"#, 0),
        ] {
            assert_eq!(rejected(answer.as_bytes()), expected, "{answer}");
        }
    }
}
