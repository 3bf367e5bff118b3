//! Watches directories with inotify.
//!
//! inotify is used directly, without the `notify` crate. Its stable release, 8.2, subscribes to every opening of a file,
//! which each starting process does in `/etc` and in a home; and when a directory is replaced and watched again, its old
//! watch stays and reports under the same path. The release candidates of 9.0 fix both (`with_event_kinds`, and the
//! previous watch is released), but two things are still missing: `watch` does not tell whether a path leads to the same
//! directory as before, which decides whether its files must be checked once more; and where several watched paths lead
//! to one directory, its events are reported for one of them only.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    ffi::{OsStr, OsString},
    io,
    mem::MaybeUninit,
    os::{fd::OwnedFd, unix::ffi::OsStrExt},
    path::{Path, PathBuf},
};

use rustix::{
    fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags},
    io::Errno,
};
use tokio::io::{Interest, unix::AsyncFd};

use super::super::{FsEvent, WatchResult};

/// What to do where no directory can be watched.
pub(crate) const WATCH_ADVICE: &str = "raise fs.inotify.max_user_instances";

/// The subscribed changes: entries that are created, removed, moved, written or given other permissions, and the removal
/// or move of the directory itself.
const WATCH_FLAGS: WatchFlags = WatchFlags::CREATE
    .union(WatchFlags::DELETE)
    .union(WatchFlags::MOVE)
    .union(WatchFlags::MODIFY)
    .union(WatchFlags::CLOSE_WRITE)
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::DELETE_SELF)
    .union(WatchFlags::MOVE_SELF)
    .union(WatchFlags::EXCL_UNLINK)
    .union(WatchFlags::ONLYDIR);

/// The size of the read buffer, in bytes: some hundred events.
const READ_BUFFER_BYTES: usize = 16 << 10;

/// An inotify instance and its watches.
#[derive(Debug)]
pub(crate) struct DirectoryWatcher {
    queue: AsyncFd<OwnedFd>,
    /// The watch descriptor of each path.
    descriptors: HashMap<PathBuf, i32>,
    /// The paths of each watch descriptor: a directory has one, even if several paths lead to it.
    paths: HashMap<i32, BTreeSet<PathBuf>>,
    /// The directories that cannot be watched.
    unwatchable: HashSet<PathBuf>,
}

impl DirectoryWatcher {
    /// Returns an error if this user has no more inotify instances.
    #[allow(
        deprecated,
        reason = "its successor is unsafe for types whose descriptor may change; an `OwnedFd`'s cannot"
    )]
    pub(crate) fn open() -> io::Result<Self> {
        let queue = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        let queue = AsyncFd::with_interest(queue, Interest::READABLE)?;
        Ok(Self { queue, descriptors: HashMap::new(), paths: HashMap::new(), unwatchable: HashSet::new() })
    }

    /// Watches a directory. Call it again whenever another directory may have taken its path.
    pub(crate) fn add(&mut self, directory: &Path) -> WatchResult {
        let descriptor = match inotify::add_watch(self.queue.get_ref(), directory, WATCH_FLAGS) {
            Ok(descriptor) => descriptor,
            Err(error) => {
                self.remove(directory);
                if matches!(error, Errno::NOENT | Errno::NOTDIR) {
                    return WatchResult::Missing;
                }
                self.unwatchable.insert(directory.to_owned());
                return WatchResult::Failed(error);
            }
        };
        self.unwatchable.remove(directory);
        match self.descriptors.insert(directory.to_owned(), descriptor) {
            Some(former) if former == descriptor => return WatchResult::Unchanged,
            Some(former) => self.release(former, directory),
            None => {}
        }
        self.paths.entry(descriptor).or_default().insert(directory.to_owned());
        WatchResult::New
    }

    /// Stops watching a directory.
    pub(crate) fn remove(&mut self, directory: &Path) {
        self.unwatchable.remove(directory);
        if let Some(descriptor) = self.descriptors.remove(directory) {
            self.release(descriptor, directory);
        }
    }

    /// The number of directories that cannot be watched.
    pub(crate) fn unwatchable(&self) -> usize {
        self.unwatchable.len()
    }

    /// Waits for events. Cancel safe.
    ///
    /// Returns an error if the inotify instance fails.
    pub(crate) async fn next_events(&mut self) -> io::Result<Vec<FsEvent>> {
        loop {
            let mut ready = self.queue.readable().await?;
            if let Ok(read) = ready.try_io(|queue| read(queue.get_ref())) {
                drop(ready);
                return Ok(read?.into_iter().flat_map(|event| self.translate(event)).collect());
            }
        }
    }

    fn translate(&mut self, event: RawEvent) -> Vec<FsEvent> {
        let RawEvent { descriptor, mask, name } = event;
        if mask.contains(ReadFlags::QUEUE_OVERFLOW) {
            return vec![FsEvent::Overflow];
        }
        if mask.contains(ReadFlags::IGNORED) {
            let paths = self.paths.remove(&descriptor).unwrap_or_default();
            for path in &paths {
                self.descriptors.remove(path);
            }
            return paths.into_iter().map(FsEvent::Directory).collect();
        }
        let paths = self.paths.get(&descriptor).into_iter().flatten().cloned();
        match name {
            Some(name) => paths.map(|path| FsEvent::Entry(path, name.clone())).collect(),
            None => paths.map(FsEvent::Directory).collect(),
        }
    }

    fn release(&mut self, descriptor: i32, directory: &Path) {
        let Some(paths) = self.paths.get_mut(&descriptor) else { return };
        paths.remove(directory);
        if paths.is_empty() {
            self.paths.remove(&descriptor);
            // Fails if the directory is gone, and the watch with it.
            let _ = inotify::remove_watch(self.queue.get_ref(), descriptor);
        }
    }
}

/// An event as the kernel reports it.
struct RawEvent {
    descriptor: i32,
    mask: ReadFlags,
    name: Option<OsString>,
}

/// Reads the events that are queued, at most one buffer of them.
fn read(queue: &OwnedFd) -> io::Result<Vec<RawEvent>> {
    let mut buffer = [MaybeUninit::uninit(); READ_BUFFER_BYTES];
    let mut reader = inotify::Reader::new(queue, &mut buffer);
    let mut events = Vec::new();
    loop {
        let event = reader.next()?;
        let name = event.file_name().map(|name| OsStr::from_bytes(name.to_bytes()).to_owned());
        events.push(RawEvent { descriptor: event.wd(), mask: event.events(), name });
        if reader.is_buffer_empty() {
            return Ok(events);
        }
    }
}

/// What to do about a directory that cannot be watched.
pub(crate) fn advice_for(error: Errno) -> &'static str {
    match error {
        Errno::NOSPC => "raise fs.inotify.max_user_watches",
        Errno::ACCESS => "let hookyard's user read it",
        _ => "fix the cause",
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

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
        assert!(events.contains(&FsEvent::Entry(other, "z".into())), "{events:?}");
        assert!(!events.contains(&FsEvent::Entry(one, "y".into())), "{events:?}");
        assert_eq!((watcher.descriptors.len(), watcher.paths.len()), (1, 1));
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
        fs::write(aside.join("x"), "").unwrap();
        fs::remove_dir(&place).unwrap();
        until(&mut watcher, &FsEvent::Directory(place.clone())).await;
        assert!(watcher.descriptors.len() <= 1);
    }

    #[tokio::test]
    async fn an_overflow_is_reported() {
        let here = tempfile::tempdir().unwrap();
        let mut watcher = DirectoryWatcher::open().unwrap();
        assert_eq!(watcher.add(here.path()), WatchResult::New);
        let most = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap();
        // Making and removing a file are two changes.
        for descriptor in 0..=most.trim().parse::<usize>().unwrap() / 2 {
            let path = here.path().join(descriptor.to_string());
            fs::File::create(&path).unwrap();
            fs::remove_file(&path).unwrap();
        }
        until(&mut watcher, &FsEvent::Overflow).await;
        fs::write(here.path().join("x"), "").unwrap();
        until(&mut watcher, &FsEvent::Entry(here.path().to_owned(), "x".into())).await;
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
