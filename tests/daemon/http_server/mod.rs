//! The HTTP server at its socket and its TCP address: access, limits, timeouts and invalid requests.

#![allow(
    clippy::disallowed_methods,
    reason = "the clock and the programs of the daemon's clients are real ones"
)]

mod denied_requests;
mod events;
mod http2;
mod limits;
pub(crate) mod raw_connection;
mod refused_requests;
mod requests;
mod rights;
mod shares;
mod socket;
mod tcp;
mod tokens;

use rustix::process::geteuid;

/// Whether the tests can be other users. Says so if not: what is not tried is not held.
fn is_root() -> bool {
    let is_root = geteuid().is_root();
    if !is_root {
        eprintln!("NOT RUN: this needs root, to be another user");
    }
    is_root
}
