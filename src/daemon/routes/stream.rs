//! Streams finished invocations and outcomes, or the events that hosts send, as server-sent events. A slow reader loses the
//! oldest.

use std::{
    convert::Infallible,
    future::pending,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{
    body::{Body, Bytes},
    extract::{Extension, State},
    http::header::{CACHE_CONTROL, CONTENT_TYPE},
    response::{IntoResponse, Response},
    routing::on,
};
use futures_util::{Stream, StreamExt, stream};
use serde::{Deserialize, Serialize};
use tokio::{
    sync::OwnedSemaphorePermit,
    time::{Instant, error::Elapsed, timeout_at},
};
use tokio_util::sync::CancellationToken;

use super::{
    extract::{ApiQuery, workspace_id},
    operation::{Operation, RequestLimit, ResponseContent::Text, Route, RouteMethod, ok},
    shared::{EVENT_KIND, INVALID_QUERY, ONE_WORKSPACE, RECORDED_DIALECT, RECORDED_SESSION, VERDICT},
};
use crate::{
    Notice, NoticeStream, NoticesLost, Orchestrator, RunRef,
    daemon::{
        agent_activity::{EventRecorder, SentEvent},
        auth::AccessRight,
        error::ApiError,
        listener_share::ListenerShare,
        state::{DaemonState, RequestContext},
        tokens::StreamAccess,
    },
    model::{DialectName, EventKind, HookReport, Json, Outcome, SessionId, Verdict, WorkspaceId},
    telemetry::ApiMeters,
};

/// How often a quiet stream sends a comment: proxies keep the connection, and a reader that is gone is noticed.
pub(super) const HEARTBEAT: Duration = Duration::from_secs(15);

/// That comment.
pub(super) const STILL_HERE: &str = ": still here\n\n";

pub(super) const FOLLOW: Route = Route {
    path: "/v1/stream",
    limit: RequestLimit::Exempt,
    operations: &[Operation {
        method: RouteMethod::Get,
        id: "followStream",
        tag: "operation",
        right: AccessRight::Read,
        summary: "Stream finished invocations and outcomes as server-sent events.",
        description: "Sends `invocation` and `outcome` events, and `dropped` with the number of those that a slow reader missed. Events without matching hooks are not sent.",
        parameters: &[ONE_WORKSPACE, EVENT_KIND, VERDICT],
        request: None,
        success: &[ok("A stream that does not end", Text("text/event-stream"))],
        errors: &[INVALID_QUERY],
        handler: |method| on(method, follow),
    }],
};

pub(super) const RECORD: Route = Route {
    path: "/v1/recording",
    limit: RequestLimit::Exempt,
    operations: &[Operation {
        method: RouteMethod::Get,
        id: "recordEvents",
        tag: "operation",
        right: AccessRight::Control,
        summary: "Stream the events that hosts send as server-sent events.",
        description: "Sends `event` with the dialect, the session and the event as its host sent it, without the secrets of hooks, and `dropped` with the number of those that a slow reader missed.",
        parameters: &[RECORDED_DIALECT, RECORDED_SESSION],
        request: None,
        success: &[ok("A stream that does not end", Text("text/event-stream"))],
        errors: &[INVALID_QUERY],
        handler: |method| on(method, record),
    }],
};

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct StreamQuery {
    workspace_id: Option<String>,
    event: Option<String>,
    verdict: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RecordingQuery {
    dialect: Option<String>,
    session_id: Option<String>,
}

/// The notices that a reader asked for.
#[derive(Debug, Default)]
struct StreamFilter {
    workspace: Option<WorkspaceId>,
    event: Option<EventKind>,
    verdict: Option<Verdict>,
}

/// One reader of the stream.
struct StreamReader {
    notices: NoticeStream,
    filter: StreamFilter,
    connection: StreamConnection,
}

/// One reader of the events that hosts send.
struct RecordingReader {
    recorder: EventRecorder,
    dialect: Option<DialectName>,
    session: Option<String>,
    orchestrator: Orchestrator,
    connection: StreamConnection,
}

/// What the readers of all streams have.
pub(super) struct StreamConnection {
    closing: CancellationToken,
    /// What the reader was authorized by, if that can end.
    access: Option<StreamAccess>,
    meters: Arc<ApiMeters>,
    _place: StreamPlace,
}

/// The place of a reader at its listener, and its part in the number of all.
struct StreamPlace {
    readers: Arc<AtomicUsize>,
    _permit: OwnedSemaphorePermit,
}

impl StreamPlace {
    fn take(readers: &Arc<AtomicUsize>, permit: OwnedSemaphorePermit) -> Self {
        readers.fetch_add(1, Ordering::Relaxed);
        Self { readers: Arc::clone(readers), _permit: permit }
    }
}

impl Drop for StreamPlace {
    fn drop(&mut self) {
        self.readers.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The data of an event of the stream.
#[derive(Serialize)]
struct NoticeData<'a> {
    #[serde(flatten)]
    run: &'a RunRef,
    #[serde(skip_serializing_if = "Option::is_none")]
    event: Option<EventKind>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hook: Option<&'a HookReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<&'a Outcome>,
}

/// The data of an event of a recording.
#[derive(Serialize)]
struct RecordedData<'a> {
    dialect: DialectName,
    session_id: &'a SessionId,
    event: Json,
}

/// Streams finished invocations and outcomes.
async fn follow(
    State(RequestContext { daemon: state, share }): State<RequestContext>,
    access: Option<Extension<StreamAccess>>,
    ApiQuery(query): ApiQuery<StreamQuery>,
) -> Result<Response, ApiError> {
    let filter = StreamFilter::of(&query)?;
    // Before it counts as a reader: who sees that number knows what it gets.
    let notices = state.orchestrator.subscribe();
    let connection = StreamConnection::open(&state, &share, access)?;
    let reader = StreamReader { notices, filter, connection };
    Ok(event_stream(stream::unfold(reader, |mut reader| async move {
        let text = reader.next().await?;
        Some((text, reader))
    })))
}

/// Streams the events that hosts send.
async fn record(
    State(RequestContext { daemon: state, share }): State<RequestContext>,
    access: Option<Extension<StreamAccess>>,
    ApiQuery(query): ApiQuery<RecordingQuery>,
) -> Result<Response, ApiError> {
    let dialect = query.dialect.as_deref().map(dialect_name).transpose()?;
    let (recorder, orchestrator) = (state.sent.record(), state.orchestrator.clone());
    let connection = StreamConnection::open(&state, &share, access)?;
    let reader = RecordingReader { recorder, dialect, session: query.session_id, orchestrator, connection };
    Ok(event_stream(stream::unfold(reader, |mut reader| async move {
        let text = reader.next().await?;
        Some((text, reader))
    })))
}

/// A response that sends these texts as they come.
pub(super) fn event_stream(texts: impl Stream<Item = String> + Send + 'static) -> Response {
    // A comment at once tells the reader that it is subscribed: it misses nothing from here on.
    let hello = stream::iter([": hookyard\n\n".to_owned()]);
    let chunks = hello.chain(texts).map(|text| Ok::<_, Infallible>(Bytes::from(text)));
    let body = Body::from_stream(chunks);
    ([(CONTENT_TYPE, "text/event-stream"), (CACHE_CONTROL, "no-store")], body).into_response()
}

impl StreamConnection {
    pub(super) fn open(
        state: &DaemonState,
        share: &ListenerShare,
        access: Option<Extension<StreamAccess>>,
    ) -> Result<Self, ApiError> {
        let permit = share.stream()?;
        Ok(Self {
            closing: state.closing.clone(),
            access: access.map(|Extension(access)| access),
            meters: Arc::clone(&state.meters),
            _place: StreamPlace::take(&state.stream_readers, permit),
        })
    }

    /// What comes next, or an error at this time if nothing has; none when the daemon shuts down, tokens were replaced, or
    /// the session has ended.
    pub(super) async fn next<T>(
        &self,
        next: impl Future<Output = T>,
        deadline: Instant,
    ) -> Option<Result<T, Elapsed>> {
        tokio::select! {
            () = self.closing.cancelled() => None,
            () = self.access_ended() => None,
            received = timeout_at(deadline, next) => Some(received),
        }
    }

    async fn access_ended(&self) {
        match &self.access {
            Some(access) => access.ended().await,
            None => pending().await,
        }
    }

    /// What tells a reader how much it has missed.
    fn dropped(&self, count: u64) -> String {
        self.meters.dropped(count);
        format!("event: dropped\ndata: {{\"dropped\":{count}}}\n\n")
    }
}

impl StreamFilter {
    fn of(query: &StreamQuery) -> Result<Self, ApiError> {
        Ok(Self {
            workspace: query.workspace_id.as_deref().map(workspace_id).transpose()?,
            event: query.event.as_deref().map(event_kind).transpose()?,
            verdict: query.verdict.as_deref().map(verdict).transpose()?,
        })
    }

    fn matches(&self, notice: &Notice) -> bool {
        let (run, event, verdict) = match notice {
            Notice::Invocation { run, event, report } => (run, *event, report.verdict),
            Notice::Outcome { run, outcome } => (run, outcome.event, outcome.verdict),
        };
        self.workspace.as_ref().is_none_or(|wanted| *wanted == run.workspace_id)
            && self.event.is_none_or(|wanted| wanted == event)
            && self.verdict.is_none_or(|wanted| wanted == verdict)
    }
}

fn event_kind(name: &str) -> Result<EventKind, ApiError> {
    EventKind::from_name(name)
        .ok_or_else(|| unknown_name("event", name, EventKind::ALL.iter().map(|kind| kind.as_str())))
}

fn dialect_name(name: &str) -> Result<DialectName, ApiError> {
    let found = DialectName::ALL.iter().find(|known| known.as_str() == name).copied();
    found.ok_or_else(|| unknown_name("dialect", name, DialectName::ALL.iter().map(|name| name.as_str())))
}

pub(super) fn verdict(name: &str) -> Result<Verdict, ApiError> {
    let found = Verdict::ALL.iter().find(|verdict| verdict.as_str() == name).copied();
    found.ok_or_else(|| unknown_name("verdict", name, Verdict::ALL.iter().map(|verdict| verdict.as_str())))
}

fn unknown_name<'a>(what: &str, name: &str, known: impl Iterator<Item = &'a str>) -> ApiError {
    let hint = format!("use one of {}", known.collect::<Vec<_>>().join(", "));
    ApiError::bad_request("bad_query", format!("unknown {what} {name:?}"), hint)
}

impl StreamReader {
    /// The text of the next event or comment; none when the stream ends.
    async fn next(&mut self) -> Option<String> {
        let deadline = Instant::now() + HEARTBEAT;
        loop {
            match self.connection.next(self.notices.next(), deadline).await? {
                Ok(Some(Ok(notice))) if self.filter.matches(&notice) => return Some(to_sse(&notice)),
                Ok(Some(Ok(_))) => {}
                Ok(Some(Err(NoticesLost { count, .. }))) => return Some(self.connection.dropped(count)),
                Ok(None) => return None,
                Err(_) => return Some(STILL_HERE.to_owned()),
            }
        }
    }
}

impl RecordingReader {
    /// The text of the next event or comment; none when the stream ends.
    async fn next(&mut self) -> Option<String> {
        let deadline = Instant::now() + HEARTBEAT;
        loop {
            match self.connection.next(self.recorder.next(), deadline).await? {
                Ok(Ok(sent)) if self.wants(&sent) => {
                    if let Some(event) = self.shown(&sent.bytes) {
                        let (dialect, session) = (sent.dialect, &sent.session);
                        return Some(sse("event", &RecordedData { dialect, session_id: session, event }));
                    }
                }
                Ok(Ok(_)) => {}
                Ok(Err(lost)) => return Some(self.connection.dropped(lost)),
                Err(_) => return Some(STILL_HERE.to_owned()),
            }
        }
    }

    fn wants(&self, sent: &SentEvent) -> bool {
        self.dialect.is_none_or(|wanted| wanted == sent.dialect)
            && self.session.as_ref().is_none_or(|wanted| *wanted == sent.session.as_str())
    }

    /// An event without the secrets of any hook. None if it is no JSON, which no event is.
    fn shown(&self, bytes: &[u8]) -> Option<Json> {
        let event = Json::parse(std::str::from_utf8(bytes).ok()?).ok()?;
        let mut snapshots = self.orchestrator.snapshots().into_iter();
        snapshots.try_fold(event, |event, snapshot| snapshot.redactor().json(&event).ok())
    }
}

fn to_sse(notice: &Notice) -> String {
    let (name, data) = match notice {
        Notice::Invocation { run, event, report } => {
            ("invocation", NoticeData { run, event: Some(*event), hook: Some(report), outcome: None })
        }
        Notice::Outcome { run, outcome } => {
            ("outcome", NoticeData { run, event: None, hook: None, outcome: Some(outcome) })
        }
    };
    sse(name, &data)
}

/// An event of a stream.
fn sse(name: &str, data: &impl Serialize) -> String {
    // JSON that is passed on unparsed may have line breaks between its values, which would end the event.
    let json = serde_json::to_string(data).unwrap_or_default().replace(['\n', '\r'], " ");
    format!("event: {name}\ndata: {json}\n\n")
}
