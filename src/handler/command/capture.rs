//! What is kept of an output stream: the head, or the head and the tail, within a fixed cap.

use bytes::Bytes;

/// The part of one output stream that was kept.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Captured {
    /// The kept bytes, as the process wrote them. A middle part that was left out is replaced by a line with the
    /// number of missing bytes.
    pub bytes: Bytes,
    /// How many bytes were read from the process.
    pub seen: u64,
    /// How many of them are not in `bytes`.
    pub left_out: u64,
}

impl Captured {
    /// Returns true if the process wrote more than was kept.
    #[must_use]
    pub fn truncated(&self) -> bool {
        self.left_out > 0
    }
}

/// Takes a stream chunk by chunk and keeps at most its cap; allocates nothing before the first byte.
#[derive(Debug)]
pub(super) struct Capture {
    head: Vec<u8>,
    head_cap: usize,
    /// Up to twice `tail_cap` long, so that its front is cut off once per `tail_cap` bytes, not once per chunk.
    tail: Vec<u8>,
    tail_cap: usize,
    seen: u64,
}

impl Capture {
    /// Keeps the first `cap` bytes. For stdout: of a JSON document that is too long, the tail is of no use.
    pub(super) fn head(cap: usize) -> Self {
        Self::new(cap, 0)
    }

    /// Keeps the first and the last half of `cap`. For stderr: a log says at its start what was tried and at its end
    /// what failed.
    pub(super) fn head_and_tail(cap: usize) -> Self {
        Self::new(cap - cap / 2, cap / 2)
    }

    fn new(head_cap: usize, tail_cap: usize) -> Self {
        Self { head: Vec::new(), head_cap, tail: Vec::new(), tail_cap, seen: 0 }
    }

    /// Takes the next bytes of the stream.
    pub(super) fn take(&mut self, chunk: &[u8]) {
        self.seen += chunk.len() as u64;
        let room = self.head_cap - self.head.len();
        let (head, rest) = chunk.split_at(room.min(chunk.len()));
        self.head.extend_from_slice(head);
        let rest = &rest[rest.len().saturating_sub(self.tail_cap)..];
        self.tail.extend_from_slice(rest);
        if self.tail.len() > 2 * self.tail_cap {
            self.trim_tail();
        }
    }

    /// The first bytes of the stream.
    pub(super) fn first_bytes(&self) -> &[u8] {
        &self.head
    }

    /// Ends the capture and joins what was kept.
    pub(super) fn finish(mut self) -> Captured {
        self.trim_tail();
        let kept = self.head.len() + self.tail.len();
        let left_out = self.seen - kept as u64;
        let mut bytes = self.head;
        if left_out > 0 && self.tail_cap > 0 {
            bytes.extend_from_slice(format!("\n[... {left_out} bytes left out ...]\n").as_bytes());
        }
        bytes.extend_from_slice(&self.tail);
        Captured { bytes: bytes.into(), seen: self.seen, left_out }
    }

    fn trim_tail(&mut self) {
        let surplus = self.tail.len().saturating_sub(self.tail_cap);
        self.tail.drain(..surplus);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(mut capture: Capture, chunks: &[&[u8]]) -> Captured {
        for chunk in chunks {
            capture.take(chunk);
        }
        capture.finish()
    }

    #[test]
    fn an_output_of_exactly_the_cap_is_kept_whole() {
        for capture in [Capture::head(8), Capture::head_and_tail(8)] {
            let captured = kept(capture, &[b"abc", b"", b"defgh"]);
            assert_eq!(captured.bytes, "abcdefgh");
            assert!(!captured.truncated());
        }
    }

    #[test]
    fn a_head_drops_what_comes_after_the_cap() {
        let captured = kept(Capture::head(4), &[b"abc", b"def", b"ghi"]);
        assert_eq!(captured, Captured { bytes: "abcd".into(), seen: 9, left_out: 5 });
    }

    #[test]
    fn a_middle_left_out_is_counted_in_a_marker() {
        let long = vec![b'-'; 1000];
        let captured = kept(Capture::head_and_tail(6), &[b"abcdef", &long, b"uvw", b"xyz"]);
        assert_eq!(captured.bytes, "abc\n[... 1006 bytes left out ...]\nxyz");
        assert_eq!((captured.seen, captured.left_out), (1012, 1006));
    }

    #[test]
    fn every_split_into_chunks_keeps_the_same_bytes() {
        let whole: Vec<u8> = (0..=255).cycle().take(1000).collect();
        let expected = kept(Capture::head_and_tail(101), &[&whole]);
        for size in 1..=300 {
            let chunks: Vec<&[u8]> = whole.chunks(size).collect();
            assert_eq!(kept(Capture::head_and_tail(101), &chunks), expected, "chunks of {size}");
        }
    }

    #[test]
    fn a_cap_of_zero_keeps_nothing() {
        let captured = kept(Capture::head_and_tail(0), &[b"abc"]);
        assert_eq!(captured, Captured { bytes: Bytes::new(), seen: 3, left_out: 3 });
    }
}
