//! Every metric, in one table: name, kind, unit, labels and help.

use metrics::{Counter, Gauge, Histogram, Key, Label, Level, Metadata, Unit};

/// From what hookyard itself takes to the longest that an event may have to queue.
const FAST: &[f64] = &[
    5e-6, 1e-5, 2.5e-5, 5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 2.5e-2, 1e-1, 2.5e-1, 5e-1, 1.0, 2.5,
    5.0, 10.0,
];

/// From a native hook to the usual longest timeout. The usual timeouts (1, 2, 5, 10, 30 and 60 s) lie in narrow buckets, so
/// that a hook that always times out shows its timeout and nothing beyond.
const HOOK: &[f64] = &[
    2.5e-4, 1e-3, 5e-3, 1e-2, 2.5e-2, 5e-2, 1e-1, 2.5e-1, 5e-1, 0.95, 1.05, 1.9, 2.1, 4.75, 5.25, 9.5, 10.5,
    28.5, 31.5, 57.0, 63.0,
];

/// From a small model to a long dialogue; each twice the one before.
const MODEL: &[f64] =
    &[0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];

/// What kind of metric it is.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum MetricKind {
    /// A number that only grows.
    Counter,
    /// A number that goes up and down.
    Gauge,
    /// Observations in buckets, with the upper bounds of its buckets.
    Histogram(&'static [f64]),
}

impl MetricKind {
    /// The name, as in Prometheus' text format.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram(_) => "histogram",
        }
    }
}

/// One metric.
#[derive(Debug)]
#[non_exhaustive]
pub struct Metric {
    /// Its name, as Prometheus shows it.
    pub name: &'static str,
    /// Whether it is a counter, a gauge or a histogram.
    pub kind: MetricKind,
    pub(super) unit: Unit,
    /// The names of its labels, in order.
    pub labels: &'static [&'static str],
    /// What it says, in one sentence.
    pub help: &'static str,
}

macro_rules! table {
    ($(#[$note:meta])* $all:ident: $($id:ident $name:literal $kind:ident $(($buckets:ident))? $unit:ident [$($label:literal)*] $help:literal;)*) => {
        $(pub(super) const $id: &Metric = &Metric {
            name: $name,
            kind: MetricKind::$kind $(($buckets))?,
            unit: Unit::$unit,
            labels: &[$($label),*],
            help: $help,
        };)*

        $(#[$note])*
        pub const $all: &[&Metric] = &[$($id),*];
    };
}

table! {
    /// Every metric of hookyard, in the order of `docs/metrics.md`.
    METRICS:
    BUILD_INFO "hookyard_build_info" Gauge Count ["version" "commit"]
        "Always 1; the labels say which hookyard this is.";
    EVENT_DURATION "hookyard_event_duration_seconds" Histogram(HOOK) Seconds ["event" "verdict"]
        "What a host waited for the outcome of an event that some hook wanted.";
    OVERHEAD "hookyard_overhead_duration_seconds" Histogram(FAST) Seconds ["event"]
        "What a host waited without the time its hooks ran: queues and hookyard itself.";
    HOOK_DURATION "hookyard_hook_duration_seconds" Histogram(HOOK) Seconds ["hook" "handler" "event"]
        "How long a hook ran.";
    HOOK_RUNS "hookyard_hook_runs_total" Counter Count ["hook" "event" "handler" "ended"]
        "Invocations of hooks, by how they ended.";
    HOOK_VERDICTS "hookyard_hook_verdicts_total" Counter Count ["hook" "event" "verdict"]
        "Verdicts of hooks; a failure is one only where a policy makes it one.";
    HOOK_FAIL_OPEN "hookyard_hook_fail_open_total" Counter Count ["hook" "event" "ended"]
        "Failures of interceptors that were let pass.";
    HOOK_FAIL_CLOSED "hookyard_hook_fail_closed_total" Counter Count ["hook" "event" "ended"]
        "Failures of interceptors that stopped or questioned the event.";
    PATCHES "hookyard_patches_total" Counter Count ["hook" "target" "result"]
        "Changes that hooks wanted, by what became of them.";
    HOOK_TIMEOUT "hookyard_hook_timeout_seconds" Gauge Seconds ["hook"]
        "The timeout of a hook, as it was last loaded.";
    HOOK_WAITING "hookyard_hook_waiting" Gauge Count ["hook"]
        "Invocations that wait for a hook's own limit or for its busy workers, before they get to their pool.";
    QUEUE_WAIT "hookyard_queue_wait_seconds" Histogram(HOOK) Seconds ["pool" "class"]
        "How long invocations waited for a place before they ran, at the hook's own limit and for its busy workers included.";
    POOL_SLOTS "hookyard_pool_slots" Gauge Count ["pool" "state"]
        "Places to run hooks: used, and all there are.";
    QUEUE_DEPTH "hookyard_queue_depth" Gauge Count ["pool"]
        "Invocations that wait in the pool's queue.";
    QUEUE_LIMIT "hookyard_queue_limit" Gauge Count ["pool"]
        "How many invocations may wait in the pool's queue; the native pool's has no limit.";
    SHED "hookyard_shed_total" Counter Count ["where" "reason"]
        "Work that was turned away.";
    LATE_REPLIES "hookyard_late_replies_total" Counter Count []
        "Replies to invocations that had already ended.";
    RUNS "hookyard_runs" Gauge Count ["state"]
        "Runs that are known: with an actor, or without.";
    SESSIONS "hookyard_sessions" Gauge Count ["state"]
        "Sessions with a run that has an actor; of others no session is kept.";
    ACTOR_RESTARTS "hookyard_actor_restarts_total" Counter Count ["actor"]
        "Actors that died and were or will be replaced.";
    PANICS "hookyard_panics_total" Counter Count ["actor"]
        "Panics that were caught, by who panicked.";
    SPAWN_DURATION "hookyard_spawn_duration_seconds" Histogram(FAST) Seconds []
        "How long it took to start a process.";
    PROCESSES "hookyard_processes" Gauge Count ["state"]
        "Processes of hooks at work, and killed ones that are not gone yet.";
    PROCESS_EXITS "hookyard_process_exits_total" Counter Count ["class"]
        "Ends of processes that served one event.";
    PROCESS_LEAKS "hookyard_process_leaks_total" Counter Count ["kind"]
        "What processes left behind when they exited.";
    OUTPUT_TRUNCATED "hookyard_output_truncated_total" Counter Count ["hook" "stream"]
        "Invocations that wrote more to a stream than is kept.";
    WORKERS "hookyard_workers" Gauge Count ["hook" "state"]
        "Workers of a hook: starting, idle, or busy with an event.";
    WORKER_RESTARTS "hookyard_worker_restarts_total" Counter Count ["hook"]
        "Workers that failed, so that another takes their place.";
    WORKERS_DEGRADED "hookyard_workers_degraded" Gauge Count ["hook" "reason"]
        "Hooks whose workers do not serve: none said hello, or they end again and again.";
    PRESPAWN_HITS "hookyard_prespawn_hits_total" Counter Count ["hook" "result"]
        "Events that found a process waiting, and events that did not.";
    HTTP_REQUESTS "hookyard_http_requests_total" Counter Count ["hook" "class"]
        "Requests of http hooks, by status or by why there is none.";
    MODEL_REQUEST_DURATION "hookyard_model_request_duration_seconds" Histogram(MODEL) Seconds ["model_ref" "handler"]
        "How long a model was asked, also if it gave no answer.";
    MODEL_TOKENS "hookyard_model_tokens_total" Counter Count ["model_ref" "direction"]
        "Tokens that models read and wrote.";
    HOOKS_LOADED "hookyard_hooks_loaded" Gauge Count ["dialect" "state"]
        "Hooks of all workspaces; invalid counts files with errors.";
    BROKEN_FILES "hookyard_broken_files" Gauge Count ["rules"]
        "Broken hook files, by what became of the rules that they last had: kept in force, their events denied, or unknown.";
    REQUIRED_HOOKS_MISSING "hookyard_required_hooks_missing" Gauge Count []
        "Required hooks that are not in force, over all workspaces; their events are blocked.";
    WORKSPACES_NOT_LOADED "hookyard_workspaces_not_loaded" Gauge Count []
        "Workspaces of the daemon's settings that could not be loaded; their events are refused.";
    CONFIG_LAST_RELOAD_SUCCESSFUL "hookyard_config_last_reload_successful" Gauge Count []
        "1 if nothing was wrong with any workspace when it was last loaded, else 0.";
    CONFIG_LAST_RELOAD_SUCCESS "hookyard_config_last_reload_success_timestamp_seconds" Gauge Seconds []
        "When nothing was wrong last.";
    CONFIG_ERRORS "hookyard_config_errors_total" Counter Count ["kind"]
        "Errors found in hook files, each time they were loaded.";
    STORE_WRITE_DURATION "hookyard_store_write_duration_seconds" Histogram(FAST) Seconds []
        "How long a write of the state of runs to disk took, with its sync.";
    STORE_ERRORS "hookyard_store_errors_total" Counter Count ["reason"]
        "Failed writes of the state of runs, halts answered before they were on disk, and starts that found the state gone.";
    STORE_UNSAVED "hookyard_store_unsaved_runs" Gauge Count ["state"]
        "Runs whose latest state is not on disk yet: halted ones, and others.";
    CLUSTER_PUTS "hookyard_cluster_puts_total" Counter Count ["result"]
        "Halts that were written into the store of the cluster, and attempts that failed.";
    CLUSTER_PUT_DURATION "hookyard_cluster_put_duration_seconds" Histogram(FAST) Seconds []
        "How long it took until a majority of the servers had a halt, or until that failed.";
    CLUSTER_FRESH "hookyard_cluster_fresh" Gauge Count []
        "1 if this daemon knows all halts of its cluster, 0 if its store has not been heard of for `cluster.stale_after`.";
    CLUSTER_HALTS "hookyard_cluster_halts" Gauge Count ["state"]
        "Halts of the cluster that this daemon knows: stored, or not in the store yet.";
    QUEUE_PUTS "hookyard_cluster_queue_puts_total" Counter Count ["result"]
        "Lifecycle events that this node put into the queue of its cluster, by whether they were there already, and attempts that failed.";
    QUEUE_ENDED "hookyard_cluster_queue_ended_total" Counter Count ["result"]
        "Events of the queue that this worker has acknowledged, made dead letters or given back.";
    QUEUE_REPLACED "hookyard_cluster_queue_replaced_total" Counter Count []
        "Times that this daemon found that events of the queue are lost: another one is in its place, it was set back, or they were removed.";
    OUTBOX_RECORDS "hookyard_outbox_records" Gauge Count ["state"]
        "Lifecycle events in the outbox: under way, waiting to be delivered again, and dead letters.";
    OUTBOX_OLDEST "hookyard_outbox_oldest_seconds" Gauge Seconds []
        "Age of the oldest event in the outbox that is to be delivered; 0 if there is none.";
    OUTBOX_DELIVERIES "hookyard_outbox_deliveries_total" Counter Count ["result"]
        "Deliveries of lifecycle events to their hooks, by how they ended.";
    DEAD_LETTERS "hookyard_outbox_dead_letters_total" Counter Count ["reason"]
        "Lifecycle events that became dead letters.";
    DEAD_LETTERS_DROPPED "hookyard_outbox_dead_letters_dropped_total" Counter Count []
        "Dead letters that were dropped, because there were too many.";
    STREAM_DROPPED "hookyard_stream_dropped_total" Counter Count []
        "Notices that readers of the stream were too slow for.";
    BUNDLE_INFO "hookyard_bundle_info" Gauge Count ["version"]
        "1 for the version of the signed bundle that is in force, or for none where one is configured; else 0.";
    BUNDLE_AGE "hookyard_bundle_age_seconds" Gauge Seconds []
        "Time since the bundle's server has confirmed what is in force.";
    BUNDLE_STALE "hookyard_bundle_stale" Gauge Count []
        "1 while the bundle in force is stale: it has expired, or no server has confirmed it for longer than `bundle.max_age`.";
    BUNDLE_CHANGES "hookyard_bundle_copy_changes_total" Counter Count ["result"]
        "Times that files of the bundle were found changed on this disk, by whether they were unpacked again.";
    BUNDLE_REJECTED "hookyard_bundle_rejected_total" Counter Count ["why"]
        "Bundles that were offered and not taken.";
    BUNDLE_POLLS "hookyard_bundle_polls_total" Counter Count ["result"]
        "Times that the bundle's server was asked, by what came of it.";
    AUDIT_DROPPED "hookyard_audit_dropped_total" Counter Count ["reason"]
        "Lines of the audit that were lost: too many waited, or they could not be written.";
    SHIPPED "hookyard_shipped_lines_total" Counter Count []
        "Lines of the audit and of the state that the server of `ship.url` has taken.";
    SHIP_DROPPED "hookyard_ship_dropped_total" Counter Count ["reason"]
        "Lines for shipping that were lost: they had to make room, could not be written or read, or were too large for the server.";
    SHIP_WAITING_LINES "hookyard_ship_waiting_lines" Gauge Count []
        "Lines that wait until the server of `ship.url` takes them.";
    SHIP_WAITING_BYTES "hookyard_ship_waiting_bytes" Gauge Bytes []
        "Disk space of the lines that wait until the server of `ship.url` takes them.";
    TRACE_SPANS_DROPPED "hookyard_trace_spans_dropped_total" Counter Count ["reason"]
        "Spans of traces that were lost: too many waited, or they could not be exported.";
    API_REQUESTS "hookyard_api_requests_total" Counter Count ["route" "status_class"]
        "Requests to the daemon.";
    API_DENIED "hookyard_api_denied_total" Counter Count ["listener" "code"]
        "Requests to the daemon without the right to their operation, by listener and error code.";
    LISTENER_REFUSALS "hookyard_listener_refusals_total" Counter Count ["listener" "limit"]
        "Connections, requests, bodies and streams beyond a limit of their listener.";
    LABEL_OVERFLOW "hookyard_label_overflow_total" Counter Count []
        "Hooks without a label of their own, since there are too many names; they share __other__.";
}

// What the daemon says of its own process, by the names that Prometheus' clients use, and of its runtime.
#[cfg(feature = "daemon")]
table! {
    /// What the daemon exposes about its own process and runtime.
    PROCESS_METRICS:
    PROCESS_CPU "process_cpu_seconds_total" Counter Seconds []
        "Processor time that this process used.";
    PROCESS_RESIDENT "process_resident_memory_bytes" Gauge Bytes []
        "Memory that this process occupies.";
    PROCESS_VIRTUAL "process_virtual_memory_bytes" Gauge Bytes []
        "Address space of this process.";
    PROCESS_OPEN_FDS "process_open_fds" Gauge Count []
        "Open file descriptors.";
    PROCESS_MAX_FDS "process_max_fds" Gauge Count []
        "How many file descriptors may be open.";
    PROCESS_START "process_start_time_seconds" Gauge Seconds []
        "When this process was started.";
    PROCESS_THREADS "process_threads" Gauge Count []
        "Threads of this process.";
    TOKIO_WORKERS "tokio_workers" Gauge Count []
        "Threads that run tasks.";
    TOKIO_TASKS "tokio_live_tasks" Gauge Count []
        "Tasks that have not ended.";
    TOKIO_QUEUE "tokio_global_queue_depth" Gauge Count []
        "Tasks that wait for any thread.";
    TOKIO_BUSY "tokio_busy_seconds_total" Counter Seconds []
        "Time that all threads spent with tasks.";
    TOKIO_PARKS "tokio_park_count_total" Counter Count []
        "How often threads parked because no task was ready.";
}

static METADATA: Metadata<'static> = Metadata::new(module_path!(), Level::INFO, Some(module_path!()));

impl Metric {
    /// The handle of the series with these values of its labels.
    pub(super) fn counter<const N: usize>(&self, values: [&str; N]) -> Counter {
        debug_assert_eq!(self.kind, MetricKind::Counter, "{}", self.name);
        metrics::with_recorder(|recorder| recorder.register_counter(&self.key(values), &METADATA))
    }

    /// The handle of the series with these values of its labels.
    pub(super) fn gauge<const N: usize>(&self, values: [&str; N]) -> Gauge {
        debug_assert_eq!(self.kind, MetricKind::Gauge, "{}", self.name);
        metrics::with_recorder(|recorder| recorder.register_gauge(&self.key(values), &METADATA))
    }

    /// The handle of the series with these values of its labels.
    pub(super) fn histogram<const N: usize>(&self, values: [&str; N]) -> Histogram {
        debug_assert!(matches!(self.kind, MetricKind::Histogram(_)), "{}", self.name);
        metrics::with_recorder(|recorder| recorder.register_histogram(&self.key(values), &METADATA))
    }

    fn key<const N: usize>(&self, values: [&str; N]) -> Key {
        debug_assert_eq!(self.labels.len(), N, "{}", self.name);
        let labels = self.labels.iter().zip(values).map(|(name, value)| Label::new(*name, value.to_owned()));
        Key::from_parts(self.name, labels.collect::<Vec<_>>())
    }
}

/// Tells whoever collects the metrics what they say.
pub(super) fn describe() {
    metrics::with_recorder(|recorder| {
        for metric in METRICS {
            let (name, unit, help) = (metric.name.into(), Some(metric.unit), metric.help.into());
            match metric.kind {
                MetricKind::Counter => recorder.describe_counter(name, unit, help),
                MetricKind::Gauge => recorder.describe_gauge(name, unit, help),
                MetricKind::Histogram(_) => recorder.describe_histogram(name, unit, help),
            }
        }
    });
}

#[cfg(all(test, feature = "daemon"))]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn row(metric: &Metric) -> String {
        let labels: Vec<_> = metric.labels.iter().map(|label| format!("`{label}`")).collect();
        let labels = if labels.is_empty() { "–".to_owned() } else { labels.join(", ") };
        format!("| `{}` | {} | {labels} | {} |", metric.name, metric.kind.as_str(), metric.help)
    }

    #[test]
    fn the_table_of_the_docs_is_this_table() {
        let is_row = |line: &str| line.starts_with("| `") && line.matches('|').count() == 5;
        let docs = include_str!("../../docs/metrics.md");
        let documented: Vec<_> = docs.lines().filter(|line| is_row(line)).collect();
        let rows: Vec<_> = METRICS.iter().chain(PROCESS_METRICS).map(|metric| row(metric)).collect();
        assert_eq!(documented, rows, "docs/metrics.md should have these rows:\n{}", rows.join("\n"));
    }

    #[test]
    fn names_follow_the_rules_of_prometheus() {
        let mut seen = HashSet::new();
        for metric in METRICS.iter().chain(PROCESS_METRICS) {
            assert!(seen.insert(metric.name), "{} is there twice", metric.name);
            assert_eq!(
                metric.kind == MetricKind::Counter,
                metric.name.ends_with("_total"),
                "{}",
                metric.name
            );
            let is_plain = |c: char| c.is_ascii_lowercase() || c == '_';
            assert!(metric.name.chars().all(is_plain), "{}", metric.name);
            assert!(metric.help.ends_with('.'), "{}", metric.name);
            if let MetricKind::Histogram(bounds) = metric.kind {
                assert!(bounds.is_sorted() && metric.name.ends_with("_seconds"), "{}", metric.name);
            }
        }
        assert_eq!((FAST.len(), HOOK.len(), MODEL.len()), (18, 21, 14));
        assert!(FAST.contains(&1e-3), "the bound that an objective is set at");
        for timeout in [1.0, 2.0, 5.0, 10.0, 30.0, 60.0] {
            let above = HOOK.iter().position(|bound| *bound > timeout * 1.001).unwrap();
            let width = HOOK[above] - HOOK[above - 1];
            assert!(HOOK[above - 1] < timeout && width <= timeout * 0.11, "{timeout} s is not told apart");
        }
    }
}
