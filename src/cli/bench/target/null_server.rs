//! The least server there is: a task at the other end of a connection that reads requests and answers at once.

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::UnixStream,
};

use super::gone::TargetGone;

/// What it answers.
const OUTCOME: &str = r#"{"decision_id":"0","event":"run_failed","verdict":"proceed","suppress_output":false,"hooks":[],"snapshot_version":0}"#;

/// How many headers it takes.
const MAX_HEADERS: usize = 16;

/// A connection to a task that ends with it.
pub(super) fn connect() -> Result<UnixStream, TargetGone> {
    let (ours, theirs) = UnixStream::pair().map_err(|error| TargetGone(error.to_string()))?;
    tokio::spawn(serve(theirs));
    Ok(ours)
}

/// The same for lines.
pub(super) fn connect_lines() -> Result<UnixStream, TargetGone> {
    let (ours, theirs) = UnixStream::pair().map_err(|error| TargetGone(error.to_string()))?;
    tokio::spawn(serve_lines(theirs));
    Ok(ours)
}

/// Answers each line of an event. The generator writes the id first, and ends it with a comma.
async fn serve_lines(mut stream: UnixStream) {
    let (mut bytes, mut answers) = (Vec::new(), Vec::new());
    while matches!(stream.read_buf(&mut bytes).await, Ok(1..)) {
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        for line in bytes[..whole].split(|byte| *byte == b'\n').filter(|line| line.starts_with(b"{\"id\":")) {
            let id = line.split(|byte| *byte == b',').next().unwrap_or_default();
            answers.extend_from_slice(id);
            answers.extend_from_slice(format!(",\"outcome\":{OUTCOME}}}\n").as_bytes());
        }
        bytes.drain(..whole);
        if stream.write_all(&answers).await.is_err() {
            return;
        }
        answers.clear();
    }
}

async fn serve(mut stream: UnixStream) {
    let length = OUTCOME.len();
    let answer = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{OUTCOME}"
    );
    let mut bytes = Vec::new();
    loop {
        match stream.read_buf(&mut bytes).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        if let Some(end) = end_of_request(&bytes)
            && bytes.len() >= end
        {
            bytes.drain(..end);
            if stream.write_all(answer.as_bytes()).await.is_err() {
                return;
            }
        }
    }
}

/// Where a request ends; nothing as long as its head is not whole.
fn end_of_request(bytes: &[u8]) -> Option<usize> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    let Ok(httparse::Status::Complete(head)) = request.parse(bytes) else { return None };
    let length = request.headers.iter().find(|header| header.name == "content-length")?;
    Some(head + str::from_utf8(length.value).ok()?.parse::<usize>().ok()?)
}
