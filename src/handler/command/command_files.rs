//! The files that a command names, and whether one was changed. They are stat'ed, never read.

use std::{
    fs::Metadata,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use crate::model::{CommandHandler, CommandLine};

/// The existing files that a command names, each with a stamp. Compares unequal once one has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CommandFiles(Vec<(PathBuf, FileStamp)>);

/// Metadata that differs after every usual change of a file: rewriting, replacing, restoring with an old date.
#[derive(Debug, Clone, PartialEq, Eq)]
struct FileStamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl CommandFiles {
    /// Stamps the files named in a handler's command. Words of a shell line are taken literally: what the shell would
    /// expand is not found.
    pub(super) fn of(handler: &CommandHandler) -> Self {
        let words: Vec<&str> = match &handler.line {
            CommandLine::Shell(line) => read_words(line),
            CommandLine::Exec { program, args } => {
                program.to_str().into_iter().chain(args.iter().map(String::as_str)).collect()
            }
        };
        let paths = words.into_iter().map(|word| handler.cwd.join(word));
        Self(paths.filter_map(|path| FileStamp::of(&path).map(|stamp| (path, stamp))).collect())
    }
}

impl FileStamp {
    /// `None` if there is no regular file.
    fn of(path: &Path) -> Option<Self> {
        let metadata = path.metadata().ok().filter(Metadata::is_file)?;
        Some(Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        })
    }
}

/// The words of a shell line, without the targets of `>`: a log is no part of the program.
fn read_words(line: &str) -> Vec<&str> {
    let mut read = Vec::new();
    let mut is_target = false;
    for word in line.split_whitespace() {
        if !is_target && !word.contains('>') {
            read.push(word.trim_matches(['\'', '"', ';', '<', '(', ')']));
        }
        is_target = word.ends_with('>');
    }
    read
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_of_redirections_are_left_out() {
        let line = "cat <a 'b'; c > d >>e 2> f >g; h 2>&1";
        assert_eq!(read_words(line), ["cat", "a", "b", "c", "h"]);
    }
}
