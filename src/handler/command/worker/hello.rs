//! A worker that is started only to check its hello, for `hookyard check`.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::{
    end::{EndedWorker, WorkerEnd},
    event_loop,
    handle::{WorkerCapacity, WorkerHandle},
    limits::WorkerConfig,
};

/// Starts a worker, waits for its hello at most as long as a fleet would, and stops it. It has exited when the future
/// ends; when the future is dropped, it exits shortly after.
///
/// Returns why there is no hello.
pub(super) async fn probe(config: WorkerConfig) -> Result<(), String> {
    let (tell, ending) = oneshot::channel();
    let on_end = move |ended: &EndedWorker| drop(tell.send(ended.end.clone()));
    let handle = event_loop::start(config, Arc::new(WorkerCapacity::of(1)), || {}, on_end)
        .map_err(|error| error.to_string())?;
    let said_hello = handle.is_ready().await;
    let WorkerHandle { commands, mut phase, .. } = handle;
    // Without a sender of commands it retires; the phase closes once its event loop is gone.
    drop(commands);
    while phase.changed().await.is_ok() {}
    match ending.await {
        _ if said_hello => Ok(()),
        Ok(WorkerEnd::NoHello(why) | WorkerEnd::Died(why) | WorkerEnd::Protocol(why)) => Err(why),
        Ok(WorkerEnd::Late | WorkerEnd::Retired) | Err(_) => Err("it was stopped".to_owned()),
    }
}
