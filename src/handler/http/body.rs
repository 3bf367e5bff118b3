//! Reading the body of an answer with a bound on its size. Refuses to keep what is beyond the bound.

use bytes::{Bytes, BytesMut};
use reqwest::Response;

/// Why a body was not read to its end.
#[derive(Debug)]
pub(in crate::handler) enum ReadError {
    /// It is larger than it may be.
    TooLarge,
    /// It ended early.
    Broken(reqwest::Error),
}

/// The whole body, decoded, if it has at most `cap` bytes.
pub(in crate::handler) async fn whole(response: &mut Response, cap: usize) -> Result<Bytes, ReadError> {
    let mut body = BytesMut::new();
    while let Some(chunk) = response.chunk().await.map_err(ReadError::Broken)? {
        if chunk.len() > cap - body.len() {
            return Err(ReadError::TooLarge);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body.freeze())
}

/// At most the first `cap` bytes of a body, and less of one that breaks off.
pub(in crate::handler) async fn beginning(response: &mut Response, cap: usize) -> Bytes {
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
