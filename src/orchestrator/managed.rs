//! The hooks of the signed bundle, which apply in every workspace.

use std::sync::Arc;

use super::{error::StartError, handle::Orchestrator};
#[cfg(feature = "daemon")]
use crate::config::ManagedLevel;
use crate::{
    config::{self, LoadedWorkspace},
    model::Workspace,
};

impl Orchestrator {
    /// Reads the bundle that is kept, before any workspace is loaded. Without one that can be used, events are blocked as
    /// the settings say.
    pub(super) async fn load_managed(&self) -> Result<(), StartError> {
        if !self.0.settings.bundle.is_configured() {
            return Ok(());
        }
        let (settings, client) = (self.0.settings.clone(), self.0.models.clone());
        let read = tokio::task::spawn_blocking(move || {
            let has_model = |reference: &str| client.as_ref().is_some_and(|client| client.has(reference));
            config::managed_level(&settings, &|name| std::env::var(name).ok(), &has_model)
        });
        let level = read.await.map_err(|error| StartError::Supervisor(error.to_string()))?;
        self.0.managed.store(level.map(Arc::new));
        Ok(())
    }

    /// A workspace that has native hooks only, and those of the bundle.
    pub(super) fn without_files(&self, place: Workspace) -> LoadedWorkspace {
        let managed = self.0.managed.load_full();
        let environment = |name: &str| std::env::var(name).ok();
        config::without_files(place, &self.0.settings, &environment, managed.as_deref())
    }

    /// Has these hooks apply in every workspace that is loaded from now on.
    #[cfg(feature = "daemon")]
    pub(crate) fn set_managed(&self, level: ManagedLevel) {
        self.0.managed.store(Some(Arc::new(level)));
    }

    /// Says of the embedding program's models whether it has them.
    #[cfg(feature = "daemon")]
    pub(crate) fn model_lookup(&self) -> Box<dyn Fn(&str) -> bool + Send> {
        let client = self.0.models.clone();
        Box::new(move |reference| client.as_ref().is_some_and(|client| client.has(reference)))
    }
}
