//! The socket: who may own its path, and who may connect.

use std::{
    fs,
    io::Read,
    os::unix::{
        fs::{FileTypeExt, MetadataExt, PermissionsExt, chown, symlink},
        net::UnixListener,
    },
    path::Path,
    process::Command,
};

use rustix::process::Signal;

use crate::{
    http_server::is_root,
    support::daemon::{Daemon, DaemonSetup, read},
    support::wait::wait_until,
};

/// What a daemon says that does not start.
fn refused(setting: DaemonSetup) -> (String, Daemon) {
    let mut daemon = setting.spawn();
    assert_eq!(daemon.wait().code(), Some(1), "{}", daemon.log());
    (daemon.log(), daemon)
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).expect("a file").mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("own files");
}

#[test]
fn the_sockets_belong_to_their_user_alone() {
    let daemon = DaemonSetup::new().serve();
    assert_eq!((mode(daemon.socket()), mode(&daemon.control_socket())), (0o600, 0o600));
    let names: Vec<_> =
        fs::read_dir(daemon.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(!names.iter().any(|name| name.to_string_lossy().starts_with(".hookyard-")), "{names:?}");
    daemon.finish();
}

#[test]
fn the_socket_of_a_dead_daemon_is_replaced() {
    let mut daemon = DaemonSetup::new().serve();
    daemon.signal(Signal::KILL);
    daemon.wait();
    assert!(daemon.socket().exists());
    daemon.again().serve().finish();
}

#[test]
fn a_clean_stop_leaves_no_files_beside_the_socket() {
    let mut daemon = DaemonSetup::new().serve();
    let record = daemon.path().join("hookyard.sock.groups");
    assert!(record.exists());
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.wait().code(), Some(0));
    assert!(!record.exists() && !daemon.socket().exists());
}

#[test]
fn a_running_daemon_is_not_replaced() {
    let daemon = DaemonSetup::new().serve();
    let inode = fs::metadata(daemon.socket()).unwrap().ino();
    let record = daemon.path().join("hookyard.sock.groups");
    // Also where the record of its process groups, which tells of it first, is gone.
    for _ in 0..2 {
        let second = DaemonSetup::new().socket(daemon.socket().to_str().unwrap());
        let (said, _) = refused(second);
        assert!(said.contains("another hookyard"), "{said}");
        fs::remove_file(&record).unwrap_or_default();
    }
    assert!(!record.exists(), "the refused daemon left a file");
    assert_eq!(fs::metadata(daemon.socket()).unwrap().ino(), inode);
    read(&daemon.send("GET", "/v1/status", None));
    daemon.finish();
}

#[test]
fn of_two_daemons_that_start_together_one_wins() {
    for _ in 0..5 {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().canonicalize().unwrap().join("s");
        let start = || DaemonSetup::new().socket(path.to_str().unwrap()).spawn();
        let mut daemons = [start(), start()];
        let mut lost = None;
        wait_until("one of them gives up", || {
            lost = daemons.iter_mut().position(Daemon::has_ended);
            lost.is_some()
        });
        let [first, second] = daemons;
        let (mut loser, winner) = if lost == Some(0) { (first, second) } else { (second, first) };
        assert_eq!(loser.wait().code(), Some(1));
        assert!(loser.log().contains("another hookyard"), "{}", loser.log());
        wait_until("the other takes events", || {
            winner.client().send("GET", "/readyz", None).is_ok_and(|answer| answer.status == 200)
        });
        winner.finish();
    }
}

#[test]
fn a_file_that_is_no_socket_of_its_own_is_kept() {
    let said = |make: &dyn Fn(&Path)| {
        let setting = DaemonSetup::new();
        let path = setting.path().join("hookyard.sock");
        make(&path);
        let before = fs::symlink_metadata(&path).unwrap();
        let (said, daemon) = refused(setting);
        let after = fs::symlink_metadata(daemon.socket()).unwrap();
        assert_eq!((before.ino(), before.mode()), (after.ino(), after.mode()));
        said
    };
    assert!(said(&|path| fs::write(path, "mine").unwrap()).contains("is not a socket"));
    assert!(said(&|path| fs::create_dir(path).unwrap()).contains("is not a socket"));
    assert!(said(&|path| symlink("/nowhere", path).unwrap()).contains("is a symbolic link"));
    let elsewhere = tempfile::tempdir().unwrap();
    let real = elsewhere.path().join("s");
    drop(UnixListener::bind(&real).unwrap());
    assert!(said(&|path| symlink(&real, path).unwrap()).contains("is a symbolic link"));
    assert!(fs::symlink_metadata(&real).unwrap().file_type().is_socket());
    if is_root() {
        let foreign = |path: &Path| {
            drop(UnixListener::bind(path).unwrap());
            chown(path, Some(65_534), None).unwrap();
        };
        assert!(said(&foreign).contains("is a socket of another user"));
    }
}

#[test]
fn an_unsafe_directory_for_the_socket_is_refused() {
    let said = |prepare: &dyn Fn(&Path)| {
        let setting = DaemonSetup::new().file("d/x", "").socket("d/s");
        let directory = setting.path().join("d");
        prepare(&directory);
        let (said, daemon) = refused(setting);
        assert!(!daemon.socket().exists());
        said
    };
    assert!(said(&|path| set_mode(path, 0o777)).contains("can be written by others"));
    assert!(said(&|path| set_mode(path, 0o775)).contains("can be written by others"));
    assert!(said(&|path| fs::remove_dir_all(path).unwrap()).contains("cannot be used"));
    let to_a_file = |path: &Path| {
        fs::remove_dir_all(path).unwrap();
        fs::write(path, "").unwrap();
    };
    assert!(said(&to_a_file).contains("is not a directory"));
    if is_root() {
        let foreign = |path: &Path| chown(path, Some(65_534), None).unwrap();
        assert!(said(&foreign).contains("belongs to another user"));
    }
    let sticky = DaemonSetup::new().file("d/x", "").socket("d/s");
    set_mode(&sticky.path().join("d"), 0o1777);
    sticky.serve().finish();
}

#[test]
fn a_path_too_long_is_refused_before_anything_is_made() {
    for length in [108, 200] {
        let setting = DaemonSetup::new();
        // Only the name itself is too long, so that what is made beside it would fit.
        let name = "s".repeat(length - setting.path().as_os_str().len() - 1);
        let (said, daemon) = refused(setting.socket(&name));
        assert!(said.contains("is longer than the 107 bytes"), "{said}");
        assert_eq!(fs::read_dir(daemon.path()).unwrap().count(), 3, "home, settings and log");
    }
    // Both sockets have their limit.
    let setting = DaemonSetup::new();
    let name = "s".repeat(107 - "-control".len() - setting.path().as_os_str().len() - 1);
    setting.socket(&name).serve().finish();
    let setting = DaemonSetup::new();
    let name = "s".repeat(107 - setting.path().as_os_str().len() - 1);
    let (said, _) = refused(setting.socket(&name));
    assert!(said.contains("-control is longer than the 107 bytes"), "{said}");
    let setting = DaemonSetup::new().settings("listen: { control_socket: $DIR/c }").socket(&name);
    let (directory, daemon) = (setting.path(), setting.spawn());
    wait_until("it takes events", || {
        daemon.client().send("GET", "/readyz", None).is_ok_and(|answer| answer.status == 200)
    });
    assert!(directory.join("c").exists());
}

#[test]
fn a_socket_that_replaced_its_own_is_not_removed() {
    let mut daemon = DaemonSetup::new().serve();
    fs::remove_file(daemon.socket()).unwrap();
    fs::write(daemon.socket(), "mine").unwrap();
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.wait().code(), Some(0));
    assert_eq!(fs::read_to_string(daemon.socket()).unwrap(), "mine");
}

#[test]
fn another_user_is_refused() {
    if !is_root() {
        return;
    }
    let daemon = DaemonSetup::new().serve();
    set_mode(&daemon.path(), 0o755);
    set_mode(daemon.socket(), 0o666);
    // Another user's program: it connects, and reads what it gets.
    let program = "import os, socket, sys\nos.setgid(65534); os.setuid(65534)\n\
                   s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1])\n\
                   try:\n  s.sendall(b'GET /v1/status HTTP/1.1\\r\\nhost: x\\r\\n\\r\\n')\n  print(s.recv(99))\n\
                   except OSError as e: print('refused', e.errno)\n";
    let output =
        Command::new("python3").args(["-c", program]).arg(daemon.socket()).output().expect("python3");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.starts_with("b''") || said.starts_with("refused"), "{said} {output:?}");
    assert!(daemon.log().contains("another user"), "{}", daemon.log());
    daemon.finish();
}

#[test]
fn a_listener_that_is_no_hookyard_is_not_replaced() {
    let setting = DaemonSetup::new();
    let path = setting.path().join("hookyard.sock");
    let listener = UnixListener::bind(&path).unwrap();
    let (said, _served) = refused(setting);
    assert!(said.contains("another hookyard listens"), "{said}");
    // It was asked whether it lives, and told nothing.
    let mut received = Vec::new();
    listener.accept().unwrap().0.read_to_end(&mut received).unwrap();
    assert_eq!(received, b"");
}
