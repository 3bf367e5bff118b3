//! A moment of a manifest: seconds in UTC, written in one form.

use std::{
    fmt,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use crate::model::Timestamp;

/// The last moment that can be written, the end of the year 9999.
const LAST: u64 = 253_402_300_799;

/// A moment in whole seconds since 1970, written as `2026-01-31T09:30:00Z`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct BundleTime(u64);

impl BundleTime {
    /// A moment of a clock; one before 1970 counts as its beginning.
    pub(crate) fn of(time: SystemTime) -> Self {
        Self::from_seconds(time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs())
    }

    pub(crate) fn from_seconds(seconds: u64) -> Self {
        Self(seconds.min(LAST))
    }

    pub(crate) fn seconds(self) -> u64 {
        self.0
    }

    pub(crate) fn plus(self, duration: Duration) -> Self {
        Self::from_seconds(self.0.saturating_add(duration.as_secs()))
    }

    #[cfg(test)]
    pub(crate) fn minus(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(duration.as_secs()))
    }

    /// How much later it is than another moment; nothing if it is earlier.
    pub(crate) fn since(self, earlier: Self) -> Duration {
        Duration::from_secs(self.0.saturating_sub(earlier.0))
    }

    /// Reads the one form in which a moment is written.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let bytes = text.as_bytes();
        if bytes.len() != 20 {
            return None;
        }
        let number = |from: usize, to: usize| {
            let digits = text.get(from..to)?;
            digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse::<u64>().ok())?
        };
        let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
        let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
        if year < 1970 || !(1..=12).contains(&month) || day == 0 || hour > 23 || minute > 59 || second > 59 {
            return None;
        }
        let moment = Self(days(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second);
        // Days that a month does not have, and other separators, are written in another way.
        (moment.to_string() == text).then_some(moment)
    }
}

/// The days from the beginning of 1970 to a date. Years are counted from March, so that a leap day is the last of its year.
fn days(year: u64, month: u64, day: u64) -> u64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    year * 365 + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1 - 719_468
}

impl fmt::Display for BundleTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = Timestamp::of(UNIX_EPOCH + Duration::from_secs(self.0)).to_string();
        // Without its milliseconds.
        write!(f, "{}Z", text.get(..19).unwrap_or(&text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_read_in_the_one_form_in_which_it_is_written() {
        for seconds in [0, 951_782_400, 951_868_799, 1_709_210_096, 4_107_542_400, LAST] {
            let moment = BundleTime::from_seconds(seconds);
            assert_eq!(BundleTime::parse(&moment.to_string()), Some(moment), "{moment}");
        }
        for wrong in [
            "2026-02-29T00:00:00Z",
            "2026-13-01T00:00:00Z",
            "2026-01-01 00:00:00Z",
            "2026-01-01T00:00:00z",
            "2026-01-01T24:00:00Z",
            "2026-01-01T00:00:00+0",
            "1969-12-31T23:59:59Z",
            "",
        ] {
            assert_eq!(BundleTime::parse(wrong), None, "{wrong}");
        }
    }
}
