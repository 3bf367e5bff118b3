//! The status of the daemon: what it serves, what is in flight, and which hook files are broken.

use std::{
    collections::BTreeMap,
    sync::{Arc, atomic::Ordering},
    time::UNIX_EPOCH,
};

use axum::{Json, extract::State};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{
    bundle_status::{BundleStatus, nullable_bundle_status},
    cluster_status::{ClusterStatus, nullable_cluster_status},
    data_status::{
        AUDIT_STATUS, AgentStatus, AuditStatus, DataStatus, LastGoodFile, agents_schema, last_good_schema,
        nullable_data_status,
    },
    trust::{self, NotTrusted},
    worker_status::{DEGRADED_HOOK, DegradedHook, degraded_workers},
};
use crate::Orchestrator;
use crate::daemon::{
    schema::{Component, object, optional_string, string, strings, unsigned, unsigned_as},
    state::DaemonState,
    unloaded::{UnloadedWorkspace, UnloadedWorkspaces},
};

/// The maximum number of workspaces with errors in a status.
const MAX_BROKEN: usize = 100;

/// The status of a daemon.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct DaemonStatus {
    /// The version of the daemon.
    pub version: String,
    /// The name of the daemon, as in decision ids.
    #[serde(default)]
    pub node: String,
    /// Its process ID.
    pub pid: u32,
    /// `starting`, `ready` or `draining`.
    pub phase: String,
    /// When it started, in seconds since 1970.
    pub started_at: u64,
    /// How long it has been running, in milliseconds.
    pub uptime_ms: u64,
    /// The path of its event socket.
    pub socket: String,
    /// The path of its control socket.
    pub control_socket: String,
    /// The path of its socket of lines, if it has one.
    #[serde(default)]
    pub lines: Option<String>,
    /// Its TCP address, if it listens on one.
    pub tcp: Option<String>,
    /// Its TCP address for metrics only, if it listens on one.
    pub metrics: Option<String>,
    /// The number of registered workspaces.
    pub workspaces: usize,
    /// The number of hooks in all workspaces.
    pub hooks: usize,
    /// The number of known runs.
    pub runs: usize,
    /// The number of runs that have work in flight or had it recently.
    pub active_runs: usize,
    /// The number of events in flight.
    pub events_in_flight: usize,
    /// The number of readers of the stream.
    pub streams: usize,
    /// The agents whose events have come since the start, each with its last one.
    #[serde(default)]
    pub agents: Vec<AgentStatus>,
    /// Whether changed hook files are noticed: `on`, `off`, or `partly` with the reason in the log.
    pub watch: String,
    /// The counters of the audit, if it is on.
    pub audit: Option<AuditStatus>,
    /// Where the state of runs is kept, unless in memory only.
    #[serde(default)]
    pub data: Option<DataStatus>,
    /// The signed bundle, if one is configured.
    #[serde(default)]
    pub bundle: Option<BundleStatus>,
    /// What it says as a node of a cluster, if it is one.
    #[serde(default)]
    pub cluster: Option<ClusterStatus>,
    /// The workspaces whose files have errors; at most 100.
    pub broken: Vec<BrokenWorkspace>,
    /// The required hooks that are not in force; at most 100.
    #[serde(default)]
    pub required_missing: Vec<RequiredMissing>,
    /// The workspaces whose files tried to switch off hooks of a higher level, and could not; at most 100.
    #[serde(default)]
    pub powerless_switches: Vec<PowerlessSwitches>,
    /// How many hooks there are of each state of trust, such as `trusted`; none if trust is off.
    #[serde(default)]
    pub trust: BTreeMap<String, usize>,
    /// The hooks that do not run because nobody has agreed to them as they are; at most 100.
    #[serde(default)]
    pub not_trusted: Vec<NotTrusted>,
    /// The hooks whose workers do not serve; at most 100.
    #[serde(default)]
    pub degraded_workers: Vec<DegradedHook>,
    /// The workspaces of the settings that could not be loaded; at most 100. Their events are refused.
    #[serde(default)]
    pub not_loaded: Vec<NotLoadedWorkspace>,
    /// Why tokens could not be read again; the former ones stay valid.
    #[serde(default)]
    pub token_errors: Vec<String>,
}

/// A workspace whose files have errors.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct BrokenWorkspace {
    /// Its ID.
    pub id: String,
    /// The number of errors.
    pub errors: usize,
    /// The first error.
    pub first: String,
    /// The broken files whose last good rules are known.
    pub kept: Vec<String>,
    /// The same files, with what becomes of their rules.
    #[serde(default)]
    pub last_good: Vec<LastGoodFile>,
}

/// A workspace whose files tried to switch off hooks of a higher level, and could not.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PowerlessSwitches {
    /// Its ID.
    pub id: String,
    /// The number of such switches.
    pub switches: usize,
    /// The first of them, with its file and line.
    pub first: String,
}

/// A required hook that is not in force.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RequiredMissing {
    /// The ID of the workspace.
    pub workspace: String,
    /// The name of the hook.
    pub hook: String,
    /// Why it is not in force, and what to do.
    pub why: String,
}

/// A workspace of the settings that could not be loaded.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct NotLoadedWorkspace {
    /// Its ID.
    pub id: String,
    /// Its directory, as the settings write it.
    pub root: String,
    /// Why it could not be loaded.
    pub why: String,
}

pub(super) static STATUS: Component = Component::built("Status", || {
    let audit = AUDIT_STATUS.described("The counters of the audit, if it is on.");
    let broken = json!({
        "type": "array",
        "items": BROKEN_WORKSPACE.reference(),
        "description": "The workspaces whose files have errors; at most 100.",
    });
    let required = json!({
        "type": "array",
        "items": REQUIRED_MISSING.reference(),
        "description": "The required hooks that are not in force; at most 100.",
    });
    let powerless = json!({
        "type": "array",
        "items": POWERLESS_SWITCHES.reference(),
        "description": "The workspaces whose files tried to switch off hooks of a higher level, and could not; at most 100.",
    });
    let not_loaded = json!({
        "type": "array",
        "items": NOT_LOADED_WORKSPACE.reference(),
        "description": "The workspaces of the settings that could not be loaded; at most 100. Their events are refused.",
    });
    let degraded = json!({
        "type": "array",
        "items": DEGRADED_HOOK.reference(),
        "description": "The hooks whose workers do not serve; at most 100.",
    });
    object(
        "The status of the daemon.",
        [
            ("version", string("The version of the daemon.")),
            ("node", string("The name of the daemon, as in decision ids.")),
            ("pid", unsigned_as("int32", "Its process ID.")),
            ("phase", string("`starting`, `ready` or `draining`.")),
            ("started_at", unsigned_as("int64", "When it started, in seconds since 1970.")),
            ("uptime_ms", unsigned_as("int64", "How long it has been running, in milliseconds.")),
            ("socket", string("The path of its event socket.")),
            ("control_socket", string("The path of its control socket.")),
            ("lines", optional_string("The path of its socket of lines, if it has one.")),
            ("tcp", optional_string("Its TCP address, if it listens on one.")),
            ("metrics", optional_string("Its TCP address for metrics only, if it listens on one.")),
            ("workspaces", unsigned("The number of registered workspaces.")),
            ("hooks", unsigned("The number of hooks in all workspaces.")),
            ("runs", unsigned("The number of known runs.")),
            ("active_runs", unsigned("The number of runs that have work in flight or had it recently.")),
            ("events_in_flight", unsigned("The number of events in flight.")),
            ("streams", unsigned("The number of readers of the stream.")),
            ("agents", agents_schema()),
            ("watch", string("Whether changed hook files are noticed: `on`, `off` or `partly`.")),
            ("audit", json!({ "oneOf": [audit, { "type": "null" }] })),
            ("data", nullable_data_status()),
            ("bundle", nullable_bundle_status()),
            ("cluster", nullable_cluster_status()),
            ("broken", broken),
            ("required_missing", required),
            ("powerless_switches", powerless),
            ("trust", trust::counts_schema()),
            ("not_trusted", trust::not_trusted_schema()),
            ("degraded_workers", degraded),
            ("not_loaded", not_loaded),
            ("token_errors", strings("Why tokens could not be read again; the former ones stay valid.")),
        ],
        &["tcp", "metrics", "audit", "data", "bundle", "cluster"],
    )
});

pub(super) static BROKEN_WORKSPACE: Component = Component::built("BrokenWorkspace", || {
    object(
        "A workspace whose files have errors.",
        [
            ("id", string("Its ID.")),
            ("errors", unsigned("The number of errors.")),
            ("first", string("The first error.")),
            ("kept", strings("The broken files whose last good rules are known.")),
            ("last_good", last_good_schema()),
        ],
        &[],
    )
});

pub(super) static REQUIRED_MISSING: Component = Component::built("RequiredMissing", || {
    object(
        "A required hook that is not in force.",
        [
            ("workspace", string("The ID of the workspace.")),
            ("hook", string("The name of the hook.")),
            ("why", string("Why it is not in force, and what to do.")),
        ],
        &[],
    )
});

pub(super) static POWERLESS_SWITCHES: Component = Component::built("PowerlessSwitches", || {
    object(
        "A workspace whose files tried to switch off hooks of a higher level, and could not.",
        [
            ("id", string("Its ID.")),
            ("switches", unsigned("The number of such switches.")),
            ("first", string("The first of them, with its file and line.")),
        ],
        &[],
    )
});

pub(super) static NOT_LOADED_WORKSPACE: Component = Component::built("NotLoadedWorkspace", || {
    object(
        "A workspace of the settings that could not be loaded.",
        [
            ("id", string("Its ID.")),
            ("root", string("Its directory, as the settings write it.")),
            ("why", string("Why it could not be loaded.")),
        ],
        &[],
    )
});

impl DaemonStatus {
    pub(in crate::daemon) fn of(state: &DaemonState) -> Self {
        let orchestrator = &state.orchestrator;
        let reports = orchestrator.load_reports();
        let runs = orchestrator.run_count();
        let wrong = reports.iter().filter(|(_, report)| report.errors().next().is_some());
        let broken = wrong.take(MAX_BROKEN).map(|(id, report)| BrokenWorkspace {
            id: id.to_string(),
            errors: report.errors().count(),
            first: report.errors().next().map(ToString::to_string).unwrap_or_default(),
            kept: report.kept.iter().map(|kept| kept.file.display().to_string()).collect(),
            last_good: report.kept.iter().map(LastGoodFile::from).collect(),
        });
        let powerless = reports.iter().filter_map(|(id, report)| {
            let first = report.powerless_switches().next()?.to_string();
            let switches = report.powerless_switches().count();
            Some(PowerlessSwitches { id: id.to_string(), switches, first })
        });
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            node: state.node.clone(),
            pid: std::process::id(),
            phase: state.phase().as_str().to_owned(),
            started_at: state.started_at.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs(),
            uptime_ms: u64::try_from(state.started.elapsed().as_millis()).unwrap_or(u64::MAX),
            socket: state.addresses.socket.display().to_string(),
            control_socket: state.addresses.control_socket.display().to_string(),
            lines: state.addresses.lines.as_ref().map(|path| path.display().to_string()),
            tcp: state.addresses.tcp.map(|address| address.to_string()),
            metrics: state.addresses.metrics.map(|address| address.to_string()),
            workspaces: reports.len(),
            hooks: reports.values().map(|report| report.hooks).sum(),
            runs: runs.known,
            active_runs: runs.active,
            events_in_flight: orchestrator.in_flight(),
            streams: state.stream_readers.load(Ordering::Relaxed),
            agents: state.activity.last_events().into_iter().map(AgentStatus::from).collect(),
            watch: state.watch.as_str().to_owned(),
            audit: state.observers.audit_status(),
            data: orchestrator
                .store_status()
                .map(|store| DataStatus::of(store, orchestrator.outbox_counts())),
            bundle: state.bundle.as_ref().and_then(|keeper| BundleStatus::of(keeper, &state.settings)),
            cluster: ClusterStatus::of(&state.settings, orchestrator),
            broken: broken.collect(),
            required_missing: required_missing(orchestrator),
            powerless_switches: powerless.take(MAX_BROKEN).collect(),
            trust: trust::counts(orchestrator),
            not_trusted: trust::not_trusted(orchestrator).take(MAX_BROKEN).collect(),
            degraded_workers: degraded_workers(orchestrator, MAX_BROKEN),
            not_loaded: not_loaded(&state.unloaded),
            token_errors: state.tokens.errors(),
        }
    }
}

fn not_loaded(unloaded: &UnloadedWorkspaces) -> Vec<NotLoadedWorkspace> {
    let all = unloaded.all().into_iter().take(MAX_BROKEN);
    let shown = all.map(|UnloadedWorkspace { id, root, why }| NotLoadedWorkspace {
        id: id.to_string(),
        root: root.display().to_string(),
        why: why.to_string(),
    });
    shown.collect()
}

fn required_missing(orchestrator: &Orchestrator) -> Vec<RequiredMissing> {
    let mut all = Vec::new();
    for snapshot in orchestrator.snapshots() {
        all.extend(snapshot.missing_hooks().iter().map(|missing| RequiredMissing {
            workspace: snapshot.workspace().id.to_string(),
            hook: missing.hook.to_string(),
            why: missing.why.clone(),
        }));
    }
    all.truncate(MAX_BROKEN);
    all
}

pub(super) async fn show(State(state): State<Arc<DaemonState>>) -> Json<DaemonStatus> {
    Json(DaemonStatus::of(&state))
}
