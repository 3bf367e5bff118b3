//! Handlers: how one hook is run once for one event.

pub(crate) mod agent;
pub mod command;
#[cfg(feature = "http")]
pub(crate) mod http;
#[cfg(feature = "_http-client")]
pub(crate) mod http_client;
pub(crate) mod links;
pub mod models;
pub(crate) mod native;
mod own_listeners;
pub(crate) mod private_file;
pub(crate) mod prompt;
mod runner;
mod select;

pub use models::ModelClient;

pub(crate) use own_listeners::OwnListeners;
#[cfg(feature = "daemon")]
pub(crate) use runner::WorkerCounts;
pub(crate) use runner::{
    BackgroundSwitch, CommandLimits, HandlerOutput, HookWorkers, HttpLimits, Invocation, Runner,
};
pub(crate) use select::{api_client, http_runner};
