//! The doors of the daemon, seen by those who should not come in, or who come in and misbehave. The real program, through
//! its socket and its TCP address.

#![allow(
    clippy::disallowed_methods,
    reason = "the clock and the programs of the daemon's clients are real ones"
)]

mod events;
mod http2;
mod limits;
mod socket;
mod speech;
mod tcp;
mod wire;

use rustix::process::geteuid;

/// Whether the tests can be other users. Says so if not: what is not tried is not held.
fn is_root() -> bool {
    let is_root = geteuid().is_root();
    if !is_root {
        eprintln!("NOT RUN: this needs root, to be another user");
    }
    is_root
}
