//! One line of a host: an event, or the wish to cancel one.

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{
    daemon::{
        error::ApiError,
        routes::{ResponseForm, parse_dialect},
    },
    dialect::{partial_value, raw_field},
    model::DialectName,
};

/// The longest id, in bytes, as it is written.
const MAX_ID_BYTES: usize = 256;

/// The most headers of a line.
const MAX_HEADERS: usize = 32;

const HINT: &str = "write `{\"id\": …, \"event\": {…}}`, with `dialect`, `as` and `headers` where needed, or `{\"cancel\": …}`";

/// The id of an event on its connection: a JSON string or integer, as it is written.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct LineId(Box<str>);

impl LineId {
    /// Returns nothing if it is neither a string nor an integer, or too long.
    fn of(json: &str) -> Option<Self> {
        let is_integer = |text: &str| {
            let digits = text.strip_prefix('-').unwrap_or(text);
            !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
        };
        let is_id = json.len() <= MAX_ID_BYTES && (json.starts_with('"') || is_integer(json));
        is_id.then(|| Self(json.into()))
    }

    /// As JSON.
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

/// One line.
#[derive(Debug)]
pub(super) enum LineRequest<'l> {
    Event(LineId, LineEvent<'l>),
    Cancel(LineId),
}

/// An event as it came on a line.
#[derive(Debug)]
pub(super) struct LineEvent<'l> {
    pub(super) dialect: DialectName,
    pub(super) form: ResponseForm,
    /// What HTTP has as the headers of a request.
    pub(super) headers: HeaderMap,
    pub(super) bytes: &'l [u8],
    /// What is wrong with the line beside its event.
    pub(super) fault: Option<LineFault>,
}

/// Why the event of a line is not read.
#[derive(Debug)]
pub(super) enum LineFault {
    /// The line is not what this door takes.
    Malformed(ApiError),
    /// Only the beginning of the line is there.
    CutOff(ApiError),
}

/// A line that cannot be answered: nobody knows its id.
#[derive(Debug)]
pub(super) struct Unidentified(pub(super) ApiError);

/// A line as it is written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenLine<'l> {
    #[serde(borrow)]
    id: Option<&'l RawValue>,
    #[serde(borrow)]
    event: Option<&'l RawValue>,
    #[serde(borrow)]
    dialect: Option<std::borrow::Cow<'l, str>>,
    r#as: Option<ResponseForm>,
    #[serde(borrow)]
    headers: Option<&'l RawValue>,
    #[serde(borrow)]
    cancel: Option<&'l RawValue>,
}

impl<'l> LineRequest<'l> {
    /// Reads a whole line.
    ///
    /// Returns an error if its id cannot be read.
    pub(super) fn read(line: &'l [u8]) -> Result<Self, Unidentified> {
        let read = std::str::from_utf8(line)
            .map_err(|error| format!("it is not UTF-8: invalid byte at offset {}", error.valid_up_to()));
        let read = read.and_then(|text| serde_json::from_str(text).map_err(|error| error.to_string()));
        match read.and_then(Self::of) {
            Ok(request) => Ok(request),
            Err(why) => Self::recover(line, LineFault::Malformed(malformed(&why))),
        }
    }

    /// What can be read of a line that is not whole, or not what it should be.
    ///
    /// Returns an error if its id is not among it.
    pub(super) fn recover(line: &'l [u8], fault: LineFault) -> Result<Self, Unidentified> {
        let text = |name| raw_field(line, name).and_then(|value| std::str::from_utf8(value).ok());
        let Some(id) = text("id").and_then(LineId::of) else {
            let (LineFault::Malformed(error) | LineFault::CutOff(error)) = fault;
            return Err(Unidentified(error));
        };
        let of_agent = raw_field(line, "dialect").is_some_and(|value| value != b"\"canonical\"");
        let name = text("dialect").and_then(|value| serde_json::from_str::<String>(value).ok());
        let known = name.and_then(|name| parse_dialect(&name).ok());
        let form = text("as").and_then(|form| serde_json::from_str(form).ok()).unwrap_or_default();
        Ok(Self::Event(
            id,
            LineEvent {
                // Claude's words are those that most agents understand.
                dialect: known.unwrap_or(if of_agent { DialectName::Claude } else { DialectName::Canonical }),
                form,
                headers: text("headers").and_then(|headers| self::headers(headers).ok()).unwrap_or_default(),
                bytes: partial_value(line, "event").unwrap_or_default(),
                fault: Some(fault),
            },
        ))
    }

    /// Returns what is wrong with it.
    fn of(line: WrittenLine<'l>) -> Result<Self, String> {
        let WrittenLine { id, event, dialect, r#as, headers, cancel } = line;
        let id_of = |name: &str, value: &RawValue| {
            LineId::of(value.get()).ok_or_else(|| {
                format!("`{name}` must be a string or an integer of at most {MAX_ID_BYTES} bytes")
            })
        };
        match (cancel, id, event) {
            (Some(cancel), None, None) if dialect.is_none() && r#as.is_none() && headers.is_none() => {
                id_of("cancel", cancel).map(Self::Cancel)
            }
            (Some(_), ..) => Err("`cancel` stands alone".to_owned()),
            (None, None, _) => Err("`id` is missing".to_owned()),
            (None, Some(_), None) => Err("`event` is missing".to_owned()),
            (None, Some(id), Some(event)) => {
                let name = dialect.as_deref().map(parse_dialect);
                let dialect = name.transpose().map_err(|error| format!("{error}; {}", error.hint()))?;
                let headers = headers.map(|headers| self::headers(headers.get())).transpose()?;
                Ok(Self::Event(
                    id_of("id", id)?,
                    LineEvent {
                        dialect: dialect.unwrap_or(DialectName::Canonical),
                        form: r#as.unwrap_or_default(),
                        headers: headers.unwrap_or_default(),
                        bytes: event.get().as_bytes(),
                        fault: None,
                    },
                ))
            }
        }
    }
}

/// Reads an object of texts.
///
/// Returns what is wrong with it.
fn headers(json: &str) -> Result<HeaderMap, String> {
    let written: std::collections::BTreeMap<String, String> = serde_json::from_str(json)
        .map_err(|error| format!("`headers` must be an object of texts: {error}"))?;
    if written.len() > MAX_HEADERS {
        return Err(format!("`headers` has {} entries; at most {MAX_HEADERS} are allowed", written.len()));
    }
    let mut headers = HeaderMap::new();
    for (name, value) in written {
        let wrong = || format!("`headers` has an invalid entry {name:?}");
        let key = HeaderName::try_from(&*name).map_err(|_| wrong())?;
        // As bytes: a project may have a name beyond ASCII.
        headers.insert(key, HeaderValue::from_bytes(value.as_bytes()).map_err(|_| wrong())?);
    }
    Ok(headers)
}

fn malformed(why: &str) -> ApiError {
    ApiError::bad_request("bad_line", format!("the line is invalid: {why}"), HINT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_an_event_or_a_wish_to_cancel_one() {
        let LineRequest::Event(id, event) =
            LineRequest::read(br#"{"id":"a","dialect":"claude","as":"process","event":{"x":1}}"#).unwrap()
        else {
            panic!("no event");
        };
        assert_eq!(
            (id.as_str(), event.dialect, event.bytes),
            ("\"a\"", DialectName::Claude, &b"{\"x\":1}"[..])
        );
        assert_eq!((event.form, event.fault.is_none()), (ResponseForm::Process, true));
        let cancel = LineRequest::read(b" {\"cancel\": 7}\r").unwrap();
        assert!(matches!(cancel, LineRequest::Cancel(id) if id.as_str() == "7"));
    }

    #[test]
    fn what_is_wrong_with_a_line_is_told_to_its_id() {
        let deep = format!("{{\"id\":1,\"event\":{}", "[".repeat(100_000));
        for (line, why) in [
            (&b"{\"id\":1,\"event\":{},\"extra\":0}"[..], "unknown field `extra`"),
            (b"{\"id\":1}", "`event` is missing"),
            (b"{\"id\":1,\"event\":{},\"event\":{}}", "duplicate field `event`"),
            (b"{\"id\":1,\"event\":{},\"dialect\":\"latin\"}", "unknown dialect"),
            (b"{\"id\":1,\"event\":{},\"as\":\"page\"}", "unknown variant"),
            (b"{\"id\":1,\"event\":{},\"headers\":{\"a\":1}}", "an object of texts"),
            (b"{\"id\":1,\"event\":{},\"headers\":{\"a b\":\"\"}}", "invalid entry"),
            (b"{\"id\":1,\"event\":{},\"cancel\":1}", "stands alone"),
            (b"{\"id\":1,\"event\":{\"a\":\"\xff\"}}", "not UTF-8: invalid byte at offset 22"),
            (b"{\"id\":1,\"event\":{\0}}", "key must be a string"),
            (b"{\"id\":1,\"event\":{}} x", "trailing characters"),
            (deep.as_bytes(), "EOF"),
        ] {
            let read = LineRequest::read(line).unwrap_or_else(|unknown| panic!("{}", unknown.0));
            let LineRequest::Event(id, event) = read else { panic!("no event") };
            let Some(LineFault::Malformed(error)) = event.fault else { panic!("nothing is wrong") };
            assert_eq!((id.as_str(), error.code()), ("1", "bad_line"));
            assert!(error.to_string().contains(why), "{error}: {why}");
        }
    }

    #[test]
    fn a_line_without_a_readable_id_has_no_answer() {
        let long = format!("{{\"id\":\"{}\",\"event\":{{}}}}", "x".repeat(MAX_ID_BYTES));
        for line in [
            &b"{\"event\":{}}"[..],
            b"{\"id\":null,\"event\":{}}",
            b"{\"id\":1.5,\"event\":{}}",
            b"{\"id\":[1],\"event\":{}}",
            b"{\"id\":1,\"id\":2,\"event\":{}}",
            b"{\"id\":\"\xff\",\"event\":{}}",
            b"[]",
            b"\0",
            b"GET / HTTP/1.1\r",
            long.as_bytes(),
        ] {
            assert!(LineRequest::read(line).is_err(), "{}", String::from_utf8_lossy(line));
        }
    }

    #[test]
    fn the_beginning_of_a_line_says_whose_event_it_is() {
        let error = || LineFault::CutOff(ApiError::shutting_down());
        let cut = br#"{"id":"a","dialect":"gemini","event":{"hook_event_name":"BeforeTool","tool_in"#;
        let Ok(LineRequest::Event(id, event)) = LineRequest::recover(cut, error()) else { panic!("no id") };
        assert_eq!((id.as_str(), event.dialect), ("\"a\"", DialectName::Gemini));
        assert!(event.bytes.starts_with(b"{\"hook_event_name\":\"BeforeTool\""));
        assert!(LineRequest::recover(br#"{"id":"a"#, error()).is_err());
        assert!(LineRequest::recover(br#"{"event":{"#, error()).is_err());
    }
}
