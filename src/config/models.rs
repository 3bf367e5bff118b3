//! The language models that hooks of a workspace may ask.

use std::{collections::BTreeMap, sync::Arc};

use super::settings::ModelSettings;
use crate::{
    dialect::{ReferenceLookup, expand},
    model::{Address, AddressError, ApiModel, Model, ModelAccess, ModelApi, Secret, SecretText, WorkspaceId},
};

/// The models that hooks of one workspace may ask.
pub(super) struct ModelCatalog<'a> {
    pub(super) known: &'a BTreeMap<String, ModelSettings>,
    /// Whether the embedding program has a client for a name.
    pub(super) of_host: &'a dyn Fn(&str) -> bool,
    pub(super) workspace: &'a WorkspaceId,
    /// The id under which the settings declare the workspace.
    pub(super) declared: Option<&'a WorkspaceId>,
}

impl ModelCatalog<'_> {
    /// The model of a name. A client of the embedding program has precedence over the settings.
    ///
    /// Returns what is wrong and what to do if there is none, or it may not be asked.
    pub(super) fn find(
        &self,
        reference: &str,
        resolver: &dyn ReferenceLookup,
    ) -> Result<Model, (String, String)> {
        if (self.of_host)(reference) {
            return Ok(Model { reference: reference.into(), access: ModelAccess::Host });
        }
        match self.known.get(reference) {
            Some(settings) => settings.for_workspace(reference, self, resolver),
            None => Err(self.unknown(reference)),
        }
    }

    fn unknown(&self, reference: &str) -> (String, String) {
        let shown: String = reference.chars().take(64).flat_map(char::escape_default).collect();
        let known: Vec<&str> = self.known.keys().map(String::as_str).collect();
        let help = if known.is_empty() {
            "add it to `models` in the settings, and give them with `--config FILE`".to_owned()
        } else {
            format!("the settings know {}", known.join(", "))
        };
        (format!("unknown model `{shown}`"), help)
    }
}

impl ModelSettings {
    /// The model as hooks of a workspace ask it.
    ///
    /// Returns what is wrong and what to do if the workspace may not, or the key is not there.
    fn for_workspace(
        &self,
        reference: &str,
        catalog: &ModelCatalog<'_>,
        resolver: &dyn ReferenceLookup,
    ) -> Result<Model, (String, String)> {
        let is_named = |ids: &Vec<String>| {
            catalog.declared.is_some_and(|declared| ids.iter().any(|id| id == declared.as_str()))
        };
        if self.workspaces.as_ref().is_some_and(|ids| !is_named(ids)) {
            let workspace = catalog.workspace;
            let message = format!("hooks of the workspace `{workspace}` may not ask the model `{reference}`");
            let help = match catalog.declared {
                Some(_) => "add the workspace's id to `workspaces` of the model in the settings",
                None => {
                    "declare the workspace with its `root` under `workspaces` in the settings, and add its id to \
                     `workspaces` of the model"
                }
            };
            return Err((message, help.into()));
        }
        let key = self.key.as_ref().map(|key| expand(key.expose(), resolver)).transpose();
        let key =
            key.map_err(|(message, help)| (format!("the key of the model `{reference}`: {message}"), help))?;
        // A key is a secret, also where it was written out.
        let as_secret = |key: SecretText| {
            if key.references().is_empty() { SecretText::secret(Secret::new(key.expose())) } else { key }
        };
        let key = key.map(as_secret);
        let base_url = self.base_url.clone().map_or_else(|| provider_address(self.api), Ok);
        let base_url = base_url
            .map_err(|e| (format!("the address of the model `{reference}`: {e}"), e.help().into()))?;
        let api = ApiModel {
            api: self.api,
            base_url,
            model: self.model.clone(),
            key,
            json: self.json,
            max_output_tokens: self.max_output_tokens,
            max_input: self.max_input,
            temperature: self.temperature,
        };
        Ok(Model { reference: reference.into(), access: ModelAccess::Api(Arc::new(api)) })
    }
}

fn provider_address(api: ModelApi) -> Result<Address, AddressError> {
    Address::parse(match api {
        ModelApi::OpenAi => "https://api.openai.com/v1",
        ModelApi::Anthropic => "https://api.anthropic.com",
    })
}
