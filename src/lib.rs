//! A hook orchestrator for AI-agent hosts.

pub mod config;
pub mod dialect;
pub mod handler;
pub mod model;
mod orchestrator;
mod pool;
pub mod registry;
pub mod run;
mod supervisor;
mod telemetry;

pub use orchestrator::{
    Builder, DispatchError, LoadReport, NativeHook, Orchestrator, Overload, Run, RunCount, StartError,
};
pub use run::{Notice, RunPlace};
