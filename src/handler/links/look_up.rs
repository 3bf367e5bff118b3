//! Follows paths on the disk, part by part, and remembers each part.

use std::{
    collections::{HashMap, HashSet},
    io::ErrorKind,
    ops::ControlFlow,
    path::{Path, PathBuf},
};

use crate::{
    model::{DirectoryName, LONGEST_PATH, LinkGap, PathEntry, follow},
    platform,
};

/// The most parts of paths that are looked up for one event.
const MOST_ENTRIES: usize = 4_096;

/// The most paths that are followed for one event.
const MOST_PATHS: usize = 16_384;

/// How many links are followed within each other, as the system does.
const MOST_LINKS: usize = 40;

/// Reads what is at a path: where a link leads, or `None` of anything else.
pub(super) type ReadLink = fn(&Path) -> std::io::Result<Option<PathBuf>>;

/// What is at a path of this machine.
pub(super) fn read_link(path: &Path) -> std::io::Result<Option<PathBuf>> {
    // Asks for the entry itself, which waits for no other end, as opening a FIFO would.
    if std::fs::symlink_metadata(path)?.is_symlink() {
        return std::fs::read_link(path).map(Some);
    }
    Ok(None)
}

/// The entries that were looked up so far.
pub(super) struct LinkTable<'q> {
    pub(super) entries: HashMap<Box<str>, PathEntry>,
    /// Names that people gave to directories; where they lead is known.
    names: &'q [DirectoryName],
    /// The directory of the process that the event is about.
    cwd: &'q str,
    read: ReadLink,
    paths: usize,
    /// Links that are being followed.
    open: HashSet<Box<str>>,
    /// Whether the system did not let something be looked up.
    pub(super) is_refused: bool,
}

/// Why an entry has no answer.
enum LinkFault {
    /// The link leads to itself.
    Circle,
    /// More links lead to each other than the system follows, from the first one on.
    TooDeep,
    Gap(LinkGap),
}

impl<'q> LinkTable<'q> {
    pub(super) fn new(names: &'q [DirectoryName], cwd: &'q str, read: ReadLink) -> Self {
        let (entries, open) = (HashMap::new(), HashSet::new());
        Self { entries, names, cwd, read, paths: 0, open, is_refused: false }
    }

    /// Looks up every part of a path.
    ///
    /// Breaks where no more may be looked up.
    pub(super) fn visit(&mut self, path: &str, directory: &str) -> ControlFlow<LinkGap> {
        self.paths += 1;
        if self.paths > MOST_PATHS {
            return ControlFlow::Break(LinkGap::TooMany);
        }
        match follow(path, directory, &mut |at| self.entry(at)) {
            Err(LinkFault::Gap(LinkGap::Refused)) => {
                self.is_refused = true;
                ControlFlow::Continue(())
            }
            Err(LinkFault::Gap(gap)) => ControlFlow::Break(gap),
            Ok(_) | Err(LinkFault::Circle | LinkFault::TooDeep) => ControlFlow::Continue(()),
        }
    }

    fn entry(&mut self, path: &str) -> Result<PathEntry, LinkFault> {
        if let Some(known) = self.entries.get(path) {
            return Ok(known.clone());
        }
        if let Some(known) = self.names.iter().find(|known| known.name.as_os_str() == path) {
            return Ok(PathEntry::Link(known.directory.to_string_lossy().into()));
        }
        if self.entries.len() == MOST_ENTRIES {
            return Err(LinkFault::Gap(LinkGap::TooMany));
        }
        let entry = match platform::path_of_process(path, self.cwd) {
            Some(entry) => entry,
            None => self.read(path)?,
        };
        self.entries.insert(path.into(), entry.clone());
        Ok(entry)
    }

    fn read(&mut self, path: &str) -> Result<PathEntry, LinkFault> {
        let target = match (self.read)(Path::new(path)) {
            Ok(None) => return Ok(PathEntry::Plain),
            Ok(Some(target)) => target,
            Err(error) => return unreadable(path, error.kind()),
        };
        let Some(target) = target.to_str() else { return Err(LinkFault::Gap(LinkGap::Refused)) };
        if self.open.contains(path) {
            return Err(LinkFault::Circle);
        }
        if self.open.len() == MOST_LINKS {
            return Err(LinkFault::TooDeep);
        }
        self.open.insert(path.into());
        let directory = path.rsplit_once('/').map_or("", |(directory, _)| directory);
        let led = follow(target, directory, &mut |at| self.entry(at));
        self.open.remove(path);
        match led {
            Ok(led) => Ok(PathEntry::Link(led.into())),
            // No program opens a link of a circle, nor one that leads into it.
            Err(LinkFault::Circle) => {
                self.entries.insert(path.into(), PathEntry::Missing);
                if self.open.is_empty() { Ok(PathEntry::Missing) } else { Err(LinkFault::Circle) }
            }
            // The links behind the first one may be few enough.
            Err(LinkFault::TooDeep) if self.open.is_empty() => Ok(PathEntry::Missing),
            Err(fault) => Err(fault),
        }
    }
}

fn unreadable(path: &str, kind: ErrorKind) -> Result<PathEntry, LinkFault> {
    match kind {
        ErrorKind::NotFound | ErrorKind::NotADirectory => Ok(PathEntry::Missing),
        // A name that is too long is none that a program opens. Where all of the path is, a program opens it from its directory.
        ErrorKind::InvalidFilename if path.len() < LONGEST_PATH => Ok(PathEntry::Missing),
        _ => Err(LinkFault::Gap(LinkGap::Refused)),
    }
}
