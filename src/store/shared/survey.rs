//! Everything in the bucket of a cluster, read at once for an operator, and the messages that an operator writes there.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use futures_util::StreamExt;
use tokio::time::{Instant, timeout, timeout_at};

use super::{
    ClusterOptions,
    beats::{self, NodeBeat},
    bucket::{Bucket, BucketReport, ReadFrom},
    error::ClusterError,
    messages::{HaltMessage, token_of},
};
use crate::{model::RunKey, store::StoredHalt};

/// How long the bucket may take to give the next message.
const PATIENCE: Duration = Duration::from_secs(1);

/// How long nodes are listened to: each says three times or more that it is there.
const NAMES_WATCHED: Duration = Duration::from_millis(1700);

/// How often it is read.
const READ_TRIES: u32 = 5;

/// How long a connection may take.
const CONNECT_PAUSE: Duration = Duration::from_millis(50);
const CONNECT_TRIES: u32 = 60;

/// The connection of an operator to the store of a cluster.
#[derive(Debug)]
pub(crate) struct ClusterOperator {
    bucket: Bucket,
}

/// What is in the bucket of a cluster.
#[derive(Debug)]
pub(crate) struct ClusterSurvey {
    pub(crate) report: BucketReport,
    /// The last beat of each node, and how old it was.
    pub(crate) nodes: Vec<(NodeBeat, Duration)>,
    /// The runs that are halted, and for how long.
    pub(crate) halts: Vec<(RunKey, StoredHalt, Duration)>,
    /// The keys of messages that cannot be read.
    pub(crate) unreadable: Vec<String>,
}

impl ClusterOperator {
    /// Connects to the store.
    ///
    /// Returns an error if it cannot be used.
    pub(crate) async fn connect(options: ClusterOptions) -> Result<Self, ClusterError> {
        let bucket = Bucket::connect(options).await?;
        for _ in 1..CONNECT_TRIES {
            match bucket.check_server() {
                Err(ClusterError::Unreachable(_)) => tokio::time::sleep(CONNECT_PAUSE).await,
                _ => break,
            }
        }
        bucket.check_server()?;
        Ok(Self { bucket })
    }

    /// Whether the bucket is there. Makes none.
    ///
    /// Returns an error if halts are not safe in it, it cannot be looked at, or its server cannot make it.
    pub(crate) async fn has_bucket(&self) -> Result<bool, ClusterError> {
        self.bucket.is_there().await
    }

    /// Returns an error if the servers of the settings do not have one bucket.
    pub(crate) async fn check_servers(&self) -> Result<(), ClusterError> {
        self.bucket.check_servers().await
    }

    /// The names that several processes have, each of which goes on saying that it is there.
    ///
    /// Returns an error if the bucket cannot be read.
    pub(crate) async fn shared_names(&self) -> Result<BTreeSet<String>, ClusterError> {
        let stream = self.bucket.open().await?;
        let from = ReadFrom::Behind(stream.cached_info().state.last_sequence);
        let mut messages = self.bucket.read(&stream, from).await?;
        let end = Instant::now() + NAMES_WATCHED;
        let mut instances: BTreeMap<String, Vec<String>> = BTreeMap::new();
        while let Ok(Some(Ok(message))) = timeout_at(end, messages.next()).await {
            let key = self.bucket.key_of(&message);
            let key = key.filter(|(key, operation)| key.starts_with("node.") && !operation.is_end());
            if let Some(beat) = key.and_then(|_| NodeBeat::decode(&message.payload)) {
                instances.entry(beat.node).or_default().push(beat.instance);
            }
        }
        Ok(instances.into_iter().filter(|(_, heard)| alternate(heard)).map(|(node, _)| node).collect())
    }

    /// Reads all that is in the bucket.
    ///
    /// Returns an error if that is impossible.
    pub(crate) async fn survey(&self) -> Result<ClusterSurvey, ClusterError> {
        let mut tries = 0;
        loop {
            tries += 1;
            // The first request of a consumer may be lost while its servers hear of each other.
            match self.read().await {
                Err(ClusterError::Unreachable(_)) if tries < READ_TRIES => {}
                read => return read,
            }
        }
    }

    async fn read(&self) -> Result<ClusterSurvey, ClusterError> {
        let stream = self.bucket.open().await?;
        let report = self.bucket.report().await?;
        let mut left = stream.cached_info().state.messages;
        let mut messages = self.bucket.read(&stream, ReadFrom::Everything).await?;
        let (mut nodes, mut halts, mut unreadable) = (BTreeMap::new(), Vec::new(), Vec::new());
        let mut latest = i64::MIN;
        while left > 0 {
            let next = timeout(PATIENCE, messages.next()).await;
            let Ok(Some(Ok(message))) = next else {
                return Err(ClusterError::Unreachable("its bucket cannot be read".to_owned()));
            };
            let Ok(info) = message.info() else { break };
            left = info.pending;
            let written = info.published.unix_timestamp();
            latest = latest.max(written);
            let Some((key, operation)) = self.bucket.key_of(&message) else { continue };
            let is_over = operation.is_end();
            if key.starts_with("node.") {
                match NodeBeat::decode(&message.payload) {
                    _ if is_over => {}
                    Some(beat) => {
                        nodes.insert(beat.node.clone(), (beat, written));
                    }
                    None => unreadable.push(key.to_owned()),
                }
            } else if let Some(token) = key.strip_prefix("halt.") {
                match HaltMessage::decode(&message.payload, is_over) {
                    Ok(halt) if token_of(&halt.key) != token => unreadable.push(key.to_owned()),
                    Ok(HaltMessage { key, halt: Some(halt), .. }) => halts.push((key, halt, written)),
                    Ok(_) => {}
                    Err(_) => unreadable.push(key.to_owned()),
                }
            }
        }
        let age = |written: i64| {
            Duration::from_secs(u64::try_from(latest.saturating_sub(written)).unwrap_or_default())
        };
        Ok(ClusterSurvey {
            report,
            nodes: nodes.into_values().map(|(beat, written)| (beat, age(written))).collect(),
            halts: halts.into_iter().map(|(key, halt, written)| (key, halt, age(written))).collect(),
            unreadable,
        })
    }

    /// Ends the halt of a run on all nodes.
    ///
    /// Returns an error if the store does not confirm it.
    pub(crate) async fn forget(&self, key: &RunKey) -> Result<(), ClusterError> {
        self.bucket.open().await?;
        let bytes = HaltMessage::encode(key, None, (&self.bucket.options().node, ""));
        self.bucket.end(&format!("halt.{}", token_of(key)), bytes).await.map(drop)
    }

    /// Asks a process of a node to stop as `hookyard stop` has it.
    ///
    /// Returns an error if the store does not confirm it.
    pub(crate) async fn drain(&self, beat: &NodeBeat) -> Result<(), ClusterError> {
        let key = format!("drain.{}", beats::token_of(&beat.node));
        self.bucket.put(&key, beat.instance.clone().into_bytes()).await.map(drop)
    }
}

/// Whether a process is heard of again after another one. One that takes the place of another is heard of alone from then on.
pub(super) fn alternate(heard: &[String]) -> bool {
    let Some(first) = heard.first() else { return false };
    let last = heard.iter().rposition(|instance| instance == first).unwrap_or_default();
    heard[..last].iter().any(|instance| instance != first)
}
