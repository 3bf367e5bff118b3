//! Which servers http hooks may connect to. A name is resolved here, and the connection goes to an address that was
//! checked.

use std::{
    fmt, io,
    net::{IpAddr, SocketAddr},
    path::Path,
    sync::Arc,
};

use futures_util::future::BoxFuture;
use reqwest::{
    Client, Url,
    dns::{Addrs, Name, Resolve, Resolving},
};

use crate::{
    handler::{
        http_client::{HttpClientError, HttpClients, RefusedTarget},
        own_listeners::OwnListeners,
    },
    model::{Approval, HttpTarget, Scope, is_public, literal_address},
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
        Self::with_lookup(
            max_idle,
            TargetRules { allow, own },
            &(Arc::new(SystemLookup) as Arc<dyn NameLookup>),
        )
    }

    fn with_lookup(max_idle: usize, rules: TargetRules, lookup: &Arc<dyn NameLookup>) -> Self {
        let rules = Arc::new(rules);
        let clients =
            [(true, true), (true, false), (false, true), (false, false)].map(|(only_public, not_own)| {
                let check = AddressCheck { only_public, not_own };
                let lookup = Arc::clone(lookup);
                let resolver = CheckedResolver { rules: Arc::clone(&rules), check, lookup };
                (check, HttpClients::with_resolver(max_idle, Arc::new(resolver)))
            });
        Self { rules, clients }
    }

    /// The client for a server in a network, for hooks of this scope.
    ///
    /// Returns an error if they may not ask the server, or the system's certificates cannot be used.
    pub(super) async fn of_url(
        &self,
        approval: &Approval,
        url: &Url,
        scope: Scope,
    ) -> Result<Client, HttpClientError> {
        let check = self.rules.check_of(url, scope);
        // A literal address is not resolved.
        if let Some(address) = literal_address(url) {
            self.rules.check(check, address)?;
        }
        let found = self.clients.iter().find(|(other, _)| *other == check).unwrap_or(&self.clients[0]);
        found.1.of_url(approval, url).await
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

/// Looks up the addresses of a name.
trait NameLookup: fmt::Debug + Send + Sync {
    fn addresses<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<SocketAddr>>>;
}

/// Looks names up as the system does.
#[derive(Debug)]
struct SystemLookup;

impl NameLookup for SystemLookup {
    fn addresses<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<SocketAddr>>> {
        // The port is added by the connector.
        Box::pin(async move { Ok(tokio::net::lookup_host((name, 0)).await?.collect()) })
    }
}

/// Resolves names, and refuses a name if one of its addresses is not permitted. The connection goes to the addresses that
/// were checked: the name is not looked up again.
#[derive(Debug)]
struct CheckedResolver {
    rules: Arc<TargetRules>,
    check: AddressCheck,
    lookup: Arc<dyn NameLookup>,
}

impl Resolve for CheckedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let rules = Arc::clone(&self.rules);
        let check = self.check;
        let lookup = Arc::clone(&self.lookup);
        Box::pin(async move {
            let addresses = lookup.addresses(name.as_str()).await?;
            for address in &addresses {
                rules.check(check, address.ip())?;
            }
            Ok(Box::new(addresses.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use parking_lot::Mutex;
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpListener,
    };

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
            lookup: Arc::new(SystemLookup),
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

    /// Answers each lookup of any name with the next of these lists of addresses.
    #[derive(Debug)]
    struct ChangingLookup(Mutex<VecDeque<Vec<IpAddr>>>);

    impl NameLookup for ChangingLookup {
        fn addresses<'a>(&'a self, _: &'a str) -> BoxFuture<'a, io::Result<Vec<SocketAddr>>> {
            let next = self.0.lock().pop_front().expect("one lookup for each connection");
            Box::pin(async move { Ok(next.into_iter().map(|address| SocketAddr::new(address, 0)).collect()) })
        }
    }

    /// Answers one request, and closes the connection.
    async fn answer_once(listener: &TcpListener) {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = [0; 4096];
        assert!(stream.read(&mut request).await.unwrap() > 0);
        stream.write_all(b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n").await.unwrap();
    }

    #[tokio::test]
    async fn a_connection_goes_to_the_address_that_was_checked() {
        let allowed = TcpListener::bind("127.0.0.2:0").await.unwrap();
        let port = allowed.local_addr().unwrap().port();
        let forbidden = std::net::TcpListener::bind(("127.0.0.3", port)).unwrap();
        forbidden.set_nonblocking(true).unwrap();
        let [first, second] = ["127.0.0.2", "127.0.0.3"].map(|text| text.parse::<IpAddr>().unwrap());
        let lookup = ChangingLookup(Mutex::new([vec![first], vec![second], vec![first, second]].into()));
        let lookup = Arc::new(lookup);
        let clients = CheckedClients::with_lookup(
            1,
            rules(&["127.0.0.2/32"]),
            &(lookup.clone() as Arc<dyn NameLookup>),
        );
        let url = Url::parse(&format!("http://changing.example:{port}/")).unwrap();
        let client = clients.of_url(&Approval::of_host(), &url, Scope::Project).await.unwrap();
        // By now the name means another address; the answer that was checked is the one that counts.
        let (answered, ()) = tokio::join!(client.get(url.clone()).send(), answer_once(&allowed));
        assert_eq!(answered.unwrap().status().as_u16(), 204);
        assert_eq!(lookup.0.lock().len(), 2, "one lookup for one connection");
        for _ in 0..2 {
            let error = client.get(url.clone()).send().await.unwrap_err();
            assert!(error.is_connect() && format!("{error:?}").contains("Private(127.0.0.3)"), "{error:?}");
        }
        assert!(lookup.0.lock().is_empty(), "each connection looks the name up");
        assert_eq!(forbidden.accept().unwrap_err().kind(), io::ErrorKind::WouldBlock, "nobody was there");
    }
}
