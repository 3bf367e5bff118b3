//! What hooks leave is ended through a cgroup, where one is delegated to the daemon.
#![allow(clippy::disallowed_methods, reason = "the daemon is started in a cgroup by a shell")]

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::support::{
    daemon::DaemonSetup,
    trust,
    wait::{LONGEST_WAIT, wait_until},
};

/// Leaves the process group, the standard streams and the environment of its hook behind.
const HIDDEN: &str = "name: hidden\nevents: [before_tool_dispatch]\nhandler:\n  type: command\n  \
    command: env -i setsid sh -c 'echo $$ > pid.new; mv pid.new pid; exec sleep 600' </dev/null >/dev/null 2>&1 & while [ ! -e pid ]; do sleep 0.01; done\n";

/// A cgroup that is marked as delegated; removed at the end.
struct Delegated(PathBuf);

impl Delegated {
    /// Returns nothing where this test may make none.
    fn new() -> Option<Self> {
        let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
        let mount = mounts.lines().find(|line| line.contains(" - cgroup2 "))?.split(' ').nth(4)?.to_owned();
        let path = Path::new(&mount).join(format!("hookyard-test-{}", std::process::id()));
        fs::create_dir(&path).ok()?;
        let delegated = Self(path);
        let name = "user.delegate";
        rustix::fs::setxattr(&delegated.0, name, b"1", rustix::fs::XattrFlags::empty()).ok()?;
        Some(delegated)
    }
}

impl Drop for Delegated {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

impl Delegated {
    /// Starts a daemon in it that serves the workspace `shop` of a directory.
    fn serve(&self, here: &Path, socket: &Path) -> ServingChild {
        let started = Command::new("/bin/sh")
            .args(["-c", "echo $$ > \"$0/cgroup.procs\" && exec \"$@\""])
            .arg(&self.0)
            .arg(env!("CARGO_BIN_EXE_hookyard"))
            .args(["serve".as_ref(), "--workspace".as_ref(), here.join("shop").as_os_str()])
            .args(["--socket".as_ref(), socket.as_os_str()])
            .args(trust::OFF)
            .env("HOOKYARD_TEST_HOME", here.join("home"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        ServingChild(started.unwrap())
    }
}

/// A daemon, killed with its test if it must be.
struct ServingChild(Child);

impl ServingChild {
    /// Ends it as its users do.
    fn stop(&mut self) {
        kill_process(Pid::from_child(&self.0), Signal::TERM).unwrap();
        assert!(self.0.wait().unwrap().success());
    }
}

impl Drop for ServingChild {
    fn drop(&mut self) {
        if matches!(self.0.try_wait(), Ok(None)) {
            // Both fail only if it has just ended.
            drop(self.0.kill());
            drop(self.0.wait());
        }
    }
}

/// Sends an event as soon as the daemon takes events.
fn send_first_event(socket: &Path) {
    let client = hookyard::daemon::Client::new(socket).timeout(LONGEST_WAIT);
    let event = json!({ "event": "before_tool_dispatch", "session_id": "s", "run_id": "r", "workspace_id": "shop",
                        "tool_name": "Bash", "tool_input": {} });
    let body = event.to_string();
    let answer = || client.send("POST", "/v1/events", Some(body.as_bytes()));
    wait_until("it takes events", || answer().is_ok_and(|answer| answer.status == 200));
}

#[test]
#[cfg_attr(hookyard_portable, ignore = "there are no cgroups")]
fn a_process_that_hides_from_its_hook_has_no_control() {
    let Some(cgroup) = Delegated::new() else {
        eprintln!("skipped: no cgroup v2 can be delegated here");
        return;
    };
    let setup = DaemonSetup::new();
    let (here, socket) = (setup.path(), setup.path().join("socket"));
    let reload = format!("{} reload --socket {}", env!("CARGO_BIN_EXE_hookyard"), socket.display());
    // The process group, the parents and the environment of the hook are gone when it asks.
    let hidden = format!(
        "(env -i setsid sh -c ': >begun; while kill -0 '$$' 2>/dev/null; do sleep 0.01; done; {reload} >out 2>&1; \
         echo $? >code.new; mv code.new code' </dev/null >/dev/null 2>&1 &); \
         while [ ! -e begun ]; do sleep 0.01; done"
    );
    let handler = json!({ "type": "command", "command": hidden });
    let hook = json!({ "name": "hidden", "events": ["before_tool_dispatch"], "handler": handler });
    let setup = setup.file("shop/.openharness/hooks/hidden.yaml", &hook.to_string());
    let mut daemon = cgroup.serve(&here, &socket);
    send_first_event(&socket);
    let code = here.join("shop/code");
    wait_until("the hidden process has asked", || code.exists());
    let output = fs::read_to_string(here.join("shop/out")).unwrap();
    assert_eq!(fs::read_to_string(code).unwrap().trim(), "1", "{output}");
    assert!(output.contains("the request comes from a hook"), "{output}");
    let control = hookyard::daemon::Client::new(hookyard::daemon::default_control_socket(&socket));
    let reloaded = control.timeout(LONGEST_WAIT).send("POST", "/v1/reload", None).unwrap();
    assert_eq!(reloaded.status, 200, "others have control");
    daemon.stop();
    drop(setup);
}

#[test]
#[cfg_attr(hookyard_portable, ignore = "there are no cgroups")]
fn a_process_that_hides_from_its_hook_is_ended_when_the_daemon_stops() {
    let Some(cgroup) = Delegated::new() else {
        eprintln!("skipped: no cgroup v2 can be delegated here");
        return;
    };
    let setup = DaemonSetup::new().file("shop/.openharness/hooks/hidden.yaml", HIDDEN);
    let (here, socket) = (setup.path(), setup.path().join("socket"));
    let mut daemon = cgroup.serve(&here, &socket);
    send_first_event(&socket);
    let pid = || fs::read_to_string(here.join("shop/pid")).ok()?.trim().parse::<i32>().ok();
    wait_until("the process has hidden", || pid().is_some());
    let hidden = pid().unwrap();
    let is_alive =
        || fs::read_to_string(format!("/proc/{hidden}/stat")).is_ok_and(|stat| !stat.contains(") Z "));
    assert!(is_alive());
    daemon.stop();
    let is_gone = !is_alive();
    if !is_gone {
        let _ = kill_process(Pid::from_raw(hidden).unwrap(), Signal::KILL);
    }
    assert!(is_gone, "the process outlived the daemon");
    assert!(
        fs::read_dir(&cgroup.0).unwrap().flatten().all(|entry| !entry.path().is_dir()),
        "a cgroup is left"
    );
}
