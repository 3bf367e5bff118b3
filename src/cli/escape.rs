//! Escapes text from hooks, hosts and file names. Control characters in it could move the cursor, recolour the screen
//! or reverse the reading order.

use std::{borrow::Cow, fmt::Write, path::Path};

use crate::model::{escaped_line, is_unsafe_to_show};

/// A text on one line, with its control characters escaped.
pub(super) fn line(text: &str) -> Cow<'_, str> {
    escaped_line(text)
}

/// A text that keeps its lines, each after the first indented by this many spaces.
pub(super) fn block(text: &str, indent: usize) -> String {
    let separator = format!("\n{}", " ".repeat(indent));
    let lines: Vec<_> = text.lines().map(|text| line(&text.replace('\t', "    ")).into_owned()).collect();
    lines.join(&separator)
}

/// The beginning of a text on one line, at most `most` characters, with `…` where it was cut.
pub(super) fn short(text: &str, most: usize) -> String {
    // Texts may be megabytes long: only as much as needed is read.
    let beginning: String = text.chars().take(most + 1).collect();
    let shown = line(&beginning);
    if shown.chars().count() <= most {
        return shown.into_owned();
    }
    shown.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}

/// JSON for a terminal. In valid JSON these characters stand in strings only, except for white space.
pub(super) fn json(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\r' | '\t' => shown.push(' '),
            '\n' => shown.push(c),
            c if is_unsafe_to_show(c) => {
                // Above U+FFFF, JSON has two escapes for a character.
                for unit in c.encode_utf16(&mut [0; 2]) {
                    _ = write!(shown, "\\u{unit:04x}");
                }
            }
            c => shown.push(c),
        }
    }
    shown
}

/// A path on one line.
pub(super) fn path(path: &Path) -> String {
    line(&path.to_string_lossy()).into_owned()
}

/// The lines of a file, each character kept as one, so that columns stay where they are.
pub(super) fn source(text: &str) -> String {
    let replace = |c: char| match c {
        '\n' => c,
        // A wider tab would put carets in the wrong column.
        '\t' => ' ',
        '\0'..='\x1f' => char::from_u32(0x2400 + u32::from(c)).unwrap_or('\u{fffd}'),
        c if is_unsafe_to_show(c) => '\u{fffd}',
        c => c,
    };
    text.replace("\r\n", "\n").chars().map(replace).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_from_outside_reaches_the_terminal_as_a_command() {
        assert_eq!(
            line("\x1b[2Jgone\r\n\u{9b}1m \u{202e}txt\u{7f}"),
            r"\x1b[2Jgone\r\n\u{9b}1m \u{202e}txt\x7f"
        );
        assert_eq!(line("plain — ünïcode 🙂"), "plain — ünïcode 🙂");
        assert_eq!(block("a\n\tb\x07", 2), "a\n      b\\x07");
        assert_eq!(json("{\r\n\t\"a\": \"\u{9b}\u{202e}\"}"), "{ \n \"a\": \"\\u009b\\u202e\"}");
        assert_eq!(json("\u{e0041}"), "\\udb40\\udc41");
        assert_eq!(source("a\x1b\tb\r\nc"), "a␛ b\nc");
    }

    #[test]
    fn long_texts_are_cut() {
        assert_eq!(short("abcdef", 6), "abcdef");
        assert_eq!(short("abcdefg", 6), "abcde…");
        assert_eq!(short("ab\ndefg", 6), "ab\\nd…");
    }
}
