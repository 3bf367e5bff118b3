//! Settings of the addresses on which the daemon listens.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use super::{declare::settings, value_types::SocketPath};

settings! {
    /// Addresses on which the daemon listens.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub section ListenSettings {
        /// Path of the event socket, a Unix socket. Clients send events to it and read status, hooks and runs. `null`
        /// means `$XDG_RUNTIME_DIR/hookyard.sock`.
        #[example = "/run/hookyard/hookyard.sock"]
        socket: Option<PathBuf> as Option<SocketPath> = None,

        /// Path of the control socket, a Unix socket. Clients of it can also change workspaces, reload hook files,
        /// cancel runs and stop the daemon. `null` means `hookyard-control.sock` beside the event socket.
        #[example = "/run/hookyard/hookyard-control.sock"]
        control_socket: Option<PathBuf> as Option<SocketPath> = None,

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
