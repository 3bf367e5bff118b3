//! The clock of the store's servers beside that of this daemon: halts age by the first, and not faster than by the second. Pure.

/// By how much the servers' clock may get ahead between two beats, in seconds: a message may be on its way for a while.
const TOLERATED: i64 = 60;

/// What both clocks said last.
#[derive(Debug, Default)]
pub(super) struct StoreClock {
    last: Option<(i64, u64)>,
}

impl StoreClock {
    /// Takes in a beat that was written at this time of the servers' clock, in seconds, and sent at this one of the daemon's, in
    /// milliseconds. Returns by how many seconds the first was set forward since the last beat, if it was.
    pub(super) fn hear(&mut self, written: i64, sent: u64) -> Option<i64> {
        let (written_before, sent_before) = self.last.replace((written, sent))?;
        let passed = i64::try_from(sent.saturating_sub(sent_before) / 1000).unwrap_or(i64::MAX);
        let ahead = written.saturating_sub(written_before).saturating_sub(passed);
        (ahead > TOLERATED).then_some(ahead)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_set_forward_is_told_from_one_that_goes_on() {
        let mut clock = StoreClock::default();
        for (written, sent, expected) in [
            (1_000_000, 500, None),
            (1_000_001, 1_000, None),
            // The machine slept for an hour, as the store was away.
            (1_003_601, 3_601_000, None),
            (1_003_661, 3_601_500, None),
            (1_003_722, 3_602_000, Some(61)),
            (1_003_723, 3_602_500, None),
            (1_093_724, 3_603_000, Some(90_001)),
            // Another server leads, whose clock is right.
            (1_003_725, 3_603_500, None),
            (1_003_725, 3_604_000, None),
            (i64::MAX, 3_604_500, Some(i64::MAX - 1_003_725)),
        ] {
            assert_eq!(clock.hear(written, sent), expected, "{written} at {sent}");
        }
    }
}
