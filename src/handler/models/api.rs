//! The client of the model APIs in the settings: one HTTP request for each question.
//!
//! Libraries for model APIs read a response of any size into memory before it can be rejected, so the two small
//! protocols are implemented here.

use bytes::Bytes;
use futures_util::future::BoxFuture;
use reqwest::{
    StatusCode,
    header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER},
};
use serde::Deserialize;

use super::{
    ApiRequest, anthropic,
    client::{ModelAnswer, ModelClient, ModelError, ModelRequest},
    openai,
};
use crate::{
    handler::{
        http_client::{BodyError, HttpClients, RequestError, read_beginning, read_whole},
        runner::HttpLimits,
    },
    model::{ApiModel, Approval, Model, ModelAccess, ModelApi},
};

/// How much of an error response is read, in bytes: the message stands at its beginning.
const MAX_ERROR_BODY: usize = 16 << 10;

/// How much of an error message is repeated, in characters.
const MAX_ERROR_MESSAGE: usize = 200;

/// Asks the models whose API, address and key are in the settings.
#[derive(Debug)]
pub(in crate::handler) struct ApiClient {
    clients: HttpClients,
    limits: HttpLimits,
}

impl ApiClient {
    pub(in crate::handler) fn new(limits: HttpLimits) -> Self {
        Self { clients: HttpClients::new(limits.max_idle), limits }
    }

    async fn answer(&self, model: &Model, request: &ModelRequest) -> Result<ModelAnswer, ModelError> {
        let ModelAccess::Api(api) = &model.access else {
            return Err(failed(format!("the model `{}` is the embedding program's", model.reference)));
        };
        let label = ModelLabel { reference: &model.reference, api };
        let api_request = match api.api {
            ModelApi::OpenAi => openai::write(api, request),
            ModelApi::Anthropic => anthropic::write(api, request),
        };
        let bytes = self.exchange(&request.approval, &label, api_request).await?;
        let read = match api.api {
            ModelApi::OpenAi => openai::read(&bytes),
            ModelApi::Anthropic => anthropic::read(&bytes),
        };
        read.map_err(|why| failed(format!("the answer of {label} cannot be read: {why}")))
    }

    async fn exchange(
        &self,
        approval: &Approval,
        label: &ModelLabel<'_>,
        api_request: ApiRequest,
    ) -> Result<Bytes, ModelError> {
        let address = &label.api.base_url;
        let mut url = address.url().clone();
        url.set_path(&format!("{}{}", url.path().trim_end_matches('/'), api_request.path));
        let body = api_request
            .body
            .map_err(|e| failed(format!("the question to {label} cannot be written: {e}")))?;
        if body.len() > label.api.max_input {
            let bytes = body.len();
            let max = label.api.max_input;
            return Err(failed(format!(
                "the question has {bytes} bytes; the limit of {label} is {max} (`max_input`)"
            )));
        }
        let headers = headers(label, api_request.headers, api_request.key_header, api_request.key_prefix)?;
        let name = address.server();
        let client = self.clients.of_url(approval, &url).await;
        let client = client.map_err(|e| failed(format!("no trusted connection to {name}: {e}")))?;
        let broken = |e: reqwest::Error| failed(RequestError::of(&e, &name).failure.message);
        let mut response = client.post(url).headers(headers).body(body).send().await.map_err(broken)?;
        let status = response.status();
        if status == StatusCode::OK {
            let body = read_whole(&mut response, self.limits.body).await;
            return body.map_err(|e| match e {
                BodyError::TooLarge => ModelError::TooLarge(format!(
                    "{label} answered with more than the {} bytes it may",
                    self.limits.body
                )),
                BodyError::Broken(e) => broken(e),
            });
        }
        let retry_after = response.headers().get(RETRY_AFTER);
        let retry_after = retry_after.and_then(|value| value.to_str().ok()).map(str::to_owned);
        let body = read_beginning(&mut response, MAX_ERROR_BODY).await;
        Err(failed(describe_error(label, status, retry_after.as_deref(), &body)))
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

/// A model with its API, displayed as messages name it.
struct ModelLabel<'a> {
    reference: &'a str,
    api: &'a ApiModel,
}

impl std::fmt::Display for ModelLabel<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the model `{}`", self.reference)
    }
}

fn failed(message: String) -> ModelError {
    ModelError::Failed(message)
}

fn headers(
    label: &ModelLabel<'_>,
    own: Vec<(HeaderName, HeaderValue)>,
    key_header: HeaderName,
    key_prefix: &str,
) -> Result<HeaderMap, ModelError> {
    let mut headers: HeaderMap = own.into_iter().collect();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Some(key) = &label.api.key {
        let value = HeaderValue::from_str(&format!("{key_prefix}{}", key.expose()));
        let mut value =
            value.map_err(|_| failed(format!("the key of {label} has characters that cannot be sent")))?;
        value.set_sensitive(true);
        headers.insert(key_header, value);
    }
    Ok(headers)
}

/// Describes an error response, for the operator.
fn describe_error(
    label: &ModelLabel<'_>,
    status: StatusCode,
    retry_after: Option<&str>,
    body: &[u8],
) -> String {
    let code = status.as_u16();
    match code {
        // Without the server's message, which may repeat parts of a wrong key.
        401 | 403 => format!("the server refused the key of {label} (status {code})"),
        429 => {
            let wait =
                retry_after.filter(|text| text.len() <= 32).map(|wait| format!("; retry after {wait} s"));
            format!("the server has too many requests for {label} (status 429{})", wait.unwrap_or_default())
        }
        _ => match error_message(body) {
            Some(message) => format!("the server refused to ask {label} (status {code}): {message}"),
            None => format!("the server refused to ask {label} (status {code})"),
        },
    }
}

/// The message of an error response, on one line; both protocols have it in the same place.
fn error_message(body: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct ErrorBody {
        error: ErrorDetail,
    }
    #[derive(Deserialize)]
    struct ErrorDetail {
        message: String,
    }
    let message = serde_json::from_slice::<ErrorBody>(body).ok()?.error.message;
    let line: String = message.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    Some(line.chars().take(MAX_ERROR_MESSAGE).collect())
}
