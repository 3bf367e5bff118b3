//! What the runners of all handler kinds have in common: the trait, its input and its output.

use std::{
    any::Any,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use crate::{
    model::{Approval, Ended, Event, Failure, HookName, RawReply, TokenUsage},
    registry::RegisteredHook,
    telemetry::{Degradation, HookMeters},
};

/// The output of running a hook once.
#[derive(Debug)]
pub(crate) struct HandlerOutput {
    /// The reply, not yet read by the hook's dialect, or why there is none.
    pub(crate) result: Result<RawReply, Failure>,
    /// What the operator should know about how the hook was run, such as a worker that did not start.
    pub(crate) warnings: Vec<String>,
    /// The tokens used, if a model was asked and its server reports them.
    pub(crate) tokens: Option<TokenUsage>,
}

impl From<Result<RawReply, Failure>> for HandlerOutput {
    fn from(result: Result<RawReply, Failure>) -> Self {
        Self { result, warnings: Vec::new(), tokens: None }
    }
}

/// Runs the handlers of one kind.
pub(crate) trait Runner: std::fmt::Debug + Send + Sync {
    /// Runs a hook once. Returns at the latest when the invocation's timeout plus the time to stop the handler is
    /// over. What waits at a worker behind other events has its timeout from its turn.
    ///
    /// Cancelling the token or dropping the future stops the run early; neither may leave anything running.
    fn run<'a>(
        &'a self,
        invocation: &'a Invocation,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, HandlerOutput>;

    /// The workspace was loaded again with these hooks: drops whatever is kept between events for others.
    fn reloaded(&self, _root: &Path, _hooks: &[Arc<RegisteredHook>]) {}

    /// How many invocations of a hook it takes at once, and how that changes. The others wait before they get a place in
    /// the pool. It is closed once it is out of date; then this is asked again. `None` if only the pool limits the hook.
    fn capacity(&self, _invocation: &Invocation) -> Option<watch::Receiver<usize>> {
        None
    }

    /// Whether invocations of a hook wait before the pool, so that those in the pool have what they run in.
    fn has_own_queue(&self, _invocation: &Invocation) -> bool {
        false
    }

    /// The workers of each hook that has any.
    fn hook_workers(&self) -> Vec<HookWorkers> {
        Vec::new()
    }

    /// Updates gauges that are not set where they change.
    fn sample(&self) {}

    /// Ends whatever is kept between events.
    fn stop(&self) {}

    /// Ends what escaped from the hooks that it ran, once none runs any more.
    fn end_escaped(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }
}

/// The workers of one hook.
#[derive(Debug, Clone)]
#[cfg_attr(not(feature = "daemon"), allow(dead_code, reason = "only the daemon shows them"))]
pub(crate) struct HookWorkers {
    /// The directory of the workspace.
    pub(crate) root: PathBuf,
    pub(crate) hook: HookName,
    pub(crate) counts: WorkerCounts,
    /// Why they do not serve, if they do not, and what the last one ended with.
    pub(crate) degradation: Option<(Degradation, Arc<str>)>,
}

/// How many workers a hook has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(not(feature = "daemon"), allow(dead_code, reason = "only the daemon shows them"))]
pub(crate) struct WorkerCounts {
    /// All that are there.
    pub(crate) workers: usize,
    /// Those that have an event.
    pub(crate) busy: usize,
    /// How many there may be.
    pub(crate) most: usize,
    /// How many said hello and then failed, or could not be started, since the hook is as it is. One that said no hello is not
    /// counted: it may be no worker.
    pub(crate) failed: u64,
}

/// RAII guard: what the invocation holds a place of, beside that in its pool. Whoever works on it keeps a clone.
pub(crate) type SharedPermit = Arc<dyn Any + Send + Sync>;

/// One hook to be run once for one event.
#[derive(Debug)]
pub(crate) struct Invocation {
    pub(crate) hook: Arc<RegisteredHook>,
    /// Where the hook is counted.
    pub(crate) meters: Arc<HookMeters>,
    /// The event as the host sent it. Changes by earlier hooks are in the envelope only.
    pub(crate) event: Arc<Event>,
    /// The directory of the workspace that it is run for.
    pub(crate) root: PathBuf,
    /// The directories of the project, from which hooks take no programs: that of the workspace and those around it.
    pub(crate) project_roots: Arc<[PathBuf]>,
    /// The input of the hook, in its dialect.
    pub(crate) envelope: Bytes,
    /// The environment variables its dialect defines, for handlers that are processes.
    pub(crate) environment: Vec<(&'static str, String)>,
    /// The longest the run may take.
    pub(crate) timeout: Duration,
    /// The permit of the hook's own limit, if it has one.
    pub(crate) permit: Option<SharedPermit>,
    /// Whether the hook goes on in the background.
    pub(crate) background: BackgroundSwitch,
}

/// Moves a hook to the background while it runs: its runner asks for it, its pool agrees. From then on the event goes on
/// without it, and the end of the event does not stop it.
#[derive(Debug, Default)]
pub(crate) struct BackgroundSwitch {
    asked: Notify,
    is_agreed: AtomicBool,
}

impl BackgroundSwitch {
    pub(crate) fn ask(&self) {
        self.asked.notify_one();
    }

    /// Waits until it is asked for.
    pub(crate) async fn asked(&self) {
        self.asked.notified().await;
    }

    pub(crate) fn agree(&self) {
        self.is_agreed.store(true, Ordering::Release);
    }

    pub(crate) fn is_agreed(&self) -> bool {
        self.is_agreed.load(Ordering::Acquire)
    }
}

impl Invocation {
    /// The directory of the workspace that the hook is of: the one it is run for, or one around that.
    pub(crate) fn hook_root(&self) -> &Path {
        let outer = self.hook.hook.execution.outer.as_ref();
        outer.map_or(&self.root, |outer| &outer.workspace.root)
    }

    /// The proof that the hook may run, or the failure of one that may not.
    pub(crate) fn approval(&self) -> Result<Approval, Failure> {
        let trust = &self.hook.hook.trust;
        let why = || trust.refusal().unwrap_or_default();
        trust.approval().ok_or_else(|| Failure::new(Ended::Untrusted, why()))
    }
}

/// How much output of a command is kept.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CommandLimits {
    /// Bytes of standard output, or of one line of a worker; more makes the reply invalid.
    pub(crate) stdout: usize,
    /// Bytes of standard error; of more, head and tail are kept.
    pub(crate) stderr: usize,
}

/// Limits of an HTTP client.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(
    not(any(feature = "http", feature = "models")),
    expect(dead_code, reason = "no kind of hook with an HTTP client is compiled in")
)]
pub(crate) struct HttpLimits {
    /// Bytes of a response body, decoded; more makes the reply invalid.
    pub(crate) body: usize,
    /// How many idle connections to one server are kept.
    pub(crate) max_idle: usize,
}
