//! The streams of the queue: events that wait for workers, and dead letters.
//!
//! - Events wait in a work queue: each is there until a worker has acknowledged it. It has no age, and takes no more when it is
//!   full: nodes keep in their outboxes what it does not take, and refuse events once those are full. So nothing is dropped.
//! - Dead letters are kept by limits of number and size, and the oldest make room, as in an outbox.

use std::{
    error::Error,
    sync::atomic::{AtomicBool, Ordering},
    time::Duration,
};

use async_nats::{
    Client, connection,
    jetstream::{
        self, Context, ErrorCode,
        consumer::{AckPolicy, Consumer, pull},
        context::{
            ContextBuilder, CreateStreamErrorKind, GetStreamErrorKind, PublishError, PublishErrorKind,
        },
        message::PublishMessage,
        publish::PublishAck,
        stream::{
            Config, DiscardPolicy, PersistenceMode, RawMessageErrorKind, RetentionPolicy, StorageType, Stream,
        },
    },
};
use parking_lot::{Mutex, MutexGuard};
use tokio::time::timeout;

use super::{
    QueueOptions,
    message::{Death, QueuedEvent},
    seen::SeenQueue,
};
use crate::store::shared::{
    ClusterError, ConnectFailure, REQUEST_TIMEOUT, check_server, connect, unreachable,
};

/// How long the queue knows the id of an event, so that one that is put twice is there once.
const REPETITIONS_KNOWN: Duration = Duration::from_mins(10);

/// How long a server may take to confirm a message. One without a leader confirms nothing for seconds.
const PATIENCE: Duration = Duration::from_secs(5);

/// What a message may take besides its event, in bytes.
const HEADERS: usize = 4096;

/// What servers say of a message for which a stream has no room, besides an error that has other reasons too. Nothing of it is written.
const FULL: [&str; 2] = ["maximum bytes exceeded", "maximum messages exceeded"];

/// The errors of servers that have no room themselves. Nothing of a message is written.
const NO_SPACE: [ErrorCode; 3] = [
    ErrorCode::INSUFFICIENT_RESOURCES,
    ErrorCode::STORAGE_RESOURCES_EXCEEDED,
    ErrorCode::ACCOUNT_RESOURCES_EXCEEDED,
];

/// The name of what all workers share.
pub(super) const WORKERS: &str = "workers";

/// How many events all workers together may have.
const MOST_UNDER_WAY: i64 = 20_000;

/// The queue of a cluster.
#[derive(Debug)]
pub(crate) struct LifecycleQueue {
    client: Client,
    failure: ConnectFailure,
    jetstream: Context,
    options: QueueOptions,
    is_open: AtomicBool,
    seen: Mutex<SeenQueue>,
}

/// Why an event is not in the queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NotPut {
    /// Nothing was sent.
    NotSent(String),
    /// It may be there all the same.
    Unsure(String),
}

impl NotPut {
    /// What is wrong.
    pub(crate) fn why(&self) -> &str {
        match self {
            Self::NotSent(why) | Self::Unsure(why) => why,
        }
    }
}

impl LifecycleQueue {
    /// Prepares to connect. Servers that are not there are tried again.
    ///
    /// Returns an error if an address or the credentials cannot be used.
    pub(crate) async fn connect(options: QueueOptions) -> Result<Self, ClusterError> {
        let (client, failure) = connect(&options.cluster).await?;
        let jetstream = ContextBuilder::new().timeout(REQUEST_TIMEOUT).build(client.clone());
        Ok(Self {
            client,
            failure,
            jetstream,
            options,
            is_open: AtomicBool::new(false),
            seen: Mutex::default(),
        })
    }

    /// Returns an error if no server is connected to, or one that is too old.
    pub(super) fn check_server(&self) -> Result<(), ClusterError> {
        check_server(&self.client, &self.options.cluster, &self.failure)
    }

    pub(super) fn options(&self) -> &QueueOptions {
        &self.options
    }

    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    #[cfg(feature = "cli")]
    pub(super) fn jetstream(&self) -> &Context {
        &self.jetstream
    }

    /// What is known of the stream of events.
    pub(super) fn seen(&self) -> MutexGuard<'_, SeenQueue> {
        self.seen.lock()
    }

    /// How many milliseconds ago it was found that what waited in it was lost, if it was.
    pub(crate) fn lost_ms(&self) -> Option<u64> {
        let age = self.seen.lock().lost_at()?.elapsed();
        Some(u64::try_from(age.as_millis()).unwrap_or(u64::MAX))
    }

    /// How often a server was connected to.
    pub(super) fn connections(&self) -> u64 {
        self.client.statistics().connects.load(Ordering::Relaxed)
    }

    /// Removes a message with this number that was put into the queue at this time. Returns whether it is there no more.
    pub(super) async fn remove(&self, id: u64, put_at: i128) -> bool {
        let Ok(stream) = self.queue_stream().await else { return false };
        match stream.get_raw_message(id).await {
            // Another stream of the same name has another message under the number.
            Ok(message) if message.time.unix_timestamp_nanos() != put_at => true,
            Ok(_) => stream.delete_message(id).await.is_ok(),
            Err(error) => matches!(error.kind(), RawMessageErrorKind::NoMessageFound),
        }
    }

    /// Makes the streams, if they are not there.
    ///
    /// Returns an error if they cannot be used.
    pub(crate) async fn open(&self) -> Result<(), ClusterError> {
        self.check_server()?;
        let before = self.seen.lock().known();
        let (queue, is_made) = self.opened(self.queue_config()).await?;
        self.check(&queue.cached_info().config)?;
        let (dead, _) = self.opened(self.dead_config()).await?;
        self.opened_as(&queue, before, is_made.then(|| made_at(&dead)));
        self.is_open.store(true, Ordering::Release);
        Ok(())
    }

    /// A stream, and whether it was not there.
    async fn opened(&self, config: Config) -> Result<(Stream, bool), ClusterError> {
        let name = config.name.clone();
        match self.jetstream.get_stream(&name).await {
            Ok(stream) => return Ok((stream, false)),
            Err(error) => match error.kind() {
                GetStreamErrorKind::JetStream(known) if known.error_code() == ErrorCode::STREAM_NOT_FOUND => {
                }
                _ => return Err(unreachable(&error)),
            },
        }
        let made = self.jetstream.create_stream(config).await.map_err(|error| match error.kind() {
            CreateStreamErrorKind::JetStream(why) => ClusterError::QueueNotMade {
                stream: name,
                replicas: self.options.cluster.replicas,
                why: why.to_string(),
            },
            _ => unreachable(&error),
        })?;
        Ok((made, true))
    }

    fn queue_config(&self) -> Config {
        Config {
            description: Some("lifecycle events for the workers of hookyard".to_owned()),
            retention: RetentionPolicy::WorkQueue,
            discard: DiscardPolicy::New,
            ..self.config(self.queue_name(), self.queue_subject("*"), self.options.size)
        }
    }

    fn dead_config(&self) -> Config {
        Config {
            description: Some("lifecycle events that no worker of hookyard could deliver".to_owned()),
            retention: RetentionPolicy::Limits,
            max_messages: i64::try_from(self.options.dead).unwrap_or(i64::MAX),
            discard: DiscardPolicy::Old,
            ..self.config(self.dead_name(), self.dead_subject("*"), self.options.dead_size)
        }
    }

    /// What both streams have in common.
    fn config(&self, name: String, subject: String, size: usize) -> Config {
        Config {
            name,
            subjects: vec![subject],
            max_bytes: i64::try_from(size).unwrap_or(i64::MAX),
            duplicate_window: REPETITIONS_KNOWN,
            storage: StorageType::File,
            num_replicas: self.options.cluster.replicas,
            ..Config::default()
        }
    }

    /// Returns an error if events are not safe in a stream with this configuration.
    pub(super) fn check(&self, config: &Config) -> Result<(), ClusterError> {
        let replicas = format!("num_replicas {}", config.num_replicas);
        let needed = format!("num_replicas {} (`cluster.replicas`)", self.options.cluster.replicas);
        let is_lazy = config.persist_mode == Some(PersistenceMode::Async);
        let is_kept = config.retention == RetentionPolicy::WorkQueue;
        let wrong = [
            (config.storage != StorageType::File, "storage memory", "storage file"),
            (is_lazy, "persist_mode async", "persist_mode default"),
            (!is_kept, "another retention", "retention workqueue"),
            (config.discard != DiscardPolicy::New, "discard old", "discard new"),
            (!config.max_age.is_zero(), "max_age", "no max_age"),
            (config.no_ack, "no_ack", "no_ack off"),
            (config.num_replicas < self.options.cluster.replicas, &replicas, &needed),
        ];
        match wrong.into_iter().find(|(is_wrong, ..)| *is_wrong) {
            None => Ok(()),
            Some((_, found, needed)) => Err(ClusterError::UnsafeQueue {
                stream: config.name.clone(),
                found: found.to_owned(),
                needed: needed.to_owned(),
            }),
        }
    }

    /// The size of an event that the servers take no message of, in bytes. While none is connected to, that is not known.
    pub(crate) fn too_large(&self, event: &QueuedEvent) -> Option<usize> {
        let most = self.client.server_info().max_payload;
        let size = event.encode().len();
        (most > 0 && size + HEADERS > most).then_some(size)
    }

    /// Puts an event into the queue. A majority of its servers has it then. Returns whether they had it before.
    pub(crate) async fn put(&self, event: &QueuedEvent) -> Result<bool, NotPut> {
        let payload = event.encode();
        if self.client.connection_state() != connection::State::Connected {
            return Err(NotPut::NotSent("no server can be connected to".to_owned()));
        }
        self.open_once().await?;
        let message = PublishMessage::build().payload(payload.into()).message_id(event.id());
        let subject = self.queue_subject(event.event.kind.as_str());
        let before = self.seen.lock().known();
        let acknowledged = self.published(&self.queue_name(), subject, message).await?;
        if !acknowledged.duplicate {
            self.numbered(acknowledged.sequence, before).await;
        }
        Ok(acknowledged.duplicate)
    }

    /// Puts a message that was a dead letter into the queue again.
    #[cfg(feature = "cli")]
    pub(super) async fn put_again(&self, kind: &str, message: PublishMessage) -> Result<bool, NotPut> {
        self.publish(&self.queue_name(), self.queue_subject(kind), message).await
    }

    /// Puts a dead letter away.
    pub(super) async fn bury(&self, number: u64, payload: &[u8], death: &Death) -> Result<bool, NotPut> {
        self.open_once().await?;
        let most = self.client.server_info().max_payload.saturating_sub(HEADERS);
        let id = format!("{}-{number}", self.queue_name());
        let message = death.message(payload, most, &self.options.cluster.node).message_id(id);
        self.publish(&self.dead_name(), self.dead_subject(death.reason), message).await
    }

    /// Makes the streams if they are not there, or have gone.
    async fn open_once(&self) -> Result<(), NotPut> {
        if self.is_open.load(Ordering::Acquire) {
            return Ok(());
        }
        self.open().await.map_err(|error| NotPut::NotSent(error.to_string()))
    }

    /// Puts a message into a stream. Returns whether it was there before.
    async fn publish(&self, stream: &str, subject: String, message: PublishMessage) -> Result<bool, NotPut> {
        Ok(self.published(stream, subject, message).await?.duplicate)
    }

    async fn published(
        &self,
        stream: &str,
        subject: String,
        message: PublishMessage,
    ) -> Result<PublishAck, NotPut> {
        let published = async {
            let acknowledged = self.jetstream.send_publish(subject, message).await?;
            acknowledged.await
        };
        match timeout(PATIENCE, published).await {
            Ok(Ok(acknowledged)) => Ok(acknowledged),
            Ok(Err(error)) => Err(self.refused(stream, &error)),
            Err(_) => Err(NotPut::Unsure("no server confirms it".to_owned())),
        }
    }

    /// What a server says of a message that it does not confirm.
    fn refused(&self, stream: &str, error: &PublishError) -> NotPut {
        // With its reason.
        let why = match unreachable(error) {
            ClusterError::Unreachable(why) => why,
            other => other.to_string(),
        };
        if matches!(error.kind(), PublishErrorKind::StreamNotFound) {
            self.is_open.store(false, Ordering::Release);
            return NotPut::NotSent(why);
        }
        let known = error.source().and_then(|cause| cause.downcast_ref::<jetstream::Error>());
        let code = known.map(jetstream::Error::error_code);
        if code.is_some_and(|code| NO_SPACE.contains(&code)) {
            return NotPut::NotSent(format!(
                "the servers have no room for the stream {stream}: raise their `max_file_store`, or the limits of the account ({why})"
            ));
        }
        if code == Some(ErrorCode::STREAM_STORE_FAILED) && FULL.iter().any(|full| why.contains(full)) {
            let help = if stream == self.queue_name() { "start more workers, or raise" } else { "raise" };
            return NotPut::NotSent(format!(
                "the stream {stream} is full: {help} its limits with `nats stream edit` ({why})"
            ));
        }
        NotPut::Unsure(why)
    }

    /// What all workers take events from.
    pub(super) async fn consumer(&self) -> Result<Consumer<pull::Config>, ClusterError> {
        let stream = self.queue_stream().await?;
        let config = pull::Config {
            durable_name: Some(WORKERS.to_owned()),
            ack_policy: AckPolicy::Explicit,
            ack_wait: self.options.silence,
            // Workers give up an event themselves, as a dead letter. A server would leave it where nobody sees it.
            max_deliver: -1,
            max_ack_pending: MOST_UNDER_WAY,
            ..pull::Config::default()
        };
        stream.create_consumer(config).await.map_err(|error| unreachable(&error))
    }

    pub(super) async fn queue_stream(&self) -> Result<Stream, ClusterError> {
        self.jetstream.get_stream(self.queue_name()).await.map_err(|error| unreachable(&error))
    }

    pub(super) fn queue_name(&self) -> String {
        format!("QUEUE_{}", self.options.cluster.bucket)
    }

    /// The subject at which workers are asked whether they are there.
    pub(super) fn roll_call_subject(&self) -> String {
        format!("hookyard-workers.{}", self.options.cluster.bucket)
    }

    pub(super) fn dead_name(&self) -> String {
        format!("DEAD_{}", self.options.cluster.bucket)
    }

    pub(super) fn queue_subject(&self, kind: &str) -> String {
        format!("hookyard-queue.{}.{kind}", self.options.cluster.bucket)
    }

    pub(super) fn dead_subject(&self, reason: &str) -> String {
        format!("hookyard-dead.{}.{reason}", self.options.cluster.bucket)
    }
}

/// When a stream was made.
pub(super) fn made_at(stream: &Stream) -> i128 {
    stream.cached_info().created.unix_timestamp_nanos()
}
