//! Counts, durations and sizes as people read them.

use std::time::Duration;

/// A count and its noun: `1 event`, `3 events`.
pub(super) fn plural(number: usize, noun: &str) -> String {
    plural_u64(number as u64, noun)
}

/// A count and its noun: `1 event`, `3 events`.
pub(super) fn plural_u64(number: u64, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

/// A count of entries in settings.
pub(super) fn entries(number: usize) -> String {
    if number == 1 { "1 entry".to_owned() } else { format!("{number} entries") }
}

/// A duration in its largest one or two units: `3 min 20 s`.
#[cfg(feature = "daemon")]
pub(super) fn coarse_duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0 => format!("{} ms", duration.as_millis()),
        1..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
        _ => format!("{} d {} h", seconds / 86_400, seconds / 3600 % 24),
    }
}

/// A duration with three significant digits: `61.2 ms`.
pub(super) fn precise_duration(duration: Duration) -> String {
    let milliseconds = duration.as_secs_f64() * 1e3;
    match milliseconds {
        m if m >= 1e3 => format!("{:.2} s", m / 1e3),
        m if m >= 100.0 => format!("{m:.0} ms"),
        m if m >= 1.0 => format!("{m:.1} ms"),
        m => format!("{:.0} µs", m * 1e3),
    }
}

/// A number of bytes, in the largest unit that divides it: `16 MiB`.
pub(super) fn byte_size(bytes: usize) -> String {
    match bytes {
        b if b > 0 && b % (1 << 20) == 0 => format!("{} MiB", b >> 20),
        b if b > 0 && b % (1 << 10) == 0 => format!("{} KiB", b >> 10),
        b => plural(b, "byte"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_three_significant_digits() {
        let shown = |micros| precise_duration(Duration::from_micros(micros));
        assert_eq!(shown(0), "0 µs");
        assert_eq!(shown(999), "999 µs");
        assert_eq!(shown(61_234), "61.2 ms");
        assert_eq!(shown(2_000_000), "2.00 s");
        assert_eq!(shown(12_340_000), "12.34 s");
    }

    #[test]
    fn byte_sizes_are_whole_numbers() {
        assert_eq!(
            [byte_size(16 << 20), byte_size(3 << 10), byte_size(1025), byte_size(1)],
            ["16 MiB", "3 KiB", "1025 bytes", "1 byte"]
        );
    }
}
