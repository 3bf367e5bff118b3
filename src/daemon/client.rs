//! How a program of this machine asks a daemon over its Unix socket, without a runtime: a connection, a request, an
//! answer. Refuses to keep anything between two requests.

use std::{
    io::{self, Read, Write},
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    time::Duration,
};

use serde::{Deserialize, de::DeserializeOwned};

use crate::model::TraceParent;

/// The longest answer that is read, in bytes.
const MAX_RESPONSE_BYTES: u64 = 64 << 20;

/// How many headers an answer may have.
pub(super) const MAX_HEADERS: usize = 32;

/// Asks a daemon.
#[derive(Debug, Clone)]
pub struct Client {
    socket: PathBuf,
    /// How long the daemon may say nothing; none for as long as it likes.
    timeout: Option<Duration>,
    trace: Option<TraceParent>,
}

/// What a daemon answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientResponse {
    /// The HTTP status.
    pub status: u16,
    /// What was said.
    pub body: Vec<u8>,
}

/// Why there is no answer, or not the one that was wanted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// Nobody listens there.
    #[error("no hookyard listens on {}: {source}", socket.display())]
    Down {
        /// The socket.
        socket: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The connection ended before the answer did, or it took too long.
    #[error("hookyard at {} did not answer: {source}", socket.display())]
    Broken {
        /// The socket.
        socket: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It answered, and that was a refusal.
    #[error("{message}")]
    Refused {
        /// The HTTP status.
        status: u16,
        /// What it said is wrong.
        message: String,
        /// What it said is to be done.
        hint: String,
    },
    /// It answered with something else than was asked for.
    #[error("hookyard at {} sent an invalid response: {why}", socket.display())]
    Unreadable {
        /// The socket.
        socket: PathBuf,
        /// What is wrong with it.
        why: String,
    },
}

#[derive(Deserialize)]
struct ErrorResponse {
    error: ErrorResponseText,
}

#[derive(Deserialize)]
struct ErrorResponseText {
    message: String,
    hint: String,
}

impl Client {
    /// A client of the daemon at a socket.
    pub fn new(socket: impl Into<PathBuf>) -> Self {
        Self { socket: socket.into(), timeout: None, trace: None }
    }

    /// Sends its requests within a trace.
    #[must_use]
    pub fn trace(self, trace: Option<TraceParent>) -> Self {
        Self { trace, ..self }
    }

    /// Gives up when the daemon says nothing for so long.
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Self {
        Self { timeout: Some(timeout), ..self }
    }

    /// The socket it asks at.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Asks for something, and reads the answer as JSON.
    ///
    /// Returns an error if there is none, or it is a refusal.
    pub fn ask<T: DeserializeOwned>(
        &self,
        method: &str,
        path: &str,
        body: Option<&[u8]>,
    ) -> Result<T, ClientError> {
        let response = self.send(method, path, body)?;
        if !(200..300).contains(&response.status) {
            return Err(response.error_response());
        }
        serde_json::from_slice(&response.body).map_err(|error| self.unreadable(&error))
    }

    /// Sends one request and reads the whole answer, whatever its status.
    ///
    /// Returns an error if there is none.
    pub fn send(&self, method: &str, path: &str, body: Option<&[u8]>) -> Result<ClientResponse, ClientError> {
        let broken = |source| self.broken(source);
        let mut stream = self.connect()?;
        let body = body.unwrap_or_default();
        let trace = self.trace.map(|trace| format!("traceparent: {trace}\r\n")).unwrap_or_default();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: hookyard\r\nconnection: close\r\n{trace}\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        let sent = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body));
        let mut bytes = Vec::new();
        // A daemon that refuses a request may do so before it has read all of it: its answer counts.
        let read = stream.take(MAX_RESPONSE_BYTES).read_to_end(&mut bytes);
        if bytes.is_empty() {
            sent.and(read).map_err(broken)?;
            return Err(broken(io::ErrorKind::UnexpectedEof.into()));
        }
        match (read, self.parse(&bytes)) {
            // So does one whose connection was reset behind it, since there was more of the request to come.
            (Err(error), Ok(response)) if error.kind() == io::ErrorKind::ConnectionReset => Ok(response),
            (Err(error), _) => Err(broken(error)),
            (Ok(_), response) => response,
        }
    }

    /// A connection whose silence is limited.
    pub(super) fn connect(&self) -> Result<UnixStream, ClientError> {
        let stream = UnixStream::connect(&self.socket)
            .map_err(|source| ClientError::Down { socket: self.socket.clone(), source })?;
        let limited =
            stream.set_read_timeout(self.timeout).and_then(|()| stream.set_write_timeout(self.timeout));
        limited.map_err(|source| self.broken(source))?;
        Ok(stream)
    }

    fn parse(&self, bytes: &[u8]) -> Result<ClientResponse, ClientError> {
        let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
        let mut response = httparse::Response::new(&mut headers);
        let parsed = response.parse(bytes).map_err(|error| self.unreadable(&error))?;
        let (httparse::Status::Complete(head), Some(status)) = (parsed, response.code) else {
            return Err(self.unreadable(&"its head is not whole"));
        };
        let length =
            response.headers.iter().find(|header| header.name.eq_ignore_ascii_case("content-length"));
        let length = length.and_then(|header| str::from_utf8(header.value).ok()?.parse::<usize>().ok());
        let body = &bytes[head..];
        match length {
            Some(length) if body.len() < length => Err(self.unreadable(&"its body is not whole")),
            Some(length) => Ok(ClientResponse { status, body: body[..length].to_vec() }),
            None => Ok(ClientResponse { status, body: body.to_vec() }),
        }
    }

    pub(super) fn broken(&self, source: io::Error) -> ClientError {
        ClientError::Broken { socket: self.socket.clone(), source }
    }

    pub(super) fn unreadable(&self, why: &dyn std::fmt::Display) -> ClientError {
        ClientError::Unreadable { socket: self.socket.clone(), why: why.to_string() }
    }
}

impl ClientResponse {
    /// The answer as the refusal that its status says it is.
    pub fn error_response(&self) -> ClientError {
        let status = self.status;
        match serde_json::from_slice::<ErrorResponse>(&self.body) {
            Ok(ErrorResponse { error: ErrorResponseText { message, hint } }) => {
                ClientError::Refused { status, message, hint }
            }
            Err(_) => ClientError::Refused {
                status,
                message: format!("hookyard answered with status {status}"),
                hint: "look at its log".to_owned(),
            },
        }
    }
}
