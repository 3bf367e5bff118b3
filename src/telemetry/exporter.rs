//! Renders the metrics for Prometheus. The daemon installs the recorder; a library never does.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use bytes::Bytes;
use tokio::{
    runtime::Handle,
    sync::Mutex,
    task::spawn_blocking,
    time::{Instant, interval},
};

use super::{process_metrics, prometheus::PrometheusMetrics};

/// How long a rendering is good for: many that ask at once get the same one.
const FRESH: Duration = Duration::from_millis(250);

/// How often histograms are folded up, so that they do not grow between scrapes.
const UPKEEP: Duration = Duration::from_secs(5);

static INSTALLED: OnceLock<Option<PrometheusMetrics>> = OnceLock::new();

/// The metrics of this process.
#[derive(Clone)]
pub(crate) struct Exporter {
    /// None if another recorder was installed first: then the metrics are there.
    metrics: Option<PrometheusMetrics>,
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
        let metrics = INSTALLED.get_or_init(|| {
            let installed = PrometheusMetrics::install();
            installed.inspect_err(|error| tracing::warn!(%error, "metrics are not collected here")).ok()
        });
        Self { metrics: metrics.clone(), rendered: Arc::default() }
    }

    /// An exporter of a process whose metrics are not collected.
    #[cfg(test)]
    pub(crate) fn none() -> Self {
        Self { metrics: None, rendered: Arc::default() }
    }

    /// The metrics in Prometheus' text format, if they are collected here. `sample` sets those that are not set where
    /// they change. However many ask at once, one rendering is made, and no thread that runs tasks waits for it.
    pub(crate) async fn render(&self, sample: impl FnOnce() + Send + 'static) -> Option<Bytes> {
        let metrics = self.metrics.clone()?;
        let mut rendered = self.rendered.lock().await;
        if let Some(fresh) = rendered.as_ref().filter(|known| known.when.elapsed() < FRESH) {
            return Some(fresh.text.clone());
        }
        let runtime = Handle::current();
        let text = spawn_blocking(move || {
            sample();
            metrics.render() + &process_metrics::text(&runtime)
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
            if let Some(metrics) = &self.metrics {
                metrics.upkeep();
            }
        }
    }
}

impl std::fmt::Debug for Exporter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Exporter").finish_non_exhaustive()
    }
}
