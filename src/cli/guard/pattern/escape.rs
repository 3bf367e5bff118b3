//! Texts as patterns of rules.

/// A text as a pattern of a rule that matches it and nothing else.
pub(in crate::cli::guard) fn escaped(text: &str) -> String {
    let mut written = String::new();
    text.chars().for_each(|c| push_literal(c, &mut written));
    written
}

/// A character outside of sets.
pub(super) fn push_literal(c: char, text: &mut String) {
    match c {
        // What has a meaning only within sets, or with flags that are not set.
        '-' | '#' | '&' | '~' => text.push(c),
        c => text.push_str(&regex_syntax::escape(c.encode_utf8(&mut [0; 4]))),
    }
}
