//! Lines that are not what they should be: each is told what is wrong, and what becomes of the connection is defined.

use std::fs;

use super::*;

/// The code of an error, its id, and whether to send the event again.
fn error(line: &Value) -> (String, Value, String) {
    let text = |name: &str| line["error"][name].as_str().unwrap_or_else(|| panic!("{line}")).to_owned();
    (text("code"), line["id"].clone(), text("retry"))
}

#[test]
fn a_bad_line_with_an_id_is_answered_and_the_connection_goes_on() {
    let daemon = setting().settings("limits: { payload: 100KiB }").serve();
    let mut host = LineHost::of(&daemon);
    let deep = format!("{{\"id\":1,\"event\":{}{}}}", "[".repeat(50_000), "]".repeat(50_000));
    let long = |bytes: usize| format!("{{\"id\":1,\"event\":{{\"event\":\"{}\"}}}}", "x".repeat(bytes));
    let event = event("r", "Bash");
    let with = |more: &str| format!("{{\"id\":1,\"event\":{event}{more}}}");
    for (line, code) in [
        (with(",\"extra\":0").as_bytes(), "bad_line"),
        (with(",\"cancel\":1").as_bytes(), "bad_line"),
        (with(",\"event\":{}").as_bytes(), "bad_line"),
        (with(",\"as\":\"page\"").as_bytes(), "bad_line"),
        (with(",\"headers\":{\"a b\":\"c\"}").as_bytes(), "bad_line"),
        (with("} x").as_bytes(), "bad_line"),
        (b"{\"id\":1}", "bad_event"),
        (b"{\"id\":1,\"event\":{}}", "bad_event"),
        (b"{\"id\":1,\"event\":[]}", "bad_event"),
        (b"{\"id\":1,\"event\":{\"event\":\"tea_time\"}}", "bad_event"),
        (b"{\"id\":1,\"event\":{\"event\":\"\xff\"}}", "bad_event"),
        (b"{\"id\":1,\"event\":{\"event\":\"a\0b\"}}", "bad_event"),
        (b"{\"id\":1,\"event\":{\"event\":\"\\ud800\"}}", "bad_event"),
        (b"{\"id\":1,\"event\":{\"event\":", "bad_event"),
        (deep.as_bytes(), "bad_event"),
        (long(150 << 10).as_bytes(), "too_large"),
        (long(500 << 10).as_bytes(), "too_large"),
        (long(5 << 20).as_bytes(), "too_large"),
    ] {
        let answer = host.raw([line, b"\n"].concat()).line();
        let shown = String::from_utf8_lossy(&line[..line.len().min(100)]);
        assert_eq!(error(&answer), (code.to_owned(), json!(1), "never".to_owned()), "{shown}");
        assert!(answer["error"]["message"].is_string() && answer["error"]["hint"].is_string(), "{answer}");
        let good = host.ask(&json!({ "id": "good", "event": event }));
        assert_eq!(good["outcome"]["verdict"], "block", "{shown}");
    }
    // Blank lines are nothing, and lines may end as those of other systems do.
    host.raw(format!("\n \r\n{}\r\n", json!({ "id": 2, "event": event })));
    assert_eq!(host.line()["outcome"]["verdict"], "block");
    daemon.finish();
}

#[test]
fn a_line_without_a_readable_id_ends_the_connection_once_all_others_are_answered() {
    let daemon = setting().serve();
    let long = format!("{{\"event\":\"{}\"}}", "x".repeat(40 << 20));
    for line in [
        &b"{\"event\":{}}"[..],
        b"{\"id\":null,\"event\":{}}",
        b"{\"id\":[1],\"event\":{}}",
        b"{\"id\":1,\"id\":2,\"event\":{}}",
        b"{\"id\":\"\xff\",\"event\":{}}",
        b"[]",
        b"\0",
        b"\xff",
        b"POST /v1/events HTTP/1.1\r",
        long.as_bytes(),
    ] {
        let shown = String::from_utf8_lossy(&line[..line.len().min(100)]);
        let mut host = LineHost::of(&daemon);
        drop(fs::remove_file(daemon.path().join("shop/go")));
        host.send(&json!({ "id": "first", "event": event("first", "Waits") }));
        host.raw([line, b"\n"].concat());
        let told = host.line();
        assert_eq!(told["id"], Value::Null, "{shown}");
        let code = if line.len() > 1000 { "too_large" } else { "bad_line" };
        assert_eq!(error(&told).0, code, "{shown}");
        fs::write(daemon.path().join("shop/go"), "").unwrap();
        let answer = host.line();
        assert_eq!(
            (&answer["id"], &answer["outcome"]["verdict"]),
            (&json!("first"), &json!("proceed")),
            "{shown}"
        );
        assert_eq!(host.rest(), [] as [Value; 0], "{shown}");
    }
    daemon.finish();
}

#[test]
fn half_a_line_at_the_end_is_not_taken() {
    let daemon = setting().serve();
    let whole = json!({ "id": 7, "event": event("r", "Bash") }).to_string();
    let mut host = LineHost::of(&daemon);
    // Even where it is whole but for its end: more could have come.
    let told = host.raw(&whole).end().rest();
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(error(&told[0]), ("incomplete".to_owned(), json!(7), "never".to_owned()));
    let mut host = LineHost::of(&daemon);
    let told = host.raw(&whole[..5]).end().rest();
    assert_eq!(error(&told[0]), ("incomplete".to_owned(), Value::Null, "never".to_owned()));
    assert_eq!(daemon.get("/v1/runs")["runs"].as_array().map(Vec::len), Some(0), "nothing was run");
    daemon.finish();
}

#[test]
fn a_repeated_id_cancels_the_event_that_has_it_and_ends_the_connection() {
    let daemon = setting().serve();
    let mut host = LineHost::of(&daemon);
    host.send(&json!({ "id": "a", "event": event("r1", "Waits") }));
    host.send(&json!({ "id": "b", "event": event("r2", "Waits") }));
    wait_until("both are in flight", || daemon.get("/v1/status")["events_in_flight"] == 2);
    host.send(&json!({ "id": "a", "event": event("r3", "Read") }));
    host.send(&json!({ "id": "c", "event": event("r4", "Bash") }));
    let told = host.line();
    assert_eq!(error(&told), ("repeated_id".to_owned(), json!("a"), "may_repeat".to_owned()));
    wait_until("the first is cancelled", || daemon.get("/v1/status")["events_in_flight"] == 1);
    fs::write(daemon.path().join("shop/go"), "").unwrap();
    let rest = host.rest();
    assert_eq!((rest.len(), &rest[0]["id"]), (1, &json!("b")), "{rest:?}");
    // An id is free once it is answered.
    let mut host = LineHost::of(&daemon);
    for _ in 0..3 {
        assert_eq!(
            host.ask(&json!({ "id": "a", "event": event("r5", "Bash") }))["outcome"]["verdict"],
            "block"
        );
    }
    daemon.finish();
}

#[test]
fn a_line_that_does_not_end_in_time_is_answered() {
    let daemon = setting().settings("limits: { body_timeout: 200ms }").serve();
    let mut host = LineHost::of(&daemon);
    host.raw(b"{\"id\":1,\"event\":{");
    let told = host.rest();
    assert_eq!(error(&told[0]), ("too_slow".to_owned(), json!(1), "never".to_owned()));
    assert_eq!(told.len(), 1);
    daemon.finish();
}
