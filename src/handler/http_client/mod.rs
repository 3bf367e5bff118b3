//! The HTTP client that http hooks, model APIs and the exporter of traces share: TLS, connections, bounded bodies.

mod clients;
#[cfg(any(feature = "http", feature = "models"))]
mod response;

pub(crate) use clients::HttpClients;
#[cfg(feature = "http")]
pub(in crate::handler) use clients::{HttpClientError, RefusedTarget};
#[cfg(any(feature = "http", feature = "models"))]
pub(in crate::handler) use response::{BodyError, RequestError, read_beginning, read_whole};
