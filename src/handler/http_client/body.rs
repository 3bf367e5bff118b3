//! Reading the body of a response with a bound on its size.

use bytes::{Bytes, BytesMut};
use reqwest::Response;

/// Why a body was not read to its end.
#[derive(Debug)]
pub(in crate::handler) enum BodyError {
    /// It is larger than allowed.
    TooLarge,
    /// It ended early.
    Broken(reqwest::Error),
}

/// Reads the whole body, decoded.
///
/// Returns an error if it has more than `cap` bytes or ends early.
pub(in crate::handler) async fn read_whole(response: &mut Response, cap: usize) -> Result<Bytes, BodyError> {
    let mut body = BytesMut::new();
    while let Some(chunk) = response.chunk().await.map_err(BodyError::Broken)? {
        if chunk.len() > cap - body.len() {
            return Err(BodyError::TooLarge);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body.freeze())
}

/// Reads at most the first `cap` bytes of a body, and fewer if it breaks off.
pub(in crate::handler) async fn read_beginning(response: &mut Response, cap: usize) -> Bytes {
    let mut body = BytesMut::new();
    while let Ok(Some(mut chunk)) = response.chunk().await {
        chunk.truncate(cap - body.len());
        body.extend_from_slice(&chunk);
        if body.len() == cap {
            break;
        }
    }
    body.freeze()
}
