//! Handlers: how a hook is run once. Owns processes, requests, dialogues with models and closures; refuses to know
//! runs, plans or other hooks.

pub(crate) mod agent;
pub mod command;
pub(crate) mod http;
pub mod models;
pub(crate) mod native;
pub(crate) mod prompt;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;

pub use models::ModelClient;

use crate::{
    model::{Event, Failure, RawReply, TokenUsage},
    registry::RegisteredHook,
    telemetry::HookMeters,
};

/// What running a hook once came to.
#[derive(Debug)]
pub(crate) struct Brought {
    /// What it brought back, or why it brought nothing.
    pub(crate) result: Result<RawReply, Failure>,
    /// What was odd about how it was run, for the operator.
    pub(crate) warnings: Vec<String>,
    /// What it cost, if a model was asked and said so.
    pub(crate) tokens: Option<TokenUsage>,
}

impl From<Result<RawReply, Failure>> for Brought {
    fn from(result: Result<RawReply, Failure>) -> Self {
        Self { result, warnings: Vec::new(), tokens: None }
    }
}

/// Runs the handlers of one kind.
pub(crate) trait Runner: std::fmt::Debug + Send + Sync {
    /// Runs a hook once and returns what that came to, at the latest when the invocation's timeout and what it
    /// takes to stop the handler are over. A cancelled token stops it early; so does dropping the future, and
    /// neither may leave anything running.
    fn run<'a>(&'a self, invocation: &'a Invocation, cancel: &'a CancellationToken)
    -> BoxFuture<'a, Brought>;

    /// The hooks of a workspace are these from now on: what is kept between events for others is given up.
    fn reloaded(&self, _root: &Path, _hooks: &[Arc<RegisteredHook>]) {}

    /// Ends what is kept between events.
    fn stop(&self) {}
}

/// One hook to be run once for one event.
#[derive(Debug)]
pub(crate) struct Invocation {
    pub(crate) hook: Arc<RegisteredHook>,
    pub(crate) meters: Arc<HookMeters>,
    /// The event as the host sent it; what hooks changed since is in the envelope.
    pub(crate) event: Arc<Event>,
    /// The workspace's directory.
    pub(crate) root: PathBuf,
    /// What the hook is told.
    pub(crate) envelope: Bytes,
    /// The variables its dialect gives it, if it is a process.
    pub(crate) environment: Vec<(&'static str, String)>,
    /// The longest it may take.
    pub(crate) timeout: Duration,
}
