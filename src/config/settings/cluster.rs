//! The settings of a daemon that is one of several nodes behind a balancer.

use std::{num::NonZeroUsize, path::PathBuf, time::Duration};

use super::{
    declare::settings,
    keys::ValueType,
    urls::url,
    value_types::{NullIsDefault, Size, count},
};
use crate::{dialect::Value, model::Address};

settings! {
    /// Whether this daemon is a node: one of several daemons behind a balancer.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub section ClusterSettings {
        /// Whether this daemon is a node of a cluster. A node takes only events whose request names their run, in
        /// `X-Hookyard-Run` or in the path, and their workspace, by its id. Workspaces are those of the settings.
        enabled: bool = false,

        /// Servers of NATS in which all nodes share the halts of runs, as `nats://host:port`, or `tls://host:port` for those of
        /// other machines; without any, each node has its own. They need the version 2.12 or later, with `jetstream` and
        /// `sync_interval: always`.
        #[example = "[\"tls://nats-1:4222\", \"tls://nats-2:4222\", \"tls://nats-3:4222\"]"]
        store: Vec<String> as Vec<StoreAddress> = Vec::new(),

        /// Name of the cluster in the store: that of the bucket with its halts. Letters, digits, `_` and `-`.
        name: String as ClusterName = "hookyard".to_owned(),

        /// What is promised of what nodes share: with `watch` a halt is answered once the store has it, and the other nodes
        /// hear of it within milliseconds; with `strict` it is answered once every node that answers events knows it, and hooks
        /// that run once per run, counters of rules and of stops hold on all nodes.
        halts: HaltSharing as NullIsDefault<HaltSharing> = HaltSharing::Watch,

        /// File with the credentials for the store, as `nsc` and NATS write them.
        #[example = "/etc/hookyard/cluster.creds"]
        credentials: Option<PathBuf> = None,

        /// On how many servers of the store each halt is. With three, one may fail.
        replicas: NonZeroUsize = count(3),

        /// Addresses at which the servers of the store are monitored; without any, port 8222 of each. A node asks them
        /// whether they write to disk what they confirm, and does not start if one does not, or if none says so.
        #[example = "[\"http://nats-1:8222\"]"]
        monitoring: Vec<Address> as Vec<MonitoringUrl> = Vec::new(),

        /// Whether servers of the store that cannot be asked are trusted to write to disk what they confirm.
        trust_sync: bool = false,

        /// Time without a word of the store after which other nodes may have halted runs without this one knowing.
        stale_after: Duration = Duration::from_secs(2),

        /// What becomes of events then: `answer` goes on with the halts that are known, `refuse` has their hosts ask another
        /// node. With `halts: strict` they are refused in any case.
        unsure: UnsurePolicy as NullIsDefault<UnsurePolicy> = UnsurePolicy::Answer,

        /// Where hooks of lifecycle events run that nobody waits for: `here`, on the node that has accepted the event, or with
        /// `queue` on the workers that `hookyard work` starts, which take events out of a queue in the store. Events whose
        /// hooks run once per run, or whose rules count, stay on the node.
        lifecycle: LifecyclePlace as NullIsDefault<LifecyclePlace> = LifecyclePlace::Here,

        /// How much may wait in the queue when it is made. What it does not take waits in the outboxes of nodes.
        queue_size: usize as Size = 256 << 20,

        /// Time without a word of a worker after which another one gets the events that it had.
        worker_silence: Duration = Duration::from_secs(30),

        /// How many events a worker has at the same time.
        at_once: NonZeroUsize = count(32),
    }
}

/// What is promised of what nodes share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum HaltSharing {
    /// A halt is answered once the store has it. Other nodes hear of it within milliseconds.
    #[default]
    Watch,
    /// A halt is answered once every node that answers events knows it. What hooks have done in a run holds on all nodes.
    Strict,
}

impl HaltSharing {
    pub(super) const ALL: [Self; 2] = [Self::Watch, Self::Strict];

    /// The word for it in the settings.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Watch => "watch",
            Self::Strict => "strict",
        }
    }
}

/// Where hooks of lifecycle events run that nobody waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum LifecyclePlace {
    /// On the daemon that has accepted the event.
    #[default]
    Here,
    /// On workers, which take it out of a queue.
    Queue,
    /// This is a worker. `hookyard work` sets it; files cannot.
    Work,
}

impl LifecyclePlace {
    pub(super) const ALL: [Self; 2] = [Self::Here, Self::Queue];

    /// The word for it in the settings.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Here => "here",
            Self::Queue => "queue",
            Self::Work => "work",
        }
    }
}

/// What becomes of events while other nodes may have halted their runs without this one knowing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum UnsurePolicy {
    /// They are answered by what is known.
    #[default]
    Answer,
    /// They are refused with `cluster_unsure`, which a host may send to another node.
    Refuse,
}

impl UnsurePolicy {
    pub(super) const ALL: [Self; 2] = [Self::Answer, Self::Refuse];

    /// The word for it in the settings.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Answer => "answer",
            Self::Refuse => "refuse",
        }
    }
}

/// The port at which servers of NATS are monitored, unless they are told another one.
#[cfg(feature = "cluster")]
const MONITORING_PORT: u16 = 8222;

impl ClusterSettings {
    /// Where the servers of the store are monitored.
    #[cfg(feature = "cluster")]
    pub(crate) fn monitored(&self) -> Vec<Address> {
        if !self.monitoring.is_empty() {
            return self.monitoring.clone();
        }
        let of_server = |server: &String| {
            let (_, place) = server.split_once("://")?;
            let is_port = |port: &str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
            let host =
                place.rsplit_once(':').filter(|(_, port)| is_port(port)).map_or(place, |(host, _)| host);
            Address::parse(&format!("http://{host}:{MONITORING_PORT}")).ok()
        };
        self.store.iter().filter_map(of_server).collect()
    }

    /// Whether nodes share halts.
    pub fn is_shared(&self) -> bool {
        !self.store.is_empty()
    }
}

/// The longest name of a cluster, in bytes.
const MAX_NAME: usize = 63;

/// The fewest servers of a store whose promises are strict.
pub(super) const FEWEST_STRICT: usize = 3;

/// The shortest time after which a store may count as silent: beats come twice a second.
pub(super) const SHORTEST_STALE: Duration = Duration::from_secs(1);

/// The shortest time after which a worker may count as silent.
pub(super) const SHORTEST_SILENCE: Duration = Duration::from_secs(1);

/// An address of a server of the store.
pub(super) struct StoreAddress;

/// The name of a cluster.
pub(super) struct ClusterName;

/// An address at which a server of the store is monitored.
pub(super) struct MonitoringUrl;

impl ValueType for UnsurePolicy {
    type Field = Self;

    fn parse(value: &Value<'_>) -> Option<Self> {
        value.choice(&Self::ALL.map(|policy| (policy.as_str(), policy)))
    }
}

impl ValueType for LifecyclePlace {
    type Field = Self;

    fn parse(value: &Value<'_>) -> Option<Self> {
        value.choice(&Self::ALL.map(|place| (place.as_str(), place)))
    }
}

impl ValueType for HaltSharing {
    type Field = Self;

    fn parse(value: &Value<'_>) -> Option<Self> {
        value.choice(&Self::ALL.map(|sharing| (sharing.as_str(), sharing)))
    }
}

impl ValueType for StoreAddress {
    type Field = String;

    fn parse(value: &Value<'_>) -> Option<String> {
        let text = value.text()?;
        let why_not = match text.split_once("://") {
            Some(("nats" | "tls", rest)) if rest.contains('@') => {
                "credentials belong into the file of `credentials`"
            }
            Some((scheme @ ("nats" | "tls"), rest)) if !rest.contains(['/', '?', '#', ' ', '\\']) => {
                match place_of(scheme, rest) {
                    Ok(()) => return Some(text.to_owned()),
                    Err(why) => why,
                }
            }
            _ => "it is no address of a NATS server",
        };
        let help = "write it as `nats://host:4222`, or as `tls://host:4222`";
        value.error("cluster", format!("an item of `{}`: {why_not}", value.name()), help);
        None
    }
}

/// Returns what is wrong with the host and the port of a server.
fn place_of(scheme: &str, place: &str) -> Result<(), &'static str> {
    let url = url::Url::parse(&format!("{scheme}://{place}")).map_err(|error| match error {
        url::ParseError::InvalidPort => "its port is no number up to 65535",
        _ => "its host cannot be one",
    })?;
    match (url.host_str(), url.port()) {
        (None | Some(""), _) => Err("it names no host"),
        (_, Some(0)) => Err("its port is 0"),
        _ => Ok(()),
    }
}

impl ValueType for ClusterName {
    type Field = String;

    fn parse(value: &Value<'_>) -> Option<String> {
        let text = value.text()?;
        let is_permitted = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        if !text.is_empty() && text.len() <= MAX_NAME && text.bytes().all(is_permitted) {
            return Some(text.to_owned());
        }
        let message = format!("`{}` is no name that a bucket can have", value.name());
        value.error("cluster", message, "write at most 63 letters, digits, `_` and `-`");
        None
    }
}

impl ValueType for MonitoringUrl {
    type Field = Address;

    fn parse(value: &Value<'_>) -> Option<Address> {
        let help = "write it as `http://host:8222`";
        let why_not =
            |address: &Address| address.socket().map(|_| "a server of NATS is not monitored at a socket");
        url(value, why_not, help, Some(help))
    }
}

/// Descriptions of the types. Compiled for tests only.
#[cfg(test)]
mod described {
    use serde_json::{Value as Json, json};

    use super::{
        super::described::{DescribedValue, ValueForm},
        ClusterName, StoreAddress,
    };

    impl DescribedValue for StoreAddress {
        fn form() -> ValueForm {
            ValueForm::text("address of a NATS server", r"^(nats|tls)://[^/?#@\s]+$")
        }

        fn show(field: &String) -> Json {
            json!(field)
        }
    }

    impl DescribedValue for ClusterName {
        fn form() -> ValueForm {
            ValueForm::text("name of a bucket", "^[A-Za-z0-9_-]{1,63}$")
        }

        fn show(field: &String) -> Json {
            json!(field)
        }
    }
}
