//! The metrics of one hook, with their handles resolved when its snapshot is made, so that an event pays for
//! an atomic add and nothing else. Owns the label firewall; refuses labels from outside.

use std::{fmt, time::Duration};

use metrics::{Counter, Histogram};

use super::names;
use crate::model::{Ended, EventKind, Handler, HandlerKind, Hook, HookReport, Target, Tokens, Verdict};

/// How many hooks get a label of their own; the rest share [`OTHER`].
const MOST_LABELS: usize = 200;

/// The label of the hooks beyond [`MOST_LABELS`].
const OTHER: &str = "__other__";

/// What became of a patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub(crate) enum PatchResult {
    /// It changed the payload.
    Applied,
    /// The payload was already so.
    Unchanged,
    /// The hook may not patch this.
    NoCapability,
    /// Nobody may patch this, or not so.
    Rejected,
}

impl PatchResult {
    const ALL: [Self; 4] = [Self::Applied, Self::Unchanged, Self::NoCapability, Self::Rejected];

    fn as_str(self) -> &'static str {
        match self {
            Self::Applied => "applied",
            Self::Unchanged => "unchanged",
            Self::NoCapability => "no_capability",
            Self::Rejected => "rejected",
        }
    }
}

/// How a request of an http hook ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub(crate) enum HttpClass {
    /// Status 1xx, and whatever else is no status.
    Other,
    /// Status 2xx.
    Success,
    /// Status 3xx; it is not followed.
    Redirect,
    /// Status 4xx.
    ClientError,
    /// Status 5xx.
    ServerError,
    /// No connection, for no reason below.
    Connect,
    /// The server turned the connection down.
    Refused,
    /// The server's name could not be resolved.
    Dns,
    /// The server could not prove who it is.
    Tls,
    /// It took too long.
    Timeout,
    /// The connection ended before the answer did.
    Broken,
}

impl HttpClass {
    const ALL: [Self; 11] = [
        Self::Other,
        Self::Success,
        Self::Redirect,
        Self::ClientError,
        Self::ServerError,
        Self::Connect,
        Self::Refused,
        Self::Dns,
        Self::Tls,
        Self::Timeout,
        Self::Broken,
    ];

    /// The class of an answer with this status.
    pub(crate) fn of_status(status: u16) -> Self {
        match status {
            200..=299 => Self::Success,
            300..=399 => Self::Redirect,
            400..=499 => Self::ClientError,
            500..=599 => Self::ServerError,
            _ => Self::Other,
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Other => "other",
            Self::Success => "2xx",
            Self::Redirect => "3xx",
            Self::ClientError => "4xx",
            Self::ServerError => "5xx",
            Self::Connect => "connect",
            Self::Refused => "refused",
            Self::Dns => "dns",
            Self::Tls => "tls",
            Self::Timeout => "timeout",
            Self::Broken => "broken",
        }
    }
}

/// The metric handles of one hook.
pub(crate) struct HookMeters {
    kinds: Vec<KindMeters>,
    /// Of http hooks.
    requests: Option<[Counter; HttpClass::ALL.len()]>,
    /// Of prompt and agent hooks.
    model: Option<ModelMeters>,
}

/// The metric handles of the model that a hook asks.
struct ModelMeters {
    duration: Histogram,
    input: Counter,
    output: Counter,
}

/// The metric handles of one hook for one kind of event.
struct KindMeters {
    kind: EventKind,
    duration: Histogram,
    runs: [Counter; Ended::ALL.len()],
    verdicts: [Counter; Verdict::ALL.len()],
    fail_open: [Counter; Ended::ALL.len()],
    fail_closed: [Counter; Ended::ALL.len()],
    /// For the target of the kind, if it has one, and for anything else.
    patches: [[Counter; PatchResult::ALL.len()]; 2],
}

impl HookMeters {
    /// The handles of a hook with this rank in its registry.
    pub(crate) fn resolve(hook: &Hook, rank: usize) -> Self {
        let name = if rank < MOST_LABELS { hook.name.as_str() } else { OTHER };
        let kind = hook.handler.kind();
        let kinds = hook.events.iter().map(|event| KindMeters::resolve(name, kind.as_str(), event)).collect();
        let requests = (kind == HandlerKind::Http).then(|| requests(name));
        let model = match &hook.handler {
            Handler::Prompt(prompt) => Some(&prompt.model),
            Handler::Agent(task) => Some(&task.agent.model),
            Handler::Command(_) | Handler::Http(_) | Handler::Native(_) => None,
        };
        let model = model.map(|model| ModelMeters::resolve(&model.reference, kind.as_str()));
        Self { kinds, requests, model }
    }

    /// Takes down how long a model was asked, also if it gave no answer.
    pub(crate) fn model_asked(&self, duration: Duration) {
        if let Some(model) = &self.model {
            model.duration.record(duration);
        }
    }

    /// Counts the tokens of an answer.
    pub(crate) fn model_read_and_wrote(&self, tokens: Tokens) {
        if let Some(model) = &self.model {
            model.input.increment(tokens.input);
            model.output.increment(tokens.output);
        }
    }

    /// Counts a request of an http hook; a retry is another one.
    pub(crate) fn requested(&self, class: HttpClass) {
        if let Some(requests) = &self.requests {
            requests[class as usize].increment(1);
        }
    }

    /// Counts an invocation that has ended.
    pub(crate) fn ended(&self, kind: EventKind, report: &HookReport, accepted_failure: Option<bool>) {
        let Some(meters) = self.of(kind) else { return };
        meters.runs[report.ended as usize].increment(1);
        meters.duration.record(report.duration);
        // A failure is no verdict, unless a policy made it one.
        if report.ended == Ended::Completed || report.verdict != Verdict::Proceed {
            meters.verdicts[report.verdict as usize].increment(1);
        }
        match accepted_failure {
            Some(true) => meters.fail_open[report.ended as usize].increment(1),
            Some(false) => meters.fail_closed[report.ended as usize].increment(1),
            None => {}
        }
    }

    /// Counts a patch; `target` is `None` for anything that is no target.
    pub(crate) fn patched(&self, kind: EventKind, target: Option<Target>, result: PatchResult) {
        let Some(meters) = self.of(kind) else { return };
        let foreign = usize::from(target.is_none() || target != kind.target());
        meters.patches[foreign][result as usize].increment(1);
    }

    fn of(&self, kind: EventKind) -> Option<&KindMeters> {
        self.kinds.iter().find(|meters| meters.kind == kind)
    }
}

impl fmt::Debug for HookMeters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HookMeters").finish_non_exhaustive()
    }
}

#[expect(clippy::disallowed_macros, reason = "the handles of typed occurrences are made here")]
fn requests(hook: &str) -> [Counter; HttpClass::ALL.len()] {
    let counter = |class: HttpClass| metrics::counter!(names::HTTP_REQUESTS, "hook" => hook.to_owned(), "class" => class.as_str());
    HttpClass::ALL.map(counter)
}

#[expect(clippy::disallowed_macros, reason = "the handles of typed occurrences are made here")]
impl ModelMeters {
    /// References come from the settings or the embedding program, so there are few.
    fn resolve(reference: &str, handler: &'static str) -> Self {
        let tokens = |direction: &'static str| {
            metrics::counter!(names::MODEL_TOKENS,
                "model_ref" => reference.to_owned(), "direction" => direction)
        };
        Self {
            duration: metrics::histogram!(names::MODEL_REQUEST_DURATION,
                "model_ref" => reference.to_owned(), "handler" => handler),
            input: tokens("input"),
            output: tokens("output"),
        }
    }
}

#[expect(clippy::disallowed_macros, reason = "the handles of typed occurrences are made here")]
impl KindMeters {
    fn resolve(hook: &str, handler: &'static str, kind: EventKind) -> Self {
        let (hook, event) = (hook.to_owned(), kind.as_str());
        let by_ended = |name: &'static str| {
            Ended::ALL.map(
                |ended| metrics::counter!(name, "hook" => hook.clone(), "event" => event, "ended" => ended.as_str()),
            )
        };
        let by_result = |target: &'static str| {
            PatchResult::ALL.map(|result| {
                metrics::counter!(names::PATCHES,
                    "hook" => hook.clone(), "target" => target, "result" => result.as_str())
            })
        };
        Self {
            kind,
            duration: metrics::histogram!(names::HOOK_DURATION,
                "hook" => hook.clone(), "handler" => handler, "event" => event),
            runs: Ended::ALL.map(|ended| {
                metrics::counter!(names::HOOK_RUNS,
                    "hook" => hook.clone(), "event" => event, "handler" => handler, "ended" => ended.as_str())
            }),
            verdicts: Verdict::ALL.map(|verdict| {
                metrics::counter!(names::HOOK_VERDICTS,
                    "hook" => hook.clone(), "event" => event, "verdict" => verdict.as_str())
            }),
            fail_open: by_ended(names::HOOK_FAIL_OPEN),
            fail_closed: by_ended(names::HOOK_FAIL_CLOSED),
            patches: [by_result(kind.target().map_or("other", Target::as_str)), by_result("other")],
        }
    }
}
