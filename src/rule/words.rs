//! Which words of a command may be paths, and which directories they count from.

use std::ops::Range;

use super::shell::ShellCommand;
use crate::model::LONGEST_PATH;

/// The most directories from which the words of one text count.
const MOST_DIRECTORIES: usize = 64;

/// The most parts of a word that are looked at.
const MOST_RANGES: usize = 32;

/// Whether a word is none that a file can have.
pub(super) fn is_no_path(word: &str) -> bool {
    word.is_empty() || word.len() > LONGEST_PATH || word.contains('\0')
}

/// The parts of a word that may be paths: from its beginning, from behind an option's letter as in `-tdir`, and from behind each
/// `=`, `@`, `<`, `,` and `:`, to its end, or to the next `:`, `;` or `,`.
pub(super) fn path_ranges(word: &str) -> Vec<Range<usize>> {
    let behind = |marks: &'static [char]| word.match_indices(marks).map(|(at, mark)| at + mark.len());
    let option = word.strip_prefix('-').and_then(|rest| rest.chars().next());
    let value = option.filter(char::is_ascii_alphanumeric).map(|_| 2);
    let starts = std::iter::once(0).chain(value).chain(behind(&['=', '@', '<', ',', ':']));
    let mut ranges = Vec::new();
    for start in starts {
        let rest = &word[start..];
        let before = rest.find([':', ';', ',']).filter(|at| !rest[*at..].starts_with("://"));
        let ends = std::iter::once(word.len()).chain(before.map(|at| start + at));
        ranges.extend(ends.map(|end| start..end).filter(|range| !range.is_empty()));
    }
    ranges.truncate(MOST_RANGES);
    ranges
}

/// The directories from which the words of a text may count: the first one, and those that commands change to. A change counts
/// for all that comes after it, from each directory before it, since it may fail, or stand in a shell of its own.
pub(super) struct Directories<D> {
    known: Vec<D>,
}

impl<D: PartialEq> Directories<D> {
    pub(super) fn new(first: Vec<D>) -> Self {
        Self { known: first }
    }

    pub(super) fn known(&self) -> &[D] {
        &self.known
    }

    /// Adds those that a change leads to.
    ///
    /// Returns whether there was room for them.
    pub(super) fn add(&mut self, led: Vec<D>) -> bool {
        for directory in led {
            if self.known.contains(&directory) {
                continue;
            }
            if self.known.len() == MOST_DIRECTORIES {
                return false;
            }
            self.known.push(directory);
        }
        true
    }
}

/// The directory that a command changes to, for those after it.
pub(super) fn changed_directory(command: &ShellCommand) -> Option<&str> {
    let changes = matches!(&*command.name, "cd" | "pushd" | "chdir");
    command.operands().first().filter(|_| changes).copied()
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
