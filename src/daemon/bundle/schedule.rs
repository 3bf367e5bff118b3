//! When the server of a bundle is asked. Pure, so that ten thousand machines can be counted.

use std::time::Duration;

/// How much shorter or longer a pause may be, in thousandths.
const JITTER: u64 = 200;

/// The pause before the next poll: up to a fifth shorter or longer than the setting, by a random number.
pub(super) fn pause(poll: Duration, random: u64) -> Duration {
    let thousandths = 1000 - JITTER + random % (2 * JITTER + 1);
    let micros = u64::try_from(poll.as_micros()).unwrap_or(u64::MAX).saturating_mul(thousandths) / 1000;
    Duration::from_micros(micros)
}

/// The pause before the first poll of a daemon that has a bundle: machines that start together do not ask together.
pub(super) fn first_pause(poll: Duration, random: u64) -> Duration {
    let micros = u64::try_from(poll.as_micros()).unwrap_or(u64::MAX);
    Duration::from_micros(random % micros.max(1))
}

/// The longest pause before a poll that is urgent: machines that a bundle is stale on at the same moment do not ask together.
const LONGEST_URGENT: Duration = Duration::from_secs(10);

/// The pause before a poll because the bundle is stale or cannot be used: up to a fifth of the setting.
pub(super) fn urgent_pause(poll: Duration, random: u64) -> Duration {
    first_pause((poll / 5).min(LONGEST_URGENT), random)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MACHINES: usize = 10_000;

    /// `SplitMix64`.
    fn next(state: &mut u64) -> u64 {
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    #[test]
    fn a_pause_is_up_to_a_fifth_shorter_or_longer() {
        let poll = Duration::from_secs(30);
        let pauses: Vec<Duration> = (0..401).map(|random| pause(poll, random)).collect();
        assert_eq!(pauses.iter().min(), Some(&Duration::from_secs(24)));
        assert_eq!(pauses.iter().max(), Some(&Duration::from_secs(36)));
    }

    #[test]
    fn an_urgent_poll_comes_within_ten_seconds() {
        for (poll, longest) in [(Duration::from_secs(30), 6), (Duration::from_hours(6), 10)] {
            let longest = Duration::from_secs(longest);
            let latest = (0..1000).map(|random| urgent_pause(poll, random * 10_007)).max().unwrap();
            assert!(latest < longest && latest > longest * 9 / 10, "{latest:?}");
        }
    }

    /// The schedule alone, as 10,000 machines follow it that all start in the same second: how long after its publication each
    /// asks for a bundle, and how many ask in the busiest second.
    #[test]
    fn ten_thousand_machines_ask_within_a_minute_and_not_all_at_once() {
        let poll = Duration::from_secs(30);
        let published = Duration::from_hours(1);
        let mut random = 20_261_126;
        let mut waits = Vec::with_capacity(MACHINES);
        let mut seconds = vec![0_usize; 3700];
        for _ in 0..MACHINES {
            let mut at = first_pause(poll, next(&mut random));
            while at < published {
                seconds[usize::try_from(at.as_secs()).unwrap()] += 1;
                at += pause(poll, next(&mut random));
            }
            waits.push(at.saturating_sub(published));
        }
        waits.sort();
        let (median, late) = (waits[MACHINES / 2], waits[MACHINES * 99 / 100]);
        let busiest = seconds[60..3600].iter().max().unwrap();
        println!("median {median:?}, p99 {late:?}, last {:?}, busiest second {busiest}", waits[MACHINES - 1]);
        assert!(late < Duration::from_secs(36) && waits[MACHINES - 1] <= Duration::from_secs(36), "{late:?}");
        assert!(*busiest < 500, "of 333 a second on average: {busiest}");
    }
}
