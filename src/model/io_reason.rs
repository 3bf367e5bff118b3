//! The text of an I/O error in a sentence.

use std::io;

/// An I/O error without its number, to follow a colon: `no such file or directory`.
pub(crate) fn io_reason(error: &io::Error) -> String {
    let text = error.to_string();
    let end = text.find(" (os error").unwrap_or(text.len());
    let mut letters = text[..end].chars();
    letters.next().map(|first| first.to_lowercase().chain(letters).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_read_like_a_part_of_a_sentence() {
        assert_eq!(io_reason(&io::Error::from_raw_os_error(2)), "no such file or directory");
        assert_eq!(io_reason(&io::Error::other("Too late")), "too late");
    }
}
