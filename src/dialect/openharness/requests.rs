//! HTTP handlers of hook files. Addresses and headers that mean something else on the wire are errors.

use super::{
    super::{Mapping, Value, suggest::shorten},
    lookup::{HookRules, ReferenceLookup, UnixSockets, allow_handler_keys, bounded_entries},
    variables,
};
use crate::model::{Address, HttpHandler, HttpMethod, SecretText};

/// Headers about the target and the framing of a message. The client writes them; a second value in
/// a hook file would let one request be taken for two, or reach another server behind the same address.
const FRAMING: [&str; 10] = [
    "connection",
    "content-length",
    "expect",
    "host",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// The longest URL, in bytes.
const LONGEST_URL: usize = 8 << 10;

/// An http handler as its file has it.
pub(super) struct RawHttpHandler<'d> {
    url: Option<Value<'d>>,
    method: Option<HttpMethod>,
    headers: Vec<Value<'d>>,
}

impl<'d> RawHttpHandler<'d> {
    pub(super) fn read(handler: &Mapping<'d>) -> Self {
        allow_handler_keys(handler, &["url", "method", "headers"]);
        let methods = HttpMethod::ALL.map(|method| (method.as_str(), method));
        let headers = handler.get("headers").and_then(|value| bounded_entries(&value));
        Self {
            url: handler.require("url", "url: https://guard.example.com/check"),
            method: match handler.get("method") {
                Some(value) => value.choice(&methods),
                None => Some(HttpMethod::Post),
            },
            headers: headers.unwrap_or_default(),
        }
    }

    pub(super) fn prepare(&self, rules: &HookRules, resolver: &dyn ReferenceLookup) -> Option<HttpHandler> {
        let headers: Vec<_> = self.headers.iter().map(|value| header(value, resolver)).collect();
        let unique = self.unique_headers();
        let address = self.url.as_ref().and_then(|url| http_address(url, rules));
        Some(HttpHandler {
            address: address?,
            method: self.method?,
            headers: headers.into_iter().collect::<Option<_>>().filter(|_| unique)?,
        })
    }

    fn unique_headers(&self) -> bool {
        let mut unique = true;
        for (position, value) in self.headers.iter().enumerate() {
            let twin = |other: &Value<'_>| other.name().eq_ignore_ascii_case(value.name());
            if let Some(first) = self.headers[..position].iter().find(|other| twin(other)) {
                let message =
                    format!("`{}` is `{}` once more", shorten(value.name(), 64), shorten(first.name(), 64));
                value.error_at(
                    value.key_span(),
                    "headers",
                    message,
                    "keep one of the two; header names ignore case",
                );
                unique = false;
            }
        }
        unique
    }
}

/// A value with its references replaced.
pub(super) fn expanded(value: &Value<'_>, text: &str, resolver: &dyn ReferenceLookup) -> Option<SecretText> {
    match variables::expand(text, resolver) {
        Ok(expanded) => Some(expanded),
        Err((message, help)) => {
            value.error("reference", format!("`{}`: {message}", shorten(value.name(), 64)), help);
            None
        }
    }
}

fn header(value: &Value<'_>, resolver: &dyn ReferenceLookup) -> Option<(String, SecretText)> {
    http_header(value, |text| expanded(value, text, resolver))
}

/// A header, with its expanded value.
pub(in crate::dialect) fn http_header(
    value: &Value<'_>,
    expand: impl FnOnce(&str) -> Option<SecretText>,
) -> Option<(String, SecretText)> {
    let name = value.name();
    let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    if name.is_empty() || !name.chars().all(is_token) {
        let message = format!("`{}` is not a valid header name", shorten(name, 64));
        value.error_at(value.key_span(), "headers", message, "use letters, digits and `-`");
        return None;
    }
    if FRAMING.contains(&name.to_ascii_lowercase().as_str()) {
        let message = format!("`{name}` is set by hookyard");
        value.error_at(value.key_span(), "headers", message, "remove it");
        return None;
    }
    let expanded = expand(value.text()?)?;
    if expanded.expose().contains(|c: char| c.is_ascii_control() && c != '\t') {
        let message =
            format!("the value of `{}` contains a line break, NUL or control character", shorten(name, 64));
        value.error("headers", message, "a header has one line");
        return None;
    }
    Some((name.to_owned(), expanded))
}

/// An address that can be asked.
pub(in crate::dialect) fn http_address(value: &Value<'_>, rules: &HookRules) -> Option<Address> {
    let text = value.text()?;
    if text.len() > LONGEST_URL {
        let message = format!("`url` has {} bytes; at most {LONGEST_URL} are allowed", text.len());
        value.error("url", message, "send data in `headers` or in the body");
        return None;
    }
    match Address::parse(text) {
        Ok(address) if address.socket().is_some() && rules.unix_sockets == UnixSockets::Refused => {
            let message = "`url`: Unix sockets are not allowed";
            let help = "use `http://` or `https://`, or set `allow_unix_sockets: true` in the settings";
            value.error("url", message, help);
            None
        }
        Ok(address) if address.is_own() => {
            let help = "use the URL of the server that decides; this one is for events of hosts";
            value.error(
                "loop",
                "`url` is an endpoint of hookyard: the hook would call itself again and again",
                help,
            );
            None
        }
        Ok(address) => Some(address),
        Err(e) => {
            value.error("url", format!("`url`: {e}"), e.help());
            None
        }
    }
}
