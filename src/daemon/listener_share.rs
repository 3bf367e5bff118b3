//! What the clients of one listener may take at most: connections, requests, bytes of bodies and streams. Each listener has
//! a share of its own, so that none takes what another needs.

use std::{
    num::NonZeroUsize,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::{
    auth::{AccessRight, ListenerKind},
    error::ApiError,
    request_body::{BodyBounds, BodyBudget},
};
use crate::{
    config::{LimitSettings, Settings},
    run::EventSender,
    telemetry::ListenerMeters,
};

/// How many connections beyond the limit of a listener are answered at the same time. Further ones are closed without an
/// answer.
const MAX_REFUSALS: usize = 256;

/// How many bytes of bodies the metrics address holds: nothing that is sent there has one.
const METRICS_BODIES: usize = 64 << 10;

/// The body of an answer that keeps the permit of its request until it is read.
#[derive(Debug)]
pub(super) struct CountedBody {
    body: Body,
    _permit: OwnedSemaphorePermit,
}

impl CountedBody {
    pub(super) fn new(body: Body, permit: OwnedSemaphorePermit) -> Self {
        Self { body, _permit: permit }
    }
}

impl HttpBody for CountedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A limit of a listener, and the setting that it comes from.
#[derive(Debug, Clone, Copy)]
struct ListenerLimit {
    number: usize,
    setting: &'static str,
}

impl ListenerLimit {
    fn new(number: NonZeroUsize, setting: &'static str) -> Self {
        Self { number: number.get(), setting }
    }
}

/// The share of one listener.
#[derive(Debug)]
pub(super) struct ListenerShare {
    kind: ListenerKind,
    /// Who sends the events of this listener.
    pub(super) sender: EventSender,
    /// Permits for connections.
    connections: Arc<Semaphore>,
    connections_setting: &'static str,
    /// Permits for connections beyond the limit, held while they are answered.
    refusals: Arc<Semaphore>,
    /// Permits for requests in flight.
    requests: Arc<Semaphore>,
    requests_setting: &'static str,
    bodies: Arc<BodyBudget>,
    /// Permits for readers of the stream.
    streams: Arc<Semaphore>,
    body_timeout: Duration,
    meters: ListenerMeters,
}

impl ListenerShare {
    pub(super) fn of_event_socket(limits: &LimitSettings) -> Arc<Self> {
        Self::new(
            ListenerKind::EventSocket,
            EventSender::Known,
            ListenerLimit::new(limits.connections, "limits.connections"),
            ListenerLimit::new(limits.requests, "limits.requests"),
            ListenerLimit { number: limits.request_bodies, setting: "limits.request_bodies" },
            limits,
        )
    }

    pub(super) fn of_control_socket(limits: &LimitSettings) -> Arc<Self> {
        Self::new(
            ListenerKind::ControlSocket,
            EventSender::Known,
            ListenerLimit::new(limits.control_connections, "limits.control_connections"),
            ListenerLimit::new(limits.control_requests, "limits.control_requests"),
            ListenerLimit { number: limits.control_request_bodies, setting: "limits.control_request_bodies" },
            limits,
        )
    }

    pub(super) fn of_lines_socket(limits: &LimitSettings) -> Arc<Self> {
        Self::new(
            ListenerKind::LinesSocket,
            EventSender::Known,
            ListenerLimit::new(limits.lines_connections, "limits.lines_connections"),
            ListenerLimit::new(limits.lines_requests, "limits.lines_requests"),
            ListenerLimit { number: limits.lines_request_bodies, setting: "limits.lines_request_bodies" },
            limits,
        )
    }

    /// The share of the TCP address, which may have fewer connections than the setting.
    pub(super) fn of_tcp(
        limits: &LimitSettings,
        connections: NonZeroUsize,
        sender: EventSender,
    ) -> Arc<Self> {
        Self::new(
            ListenerKind::Tcp,
            sender,
            ListenerLimit::new(connections, "limits.tcp_connections"),
            ListenerLimit::new(limits.tcp_requests, "limits.tcp_requests"),
            ListenerLimit { number: limits.tcp_request_bodies, setting: "limits.tcp_request_bodies" },
            limits,
        )
    }

    /// The share of the metrics address, which may have fewer connections than the setting.
    pub(super) fn of_metrics(limits: &LimitSettings, connections: NonZeroUsize) -> Arc<Self> {
        Self::new(
            ListenerKind::Metrics,
            EventSender::Anonymous,
            ListenerLimit::new(connections, "limits.metrics_connections"),
            ListenerLimit::new(limits.metrics_requests, "limits.metrics_requests"),
            ListenerLimit { number: METRICS_BODIES, setting: "limits.metrics_requests" },
            limits,
        )
    }

    fn new(
        kind: ListenerKind,
        sender: EventSender,
        connections: ListenerLimit,
        requests: ListenerLimit,
        bodies: ListenerLimit,
        limits: &LimitSettings,
    ) -> Arc<Self> {
        let meters = ListenerMeters::resolve(kind.as_str());
        Arc::new(Self {
            kind,
            sender,
            connections: Arc::new(Semaphore::new(connections.number.min(Semaphore::MAX_PERMITS))),
            connections_setting: connections.setting,
            refusals: Arc::new(Semaphore::new(MAX_REFUSALS)),
            requests: Arc::new(Semaphore::new(requests.number.min(Semaphore::MAX_PERMITS))),
            requests_setting: requests.setting,
            bodies: BodyBudget::new(bodies.number, bodies.setting, meters.bodies()),
            streams: Arc::new(Semaphore::new(limits.streams.get().min(Semaphore::MAX_PERMITS))),
            body_timeout: limits.body_timeout,
            meters,
        })
    }

    /// Whether a request that needs this right takes a permit even where its route needs none. It keeps the permit until
    /// its answer is read: anybody may ask for metrics, which are long.
    pub(super) fn counts_always(&self, right: AccessRight) -> bool {
        match self.kind {
            ListenerKind::EventSocket | ListenerKind::ControlSocket | ListenerKind::LinesSocket => false,
            ListenerKind::Tcp => right == AccessRight::Metrics,
            ListenerKind::Metrics => true,
        }
    }

    /// A place for a connection, if one is free.
    pub(super) fn connect(&self) -> Option<OwnedSemaphorePermit> {
        let place = Arc::clone(&self.connections).try_acquire_owned().ok();
        if place.is_none() {
            self.meters.connection_refused();
        }
        place
    }

    /// A place in which a connection beyond the limit is answered, if one is free.
    pub(super) fn refuse(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.refusals).try_acquire_owned().ok()
    }

    /// The error for a request on a connection beyond the limit.
    pub(super) fn too_many_connections(&self) -> ApiError {
        let setting = self.connections_setting;
        ApiError::overloaded(format!("the limit of open connections, `{setting}`, is reached"))
    }

    /// A permit for a request.
    ///
    /// Returns an error if all are taken.
    pub(super) fn permit(&self) -> Result<OwnedSemaphorePermit, ApiError> {
        Arc::clone(&self.requests).try_acquire_owned().map_err(|_| {
            self.meters.request_refused();
            let setting = self.requests_setting;
            ApiError::overloaded(format!("the limit of requests in flight, `{setting}`, is reached"))
        })
    }

    /// A permit for a reader of the stream.
    ///
    /// Returns an error if all are taken.
    pub(super) fn stream(&self) -> Result<OwnedSemaphorePermit, ApiError> {
        Arc::clone(&self.streams).try_acquire_owned().map_err(|_| {
            self.meters.stream_refused();
            ApiError::overloaded("the stream has reached its limit of readers, `limits.streams`")
        })
    }

    /// The budget of bodies.
    pub(super) fn bodies(&self) -> &Arc<BodyBudget> {
        &self.bodies
    }

    /// The bounds of the body of an event.
    pub(super) fn event_bounds(&self, settings: &Settings) -> BodyBounds<'_> {
        BodyBounds { is_event: true, ..self.body_bounds(settings.limits.payload) }
    }

    /// The bounds of a body that is no event, of at most this size.
    pub(super) fn body_bounds(&self, bytes: usize) -> BodyBounds<'_> {
        BodyBounds { bytes, is_event: false, time: self.body_timeout, budget: &self.bodies }
    }
}
