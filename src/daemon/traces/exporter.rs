//! The task that sends batches of spans to a collector. A failed request is retried once.

use std::{
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use reqwest::{Response, StatusCode, header::CONTENT_TYPE};
use tokio::{
    sync::mpsc::Receiver,
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use super::{otlp_json, span::TraceSpan};
use crate::{
    handler::http_client::HttpClients,
    model::{Address, Approval},
    telemetry::RecordsLost,
};

/// How many spans one request has at most.
const BATCH_SPANS: usize = 512;

/// The longest time that a span waits for others before a request is sent.
const BATCH_DELAY: Duration = Duration::from_secs(1);

/// Timeout of a request, including its response.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);

/// Delay before a retry. Batches are sent one after the other, so a collector that is down gets requests no more
/// often than that.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// The most bytes of a response that are read.
const MAX_RESPONSE_BYTES: usize = 64 << 10;

/// Sends spans until the tracer is dropped.
#[derive(Debug)]
pub(super) struct SpanExporter {
    endpoint: Address,
    clients: HttpClients,
    spans: Receiver<TraceSpan>,
    waiting: Arc<AtomicUsize>,
    closing: CancellationToken,
    health: CollectorHealth,
}

/// The result of the last request; only changes are logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CollectorHealth {
    Healthy,
    Failing,
}

/// Why a batch was not accepted.
enum ExportError {
    /// A retry may help.
    Retryable(String),
    /// The collector rejects the request; a retry is pointless.
    Permanent(String),
}

impl SpanExporter {
    pub(super) fn new(
        endpoint: Address,
        spans: Receiver<TraceSpan>,
        waiting: Arc<AtomicUsize>,
        closing: CancellationToken,
    ) -> Self {
        Self {
            endpoint,
            clients: HttpClients::new(1),
            spans,
            waiting,
            closing,
            health: CollectorHealth::Healthy,
        }
    }

    /// Sends spans as they arrive. Returns when the tracer is dropped, or is closing and the queue is empty.
    pub(super) async fn run(mut self) {
        loop {
            let batch = self.next_batch().await;
            if batch.is_empty() {
                return;
            }
            self.export(&batch).await;
        }
    }

    /// The next batch; an empty one is the end. While the tracer is closing, it waits for no more spans.
    async fn next_batch(&mut self) -> Vec<TraceSpan> {
        let Self { spans, closing, .. } = self;
        let mut batch = Vec::new();
        tokio::select! {
            biased;
            () = closing.cancelled() => {
                spans.close();
                spans.recv_many(&mut batch, BATCH_SPANS).await;
                return batch;
            }
            _ = spans.recv_many(&mut batch, BATCH_SPANS) => {}
        }
        let mut enough = pin!(sleep(BATCH_DELAY));
        while !batch.is_empty() && batch.len() < BATCH_SPANS {
            let room = BATCH_SPANS - batch.len();
            tokio::select! {
                more = spans.recv_many(&mut batch, room) => if more == 0 { break },
                () = &mut enough => break,
                () = closing.cancelled() => break,
            }
        }
        batch
    }

    async fn export(&mut self, batch: &[TraceSpan]) {
        let body = Bytes::from(otlp_json::request(batch));
        let mut result = self.post(body.clone()).await;
        if let Err(ExportError::Retryable(_)) = result {
            // No delay while the tracer is closing.
            drop(timeout(RETRY_DELAY, self.closing.cancelled()).await);
            result = self.post(body).await;
        }
        let (lost, failure) = match result {
            Ok(rejected) => (rejected.min(batch.len()), None),
            Err(ExportError::Retryable(why) | ExportError::Permanent(why)) => (batch.len(), Some(why)),
        };
        if lost > 0 {
            RecordsLost::SpanExport.emit(lost as u64);
        }
        self.log_transition(failure);
        self.waiting.fetch_sub(batch.len(), Ordering::Relaxed);
    }

    /// Sends a request once. Returns how many of its spans were refused.
    async fn post(&self, body: Bytes) -> Result<usize, ExportError> {
        let asked = async {
            let url = self.endpoint.url();
            let client = self.clients.of_url(&Approval::of_settings(), url).await;
            let client = client.map_err(|error| ExportError::Permanent(error.to_string()))?;
            let request = client.post(url.clone()).header(CONTENT_TYPE, "application/json").body(body);
            let response = request.send().await.map_err(connection_error)?;
            match response.status() {
                status if status.is_success() => Ok(otlp_json::rejected(&read_prefix(response).await?)),
                status if is_retryable(status) => {
                    Err(ExportError::Retryable(format!("it answered {status}")))
                }
                status => Err(ExportError::Permanent(format!("it answered {status}"))),
            }
        };
        let late = || ExportError::Retryable(format!("it did not answer within {REQUEST_TIMEOUT:?}"));
        timeout(REQUEST_TIMEOUT, asked).await.unwrap_or_else(|_| Err(late()))
    }

    /// Logs when exports begin to fail, and when they work again.
    fn log_transition(&mut self, failure: Option<String>) {
        match (self.health, failure) {
            (CollectorHealth::Healthy, Some(why)) => {
                tracing::warn!(why, "traces are lost: the collector does not take them");
                self.health = CollectorHealth::Failing;
            }
            (CollectorHealth::Failing, None) => {
                tracing::info!("the collector takes traces again");
                self.health = CollectorHealth::Healthy;
            }
            (CollectorHealth::Healthy, None) | (CollectorHealth::Failing, Some(_)) => {}
        }
    }
}

/// The status codes that the protocol declares retryable.
fn is_retryable(status: StatusCode) -> bool {
    matches!(status.as_u16(), 429 | 502..=504)
}

/// Without the URL: its query may hold a key.
fn connection_error(error: reqwest::Error) -> ExportError {
    let error = error.without_url();
    let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default();
    ExportError::Retryable(format!("{error}{cause}"))
}

/// The beginning of a response.
async fn read_prefix(mut response: Response) -> Result<Vec<u8>, ExportError> {
    let mut answer = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(connection_error)? {
        answer.extend_from_slice(&chunk);
        if answer.len() > MAX_RESPONSE_BYTES {
            break;
        }
    }
    Ok(answer)
}
