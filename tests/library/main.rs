//! The library as a host in Rust uses it: runs, sessions, workspaces, and hooks that are requests.
#![allow(clippy::unwrap_used, reason = "an error fails its test")]

#[path = "../support/mod.rs"]
mod support;

mod course;
mod host_api;
mod http;
mod models;
mod runs;
#[cfg(feature = "cli")]
mod secrets;
mod session;
mod workspaces;
