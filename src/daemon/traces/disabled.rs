//! The tracer of a build without the feature `otel`. Settings with an endpoint are an error.

use std::{convert::Infallible, sync::Arc};

use super::error::TracesError;
use crate::{FinishedEvent, OutcomeObserver, config::TraceSettings, model::Event};

/// A tracer that is never created.
#[derive(Debug)]
pub(in crate::daemon) struct Tracer(Infallible);

impl Tracer {
    /// Returns an error if the settings enable traces. Standard variables are ignored: they may be meant for other programs.
    pub(in crate::daemon) fn start(
        settings: &TraceSettings,
        _: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Option<Arc<Self>>, TracesError> {
        if settings.endpoint.is_some() { Err(TracesError::NotBuilt) } else { Ok(None) }
    }

    pub(in crate::daemon) fn begin(&self, _: &mut Event) {
        match self.0 {}
    }

    #[allow(clippy::unused_async, reason = "the one that is there has something to wait for")]
    pub(in crate::daemon) async fn close(&self) {
        match self.0 {}
    }
}

impl OutcomeObserver for Tracer {
    fn event_finished(&self, _: FinishedEvent) {
        match self.0 {}
    }
}
