//! The types of settings that are URLs.

use super::keys::ValueType;
use crate::{dialect::Value, model::Address};

/// An address for OTLP over HTTP.
pub(super) struct TraceUrl;

/// An address of a model's API.
pub(super) struct ModelUrl;

impl ValueType for TraceUrl {
    type Field = Address;

    fn parse(value: &Value<'_>) -> Option<Address> {
        let why_not = |address: &Address| {
            address.socket().map(|_| "traces are sent over `http://` and `https://` only")
        };
        let example = "write it such as `http://127.0.0.1:4318/v1/traces`";
        url(value, why_not, "write it as `https://server:port/path`", Some(example))
    }
}

impl ValueType for ModelUrl {
    type Field = Address;

    fn parse(value: &Value<'_>) -> Option<Address> {
        let why_not =
            |address: &Address| address.socket().map(|_| "a model needs an `http://` or `https://` URL");
        url(value, why_not, "write it as `https://server:port/path`", None)
    }
}

/// An address, unless there is a reason against it, with what to write instead. What cannot be read as one has its own help,
/// or that of its mistake.
pub(super) fn url(
    value: &Value<'_>,
    why_not: impl Fn(&Address) -> Option<&'static str>,
    help: &'static str,
    unreadable: Option<&'static str>,
) -> Option<Address> {
    let (message, help) = match Address::parse(value.text()?) {
        Ok(address) => match why_not(&address) {
            None => return Some(address),
            Some(why) => (why.to_owned(), help),
        },
        Err(error) => (error.to_string(), unreadable.unwrap_or_else(|| error.help())),
    };
    value.error("url", format!("`{}`: {message}", value.name()), help);
    None
}
