//! Sockets that the service manager opens and hands over.

use std::{
    net::{TcpListener, UdpSocket},
    os::{
        fd::{AsFd, AsRawFd},
        unix::{
            fs::PermissionsExt,
            net::{UnixDatagram, UnixListener},
        },
    },
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
};

use hookyard::daemon::Client;
use rustix::{
    io::{FdFlags, fcntl_setfd},
    process::Signal,
};
use serde_json::{Value, json};

use crate::support::{
    daemon::{DaemonSetup, read},
    wait::{LONGEST_WAIT, wait_until},
};

/// Hands descriptors over as systemd does: from 3 on, with their number, their names and the process in the environment.
const LAUNCHER: &str = r#"
import fcntl, os, sys
pairs = [pair.split("=") for pair in sys.argv[1].split(",")]
high = [fcntl.fcntl(int(number), fcntl.F_DUPFD_CLOEXEC, 100) for number, _ in pairs]
for index, number in enumerate(high):
    os.dup2(number, 3 + index, inheritable=True)
os.environ["LISTEN_FDS"] = sys.argv[2] or str(len(pairs))
os.environ["LISTEN_FDNAMES"] = ":".join(name for _, name in pairs)
os.environ["LISTEN_PID"] = sys.argv[3] or str(os.getpid())
os.execv(sys.argv[4], sys.argv[4:])
"#;

/// What is handed over, and what is said of it.
struct Handed<'a> {
    sockets: Vec<(&'a dyn AsFd, &'a str)>,
    count: &'a str,
    process: &'a str,
}

impl<'a> Handed<'a> {
    fn new(sockets: Vec<(&'a dyn AsFd, &'a str)>) -> Self {
        Self { sockets, count: "", process: "" }
    }

    /// A daemon that gets them.
    fn to(&self, setting: DaemonSetup) -> DaemonSetup {
        let pairs = self.sockets.iter().map(|(socket, name)| {
            fcntl_setfd(socket, FdFlags::empty()).expect("an open descriptor");
            format!("{}={name}", socket.as_fd().as_raw_fd())
        });
        let pairs: Vec<_> = pairs.collect();
        setting.launcher(&["python3", "-c", LAUNCHER, &pairs.join(","), self.count, self.process])
    }
}

const GUARD: &str = "name: guard\nevents: [before_tool_dispatch]\nmatcher: Bash\nhandler:\n  type: command\n  \
                     command: 'echo \"no shells here\" >&2; exit 2'\n";

fn setting() -> DaemonSetup {
    DaemonSetup::new()
        .file("shop/.openharness/hooks/guard.yaml", GUARD)
        .settings("workspaces: { shop: { root: $DIR/shop } }")
}

fn event() -> Value {
    json!({ "event": "before_tool_dispatch", "session_id": "s", "run_id": "r", "tool_name": "Bash", "tool_input": {} })
}

/// A listening socket that only this user can open.
fn private(path: &Path) -> UnixListener {
    let listener = UnixListener::bind(path).unwrap();
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o600)).unwrap();
    listener
}

/// The event socket and the control socket of a setting.
fn sockets(setting: &DaemonSetup) -> (UnixListener, UnixListener, PathBuf) {
    let path = setting.path().join("hookyard.sock");
    let control = setting.path().join("hookyard-control.sock");
    (private(&path), private(&control), path)
}

fn ask(path: &Path) -> Value {
    let client = Client::new(path).timeout(LONGEST_WAIT);
    read(&client.send("POST", "/v1/events", Some(event().to_string().as_bytes())).expect("an answer"))
}

#[test]
fn connections_wait_in_handed_over_sockets_while_the_daemon_restarts() {
    let setting = setting();
    let (events, control, path) = sockets(&setting);
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    let metrics = TcpListener::bind("127.0.0.1:0").unwrap();
    let lines = private(&path.with_file_name("lines.sock"));
    let handed = Handed::new(vec![
        (&tcp, "tcp"),
        (&control, "hookyard.socket"),
        (&events, "events"),
        (&metrics, "metrics"),
        (&lines, "lines"),
    ]);
    // Sent before there is a daemon.
    let early = thread::spawn({
        let path = path.clone();
        move || ask(&path)
    });
    let mut daemon = handed.to(setting).serve();
    assert_eq!(early.join().unwrap()["verdict"], "block");
    let status = daemon.get("/v1/status");
    assert_eq!(status["tcp"], tcp.local_addr().unwrap().to_string());
    assert_eq!(status["metrics"], metrics.local_addr().unwrap().to_string());
    assert_eq!(status["lines"], path.with_file_name("lines.sock").to_str().unwrap());
    for _ in 0..3 {
        daemon.signal(Signal::TERM);
        assert_eq!(daemon.wait().code(), Some(0), "{}", daemon.log());
        assert!(path.exists() && daemon.control_socket().exists(), "they are the service manager's");
        let waiting: Vec<_> = (0..8)
            .map(|_| {
                thread::spawn({
                    let path = path.clone();
                    move || ask(&path)
                })
            })
            .collect();
        daemon = handed.to(daemon.again()).serve();
        for waiting in waiting {
            assert_eq!(waiting.join().unwrap()["verdict"], "block");
        }
    }
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.wait().code(), Some(0), "{}", daemon.log());
}

/// What a daemon says that does not start with what it is handed.
fn refusal(setting: DaemonSetup, handed: &Handed<'_>) -> String {
    let mut daemon = handed.to(setting).spawn();
    assert_eq!(daemon.wait().code(), Some(1), "{}", daemon.log());
    daemon.log().split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn what_is_no_socket_of_its_own_is_refused() {
    let here = tempfile::tempdir().unwrap();
    let file = tempfile::tempfile().unwrap();
    let datagram = UnixDatagram::bind(here.path().join("d")).unwrap();
    let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
    let stream = UnixListener::bind(here.path().join("s")).unwrap();
    let connected = std::os::unix::net::UnixStream::connect(here.path().join("s")).unwrap();
    for (what, socket) in [
        ("a file", &file as &dyn AsFd),
        ("a datagram socket", &datagram),
        ("a UDP socket", &udp),
        ("a connection", &connected),
    ] {
        let said = refusal(setting(), &Handed::new(vec![(socket, "events")]));
        assert!(said.contains("the socket 1 that was handed over, \"events\","), "{what}: {said}");
    }
    let said = refusal(setting(), &Handed::new(vec![(&stream, "odd")]));
    assert!(said.contains("neither the event socket nor the control socket"), "{said}");
    let said = refusal(setting(), &Handed { count: "6", ..Handed::new(vec![(&stream, "events")]) });
    assert!(said.contains("at most 5 sockets"), "{said}");
    let said = refusal(setting(), &Handed { count: "2", ..Handed::new(vec![(&stream, "events")]) });
    assert!(said.contains("the socket 2 that was handed over"), "{said}");
    let said = refusal(setting(), &Handed { count: "x", ..Handed::new(vec![(&stream, "events")]) });
    assert!(said.contains("`LISTEN_FDS` is \"x\""), "{said}");
    drop(connected);
}

#[test]
fn a_socket_that_is_handed_over_twice_is_refused() {
    let setting = setting();
    let (events, control, _) = sockets(&setting);
    let said =
        refusal(setting, &Handed::new(vec![(&events, "events"), (&events, "events"), (&control, "control")]));
    assert!(said.contains("two sockets for events were handed over"), "{said}");
}

#[test]
fn one_socket_for_events_and_for_control_is_refused() {
    let setting = setting();
    let (events, ..) = sockets(&setting);
    let both = Handed::new(vec![(&events, "events"), (&events, "control")]);
    let said = refusal(setting, &both);
    assert!(said.contains("one socket was handed over for events and for control"), "{said}");
}

#[test]
fn a_socket_that_no_client_can_reach_is_refused() {
    for (other, expected) in [
        ("none", "its file was removed"),
        ("another", "its file was replaced by another one"),
        ("a dead one", "its file was replaced by another one"),
    ] {
        let setting = setting();
        let (events, control, path) = sockets(&setting);
        std::fs::remove_file(&path).unwrap();
        let another = (other != "none").then(|| private(&path)).filter(|_| other == "another");
        let said = refusal(setting, &Handed::new(vec![(&events, "events"), (&control, "control")]));
        assert!(said.contains(expected) && said.contains("restart what opened it"), "{other}: {said}");
        drop(another);
    }
}

#[test]
fn a_socket_that_others_can_open_is_refused() {
    let setting = setting();
    let (events, control, path) = sockets(&setting);
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o666)).unwrap();
    let said = refusal(setting, &Handed::new(vec![(&events, "events"), (&control, "control")]));
    assert!(said.contains("can be opened by other users"), "{said}");
}

#[test]
fn a_socket_of_another_user_is_refused() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("NOT RUN: only root can give a socket to another user");
        return;
    }
    let setting = setting();
    let (events, control, path) = sockets(&setting);
    std::os::unix::fs::chown(&path, Some(65_534), None).unwrap();
    let said = refusal(setting, &Handed::new(vec![(&events, "events"), (&control, "control")]));
    assert!(said.contains("a socket of another user"), "{said}");
}

#[test]
fn sockets_for_another_process_are_left_alone() {
    let other = tempfile::tempdir().unwrap();
    let listener = private(&other.path().join("s"));
    let handed = Handed { process: "1", ..Handed::new(vec![(&listener, "events")]) };
    let daemon = handed.to(setting()).serve();
    assert_eq!(daemon.post("/v1/events", &event())["verdict"], "block");
    daemon.finish();
}

#[test]
#[allow(clippy::disallowed_methods, reason = "the tool is asked whether it is there")]
fn systemd_activates_the_daemon_at_the_first_connection() {
    let found = Command::new("systemd-socket-activate").arg("--version").stdout(Stdio::null()).status();
    if !found.is_ok_and(|status| status.success()) {
        eprintln!("NOT RUN: systemd-socket-activate is not there");
        return;
    }
    let setting = setting();
    let path = setting.path().join("hookyard.sock");
    let control = setting.path().join("hookyard-control.sock");
    let home = format!("HOOKYARD_TEST_HOME={}", setting.path().join("home").display());
    let launcher = [
        "systemd-socket-activate",
        "-E",
        &home,
        "--fdname=events:control",
        "-l",
        path.to_str().unwrap(),
        "-l",
        control.to_str().unwrap(),
    ];
    let mut daemon = setting.launcher(&launcher).spawn();
    wait_until("the sockets are there", || path.exists() && control.exists());
    for socket in [&path, &control] {
        std::fs::set_permissions(socket, PermissionsExt::from_mode(0o600)).unwrap();
    }
    assert_eq!(ask(&path)["verdict"], "block");
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.wait().code(), Some(0), "{}", daemon.log());
}
