//! Writes the changes of this daemon into the bucket, many at a time, again and again until the bucket has each.

use std::{collections::HashSet, sync::Arc, time::Duration};

use tokio::{
    task::JoinSet,
    time::{Instant, sleep},
};

use super::{
    core::ClusterCore,
    error::ClusterError,
    knowledge::known_by_all,
    messages::{HaltMessage, token_of},
    publication::{Message, Put},
    table::UnstoredChange,
};
use crate::telemetry::HaltPut;

/// How many changes are written at the same time, and how many while the store does not confirm them.
const MOST_AT_ONCE: usize = 256;
const MOST_WHILE_FAILING: usize = 16;

/// The wait after a change could not be written, and the longest one after many.
const PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// The wait after another daemon was about to write about the same run.
const CONTENDED_PAUSE: Duration = Duration::from_millis(5);

/// How long a server may take to confirm a change, and the longest after many that were not.
const PATIENCE: Duration = Duration::from_millis(700);
const LONGEST_PATIENCE: Duration = Duration::from_secs(3);

/// What became of a change.
type Done = (UnstoredChange, Result<Option<u64>, ClusterError>);

/// Writes changes until the task is dropped.
pub(super) async fn publish(core: Arc<ClusterCore>) {
    let mut under_way = HashSet::new();
    let mut puts: JoinSet<Done> = JoinSet::new();
    // How many changes in a row were not written.
    let mut failures = 0;
    loop {
        let most = if failures == 0 { MOST_AT_ONCE } else { MOST_WHILE_FAILING };
        let room = most.saturating_sub(under_way.len());
        for change in core.table.lock().unstored(&under_way, room) {
            under_way.insert(change.key.clone());
            puts.spawn(put(Arc::clone(&core), change, failures));
        }
        tokio::select! {
            () = core.changed.notified() => {}
            Some(done) = puts.join_next() => {
                // A task that panicked would leave its change unwritten: nothing in it does.
                let Ok((change, result)) = done else { continue };
                under_way.remove(&change.key);
                let is_first = failures == 0;
                failures = if result.is_ok() { 0 } else { failures.saturating_add(1) };
                match result {
                    Ok(number) => {
                        let has_news = core.table.lock().stored(&change, number);
                        if has_news {
                            core.agree(&change.key);
                        }
                    }
                    Err(error) if is_first => {
                        tracing::error!(%error, run = %change.key.run, "a halt is not in the store of the cluster yet");
                    }
                    Err(_) => {}
                }
            }
        }
    }
}

async fn put(core: Arc<ClusterCore>, change: UnstoredChange, failures: u32) -> Done {
    let times = 1 << failures.min(8);
    if failures > 0 {
        sleep((PAUSE * times).min(LONGEST_PAUSE)).await;
    }
    let started = Instant::now();
    let result = write(&core, &change, (PATIENCE * times).min(LONGEST_PATIENCE)).await;
    HaltPut { is_stored: result.is_ok(), took: started.elapsed() }.emit();
    (change, result)
}

/// Writes a change. Returns its number, or none if the bucket has something newer.
async fn write(
    core: &ClusterCore,
    change: &UnstoredChange,
    patience: Duration,
) -> Result<Option<u64>, ClusterError> {
    let own = core.bucket.options();
    let bytes = HaltMessage::encode(&change.key, change.halt.as_ref(), (&own.node, &own.instance));
    let message = if change.halt.is_some() { Message::put(bytes) } else { Message::end(bytes) };
    let key = format!("halt.{}", token_of(&change.key));
    let number = match core.bucket.write(&key, message.after(change.after), patience).await? {
        Put::Written(number) => number,
        Put::Taken => return Ok(None),
        Put::Contended => {
            // Which of the two counts is known in a moment.
            sleep(CONTENDED_PAUSE).await;
            return Err(ClusterError::Unreachable("another daemon writes about the same run".to_owned()));
        }
    };
    if change.halt.is_some() && own.is_strict {
        known_by_all(core, &change.key, number).await;
    }
    Ok(Some(number))
}
