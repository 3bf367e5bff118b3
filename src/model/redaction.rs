//! Redaction: removes secrets from the output of hooks before it is used. Patches are not redacted for the host: they are
//! its data, and may hold a secret on purpose. They are before a person or the audit sees them.

use std::{borrow::Cow, fmt, sync::Arc};

use bytes::Bytes;

use super::{
    Failure, Handler, HookDecision, Json, JsonError, ModelAccess, Patch, RawReply, Reply, Secret, SecretText,
    secret::HIDDEN,
};
#[cfg(feature = "cli")]
use super::{Outcome, Targets};

/// The shortest secret that is removed, in bytes. Shorter ones occur in ordinary texts by chance, and a text full of
/// gaps would reveal them.
const SHORTEST: usize = 6;

/// Removes the secrets of one hook or more from texts; without secrets, texts stay as they are. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Redactor {
    /// The secrets as they may occur in an output; longer ones first, because one may begin with another. None
    /// instead of an empty list, so that the common case allocates nothing.
    forms: Option<Arc<[String]>>,
}

impl Redactor {
    /// Removes the secrets that a handler is given.
    pub(crate) fn of(handler: &Handler) -> Self {
        Self::of_all([handler])
    }

    /// Removes the secrets that any of the handlers is given.
    pub(crate) fn of_all<'h>(handlers: impl IntoIterator<Item = &'h Handler>) -> Self {
        let mut forms: Vec<String> = handlers
            .into_iter()
            .flat_map(secrets)
            .map(Secret::expose)
            .filter(|value| value.len() >= SHORTEST)
            .flat_map(|value| [value.to_owned(), in_json(value)])
            .collect();
        forms.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        forms.dedup();
        Self { forms: (!forms.is_empty()).then(|| forms.into()) }
    }

    fn forms(&self) -> &[String] {
        self.forms.as_deref().unwrap_or_default()
    }

    /// Reads a raw reply so that no secret is in its messages and notes.
    ///
    /// Messages quote parts of an output, and a part of a secret is not recognised. So messages come from a second
    /// reading, of an output without the secrets.
    pub(crate) fn read(
        &self,
        raw: RawReply,
        read: impl Fn(RawReply) -> Result<Reply, Failure>,
    ) -> Result<Reply, Failure> {
        if self.forms.is_none() {
            return read(raw);
        }
        let raw = self.without_in_errors(raw);
        let shown = self.without_in_output(raw.clone());
        match (read(raw), read(shown)) {
            (Ok(reply), shown) => Ok(self.reply(reply, shown.unwrap_or_default())),
            (Err(failure), Err(shown)) => {
                Err(Failure { ended: failure.ended, handling: failure.handling, ..self.failure(shown) })
            }
            (Err(failure), Ok(_)) => {
                Err(Failure::new(failure.ended, "the message is withheld: it contains a secret of the hook"))
            }
        }
    }

    /// A failure without secrets.
    pub(crate) fn failure(&self, failure: Failure) -> Failure {
        Failure { message: self.string(failure.message), ..failure }
    }

    fn reply(&self, reply: Reply, shown: Reply) -> Reply {
        let decision = match reply.decision {
            HookDecision::None => HookDecision::None,
            HookDecision::Allow(reason) => HookDecision::Allow(reason.map(|text| self.string(text))),
            HookDecision::Ask(reason) => HookDecision::Ask(reason.map(|text| self.string(text))),
            HookDecision::Block(reason) => HookDecision::Block(reason.map(|text| self.string(text))),
            HookDecision::Halt(reason) => HookDecision::Halt(reason.map(|text| self.string(text))),
        };
        let mut foreign = shown.patches.into_iter().filter(|patch| patch.target().is_none());
        let patch = |patch| match patch {
            Patch::Target(..) | Patch::HooksOnly(..) => patch,
            Patch::Unsupported(_) => foreign.next().unwrap_or_else(|| Patch::Unsupported(HIDDEN.to_owned())),
        };
        Reply {
            decision,
            patches: reply.patches.into_iter().map(patch).collect(),
            notes: reply.notes.into_iter().map(|(kind, text)| (kind, self.string(text))).collect(),
            warnings: shown.warnings.into_iter().map(|text| self.string(text)).collect(),
            suppress_output: reply.suppress_output,
            native: shown.native,
            failure: reply.failure.map(|failure| Box::new(self.failure(*failure))),
        }
    }

    /// A text without secrets.
    pub(crate) fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut shown = Cow::Borrowed(text);
        for form in self.forms() {
            if shown.contains(form.as_str()) {
                shown = Cow::Owned(shown.replace(form.as_str(), HIDDEN));
            }
        }
        shown
    }

    /// An owned text without secrets.
    pub(crate) fn string(&self, text: String) -> String {
        match self.text(&text) {
            Cow::Borrowed(_) => text,
            Cow::Owned(shown) => shown,
        }
    }

    /// An outcome for people: without secrets also in what hooks changed.
    #[cfg(feature = "cli")]
    pub(crate) fn outcome<'o>(&self, outcome: &'o Outcome) -> Cow<'o, Outcome> {
        if self.forms.is_none() || outcome.patched.is_empty() {
            return Cow::Borrowed(outcome);
        }
        let mut shown = Outcome { patched: Targets::default(), ..outcome.clone() };
        for (target, json) in outcome.patched.iter() {
            self.json(json).into_iter().for_each(|json| shown.patched.set(target, json));
        }
        Cow::Owned(shown)
    }

    /// A JSON value without secrets in its strings, however they are escaped, its keys and its numbers. A value
    /// without secrets is unchanged; one that would have duplicate keys is hidden as a whole.
    ///
    /// Returns an error if the result is no JSON, which cannot happen.
    #[cfg_attr(
        not(any(feature = "daemon", feature = "cli", test)),
        expect(dead_code, reason = "only the audit and the command line have any")
    )]
    pub(crate) fn json(&self, json: &Json) -> Result<Json, JsonError> {
        if self.forms.is_none() {
            return Ok(json.clone());
        }
        let text = json.as_str();
        let mut kept = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            let length = token_length(rest, first);
            let (token, after) = rest.split_at(length);
            kept.push_str(&self.token(token));
            rest = after;
        }
        if kept == text { Ok(json.clone()) } else { Json::parse(&kept).or_else(|_| Json::of(HIDDEN)) }
    }

    /// A string, a number, or what is between them.
    fn token<'t>(&self, token: &'t str) -> Cow<'t, str> {
        let read = || serde_json::from_str::<String>(token).unwrap_or_else(|_| token.to_owned());
        let plain = if token.starts_with('"') { read() } else { token.to_owned() };
        match self.text(&plain) {
            Cow::Borrowed(_) => Cow::Borrowed(token),
            Cow::Owned(shown) => Cow::Owned(serde_json::to_string(&shown).unwrap_or_default()),
        }
    }

    /// Standard error is read by people only, so nothing is lost in it.
    fn without_in_errors(&self, raw: RawReply) -> RawReply {
        match raw {
            RawReply::Command { exit_code, stdout, stderr, truncated } => {
                RawReply::Command { exit_code, stdout, stderr: self.bytes(&stderr), truncated }
            }
            other => other,
        }
    }

    fn without_in_output(&self, raw: RawReply) -> RawReply {
        match raw {
            RawReply::Command { exit_code, stdout, stderr, truncated } => {
                RawReply::Command { exit_code, stdout: self.bytes(&stdout), stderr, truncated }
            }
            RawReply::Http { status, body } => RawReply::Http { status, body: self.bytes(&body) },
            RawReply::Text(text) => RawReply::Text(self.string(text)),
            RawReply::Native(reply) => RawReply::Native(reply),
        }
    }

    /// The output, whatever its encoding: a secret is looked for byte by byte.
    fn bytes(&self, bytes: &Bytes) -> Bytes {
        self.forms().iter().fold(bytes.clone(), |bytes, form| replaced(bytes, form.as_bytes()))
    }
}

/// The secrets that a handler is given.
fn secrets(handler: &Handler) -> Vec<&Secret> {
    let model = match handler {
        Handler::Command(command) => return of_texts(&command.environment),
        Handler::Http(http) => return of_texts(&http.headers),
        Handler::Prompt(prompt) => &prompt.model,
        Handler::Agent(task) => &task.agent.model,
        Handler::Rule(_) | Handler::Rego(_) | Handler::Native(_) => return Vec::new(),
    };
    match &model.access {
        ModelAccess::Api(api) => api.key.iter().flat_map(SecretText::secrets).collect(),
        ModelAccess::Host => Vec::new(),
    }
}

fn of_texts(texts: &[(String, SecretText)]) -> Vec<&Secret> {
    texts.iter().flat_map(|(_, text)| text.secrets()).collect()
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redaction").finish_non_exhaustive()
    }
}

/// How long the token at the beginning of a JSON text is, in bytes.
fn token_length(text: &str, first: char) -> usize {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
    if first != '"' {
        let end = if is_plain(first) { text.find(|c| !is_plain(c)) } else { Some(first.len_utf8()) };
        return end.unwrap_or(text.len());
    }
    let mut escaped = false;
    let closing = |(_, c): &(usize, char)| {
        let closes = *c == '"' && !escaped;
        escaped = *c == '\\' && !escaped;
        closes
    };
    text.char_indices().skip(1).find(closing).map_or(text.len(), |(at, _)| at + 1)
}

fn replaced(bytes: Bytes, form: &[u8]) -> Bytes {
    let finder = memchr::memmem::Finder::new(form);
    if finder.find(&bytes).is_none() {
        return bytes;
    }
    let mut kept = Vec::with_capacity(bytes.len());
    let mut rest = &bytes[..];
    while let Some(start) = finder.find(rest) {
        kept.extend_from_slice(&rest[..start]);
        kept.extend_from_slice(HIDDEN.as_bytes());
        rest = &rest[start + form.len()..];
    }
    kept.extend_from_slice(rest);
    kept.into()
}

/// A value as it is written in a JSON string.
fn in_json(value: &str) -> String {
    let quoted = serde_json::to_string(value).unwrap_or_default();
    quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Address, Ended, HttpHandler, HttpMethod, NoteKind, Secret, SecretText};

    fn redaction(secrets: &[&str]) -> Redactor {
        let guarded = |value: &&str| ("X-Key".to_owned(), SecretText::secret(Secret::new(*value)));
        let headers = secrets.iter().map(guarded).collect();
        let address = Address::parse("http://localhost").unwrap();
        Redactor::of(&Handler::Http(HttpHandler { address, method: HttpMethod::Post, headers }))
    }

    #[test]
    fn short_secrets_are_left_alone() {
        assert!(redaction(&[]).forms.is_none());
        assert!(redaction(&["12345"]).forms.is_none());
        assert!(redaction(&["123456"]).forms.is_some());
    }

    #[test]
    fn a_secret_that_begins_with_another_is_taken_out_whole() {
        let redaction = redaction(&["secret", "secret-and-more", "with\"quote"]);
        assert_eq!(redaction.text("a secret-and-more, a secret"), "a ***, a ***");
        assert_eq!(&redaction.bytes(&Bytes::from_static(b"\xffwith\\\"quote")), &b"\xff***"[..]);
    }

    #[test]
    fn a_secret_in_json_is_taken_out_however_it_is_written() {
        let redaction = redaction(&["k3y-0001", "with\"quote", "123456"]);
        let shown = |text: &str| redaction.json(&Json::parse(text).unwrap()).unwrap().as_str().to_owned();
        assert_eq!(
            shown(r#"{"a": "x \u006b3y-0001 y", "k3y-0001":[1.50, -123456]}"#),
            r#"{"a": "x *** y", "***":[1.50, "-***"]}"#
        );
        assert_eq!(shown(r#"["with\"quote\\", "", null]"#), r#"["***\\", "", null]"#);
        for untouched in [r#"{"a":"\u0041\\\"", "b" : 1e5}"#, "\"\"", "true", "12345"] {
            assert_eq!(shown(untouched), untouched);
        }
        assert_eq!(shown(r#"{"k3y-0001":1,"***":2}"#), r#""***""#);
    }

    #[test]
    fn everything_that_is_shown_is_free_of_secrets() {
        let redaction = redaction(&["k3y-0001"]);
        let raw = || RawReply::Text("k3y-0001".into());
        let echo = |raw| {
            let RawReply::Text(text) = raw else { panic!("another reply") };
            let mut reply = Reply::block(text.clone()).note(NoteKind::SystemMessage, text.clone());
            reply.patches.push(Patch::Unsupported(text.chars().take(5).collect()));
            reply.warnings.push(text.chars().take(5).collect());
            Ok(reply)
        };
        let shown = format!("{:?}", redaction.read(raw(), echo).unwrap());
        assert!(shown.contains("***") && !shown.contains("k3y"), "{shown}");

        let cut = |raw| {
            let RawReply::Text(text) = raw else { panic!("another reply") };
            Err(Failure::new(Ended::InvalidOutput, text.chars().take(5).collect::<String>()))
        };
        let failure = redaction.read(raw(), cut).unwrap_err();
        assert_eq!((failure.ended, failure.message.as_str()), (Ended::InvalidOutput, "***"));
    }
}
