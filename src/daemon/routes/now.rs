//! Streams what hooks do now, added up once a second, with its part of the route table.

use std::sync::Arc;

use axum::{
    extract::{Extension, State},
    response::Response,
    routing::on,
};
use futures_util::stream;
use serde::Deserialize;
use tokio::{sync::watch, time::Instant};

use super::{
    extract::ApiQuery,
    operation::{Operation, RequestLimit, ResponseContent::Text, Route, RouteMethod, ok},
    shared::INVALID_QUERY,
    stream::{HEARTBEAT, STILL_HERE, StreamConnection, event_stream},
};
use crate::daemon::{auth::AccessRight, error::ApiError, state::RequestContext, tokens::StreamAccess};

pub(super) const NOW: Route = Route {
    path: "/v1/now",
    limit: RequestLimit::Exempt,
    operations: &[Operation {
        method: RouteMethod::Get,
        id: "followNow",
        tag: "operation",
        right: AccessRight::Read,
        summary: "Stream what hooks do now, added up once a second, as server-sent events.",
        description: "Sends `now` events. Rates and times cover the last minute, counts the time for which somebody has followed. However many follow, it is counted once.",
        parameters: &[],
        request: None,
        success: &[ok("A stream that does not end", Text("text/event-stream"))],
        errors: &[INVALID_QUERY],
        handler: |method| on(method, follow),
    }],
};

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct NowQuery {}

struct NowReader {
    views: watch::Receiver<Arc<str>>,
    connection: StreamConnection,
}

async fn follow(
    State(RequestContext { daemon: state, share }): State<RequestContext>,
    access: Option<Extension<StreamAccess>>,
    ApiQuery(NowQuery {}): ApiQuery<NowQuery>,
) -> Result<Response, ApiError> {
    let connection = StreamConnection::open(&state, &share, access)?;
    let mut views = state.observers.live.watch(&state.orchestrator, &state.closing);
    // What others have seen last is shown at once.
    views.mark_changed();
    Ok(event_stream(stream::unfold(NowReader { views, connection }, |mut reader| async move {
        let text = reader.next().await?;
        Some((text, reader))
    })))
}

impl NowReader {
    /// The text of the next event or comment; none when the stream ends.
    async fn next(&mut self) -> Option<String> {
        let deadline = Instant::now() + HEARTBEAT;
        loop {
            match self.connection.next(self.views.changed(), deadline).await? {
                Ok(Ok(())) => {
                    let view = Arc::clone(&self.views.borrow_and_update());
                    if !view.is_empty() {
                        return Some(format!("event: now\ndata: {view}\n\n"));
                    }
                }
                Ok(Err(_)) => return None,
                Err(_) => return Some(STILL_HERE.to_owned()),
            }
        }
    }
}
