//! What finishes, as it finishes: server-sent events for those who watch. Owns the filters and what a slow reader is
//! told; refuses to wait for a reader: it loses the oldest.

use std::{fmt::Write, sync::Arc, time::Duration};

use axum::{
    body::{Body, Bytes},
    extract::{Query, State, rejection::QueryRejection},
    http::header::{CACHE_CONTROL, CONTENT_TYPE},
    response::{IntoResponse, Response},
};
use futures_util::stream;
use serde::{Deserialize, Serialize};
use tokio::{sync::OwnedSemaphorePermit, time::timeout};
use tokio_util::sync::CancellationToken;
use utoipa::IntoParams;

use super::{bad_query, workspace_id};
use crate::{
    Notice, NoticeStream, NoticesLost, RunRef,
    daemon::{
        error::{ApiError, ErrorBody},
        state::DaemonState,
    },
    model::{EventKind, HookReport, Outcome, Verdict, WorkspaceId},
    telemetry::ApiMeters,
};

/// How often a quiet stream says that it is still there, so that proxies keep it and a reader that is gone is
/// noticed.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// What is wanted.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(in crate::daemon) struct StreamQuery {
    /// What happens in this workspace.
    workspace_id: Option<String>,
    /// What happens for events of this kind.
    event: Option<String>,
    /// What comes to this verdict.
    verdict: Option<String>,
}

/// What a reader wants.
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
    meters: Arc<ApiMeters>,
    _place: OwnedSemaphorePermit,
}

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

/// Every finished invocation and outcome from now on, as server-sent events.
///
/// The events are `invocation`, `outcome`, and `dropped` with the number of those that a slow reader lost. Events
/// that no hook wanted are not told.
#[utoipa::path(
    get, path = "/v1/stream", tag = "operation", operation_id = "followStream", params(StreamQuery),
    responses(
        (status = 200, description = "A stream without end", body = String, content_type = "text/event-stream"),
        (status = 400, description = "The query cannot be used", body = ErrorBody),
    )
)]
pub(in crate::daemon) async fn follow(
    State(state): State<Arc<DaemonState>>,
    query: Result<Query<StreamQuery>, QueryRejection>,
) -> Result<Response, ApiError> {
    let Query(query) = query.map_err(|error| bad_query(&error))?;
    let filter = StreamFilter::of(&query)?;
    let place = Arc::clone(&state.streams)
        .try_acquire_owned()
        .map_err(|_| ApiError::overloaded("the stream has as many readers as `limits.streams` allows"))?;
    let reader = StreamReader {
        notices: state.orchestrator.subscribe(),
        filter,
        closing: state.closing.clone(),
        meters: Arc::clone(&state.meters),
        _place: place,
    };
    // The first words at once, so that a reader knows that it is heard.
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
        let unknown = |what: &str, name: &str, known: Vec<&str>| {
            let hint = format!("use one of {}", known.join(", "));
            ApiError::bad_request("bad_query", format!("there is no {what} {name:?}"), hint)
        };
        let event = query.event.as_deref().map(|name| {
            let known = || EventKind::ALL.iter().map(|kind| kind.as_str()).collect();
            EventKind::from_name(name).ok_or_else(|| unknown("event", name, known()))
        });
        let verdict = query.verdict.as_deref().map(|name| {
            let known = || Verdict::ALL.iter().map(|verdict| verdict.as_str()).collect();
            let found = Verdict::ALL.iter().find(|verdict| verdict.as_str() == name).copied();
            found.ok_or_else(|| unknown("verdict", name, known()))
        });
        let workspace = query.workspace_id.as_deref().map(workspace_id);
        Ok(Self {
            workspace: workspace.transpose()?,
            event: event.transpose()?,
            verdict: verdict.transpose()?,
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

impl StreamReader {
    /// The next words; none if it is closing time.
    async fn next(&mut self) -> Option<String> {
        loop {
            let received = tokio::select! {
                () = self.closing.cancelled() => return None,
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
    // Parts that come from outside as they are may have line breaks between their values, which would end the event.
    let json = serde_json::to_string(&data).unwrap_or_default().replace(['\n', '\r'], " ");
    let mut text = String::with_capacity(json.len() + 32);
    // Writing to a string cannot fail.
    let _ = write!(text, "event: {name}\ndata: {json}\n\n");
    text
}
