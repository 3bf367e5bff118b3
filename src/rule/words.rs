//! Which words of a command may be paths, and which directories they count from.

use std::ops::Range;

use crate::model::LONGEST_PATH;

/// Whether a word is known only when the command runs, or is none that a file can have.
pub(super) fn is_unknown(word: &str) -> bool {
    word.len() > LONGEST_PATH || word.starts_with('~') || word.contains(['$', '`', '\0', '\n'])
}

/// The parts of a word that may be paths: all of it, what stands behind `=` or `@`, and what stands before `:`.
pub(super) fn path_ranges(word: &str) -> Vec<Range<usize>> {
    let mut ranges = Vec::new();
    if !word.starts_with('-') {
        ranges.push(0..word.len());
    }
    if let Some(at) = word.find('=') {
        ranges.push(at + 1..word.len());
    }
    if let Some(at) = word.find('@') {
        ranges.push(at + 1..word.len());
    }
    if let Some(at) = word.find(':').filter(|at| !word[*at..].starts_with("://")) {
        ranges.push(0..at);
    }
    ranges.retain(|range| !range.is_empty());
    ranges
}

/// Whether a command changes the directory of those after it.
pub(super) fn is_change_of_directory(name: &str) -> bool {
    matches!(name, "cd" | "pushd" | "chdir")
}

/// The directory in which a command works, if one of its flags says so, as with `git`, `make`, `tar` and `env`.
pub(super) fn directory_flag(args: &[String]) -> Option<&str> {
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        if arg == "-C" || arg == "--directory" || arg == "--chdir" {
            return args.next().map(String::as_str);
        }
        let attached = arg.strip_prefix("--directory=").or_else(|| arg.strip_prefix("--chdir="));
        let attached = attached.or_else(|| arg.strip_prefix("-C").filter(|path| !path.is_empty()));
        if attached.is_some() {
            return attached;
        }
    }
    None
}
