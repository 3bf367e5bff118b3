//! The documents work as shown: their commands are run, their JSON and YAML is read.
#![allow(clippy::unwrap_used, reason = "an error fails its test")]

#[path = "../support/mod.rs"]
mod support;

mod capacity;
mod fleet;
mod operating;
mod readme;
#[cfg(feature = "rego")]
mod rego;
mod rules;
mod security;
