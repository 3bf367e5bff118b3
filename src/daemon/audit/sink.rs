//! The destination of audit lines, as their writer sees it.

use std::{
    fs::File,
    io::{self, Write},
};

/// A destination of bytes.
pub(super) trait AuditSink: std::fmt::Debug + Send {
    /// How many more bytes fit before a rotation.
    fn remaining_capacity(&self) -> u64;

    /// Rotates if this many more bytes do not fit.
    fn reserve(&mut self, bytes: usize) -> io::Result<()>;

    /// Writes some of these bytes. Returns how many.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize>;

    /// Removes the last bytes that were written, the start of a line that could not be finished. Returns whether that
    /// succeeded.
    fn discard_tail(&mut self, bytes: usize) -> bool;

    /// Syncs what was written to the disk.
    fn sync(&mut self) -> io::Result<()>;

    /// Opens the path again if its file was moved away.
    fn reopen_if_moved(&mut self) -> io::Result<()>;
}

/// Standard output.
#[derive(Debug)]
pub(super) struct StdoutSink(File);

impl StdoutSink {
    pub(super) fn open() -> io::Result<Self> {
        Ok(Self(File::from(rustix::io::fcntl_dupfd_cloexec(io::stdout(), 3)?)))
    }
}

impl AuditSink for StdoutSink {
    fn remaining_capacity(&self) -> u64 {
        u64::MAX
    }

    fn reserve(&mut self, _: usize) -> io::Result<()> {
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn discard_tail(&mut self, _: usize) -> bool {
        false
    }

    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn reopen_if_moved(&mut self) -> io::Result<()> {
        Ok(())
    }
}
