//! The `OpenAPI` document, the router and real answers agree: methods, parameters, statuses and the form of bodies.

use std::collections::BTreeSet;

use crate::support::daemon::{Daemon, DaemonSetup};
use crate::support::wait::wait_until;
use serde_json::{Value, json};

const GUARD: &str = "name: guard\nevents: [before_tool_dispatch]\nmatcher: Bash\nhandler:\n  type: command\n  \
                     command: 'echo no >&2; exit 2'\n";

const RULE: &str = "name: rule\nevents: [before_tool_dispatch]\nmatcher: Rule\nhandler:\n  type: rule\n  deny: tool.name == \"Rule\"\n";
const RULE_TRIAL: &str = "/v1/workspaces/{id}/rule-trial";
const TRIED: &str = r#"{"hook":"rule","text":"name: rule\nevents: [before_tool_dispatch]\nhandler: { type: rule, deny: tool.name == 'x' }\n"}"#;

const WAITS: &str = "name: waits\nevents: [before_tool_dispatch]\nmatcher: Wait\nhandler:\n  type: command\n  \
                     command: 'sleep 1000'\n";

/// A request, the route it is for, and the status that it has to have.
type Row = (&'static str, &'static str, &'static str, Option<&'static str>, u16);

const EVENT: &str = r#"{"event":"before_tool_dispatch","session_id":"s","run_id":"r","workspace_id":"shop","tool_name":"Bash","tool_input":{}}"#;
const NATIVE: &str = r#"{"hook_event_name":"PreToolUse","session_id":"s","transcript_path":"/x","cwd":"$DIR/shop","tool_name":"Bash","tool_input":{"command":"ls"}}"#;

/// What was shown before something has changed.
const STALE: &str = r#"{"digest":"0000000000000000000000000000000000000000000000000000000000000000"}"#;

const TABLE: &[Row] = &[
    ("GET", "/healthz", "/healthz", None, 200),
    ("GET", "/readyz", "/readyz", None, 200),
    ("GET", "/metrics", "/metrics", None, 200),
    ("GET", "/v1/openapi.json", "/v1/openapi.json", None, 200),
    ("GET", "/v1/status", "/v1/status", None, 200),
    ("POST", "/v1/events", "/v1/events", Some(EVENT), 200),
    ("POST", "/v1/events", "/v1/events", Some("{"), 400),
    ("POST", "/v1/events", "/v1/events", None, 400),
    (
        "POST",
        "/v1/events",
        "/v1/events",
        Some(r#"{"event":"session_started","session_id":"s","run_id":"r","workspace_id":"no"}"#),
        404,
    ),
    ("POST", "/v1/runs/{id}/events", "/v1/runs/r/events", Some(EVENT), 200),
    ("POST", "/v1/runs/{id}/events", "/v1/runs/another/events", Some(EVENT), 400),
    ("POST", "/v1/events/{dialect}", "/v1/events/canonical", Some(EVENT), 200),
    ("POST", "/v1/events/{dialect}", "/v1/events/claude", Some(NATIVE), 200),
    ("POST", "/v1/events/{dialect}", "/v1/events/claude?as=process", Some(NATIVE), 200),
    ("POST", "/v1/events/{dialect}", "/v1/events/claude?as=nothing", Some(NATIVE), 200),
    ("POST", "/v1/events/{dialect}", "/v1/events/canonical?more=1", Some(EVENT), 400),
    ("POST", "/v1/events/{dialect}", "/v1/events/claude", Some("[]"), 200),
    ("POST", "/v1/events/{dialect}", "/v1/events/klaus", Some(NATIVE), 200),
    ("POST", "/v1/events/{dialect}", "/v1/events/%ff", Some(NATIVE), 200),
    ("GET", "/v1/hooks", "/v1/hooks", None, 200),
    ("GET", "/v1/hooks", "/v1/hooks?workspace_id=shop", None, 200),
    ("GET", "/v1/hooks", "/v1/hooks?workspace_id=", None, 400),
    ("GET", "/v1/hooks", "/v1/hooks?workspace=shop", None, 400),
    ("GET", "/v1/hooks", "/v1/hooks?workspace_id=no", None, 404),
    ("GET", "/v1/runs", "/v1/runs", None, 200),
    ("GET", "/v1/runs", "/v1/runs?limit=1&workspace_id=shop", None, 200),
    ("GET", "/v1/runs", "/v1/runs?limit=0", None, 400),
    ("GET", "/v1/runs/{id}", "/v1/runs/waiting", None, 200),
    ("GET", "/v1/runs/{id}", "/v1/runs/waiting?workspace_id=shop", None, 200),
    ("GET", "/v1/runs/{id}", "/v1/runs/twice", None, 409),
    ("GET", "/v1/runs/{id}", "/v1/runs/no", None, 404),
    ("GET", "/v1/runs/{id}", "/v1/runs/%00", None, 400),
    ("GET", "/v1/runs/{id}", "/v1/runs/waiting?workspace_id=%00", None, 400),
    ("DELETE", "/v1/runs/{id}", "/v1/runs/twice", None, 409),
    ("DELETE", "/v1/runs/{id}", "/v1/runs/waiting", None, 200),
    ("DELETE", "/v1/runs/{id}", "/v1/runs/waiting", None, 404),
    ("DELETE", "/v1/runs/{id}", "/v1/runs/%ff", None, 400),
    ("GET", "/v1/stream", "/v1/stream?verdict=maybe", None, 400),
    ("GET", "/v1/recording", "/v1/recording?dialect=klingon", None, 400),
    ("GET", "/v1/now", "/v1/now?more=1", None, 400),
    ("GET", "/", "/", None, 200),
    ("GET", "/page/{id}", "/page/app.js", None, 200),
    ("GET", "/page/{id}", "/page/none", None, 404),
    ("POST", "/v1/page/link", "/v1/page/link", None, 200),
    ("POST", "/v1/page/control-link", "/v1/page/control-link", None, 200),
    ("POST", "/v1/page/session", "/v1/page/session", Some(r#"{"code":"x"}"#), 400),
    ("POST", "/v1/page/session", "/v1/page/session", Some("{}"), 400),
    ("GET", "/v1/page/session", "/v1/page/session", None, 404),
    ("DELETE", "/v1/page/session", "/v1/page/session", None, 404),
    ("GET", "/v1/decisions", "/v1/decisions", None, 200),
    (
        "GET",
        "/v1/decisions",
        "/v1/decisions?run_id=twice&hook=guard&tool=Bash&verdict=block&failed=false",
        None,
        200,
    ),
    ("GET", "/v1/decisions", "/v1/decisions?workspace_id=shop&since=0&until=1&limit=1", None, 200),
    ("GET", "/v1/decisions", "/v1/decisions?verdict=maybe", None, 400),
    ("GET", "/v1/decisions", "/v1/decisions?limit=0", None, 400),
    ("GET", "/v1/decisions", "/v1/decisions?until=9007199254740992", None, 400),
    ("GET", "/v1/decisions/{id}", "/v1/decisions/none", None, 404),
    ("GET", "/v1/decisions/{id}", "/v1/decisions/%ff", None, 400),
    ("GET", "/v1/decisions/{id}/event", "/v1/decisions/none/event", None, 404),
    ("GET", "/v1/decisions/{id}/payload", "/v1/decisions/none/payload", None, 404),
    ("GET", "/v1/decisions/{id}/trace", "/v1/decisions/none/trace", None, 404),
    ("GET", "/v1/workspaces", "/v1/workspaces", None, 200),
    ("PUT", "/v1/workspaces/{id}", "/v1/workspaces/new", Some(r#"{"root":"$DIR/new"}"#), 201),
    (
        "PUT",
        "/v1/workspaces/{id}",
        "/v1/workspaces/new",
        Some(r#"{"root":"$DIR/new","kind":"chat","dialects":["claude"]}"#),
        200,
    ),
    (
        "PUT",
        "/v1/workspaces/{id}",
        "/v1/workspaces/new",
        Some(r#"{"root":"$DIR/new","kind":null,"dialects":null}"#),
        200,
    ),
    ("PUT", "/v1/workspaces/{id}", "/v1/workspaces/more", Some(r#"{"root":"$DIR/new"}"#), 409),
    ("PUT", "/v1/workspaces/{id}", "/v1/workspaces/new", Some(r#"{"root":"$DIR/none"}"#), 400),
    ("PUT", "/v1/workspaces/{id}", "/v1/workspaces/new", Some(r#"{"root":"new"}"#), 400),
    ("PUT", "/v1/workspaces/{id}", "/v1/workspaces/new", Some(r#"{"root":"/","more":1}"#), 400),
    ("PUT", "/v1/workspaces/{id}", "/v1/workspaces/new", Some(r#"{"root":"/","dialects":["klaus"]}"#), 400),
    ("PUT", "/v1/workspaces/{id}", "/v1/workspaces/%0a", Some(r#"{"root":"$DIR/new"}"#), 400),
    ("GET", "/v1/workspaces/{id}", "/v1/workspaces/new", None, 200),
    ("GET", "/v1/workspaces/{id}", "/v1/workspaces/broken", None, 200),
    ("GET", "/v1/workspaces/{id}", "/v1/workspaces/no", None, 404),
    ("GET", "/v1/workspaces/{id}", "/v1/workspaces/%0a", None, 400),
    ("POST", "/v1/explain", "/v1/explain", Some(EVENT), 200),
    ("POST", "/v1/explain", "/v1/explain?dialect=claude&workspace_id=shop", Some(NATIVE), 200),
    ("POST", "/v1/explain", "/v1/explain?dialect=klingon", Some(EVENT), 404),
    ("POST", "/v1/explain", "/v1/explain?workspace_id=no", Some(EVENT), 404),
    ("POST", "/v1/explain", "/v1/explain?workspace_id=%00", Some(EVENT), 400),
    ("POST", "/v1/explain", "/v1/explain", Some("{"), 400),
    ("GET", RULE_TRIAL, "/v1/workspaces/shop/rule-trial?hook=rule", None, 200),
    ("GET", RULE_TRIAL, "/v1/workspaces/shop/rule-trial?hook=guard", None, 409),
    ("GET", RULE_TRIAL, "/v1/workspaces/shop/rule-trial?hook=no", None, 404),
    ("GET", RULE_TRIAL, "/v1/workspaces/shop/rule-trial", None, 400),
    ("GET", RULE_TRIAL, "/v1/workspaces/no/rule-trial?hook=rule", None, 404),
    ("POST", RULE_TRIAL, "/v1/workspaces/shop/rule-trial", Some(TRIED), 200),
    ("POST", RULE_TRIAL, "/v1/workspaces/shop/rule-trial", Some(r#"{"text":"name: ["}"#), 200),
    ("POST", RULE_TRIAL, "/v1/workspaces/shop/rule-trial", Some("{}"), 400),
    ("POST", RULE_TRIAL, "/v1/workspaces/no/rule-trial", Some(TRIED), 404),
    ("GET", "/v1/settings", "/v1/settings", None, 200),
    ("GET", "/v1/workspaces/{id}/trust", "/v1/workspaces/shop/trust", None, 200),
    ("GET", "/v1/workspaces/{id}/trust", "/v1/workspaces/no/trust", None, 404),
    ("GET", "/v1/workspaces/{id}/trust", "/v1/workspaces/%0a/trust", None, 400),
    ("POST", "/v1/workspaces/{id}/trust", "/v1/workspaces/shop/trust", Some(STALE), 409),
    ("POST", "/v1/workspaces/{id}/trust", "/v1/workspaces/shop/trust", Some(r#"{"digest":"no"}"#), 400),
    ("POST", "/v1/workspaces/{id}/trust", "/v1/workspaces/no/trust", Some(STALE), 404),
    ("DELETE", "/v1/workspaces/{id}/trust", "/v1/workspaces/shop/trust", None, 200),
    ("DELETE", "/v1/workspaces/{id}/trust", "/v1/workspaces/shop/trust?hook=no", None, 404),
    ("DELETE", "/v1/workspaces/{id}/trust", "/v1/workspaces/shop/trust?all=1", None, 400),
    ("POST", "/v1/reload", "/v1/reload", None, 200),
    ("POST", "/v1/reload", "/v1/reload?workspace_id=shop", None, 200),
    ("POST", "/v1/reload", "/v1/reload?workspace_id=no", None, 404),
    ("POST", "/v1/reload", "/v1/reload?workspace_id=%00", None, 400),
    ("DELETE", "/v1/workspaces/{id}", "/v1/workspaces/new", None, 204),
    ("DELETE", "/v1/workspaces/{id}", "/v1/workspaces/new", None, 404),
    ("DELETE", "/v1/workspaces/{id}", "/v1/workspaces/%0a", None, 400),
    ("POST", "/v1/handover", "/v1/handover", Some("{}"), 400),
    ("POST", "/v1/handover", "/v1/handover", Some(r#"{"socket":"$DIR/nobody"}"#), 409),
    ("GET", "/v1/outbox", "/v1/outbox", None, 200),
    ("GET", "/v1/outbox", "/v1/outbox?state=dead&limit=5", None, 200),
    ("GET", "/v1/outbox", "/v1/outbox?state=no", None, 400),
    ("GET", "/v1/outbox", "/v1/outbox?limit=0", None, 400),
    ("POST", "/v1/outbox/retry", "/v1/outbox/retry", Some(r#"{"ids":[1,2]}"#), 200),
    ("POST", "/v1/outbox/retry", "/v1/outbox/retry", Some(r#"{"dead":true}"#), 200),
    ("POST", "/v1/outbox/retry", "/v1/outbox/retry", Some(r#"{"dead":false}"#), 400),
    ("POST", "/v1/outbox/drop", "/v1/outbox/drop", Some(r#"{"ids":[]}"#), 200),
    ("POST", "/v1/outbox/drop", "/v1/outbox/drop", Some("{}"), 400),
    // It takes events until it is sent a signal.
    ("POST", "/v1/drain", "/v1/drain", None, 202),
];

/// A daemon with a run that waits, two of one name, and a broken file.
fn daemon() -> Daemon {
    let daemon = DaemonSetup::new()
        .file("shop/.openharness/hooks/guard.yaml", GUARD)
        .file("shop/.openharness/hooks/waits.yaml", WAITS)
        .file("shop/.openharness/hooks/rule.yaml", RULE)
        .file("other/.openharness/hooks/guard.yaml", GUARD)
        .file("broken/.openharness/hooks/guard.yaml", "name: [")
        .file("new/x", "")
        .settings("workspaces: { shop: { root: $DIR/shop }, other: { root: $DIR/other }, broken: { root: $DIR/broken } }")
        .settings("limits: { payload: 64KiB }")
        .settings("listen: { lameduck: 10m, tcp: '127.0.0.1:0' }")
        .serve();
    let event = |workspace: &str, run: &str, tool: &str| {
        json!({ "event": "before_tool_dispatch", "session_id": "s", "run_id": run, "workspace_id": workspace,
                "tool_name": tool, "tool_input": {} })
    };
    daemon.post("/v1/events", &event("shop", "twice", "Bash"));
    daemon.post("/v1/events", &event("other", "twice", "Bash"));
    let (client, waiting) = (daemon.client(), event("shop", "waiting", "Wait").to_string());
    // It is answered when the run is cancelled.
    std::thread::spawn(move || client.send("POST", "/v1/events", Some(waiting.as_bytes())));
    wait_until("a run waits", || daemon.send("GET", "/v1/runs/waiting", None).status == 200);
    daemon
}

fn operation<'a>(description: &'a Value, method: &str, path: &str) -> &'a Value {
    &description["paths"][path][method.to_lowercase()]
}

/// Sees to it that an answer is one of those that are described.
fn assert_described(description: &Value, row: &Row, status: u16, body: &[u8]) {
    let (method, route, path, ..) = row;
    let what = format!("{method} {path} {status}");
    let answer = &operation(description, method, route)["responses"][status.to_string()];
    assert!(answer.is_object(), "{what} is not described");
    let Some(content) = answer["content"].as_object() else {
        assert!(body.is_empty(), "{what} has a body");
        return;
    };
    let Some(described) = content.get("application/json") else {
        assert!(std::str::from_utf8(body).is_ok_and(|text| !text.is_empty()), "{what}");
        return;
    };
    let value: Value = serde_json::from_slice(body).unwrap_or_else(|error| panic!("{what}: {error}"));
    let mut schema = described["schema"].clone();
    schema["components"] = description["components"].clone();
    close(&mut schema);
    let validator = jsonschema::draft202012::new(&schema).unwrap_or_else(|error| panic!("{what}: {error}"));
    let wrong: Vec<_> = validator.iter_errors(&value).map(|error| error.to_string()).collect();
    assert!(wrong.is_empty(), "{what}: {wrong:?}\n{value}");
}

/// Has every reference to a component refuse properties that the component does not describe. A part of an `allOf` stays
/// open for those of the other parts.
fn close(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            if object.contains_key("$ref") {
                object.insert("unevaluatedProperties".to_owned(), false.into());
            }
            object.iter_mut().filter(|(key, _)| *key != "allOf").for_each(|(_, value)| close(value));
        }
        Value::Array(values) => values.iter_mut().for_each(close),
        _ => {}
    }
}

#[test]
fn responses_match_the_description() {
    let daemon = daemon();
    let description = daemon.get("/v1/openapi.json");
    let here = daemon.path().display().to_string();
    for row in TABLE {
        let (method, _, path, body, status) = row;
        let body = body.map(|body| body.replace("$DIR", &here));
        let answer = daemon.control().send(method, path, body.as_deref().map(str::as_bytes)).unwrap();
        let text = String::from_utf8_lossy(&answer.body);
        assert_eq!(answer.status, *status, "{method} {path} {body:?}: {text}");
        assert_described(&description, row, answer.status, &answer.body);
    }
    let large = " ".repeat(100_000);
    for row in [TABLE[5], TABLE[9], *TABLE.iter().find(|row| row.0 == "PUT").unwrap()] {
        let answer = daemon.control().send(row.0, row.2, Some(large.as_bytes())).unwrap();
        assert_eq!(answer.status, 413);
        assert_described(&description, &row, 413, &answer.body);
    }
    daemon.finish();
}

#[test]
fn every_described_operation_is_tried() {
    let daemon = DaemonSetup::new().serve();
    let description = daemon.get("/v1/openapi.json");
    daemon.finish();
    let tried: BTreeSet<_> = TABLE.iter().map(|row| (row.1.to_owned(), row.0.to_lowercase())).collect();
    let described: BTreeSet<_> = methods(&description).into_iter().collect();
    assert_eq!(tried, described);
}

fn methods(description: &Value) -> Vec<(String, String)> {
    let paths = description["paths"].as_object().expect("paths");
    paths
        .iter()
        .flat_map(|(path, item)| {
            item.as_object().expect("methods").keys().map(|method| (path.clone(), method.clone()))
        })
        .collect()
}

#[test]
fn the_described_routes_are_the_routes() {
    let daemon = DaemonSetup::new().serve();
    let description = daemon.get("/v1/openapi.json");
    let paths = description["paths"].as_object().unwrap();
    for (path, item) in paths {
        let mut allowed: BTreeSet<_> =
            item.as_object().unwrap().keys().map(|method| method.to_uppercase()).collect();
        if allowed.contains("GET") {
            allowed.insert("HEAD".to_owned());
        }
        let path = path.replace("{id}", "x").replace("{dialect}", "canonical");
        assert_eq!(allow(&daemon, &path), allowed, "{path}");
    }
    daemon.finish();
}

#[test]
fn query_parameters_are_as_described() {
    let daemon = DaemonSetup::new().serve();
    let description = daemon.get("/v1/openapi.json");
    let mut tried = 0;
    for (path, method) in methods(&description) {
        let parameters = description["paths"][&path][&method]["parameters"].as_array();
        let described: BTreeSet<_> = parameters
            .into_iter()
            .flatten()
            .filter(|parameter| parameter["in"] == "query")
            .map(|parameter| parameter["name"].as_str().unwrap().to_owned())
            .collect();
        if described.is_empty() {
            continue;
        }
        let path = path.replace("{id}", "x").replace("{dialect}", "canonical") + "?nonesuch=1";
        let answer = daemon.control().send(&method.to_uppercase(), &path, None).unwrap();
        let body: Value = serde_json::from_slice(&answer.body).unwrap();
        let error = &body["error"];
        assert_eq!((answer.status, &error["code"]), (400, &json!("bad_query")), "{path}");
        // unknown field `nonesuch`, expected one of `a`, `b`
        let quoted = error["message"].as_str().unwrap().split('`').skip(1).step_by(2);
        let taken: BTreeSet<_> = quoted.skip(1).map(str::to_owned).collect();
        assert_eq!(taken, described, "{path}");
        tried += 1;
    }
    assert!(tried > 4, "{tried}");
    daemon.finish();
}

/// The methods that a path takes, by its own account.
fn allow(daemon: &Daemon, path: &str) -> BTreeSet<String> {
    use std::{
        io::{Read, Write},
        os::unix::net::UnixStream,
    };
    let mut stream = UnixStream::connect(daemon.socket()).unwrap();
    write!(stream, "BREW {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    assert!(text.starts_with("HTTP/1.1 405"), "{path}: {text}");
    let line = text.lines().find_map(|line| line.strip_prefix("allow: ")).unwrap_or_else(|| panic!("{text}"));
    line.split(',').map(|method| method.trim().to_owned()).collect()
}

#[test]
fn the_description_is_sound() {
    let daemon = DaemonSetup::new().serve();
    let description = daemon.get("/v1/openapi.json");
    daemon.finish();
    assert!(description["openapi"].as_str().is_some_and(|version| version.starts_with("3.1.")));
    let mut ids = BTreeSet::new();
    for (path, method) in methods(&description) {
        let operation = &description["paths"][&path][&method];
        let id = operation["operationId"].as_str().expect("an id");
        assert!(ids.insert(id.to_owned()), "{id} is there twice");
        assert!(operation["summary"].is_string() && operation["tags"][0].is_string(), "{path} {method}");
        for name in path.split(['{', '}']).skip(1).step_by(2) {
            let is_it = |parameter: &Value| parameter["name"] == name && parameter["in"] == "path";
            assert!(
                operation["parameters"].as_array().expect("parameters").iter().any(is_it),
                "{path} {name}"
            );
        }
        for (status, answer) in operation["responses"].as_object().expect("answers") {
            assert!(answer["description"].as_str().is_some_and(|text| !text.is_empty()), "{path} {status}");
        }
    }
    references(&description, &mut |name| {
        let name = name.strip_prefix("#/").expect("a reference within");
        assert!(description.pointer(&format!("/{name}")).is_some(), "{name} is nowhere");
    });
}

fn references(value: &Value, found: &mut impl FnMut(&str)) {
    match value {
        Value::Object(object) => {
            if let Some(Value::String(name)) = object.get("$ref") {
                found(name);
            }
            object.values().for_each(|value| references(value, found));
        }
        Value::Array(values) => values.iter().for_each(|value| references(value, found)),
        _ => {}
    }
}
