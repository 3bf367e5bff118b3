//! The settings of what hooks may connect to, what levels of configuration may switch off, and how much there may be of
//! anything, undelivered events among it.

use std::{num::NonZeroUsize, time::Duration};

use super::{
    declare::settings,
    value_types::{HookNameText, KIB, MIB, Size, count},
};
use crate::model::HttpTarget;

settings! {
    /// Servers that http hooks may ask.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub section HttpSettings {
        /// Servers that hooks of workspaces may ask although they are on this machine or in a private network: a host,
        /// a host with its port, or a network. Hooks of the user and of the administrator need no entry. Nothing makes
        /// hookyard's own addresses available.
        #[example = "[\"localhost:8377\", 10.1.0.0/16]"]
        allow: Vec<HttpTarget> = Vec::new(),
    }
}

settings! {
    /// What lower levels of configuration may do to the hooks of higher ones.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub section LevelSettings {
        /// Names of hooks that every level may switch off. All others can be switched off by their own level and by
        /// higher ones only: managed, then user, then project.
        #[example = "[claude.user.Stop.1.1]"]
        allow_disable: Vec<String> as Vec<HookNameText> = Vec::new(),
    }
}

settings! {
    /// Limits on sizes, numbers and waiting times. Sizes are in bytes.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub section LimitSettings {
        /// Maximum size of an event.
        payload: usize as Size = 16 * MIB,

        /// Maximum amount of a command's standard output that is kept.
        stdout: usize as Size = MIB,

        /// Maximum amount of a command's standard error that is kept.
        stderr: usize as Size = 64 * KIB,

        /// Maximum size of a response to an http hook, decompressed.
        http_body: usize as Size = MIB,

        /// Maximum size of a model's response to a prompt or agent hook, decompressed.
        model_body: usize as Size = MIB,

        /// Maximum number of runs that are remembered; events of further runs are rejected. Clients of a TCP address
        /// without a token begin runs up to three quarters of it.
        runs: NonZeroUsize = count(1_000_000),

        /// Maximum number of events that are processed at the same time; further ones are rejected. Clients of a TCP
        /// address without a token take up to three quarters of it, and so do events that no host waits for and detached
        /// hooks.
        in_flight: NonZeroUsize = count(16_384),

        /// Maximum number of events of one run that wait; further ones are rejected. Events that no host waits for take up
        /// to three quarters of it. Detached hooks of events that have their answer do not count: those of as many events
        /// may run, and those of further ones are turned away.
        pending_per_run: NonZeroUsize = count(64),

        /// Longest time that an event waits for its turn before it is rejected.
        pending_deadline: Duration = Duration::from_secs(30),

        /// Number of outcomes kept per run to answer events that are sent again.
        answers_per_run: NonZeroUsize = count(64),

        /// How often in a row hooks may keep an agent from stopping, up to 255; then it stops. Tool events and prompts
        /// begin the count again.
        stop_blocks: NonZeroUsize = count(8),

        /// Maximum number of open connections to the event socket.
        connections: NonZeroUsize = count(10_240),

        /// Maximum number of open connections to the control socket.
        control_connections: NonZeroUsize = count(64),

        /// Maximum number of open connections to the TCP address; at most a quarter of the files that may be open.
        tcp_connections: NonZeroUsize = count(4096),

        /// Maximum number of open connections to the metrics address; at most a quarter of the files that may be open.
        metrics_connections: NonZeroUsize = count(64),

        /// Maximum total size of the request bodies that the daemon holds for clients of the event socket; further
        /// requests are rejected.
        request_bodies: usize as Size = 256 * MIB,

        /// Maximum total size of the request bodies that the daemon holds for clients of the control socket.
        control_request_bodies: usize as Size = 32 * MIB,

        /// Maximum total size of the request bodies that the daemon holds for clients of the TCP address.
        tcp_request_bodies: usize as Size = 64 * MIB,

        /// Maximum number of requests of the event socket that the daemon processes at the same time; further ones are
        /// rejected.
        requests: NonZeroUsize = count(4096),

        /// Maximum number of requests of the control socket that the daemon processes at the same time.
        control_requests: NonZeroUsize = count(64),

        /// Maximum number of requests of the TCP address that the daemon processes at the same time.
        tcp_requests: NonZeroUsize = count(1024),

        /// Maximum number of requests of the metrics address that the daemon processes at the same time.
        metrics_requests: NonZeroUsize = count(64),

        /// Maximum number of readers of the daemon's event stream, for each listener.
        streams: NonZeroUsize = count(64),

        /// Longest time in which the head of a request must arrive.
        header_timeout: Duration = Duration::from_secs(10),

        /// Longest time without progress while a request body is received or a response is sent.
        body_timeout: Duration = Duration::from_secs(30),

        /// Time after which an idle connection is closed.
        idle_timeout: Duration = Duration::from_mins(5),

        /// Maximum number of registered workspaces.
        workspaces: NonZeroUsize = count(10_000),
    }
}

settings! {
    /// Lifecycle events that are kept in `data` until their hooks have ended. Sizes are in bytes.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub section OutboxSettings {
        /// Maximum size of all events that are to be delivered; further ones with `wait: false` are rejected.
        max_size: usize as Size = 64 * MIB,

        /// Maximum number of dead letters, which are events that could not be delivered; the oldest are dropped.
        dead_letters: NonZeroUsize = count(1000),

        /// Maximum size of all dead letters; the oldest are dropped.
        dead_size: usize as Size = 16 * MIB,
    }
}
