//! Shared pieces for reading hooks' answers. A field of a wrong type is `invalid_output`.

use serde_json::value::RawValue;

use super::{
    event_reader::unquoted,
    suggest::{nearest, shorten},
};
use crate::model::{Ended, Failure, Hook, Json, JsonFields, check_json};

/// The largest patch, in bytes.
const LARGEST_PATCH: usize = 8 << 20;

/// How much of an answer a message repeats, in characters: enough to recognise it, too little to leak it.
const EXCERPT: usize = 80;

/// How much of an error message a message repeats, in characters.
const LONGEST_MESSAGE: usize = 200;

/// How many unknown keys of one object are named.
const MOST_WARNINGS: usize = 8;

/// The failure of a program that ended with an exit code that means nothing else.
pub(super) fn exited(exit_code: i32, stderr: &[u8]) -> Failure {
    let (ended, what) = match exit_code {
        126 => (Ended::SpawnFailed, "exit code 126, cannot be executed".to_owned()),
        127 => (Ended::SpawnFailed, "exit code 127, command not found".to_owned()),
        _ => (Ended::Failed, format!("exit code {exit_code}")),
    };
    match error_message(stderr) {
        Some(message) => Failure::new(ended, format!("{what}: {message}")),
        None => Failure::new(ended, what),
    }
}

/// The line of a program's standard error that has the error message: the last one, or the name and message of an
/// uncaught error of Node, whose last line is the version.
pub(crate) fn error_message(stderr: &[u8]) -> Option<String> {
    let stderr = String::from_utf8_lossy(stderr);
    let mut lines = stderr.lines().map(str::trim).filter(|line| !line.is_empty());
    let last = lines.clone().next_back()?;
    let line = if last.starts_with("Node.js v") { lines.find(|line| names_an_error(line)) } else { None };
    Some(shorten(line.unwrap_or(last), LONGEST_MESSAGE))
}

/// Whether a line begins as in `TypeError: x is not a function` or `Error [ERR_MODULE_NOT_FOUND]: …`.
fn names_an_error(line: &str) -> bool {
    let name = line.split([':', ' ']).next().unwrap_or_default();
    name.ends_with("Error") && name.chars().all(char::is_alphanumeric)
}

/// The failure of a program that printed more than is kept.
pub(super) fn printed_too_much(stdout: &[u8]) -> Failure {
    let message = format!("the hook printed more than the {} bytes it may", stdout.len());
    Failure::new(Ended::OutputTooLarge, message)
}

/// The failure of a server that answered so.
pub(super) fn refused_by_server(status: u16) -> Failure {
    Failure::new(Ended::Failed, format!("the server answered with status {status}"))
}

/// The reason of a hook that gave none.
pub(super) fn default_reason(hook: &Hook, verb: &str) -> String {
    format!("{verb} by hook `{}`", hook.name)
}

pub(super) fn invalid(message: impl Into<String>) -> Failure {
    Failure::new(Ended::InvalidOutput, message)
}

/// The text of an answer.
pub(super) fn text_in(bytes: &[u8]) -> Result<&str, Failure> {
    let text = std::str::from_utf8(bytes)
        .map_err(|e| invalid(format!("the answer is not UTF-8: invalid byte at offset {}", e.valid_up_to())));
    text.map(str::trim)
}

/// The JSON object in a text: all of it, or the part from its first to its last brace, so that log
/// lines, colours and code fences around the object do no harm.
pub(super) fn object_in(text: &str) -> Result<JsonFields<'_>, Failure> {
    if !text.starts_with('{') && check_json(text).is_ok() {
        return Err(no_object(text));
    }
    let first = text.find('{').ok_or_else(|| no_object(text))?;
    let end = text.rfind('}').map_or(text.len(), |last| last + 1);
    whole_object(text.get(first..end).ok_or_else(|| no_object(text))?, text)
}

/// The JSON object that a part of a text is; messages show the text.
pub(super) fn whole_object<'t>(object: &'t str, text: &str) -> Result<JsonFields<'t>, Failure> {
    match check_json(object) {
        Ok(()) => serde_json::from_str(object).map_err(|_| no_object(text)),
        Err(e) if e.message.contains("trailing characters") => {
            Err(invalid("the answer has more than one JSON object, or text with braces around it"))
        }
        Err(e) => {
            let what = excerpt(&e.to_string());
            Err(invalid(format!("the answer is not valid JSON: {what}: {}", excerpt(text))))
        }
    }
}

pub(super) fn no_object(text: &str) -> Failure {
    invalid(format!("the answer has no JSON object: {}", excerpt(text)))
}

pub(super) fn excerpt(text: &str) -> String {
    shorten(text, EXCERPT)
}

/// Checks that a patch is not too large.
pub(super) fn check_size(patch: &RawValue) -> Result<(), Failure> {
    let size = patch.get().len();
    if size <= LARGEST_PATCH {
        return Ok(());
    }
    let message = format!("the patch is {size} bytes long; at most {LARGEST_PATCH} are allowed");
    Err(Failure::new(Ended::OutputTooLarge, message))
}

/// Warnings about unknown keys; `prefix` precedes their names in messages.
pub(super) fn unknown_keys(fields: &JsonFields<'_>, known: &[&str], prefix: &str) -> Vec<String> {
    let unknown: Vec<&str> = fields.iter().map(|(key, _)| key).filter(|key| !known.contains(key)).collect();
    let mut warnings: Vec<String> =
        unknown.iter().take(MOST_WARNINGS).map(|key| unknown_key(key, known, prefix)).collect();
    if unknown.len() > MOST_WARNINGS {
        warnings.push(format!("{} more unknown keys", unknown.len() - MOST_WARNINGS));
    }
    warnings
}

fn unknown_key(key: &str, known: &[&str], prefix: &str) -> String {
    let hint = nearest(key, known).map(|near| format!("; did you mean `{prefix}{near}`?"));
    format!("unknown key `{prefix}{}` in the answer{}", excerpt(key), hint.unwrap_or_default())
}

/// A warning about a key that is not known but looks like one that is.
pub(super) fn misspelt_key(key: &str, known: &[&str], prefix: &str) -> Option<String> {
    nearest(key, known).map(|_| unknown_key(key, known, prefix))
}

/// A field; `null` counts as left out, as many languages write what is not set.
pub(super) fn value_of<'a>(fields: &JsonFields<'a>, name: &str) -> Option<&'a RawValue> {
    fields.get(name).filter(|value| value.get() != "null")
}

/// A text; `within` precedes its name in messages.
pub(super) fn text_of(fields: &JsonFields<'_>, within: &str, name: &str) -> Result<Option<String>, Failure> {
    let Some(value) = value_of(fields, name) else { return Ok(None) };
    match unquoted(value) {
        Some(text) => Ok(Some(text.into_owned())),
        None => Err(wrong_type(&format!("{within}{name}"), "a string", value)),
    }
}

/// A flag; `within` precedes its name in messages.
pub(super) fn flag_of(fields: &JsonFields<'_>, within: &str, name: &str) -> Result<Option<bool>, Failure> {
    match value_of(fields, name).map(|value| (value, value.get())) {
        None => Ok(None),
        Some((_, "true")) => Ok(Some(true)),
        Some((_, "false")) => Ok(Some(false)),
        Some((value, _)) => Err(wrong_type(&format!("{within}{name}"), "a boolean", value)),
    }
}

/// The fields of an object; `name` is what messages call it.
pub(super) fn object_of<'a>(name: &str, value: &'a RawValue) -> Result<JsonFields<'a>, Failure> {
    serde_json::from_str(value.get()).map_err(|_| wrong_type(name, "an object", value))
}

pub(super) fn wrong_type(name: &str, expected: &str, value: &RawValue) -> Failure {
    invalid(format!("`{name}` must be {expected}, not {}", Json::checked(value).kind()))
}

/// The mark at the beginning of files of some editors and shells. The agents skip it.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// An output without a byte order mark.
pub(super) fn unmarked(stdout: &[u8]) -> &[u8] {
    let trimmed = stdout.trim_ascii_start();
    trimmed.strip_prefix(BYTE_ORDER_MARK).unwrap_or(stdout)
}

/// Whether an output begins with a line by which a command goes on in the background: an object with `async`.
pub(super) fn goes_on_in_background(output: &[u8]) -> bool {
    #[derive(serde::Deserialize)]
    struct FirstLine {
        r#async: bool,
    }
    let first = unmarked(output).trim_ascii_start().split(|byte| *byte == b'\n').next().unwrap_or_default();
    first.starts_with(b"{") && serde_json::from_slice(first).is_ok_and(|line: FirstLine| line.r#async)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_message_is_the_line_that_says_what_went_wrong() {
        let node = "file:///w.mjs:1\nthrow new TypeError('boom')\n      ^\n\nTypeError: boom\n    at w.mjs:1:7\n\n\
                    Node.js v20.20.2\n";
        let import = "node:internal/modules/esm/resolve:275\n    throw new ERR_MODULE_NOT_FOUND(\n\nError \
                      [ERR_MODULE_NOT_FOUND]: Cannot find module './x'\n    at x {\n  code: 'ERR'\n}\n\nNode.js v22.1.0\n";
        let python = "Traceback (most recent call last):\n  File \"w.py\", line 1\nValueError: boom\n";
        let cases = [
            (node, Some("TypeError: boom")),
            (import, Some("Error [ERR_MODULE_NOT_FOUND]: Cannot find module './x'")),
            (python, Some("ValueError: boom")),
            ("Node.js v20\n", Some("Node.js v20")),
            ("first\n\n last \n\n", Some("last")),
            (" \n", None),
        ];
        for (stderr, expected) in cases {
            assert_eq!(error_message(stderr.as_bytes()).as_deref(), expected, "{stderr}");
        }
    }
}
