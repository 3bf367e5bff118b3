//! Access over TCP: the token, the host name, and web pages.

use std::{fs, os::unix::fs::PermissionsExt};

use crate::{
    http_server::raw_connection::{RawConnection, Reply, get},
    support::daemon::{Daemon, DaemonSetup},
};

const TOKEN: &str = "a-token-of-many-letters";

fn ask(address: &str, path: &str, headers: &str) -> Reply {
    RawConnection::tcp(address).send(format!("GET {path} HTTP/1.1\r\n{headers}\r\n")).reply()
}

fn with_token(text: &str, mode: u32) -> DaemonSetup {
    let setting = DaemonSetup::new().file("token", text).settings("listen: { token_file: $DIR/token }");
    fs::set_permissions(setting.path().join("token"), fs::Permissions::from_mode(mode)).unwrap();
    setting.argument("--tcp").argument("127.0.0.1:0")
}

fn refused(setting: DaemonSetup) -> String {
    let mut daemon = setting.spawn();
    assert_eq!(daemon.wait().code(), Some(1), "{}", daemon.log());
    assert!(!daemon.socket().exists());
    daemon.log()
}

#[test]
fn programs_of_this_machine_need_no_token() {
    let daemon = DaemonSetup::new().argument("--tcp").argument("127.0.0.1:0").serve();
    let address = daemon.tcp();
    for headers in [
        format!("host: {address}\r\n"),
        "host: localhost\r\n".to_owned(),
        "host: LOCALHOST:1\r\n".to_owned(),
        "host: [::1]:1\r\n".to_owned(),
        "host: 127.0.0.1\r\nsec-fetch-site: none\r\n".to_owned(),
    ] {
        assert_eq!(ask(&address, "/metrics", &headers).status, 200, "{headers}");
    }
    daemon.finish();
}

#[test]
fn requests_of_web_pages_are_refused() {
    let daemon = DaemonSetup::new().argument("--tcp").argument("127.0.0.1:0").serve();
    let address = daemon.tcp();
    for headers in [
        "host: localhost\r\norigin: http://localhost\r\n",
        "host: localhost\r\norigin: null\r\n",
        "host: localhost\r\nsec-fetch-site: cross-site\r\n",
        "host: localhost\r\nsec-fetch-site: same-origin\r\n",
        "host: rebound.example.com\r\n",
        "host: 127.0.0.1.example.com:80\r\n",
        "host: localhost\r\nhost: example.com\r\n",
        "host: 10.0.0.1\r\n",
        "host: \r\n",
        "host: \u{fc}\r\n",
    ] {
        for path in ["/v1/status", "/healthz", "/nowhere"] {
            let reply = ask(&address, path, headers);
            // Two hosts may be refused before they are looked at.
            assert!([400, 403].contains(&reply.status), "{headers} {path} {reply:?}");
        }
    }
    assert_eq!(ask(&address, "/v1/status", "host: example.com\r\n").code(), "forbidden");
    let absolute =
        |host: &str| ask(&address, &format!("http://{host}/metrics"), "host: localhost\r\n").status;
    assert_eq!((absolute("example.com"), absolute("localhost"), absolute(&address)), (403, 200, 200));
    daemon.finish();
}

#[test]
fn the_metrics_address_serves_metrics_only() {
    let daemon = with_token(TOKEN, 0o600).argument("--set").argument("listen.metrics=0.0.0.0:0").serve();
    let status = daemon.get("/v1/status");
    let port = status["metrics"].as_str().unwrap().rsplit_once(':').unwrap().1.to_owned();
    let address = format!("127.0.0.1:{port}");
    for path in ["/metrics", "/healthz", "/readyz"] {
        assert_eq!(ask(&address, path, "host: anywhere\r\n").status, 200, "{path}");
    }
    for path in ["/v1/status", "/v1/hooks", "/v1/stream", "/v1/openapi.json", "/nowhere"] {
        let reply = ask(&address, path, "host: anywhere\r\n");
        assert_eq!((reply.status, reply.code().as_str()), (404, "no_route"), "{path}");
    }
    daemon.finish();
}

#[test]
fn a_web_page_reads_no_metrics() {
    for (listen, of_rebinding) in [("127.0.0.1:0", 403), ("0.0.0.0:0", 200)] {
        let daemon =
            DaemonSetup::new().argument("--set").argument(&format!("listen.metrics={listen}")).serve();
        let status = daemon.get("/v1/status");
        let port = status["metrics"].as_str().unwrap().rsplit_once(':').unwrap().1.to_owned();
        let address = format!("127.0.0.1:{port}");
        for (headers, expected) in [
            ("host: localhost\r\n", 200),
            ("host: localhost\r\nsec-fetch-site: none\r\n", 200),
            ("host: localhost\r\norigin: http://localhost\r\n", 403),
            ("host: localhost\r\nsec-fetch-site: same-origin\r\n", 403),
            // Who scrapes an address that other machines reach may call it by any name.
            ("host: rebound.example.com\r\n", of_rebinding),
        ] {
            assert_eq!(ask(&address, "/metrics", headers).status, expected, "{listen} {headers}");
        }
        daemon.finish();
    }
}

#[test]
fn other_machines_need_a_token() {
    for address in ["0.0.0.0:0", "[::]:0"] {
        let reported = refused(DaemonSetup::new().argument("--tcp").argument(address));
        assert!(reported.contains("set `listen.token_file`"), "{reported}");
    }
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let reported =
        refused(DaemonSetup::new().argument("--tcp").argument(&taken.local_addr().unwrap().to_string()));
    assert!(reported.contains("cannot listen on 127.0.0.1"), "{reported}");
}

#[test]
fn the_token_grants_access() {
    let daemon = with_token(&format!("{TOKEN}\n"), 0o600).variable("RUST_LOG", "trace").serve();
    let address = daemon.tcp();
    let status =
        |path: &str, headers: &str| ask(&address, path, &format!("host: any.example\r\n{headers}")).status;
    assert_eq!(status("/v1/status", &format!("authorization: Bearer {TOKEN}\r\n")), 200);
    assert_eq!(status("/v1/status", &format!("Authorization: bEARER   {TOKEN}\r\n")), 200);
    for wrong in [
        String::new(),
        "authorization: Bearer\r\n".to_owned(),
        "authorization: Bearer \r\n".to_owned(),
        format!("authorization: {TOKEN}\r\n"),
        format!("authorization: Basic {TOKEN}\r\n"),
        format!("authorization: Bearer {TOKEN}x\r\n"),
        format!("authorization: Bearer {}\r\n", &TOKEN[1..]),
        format!("authorization: Bearer {}\r\n", TOKEN.to_uppercase()),
        "authorization: Bearer \u{fc}\r\n".to_owned(),
        format!("x-token: {TOKEN}\r\n"),
    ] {
        for path in ["/v1/status", "/metrics", "/v1/openapi.json", "/nowhere", "/v1/stream"] {
            let reply = ask(&address, path, &format!("host: a\r\n{wrong}"));
            assert_eq!((reply.status, &*reply.code()), (401, "unauthorized"), "{wrong} {path}");
            assert_eq!(reply.header("www-authenticate"), Some("Bearer"));
            assert!(!String::from_utf8_lossy(&reply.body).contains(TOKEN));
        }
    }
    assert_eq!((status("/healthz", ""), status("/readyz", "")), (200, 200));
    // The socket knows its user.
    let status = daemon.get("/v1/status").to_string();
    assert!(!status.contains(TOKEN) && !daemon.log().contains(TOKEN), "{status}\n{}", daemon.log());
    daemon.finish();
}

#[test]
fn a_token_file_others_can_read_or_without_a_token_is_refused() {
    for (text, mode, why) in [
        (TOKEN, 0o644, "token file"),
        (TOKEN, 0o640, "token file"),
        ("", 0o600, "has no token"),
        ("\n", 0o600, "has no token"),
        ("short", 0o600, "has no token"),
        ("a token with spaces in it", 0o600, "has no token"),
        ("a-token-of-many-letters\nand-another-one-in-it", 0o600, "has no token"),
        ("a-token-of-m\u{e4}ny-letters", 0o600, "has no token"),
    ] {
        let reported = refused(with_token(text, mode));
        assert!(reported.contains("token file") && reported.contains(why), "{text:?} {reported}");
        assert!(text.trim().is_empty() || !reported.contains(text.trim()), "{reported}");
    }
    let missing = DaemonSetup::new().settings("listen: { token_file: $DIR/token }");
    let reported = refused(missing.argument("--tcp").argument("127.0.0.1:0"));
    assert!(reported.contains("token file"), "{reported}");
    let directory = DaemonSetup::new().file("token/x", "").settings("listen: { token_file: $DIR/token }");
    assert!(refused(directory).contains("token file"));
}

#[test]
fn a_web_page_needs_the_token_and_gets_no_cors_headers() {
    let daemon: Daemon = with_token(TOKEN, 0o600).serve();
    let reply = RawConnection::tcp(&daemon.tcp())
        .send(get("/v1/hooks").replace("\r\n\r\n", "\r\norigin: x\r\n\r\n"))
        .reply();
    assert_eq!(reply.status, 401);
    assert_eq!(reply.header("access-control-allow-origin"), None);
    daemon.finish();
}
