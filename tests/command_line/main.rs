//! The command line: output, exit codes, schemas and skeletons.
#![allow(clippy::unwrap_used, reason = "an error fails its test")]

#[path = "../support/mod.rs"]
mod support;
mod terminal;
mod trust;

mod authoring;
mod bundle;
mod cli;
mod connect;
mod doctor;
mod example_workspace;
mod nested;
mod on_demand;
mod packs;
mod serve_check;
