//! Waiting for conditions, never for a time.
#![allow(clippy::disallowed_methods, reason = "a paused clock would not wait for processes")]

use std::{
    thread,
    time::{Duration, Instant},
};

/// How long a test waits for anything before it fails. It bounds hangs, so it is long enough for a busy machine.
pub(crate) const LONGEST_WAIT: Duration = Duration::from_mins(1);

/// How long to wait before the condition is looked at again.
const PAUSE: Duration = Duration::from_millis(5);

/// Waits until a condition holds, and fails the test with what it waited for if it never does.
pub(crate) fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + LONGEST_WAIT;
    while !condition() {
        assert!(Instant::now() < deadline, "waited a minute for this: {what}");
        thread::sleep(PAUSE);
    }
}

/// [`wait_until`] for a task. Other tasks of its runtime go on meanwhile. The clock must not be paused.
pub(crate) async fn wait_until_async(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + LONGEST_WAIT;
    while !condition() {
        assert!(Instant::now() < deadline, "waited a minute for this: {what}");
        tokio::time::sleep(PAUSE).await;
    }
}
