//! Changes while the daemon cannot open any file.

use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit};

use super::*;
use crate::http_server::raw_connection::{RawConnection, get, post};

/// Lowers or restores the limit of open files of a daemon. Those that are open stay open.
fn limit_open_files(daemon: &Daemon, current: Option<u64>) {
    let pid = Pid::from_raw(daemon.pid().cast_signed()).unwrap();
    let Rlimit { current: usual, maximum } = getrlimit(Resource::Nofile);
    prlimit(Some(pid), Resource::Nofile, Rlimit { current: current.or(usual), maximum }).unwrap();
}

#[test]
fn without_descriptors_the_hooks_stay_until_the_files_can_be_read_again() {
    let daemon = shop(&[(GUARD, &guard("guard", "one"))]);
    settles(&daemon);
    let before = version(&daemon, "shop");
    // It needs no descriptor of the daemon later.
    let mut connection = RawConnection::unix(&daemon);
    assert_eq!(connection.send(get("/v1/status")).reply().status, 200);
    limit_open_files(&daemon, Some(0));
    fs::write(daemon.path().join(GUARD), guard("guard", "two")).unwrap();
    wait_until("it is told", || log_lines(&daemon, &["WARN", "for want of file descriptors"]) == 1);

    let known = connection.send(get("/v1/workspaces/shop")).reply().json();
    assert_eq!(
        (&known["version"], &known["hooks"], &known["errors"]),
        (&json!(before), &json!(1), &json!(0))
    );
    let remarks = known["diagnostics"].as_array().unwrap();
    assert!(remarks.iter().any(|remark| remark["code"] == "shortage"), "{known}");
    // No hook wants it, and no file is taken for a broken one.
    let mut other = event("shop");
    other["tool_name"] = json!("Read");
    let outcome = connection.send(post("/v1/events", other.to_string().as_bytes())).reply().json();
    assert_eq!(outcome["verdict"], "proceed", "{outcome}");

    limit_open_files(&daemon, None);
    becomes(&daemon, "two");
    wait_until("its end is told", || log_lines(&daemon, &["INFO", "every file can be read again"]) == 1);
    assert_eq!(log_lines(&daemon, &["for want of file descriptors"]), 1, "{}", daemon.log());
    assert_eq!(errors(&daemon, "shop"), 0);
    daemon.finish();
}
