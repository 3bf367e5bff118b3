//! `relay --url`: passes an agent's event to nodes behind a balancer, or to one daemon elsewhere.
//!
//! A balancer reads no bodies: each request says beside its event which run it is of and which id it has.

use std::{
    hash::{BuildHasher, RandomState},
    path::PathBuf,
    process,
    time::Duration,
};

use clap::Args;
use reqwest::{
    Client, Response, Url,
    header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION, RETRY_AFTER},
};
use tokio::{
    runtime,
    time::{Instant, sleep, timeout},
};

use crate::{
    config::read_sent_token,
    daemon::{ClientError, ClientResponse, ProcessAnswer, Retry, percent_encoded},
    dialect,
    handler::{
        command::TRACEPARENT,
        http_client::{BodyError, HttpClients, read_whole, with_causes},
    },
    model::{Address, Approval, DialectName, WorkspaceId},
};

/// The largest answer, in bytes.
const MAX_ANSWER_BYTES: usize = 64 << 20;

/// The pause before the second attempt. It doubles with each further one.
const FIRST_PAUSE: Duration = Duration::from_millis(50);

/// The longest pause that doubling leads to.
const MAX_PAUSE: Duration = Duration::from_millis(800);

/// The path of events on every server.
const EVENTS: &str = "/v1/events";

/// Headers of requests and answers, as docs/hosts.md has them.
const RUN: &str = "x-hookyard-run";
const EVENT_ID: &str = "x-hookyard-event-id";
const WORKSPACE: &str = "x-hookyard-workspace";
const RETRY: &str = "x-hookyard-retry";

/// Statuses of balancers that have no node, or lost one. With the id of its event, a request may be sent again after each.
const OF_BALANCERS: [u16; 3] = [502, 503, 504];

/// Where events go in place of the socket.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub(super) struct RemoteFlags {
    /// Send the event to this server, a balancer before nodes or a daemon elsewhere, in place of the socket: `https://…`, or
    /// `http://…` on this machine
    #[arg(long, value_name = "URL", value_parser = server_url, requires = "workspace", conflicts_with_all = ["socket", "start", "adopted"])]
    pub(super) url: Option<Address>,

    /// File with the bearer token for the server of `--url`; its mode must be 0600
    #[arg(long, value_name = "FILE", requires = "url")]
    token_file: Option<PathBuf>,

    /// Workspace of the event on that server, by its id: directories of this machine say nothing there
    #[arg(long, value_name = "ID", value_parser = workspace, requires = "url")]
    workspace: Option<WorkspaceId>,
}

/// Why there is no answer of a server.
#[derive(Debug, thiserror::Error)]
pub(super) enum RemoteError {
    #[error("the token file {} {why}; nothing was sent", file.display())]
    Token { file: PathBuf, why: String },
    #[error("nothing was sent to {server}: {why}")]
    NotSent { server: String, why: String },
    #[error("{server} was not reached: {why}")]
    Unreached { server: String, why: String },
    #[error("{server} did not answer: {why}")]
    Broken { server: String, why: String },
    #[error("{server} did not answer within {within:?}")]
    Late { server: String, within: Duration },
    #[error("{server} answered {status}{why}")]
    Refused { server: String, status: u16, why: String },
    #[error("{server} sent no answer of hookyard: {why}")]
    Unreadable { server: String, why: String },
}

/// Reads the address of a server.
fn server_url(text: &str) -> Result<Address, String> {
    let address = Address::parse(text).map_err(|error| match error {
        crate::model::AddressError::Password => format!("{error}; use `--token-file`"),
        error => format!("{error}; {}", error.help()),
    })?;
    let url = address.url();
    if address.socket().is_some() {
        return Err("name a socket with `--socket`".to_owned());
    }
    if !address.is_safe_on_the_way() {
        return Err("use `https://`: over `http://`, events are sent to this machine only".to_owned());
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err("leave out what follows `?` or `#`".to_owned());
    }
    if url.path().contains(EVENTS) {
        return Err(format!("leave out `{EVENTS}`, which is added"));
    }
    Ok(address)
}

fn workspace(text: &str) -> Result<WorkspaceId, String> {
    WorkspaceId::new(text).map_err(|error| format!("it {error}"))
}

/// A server with what each request to it says.
struct RemoteDaemon {
    server: String,
    client: Client,
    url: Url,
    headers: HeaderMap,
}

/// How long an event may take: all of it, and how long it is sent again.
#[derive(Debug, Clone, Copy)]
pub(super) struct RemoteTimes {
    pub(super) timeout: Duration,
    pub(super) wait: Duration,
}

impl RemoteFlags {
    /// Sends an event to a server, again and again while its answers or the lack of them permit that.
    ///
    /// Returns an error if there is no answer of a daemon.
    pub(super) fn ask(
        &self,
        address: &Address,
        (dialect, event): (DialectName, &[u8]),
        times: RemoteTimes,
    ) -> Result<ProcessAnswer, RemoteError> {
        let server = address.server();
        let not_sent = |why: String| RemoteError::NotSent { server: server.clone(), why };
        let headers = self.headers(dialect, event)?;
        let runtime = runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| not_sent(crate::model::io_reason(&error)))?;
        let mut earlier = None;
        let asking = async {
            let client = HttpClients::new(1).of_url(&Approval::of_settings(), address.url()).await;
            let client = client.map_err(|error| not_sent(error.to_string()))?;
            let url = events_url(address, dialect);
            let daemon = RemoteDaemon { server: server.clone(), client, url, headers };
            daemon.ask(event, times.wait, &mut earlier).await
        };
        let late = || Err(RemoteError::Late { server: server.clone(), within: times.timeout });
        // The timeout needs the runtime that it is made in.
        let asked = runtime.block_on(async { timeout(times.timeout, asking).await });
        // A name that is still looked up holds nobody up.
        runtime.shutdown_background();
        match asked.unwrap_or_else(|_| late()) {
            // What an earlier attempt was answered is a verdict, too.
            Err(error) => earlier.ok_or(error),
            answer => answer,
        }
    }

    /// What requests of an event say. Attempts say the same, so that a node and a balancer know it again.
    fn headers(&self, dialect: DialectName, event: &[u8]) -> Result<HeaderMap, RemoteError> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(file) = &self.token_file {
            let unusable = |why: String| RemoteError::Token { file: file.clone(), why };
            let token = read_sent_token(file).map_err(unusable)?;
            let value = HeaderValue::try_from(format!("Bearer {token}"));
            let mut value = value.map_err(|_| unusable("is no token".to_owned()))?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        let read = dialect::named(dialect).read_event(event).ok();
        let fresh = fresh_id();
        let run = read.as_ref().map(|event| match dialect {
            DialectName::Canonical => event.run_id.as_str(),
            _ => event.session_id.as_str(),
        });
        let id = read.as_ref().and_then(|event| event.id.as_ref());
        let workspace = self.workspace.as_ref().map(WorkspaceId::as_str);
        // An event that cannot be read goes to any node, which blocks it where a hook fails closed.
        let said = [
            (RUN, Some(run.unwrap_or(&fresh))),
            (EVENT_ID, Some(id.map_or(fresh.as_str(), |id| id.as_str()))),
            (WORKSPACE, workspace),
        ];
        for (name, text) in said {
            // Of ASCII letters, digits and signs only.
            if let Some(Ok(value)) = text.map(|text| HeaderValue::try_from(percent_encoded(text))) {
                headers.insert(name, value);
            }
        }
        let trace = std::env::var(TRACEPARENT).ok().and_then(|trace| HeaderValue::try_from(trace).ok());
        headers.extend(trace.map(|trace| (reqwest::header::HeaderName::from_static("traceparent"), trace)));
        Ok(headers)
    }
}

impl RemoteDaemon {
    /// Sends an event until there is an answer that stays, or `wait` is over. The last answer that is a verdict is put into
    /// `earlier`, also where it may change.
    async fn ask(
        &self,
        event: &[u8],
        wait: Duration,
        earlier: &mut Option<ProcessAnswer>,
    ) -> Result<ProcessAnswer, RemoteError> {
        let deadline = Instant::now() + wait;
        let mut pause = FIRST_PAUSE;
        loop {
            let sent = self.send(event).await;
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() || !may_send_again(&sent) {
                return sent.and_then(|response| self.read(&response));
            }
            if let Ok(response) = &sent
                && let Ok(answer) = self.read(response)
            {
                *earlier = Some(answer);
            }
            sleep(pause.max(retry_after(&sent)).min(left)).await;
            pause = (pause * 2).min(MAX_PAUSE);
        }
    }

    async fn send(&self, event: &[u8]) -> Result<ClientResponse, RemoteError> {
        let request = self.client.post(self.url.clone()).headers(self.headers.clone()).body(event.to_vec());
        let response = request.send().await.map_err(|error| self.failed(error))?;
        let status = response.status().as_u16();
        let headers = response.headers().iter();
        let headers = headers
            .filter_map(|(name, value)| Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned())));
        let headers = headers.collect();
        Ok(ClientResponse { status, headers, body: self.body(response).await? })
    }

    async fn body(&self, mut response: Response) -> Result<Vec<u8>, RemoteError> {
        read_whole(&mut response, MAX_ANSWER_BYTES).await.map(Vec::from).map_err(|error| match error {
            BodyError::TooLarge => self.unreadable(&format!("it has more than {MAX_ANSWER_BYTES} bytes")),
            BodyError::Broken(error) => self.failed(error),
        })
    }

    /// The verdict that is in a response.
    fn read(&self, response: &ClientResponse) -> Result<ProcessAnswer, RemoteError> {
        if response.status == 200 {
            return serde_json::from_slice(&response.body).map_err(|error| self.unreadable(&error));
        }
        let why = match response.error_response() {
            ClientError::Refused { code, message, hint, .. } if !code.is_empty() => {
                format!(" {code}: {message}; {hint}")
            }
            _ if response.header(LOCATION.as_str()).is_some() => {
                "; redirects are not followed: name the address that it leads to".to_owned()
            }
            _ => ", and not as hookyard does".to_owned(),
        };
        Err(RemoteError::Refused { server: self.server.clone(), status: response.status, why })
    }

    fn failed(&self, error: reqwest::Error) -> RemoteError {
        let (server, is_connect) = (self.server.clone(), error.is_connect());
        let why = with_causes(&error.without_url());
        if is_connect { RemoteError::Unreached { server, why } } else { RemoteError::Broken { server, why } }
    }

    fn unreadable(&self, why: &dyn std::fmt::Display) -> RemoteError {
        RemoteError::Unreadable { server: self.server.clone(), why: why.to_string() }
    }
}

/// Where events of a dialect go.
fn events_url(address: &Address, dialect: DialectName) -> Url {
    let mut url = address.url().clone();
    let path = format!("{}{EVENTS}/{dialect}", url.path().trim_end_matches('/'));
    url.set_path(&path);
    url.set_query(Some("as=process"));
    url
}

/// Whether an event may be sent once more. It has an id, so that a node knows it again if it has judged it already.
fn may_send_again(sent: &Result<ClientResponse, RemoteError>) -> bool {
    match sent {
        Ok(response) => match retry_word(response) {
            Some(word) => word != Retry::Never,
            None => OF_BALANCERS.contains(&response.status),
        },
        Err(error) => matches!(error, RemoteError::Unreached { .. } | RemoteError::Broken { .. }),
    }
}

/// What a daemon says about sending an event again.
fn retry_word(response: &ClientResponse) -> Option<Retry> {
    match response.header(RETRY) {
        Some("safe") => Some(Retry::Safe),
        Some("may_repeat") => Some(Retry::MayRepeat),
        Some(_) => Some(Retry::Never),
        None => match response.error_response() {
            ClientError::Refused { retry, .. } => retry,
            _ => None,
        },
    }
}

/// How long a daemon wants to be left alone.
fn retry_after(sent: &Result<ClientResponse, RemoteError>) -> Duration {
    let after = sent.as_ref().ok().and_then(|response| response.header(RETRY_AFTER.as_str())?.parse().ok());
    Duration::from_secs(after.unwrap_or(0))
}

/// An id that no other event has.
fn fresh_id() -> String {
    let word = |salt: u8| RandomState::new().hash_one((process::id(), salt));
    format!("{:016x}{:016x}", word(0), word(1))
}
