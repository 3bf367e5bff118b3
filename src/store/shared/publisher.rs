//! Writes the changes of this daemon into the bucket, many at a time, again and again until the bucket has each.

use std::{collections::HashSet, sync::Arc, time::Duration};

use tokio::{
    task::JoinSet,
    time::{Instant, sleep},
};

use super::{
    core::ClusterCore,
    error::ClusterError,
    messages::{HaltMessage, token_of},
    table::UnstoredChange,
};
use crate::telemetry::HaltPut;

/// How many changes are written at the same time.
const MOST_AT_ONCE: usize = 256;

/// The wait after a change could not be written.
const PAUSE: Duration = Duration::from_millis(200);

/// What became of a change.
type Put = (UnstoredChange, Result<Option<u64>, ClusterError>);

/// Writes changes until the task is dropped.
pub(super) async fn publish(core: Arc<ClusterCore>) {
    let mut under_way = HashSet::new();
    let mut puts: JoinSet<Put> = JoinSet::new();
    let mut is_failing = false;
    loop {
        let room = MOST_AT_ONCE - under_way.len();
        for change in core.table.lock().unstored(&under_way, room) {
            under_way.insert(change.key.clone());
            puts.spawn(put(Arc::clone(&core), change, is_failing));
        }
        tokio::select! {
            () = core.changed.notified() => {}
            Some(done) = puts.join_next() => {
                // A task that panicked would leave its change unwritten: nothing in it does.
                let Ok((change, result)) = done else { continue };
                under_way.remove(&change.key);
                let was_failing = std::mem::replace(&mut is_failing, result.is_err());
                match result {
                    Ok(number) => {
                        let is_overtaken = core.table.lock().stored(&change, number);
                        if is_overtaken {
                            core.agree(&change.key);
                        }
                    }
                    Err(error) if !was_failing => {
                        tracing::error!(%error, run = %change.key.run, "a halt is not in the store of the cluster yet");
                    }
                    Err(_) => {}
                }
            }
        }
    }
}

async fn put(core: Arc<ClusterCore>, change: UnstoredChange, is_failing: bool) -> Put {
    if is_failing {
        sleep(PAUSE).await;
    }
    let started = Instant::now();
    let bytes = HaltMessage::encode(&change.key, change.halt.as_ref(), &core.bucket.options().node);
    let key = format!("halt.{}", token_of(&change.key));
    let result = match change.halt {
        Some(_) => core.bucket.put(&key, bytes).await.map(Some),
        None => core.bucket.end(&key, bytes, Some(change.after)).await,
    };
    HaltPut { is_stored: result.is_ok(), took: started.elapsed() }.emit();
    (change, result)
}
