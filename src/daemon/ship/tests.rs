//! What waits on disk, whatever a process has left there.

use std::{collections::BTreeSet, fs, os::unix::fs::symlink, path::Path, thread, time::Duration};

use proptest::prelude::*;
use rustix::fs::{CWD, Mode, mkfifoat};
use tempfile::TempDir;
use tokio::time::Instant;

use super::spool::{Spool, SpoolAdoption};

/// Bytes that may wait: more than any of these tests has.
const ENOUGH: u64 = 1 << 20;

/// How long anything may take.
const PATIENCE: Duration = Duration::from_mins(1);

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(5);

fn spool(data: &Path) -> Spool {
    let spool = Spool::make(data, ENOUGH).unwrap();
    adopts_all(&spool);
    spool
}

/// Waits until the spool has all files. Their locks are free once they are closed here, but for a process that another test
/// starts at that moment: it has them, too, until it is the program that it is to be.
fn adopts_all(spool: &Spool) {
    let begun = Instant::now();
    while spool.adopt().unwrap() != SpoolAdoption::Whole {
        assert!(begun.elapsed() < PATIENCE, "somebody keeps the lock of a file");
        thread::sleep(PAUSE);
    }
}

/// Everything that waits, as it is shipped.
fn shipped(spool: &Spool, most: usize) -> String {
    let mut all = Vec::new();
    while let Some(batch) = spool.next(most).unwrap() {
        assert!(batch.bytes.ends_with(b"\n") && batch.lines <= most as u64);
        spool.shipped(&batch, 0);
        all.extend(batch.bytes);
    }
    String::from_utf8(all).unwrap()
}

/// The only file with lines.
fn only_file(data: &Path) -> std::path::PathBuf {
    let files = fs::read_dir(data.join("ship")).unwrap().map(|entry| entry.unwrap().path());
    let files: Vec<_> =
        files.filter(|path| path.extension().is_some_and(|ending| ending == "jsonl")).collect();
    assert_eq!(files.len(), 1, "{files:?}");
    files[0].clone()
}

#[test]
fn half_a_line_at_the_end_is_taken_away_and_the_lines_before_it_are_kept() {
    let lines = "{\"a\":1}\n{\"bc\":\"x y\"}\n{}\n";
    for end in 0..=lines.len() {
        let data = TempDir::new().unwrap();
        let killed = spool(data.path());
        killed.add(lines.as_bytes()).unwrap();
        drop(killed);
        let file = only_file(data.path());
        fs::write(&file, &lines[..end]).unwrap();
        let next = spool(data.path());
        next.add(b"{\"next\":1}\n").unwrap();
        let whole = lines[..end].rfind('\n').map_or(0, |end| end + 1);
        assert_eq!(shipped(&next, 2), format!("{}{{\"next\":1}}\n", &lines[..whole]), "{end}");
    }
}

#[test]
fn what_is_shipped_is_not_shipped_again_and_what_is_not_is() {
    let data = TempDir::new().unwrap();
    let first = spool(data.path());
    first.add(b"1\n2\n3\n").unwrap();
    let batch = first.next(2).unwrap().unwrap();
    first.shipped(&batch, 0);
    drop(first);
    let second = spool(data.path());
    assert_eq!((second.counts().lines, shipped(&second, 9).as_str()), (1, "3\n"));
    drop(second);
    // All of the file is shipped; a new one must not be taken for it.
    let third = spool(data.path());
    third.add(b"4\n5\n").unwrap();
    drop(third);
    assert_eq!(shipped(&spool(data.path()), 9), "4\n5\n");
}

#[test]
fn a_batch_that_is_sent_again_is_the_same_and_has_its_name() {
    let data = TempDir::new().unwrap();
    let spool = spool(data.path());
    spool.add(b"1\n2\n").unwrap();
    let first = spool.next(9).unwrap().unwrap();
    spool.add(b"3\n").unwrap();
    let again = spool.next(9).unwrap().unwrap();
    assert_eq!((&again.bytes, &again.name), (&first.bytes, &first.name));
    let smaller = spool.next(1).unwrap().unwrap();
    assert_eq!((smaller.bytes.as_slice(), smaller.name == first.name), (&b"1\n"[..], false));
    spool.shipped(&smaller, 0);
    assert_eq!(shipped(&spool, 9), "2\n3\n");
}

#[test]
fn a_batch_that_is_dropped_meanwhile_is_not_counted_as_shipped() {
    let data = TempDir::new().unwrap();
    let small = Spool::make(data.path(), 8).unwrap();
    adopts_all(&small);
    small.add(b"11\n").unwrap();
    let batch = small.next(1).unwrap().unwrap();
    for _ in 0..5 {
        small.add(b"222\n").unwrap();
    }
    small.shipped(&batch, 0);
    assert_eq!((small.counts().shipped, small.counts().bytes), (0, 8));
    assert_eq!(small.counts().dropped, 4);
}

#[test]
fn a_killed_process_takes_no_count_of_dropped_lines_along() {
    let data = TempDir::new().unwrap();
    for total in [4, 9] {
        let small = Spool::make(data.path(), 8).unwrap();
        adopts_all(&small);
        for _ in 0..6 {
            small.add(b"222\n").unwrap();
        }
        assert!(small.counts().dropped >= total, "{:?}", small.counts());
        let dropped = small.counts().dropped;
        drop(small);
        assert_eq!(Spool::make(data.path(), 8).unwrap().counts().dropped, dropped);
    }
}

#[test]
fn only_one_process_ships_and_the_other_takes_over() {
    let data = TempDir::new().unwrap();
    let first = spool(data.path());
    let second = Spool::make(data.path(), ENOUGH).unwrap();
    second.add(b"2\n").unwrap();
    first.add(b"1\n").unwrap();
    assert_eq!(second.adopt().unwrap(), SpoolAdoption::Refused);
    first.release();
    adopts_all(&second);
    second.add(b"3\n").unwrap();
    let mut all: Vec<_> = shipped(&second, 9).lines().map(str::to_owned).collect();
    all.sort();
    assert_eq!(all, ["1", "2", "3"]);
}

#[test]
fn what_another_process_still_writes_is_left_to_it_and_shipped_once_it_is_closed() {
    let data = TempDir::new().unwrap();
    let (ships, writes) =
        (Spool::make(data.path(), ENOUGH).unwrap(), Spool::make(data.path(), ENOUGH).unwrap());
    writes.add(b"1\n").unwrap();
    assert_eq!(ships.adopt().unwrap(), SpoolAdoption::Partly);
    assert_eq!(shipped(&ships, 9), "");
    writes.add(b"2\n").unwrap();
    drop(writes);
    adopts_all(&ships);
    assert_eq!(shipped(&ships, 9), "1\n2\n");
}

#[test]
fn a_file_that_cannot_be_used_keeps_no_other_from_being_shipped() {
    let data = TempDir::new().unwrap();
    let killed = spool(data.path());
    killed.add(b"1\n").unwrap();
    drop(killed);
    let place = data.path().join("ship");
    let outside = data.path().join("outside");
    fs::write(&outside, "not ours").unwrap();
    fs::create_dir(place.join("0000000005.jsonl")).unwrap();
    symlink(&outside, place.join("0000000006.jsonl")).unwrap();
    mkfifoat(CWD, place.join("0000000007.jsonl"), Mode::RUSR | Mode::WUSR).unwrap();
    for name in ["5.jsonl", "+6.jsonl", "18446744073709551615.jsonl", "9999999999.jsonl", "x.jsonl"] {
        fs::write(place.join(name), "2\n").unwrap();
    }
    let next = spool(data.path());
    next.add(b"3\n").unwrap();
    assert_eq!(shipped(&next, 9), "1\n3\n");
    assert_eq!(fs::read_to_string(outside).unwrap(), "not ours");
}

#[test]
fn lines_that_cannot_be_read_for_a_moment_stay() {
    let data = TempDir::new().unwrap();
    let spool = spool(data.path());
    spool.add(b"1\n").unwrap();
    let (file, aside) = (only_file(data.path()), data.path().join("aside"));
    fs::rename(&file, &aside).unwrap();
    fs::create_dir(&file).unwrap();
    spool.next(9).unwrap_err();
    assert_eq!((spool.counts().lines, spool.counts().dropped), (1, 0));
    fs::remove_dir(&file).unwrap();
    fs::rename(&aside, &file).unwrap();
    assert_eq!(shipped(&spool, 9), "1\n");
}

#[test]
fn different_lines_have_different_names() {
    let data = TempDir::new().unwrap();
    let spool = spool(data.path());
    spool.add(b"1\n2\n3\n").unwrap();
    let names: BTreeSet<_> = (1..4).rev().map(|most| spool.next(most).unwrap().unwrap().name).collect();
    assert_eq!(names.len(), 3, "{names:?}");
    let other = TempDir::new().unwrap();
    let other = self::spool(other.path());
    other.add(b"1\n").unwrap();
    assert!(!names.contains(&other.next(1).unwrap().unwrap().name));
}

proptest! {
    #[test]
    fn whatever_the_cursor_says_no_line_is_cut(cursor in "[0-9]{0,4}-?[0-9]{0,3}|.*") {
        let data = TempDir::new().unwrap();
        let killed = spool(data.path());
        killed.add(b"{\"a\":1}\n{\"b\":2}\n").unwrap();
        drop(killed);
        fs::write(data.path().join("ship/cursor"), &cursor).unwrap();
        let shipped = shipped(&spool(data.path()), 9);
        prop_assert!(["", "{\"b\":2}\n", "{\"a\":1}\n{\"b\":2}\n"].contains(&shipped.as_str()), "{cursor}: {shipped}");
    }
}
