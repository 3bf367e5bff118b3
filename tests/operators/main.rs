//! What operators see: metrics, dashboards, alerts, logs, audit, traces and the live view.
#![allow(clippy::unwrap_used, reason = "an error fails its test")]

#[path = "../support/mod.rs"]
mod support;

mod audit;
mod dashboards;
mod incidents;
mod invocation_counts;
mod logs;
mod metrics;
mod otel;
mod prometheus;
mod secrets;
mod top;
