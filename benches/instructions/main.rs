//! Counts the instructions of the paths that every event takes, and compares them with those of `counts.txt`, which they
//! may miss by 3 %: a time says little on a busy machine, a count is nearly the same everywhere.
//!
//! `cargo bench --bench instructions` needs `valgrind`, and fails where a path has become longer, or so much shorter that
//! `counts.txt` should say so. `UPDATE_CASES=1` writes that file anew. Paths can be named.
//!
//! The compiler decides by the rest of the library whether it inlines some functions: two lengths of a path, 3 to 6 % apart,
//! come and go without a change of it. `counts.txt` has both then, and a path may have either.
//!
//! Paths that were taken beside more hooks or runs, which the event has nothing to do with, must be as short as without.
#![allow(clippy::cast_precision_loss, reason = "figures are printed with a digit after the point")]
#![allow(clippy::disallowed_methods, reason = "valgrind runs this program, and no hook")]

#[path = "../common/mod.rs"]
mod common;
mod paths;

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    process::{Command, ExitCode, Stdio},
};

/// How far a count may be from the stored one, as a part of it.
const TOLERANCE: f64 = 0.03;

/// How much longer a path may be beside more hooks or runs: either of its two lengths, and what the allocator does to find
/// memory among more of it.
const MOST_GROWTH: f64 = 1.2;

/// The counts that were found last: on each line a path and its instructions, or the several counts that it may have.
const STORED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/instructions/counts.txt");

/// The allocator of the program.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    if let [mark, path] = &arguments[..]
        && mark == "take"
    {
        paths::take(path);
        return ExitCode::SUCCESS;
    }
    if Command::new("valgrind").arg("--version").stdout(Stdio::null()).status().is_err() {
        eprintln!("this needs the program `valgrind`; install it");
        return ExitCode::FAILURE;
    }
    let stored = read_stored();
    let is_wanted = |path: &&&str| arguments.is_empty() || arguments.iter().any(|name| name == **path);
    let counts: Vec<(&str, f64)> =
        paths::NAMES.iter().filter(is_wanted).map(|path| (*path, count(path))).collect();
    if std::env::var_os("UPDATE_CASES").is_some() {
        write_stored(stored, &counts);
        return ExitCode::SUCCESS;
    }
    println!("| path | instructions | stored | change | goal |");
    println!("| --- | --- | --- | --- | --- |");
    let mut is_good = compare_grown(&counts);
    for (path, now) in counts.into_iter().filter(|(path, _)| has_stored_count(path)) {
        let known = stored.get(path).map_or(0.0, |lengths| nearest(lengths, now));
        let change = now / known - 1.0;
        is_good &= is_near(known, now);
        println!(
            "| {path} | {now:.0} | {known:.0} | {:+.1} % | ± {:.0} % |",
            change * 100.0,
            TOLERANCE * 100.0
        );
    }
    if is_good {
        return ExitCode::SUCCESS;
    }
    eprintln!(
        "a path has grown with what it has nothing to do with, or has another length than \
         `benches/instructions/counts.txt` says; if that is meant, write it anew: \
         UPDATE_CASES=1 cargo bench --bench instructions"
    );
    ExitCode::FAILURE
}

/// Prints how long each path with more hooks or runs is against that without, and whether all are as short.
fn compare_grown(counts: &[(&str, f64)]) -> bool {
    let count = |name: &str| counts.iter().find(|(path, _)| *path == name).map(|(_, count)| *count);
    let pairs =
        paths::GROWN.iter().filter_map(|(grown, path)| Some((grown, path, count(grown)? / count(path)?)));
    let mut is_good = true;
    for (grown, path, ratio) in pairs {
        is_good &= ratio <= MOST_GROWTH;
        println!("| {grown} against {path} | {ratio:.3} × | – | – | ≤ {MOST_GROWTH} × |");
    }
    is_good
}

/// The instructions of one pass of a path.
fn count(path: &str) -> f64 {
    let place = tempfile::tempdir().expect("a directory");
    let out = place.path().join("out");
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--quiet", "--toggle-collect=*paths::counted*"])
        .arg(format!("--callgrind-out-file={}", out.display()))
        .arg(std::env::current_exe().expect("this program"))
        .args(["take", path])
        .stdin(Stdio::null())
        .output()
        .expect("valgrind");
    assert!(output.status.success(), "{path}: {}", String::from_utf8_lossy(&output.stderr));
    let count = counted(&out) as f64 / paths::COUNTED as f64;
    assert!(count > 100.0, "{path}: nothing was counted");
    count
}

/// The number in a report of callgrind.
fn counted(report: &Path) -> u64 {
    let text = fs::read_to_string(report).expect("a report");
    let totals = text.lines().find_map(|line| line.strip_prefix("totals: ")).expect("a total");
    totals.trim().parse().expect("a number")
}

/// The counts that each path may have.
type Stored = BTreeMap<String, Vec<f64>>;

fn read_stored() -> Stored {
    let text = fs::read_to_string(STORED).unwrap_or_default();
    let lines = text.lines().filter_map(|line| line.split_once(' '));
    let numbers = |counts: &str| counts.split(' ').map(|count| count.parse().expect("a number")).collect();
    lines.map(|(path, counts)| (path.to_owned(), numbers(counts))).collect()
}

/// Replaces the count that is nearly the new one. Others are forgotten with a path that has changed.
fn write_stored(mut stored: Stored, counts: &[(&str, f64)]) {
    stored.retain(|path, _| paths::NAMES.contains(&path.as_str()) && has_stored_count(path));
    for (path, now) in counts.iter().filter(|(path, _)| has_stored_count(path)) {
        let lengths = stored.entry((*path).to_owned()).or_default();
        match lengths.iter_mut().find(|known| is_near(**known, *now)) {
            Some(known) => *known = *now,
            None => *lengths = vec![*now],
        }
    }
    let line = |(path, lengths): (&String, &Vec<f64>)| {
        let counts: Vec<_> = lengths.iter().map(|count| format!("{count:.0}")).collect();
        format!("{path} {}\n", counts.join(" "))
    };
    fs::write(STORED, stored.iter().map(line).collect::<Vec<_>>().concat()).expect("the file of the counts");
}

/// Whether a path is compared with its stored count, and not with another path.
fn has_stored_count(path: &str) -> bool {
    paths::GROWN.iter().all(|(grown, _)| *grown != path)
}

fn is_near(known: f64, now: f64) -> bool {
    (now / known - 1.0).abs() <= TOLERANCE
}

fn nearest(lengths: &[f64], now: f64) -> f64 {
    let distance = |count: &f64| (now - count).abs();
    lengths.iter().copied().min_by(|a, b| distance(a).total_cmp(&distance(b))).unwrap_or(0.0)
}
