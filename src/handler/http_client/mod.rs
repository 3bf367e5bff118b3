//! The HTTP client that http hooks, model APIs and the exporter of traces share: TLS, connections, bounded bodies.

#[cfg(any(feature = "http", feature = "models"))]
mod body;
mod clients;
#[cfg(any(feature = "http", feature = "models"))]
mod error;

#[cfg(any(feature = "http", feature = "models"))]
pub(in crate::handler) use body::{BodyError, read_beginning, read_whole};
pub(crate) use clients::HttpClients;
#[cfg(feature = "http")]
pub(in crate::handler) use clients::{HttpClientError, RefusedTarget};
#[cfg(any(feature = "http", feature = "models"))]
pub(in crate::handler) use error::RequestError;
