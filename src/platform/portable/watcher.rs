//! Watches directories by looking at them again and again: each entry's identity, times, size and permissions.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    ffi::OsString,
    fs::Metadata,
    io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use rustix::io::Errno;
use tokio::{
    task::{JoinHandle, spawn_blocking},
    time::{Instant, sleep_until},
};

use super::super::{FsEvent, WatchResult};

/// What to do where no directory can be watched.
pub(crate) const WATCH_ADVICE: &str = "start hookyard again";

/// Between two looks.
const LOOK_PAUSE: Duration = Duration::from_millis(500);

/// How many times as long as a look the pause after it is, at least: looking takes no more than a small part of a
/// processor, however many files there are.
const PAUSE_SHARE: u32 = 20;

/// How long after a change another one may leave all times as they are: file systems use clocks that tick only a few
/// hundred times a second.
const COARSENESS: Duration = Duration::from_millis(50);

/// Directories, and what they were like.
#[derive(Debug)]
pub(crate) struct DirectoryWatcher {
    directories: HashMap<PathBuf, WatchedDirectory>,
    /// The directories that cannot be watched.
    unwatchable: HashSet<PathBuf>,
    next_look: Instant,
    /// A look that is under way.
    look: Option<JoinHandle<Look>>,
    /// The number of the next directory that is watched.
    next_number: u64,
}

/// A directory as it was last seen.
#[derive(Debug)]
struct WatchedDirectory {
    /// Tells it from one that was watched at this path before.
    number: u64,
    seen: SeenDirectory,
}

#[derive(Debug)]
struct SeenDirectory {
    /// Before it was looked at.
    at: SystemTime,
    own: FileState,
    /// Its path without links: what was moved away and is reached by a link is in another place.
    place: PathBuf,
    entries: BTreeMap<OsString, FileState>,
}

/// What changes if a file does.
#[derive(Debug, Clone, Copy)]
struct FileState {
    identity: (u64, u64),
    is_directory: bool,
    /// The mode, the owners, the size and the time of the last change of content.
    content: (u32, u32, u32, u64, i64, i64),
    changed: (i64, i64),
    /// Whether a change since would have another time.
    is_settled: bool,
}

/// What was found at the paths, and how long that took.
#[derive(Debug)]
struct Look {
    found: Vec<(PathBuf, u64, io::Result<SeenDirectory>)>,
    time: Duration,
}

impl FileState {
    fn of(metadata: &Metadata, now: SystemTime) -> Self {
        let seconds = u64::try_from(metadata.ctime()).unwrap_or_default();
        let nanoseconds = u64::try_from(metadata.ctime_nsec()).unwrap_or_default();
        let changed =
            SystemTime::UNIX_EPOCH + Duration::from_secs(seconds) + Duration::from_nanos(nanoseconds);
        // One of the future says nothing, and may stay so for long.
        let is_settled = now.duration_since(changed).map_or(true, |age| age > COARSENESS);
        Self {
            identity: (metadata.dev(), metadata.ino()),
            is_directory: metadata.is_dir(),
            content: (
                metadata.mode(),
                metadata.uid(),
                metadata.gid(),
                metadata.size(),
                metadata.mtime(),
                metadata.mtime_nsec(),
            ),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
            is_settled,
        }
    }

    /// Whether the file may have changed since it was in this state. What happens in a directory does not change it.
    fn may_differ(&self, now: &Self) -> bool {
        if self.is_directory && now.is_directory {
            return self.is_other_directory(now);
        }
        !self.is_settled
            || (self.identity, self.content, self.changed) != (now.identity, now.content, now.changed)
    }

    /// Whether a directory is another one, or has other owners or permissions. Its times are those of its entries.
    fn is_other_directory(&self, now: &Self) -> bool {
        let owners = |state: &Self| (state.content.0, state.content.1, state.content.2);
        self.identity != now.identity || owners(self) != owners(now)
    }
}

impl SeenDirectory {
    fn at(path: &Path) -> io::Result<Self> {
        let now = SystemTime::now();
        let own = path.metadata()?;
        let place = path.canonicalize()?;
        let entries = path.read_dir()?;
        let mut seen = BTreeMap::new();
        for entry in entries {
            let entry = entry?;
            // What is gone meanwhile is not there.
            if let Ok(metadata) = entry.metadata() {
                seen.insert(entry.file_name(), FileState::of(&metadata, now));
            }
        }
        Ok(Self { at: now, own: FileState::of(&own, now), place, entries: seen })
    }

    /// Whether entries may have come and gone since, of which nothing is left but a later time of the directory.
    fn had_passing_entries(&self, now: &Self) -> bool {
        !self.own.is_settled || self.own.changed != now.own.changed
    }

    /// Whether another directory is at the path, or this one in another way.
    fn is_replaced_by(&self, now: &Self) -> bool {
        self.place != now.place || self.own.is_other_directory(&now.own)
    }

    /// The names of entries that may have changed, come or gone since.
    fn changed_names(&self, now: &Self) -> Vec<OsString> {
        let is_known = |name: &OsString, state: &FileState| {
            self.entries.get(name).is_some_and(|former| !former.may_differ(state))
        };
        let new = now.entries.iter().filter(|(name, state)| !is_known(name, state)).map(|(name, _)| name);
        let gone = self.entries.keys().filter(|name| !now.entries.contains_key(*name));
        new.chain(gone).cloned().collect()
    }
}

impl DirectoryWatcher {
    /// Never fails.
    #[allow(clippy::unnecessary_wraps, reason = "other systems may refuse")]
    pub(crate) fn open() -> io::Result<Self> {
        Ok(Self {
            directories: HashMap::new(),
            unwatchable: HashSet::new(),
            next_look: Instant::now() + LOOK_PAUSE,
            look: None,
            next_number: 0,
        })
    }

    /// Watches a directory. Call it again whenever another directory may have taken its path.
    pub(crate) fn add(&mut self, directory: &Path) -> WatchResult {
        let found = directory.metadata().and_then(|found| Ok((found, directory.canonicalize()?)));
        if let (Some(known), Ok((found, place))) = (self.directories.get(directory), &found)
            && known.seen.own.identity == (found.dev(), found.ino())
            && known.seen.place == *place
        {
            self.unwatchable.remove(directory);
            return WatchResult::Unchanged;
        }
        self.remove(directory);
        match SeenDirectory::at(directory) {
            Ok(seen) => {
                self.next_number += 1;
                let watched = WatchedDirectory { number: self.next_number, seen };
                self.directories.insert(directory.to_owned(), watched);
                WatchResult::New
            }
            Err(error) => match Errno::from_io_error(&error).unwrap_or(Errno::IO) {
                Errno::NOENT | Errno::NOTDIR => WatchResult::Missing,
                error => {
                    self.unwatchable.insert(directory.to_owned());
                    WatchResult::Failed(error)
                }
            },
        }
    }

    /// Stops watching a directory.
    pub(crate) fn remove(&mut self, directory: &Path) {
        self.unwatchable.remove(directory);
        self.directories.remove(directory);
    }

    /// The number of directories that cannot be watched.
    pub(crate) fn unwatchable(&self) -> usize {
        self.unwatchable.len()
    }

    /// Waits for events. Cancel safe.
    ///
    /// Returns an error if the runtime shuts down.
    pub(crate) async fn next_events(&mut self) -> io::Result<Vec<FsEvent>> {
        loop {
            if self.look.is_none() {
                sleep_until(self.next_look).await;
                let known = self.directories.iter().map(|(path, watched)| (path.clone(), watched.number));
                let known: Vec<_> = known.collect();
                self.look = Some(spawn_blocking(move || look_at(known)));
            }
            let Some(under_way) = &mut self.look else { continue };
            let looked = under_way.await;
            self.look = None;
            let Look { found, time } = looked.map_err(io::Error::other)?;
            self.next_look = Instant::now() + LOOK_PAUSE.max(time * PAUSE_SHARE);
            let events: Vec<_> =
                found.into_iter().flat_map(|(path, number, seen)| self.compare(path, number, seen)).collect();
            if !events.is_empty() {
                return Ok(events);
            }
        }
    }

    /// What has changed in a directory since it was last seen.
    fn compare(&mut self, path: PathBuf, number: u64, seen: io::Result<SeenDirectory>) -> Vec<FsEvent> {
        // It may be watched no more, or anew since the look began.
        let Some(watched) = self.directories.get_mut(&path).filter(|known| known.number == number) else {
            return Vec::new();
        };
        match seen {
            Ok(seen) if !watched.seen.is_replaced_by(&seen) => {
                let names = watched.seen.changed_names(&seen);
                let is_passing = names.is_empty() && watched.seen.had_passing_entries(&seen);
                let former = std::mem::replace(&mut watched.seen, seen);
                if is_passing {
                    return vec![FsEvent::Passing(path, former.at)];
                }
                names.into_iter().map(|name| FsEvent::Entry(path.clone(), name)).collect()
            }
            // Another directory, or none.
            _ => {
                self.directories.remove(&path);
                vec![FsEvent::Directory(path)]
            }
        }
    }
}

fn look_at(known: Vec<(PathBuf, u64)>) -> Look {
    let begun = Instant::now();
    let look = |(path, number): (PathBuf, u64)| {
        let seen = SeenDirectory::at(&path);
        (path, number, seen)
    };
    Look { found: known.into_iter().map(look).collect(), time: begun.elapsed() }
}

/// What to do about a directory that cannot be watched.
pub(crate) fn advice_for(error: Errno) -> &'static str {
    match error {
        Errno::ACCESS => "let hookyard's user read it",
        _ => "fix the cause",
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt};

    use super::*;

    /// Reads events until an expected one.
    async fn until(watcher: &mut DirectoryWatcher, wanted: &FsEvent) {
        while !watcher.next_events().await.unwrap().contains(wanted) {}
    }

    #[tokio::test]
    async fn entries_are_reported_until_the_directory_is_removed() {
        let here = tempfile::tempdir().unwrap();
        let (one, other) = (here.path().join("one"), here.path().join("other"));
        fs::create_dir(&one).unwrap();
        fs::create_dir(&other).unwrap();
        let mut watcher = DirectoryWatcher::open().unwrap();
        assert_eq!((watcher.add(&one), watcher.add(&one)), (WatchResult::New, WatchResult::Unchanged));
        assert_eq!(watcher.add(&other), WatchResult::New);
        fs::write(one.join("x"), "").unwrap();
        until(&mut watcher, &FsEvent::Entry(one.clone(), "x".into())).await;
        watcher.remove(&one);
        fs::write(one.join("y"), "").unwrap();
        fs::write(other.join("z"), "").unwrap();
        let events = watcher.next_events().await.unwrap();
        assert!(events.contains(&FsEvent::Entry(other.clone(), "z".into())), "{events:?}");
        assert!(!events.contains(&FsEvent::Entry(one, "y".into())), "{events:?}");
        fs::remove_file(other.join("z")).unwrap();
        until(&mut watcher, &FsEvent::Entry(other, "z".into())).await;
    }

    #[tokio::test]
    async fn what_has_come_and_gone_between_two_looks_is_told_without_its_name() {
        let here = tempfile::tempdir().unwrap();
        let mut watcher = DirectoryWatcher::open().unwrap();
        assert_eq!(watcher.add(here.path()), WatchResult::New);
        let begun = watcher.directories[here.path()].seen.at;
        fs::write(here.path().join("x"), "").unwrap();
        fs::remove_file(here.path().join("x")).unwrap();
        until(&mut watcher, &FsEvent::Passing(here.path().to_owned(), begun)).await;
        // Nothing more is told of it.
        while !watcher.directories[here.path()].seen.own.is_settled {
            watcher.next_events().await.unwrap();
        }
        let nothing = tokio::time::timeout(3 * LOOK_PAUSE, watcher.next_events()).await;
        assert!(nothing.is_err(), "{nothing:?}");
    }

    #[tokio::test]
    async fn what_is_written_in_place_is_reported_whatever_its_size() {
        let here = tempfile::tempdir().unwrap();
        let entry = || FsEvent::Entry(here.path().to_owned(), "x".into());
        fs::write(here.path().join("x"), "deny").unwrap();
        let mut watcher = DirectoryWatcher::open().unwrap();
        assert_eq!(watcher.add(here.path()), WatchResult::New);
        fs::write(here.path().join("x"), "pass").unwrap();
        until(&mut watcher, &entry()).await;
        for mode in [0o600, 0o644] {
            fs::set_permissions(here.path().join("x"), fs::Permissions::from_mode(mode)).unwrap();
            until(&mut watcher, &entry()).await;
        }
    }

    #[tokio::test]
    async fn what_happens_in_a_directory_is_no_change_of_its_entry() {
        let here = tempfile::tempdir().unwrap();
        fs::create_dir(here.path().join("below")).unwrap();
        let mut watcher = DirectoryWatcher::open().unwrap();
        assert_eq!(watcher.add(here.path()), WatchResult::New);
        fs::write(here.path().join("below/x"), "").unwrap();
        fs::write(here.path().join("y"), "").unwrap();
        let events = watcher.next_events().await.unwrap();
        assert_eq!(events, [FsEvent::Entry(here.path().to_owned(), "y".into())]);
        fs::set_permissions(here.path().join("below"), fs::Permissions::from_mode(0o700)).unwrap();
        until(&mut watcher, &FsEvent::Entry(here.path().to_owned(), "below".into())).await;
    }

    #[test]
    fn what_was_seen_in_the_moment_of_its_change_may_have_changed_again() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let metadata = file.as_file().metadata().unwrap();
        let (early, late) = (SystemTime::now(), SystemTime::now() + Duration::from_secs(1));
        let at = |time| FileState::of(&metadata, time);
        assert!(at(early).may_differ(&at(late)) && !at(late).may_differ(&at(late)));
        // After the clock was put back, nothing is reported for ever.
        assert!(!at(SystemTime::UNIX_EPOCH).may_differ(&at(SystemTime::UNIX_EPOCH)));
    }

    #[tokio::test]
    async fn a_replaced_directory_is_new() {
        let here = tempfile::tempdir().unwrap();
        let (place, aside) = (here.path().join("place"), here.path().join("aside"));
        fs::create_dir(&place).unwrap();
        let mut watcher = DirectoryWatcher::open().unwrap();
        assert_eq!(watcher.add(&place), WatchResult::New);
        fs::rename(&place, &aside).unwrap();
        until(&mut watcher, &FsEvent::Directory(place.clone())).await;
        assert_eq!(watcher.add(&place), WatchResult::Missing);
        fs::create_dir(&place).unwrap();
        assert_eq!(watcher.add(&place), WatchResult::New);
        fs::remove_dir(&place).unwrap();
        until(&mut watcher, &FsEvent::Directory(place.clone())).await;
        // Under another name, and by a link in its place.
        fs::rename(&aside, &place).unwrap();
        assert_eq!(watcher.add(&place), WatchResult::New);
        fs::rename(&place, &aside).unwrap();
        std::os::unix::fs::symlink("aside", &place).unwrap();
        assert_eq!(watcher.add(&place), WatchResult::New);
        fs::remove_file(&place).unwrap();
        fs::rename(&aside, &place).unwrap();
        until(&mut watcher, &FsEvent::Directory(place.clone())).await;
        assert!(watcher.directories.is_empty());
    }

    #[tokio::test]
    async fn a_file_cannot_be_watched() {
        let here = tempfile::tempdir().unwrap();
        fs::write(here.path().join("x"), "").unwrap();
        let mut watcher = DirectoryWatcher::open().unwrap();
        assert_eq!(watcher.add(&here.path().join("x")), WatchResult::Missing);
        assert_eq!(watcher.unwatchable(), 0);
    }
}
