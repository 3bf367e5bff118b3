//! Handlers that ask a server, a model or an agent. Those of models and agents are checked in full, so that their
//! files are right on the day they can run, and refused until then.

use url::Url;

use super::{
    super::{Mapping, Mistake, Value, near::shorten},
    handlers::SHARED_KEYS,
    variables,
    written::{Located, Surroundings},
};
use crate::model::{AgentHandler, Guarded, HandlerKind, HttpHandler, HttpMethod, PromptHandler, Text};

/// The longest name of an agent or model, in bytes.
const LONGEST_REFERENCE: usize = 256;

/// Headers that say how a message is framed or carried. The client writes them; a second opinion in a hook file
/// would let one request be taken for two.
const FRAMING: [&str; 9] = [
    "connection",
    "content-length",
    "expect",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// An http handler as its file says it.
pub(super) struct HttpAsWritten<'d> {
    url: Option<Value<'d>>,
    method: Option<HttpMethod>,
    headers: Vec<Value<'d>>,
}

impl<'d> HttpAsWritten<'d> {
    pub(super) fn read(handler: &Mapping<'d>) -> Self {
        handler.allow_only(&[&SHARED_KEYS[..], &["url", "method", "headers"]].concat());
        let methods = HttpMethod::ALL.map(|method| (method.as_str(), method));
        let headers = handler.get("headers").and_then(|value| value.mapping());
        Self {
            url: handler.require("url"),
            method: match handler.get("method") {
                Some(value) => value.choice(&methods),
                None => Some(HttpMethod::Post),
            },
            headers: headers.map(|mapping| mapping.values().collect()).unwrap_or_default(),
        }
    }

    pub(super) fn prepare(&self, surroundings: &dyn Surroundings) -> Option<HttpHandler> {
        let headers: Vec<_> = self.headers.iter().map(|value| header(value, surroundings)).collect();
        let unique = self.unique_headers();
        let url = self.url.as_ref().and_then(url);
        Some(HttpHandler {
            url: url?,
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
                    value.key_spot(),
                    "headers",
                    message,
                    "keep one of the two; case means nothing here",
                );
                unique = false;
            }
        }
        unique
    }
}

/// A prompt handler as its file says it.
pub(super) struct PromptAsWritten<'d> {
    prompt: Option<Mapping<'d>>,
    model_ref: Option<Value<'d>>,
}

impl<'d> PromptAsWritten<'d> {
    pub(super) fn read(handler: &Mapping<'d>) -> Self {
        handler.allow_only(&[&SHARED_KEYS[..], &["prompt", "model_ref"]].concat());
        not_available(handler, HandlerKind::Prompt);
        let prompt = handler.require("prompt").and_then(|value| value.mapping());
        Self { prompt, model_ref: handler.require("model_ref") }
    }

    pub(super) fn prepare(&self, surroundings: &dyn Surroundings) -> Option<PromptHandler> {
        let prompt = self.prompt.as_ref().and_then(|prompt| text(prompt, surroundings));
        let model_ref = self.model_ref.as_ref().and_then(reference);
        Some(PromptHandler { prompt: prompt?, model_ref: model_ref? })
    }
}

/// An agent handler as its file says it.
pub(super) struct AgentAsWritten<'d> {
    agent: Option<Value<'d>>,
    task: Option<Mapping<'d>>,
}

impl<'d> AgentAsWritten<'d> {
    pub(super) fn read(handler: &Mapping<'d>) -> Self {
        handler.allow_only(&[&SHARED_KEYS[..], &["agent", "task"]].concat());
        not_available(handler, HandlerKind::Agent);
        let task = handler.require("task").and_then(|value| value.mapping());
        Self { agent: handler.require("agent"), task }
    }

    pub(super) fn prepare(&self, surroundings: &dyn Surroundings) -> Option<AgentHandler> {
        let task = self.task.as_ref().and_then(|task| text(task, surroundings));
        let agent = self.agent.as_ref().and_then(reference);
        Some(AgentHandler { agent: agent?, task: task? })
    }
}

fn not_available(handler: &Mapping<'_>, kind: HandlerKind) {
    let Some(value) = handler.get("type") else { return };
    let message = format!("this version runs command and http handlers; {kind} handlers not yet");
    value.error(
        "handler-not-available",
        message,
        "use `type: command` or `type: http`, or remove the file until then",
    );
}

/// A value with its references replaced.
pub(super) fn expanded(value: &Value<'_>, text: &str, surroundings: &dyn Surroundings) -> Option<Guarded> {
    match variables::expand(text, surroundings) {
        Ok(expanded) => Some(expanded),
        Err((message, help)) => {
            value.error("reference", format!("`{}`: {message}", shorten(value.name(), 64)), help);
            None
        }
    }
}

fn header(value: &Value<'_>, surroundings: &dyn Surroundings) -> Option<(String, Guarded)> {
    let name = value.name();
    let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    if name.is_empty() || !name.chars().all(is_token) {
        let message = format!("`{}` is no name for a header", shorten(name, 64));
        value.error_at(value.key_spot(), "headers", message, "use letters, digits and `-`");
        return None;
    }
    if FRAMING.contains(&name.to_ascii_lowercase().as_str()) {
        let message = format!("`{name}` is hookyard's to set: it says how the request is carried");
        value.error_at(value.key_spot(), "headers", message, "remove it");
        return None;
    }
    let expanded = expanded(value, value.text()?, surroundings)?;
    if expanded.expose().contains(|c: char| c.is_ascii_control() && c != '\t') {
        let message =
            format!("the value of `{}` contains a line break, NUL or control character", shorten(name, 64));
        value.error("headers", message, "a header has one line");
        return None;
    }
    Some((name.to_owned(), expanded))
}

fn url(value: &Value<'_>) -> Option<String> {
    let url = value.text()?;
    let lower = url.to_ascii_lowercase();
    let rest = lower.strip_prefix("https://").or_else(|| lower.strip_prefix("http://"));
    let authority = rest.map(|rest| rest.split(['/', '?', '#']).next().unwrap_or_default());
    let wrong = match authority {
        None => Some(("only `http://` and `https://` can be asked", "write the whole address")),
        Some("") => Some(("the server is missing", "write the whole address")),
        Some(authority) if authority.contains('@') => {
            Some(("a user or password in the address would be logged", "use `headers`"))
        }
        Some(_) if url.contains("${") || url.contains("$(") => {
            Some(("references are not replaced in addresses, which are shown", "use `headers`"))
        }
        Some(_) if url.contains(|c: char| c.is_control() || c.is_whitespace() || c == '\\') => Some((
            "a space, `\\` or control character cannot be in an address",
            "encode it as `%20` and so on",
        )),
        Some(_) => None,
    };
    if let Some((message, help)) = wrong {
        value.error("url", format!("`url`: {message}"), help);
        return None;
    }
    match Url::parse(url) {
        Ok(_) => Some(url.to_owned()),
        Err(e) => {
            value.error("url", format!("`url`: {e}"), "write it as `https://server:port/path`");
            None
        }
    }
}

fn reference(value: &Value<'_>) -> Option<String> {
    let text = value.text()?;
    if text.trim().is_empty() || text.len() > LONGEST_REFERENCE || text.chars().any(char::is_control) {
        let message = format!("`{}` must have 1 to {LONGEST_REFERENCE} visible characters", value.name());
        value.error("reference", message, "write the name as the settings have it");
        return None;
    }
    Some(text.to_owned())
}

/// A text that stands here or in a file.
fn text(mapping: &Mapping<'_>, surroundings: &dyn Surroundings) -> Option<Text> {
    mapping.allow_only(&["inline", "file"]);
    match (mapping.get("inline"), mapping.get("file")) {
        (Some(inline), None) => {
            let text = inline.text()?;
            if text.trim().is_empty() {
                inline.error("text", "`inline` is empty", "write the text");
                return None;
            }
            Some(Text::Inline(text.to_owned()))
        }
        (None, Some(file)) => text_file(&file, surroundings),
        (Some(_), Some(file)) => {
            file.error("text", "`inline` and `file` cannot both be there", "keep one of the two");
            None
        }
        (None, None) => {
            let message = format!("`{}` needs `inline` or `file`", mapping.name());
            let mistake = Mistake::error("missing-key", mapping.spot(), message);
            mapping.document().report(mistake.help("write the text, or name a file inside the workspace"));
            None
        }
    }
}

fn text_file(value: &Value<'_>, surroundings: &dyn Surroundings) -> Option<Text> {
    match surroundings.text_file(value.text()?) {
        Located::Found(path) => Some(Text::File(path)),
        Located::Missing(_, why) | Located::Refused(why) => {
            value.error("text", format!("`file`: {why}"), "name a UTF-8 text file inside the workspace");
            None
        }
    }
}
