//! Agents' events whose hooks cannot be asked get a verdict in the agent's words, never an error.

mod lifecycle;
mod limits;

use std::{os::unix::net::UnixStream, thread};

use rustix::process::Signal;

use super::{
    verdict_conditions::{CONDITIONS, JSON, PAYLOAD},
    *,
};

const DIALECTS: [&str; 5] = ["openharness", "claude", "codebuddy", "gemini", "clawd"];

/// The policies that make a hook fail closed.
const POLICIES: [&str; 4] = ["on_error: deny", "on_error: ask", "on_timeout: deny", "on_timeout: ask"];

/// The last event of a session, in a directory.
fn end(dialect: &str, directory: &Path) -> String {
    let kind = if dialect == "openharness" { "run_completed" } else { "SessionEnd" };
    let mut event: Value = serde_json::from_str(&tool(dialect, directory)).unwrap();
    event["hook_event_name"] = json!(kind);
    event.to_string()
}

/// A tool call, in a directory.
fn tool(dialect: &str, directory: &Path) -> String {
    let kind = match dialect {
        "openharness" => "before_tool_dispatch",
        "gemini" => "BeforeTool",
        _ => "PreToolUse",
    };
    json!({ "hook_event_name": kind, "session_id": "s", "run_id": "r", "cwd": directory, "project_dir": directory,
            "transcript_path": "/t", "tool_name": "Bash", "tool_input": { "command": "rm -rf" } })
    .to_string()
}

/// A daemon with a hook of tool calls under a policy.
fn daemon(policy: &str, limits: &str) -> Daemon {
    let file = format!(
        "name: guard\nevents: [before_tool_dispatch]\nhandler: {{ type: command, command: 'echo ran >> ran' }}\n{policy}\n"
    );
    DaemonSetup::new()
        .settings("workspaces: { shop: { root: $DIR/shop }, other: { root: $DIR/other } }")
        .settings(limits)
        .file("shop/.openharness/hooks/guard.yaml", &file)
        .file("other/x", "")
        .serve()
}

/// An answer, as a body or as the output of a process.
#[derive(Debug)]
struct Answer {
    out: String,
    err: String,
    code: u8,
}

impl Answer {
    /// Whether the agent obeys it as a refusal.
    fn is_block(&self, dialect: &str) -> bool {
        let said: Value = serde_json::from_str(&self.out).unwrap_or_default();
        // ClawdCode and all others take the exit code, and as a body one of these words.
        let by_word = match dialect {
            "openharness" => said["decision"] == "block",
            "clawd" => {
                said["permissionDecision"] == "deny" || self.out.starts_with("Do not follow this prompt")
            }
            _ => said["decision"] == "deny" || said["decision"] == "block",
        };
        self.code == 2 || by_word || said["hookSpecificOutput"]["permissionDecision"] == "deny"
    }

    /// Whether it lets the event pass and says why no hook ran.
    fn is_note(&self, dialect: &str) -> bool {
        let said: Value = serde_json::from_str(&self.out).unwrap_or_default();
        // ClawdCode has no field for the person.
        let note = match dialect {
            "clawd" => self.err.as_str(),
            _ => said["systemMessage"].as_str().unwrap_or_default(),
        };
        let has_note = note.starts_with("hookyard ran no hooks for this event: ");
        !self.is_block(dialect) && (has_note || dialect == "clawd")
    }
}

fn post(path: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n{headers}content-length: {length}\r\n\r\n"
    );
    [head.as_bytes(), body].concat()
}

/// Sends a request and reads the answer, of which the status has to be 200.
fn answer(daemon: &Daemon, request: &[u8], is_process: bool) -> Answer {
    let mut stream = UnixStream::connect(daemon.socket()).unwrap();
    stream.write_all(request).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    read_answer(&text, is_process)
}

fn read_answer(text: &str, is_process: bool) -> Answer {
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {text:?}"));
    assert!(head.starts_with("HTTP/1.1 200"), "{text}");
    if !is_process {
        return Answer { out: body.to_owned(), err: String::new(), code: 0 };
    }
    let said: Value = serde_json::from_str(body).unwrap();
    let field = |name: &str| said[name].as_str().unwrap().to_owned();
    let code = u8::try_from(said["exit_code"].as_u64().unwrap()).unwrap();
    Answer { out: field("stdout"), err: field("stderr"), code }
}

fn assert_answer(answer: &Answer, dialect: &str, blocked: bool, what: &str) {
    if blocked {
        assert!(answer.is_block(dialect), "{dialect}, {what}: {answer:?}");
    } else {
        assert!(answer.is_note(dialect), "{dialect}, {what}: {answer:?}");
    }
}

#[test]
fn an_event_that_cannot_be_judged_is_blocked_where_a_hook_fails_closed_and_noted_elsewhere() {
    for policy in POLICIES.into_iter().chain([""]) {
        let daemon = daemon(policy, "limits: { payload: 64KiB }");
        let shop = daemon.path().join("shop");
        for dialect in DIALECTS {
            for condition in &CONDITIONS {
                let body = (condition.body)(&tool(dialect, &shop));
                let what = format!("{} {policy:?}", condition.name);
                let path = format!("/v1/events/{dialect}{}", condition.query);
                let blocked = condition.blocked && !policy.is_empty();
                let told = answer(&daemon, &post(&path, condition.headers, &body), false);
                assert_answer(&told, dialect, blocked, &what);
                if condition.query.is_empty() {
                    let path = format!("{path}?as=process");
                    let told = answer(&daemon, &post(&path, condition.headers, &body), true);
                    assert_answer(&told, dialect, blocked, &what);
                }
            }
            // What no hook can stop is never blocked.
            let body = end(dialect, &shop);
            let path = format!("/v1/events/{dialect}");
            let told = answer(&daemon, &post(&path, JSON, &body.as_bytes()[..body.len() - 1]), false);
            assert_answer(&told, dialect, false, "the end of a session");
        }
        assert!(!shop.join("ran").exists(), "the hook was asked");
        daemon.finish();
    }
}

#[test]
fn a_relay_answers_alike() {
    for policy in ["on_error: deny", ""] {
        let daemon = daemon(policy, "limits: { payload: 64KiB }");
        let shop = daemon.path().join("shop");
        for dialect in DIALECTS {
            for condition in
                CONDITIONS.iter().filter(|condition| condition.headers == JSON && condition.query.is_empty())
            {
                let mut relay = hookyard(&daemon, &["relay", "--dialect", dialect]).spawn().unwrap();
                let body = (condition.body)(&tool(dialect, &shop));
                drop(relay.stdin.take().unwrap().write_all(&body));
                let output = relay.wait_with_output().unwrap();
                let text = |bytes| String::from_utf8(bytes).unwrap();
                let code = u8::try_from(output.status.code().unwrap()).unwrap();
                let told = Answer { out: text(output.stdout), err: text(output.stderr), code };
                assert_answer(&told, dialect, condition.blocked && !policy.is_empty(), condition.name);
            }
            // A closed standard input is an empty event.
            let mut relay = hookyard(&daemon, &["relay", "--dialect", dialect]);
            let output = relay.stdin(Stdio::null()).output().unwrap();
            let text = |bytes| String::from_utf8(bytes).unwrap();
            let code = u8::try_from(output.status.code().unwrap()).unwrap();
            let told = Answer { out: text(output.stdout), err: text(output.stderr), code };
            assert_answer(&told, dialect, !policy.is_empty(), "no input");
        }
        daemon.finish();
    }
}

#[test]
fn an_unknown_dialect_gets_the_words_that_most_agents_understand() {
    for policy in ["on_error: deny", ""] {
        let daemon = daemon(policy, "");
        for name in ["klaus", "%ff", "CLAUDE", "claude%20"] {
            let body = tool("claude", &daemon.path().join("shop"));
            let told = answer(&daemon, &post(&format!("/v1/events/{name}"), JSON, body.as_bytes()), false);
            assert_answer(&told, "claude", !policy.is_empty(), name);
        }
        daemon.finish();
    }
}

#[test]
fn canonical_hosts_keep_their_errors() {
    let daemon = daemon("on_error: ignore", "limits: { payload: 64KiB }");
    let event = call("shop", "r").to_string();
    let large = event.replace("ls", &"x".repeat(PAYLOAD));
    for (path, body, status) in [
        ("/v1/events/canonical", &*large, 413),
        ("/v1/events/canonical", "{", 400),
        ("/v1/events/canonical", &*event.replace("shop", "no"), 404),
        ("/v1/events", &*large, 413),
        ("/v1/events", "{", 400),
    ] {
        let answer = daemon.client().send("POST", path, Some(body.as_bytes())).unwrap();
        assert_eq!(answer.status, status, "{path}");
    }
    daemon.finish();
}

#[test]
fn metrics_count_the_error_behind_an_answer() {
    let daemon = daemon("on_error: deny", "");
    let told = answer(&daemon, &post("/v1/events/claude", JSON, b"{"), false);
    assert!(told.is_block("claude"), "{told:?}");
    let metrics = daemon.send("GET", "/metrics", None);
    let metrics = String::from_utf8(metrics.body).unwrap();
    let counted = metrics.lines().any(|line| {
        line.contains("route=\"/v1/events/{dialect}\"") && line.contains("\"4xx\"") && line.ends_with(" 1")
    });
    assert!(counted, "{metrics}");
    assert!(daemon.log().contains("answered without its hooks"), "{}", daemon.log());
    daemon.finish();
}

#[test]
fn a_wrong_path_or_method_below_the_events_gets_a_verdict() {
    for policy in ["on_error: deny", ""] {
        let daemon = daemon(policy, "");
        let shop = daemon.path().join("shop");
        for dialect in DIALECTS {
            let body = tool(dialect, &shop);
            for rest in ["/", "/x", "//", "/claude?as=body"] {
                let told = answer(
                    &daemon,
                    &post(&format!("/v1/events/{dialect}{rest}"), JSON, body.as_bytes()),
                    false,
                );
                assert_answer(&told, dialect, !policy.is_empty(), rest);
            }
            for method in ["PUT", "PATCH", "DELETE", "GET", "OPTIONS", "BREW"] {
                let request = post(&format!("/v1/events/{dialect}"), JSON, body.as_bytes());
                let request = String::from_utf8(request).unwrap().replacen("POST", method, 1);
                let told = answer(&daemon, request.as_bytes(), false);
                assert_answer(&told, dialect, !policy.is_empty(), method);
            }
        }
        let body = tool("claude", &shop);
        for path in ["/v1/events/", "/v1/events//", "/v1/events//claude", "/v1/events/../events/claude"] {
            let told = answer(&daemon, &post(path, JSON, body.as_bytes()), false);
            assert_answer(&told, "claude", !policy.is_empty(), path);
        }
        for (method, path, status) in
            [("PUT", "/v1/events/canonical", 405), ("POST", "/v1/events/canonical/", 404)]
        {
            let refused = daemon.client().send(method, path, Some(body.as_bytes())).unwrap();
            assert_eq!(refused.status, status, "canonical hosts get the error");
        }
        for (path, has_method) in [("/v1/events/claude", false), ("/v1/events/claude/x", true)] {
            let request = String::from_utf8(post(path, JSON, body.as_bytes())).unwrap();
            let request = if has_method { request } else { request.replacen("POST", "PUT", 1) };
            let mut stream = UnixStream::connect(daemon.socket()).unwrap();
            stream.write_all(request.as_bytes()).unwrap();
            let mut text = String::new();
            stream.read_to_string(&mut text).unwrap();
            assert_eq!(text.contains("\r\nallow: POST\r\n"), !has_method, "{text}");
            // A block says what to do as a note does.
            let hint = if has_method { "lists the routes" } else { "use a method from the `Allow` header" };
            assert!(text.contains(hint), "{text}");
        }
        let marked = post("/v1/events/claude/x", "x-hookyard-event: x\r\n", body.as_bytes());
        let mut stream = UnixStream::connect(daemon.socket()).unwrap();
        stream.write_all(&marked).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        assert!(text.starts_with("HTTP/1.1 508"), "{text}");
        daemon.finish();
    }
}
