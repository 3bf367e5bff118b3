//! Denied requests: each is counted in a metric, and the log and the audit get at most a line per peer and minute.

use std::{
    collections::{HashMap, hash_map::Entry},
    fmt,
    net::IpAddr,
    sync::Arc,
    time::{Duration, SystemTime},
};

use axum::http::Method;
use parking_lot::Mutex;
use tokio::time::sleep;

use super::audit::{Audit, DenialDetails, DenialLine};
use crate::{
    model::{EventPeer, Timestamp},
    telemetry::ApiDenied,
};

/// How many peers are told apart. Further ones share a line.
const MAX_PEERS: usize = 1024;

/// Between two lines about a peer.
const INTERVAL: Duration = Duration::from_mins(1);

/// How many requests of a peer without a valid token are answered 401 in an interval. Further ones are answered 429. A
/// request with a valid token is always served: otherwise a neighbour could lock the daemon's hosts out.
const MAX_UNAUTHORIZED: u64 = 100;

/// The status of a request without a valid token.
const UNAUTHORIZED: u16 = 401;

/// Who sent a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Peer {
    /// A user of this machine, by its id.
    User(u32),
    /// An address.
    Address(IpAddr),
    /// Any of those beyond [`MAX_PEERS`].
    Others,
}

impl Peer {
    /// The peer as events have it.
    pub(super) fn of_event(self) -> Option<EventPeer> {
        match self {
            Self::User(uid) => Some(EventPeer::User(uid)),
            Self::Address(address) => Some(EventPeer::Address(address)),
            Self::Others => None,
        }
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User(uid) => write!(f, "uid {uid}"),
            Self::Address(address) => write!(f, "{address}"),
            Self::Others => f.write_str("others"),
        }
    }
}

/// A request that was denied.
#[derive(Debug, Clone, Copy)]
pub(super) struct DeniedRequest {
    pub(super) listener: &'static str,
    pub(super) status: u16,
    pub(super) code: &'static str,
    pub(super) method: &'static str,
    /// The declared path of its route.
    pub(super) route: &'static str,
}

/// The denied requests of a peer since its last line.
#[derive(Debug)]
struct PeerDenials {
    unreported: u64,
    /// In this interval.
    unauthorized: u64,
    last: DeniedRequest,
}

/// The denied requests of all peers.
#[derive(Debug)]
pub(super) struct Denials {
    peers: Mutex<HashMap<Peer, PeerDenials>>,
    audit: Option<Arc<Audit>>,
}

impl Denials {
    pub(super) fn new(audit: Option<Arc<Audit>>) -> Arc<Self> {
        ApiDenied::expect();
        Arc::new(Self { peers: Mutex::default(), audit })
    }

    /// Records a denied request. The first one of a peer is reported at once, further ones once a minute.
    ///
    /// Returns whether the peer has sent too many requests without a valid token.
    pub(super) fn record(self: &Arc<Self>, peer: Peer, request: DeniedRequest) -> bool {
        ApiDenied { listener: request.listener, code: request.code }.emit();
        let unauthorized = u64::from(request.status == UNAUTHORIZED);
        let mut peers = self.peers.lock();
        let is_known = peers.len() < MAX_PEERS || peers.contains_key(&peer);
        let peer = if is_known { peer } else { Peer::Others };
        match peers.entry(peer) {
            Entry::Occupied(mut known) => {
                let denials = known.get_mut();
                denials.unreported += 1;
                denials.unauthorized += unauthorized;
                denials.last = request;
                unauthorized > 0 && denials.unauthorized > MAX_UNAUTHORIZED
            }
            Entry::Vacant(new) => {
                new.insert(PeerDenials { unreported: 0, unauthorized, last: request });
                drop(peers);
                self.report(peer, &request, 1);
                self.report_later(peer);
                false
            }
        }
    }

    /// Reports what the peer sends within the next interval, and so on until it sends nothing.
    fn report_later(self: &Arc<Self>, peer: Peer) {
        let denials = Arc::downgrade(self);
        tokio::spawn(async move {
            loop {
                sleep(INTERVAL).await;
                let Some(denials) = denials.upgrade() else { return };
                if !denials.end_interval(peer) {
                    return;
                }
            }
        });
    }

    /// Reports the interval of a peer. Returns whether another one begins.
    fn end_interval(&self, peer: Peer) -> bool {
        let mut peers = self.peers.lock();
        let Some(denials) = peers.get_mut(&peer) else { return false };
        if denials.unreported == 0 {
            peers.remove(&peer);
            return false;
        }
        let count = std::mem::take(&mut denials.unreported);
        denials.unauthorized = 0;
        let last = denials.last;
        drop(peers);
        self.report(peer, &last, count);
        true
    }

    /// Reports what is not reported yet, because the daemon ends.
    pub(super) fn close(&self) {
        let peers = std::mem::take(&mut *self.peers.lock());
        for (peer, denials) in peers {
            if denials.unreported > 0 {
                self.report(peer, &denials.last, denials.unreported);
            }
        }
    }

    fn report(&self, peer: Peer, request: &DeniedRequest, count: u64) {
        let DeniedRequest { listener, status, code, method, route } = *request;
        tracing::warn!(%peer, listener, status, code, method, route, count, "requests denied");
        let Some(audit) = &self.audit else { return };
        let details = DenialDetails { peer: peer.to_string(), listener, status, code, method, route, count };
        audit.record_denial(DenialLine { at: Timestamp::of(SystemTime::now()).to_string(), denied: details });
    }
}

/// The name of a method, which a client may choose freely.
pub(super) fn method_name(method: &Method) -> &'static str {
    const KNOWN: [&str; 8] = ["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"];
    KNOWN.into_iter().find(|known| *known == method.as_str()).unwrap_or("other")
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    const REQUEST: DeniedRequest = DeniedRequest {
        listener: "tcp",
        status: 401,
        code: "unauthorized",
        method: "GET",
        route: "/metrics",
    };

    fn address(number: u32) -> Peer {
        Peer::Address(Ipv4Addr::from(number).into())
    }

    #[tokio::test]
    async fn a_peer_is_slowed_down_until_its_interval_ends() {
        let denials = Denials::new(None);
        let answers: Vec<_> = (0..110).map(|_| denials.record(address(1), REQUEST)).collect();
        assert_eq!(answers.iter().position(|too_many| *too_many), Some(100));
        assert!(!denials.record(address(2), REQUEST), "another peer is not");
        let forbidden = DeniedRequest { status: 403, ..REQUEST };
        assert!(!denials.record(address(1), forbidden));
        assert!(denials.end_interval(address(1)));
        assert!(!denials.record(address(1), REQUEST));
    }

    #[tokio::test]
    async fn quiet_peers_are_forgotten() {
        let denials = Denials::new(None);
        denials.record(address(1), REQUEST);
        denials.record(address(1), REQUEST);
        assert!(denials.end_interval(address(1)) && !denials.end_interval(address(1)));
        assert!(denials.peers.lock().is_empty());
    }

    #[tokio::test]
    async fn peers_are_bounded() {
        let denials = Denials::new(None);
        for number in 0..5000 {
            denials.record(address(number), REQUEST);
        }
        assert_eq!(denials.peers.lock().len(), MAX_PEERS + 1);
    }

    #[test]
    fn a_method_that_a_client_made_up_is_not_repeated() {
        assert_eq!(method_name(&Method::PUT), "PUT");
        assert_eq!(method_name(&Method::from_bytes(b"BREW").unwrap()), "other");
    }
}
