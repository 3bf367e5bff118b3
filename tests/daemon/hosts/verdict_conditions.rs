//! Conditions under which hooks cannot be asked about an event.

/// The limit of a body in these tests.
pub(super) const PAYLOAD: usize = 64 << 10;

/// An event whose hooks cannot be asked.
pub(super) struct Condition {
    pub(super) name: &'static str,
    /// The query after the dialect in the path.
    pub(super) query: &'static str,
    /// Further headers, with the end of each line.
    pub(super) headers: &'static str,
    /// Makes the body of a valid event.
    pub(super) body: fn(&str) -> Vec<u8>,
    /// Whether a guard blocks it.
    pub(super) blocked: bool,
}

pub(super) const JSON: &str = "content-type: application/json\r\n";

fn is_as_sent(event: &str) -> Vec<u8> {
    event.as_bytes().to_vec()
}

/// The event with a byte string in place of the tool's command.
fn with_command(event: &str, command: &[u8]) -> Vec<u8> {
    let at = event.find("rm -rf").unwrap();
    [&event.as_bytes()[..at], command, &event.as_bytes()[at + "rm -rf".len()..]].concat()
}

pub(super) const CONDITIONS: [Condition; 17] = [
    Condition {
        name: "another content type",
        query: "",
        headers: "content-type: text/plain\r\n",
        body: is_as_sent,
        blocked: true,
    },
    Condition {
        name: "an encoding",
        query: "",
        headers: "content-type: application/json\r\ncontent-encoding: gzip\r\n",
        body: is_as_sent,
        blocked: true,
    },
    Condition {
        name: "an unknown form",
        query: "?as=nothing",
        headers: JSON,
        body: is_as_sent,
        blocked: true,
    },
    Condition {
        name: "an unknown parameter",
        query: "?more=1",
        headers: JSON,
        body: is_as_sent,
        blocked: true,
    },
    Condition { name: "no body", query: "", headers: JSON, body: |_| Vec::new(), blocked: true },
    Condition { name: "no object", query: "", headers: JSON, body: |_| b"[]".to_vec(), blocked: true },
    Condition {
        name: "cut off",
        query: "",
        headers: JSON,
        body: |event| event.as_bytes()[..event.len() - 2].to_vec(),
        blocked: true,
    },
    Condition {
        name: "trailing text",
        query: "",
        headers: JSON,
        body: |event| format!("{event} x").into_bytes(),
        blocked: true,
    },
    Condition {
        name: "a duplicate key",
        query: "",
        headers: JSON,
        body: |event| event.replacen('{', r#"{"x":1,"x":2,"#, 1).into_bytes(),
        blocked: true,
    },
    Condition {
        name: "invalid UTF-8",
        query: "",
        headers: JSON,
        body: |event| with_command(event, b"\xff"),
        blocked: true,
    },
    Condition {
        name: "a lone surrogate",
        query: "",
        headers: JSON,
        body: |event| with_command(event, br"\ud800"),
        blocked: true,
    },
    Condition {
        name: "an unknown kind",
        query: "",
        headers: JSON,
        body: |event| event.replace("ool", "oool").into_bytes(),
        blocked: true,
    },
    Condition {
        name: "too deep",
        query: "",
        headers: JSON,
        body: |event| event.replace(r#""rm -rf""#, &"[".repeat(1000)).into_bytes(),
        blocked: true,
    },
    Condition {
        name: "too large",
        query: "",
        headers: JSON,
        body: |event| with_command(event, &[b'x'; PAYLOAD]),
        blocked: true,
    },
    Condition {
        name: "too large, with its kind at the end",
        query: "",
        headers: JSON,
        body: |event| {
            event.replacen('{', &format!(r#"{{"aaa":"{}","#, "x".repeat(2 * PAYLOAD)), 1).into_bytes()
        },
        blocked: true,
    },
    Condition {
        name: "much too large",
        query: "",
        headers: JSON,
        body: |event| with_command(event, &vec![b'x'; 8 << 20]),
        blocked: true,
    },
    // Nobody could have been asked.
    Condition {
        name: "in no workspace",
        query: "",
        headers: JSON,
        body: |event| event.replace("/shop", "").into_bytes(),
        blocked: false,
    },
];
