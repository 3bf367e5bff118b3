//! Metrics of one hook, with their handles resolved when its snapshot is published, so that an event costs atomic adds
//! only. Series that are likely exist from then on at zero; rare ones are resolved on first use.

use std::{
    fmt,
    sync::{Arc, OnceLock},
    time::Duration,
};

use metrics::{Counter, Histogram};

use super::{
    hook_label,
    labels::{HttpClass, OutputStream, SpareResult},
    names,
    worker_meters::{WaitingGauge, WorkerMeters},
};
use crate::model::{
    CommandMode, Ended, EventKind, FailureMode, Handler, Hook, HookReport, NativeHandler, PatchResult,
    PatchScope, Target, TokenUsage, Verdict,
};

/// The metric handles of one hook, resolved once, so that counting looks up no name.
///
/// An orchestrator resolves them when it publishes a snapshot. Whoever drives a [`Course`](crate::run::Course)
/// without one resolves and records by hand; without a recorder that costs nothing.
pub struct HookMeters {
    kinds: Vec<KindMeters>,
    handler: HandlerMeters,
    /// None of a hook that never waits before it gets to its pool.
    waiting: Option<WaitingGauge>,
}

/// The metric handles of every hook of a snapshot, by [`rank`](crate::registry::RegisteredHook::rank).
#[derive(Debug, Clone)]
pub(crate) struct SnapshotMeters(Arc<[Arc<HookMeters>]>);

impl SnapshotMeters {
    /// The handles of hooks in the order of their ranks.
    pub(crate) fn resolve<'h>(hooks: impl Iterator<Item = &'h Hook>) -> Self {
        Self(hooks.map(|hook| Arc::new(HookMeters::resolve(hook))).collect())
    }

    /// The handles of the hook with this rank.
    pub(crate) fn of(&self, rank: usize) -> &Arc<HookMeters> {
        &self.0[rank]
    }
}

/// The metric handles that only hooks with one kind of handler have.
enum HandlerMeters {
    /// Of a native hook, or one that never runs.
    None,
    Http([Counter; HttpClass::ALL.len()]),
    Model(ModelMeters),
    Command {
        truncated: [Counter; OutputStream::ALL.len()],
        warm: WarmProcessMeters,
    },
}

/// The metric handles of what stands ready for a command hook.
enum WarmProcessMeters {
    None,
    Spares([Counter; SpareResult::ALL.len()]),
    Workers(Arc<WorkerMeters>),
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
    hook: Box<str>,
    handler: &'static str,
    duration: Histogram,
    runs: [OnceLock<Counter>; Ended::ALL.len()],
    verdicts: [OnceLock<Counter>; Verdict::ALL.len()],
    fail_open: [OnceLock<Counter>; Ended::ALL.len()],
    fail_closed: [OnceLock<Counter>; Ended::ALL.len()],
    /// For the target of the kind, if it has one, and for anything else.
    patches: [[OnceLock<Counter>; PatchResult::ALL.len()]; 2],
}

impl HookMeters {
    /// The handles of a hook. One that is disabled has none: it never runs.
    pub fn resolve(hook: &Hook) -> Self {
        if !hook.enabled {
            return Self { kinds: Vec::new(), handler: HandlerMeters::None, waiting: None };
        }
        let name = hook_label::of_hook(hook.name.as_str());
        let kinds = hook.events.iter().map(|kind| KindMeters::resolve(name, hook, kind)).collect();
        if !hook.timeout.is_zero() {
            names::HOOK_TIMEOUT.gauge([name]).set(hook.timeout.as_secs_f64());
        }
        let handler = HandlerMeters::resolve(name, hook);
        let is_limited = hook.max_concurrency.is_some() && !runs_in_process(&hook.handler);
        let waits = is_limited || handler.workers().is_some();
        Self { kinds, waiting: waits.then(|| WaitingGauge::resolve(name)), handler }
    }

    /// Where the invocations are counted that wait before they get to their pool.
    pub(crate) fn waiting(&self) -> Option<WaitingGauge> {
        self.waiting.clone()
    }

    /// Takes down how long a model was asked, also if it gave no answer.
    pub(crate) fn model_asked(&self, duration: Duration) {
        if let HandlerMeters::Model(model) = &self.handler {
            model.duration.record(duration);
        }
    }

    /// Counts the tokens of an answer.
    pub(crate) fn model_read_and_wrote(&self, tokens: TokenUsage) {
        if let HandlerMeters::Model(model) = &self.handler {
            model.input.increment(tokens.input);
            model.output.increment(tokens.output);
        }
    }

    /// Counts a request of an http hook; a retry is another one.
    #[cfg_attr(not(feature = "http"), expect(dead_code, reason = "no http hook sends a request"))]
    pub(crate) fn requested(&self, class: HttpClass) {
        if let HandlerMeters::Http(requests) = &self.handler {
            requests[class as usize].increment(1);
        }
    }

    /// Counts a program that wrote more than is kept.
    pub(crate) fn truncated(&self, stream: OutputStream) {
        if let HandlerMeters::Command { truncated, .. } = &self.handler {
            truncated[stream as usize].increment(1);
        }
    }

    /// Counts whether a process waited for an event.
    pub(crate) fn looked_for_spare(&self, result: SpareResult) {
        if let HandlerMeters::Command { warm: WarmProcessMeters::Spares(results), .. } = &self.handler {
            results[result as usize].increment(1);
        }
    }

    /// The handles of its workers, if it has any.
    pub(crate) fn workers(&self) -> Option<&Arc<WorkerMeters>> {
        self.handler.workers()
    }

    /// Counts an invocation that has ended, and its patches.
    pub fn record(&self, kind: EventKind, report: &HookReport) {
        let Some(meters) = self.of(kind) else { return };
        meters.run(report.ended).increment(1);
        meters.duration.record(report.duration);
        // A failure is no verdict, unless a policy made it one.
        if report.ended == Ended::Completed || report.verdict != Verdict::Proceed {
            meters.verdict(report.verdict).increment(1);
        }
        match report.failure_mode {
            Some(FailureMode::FailOpen) => meters.fail_open(report.ended).increment(1),
            Some(FailureMode::FailClosed) => meters.fail_closed(report.ended).increment(1),
            None => {}
        }
        for (scope, result, count) in report.patch_results.iter() {
            meters.patch(scope, result).increment(u64::from(count));
        }
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

impl HandlerMeters {
    fn workers(&self) -> Option<&Arc<WorkerMeters>> {
        match self {
            Self::Command { warm: WarmProcessMeters::Workers(workers), .. } => Some(workers),
            _ => None,
        }
    }

    fn resolve(name: &str, hook: &Hook) -> Self {
        match &hook.handler {
            Handler::Http(_) => {
                Self::Http(HttpClass::ALL.map(|class| names::HTTP_REQUESTS.counter([name, class.as_str()])))
            }
            Handler::Prompt(prompt) => Self::Model(ModelMeters::resolve(&prompt.model.reference, hook)),
            Handler::Agent(task) => Self::Model(ModelMeters::resolve(&task.agent.model.reference, hook)),
            Handler::Command(command) => Self::Command {
                truncated: OutputStream::ALL
                    .map(|stream| names::OUTPUT_TRUNCATED.counter([name, stream.as_str()])),
                warm: WarmProcessMeters::resolve(name, command.mode),
            },
            Handler::Rule(_) | Handler::Rego(_) | Handler::Native(_) => Self::None,
        }
    }
}

impl WarmProcessMeters {
    fn resolve(name: &str, mode: CommandMode) -> Self {
        match mode {
            CommandMode::Oneshot => Self::None,
            CommandMode::Prespawn { .. } => Self::Spares(
                SpareResult::ALL.map(|result| names::PRESPAWN_HITS.counter([name, result.as_str()])),
            ),
            CommandMode::Worker(_) => Self::Workers(Arc::new(WorkerMeters::resolve(name))),
        }
    }
}

impl ModelMeters {
    /// References come from the settings or the embedding program, so there are few.
    fn resolve(reference: &str, hook: &Hook) -> Self {
        let handler = hook.handler.kind().as_str();
        Self {
            duration: names::MODEL_REQUEST_DURATION.histogram([reference, handler]),
            input: names::MODEL_TOKENS.counter([reference, "input"]),
            output: names::MODEL_TOKENS.counter([reference, "output"]),
        }
    }
}

impl KindMeters {
    fn resolve(name: &str, hook: &Hook, kind: EventKind) -> Self {
        let handler = hook.handler.kind().as_str();
        let meters = Self {
            kind,
            hook: name.into(),
            handler,
            duration: names::HOOK_DURATION.histogram([name, handler, kind.as_str()]),
            runs: none(),
            verdicts: none(),
            fail_open: none(),
            fail_closed: none(),
            patches: [none(), none()],
        };
        meters.expect(hook);
        meters
    }

    /// Has the series of all that can well happen to the hook, at zero.
    fn expect(&self, hook: &Hook) {
        // Host events say for themselves whether they are interceptors, and few are.
        let intercepts = self.kind.is_interceptor();
        for ended in Ended::ALL.into_iter().filter(|ended| can_end(&hook.handler, *ended)) {
            self.run(ended);
            if !intercepts || !ended.is_failure() {
                continue;
            }
            // Both, whatever its policy is: the first failure after it was changed would else be that of a new series,
            // which no rate sees.
            self.fail_open(ended);
            self.fail_closed(ended);
        }
        for verdict in Verdict::ALL {
            if intercepts || verdict == Verdict::Proceed {
                self.verdict(verdict);
            }
        }
        let target = self.kind.target();
        if target.is_some_and(|target| hook.capabilities.contains(target.capability())) {
            for result in [PatchResult::Applied, PatchResult::Unchanged, PatchResult::Rejected] {
                self.patch(PatchScope::Target, result);
            }
        } else if target.is_some() {
            self.patch(PatchScope::Target, PatchResult::NoCapability);
        }
    }

    fn run(&self, ended: Ended) -> &Counter {
        self.runs[ended as usize].get_or_init(|| {
            names::HOOK_RUNS.counter([&self.hook, self.kind.as_str(), self.handler, ended.as_str()])
        })
    }

    fn verdict(&self, verdict: Verdict) -> &Counter {
        self.verdicts[verdict as usize]
            .get_or_init(|| names::HOOK_VERDICTS.counter([&self.hook, self.kind.as_str(), verdict.as_str()]))
    }

    fn fail_open(&self, ended: Ended) -> &Counter {
        self.fail_open[ended as usize]
            .get_or_init(|| names::HOOK_FAIL_OPEN.counter([&self.hook, self.kind.as_str(), ended.as_str()]))
    }

    fn fail_closed(&self, ended: Ended) -> &Counter {
        self.fail_closed[ended as usize]
            .get_or_init(|| names::HOOK_FAIL_CLOSED.counter([&self.hook, self.kind.as_str(), ended.as_str()]))
    }

    fn patch(&self, scope: PatchScope, result: PatchResult) -> &Counter {
        let target = match scope {
            PatchScope::Target => self.kind.target(),
            PatchScope::Other => None,
        };
        self.patches[scope as usize][result as usize].get_or_init(|| {
            names::PATCHES.counter([&self.hook, target.map_or("other", Target::as_str), result.as_str()])
        })
    }
}

/// Whether an invocation of such a handler can end so. Nothing is checked for trust yet.
fn can_end(handler: &Handler, ended: Ended) -> bool {
    let inline =
        matches!(handler, Handler::Rule(_) | Handler::Rego(_) | Handler::Native(NativeHandler::Inline(_)));
    match ended {
        Ended::Completed | Ended::Failed | Ended::TimedOut => true,
        Ended::Cancelled | Ended::Shed => !inline,
        Ended::InvalidOutput | Ended::OutputTooLarge => !runs_in_process(handler),
        Ended::SpawnFailed => matches!(handler, Handler::Command(_)) || handler.missing_feature().is_some(),
        Ended::Untrusted => false,
    }
}

/// Whether it is evaluated here, without a process or a connection.
fn runs_in_process(handler: &Handler) -> bool {
    matches!(handler, Handler::Rule(_) | Handler::Rego(_) | Handler::Native(_))
}

fn none<const N: usize>() -> [OnceLock<Counter>; N] {
    std::array::from_fn(|_| OnceLock::new())
}
