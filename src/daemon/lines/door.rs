//! Takes events from lines and decides them as the HTTP routes do, within the same limits.

use std::{pin::Pin, sync::Arc};

use axum::{
    body::{Body, Bytes, to_bytes},
    extract::Request,
    http::{HeaderMap, HeaderName, HeaderValue, Method, header::CONTENT_TYPE, response::Parts},
    response::Response,
};
use tokio::sync::OwnedSemaphorePermit;

use super::{
    answer::{ForwardedAnswer, LineAnswer, UnaskedText},
    buffer::{CutLine, CutReason},
    request::{LineEvent, LineFault},
};
use crate::{
    daemon::{
        auth::{AccessRight, ListenerKind},
        error::ApiError,
        handover,
        listener_share::ListenerShare,
        request_body::BudgetShare,
        routes::{self, ERROR, EXIT_CODE, RETRY, RefusedGuards, ResponseForm, UnreadNative, UnreadableEvent},
        state::{DaemonState, RequestContext},
    },
    model::{DialectName, Event, EventError, EventOrigin, EventPeer},
};

/// Stands for the route in the metrics of requests.
pub(in crate::daemon) const ROUTE: &str = "lines";

/// The largest answer of another daemon, in bytes.
const MAX_FORWARDED_BYTES: usize = 64 << 20;

/// How much longer than an event a line may be: its id, its headers, and the names of its fields.
const ENVELOPE_BYTES: usize = 64 << 10;

/// An event that is being decided. It keeps its place within the limits until it is answered.
pub(super) type Deciding<'d> = Pin<Box<dyn Future<Output = LineAnswer> + Send + 'd>>;

/// The places that an event keeps within the limits until it is answered.
type HeldPlaces = (OwnedSemaphorePermit, BudgetShare);

/// The answer to an event, or when it comes.
#[allow(clippy::large_enum_variant, reason = "nearly every answer is there at once, and none is kept")]
pub(super) enum Decided<'d> {
    Now(LineAnswer),
    Later(Deciding<'d>),
}

/// Decides the events of one connection.
#[derive(Debug)]
pub(in crate::daemon) struct LinesDoor {
    context: RequestContext,
    peer: EventPeer,
    /// Whether the connection is one beyond the limit, whose events are refused.
    is_beyond_limit: bool,
}

/// An event that cannot be decided from its line, which is gone by then.
struct OwnedEvent {
    dialect: DialectName,
    form: ResponseForm,
    headers: HeaderMap,
    bytes: Bytes,
    fault: Option<LineFault>,
}

impl OwnedEvent {
    fn of(event: LineEvent<'_>) -> Self {
        let LineEvent { dialect, form, headers, bytes, fault } = event;
        Self { dialect, form, headers, bytes: Bytes::copy_from_slice(bytes), fault }
    }

    fn borrow(&mut self) -> LineEvent<'_> {
        LineEvent {
            dialect: self.dialect,
            form: self.form,
            headers: std::mem::take(&mut self.headers),
            bytes: &self.bytes,
            fault: self.fault.take(),
        }
    }
}

impl LinesDoor {
    /// For a connection of this user.
    pub(in crate::daemon) fn new(context: &RequestContext, uid: u32, is_beyond_limit: bool) -> Self {
        Self { context: context.clone(), peer: EventPeer::User(uid), is_beyond_limit }
    }

    pub(super) fn state(&self) -> &Arc<DaemonState> {
        &self.context.daemon
    }

    pub(super) fn share(&self) -> &ListenerShare {
        &self.context.share
    }

    /// The longest line, in bytes.
    pub(super) fn longest_line(&self) -> usize {
        self.state().settings.limits.payload.saturating_add(ENVELOPE_BYTES)
    }

    pub(super) fn is_beyond_limit(&self) -> bool {
        self.is_beyond_limit
    }

    /// The error about a line of which only the beginning was kept.
    pub(super) fn cut_off(&self, cut: CutLine) -> ApiError {
        match cut.why {
            CutReason::TooLong => {
                EventError::TooLarge { size: cut.size, limit: self.state().settings.limits.payload }.into()
            }
            CutReason::NoBudget => self.share().bodies().exceeded(),
        }
    }

    /// Decides an event, at once where that needs no waiting.
    pub(super) fn decide(&self, event: LineEvent<'_>) -> Decided<'_> {
        // Nearly no line has headers.
        if !event.headers.is_empty()
            && let Err(error) = routes::refuse_own_hook(&event.headers)
        {
            return Decided::Now(LineAnswer::error(error));
        }
        if self.is_beyond_limit {
            let error = self.share().too_many_connections();
            self.state().orchestrator.turned_away();
            return Decided::Later(self.refuse(&event, error, RefusedGuards::of(self.state())));
        }
        if self.state().handover.is_engaged() {
            let event = OwnedEvent::of(event);
            return Decided::Later(Box::pin(self.decide_once_settled(event)));
        }
        self.admit(event)
    }

    /// Decides an event within the limits of the listener.
    fn admit(&self, event: LineEvent<'_>) -> Decided<'_> {
        let permit = match self.share().permit() {
            Ok(permit) => permit,
            Err(error) => {
                self.state().orchestrator.turned_away();
                return Decided::Later(self.refuse(&event, error, RefusedGuards::of(self.state())));
            }
        };
        let mut share = BudgetShare::none(self.share().bodies());
        if !share.grow(event.bytes.len()) {
            let error = self.share().bodies().exceeded();
            return Decided::Later(self.refuse(&event, error, RefusedGuards::of(self.state())));
        }
        let held = (permit, share);
        if !self.state().loading.is_done() {
            let event = OwnedEvent::of(event);
            return Decided::Later(Box::pin(async move {
                let _held = held;
                self.decide_once_loaded(event).await
            }));
        }
        if event.dialect == DialectName::Canonical && event.fault.is_none() {
            return self.decide_plain(&event, held);
        }
        let deciding = self.read_and_decide(event);
        Decided::Later(Box::pin(async move {
            let _held = held;
            deciding.await
        }))
    }

    /// Decides a canonical event. Where no hook wants it, as with most, nothing is kept of it.
    fn decide_plain(&self, event: &LineEvent<'_>, held: HeldPlaces) -> Decided<'_> {
        let state = self.state();
        let origin = Some(self.origin());
        let mut read = match routes::read_canonical(state, &event.headers, origin, event.bytes) {
            Ok(read) => read,
            Err((error, origin)) => {
                let bytes = Bytes::copy_from_slice(event.bytes);
                let unreadable = UnreadableEvent { bytes, error, origin };
                return Decided::Later(Box::pin(self.decide_read(Err(unreadable), held)));
            }
        };
        match state.locator.locate_known(&state.orchestrator, &read) {
            None => return Decided::Later(Box::pin(self.decide_read(Ok(read), held))),
            Some(Err(error)) => return Decided::Now(LineAnswer::error(error.into())),
            Some(Ok(workspace)) => read.workspace_id = workspace,
        }
        let mut dispatched = routes::dispatch(&self.context, read);
        match dispatched.outcome_at_once() {
            Some(outcome) => Decided::Now(outcome.map_or_else(LineAnswer::error, LineAnswer::Outcome)),
            None => Decided::Later(Box::pin(async move {
                let _held = held;
                dispatched.outcome().await.map_or_else(LineAnswer::error, LineAnswer::Outcome)
            })),
        }
    }

    async fn decide_read(&self, read: Result<Event, UnreadableEvent>, held: HeldPlaces) -> LineAnswer {
        let _held = held;
        let decided = routes::decide(&self.context, read).await;
        decided.map_or_else(LineAnswer::error, LineAnswer::Outcome)
    }

    /// Reads an event at once, so that its line is not needed any more.
    fn read_and_decide(&self, event: LineEvent<'_>) -> impl Future<Output = LineAnswer> + Send + '_ {
        let LineEvent { dialect, form, headers, bytes, fault } = event;
        let read = match dialect {
            DialectName::Canonical => ReadLine::Canonical(self.read_canonical(&headers, bytes, fault)),
            dialect => ReadLine::Native(dialect, form, self.read_native(dialect, &headers, bytes, fault)),
        };
        async move {
            match read {
                ReadLine::Canonical(Err(error)) => LineAnswer::error(error),
                ReadLine::Canonical(Ok(read)) => match routes::decide(&self.context, read).await {
                    Ok(outcome) => LineAnswer::Outcome(outcome),
                    Err(error) => LineAnswer::error(error),
                },
                ReadLine::Native(dialect, form, read) => {
                    let decided = Box::pin(routes::decide_native(&self.context, dialect, read)).await;
                    decided
                        .map_or_else(LineAnswer::error, |answer| LineAnswer::Native(Box::new(answer), form))
                }
            }
        }
    }

    /// Reads a canonical event.
    ///
    /// Returns the error if it is the line that is wrong, and not the event.
    fn read_canonical(
        &self,
        headers: &HeaderMap,
        bytes: &[u8],
        fault: Option<LineFault>,
    ) -> Result<Result<Event, UnreadableEvent>, ApiError> {
        if let Some(LineFault::CutOff(error)) = fault {
            return Err(error);
        }
        let origin = Some(self.origin());
        match (routes::read_canonical(self.state(), headers, origin, bytes), fault) {
            (Err((error, origin)), _) => {
                Ok(Err(UnreadableEvent { bytes: Bytes::copy_from_slice(bytes), error, origin }))
            }
            (Ok(_), Some(LineFault::Malformed(error) | LineFault::CutOff(error))) => Err(error),
            (Ok(event), None) => Ok(Ok(event)),
        }
    }

    /// Reads an event in an agent's format.
    fn read_native(
        &self,
        dialect: DialectName,
        headers: &HeaderMap,
        bytes: &[u8],
        fault: Option<LineFault>,
    ) -> Result<Event, Box<UnreadNative>> {
        let origin = Some(self.origin());
        let copied = || Bytes::copy_from_slice(bytes);
        match fault {
            Some(LineFault::CutOff(error)) => {
                return Err(UnreadNative::cut_off(copied(), error, origin).of_request(headers));
            }
            Some(LineFault::Malformed(error)) => return Err(UnreadNative::invalid(copied(), error, origin)),
            None => {}
        }
        routes::read_native(self.state(), dialect, headers, origin, bytes)
            .map_err(|(error, origin)| UnreadNative::invalid(copied(), error, origin))
    }

    async fn decide_once_loaded(&self, mut event: OwnedEvent) -> LineAnswer {
        match self.state().loaded().await {
            Ok(()) => self.read_and_decide(event.borrow()).await,
            Err(error) => self.refuse(&event.borrow(), error, RefusedGuards::NotLoaded).await,
        }
    }

    /// Decides an event once it is known whether a daemon that takes over accepts connections, or has that daemon decide
    /// it: this one may not know any more what the other has decided.
    async fn decide_once_settled(&self, mut event: OwnedEvent) -> LineAnswer {
        if !self.state().handover.settled().await {
            return match self.admit(event.borrow()) {
                Decided::Now(answer) => answer,
                Decided::Later(deciding) => deciding.await,
            };
        }
        let is_native = event.dialect != DialectName::Canonical;
        let form = event.form;
        match self.as_request(event) {
            Ok(request) => {
                let response = handover::forward(&self.context, AccessRight::Events, request).await;
                forwarded(response, is_native, form).await
            }
            Err(error) => LineAnswer::error(error),
        }
    }

    /// An event as a request, for a daemon that has taken over.
    fn as_request(&self, event: OwnedEvent) -> Result<Request, ApiError> {
        let OwnedEvent { dialect, form, headers, bytes, fault } = event;
        let path = match (dialect, form) {
            (DialectName::Canonical, _) => "/v1/events".to_owned(),
            (dialect, ResponseForm::Body) => format!("/v1/events/{dialect}"),
            (dialect, ResponseForm::Process) => format!("/v1/events/{dialect}?as=process"),
        };
        match fault {
            Some(LineFault::Malformed(error) | LineFault::CutOff(error))
                if dialect == DialectName::Canonical =>
            {
                return Err(error);
            }
            // The other daemon finds the event incomplete, too.
            _ => {}
        }
        let mut request = Request::new(Body::from(bytes));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = path.parse().map_err(|_| ApiError::interrupted())?;
        *request.headers_mut() = headers;
        request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        request.extensions_mut().insert(self.origin());
        Ok(request)
    }

    /// The answer to an event that is refused: an agent's event gets a verdict, any other the error.
    fn refuse(&self, event: &LineEvent<'_>, error: ApiError, guards: RefusedGuards) -> Deciding<'_> {
        let (dialect, form) = (event.dialect, event.form);
        if dialect == DialectName::Canonical {
            return Box::pin(async { LineAnswer::error(error) });
        }
        let workspace = routes::addressed_workspace(&event.headers);
        let event = routes::partial_event(dialect, workspace, event.bytes);
        Box::pin(async move {
            let sender = (dialect, Some(self.origin()));
            let answer = routes::refuse_native(&self.context, sender, event, (error, guards)).await;
            answer.map_or_else(LineAnswer::error, |answer| LineAnswer::Native(Box::new(answer), form))
        })
    }

    fn origin(&self) -> EventOrigin {
        EventOrigin::new(ListenerKind::LinesSocket.as_str(), self.peer)
    }
}

/// The event of a line, read.
enum ReadLine {
    Canonical(Result<Result<Event, UnreadableEvent>, ApiError>),
    Native(DialectName, ResponseForm, Result<Event, Box<UnreadNative>>),
}

/// What another daemon has answered.
async fn forwarded(response: Response, is_native: bool, form: ResponseForm) -> LineAnswer {
    let (Parts { status, headers, .. }, body) = response.into_parts();
    let status = status.as_u16();
    let exit_code = text_of(&headers, &EXIT_CODE).and_then(|code| code.parse().ok());
    let exit_code = exit_code.filter(|_| form == ResponseForm::Body);
    let error = text_of(&headers, &ERROR).zip(text_of(&headers, &RETRY));
    let error = error.map(|(code, retry)| UnaskedText { code, retry });
    let Ok(body) = to_bytes(body, MAX_FORWARDED_BYTES).await else {
        return LineAnswer::error(ApiError::interrupted());
    };
    LineAnswer::Forwarded(Box::new(ForwardedAnswer { status, body, is_native, exit_code, error }))
}

fn text_of(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
}
