//! Durations and sizes with their units, such as `60s` and `16MiB`. A number without a unit is rejected.

use std::time::Duration;

/// Units of time in seconds.
const TIMES: [(&str, f64); 4] = [("ms", 0.001), ("s", 1.0), ("m", 60.0), ("h", 3600.0)];

/// Units of size in bytes. `B` is the last: the others end with it.
const SIZES: [(&str, f64); 4] = [("KiB", 1024.0), ("MiB", 1_048_576.0), ("GiB", 1_073_741_824.0), ("B", 1.0)];

/// The longest duration, in seconds: safe to add to any point in time.
const LONGEST: f64 = 366.0 * 24.0 * 3600.0;

/// The largest size, in bytes.
const LARGEST: f64 = 1_099_511_627_776.0;

/// A duration such as `60s`, `500ms`, `10m` or `1.5h`, longer than zero and at most 366 days.
pub(crate) fn duration(text: &str) -> Option<Duration> {
    let seconds = amount(text, &TIMES)?;
    let duration = (seconds > 0.0 && seconds <= LONGEST).then(|| Duration::from_secs_f64(seconds));
    // Less than a nanosecond is none at all.
    duration.filter(|duration| !duration.is_zero())
}

/// A size such as `16MiB`, at least a byte and at most a tebibyte.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the range is checked just before"
)]
pub(crate) fn size(text: &str) -> Option<usize> {
    let bytes = amount(text, &SIZES)?;
    (1.0..=LARGEST).contains(&bytes).then_some(bytes as usize)
}

fn amount(text: &str, units: &[(&str, f64)]) -> Option<f64> {
    let (number, factor) =
        units.iter().find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, factor)))?;
    let number = number.trim_end();
    let is_plain = number.starts_with(|c: char| c.is_ascii_digit())
        && number.chars().all(|c| c.is_ascii_digit() || c == '.');
    if is_plain { number.parse::<f64>().ok().map(|number| number * factor) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_have_units() {
        let seconds = |text| duration(text).map(|duration| duration.as_secs_f64());
        assert_eq!(seconds("60s"), Some(60.0));
        assert_eq!(seconds("500ms"), Some(0.5));
        assert_eq!(seconds("10m"), Some(600.0));
        assert_eq!(seconds("1.5 h"), Some(5400.0));
        assert_eq!(size("16MiB"), Some(16 << 20));
        assert_eq!(size("64KiB"), Some(64 << 10));
        assert_eq!(size("7B"), Some(7));
        for text in ["60", "s", "-1s", "0s", "1e3s", "infs", "1d", "", "9999999h", "1..2s", "0.0000000001s"] {
            assert_eq!(duration(text), None, "{text}");
        }
        for text in ["16", "16MB", "16M", "0B", "-1B", "99999999GiB", "0.5B"] {
            assert_eq!(size(text), None, "{text}");
        }
    }
}
