//! Collects the metrics of a process for Prometheus. What hookyard counts for each event is counted in place; gauges, and
//! the metrics of others, are those of `metrics-exporter-prometheus`.

use std::{
    collections::BTreeMap,
    fmt::{self, Write},
    sync::Arc,
};

use metrics::{
    Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SetRecorderError, SharedString, Unit,
};
use metrics_exporter_prometheus::{
    PrometheusBuilder, PrometheusHandle, PrometheusRecorder, formatting::sanitize_label_value,
};
use parking_lot::RwLock;

use super::{
    names::{METRICS, Metric, MetricKind},
    sharded::{BucketHistogram, ShardedCounter},
};

/// The metrics of this process, in Prometheus' text format.
///
/// For programs that embed hookyard and have no recorder of their own; any other that the crate `metrics` knows will do.
/// This one has the buckets that [`METRICS`] says, and costs an event the least. The daemon uses it.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // First: an orchestrator records with what is installed when it starts.
/// let metrics = hookyard::telemetry::PrometheusMetrics::install()?;
/// let orchestrator = hookyard::Orchestrator::builder().start().await?;
///
/// orchestrator.update_gauges();
/// assert!(metrics.render().contains("\nhookyard_build_info{"));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct PrometheusMetrics {
    others: PrometheusHandle,
    families: Arc<Families>,
}

/// The process has a recorder of metrics already.
#[derive(Debug, thiserror::Error)]
#[error("another recorder collects the metrics of this process")]
pub struct RecorderInstalled;

/// What takes the metrics in.
struct OwnRecorder {
    others: PrometheusRecorder,
    families: Arc<Families>,
}

/// The metrics that are counted in place.
struct Families {
    counters: Vec<Family<ShardedCounter>>,
    histograms: Vec<Family<BucketHistogram>>,
}

/// The series of one metric.
struct Family<S> {
    metric: &'static Metric,
    /// By their labels, as they are printed.
    series: RwLock<BTreeMap<Box<str>, Arc<S>>>,
}

impl PrometheusMetrics {
    /// Has the metrics of this process collected from now on. An orchestrator that was started before records nothing.
    pub fn install() -> Result<Self, RecorderInstalled> {
        let families = Arc::new(Families::of(METRICS));
        let others = PrometheusBuilder::new().build_recorder();
        let metrics = Self { others: others.handle(), families: Arc::clone(&families) };
        let installed = metrics::set_global_recorder(OwnRecorder { others, families });
        installed.map_err(|_: SetRecorderError<_>| RecorderInstalled)?;
        Ok(metrics)
    }

    /// All series, in Prometheus' text format.
    pub fn render(&self) -> String {
        let mut text = self.others.render();
        self.families.write(&mut text);
        text
    }

    /// Folds up what the histograms of others have recorded; to be called every few seconds if there are any.
    pub fn upkeep(&self) {
        self.others.run_upkeep();
    }
}

impl fmt::Debug for PrometheusMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PrometheusMetrics").finish_non_exhaustive()
    }
}

impl Recorder for OwnRecorder {
    fn describe_counter(&self, name: KeyName, unit: Option<Unit>, description: SharedString) {
        self.others.describe_counter(name, unit, description);
    }

    fn describe_gauge(&self, name: KeyName, unit: Option<Unit>, description: SharedString) {
        self.others.describe_gauge(name, unit, description);
    }

    fn describe_histogram(&self, name: KeyName, unit: Option<Unit>, description: SharedString) {
        self.others.describe_histogram(name, unit, description);
    }

    fn register_counter(&self, key: &Key, metadata: &Metadata<'_>) -> Counter {
        match named(&self.families.counters, key) {
            Some(family) => Counter::from_arc(family.of(key, ShardedCounter::default)),
            None => self.others.register_counter(key, metadata),
        }
    }

    fn register_gauge(&self, key: &Key, metadata: &Metadata<'_>) -> Gauge {
        self.others.register_gauge(key, metadata)
    }

    fn register_histogram(&self, key: &Key, metadata: &Metadata<'_>) -> Histogram {
        match named(&self.families.histograms, key) {
            Some(family) => Histogram::from_arc(family.of(key, || BucketHistogram::new(family.bounds()))),
            None => self.others.register_histogram(key, metadata),
        }
    }
}

impl Families {
    fn of(metrics: &[&'static Metric]) -> Self {
        let mut families = Self { counters: Vec::new(), histograms: Vec::new() };
        for metric in metrics {
            match metric.kind {
                MetricKind::Counter => families.counters.push(Family::new(metric)),
                MetricKind::Histogram(_) => families.histograms.push(Family::new(metric)),
                MetricKind::Gauge => {}
            }
        }
        families
    }

    fn write(&self, text: &mut String) {
        for family in &self.counters {
            family.write(text, |text, name, labels, counter| {
                write_line(text, (name, ""), labels, None, counter.value());
            });
        }
        for family in &self.histograms {
            let bounds: Vec<_> =
                family.bounds().iter().map(f64::to_string).chain(["+Inf".to_owned()]).collect();
            family.write(text, |text, name, labels, histogram| {
                write_histogram(text, name, labels, &bounds, histogram);
            });
        }
    }
}

/// The family of a series.
fn named<'a, S>(families: &'a [Family<S>], key: &Key) -> Option<&'a Family<S>> {
    families.iter().find(|family| family.metric.name == key.name())
}

impl<S> Family<S> {
    fn new(metric: &'static Metric) -> Self {
        Self { metric, series: RwLock::default() }
    }

    fn bounds(&self) -> &'static [f64] {
        if let MetricKind::Histogram(bounds) = self.metric.kind { bounds } else { &[] }
    }

    /// The series with the labels of a key; a new one if there is none.
    fn of(&self, key: &Key, new: impl FnOnce() -> S) -> Arc<S> {
        let mut labels = String::new();
        for label in key.labels() {
            let comma = if labels.is_empty() { "" } else { "," };
            // A String takes all that is written to it, here and below.
            let _ = write!(labels, "{comma}{}=\"{}\"", label.key(), sanitize_label_value(label.value()));
        }
        Arc::clone(self.series.write().entry(labels.into()).or_insert_with(|| Arc::new(new())))
    }

    /// Writes all its series, if it has any.
    fn write(&self, text: &mut String, each: impl Fn(&mut String, &str, &str, &S)) {
        let Metric { name, kind, help, .. } = self.metric;
        let series = self.series.read();
        if series.is_empty() {
            return;
        }
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {}", kind.as_str());
        for (labels, series) in series.iter() {
            each(text, name, labels, series);
        }
        text.push('\n');
    }
}

fn write_histogram(
    text: &mut String,
    name: &str,
    labels: &str,
    bounds: &[String],
    histogram: &BucketHistogram,
) {
    let seen = histogram.observations();
    let mut count = 0;
    for (bound, in_bucket) in bounds.iter().zip(seen.counts) {
        count += in_bucket;
        write_line(text, (name, "_bucket"), labels, Some(bound.as_str()), count);
    }
    write_line(text, (name, "_sum"), labels, None, seen.sum);
    write_line(text, (name, "_count"), labels, None, count);
}

/// Writes a line of a series: of its name and what follows it, its labels and the bound of a bucket, its value.
fn write_line(
    text: &mut String,
    (name, suffix): (&str, &str),
    labels: &str,
    bound: Option<&str>,
    value: impl fmt::Display,
) {
    text.push_str(name);
    text.push_str(suffix);
    match bound {
        Some(bound) => {
            let comma = if labels.is_empty() { "" } else { "," };
            let _ = write!(text, "{{{labels}{comma}le=\"{bound}\"}}");
        }
        None if labels.is_empty() => {}
        None => {
            let _ = write!(text, "{{{labels}}}");
        }
    }
    let _ = writeln!(text, " {value}");
}
