//! The task that sends spans to a collector, a batch at a time. Owns how long they are gathered, how long a request may
//! take and what is tried again; refuses to try anything more than twice.

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

use super::{span::Span, wire};
use crate::{handler::http::Clients, model::Address, telemetry::SpansDropped};

/// How many spans one request has at most.
const BATCH: usize = 512;

/// How long the first span of a request waits for more.
const GATHER: Duration = Duration::from_secs(1);

/// How long a request may take, with its answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// After how long a request is sent again. Batches wait for each other, so a collector that is down is asked no more
/// often than that.
const AGAIN: Duration = Duration::from_secs(1);

/// How much of an answer is read.
const LONGEST_ANSWER: usize = 64 << 10;

/// Sends spans until nobody makes any more.
#[derive(Debug)]
pub(super) struct Export {
    endpoint: Address,
    clients: Clients,
    spans: Receiver<Span>,
    waiting: Arc<AtomicUsize>,
    closing: CancellationToken,
    health: Health,
}

/// How the last request fared; the log is told of changes only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Health {
    Well,
    Failing,
}

/// Why a batch was not taken.
enum Trouble {
    /// Another try may help.
    Passing(String),
    /// The collector wants no such thing.
    Lasting(String),
}

impl Export {
    pub(super) fn new(
        endpoint: Address,
        spans: Receiver<Span>,
        waiting: Arc<AtomicUsize>,
        closing: CancellationToken,
    ) -> Self {
        Self { endpoint, clients: Clients::new(1), spans, waiting, closing, health: Health::Well }
    }

    /// Sends what comes. Returns when the tracer is gone, or is closing and nothing waits any more.
    pub(super) async fn run(mut self) {
        loop {
            let batch = self.gather().await;
            if batch.is_empty() {
                return;
            }
            self.export(&batch).await;
        }
    }

    /// The next batch; an empty one is the end. While the tracer is closing, nothing is waited for.
    async fn gather(&mut self) -> Vec<Span> {
        let Self { spans, closing, .. } = self;
        let mut batch = Vec::new();
        tokio::select! {
            biased;
            () = closing.cancelled() => {
                spans.close();
                spans.recv_many(&mut batch, BATCH).await;
                return batch;
            }
            _ = spans.recv_many(&mut batch, BATCH) => {}
        }
        let mut enough = pin!(sleep(GATHER));
        while !batch.is_empty() && batch.len() < BATCH {
            let room = BATCH - batch.len();
            tokio::select! {
                more = spans.recv_many(&mut batch, room) => if more == 0 { break },
                () = &mut enough => break,
                () = closing.cancelled() => break,
            }
        }
        batch
    }

    async fn export(&mut self, batch: &[Span]) {
        let body = Bytes::from(wire::request(batch));
        let mut result = self.post(body.clone()).await;
        if let Err(Trouble::Passing(_)) = result {
            // Nobody waits for a moment while everything ends.
            drop(timeout(AGAIN, self.closing.cancelled()).await);
            result = self.post(body).await;
        }
        let (lost, trouble) = match result {
            Ok(rejected) => (rejected.min(batch.len()), None),
            Err(Trouble::Passing(why) | Trouble::Lasting(why)) => (batch.len(), Some(why)),
        };
        if lost > 0 {
            SpansDropped::Export.emit(lost);
        }
        self.tell(trouble);
        self.waiting.fetch_sub(batch.len(), Ordering::Relaxed);
    }

    /// Sends a request once. Returns how many of its spans were refused.
    async fn post(&self, body: Bytes) -> Result<usize, Trouble> {
        let asked = async {
            let url = self.endpoint.url();
            let client =
                self.clients.of_url(url).await.map_err(|error| Trouble::Lasting(error.to_string()))?;
            let request = client.post(url.clone()).header(CONTENT_TYPE, "application/json").body(body);
            let response = request.send().await.map_err(unreached)?;
            match response.status() {
                status if status.is_success() => Ok(wire::rejected(&beginning(response).await?)),
                status if is_passing(status) => Err(Trouble::Passing(format!("it answered {status}"))),
                status => Err(Trouble::Lasting(format!("it answered {status}"))),
            }
        };
        let late = || Trouble::Passing(format!("it did not answer within {PATIENCE:?}"));
        timeout(PATIENCE, asked).await.unwrap_or_else(|_| Err(late()))
    }

    /// Has the log say when exports begin to fail, and when they work again.
    fn tell(&mut self, trouble: Option<String>) {
        match (self.health, trouble) {
            (Health::Well, Some(why)) => {
                tracing::warn!(why, "traces are lost: the collector does not take them");
                self.health = Health::Failing;
            }
            (Health::Failing, None) => {
                tracing::info!("the collector takes traces again");
                self.health = Health::Well;
            }
            (Health::Well, None) | (Health::Failing, Some(_)) => {}
        }
    }
}

/// Those that the protocol names.
fn is_passing(status: StatusCode) -> bool {
    matches!(status.as_u16(), 429 | 502..=504)
}

/// The address is left out: its query may hold a key.
fn unreached(error: reqwest::Error) -> Trouble {
    let error = error.without_url();
    let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default();
    Trouble::Passing(format!("{error}{cause}"))
}

/// The beginning of an answer.
async fn beginning(mut response: Response) -> Result<Vec<u8>, Trouble> {
    let mut answer = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(unreached)? {
        answer.extend_from_slice(&chunk);
        if answer.len() > LONGEST_ANSWER {
            break;
        }
    }
    Ok(answer)
}
