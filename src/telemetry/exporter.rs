//! Renders the metrics for Prometheus. The daemon installs the recorder; a library never does.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use bytes::Bytes;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use tokio::{
    runtime::Handle,
    sync::Mutex,
    task::spawn_blocking,
    time::{Instant, interval},
};

use super::{
    names::{self, MetricKind},
    process_metrics,
};

/// How long a rendering is good for: many that ask at once get the same one.
const FRESH: Duration = Duration::from_millis(250);

/// How often histograms are folded up, so that they do not grow between scrapes.
const UPKEEP: Duration = Duration::from_secs(5);

static RECORDER: OnceLock<Option<PrometheusHandle>> = OnceLock::new();

/// The metrics of this process.
#[derive(Clone)]
pub(crate) struct Exporter {
    /// None if another recorder was installed first: then the metrics are there.
    handle: Option<PrometheusHandle>,
    rendered: Arc<Mutex<Option<Rendered>>>,
}

/// The metrics as they were a moment ago.
struct Rendered {
    when: Instant,
    text: Bytes,
}

impl Exporter {
    /// Has the metrics of this process collected, once.
    pub(crate) fn install() -> Self {
        let handle = RECORDER.get_or_init(|| {
            let builder = builder().map_err(|error| error.to_string());
            let installed = builder.and_then(|builder| {
                let recorder = builder.build_recorder();
                let handle = recorder.handle();
                metrics::set_global_recorder(recorder).map_err(|error| error.to_string())?;
                Ok(handle)
            });
            installed.inspect_err(|error| tracing::warn!(%error, "metrics are not collected here")).ok()
        });
        Self { handle: handle.clone(), rendered: Arc::default() }
    }

    /// An exporter of a process whose metrics are not collected.
    #[cfg(test)]
    pub(crate) fn none() -> Self {
        Self { handle: None, rendered: Arc::default() }
    }

    /// The metrics in Prometheus' text format, if they are collected here. `sample` sets those that are not set where
    /// they change. However many ask at once, one rendering is made, and no thread that runs tasks waits for it.
    pub(crate) async fn render(&self, sample: impl FnOnce() + Send + 'static) -> Option<Bytes> {
        let handle = self.handle.clone()?;
        let mut rendered = self.rendered.lock().await;
        if let Some(fresh) = rendered.as_ref().filter(|known| known.when.elapsed() < FRESH) {
            return Some(fresh.text.clone());
        }
        let runtime = Handle::current();
        let text = spawn_blocking(move || {
            sample();
            handle.render() + &process_metrics::text(&runtime)
        });
        let text = Bytes::from(text.await.ok()?);
        *rendered = Some(Rendered { when: Instant::now(), text: text.clone() });
        Some(text)
    }

    /// Keeps the histograms small, for as long as it is polled.
    pub(crate) async fn upkeep(self) {
        let mut ticks = interval(UPKEEP);
        loop {
            ticks.tick().await;
            if let Some(handle) = &self.handle {
                handle.run_upkeep();
            }
        }
    }
}

impl std::fmt::Debug for Exporter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Exporter").finish_non_exhaustive()
    }
}

fn builder() -> Result<PrometheusBuilder, metrics_exporter_prometheus::BuildError> {
    let buckets = names::METRICS.iter().filter_map(|metric| match metric.kind {
        MetricKind::Histogram(bounds) => Some((metric.name, bounds)),
        MetricKind::Counter | MetricKind::Gauge => None,
    });
    buckets.into_iter().try_fold(PrometheusBuilder::new(), |builder, (name, bounds)| {
        builder.set_buckets_for_metric(Matcher::Full(name.to_owned()), bounds)
    })
}
