//! An answer without an end, read line by line as it comes: the stream of a daemon. Owns the connection for as long
//! as it is read, and takes its chunks apart; refuses to know what the lines mean.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    os::unix::net::UnixStream,
};

use super::client::{Client, ClientError, ClientResponse, MAX_HEADERS};

/// The longest line that is read, in bytes.
const MAX_LINE_BYTES: usize = 64 << 20;

/// The longest head of an answer, in bytes.
const MAX_HEAD_BYTES: usize = 64 << 10;

/// The longest refusal that is read, in bytes.
const MAX_ERROR_BYTES: u64 = 1 << 20;

/// The longest line that says how long a chunk is, in bytes.
const MAX_CHUNK_HEADER_BYTES: usize = 4096;

/// The lines of an answer that goes on.
#[derive(Debug)]
pub(crate) struct ResponseLines {
    client: Client,
    body: BufReader<ResponseReader>,
    line: Vec<u8>,
}

/// What follows a head.
#[derive(Debug)]
enum ResponseReader {
    Plain(BufReader<UnixStream>),
    Chunked(ChunkedReader<BufReader<UnixStream>>),
}

/// The bytes in the chunks of an answer.
#[derive(Debug)]
struct ChunkedReader<R> {
    inner: R,
    at: ChunkPosition,
}

/// Where in the chunks reading has come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ChunkPosition {
    /// Before the first chunk.
    Start,
    /// In a chunk of which so much is left.
    Within(u64),
    /// After the last.
    End,
}

/// What a head says.
#[derive(Debug, Clone, Copy)]
struct ResponseHead {
    status: u16,
    is_chunked: bool,
}

impl Client {
    /// Asks for an answer that goes on.
    ///
    /// Returns an error if there is none, or it is a refusal.
    pub(crate) fn stream(&self, path: &str) -> Result<ResponseLines, ClientError> {
        let mut stream = self.connect()?;
        let request = format!("GET {path} HTTP/1.1\r\nhost: hookyard\r\naccept: text/event-stream\r\n\r\n");
        stream.write_all(request.as_bytes()).map_err(|source| self.broken(source))?;
        let mut reader = BufReader::new(stream);
        let head = head(&mut reader).map_err(|source| self.broken(source))?;
        let Some(head) = parse(&head) else { return Err(self.unreadable(&"its head makes no sense")) };
        let body = if head.is_chunked {
            ResponseReader::Chunked(ChunkedReader { inner: reader, at: ChunkPosition::Start })
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
    /// The next line, without its break; none when the answer has ended.
    ///
    /// Returns an error if the connection ended before the answer did, or nothing came for too long.
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
            match self.at {
                ChunkPosition::End => return Ok(0),
                ChunkPosition::Start => self.next_chunk()?,
                ChunkPosition::Within(0) => {
                    // The line break after a chunk.
                    line(&mut self.inner, MAX_CHUNK_HEADER_BYTES)?;
                    self.next_chunk()?;
                }
                ChunkPosition::Within(left) => {
                    let most = usize::try_from(left).unwrap_or(usize::MAX).min(into.len());
                    let read = self.inner.read(&mut into[..most])?;
                    if read == 0 {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                    self.at = ChunkPosition::Within(left - read as u64);
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
        self.at = if size == 0 { ChunkPosition::End } else { ChunkPosition::Within(size) };
        Ok(())
    }
}

/// A line with its break, of no more than so many bytes.
fn line(reader: &mut impl BufRead, most: usize) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    reader.take(most as u64).read_until(b'\n', &mut line)?;
    if line.ends_with(b"\n") { Ok(line) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

/// The bytes of a head, with the empty line after it.
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

/// What a refusal says, if that comes whole: it is a refusal also without its words.
fn error_response(status: u16, body: ResponseReader) -> ClientError {
    let mut bytes = Vec::new();
    // Without a length the text ends where it makes sense, as the connection may stay open.
    let mut body = body.take(MAX_ERROR_BYTES);
    let mut part = [0; 4096];
    while let Ok(read @ 1..) = body.read(&mut part) {
        bytes.extend_from_slice(&part[..read]);
        if serde_json::from_slice::<serde::de::IgnoredAny>(&bytes).is_ok() {
            break;
        }
    }
    ClientResponse { status, body: bytes }.error_response()
}

#[cfg(test)]
mod tests {
    use std::{os::unix::net::UnixListener, thread};

    use super::*;

    /// What a client makes of an answer that is written byte by byte.
    fn followed(response: &'static str) -> Result<Vec<String>, ClientError> {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("socket");
        let listener = UnixListener::bind(&socket).unwrap();
        let daemon = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            head(&mut BufReader::new(&stream)).unwrap();
            // Whoever has seen the end goes away.
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
    fn lines_come_out_of_chunks_wherever_these_are_cut() {
        let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\
                       3\r\nda \r\n2;x=y\r\nt\n\r\nD\r\n\neleven\r\nlast\r\n0\r\n\r\n";
        assert_eq!(followed(chunked).unwrap(), ["da t", "", "eleven", "last"]);
        assert_eq!(followed("HTTP/1.1 200 OK\r\n\r\none\ntwo").unwrap(), ["one", "two"]);
    }

    #[test]
    fn an_answer_that_breaks_off_is_an_error() {
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        for rest in ["", "5\r\nab", "z\r\n", "+1\r\na\r\n", "1\r\na"] {
            let response: &'static str = Box::leak(format!("{head}{rest}").into_boxed_str());
            assert!(matches!(followed(response), Err(ClientError::Broken { .. })), "{rest:?}");
        }
        assert!(matches!(followed("HTTP/1.1 2"), Err(ClientError::Broken { .. })));
        assert!(matches!(followed("nonsense\r\n\r\n"), Err(ClientError::Unreadable { .. })));
    }

    #[test]
    fn a_refusal_says_why() {
        let refused = "HTTP/1.1 503 No\r\nContent-Length: 59\r\n\r\n\
                       {\"error\":{\"code\":\"x\",\"message\":\"too many\",\"hint\":\"wait\"}}";
        let error = followed(refused).unwrap_err();
        assert!(
            matches!(&error, ClientError::Refused { status: 503, hint, .. } if hint == "wait"),
            "{error:?}"
        );
        let error = followed("HTTP/1.1 500 No\r\n\r\n").unwrap_err();
        assert_eq!(error.to_string(), "hookyard answered with status 500");
    }
}
