//! What waits on disk, whatever a process has left there.

use std::{fs, path::Path};

use proptest::prelude::*;
use tempfile::TempDir;

use super::spool::Spool;

/// Bytes that may wait: more than any of these tests has.
const ENOUGH: u64 = 1 << 20;

fn spool(data: &Path) -> Spool {
    let spool = Spool::make(data, ENOUGH).unwrap();
    assert!(spool.adopt().unwrap());
    spool
}

/// Everything that waits, as it is shipped.
fn shipped(spool: &Spool, most: usize) -> String {
    let mut all = Vec::new();
    while let Some(batch) = spool.next(most) {
        assert!(batch.bytes.ends_with(b"\n") && batch.lines <= most as u64);
        spool.shipped(&batch);
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
        assert!(killed.add(lines.as_bytes()));
        drop(killed);
        let file = only_file(data.path());
        fs::write(&file, &lines[..end]).unwrap();
        let next = spool(data.path());
        assert!(next.add(b"{\"next\":1}\n"));
        let whole = lines[..end].rfind('\n').map_or(0, |end| end + 1);
        assert_eq!(shipped(&next, 2), format!("{}{{\"next\":1}}\n", &lines[..whole]), "{end}");
    }
}

#[test]
fn what_is_shipped_is_not_shipped_again_and_what_is_not_is() {
    let data = TempDir::new().unwrap();
    let first = spool(data.path());
    assert!(first.add(b"1\n2\n3\n"));
    let batch = first.next(2).unwrap();
    first.shipped(&batch);
    drop(first);
    let second = spool(data.path());
    assert_eq!((second.counts().lines, shipped(&second, 9).as_str()), (1, "3\n"));
    drop(second);
    // All of the file is shipped; a new one must not be taken for it.
    let third = spool(data.path());
    assert!(third.add(b"4\n5\n"));
    drop(third);
    assert_eq!(shipped(&spool(data.path()), 9), "4\n5\n");
}

#[test]
fn a_batch_that_is_dropped_meanwhile_is_not_counted_as_shipped() {
    let data = TempDir::new().unwrap();
    let small = Spool::make(data.path(), 8).unwrap();
    assert!(small.adopt().unwrap() && small.add(b"11\n"));
    let batch = small.next(1).unwrap();
    for _ in 0..5 {
        assert!(small.add(b"222\n"));
    }
    small.shipped(&batch);
    assert_eq!((small.counts().shipped, small.counts().bytes), (0, 8));
    assert_eq!(small.counts().dropped, 4);
}

#[test]
fn only_one_process_ships_and_the_other_takes_over() {
    let data = TempDir::new().unwrap();
    let first = spool(data.path());
    let second = Spool::make(data.path(), ENOUGH).unwrap();
    assert!(second.add(b"2\n") && first.add(b"1\n"));
    assert!(!second.adopt().unwrap());
    first.release();
    assert!(second.adopt().unwrap());
    assert!(second.add(b"3\n"));
    let mut all: Vec<_> = shipped(&second, 9).lines().map(str::to_owned).collect();
    all.sort();
    assert_eq!(all, ["1", "2", "3"]);
}

proptest! {
    #[test]
    fn whatever_the_cursor_says_no_line_is_cut(cursor in "[0-9]{0,4}-?[0-9]{0,3}|.*") {
        let data = TempDir::new().unwrap();
        let killed = spool(data.path());
        let added = killed.add(b"{\"a\":1}\n{\"b\":2}\n");
        prop_assert!(added);
        drop(killed);
        fs::write(data.path().join("ship/cursor"), &cursor).unwrap();
        let shipped = shipped(&spool(data.path()), 9);
        prop_assert!(["", "{\"b\":2}\n", "{\"a\":1}\n{\"b\":2}\n"].contains(&shipped.as_str()), "{cursor}: {shipped}");
    }
}
