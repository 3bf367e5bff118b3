//! The bucket: a stream of `JetStream` that keeps the last message of each subject, named as key-value buckets are.
//!
//! Rules that measurements and the servers' code dictate:
//!
//! - Nothing is read by a direct get: any server answers it, also one that is behind what others have confirmed. Reading goes
//!   through a consumer, which the stream's leader feeds in the order of writing, and through the leader itself.
//! - Servers before 2.12 are refused, and buckets in memory, with asynchronous writes or direct gets.

use std::time::Duration;

use async_nats::{
    Client,
    jetstream::{
        self, Context,
        consumer::{DeliverPolicy, pull},
        context::{
            ContextBuilder, CreateStreamErrorKind, GetStreamErrorKind, PublishError, PublishErrorKind,
        },
        message::PublishMessage,
        stream::{Config, DiscardPolicy, PersistenceMode, RetentionPolicy, StorageType, Stream},
    },
};

use jetstream::ErrorCode;
use tokio::time::{sleep, timeout};

use super::{
    ClusterOptions,
    connection::{ConnectFailure, REQUEST_TIMEOUT, check_server, connect},
    error::{ClusterError, unreachable},
    publication::{KeyOperation, Message, PATIENCE, Put},
};

/// Between two attempts to open the bucket.
const OPEN_PAUSE: Duration = Duration::from_millis(50);

/// How much longer the bucket keeps a halt than a daemon keeps a run that nothing is asked of. A halt that is asked for is
/// written again before.
const KEPT_FOR: u32 = 4;

/// A bucket of a cluster.
#[derive(Debug, Clone)]
pub(crate) struct Bucket {
    client: Client,
    failure: ConnectFailure,
    jetstream: Context,
    options: ClusterOptions,
}

/// How the bucket is, for people.
#[cfg(feature = "cli")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BucketReport {
    /// The server that is connected to, and its version.
    pub(crate) server: String,
    pub(crate) version: String,
    /// The server that leads.
    pub(crate) leader: Option<String>,
    /// Those that follow, and whether each is up to date.
    pub(crate) followers: Vec<(String, bool)>,
    pub(crate) replicas: usize,
}

/// Which messages a reader wants.
#[derive(Debug, Clone, Copy)]
pub(super) enum ReadFrom {
    /// The last one of each subject.
    Everything,
    /// Those behind this one.
    Behind(u64),
}

impl Bucket {
    /// Prepares to connect. Servers that are not there are tried again.
    ///
    /// Returns an error if an address or the credentials cannot be used.
    pub(crate) async fn connect(options: ClusterOptions) -> Result<Self, ClusterError> {
        let (client, failure) = connect(&options).await?;
        let jetstream = ContextBuilder::new().timeout(REQUEST_TIMEOUT).build(client.clone());
        Ok(Self { client, failure, jetstream, options })
    }

    /// The stream of the bucket, made if there is none.
    ///
    /// Returns an error if the server is too old, or if the bucket is not one that halts are safe in.
    pub(crate) async fn open(&self) -> Result<Stream, ClusterError> {
        self.check_server()?;
        let stream = match self.found_by(&self.jetstream).await? {
            Some(stream) => stream,
            None => self.make().await?,
        };
        self.check(&stream.cached_info().config)?;
        Ok(stream)
    }

    /// The stream of the bucket, if those who are asked this way have one.
    pub(super) async fn found_by(&self, jetstream: &Context) -> Result<Option<Stream>, ClusterError> {
        match jetstream.get_stream(self.stream_name()).await {
            Ok(stream) => Ok(Some(stream)),
            Err(error) => match error.kind() {
                GetStreamErrorKind::JetStream(known) if known.error_code() == ErrorCode::STREAM_NOT_FOUND => {
                    Ok(None)
                }
                _ => Err(unreachable(&error)),
            },
        }
    }

    /// Whether the bucket is there. Makes none.
    ///
    /// Returns an error if halts are not safe in it, it cannot be looked at, or its server cannot make it.
    #[cfg(feature = "cli")]
    pub(super) async fn is_there(&self) -> Result<bool, ClusterError> {
        match self.found_by(&self.jetstream).await? {
            Some(stream) => self.check(&stream.cached_info().config).map(|()| true),
            None => self.check_cluster().map(|()| false),
        }
    }

    /// Returns an error if the bucket cannot be made, since its server is of no cluster.
    #[cfg(feature = "cli")]
    fn check_cluster(&self) -> Result<(), ClusterError> {
        let server = self.client.server_info();
        if self.options.replicas == 1 || server.cluster.is_some() {
            return Ok(());
        }
        Err(ClusterError::TooFewServers {
            bucket: self.options.bucket.clone(),
            replicas: self.options.replicas,
            why: format!("the server {} is of no cluster", server.server_name),
        })
    }

    /// Waits until the bucket can be used.
    ///
    /// Returns an error if it never can.
    pub(super) async fn opened(&self) -> Result<(), ClusterError> {
        loop {
            match self.open().await {
                Ok(_) => return Ok(()),
                Err(error) if error.is_lasting() => return Err(error),
                Err(_) => sleep(OPEN_PAUSE).await,
            }
        }
    }

    /// Returns an error if the server that is connected to is too old.
    pub(super) fn check_server(&self) -> Result<(), ClusterError> {
        check_server(&self.client, &self.options, &self.failure)
    }

    async fn make(&self) -> Result<Stream, ClusterError> {
        let config = Config {
            name: self.stream_name(),
            description: Some("halts of the runs of hookyard".to_owned()),
            subjects: vec![self.subject(">")],
            max_messages_per_subject: 1,
            max_age: self.kept_for(),
            storage: StorageType::File,
            num_replicas: self.options.replicas,
            discard: DiscardPolicy::New,
            deny_delete: true,
            deny_purge: true,
            allow_direct: false,
            ..Config::default()
        };
        match self.jetstream.create_stream(config).await {
            Ok(stream) => Ok(stream),
            Err(error) => Err(match error.kind() {
                CreateStreamErrorKind::JetStream(why) => ClusterError::TooFewServers {
                    bucket: self.options.bucket.clone(),
                    replicas: self.options.replicas,
                    why: why.to_string(),
                },
                CreateStreamErrorKind::JetStreamUnavailable => {
                    ClusterError::NoJetStream(self.client.server_info().server_name)
                }
                _ => unreachable(&error),
            }),
        }
    }

    /// Returns an error if halts are not safe in a stream with this configuration.
    fn check(&self, config: &Config) -> Result<(), ClusterError> {
        let replicas = format!("num_replicas {}", config.num_replicas);
        let per_subject = format!("max_msgs_per_subject {}", config.max_messages_per_subject);
        let age = format!("max_age {}s", config.max_age.as_secs());
        let is_lazy = config.persist_mode == Some(PersistenceMode::Async);
        let wrong = [
            (config.storage != StorageType::File, "storage memory", "storage file".to_owned()),
            (is_lazy, "persist_mode async", "persist_mode default".to_owned()),
            (config.allow_direct, "allow_direct", "allow_direct off".to_owned()),
            (config.allow_rollup, "allow_rollup", "allow_rollup off".to_owned()),
            (!config.deny_delete, "deny_delete off", "deny_delete".to_owned()),
            (!config.deny_purge, "deny_purge off", "deny_purge".to_owned()),
            (config.no_ack, "no_ack", "no_ack off".to_owned()),
            (config.discard != DiscardPolicy::New, "discard old", "discard new".to_owned()),
            (config.retention != RetentionPolicy::Limits, "another retention", "retention limits".to_owned()),
            (
                !config.max_age.is_zero() && config.max_age < self.kept_for(),
                &age,
                format!("max_age {}s or more (4 × `run_forget`)", self.kept_for().as_secs()),
            ),
            (config.max_messages_per_subject != 1, &per_subject, "max_msgs_per_subject 1".to_owned()),
            (
                config.num_replicas < self.options.replicas,
                &replicas,
                format!("num_replicas {} (`cluster.replicas`)", self.options.replicas),
            ),
        ];
        match wrong.into_iter().find(|(is_wrong, ..)| *is_wrong) {
            None => Ok(()),
            Some((_, found, needed)) => {
                Err(ClusterError::Unsafe { stream: self.stream_name(), found: found.to_owned(), needed })
            }
        }
    }

    /// Writes the message of a key. Returns its number in the stream, once a majority of the servers has it.
    pub(super) async fn put(&self, key: &str, bytes: Vec<u8>) -> Result<u64, ClusterError> {
        self.write_any(key, Message::put(bytes)).await
    }

    /// Ends a key with a message, whatever it has.
    pub(super) async fn end(&self, key: &str, bytes: Vec<u8>) -> Result<u64, ClusterError> {
        self.write_any(key, Message::end(bytes)).await
    }

    async fn write_any(&self, key: &str, message: Message) -> Result<u64, ClusterError> {
        match self.write(key, message, PATIENCE).await? {
            Put::Written(number) => Ok(number),
            Put::Taken | Put::Contended => Err(ClusterError::Unreachable("it refuses a message".to_owned())),
        }
    }

    pub(super) async fn publish(
        &self,
        key: &str,
        message: PublishMessage,
        patience: Duration,
    ) -> Result<u64, PublishError> {
        let acknowledged = self.jetstream.send_publish(self.subject(key), message).await?;
        // A server that has just lost its leader may never answer: asked again, the next one does.
        let acknowledged = timeout(patience, acknowledged).await;
        Ok(acknowledged.map_err(|_| PublishError::new(PublishErrorKind::TimedOut))??.sequence)
    }

    /// Messages, in the order in which they were written.
    pub(super) async fn read(&self, stream: &Stream, from: ReadFrom) -> Result<pull::Ordered, ClusterError> {
        let deliver_policy = match from {
            ReadFrom::Everything => DeliverPolicy::LastPerSubject,
            ReadFrom::Behind(number) => DeliverPolicy::ByStartSequence { start_sequence: number + 1 },
        };
        let config =
            pull::OrderedConfig { filter_subject: self.subject(">"), deliver_policy, ..Default::default() };
        let consumer = stream.create_consumer(config).await.map_err(|error| unreachable(&error))?;
        consumer.messages().await.map_err(|error| unreachable(&error))
    }

    /// The key of a message, and what it does to its key.
    pub(super) fn key_of<'m>(&self, message: &'m jetstream::Message) -> Option<(&'m str, KeyOperation)> {
        let key = message.subject.strip_prefix(&self.subject(""))?;
        Some((key, KeyOperation::of(message.headers.as_ref())))
    }

    /// How the bucket is.
    #[cfg(feature = "cli")]
    pub(crate) async fn report(&self) -> Result<BucketReport, ClusterError> {
        let mut stream = self.open().await?;
        let info = stream.info().await.map_err(|error| unreachable(&error))?;
        let server = self.client.server_info();
        let cluster = info.cluster.as_ref();
        let followers = cluster.into_iter().flat_map(|cluster| &cluster.replicas);
        Ok(BucketReport {
            server: server.server_name,
            version: server.version,
            leader: cluster.and_then(|cluster| cluster.leader.clone()),
            followers: followers.map(|peer| (peer.name.clone(), peer.current && !peer.offline)).collect(),
            replicas: info.config.num_replicas,
        })
    }

    pub(super) fn options(&self) -> &ClusterOptions {
        &self.options
    }

    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    /// The stream of the bucket, which is not asked how it is.
    pub(super) async fn stream(&self) -> Result<Stream<()>, ClusterError> {
        self.jetstream.get_stream_no_info(self.stream_name()).await.map_err(|error| unreachable(&error))
    }

    /// The subject at which a process is asked something.
    pub(super) fn inbox_of(&self, instance: &str) -> String {
        format!("hookyard.{}.{instance}", self.options.bucket)
    }

    /// How long a message stays that nobody writes again.
    pub(super) fn kept_for(&self) -> Duration {
        self.options.run_forget.saturating_mul(KEPT_FOR)
    }

    pub(super) fn stream_name(&self) -> String {
        format!("KV_{}", self.options.bucket)
    }

    pub(super) fn subject(&self, key: &str) -> String {
        format!("$KV.{}.{key}", self.options.bucket)
    }
}
