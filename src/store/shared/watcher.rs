//! Reads the bucket as a whole and then watches it, and proves by beats that nothing in it is missed.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use async_nats::jetstream;
use futures_util::StreamExt;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

use super::{
    beats::{self, NodeBeat},
    bucket::ReadFrom,
    core::ClusterCore,
    error::ClusterError,
    messages::{HaltMessage, token_of},
    publication::KeyOperation,
    table::Heard,
};
use crate::store::freshness;

/// Between two beats.
const BEAT: Duration = Duration::from_millis(500);

/// The wait before a beat that shows that nothing is missed any more.
const MISSED_PAUSE: Duration = Duration::from_millis(50);

/// How long nothing may come of the bucket: at least the beats of this daemon do.
const LONGEST_SILENCE: Duration = Duration::from_millis(1500);

/// The wait before the bucket is read anew.
const PAUSE: Duration = Duration::from_millis(250);

/// How often a stream is looked at that has fewer messages than were read, before that is believed.
const MOST_LOOKS: u32 = 12;

/// How far the bucket has been read.
#[derive(Debug, Default)]
struct ReadPosition {
    /// When the stream was made; another one has messages of its own.
    made: Option<i64>,
    /// The number of the last message.
    last: Option<u64>,
    /// How often in a row the stream had fewer messages than were read.
    looks: u32,
}

/// Takes in what is in the bucket, and what comes, until the task is dropped.
pub(super) async fn watch(core: Arc<ClusterCore>) {
    let mut position = ReadPosition::default();
    loop {
        // It ends by an error only.
        if let Err(error) = follow(&core, &mut position).await {
            core.report_problem(&error);
        }
        sleep(PAUSE).await;
    }
}

async fn follow(core: &ClusterCore, position: &mut ReadPosition) -> Result<(), ClusterError> {
    let stream = core.bucket.open().await?;
    let info = stream.cached_info();
    let made = Some(info.created.unix_timestamp());
    let is_rewound = core.is_rewound.swap(false, Ordering::AcqRel);
    let is_behind = is_rewound || position.last.is_some_and(|last| info.state.last_sequence < last);
    if is_behind && !is_rewound && position.looks < MOST_LOOKS {
        // A server that was stopped may tell what it knew then.
        position.looks += 1;
        return Err(ClusterError::Unreachable("its server is behind".to_owned()));
    }
    position.looks = 0;
    if is_behind || position.made.is_some() && position.made != made {
        tracing::error!(
            "the store of the cluster has lost what it had confirmed; the halts known here are written again"
        );
        core.table.lock().renew_all();
        core.changed.notify_one();
        if let Some(claims) = &core.claims {
            claims.lose_all();
        }
        position.last = None;
    }
    position.made = made;
    // Without an age, it keeps them for ever.
    let kept = Some(info.config.max_age.as_secs()).filter(|kept| *kept > 0).unwrap_or(u64::MAX);
    core.kept.store(kept, Ordering::Relaxed);
    let mut messages =
        core.bucket.read(&stream, position.last.map_or(ReadFrom::Everything, ReadFrom::Behind)).await?;
    loop {
        let next = timeout(LONGEST_SILENCE, messages.next()).await;
        let message = match next {
            Ok(Some(Ok(message))) => message,
            Ok(Some(Err(error))) => return Err(ClusterError::Unreachable(error.to_string())),
            Ok(None) | Err(_) => {
                return Err(ClusterError::Unreachable("nothing comes of its bucket".to_owned()));
            }
        };
        if core.is_rewound.load(Ordering::Acquire) {
            return Err(ClusterError::Unreachable("it has less than it had confirmed".to_owned()));
        }
        let number = message.info().ok().map(|info| info.stream_sequence);
        let is_next = number.is_some() && number == position.last.and_then(|last| last.checked_add(1));
        if !is_next {
            core.has_missed();
        }
        if let Some(number) = take_in(core, &message) {
            position.last = Some(number);
            core.position.send_replace(number);
        }
    }
}

/// Takes in a message. Returns its number in the stream.
fn take_in(core: &ClusterCore, message: &jetstream::Message) -> Option<u64> {
    let info = message.info().ok()?;
    let (number, written) = (info.stream_sequence, info.published.unix_timestamp());
    let (key, operation) = core.bucket.key_of(message)?;
    let is_over = operation.is_end();
    if key.starts_with("node.") {
        match NodeBeat::decode(&message.payload) {
            Some(beat) => core.hear_beat(beat, written),
            None if is_over => core.hear_leave(&message.payload),
            None => core.report_unreadable_beat(key),
        }
        return Some(number);
    }
    if key.starts_with("drain.") {
        core.hear_drain(key, &message.payload);
        return Some(number);
    }
    if operation == KeyOperation::Unknown {
        tracing::error!(
            key,
            "a message in the store of the cluster has a `KV-Operation` that this version does not know, and ends nothing"
        );
    }
    if key.starts_with("run.") {
        if let Some(claims) = &core.claims {
            claims.hear(&message.payload, is_over, number);
        }
        return Some(number);
    }
    let token = key.strip_prefix("halt.")?;
    match HaltMessage::decode(&message.payload, is_over) {
        Ok(halt) if token_of(&halt.key) == token => hear(core, halt, number, written),
        found => {
            let why = found.err().map_or_else(|| "it is about another run".to_owned(), |why| why.to_string());
            tracing::error!(key, %why, "a message in the store of the cluster is passed over");
            // A halt that was there before is known here.
            core.table.lock().renew_at(token);
            core.changed.notify_one();
        }
    }
    Some(number)
}

fn hear(core: &ClusterCore, message: HaltMessage, number: u64, written: i64) {
    let key = message.key.clone();
    let is_own = message.instance == core.bucket.options().instance;
    let heard = core.table.lock().hear(message, number, written, is_own);
    if heard == Heard::Changed {
        core.agree(&key);
    }
}

/// Writes beats until the task is dropped.
pub(super) async fn beat(core: Arc<ClusterCore>) {
    let options = core.bucket.options();
    let key = format!("node.{}", beats::token_of(&options.node));
    let mut ticks = interval(BEAT);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for number in 1.. {
        tokio::select! {
            _ = ticks.tick() => {}
            () = core.missed.notified() => sleep(MISSED_PAUSE).await,
        }
        core.freshness.is_awake();
        if core.leaves.load(Ordering::Acquire) {
            return;
        }
        if core.bucket.check_server().is_err() {
            continue;
        }
        let counts = core.table.lock().counts();
        let mut beat = NodeBeat::new((&options.node, &options.instance), number, core.facts(), counts);
        beat.is_strict = options.is_strict;
        core.sends_beat(number, freshness::now());
        let read = *core.position.borrow();
        // It counts once it is read, whether or not it is confirmed in time.
        let put = timeout(BEAT, core.bucket.put(&key, beat.encode())).await;
        if let Ok(Ok(number)) = put
            && number <= read
        {
            core.is_rewound.store(true, Ordering::Release);
        }
    }
}
