//! What a daemon knows of the stream in which events wait, and whether what waited there is lost.

/// What a daemon knows of the stream in which events wait.
#[derive(Debug, Default)]
pub(super) struct SeenQueue {
    /// When it was made.
    created: Option<i128>,
    /// The highest number that it gave an event of this daemon.
    last: u64,
    /// How often what waited in it was lost.
    replaced: u64,
}

/// What was known when the servers were asked: what others hear meanwhile is no answer to that.
#[derive(Debug, Clone, Copy)]
pub(super) struct KnownBefore {
    /// The highest number.
    pub(super) last: u64,
    /// How often what waited was lost.
    replaced: u64,
}

/// How far the numbers of events that are put at the same time may go back.
const IN_ANY_ORDER: u64 = 64;

/// The stream as the servers describe it.
#[derive(Debug, Clone, Copy)]
pub(super) struct FoundQueue {
    /// When it was made.
    pub(super) created: i128,
    /// The number of its last event.
    pub(super) last: u64,
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
}

impl SeenQueue {
    /// What is known before the servers are asked.
    pub(super) fn known(&self) -> KnownBefore {
        KnownBefore { last: self.last, replaced: self.replaced }
    }

    /// How often what waited in it was lost.
    #[cfg(all(test, feature = "cli"))]
    pub(super) fn replaced(&self) -> u64 {
        self.replaced
    }

    /// An event of this daemon has got a number. Returns whether it is lower than those of events that were put at the same time, of
    /// which any may be confirmed first.
    pub(super) fn numbered(&mut self, number: u64, before: KnownBefore) -> bool {
        if before.replaced != self.replaced {
            // It may be of the former stream.
            return false;
        }
        let goes_back = number.saturating_add(IN_ANY_ORDER) <= self.last;
        self.last = self.last.max(number);
        goes_back
    }

    /// Compares the stream with what is known of it, and was when the servers were asked.
    pub(super) fn compare(&mut self, found: FoundQueue, before: KnownBefore) -> Option<QueueLoss> {
        let former = self.created.replace(found.created);
        let is_other = match former {
            Some(former) => former != found.created,
            // The streams are made together, that of events first.
            None => found.made_beside.is_some_and(|dead| was_made_again(found.created, dead)),
        };
        let loss = if is_other {
            QueueLoss::Replaced
        } else if before.replaced == self.replaced && found.last < before.last {
            QueueLoss::SetBack
        } else {
            return None;
        };
        self.last = found.last;
        self.replaced += 1;
        Some(loss)
    }
}

/// Whether the stream of events was made again, by when it and that of dead letters were made.
pub(super) fn was_made_again(queue: i128, dead: i128) -> bool {
    dead < queue
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_that_is_another_or_set_back_is_told_once() {
        let found = |created, last, made_beside| FoundQueue { created, last, made_beside };
        let again = Some(QueueLoss::Replaced);
        for (what, known, found, before, expected) in [
            ("the first that is seen", None, found(5, 9, None), 0, None),
            ("the first of all", None, found(5, 0, Some(6)), 0, None),
            ("made by this daemon, beside old dead letters", None, found(5, 0, Some(4)), 0, again),
            ("the same", Some(5), found(5, 9, None), 9, None),
            ("the same, and further", Some(5), found(5, 12, None), 9, None),
            ("another", Some(5), found(6, 0, None), 9, again),
            ("another, made by this daemon", Some(5), found(6, 0, Some(3)), 9, again),
            ("another, and further", Some(5), found(6, 70, None), 9, again),
            ("an older copy", Some(5), found(5, 8, None), 9, Some(QueueLoss::SetBack)),
        ] {
            let mut seen = SeenQueue { created: known, last: before, replaced: 0 };
            let (asked, late) = (seen.known(), seen.known());
            assert_eq!(seen.compare(found, asked), expected, "{what}");
            assert_eq!(seen.compare(found, late), None, "{what}, of one who asked at the same time");
            assert_eq!(seen.compare(found, seen.known()), None, "{what}, once more");
            assert_eq!(seen.replaced, u64::from(expected.is_some()), "{what}");
        }
    }

    #[test]
    fn numbers_in_any_order_do_not_go_back() {
        let mut seen = SeenQueue::default();
        let before = seen.known();
        for (number, goes_back) in
            [(1, false), (100, false), (37, false), (36, true), (101, false), (1, true)]
        {
            assert_eq!(seen.numbered(number, before), goes_back, "{number}");
        }
        let again = FoundQueue { created: 1, last: 0, made_beside: Some(0) };
        assert_eq!(seen.compare(again, before), Some(QueueLoss::Replaced));
        assert!(!seen.numbered(102, before), "the former stream has confirmed it");
        assert_eq!(seen.last, 0);
    }
}
