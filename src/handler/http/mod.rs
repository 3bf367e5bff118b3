//! Http hooks: a request to a server, with the envelope as its body, under one deadline over all attempts, and the policy
//! for another attempt.

mod request;
mod sockets;
mod targets;

use std::{path::Path, sync::Arc, time::Duration};

use backon::{ExponentialBuilder, Retryable};
use futures_util::future::BoxFuture;
use reqwest::Client;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::{request::PreparedRequest, sockets::SocketClients, targets::CheckedClients};
use crate::{
    handler::{
        http_client::{HttpClientError, RequestError},
        own_listeners::OwnListeners,
        runner::HttpLimits,
        runner::{HandlerOutput, Invocation, Runner},
    },
    model::{Address, Approval, Ended, Failure, Handler, HttpTarget, RawReply},
    registry::RegisteredHook,
    telemetry::HttpClass,
};

/// How often a request is repeated after the first attempt.
const RETRIES: usize = 2;

/// The shortest wait before the second attempt; jitter adds up to as much again, so that the hooks of many runs do
/// not come back to a server at the same moment.
const FIRST_WAIT: Duration = Duration::from_millis(100);

/// Runs http handlers.
#[derive(Debug)]
pub(crate) struct HttpRunner {
    clients: CheckedClients,
    sockets: SocketClients,
    limits: HttpLimits,
}

/// A failed attempt.
enum AttemptError {
    /// The server answered with a 5xx status.
    ServerError(RawReply),
    /// There was no whole response.
    NoResponse(RequestError),
}

impl HttpRunner {
    /// Runs hooks that may ask public servers, those that are allowed, and not hookyard itself.
    pub(crate) fn new(limits: HttpLimits, allow: Vec<HttpTarget>, own: OwnListeners) -> Self {
        let clients = CheckedClients::new(limits.max_idle, allow, own);
        Self { clients, sockets: SocketClients::default(), limits }
    }

    async fn answer(&self, invocation: &Invocation, cancel: &CancellationToken) -> Result<RawReply, Failure> {
        let Handler::Http(handler) = &invocation.hook.hook.handler else {
            return Err(Failure::new(Ended::Failed, "this is not an http hook"));
        };
        let envelope = invocation.envelope.clone();
        let request = PreparedRequest::new(handler, &invocation.event, envelope, self.limits.body)?;
        tokio::select! {
            // In this order: nothing is started for an event that is cancelled.
            biased;
            () = cancel.cancelled() => Err(Failure::cancelled()),
            result = tokio::time::timeout(invocation.timeout, self.attempt(request, invocation)) => {
                result.unwrap_or_else(|_| Err(timed_out(&handler.address, invocation)))
            }
        }
    }

    /// Makes one attempt if a host waits for the verdict: it has a policy for failures, and a late verdict is of no
    /// use. Hooks that only observe get up to [`RETRIES`] more.
    async fn attempt(
        &self,
        request: PreparedRequest<'_>,
        invocation: &Invocation,
    ) -> Result<RawReply, Failure> {
        let result = if invocation.event.is_interceptor() {
            self.attempt_once(request, invocation).await
        } else {
            // Boxed to keep the future of an invocation that a host waits for small.
            Box::pin(self.attempt_repeatedly(request, invocation)).await
        };
        result.or_else(AttemptError::into_result)
    }

    async fn attempt_repeatedly(
        &self,
        request: PreparedRequest<'_>,
        invocation: &Invocation,
    ) -> Result<RawReply, AttemptError> {
        let started = Instant::now();
        let waits =
            ExponentialBuilder::default().with_min_delay(FIRST_WAIT).with_max_times(RETRIES).with_jitter();
        let in_time = |wait: &Duration| started.elapsed() + *wait < invocation.timeout;
        (|| self.attempt_once(request.clone(), invocation))
            .retry(waits)
            .when(AttemptError::is_transient)
            .adjust(|_, wait| wait.filter(in_time))
            .await
    }

    async fn attempt_once(
        &self,
        request: PreparedRequest<'_>,
        invocation: &Invocation,
    ) -> Result<RawReply, AttemptError> {
        let meters = &invocation.meters;
        let approval = invocation.approval().map_err(|failure| {
            AttemptError::NoResponse(RequestError { failure, class: HttpClass::Other, never_sent: false })
        })?;
        let client = self.client(&approval, invocation, request.address).await.map_err(|error| {
            let error = no_client(&error, request.address);
            meters.requested(error.class);
            AttemptError::NoResponse(error)
        })?;
        match request.send(&client).await {
            Ok(reply) => {
                let status = if let RawReply::Http { status, .. } = reply { status } else { 0 };
                let class = HttpClass::of_status(status);
                meters.requested(class);
                if class == HttpClass::ServerError {
                    Err(AttemptError::ServerError(reply))
                } else {
                    Ok(reply)
                }
            }
            Err(error) => {
                meters.requested(error.class);
                Err(AttemptError::NoResponse(error))
            }
        }
    }

    /// The client for a server, which only a hook that may run gets.
    async fn client(
        &self,
        approval: &Approval,
        invocation: &Invocation,
        address: &Address,
    ) -> Result<Client, HttpClientError> {
        if let Some(socket) = address.socket() {
            let builder = self.clients.for_socket(socket)?;
            return self.sockets.of(approval, builder, &invocation.root, socket);
        }
        let scope = invocation.hook.hook.source.scope;
        self.clients.of_url(approval, address.url(), scope).await
    }
}

fn no_client(error: &HttpClientError, address: &Address) -> RequestError {
    let server = address.server();
    let (class, message) = match error {
        HttpClientError::Refused(why) => {
            (HttpClass::NotAllowed, format!("connections to {server} are not allowed: {why}"))
        }
        other => (HttpClass::Tls, format!("no trusted connection to {server}: {other}")),
    };
    RequestError { failure: Failure::new(Ended::Failed, message), class, never_sent: false }
}

impl AttemptError {
    /// Whether the same request may succeed a moment later, and was not acted upon.
    fn is_transient(&self) -> bool {
        match self {
            Self::ServerError(_) => true,
            Self::NoResponse(error) => error.never_sent,
        }
    }

    /// The result of the hook if this was the last attempt. The dialect reads a 5xx response like any other.
    fn into_result(self) -> Result<RawReply, Failure> {
        match self {
            Self::ServerError(reply) => Ok(reply),
            Self::NoResponse(error) => Err(error.failure),
        }
    }
}

impl Runner for HttpRunner {
    fn run<'a>(
        &'a self,
        invocation: &'a Invocation,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, HandlerOutput> {
        Box::pin(async { self.answer(invocation, cancel).await.into() })
    }

    fn reloaded(&self, root: &Path, hooks: &[Arc<RegisteredHook>]) {
        self.sockets.reloaded(root, hooks);
    }
}

fn timed_out(address: &Address, invocation: &Invocation) -> Failure {
    invocation.meters.requested(HttpClass::Timeout);
    let message = format!("no whole answer from {} within {:?}", address.server(), invocation.timeout);
    Failure::new(Ended::TimedOut, message)
}
