//! The settings of where the daemon listens, what hooks may connect to, what levels of configuration may switch off, and how much there may be of
//! anything, undelivered events among it.

use std::{net::SocketAddr, num::NonZeroUsize, path::PathBuf, time::Duration};

use super::{
    declare::settings,
    value_types::{HookNameText, KIB, MIB, Size, SocketPath, count},
};
use crate::model::HttpTarget;

settings! {
    /// Addresses on which the daemon listens.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub section ListenSettings {
        /// Path of the event socket, a Unix socket. Clients send events to it and read status, hooks and runs. `null`
        /// means `$XDG_RUNTIME_DIR/hookyard.sock`.
        #[example = "/run/hookyard/hookyard.sock"]
        socket: Option<PathBuf> as Option<SocketPath> = None,

        /// Path of the control socket, a Unix socket. Clients of it can also change workspaces, reload hook files,
        /// cancel runs and stop the daemon. `null` means beside the event socket: `hookyard-control.sock` beside
        /// `hookyard.sock`.
        #[example = "/run/hookyard/hookyard-control.sock"]
        control_socket: Option<PathBuf> as Option<SocketPath> = None,

        /// Path of the socket of lines, a Unix socket for hosts with many events: a line of JSON for each event, many at the
        /// same time on one connection, answers in any order. It takes events only. `null` means none.
        #[example = "/run/hookyard/hookyard-lines.sock"]
        lines: Option<PathBuf> as Option<SocketPath> = None,

        /// TCP address to listen on as well; one that is not a loopback address requires `token_file`.
        #[example = "127.0.0.1:8787"]
        tcp: Option<SocketAddr> = None,

        /// File with the bearer token that TCP clients must send; its mode must be 0600. The token permits everything
        /// that the event socket permits. It is read again on reload.
        #[example = "/etc/hookyard/token"]
        token_file: Option<PathBuf> = None,

        /// File with the bearer token of TCP clients that control the daemon; its mode must be 0600. Without one, TCP
        /// clients cannot. It is read again on reload.
        #[example = "/etc/hookyard/control-token"]
        control_token_file: Option<PathBuf> = None,

        /// TCP address that serves only `/metrics`, `/healthz` and `/readyz`, without a token.
        #[example = "127.0.0.1:9187"]
        metrics: Option<SocketAddr> = None,

        /// Time between the request to stop and the end of taking events, in which `/readyz` answers 503 already, so that
        /// balancers turn to others; `null` means none.
        #[example = "5s"]
        lameduck: Option<Duration> = None,
    }
}

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

        /// Maximum total size of the outcomes that are kept to answer events that are sent again. Nearly there, those of the
        /// runs that have rested longest are forgotten; beyond it, none are added.
        answers_bytes: usize as Size = 256 * MIB,

        /// How often in a row hooks may keep an agent from stopping, up to 255; then it stops. Tool events and prompts
        /// begin the count again.
        stop_blocks: NonZeroUsize = count(8),

        /// Maximum number of open connections to the event socket.
        connections: NonZeroUsize = count(10_240),

        /// Maximum number of open connections to the control socket.
        control_connections: NonZeroUsize = count(64),

        /// Maximum number of open connections to the socket of lines.
        lines_connections: NonZeroUsize = count(256),

        /// Maximum number of events of one connection to the socket of lines that the daemon processes at the same time; it
        /// reads no further ones meanwhile.
        lines_in_flight: NonZeroUsize = count(256),

        /// Maximum number of open connections to the TCP address; at most a quarter of the files that may be open.
        tcp_connections: NonZeroUsize = count(4096),

        /// Maximum number of open connections to the metrics address; at most a quarter of the files that may be open.
        metrics_connections: NonZeroUsize = count(64),

        /// Maximum total size of the request bodies that the daemon holds for clients of the event socket; further
        /// requests are rejected.
        request_bodies: usize as Size = 256 * MIB,

        /// Maximum total size of the request bodies that the daemon holds for clients of the control socket.
        control_request_bodies: usize as Size = 32 * MIB,

        /// Maximum total size of the lines that the daemon holds for clients of the socket of lines.
        lines_request_bodies: usize as Size = 256 * MIB,

        /// Maximum total size of the request bodies that the daemon holds for clients of the TCP address.
        tcp_request_bodies: usize as Size = 64 * MIB,

        /// Maximum number of requests of the event socket that the daemon processes at the same time; further ones are
        /// rejected.
        requests: NonZeroUsize = count(4096),

        /// Maximum number of requests of the control socket that the daemon processes at the same time.
        control_requests: NonZeroUsize = count(64),

        /// Maximum number of events of the socket of lines that the daemon processes at the same time; further ones are
        /// rejected.
        lines_requests: NonZeroUsize = count(4096),

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
