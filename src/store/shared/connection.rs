//! Connections to the servers of a cluster's store.

use std::{future::ready, os::unix::fs::MetadataExt, sync::Arc, time::Duration};

use async_nats::{Client, ClientError, ConnectOptions, Event, ServerAddr, connection};
use parking_lot::Mutex;

use super::{
    ClusterOptions,
    error::{ClusterError, unreachable},
};

/// The oldest server that can be used.
const OLDEST: &str = "2.12";

/// How long a server may take to answer.
pub(in crate::store) const REQUEST_TIMEOUT: Duration = Duration::from_secs(2);

/// How often a connection is checked that says nothing.
const PING: Duration = Duration::from_secs(2);

/// The longest pause before another connection is tried.
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

/// Why no server could be connected to last, while none can.
#[derive(Debug, Clone, Default)]
pub(in crate::store) struct ConnectFailure(Arc<Mutex<Option<String>>>);

impl ConnectFailure {
    fn hear(&self, event: &Event) {
        match event {
            Event::Connected => *self.0.lock() = None,
            Event::ClientError(ClientError::Other(why)) => *self.0.lock() = Some(why.clone()),
            _ => {}
        }
    }

    /// For people, behind what cannot be done.
    fn words(&self) -> String {
        match self.0.lock().as_deref() {
            None => String::new(),
            Some(why) if why.contains("authorization") || why.contains("authentication") => {
                format!(": {why}; check `cluster.credentials`, and that the servers know its user")
            }
            Some(why) => format!(": {why}"),
        }
    }
}

/// Prepares to connect. Servers that are not there are tried again.
///
/// Returns an error if an address or the credentials cannot be used.
pub(in crate::store) async fn connect(
    options: &ClusterOptions,
) -> Result<(Client, ConnectFailure), ClusterError> {
    let failure = ConnectFailure::default();
    let heard = failure.clone();
    let servers = options.servers.iter().map(|text| address(text)).collect::<Result<Vec<_>, _>>()?;
    let connect = base(options)
        .await?
        .retry_on_initial_connect()
        .max_reconnects(None)
        .ping_interval(PING)
        .reconnect_delay_callback(|attempts| {
            LONGEST_PAUSE.min(Duration::from_millis(50) * u32::try_from(attempts).unwrap_or(u32::MAX).min(16))
        })
        .event_callback(move |event| {
            heard.hear(&event);
            report(&event);
            ready(())
        });
    let client = connect.connect(servers).await.map_err(|error| unreachable(&error))?;
    Ok((client, failure))
}

/// Connects to this server and to no other one, once.
///
/// Returns an error if that fails.
pub(super) async fn connect_to(server: &str, options: &ClusterOptions) -> Result<Client, ClusterError> {
    let connect = base(options).await?.max_reconnects(1).ignore_discovered_servers();
    connect.connect(address(server)?).await.map_err(|error| unreachable(&error))
}

fn address(text: &str) -> Result<ServerAddr, ClusterError> {
    text.parse().map_err(|error| ClusterError::Address(format!("`{text}`: {error}")))
}

/// What connections have in common.
///
/// Returns an error if the credentials cannot be used.
async fn base(options: &ClusterOptions) -> Result<ConnectOptions, ClusterError> {
    check_credentials(options)?;
    let connect = ConnectOptions::new()
        .name(format!("hookyard {}", options.node))
        .connection_timeout(REQUEST_TIMEOUT)
        .request_timeout(Some(REQUEST_TIMEOUT));
    match &options.credentials {
        None => Ok(connect),
        Some(path) => connect.credentials_file(path).await.map_err(|error| ClusterError::Credentials {
            path: path.clone(),
            why: crate::model::io_reason(&error),
        }),
    }
}

/// Returns an error if the server that is connected to is too old.
pub(in crate::store) fn check_server(
    client: &Client,
    options: &ClusterOptions,
    failure: &ConnectFailure,
) -> Result<(), ClusterError> {
    if client.connection_state() != connection::State::Connected {
        let servers = options.servers.join(", ");
        let why = failure.words();
        return Err(ClusterError::Unreachable(format!("no server of {servers} can be connected to{why}")));
    }
    // The state is known a moment before what the server says of itself.
    let Some(info) = client.try_server_info() else {
        return Err(ClusterError::Unreachable("the server has not yet said which version it has".to_owned()));
    };
    if !client.is_server_compatible(2, 12, 0) {
        let (name, version) = (info.server_name, info.version);
        return Err(ClusterError::TooOld { name, version, oldest: OLDEST });
    }
    if info.jetstream { Ok(()) } else { Err(ClusterError::NoJetStream(info.server_name)) }
}

/// Returns an error if others may read the credentials.
fn check_credentials(options: &ClusterOptions) -> Result<(), ClusterError> {
    let Some(path) = &options.credentials else { return Ok(()) };
    let wrong = |why: String| ClusterError::Credentials { path: path.clone(), why };
    let found = path.metadata().map_err(|error| wrong(crate::model::io_reason(&error)))?;
    match () {
        () if !found.is_file() => Err(wrong("it is no regular file".to_owned())),
        () if found.mode() & 0o077 != 0 => Err(wrong("others may use it; run `chmod 600` on it".to_owned())),
        () => Ok(()),
    }
}

/// Logs what becomes of the connection.
fn report(event: &Event) {
    match event {
        Event::Connected => tracing::debug!("connected to the store of the cluster"),
        Event::ServerError(error) => {
            tracing::warn!(%error, "a server of the cluster's store refuses something");
        }
        Event::Disconnected => tracing::warn!("the connection to the store of the cluster is lost"),
        other => tracing::debug!(event = %other, "the store of the cluster"),
    }
}
