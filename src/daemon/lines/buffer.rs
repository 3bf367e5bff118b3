//! The bytes of a connection, as lines of a bounded length.

use std::{io, sync::Arc};

use memchr::memchr;
use tokio::net::UnixStream;

use crate::daemon::request_body::{BodyBudget, BudgetShare};

/// How much is read at once, in bytes, and how much a connection may hold outside the budget of its listener.
const CHUNK_BYTES: usize = 64 << 10;

/// How much is kept of a line that is not taken as a whole, in bytes.
const KEPT_BYTES: usize = CHUNK_BYTES / 2;

/// Lines that are not taken yet, and the beginning of one that has not ended.
#[derive(Debug)]
pub(super) struct LineBuffer {
    bytes: Vec<u8>,
    /// Where the first line begins that is not taken.
    start: usize,
    /// Up to where no line ends.
    scanned: usize,
    limit: usize,
    /// The share of what is held beyond one chunk.
    share: BudgetShare,
    /// The line at `start`, if only its beginning is kept.
    cut: Option<CutLine>,
}

/// A line of which only the beginning is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CutLine {
    pub(super) why: CutReason,
    /// How long it is so far.
    pub(super) size: usize,
    kept: usize,
}

/// Why only the beginning of a line is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CutReason {
    /// It is longer than a line may be.
    TooLong,
    /// The listener holds as much as it may.
    NoBudget,
}

/// A line that has come to its end.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ReceivedLine<'b> {
    Whole(&'b [u8]),
    /// One of which only this beginning was kept.
    Cut(&'b [u8], CutLine),
}

impl CutLine {
    fn of(why: CutReason, size: usize) -> Self {
        Self { why, size, kept: size.min(KEPT_BYTES) }
    }
}

impl LineBuffer {
    /// For lines of at most this length.
    pub(super) fn new(limit: usize, budget: &Arc<BodyBudget>) -> Self {
        let share = BudgetShare::none(budget);
        Self { bytes: Vec::with_capacity(CHUNK_BYTES), start: 0, scanned: 0, limit, share, cut: None }
    }

    /// Reads what has come. Returns how much; nothing at the end of the stream.
    ///
    /// Returns an error of the kind `WouldBlock` if nothing has come.
    pub(super) fn read_from(&mut self, stream: &UnixStream) -> io::Result<usize> {
        self.make_room();
        stream.try_read_buf(&mut self.bytes)
    }

    /// Whether a line has begun that has not ended, once all whole lines are taken.
    pub(super) fn has_partial(&self) -> bool {
        self.start < self.bytes.len()
    }

    /// What is there of a line that has no end, once all whole lines are taken.
    pub(super) fn partial(&self) -> &[u8] {
        let rest = &self.bytes[self.start..];
        &rest[..rest.len().min(KEPT_BYTES)]
    }

    /// The next line that has ended, without its end. Blank lines are skipped.
    pub(super) fn next_line(&mut self) -> Option<ReceivedLine<'_>> {
        loop {
            let kept = self.start + self.cut.map_or(0, |cut| cut.kept);
            let from = self.scanned.max(kept);
            let Some(found) = memchr(b'\n', &self.bytes[from..]) else {
                self.scanned = self.bytes.len();
                self.drop_excess();
                return None;
            };
            let (start, end) = (self.start, from + found);
            (self.start, self.scanned) = (end + 1, end + 1);
            if let Some(mut cut) = self.cut.take() {
                cut.size += end - kept;
                return Some(ReceivedLine::Cut(&self.bytes[start..kept], cut));
            }
            let line = &self.bytes[start..end];
            if line.len() > self.limit {
                let cut = CutLine::of(CutReason::TooLong, line.len());
                return Some(ReceivedLine::Cut(&self.bytes[start..start + cut.kept], cut));
            }
            if !line.trim_ascii().is_empty() {
                return Some(ReceivedLine::Whole(&self.bytes[start..end]));
            }
        }
    }

    /// Drops what came of a line of which no more is kept.
    fn drop_excess(&mut self) {
        let held = self.bytes.len() - self.start;
        match &mut self.cut {
            Some(cut) => cut.size += held - cut.kept,
            None if held > self.limit => self.cut = Some(CutLine::of(CutReason::TooLong, held)),
            None => return,
        }
        let kept = self.cut.map_or(held, |cut| cut.kept);
        self.bytes.truncate(self.start + kept);
        self.scanned = self.bytes.len();
    }

    /// Makes room for at least half a chunk.
    fn make_room(&mut self) {
        let held = self.bytes.len() - self.start;
        if held == 0 {
            self.bytes.clear();
            if self.bytes.capacity() > CHUNK_BYTES {
                self.bytes = Vec::with_capacity(CHUNK_BYTES);
            }
            (self.start, self.scanned) = (0, 0);
            self.share.shrink(0);
        }
        let free = self.bytes.capacity() - self.bytes.len();
        if free >= CHUNK_BYTES / 2 {
            return;
        }
        self.bytes.drain(..self.start);
        self.scanned -= self.start;
        self.start = 0;
        if self.bytes.capacity() - held >= CHUNK_BYTES / 2 {
            return;
        }
        // As much again as there is, so that a long line is not copied with every chunk.
        if self.share.grow(held.max(CHUNK_BYTES)) {
            self.bytes.reserve_exact(held.max(CHUNK_BYTES));
        } else {
            self.cut = Some(CutLine::of(CutReason::NoBudget, held));
            self.bytes.truncate(KEPT_BYTES);
            self.scanned = self.bytes.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::ListenerMeters;

    const LIMIT: usize = 300 << 10;

    fn budget(bytes: usize) -> Arc<BodyBudget> {
        BodyBudget::new(bytes, "limits.lines_request_bodies", ListenerMeters::resolve("test").bodies())
    }

    /// What a buffer makes of bytes that come in pieces: the lines, with the sizes of those that are cut.
    async fn lines_of(
        buffer: &mut LineBuffer,
        bytes: &[u8],
        piece: usize,
    ) -> Vec<(Vec<u8>, Option<CutLine>)> {
        let (sender, receiver) = UnixStream::pair().unwrap();
        let mut lines = Vec::new();
        for piece in bytes.chunks(piece) {
            let mut left = piece;
            while !left.is_empty() {
                sender.writable().await.unwrap();
                let sent = sender.try_write(left).unwrap_or(0);
                left = &left[sent..];
                receiver.readable().await.unwrap();
                while buffer.read_from(&receiver).is_ok() {
                    while let Some(line) = buffer.next_line() {
                        lines.push(match line {
                            ReceivedLine::Whole(line) => (line.to_vec(), None),
                            ReceivedLine::Cut(beginning, cut) => (beginning.to_vec(), Some(cut)),
                        });
                    }
                }
            }
        }
        lines
    }

    #[tokio::test]
    async fn lines_are_the_same_in_whatever_pieces_they_come() {
        let long = vec![b'x'; LIMIT];
        let too_long = vec![b'y'; LIMIT + 1];
        let bytes =
            [b"a\n\n \r\nbc\r\n", &long[..], b"\n", &too_long, b"\nd\n", &too_long, &too_long, b"\ne"];
        let bytes = bytes.concat();
        for piece in [1 << 10, 70_001, bytes.len()] {
            let mut buffer = LineBuffer::new(LIMIT, &budget(16 << 20));
            let lines = lines_of(&mut buffer, &bytes, piece).await;
            let cut = |size| {
                (vec![b'y'; KEPT_BYTES], Some(CutLine { why: CutReason::TooLong, size, kept: KEPT_BYTES }))
            };
            let expected = [
                (b"a".to_vec(), None),
                (b"bc\r".to_vec(), None),
                (long.clone(), None),
                cut(LIMIT + 1),
                (b"d".to_vec(), None),
                cut(2 * LIMIT + 2),
            ];
            assert!(lines == expected, "in pieces of {piece}");
            assert_eq!((buffer.has_partial(), buffer.partial()), (true, &b"e"[..]));
            assert!(buffer.bytes.capacity() <= 4 * LIMIT);
        }
    }

    #[tokio::test]
    async fn a_long_line_takes_of_the_budget_and_gives_it_back() {
        let budget = budget(LIMIT);
        let mut buffer = LineBuffer::new(1 << 20, &budget);
        let mut long = vec![b'x'; LIMIT / 2];
        long.push(b'\n');
        assert_eq!(lines_of(&mut buffer, &long, 1 << 20).await[0].1, None);
        let mut longer = vec![b'x'; 2 * LIMIT];
        longer.push(b'\n');
        let cut = lines_of(&mut buffer, &longer, 1 << 20).await[0].1.unwrap();
        assert_eq!((cut.why, cut.size), (CutReason::NoBudget, 2 * LIMIT));
        assert_eq!(
            lines_of(&mut buffer, &long, 1 << 20).await[0].1,
            None,
            "what the others had is free again"
        );
    }
}
