//! The clients of http hooks: one for plain addresses, one for encrypted ones, one for each Unix socket. Owns TLS
//! and the connections that are kept; refuses redirects, proxies and certificates that nobody vouches for.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use reqwest::{Client, ClientBuilder, Url, redirect::Policy};
use rustls::{ClientConfig, ConfigBuilder, RootCertStore, WantsVerifier, crypto::ring};
use rustls_platform_verifier::BuilderVerifierExt;
use tokio::sync::OnceCell;

use crate::{
    model::{Address, Handler},
    registry::RegisteredHook,
};

/// How long making a connection may take, within the hook's own deadline. A server that does not pick up for so
/// long is down, and a hook that only watches then has time for another try.
const CONNECT: Duration = Duration::from_secs(10);

/// How long a connection is kept without requests. Node's servers close theirs after 5 s; a request that is
/// sent at that very moment would fail.
const IDLE: Duration = Duration::from_secs(4);

/// The clients of one orchestrator, made when they are first needed: reading the system's certificates takes
/// longer than many a command line lives.
#[derive(Debug)]
pub(crate) struct Clients {
    /// How many connections to one server are kept.
    kept: usize,
    plain: OnceCell<Client>,
    encrypted: OnceCell<Client>,
    sockets: Mutex<HashMap<Workspace, HashMap<Socket, Client>>>,
}

/// A workspace's directory.
type Workspace = PathBuf;

/// The path of a Unix socket.
type Socket = PathBuf;

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClientError {
    #[error("{0}")]
    Tls(#[from] rustls::Error),
    #[error("{0}")]
    Client(#[from] reqwest::Error),
    #[error("hookyard is shutting down")]
    ShuttingDown,
}

impl Clients {
    pub(crate) fn new(kept: usize) -> Self {
        Self { kept, plain: OnceCell::new(), encrypted: OnceCell::new(), sockets: Mutex::default() }
    }

    /// The client for an address of a workspace's hook.
    ///
    /// Returns an error if the system's certificates cannot be used.
    pub(super) async fn of(&self, root: &Path, address: &Address) -> Result<Client, ClientError> {
        match address.socket() {
            Some(socket) => self.of_socket(root, socket),
            None => self.of_url(address.url()).await,
        }
    }

    /// The client for a server in a network.
    ///
    /// Returns an error if the system's certificates cannot be used.
    pub(crate) async fn of_url(&self, url: &Url) -> Result<Client, ClientError> {
        if url.scheme() != "https" {
            let make = async || Ok(self.builder(trusts_nobody()?).build()?);
            return self.plain.get_or_try_init(make).await.cloned();
        }
        let make = async || {
            let trust = tokio::task::spawn_blocking(trusts_the_systems_authorities).await;
            let trust = trust.map_err(|_| ClientError::ShuttingDown)??;
            Ok(self.builder(trust).https_only(true).build()?)
        };
        self.encrypted.get_or_try_init(make).await.cloned()
    }

    fn of_socket(&self, root: &Path, socket: &Path) -> Result<Client, ClientError> {
        let mut sockets = self.sockets();
        if let Some(client) = sockets.get(root).and_then(|clients| clients.get(socket)) {
            return Ok(client.clone());
        }
        let client = self.builder(trusts_nobody()?).unix_socket(socket).build()?;
        sockets.entry(root.to_owned()).or_default().insert(socket.to_owned(), client.clone());
        Ok(client)
    }

    /// Gives the clients up whose sockets no hook of the workspace names any more. An event under way that
    /// still knows such a hook may bring one back, until the next reload.
    pub(super) fn reloaded(&self, root: &Path, hooks: &[Arc<RegisteredHook>]) {
        let named = |socket: &Socket| {
            let names = |handler: &Handler| matches!(handler, Handler::Http(http) if http.address.socket() == Some(socket));
            hooks.iter().any(|known| known.hook.enabled && names(&known.hook.handler))
        };
        let mut sockets = self.sockets();
        if let Some(clients) = sockets.get_mut(root) {
            clients.retain(|socket, _| named(socket));
        }
        sockets.retain(|_, clients| !clients.is_empty());
    }

    fn sockets(&self) -> MutexGuard<'_, HashMap<Workspace, HashMap<Socket, Client>>> {
        self.sockets.lock().unwrap_or_else(PoisonError::into_inner)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        dialect,
        model::{
            Capabilities, DialectName, ExecutionPolicy, FailurePolicy, Hook, HookName, HookSource,
            HttpHandler, HttpMethod, Scope, Workspace, WorkspaceId,
        },
        registry::Snapshot,
    };

    fn at(socket: &str) -> Address {
        Address::parse(&format!("unix:{socket}:/")).unwrap()
    }

    fn snapshot(socket: &str) -> Snapshot {
        let hook = Hook {
            name: HookName::new("hook").unwrap(),
            dialect: dialect::named(DialectName::OpenHarness),
            events: [].into_iter().collect(),
            matcher: None,
            handler: Handler::Http(HttpHandler {
                address: at(socket),
                method: HttpMethod::Post,
                headers: Vec::new(),
            }),
            capabilities: Capabilities::default(),
            priority: 0,
            enabled: true,
            timeout: Duration::from_mins(1),
            max_concurrency: None,
            on_error: FailurePolicy::Ignore,
            on_timeout: FailurePolicy::Ignore,
            execution: ExecutionPolicy::default(),
            source: HookSource { scope: Scope::Project, file: None, line: 0, position: 0 },
        };
        let place = Workspace { id: WorkspaceId::new("here").unwrap(), root: "/here".into() };
        Snapshot::new(1, Arc::new(place), vec![hook])
    }

    #[tokio::test]
    async fn clients_of_sockets_that_no_hook_of_the_workspace_names_are_given_up() {
        let clients = Clients::new(1);
        for (root, socket) in [("/here", "/a"), ("/here", "/b"), ("/there", "/a"), ("/here", "/a")] {
            clients.of(Path::new(root), &at(socket)).await.unwrap();
        }
        let known = || {
            let sockets = clients.sockets();
            let mut known: Vec<_> = sockets
                .iter()
                .flat_map(|(root, clients)| clients.keys().map(|socket| (root.clone(), socket.clone())))
                .collect();
            known.sort();
            known
        };
        assert_eq!(known().len(), 3);
        clients.reloaded(Path::new("/here"), snapshot("/b").hooks());
        assert_eq!(known(), [("/here".into(), "/b".into()), ("/there".into(), "/a".into())]);
        clients.reloaded(Path::new("/there"), snapshot("/c").hooks());
        assert_eq!(known(), [("/here".into(), "/b".into())]);
    }
}
