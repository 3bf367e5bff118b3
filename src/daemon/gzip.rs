//! Bytes packed for whoever takes them so.

use std::io::Write;

use flate2::{Compression, write::GzEncoder};

/// The bytes as gzip has them, packed fast. It takes milliseconds for a mebibyte.
pub(super) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::with_capacity(bytes.len() / 8), Compression::fast());
    // A Vec takes all that is written to it.
    let _ = packed.write_all(bytes);
    packed.finish().unwrap_or_default()
}
