//! A daemon looks at the queue from time to time, and says so if what waited there is lost.

use std::{sync::Arc, time::Duration};

use async_nats::jetstream::{
    context::ConsumerInfoErrorKind,
    stream::{RawMessageErrorKind, Stream},
};
use tokio::time::{Instant, sleep};

use super::{
    passed::{GivenOut, leads},
    seen::{FoundQueue, KnownBefore, QueueLoss},
    streams::{LifecycleQueue, WORKERS, made_at},
};
use crate::{store::shared::ClusterError, telemetry::QueueReplaced};

/// How often it is looked at, and how much later more is asked that was not answered.
const PAUSE: Duration = Duration::from_secs(5);
const PAUSE_FOR_MORE: Duration = Duration::from_mins(1);

/// How long events have to be missing. A server that was started has not yet read all that it has confirmed.
const MISSING_FOR: Duration = Duration::from_secs(3);

impl LifecycleQueue {
    /// Looks at the queue until nobody uses it any more.
    pub(crate) async fn watch(queue: Arc<Self>) {
        let watched = Arc::downgrade(&queue);
        drop(queue);
        let mut more_from = Instant::now();
        loop {
            let Some(queue) = watched.upgrade() else { return };
            let asks_more = Instant::now() >= more_from;
            if let Ok(false) = queue.look(asks_more).await
                && asks_more
            {
                more_from = Instant::now() + PAUSE_FOR_MORE;
            }
            drop(queue);
            sleep(PAUSE).await;
        }
    }

    /// Compares the stream with what is known of it, and asks for more than how the stream is. Returns whether that is known, too.
    ///
    /// Returns an error if its servers do not say how it is.
    pub(super) async fn look(&self, asks_more: bool) -> Result<bool, ClusterError> {
        let before = self.seen().known();
        let (mut queue, mut found) = self.found().await?;
        if self.seen().lacks(&found, before) {
            sleep(MISSING_FOR).await;
            (queue, found) = self.found().await?;
        }
        let repeats = if asks_more { repeats(&queue, before).await } else { None };
        self.compare(FoundQueue { repeats: repeats == Some(true), ..found }, before);
        if repeats.is_none() {
            return Ok(false);
        }
        let before = self.seen().known();
        let given = match queue.consumer_info(WORKERS).await {
            Ok(consumer) => GivenOut::of(&consumer, self.connections()),
            Err(error) if error.kind() == ConsumerInfoErrorKind::NotFound => {
                Some(GivenOut::nothing(queue.cached_info(), self.connections()))
            }
            Err(_) => return Ok(false),
        };
        let loss = given.and_then(|given| self.seen().given_out(&given, found.last, before));
        if let Some(loss) = loss {
            self.tell(loss, before.last, found.last);
        }
        Ok(true)
    }

    /// The stream, and how it is. Returns an error if the server that says so may not lead any more.
    async fn found(&self) -> Result<(Stream, FoundQueue), ClusterError> {
        let queue = self.queue_stream().await?;
        if !leads(queue.cached_info().cluster.as_ref()) {
            return Err(ClusterError::Unreachable("no server leads the queue".to_owned()));
        }
        let found = described(&queue);
        Ok((queue, found))
    }

    /// The stream was opened. Whether it was set back is seen when it is looked at.
    pub(super) fn opened_as(&self, queue: &Stream, before: KnownBefore, made_beside: Option<i128>) {
        self.compare(FoundQueue { made_beside, ..described(queue) }, KnownBefore { last: 0, ..before });
    }

    /// A number was given to an event that another one had.
    pub(super) async fn given_again(&self) {
        let before = self.seen().known();
        if let Ok(queue) = self.queue_stream().await {
            self.compare(FoundQueue { repeats: true, ..described(&queue) }, before);
        }
    }

    /// An event that the stream did not have before has this number.
    pub(super) async fn numbered(&self, number: u64, before: KnownBefore) {
        let goes_back = self.seen().numbered(number, before);
        if goes_back {
            self.given_again().await;
        }
    }

    fn compare(&self, found: FoundQueue, before: KnownBefore) {
        let loss = self.seen().compare(found, before);
        if let Some(loss) = loss {
            self.tell(loss, before.last, found.last);
        }
    }

    fn tell(&self, loss: QueueLoss, known: u64, last: u64) {
        QueueReplaced::emit();
        let stream = self.queue_name();
        match loss {
            QueueLoss::Replaced => tracing::error!(
                stream,
                "the queue is another stream than before: accepted events that waited in the former one are lost, how many is \
                 not known; find out who deleted it or restored the servers, and send again what must not be missing"
            ),
            QueueLoss::SetBack => tracing::error!(
                stream,
                known,
                last,
                "the queue was set back: accepted events behind its last one are lost, and earlier ones may run again; find out \
                 whether its servers sync what they confirm and who restored them, and send again what must not be missing"
            ),
            QueueLoss::Removed(events) => tracing::error!(
                stream,
                events,
                "accepted events were removed from the queue before a worker had them, so many or more, and are lost; find out who \
                 purged the stream or deleted messages, and send again what must not be missing"
            ),
        }
    }
}

fn described(queue: &Stream) -> FoundQueue {
    let state = &queue.cached_info().state;
    FoundQueue {
        created: made_at(queue),
        last: state.last_sequence,
        last_at: state.last_timestamp.unix_timestamp_nanos(),
        repeats: false,
        made_beside: None,
    }
}

/// Whether an event that was known before has another one's number now. None if the servers do not say so.
async fn repeats(queue: &Stream, before: KnownBefore) -> Option<bool> {
    let state = &queue.cached_info().state;
    let is_there =
        |number: u64| number > 0 && state.first_sequence <= number && number <= state.last_sequence;
    let Some((number, put_at)) = before.known.filter(|(number, _)| is_there(*number)) else {
        return Some(false);
    };
    match queue.get_raw_message(number).await {
        Ok(message) => Some(message.time.unix_timestamp_nanos() != put_at),
        Err(error) => matches!(error.kind(), RawMessageErrorKind::NoMessageFound).then_some(false),
    }
}
