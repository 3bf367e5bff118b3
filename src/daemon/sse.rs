//! The client's side of a stream: a response without an end, decoded and read line by line.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    os::unix::net::UnixStream,
};

use super::{
    client::{Client, ClientError, ClientResponse},
    exchange::MAX_HEADERS,
};

/// The longest line, in bytes.
const MAX_LINE_BYTES: usize = 64 << 20;

/// The largest response head, in bytes.
const MAX_HEAD_BYTES: usize = 64 << 10;

/// The largest error response, in bytes.
const MAX_ERROR_BYTES: u64 = 1 << 20;

/// The longest line with the size of a chunk, in bytes.
const MAX_CHUNK_HEADER_BYTES: usize = 4096;

/// The lines of a response that does not end.
#[derive(Debug)]
pub(crate) struct ResponseLines {
    client: Client,
    body: BufReader<ResponseReader>,
    line: Vec<u8>,
}

/// The body of a response, by its transfer encoding.
#[derive(Debug)]
enum ResponseReader {
    Plain(BufReader<UnixStream>),
    Chunked(ChunkedReader<BufReader<UnixStream>>),
}

/// Decodes the chunked transfer encoding.
#[derive(Debug)]
struct ChunkedReader<R> {
    inner: R,
    position: ChunkPosition,
}

/// The position in the chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ChunkPosition {
    /// Before the first chunk.
    Start,
    /// In a chunk, with this many bytes left.
    Within(u64),
    /// After the last chunk.
    End,
}

/// The parts of a head that matter here.
#[derive(Debug, Clone, Copy)]
struct ResponseHead {
    status: u16,
    is_chunked: bool,
}

impl Client {
    /// Sends a request whose response does not end.
    ///
    /// Returns an error if there is no response, or its status is not 2xx.
    pub(crate) fn stream(&self, path: &str) -> Result<ResponseLines, ClientError> {
        let mut stream = self.connect()?;
        let request = format!("GET {path} HTTP/1.1\r\nhost: hookyard\r\naccept: text/event-stream\r\n\r\n");
        stream.write_all(request.as_bytes()).map_err(|source| self.broken(source))?;
        let mut reader = BufReader::new(stream);
        let head = head(&mut reader).map_err(|source| self.broken(source))?;
        let Some(head) = parse(&head) else { return Err(self.unreadable(&"its head is invalid")) };
        let body = if head.is_chunked {
            ResponseReader::Chunked(ChunkedReader { inner: reader, position: ChunkPosition::Start })
        } else {
            ResponseReader::Plain(reader)
        };
        if !(200..300).contains(&head.status) {
            return Err(error_response(head.status, body));
        }
        Ok(ResponseLines { client: self.clone(), body: BufReader::new(body), line: Vec::new() })
    }
}

impl ResponseLines {
    /// The next line, without its break; none when the response has ended.
    ///
    /// Returns an error if the connection ended before the response did, or a read timed out.
    pub(crate) fn next(&mut self) -> Result<Option<&str>, ClientError> {
        self.line.clear();
        let most = MAX_LINE_BYTES as u64;
        let read = (&mut self.body).take(most).read_until(b'\n', &mut self.line);
        let read = read.map_err(|source| self.client.broken(source))?;
        if read >= MAX_LINE_BYTES {
            return Err(self.client.unreadable(&"one of its lines is too long"));
        }
        if read == 0 {
            return Ok(None);
        }
        let line = str::from_utf8(&self.line).map_err(|error| self.client.unreadable(&error))?;
        Ok(Some(line.trim_end_matches(['\n', '\r'])))
    }
}

impl Read for ResponseReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(reader) => reader.read(into),
            Self::Chunked(chunks) => chunks.read(into),
        }
    }
}

impl<R: BufRead> Read for ChunkedReader<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if into.is_empty() {
            return Ok(0);
        }
        loop {
            match self.position {
                ChunkPosition::End => return Ok(0),
                ChunkPosition::Start => self.next_chunk()?,
                ChunkPosition::Within(0) => {
                    // Skips the line break after the chunk.
                    line(&mut self.inner, MAX_CHUNK_HEADER_BYTES)?;
                    self.next_chunk()?;
                }
                ChunkPosition::Within(left) => {
                    let most = usize::try_from(left).unwrap_or(usize::MAX).min(into.len());
                    let read = self.inner.read(&mut into[..most])?;
                    if read == 0 {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                    self.position = ChunkPosition::Within(left - read as u64);
                    return Ok(read);
                }
            }
        }
    }
}

impl<R: BufRead> ChunkedReader<R> {
    fn next_chunk(&mut self) -> io::Result<()> {
        let header = line(&mut self.inner, MAX_CHUNK_HEADER_BYTES)?;
        let digits = header.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
        let digits = str::from_utf8(digits).ok().filter(|digits| !digits.starts_with('+'));
        let size = digits.and_then(|digits| u64::from_str_radix(digits, 16).ok());
        let size =
            size.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "a chunk without a size"))?;
        self.position = if size == 0 { ChunkPosition::End } else { ChunkPosition::Within(size) };
        Ok(())
    }
}

/// A line with its break, of at most `most` bytes.
fn line(reader: &mut impl BufRead, most: usize) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    reader.take(most as u64).read_until(b'\n', &mut line)?;
    if line.ends_with(b"\n") { Ok(line) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

/// The bytes of a head, with the empty line at its end.
fn head(reader: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.extend(line(reader, MAX_HEAD_BYTES - head.len())?);
    }
    Ok(head)
}

fn parse(bytes: &[u8]) -> Option<ResponseHead> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut response = httparse::Response::new(&mut headers);
    response.parse(bytes).ok().filter(httparse::Status::is_complete)?;
    let is_chunked = response.headers.iter().any(|header| {
        header.name.eq_ignore_ascii_case("transfer-encoding") && header.value.eq_ignore_ascii_case(b"chunked")
    });
    Some(ResponseHead { status: response.code?, is_chunked })
}

/// Reads an error response. One whose body is incomplete is an error too, without a message of its own.
fn error_response(status: u16, body: ResponseReader) -> ClientError {
    let mut bytes = Vec::new();
    // The connection may stay open, so the body ends where it is valid JSON.
    let mut body = body.take(MAX_ERROR_BYTES);
    let mut part = [0; 4096];
    while let Ok(read @ 1..) = body.read(&mut part) {
        bytes.extend_from_slice(&part[..read]);
        if serde_json::from_slice::<serde::de::IgnoredAny>(&bytes).is_ok() {
            break;
        }
    }
    ClientResponse { status, headers: Vec::new(), body: bytes }.error_response()
}

#[cfg(test)]
mod tests {
    use std::{os::unix::net::UnixListener, thread};

    use super::*;

    /// The lines that a client reads of a response that is written byte by byte.
    fn lines_of(response: &'static str) -> Result<Vec<String>, ClientError> {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("socket");
        let listener = UnixListener::bind(&socket).unwrap();
        let daemon = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            head(&mut BufReader::new(&stream)).unwrap();
            // A client that has seen the end closes the connection.
            response.bytes().all(|byte| stream.write_all(&[byte]).is_ok());
        });
        let read = || {
            let mut lines = Client::new(&socket).stream("/v1/stream")?;
            let mut all = Vec::new();
            while let Some(line) = lines.next()? {
                all.push(line.to_owned());
            }
            Ok(all)
        };
        let read = read();
        daemon.join().unwrap();
        read
    }

    #[test]
    fn lines_are_joined_across_chunks() {
        let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\
                       3\r\nda \r\n2;x=y\r\nt\n\r\nD\r\n\neleven\r\nlast\r\n0\r\n\r\n";
        assert_eq!(lines_of(chunked).unwrap(), ["da t", "", "eleven", "last"]);
        assert_eq!(lines_of("HTTP/1.1 200 OK\r\n\r\none\ntwo").unwrap(), ["one", "two"]);
    }

    #[test]
    fn a_truncated_response_is_an_error() {
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        for rest in ["", "5\r\nab", "z\r\n", "+1\r\na\r\n", "1\r\na"] {
            let response: &'static str = Box::leak(format!("{head}{rest}").into_boxed_str());
            assert!(matches!(lines_of(response), Err(ClientError::Broken { .. })), "{rest:?}");
        }
        assert!(matches!(lines_of("HTTP/1.1 2"), Err(ClientError::Broken { .. })));
        assert!(matches!(lines_of("nonsense\r\n\r\n"), Err(ClientError::Unreadable { .. })));
    }

    #[test]
    fn an_error_response_has_its_hint() {
        let refused = "HTTP/1.1 503 No\r\nContent-Length: 59\r\n\r\n\
                       {\"error\":{\"code\":\"x\",\"message\":\"too many\",\"hint\":\"wait\"}}";
        let error = lines_of(refused).unwrap_err();
        assert!(
            matches!(&error, ClientError::Refused { status: 503, hint, .. } if hint == "wait"),
            "{error:?}"
        );
        let error = lines_of("HTTP/1.1 500 No\r\n\r\n").unwrap_err();
        assert_eq!(error.to_string(), "hookyard answered with status 500");
    }
}
