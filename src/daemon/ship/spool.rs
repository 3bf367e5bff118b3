//! Lines on disk until they are shipped: files that only grow, each removed once all of its lines are.
//!
//! A daemon that replaces another one writes files of its own at once, and takes over those of the other when that has
//! ended, which a lock says. What a process that was killed has left is shipped by the next one.

use std::{
    collections::VecDeque,
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Read, Seek, SeekFrom, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use parking_lot::Mutex;
use rustix::fs::{FlockOperation, flock};
use tokio::{sync::Notify, time::Instant};

use super::place::{SpoolFile, SpoolPlace};
use crate::telemetry::{LinesShipped, RecordsLost};

/// The size from which lines go to another file, in bytes.
const FILE_BYTES: u64 = 4 << 20;

/// The directory in that of the daemon's data.
const DIRECTORY: &str = "ship";

/// The file that says how far lines are shipped.
const CURSOR: &str = "cursor";

/// The file whose lock the one has who ships.
const LOCK: &str = "lock";

/// The bytes of one batch: an audit line may be large, and a request should not be.
const BATCH_BYTES: u64 = 1 << 20;

/// Lines on disk.
#[derive(Debug)]
pub(in crate::daemon) struct Spool {
    directory: PathBuf,
    /// How many bytes may wait.
    most: u64,
    /// The number of the last file that a process has shipped lines of: new ones have larger numbers.
    former: u64,
    files: Mutex<SpoolFiles>,
    /// Somebody has added lines.
    pub(super) added: Notify,
}

#[derive(Debug, Default)]
struct SpoolFiles {
    /// From the oldest one. The last one may be open for writing.
    waiting: VecDeque<SpoolFile>,
    open: Option<File>,
    /// When the oldest of the lines was added by this process.
    since: Option<Instant>,
    /// Lines that were dropped since the daemon started.
    dropped: u64,
    shipped: u64,
    /// Whoever holds it ships.
    lock: Option<File>,
}

/// Whole lines that are to be shipped next.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) bytes: Vec<u8>,
    pub(super) lines: u64,
    /// Where they begin.
    pub(super) from: SpoolPlace,
}

/// What waits, and what became of the rest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::daemon) struct SpoolCounts {
    pub(in crate::daemon) lines: u64,
    pub(in crate::daemon) bytes: u64,
    pub(in crate::daemon) shipped: u64,
    pub(in crate::daemon) dropped: u64,
}

impl Spool {
    /// Makes the directory in that of the daemon's data.
    ///
    /// Returns an error if that is impossible.
    pub(in crate::daemon) fn make(data: &Path, most: u64) -> io::Result<Self> {
        let directory = data.join(DIRECTORY);
        DirBuilder::new().recursive(true).mode(0o700).create(&directory)?;
        let former = read_cursor(&directory).map_or(0, |place| place.number);
        Ok(Self { directory, most, former, files: Mutex::default(), added: Notify::new() })
    }

    pub(in crate::daemon) fn counts(&self) -> SpoolCounts {
        let files = self.files.lock();
        SpoolCounts {
            lines: files.waiting.iter().map(SpoolFile::lines_left).sum(),
            bytes: files.waiting.iter().map(SpoolFile::bytes_left).sum(),
            shipped: files.shipped,
            dropped: files.dropped,
        }
    }

    /// How long the oldest of the lines of this process has waited.
    pub(super) fn waited_since(&self) -> Option<Instant> {
        self.files.lock().since
    }

    /// Adds whole lines. Returns whether they are in a file.
    pub(in crate::daemon) fn add(&self, lines: &[u8]) -> bool {
        let count = count_lines(lines);
        let mut files = self.files.lock();
        let written = self.write(&mut files, lines);
        match &written {
            Ok(()) => {
                if let Some(file) = files.waiting.back_mut() {
                    file.grow(lines.len() as u64, count);
                }
                files.since.get_or_insert_with(Instant::now);
                self.drop_oldest(&mut files);
            }
            Err(error) => {
                files.dropped += count;
                RecordsLost::ShipWrite.emit(count);
                tracing::error!(%error, lines = count, "lines for shipping cannot be written, and are lost");
            }
        }
        drop(files);
        self.added.notify_one();
        written.is_ok()
    }

    fn write(&self, files: &mut SpoolFiles, lines: &[u8]) -> io::Result<()> {
        let size = files.waiting.back().map_or(0, SpoolFile::size);
        let is_full = size > 0 && size + lines.len() as u64 > FILE_BYTES.min(self.most / 2);
        if files.open.is_none() || is_full {
            let (number, file) = self.begin_file(files)?;
            files.open = Some(file);
            files.waiting.push_back(SpoolFile::new(number));
        }
        let size = files.waiting.back().map_or(0, SpoolFile::size);
        let Some(file) = &mut files.open else { return Err(io::ErrorKind::NotFound.into()) };
        let written = file.write_all(lines);
        if written.is_err() && file.set_len(size).and_then(|()| file.seek(SeekFrom::Start(size))).is_err() {
            // Half a line is at its end: nothing may follow it.
            files.open = None;
        }
        written
    }

    /// A new file, whose number is above those of all others.
    fn begin_file(&self, files: &SpoolFiles) -> io::Result<(u64, File)> {
        let known = files.waiting.back().map_or(0, SpoolFile::number);
        let mut number = self.numbers()?.into_iter().fold(known.max(self.former), u64::max) + 1;
        loop {
            let options = OpenOptions::new().create_new(true).write(true).mode(0o600).clone();
            match options.open(self.path(number)) {
                // Another daemon has just begun it.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
                opened => return Ok((number, opened?)),
            }
        }
    }

    /// Drops the oldest files as long as too much waits. The one that is written to stays.
    fn drop_oldest(&self, files: &mut SpoolFiles) {
        while files.waiting.iter().map(SpoolFile::bytes_left).sum::<u64>() > self.most
            && files.waiting.len() > 1
        {
            let Some(oldest) = files.waiting.pop_front() else { return };
            let lines = oldest.lines_left();
            files.dropped += lines;
            RecordsLost::ShipFull.emit(lines);
            tracing::error!(
                lines,
                "lines for shipping are lost: the oldest are dropped, since `ship.max_size` is used up"
            );
            self.remove(&oldest);
        }
    }

    /// Takes the files that other processes have left, unless one of them still runs. Returns whether this one ships now.
    pub(super) fn adopt(&self) -> io::Result<bool> {
        let mut files = self.files.lock();
        if files.lock.is_some() {
            return Ok(true);
        }
        let options = OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).clone();
        let lock = options.open(self.directory.join(LOCK))?;
        if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Ok(false);
        }
        let own: Vec<u64> = files.waiting.iter().map(SpoolFile::number).collect();
        let mut found = Vec::new();
        for number in self.numbers()?.into_iter().filter(|number| !own.contains(number)) {
            found.push(self.left_file(number)?);
        }
        files.waiting.extend(found);
        files.waiting.make_contiguous().sort_by_key(SpoolFile::number);
        if let Some(first) = files.waiting.front_mut() {
            let place = read_cursor(&self.directory).filter(|place| place.number == first.number());
            if let Some(place) = place {
                let before = self.bytes(SpoolPlace { offset: 0, ..place }, place.offset)?;
                if before.ends_with(b"\n") && before.len() as u64 == place.offset {
                    first.send(place.offset, count_lines(&before));
                }
            }
        }
        files.lock = Some(lock);
        // The file of another process may be behind the open one.
        files.open = None;
        Ok(true)
    }

    /// A file that another process has left, without the half of a line at its end.
    fn left_file(&self, number: u64) -> io::Result<SpoolFile> {
        let path = self.path(number);
        let bytes = fs::read(&path)?;
        let whole = memchr::memrchr(b'\n', &bytes).map_or(0, |end| end + 1);
        if whole < bytes.len() {
            OpenOptions::new().write(true).open(&path)?.set_len(whole as u64)?;
        }
        let mut file = SpoolFile::new(number);
        file.grow(whole as u64, count_lines(&bytes[..whole]));
        Ok(file)
    }

    /// The next lines, at most so many; none if none wait.
    pub(super) fn next(&self, most: usize) -> Option<Batch> {
        let mut files = self.files.lock();
        while files.waiting.len() > 1
            && let Some(done) = files.waiting.pop_front_if(|file| file.bytes_left() == 0)
        {
            self.remove(&done);
        }
        let Some(file) = files.waiting.front().filter(|file| file.bytes_left() > 0) else {
            files.since = None;
            return None;
        };
        let (from, left) = (file.place(), file.bytes_left());
        drop(files);
        match self.lines(from, left, most) {
            Ok(bytes) => Some(Batch { lines: count_lines(&bytes), bytes, from }),
            Err(error) => {
                self.lose(from, &error);
                None
            }
        }
    }

    /// Whole lines from a place on, at most so many; more than usual where one line is as large.
    fn lines(&self, from: SpoolPlace, left: u64, most: usize) -> io::Result<Vec<u8>> {
        let mut bytes = self.bytes(from, left.min(BATCH_BYTES))?;
        if !bytes.contains(&b'\n') {
            bytes = self.bytes(from, left)?;
        }
        let end = memchr::memchr_iter(b'\n', &bytes).take(most).last();
        bytes.truncate(end.ok_or(io::ErrorKind::UnexpectedEof)? + 1);
        Ok(bytes)
    }

    /// A file cannot be read any more.
    fn lose(&self, from: SpoolPlace, error: &io::Error) {
        let mut files = self.files.lock();
        let Some(lost) = files.waiting.pop_front_if(|file| file.place() == from) else { return };
        if files.waiting.is_empty() {
            files.open = None;
        }
        let lines = lost.lines_left();
        files.dropped += lines;
        RecordsLost::ShipWrite.emit(lines);
        tracing::error!(%error, lines, "lines for shipping are lost: their file cannot be read");
        self.remove(&lost);
    }

    /// The server has these lines.
    pub(super) fn shipped(&self, batch: &Batch) {
        if self.pass(batch) {
            self.files.lock().shipped += batch.lines;
            LinesShipped(batch.lines).emit();
        }
    }

    /// The server will never take these lines.
    pub(super) fn give_up(&self, batch: &Batch) {
        if self.pass(batch) {
            self.files.lock().dropped += batch.lines;
            RecordsLost::ShipRefused.emit(batch.lines);
        }
    }

    /// Goes on behind these lines. Returns whether they still waited.
    fn pass(&self, batch: &Batch) -> bool {
        let mut files = self.files.lock();
        let Some(first) = files.waiting.front_mut().filter(|file| file.place() == batch.from) else {
            return false;
        };
        first.send(batch.bytes.len() as u64, batch.lines);
        let place = first.place();
        drop(files);
        if let Err(error) = self.write_cursor(place) {
            tracing::warn!(%error, "it cannot be written how far lines are shipped; after a restart some are sent again");
        }
        true
    }

    fn write_cursor(&self, place: SpoolPlace) -> io::Result<()> {
        let new = self.directory.join("cursor.new");
        let mut file = OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(&new)?;
        file.write_all(place.to_string().as_bytes())?;
        fs::rename(new, self.directory.join(CURSOR))
    }

    /// Syncs the open file to the disk.
    pub(in crate::daemon) fn sync(&self) -> io::Result<()> {
        let files = self.files.lock();
        files.open.as_ref().map_or(Ok(()), File::sync_data)
    }

    /// Gives the files to another process.
    pub(super) fn release(&self) {
        self.files.lock().lock = None;
    }

    fn remove(&self, file: &SpoolFile) {
        if let Err(error) = fs::remove_file(self.path(file.number())) {
            tracing::warn!(%error, "a file of shipped lines cannot be removed; after a restart they are sent again");
        }
    }

    fn bytes(&self, from: SpoolPlace, most: u64) -> io::Result<Vec<u8>> {
        let mut file = File::open(self.path(from.number))?;
        file.seek(SeekFrom::Start(from.offset))?;
        let mut bytes = Vec::new();
        file.take(most).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// The numbers of the files that are there.
    fn numbers(&self) -> io::Result<Vec<u64>> {
        let names = self.directory.read_dir()?.map(|entry| entry.map(|entry| entry.file_name()));
        let names: Vec<_> = names.collect::<Result<_, _>>()?;
        let numbers = names.iter().filter_map(|name| name.to_str()?.strip_suffix(".jsonl")?.parse().ok());
        Ok(numbers.collect())
    }

    fn path(&self, number: u64) -> PathBuf {
        self.directory.join(format!("{number:010}.jsonl"))
    }
}

/// How far lines were shipped, as the last process has written it.
fn read_cursor(directory: &Path) -> Option<SpoolPlace> {
    fs::read_to_string(directory.join(CURSOR)).ok()?.parse().ok()
}

fn count_lines(bytes: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', bytes).count() as u64
}
