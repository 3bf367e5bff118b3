//! Writes YAML for people to read: short values on one line, texts of several lines as they are.

use std::fmt::Write as _;

use serde::Serialize;
use serde_yaml::Value;

/// A value of at most this many characters stands on one line.
const LINE: usize = 108;

/// Words that some readers of YAML take for something else than a text.
const RESERVED: [&str; 10] = ["y", "n", "yes", "no", "on", "off", "true", "false", "null", "~"];

/// One document of a file with several.
pub(crate) fn document(value: &impl Serialize) -> String {
    let value = serde_yaml::to_value(value).unwrap();
    let text = format!("---\n{}\n", block(&value, 0).trim_start_matches('\n'));
    let read: Value = serde_yaml::from_str(&text).unwrap_or_else(|e| panic!("{e} in\n{text}"));
    assert_eq!(read, value, "what is written is read again");
    text
}

/// A value after its key or dash: on the same line, or on the lines below.
fn block(value: &Value, indent: usize) -> String {
    let margin = " ".repeat(indent);
    match value {
        Value::Mapping(entries) if !entries.is_empty() => {
            let entry = |(key, value): (&Value, &Value)| {
                format!("\n{margin}{}:{}", flow(key), inline_or_block(value, indent, flow(key).len() + 2))
            };
            entries.iter().map(entry).collect()
        }
        Value::Sequence(items) if !items.is_empty() => {
            let item = |item: &Value| match inline_or_block(item, indent, 2) {
                line if line.starts_with(' ') => format!("\n{margin}-{line}"),
                below => format!("\n{margin}- {}", below.trim_start()),
            };
            items.iter().map(item).collect()
        }
        other => flow(other),
    }
}

fn inline_or_block(value: &Value, indent: usize, before: usize) -> String {
    if let Value::String(text) = value
        && let Some(literal) = literal(text, indent + 2)
    {
        return literal;
    }
    let line = flow(value);
    let is_scalar = !matches!(value, Value::Mapping(_) | Value::Sequence(_));
    if is_scalar || indent + before + line.chars().count() <= LINE {
        return format!(" {line}");
    }
    block(value, indent + 2)
}

/// A text of several lines as a literal block, if it can be one.
fn literal(text: &str, indent: usize) -> Option<String> {
    let body = text.trim_end_matches('\n');
    let is_plain = |c: char| matches!(c, '\t' | '\n' | ' '..='~') || (c > '\u{a0}' && c.is_alphanumeric());
    let blank = |line: &str| !line.is_empty() && line.trim().is_empty();
    if !body.contains('\n') && !text.ends_with('\n') || body.starts_with([' ', '\t', '\n']) || body.is_empty()
    {
        return None;
    }
    if !text.chars().all(is_plain) || text.lines().any(blank) {
        return None;
    }
    let chomping = match text.len() - body.len() {
        0 => "-",
        1 => "",
        _ => "+",
    };
    let margin = " ".repeat(indent);
    let line = |line: &str| if line.is_empty() { "\n".to_owned() } else { format!("\n{margin}{line}") };
    let ends = "\n".repeat((text.len() - body.len()).saturating_sub(1));
    Some(format!(" |{chomping}{}{ends}", body.split('\n').map(line).collect::<String>()))
}

/// A value on one line.
fn flow(value: &Value) -> String {
    match value {
        Value::String(text) => scalar(text),
        Value::Sequence(items) => format!("[{}]", items.iter().map(flow).collect::<Vec<_>>().join(", ")),
        Value::Mapping(entries) => {
            let entry = |(key, value): (&Value, &Value)| format!("{}: {}", flow(key), flow(value));
            format!("{{{}}}", entries.iter().map(entry).collect::<Vec<_>>().join(", "))
        }
        other => serde_json::to_string(other).unwrap(),
    }
}

/// A text on one line, in quotes unless it can do without.
fn scalar(text: &str) -> String {
    let allowed = |c: char| c.is_ascii_alphanumeric() || " _./$-()'`=;…".contains(c);
    let begins = text.starts_with(|c: char| c.is_ascii_alphabetic() || "./$_".contains(c));
    let is_plain = begins
        && text.chars().all(allowed)
        && text.trim() == text
        && !text.starts_with("...")
        && !RESERVED.contains(&text.to_lowercase().as_str())
        && serde_yaml::from_str(text).is_ok_and(|read: Value| read == Value::String(text.to_owned()));
    let is_printable = text.chars().all(|c| matches!(c, ' '..='~'));
    if is_plain {
        text.to_owned()
    } else if is_printable && text.contains(['"', '\\']) && !text.contains('\'') {
        format!("'{text}'")
    } else {
        quoted(text)
    }
}

/// A text in double quotes. The escapes of JSON are escapes of YAML too.
fn quoted(text: &str) -> String {
    let mut quoted = String::new();
    for c in serde_json::to_string(text).unwrap().chars() {
        match c {
            '\u{7f}'..='\u{a0}' | '\u{200b}'..='\u{206f}' | '\u{feff}' => {
                let _ = write!(quoted, "\\u{:04x}", u32::from(c));
            }
            other => quoted.push(other),
        }
    }
    quoted
}
