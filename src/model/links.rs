//! What is known of the links in the paths of an event. They are looked up before rules judge it, since rules read no disk.

use std::{collections::HashMap, fmt};

/// The longest path that the system takes, in bytes.
pub(crate) const LONGEST_PATH: usize = 4_096;

/// What there is at an absolute path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PathEntry {
    /// No link.
    Plain,
    /// Nothing, so that nothing is below it either. A link that leads in a circle is as good as none: no program opens it.
    Missing,
    /// A link, with where it leads once all links on the way are followed.
    Link(Box<str>),
}

/// Why it is not known what there is at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LinkGap {
    /// The path was not among those of the event.
    NotNamed,
    /// The event names more paths than are looked up.
    TooMany,
    /// It took too long.
    TooSlow,
    /// The system does not say.
    Refused,
}

impl fmt::Display for LinkGap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotNamed => "the rule made a path that the event does not name",
            Self::TooMany => "the event names too many paths to look up",
            Self::TooSlow => "looking them up took too long",
            Self::Refused => "the system does not let hookyard look",
        })
    }
}

/// What was looked up for an event.
#[derive(Debug)]
pub(crate) struct KnownLinks {
    entries: HashMap<Box<str>, PathEntry>,
    /// Why others are not here.
    gap: LinkGap,
}

impl KnownLinks {
    pub(crate) fn new(entries: HashMap<Box<str>, PathEntry>, gap: LinkGap) -> Self {
        Self { entries, gap }
    }

    /// What there is at an absolute path.
    ///
    /// Returns why it is not known.
    pub(crate) fn entry(&self, path: &str) -> Result<&PathEntry, LinkGap> {
        self.entries.get(path).ok_or(self.gap)
    }
}

/// What rules want of the links in an event.
#[derive(Debug)]
pub(crate) struct LinkNeeds {
    /// The paths that the rules name themselves: constants, and what their files have.
    pub(crate) constants: Box<[Box<str>]>,
}

/// Where a path leads, from a directory on where it is relative. What `entry` says of each part is followed: `..` behind a link is what
/// is above where it leads.
///
/// Returns the error of `entry`.
pub(crate) fn follow<E>(
    path: &str,
    directory: &str,
    entry: &mut dyn FnMut(&str) -> Result<PathEntry, E>,
) -> Result<String, E> {
    let from = if path.starts_with('/') { "" } else { directory };
    let mut at = String::with_capacity(from.len() + path.len() + 1);
    // From where on nothing is there.
    let mut missing = None;
    for part in from.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." => {
                at.truncate(at.rfind('/').unwrap_or_default());
                missing = missing.filter(|length| at.len() >= *length);
            }
            part => {
                at.push('/');
                at.push_str(part);
                if missing.is_some() {
                    continue;
                }
                match entry(&at)? {
                    PathEntry::Plain => {}
                    PathEntry::Missing => missing = Some(at.len()),
                    PathEntry::Link(target) => {
                        at.clear();
                        at.push_str(if &*target == "/" { "" } else { &target });
                    }
                }
            }
        }
    }
    if at.is_empty() {
        at.push('/');
    }
    Ok(at)
}
