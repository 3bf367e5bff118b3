//! Runs http hooks: one deadline over all tries, and when there is another try. Refuses to try again when a host
//! waits: it has a policy for failures, and a verdict that comes late helps nobody.

use std::{path::Path, sync::Arc, time::Duration};

use backon::{ExponentialBuilder, Retryable};
use futures_util::future::BoxFuture;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{client::Clients, exchange::Exchange, failure::Setback};
use crate::{
    handler::{Brought, Invocation, Runner},
    model::{Address, Ended, Failure, Handler, RawReply},
    registry::RegisteredHook,
    telemetry::HttpClass,
};

/// How often a request is repeated after the first try.
const RETRIES: usize = 2;

/// The shortest wait before the second try; jitter adds up to as much again, so that the hooks of many runs do
/// not come back to a server at the same moment.
const FIRST_WAIT: Duration = Duration::from_millis(100);

/// What is too much.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HttpLimits {
    /// Bytes of an answer, decoded; more makes it invalid.
    pub(crate) body: usize,
    /// How many connections to one server are kept when they are idle.
    pub(crate) kept: usize,
}

/// Runs http handlers.
#[derive(Debug)]
pub(crate) struct HttpRunner {
    clients: Clients,
    limits: HttpLimits,
}

/// A try that may be worth another one.
enum Unsettled {
    /// The server said that the fault is its own.
    Busy(RawReply),
    Setback(Setback),
}

impl HttpRunner {
    pub(crate) fn new(limits: HttpLimits) -> Self {
        Self { clients: Clients::new(limits.kept), limits }
    }

    async fn answer(&self, invocation: &Invocation, cancel: &CancellationToken) -> Result<RawReply, Failure> {
        let Handler::Http(handler) = &invocation.hook.hook.handler else {
            return Err(Failure::new(Ended::Failed, "this is not an http hook"));
        };
        let envelope = invocation.envelope.clone();
        let exchange = Exchange::new(handler, &invocation.event, envelope, self.limits.body)?;
        tokio::select! {
            result = tokio::time::timeout(invocation.timeout, self.tries(exchange, invocation)) => {
                result.unwrap_or_else(|_| Err(too_late(&handler.address, invocation)))
            }
            () = cancel.cancelled() => {
                Err(Failure::cancelled())
            }
        }
    }

    async fn tries(&self, exchange: Exchange<'_>, invocation: &Invocation) -> Result<RawReply, Failure> {
        let result = if invocation.event.is_interceptor() {
            self.try_once(exchange, invocation).await
        } else {
            // Boxed, so that an invocation that a host waits for does not carry the room for this around.
            Box::pin(self.try_again(exchange, invocation)).await
        };
        result.or_else(Unsettled::settle)
    }

    async fn try_again(
        &self,
        exchange: Exchange<'_>,
        invocation: &Invocation,
    ) -> Result<RawReply, Unsettled> {
        let started = Instant::now();
        let waits =
            ExponentialBuilder::default().with_min_delay(FIRST_WAIT).with_max_times(RETRIES).with_jitter();
        let in_time = |wait: &Duration| started.elapsed() + *wait < invocation.timeout;
        (|| self.try_once(exchange.clone(), invocation))
            .retry(waits)
            .when(Unsettled::may_pass)
            .adjust(|_, wait| wait.filter(in_time))
            .await
    }

    async fn try_once(&self, exchange: Exchange<'_>, invocation: &Invocation) -> Result<RawReply, Unsettled> {
        let meters = &invocation.meters;
        let client = self.clients.of(&invocation.root, exchange.address).await.map_err(|e| {
            meters.requested(HttpClass::Tls);
            let message = format!("no trusted connection to {}: {e}", exchange.address.server());
            let failure = Failure::new(Ended::Failed, message);
            Unsettled::Setback(Setback { failure, class: HttpClass::Tls, unseen: false })
        })?;
        match exchange.send(&client).await {
            Ok(reply) => {
                let status = if let RawReply::Http { status, .. } = reply { status } else { 0 };
                let class = HttpClass::of_status(status);
                meters.requested(class);
                if class == HttpClass::ServerError { Err(Unsettled::Busy(reply)) } else { Ok(reply) }
            }
            Err(setback) => {
                meters.requested(setback.class);
                Err(Unsettled::Setback(setback))
            }
        }
    }
}

impl Unsettled {
    /// Whether the same request may fare better a moment later, and was not acted upon.
    fn may_pass(&self) -> bool {
        match self {
            Self::Busy(_) => true,
            Self::Setback(setback) => setback.unseen,
        }
    }

    /// What the last try comes to.
    fn settle(self) -> Result<RawReply, Failure> {
        match self {
            Self::Busy(reply) => Ok(reply),
            Self::Setback(setback) => Err(setback.failure),
        }
    }
}

impl Runner for HttpRunner {
    fn run<'a>(
        &'a self,
        invocation: &'a Invocation,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, Brought> {
        Box::pin(async { self.answer(invocation, cancel).await.into() })
    }

    fn reloaded(&self, root: &Path, hooks: &[Arc<RegisteredHook>]) {
        self.clients.reloaded(root, hooks);
    }
}

fn too_late(address: &Address, invocation: &Invocation) -> Failure {
    invocation.meters.requested(HttpClass::Timeout);
    let message = format!("no whole answer from {} within {:?}", address.server(), invocation.timeout);
    Failure::new(Ended::TimedOut, message)
}
