//! The hookyard that a bundle needs.

/// Whether this hookyard is at least of a version: one to three numbers with points between them. Nothing if the text is no
/// version.
pub(super) fn is_at_least(own: &str, wanted: &str) -> Option<bool> {
    // What follows a hyphen names a build before the release.
    let own = numbers(own.split('-').next()?)?;
    Some(own >= numbers(wanted)?)
}

fn numbers(text: &str) -> Option<[u64; 3]> {
    let mut found = [0; 3];
    let mut parts = text.split('.');
    for (at, part) in parts.by_ref().take(3).enumerate() {
        let is_number = !part.is_empty() && part.len() <= 9 && part.bytes().all(|byte| byte.is_ascii_digit());
        found[at] = is_number.then(|| part.parse().ok())??;
    }
    parts.next().is_none().then_some(found)
}

#[cfg(test)]
mod tests {
    use super::is_at_least;

    #[test]
    fn versions_are_compared_by_their_numbers() {
        for (own, wanted, expected) in [
            ("0.10.0", "0.9", Some(true)),
            ("0.1.0", "0.1", Some(true)),
            ("0.1.0", "0.1.1", Some(false)),
            ("0.1.0", "1", Some(false)),
            ("1.0.0-rc1", "1.0.0", Some(true)),
            ("0.1.0", "", None),
            ("0.1.0", "0.1.0.0", None),
            ("0.1.0", "v1", None),
        ] {
            assert_eq!(is_at_least(own, wanted), expected, "{own} {wanted}");
        }
    }
}
