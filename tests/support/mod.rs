//! Helpers that several tests use. Each test binary includes them once.
#![allow(dead_code, reason = "each test binary uses its part")]
#![allow(clippy::unwrap_used, reason = "a failing helper fails its test")]

pub(crate) mod cases;
pub(crate) mod child_processes;
#[cfg(all(feature = "cli", feature = "daemon"))]
pub(crate) mod daemon;
pub(crate) mod events;
pub(crate) mod grafana;
#[cfg(all(feature = "cli", feature = "daemon"))]
pub(crate) mod load;
pub(crate) mod native_hooks;
pub(crate) mod python;
pub(crate) mod servers;
pub(crate) mod static_files;
pub(crate) mod trust;
pub(crate) mod wait;
pub(crate) mod yaml;
