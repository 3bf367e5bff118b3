//! What comes back of a request, and the usual response of a daemon, which is recognised without all that a reader of HTTP
//! knows.

use std::io::{self, Read};

/// The largest response, in bytes.
const MAX_RESPONSE_BYTES: u64 = 64 << 20;

/// The length of most responses, in bytes.
const RESPONSE_BYTES: usize = 4 << 10;

/// The maximum number of headers of a response.
pub(crate) const MAX_HEADERS: usize = 32;

/// What a response begins with that has an answer.
const SUCCESS: &[u8] = b"HTTP/1.1 200 ";

/// The header with the code of the error that an agent's answer stands for. It may be that of a daemon that restarts.
const ERROR: &str = "x-hookyard-error";

/// The end of a head.
const END: &[u8] = b"\r\n\r\n";

/// What came back of a request.
#[derive(Debug)]
pub(crate) struct Exchange {
    /// Whether the whole request was written.
    pub(crate) sent: io::Result<()>,
    /// Whether the response was read to its end.
    pub(crate) read: io::Result<()>,
    /// The response, as far as it was read.
    pub(crate) bytes: Vec<u8>,
}

/// Reads a response until it is whole, or until the connection ends.
pub(super) fn read_response(stream: &mut impl Read, bytes: &mut Vec<u8>) -> io::Result<()> {
    let mut stream = stream.take(MAX_RESPONSE_BYTES);
    // Most responses are shorter, and then read at once.
    let mut piece = [0; RESPONSE_BYTES];
    loop {
        match stream.read(&mut piece) {
            Ok(0) => return Ok(()),
            Ok(length) => bytes.extend_from_slice(&piece[..length]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        if whole_body(bytes).is_some() {
            return Ok(());
        }
    }
}

/// The body of a response, if it is whole, an answer behind which there is no error, and as plain as the daemon writes it.
pub(crate) fn whole_body(response: &[u8]) -> Option<&[u8]> {
    if !response.starts_with(SUCCESS) {
        return None;
    }
    let end = response.windows(END.len()).position(|window| window == END)?;
    let mut lines = str::from_utf8(&response[..end]).ok()?.split("\r\n");
    let is_plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ');
    if !lines.next().is_some_and(is_plain) {
        return None;
    }
    let mut length = None;
    for (number, line) in lines.enumerate() {
        let (name, value) = line.split_once(':')?;
        let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        if number == MAX_HEADERS || name.is_empty() || !is_name || !is_plain(value) {
            return None;
        }
        if name.eq_ignore_ascii_case("transfer-encoding") || name.eq_ignore_ascii_case(ERROR) {
            return None;
        }
        if name.eq_ignore_ascii_case("content-length")
            && length.replace(value.trim().parse::<usize>().ok()?).is_some()
        {
            return None;
        }
    }
    response[end + END.len()..].get(..length?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_and_plain_success_has_a_body() {
        let whole = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nContent-Length: 2\r\n\r\n{}";
        for length in 0..whole.len() {
            assert_eq!(whole_body(&whole.as_bytes()[..length]), None, "{length}");
        }
        assert_eq!(whole_body(whole.as_bytes()), Some(&b"{}"[..]));
        assert_eq!(whole_body(format!("{whole} and more").as_bytes()), Some(&b"{}"[..]));
        for (from, to) in [
            ("200", "503"),
            ("200", "204"),
            ("1.1", "1.0"),
            ("OK", "O\u{7f}K"),
            ("OK", "O\nK"),
            ("type:", "type"),
            ("content-type", "content type"),
            ("content-type", ""),
            ("application", "app\u{e4}"),
            ("application", "app\n"),
            ("content-type: application/json", "transfer-encoding: chunked"),
            ("content-type: application/json", "content-length: 2"),
            ("content-type: application/json", "X-Hookyard-Error: shutting_down"),
            ("Content-Length: 2", "Content-Length: -2"),
            ("Content-Length: 2", "Content-Length: 3"),
            ("Content-Length: 2", "x: 2"),
        ] {
            assert!(whole.contains(from));
            assert_eq!(whole_body(whole.replacen(from, to, 1).as_bytes()), None, "{from:?} {to:?}");
        }
        let many = whole.replacen("\r\n", &format!("{}\r\n", "\r\na: b".repeat(MAX_HEADERS - 1)), 1);
        assert_eq!(whole_body(many.as_bytes()), None);
    }
}
