//! Tests of what root may do and others may not: root leaves them to another user.

#![allow(clippy::disallowed_methods, reason = "the test itself is run again")]

use std::{
    env, io,
    process::{Command, Output},
};

use rustix::process::geteuid;

/// Whether this test, by its path in the program, has been run by another user, since root runs it here. Otherwise whoever
/// runs it does so.
pub(crate) fn has_run(test: &str) -> bool {
    if !geteuid().is_root() {
        return false;
    }
    let tests = env::current_exe().unwrap();
    let [tests, program] = [tests.to_str().unwrap(), env!("CARGO_BIN_EXE_hookyard")];
    let can_run = |path: &str| as_nobody("test", &["-x", path]).is_ok_and(|done| done.status.success());
    if !can_run(tests) || !can_run(program) {
        println!("skipped: no other user can run it here");
        return true;
    }
    let done = as_nobody(tests, &["--exact", test]).unwrap();
    let shown = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success() && shown.contains("1 passed"), "{done:?}");
    true
}

fn as_nobody(program: &str, arguments: &[&str]) -> io::Result<Output> {
    let mut command = Command::new("setpriv");
    command.args(["--reuid", "65534", "--clear-groups", "--", program]).args(arguments).output()
}
