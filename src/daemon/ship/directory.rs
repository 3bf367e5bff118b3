//! The files of lines that wait: begun, read and removed, by whom a lock says.
//!
//! Whoever writes a file holds its lock as long as that is open, so that nobody takes it for one that was left. A file has its
//! name only once it is locked.

use std::{
    fs::{self, DirBuilder, File},
    hash::{BuildHasher, RandomState},
    io::{self, Read, Seek, SeekFrom, Write},
    os::{
        fd::AsFd,
        unix::fs::{DirBuilderExt, MetadataExt},
    },
    path::{Path, PathBuf},
};

use rustix::{
    fs::{CWD, FlockOperation, Mode, OFlags, RenameFlags, flock, open, renameat_with},
    io::Errno,
    process::{geteuid, getpid},
};

use super::place::{SpoolFile, SpoolPlace};

/// The directory in that of the daemon's data.
const DIRECTORY: &str = "ship";

/// The file that says how far lines are shipped.
const CURSOR: &str = "cursor";

/// The file that says how many lines were dropped.
const DROPPED: &str = "dropped";

/// The file with what tells these lines from those of another directory.
const ID: &str = "id";

/// The file whose lock the one has who ships.
const LOCK: &str = "lock";

/// What every file is opened with: no link is followed, and nothing is waited for.
const CAREFULLY: OFlags =
    OFlags::NOFOLLOW.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// How much of a file that was left is read at once, in bytes.
const CHUNK: usize = 1 << 20;

/// The largest number of a file: its name has ten digits.
const LAST: u64 = 9_999_999_999;

/// A directory of files with lines.
#[derive(Debug)]
pub(super) struct SpoolDirectory {
    path: PathBuf,
    /// Tells its lines from those of another one, also where the numbers of files begin anew.
    id: String,
}

impl SpoolDirectory {
    /// Makes it in that of the daemon's data.
    ///
    /// Returns an error if that is impossible, or if others may write to it.
    pub(super) fn make(data: &Path) -> io::Result<Self> {
        let mut directory = Self { path: data.join(DIRECTORY), id: String::new() };
        directory.make_again()?;
        let found = directory.path.symlink_metadata()?;
        if !found.is_dir() || found.uid() != geteuid().as_raw() || found.mode() & 0o022 != 0 {
            let why = format!(
                "{} must be a directory of this user, who alone may write to it",
                directory.path.display()
            );
            return Err(io::Error::other(why));
        }
        directory.id = directory.read_id().map_or_else(|| directory.make_id(), Ok)?;
        Ok(directory)
    }

    /// What tells these lines from all others of this daemon: where they are.
    pub(super) fn name_of(&self, from: SpoolPlace, bytes: u64) -> String {
        format!("{}-{from}-{}", self.id, from.offset + bytes)
    }

    fn read_id(&self) -> Option<String> {
        let id = self.small_text(ID)?;
        (id.len() == 16 && id.bytes().all(|byte| byte.is_ascii_hexdigit())).then_some(id)
    }

    fn make_id(&self) -> io::Result<String> {
        let id = format!("{:016x}", RandomState::new().hash_one(std::process::id()));
        self.write_small(ID, &id)?;
        Ok(id)
    }

    fn make_again(&self) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.path)
    }

    /// Begins a file to write to, whose number is larger than those of all others.
    pub(super) fn begin(&self, others: u64) -> io::Result<(u64, File)> {
        self.make_again()?;
        let own_name = self.path.join(format!("begun-{}", getpid().as_raw_nonzero()));
        let flags = OFlags::CREATE | OFlags::TRUNC | OFlags::WRONLY | OFlags::APPEND | CAREFULLY;
        let file = File::from(open(&own_name, flags, Mode::RUSR | Mode::WUSR)?);
        flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        let mut number = self.numbers()?.into_iter().fold(others, u64::max) + 1;
        // Another daemon may begin one at the same moment.
        while number <= LAST {
            match renameat_with(CWD, &own_name, CWD, self.path(number), RenameFlags::NOREPLACE) {
                Err(Errno::EXIST) => number += 1,
                named => {
                    named?;
                    File::open(&self.path)?.sync_all()?;
                    return Ok((number, file));
                }
            }
        }
        Err(io::Error::other("its files have no more numbers; move them away"))
    }

    /// The numbers of the files that are there.
    pub(super) fn numbers(&self) -> io::Result<Vec<u64>> {
        let mut numbers = Vec::new();
        for entry in self.path.read_dir()? {
            let name = entry?.file_name();
            let number = name.to_str().and_then(|name| name.strip_suffix(".jsonl")?.parse::<u64>().ok());
            // Names that this would not write are somebody else's.
            numbers.extend(number.filter(|number| *number < LAST && self.path(*number).ends_with(&name)));
        }
        Ok(numbers)
    }

    /// A file that another process has left, without the half of a line at its end; none if that process still has it open.
    pub(super) fn left(&self, number: u64) -> io::Result<Option<SpoolFile>> {
        let mut file = self.open(number, OFlags::RDWR)?;
        match flock(file.as_fd(), FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => return Ok(None),
            locked => locked?,
        }
        let (mut size, mut lines, mut whole) = (0, 0, 0);
        let mut chunk = vec![0; CHUNK];
        loop {
            let read = file.read(&mut chunk)?;
            if read == 0 {
                break;
            }
            lines += count_lines(&chunk[..read]);
            if let Some(end) = memchr::memrchr(b'\n', &chunk[..read]) {
                whole = size + end as u64 + 1;
            }
            size += read as u64;
        }
        if whole < size {
            file.set_len(whole)?;
        }
        let mut found = SpoolFile::new(number);
        found.grow(whole, lines);
        Ok(Some(found))
    }

    /// Bytes of a file from a place on, at most so many.
    pub(super) fn read(&self, from: SpoolPlace, most: u64) -> io::Result<Vec<u8>> {
        let mut file = self.open(from.number, OFlags::RDONLY)?;
        file.seek(SeekFrom::Start(from.offset))?;
        let mut bytes = Vec::new();
        file.take(most).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn open(&self, number: u64, access: OFlags) -> io::Result<File> {
        let file = File::from(open(self.path(number), access | CAREFULLY, Mode::empty())?);
        if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("it is no regular file")) }
    }

    pub(super) fn remove(&self, number: u64) {
        if let Err(error) = fs::remove_file(self.path(number)) {
            tracing::warn!(%error, number, "a file of shipped lines cannot be removed; after a restart they are sent again");
        }
    }

    /// How far lines are shipped, as the last process has written it.
    pub(super) fn cursor(&self) -> Option<SpoolPlace> {
        let place: SpoolPlace = self.small_text(CURSOR)?.parse().ok()?;
        (place.number < LAST).then_some(place)
    }

    fn small_text(&self, name: &str) -> Option<String> {
        let file = open(self.path.join(name), OFlags::RDONLY | CAREFULLY, Mode::empty()).ok()?;
        let mut text = String::new();
        File::from(file).take(64).read_to_string(&mut text).ok()?;
        Some(text)
    }

    fn write_small(&self, name: &str, text: &str) -> io::Result<()> {
        let new = self.path.join(format!("{name}.new"));
        let flags = OFlags::CREATE | OFlags::TRUNC | OFlags::WRONLY | CAREFULLY;
        let mut file = File::from(open(&new, flags, Mode::RUSR | Mode::WUSR)?);
        file.write_all(text.as_bytes())?;
        fs::rename(new, self.path.join(name))
    }

    pub(super) fn write_cursor(&self, place: SpoolPlace) -> io::Result<()> {
        self.write_small(CURSOR, &place.to_string())
    }

    /// How many lines were dropped, by this and former processes.
    pub(super) fn dropped(&self) -> u64 {
        self.small_text(DROPPED).and_then(|text| text.parse().ok()).unwrap_or(0)
    }

    /// Writes down that so many more were. Another process may have written of its own meanwhile.
    pub(super) fn add_dropped(&self, lines: u64) -> io::Result<()> {
        if lines == 0 {
            return Ok(());
        }
        self.write_small(DROPPED, &self.dropped().saturating_add(lines).to_string())
    }

    /// Takes the lock of who ships; none if another process has it.
    pub(super) fn lock(&self) -> io::Result<Option<File>> {
        let flags = OFlags::CREATE | OFlags::RDWR | CAREFULLY;
        let file = File::from(open(self.path.join(LOCK), flags, Mode::RUSR | Mode::WUSR)?);
        match flock(file.as_fd(), FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => Ok(None),
            locked => Ok(locked.map(|()| Some(file))?),
        }
    }

    /// The path of a file.
    pub(super) fn path(&self, number: u64) -> PathBuf {
        self.path.join(format!("{number:010}.jsonl"))
    }
}

pub(super) fn count_lines(bytes: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', bytes).count() as u64
}
