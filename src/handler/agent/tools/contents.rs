//! Reading one open file, up to a limit, and telling text from binary data.

use std::{
    fs::File,
    io::{self, Read},
    sync::atomic::{AtomicBool, Ordering},
};

/// How much is read between two checks whether to stop, in bytes.
const CHUNK: u64 = 256 << 10;

/// How much of a file's beginning is checked for text, in bytes.
const SNIFFED: usize = 8 << 10;

/// Why a file was not read.
#[derive(Debug, thiserror::Error)]
pub(super) enum ContentsError {
    #[error("is larger than {0} bytes")]
    TooLarge(u64),
    #[error("was not read: the time is over")]
    Stopped,
    #[error("cannot be read: {}", .0.kind())]
    Failed(#[from] io::Error),
}

/// Reads a whole file.
///
/// Returns an error if it is too large, cannot be read, or `stop` becomes true.
pub(super) fn read(mut file: File, largest: u64, stop: &AtomicBool) -> Result<Vec<u8>, ContentsError> {
    if file.metadata()?.len() > largest {
        return Err(ContentsError::TooLarge(largest));
    }
    let mut bytes = Vec::new();
    loop {
        if stop.load(Ordering::Relaxed) {
            return Err(ContentsError::Stopped);
        }
        let read = file.by_ref().take(CHUNK).read_to_end(&mut bytes)?;
        // The file may have grown since it was measured.
        if bytes.len() as u64 > largest {
            return Err(ContentsError::TooLarge(largest));
        }
        if read == 0 {
            return Ok(bytes);
        }
    }
}

/// Whether the beginning has no NUL and is UTF-8, except for a few bytes.
pub(super) fn is_text(bytes: &[u8]) -> bool {
    let beginning = &bytes[..bytes.len().min(SNIFFED)];
    let broken: usize = beginning.utf8_chunks().map(|chunk| chunk.invalid().len()).sum();
    // The beginning may end within a character.
    memchr::memchr(0, beginning).is_none() && broken <= 3 + beginning.len() / 20
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_told_from_the_rest() {
        assert!(is_text(b"") && is_text("ünïcode".repeat(2000).as_bytes()));
        assert!(is_text(b"caf\xe9 au lait"));
        assert!(!is_text(b"a\0b") && !is_text(&[0xfe; 64]));
    }
}
