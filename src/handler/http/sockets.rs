//! The clients of http hooks over Unix sockets: one for each socket of each workspace.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use parking_lot::Mutex;
use reqwest::Client;

use crate::{
    handler::http_client::{HttpClientError, HttpClients},
    model::{Approval, Handler},
    registry::RegisteredHook,
};

/// A workspace's directory.
type WorkspaceRoot = PathBuf;

/// The path of a Unix socket.
type SocketPath = PathBuf;

/// The clients in use, each with its own connections.
#[derive(Debug, Default)]
pub(super) struct SocketClients(Mutex<HashMap<WorkspaceRoot, HashMap<SocketPath, Client>>>);

impl SocketClients {
    /// The client for a socket that a hook of the workspace names; built on first use.
    pub(super) fn of(
        &self,
        approval: &Approval,
        builder: &HttpClients,
        root: &Path,
        socket: &Path,
    ) -> Result<Client, HttpClientError> {
        let mut workspaces = self.0.lock();
        if let Some(client) = workspaces.get(root).and_then(|clients| clients.get(socket)) {
            return Ok(client.clone());
        }
        let client = builder.build_for_socket(approval, socket)?;
        workspaces.entry(root.to_owned()).or_default().insert(socket.to_owned(), client.clone());
        Ok(client)
    }

    /// Drops the clients whose sockets no enabled hook of the workspace names any more. An event in flight that
    /// still knows such a hook may bring one back, until the next reload.
    pub(super) fn reloaded(&self, root: &Path, hooks: &[Arc<RegisteredHook>]) {
        let mut workspaces = self.0.lock();
        if let Some(clients) = workspaces.get_mut(root) {
            clients.retain(|socket, _| hooks.iter().any(|known| names_socket(known, socket)));
        }
        workspaces.retain(|_, clients| !clients.is_empty());
    }
}

fn names_socket(registered: &RegisteredHook, socket: &Path) -> bool {
    let hook = &registered.hook;
    hook.enabled && matches!(&hook.handler, Handler::Http(http) if http.address.socket() == Some(socket))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{
        dialect,
        model::{
            Address, Capabilities, DialectName, ExecutionPolicy, FailurePolicy, Hook, HookName, HookSource,
            HookTrust, HttpHandler, HttpMethod, Scope, Workspace, WorkspaceId,
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
            source: HookSource {
                scope: Scope::Project,
                file: None,
                line: 0,
                position: 0,
                content: None,
                bundle: None,
            },
            trust: HookTrust::default(),
        };
        let place = Workspace::new(WorkspaceId::new("here").unwrap(), "/here");
        Snapshot::new(1, Arc::new(place), vec![hook])
    }

    #[test]
    fn clients_of_sockets_that_no_hook_of_the_workspace_names_are_dropped() {
        let builder = HttpClients::new(1);
        let clients = SocketClients::default();
        for (root, socket) in [("/here", "/a"), ("/here", "/b"), ("/there", "/a"), ("/here", "/a")] {
            clients.of(&Approval::of_host(), &builder, Path::new(root), Path::new(socket)).unwrap();
        }
        let known = || {
            let sockets = clients.0.lock();
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
