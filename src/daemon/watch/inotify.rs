//! What the kernel tells of directories, through inotify. Owns which directories are listened to; refuses to know why.
//!
//! inotify itself, and no library over it: those ask for every opening of a file too, which in `/etc`, in a home
//! and in the directory of a project happens with each process that starts, and they lose a directory that has taken
//! another's place.

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

/// What is heard of a directory: that entries come, go, are written or change their rights, and that it goes itself.
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

/// How much is read at a time, in bytes: some hundred changes.
const READ_BUFFER_BYTES: usize = 16 << 10;

/// Listens to directories.
#[derive(Debug)]
pub(super) struct DirectoryWatcher {
    queue: AsyncFd<OwnedFd>,
    /// The kernel's numbers.
    descriptors: HashMap<PathBuf, i32>,
    /// A directory has one number, also if several paths lead to it for a while.
    paths: HashMap<i32, BTreeSet<PathBuf>>,
    /// Directories that cannot be listened to.
    unwatchable: HashSet<PathBuf>,
}

/// What came of listening to a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WatchResult {
    /// It is the one that was listened to before.
    Unchanged,
    /// It is a new one, which may have changed before.
    New,
    /// It is gone.
    Missing,
    /// It cannot be listened to.
    Failed(Errno),
}

/// What the kernel tells.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum FsEvent {
    /// An entry of a directory has changed.
    Entry(PathBuf, OsString),
    /// A directory has changed itself, or is not there any more.
    Directory(PathBuf),
    /// There was more than the kernel could remember.
    Overflow,
}

impl DirectoryWatcher {
    /// Returns an error if the system does not give this user any more of them.
    #[allow(
        deprecated,
        reason = "its successor is unsafe for types whose descriptor may change; an `OwnedFd`'s cannot"
    )]
    pub(super) fn open() -> io::Result<Self> {
        let queue = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        let queue = AsyncFd::with_interest(queue, Interest::READABLE)?;
        let (descriptors, paths, unwatchable) = Default::default();
        Ok(Self { queue, descriptors, paths, unwatchable })
    }

    /// Listens to a directory. To be asked again whenever another may have taken its place.
    pub(super) fn add(&mut self, directory: &Path) -> WatchResult {
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

    /// Listens to a directory no longer.
    pub(super) fn remove(&mut self, directory: &Path) {
        self.unwatchable.remove(directory);
        if let Some(descriptor) = self.descriptors.remove(directory) {
            self.release(descriptor, directory);
        }
    }

    /// How many directories cannot be listened to.
    pub(super) fn unwatchable(&self) -> usize {
        self.unwatchable.len()
    }

    /// Waits for what the kernel tells. Nothing is lost if it is dropped.
    ///
    /// Returns an error if the kernel tells nothing any more.
    pub(super) async fn next_events(&mut self) -> io::Result<Vec<FsEvent>> {
        loop {
            let mut ready = self.queue.readable().await?;
            if let Ok(told) = ready.try_io(|queue| read(queue.get_ref())) {
                drop(ready);
                return told.map(|told| told.into_iter().flat_map(|told| self.translate(told)).collect());
            }
        }
    }

    fn translate(&mut self, told: RawEvent) -> Vec<FsEvent> {
        let RawEvent { descriptor, what, name } = told;
        if what.contains(ReadFlags::QUEUE_OVERFLOW) {
            return vec![FsEvent::Overflow];
        }
        if what.contains(ReadFlags::IGNORED) {
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
            // It fails if the directory is gone, and the number with it.
            let _ = inotify::remove_watch(self.queue.get_ref(), descriptor);
        }
    }
}

/// One thing the kernel tells.
struct RawEvent {
    descriptor: i32,
    what: ReadFlags,
    name: Option<OsString>,
}

/// Reads once what there is.
fn read(queue: &OwnedFd) -> io::Result<Vec<RawEvent>> {
    let mut buffer = [MaybeUninit::uninit(); READ_BUFFER_BYTES];
    let mut reader = inotify::Reader::new(queue, &mut buffer);
    let mut told = Vec::new();
    loop {
        let event = reader.next()?;
        let name = event.file_name().map(|name| OsStr::from_bytes(name.to_bytes()).to_owned());
        told.push(RawEvent { descriptor: event.wd(), what: event.events(), name });
        if reader.is_buffer_empty() {
            return Ok(told);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Hears until something is told that is wanted.
    async fn until(watcher: &mut DirectoryWatcher, wanted: &FsEvent) {
        while !watcher.next_events().await.unwrap().contains(wanted) {}
    }

    #[tokio::test]
    async fn entries_are_heard_until_the_directory_is_ignored() {
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
        let told = watcher.next_events().await.unwrap();
        assert!(told.contains(&FsEvent::Entry(other, "z".into())), "{told:?}");
        assert!(!told.contains(&FsEvent::Entry(one, "y".into())), "{told:?}");
        assert_eq!((watcher.descriptors.len(), watcher.paths.len()), (1, 1));
    }

    #[tokio::test]
    async fn a_directory_that_takes_the_place_of_another_is_a_new_one() {
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
    async fn what_is_too_much_to_remember_is_told() {
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
    async fn a_file_is_no_directory() {
        let here = tempfile::tempdir().unwrap();
        fs::write(here.path().join("x"), "").unwrap();
        let mut watcher = DirectoryWatcher::open().unwrap();
        assert_eq!(watcher.add(&here.path().join("x")), WatchResult::Missing);
        assert_eq!(watcher.unwatchable(), 0);
    }
}
