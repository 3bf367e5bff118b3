//! The daemon joins the cluster of its settings, once it is known that the cluster's store keeps what it confirms.

use std::{sync::Arc, time::Duration};

use futures_util::future::join_all;
use serde::Deserialize;
use tokio::time::{Instant, sleep, timeout};

use super::{routes::instance, start_error::ServeError, state::DaemonState};
use crate::{
    Orchestrator,
    config::{ClusterSettings, HaltSharing, LifecyclePlace, Settings, UnsurePolicy},
    handler::http_client::{HttpClients, bounded_body, with_causes},
    model::{Address, Approval},
    store::{ClusterOptions, NodeFacts, QueueOptions, WhenUnsure},
};
#[cfg(feature = "cli")]
use crate::{
    daemon::StartFinding,
    store::{ClusterError, ClusterOperator, QueueOperator},
};

#[cfg(all(test, feature = "cli"))]
mod tests;

/// How long a server may take to say how it is.
const MONITORING_TIMEOUT: Duration = Duration::from_millis(1500);

/// How long a start waits for one that says so, and between two attempts.
const MONITORING_PATIENCE: Duration = Duration::from_secs(5);
const MONITORING_RETRY: Duration = Duration::from_millis(250);

/// How often the servers are asked.
const MONITORING_PAUSE: Duration = Duration::from_mins(1);

/// The longest description of a server, in bytes.
const LONGEST_DESCRIPTION: usize = 1 << 20;

/// What a server says of itself, as far as it matters here.
#[derive(Debug, Deserialize)]
struct ServerVariables {
    #[serde(default)]
    server_name: String,
    #[serde(default)]
    jetstream: JetStreamVariables,
}

#[derive(Debug, Default, Deserialize)]
struct JetStreamVariables {
    #[serde(default)]
    config: JetStreamConfig,
    /// None of a server of no cluster.
    #[cfg(feature = "cli")]
    #[serde(default)]
    meta: Option<ServersVariables>,
}

/// The servers of a cluster.
#[cfg(feature = "cli")]
#[derive(Debug, Default, Deserialize)]
struct ServersVariables {
    #[serde(default)]
    leader: String,
    #[serde(default)]
    cluster_size: usize,
    /// The others; those that are away are known to the leader.
    #[serde(default)]
    replicas: Vec<ServerVariable>,
}

#[cfg(feature = "cli")]
#[derive(Debug, Deserialize)]
struct ServerVariable {
    #[serde(default)]
    offline: bool,
}

#[cfg(feature = "cli")]
impl ServersVariables {
    /// How many there are, as the server with this name says.
    fn servers(&self, name: &str) -> usize {
        let here = self.replicas.iter().filter(|server| !server.offline).count() + 1;
        if self.leader == name { here.min(self.cluster_size) } else { self.cluster_size }
    }
}

#[derive(Debug, Default, Deserialize)]
struct JetStreamConfig {
    #[serde(default)]
    sync_always: bool,
}

/// How a server writes to disk.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum StoreSync {
    Always,
    /// Later than it confirms; the name of the server.
    Late(String),
    /// It does not say, for this reason.
    Unknown(String),
}

/// Shares halts with other daemons, if the settings name a store for them.
///
/// Returns an error if that is impossible, or not safe.
pub(super) async fn join(orchestrator: &Orchestrator, settings: &Settings) -> Result<(), ServeError> {
    let cluster = &settings.cluster;
    if !cluster.is_shared() {
        return if cluster.lifecycle == LifecyclePlace::Work { Err(ServeError::NoQueue) } else { Ok(()) };
    }
    let silent = check_sync(cluster).await?;
    if cluster.lifecycle == LifecyclePlace::Work {
        return work(orchestrator, settings, silent).await;
    }
    let options = cluster_options(settings);
    orchestrator.join_cluster(options).await.map_err(ServeError::Cluster)?;
    if cluster.lifecycle == LifecyclePlace::Queue {
        orchestrator.queue_lifecycle(queue_options(settings)).await.map_err(ServeError::Cluster)?;
    }
    let is_up = orchestrator.cluster().is_some_and(|shared| shared.was_up());
    // Where the store is away as a whole, its servers are asked once it is there.
    if is_up && silent.is_some() { check_sync_patiently(cluster).await } else { Ok(()) }
}

/// Takes events out of the queue of the cluster. `silent` is why no server says how it writes to disk.
///
/// Returns an error if that is impossible, or not safe.
async fn work(
    orchestrator: &Orchestrator,
    settings: &Settings,
    silent: Option<String>,
) -> Result<(), ServeError> {
    let counts = orchestrator.outbox_counts();
    let events = counts.waiting + counts.under_way;
    if events > 0 {
        return Err(ServeError::FullOutbox { events });
    }
    let is_up = orchestrator.work(queue_options(settings)).await.map_err(ServeError::Cluster)?;
    if is_up && silent.is_some() { check_sync_patiently(&settings.cluster).await } else { Ok(()) }
}

/// How the settings have events queued.
pub(crate) fn queue_options(settings: &Settings) -> QueueOptions {
    QueueOptions {
        cluster: cluster_options(settings),
        size: settings.cluster.queue_size,
        dead: settings.outbox.dead_letters.get(),
        dead_size: settings.outbox.dead_size,
        silence: settings.cluster.worker_silence,
        at_once: settings.cluster.at_once.get(),
    }
}

/// Waits until all halts of the cluster are known, for a while.
pub(super) async fn ready(orchestrator: &Orchestrator) {
    if let Some(shared) = orchestrator.cluster() {
        shared.ready().await;
    }
}

/// What a start would find of the store of the cluster. Makes nothing there.
#[cfg(feature = "cli")]
pub(crate) async fn check_store(settings: &Settings) -> Vec<StartFinding> {
    const SUBJECT: &str = "cluster.store";
    let cluster = &settings.cluster;
    if !cluster.is_shared() {
        return Vec::new();
    }
    let (mut findings, is_up) = match streams(settings).await {
        Ok(findings) => (findings, true),
        Err(error) if error.is_lasting() => (vec![StartFinding::error(SUBJECT, error.to_string())], false),
        Err(error) => {
            let finding = StartFinding::warning(SUBJECT, error.to_string());
            let help = "a start waits ten seconds for it, and goes on without the halts of the others";
            (vec![finding.help(help)], false)
        }
    };
    let sync = match check_sync(cluster).await {
        Ok(Some(_)) if is_up => check_sync_patiently(cluster).await,
        sync => sync.map(drop),
    };
    if let Err(error) = sync {
        findings.push(StartFinding::error("cluster.monitoring", error.to_string()));
    }
    findings
}

/// What a start would find of the streams of the cluster.
///
/// Returns an error if they cannot be used, looked at or made.
#[cfg(feature = "cli")]
async fn streams(settings: &Settings) -> Result<Vec<StartFinding>, ClusterError> {
    let cluster = &settings.cluster;
    let mut found = Vec::new();
    let mut tell = |subject: &str, stream: String, what: &str, is_there: bool| {
        let became =
            if is_there { format!("is safe for {what}") } else { "is made by the first node".to_owned() };
        found.push(StartFinding::ok(subject, format!("{stream} {became}")));
        is_there
    };
    let operator = ClusterOperator::connect(cluster_options(settings)).await?;
    let bucket = operator.has_bucket().await?;
    operator.check_servers().await?;
    let mut are_there = tell("cluster.store", format!("the bucket `{}`", cluster.name), "halts", bucket);
    if cluster.lifecycle == LifecyclePlace::Queue {
        let queue = QueueOperator::connect(queue_options(settings)).await?.has_streams().await?;
        are_there &= tell("cluster.lifecycle", format!("the queue `{}`", cluster.name), "events", queue);
    }
    let (replicas, bucket) = (cluster.replicas.get(), cluster.name.clone());
    match fewest_servers(cluster).await.filter(|servers| !are_there && *servers < replicas) {
        None => Ok(found),
        Some(servers) => {
            let why = format!("so many servers are there: {servers}");
            Err(ClusterError::TooFewServers { bucket, replicas, why })
        }
    }
}

/// How many servers of the store there are, as the one says that knows of fewest; none if none says so.
#[cfg(feature = "cli")]
async fn fewest_servers(cluster: &ClusterSettings) -> Option<usize> {
    let addresses = cluster.monitored();
    let asked = addresses.iter().map(|address| timeout(MONITORING_TIMEOUT, describe(address)));
    let described = join_all(asked).await.into_iter().flatten().flatten();
    described.filter_map(|server| server.jetstream.meta.map(|meta| meta.servers(&server.server_name))).min()
}

/// Asks the servers of the store how they write to disk, again for a while if none says so: their monitoring may answer later
/// than they take connections.
///
/// Returns an error if one of them confirms what it has not written, or none of them says so then.
async fn check_sync_patiently(cluster: &ClusterSettings) -> Result<(), ServeError> {
    let begun = Instant::now();
    while !cluster.trust_sync
        && let Some(why) = check_sync(cluster).await?
    {
        if begun.elapsed() > MONITORING_PATIENCE {
            return Err(ServeError::UnknownSync { why });
        }
        sleep(MONITORING_RETRY).await;
    }
    Ok(())
}

/// Asks the servers of the store how they write to disk. Returns why none of them says so, if none does.
///
/// Returns an error if one of them confirms what it has not written.
async fn check_sync(cluster: &ClusterSettings) -> Result<Option<String>, ServeError> {
    let mut silent = Some("no address is known".to_owned());
    let mut is_known = false;
    let addresses = cluster.monitored();
    for (address, sync) in addresses.iter().zip(join_all(addresses.iter().map(store_sync)).await) {
        match sync {
            StoreSync::Always => is_known = true,
            StoreSync::Late(server) => return Err(ServeError::LateSync { server }),
            StoreSync::Unknown(why) => silent = Some(format!("{}: {why}", address.server())),
        }
    }
    Ok(silent.filter(|_| !is_known))
}

/// How the settings have daemons share halts.
pub(crate) fn cluster_options(settings: &Settings) -> ClusterOptions {
    let cluster = &settings.cluster;
    let is_strict = cluster.halts == HaltSharing::Strict;
    ClusterOptions {
        instance: instance().to_owned(),
        servers: cluster.store.clone(),
        bucket: cluster.name.clone(),
        credentials: cluster.credentials.clone(),
        replicas: cluster.replicas.get(),
        node: settings.node_name(),
        run_forget: settings.run_forget,
        stale_after: cluster.stale_after,
        when_unsure: match cluster.unsure {
            _ if is_strict => WhenUnsure::Refuse,
            UnsurePolicy::Answer => WhenUnsure::Answer,
            UnsurePolicy::Refuse => WhenUnsure::Refuse,
        },
        is_strict,
    }
}

/// Has the beats of this daemon say what it is at, and stops it when an operator asks for that.
pub(super) async fn serve(state: Arc<DaemonState>) {
    let Some(shared) = state.orchestrator.cluster() else { return };
    let described = Arc::downgrade(&state);
    shared.describe_by(move || described.upgrade().map(|state| facts(&state)).unwrap_or_default());
    shared.drain_requested().await;
    tracing::warn!("an operator of the cluster asks this node to stop");
    state.begin_draining();
    state.stop_requested.cancel();
}

fn facts(state: &DaemonState) -> NodeFacts {
    NodeFacts {
        phase: state.phase().as_str().to_owned(),
        bundle: state.bundle.as_ref().and_then(|keeper| keeper.in_force()?.version()),
        hooks: state.orchestrator.load_reports().values().map(|report| report.hooks).sum(),
        runs: state.orchestrator.run_count().known,
        queue_lost_ms: state.orchestrator.queue_lost_ms(),
    }
}

/// Asks the servers of the store from time to time: one may be started with another configuration.
pub(super) async fn watch_sync(cluster: ClusterSettings) {
    loop {
        sleep(MONITORING_PAUSE).await;
        match check_sync(&cluster).await {
            Err(error) => tracing::error!(%error, "halts are not safe in the store of the cluster"),
            Ok(Some(why)) if !cluster.trust_sync => {
                tracing::warn!(%why, "no server of the cluster's store says how it writes to disk");
            }
            Ok(_) => {}
        }
    }
}

/// Asks a server how it writes to disk.
pub(crate) async fn store_sync(address: &Address) -> StoreSync {
    let described = timeout(MONITORING_TIMEOUT, describe(address)).await;
    match described.unwrap_or_else(|_| Err("it does not answer".to_owned())) {
        Ok(server) if server.jetstream.config.sync_always => StoreSync::Always,
        Ok(server) => StoreSync::Late(server.server_name),
        Err(why) => StoreSync::Unknown(why),
    }
}

async fn describe(address: &Address) -> Result<ServerVariables, String> {
    let url = address.url().join("varz").map_err(|error| error.to_string())?;
    let clients = HttpClients::new(1);
    let client = clients.of_url(&Approval::of_settings(), &url).await.map_err(|error| error.to_string())?;
    let sent = client.get(url).send().await.and_then(reqwest::Response::error_for_status);
    let response = sent.map_err(|error| with_causes(&error.without_url()))?;
    let body = bounded_body(response, LONGEST_DESCRIPTION).await?;
    serde_json::from_slice(&body).map_err(|_| "its answer is not that of a NATS server".to_owned())
}
