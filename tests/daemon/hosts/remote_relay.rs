//! `relay --url`: agents whose daemons are elsewhere, behind a balancer, and servers that are none.

use std::{
    net::{TcpListener, TcpStream},
    os::unix::fs::PermissionsExt,
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::{ServerConfig, ServerConnection, StreamOwned, crypto::ring, pki_types::PrivateKeyDer};

use super::*;

const TOKEN: &str = "a-token-of-many-letters";

/// What a server does with one connection, once it has read the request.
#[derive(Clone)]
enum Answer {
    /// It writes this and closes.
    Text(String),
    /// It closes.
    Nothing,
    /// It begins an answer and writes a byte of it now and then.
    Drip,
    /// It writes as long as somebody reads.
    Endless,
}

fn answer(status: &str, headers: &str, body: &str) -> Answer {
    let length = body.len();
    Answer::Text(format!(
        "HTTP/1.1 {status}\r\nconnection: close\r\n{headers}content-length: {length}\r\n\r\n{body}"
    ))
}

fn verdict(reason: &str) -> String {
    json!({ "stdout": "", "stderr": reason, "exit_code": 2 }).to_string()
}

fn error(status: &str, code: &str, retry: &str) -> Answer {
    let error = json!({ "code": code, "retry": retry, "message": "m", "hint": "h" });
    answer(status, "", &json!({ "error": error }).to_string())
}

/// A server that answers each connection as it is told, the last word for all further ones.
struct ScriptedServer {
    url: String,
    /// The requests, with their heads in lower case.
    requests: Arc<Mutex<Vec<String>>>,
}

impl ScriptedServer {
    fn new(answers: Vec<Answer>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&requests);
        thread::spawn(move || {
            for (number, stream) in listener.incoming().enumerate() {
                let mut stream = stream.unwrap();
                seen.lock().unwrap().push(request_of(&mut stream));
                let answer = answers[number.min(answers.len() - 1)].clone();
                thread::spawn(move || give(stream, &answer));
            }
        });
        Self { url, requests }
    }

    fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }

    /// What requests say in a header, each once.
    fn said(&self, name: &str) -> Vec<String> {
        let mut values: Vec<_> = self.requests().iter().map(|request| header(request, name)).collect();
        values.dedup();
        values
    }
}

fn header(request: &str, name: &str) -> String {
    let line = request.lines().find_map(|line| line.strip_prefix(&format!("{name}: ")));
    line.unwrap_or_default().to_owned()
}

fn request_of(stream: &mut impl Read) -> String {
    let mut bytes = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = header(&head.to_lowercase(), "content-length").parse().unwrap();
            if body.len() >= length {
                return format!("{}\r\n\r\n{body}", head.to_lowercase());
            }
        }
        match stream.read(&mut piece).unwrap_or(0) {
            0 => return text,
            read => bytes.extend_from_slice(&piece[..read]),
        }
    }
}

fn give(mut stream: TcpStream, answer: &Answer) {
    let head = b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n";
    match answer {
        Answer::Text(text) => drop(stream.write_all(text.as_bytes())),
        Answer::Nothing => {}
        Answer::Drip => {
            drop(stream.write_all(head));
            while stream.write_all(b" ").is_ok() {
                thread::sleep(Duration::from_millis(20));
            }
        }
        Answer::Endless => {
            drop(stream.write_all(head));
            while stream.write_all(&[b' '; 8 << 10]).is_ok() {}
        }
    }
}

/// `relay --url` with more arguments.
fn relay(url: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(PROGRAMS[1]);
    command.args(["relay", "--dialect", "claude", "--if-down", "block", "--workspace", "shop", "--url", url]);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn tool_call(session: &str) -> String {
    json!({ "hook_event_name": "PreToolUse", "session_id": session, "cwd": "/home/alice/shop",
            "tool_name": "Bash", "tool_input": { "command": "ls" } })
    .to_string()
}

fn token_file(directory: &Path, text: &str, mode: u32) -> String {
    let path = directory.join("token");
    drop(fs::remove_file(&path));
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    path.display().to_string()
}

/// A node with a guard, at a TCP address that needs a token.
fn node() -> Daemon {
    let handler = json!({ "type": "command", "command": "echo >> seen; echo 'not here' >&2; exit 2" });
    let guard =
        json!({ "name": "no", "events": ["before_tool_dispatch"], "handler": handler, "on_error": "deny" });
    let setup = DaemonSetup::new().file("shop/.openharness/hooks/no.yaml", &guard.to_string());
    let token = token_file(&setup.path(), TOKEN, 0o600);
    setup
        .settings(&format!("cluster: {{ enabled: true }}\nlisten: {{ token_file: {token} }}"))
        .settings("workspaces: { shop: { root: $DIR/shop } }")
        .argument("--tcp=127.0.0.1:0")
        .serve()
}

#[test]
fn a_node_judges_the_events_of_agents_elsewhere() {
    let daemon = node();
    let (url, token) = (format!("http://{}/", daemon.tcp()), daemon.path().join("token"));
    let with_token = ["--token-file", token.to_str().unwrap()];
    let said = |arguments: &[&str], event: &str| {
        let Said { out, .. } = said(relay(&url, &[&with_token[..], arguments].concat()), event);
        let answer: Value = serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}"));
        let of_claude = &answer["hookSpecificOutput"];
        assert_eq!(of_claude["permissionDecision"], "deny", "{answer}");
        of_claude["permissionDecisionReason"].as_str().unwrap().to_owned()
    };
    assert!(said(&[], &tool_call("a/b ü")).contains("not here"));
    assert!(said(&[], &tool_call("a/b ü")).contains("not here"));
    let seen = || fs::read_to_string(daemon.path().join("shop/seen")).unwrap().lines().count();
    assert_eq!(seen(), 2, "two calls without an id are two events");
    assert!(said(&[], "{\"hook_event_name\":\"PreToolUse\",\"session_id\":").contains("not valid JSON"));
    let none = super::said(relay(&url, &["--wait", "0"]), &tool_call("s"));
    assert!(none.out.contains("401 unauthorized: "), "{none:?}");
    // The same event again, as a balancer sends it that had no answer.
    let headers = [
        ("content-type", "application/json"),
        ("authorization", "Bearer a-token-of-many-letters"),
        ("x-hookyard-run", "s"),
        ("x-hookyard-workspace", "shop"),
        ("x-hookyard-event-id", "e1"),
    ];
    let (before, event) = (seen(), tool_call("s"));
    for headers in [&headers[..], &headers[..]] {
        let stream = TcpStream::connect(daemon.tcp()).unwrap();
        let answer = ask(stream, "POST /v1/events/claude?as=process", headers, &event);
        assert!(answer.status == 200 && answer.body.contains("not here"), "{}", answer.body);
    }
    assert_eq!(seen() - before, 1, "one event has one verdict");
    daemon.finish();
}

#[test]
fn requests_say_which_run_event_and_workspace_they_are_of() {
    let directory = tempfile::tempdir().unwrap();
    let token = token_file(directory.path(), &format!("{TOKEN}\n"), 0o600);
    let server = ScriptedServer::new(vec![answer("200 OK", "", &verdict("no"))]);
    let base = format!("{}/prefix/", server.url);
    let Said { err, code, .. } = said(relay(&base, &["--token-file", &token]), &tool_call("a/b ü"));
    assert_eq!((err.as_str(), code), ("no\n", Some(2)));
    let request = server.requests().remove(0);
    assert!(request.starts_with("post /prefix/v1/events/claude?as=process http/1.1\r\n"), "{request}");
    assert_eq!(header(&request, "x-hookyard-run"), "a%2fb%20%c3%bc");
    assert_eq!(header(&request, "x-hookyard-workspace"), "shop");
    assert_eq!(header(&request, "authorization"), format!("bearer {TOKEN}"));
    assert_eq!(header(&request, "x-hookyard-event-id").len(), 32);
    assert!(request.ends_with(&tool_call("a/b ü")), "the event is what the agent sent");
    said(relay(&base, &[]), &tool_call("s"));
    let ids = server.said("x-hookyard-event-id");
    assert!(ids.len() == 2 && ids[0] != ids[1], "{ids:?}");
    let canonical = json!({ "event": "before_tool_dispatch", "session_id": "s", "run_id": "r 1", "event_id": "e/1",
        "tool_name": "Bash", "tool_input": {} });
    let mut command = Command::new(PROGRAMS[0]);
    command.args(["relay", "--dialect", "canonical", "--workspace", "shop", "--url", &base]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    said(command, &canonical.to_string());
    let request = server.requests().remove(2);
    assert_eq!(header(&request, "x-hookyard-run"), "r%201");
    assert_eq!(header(&request, "x-hookyard-event-id"), "e%2f1");
    assert_eq!(header(&request, "authorization"), "");
}

#[test]
fn an_event_is_sent_again_where_its_answer_permits_it() {
    let ok = answer("200 OK", "", &verdict("judged"));
    let unasked = |retry: &str| {
        let headers = format!("x-hookyard-error: starting\r\nx-hookyard-retry: {retry}\r\n");
        answer("200 OK", &headers, &verdict("unasked"))
    };
    for (first, last, tries, expected) in [
        (error("503 Service Unavailable", "starting", "safe"), ok.clone(), 2, "judged"),
        (error("500 Internal Server Error", "run_lost", "may_repeat"), ok.clone(), 2, "judged"),
        (unasked("safe"), ok.clone(), 2, "judged"),
        (unasked("never"), ok.clone(), 1, "unasked"),
        (Answer::Nothing, ok.clone(), 2, "judged"),
        (answer("504 Gateway Time-out", "", "<html>no</html>"), ok.clone(), 2, "judged"),
        (error("400 Bad Request", "no_run", "never"), ok.clone(), 1, "answered 400 no_run: m; h"),
        (answer("404 Not Found", "", "<html>"), ok.clone(), 1, "answered 404, and not as hookyard does"),
        // The last verdict counts where no other comes.
        (unasked("safe"), Answer::Drip, 2, "unasked"),
    ] {
        let server = ScriptedServer::new(vec![first, last]);
        let timeout = if expected == "unasked" && tries == 2 { "1s" } else { "50s" };
        let Said { out, err, .. } =
            said(relay(&server.url, &["--wait", "40s", "--timeout", timeout]), &tool_call("s"));
        assert!(format!("{out}{err}").contains(expected), "{expected}: {out}{err}");
        assert_eq!(server.requests().len(), tries, "{expected}: {out}{err}");
        assert_eq!(server.said("x-hookyard-event-id").len(), 1, "all tries are of one event");
    }
}

#[test]
fn what_is_no_verdict_is_not_taken_for_one() {
    let elsewhere = ScriptedServer::new(vec![answer("200 OK", "", &verdict("stolen"))]);
    let location = format!("location: {}/v1/events/claude\r\n", elsewhere.url);
    let directory = tempfile::tempdir().unwrap();
    let token = token_file(directory.path(), TOKEN, 0o600);
    for (answer, expected) in [
        (
            answer("200 OK", "content-type: text/html\r\n", "<html>Please log in</html>"),
            "no answer of hookyard",
        ),
        (answer("200 OK", "", "{}"), "missing field `stdout`"),
        (answer("200 OK", "", ""), "no answer of hookyard"),
        (answer("200 OK", "", &json!({ "verdict": "proceed" }).to_string()), "no answer of hookyard"),
        (answer("204 No Content", "", ""), "answered 204"),
        (answer("302 Found", &location, ""), "answered 302; redirects are not followed"),
        (answer("307 Temporary Redirect", &location, ""), "answered 307; redirects are not followed"),
        (Answer::Text("SSH-2.0-OpenSSH_9.2\r\n".to_owned()), "did not answer"),
        (Answer::Text("HTTP/1.1 200 OK\r\ncontent-length: 90\r\n\r\n{".to_owned()), "did not answer"),
        (Answer::Nothing, "did not answer"),
        (Answer::Drip, "did not answer within 2s"),
        (Answer::Endless, "it has more than 67108864 bytes"),
    ] {
        let server = ScriptedServer::new(vec![answer.clone()]);
        let timeout = if matches!(answer, Answer::Drip) { "2s" } else { "50s" };
        let arguments = ["--token-file", &token, "--wait", "0", "--timeout", timeout];
        let Said { out, err, code } = said(relay(&server.url, &arguments), &tool_call("s"));
        let blocked: Value = serde_json::from_str(&out).unwrap_or_else(|_| panic!("{expected}: {out}{err}"));
        assert_eq!(blocked["hookSpecificOutput"]["permissionDecision"], "deny");
        let reason = blocked["hookSpecificOutput"]["permissionDecisionReason"].as_str().unwrap();
        assert!(
            reason.contains("no hook could be asked") && reason.contains(expected),
            "{expected}: {reason}"
        );
        assert!(!reason.contains(TOKEN) && !err.contains(TOKEN));
        assert_eq!((code, server.requests().len()), (Some(0), 1), "{expected}");
    }
    assert_eq!(elsewhere.requests().len(), 0, "no token went elsewhere");
    // Nobody listens.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut command = Command::new(PROGRAMS[1]);
    command.args(["relay", "--dialect", "claude", "--workspace", "shop", "--url", &format!("http://{port}")]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let Said { out, err, code } = said(command, &tool_call("s"));
    assert_eq!((out.as_str(), code), ("", Some(0)));
    assert!(err.contains("was not reached") && err.contains("going on without hooks"), "{err}");
}

#[test]
fn a_token_that_cannot_be_kept_is_not_sent() {
    let directory = tempfile::tempdir().unwrap();
    let server = ScriptedServer::new(vec![answer("200 OK", "", &verdict("no"))]);
    for (text, mode, expected) in [
        (TOKEN, 0o644, "token"),
        (TOKEN, 0o640, "token"),
        ("", 0o600, "has no token"),
        ("\n", 0o600, "has no token"),
        ("two lines\nof it", 0o600, "has no token"),
        ("with\r\nx-evil: 1", 0o600, "has no token"),
        ("t\u{f6}ken", 0o600, "has no token"),
    ] {
        let file = token_file(directory.path(), text, mode);
        let Said { out, err, .. } = said(relay(&server.url, &["--token-file", &file]), &tool_call("s"));
        assert!(out.contains(expected) && out.contains("nothing was sent"), "{text:?} {mode:o}: {out}{err}");
        assert!(!out.contains(TOKEN) && !err.contains(TOKEN), "{out}{err}");
    }
    let missing = directory.path().join("missing").display().to_string();
    for file in [missing, directory.path().display().to_string()] {
        let Said { out, .. } = said(relay(&server.url, &["--token-file", &file]), &tool_call("s"));
        assert!(out.contains("nothing was sent"), "{file}: {out}");
    }
    assert!(server.requests().is_empty(), "{:?}", server.requests());
}

#[test]
fn an_address_that_events_would_not_be_safe_on_the_way_to_is_refused() {
    for (url, expected) in [
        ("http://hooks.example.com", "use `https://`"),
        ("http://10.0.0.1:8787", "use `https://`"),
        ("http://localhost.example", "use `https://`"),
        ("https://alice:secret@hooks.example.com", "use `--token-file`"),
        ("https://hooks.example.com?token=secret", "leave out what follows"),
        ("https://hooks.example.com/#secret", "leave out what follows"),
        ("https://hooks.example.com/v1/events/claude", "leave out `/v1/events`"),
        ("unix:/run/hookyard.sock:/", "`--socket`"),
        ("ftp://hooks.example.com", "`http` or `https`"),
        ("https://", "server is missing"),
        ("https://a b", "character"),
        ("hooks.example.com", "`http` or `https`"),
    ] {
        let Said { out, err, code } = said(relay(url, &[]), &tool_call("s"));
        assert_eq!((out.as_str(), code), ("", Some(2)), "{url}");
        assert!(err.contains(expected), "{url}: {err}");
    }
    for arguments in
        [&["--socket", "/run/x.sock"][..], &["--start", "/x"], &["--adopted"], &["--workspace", "\u{1}"]]
    {
        let refused = said(relay("https://hooks.example.com", arguments), &tool_call("s"));
        assert_eq!((refused.out.as_str(), refused.code), ("", Some(2)), "{arguments:?}");
    }
    let mut command = Command::new(PROGRAMS[1]);
    command.args(["relay", "--dialect", "claude", "--url", "https://hooks.example.com"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let Said { err, code, .. } = said(command, &tool_call("s"));
    assert!(code == Some(2) && err.contains("--workspace <ID>"), "{err}");
}

/// An authority's certificate, and a server with one of its own that blocks whatever it is asked.
fn encrypted_server() -> (String, String, Arc<Mutex<usize>>) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.distinguished_name.push(DnType::CommonName, "an authority");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let pem = params.self_signed(&key).unwrap().pem();
    let issuer = Issuer::new(params, key);
    let key = KeyPair::generate().unwrap();
    let shown = CertificateParams::new(["localhost".to_owned()]).unwrap().signed_by(&key, &issuer).unwrap();
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![shown.into()], key)
        .unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("https://localhost:{}", listener.local_addr().unwrap().port());
    let asked = Arc::new(Mutex::new(0));
    let count = Arc::clone(&asked);
    thread::spawn(move || {
        for stream in listener.incoming() {
            let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut stream = StreamOwned::new(connection, stream.unwrap());
            if request_of(&mut stream).is_empty() {
                continue;
            }
            *count.lock().unwrap() += 1;
            if let Answer::Text(text) = answer("200 OK", "", &verdict("no")) {
                stream.write_all(text.as_bytes()).unwrap();
            }
            stream.conn.send_close_notify();
            drop(stream.flush());
        }
    });
    (url, pem, asked)
}

#[test]
fn only_a_server_that_the_machine_trusts_gets_events() {
    let (url, pem, asked) = encrypted_server();
    let directory = tempfile::tempdir().unwrap();
    let authority = directory.path().join("authority.pem");
    fs::write(&authority, pem).unwrap();
    let refused = said(relay(&url, &["--wait", "0"]), &tool_call("s"));
    assert!(refused.out.contains("was not reached") && refused.out.contains("certificate"), "{refused:?}");
    assert_eq!(*asked.lock().unwrap(), 0);
    let mut trusting = relay(&url, &["--wait", "0"]);
    trusting.env("SSL_CERT_FILE", &authority);
    let Said { err, code, .. } = said(trusting, &tool_call("s"));
    assert_eq!((err.as_str(), code), ("no\n", Some(2)));
    assert_eq!(*asked.lock().unwrap(), 1);
}
