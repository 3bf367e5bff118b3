//! Writes the state of claimed runs into the bucket, each in place of exactly the message that this daemon wrote last.

use std::{collections::HashSet, sync::Arc, time::Duration};

use tokio::{
    task::JoinSet,
    time::{Instant, sleep},
};

use super::{
    RunClaims,
    message::{ClaimMessage, Fate},
    subject_of,
    table::UncommittedState,
};
use crate::{
    model::RunKey,
    store::shared::publication::{Message, PATIENCE, Put},
};

/// How many runs are written at the same time.
const MOST_AT_ONCE: usize = 256;

/// The wait after a state could not be written.
const PAUSE: Duration = Duration::from_millis(200);

/// Writes changes until the task is dropped.
pub(in crate::store::shared) async fn publish(claims: Arc<RunClaims>) {
    let mut under_way: HashSet<RunKey> = HashSet::new();
    let mut writes: JoinSet<(UncommittedState, Fate)> = JoinSet::new();
    loop {
        let room = MOST_AT_ONCE - under_way.len();
        let changes = claims.table.lock().uncommitted(&under_way, room);
        for change in changes {
            under_way.insert(change.key.clone());
            let claims = Arc::clone(&claims);
            writes.spawn(async move {
                let written = write(&claims, &change).await;
                if matches!(written, Fate::Unknown | Fate::Earlier(_)) {
                    sleep(PAUSE).await;
                }
                (change, written)
            });
        }
        tokio::select! {
            () = claims.changed.notified() => {}
            Some(done) = writes.join_next() => {
                // A task that panicked would leave its change unwritten: nothing in it does.
                let Ok((change, written)) = done else { continue };
                under_way.remove(&change.key);
                settle(&claims, &change, written);
            }
        }
    }
}

fn settle(claims: &RunClaims, change: &UncommittedState, written: Fate) {
    match written {
        Fate::Committed(number) => claims.table.lock().committed(change, number, Instant::now()).tell(),
        Fate::Moved => {
            claims.lose(&change.key, change.epoch);
            claims.table.lock().failed(change).tell();
        }
        Fate::Earlier(number) => {
            let mut table = claims.table.lock();
            table.found(&change.key, change.epoch, number);
            table.failed(change).tell();
        }
        Fate::Unknown => claims.table.lock().failed(change).tell(),
    }
}

async fn write(claims: &RunClaims, change: &UncommittedState) -> Fate {
    let own = claims.bucket.options();
    let (subject, bucket) = (subject_of(&change.key), &claims.bucket);
    let message = ClaimMessage {
        key: change.key.clone(),
        epoch: change.epoch,
        instance: own.instance.clone(),
        state: change.state.clone().unwrap_or_default(),
    };
    let Ok(bytes) = message.encode(&own.node) else {
        tracing::error!(run = %change.key.run, "the state of a run is too long for the store of the cluster");
        return Fate::Moved;
    };
    let put = if change.state.is_some() { Message::put(bytes) } else { Message::end(bytes) };
    match bucket.write(&subject, put.after(Some(change.after)), PATIENCE).await {
        Ok(Put::Written(number)) => Fate::Committed(number),
        Ok(Put::Taken | Put::Contended) => match claims.last(&change.key).await {
            Ok(last) => message.judged(change.state.is_none(), last.as_ref()),
            Err(_) => Fate::Unknown,
        },
        Err(_) => Fate::Unknown,
    }
}
