//! How the daemon is: what it serves, what it does at the moment, and what is wrong with its files. Refuses to list
//! every workspace, run or hook, which have routes of their own.

use std::{
    sync::{Arc, atomic::Ordering},
    time::UNIX_EPOCH,
};

use axum::{Json, extract::State};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::daemon::{audit::Audit, state::DaemonState};

/// How many workspaces with mistakes are told.
const MAX_BROKEN: usize = 100;

/// How the daemon is.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[non_exhaustive]
#[schema(as = Status)]
pub struct DaemonStatus {
    /// Its version.
    pub version: String,
    /// Its process.
    pub pid: u32,
    /// `starting`, `ready` or `draining`.
    pub phase: String,
    /// When it started, in seconds since 1970.
    pub started_at: u64,
    /// How long it has been there, in milliseconds.
    pub uptime_ms: u64,
    /// Its Unix socket.
    pub socket: String,
    /// The TCP address it listens on as well.
    pub tcp: Option<String>,
    /// The TCP address where only metrics are.
    pub metrics: Option<String>,
    /// How many workspaces are registered.
    pub workspaces: usize,
    /// How many hooks they have together.
    pub hooks: usize,
    /// How many runs are known.
    pub runs: usize,
    /// How many of them have work in flight, or had it not long ago.
    pub active_runs: usize,
    /// How many events are worked on at the moment.
    pub events_in_flight: usize,
    /// How many read the stream.
    pub streams: usize,
    /// Whether changed hook files are noticed: `on`, `off`, or `partly` with the reason in the log.
    pub watch: String,
    /// What became of audit lines, if they are written.
    pub audit: Option<AuditStatus>,
    /// The workspaces whose files have mistakes; the first hundred.
    pub broken: Vec<BrokenWorkspace>,
}

/// What became of audit lines since the daemon started.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[non_exhaustive]
pub struct AuditStatus {
    /// Where they go: a file, or `stdout`.
    pub to: String,
    /// How many were written.
    pub written: u64,
    /// How many are lost because too many waited.
    pub dropped_queue: u64,
    /// How many are lost because they could not be written.
    pub dropped_write: u64,
}

/// A workspace whose files have mistakes.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[non_exhaustive]
pub struct BrokenWorkspace {
    /// Its id.
    pub id: String,
    /// How many mistakes there are.
    pub errors: usize,
    /// The first of them.
    pub first: String,
    /// The broken files whose former rules stay.
    pub kept: Vec<String>,
}

impl DaemonStatus {
    fn of(state: &DaemonState) -> Self {
        let orchestrator = &state.orchestrator;
        let reports = orchestrator.load_reports();
        let runs = orchestrator.run_count();
        let settings = &state.settings;
        let wrong = reports.iter().filter(|(_, report)| report.errors().next().is_some());
        let broken = wrong.take(MAX_BROKEN).map(|(id, report)| BrokenWorkspace {
            id: id.to_string(),
            errors: report.errors().count(),
            first: report.errors().next().map(ToString::to_string).unwrap_or_default(),
            kept: report.kept.iter().map(|path| path.display().to_string()).collect(),
        });
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            phase: state.phase().as_str().to_owned(),
            started_at: state.started_at.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs(),
            uptime_ms: u64::try_from(state.started.elapsed().as_millis()).unwrap_or(u64::MAX),
            socket: state.addresses.socket.display().to_string(),
            tcp: state.addresses.tcp.map(|address| address.to_string()),
            metrics: state.addresses.metrics.map(|address| address.to_string()),
            workspaces: reports.len(),
            hooks: reports.values().map(|report| report.hooks).sum(),
            runs: runs.known,
            active_runs: runs.active,
            events_in_flight: orchestrator.in_flight(),
            streams: settings.limits.streams.get().saturating_sub(state.streams.available_permits()),
            watch: state.watch.as_str().to_owned(),
            audit: state.observers.audit.as_deref().map(AuditStatus::of),
            broken: broken.collect(),
        }
    }
}

impl AuditStatus {
    fn of(audit: &Audit) -> Self {
        let counters = audit.counters();
        Self {
            to: audit.to().to_owned(),
            written: counters.written.load(Ordering::Relaxed),
            dropped_queue: counters.dropped_queue.load(Ordering::Relaxed),
            dropped_write: counters.dropped_write.load(Ordering::Relaxed),
        }
    }
}

/// How the daemon is.
#[utoipa::path(
    get, path = "/v1/status", tag = "operation", operation_id = "getStatus",
    responses((status = 200, description = "How it is", body = DaemonStatus))
)]
pub(in crate::daemon) async fn show(State(state): State<Arc<DaemonState>>) -> Json<DaemonStatus> {
    Json(DaemonStatus::of(&state))
}
