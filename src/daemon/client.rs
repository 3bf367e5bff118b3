//! A blocking client of the daemon's Unix socket. Each request uses a connection of its own.

#[cfg(feature = "cli")]
use std::collections::BTreeMap;
use std::{
    io::{self, Write},
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    time::Duration,
};

use serde::{Deserialize, de::DeserializeOwned};

use super::{
    error::Retry,
    exchange::{Exchange, MAX_HEADERS, read_response},
    server_identity::{self, ServerIdentityError},
};
use crate::model::TraceParent;

/// The longest body that is sent in one piece with its head, in bytes.
const ONE_PIECE_BYTES: usize = 64 << 10;

/// The header with the mark of a process inside a hook.
pub(super) const HOOK_MARK: &str = "hookyard-hook";

/// The header with the variables that an agent gives its hooks: a JSON object of texts.
pub(super) const ENVIRONMENT: &str = "hookyard-environment";

/// The longest value of a variable of an agent, in bytes.
const LONGEST_VARIABLE: usize = 4096;

/// Whether a value fits into a header and an environment.
pub(super) fn is_variable(value: &str) -> bool {
    value.len() <= LONGEST_VARIABLE && !value.contains(char::is_control)
}

/// The header with the project of the agent's session that an event is from.
pub(super) const PROJECT: &str = "hookyard-project";

/// The header that says who runs the hooks of the agent's own settings in the session that an event is from.
pub(super) const HOOKS: &str = "hookyard-hooks";

/// The agent does.
pub(super) const KEPT: &str = "kept";

/// A blocking client of a daemon.
#[derive(Debug, Clone)]
pub struct Client {
    socket: PathBuf,
    /// How long a read or a write may block; none for no limit.
    timeout: Option<Duration>,
    trace: Option<TraceParent>,
    hook_mark: Option<String>,
    /// Variables of an agent, as JSON.
    environment: Option<String>,
    project: Option<String>,
    keeps_hooks: bool,
}

/// The response of a daemon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientResponse {
    /// The HTTP status.
    pub status: u16,
    /// The headers, with names in lower case. A value that is not UTF-8 is left out.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// No daemon listens on the socket.
    #[error("no hookyard listens on {}: {}", socket.display(), crate::model::io_reason(source))]
    Down {
        /// The socket.
        socket: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The socket is not that of this user, of root, or of a user for whom root has provided its directory. Nothing was
    /// sent.
    #[error("the socket {} {why}; nothing was sent to it", socket.display())]
    Untrusted {
        /// The socket.
        socket: PathBuf,
        /// Whose it is.
        why: String,
    },
    /// The connection ended before the response did, or a read or write timed out.
    #[error("hookyard at {} did not answer: {}", socket.display(), crate::model::io_reason(source))]
    Broken {
        /// The socket.
        socket: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The daemon answered with an error.
    #[error("{message}")]
    Refused {
        /// The HTTP status.
        status: u16,
        /// The stable word for the error; empty if the response has none.
        code: String,
        /// Whether to send the request again, if the response says so.
        retry: Option<Retry>,
        /// What is wrong.
        message: String,
        /// What to do.
        hint: String,
    },
    /// The response is not HTTP, or its body is not what was asked for.
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
    #[serde(default)]
    code: String,
    #[serde(default)]
    retry: Option<Retry>,
    message: String,
    hint: String,
}

impl Client {
    /// A client of the daemon at a socket.
    pub fn new(socket: impl Into<PathBuf>) -> Self {
        Self {
            socket: socket.into(),
            timeout: None,
            trace: None,
            hook_mark: None,
            environment: None,
            project: None,
            keeps_hooks: false,
        }
    }

    /// Sends the requests in this trace context.
    #[must_use]
    pub fn trace(self, trace: Option<TraceParent>) -> Self {
        Self { trace, ..self }
    }

    /// Sends the requests as a process inside a hook, by the mark of its environment.
    #[must_use]
    #[cfg(feature = "cli")]
    pub(crate) fn hook_mark(self, mark: Option<String>) -> Self {
        // A value that is no header would end the request's head.
        let mark = mark.filter(|mark| mark.bytes().all(|byte| byte.is_ascii_graphic()));
        Self { hook_mark: mark, ..self }
    }

    /// Sends these variables of an agent with its events.
    #[must_use]
    #[cfg(feature = "cli")]
    pub(crate) fn environment(self, variables: &BTreeMap<&str, String>) -> Self {
        let usable: BTreeMap<_, _> = variables.iter().filter(|(_, value)| is_variable(value)).collect();
        let environment = serde_json::to_string(&usable).ok().filter(|_| !usable.is_empty());
        Self { environment, ..self }
    }

    /// Sends the requests of a session whose project is this directory.
    #[must_use]
    #[cfg(feature = "cli")]
    pub(crate) fn project(self, project: Option<String>) -> Self {
        // A value that is no header would end the request's head.
        Self { project: project.filter(|project| !project.chars().any(char::is_control)), ..self }
    }

    /// Sends the requests of a session whose agent runs the hooks of its own settings itself, or does not.
    #[must_use]
    #[cfg(feature = "cli")]
    pub(crate) fn keeps_hooks(self, keeps_hooks: bool) -> Self {
        Self { keeps_hooks, ..self }
    }

    /// Limits how long a read or a write may block.
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Self {
        Self { timeout: Some(timeout), ..self }
    }

    /// The path of the socket.
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Sends a request and deserializes the JSON of its response.
    ///
    /// Returns an error if there is no response, its status is not 2xx, or its body is invalid.
    pub fn ask<T: DeserializeOwned>(
        &self,
        method: &str,
        path: &str,
        body: Option<&[u8]>,
    ) -> Result<T, ClientError> {
        let response = self.send(method, path, body)?;
        self.read(&response)
    }

    /// Deserializes the JSON of a response.
    ///
    /// Returns an error if its status is not 2xx, or its body is invalid.
    pub(crate) fn read<T: DeserializeOwned>(&self, response: &ClientResponse) -> Result<T, ClientError> {
        if !(200..300).contains(&response.status) {
            return Err(response.error_response());
        }
        serde_json::from_slice(&response.body).map_err(|error| self.unreadable(&error))
    }

    /// Sends a request and reads the whole response, whatever its status.
    ///
    /// Returns an error if there is none.
    pub fn send(&self, method: &str, path: &str, body: Option<&[u8]>) -> Result<ClientResponse, ClientError> {
        self.response(self.exchange(method, path, body)?)
    }

    /// Sends a request, and takes what comes back as it is.
    ///
    /// Returns an error if nothing was sent.
    pub(crate) fn exchange(
        &self,
        method: &str,
        path: &str,
        body: Option<&[u8]>,
    ) -> Result<Exchange, ClientError> {
        let mut stream = self.connect()?;
        let body = body.unwrap_or_default();
        let trace = self.trace.map(|trace| format!("traceparent: {trace}\r\n")).unwrap_or_default();
        let mark = self.hook_mark.as_ref().map(|mark| format!("{HOOK_MARK}: {mark}\r\n")).unwrap_or_default();
        let environment = self.environment.as_ref();
        let environment = environment.map(|text| format!("{ENVIRONMENT}: {text}\r\n")).unwrap_or_default();
        let project =
            self.project.as_ref().map(|project| format!("{PROJECT}: {project}\r\n")).unwrap_or_default();
        let hooks = if self.keeps_hooks { format!("{HOOKS}: {KEPT}\r\n") } else { String::new() };
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: hookyard\r\nconnection: close\r\n{trace}{mark}{environment}{project}{hooks}\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        let sent = if body.len() <= ONE_PIECE_BYTES {
            // So that the daemon wakes up once.
            stream.write_all(&[head.as_bytes(), body].concat())
        } else {
            stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body))
        };
        // The daemon may answer before it has read the whole request: a failed write does not matter then.
        let mut bytes = Vec::new();
        let read = read_response(&mut stream, &mut bytes);
        Ok(Exchange { sent, read, bytes })
    }

    /// Reads what came back of a request.
    ///
    /// Returns an error if it is no response.
    pub(crate) fn response(&self, exchange: Exchange) -> Result<ClientResponse, ClientError> {
        let broken = |source| self.broken(source);
        let Exchange { sent, read, bytes } = exchange;
        if bytes.is_empty() {
            sent.and(read).map_err(broken)?;
            return Err(broken(io::ErrorKind::UnexpectedEof.into()));
        }
        match (read, self.parse(&bytes)) {
            // A response counts even if the connection was reset behind it, because the request was not read to its end.
            (Err(error), Ok(response)) if error.kind() == io::ErrorKind::ConnectionReset => Ok(response),
            (Err(error), _) => Err(broken(error)),
            (Ok(()), response) => response,
        }
    }

    /// Connects with the timeouts of this client, and checks whose daemon it is.
    pub(crate) fn connect(&self) -> Result<UnixStream, ClientError> {
        // Before the connection: a program of another user could leave it waiting.
        let provided = server_identity::check_path(&self.socket).map_err(|error| self.untrusted(error))?;
        let stream = UnixStream::connect(&self.socket).map_err(|source| self.down(source))?;
        server_identity::check_process(&stream, provided).map_err(|error| self.untrusted(error))?;
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
            return Err(self.unreadable(&"its head is incomplete"));
        };
        let length =
            response.headers.iter().find(|header| header.name.eq_ignore_ascii_case("content-length"));
        let length = length.and_then(|header| str::from_utf8(header.value).ok()?.parse::<usize>().ok());
        let headers = response.headers.iter().filter_map(|header| {
            let value = str::from_utf8(header.value).ok()?;
            Some((header.name.to_ascii_lowercase(), value.to_owned()))
        });
        let headers = headers.collect();
        let body = &bytes[head..];
        match length {
            Some(length) if body.len() < length => Err(self.unreadable(&"its body is incomplete")),
            Some(length) => Ok(ClientResponse { status, headers, body: body[..length].to_vec() }),
            None => Ok(ClientResponse { status, headers, body: body.to_vec() }),
        }
    }

    fn down(&self, source: io::Error) -> ClientError {
        ClientError::Down { socket: self.socket.clone(), source }
    }

    fn untrusted(&self, error: ServerIdentityError) -> ClientError {
        match error {
            ServerIdentityError::Untrusted(why) => {
                ClientError::Untrusted { socket: self.socket.clone(), why }
            }
            ServerIdentityError::System(source) => self.down(source),
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
    /// The value of a header, by its name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// This response as the error that its status says it is.
    pub fn error_response(&self) -> ClientError {
        let status = self.status;
        match serde_json::from_slice::<ErrorResponse>(&self.body) {
            Ok(ErrorResponse { error: ErrorResponseText { code, retry, message, hint } }) => {
                ClientError::Refused { status, code, retry, message, hint }
            }
            Err(_) => ClientError::Refused {
                status,
                code: String::new(),
                retry: None,
                message: format!("hookyard answered with status {status}"),
                hint: "see its log".to_owned(),
            },
        }
    }
}
