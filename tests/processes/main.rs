//! The processes of hooks: how they start, what they are told, how they end, and that none is left.
#![allow(clippy::unwrap_used, reason = "an error fails its test")]

#[path = "../support/mod.rs"]
mod support;

mod bulkhead;
mod cancel;
mod commands;
mod direct;
mod escaped;
mod hostile;
#[cfg(feature = "cli")]
mod sandbox;
mod workers;
