//! The HTTP client that http hooks, model APIs and the exporter of traces share: TLS, connections, bounded bodies.
//!
//! An orchestrator has one for plain addresses, one for encrypted ones, and one for each Unix socket that is asked for. They
//! follow no redirect, use no proxy and accept only certificates that the system trusts.

mod body;
#[cfg(any(feature = "http", feature = "models"))]
mod response;

#[cfg(feature = "http")]
use std::path::Path;
use std::{fmt, net::IpAddr, sync::Arc, time::Duration};

use reqwest::{Client, ClientBuilder, Url, dns::Resolve, redirect::Policy};
use rustls::{ClientConfig, ConfigBuilder, RootCertStore, WantsVerifier, crypto::ring};
use rustls_platform_verifier::BuilderVerifierExt;
use tokio::sync::OnceCell;

use crate::model::Approval;

#[cfg(feature = "daemon")]
pub(crate) use body::bounded_body;
#[cfg(any(feature = "http", feature = "models"))]
pub(crate) use body::{BodyError, read_whole};
#[cfg(any(feature = "http", feature = "models"))]
pub(in crate::handler) use response::{RequestError, read_beginning};

/// How long connecting may take, within the hook's own deadline. A server that does not accept for so long is down,
/// and a hook that only observes then has time for another attempt.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a connection without requests is kept. Node's servers close theirs after 5 s; a request that is sent at
/// that very moment would fail.
const IDLE_TIMEOUT: Duration = Duration::from_secs(4);

/// The clients of one orchestrator, built on first use: reading the system's certificates takes longer than many a
/// command line lives.
#[derive(Debug)]
pub(crate) struct HttpClients {
    /// How many idle connections to one server are kept.
    max_idle: usize,
    /// Resolves the names of servers, unless the system does.
    resolver: Option<CustomResolver>,
    plain: OnceCell<Client>,
    encrypted: OnceCell<Client>,
}

/// A resolver of names that is not the system's.
#[derive(Clone)]
struct CustomResolver(Arc<dyn Resolve>);

impl fmt::Debug for CustomResolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CustomResolver")
    }
}

/// A server that a hook may not ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[cfg_attr(not(feature = "http"), expect(dead_code, reason = "only http hooks are refused a server"))]
pub(crate) enum RefusedTarget {
    #[error("{0} is not a public address, and `http.allow` in the settings does not list it")]
    Private(IpAddr),
    #[error("hookyard itself listens there")]
    Own,
}

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HttpClientError {
    #[error("{0}")]
    Tls(#[from] rustls::Error),
    #[error("{0}")]
    Client(#[from] reqwest::Error),
    #[error("{0}")]
    Refused(#[from] RefusedTarget),
    #[error("hookyard is shutting down")]
    ShuttingDown,
}

impl HttpClients {
    pub(crate) fn new(max_idle: usize) -> Self {
        Self { max_idle, resolver: None, plain: OnceCell::new(), encrypted: OnceCell::new() }
    }

    /// Clients that connect to the addresses which a resolver returns for a name.
    #[cfg(feature = "http")]
    pub(in crate::handler) fn with_resolver(max_idle: usize, resolver: Arc<dyn Resolve>) -> Self {
        Self { resolver: Some(CustomResolver(resolver)), ..Self::new(max_idle) }
    }

    /// The client for a server in a network, for what may ask one.
    ///
    /// Returns an error if the system's certificates cannot be used.
    pub(crate) async fn of_url(&self, _: &Approval, url: &Url) -> Result<Client, HttpClientError> {
        if url.scheme() == "https" {
            self.encrypted.get_or_try_init(|| self.build_encrypted()).await.cloned()
        } else {
            self.plain.get_or_try_init(async || Ok(self.builder(no_roots()?).build()?)).await.cloned()
        }
    }

    /// Builds a client whose connections all go to one Unix socket, for what may ask one.
    #[cfg(feature = "http")]
    pub(in crate::handler) fn build_for_socket(
        &self,
        _: &Approval,
        socket: &Path,
    ) -> Result<Client, HttpClientError> {
        Ok(self.builder(no_roots()?).unix_socket(socket).build()?)
    }

    async fn build_encrypted(&self) -> Result<Client, HttpClientError> {
        // Reads the system's certificates from disk, so it runs on a blocking thread.
        let tls = tokio::task::spawn_blocking(system_roots).await;
        let tls = tls.map_err(|_| HttpClientError::ShuttingDown)??;
        Ok(self.builder(tls).https_only(true).build()?)
    }

    fn builder(&self, tls: ClientConfig) -> ClientBuilder {
        let builder = match &self.resolver {
            Some(CustomResolver(resolver)) => Client::builder().dns_resolver(Arc::clone(resolver)),
            None => Client::builder(),
        };
        builder
            .tls_backend_preconfigured(tls)
            .user_agent(concat!("hookyard/", env!("CARGO_PKG_VERSION")))
            .redirect(Policy::none())
            .retry(reqwest::retry::never())
            .referer(false)
            .no_proxy()
            .http1_only()
            .connect_timeout(CONNECT_TIMEOUT)
            .pool_idle_timeout(IDLE_TIMEOUT)
            .pool_max_idle_per_host(self.max_idle)
    }
}

/// An error with what is below it: the outermost text says little.
#[cfg(feature = "daemon")]
pub(crate) fn with_causes(error: &reqwest::Error) -> String {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(inner) = source {
        text = format!("{text}: {inner}");
        source = inner.source();
    }
    text
}

/// The provider is named here, because the process-wide default is the embedding program's to choose.
fn tls_builder() -> Result<ConfigBuilder<ClientConfig, WantsVerifier>, rustls::Error> {
    ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
}

/// Trusts nobody, for clients that never encrypt.
fn no_roots() -> Result<ClientConfig, rustls::Error> {
    Ok(tls_builder()?.with_root_certificates(RootCertStore::empty()).with_no_client_auth())
}

fn system_roots() -> Result<ClientConfig, rustls::Error> {
    Ok(tls_builder()?.with_platform_verifier()?.with_no_client_auth())
}
