//! Why a message of the queue cannot be read, for whoever finds it among the dead letters.

use serde_json::{Map, Value, error::Category};

/// The fields of a message, with those that each one has.
const FIELDS: [(&str, bool); 6] = [
    ("v", true),
    ("workspace", true),
    ("delivery", true),
    ("done", false),
    ("required", false),
    ("event", true),
];

/// The most letters of a name that are shown.
const LONGEST_NAME: usize = 64;

/// What is wrong with a message, and where. Names its fields and none of its values, which may be secrets.
pub(super) fn damage_of(bytes: &[u8]) -> String {
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => return format!("it is no UTF-8 from byte {} on", error.valid_up_to() + 1),
    };
    match serde_json::from_str(text) {
        Ok(Value::Object(message)) => of_fields(&message),
        Ok(_) => "it is no JSON object".to_owned(),
        Err(error) if error.classify() == Category::Eof => {
            format!("its JSON is not whole: it ends after {} bytes", bytes.len())
        }
        Err(error) => format!("it is no JSON at line {}, column {}", error.line(), error.column()),
    }
}

fn of_fields(message: &Map<String, Value>) -> String {
    if let Some((missing, _)) =
        FIELDS.iter().find(|(name, is_needed)| *is_needed && !message.contains_key(*name))
    {
        return format!("`{missing}` is missing");
    }
    if let Some(unknown) = message.keys().find(|name| FIELDS.iter().all(|(known, _)| known != name)) {
        let shown: String = unknown.chars().take(LONGEST_NAME).collect();
        return format!("it has the field {shown:?}, which no message has");
    }
    let is_right = |name: &str, value: &Value| match name {
        "v" | "delivery" => value.as_u64().is_some_and(|number| u32::try_from(number).is_ok()),
        "workspace" => value.is_string(),
        "done" | "required" => value.as_array().is_some_and(|names| names.iter().all(Value::is_string)),
        _ => value.is_object(),
    };
    match message.iter().find(|(name, value)| !is_right(name, value)) {
        Some((wrong, _)) => format!("its `{wrong}` is not of the right type"),
        None => {
            "a field is there twice, a name in it is none, or its `event` is no lifecycle event".to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_message_is_told_by_what_is_wrong_and_without_its_values() {
        let long =
            format!(r#"{{"v":1,"workspace":"w","delivery":1,"event":{{}},"{}":1}}"#, "x".repeat(100_000));
        for (message, wrong) in [
            (&b"\xff"[..], "it is no UTF-8 from byte 1 on"),
            (b"", "its JSON is not whole: it ends after 0 bytes"),
            (br#"{"v":1,"workspace":"secret"#, "its JSON is not whole: it ends after 26 bytes"),
            (b"{\"v\":1,\n?", "it is no JSON at line 2, column 1"),
            (br#"["secret"]"#, "it is no JSON object"),
            (br#"{"v":1}"#, "`workspace` is missing"),
            (br#"{"v":1,"workspace":"w","delivery":1}"#, "`event` is missing"),
            (
                br#"{"v":1,"workspace":"w","delivery":1,"event":{},"a\nb":"secret"}"#,
                r#"it has the field "a\nb", which no message has"#,
            ),
            (
                br#"{"v":1,"workspace":"w","delivery":"secret","event":{}}"#,
                "its `delivery` is not of the right type",
            ),
            (
                br#"{"v":1,"workspace":"w","delivery":1,"done":["secret",1],"event":{}}"#,
                "its `done` is not of the right type",
            ),
            (
                br#"{"v":1,"workspace":"w","delivery":1,"event":{"kind":"secret"}}"#,
                "a field is there twice, a name in it is none, or its `event` is no lifecycle event",
            ),
        ] {
            assert_eq!(damage_of(message), wrong, "{}", String::from_utf8_lossy(message));
        }
        assert!(damage_of(long.as_bytes()).len() < 200);
    }
}
