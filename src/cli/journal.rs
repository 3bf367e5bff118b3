//! The priorities of lines in systemd's journal, as sd-daemon(3) defines them, where standard error goes there.

use std::{
    fs::File,
    io::{self, Write},
    os::{fd::AsFd, unix::fs::MetadataExt},
};

use tracing::{Level, Metadata};
use tracing_subscriber::fmt::MakeWriter;

/// The variable with the device and the inode of the stream to the journal.
const VARIABLE: &str = "JOURNAL_STREAM";

/// Whether standard error is the stream to the journal. Another program between the two, such as a shell with a
/// redirection, has the variable as well.
pub(super) fn stderr_is_journal() -> bool {
    let Ok(stream) = std::env::var(VARIABLE) else { return false };
    let stderr = io::stderr().as_fd().try_clone_to_owned().map(File::from);
    let found = stderr.and_then(|stderr| stderr.metadata());
    found.is_ok_and(|found| is_stream(&stream, found.dev(), found.ino()))
}

fn is_stream(variable: &str, device: u64, inode: u64) -> bool {
    variable.split_once(':').is_some_and(|(known_device, known_inode)| {
        known_device.parse() == Ok(device) && known_inode.parse() == Ok(inode)
    })
}

/// The lines of a text, each with the priority of a level before it. Each is an entry of its own, so blank ones are left
/// out.
pub(super) fn with_priority(level: Level, text: &str) -> String {
    let priority = priority(level);
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    lines.flat_map(|line| [priority, line, "\n"]).collect()
}

fn priority(level: Level) -> &'static str {
    match level {
        Level::ERROR => "<3>",
        Level::WARN => "<4>",
        Level::INFO => "<6>",
        Level::DEBUG | Level::TRACE => "<7>",
    }
}

/// Writes log lines to standard error, with priorities if that is the journal.
#[derive(Debug, Clone, Copy)]
pub(super) struct LogOutput {
    pub(super) is_journal: bool,
}

/// Writes the lines of one level.
#[derive(Debug)]
pub(super) struct LevelWriter {
    /// None if the lines have no priorities.
    level: Option<Level>,
}

impl MakeWriter<'_> for LogOutput {
    type Writer = LevelWriter;

    fn make_writer(&self) -> LevelWriter {
        LevelWriter { level: self.is_journal.then_some(Level::INFO) }
    }

    fn make_writer_for(&self, metadata: &Metadata<'_>) -> LevelWriter {
        LevelWriter { level: self.is_journal.then_some(*metadata.level()) }
    }
}

impl Write for LevelWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let Some(level) = self.level else { return io::stderr().write(bytes) };
        // In one piece: a line of another thread must not come between a priority and its line.
        let text = with_priority(level, &String::from_utf8_lossy(bytes));
        io::stderr().lock().write_all(text.as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_stream_of_the_variable_is_the_journal() {
        assert!(is_stream("9:1234", 9, 1234));
        for other in ["", ":", "9", "9:", ":1234", "8:1234", "9:1235", "1234:9", "9:1234:1", "9:1234 "] {
            assert!(!is_stream(other, 9, 1234), "{other}");
        }
    }

    #[test]
    fn each_line_has_its_priority() {
        assert_eq!(with_priority(Level::WARN, "a\nb\n"), "<4>a\n<4>b\n");
        assert_eq!(with_priority(Level::ERROR, "a\n\n \nb"), "<3>a\n<3>b\n");
        assert_eq!(with_priority(Level::TRACE, ""), "");
    }
}
