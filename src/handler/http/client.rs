//! The clients of http hooks: one for plain addresses, one for encrypted ones. Owns TLS and the connections that
//! are kept; refuses redirects, proxies and certificates that nobody vouches for.

use std::{sync::Arc, time::Duration};

use reqwest::{Client, ClientBuilder, Url, redirect::Policy};
use rustls::{ClientConfig, ConfigBuilder, RootCertStore, WantsVerifier, crypto::ring};
use rustls_platform_verifier::BuilderVerifierExt;
use tokio::sync::OnceCell;

/// How long making a connection may take, within the hook's own deadline. A server that does not pick up for so
/// long is down, and a hook that only watches then has time for another try.
const CONNECT: Duration = Duration::from_secs(10);

/// How long a connection is kept without requests. Node's servers close theirs after 5 s; a request that is
/// sent at that very moment would fail.
const IDLE: Duration = Duration::from_secs(4);

/// The clients of one orchestrator, made when they are first needed: reading the system's certificates takes
/// longer than many a command line lives.
#[derive(Debug)]
pub(in crate::handler) struct Clients {
    /// How many connections to one server are kept.
    kept: usize,
    plain: OnceCell<Client>,
    encrypted: OnceCell<Client>,
}

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
pub(in crate::handler) enum ClientError {
    #[error("{0}")]
    Tls(#[from] rustls::Error),
    #[error("{0}")]
    Client(#[from] reqwest::Error),
    #[error("hookyard is shutting down")]
    ShuttingDown,
}

impl Clients {
    pub(in crate::handler) fn new(kept: usize) -> Self {
        Self { kept, plain: OnceCell::new(), encrypted: OnceCell::new() }
    }

    /// The client for an address.
    ///
    /// Returns an error if the system's certificates cannot be used.
    pub(in crate::handler) async fn of(&self, url: &Url) -> Result<&Client, ClientError> {
        if url.scheme() != "https" {
            return self.plain.get_or_try_init(async || Ok(self.builder(trusts_nobody()?).build()?)).await;
        }
        let make = async || {
            let trust = tokio::task::spawn_blocking(trusts_the_systems_authorities).await;
            let trust = trust.map_err(|_| ClientError::ShuttingDown)??;
            Ok(self.builder(trust).https_only(true).build()?)
        };
        self.encrypted.get_or_try_init(make).await
    }

    fn builder(&self, tls: ClientConfig) -> ClientBuilder {
        Client::builder()
            .tls_backend_preconfigured(tls)
            .user_agent(concat!("hookyard/", env!("CARGO_PKG_VERSION")))
            .redirect(Policy::none())
            .retry(reqwest::retry::never())
            .referer(false)
            .no_proxy()
            .http1_only()
            .connect_timeout(CONNECT)
            .pool_idle_timeout(IDLE)
            .pool_max_idle_per_host(self.kept)
    }
}

/// The provider is named here, because the process-wide default is the embedding program's to choose.
fn tls() -> Result<ConfigBuilder<ClientConfig, WantsVerifier>, rustls::Error> {
    ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
}

fn trusts_nobody() -> Result<ClientConfig, rustls::Error> {
    Ok(tls()?.with_root_certificates(RootCertStore::empty()).with_no_client_auth())
}

fn trusts_the_systems_authorities() -> Result<ClientConfig, rustls::Error> {
    Ok(tls()?.with_platform_verifier()?.with_no_client_auth())
}
