//! A connection whose bytes are written and read one by one.

use std::{
    io::{ErrorKind, Read, Write},
    net::TcpStream,
    os::unix::net::UnixStream,
    path::Path,
    time::{Duration, Instant},
};

use serde_json::Value;

use crate::support::daemon::Daemon;
use crate::support::wait::LONGEST_WAIT;

pub(crate) trait Stream: Read + Write + Send {}

impl<S: Read + Write + Send> Stream for S {}

/// One connection.
pub(crate) struct RawConnection {
    stream: Box<dyn Stream>,
    read: Vec<u8>,
}

/// One answer on it.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl RawConnection {
    pub(crate) fn unix(daemon: &Daemon) -> Self {
        Self::unix_at(daemon.socket())
    }

    pub(crate) fn unix_at(socket: &Path) -> Self {
        let stream = UnixStream::connect(socket).expect("a connection");
        stream.set_read_timeout(Some(LONGEST_WAIT)).expect("a timeout");
        stream.set_write_timeout(Some(LONGEST_WAIT)).expect("a timeout");
        Self { stream: Box::new(stream), read: Vec::new() }
    }

    pub(crate) fn tcp(address: &str) -> Self {
        let stream = TcpStream::connect(address).expect("a connection");
        stream.set_read_timeout(Some(LONGEST_WAIT)).expect("a timeout");
        stream.set_write_timeout(Some(LONGEST_WAIT)).expect("a timeout");
        Self { stream: Box::new(stream), read: Vec::new() }
    }

    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) -> &mut Self {
        self.stream.write_all(bytes.as_ref()).expect("a listener");
        self
    }

    /// Sends as far as somebody listens.
    pub(crate) fn try_send(&mut self, bytes: &[u8]) -> bool {
        self.stream.write_all(bytes).is_ok()
    }

    /// The next answer.
    pub(crate) fn reply(&mut self) -> Reply {
        self.reply_to("GET")
    }

    pub(crate) fn reply_to(&mut self, method: &str) -> Reply {
        loop {
            if let Some(reply) = self.parsed(method) {
                return reply;
            }
            let more = self.more().unwrap_or_else(|error| panic!("{error}: {}", self.text()));
            assert!(more > 0, "the connection ended: {}", self.text());
        }
    }

    /// Whether the connection ends, with no answer before.
    pub(crate) fn ends(&mut self) -> bool {
        loop {
            match self.more() {
                Ok(0) => return self.read.is_empty(),
                Ok(_) => {}
                // Bytes that were not read make an end a hard one.
                Err(error) => return error.kind() == ErrorKind::ConnectionReset && self.read.is_empty(),
            }
        }
    }

    /// What comes until it ends.
    pub(crate) fn rest(&mut self) -> String {
        while self.more().is_ok_and(|more| more > 0) {}
        self.text()
    }

    /// How long it takes to end.
    pub(crate) fn ends_within(&mut self) -> Duration {
        let since = Instant::now();
        assert!(self.ends(), "{}", self.text());
        since.elapsed()
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.read).into_owned()
    }

    pub(crate) fn more(&mut self) -> std::io::Result<usize> {
        let mut space = [0; 16 << 10];
        let read = self.stream.read(&mut space)?;
        self.read.extend_from_slice(&space[..read]);
        Ok(read)
    }

    fn parsed(&mut self, method: &str) -> Option<Reply> {
        let end = self.read.windows(4).position(|window| window == b"\r\n\r\n")? + 4;
        let head = String::from_utf8_lossy(&self.read[..end]).into_owned();
        let mut lines = head.lines();
        let status = lines.next()?.split(' ').nth(1)?.parse().expect("a status");
        let header = |line: &str| {
            let (name, value) = line.split_once(':')?;
            Some((name.to_ascii_lowercase(), value.trim().to_owned()))
        };
        let headers: Vec<_> = lines.filter_map(header).collect();
        let length = headers.iter().find(|(name, _)| name == "content-length");
        let length = length.map_or(0, |(_, length)| length.parse().expect("a length"));
        let length = if method == "HEAD" || status == 100 { 0 } else { length };
        if self.read.len() < end + length {
            return None;
        }
        let body = self.read[end..end + length].to_vec();
        self.read.drain(..end + length);
        Some(Reply { status, headers, body })
    }
}

impl Reply {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> Value {
        let text = String::from_utf8_lossy(&self.body);
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    /// The code of an error.
    pub(crate) fn code(&self) -> String {
        let body = self.json();
        for part in ["message", "hint"] {
            assert!(body["error"][part].as_str().is_some_and(|text| !text.is_empty()), "{body}");
        }
        body["error"]["code"].as_str().expect("a code").to_owned()
    }
}

/// A request without a body.
pub(crate) fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n")
}

/// A request with one.
pub(crate) fn post(path: &str, body: &[u8]) -> Vec<u8> {
    post_as(path, "content-type: application/json\r\n", body)
}

pub(crate) fn post_as(path: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let head =
        format!("POST {path} HTTP/1.1\r\nhost: localhost\r\n{headers}content-length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}
