//! Metrics of the process and its runtime, read when they are scraped and written in Prometheus' text format: the
//! recorder's counters are whole numbers, and processor time is not.

use std::{
    fmt::Write,
    fs,
    sync::OnceLock,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use rustix::{
    param::{clock_ticks_per_second, page_size},
    process::{Resource, getrlimit},
    time::{ClockId, clock_gettime},
};
use tokio::runtime::Handle;

use super::names::{self, Metric};

/// What `/proc/self/stat` says of interest.
struct Stat {
    cpu: Duration,
    threads: u64,
    /// Since the machine was started.
    started: Duration,
    virtual_bytes: u64,
    resident_pages: u64,
}

/// All of it, in Prometheus' text format. What cannot be read is left out.
pub(super) fn text(runtime: &Handle) -> String {
    let mut text = String::new();
    let mut write = |metric: &Metric, value: Option<f64>| {
        let Some(value) = value else { return };
        let Metric { name, kind, help, .. } = metric;
        // A String takes all that is written to it.
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {}\n{name} {value}\n", kind.as_str());
    };
    let stat = fs::read_to_string("/proc/self/stat").ok().and_then(|text| Stat::read(&text));
    let stat = stat.as_ref();
    write(names::PROCESS_CPU, stat.map(|stat| stat.cpu.as_secs_f64()));
    write(names::PROCESS_RESIDENT, stat.map(|stat| float(stat.resident_pages) * float(page_size() as u64)));
    write(names::PROCESS_VIRTUAL, stat.map(|stat| float(stat.virtual_bytes)));
    write(names::PROCESS_THREADS, stat.map(|stat| float(stat.threads)));
    write(names::PROCESS_START, stat.map(|stat| (booted() + stat.started).as_secs_f64()));
    // One of them is that of the listing.
    let open = fs::read_dir("/proc/self/fd").ok().map(|entries| entries.count().saturating_sub(1));
    write(names::PROCESS_OPEN_FDS, open.map(|open| float(open as u64)));
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

impl Stat {
    /// The program's name, in parentheses, may have spaces and parentheses in it.
    fn read(text: &str) -> Option<Self> {
        let (_, fields) = text.rsplit_once(')')?;
        // The first of them is the third of the line.
        let fields: Vec<&str> = fields.split_whitespace().collect();
        let number = |place: usize| fields.get(place - 3)?.parse::<u64>().ok();
        let ticks = |count: u64| Duration::from_secs_f64(float(count) / float(clock_ticks_per_second()));
        Some(Self {
            cpu: ticks(number(14)? + number(15)?),
            threads: number(20)?,
            started: ticks(number(22)?),
            virtual_bytes: number(23)?,
            resident_pages: number(24)?,
        })
    }
}

/// When the machine was started, since 1970. Looked at once: clocks are set, and what changes would look like a start.
fn booted() -> Duration {
    static BOOTED: OnceLock<Duration> = OnceLock::new();
    *BOOTED.get_or_init(since_1970)
}

fn since_1970() -> Duration {
    let up = clock_gettime(ClockId::Boottime);
    let up = Duration::new(up.tv_sec.try_into().unwrap_or(0), up.tv_nsec.try_into().unwrap_or(0));
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().saturating_sub(up)
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
    use super::*;

    #[test]
    fn a_programs_name_may_look_like_the_rest_of_the_line() {
        let line = "7 (a) S 1 (b) R 1 1 1 0 -1 0 0 0 0 0 100 50 0 0 20 0 9 0 300 4096 2 18446744073709551615";
        let stat = Stat::read(line).unwrap();
        let ticks = clock_ticks_per_second();
        assert_eq!(stat.cpu, Duration::from_secs_f64(150.0 / float(ticks)));
        assert_eq!((stat.threads, stat.virtual_bytes, stat.resident_pages), (9, 4096, 2));
    }

    #[test]
    fn the_start_of_the_machine_is_that_of_the_kernel() {
        let text = std::fs::read_to_string("/proc/stat").unwrap();
        let btime =
            text.lines().find_map(|line| line.strip_prefix("btime ")).unwrap().parse::<u64>().unwrap();
        assert!(booted().as_secs().abs_diff(btime) <= 2, "{:?} is not {btime}", booted());
    }

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
        assert!(value("process_open_fds") >= 3.0 && value("process_threads") >= 1.0);
    }
}
