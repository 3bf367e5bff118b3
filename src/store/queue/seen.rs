//! What a daemon knows of the stream in which events wait, and whether what waited there is lost.

use tokio::time::Instant;

use super::passed::{GivenOut, PassedOver};

/// What a daemon knows of the stream in which events wait.
#[derive(Debug, Default)]
pub(super) struct SeenQueue {
    /// When it was made.
    created: Option<i128>,
    /// The highest number that is known to have been given.
    last: u64,
    /// A number, and when the event was put there that has it.
    known: Option<(u64, i128)>,
    passed: PassedOver,
    /// How often what waited in it was lost, and when last.
    losses: u64,
    lost_at: Option<Instant>,
}

/// What was known when the servers were asked: what others hear meanwhile is no answer to that.
#[derive(Debug, Clone, Copy)]
pub(super) struct KnownBefore {
    /// The highest number.
    pub(super) last: u64,
    /// A number, and when the event was put there that has it.
    pub(super) known: Option<(u64, i128)>,
    /// How often what waited was lost.
    pub(super) losses: u64,
}

/// The stream as the servers describe it.
#[derive(Debug, Clone, Copy)]
pub(super) struct FoundQueue {
    /// When it was made.
    pub(super) created: i128,
    /// The number of its last event, and when that was put there.
    pub(super) last: u64,
    pub(super) last_at: i128,
    /// A number that it had given was given again.
    pub(super) repeats: bool,
    /// When the stream of dead letters was made, if this daemon has just made that of events.
    pub(super) made_beside: Option<i128>,
}

/// How what waited in the queue was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum QueueLoss {
    /// Another stream is in its place.
    Replaced,
    /// It is the same stream, without its last events.
    SetBack,
    /// So many events or more were removed before a worker had them.
    Removed(u64),
}

impl SeenQueue {
    /// What is known before the servers are asked.
    pub(super) fn known(&self) -> KnownBefore {
        KnownBefore { last: self.last, known: self.known, losses: self.losses }
    }

    /// How often what waited in it was lost.
    pub(super) fn losses(&self) -> u64 {
        self.losses
    }

    /// When what waited in it was lost last.
    pub(super) fn lost_at(&self) -> Option<Instant> {
        self.lost_at
    }

    /// An event of this daemon has got a number. Returns whether that is not behind all that were known before the event was sent.
    /// Events that are put at the same time may be confirmed in any order, so what is known now says nothing.
    pub(super) fn numbered(&mut self, number: u64, before: KnownBefore) -> bool {
        if before.losses != self.losses {
            // It may be of the former stream.
            return false;
        }
        self.last = self.last.max(number);
        number <= before.last
    }

    /// Whether the stream is without events that were known before the servers were asked.
    pub(super) fn lacks(&self, found: &FoundQueue, before: KnownBefore) -> bool {
        before.losses == self.losses && found.last < before.last
    }

    /// Compares the stream with what is known of it, and was when the servers were asked.
    pub(super) fn compare(&mut self, found: FoundQueue, before: KnownBefore) -> Option<QueueLoss> {
        let former = self.created.replace(found.created);
        let is_other = match former {
            Some(former) => former != found.created,
            // The streams are made together, that of events first.
            None => found.made_beside.is_some_and(|dead| was_made_again(found.created, dead)),
        };
        let is_since = before.losses == self.losses;
        let loss = if is_other {
            QueueLoss::Replaced
        } else if is_since && (found.repeats || found.last < before.last) {
            QueueLoss::SetBack
        } else {
            if is_since && found.last >= self.last {
                (self.last, self.known) = (found.last, Some((found.last, found.last_at)));
            }
            return None;
        };
        (self.last, self.known) = (found.last, Some((found.last, found.last_at)));
        self.passed = PassedOver::default();
        self.lose();
        Some(loss)
    }

    /// Hears what workers were given of the stream, whose last event has this number.
    pub(super) fn given_out(
        &mut self,
        given: &GivenOut,
        last: u64,
        before: KnownBefore,
    ) -> Option<QueueLoss> {
        if before.losses != self.losses {
            return None;
        }
        let removed = self.passed.more(given, last)?;
        self.lose();
        Some(QueueLoss::Removed(removed))
    }

    fn lose(&mut self) {
        self.losses += 1;
        self.lost_at = Some(Instant::now());
    }
}

/// Whether the stream of events was made again, by when it and that of dead letters were made.
pub(super) fn was_made_again(queue: i128, dead: i128) -> bool {
    dead < queue
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(created: i128, last: u64, made_beside: Option<i128>) -> FoundQueue {
        FoundQueue { created, last, last_at: 0, repeats: false, made_beside }
    }

    #[test]
    fn a_stream_that_is_another_or_set_back_is_told_once() {
        let (again, back) = (Some(QueueLoss::Replaced), Some(QueueLoss::SetBack));
        let repeats = |found: FoundQueue| FoundQueue { repeats: true, ..found };
        for (what, known, found, before, expected) in [
            ("the first that is seen", None, found(5, 9, None), 0, None),
            ("the first of all", None, found(5, 0, Some(6)), 0, None),
            ("made by this daemon, beside old dead letters", None, found(5, 0, Some(4)), 0, again),
            ("the same", Some(5), found(5, 9, None), 9, None),
            ("the same, and further", Some(5), found(5, 12, None), 9, None),
            ("another", Some(5), found(6, 0, None), 9, again),
            ("another, made by this daemon", Some(5), found(6, 0, Some(3)), 9, again),
            ("another, and further", Some(5), found(6, 70, None), 9, again),
            ("another, with a number again", Some(5), repeats(found(6, 70, None)), 9, again),
            ("an older copy", Some(5), found(5, 8, None), 9, back),
            ("an older copy, filled again", Some(5), repeats(found(5, 12, None)), 9, back),
        ] {
            let mut seen = SeenQueue { created: known, last: before, ..SeenQueue::default() };
            let (asked, late) = (seen.known(), seen.known());
            assert_eq!(seen.compare(found, asked), expected, "{what}");
            assert_eq!(
                seen.compare(found, late).filter(|_| expected.is_some()),
                None,
                "{what}, at the same time"
            );
            let same = FoundQueue { repeats: false, ..found };
            assert_eq!(seen.compare(same, seen.known()), None, "{what}, once more");
            assert_eq!(seen.losses, u64::from(expected.is_some()), "{what}");
            assert_eq!(seen.last, found.last, "{what}");
        }
    }

    #[test]
    fn a_number_is_behind_all_that_were_known_before_its_event_was_sent() {
        let mut seen = SeenQueue::default();
        let first = seen.known();
        for number in [1, 100, 37, 2] {
            assert!(!seen.numbered(number, first), "{number} was sent at the same time");
        }
        for (number, goes_back) in [(101, false), (101, true), (100, true), (1, true), (102, false)] {
            let before = seen.known();
            assert_eq!(seen.numbered(number, before), goes_back, "{number}");
        }
        assert_eq!(seen.compare(found(1, 0, Some(0)), first), Some(QueueLoss::Replaced));
        assert!(!seen.numbered(1, first), "the former stream has confirmed it");
        assert_eq!(seen.last, 0);
    }
}
