//! The language models of the settings. Owns how they are read and what their keys come to; refuses to reach one.

use std::{collections::BTreeMap, num::NonZeroUsize, sync::Arc};

use super::section::Section;
use crate::{
    dialect::{Surroundings, Value, expand},
    model::{
        Address, AddressError, ApiModel, JsonOutput, Model, ModelAccess, ModelApi, Secret, SecretText,
        WorkspaceId,
    },
};

/// The longest name of a model, in bytes.
const LONGEST_NAME: usize = 256;

/// How many tokens an answer may have, where the settings do not say. A verdict takes a few dozen; a patched
/// prompt takes more.
const USUAL_OUTPUT: NonZeroUsize = NonZeroUsize::new(2048).expect("not zero");

/// How many bytes a model may be asked with, where the settings do not say.
const USUAL_INPUT: usize = 256 << 10;

/// A language model as the settings have it, before its key is looked up.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelSettings {
    /// The protocol it speaks.
    pub api: ModelApi,
    /// Where it is spoken; none for the maker's own server.
    pub base_url: Option<Address>,
    /// The model's name there.
    pub model: String,
    /// Who asks: a text that may have `${secrets.NAME}` and `${env.NAME}` in it.
    pub key: Option<SecretText>,
    /// How it is made to answer in JSON.
    pub json: JsonOutput,
    /// How many tokens one answer may have.
    pub max_output_tokens: NonZeroUsize,
    /// How many bytes it may be asked with.
    pub max_input: usize,
    /// How freely it chooses its words; none leaves it to the model.
    pub temperature: Option<f64>,
    /// The workspaces whose hooks may ask it; none for all.
    pub workspaces: Option<Vec<String>>,
}

impl ModelSettings {
    /// A model of a protocol with everything else at its default.
    ///
    /// ```
    /// use hookyard::{config::ModelSettings, model::ModelApi};
    ///
    /// let settings = ModelSettings::new(ModelApi::Anthropic, "claude-x");
    /// assert_eq!(settings.max_output_tokens.get(), 2048);
    /// ```
    pub fn new(api: ModelApi, model: impl Into<String>) -> Self {
        Self {
            api,
            base_url: None,
            model: model.into(),
            key: None,
            json: JsonOutput::default(),
            max_output_tokens: USUAL_OUTPUT,
            max_input: USUAL_INPUT,
            temperature: None,
            workspaces: None,
        }
    }

    /// Reads one entry of `models`.
    fn read(entry: &Value<'_>, section: &mut Section<'_>) -> Option<Self> {
        let apis = ModelApi::ALL.map(|api| (api.as_str(), api));
        let api = section.required("api", &format!("`{}` needs `api`", entry.name()), "openai or anthropic");
        let model = section.required("model", &format!("`{}` needs `model`", entry.name()), "its name there");
        let api = api.and_then(|value| value.choice(&apis));
        let model = model.and_then(|value| value.text().map(str::to_owned));
        let mut settings = Self::new(api.unwrap_or(ModelApi::OpenAi), model.clone().unwrap_or_default());
        if let Some(address) = section.value("base_url").and_then(|value| address(&value)) {
            settings.base_url = Some(address);
        }
        settings.key = section.value("key").and_then(|value| value.text().map(SecretText::from));
        if let Some(json) = section.value("json") {
            let ways = JsonOutput::ALL.map(|way| (way.as_str(), way));
            settings.json = json.choice(&ways).unwrap_or_default();
        }
        section.count("max_output_tokens", &mut settings.max_output_tokens);
        section.size("max_input", &mut settings.max_input);
        settings.temperature = section.value("temperature").and_then(|value| temperature(&value));
        settings.workspaces = section
            .value("workspaces")
            .and_then(|value| value.list())
            .map(|items| items.iter().filter_map(|item| item.text().map(str::to_owned)).collect());
        api.and(model).map(|_| settings)
    }

    /// The model as hooks of a workspace ask it.
    ///
    /// Returns what is wrong and what to do if the workspace may not, or the key is not there.
    fn for_workspace(
        &self,
        reference: &str,
        workspace: &WorkspaceId,
        surroundings: &dyn Surroundings,
    ) -> Result<Model, (String, String)> {
        if self.workspaces.as_ref().is_some_and(|ids| !ids.iter().any(|id| id == workspace.as_str())) {
            let message = format!("hooks of the workspace `{workspace}` may not ask the model `{reference}`");
            return Err((
                message,
                "add the workspace's id to `workspaces` of the model in the settings".into(),
            ));
        }
        let key = self.key.as_ref().map(|key| expand(key.expose(), surroundings)).transpose();
        let key =
            key.map_err(|(message, help)| (format!("the key of the model `{reference}`: {message}"), help))?;
        // A key is a secret, also where it was written out.
        let key = key.map(|key| SecretText::secret(Secret::new(key.expose())));
        let base_url = self.base_url.clone().map_or_else(|| usual_address(self.api), Ok);
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

fn usual_address(api: ModelApi) -> Result<Address, AddressError> {
    Address::parse(match api {
        ModelApi::OpenAi => "https://api.openai.com/v1",
        ModelApi::Anthropic => "https://api.anthropic.com",
    })
}

fn address(value: &Value<'_>) -> Option<Address> {
    let wrong = match Address::parse(value.text()?) {
        Ok(address) if address.socket().is_none() => return Some(address),
        Ok(_) => (
            "`base_url`: models are asked over `http://` and `https://` only".to_owned(),
            "write the whole address",
        ),
        Err(e) => (format!("`base_url`: {e}"), e.help()),
    };
    value.error("url", wrong.0, wrong.1);
    None
}

fn temperature(value: &Value<'_>) -> Option<f64> {
    let number = value.number()?;
    if (0.0..=2.0).contains(&number) {
        return Some(number);
    }
    value.error("temperature", "`temperature` is out of range", "use 0 to 2, or leave it out");
    None
}

/// Reads `models` of a settings file.
pub(super) fn read(root: &mut Section<'_>, into: &mut BTreeMap<String, ModelSettings>) {
    root.entries("models", into, |entry, section| {
        let name = entry.name();
        if name.trim().is_empty() || name.len() > LONGEST_NAME || name.chars().any(char::is_control) {
            let message = format!("the name of a model must have 1 to {LONGEST_NAME} visible characters");
            entry.error_at(entry.key_spot(), "models", message, "write it as hook files have it");
        }
        Some((name.to_owned(), ModelSettings::read(entry, section)?))
    });
}

/// The models that hooks of one workspace may ask.
pub(super) struct ModelCatalog<'a> {
    pub(super) known: &'a BTreeMap<String, ModelSettings>,
    /// Whether the embedding program answers for a name.
    pub(super) of_host: &'a dyn Fn(&str) -> bool,
    pub(super) workspace: &'a WorkspaceId,
}

impl ModelCatalog<'_> {
    /// The model of a name. The embedding program's come first: it put its client there on purpose.
    ///
    /// Returns what is wrong and what to do if there is none, or it may not be asked.
    pub(super) fn find(
        &self,
        reference: &str,
        surroundings: &dyn Surroundings,
    ) -> Result<Model, (String, String)> {
        if (self.of_host)(reference) {
            return Ok(Model { reference: reference.into(), access: ModelAccess::Host });
        }
        match self.known.get(reference) {
            Some(settings) => settings.for_workspace(reference, self.workspace, surroundings),
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
        (format!("there is no model `{shown}`"), help)
    }
}
