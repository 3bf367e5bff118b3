//! Why the halts of a cluster cannot be shared.

/// Why the halts of a cluster cannot be shared.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClusterError {
    /// The file of `cluster.credentials` cannot be used.
    #[error("`cluster.credentials`: {path}: {why}", path = path.display())]
    Credentials {
        /// The file.
        path: std::path::PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// An address of `cluster.store` cannot be used.
    #[error("`cluster.store`: {0}")]
    Address(String),
    /// The server is too old.
    #[error(
        "`cluster.store`: the NATS server {name} has the version {version}, and at least {oldest} is needed: older ones lose \
         what they have confirmed, or know too little"
    )]
    TooOld {
        /// Its name.
        name: String,
        /// Its version.
        version: String,
        /// The oldest that can be used.
        oldest: &'static str,
    },
    /// The server has no `JetStream`.
    #[error(
        "`cluster.store`: JetStream is not enabled on the NATS server {0}; add `jetstream {{ }}` to its configuration"
    )]
    NoJetStream(String),
    /// There are too few servers.
    #[error(
        "`cluster.store`: the bucket `{bucket}` cannot be made on {replicas} servers: {why}; add servers, or set \
         `cluster.replicas`"
    )]
    TooFewServers {
        /// The bucket.
        bucket: String,
        /// How many servers it was to be on.
        replicas: usize,
        /// What the server says.
        why: String,
    },
    /// The bucket is not one that halts are safe in.
    #[error(
        "`cluster.store`: the stream `{stream}` has {found}, and halts are safe only with {needed}; change it with `nats \
         stream edit`, or set `cluster.name` to another name"
    )]
    Unsafe {
        /// The stream of the bucket.
        stream: String,
        /// What it has.
        found: String,
        /// What it needs.
        needed: String,
    },
    /// Servers of the settings have nothing to do with each other.
    #[error(
        "`cluster.store`: {one} and {other} do not have the same stream `{stream}`, so that nodes would not know each other's \
         halts; name servers of one NATS cluster only"
    )]
    Apart {
        /// The stream of the bucket.
        stream: String,
        /// The addresses of two of them.
        one: String,
        /// The second.
        other: String,
    },
    /// The queue is not one that events are safe in.
    #[error(
        "`cluster.lifecycle`: the stream `{stream}` has {found}, and events are safe only with {needed}; change it with `nats \
         stream edit`, or set `cluster.name` to another name"
    )]
    UnsafeQueue {
        /// The stream.
        stream: String,
        /// What it has.
        found: String,
        /// What it needs.
        needed: String,
    },
    /// The streams of the queue cannot be made.
    #[error(
        "`cluster.lifecycle`: the stream `{stream}` cannot be made on {replicas} servers: {why}; add servers or space, or set \
         `cluster.replicas` or `cluster.queue_size`"
    )]
    QueueNotMade {
        /// The stream.
        stream: String,
        /// How many servers it was to be on.
        replicas: usize,
        /// What the server says.
        why: String,
    },
    /// The servers do not answer, or refuse.
    #[error("the store of the cluster cannot be used: {0}")]
    Unreachable(String),
}

impl ClusterError {
    /// Whether trying again cannot help.
    pub(crate) fn is_lasting(&self) -> bool {
        !matches!(self, Self::Unreachable(_))
    }
}

/// What the library of NATS says, and why: that a stream is full, for one.
pub(in crate::store) fn unreachable(error: &dyn std::error::Error) -> ClusterError {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let why = error.to_string();
        // Some say what their cause says.
        if !text.contains(&why) {
            text = format!("{text}: {why}");
        }
        cause = error.source();
    }
    ClusterError::Unreachable(text)
}
