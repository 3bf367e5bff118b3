//! `serve --replace` that comes to nothing: daemons that do not start, give up, hang, are killed, or may not take over.

use std::{
    fs,
    io::{BufRead, BufReader, IoSlice, Write},
    mem::MaybeUninit,
    os::{
        fd::AsFd,
        unix::{
            fs::PermissionsExt,
            net::{UnixListener, UnixStream},
        },
    },
    path::{Path, PathBuf},
    thread,
};

use rustix::{
    fs::FlockOperation,
    net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg},
    process::Signal,
};
use serde_json::{Value, json};

use crate::{
    replace::{event, files, late_event, serves, setting, successor_of},
    support::{
        daemon::{Daemon, read},
        wait::{LONGEST_WAIT, wait_until},
    },
};

/// A store of a later version, which a daemon has closed. The version is in the head of its file.
fn later_store(directory: &Path) -> PathBuf {
    let mut daemon = setting().settings("data: $DIR/data").serve();
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.wait().code(), Some(0), "{}", daemon.log());
    let mut store = fs::read(daemon.path().join("data/runs.db")).unwrap();
    store[60..64].copy_from_slice(&99_u32.to_be_bytes());
    let later = directory.join("later");
    fs::create_dir(&later).unwrap();
    fs::write(later.join("runs.db"), store).unwrap();
    fs::set_permissions(&later, PermissionsExt::from_mode(0o700)).unwrap();
    fs::set_permissions(later.join("runs.db"), PermissionsExt::from_mode(0o600)).unwrap();
    later
}

#[test]
fn a_daemon_that_does_not_start_says_why_and_replaces_nothing() {
    let mut daemon = setting().settings("data: $DIR/data").serve();
    let pid = daemon.pid();
    let here = daemon.path();
    let readable = here.join("readable.token");
    fs::write(&readable, "0123456789abcdef0123456789abcdef").unwrap();
    fs::set_permissions(&readable, PermissionsExt::from_mode(0o644)).unwrap();
    let token = format!("listen.token_file={}", readable.display());
    let data = format!("data={}", later_store(&here).display());
    let attempts = [
        (["--set", "audit.to=/nowhere/at/all/audit.jsonl"], "/nowhere/at/all/audit.jsonl"),
        (["--set", "listen.token_file=/nowhere"], "/nowhere"),
        (["--set", &token], "readable.token"),
        (["--tcp", "192.0.2.1:1"], "192.0.2.1:1"),
        (["--set", "no_such_setting=1"], "no_such_setting"),
        (["--set", &data], "has the format 99, and this hookyard knows"),
    ];
    for (number, (broken, why)) in attempts.into_iter().enumerate() {
        let said = daemon.log().len();
        let mut successor = daemon.replace_with(&broken);
        assert_eq!(successor.wait().code(), Some(1), "{broken:?}");
        let log = successor.log().split_off(said);
        assert!(log.contains(why), "{broken:?}: {log}");
        assert_eq!(daemon.get("/v1/status")["pid"], pid, "{broken:?}");
        assert_eq!(daemon.post("/v1/events", &event("r", "Bash"))["verdict"], "block");
        // It has its store again.
        assert_eq!(daemon.post("/v1/events", &event(&format!("h{number}"), "Halts"))["verdict"], "halt");
        assert_eq!(daemon.get("/v1/status")["data"]["unsaved_halts"], 0, "{broken:?}");
        assert_eq!(daemon.send("GET", "/readyz", None).status, 200);
    }
    daemon.signal(Signal::KILL);
    daemon.wait();
    let daemon = daemon.again().serve();
    assert_eq!(daemon.get("/v1/status")["data"]["restored"], 6);
    daemon.finish();
}

/// A successor that the daemon has connected to, and the path of its socket.
fn offered(daemon: &Daemon) -> (UnixStream, PathBuf) {
    let path = daemon.path().join("meeting");
    let listener = UnixListener::bind(&path).unwrap();
    fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
    let body = json!({ "socket": path }).to_string();
    // The daemon may still take back what the last successor has given up.
    wait_until("it offers its listeners", || {
        let answer = daemon.control().send("POST", "/v1/handover", Some(body.as_bytes())).unwrap();
        let answered: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        assert!(answer.status == 202 || answered["error"]["code"] == "handover_under_way", "{answered}");
        answer.status == 202
    });
    let (stream, _) = listener.accept().unwrap();
    stream.set_read_timeout(Some(LONGEST_WAIT)).unwrap();
    let second = daemon.control().send("POST", "/v1/handover", Some(body.as_bytes())).unwrap();
    assert_eq!(second.status, 409, "one at a time");
    (stream, path)
}

/// A successor that says these lines, each after one of the predecessor, and then is gone.
fn give_up_after(daemon: &Daemon, lines: &[&str]) {
    let (stream, path) = offered(daemon);
    let mut reader = BufReader::new(&stream);
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    let offer: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(offer["pid"], daemon.pid());
    for (index, own) in lines.iter().enumerate() {
        if index > 0 {
            line.clear();
            reader.read_line(&mut line).unwrap();
            assert!(!line.is_empty());
        }
        writeln!(&stream, "{own}").unwrap();
    }
    fs::remove_file(&path).unwrap();
}

#[test]
fn a_successor_that_gives_up_replaces_nothing() {
    let daemon = setting().serve();
    let steps: [&[&str]; 5] =
        [&[], &[r#""ready""#], &[r#""ready""#, r#""loaded""#], &[r#""started""#], &["{"]];
    for lines in steps {
        give_up_after(&daemon, lines);
        assert_eq!(daemon.post("/v1/events", &event("r", "Bash"))["verdict"], "block", "{lines:?}");
        wait_until("it is ready", || daemon.send("GET", "/readyz", None).status == 200);
    }
    let successor = successor_of(&daemon);
    successor.finish();
}

#[test]
fn a_successor_that_hangs_when_it_may_begin_is_reported() {
    let daemon = setting().serve();
    let (stream, path) = offered(&daemon);
    let mut reader = BufReader::new(&stream);
    writeln!(&stream, "\"ready\"\n\"loaded\"").unwrap();
    let mut line = String::new();
    while !line.contains("\"go\"") {
        line.clear();
        reader.read_line(&mut line).unwrap();
        assert!(!line.is_empty());
    }
    wait_until("it is reported", || daemon.log().contains("was told to begin and does not"));
    assert!(daemon.log().contains(&std::process::id().to_string()), "{}", daemon.log());
    fs::remove_file(&path).unwrap();
    drop(stream);
    assert_eq!(daemon.post("/v1/events", &event("r", "Bash"))["verdict"], "block");
    daemon.finish();
}

#[test]
fn a_daemon_that_gives_up_its_takeover_leaves_nothing() {
    let daemon = setting().serve();
    let is_meeting = |name: &String| Path::new(name).extension().is_some_and(|ending| ending == "take");
    let is_there = || files(&daemon.path()).iter().any(is_meeting);
    daemon.signal(Signal::STOP);
    let mut successor = daemon.replace();
    wait_until("it asks", is_there);
    successor.signal(Signal::TERM);
    successor.wait();
    assert!(!is_there());
    daemon.signal(Signal::CONT);
    assert_eq!(daemon.post("/v1/events", &event("r", "Bash"))["verdict"], "block");
    daemon.finish();
}

/// A daemon that offers its listeners, sends these lines, and is killed, or only closes the connection. Returns the daemon
/// that was to take over.
fn gone_after(lines: &[&str], is_killed: bool) -> Daemon {
    let setting = setting();
    let here = setting.path().canonicalize().unwrap();
    let listen = |name: &str| {
        let listener = UnixListener::bind(here.join(name)).unwrap();
        fs::set_permissions(here.join(name), PermissionsExt::from_mode(0o600)).unwrap();
        listener
    };
    let (events, control) = (listen("hookyard.sock"), listen("hookyard-control.sock"));
    // A running daemon has locked it.
    let ledger = fs::File::create(here.join("hookyard.sock.groups")).unwrap();
    ledger.set_permissions(PermissionsExt::from_mode(0o600)).unwrap();
    rustix::fs::flock(&ledger, FlockOperation::LockExclusive).unwrap();
    let successor = setting.argument("--replace").spawn();
    let (_, (mut stream, _)) = (control.accept().unwrap(), control.accept().unwrap());
    let link = UnixStream::connect(meeting_point(&stream)).unwrap();
    let listener = |role: &str, name: &str| json!({ "role": role, "path": here.join(name), "of_service_manager": false });
    let listeners = [listener("events", "hookyard.sock"), listener("control", "hookyard-control.sock")];
    let offer =
        json!({ "protocol": 2, "pid": std::process::id(), "listeners": listeners }).to_string() + "\n";
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut rights = SendAncillaryBuffer::new(&mut space);
    let descriptors = [events.as_fd(), control.as_fd()];
    assert!(rights.push(SendAncillaryMessage::ScmRights(&descriptors)));
    let sent = sendmsg(&link, &[IoSlice::new(offer.as_bytes())], &mut rights, SendFlags::empty()).unwrap();
    assert_eq!(sent, offer.len());
    for line in lines {
        writeln!(&link, "{line}").unwrap();
    }
    write!(stream, "HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n").unwrap();
    drop(stream);
    // It takes the other ledger once it has the listeners.
    wait_until("it has them", || here.join("hookyard.sock.groups-2").exists());
    if is_killed {
        drop((link, ledger, events, control));
        return successor;
    }
    drop(link);
    let mut successor = successor;
    assert_eq!(successor.wait().code(), Some(1), "{}", successor.log());
    successor
}

#[test]
fn a_daemon_goes_on_if_the_one_that_it_replaces_is_killed() {
    let (workspaces, released) = (r#"{"workspaces":{}}"#, r#"{"released":{}}"#);
    for lines in [&[][..], &[workspaces], &[workspaces, released]] {
        let successor = gone_after(lines, true);
        serves(&successor, successor.pid());
        assert_eq!(successor.post("/v1/events", &event("r", "Bash"))["verdict"], "block", "{lines:?}");
        assert_eq!(successor.post("/v1/events", &event("h", "Halts"))["verdict"], "halt", "{lines:?}");
        assert!(successor.log().contains("goes on in its place"), "{}", successor.log());
        successor.finish();
        // One that only does not hand over goes on, and keeps its sockets.
        let refused = gone_after(lines, false);
        assert!(refused.log().contains("cannot take over"), "{}", refused.log());
    }
}

#[test]
fn of_two_daemons_that_replace_a_third_one_wins() {
    for _ in 0..3 {
        let mut daemon = setting().serve();
        let mut successors = [daemon.replace(), daemon.replace()];
        let mut lost = None;
        wait_until("one of them gives up", || {
            lost = successors.iter_mut().position(Daemon::has_ended);
            lost.is_some()
        });
        let [first, second] = successors;
        let (mut loser, winner) = if lost == Some(0) { (first, second) } else { (second, first) };
        // It was refused, or it was first and has been replaced itself.
        assert!([Some(0), Some(1)].contains(&loser.wait().code()), "{}", loser.log());
        serves(&winner, winner.pid());
        assert_eq!(daemon.wait().code(), Some(0), "{}", daemon.log());
        assert_eq!(winner.post("/v1/events", &event("r", "Bash"))["verdict"], "block");
        winner.finish();
    }
}

#[test]
fn one_daemon_finishes_at_a_time() {
    let mut first = setting().serve();
    let mut late = late_event(&first);
    let second = successor_of(&first);
    let mut third = second.replace();
    assert_eq!(third.wait().code(), Some(1), "{}", third.log());
    assert!(third.log().contains("still finishes its events"), "{}", third.log());
    assert_eq!(second.get("/v1/status")["pid"], second.pid());
    fs::write(first.path().join("shop/go"), "").unwrap();
    assert_eq!(late.reply().json()["verdict"], "halt");
    assert_eq!(first.wait().code(), Some(0), "{}", first.log());
    // The halt of the first is known to the third.
    let mut third = None;
    wait_until("the daemon takes back what the other has given up", || {
        let mut another = second.replace();
        wait_until("it serves, or has given up", || {
            another.has_ended() || {
                let status = another.client().send("GET", "/v1/status", None);
                status.is_ok_and(|answer| read(&answer)["pid"] == another.pid())
            }
        });
        let serves = !another.has_ended();
        third = serves.then_some(another);
        serves
    });
    let third = third.unwrap();
    assert_eq!(third.post("/v1/events", &event("late", "Read"))["verdict"], "halt");
    let mut second = second;
    assert_eq!(second.wait().code(), Some(0), "{}", second.log());
    third.finish();
}

#[test]
fn without_a_daemon_to_replace_it_starts_as_usual() {
    let mut daemon = setting().argument("--replace").serve();
    assert_eq!(daemon.post("/v1/events", &event("r", "Bash"))["verdict"], "block");
    daemon.signal(Signal::KILL);
    daemon.wait();
    daemon.again().argument("--replace").serve().finish();
}

#[test]
fn only_who_controls_the_daemon_can_take_over() {
    let daemon = setting().serve();
    let place = tempfile::tempdir().unwrap();
    fs::set_permissions(place.path(), PermissionsExt::from_mode(0o700)).unwrap();
    let body = json!({ "socket": place.path().join("s") }).to_string();
    let refused = daemon.client().send("POST", "/v1/handover", Some(body.as_bytes())).unwrap();
    assert_eq!(refused.status, 403);
    // Nobody listens there.
    let refused = daemon.control().send("POST", "/v1/handover", Some(body.as_bytes())).unwrap();
    assert_eq!(refused.status, 409, "{}", String::from_utf8_lossy(&refused.body));
    assert_eq!(daemon.post("/v1/events", &event("r", "Bash"))["verdict"], "block");
    daemon.finish();
}

/// Where a daemon is to offer its listeners, as the request says that it gets here.
fn meeting_point(stream: &UnixStream) -> PathBuf {
    let mut request = String::new();
    let mut reader = BufReader::new(stream);
    while !request.contains('}') {
        let bytes = reader.fill_buf().unwrap();
        assert!(!bytes.is_empty(), "{request}");
        request.push_str(&String::from_utf8_lossy(bytes));
        let length = bytes.len();
        reader.consume(length);
    }
    let (_, body) = request.split_once("\r\n\r\n").unwrap();
    let body: Value = serde_json::from_str(body).unwrap();
    body["socket"].as_str().unwrap().into()
}

/// A daemon of another version, at the sockets of a setting. It answers the request for its listeners with this status, and
/// makes this offer.
fn other_version(control: &UnixListener, status: &str, offer: Option<&str>) {
    // One connection shows its process, the other has the request.
    let (_, (mut stream, _)) = (control.accept().unwrap(), control.accept().unwrap());
    let path = meeting_point(&stream);
    if let Some(offer) = offer {
        let mut link = UnixStream::connect(path).unwrap();
        writeln!(link, "{offer}").unwrap();
    }
    write!(stream, "HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n").unwrap();
}

#[test]
fn a_daemon_of_another_version_is_left_alone() {
    let listeners = r#"[{"role":"events","path":"/s","of_service_manager":false}]"#;
    let without = format!(r#"{{"protocol":2,"pid":1,"listeners":{listeners}}}"#);
    for (status, offer, expected) in [
        ("404 Not Found", None, "does not hand over"),
        ("202 Accepted", Some(r#"{"protocol":99,"pid":1,"listeners":[]}"#), "by another protocol (99)"),
        ("202 Accepted", Some("nonsense"), "cannot take over"),
        ("202 Accepted", Some(&without), "cannot take over"),
    ] {
        let setting = setting();
        let path = setting.path().join("hookyard-control.sock");
        let control = UnixListener::bind(&path).unwrap();
        fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
        let answers = thread::spawn({
            let offer = offer.map(str::to_owned);
            move || other_version(&control, status, offer.as_deref())
        });
        let mut successor = setting.argument("--replace").spawn();
        assert_eq!(successor.wait().code(), Some(1), "{}", successor.log());
        answers.join().unwrap();
        let log = successor.log().split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(log.contains(expected), "{expected}: {log}");
        assert!(path.exists(), "its socket is its own");
    }
}
