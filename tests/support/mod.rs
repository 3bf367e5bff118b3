//! Helpers that several tests use. Each test binary includes them once.
#![allow(dead_code, reason = "each test binary uses its part")]
#![allow(clippy::unwrap_used, reason = "a failing helper fails its test")]

pub(crate) mod cases;
pub(crate) mod grafana;
#[cfg(all(feature = "cli", feature = "daemon"))]
pub(crate) mod load;
#[cfg(all(feature = "cli", feature = "daemon"))]
pub(crate) mod served;
pub(crate) mod server;
pub(crate) mod watch;
pub(crate) mod yaml;
