//! The metrics as Prometheus reads them. Owns the buckets of histograms; refuses to be installed by a library: the
//! daemon does it.

use std::{
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::Duration,
};

use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use tokio::time::{Instant, interval};

use super::names;

/// From what hookyard itself takes to what nobody should wait for.
const FAST: [f64; 13] =
    [5e-6, 1e-5, 2.5e-5, 5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 2.5e-2, 1e-1, 2.5e-1];

/// From a native hook to a slow program.
const HOOK: [f64; 19] = [
    5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 1e-2, 2.5e-2, 5e-2, 1e-1, 2.5e-1, 5e-1, 1.0, 2.5, 5.0,
    10.0, 30.0, 60.0,
];

/// From a small model to a long dialogue; each twice the one before.
const MODEL: [f64; 14] =
    [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];

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
    text: Arc<str>,
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

    /// The metrics in Prometheus' text format, if they are collected here.
    pub(crate) fn render(&self) -> Option<Arc<str>> {
        let handle = self.handle.as_ref()?;
        let mut rendered = self.rendered.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(fresh) = rendered.as_ref().filter(|known| known.when.elapsed() < FRESH) {
            return Some(Arc::clone(&fresh.text));
        }
        let text: Arc<str> = handle.render().into();
        *rendered = Some(Rendered { when: Instant::now(), text: Arc::clone(&text) });
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
    let full = |name: &str| Matcher::Full(name.to_owned());
    PrometheusBuilder::new()
        .set_buckets(&HOOK)?
        .set_buckets_for_metric(full(names::SPAWN_DURATION), &FAST)?
        .set_buckets_for_metric(full(names::MODEL_REQUEST_DURATION), &MODEL)
}
