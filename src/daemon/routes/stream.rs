//! Streams finished invocations and outcomes as server-sent events. A slow reader loses the oldest.

use std::{
    fmt::Write,
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
};
use futures_util::stream;
use serde::{Deserialize, Serialize};
use tokio::{sync::OwnedSemaphorePermit, time::timeout};
use tokio_util::sync::CancellationToken;

use super::extract::{ApiQuery, workspace_id};
use crate::{
    Notice, NoticeStream, NoticesLost, RunRef,
    daemon::{error::ApiError, state::RequestContext, tokens::TokensReplaced},
    model::{EventKind, HookReport, Outcome, Verdict, WorkspaceId},
    telemetry::ApiMeters,
};

/// How often a quiet stream sends a comment: proxies keep the connection, and a reader that is gone is noticed.
const HEARTBEAT: Duration = Duration::from_secs(15);

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StreamQuery {
    workspace_id: Option<String>,
    event: Option<String>,
    verdict: Option<String>,
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
    closing: CancellationToken,
    /// Cancelled when the reader's token may no longer be valid.
    tokens_replaced: CancellationToken,
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

pub(super) async fn follow(
    State(RequestContext { daemon: state, share }): State<RequestContext>,
    tokens: Option<Extension<TokensReplaced>>,
    ApiQuery(query): ApiQuery<StreamQuery>,
) -> Result<Response, ApiError> {
    let filter = StreamFilter::of(&query)?;
    let permit = share.stream()?;
    let reader = StreamReader {
        notices: state.orchestrator.subscribe(),
        filter,
        closing: state.closing.clone(),
        tokens_replaced: tokens.map(|Extension(TokensReplaced(replaced))| replaced).unwrap_or_default(),
        meters: Arc::clone(&state.meters),
        _place: StreamPlace::take(&state.stream_readers, permit),
    };
    // A comment at once tells the reader that it is subscribed: it misses nothing from here on.
    let hello = stream::iter([Ok::<_, std::convert::Infallible>(Bytes::from_static(b": hookyard\n\n"))]);
    let rest = stream::unfold(reader, |mut reader| async move {
        let text = reader.next().await?;
        Some((Ok(Bytes::from(text)), reader))
    });
    let body = Body::from_stream(futures_util::StreamExt::chain(hello, rest));
    Ok(([(CONTENT_TYPE, "text/event-stream"), (CACHE_CONTROL, "no-store")], body).into_response())
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

fn verdict(name: &str) -> Result<Verdict, ApiError> {
    let found = Verdict::ALL.iter().find(|verdict| verdict.as_str() == name).copied();
    found.ok_or_else(|| unknown_name("verdict", name, Verdict::ALL.iter().map(|verdict| verdict.as_str())))
}

fn unknown_name<'a>(what: &str, name: &str, known: impl Iterator<Item = &'a str>) -> ApiError {
    let hint = format!("use one of {}", known.collect::<Vec<_>>().join(", "));
    ApiError::bad_request("bad_query", format!("unknown {what} {name:?}"), hint)
}

impl StreamReader {
    /// The text of the next event or comment; none when the daemon shuts down or tokens were replaced.
    async fn next(&mut self) -> Option<String> {
        loop {
            let received = tokio::select! {
                () = self.closing.cancelled() => return None,
                () = self.tokens_replaced.cancelled() => return None,
                received = timeout(HEARTBEAT, self.notices.next()) => received,
            };
            match received {
                Ok(Some(Ok(notice))) if self.filter.matches(&notice) => return Some(to_sse(&notice)),
                Ok(Some(Ok(_))) => {}
                Ok(Some(Err(NoticesLost { count, .. }))) => {
                    self.meters.dropped(count);
                    return Some(format!("event: dropped\ndata: {{\"dropped\":{count}}}\n\n"));
                }
                Ok(None) => return None,
                Err(_) => return Some(": still here\n\n".to_owned()),
            }
        }
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
    // JSON that is passed on unparsed may have line breaks between its values, which would end the event.
    let json = serde_json::to_string(&data).unwrap_or_default().replace(['\n', '\r'], " ");
    let mut text = String::with_capacity(json.len() + 32);
    // Writing to a string cannot fail.
    let _ = write!(text, "event: {name}\ndata: {json}\n\n");
    text
}
