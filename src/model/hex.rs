//! Bytes as hexadecimal digits in lower case.

use std::fmt::Write as _;

/// The digits of some bytes.
pub(crate) fn hex_digits(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}
