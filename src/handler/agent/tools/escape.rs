//! Writes file names for a model on one line, so that no name can imitate another line of output.

use std::{fmt::Write, os::unix::ffi::OsStrExt, path::Path};

/// A path on one line. Bytes that are no UTF-8, and control characters, are escaped.
pub(super) fn path(path: &Path) -> String {
    let mut shown = String::new();
    for chunk in path.as_os_str().as_bytes().utf8_chunks() {
        chunk.valid().chars().for_each(|c| escape(c, &mut shown));
        for byte in chunk.invalid() {
            // Writing to a string cannot fail.
            _ = write!(shown, "\\x{byte:02x}");
        }
    }
    shown
}

/// The beginning of a text on one line, with `…` where it was cut.
pub(super) fn short(text: &str, most: usize) -> String {
    let mut shown = String::new();
    cut(text, most).chars().for_each(|c| escape(c, &mut shown));
    cut(&shown, most)
}

/// The beginning of a text, with `…` where it was cut.
pub(super) fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some(_) => text.chars().take(most.saturating_sub(1)).chain(['…']).collect(),
    }
}

fn escape(c: char, shown: &mut String) {
    if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') {
        shown.extend(c.escape_default());
    } else {
        shown.push(c);
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    #[test]
    fn a_name_is_one_line() {
        let name = |bytes: &[u8]| path(Path::new(OsStr::from_bytes(bytes)));
        assert_eq!(name(b"a\nb:1: c\x1b\xff"), r"a\nb:1: c\u{1b}\xff");
        assert_eq!(name("ünïcode\u{2028}".as_bytes()), r"ünïcode\u{2028}");
    }

    #[test]
    fn long_texts_are_cut() {
        assert_eq!(cut("äöü", 3), "äöü");
        assert_eq!(cut("äöüß", 3), "äö…");
        assert_eq!(short("\n\n\n", 4), "\\n\\…");
    }
}
