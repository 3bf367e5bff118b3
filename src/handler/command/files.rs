//! The files that a command names, as they are now. Owns by what a change is seen; refuses to read them.

use std::{os::unix::fs::MetadataExt, path::PathBuf};

use crate::model::{CommandHandler, CommandLine};

/// The files a command names that exist, and what shows that one was changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Files(Vec<(PathBuf, Stamp)>);

/// Differs after every usual way to change a file: rewriting, replacing, restoring with an old date.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Files {
    /// The files named in a handler's command, as they are now. A word of a shell line counts as it stands: one
    /// that the shell would expand is not followed.
    pub(super) fn of(handler: &CommandHandler) -> Self {
        let words: Vec<&str> = match &handler.line {
            CommandLine::Shell(line) => read_words(line),
            CommandLine::Exec { program, args } => {
                program.to_str().into_iter().chain(args.iter().map(String::as_str)).collect()
            }
        };
        let file = |word: &str| {
            let path = handler.cwd.join(word);
            let found = path.metadata().ok().filter(std::fs::Metadata::is_file)?;
            let stamp = Stamp {
                device: found.dev(),
                inode: found.ino(),
                size: found.size(),
                modified: (found.mtime(), found.mtime_nsec()),
                changed: (found.ctime(), found.ctime_nsec()),
            };
            Some((path, stamp))
        };
        Self(words.into_iter().filter_map(file).collect())
    }
}

/// The words of a shell line, but for those it writes to: a log is no part of the program.
fn read_words(line: &str) -> Vec<&str> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let written = |index: usize| {
        words[index].contains('>') || index.checked_sub(1).is_some_and(|before| words[before].ends_with('>'))
    };
    let read = words.iter().enumerate().filter(|(index, _)| !written(*index));
    read.map(|(_, word)| word.trim_matches(['\'', '"', ';', '<', '(', ')'])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_line_writes_is_no_part_of_it() {
        let line = "cat <a 'b'; c > d >>e 2> f >g; h 2>&1";
        assert_eq!(read_words(line), ["cat", "a", "b", "c", "h"]);
    }
}
