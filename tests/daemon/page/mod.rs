//! The page for browsers: what its files may load, who signs in, and what a session may do.

mod decisions;
mod now;

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    os::unix::{
        fs::PermissionsExt,
        net::{UnixListener, UnixStream},
    },
    path::Path,
};

use assert_cmd::Command;
use serde_json::{Value, json};

use crate::{
    http_server::raw_connection::{RawConnection, Reply},
    support::{
        daemon::{Daemon, DaemonSetup},
        wait::wait_until,
    },
};

const GUARD: &str = "name: guard\nevents: [before_tool_dispatch]\nmatcher: Bash\nhandler:\n  type: command\n  \
                     command: 'echo \"no $KEY\" >&2; exit 2'\n";

/// What a person agrees to in the workspace.
const TRUST: &str = "/v1/workspaces/shop/trust";

const RULE_TRIAL: &str = "/v1/workspaces/shop/rule-trial";

fn setup() -> DaemonSetup {
    DaemonSetup::new()
        .file("shop/.openharness/hooks/guard.yaml", GUARD)
        .settings("workspaces: { shop: { root: $DIR/shop } }")
        .argument("--tcp")
        .argument("127.0.0.1:0")
}

/// What a browser sends and keeps.
struct Browser {
    address: String,
    cookie: String,
    token: String,
}

impl Browser {
    /// One that has nothing yet.
    fn at(daemon: &Daemon) -> Self {
        Self { address: daemon.tcp(), cookie: String::new(), token: String::new() }
    }

    /// A request of the page, with more headers.
    fn ask_with(&self, (method, path): (&str, &str), headers: &str, body: &str) -> Reply {
        let Self { address, cookie, token } = self;
        let own = if token.is_empty() {
            String::new()
        } else {
            format!("cookie: other=1; {cookie}\r\nx-hookyard-page: {token}\r\n")
        };
        let head = format!("{method} {path} HTTP/1.1\r\nhost: {address}\r\n{own}{headers}");
        let length = body.len();
        let request =
            format!("{head}content-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}");
        RawConnection::tcp(address).send(request).reply_to(method)
    }

    fn ask(&self, method: &str, path: &str) -> Reply {
        let from_page = format!("origin: http://{}\r\nsec-fetch-site: same-origin\r\n", self.address);
        self.ask_with((method, path), &from_page, "")
    }

    /// Signs in with a code, and keeps what it gets.
    fn sign_in(&mut self, code: &str) -> Reply {
        let from_page = format!("origin: http://{}\r\nsec-fetch-site: same-origin\r\n", self.address);
        let body = json!({ "code": code }).to_string();
        let reply = self.ask_with(("POST", "/v1/page/session"), &from_page, &body);
        if reply.status == 200 {
            let cookie = reply.header("set-cookie").expect("a cookie");
            assert!(cookie.ends_with("; Path=/; HttpOnly; SameSite=Strict"), "{cookie}");
            cookie.split(';').next().expect("a cookie").clone_into(&mut self.cookie);
            parsed(&reply)["token"].as_str().expect("a token").clone_into(&mut self.token);
        }
        reply
    }
}

fn parsed(reply: &Reply) -> Value {
    serde_json::from_slice(&reply.body).unwrap()
}

/// The code of a new link.
fn code(daemon: &Daemon, flags: &[&str]) -> String {
    let mut command = Command::cargo_bin("hookyard").unwrap();
    command.args(["ui", "--no-open", "--json", "--socket"]).arg(daemon.socket()).args(flags);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let link: Value = serde_json::from_slice(&output.stdout).unwrap();
    let url = link["url"].as_str().unwrap();
    let (base, code) = url.split_once("/#sign-in=").unwrap();
    assert_eq!(base, format!("http://{}", daemon.tcp()));
    code.to_owned()
}

fn signed_in(daemon: &Daemon, flags: &[&str]) -> Browser {
    let mut browser = Browser::at(daemon);
    assert_eq!(browser.sign_in(&code(daemon, flags)).status, 200);
    browser
}

fn send_event(daemon: &Daemon, run: &str) -> Value {
    let event = json!({ "event": "before_tool_dispatch", "session_id": "s", "run_id": run, "workspace_id": "shop",
                        "tool_name": "Bash", "tool_input": { "command": "ls" } });
    daemon.post("/v1/events", &event)
}

#[test]
fn the_files_may_load_nothing_else_and_be_framed_nowhere() {
    let daemon = setup().serve();
    let browser = Browser::at(&daemon);
    // As a link in a chat leads there.
    let reply =
        browser.ask_with(("GET", "/"), "sec-fetch-site: cross-site\r\nsec-fetch-mode: navigate\r\n", "");
    assert_eq!((reply.status, reply.header("content-type")), (200, Some("text/html; charset=utf-8")));
    let policy = reply.header("content-security-policy").unwrap();
    for part in ["default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "base-uri 'none'"] {
        assert!(policy.contains(part), "{policy}");
    }
    assert!(!policy.contains("unsafe") && !policy.contains('*') && !policy.contains("data:"), "{policy}");
    for (name, value) in [
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
        ("cache-control", "no-cache"),
    ] {
        assert_eq!(reply.header(name), Some(value));
    }
    assert_eq!(reply.header("access-control-allow-origin"), None);
    let text = String::from_utf8(reply.body).unwrap();
    for file in ["/page/app.js", "/page/app.css", "/page/icon.svg"] {
        assert!(text.contains(file), "{text}");
        let plain = browser.ask("GET", file);
        assert_eq!(plain.status, 200);
        let tag = plain.header("etag").unwrap();
        assert_eq!(browser.ask_with(("GET", file), &format!("if-none-match: {tag}\r\n"), "").status, 304);
        let packed = browser.ask_with(("GET", file), "accept-encoding: gzip, br\r\n", "");
        assert_eq!(packed.header("content-encoding"), Some("gzip"));
        assert_eq!(&packed.body[..2], [0x1f, 0x8b], "{file}");
    }
    assert_eq!(browser.ask("GET", "/page/..%2findex.html").status, 404);
    let foreign = Browser { address: daemon.tcp(), ..Browser::at(&daemon) };
    let rebound =
        RawConnection::tcp(&foreign.address).send("GET / HTTP/1.1\r\nhost: evil.example\r\n\r\n").reply();
    assert_eq!((rebound.status, rebound.code().as_str()), (403, "forbidden"));
    daemon.finish();
}

#[test]
fn a_link_signs_in_once_and_from_the_page_only() {
    let daemon = setup().serve();
    let code = code(&daemon, &[]);
    let mut browser = Browser::at(&daemon);
    let body = json!({ "code": code }).to_string();
    let try_with = |headers: &str| browser.ask_with(("POST", "/v1/page/session"), headers, &body);
    let here = format!("http://{}", daemon.tcp());
    for (headers, status, code) in [
        (String::new(), 400, "no_origin"),
        ("origin: http://evil.example\r\n".to_owned(), 403, "forbidden"),
        ("origin: null\r\n".to_owned(), 403, "forbidden"),
        (format!("origin: {here}\r\nsec-fetch-site: cross-site\r\n"), 403, "forbidden"),
        (format!("origin: {here}0\r\n"), 403, "forbidden"),
    ] {
        let reply = try_with(&headers);
        assert_eq!((reply.status, reply.code().as_str()), (status, code), "{headers}");
    }
    assert_eq!(browser.sign_in("guessed").code(), "bad_link");
    assert_eq!(browser.sign_in(&code).status, 200);
    let mut other = Browser::at(&daemon);
    let again = other.sign_in(&code);
    assert_eq!((again.status, again.code().as_str()), (403, "bad_link"));
    assert_eq!(parsed(&browser.ask("GET", "/v1/page/session"))["right"], "read");
    daemon.finish();
}

#[test]
fn a_session_may_what_its_link_was_asked_for() {
    let daemon = setup().serve();
    let reader = signed_in(&daemon, &[]);
    let decision = send_event(&daemon, "r")["decision_id"].as_str().unwrap().to_owned();
    for path in ["/v1/status", "/v1/hooks", "/v1/runs", "/v1/decisions", "/metrics"] {
        assert_eq!(reader.ask("GET", path).status, 200, "{path}");
    }
    let payload = format!("/v1/decisions/{decision}/payload");
    let trace = format!("/v1/decisions/{decision}/trace");
    let event = format!("/v1/decisions/{decision}/event");
    for (method, path) in [
        ("GET", "/v1/settings"),
        ("POST", "/v1/reload"),
        ("DELETE", "/v1/runs/r"),
        ("GET", payload.as_str()),
        ("GET", trace.as_str()),
        ("GET", event.as_str()),
        ("GET", RULE_TRIAL),
        ("POST", RULE_TRIAL),
        ("GET", TRUST),
        ("POST", TRUST),
        ("DELETE", TRUST),
    ] {
        let reply = reader.ask(method, path);
        assert_eq!((reply.status, reply.code().as_str()), (403, "needs_control"), "{method} {path}");
    }
    let controller = signed_in(&daemon, &["--control"]);
    assert_eq!(controller.ask("GET", &payload).status, 200);
    assert_eq!(controller.ask("DELETE", "/v1/runs/r").status, 200);
    // Neither the cookie nor the token suffices, nor a request of another page.
    let without_token = Browser { token: String::new(), ..signed_in(&daemon, &["--control"]) };
    let cookie = format!("cookie: {}\r\n", without_token.cookie);
    let without_cookie = Browser { cookie: "hookyard_1=0".to_owned(), ..signed_in(&daemon, &["--control"]) };
    for change in [("POST", "/v1/reload"), ("POST", TRUST), ("DELETE", TRUST)] {
        assert_eq!(without_token.ask_with(change, &cookie, "").status, 403, "{change:?}");
        assert_eq!(without_cookie.ask(change.0, change.1).code(), "signed_out", "{change:?}");
        let foreign = controller.ask_with(change, "origin: http://evil.example\r\n", "");
        assert_eq!((foreign.status, foreign.code().as_str()), (401, "signed_out"), "{change:?}");
        assert_eq!(foreign.header("access-control-allow-origin"), None);
    }
    assert_eq!(controller.ask("POST", "/v1/reload").status, 200);
    daemon.finish();
}

#[test]
fn settings_have_their_values_and_where_they_came_from_and_no_secrets() {
    const SECRETS: [&str; 4] = ["sk-literal-1", "sk-literal-2", "sesame", "path-secret"];
    let daemon = setup()
        .settings("limits: { runs: 5000, streams: 32 }")
        .settings("default_timeout: 5s")
        .settings("models:\n  local: { api: openai, model: m, key: sk-literal-1 }\n  mixed: { api: openai, model: m, key: 'x${env.HOME}sk-literal-2', base_url: 'https://models.example.com:8443/T0/path-secret' }\n  named: { api: openai, model: m, key: '${secrets.MODEL_KEY}' }")
        .argument("--set")
        .argument("default_timeout=7s")
        .variable("HOOKYARD_LIMITS_STREAMS", "16")
        .variable("HOOKYARD_TRACES_ENDPOINT", "http://127.0.0.1:9/v1/traces?token=sesame")
        .serve();
    let answer = daemon.control().send("GET", "/v1/settings", None).unwrap();
    let text = String::from_utf8(answer.body).unwrap();
    for secret in SECRETS {
        assert!(!text.contains(secret), "{secret}");
    }
    let view: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(view["known"], true);
    let found = |key: &str| {
        let all = view["settings"].as_array().unwrap();
        all.iter().find(|setting| setting["key"] == key).unwrap_or_else(|| panic!("{key}")).clone()
    };
    let file = daemon.path().join("hookyard.yaml").display().to_string();
    let rows = [
        ("limits.runs", json!(5000), json!(file)),
        ("limits.streams", json!(16), json!("HOOKYARD_LIMITS_STREAMS")),
        ("default_timeout", json!("7s"), json!("--set default_timeout")),
        ("listen.tcp", json!("127.0.0.1:0"), json!("--tcp")),
        ("max_timeout", json!("10m"), Value::Null),
        ("node", Value::Null, Value::Null),
    ];
    for (key, value, source) in rows {
        let setting = found(key);
        assert_eq!((&setting["value"], &setting["source"]), (&value, &source), "{key}");
        assert_eq!(setting["line"].is_u64(), source == json!(file), "{key}");
        assert!(!setting["about"].as_str().unwrap().is_empty(), "{key}");
    }
    let models = found("models")["value"].clone();
    assert_eq!(
        (&models["local"]["key"], &models["named"]["key"]),
        (&json!("***"), &json!("${secrets.MODEL_KEY}"))
    );
    assert_eq!(
        (&models["mixed"]["key"], &models["mixed"]["base_url"]),
        (&json!("***"), &json!("https://models.example.com:8443/***"))
    );
    assert_eq!(found("traces.endpoint")["value"], "http://127.0.0.1:9/***");
    daemon.finish();
}

#[test]
fn a_session_ends_with_its_sign_out_and_with_the_tokens() {
    let setup = setup().file("token", "the-first-token-for-events");
    let token = setup.path().join("token");
    fs::set_permissions(&token, fs::Permissions::from_mode(0o600)).unwrap();
    let daemon = setup.settings("listen: { token_file: $DIR/token }").serve();
    let browser = signed_in(&daemon, &[]);
    let mut stream = RawConnection::tcp(&browser.address);
    let Browser { address, cookie, token: secret } = &browser;
    stream.send(format!(
        "GET /v1/now HTTP/1.1\r\nhost: {address}\r\ncookie: {cookie}\r\nx-hookyard-page: {secret}\r\n\r\n"
    ));
    wait_until("the stream tells of now", || stream.more().is_ok() && stream.text().contains("event: now"));
    assert_eq!(browser.ask("DELETE", "/v1/page/session").status, 204);
    wait_until("the stream ends", || stream.more().is_ok() && stream.text().ends_with("\r\n0\r\n\r\n"));
    assert_eq!(browser.ask("GET", "/v1/status").code(), "signed_out");
    let browser = signed_in(&daemon, &[]);
    fs::write(&token, "the-second-token-for-events").unwrap();
    assert_eq!(daemon.send("POST", "/v1/reload", None).status, 200);
    assert_eq!(browser.ask("GET", "/v1/status").code(), "signed_out");
    daemon.finish();
}

#[test]
fn a_daemon_without_an_address_has_no_page_and_says_so() {
    let daemon = DaemonSetup::new().serve();
    let mut command = Command::cargo_bin("hookyard").unwrap();
    let output = command.args(["ui", "--socket"]).arg(daemon.socket()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1));
    assert!(text.contains("no address for browsers") && text.contains("listen.tcp"), "{text}");
    daemon.finish();
}

/// Answers on a socket as a daemon does that serves its page at an address, until somebody connects and says nothing. Returns what
/// it was asked.
fn serve_at(socket: &Path, address: &str) -> std::thread::JoinHandle<Vec<String>> {
    let listener = UnixListener::bind(socket).unwrap();
    let status = json!({ "tcp": address });
    let link =
        json!({ "path": "/#sign-in=secret", "address": address, "right": "read", "lifetime_ms": 120_000 });
    std::thread::spawn(move || {
        let mut asked = Vec::new();
        loop {
            let (stream, _) = listener.accept().unwrap();
            let mut lines = BufReader::new(&stream).lines().map(Result::unwrap);
            let Some(request) = lines.next() else { return asked };
            lines.find(String::is_empty).expect("the end of the head");
            let body = if request.starts_with("GET /v1/status ") { &status } else { &link }.to_string();
            let length = body.len();
            let head =
                format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n");
            (&stream).write_all(format!("{head}connection: close\r\n\r\n{body}").as_bytes()).unwrap();
            asked.push(request);
        }
    })
}

#[test]
fn a_link_does_not_lead_over_the_network_without_tls() {
    for (address, flags, expected) in [
        ("127.0.0.1:8787", &[][..], Ok("http://127.0.0.1:8787/#sign-in=secret")),
        ("0.0.0.0:8787", &[], Ok("http://127.0.0.1:8787/#sign-in=secret")),
        ("10.0.0.1:8787", &[], Err("`ssh -L 8787:10.0.0.1:8787 HOST`")),
        ("[fd00::1]:8787", &[], Err("`--url https://hooks.example.com`")),
        ("10.0.0.1:8787", &["--control"], Err("`--url http://127.0.0.1:8787`")),
        ("10.0.0.1:8787", &["--url", "https://h.example"], Ok("https://h.example/#sign-in=secret")),
    ] {
        let here = tempfile::tempdir().unwrap();
        let socket = here.path().join("hookyard.sock");
        let answering = serve_at(&socket, address);
        let mut command = Command::cargo_bin("hookyard").unwrap();
        command.args(["ui", "--no-open", "--socket"]).arg(&socket).arg("--control-socket").arg(&socket);
        let output = command.args(flags).output().unwrap();
        drop(UnixStream::connect(&socket).unwrap());
        let asked = answering.join().unwrap();
        let printed = String::from_utf8_lossy(&output.stdout).into_owned();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        // No secret is made that nobody is to have.
        assert_eq!(
            asked.iter().any(|line| line.starts_with("POST ")),
            expected.is_ok(),
            "{address}: {asked:?}"
        );
        match expected {
            Ok(link) => assert_eq!((output.status.code(), printed.trim_end()), (Some(0), link), "{said}"),
            Err(hint) => {
                assert_eq!((output.status.code(), printed.as_str()), (Some(1), ""), "{address}");
                assert!(said.contains(hint) && !said.contains("sign-in="), "{said}");
            }
        }
    }
}
