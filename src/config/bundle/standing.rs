//! Whether a bundle is stale: its own time is over, or nobody has confirmed it for too long. Pure.

use std::{fmt, time::Duration};

use crate::bundle::{BundleStatement, BundleTime};

/// Whether a bundle that is verified is as it should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BundleStanding {
    Current,
    Stale(StaleReason),
}

/// Why a bundle is stale.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StaleReason {
    /// It was signed to count until then.
    Expired(BundleTime),
    /// No server has confirmed it since then.
    Unconfirmed(BundleTime),
}

impl BundleStanding {
    /// Of a bundle that was confirmed last at a time, where the settings have a longest time without that.
    pub(crate) fn of(
        statement: &BundleStatement,
        confirmed: BundleTime,
        max_age: Option<Duration>,
        now: BundleTime,
    ) -> Self {
        if let Some(expires) = statement.expires.filter(|expires| *expires <= now) {
            return Self::Stale(StaleReason::Expired(expires));
        }
        match max_age {
            Some(longest) if now.since(confirmed) > longest => {
                Self::Stale(StaleReason::Unconfirmed(confirmed))
            }
            _ => Self::Current,
        }
    }

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Current => "current",
            Self::Stale(StaleReason::Expired(_)) => "expired",
            Self::Stale(StaleReason::Unconfirmed(_)) => "unconfirmed",
        }
    }
}

impl fmt::Display for StaleReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Expired(at) => write!(f, "it expired at {at}; publish a newer one"),
            Self::Unconfirmed(since) => write!(
                f,
                "no server has confirmed it since {since}, which is longer than `bundle.max_age`; see `hookyard status`"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bundle::BundleName;

    fn statement(expires: Option<u64>) -> BundleStatement {
        BundleStatement {
            name: BundleName::new("acme/guards").unwrap(),
            version: 1,
            not_before: BundleTime::from_seconds(0),
            expires: expires.map(BundleTime::from_seconds),
            manifest: String::new(),
            archive: String::new(),
            size: 0,
        }
    }

    #[test]
    fn a_bundle_is_stale_from_the_second_it_expires_and_after_the_longest_time_without_word() {
        let minute = Some(Duration::from_mins(1));
        let standing = |expires, max_age, now| {
            let (confirmed, now) = (BundleTime::from_seconds(1000), BundleTime::from_seconds(now));
            BundleStanding::of(&statement(expires), confirmed, max_age, now).as_str()
        };
        assert_eq!(standing(None, None, 9_000_000), "current");
        assert_eq!(standing(Some(2000), None, 1999), "current");
        assert_eq!(standing(Some(2000), None, 2000), "expired");
        assert_eq!(standing(None, minute, 1060), "current");
        assert_eq!(standing(None, minute, 1061), "unconfirmed");
        assert_eq!(standing(Some(1061), minute, 1061), "expired");
        // A clock before the confirmation counts as no time at all.
        assert_eq!(standing(None, minute, 0), "current");
    }
}
