//! Metrics: the table of their names, and the handles and occurrences that emit them. The only module that uses the
//! `metrics` crate.

#[cfg(feature = "daemon")]
mod api_meters;
#[cfg(feature = "daemon")]
mod bundle_meters;
#[cfg(feature = "daemon")]
mod exporter;
mod hook_label;
mod hook_meters;
mod labels;
mod meters;
mod names;
mod occurrences;
#[cfg(feature = "daemon")]
mod process_metrics;
#[cfg(feature = "daemon")]
mod prometheus;
#[cfg(feature = "cluster")]
mod queue_meters;
#[cfg(feature = "daemon")]
mod sharded;
#[cfg(feature = "daemon")]
mod sliding_window;
mod worker_meters;

/// The target of what is logged about single events, so that it can be asked for and left out.
pub(crate) const EVENTS_TARGET: &str = "hookyard::events";

#[cfg(feature = "daemon")]
pub(crate) use api_meters::{ApiMeters, ListenerMeters, RefusalCounter};
#[cfg(feature = "daemon")]
pub(crate) use bundle_meters::{BundleGauges, BundleRejected, CopyChanged, PollResult, expect_bundles};
#[cfg(feature = "daemon")]
pub(crate) use exporter::Exporter;
pub use hook_meters::HookMeters;
pub(crate) use hook_meters::SnapshotMeters;
#[cfg(any(feature = "http", feature = "models"))]
pub(crate) use labels::HttpClass;
pub(crate) use labels::{
    Degradation, HookState, OutputStream, ProcessExit, ProcessLeak, RunGaugeState, ShedReason, ShedStage,
    SpareResult, WorkerState,
};
pub(crate) use meters::{Meters, PoolMeters, PoolOccupancy, ProcessMeters};
#[cfg(feature = "daemon")]
pub use names::PROCESS_METRICS;
pub use names::{METRICS, Metric, MetricKind};
#[cfg(feature = "cluster")]
pub(crate) use occurrences::HaltPut;
#[cfg(feature = "store")]
pub(crate) use occurrences::StoreWriteMeter;
pub(crate) use occurrences::{
    ActorRestarted, ConfigLoaded, DeliveryEnded, LateReply, LetterDied, LettersDropped, Panicked,
    StoreFailure,
};
#[cfg(feature = "daemon")]
pub(crate) use occurrences::{ApiDenied, LinesShipped, LinesWaiting, RecordsLost};
#[cfg(feature = "daemon")]
pub use prometheus::{PrometheusMetrics, RecorderInstalled};
#[cfg(feature = "cluster")]
pub(crate) use queue_meters::{QueuePut, QueueReplaced, QueuedEnded};
#[cfg(all(feature = "daemon", feature = "cli"))]
pub(crate) use sliding_window::LatencyQuantiles;
#[cfg(feature = "daemon")]
pub(crate) use sliding_window::SlidingWindow;
pub(crate) use worker_meters::{WaitingGauge, WorkerMeters, WorkerThere, WorkersDegraded};
