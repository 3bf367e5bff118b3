//! Stands in for a handler whose feature is not compiled in.

use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use super::runner::{HandlerOutput, Invocation, Runner};
use crate::model::{Ended, Failure};

/// Fails every hook with `spawn_failed`, so that the hook's `on_error` decides.
#[derive(Debug)]
pub(super) struct UnavailableRunner;

impl Runner for UnavailableRunner {
    fn run<'a>(
        &'a self,
        invocation: &'a Invocation,
        _: &'a CancellationToken,
    ) -> BoxFuture<'a, HandlerOutput> {
        let handler = &invocation.hook.hook.handler;
        let feature = handler.missing_feature().unwrap_or_default();
        let kind = handler.kind();
        let message =
            format!("this build of hookyard runs no {kind} hooks; build it with the feature `{feature}`");
        Box::pin(std::future::ready(Err(Failure::new(Ended::SpawnFailed, message)).into()))
    }
}
