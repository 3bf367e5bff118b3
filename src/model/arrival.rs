//! The moment an event was received, with an id for it, and who sent it. Made once per event, so that every hook is given
//! the same.

use std::{
    fmt,
    net::IpAddr,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use super::DecisionId;

/// The moment in which an event was taken in, and an id of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    since_epoch: Duration,
    id: DecisionId,
    delivery: u32,
}

impl Arrival {
    /// The arrival of an event at this time, with an id that no other event has. It becomes the id of the decision.
    pub fn new(time: SystemTime, id: DecisionId) -> Self {
        Self { since_epoch: time.duration_since(UNIX_EPOCH).unwrap_or_default(), id, delivery: 1 }
    }

    /// The same event, given to its hooks for this time.
    pub(crate) fn delivered(self, delivery: u32) -> Self {
        Self { delivery, ..self }
    }

    /// When it was, by the machine's clock.
    pub fn time(&self) -> SystemTime {
        UNIX_EPOCH + self.since_epoch
    }

    /// When it was, as ISO 8601 in UTC with milliseconds: `2026-01-31T09:30:00.125Z`.
    pub fn timestamp(&self) -> Timestamp {
        Timestamp(self.since_epoch)
    }

    /// The milliseconds since 1970.
    pub(crate) fn milliseconds(&self) -> u128 {
        self.since_epoch.as_millis()
    }

    /// The id of the decision about the event, which its outcome has too.
    pub fn decision_id(&self) -> DecisionId {
        self.id
    }

    /// How often the event has been given to its hooks, this time included. A hook that has an effect outside can tell a
    /// repetition by it and by the id of the event.
    pub fn delivery(&self) -> u32 {
        self.delivery
    }

    /// An id of this event alone, in the form of a UUID (version 8).
    pub fn uuid(&self) -> Uuid {
        Uuid(self.id.bits())
    }
}

/// How an event came to the daemon.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct EventOrigin {
    /// The listener: `event_socket`, `control_socket`, `lines_socket` or `tcp`.
    pub listener: &'static str,
    /// Who sent it.
    pub peer: EventPeer,
    /// The project of the agent's session, as `relay` learns it from the agent: the directory whose settings the agent
    /// has read.
    pub project: Option<Arc<str>>,
    /// Whether the agent runs the hooks of its own settings itself in this session, as `relay` says; false where nobody
    /// says so.
    pub keeps_hooks: bool,
}

impl EventOrigin {
    /// An event of this peer, which came through this listener.
    pub fn new(listener: &'static str, peer: EventPeer) -> Self {
        Self { listener, peer, project: None, keeps_hooks: false }
    }
}

/// Who sent an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum EventPeer {
    /// A user of this machine, by its id.
    User(u32),
    /// An address.
    Address(IpAddr),
}

/// A moment that prints as ISO 8601.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timestamp(Duration);

impl Timestamp {
    /// This time; one before 1970 counts as its beginning.
    pub fn of(time: SystemTime) -> Self {
        Self(time.duration_since(UNIX_EPOCH).unwrap_or_default())
    }

    /// The moment that was written so, in milliseconds and UTC.
    #[cfg(any(feature = "daemon", test))]
    pub(crate) fn parse(text: &str) -> Option<SystemTime> {
        let digits: String = text.chars().filter(char::is_ascii_digit).collect();
        let part = |from, to| digits.get(from..to)?.parse::<u64>().ok();
        let (year, month, day) = (part(0, 4)?, part(4, 6)?, part(6, 8)?);
        // There and back, so that nothing else is a moment.
        let (years, months) = (year.checked_sub(1970)?, month.checked_sub(1)?);
        let guess = years * 365 + years / 4 + months * 30;
        let day = (guess.saturating_sub(30)..guess + 60).find(|days| date(*days) == (year, month, day))?;
        let seconds = ((day * 24 + part(8, 10)?) * 60 + part(10, 12)?) * 60 + part(12, 14)?;
        let time = Duration::from_secs(seconds) + Duration::from_millis(part(14, 17)?);
        (Self(time).to_string() == text).then(|| UNIX_EPOCH + time)
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.as_secs();
        let (year, month, day) = date(seconds / 86_400);
        let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
        let millis = self.0.subsec_millis();
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
    }
}

/// An id that prints as a UUID.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Uuid(u128);

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const VERSION: u128 = 0xf << 76;
        const VARIANT: u128 = 0b11 << 62;
        let bits = self.0 & !VERSION & !VARIANT | 8 << 76 | 0b10 << 62;
        let digits = format!("{bits:032x}");
        let parts = [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]];
        f.write_str(&parts.join("-"))
    }
}

/// The year, month and day of so many days after 1970 began. Years are counted from March, so that a leap day is
/// the last of its year.
fn date(days: u64) -> (u64, u64, u64) {
    const DAYS_BEFORE_1970: u64 = 719_468;
    const DAYS_IN_400_YEARS: u64 = 146_097;
    let days = days + DAYS_BEFORE_1970;
    let (era, day) = (days / DAYS_IN_400_YEARS, days % DAYS_IN_400_YEARS);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let first = (153 * month + 2) / 5;
    let (month, late) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (era * 400 + year + late, month, day - first + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_written_as_dates() {
        let written = |millis| Timestamp(Duration::from_millis(millis)).to_string();
        assert_eq!(written(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(written(951_782_400_000), "2000-02-29T00:00:00.000Z");
        assert_eq!(written(951_868_799_999), "2000-02-29T23:59:59.999Z");
        assert_eq!(written(1_709_210_096_789), "2024-02-29T12:34:56.789Z");
        assert_eq!(written(1_735_689_599_000), "2024-12-31T23:59:59.000Z");
        assert_eq!(written(4_107_542_400_000), "2100-03-01T00:00:00.000Z");
        for days in 0..60_000 {
            let moment = UNIX_EPOCH + Duration::from_hours(days * 24) + Duration::from_millis(86_399_999);
            assert_eq!(Timestamp::parse(&Timestamp::of(moment).to_string()), Some(moment));
        }
        for other in [
            "",
            "2024-02-30T12:34:56.789Z",
            "2024-02-29 12:34:56.789Z",
            "2024-02-29T24:00:00.000Z",
            "1969-12-31T23:59:59.999Z",
        ] {
            assert_eq!(Timestamp::parse(other), None, "{other}");
        }
    }

    #[test]
    fn every_arrival_has_an_id_of_its_own() {
        let uuid = |number| Arrival::new(UNIX_EPOCH, DecisionId::new(7, number)).uuid().to_string();
        let one = uuid(1);
        let other = uuid(2);
        assert_ne!(one, other);
        assert_eq!((one.len(), &one[14..15], &one[19..20]), (36, "8", "8"));
        assert_eq!(one.matches('-').count(), 4);
    }
}
