//! Which servers http hooks may connect to. A name is resolved here, and the connection goes to an address that was
//! checked.

use std::{
    net::{IpAddr, SocketAddr},
    path::Path,
    sync::Arc,
};

use reqwest::{
    Client, Url,
    dns::{Addrs, Name, Resolve, Resolving},
};

use crate::{
    handler::{
        http_client::{HttpClientError, HttpClients, RefusedTarget},
        own_listeners::OwnListeners,
    },
    model::{HttpTarget, Scope, is_public, literal_address},
};

/// What http hooks may connect to.
#[derive(Debug)]
pub(super) struct TargetRules {
    allow: Vec<HttpTarget>,
    own: OwnListeners,
}

/// Which addresses a request may connect to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct AddressCheck {
    /// Only public ones, and networks that the settings allow.
    only_public: bool,
    /// None where hookyard may listen: the port is one of its own.
    not_own: bool,
}

impl TargetRules {
    fn check_of(&self, url: &Url, scope: Scope) -> AddressCheck {
        let is_of_workspace = matches!(scope, Scope::Project | Scope::Local);
        let is_named = || self.allow.iter().any(|target| target.is_server_of(url));
        AddressCheck {
            only_public: is_of_workspace && !is_named(),
            not_own: url.port_or_known_default().is_some_and(|port| self.own.has_port(port)),
        }
    }

    fn check(&self, check: AddressCheck, address: IpAddr) -> Result<(), RefusedTarget> {
        if check.not_own && self.own.may_be_at(address) {
            return Err(RefusedTarget::Own);
        }
        let is_allowed = || is_public(address) || self.allow.iter().any(|target| target.has_address(address));
        if check.only_public && !is_allowed() { Err(RefusedTarget::Private(address)) } else { Ok(()) }
    }
}

/// The clients of http hooks, one for each check of addresses: a connection that passed one is not used under another.
#[derive(Debug)]
pub(super) struct CheckedClients {
    rules: Arc<TargetRules>,
    clients: [(AddressCheck, HttpClients); 4],
}

impl CheckedClients {
    pub(super) fn new(max_idle: usize, allow: Vec<HttpTarget>, own: OwnListeners) -> Self {
        let rules = Arc::new(TargetRules { allow, own });
        let clients =
            [(true, true), (true, false), (false, true), (false, false)].map(|(only_public, not_own)| {
                let check = AddressCheck { only_public, not_own };
                let resolver = CheckedResolver { rules: Arc::clone(&rules), check };
                (check, HttpClients::with_resolver(max_idle, Arc::new(resolver)))
            });
        Self { rules, clients }
    }

    /// The client for a server in a network, for hooks of this scope.
    ///
    /// Returns an error if they may not ask the server, or the system's certificates cannot be used.
    pub(super) async fn of_url(&self, url: &Url, scope: Scope) -> Result<Client, HttpClientError> {
        let check = self.rules.check_of(url, scope);
        // A literal address is not resolved.
        if let Some(address) = literal_address(url) {
            self.rules.check(check, address)?;
        }
        let found = self.clients.iter().find(|(other, _)| *other == check).unwrap_or(&self.clients[0]);
        found.1.of_url(url).await
    }

    /// The clients from which those of Unix sockets are built.
    ///
    /// Returns an error if hookyard itself listens on this one.
    pub(super) fn for_socket(&self, socket: &Path) -> Result<&HttpClients, HttpClientError> {
        if self.rules.own.has_socket(socket) {
            return Err(RefusedTarget::Own.into());
        }
        Ok(&self.clients[0].1)
    }
}

/// Resolves names as the system does, and refuses a name if one of its addresses is not permitted.
#[derive(Debug)]
struct CheckedResolver {
    rules: Arc<TargetRules>,
    check: AddressCheck,
}

impl Resolve for CheckedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let rules = Arc::clone(&self.rules);
        let check = self.check;
        Box::pin(async move {
            // The port is added by the connector.
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let addresses: Vec<SocketAddr> = found.collect();
            for address in &addresses {
                rules.check(check, address.ip())?;
            }
            Ok(Box::new(addresses.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(allow: &[&str]) -> TargetRules {
        let own = OwnListeners { tcp: vec!["0.0.0.0:8787".parse().unwrap()], sockets: Vec::new() };
        TargetRules { allow: allow.iter().map(|text| text.parse().unwrap()).collect(), own }
    }

    fn may_ask(rules: &TargetRules, url: &str, scope: Scope) -> bool {
        let url = Url::parse(url).unwrap();
        rules.check(rules.check_of(&url, scope), literal_address(&url).unwrap()).is_ok()
    }

    #[test]
    fn hooks_of_a_workspace_ask_public_addresses_and_those_that_are_allowed() {
        let none = rules(&[]);
        assert!(may_ask(&none, "http://8.8.8.8/", Scope::Project));
        assert!(!may_ask(&none, "http://127.0.0.1:8377/", Scope::Project));
        assert!(!may_ask(&none, "http://127.0.0.1:8377/", Scope::Local));
        for scope in [Scope::Managed, Scope::User, Scope::Host] {
            assert!(may_ask(&none, "http://127.0.0.1:8377/", scope), "{scope}");
        }
        let some = rules(&["127.0.0.1:8377", "10.1.0.0/16"]);
        assert!(may_ask(&some, "http://127.0.0.1:8377/", Scope::Project));
        assert!(!may_ask(&some, "http://127.0.0.1:8378/", Scope::Project));
        assert!(may_ask(&some, "http://10.1.2.3:9/", Scope::Project));
        assert!(!may_ask(&some, "http://10.2.2.3:9/", Scope::Project));
    }

    #[test]
    fn nobody_asks_hookyard_itself() {
        let all = rules(&["127.0.0.1", "0.0.0.0/0", "::/0"]);
        for scope in [Scope::Managed, Scope::User, Scope::Project] {
            for host in ["127.0.0.1", "127.1.2.3", "0", "[::1]", "[::]", "[::ffff:127.0.0.1]"] {
                assert!(!may_ask(&all, &format!("http://{host}:8787/"), scope), "{host}");
            }
            assert!(may_ask(&all, "http://127.0.0.1:8788/", scope));
        }
    }

    #[tokio::test]
    async fn a_name_is_refused_for_one_address() {
        let resolver = |allow: &[&str], not_own| CheckedResolver {
            rules: Arc::new(rules(allow)),
            check: AddressCheck { only_public: true, not_own },
        };
        let resolve = async |resolver: CheckedResolver| {
            resolver.resolve("localhost".parse().unwrap()).await.map(Iterator::count)
        };
        let error = resolve(resolver(&[], false)).await.unwrap_err();
        assert!(error.is::<RefusedTarget>(), "{error}");
        assert!(resolve(resolver(&["127.0.0.0/8", "::1/128"], false)).await.unwrap() > 0);
        let error = resolve(resolver(&["127.0.0.0/8", "::1/128"], true)).await.unwrap_err();
        assert!(error.to_string().contains("hookyard itself"), "{error}");
    }
}
