//! Routes a question to the client that can ask the model: the embedding program's, or hookyard's own.

use std::sync::Arc;

use super::client::{ModelAnswer, ModelClient, ModelError, ModelRequest};
use crate::model::{Ended, Failure, Model, ModelAccess};

/// The model clients of one orchestrator.
#[derive(Debug, Clone)]
pub(crate) struct ModelRouter {
    /// `None` in a build without the feature `models`.
    api: Option<Arc<dyn ModelClient>>,
    host: Option<Arc<dyn ModelClient>>,
}

impl ModelRouter {
    pub(crate) fn new(api: Option<Arc<dyn ModelClient>>, host: Option<Arc<dyn ModelClient>>) -> Self {
        Self { api, host }
    }

    /// Asks a model once.
    ///
    /// Returns a failure if there is no answer, or if no client can ask this model.
    pub(super) async fn ask(&self, model: &Model, request: &ModelRequest) -> Result<ModelAnswer, Failure> {
        let client = match model.access {
            ModelAccess::Api(_) => self.api.as_ref().ok_or_else(|| no_api_client(model))?,
            ModelAccess::Host => self.host.as_ref().ok_or_else(|| no_host_client(model))?,
        };
        client.ask(model, request).await.map_err(|error| {
            let ended = match error {
                ModelError::Failed(_) => Ended::Failed,
                ModelError::TooLarge(_) => Ended::OutputTooLarge,
            };
            Failure::new(ended, error.to_string())
        })
    }
}

fn no_api_client(model: &Model) -> Failure {
    let message = format!(
        "this build of hookyard cannot ask the model `{}`; build it with the feature `models`",
        model.reference
    );
    Failure::new(Ended::SpawnFailed, message)
}

fn no_host_client(model: &Model) -> Failure {
    let message = format!("the host no longer provides the model `{}`", model.reference);
    Failure::new(Ended::Failed, message)
}
