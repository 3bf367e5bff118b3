//! Where audit lines go, as their writer sees it. Refuses to know lines.

use std::{
    fs::File,
    io::{self, Write},
};

/// A place for bytes.
pub(super) trait AuditSink: std::fmt::Debug + Send {
    /// How many more bytes go to the same place.
    fn remaining_capacity(&self) -> u64;

    /// Makes sure that so many more bytes may go there.
    fn reserve(&mut self, bytes: usize) -> io::Result<()>;

    /// Writes some of these bytes, and tells how many.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize>;

    /// Takes back the last bytes that were written, the beginning of a line that did not fit. Returns whether that
    /// could be done.
    fn discard_tail(&mut self, bytes: usize) -> bool;

    /// Has what was written put on the disk.
    fn sync(&mut self) -> io::Result<()>;

    /// Looks whether it is still where it should be, and goes there if not.
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
