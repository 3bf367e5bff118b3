//! A place among the lines that wait, and a file of them.

use std::{fmt, str::FromStr};

/// Where a line begins: in which file, behind how many bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SpoolPlace {
    pub(super) number: u64,
    pub(super) offset: u64,
}

impl fmt::Display for SpoolPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.number, self.offset)
    }
}

/// A text that is no place.
#[derive(Debug)]
pub(super) struct NoSpoolPlace;

impl FromStr for SpoolPlace {
    type Err = NoSpoolPlace;

    fn from_str(text: &str) -> Result<Self, NoSpoolPlace> {
        let (number, offset) = text.split_once('-').ok_or(NoSpoolPlace)?;
        let read = |text: &str| text.parse().map_err(|_| NoSpoolPlace);
        Ok(Self { number: read(number)?, offset: read(offset)? })
    }
}

/// A file of lines: how much of it there is, and how much of that is shipped.
#[derive(Debug)]
pub(super) struct SpoolFile {
    number: u64,
    bytes: u64,
    lines: u64,
    sent_bytes: u64,
    sent_lines: u64,
}

impl SpoolFile {
    /// An empty one.
    pub(super) fn new(number: u64) -> Self {
        Self { number, bytes: 0, lines: 0, sent_bytes: 0, sent_lines: 0 }
    }

    pub(super) fn number(&self) -> u64 {
        self.number
    }

    pub(super) fn bytes_left(&self) -> u64 {
        self.bytes - self.sent_bytes
    }

    pub(super) fn lines_left(&self) -> u64 {
        self.lines - self.sent_lines
    }

    /// Where the next line to ship begins.
    pub(super) fn place(&self) -> SpoolPlace {
        SpoolPlace { number: self.number, offset: self.sent_bytes }
    }

    /// So much more is in it.
    pub(super) fn grow(&mut self, bytes: u64, lines: u64) {
        self.bytes += bytes;
        self.lines += lines;
    }

    /// So much more of it is shipped.
    pub(super) fn send(&mut self, bytes: u64, lines: u64) {
        self.sent_bytes = (self.sent_bytes + bytes).min(self.bytes);
        self.sent_lines = (self.sent_lines + lines).min(self.lines);
    }
}
