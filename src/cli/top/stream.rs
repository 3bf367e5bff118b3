//! Reads the daemon's stream of server-sent events. Unknown and invalid events are skipped: the daemon may be newer.

use std::time::Duration;

use serde::Deserialize;

use crate::model::Verdict;

/// An event of the stream.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum StreamEvent {
    /// A hook ran.
    Invocation(HookInvocation),
    /// An event was answered.
    Outcome(Verdict),
    /// This many events were lost because they were not read in time.
    Dropped(u64),
}

/// One invocation of a hook.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct HookInvocation {
    pub(super) hook: String,
    pub(super) handler: String,
    pub(super) verdict: Verdict,
    pub(super) took: Duration,
    /// How long it waited before it ran.
    pub(super) queued: Duration,
    /// Why it failed, if it did.
    pub(super) failure: Option<String>,
}

/// The lines of an event until it is complete.
#[derive(Debug, Default)]
pub(super) struct SseDecoder {
    event: String,
    data: String,
}

#[derive(Deserialize)]
struct InvocationData {
    hook: ReportData,
}

#[derive(Deserialize)]
struct ReportData {
    hook: String,
    handler: String,
    ended: String,
    verdict: Option<String>,
    duration_ms: f64,
    #[serde(default)]
    queued_ms: f64,
    error: Option<String>,
}

#[derive(Deserialize)]
struct OutcomeData {
    outcome: VerdictData,
}

#[derive(Deserialize)]
struct VerdictData {
    verdict: String,
}

#[derive(Deserialize)]
struct DroppedData {
    dropped: u64,
}

impl SseDecoder {
    /// Takes a line, and returns the event that it completes.
    pub(super) fn take(&mut self, line: &str) -> Option<StreamEvent> {
        if line.is_empty() {
            let Self { event, data } = std::mem::take(self);
            return parse_event(&event, &data);
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut self.event),
            "data" => self.data.push_str(value),
            // A comment, or a field that this stream does not have.
            _ => {}
        }
        None
    }
}

fn parse_event(event: &str, data: &str) -> Option<StreamEvent> {
    match event {
        "invocation" => {
            let InvocationData { hook } = serde_json::from_str(data).ok()?;
            Some(StreamEvent::Invocation(hook.read()?))
        }
        "outcome" => {
            let OutcomeData { outcome } = serde_json::from_str(data).ok()?;
            verdict(&outcome.verdict).map(StreamEvent::Outcome)
        }
        "dropped" => {
            let DroppedData { dropped } = serde_json::from_str(data).ok()?;
            Some(StreamEvent::Dropped(dropped))
        }
        _ => None,
    }
}

impl ReportData {
    fn read(self) -> Option<HookInvocation> {
        let failed = !["completed", "cancelled"].contains(&self.ended.as_str());
        let failure = failed.then(|| match &self.error {
            Some(error) => format!("{}: {error}", self.ended),
            None => self.ended.clone(),
        });
        Some(HookInvocation {
            verdict: verdict(self.verdict.as_deref().unwrap_or(Verdict::Proceed.as_str()))?,
            took: Duration::try_from_secs_f64(self.duration_ms / 1e3).ok()?,
            queued: Duration::try_from_secs_f64(self.queued_ms / 1e3).ok()?,
            hook: self.hook,
            handler: self.handler,
            failure,
        })
    }
}

fn verdict(name: &str) -> Option<Verdict> {
    Verdict::ALL.into_iter().find(|verdict| verdict.as_str() == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Vec<StreamEvent> {
        let mut decoder = SseDecoder::default();
        text.lines().filter_map(|line| decoder.take(line)).collect()
    }

    #[test]
    fn events_come_out_of_lines() {
        let text = concat!(
            ": hookyard\n\n",
            "event: invocation\ndata: {\"run_id\":\"r\",\"event\":\"x\",\"hook\":{\"hook\":\"guard\",\"handler\":\"command\",",
            "\"ended\":\"timed_out\",\"verdict\":\"block\",\"duration_ms\":1.5,\"queued_ms\":2.5,\"error\":\"after 1 ms\"}}\n\n",
            "event: outcome\ndata: {\"outcome\":{\"verdict\":\"halt\",\"hooks\":[]}}\n\n",
            "event: dropped\ndata: {\"dropped\":7}\n\n",
        );
        let invocation = HookInvocation {
            hook: "guard".into(),
            handler: "command".into(),
            verdict: Verdict::Block,
            took: Duration::from_micros(1500),
            queued: Duration::from_micros(2500),
            failure: Some("timed_out: after 1 ms".into()),
        };
        let expected = [
            StreamEvent::Invocation(invocation),
            StreamEvent::Outcome(Verdict::Halt),
            StreamEvent::Dropped(7),
        ];
        assert_eq!(all(text), expected);
    }

    #[test]
    fn a_cancelled_hook_has_not_failed() {
        let ended = |word: &str| {
            let report =
                format!(r#"{{"hook":{{"hook":"h","handler":"http","ended":"{word}","duration_ms":1}}}}"#);
            match all(&format!("event: invocation\ndata: {report}\n\n")).pop() {
                Some(StreamEvent::Invocation(invocation)) => invocation.failure,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(ended("completed"), None);
        assert_eq!(ended("cancelled"), None);
        assert_eq!(ended("shed").as_deref(), Some("shed"));
    }

    #[test]
    fn invalid_events_are_skipped() {
        for text in [
            "event: invocation\ndata: {\n\n",
            "event: invocation\ndata: {\"hook\":{\"hook\":\"h\",\"handler\":\"x\",\"ended\":\"completed\",\"duration_ms\":-1}}\n\n",
            "event: outcome\ndata: {\"outcome\":{\"verdict\":\"maybe\"}}\n\n",
            "event: tomorrow\ndata: {}\n\n",
            "data: {\"dropped\":7}\n\n",
            "event\n\n",
        ] {
            assert_eq!(all(text), [], "{text}");
        }
        assert_eq!(all("event: dropped\ndata:{\"dropped\":\ndata: 1}\n\n"), [StreamEvent::Dropped(1)]);
    }
}
