//! The daemon: the real program, asked through its socket and its TCP address.
#![allow(clippy::unwrap_used, reason = "an error fails its test")]

#[path = "../support/mod.rs"]
mod support;

mod activation;
mod adoption;
mod balancers;
mod bundles;
mod cgroup;
mod cluster_mode;
mod content;
mod data_directory;
mod dead_letters;
mod decision_trace;
mod drain;
mod hidden_memory;
mod hostile_repository;
mod hosts;
mod http_server;
mod last_good;
mod lines;
mod nobody;
mod openapi;
mod outbox;
mod outbox_commands;
mod outbox_replace;
mod page;
#[cfg(feature = "rego")]
mod policies;
mod redelivery;
mod reload;
mod replace;
mod replace_failures;
mod replace_state;
mod restart;
mod rule_trial;
mod rules;
mod serve;
mod service_manager;
mod shipping;
mod shutdown;
mod synced;
mod trust;
mod unloaded;
mod what_if;
