//! The queue of a cluster, for an operator: how much is in it, who works, and its dead letters.

use std::time::Duration;

use async_nats::jetstream::{
    ErrorCode,
    context::GetStreamErrorKind,
    message::{PublishMessage, StreamMessage},
    stream::{RawMessageErrorKind, Stream},
};
use serde::Serialize;
use tokio::time::sleep;

use super::{
    QueueOptions,
    message::{CUT, ERROR, MessageSummary, REASON, TAKEN, WORKER, WorkerReport, retried},
    roll_call,
    seen::was_made_again,
    streams::{LifecycleQueue, made_at},
};
use crate::store::shared::{ClusterError, unreachable};

/// How long a connection may take.
const CONNECT_PAUSE: Duration = Duration::from_millis(50);
const CONNECT_TRIES: u32 = 60;

/// The connection of an operator to the queue of a cluster.
#[derive(Debug)]
pub(crate) struct QueueOperator {
    queue: LifecycleQueue,
}

/// How much is in the queue, and who works.
#[derive(Debug, Serialize)]
pub(crate) struct QueueReport {
    /// Events that no worker has.
    pub(crate) waiting: u64,
    /// Events that a worker has.
    pub(crate) under_way: usize,
    pub(crate) bytes: u64,
    /// The bytes that may be there; none if there is no bound.
    pub(crate) max_bytes: Option<u64>,
    /// How long ago the queue was made again, if it was: what waited in the former one is lost.
    pub(crate) made_again_ms: Option<u64>,
    /// How long ago a worker that answers has found that what waited in the queue was lost, if one has.
    pub(crate) lost_ms: Option<u64>,
    pub(crate) dead_letters: u64,
    pub(crate) workers: Vec<WorkerReport>,
}

impl QueueReport {
    /// How many hundredths of its bound are taken; none without a bound.
    pub(crate) fn percent_full(&self) -> u64 {
        let most = self.max_bytes.filter(|most| *most > 0);
        most.map_or(0, |most| self.bytes.saturating_mul(100) / most)
    }
}

/// A dead letter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DeadMessage {
    pub(crate) id: u64,
    /// How old it is, by the clocks of the servers and of this machine.
    pub(crate) age: Duration,
    pub(crate) reason: String,
    pub(crate) error: String,
    /// How often it was taken out of the queue.
    pub(crate) taken: u32,
    pub(crate) worker: String,
    /// How many bytes it had, if it has fewer now.
    pub(crate) cut_from: Option<usize>,
    /// What it is about, as far as it can be read.
    pub(crate) summary: MessageSummary,
    pub(crate) payload: Vec<u8>,
    put_at: i128,
}

/// Why a dead letter is not tried again.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotRetried {
    /// There is none with this number.
    #[error("there is no such dead letter")]
    Unknown,
    /// A worker could not read it either.
    #[error("it cannot be read: {0}")]
    Unreadable(String),
    /// It is too long for the servers.
    #[error("it was longer than what the servers keep, and is not whole")]
    Cut,
    /// The store does not confirm it.
    #[error(transparent)]
    Store(#[from] ClusterError),
}

impl QueueOperator {
    /// Connects to the store.
    ///
    /// Returns an error if it cannot be used.
    pub(crate) async fn connect(options: QueueOptions) -> Result<Self, ClusterError> {
        let queue = LifecycleQueue::connect(options).await?;
        for _ in 1..CONNECT_TRIES {
            match queue.check_server() {
                Err(ClusterError::Unreachable(_)) => sleep(CONNECT_PAUSE).await,
                _ => break,
            }
        }
        queue.check_server()?;
        Ok(Self { queue })
    }

    /// How the queue is; none if there is none.
    ///
    /// Returns an error if it cannot be read.
    pub(crate) async fn report(&self) -> Result<Option<QueueReport>, ClusterError> {
        let Some(stream) = self.stream(self.queue.queue_name()).await? else { return Ok(None) };
        let state = &stream.cached_info().state;
        // Until a worker has asked for events, there is none.
        let consumer = stream.consumer_info(super::streams::WORKERS).await.ok();
        let dead = self.stream(self.queue.dead_name()).await?;
        let made = made_at(&stream);
        let workers = roll_call::ask(self.queue.client(), self.queue.roll_call_subject()).await?;
        let made_again = dead.as_ref().map(made_at).filter(|dead| was_made_again(made, *dead)).map(|_| made);
        Ok(Some(QueueReport {
            waiting: consumer.as_ref().map_or(state.messages, |consumer| consumer.num_pending),
            under_way: consumer.map_or(0, |consumer| consumer.num_ack_pending),
            bytes: state.bytes,
            max_bytes: u64::try_from(stream.cached_info().config.max_bytes).ok(),
            made_again_ms: made_again.map(|made| u64::try_from(age_of(made).as_millis()).unwrap_or(u64::MAX)),
            dead_letters: dead.map_or(0, |dead| dead.cached_info().state.messages),
            lost_ms: workers.iter().filter_map(|worker| worker.queue_lost_ms).min(),
            workers,
        }))
    }

    /// Whether the streams are there. Makes none.
    ///
    /// Returns an error if events are not safe in them, or they cannot be looked at.
    pub(crate) async fn has_streams(&self) -> Result<bool, ClusterError> {
        let Some(queue) = self.stream(self.queue.queue_name()).await? else { return Ok(false) };
        self.queue.check(&queue.cached_info().config)?;
        Ok(self.stream(self.queue.dead_name()).await?.is_some())
    }

    async fn stream(&self, name: String) -> Result<Option<Stream>, ClusterError> {
        match self.queue.jetstream().get_stream(name).await {
            Ok(stream) => Ok(Some(stream)),
            Err(error) => match error.kind() {
                GetStreamErrorKind::JetStream(known) if known.error_code() == ErrorCode::STREAM_NOT_FOUND => {
                    Ok(None)
                }
                _ => Err(unreachable(&error)),
            },
        }
    }

    /// The dead letters, oldest first, at most so many, and how many more there are.
    ///
    /// Returns an error if they cannot be read.
    pub(crate) async fn dead_letters(&self, most: usize) -> Result<(Vec<DeadMessage>, usize), ClusterError> {
        let Some(stream) = self.stream(self.queue.dead_name()).await? else { return Ok((Vec::new(), 0)) };
        let there = usize::try_from(stream.cached_info().state.messages).unwrap_or(usize::MAX);
        let (mut letters, mut next) = (Vec::new(), stream.cached_info().state.first_sequence);
        while letters.len() < most {
            let subject = self.queue.dead_subject("*");
            match stream.get_first_raw_message_by_subject(subject, next).await {
                Ok(message) => {
                    next = message.sequence + 1;
                    letters.push(DeadMessage::of(&message));
                }
                Err(error) if matches!(error.kind(), RawMessageErrorKind::NoMessageFound) => {
                    return Ok((letters, 0));
                }
                Err(error) => return Err(unreachable(&error)),
            }
        }
        let left_out = there.saturating_sub(letters.len());
        Ok((letters, left_out))
    }

    /// A dead letter by its number; none if there is none.
    ///
    /// Returns an error if it cannot be read.
    pub(crate) async fn dead_letter(&self, id: u64) -> Result<Option<DeadMessage>, ClusterError> {
        let Some(stream) = self.stream(self.queue.dead_name()).await? else { return Ok(None) };
        match stream.get_raw_message(id).await {
            Ok(message) => Ok(Some(DeadMessage::of(&message))),
            Err(error) if matches!(error.kind(), RawMessageErrorKind::NoMessageFound) => Ok(None),
            Err(error) => Err(unreachable(&error)),
        }
    }

    /// Puts a dead letter into the queue again, as a repetition.
    ///
    /// Returns an error if there is none with this number, or if it is not in the queue then.
    pub(crate) async fn retry(&self, id: u64) -> Result<(), NotRetried> {
        let letter = self.dead_letter(id).await?.ok_or(NotRetried::Unknown)?;
        if letter.cut_from.is_some() {
            return Err(NotRetried::Cut);
        }
        let again = retried(&letter.payload, letter.taken);
        let (kind, payload) = again.map_err(|error| NotRetried::Unreadable(error.to_string()))?;
        // The same letter is in the queue once, also if its end here is not confirmed and it is tried again.
        let message_id = format!("{}-{id}-{}", self.queue.dead_name(), letter.put_at);
        let message = PublishMessage::build().payload(payload.into()).message_id(message_id);
        let put = self.queue.put_again(kind.as_str(), message).await;
        put.map_err(|why| ClusterError::Unreachable(why.why().to_owned()))?;
        self.drop_letter(id).await?;
        Ok(())
    }

    /// Removes a dead letter. Returns whether there was one.
    ///
    /// Returns an error if the store does not confirm it.
    pub(crate) async fn drop_letter(&self, id: u64) -> Result<bool, ClusterError> {
        if self.dead_letter(id).await?.is_none() {
            return Ok(false);
        }
        let Some(stream) = self.stream(self.queue.dead_name()).await? else { return Ok(false) };
        stream.delete_message(id).await.map_err(|error| unreachable(&error))
    }
}

/// How long ago a moment was, in nanoseconds since the epoch, by the clocks of the servers and of this machine.
fn age_of(moment: i128) -> Duration {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let age = i128::try_from(now.as_nanos()).unwrap_or(i128::MAX).saturating_sub(moment);
    Duration::from_nanos(u64::try_from(age).unwrap_or_default())
}

impl DeadMessage {
    fn of(message: &StreamMessage) -> Self {
        let text =
            |name: &str| message.headers.get(name).map(|value| value.as_str().to_owned()).unwrap_or_default();
        let put_at = message.time.unix_timestamp_nanos();
        Self {
            id: message.sequence,
            age: age_of(put_at),
            reason: text(REASON),
            error: text(ERROR),
            taken: text(TAKEN).parse().unwrap_or_default(),
            worker: text(WORKER),
            cut_from: text(CUT).parse().ok(),
            summary: MessageSummary::of(&message.payload),
            payload: message.payload.to_vec(),
            put_at,
        }
    }
}
