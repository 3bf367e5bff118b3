//! Text from hooks, hosts and file names on one line. Control characters in it could move the cursor, recolour the
//! screen, begin another line or reverse the reading order.

use std::{borrow::Cow, fmt::Write};

/// A text on one line, with its control characters escaped.
pub(crate) fn escaped_line(text: &str) -> Cow<'_, str> {
    if !text.contains(is_unsafe_to_show) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 8);
    text.chars().for_each(|c| push_escaped(c, &mut shown));
    Cow::Owned(shown)
}

/// Whether a character controls a terminal, or changes the direction in which text is read.
pub(crate) fn is_unsafe_to_show(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}' | '\u{2029}')
        || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn push_escaped(c: char, shown: &mut String) {
    match c {
        '\n' => shown.push_str("\\n"),
        '\r' => shown.push_str("\\r"),
        '\t' => shown.push_str("\\t"),
        // Writing to a string cannot fail.
        c if is_unsafe_to_show(c) && u32::from(c) < 0x80 => _ = write!(shown, "\\x{:02x}", u32::from(c)),
        c if is_unsafe_to_show(c) => _ = write!(shown, "\\u{{{:x}}}", u32::from(c)),
        c => shown.push(c),
    }
}
