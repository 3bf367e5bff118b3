//! Which cargo feature a handler lacks in this build of hookyard.

use super::{Handler, ModelAccess};

impl Handler {
    /// The cargo feature that the handler needs and this build of hookyard does not have. Its hooks fail with
    /// `spawn_failed`.
    pub fn missing_feature(&self) -> Option<&'static str> {
        let access = match self {
            Self::Command(_) | Self::Native(_) => return None,
            Self::Http(_) => return (!cfg!(feature = "http")).then_some("http"),
            Self::Prompt(prompt) => &prompt.model.access,
            Self::Agent(handler) => &handler.agent.model.access,
        };
        // The embedding program's own client needs no feature.
        let needs_api = matches!(access, ModelAccess::Api(_));
        (needs_api && !cfg!(feature = "models")).then_some("models")
    }
}
