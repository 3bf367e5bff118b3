//! What systemd gets from the daemon, and its unit files.

use std::{
    io,
    os::unix::net::UnixDatagram,
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use rustix::process::Signal;

use crate::support::{daemon::DaemonSetup, wait::LONGEST_WAIT};

#[test]
fn the_watchdog_is_fed_while_the_daemon_answers() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("notify");
    let notifications = UnixDatagram::bind(&path).unwrap();
    notifications.set_read_timeout(Some(LONGEST_WAIT)).unwrap();
    let next = || -> io::Result<String> {
        let mut text = [0; 256];
        let length = notifications.recv(&mut text)?;
        Ok(String::from_utf8_lossy(&text[..length]).into_owned())
    };
    let daemon = DaemonSetup::new()
        .variable("NOTIFY_SOCKET", path.to_str().unwrap())
        .variable("WATCHDOG_USEC", "400000")
        .serve();
    assert_eq!(next().unwrap(), "READY=1");
    for _ in 0..3 {
        assert_eq!(next().unwrap(), "WATCHDOG=1");
    }
    daemon.signal(Signal::STOP);
    notifications.set_read_timeout(Some(Duration::from_millis(1200))).unwrap();
    // One may be under way.
    let after: Vec<_> = std::iter::from_fn(|| next().ok()).take(10).collect();
    assert!(after.len() < 3, "{after:?}");
    daemon.signal(Signal::CONT);
    notifications.set_read_timeout(Some(LONGEST_WAIT)).unwrap();
    assert_eq!(next().unwrap(), "WATCHDOG=1");
    daemon.finish();
    let rest: Vec<_> = std::iter::from_fn(|| next().ok()).take_while(|text| text != "STOPPING=1").collect();
    assert!(rest.iter().all(|text| text == "WATCHDOG=1"), "{rest:?}");
}

/// The name of a unit file, and whether it is one of a user's service manager.
const UNITS: [(&str, bool); 4] = [
    ("config/systemd/hookyard.service", false),
    ("config/systemd/hookyard.socket", false),
    ("config/systemd/user/hookyard.service", true),
    ("config/systemd/user/hookyard.socket", true),
];

#[test]
#[allow(clippy::disallowed_methods, reason = "the tool is asked what it thinks of the units")]
fn systemd_finds_no_fault_with_the_units() {
    let found = Command::new("systemd-analyze").arg("--version").stdout(Stdio::null()).status();
    if !found.is_ok_and(|status| status.success()) {
        eprintln!("NOT RUN: systemd-analyze is not there");
        return;
    }
    for of_user in [false, true] {
        let place = tempfile::tempdir().unwrap();
        let mut command = Command::new("systemd-analyze");
        command.args(of_user.then_some("--user")).arg("verify").env("XDG_RUNTIME_DIR", place.path());
        for (unit, _) in UNITS.iter().filter(|(_, user)| *user == of_user) {
            let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(unit)).unwrap();
            // The program is not installed where the unit says.
            let program = ["/usr/local/bin/hookyard", "%h/.cargo/bin/hookyard"];
            let text =
                program.iter().fold(text, |text, path| text.replace(path, env!("CARGO_BIN_EXE_hookyard")));
            let copy = place.path().join(Path::new(unit).file_name().unwrap());
            std::fs::write(&copy, text).unwrap();
            command.arg(copy);
        }
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success() && !said.contains("hookyard."), "{said}");
    }
}
