//! Native hooks: closures of the embedding program, with the policies of any other hook.

use std::{fmt, num::NonZeroUsize, sync::Arc, time::Duration};

use crate::{
    dialect,
    model::{
        Approval, Capability, DialectName, Draft, EventKind, EventKinds, ExecutionPolicy, FailurePolicy,
        Handler, Hook, HookName, HookSource, HookTrust, Matcher, NativeHandler, NativeReply, Scope,
    },
};

/// A closure that is a hook, with the same matchers, capabilities, policies and timeouts as any other.
pub struct NativeHook {
    name: String,
    events: EventKinds,
    matcher: Option<String>,
    capabilities: Vec<Capability>,
    priority: i32,
    timeout: Option<Duration>,
    max_concurrency: Option<usize>,
    on_error: FailurePolicy,
    on_timeout: FailurePolicy,
    handler: NativeHandler,
}

impl NativeHook {
    /// A closure that runs inside the run's actor. It must be quick and must not block: while it runs, the run does
    /// nothing else. An error counts as a failure of the hook, and so does a panic.
    pub fn inline(
        name: impl Into<String>,
        events: impl IntoIterator<Item = EventKind>,
        closure: impl Fn(&Draft) -> NativeReply + Send + Sync + 'static,
    ) -> Self {
        Self::new(name.into(), events, NativeHandler::Inline(Arc::new(closure)))
    }

    /// A closure whose future runs as a task of its own. The future is dropped at the hook's timeout, and when nobody
    /// waits for the outcome any more.
    pub fn task<F>(
        name: impl Into<String>,
        events: impl IntoIterator<Item = EventKind>,
        closure: impl Fn(Draft) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = NativeReply> + Send + 'static,
    {
        Self::new(name.into(), events, NativeHandler::Task(Arc::new(move |draft| Box::pin(closure(draft)))))
    }

    fn new(name: String, events: impl IntoIterator<Item = EventKind>, handler: NativeHandler) -> Self {
        Self {
            name,
            events: events.into_iter().collect(),
            matcher: None,
            capabilities: Vec::new(),
            priority: 0,
            timeout: None,
            max_concurrency: None,
            on_error: FailurePolicy::Ignore,
            on_timeout: FailurePolicy::Ignore,
            handler,
        }
    }

    /// Only for events whose matched field this regular expression is found in: the tool's name for tool events,
    /// and so on.
    #[must_use]
    pub fn matcher(mut self, pattern: impl Into<String>) -> Self {
        self.matcher = Some(pattern.into());
        self
    }

    /// Permits it to patch something or to suppress output. A patch without its capability is dropped.
    #[must_use]
    pub fn capability(mut self, capability: Capability) -> Self {
        self.capabilities.push(capability);
        self
    }

    /// Lower runs earlier; the default is 0.
    #[must_use]
    pub fn priority(mut self, priority: i32) -> Self {
        self.priority = priority;
        self
    }

    /// The longest it may take; the default is `default_timeout` of the settings.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// How many of its futures run at once, over all runs; the default is the concurrency of the native pool. Further
    /// ones wait in the pool's queue. Only for hooks made with [`NativeHook::task`].
    #[must_use]
    pub fn max_concurrency(mut self, most: usize) -> Self {
        self.max_concurrency = Some(most);
        self
    }

    /// What a failure counts as; the default is to proceed.
    #[must_use]
    pub fn on_error(mut self, policy: FailurePolicy) -> Self {
        self.on_error = policy;
        self
    }

    /// What a timeout counts as; the default is to proceed.
    #[must_use]
    pub fn on_timeout(mut self, policy: FailurePolicy) -> Self {
        self.on_timeout = policy;
        self
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The hook as run, or what is wrong with it.
    pub(super) fn into_hook(self, position: usize, default_timeout: Duration) -> Result<Hook, String> {
        if self.events.is_empty() {
            return Err("it has no events; name at least one".to_owned());
        }
        let applies = |capability: Capability| self.events.iter().any(|kind| capability.applies_to(kind));
        if let Some(capability) = self.capabilities.iter().find(|capability| !applies(**capability)) {
            return Err(format!("the capability `{}` fits none of its events", capability.as_str()));
        }
        let max_concurrency =
            self.max_concurrency.map(|most| checked_concurrency(most, &self.handler)).transpose()?;
        let matcher = self.matcher.map(|pattern| Matcher::search(&pattern)).transpose();
        Ok(Hook {
            name: HookName::new(&self.name).map_err(|error| format!("its name {error}"))?,
            dialect: dialect::named(DialectName::Canonical),
            events: self.events,
            matcher: matcher.map_err(|error| error.to_string())?,
            handler: Handler::Native(self.handler),
            capabilities: self.capabilities.into_iter().collect(),
            priority: self.priority,
            enabled: true,
            timeout: self.timeout.unwrap_or(default_timeout),
            max_concurrency,
            on_error: self.on_error,
            on_timeout: self.on_timeout,
            execution: ExecutionPolicy::default(),
            source: HookSource {
                scope: Scope::Host,
                file: None,
                line: 0,
                position,
                content: None,
                bundle: None,
            },
            trust: HookTrust::Approved(Approval::managed()),
        })
    }
}

/// The limit if the handler can have one; otherwise what is wrong with it.
fn checked_concurrency(most: usize, handler: &NativeHandler) -> Result<NonZeroUsize, String> {
    match handler {
        NativeHandler::Inline(_) => {
            Err("`max_concurrency` is for hooks made with `NativeHook::task`; this one runs inside each run's actor".to_owned())
        }
        NativeHandler::Task(_) => {
            NonZeroUsize::new(most).ok_or_else(|| "`max_concurrency` is 0; use a number from 1".to_owned())
        }
    }
}

impl fmt::Debug for NativeHook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NativeHook")
            .field("name", &self.name)
            .field("events", &self.events)
            .finish_non_exhaustive()
    }
}
