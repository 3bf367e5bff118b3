//! Metrics of the process and its runtime, read when they are scraped and written in Prometheus' text format: the
//! recorder's counters are whole numbers, and processor time is not.

use std::{fmt::Write, time::Duration};

use rustix::process::{Resource, getrlimit};
use tokio::runtime::Handle;

use super::names::{self, Metric};
use crate::platform::own_usage;

/// All of it, in Prometheus' text format. What cannot be read is left out.
pub(super) fn text(runtime: &Handle) -> String {
    let mut text = String::new();
    let mut write = |metric: &Metric, value: Option<f64>| {
        let Some(value) = value else { return };
        let Metric { name, kind, help, .. } = metric;
        // A String takes all that is written to it.
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {}\n{name} {value}\n", kind.as_str());
    };
    let usage = own_usage();
    write(names::PROCESS_CPU, usage.cpu.map(|time| time.as_secs_f64()));
    write(names::PROCESS_RESIDENT, usage.resident_bytes.map(float));
    write(names::PROCESS_VIRTUAL, usage.virtual_bytes.map(float));
    write(names::PROCESS_THREADS, usage.threads.map(float));
    write(names::PROCESS_START, usage.started.map(|time| time.as_secs_f64()));
    write(names::PROCESS_OPEN_FDS, usage.open_descriptors.map(float));
    write(names::PROCESS_MAX_FDS, Some(getrlimit(Resource::Nofile).current.map_or(f64::INFINITY, float)));
    let metrics = runtime.metrics();
    let workers = 0..metrics.num_workers();
    let busy: Duration = workers.clone().map(|worker| metrics.worker_total_busy_duration(worker)).sum();
    let parks: u64 = workers.map(|worker| metrics.worker_park_count(worker)).sum();
    write(names::TOKIO_WORKERS, Some(float(metrics.num_workers() as u64)));
    write(names::TOKIO_TASKS, Some(float(metrics.num_alive_tasks() as u64)));
    write(names::TOKIO_QUEUE, Some(float(metrics.global_queue_depth() as u64)));
    write(names::TOKIO_BUSY, Some(busy.as_secs_f64()));
    write(names::TOKIO_PARKS, Some(float(parks)));
    text
}

#[expect(
    clippy::cast_precision_loss,
    reason = "what a gauge says is exact up to nine thousand million million"
)]
fn float(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use std::time::{SystemTime, UNIX_EPOCH};

    use super::*;

    #[tokio::test]
    async fn this_process_was_started_not_long_ago() {
        let text = text(&Handle::current());
        let value = |name: &str| {
            let line = text.lines().find(|line| line.split(' ').next() == Some(name)).unwrap();
            line.split(' ').nth(1).unwrap().parse::<f64>().unwrap()
        };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64();
        let age = now - value("process_start_time_seconds");
        assert!((-1.0..3600.0).contains(&age), "{age}");
        assert!(value("process_resident_memory_bytes") > 100_000.0);
        assert!(value("process_open_fds") >= 3.0);
        // Not every system tells.
        let threads = own_usage().threads;
        assert_eq!(text.contains("process_threads"), threads.is_some());
        assert!(threads.is_none_or(|threads| threads >= 1));
    }
}
