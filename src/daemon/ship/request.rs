//! One request to the server: what it carries, and what the answer means for the lines in it.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use reqwest::{
    Response, StatusCode,
    header::{AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, RETRY_AFTER},
};
use tokio::time::timeout;

use super::{body, spool::Batch};
use crate::{
    config::{self, ShipFormat, ShipSettings},
    daemon::gzip::gzip,
    handler::http_client::{HttpClients, with_causes},
    model::{Address, Approval},
};

/// How long a request may take, with its response.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// The most bytes of an answer that are read.
const LARGEST_ANSWER: usize = 64 << 10;

/// The header with the name of the daemon, and that with the place of the lines among all of it: the same lines have the
/// same place.
const NODE: &str = "x-hookyard-node";
const BATCH: &str = "x-hookyard-batch";

/// Sends lines.
#[derive(Debug)]
pub(super) struct LineSender {
    address: Address,
    format: ShipFormat,
    token_file: Option<PathBuf>,
    node: String,
    clients: HttpClients,
}

/// A request that can be sent.
pub(super) struct ShipRequest {
    token: Option<String>,
    /// Where its lines are among all.
    place: String,
    body: Vec<u8>,
}

/// What became of a batch.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum BatchResult {
    /// It has the lines, but for so many.
    Taken { refused: u64 },
    /// Its lines are too many or too large.
    TooLarge,
    /// It is sent again: why, and when at the earliest, if the server says so.
    Failed(String, Option<Duration>),
    /// There was no answer in time.
    Late(String),
}

impl LineSender {
    /// Sends to the server of the settings, if there is one.
    pub(super) fn new(settings: &ShipSettings, node: &str) -> Option<Self> {
        Some(Self {
            address: settings.url.clone()?,
            format: settings.format,
            token_file: settings.token_file.clone(),
            node: node.to_owned(),
            clients: HttpClients::new(1),
        })
    }

    /// The server as messages name it.
    pub(super) fn server(&self) -> String {
        self.address.server()
    }

    /// The request with a batch. Reads and computes.
    pub(super) fn prepare(&self, batch: &Batch) -> Result<ShipRequest, String> {
        let token = self.token_file.as_deref().map(read_token).transpose()?;
        let body = gzip(&body::write(self.format, &self.node, &batch.bytes));
        Ok(ShipRequest { token, place: batch.name.clone(), body })
    }

    /// Sends a request once.
    pub(super) async fn send(&self, request: ShipRequest) -> BatchResult {
        let late = || BatchResult::Late(format!("it did not answer within {REQUEST_TIMEOUT:?}"));
        timeout(REQUEST_TIMEOUT, self.post(request)).await.unwrap_or_else(|_| late())
    }

    async fn post(&self, ShipRequest { token, place, body }: ShipRequest) -> BatchResult {
        let url = self.address.url();
        let client = match self.clients.of_url(&Approval::of_settings(), url).await {
            Ok(client) => client,
            Err(error) => return BatchResult::Failed(error.to_string(), None),
        };
        let mut request = client.post(url.clone()).body(body);
        request =
            request.header(CONTENT_TYPE, body::content_type(self.format)).header(CONTENT_ENCODING, "gzip");
        request = request.header(NODE, &self.node).header(BATCH, place);
        if let Some(token) = token {
            request = request.header(AUTHORIZATION, token);
        }
        match request.send().await {
            Ok(response) => self.meaning(response).await,
            // Without the URL: its query may hold a key.
            Err(error) => BatchResult::Failed(with_causes(&error.without_url()), None),
        }
    }

    async fn meaning(&self, mut response: Response) -> BatchResult {
        match response.status() {
            status if status.is_success() && self.format == ShipFormat::Otlp => {
                let mut answer = Vec::new();
                while let Ok(Some(chunk)) = response.chunk().await
                    && answer.len() < LARGEST_ANSWER
                {
                    answer.extend_from_slice(&chunk);
                }
                BatchResult::Taken { refused: body::refused_records(&answer) }
            }
            status if status.is_success() => BatchResult::Taken { refused: 0 },
            StatusCode::PAYLOAD_TOO_LARGE => BatchResult::TooLarge,
            status => {
                let after = response.headers().get(RETRY_AFTER);
                let after = after.and_then(|value| value.to_str().ok()?.parse().ok());
                BatchResult::Failed(format!("it answered {status}"), after.map(Duration::from_secs))
            }
        }
    }
}

/// The header with the token of a file.
fn read_token(file: &Path) -> Result<String, String> {
    let token = config::read_sent_token(file);
    token
        .map(|token| format!("Bearer {token}"))
        .map_err(|why| format!("the token file {} {why}", file.display()))
}
