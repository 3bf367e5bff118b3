//! What `hookyard-relay` has tried with an event, as it hands it over to `hookyard relay`: a line of JSON, the event, and
//! what came back.

use std::io::{self, Write};

use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::daemon::Exchange;

/// An event, and what came back if it was sent.
#[derive(Debug)]
pub(super) struct Attempt {
    pub(super) event: Vec<u8>,
    pub(super) exchange: Option<Exchange>,
}

/// The first line.
#[derive(Debug, Serialize, Deserialize)]
struct AttemptHead {
    /// The length of the event, in bytes.
    event: usize,
    /// The system's error of writing, if there was one.
    sent: Option<i32>,
    /// The system's error of reading, if there was one.
    read: Option<i32>,
}

impl Attempt {
    /// Writes an event and what came back.
    pub(super) fn write(event: &[u8], exchange: &Exchange, file: &mut impl Write) -> io::Result<()> {
        let head = AttemptHead { event: event.len(), sent: code(&exchange.sent), read: code(&exchange.read) };
        serde_json::to_writer(&mut *file, &head)?;
        file.write_all(b"\n")?;
        file.write_all(event)?;
        file.write_all(&exchange.bytes)
    }

    /// Reads it. What is none counts as an event that may have been sent, with no answer.
    pub(super) fn read(input: &[u8]) -> Self {
        Self::parse(input).unwrap_or_else(|| {
            let sent = Err(io::Error::new(io::ErrorKind::InvalidData, "no attempt was handed over"));
            Self { event: Vec::new(), exchange: Some(Exchange { sent, read: Ok(()), bytes: Vec::new() }) }
        })
    }

    fn parse(input: &[u8]) -> Option<Self> {
        let end = memchr::memchr(b'\n', input)?;
        let head: AttemptHead = serde_json::from_slice(&input[..end]).ok()?;
        let (event, bytes) = input[end + 1..].split_at_checked(head.event)?;
        let exchange = Exchange { sent: result(head.sent), read: result(head.read), bytes: bytes.to_vec() };
        Some(Self { event: event.to_vec(), exchange: Some(exchange) })
    }
}

fn code(result: &io::Result<()>) -> Option<i32> {
    let error = result.as_ref().err()?;
    Some(error.raw_os_error().unwrap_or(Errno::IO.raw_os_error()))
}

fn result(code: Option<i32>) -> io::Result<()> {
    code.map_or(Ok(()), |code| Err(io::Error::from_raw_os_error(code)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_what_is_read() {
        let timeout = || Err(io::Error::from_raw_os_error(Errno::AGAIN.raw_os_error()));
        let odd = Err(io::ErrorKind::WriteZero.into());
        for (sent, read) in [(Ok(()), Ok(())), (Ok(()), timeout()), (odd, timeout())] {
            let exchange = Exchange { sent, read, bytes: b"HTTP/1.1 200 \n".to_vec() };
            let mut written = Vec::new();
            Attempt::write(b"{\n}", &exchange, &mut written).unwrap();
            let Attempt { event, exchange: found } = Attempt::read(&written);
            let found = found.unwrap();
            assert_eq!((event.as_slice(), found.bytes.as_slice()), (&b"{\n}"[..], exchange.bytes.as_slice()));
            assert_eq!(code(&found.sent), code(&exchange.sent));
            assert_eq!(code(&found.read), code(&exchange.read));
        }
    }

    #[test]
    fn what_is_no_attempt_may_have_been_sent() {
        for input in ["", "{}", "{\"event\":2}\n{}", "{\"event\":9,\"sent\":null,\"read\":null}\n{}"] {
            let exchange = Attempt::read(input.as_bytes()).exchange;
            assert_eq!(exchange.is_some_and(|exchange| exchange.sent.is_err()), input != "{\"event\":2}\n{}");
        }
    }
}
