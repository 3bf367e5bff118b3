//! A connection to a daemon that is kept: events over HTTP/1.1, one after the other.

use std::{io, ops::Range, sync::Arc, time::Duration};

use serde::Deserialize;
use tokio::time::sleep;

use super::{
    super::{
        answer::{AnswerResult, BenchAnswer},
        events::BenchEvent,
    },
    address::{DaemonAddress, DaemonToken},
    gone::TargetGone,
    stream::DaemonStream,
    usage::TargetUsage,
};
use crate::{
    daemon::MAX_HEADERS,
    model::{DialectName, EventKind},
};

/// The largest response, in bytes.
pub(super) const LARGEST_RESPONSE: usize = 64 << 20;

/// Before a daemon counts as gone, it is tried again after this: one that is replaced keeps its listeners.
pub(super) const SECOND_TRY: Duration = Duration::from_millis(100);

/// The word of a daemon that has too much to do.
pub(super) const OVERLOADED: &str = "overloaded";

/// A daemon, and how requests reach it.
#[derive(Debug, Clone)]
pub(in super::super) struct DaemonTarget {
    address: Arc<DaemonAddress>,
    token: Option<DaemonToken>,
}

/// One connection, which is made again if it breaks.
#[derive(Debug)]
pub(in super::super) struct DaemonConnection {
    target: DaemonTarget,
    stream: Option<DaemonStream>,
    request: Vec<u8>,
    response: Vec<u8>,
}

/// The head of a whole response, and where its body is.
#[derive(Debug)]
struct WholeResponse {
    status: u16,
    body: Range<usize>,
}

#[derive(Deserialize)]
struct RefusalJson {
    error: RefusalCode,
}

#[derive(Deserialize)]
struct RefusalCode {
    code: String,
    #[serde(default)]
    message: String,
}

/// What a daemon says of itself.
#[derive(Debug, Deserialize)]
pub(in super::super) struct DaemonVersion {
    pub(in super::super) version: String,
}

impl DaemonTarget {
    pub(in super::super) fn new(address: DaemonAddress, token: Option<DaemonToken>) -> Self {
        Self { address: Arc::new(address), token }
    }

    /// The same requests to nobody.
    pub(super) fn null(&self) -> Self {
        Self { address: Arc::new(DaemonAddress::Null), token: self.token.clone() }
    }

    pub(super) fn name(&self) -> String {
        self.address.name()
    }

    pub(super) async fn connect(&self) -> Result<DaemonConnection, TargetGone> {
        let stream = Some(self.address.connect().await?);
        Ok(DaemonConnection { target: self.clone(), stream, request: Vec::new(), response: Vec::new() })
    }

    /// The version of the daemon.
    ///
    /// Returns why it does not answer, or refuses to.
    pub(in super::super) async fn version(&self) -> Result<String, TargetGone> {
        let mut connection = self.connect().await?;
        let name = self.name();
        let response = connection.ask("/v1/status").await;
        let response = response.map_err(|error| TargetGone(format!("{name} did not answer: {error}")))?;
        let body = &connection.response[response.body];
        if response.status != 200 {
            let why = serde_json::from_slice::<RefusalJson>(body).map(|refusal| refusal.error.message);
            let why = why.unwrap_or_else(|_| format!("status {}", response.status));
            return Err(TargetGone(format!("{name} refuses: {why}")));
        }
        let read = serde_json::from_slice::<DaemonVersion>(body);
        read.map(|status| status.version).map_err(|_| TargetGone(format!("{name} is no hookyard")))
    }

    /// What it has used so far; nothing of it if it does not say.
    pub(super) async fn usage(&self) -> TargetUsage {
        let Ok(mut connection) = self.connect().await else { return TargetUsage::default() };
        match connection.ask("/metrics").await {
            Ok(response) if response.status == 200 => {
                TargetUsage::of_metrics(&String::from_utf8_lossy(&connection.response[response.body]))
            }
            _ => TargetUsage::default(),
        }
    }
}

impl DaemonConnection {
    pub(super) async fn send(&mut self, event: &BenchEvent) -> Result<BenchAnswer, TargetGone> {
        if self.stream.as_ref().is_none_or(DaemonStream::has_ended) {
            self.stream = Some(self.connect_again().await?);
        }
        let is_canonical = event.dialect == DialectName::Canonical;
        let path = if is_canonical { String::new() } else { format!("/{}", event.dialect) };
        self.write_head("POST", &format!("/v1/events{path}"), event.json.len());
        self.request.extend_from_slice(&event.json);
        let Ok(response) = self.exchange().await else {
            self.hang_up();
            return Ok(BenchAnswer::of(AnswerResult::Broken));
        };
        Ok(self.answer(event.kind, is_canonical, &response))
    }

    pub(super) fn hang_up(&mut self) {
        self.stream = None;
    }

    async fn connect_again(&self) -> Result<DaemonStream, TargetGone> {
        if let Ok(stream) = self.target.address.connect().await {
            return Ok(stream);
        }
        sleep(SECOND_TRY).await;
        self.target.address.connect().await
    }

    async fn ask(&mut self, path: &str) -> io::Result<WholeResponse> {
        self.write_head("GET", path, 0);
        self.exchange().await
    }

    fn write_head(&mut self, method: &str, path: &str, length: usize) {
        let host = self.target.address.host();
        let token = self.target.token.as_ref().map(DaemonToken::header).unwrap_or_default();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: {host}\r\n{token}content-type: application/json\r\ncontent-length: {length}\r\n\r\n"
        );
        self.request.clear();
        self.request.extend_from_slice(head.as_bytes());
    }

    /// Sends the request and reads the whole response.
    async fn exchange(&mut self) -> io::Result<WholeResponse> {
        let Some(stream) = &mut self.stream else { return Err(io::ErrorKind::NotConnected.into()) };
        stream.write_all(&self.request).await?;
        self.response.clear();
        loop {
            if stream.read(&mut self.response).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            if let Some(response) = whole_response(&self.response)? {
                return Ok(response);
            }
            if self.response.len() > LARGEST_RESPONSE {
                return Err(io::ErrorKind::FileTooLarge.into());
            }
        }
    }

    fn answer(&self, kind: EventKind, is_canonical: bool, response: &WholeResponse) -> BenchAnswer {
        let body = &self.response[response.body.clone()];
        match response.status {
            200..300 if is_canonical => BenchAnswer::of_json(kind, body)
                .unwrap_or_else(|| BenchAnswer::of(AnswerResult::Refused("unreadable_answer".to_owned()))),
            200..300 => BenchAnswer::of(AnswerResult::Outcome(None)),
            status => {
                let code = serde_json::from_slice::<RefusalJson>(body).map(|refusal| refusal.error.code);
                BenchAnswer::of(match code {
                    Ok(code) if code == OVERLOADED => AnswerResult::Shed,
                    Ok(code) => AnswerResult::Refused(code),
                    Err(_) => AnswerResult::Refused(format!("status_{status}")),
                })
            }
        }
    }
}

/// The response in these bytes, once all of it is there.
///
/// Returns an error if it is none, or does not say how long it is.
fn whole_response(bytes: &[u8]) -> io::Result<Option<WholeResponse>> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut response = httparse::Response::new(&mut headers);
    let parsed = response.parse(bytes).map_err(io::Error::other)?;
    let (httparse::Status::Complete(head), Some(status)) = (parsed, response.code) else { return Ok(None) };
    let length = response.headers.iter().find(|header| header.name.eq_ignore_ascii_case("content-length"));
    let length = length.and_then(|header| str::from_utf8(header.value).ok()?.parse::<usize>().ok());
    let length = length.ok_or_else(|| io::Error::other("the response does not say how long it is"))?;
    let end = head.saturating_add(length);
    Ok((bytes.len() >= end).then_some(WholeResponse { status, body: head..end }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connection() -> DaemonConnection {
        let target = DaemonTarget::new(DaemonAddress::Null, None);
        DaemonConnection { target, stream: None, request: Vec::new(), response: Vec::new() }
    }

    #[test]
    fn a_response_is_whole_once_its_body_is() {
        let text = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 5\r\n\r\nhello";
        for end in 0..text.len() {
            assert!(whole_response(&text[..end]).unwrap().is_none(), "{end}");
        }
        let response = whole_response(text).unwrap().unwrap();
        assert_eq!((response.status, &text[response.body]), (503, &b"hello"[..]));
        assert!(whole_response(b"HTTP/1.1 200 OK\r\n\r\n").is_err());
        assert!(whole_response(b"nonsense").is_err());
    }

    #[test]
    fn refusals_are_told_apart() {
        for (status, body, word) in [
            (503, r#"{"error":{"code":"overloaded","message":"m"}}"#, "shed"),
            (404, r#"{"error":{"code":"no_workspace"}}"#, "no_workspace"),
            (502, "<html>", "status_502"),
            (200, "<html>", "unreadable_answer"),
        ] {
            let mut connection = connection();
            connection.response = body.as_bytes().to_vec();
            let response = WholeResponse { status, body: 0..body.len() };
            let answer = connection.answer(EventKind::RunFailed, true, &response);
            assert_eq!(answer.result.word(), word);
        }
    }

    #[tokio::test]
    async fn nobody_answers_every_event() {
        let target = DaemonTarget::new(DaemonAddress::Null, None);
        let mut connection = target.connect().await.unwrap();
        for length in [0, 10, 100_000] {
            let json = vec![b' '; length];
            let event = BenchEvent { kind: EventKind::RunFailed, dialect: DialectName::Canonical, json };
            assert!(connection.send(&event).await.unwrap().result.is_outcome(), "{length}");
        }
    }
}
