//! The client that speaks the protocols of the settings over HTTP. Owns the request, the bound on its answer and
//! the words for what went wrong; the shapes of the two protocols stand in files of their own.
//!
//! A library for model APIs would read an answer of any size into memory before it could be refused, so the two
//! small protocols are spoken here.

use bytes::Bytes;
use futures_util::future::BoxFuture;
use reqwest::{
    StatusCode,
    header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER},
};
use serde::Deserialize;

use super::{
    anthropic,
    client::{ModelAnswer, ModelClient, ModelError, ModelRequest},
    openai,
};
use crate::{
    handler::http::{Clients, ReadError, Setback, beginning, whole},
    model::{ApiModel, Model, ModelAccess, ModelApi},
};

/// How much of a refusal is read, in bytes: the message stands at its beginning.
const LONGEST_REFUSAL: usize = 16 << 10;

/// How much of a refusal is repeated, in characters.
const LONGEST_MESSAGE: usize = 200;

/// What is too much.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ApiLimits {
    /// Bytes of an answer, decoded.
    pub(crate) body: usize,
    /// How many connections to one server are kept when they are idle.
    pub(crate) kept: usize,
}

/// What one question is on the wire.
#[derive(Debug)]
pub(super) struct Wire {
    /// Below the base address.
    pub(super) path: &'static str,
    /// Those of the protocol; the name of the one with the key.
    pub(super) headers: Vec<(HeaderName, HeaderValue)>,
    pub(super) key_header: HeaderName,
    /// What stands before the key in its header.
    pub(super) key_prefix: &'static str,
    pub(super) body: serde_json::Result<Vec<u8>>,
}

/// Speaks the protocols of the settings.
#[derive(Debug)]
pub(super) struct ApiClient {
    clients: Clients,
    limits: ApiLimits,
}

impl ApiClient {
    pub(super) fn new(limits: ApiLimits) -> Self {
        Self { clients: Clients::new(limits.kept), limits }
    }

    async fn answer(&self, model: &Model, request: &ModelRequest) -> Result<ModelAnswer, ModelError> {
        let ModelAccess::Api(api) = &model.access else {
            return Err(failed(format!("the model `{}` is the embedding program's", model.reference)));
        };
        let asker = Asker { reference: &model.reference, api };
        let wire = match api.api {
            ModelApi::OpenAi => openai::write(api, request),
            ModelApi::Anthropic => anthropic::write(api, request),
        };
        let bytes = self.exchange(&asker, wire).await?;
        let read = match api.api {
            ModelApi::OpenAi => openai::read(&bytes),
            ModelApi::Anthropic => anthropic::read(&bytes),
        };
        read.map_err(|why| failed(format!("the answer of {asker} cannot be read: {why}")))
    }

    async fn exchange(&self, asker: &Asker<'_>, wire: Wire) -> Result<Bytes, ModelError> {
        let address = &asker.api.base_url;
        let mut url = address.url().clone();
        url.set_path(&format!("{}{}", url.path().trim_end_matches('/'), wire.path));
        let body =
            wire.body.map_err(|e| failed(format!("the question to {asker} cannot be written: {e}")))?;
        if body.len() > asker.api.max_input {
            let (bytes, most) = (body.len(), asker.api.max_input);
            return Err(failed(format!(
                "the question takes {bytes} bytes; {asker} may be asked with {most} (`max_input`)"
            )));
        }
        let headers = headers(asker, wire.headers, wire.key_header, wire.key_prefix)?;
        let name = address.server();
        let client = self.clients.of_url(&url).await;
        let client = client.map_err(|e| failed(format!("no trusted connection to {name}: {e}")))?;
        let broken = |e: reqwest::Error| failed(Setback::of(&e, &name).failure.message);
        let mut response = client.post(url).headers(headers).body(body).send().await.map_err(broken)?;
        let status = response.status();
        if status == StatusCode::OK {
            let body = whole(&mut response, self.limits.body).await;
            return body.map_err(|e| match e {
                ReadError::TooLarge => ModelError::TooLarge(format!(
                    "{asker} answered with more than the {} bytes it may",
                    self.limits.body
                )),
                ReadError::Broken(e) => broken(e),
            });
        }
        let wait =
            response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let body = beginning(&mut response, LONGEST_REFUSAL).await;
        Err(failed(refusal(asker, status, wait.as_deref(), &body)))
    }
}

impl ModelClient for ApiClient {
    fn has(&self, _: &str) -> bool {
        false
    }

    fn ask<'a>(
        &'a self,
        model: &'a Model,
        request: &'a ModelRequest,
    ) -> BoxFuture<'a, Result<ModelAnswer, ModelError>> {
        Box::pin(self.answer(model, request))
    }
}

/// A model as messages name it.
struct Asker<'a> {
    reference: &'a str,
    api: &'a ApiModel,
}

impl std::fmt::Display for Asker<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the model `{}`", self.reference)
    }
}

fn failed(message: String) -> ModelError {
    ModelError::Failed(message)
}

fn headers(
    asker: &Asker<'_>,
    own: Vec<(HeaderName, HeaderValue)>,
    key_header: HeaderName,
    key_prefix: &str,
) -> Result<HeaderMap, ModelError> {
    let mut headers: HeaderMap = own.into_iter().collect();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Some(key) = &asker.api.key {
        let value = HeaderValue::from_str(&format!("{key_prefix}{}", key.expose()));
        let mut value =
            value.map_err(|_| failed(format!("the key of {asker} has characters that cannot be sent")))?;
        value.set_sensitive(true);
        headers.insert(key_header, value);
    }
    Ok(headers)
}

/// What a server that refuses says, for the operator.
fn refusal(asker: &Asker<'_>, status: StatusCode, wait: Option<&str>, body: &[u8]) -> String {
    let code = status.as_u16();
    match code {
        // Servers repeat parts of a wrong key in their message.
        401 | 403 => format!("the server refused the key of {asker} (status {code})"),
        429 => {
            let wait = wait.filter(|text| text.len() <= 32).map(|wait| format!("; it says to wait {wait} s"));
            format!("the server has too many requests for {asker} (status 429{})", wait.unwrap_or_default())
        }
        _ => match said(body) {
            Some(message) => format!("the server refused to ask {asker} (status {code}): {message}"),
            None => format!("the server refused to ask {asker} (status {code})"),
        },
    }
}

/// The message of a refusal; both protocols have it in the same place.
fn said(body: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Refusal {
        error: Reason,
    }
    #[derive(Deserialize)]
    struct Reason {
        message: String,
    }
    let message = serde_json::from_slice::<Refusal>(body).ok()?.error.message;
    let line: String = message.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    Some(line.chars().take(LONGEST_MESSAGE).collect())
}
