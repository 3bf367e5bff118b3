//! The one way to a model for those who ask: to the embedding program's client or to hookyard's own. Owns the
//! choice between the two.

use std::sync::Arc;

use super::{
    api::{ApiClient, ApiLimits},
    client::{ModelAnswer, ModelClient, ModelError, ModelRequest},
};
use crate::model::{Model, ModelAccess};

/// The clients of one orchestrator.
#[derive(Debug, Clone)]
pub(crate) struct ModelDoor {
    own: Arc<ApiClient>,
    host: Option<Arc<dyn ModelClient>>,
}

impl ModelDoor {
    pub(crate) fn new(limits: ApiLimits, host: Option<Arc<dyn ModelClient>>) -> Self {
        Self { own: Arc::new(ApiClient::new(limits)), host }
    }

    /// Asks a model once.
    ///
    /// Returns an error if there is no answer.
    pub(super) async fn ask(&self, model: &Model, request: &ModelRequest) -> Result<ModelAnswer, ModelError> {
        match (&model.access, &self.host) {
            (ModelAccess::Api(_), _) => self.own.ask(model, request).await,
            (ModelAccess::Host, Some(host)) => host.ask(model, request).await,
            (ModelAccess::Host, None) => {
                let message = format!("nobody answers for the model `{}` any more", model.reference);
                Err(ModelError::Failed(message))
            }
        }
    }
}
