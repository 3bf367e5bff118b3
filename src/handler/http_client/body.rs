//! Whole bodies of responses, with a bound on the size.

use bytes::{Bytes, BytesMut};
use reqwest::Response;

#[cfg(feature = "daemon")]
use super::with_causes;

/// Why a body was not read to its end.
#[derive(Debug)]
pub(crate) enum BodyError {
    /// It is larger than allowed.
    TooLarge,
    /// It ended early.
    Broken(reqwest::Error),
}

/// Reads the whole body, decoded.
///
/// Returns an error if it has more than `cap` bytes or ends early.
pub(crate) async fn read_whole(response: &mut Response, cap: usize) -> Result<Bytes, BodyError> {
    let mut body = BytesMut::new();
    while let Some(chunk) = response.chunk().await.map_err(BodyError::Broken)? {
        if chunk.len() > cap - body.len() {
            return Err(BodyError::TooLarge);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body.freeze())
}

/// The same for what is shown to people, without the URL, which may have secrets.
///
/// Returns why there is no such body.
#[cfg(feature = "daemon")]
pub(crate) async fn bounded_body(mut response: Response, cap: usize) -> Result<Bytes, String> {
    read_whole(&mut response, cap).await.map_err(|error| match error {
        BodyError::TooLarge => format!("its answer has more than {cap} bytes"),
        BodyError::Broken(error) => with_causes(&error.without_url()),
    })
}
