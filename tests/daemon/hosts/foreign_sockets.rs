//! Commands at a socket that another user serves, or could have put there: they send nothing to it.

use std::{fs, os::unix::fs::PermissionsExt, os::unix::fs::chown, process::Child, thread};

use rustix::process::geteuid;

use super::*;

/// Another user of the machine.
const STRANGER: u32 = 65_534;

/// A server that accepts connections, answers every one with an empty object, and counts the bytes it was sent.
const SERVER: &str = r#"
import os, socket, sys
path, count, uid = sys.argv[1], sys.argv[2], int(sys.argv[3])
out = open(count, "w")
os.setgroups([]); os.setgid(uid); os.setuid(uid)
listener = socket.socket(socket.AF_UNIX)
listener.bind(path)
os.chmod(path, 0o777)
listener.listen(16)
out.write("listening\n"); out.flush()
while True:
    peer, _ = listener.accept()
    data = b""
    try:
        data = peer.recv(65536)
        peer.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}")
    except OSError:
        pass
    out.write(f"{len(data)}\n"); out.flush()
    peer.close()
"#;

/// Whether the tests can be another user.
fn is_root() -> bool {
    let is_root = geteuid().is_root();
    if !is_root {
        eprintln!("NOT RUN: this needs root, to be another user");
    }
    is_root
}

/// A directory with the socket of a server that runs as a user.
struct Server {
    directory: tempfile::TempDir,
    child: Child,
}

impl Server {
    /// Starts it in a directory with this owner and this mode, as that user.
    fn start(owner: u32, mode: u32, uid: u32) -> Self {
        let directory = tempfile::tempdir().unwrap();
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let place = directory.path().join("place");
        fs::create_dir(&place).unwrap();
        fs::set_permissions(&place, fs::Permissions::from_mode(mode)).unwrap();
        chown(&place, Some(owner), Some(owner)).unwrap();
        let count = directory.path().join("count");
        let socket = place.join("hookyard.sock");
        let child = Command::new("python3")
            .args(["-c", SERVER])
            .args([socket.as_os_str(), count.as_os_str()])
            .arg(uid.to_string())
            .spawn()
            .expect("python3");
        let server = Self { directory, child };
        wait_until("the server listens", || server.count().starts_with("listening\n"));
        server
    }

    fn socket(&self) -> PathBuf {
        self.directory.path().join("place/hookyard.sock")
    }

    /// What the server was sent: a line for each connection.
    fn count(&self) -> String {
        fs::read_to_string(self.directory.path().join("count")).unwrap_or_default()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hookyard"));
        command
            .args(arguments)
            .args(["--socket".as_ref(), self.socket().as_os_str()])
            .current_dir(self.directory.path())
            .env("HOOKYARD_TEST_HOME", self.directory.path())
            .env_remove("HOOKYARD_HOOK")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Sees to it that no byte was sent to the server.
    fn assert_nothing_was_sent(&self) {
        let count = self.count();
        let sent: usize = count.lines().skip(1).map(|line| line.parse::<usize>().unwrap()).sum();
        assert_eq!(sent, 0, "{count}");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Sees to it that every command refuses the server, and that `relay` does as `--if-down` says.
fn assert_refused(server: &Server, why: &str) {
    let control = server.socket().to_str().unwrap().to_owned();
    for arguments in [
        &["status"][..],
        &["top", "--once"],
        &["log"],
        &["outbox", "list"],
        &["runs"],
        &["runs", "--cancel", "r", "--control-socket", &control],
        &["reload", "--control-socket", &control],
        &["workspaces"],
        &["workspaces", "add", "/", "--control-socket", &control],
        &["workspaces", "rm", "w", "--control-socket", &control],
    ] {
        let said = said(server.command(arguments), "");
        assert_eq!((said.out.as_str(), said.code), ("", Some(1)), "{arguments:?} {}", said.err);
        let text = said.err.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains(why) && text.contains("nothing was sent to it"), "{arguments:?} {}", said.err);
    }
    let event = json!({ "hook_event_name": "PreToolUse", "session_id": "s", "transcript_path": "/x",
                        "cwd": "/", "tool_name": "Bash", "tool_input": { "command": "ls" } })
    .to_string();
    let blocked = said(server.command(&["relay", "--dialect", "claude", "--if-down", "block"]), &event);
    assert!(blocked.code == Some(2) || blocked.out.contains("deny"), "{blocked:?}");
    let open = said(server.command(&["relay", "--dialect", "claude", "--if-down", "allow"]), &event);
    assert_eq!((open.out.as_str(), open.code), ("", Some(0)), "{}", open.err);
    assert!(open.err.contains(why), "{}", open.err);
    // They look at other things as well, and go on.
    for arguments in [
        &["doctor"][..],
        &["connect", "claude", "--control-socket", &control],
        &["disconnect", "claude", "--control-socket", &control],
    ] {
        let said = said(server.command(arguments), "");
        let text = [said.out.as_str(), &said.err].concat();
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains(why), "{arguments:?} {text}");
        assert!(arguments[0] == "disconnect" || said.code == Some(1), "{arguments:?} {:?} {text}", said.code);
    }
    server.assert_nothing_was_sent();
}

#[test]
fn the_socket_of_another_user_gets_nothing() {
    if !is_root() {
        return;
    }
    // A directory as `/tmp` is, and one of the other user's own.
    for (owner, mode, why) in
        [(0, 0o1777, "belongs to the user"), (STRANGER, 0o755, "is in a directory of the user")]
    {
        let server = Server::start(owner, mode, STRANGER);
        assert_refused(&server, why);
        assert_refused(&server, "(uid 65534)");
    }
}

#[test]
fn a_socket_that_others_could_replace_gets_nothing() {
    if !is_root() {
        return;
    }
    let server = Server::start(0, 0o777, 0);
    assert_refused(&server, "is in a directory that others can write to");
}

#[test]
fn a_socket_whose_file_was_made_ones_own_gets_nothing() {
    if !is_root() {
        return;
    }
    // The file was given away, but its listener is the other user's.
    let server = Server::start(0, 0o1777, STRANGER);
    chown(server.socket(), Some(0), Some(0)).unwrap();
    assert_refused(&server, "is served by the user");
}

#[test]
fn root_uses_the_socket_of_a_service_in_the_directory_that_root_gave_it() {
    if !is_root() {
        return;
    }
    let run = Path::new("/run");
    let metadata = fs::metadata(run).unwrap();
    if std::os::unix::fs::MetadataExt::uid(&metadata) != 0 || metadata.permissions().mode() & 0o022 != 0 {
        eprintln!("NOT RUN: /run is not a directory that only root can write to");
        return;
    }
    let directory = tempfile::Builder::new().prefix("hookyard-test").tempdir_in(run).unwrap();
    chown(directory.path(), Some(STRANGER), Some(STRANGER)).unwrap();
    let socket = directory.path().join("hookyard.sock");
    let count = directory.path().join("count");
    let mut child = Command::new("python3")
        .args(["-c", SERVER])
        .args([socket.as_os_str(), count.as_os_str()])
        .arg(STRANGER.to_string())
        .spawn()
        .expect("python3");
    wait_until("the server listens", || fs::read_to_string(&count).is_ok_and(|text| text == "listening\n"));
    let client = hookyard::daemon::Client::new(&socket).timeout(LONGEST_WAIT);
    let answer =
        thread::scope(|scope| scope.spawn(|| client.send("GET", "/v1/status", None)).join().unwrap());
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(answer.unwrap().status, 200);
}
