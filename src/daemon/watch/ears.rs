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
const HEARD: WatchFlags = WatchFlags::CREATE
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
const AT_ONCE: usize = 16 << 10;

/// Listens to directories.
#[derive(Debug)]
pub(super) struct Ears {
    queue: AsyncFd<OwnedFd>,
    /// The kernel's numbers.
    numbers: HashMap<PathBuf, i32>,
    /// A directory has one number, also if several paths lead to it for a while.
    paths: HashMap<i32, BTreeSet<PathBuf>>,
    /// Directories that cannot be listened to.
    deaf: HashSet<PathBuf>,
}

/// What came of listening to a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Heard {
    /// It is the one that was listened to before.
    Already,
    /// It is a new one, which may have changed before.
    Anew,
    /// It is gone.
    Gone,
    /// It cannot be listened to.
    Not(Errno),
}

/// What the kernel tells.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Sound {
    /// An entry of a directory has changed.
    Entry(PathBuf, OsString),
    /// A directory has changed itself, or is not there any more.
    Directory(PathBuf),
    /// There was more than the kernel could remember.
    Lost,
}

impl Ears {
    /// Returns an error if the system does not give this user any more of them.
    #[allow(
        deprecated,
        reason = "its successor is unsafe for types whose descriptor may change; an `OwnedFd`'s cannot"
    )]
    pub(super) fn open() -> io::Result<Self> {
        let queue = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        let queue = AsyncFd::with_interest(queue, Interest::READABLE)?;
        let (numbers, paths, deaf) = Default::default();
        Ok(Self { queue, numbers, paths, deaf })
    }

    /// Listens to a directory. To be asked again whenever another may have taken its place.
    pub(super) fn listen(&mut self, directory: &Path) -> Heard {
        let number = match inotify::add_watch(self.queue.get_ref(), directory, HEARD) {
            Ok(number) => number,
            Err(error) => {
                self.ignore(directory);
                if matches!(error, Errno::NOENT | Errno::NOTDIR) {
                    return Heard::Gone;
                }
                self.deaf.insert(directory.to_owned());
                return Heard::Not(error);
            }
        };
        self.deaf.remove(directory);
        match self.numbers.insert(directory.to_owned(), number) {
            Some(former) if former == number => return Heard::Already,
            Some(former) => self.release(former, directory),
            None => {}
        }
        self.paths.entry(number).or_default().insert(directory.to_owned());
        Heard::Anew
    }

    /// Listens to a directory no longer.
    pub(super) fn ignore(&mut self, directory: &Path) {
        self.deaf.remove(directory);
        if let Some(number) = self.numbers.remove(directory) {
            self.release(number, directory);
        }
    }

    /// How many directories cannot be listened to.
    pub(super) fn deaf(&self) -> usize {
        self.deaf.len()
    }

    /// Waits for what the kernel tells. Nothing is lost if it is dropped.
    ///
    /// Returns an error if the kernel tells nothing any more.
    pub(super) async fn hear(&mut self) -> io::Result<Vec<Sound>> {
        loop {
            let mut ready = self.queue.readable().await?;
            if let Ok(told) = ready.try_io(|queue| read(queue.get_ref())) {
                drop(ready);
                return told.map(|told| told.into_iter().flat_map(|told| self.understand(told)).collect());
            }
        }
    }

    fn understand(&mut self, told: Told) -> Vec<Sound> {
        let Told { number, what, name } = told;
        if what.contains(ReadFlags::QUEUE_OVERFLOW) {
            return vec![Sound::Lost];
        }
        if what.contains(ReadFlags::IGNORED) {
            let paths = self.paths.remove(&number).unwrap_or_default();
            for path in &paths {
                self.numbers.remove(path);
            }
            return paths.into_iter().map(Sound::Directory).collect();
        }
        let paths = self.paths.get(&number).into_iter().flatten().cloned();
        match name {
            Some(name) => paths.map(|path| Sound::Entry(path, name.clone())).collect(),
            None => paths.map(Sound::Directory).collect(),
        }
    }

    fn release(&mut self, number: i32, directory: &Path) {
        let Some(paths) = self.paths.get_mut(&number) else { return };
        paths.remove(directory);
        if paths.is_empty() {
            self.paths.remove(&number);
            // It fails if the directory is gone, and the number with it.
            let _ = inotify::remove_watch(self.queue.get_ref(), number);
        }
    }
}

/// One thing the kernel tells.
struct Told {
    number: i32,
    what: ReadFlags,
    name: Option<OsString>,
}

/// Reads once what there is.
fn read(queue: &OwnedFd) -> io::Result<Vec<Told>> {
    let mut buffer = [MaybeUninit::uninit(); AT_ONCE];
    let mut reader = inotify::Reader::new(queue, &mut buffer);
    let mut told = Vec::new();
    loop {
        let event = reader.next()?;
        let name = event.file_name().map(|name| OsStr::from_bytes(name.to_bytes()).to_owned());
        told.push(Told { number: event.wd(), what: event.events(), name });
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
    async fn until(ears: &mut Ears, wanted: &Sound) {
        while !ears.hear().await.unwrap().contains(wanted) {}
    }

    #[tokio::test]
    async fn entries_are_heard_until_the_directory_is_ignored() {
        let here = tempfile::tempdir().unwrap();
        let (one, other) = (here.path().join("one"), here.path().join("other"));
        fs::create_dir(&one).unwrap();
        fs::create_dir(&other).unwrap();
        let mut ears = Ears::open().unwrap();
        assert_eq!((ears.listen(&one), ears.listen(&one)), (Heard::Anew, Heard::Already));
        assert_eq!(ears.listen(&other), Heard::Anew);
        fs::write(one.join("x"), "").unwrap();
        until(&mut ears, &Sound::Entry(one.clone(), "x".into())).await;
        ears.ignore(&one);
        fs::write(one.join("y"), "").unwrap();
        fs::write(other.join("z"), "").unwrap();
        let told = ears.hear().await.unwrap();
        assert!(told.contains(&Sound::Entry(other, "z".into())), "{told:?}");
        assert!(!told.contains(&Sound::Entry(one, "y".into())), "{told:?}");
        assert_eq!((ears.numbers.len(), ears.paths.len()), (1, 1));
    }

    #[tokio::test]
    async fn a_directory_that_takes_the_place_of_another_is_a_new_one() {
        let here = tempfile::tempdir().unwrap();
        let (place, aside) = (here.path().join("place"), here.path().join("aside"));
        fs::create_dir(&place).unwrap();
        let mut ears = Ears::open().unwrap();
        assert_eq!(ears.listen(&place), Heard::Anew);
        fs::rename(&place, &aside).unwrap();
        until(&mut ears, &Sound::Directory(place.clone())).await;
        assert_eq!(ears.listen(&place), Heard::Gone);
        fs::create_dir(&place).unwrap();
        assert_eq!(ears.listen(&place), Heard::Anew);
        fs::write(aside.join("x"), "").unwrap();
        fs::remove_dir(&place).unwrap();
        until(&mut ears, &Sound::Directory(place.clone())).await;
        assert!(ears.numbers.len() <= 1);
    }

    #[tokio::test]
    async fn what_is_too_much_to_remember_is_told() {
        let here = tempfile::tempdir().unwrap();
        let mut ears = Ears::open().unwrap();
        assert_eq!(ears.listen(here.path()), Heard::Anew);
        let most = fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap();
        // Making and removing a file are two changes.
        for number in 0..=most.trim().parse::<usize>().unwrap() / 2 {
            let path = here.path().join(number.to_string());
            fs::File::create(&path).unwrap();
            fs::remove_file(&path).unwrap();
        }
        until(&mut ears, &Sound::Lost).await;
        fs::write(here.path().join("x"), "").unwrap();
        until(&mut ears, &Sound::Entry(here.path().to_owned(), "x".into())).await;
    }

    #[tokio::test]
    async fn a_file_is_no_directory() {
        let here = tempfile::tempdir().unwrap();
        fs::write(here.path().join("x"), "").unwrap();
        let mut ears = Ears::open().unwrap();
        assert_eq!(ears.listen(&here.path().join("x")), Heard::Gone);
        assert_eq!(ears.deaf(), 0);
    }
}
