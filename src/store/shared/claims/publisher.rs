//! Writes the state of claimed runs into the bucket, each in place of exactly the message that this daemon wrote last.

use std::{collections::HashSet, sync::Arc, time::Duration};

use tokio::{task::JoinSet, time::sleep};

use super::{ClaimMessage, RunClaims, subject_of, table::UncommittedState};
use crate::{
    model::RunKey,
    store::shared::publication::{Message, PATIENCE, Put},
};

/// How many runs are written at the same time.
const MOST_AT_ONCE: usize = 256;

/// The wait after a state could not be written.
const PAUSE: Duration = Duration::from_millis(200);

/// What became of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Written {
    /// The bucket has it, under this number.
    Committed(u64),
    /// Another daemon has claimed the run.
    Moved,
    /// It has to be tried again.
    Unknown,
}

/// Writes changes until the task is dropped.
pub(in crate::store::shared) async fn publish(claims: Arc<RunClaims>) {
    let mut under_way: HashSet<RunKey> = HashSet::new();
    let mut writes: JoinSet<(UncommittedState, Written)> = JoinSet::new();
    loop {
        let room = MOST_AT_ONCE - under_way.len();
        let changes = claims.table.lock().uncommitted(&under_way, room);
        for change in changes {
            under_way.insert(change.key.clone());
            let claims = Arc::clone(&claims);
            writes.spawn(async move {
                let written = write(&claims, &change).await;
                if written == Written::Unknown {
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

fn settle(claims: &RunClaims, change: &UncommittedState, written: Written) {
    match written {
        Written::Committed(number) => claims.table.lock().committed(change, number),
        Written::Moved => {
            claims.lose(&change.key, change.epoch);
            claims.table.lock().failed(change);
        }
        Written::Unknown => claims.table.lock().failed(change),
    }
}

async fn write(claims: &RunClaims, change: &UncommittedState) -> Written {
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
        return Written::Moved;
    };
    let put = if change.state.is_some() { Message::put(bytes) } else { Message::end(bytes) };
    match bucket.write(&subject, put.after(Some(change.after)), PATIENCE).await {
        Ok(Put::Written(number)) => Written::Committed(number),
        Ok(Put::Taken | Put::Contended) => judged(claims, &subject, &message, change.state.is_none()).await,
        Err(_) => Written::Unknown,
    }
}

/// What became of a change whose place in the bucket was taken: by another daemon, or by this one, if an earlier attempt was
/// written and not confirmed.
async fn judged(claims: &RunClaims, subject: &str, message: &ClaimMessage, is_over: bool) -> Written {
    let Ok(last) = claims.bucket.last(subject).await else { return Written::Unknown };
    let Some(last) = last else { return Written::Moved };
    if last.is_over {
        return if is_over { Written::Committed(last.number) } else { Written::Moved };
    }
    match ClaimMessage::decode(&last.bytes) {
        Ok(found) if found.instance == message.instance && found.epoch == message.epoch => {
            if !is_over && found.state == message.state {
                return Written::Committed(last.number);
            }
            claims.table.lock().found(&message.key, message.epoch, last.number);
            Written::Unknown
        }
        _ => Written::Moved,
    }
}
