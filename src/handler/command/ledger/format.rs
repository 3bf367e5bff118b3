//! The format of a ledger: a header that says where and by whom it was written, and a line of fixed length for each
//! group. Pure except for the clock.
//!
//! ```text
//! hookyard groups 2 <boot id> <pid namespace> <pid> <since>          127 characters and a line feed
//!       4711        81230044521        81230719834                    63 characters and a line feed
//! ```
//!
//! The id of a group is reused once the group is gone, so a line also has the time window in which the leader was
//! started. Nothing else had that id at the time.

use std::io::Write;

use rustix::process::Pid;

use crate::platform::process_ticks_per_second;
pub(super) use crate::platform::{PidScope, process_clock as now};

/// The most groups that are recorded at once: half a mebibyte, and far more than one machine runs.
pub(super) const MAX_GROUPS: usize = 8192;

/// The environment variable whose value tells the processes of one ledger from all others.
pub(in crate::handler::command) const MARK: &str = "HOOKYARD_LIFE";

/// The length of the header, in bytes.
pub(super) const HEADER: usize = 128;

/// The length of a line, in bytes.
pub(super) const LINE: usize = 64;

/// The beginning of a header, with the version of the format.
const MAGIC: &str = "hookyard groups 2";

/// By how many ticks the start of a process may be outside its window: the system rounds, and so do we.
const ROUNDING: u64 = 2;

/// The longest window, in nanoseconds. A longer one was not written by hookyard, or would cover unrelated processes.
const MAX_WINDOW: u64 = 60 * 1_000_000_000;

/// The header: who writes the ledger, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LedgerHeader {
    pub(super) pid_scope: PidScope,
    pub(super) pid: i32,
    /// When the ledger was opened, by the boot clock.
    pub(super) since: u64,
}

impl LedgerHeader {
    /// The value of [`MARK`] for the processes of this ledger.
    pub(super) fn mark(&self) -> String {
        format!("{}-{}", self.pid, self.since)
    }

    pub(super) fn to_bytes(&self) -> [u8; HEADER] {
        let PidScope { boot, namespace } = &self.pid_scope;
        padded(format_args!("{MAGIC} {boot} {namespace} {} {}", self.pid, self.since))
    }

    /// Reads the header of a file; `None` if there is none.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let words = words(bytes.get(..HEADER)?)?.strip_prefix(MAGIC)?;
        let mut words = words.split_ascii_whitespace().map(str::to_owned);
        let pid_scope = PidScope { boot: words.next()?, namespace: words.next()? };
        Some(Self { pid_scope, pid: words.next()?.parse().ok()?, since: words.next()?.parse().ok()? })
    }
}

/// A process group, and the time window in which its leader was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct GroupRecord {
    pub(super) group: Pid,
    pub(super) from: u64,
    pub(super) until: u64,
}

impl GroupRecord {
    pub(super) fn to_bytes(self) -> [u8; LINE] {
        let Self { group, from, until } = self;
        padded(format_args!("{:>10} {from:>20} {until:>20}", group.as_raw_nonzero()))
    }

    /// The line of a free slot.
    pub(super) fn blank() -> [u8; LINE] {
        padded(format_args!(""))
    }

    /// Reads all groups; other lines are ignored.
    pub(super) fn read_all(bytes: &[u8]) -> Vec<Self> {
        let lines = bytes.get(HEADER..).unwrap_or_default().chunks_exact(LINE);
        lines.filter_map(Self::read).collect()
    }

    fn read(line: &[u8]) -> Option<Self> {
        let mut numbers = words(line)?.split_ascii_whitespace();
        // `Pid::from_raw` panics on negative numbers.
        let group = numbers.next()?.parse().ok().filter(|number| *number > 0)?;
        let group = Pid::from_raw(group)?;
        let from: u64 = numbers.next()?.parse().ok()?;
        let until: u64 = numbers.next()?.parse().ok()?;
        let likely = until.checked_sub(from)? <= MAX_WINDOW && numbers.next().is_none();
        likely.then_some(Self { group, from, until })
    }

    /// Whether a process with this start, in ticks, can be the leader.
    pub(super) fn covers(&self, tick: u64) -> bool {
        self.is_older_than(tick) && tick <= ticks(self.until).saturating_add(ROUNDING)
    }

    /// Whether a process with this start, in ticks, can be a member.
    pub(super) fn is_older_than(&self, tick: u64) -> bool {
        ticks(self.from).saturating_sub(ROUNDING) <= tick
    }
}

/// Converts to the ticks in which starts are told.
fn ticks(nanoseconds: u64) -> u64 {
    nanoseconds / (1_000_000_000 / process_ticks_per_second())
}

fn padded<const LENGTH: usize>(text: std::fmt::Arguments<'_>) -> [u8; LENGTH] {
    let mut line = [b' '; LENGTH];
    line[LENGTH - 1] = b'\n';
    // A text that is too long is cut off, and then is no readable line.
    let _ = (&mut line[..LENGTH - 1]).write_fmt(text);
    line
}

/// The text of one whole line.
fn words(line: &[u8]) -> Option<&str> {
    std::str::from_utf8(line).ok()?.strip_suffix('\n').filter(|text| !text.contains('\n'))
}

/// The slots of a file, each for one group.
#[derive(Debug, Default)]
pub(super) struct Slots {
    pub(super) free: Vec<usize>,
    /// The first slot that was never taken.
    pub(super) next: usize,
}

impl Slots {
    /// Takes the slot that was freed last, so that the file stays short.
    pub(super) fn take(&mut self) -> Option<usize> {
        self.free.pop().or_else(|| {
            let slot = self.next;
            self.next = (slot + 1).min(MAX_GROUPS);
            (slot < MAX_GROUPS).then_some(slot)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(group: i32, from: u64, until: u64) -> GroupRecord {
        GroupRecord { group: Pid::from_raw(group).unwrap(), from, until }
    }

    #[test]
    fn a_ledger_is_read_as_it_was_written() {
        let pid_scope = PidScope { boot: "a".repeat(36), namespace: "pid:[4026531836]".to_owned() };
        let head = LedgerHeader { pid_scope, pid: i32::MAX, since: u64::MAX };
        let records = [record(i32::MAX, u64::MAX - 9, u64::MAX), record(2, 0, MAX_WINDOW)];
        let lines = [records[0].to_bytes(), GroupRecord::blank(), records[1].to_bytes()].concat();
        let text = [&head.to_bytes()[..], &lines, b"     99"].concat();
        assert_eq!(LedgerHeader::read(&text), Some(head));
        assert_eq!(GroupRecord::read_all(&text), records);
    }

    #[test]
    fn other_lines_are_no_groups() {
        let lines = [
            "",
            "1",
            "4711 5",
            "0 5 6",
            "-7 5 6",
            "4711 6 5",
            "4711 5 6 7",
            "4711 5 99000000000",
            "a 5 6",
            "4711\n5 6",
        ];
        for line in lines {
            assert_eq!(GroupRecord::read(&padded::<LINE>(format_args!("{line}"))), None, "{line}");
        }
        assert_eq!(GroupRecord::read(&[0; LINE]), None);
        assert_eq!(GroupRecord::read(&[0xff; LINE]), None);
        for head in ["", "hookyard groups 1 a b 1 1", "hookyard groups 2 a b 1", "hookyard groups 2 a b c 1"]
        {
            assert_eq!(LedgerHeader::read(&padded::<HEADER>(format_args!("{head}"))), None, "{head}");
        }
        assert_eq!(LedgerHeader::read(b"hookyard groups 2 a b 1 1\n"), None);
    }

    #[test]
    fn a_window_allows_for_rounding_only() {
        let tick = 1_000_000_000 / process_ticks_per_second();
        let record = record(9, 100 * tick, 103 * tick);
        let covered: Vec<_> = (90..110).filter(|at| record.covers(*at)).collect();
        assert_eq!(covered, (98..=105).collect::<Vec<_>>());
        assert!(record.is_older_than(9_000) && !record.is_older_than(97));
    }
}
