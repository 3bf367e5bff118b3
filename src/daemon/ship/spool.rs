//! Lines on disk until they are shipped: files that only grow, each removed once all of its lines are.
//!
//! A daemon that replaces another one writes files of its own at once, and takes over those of the other as that closes them.
//! What a process that was killed has left is shipped by the next one.

use std::{
    collections::{BTreeSet, VecDeque},
    fs::File,
    io::{self, Write},
    path::Path,
};

use parking_lot::Mutex;
use tokio::{sync::Notify, time::Instant};

use super::{
    directory::{SpoolDirectory, count_lines},
    place::{SpoolFile, SpoolPlace},
};
use crate::telemetry::{LinesShipped, RecordsLost};

/// The size from which lines go to another file, in bytes.
const FILE_BYTES: u64 = 4 << 20;

/// How many files may wait.
const MOST_FILES: usize = 4096;

/// The bytes of one batch: an audit line may be large, and a request should not be.
const BATCH_BYTES: u64 = 1 << 20;

/// Lines on disk.
#[derive(Debug)]
pub(in crate::daemon) struct Spool {
    directory: SpoolDirectory,
    /// How many bytes may wait.
    most: u64,
    /// The number of the last file that a process has shipped lines of: new ones have larger numbers.
    former: u64,
    /// Held while lines are written, and no other lock meanwhile for longer than a moment.
    open: Mutex<Option<OpenFile>>,
    files: Mutex<SpoolFiles>,
    /// Where the last batch began, and its bytes: one that has to be sent again is the same, whatever was added meanwhile.
    last: Mutex<Option<(SpoolPlace, u64)>>,
    /// Held by who ships.
    lock: Mutex<Option<File>>,
    /// Somebody has added lines.
    pub(super) added: Notify,
}

/// The file that is written to.
#[derive(Debug)]
struct OpenFile {
    number: u64,
    file: File,
    size: u64,
}

#[derive(Debug, Default)]
struct SpoolFiles {
    /// From the oldest one.
    waiting: VecDeque<SpoolFile>,
    /// The number of the one that is written to.
    open: Option<u64>,
    /// When the oldest of the lines was added by this process.
    since: Option<Instant>,
    /// Lines that were dropped since there is the directory: the server hears of them also if the process is killed before.
    dropped: u64,
    shipped: u64,
    /// The files that cannot be read, each of which is reported once.
    unusable: BTreeSet<u64>,
    /// The last lines could not be written, which is reported once.
    is_failing: bool,
}

/// Whole lines that are to be shipped next.
#[derive(Debug)]
pub(super) struct Batch {
    pub(super) bytes: Vec<u8>,
    pub(super) lines: u64,
    /// Where they begin.
    pub(super) from: SpoolPlace,
    /// What tells them from all other lines of this daemon.
    pub(super) name: String,
}

/// What waits, and what became of the rest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::daemon) struct SpoolCounts {
    pub(in crate::daemon) lines: u64,
    pub(in crate::daemon) bytes: u64,
    pub(in crate::daemon) shipped: u64,
    pub(in crate::daemon) dropped: u64,
}

/// Whose the files are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SpoolAdoption {
    /// Another process ships.
    Refused,
    /// This one ships, and another still writes files.
    Partly,
    /// This one ships all that there is.
    Whole,
}

impl Spool {
    /// Makes the directory in that of the daemon's data.
    ///
    /// Returns an error if that is impossible, or if others may write to it.
    pub(in crate::daemon) fn make(data: &Path, most: u64) -> io::Result<Self> {
        let directory = SpoolDirectory::make(data)?;
        let files = SpoolFiles { dropped: directory.dropped(), ..SpoolFiles::default() };
        Ok(Self {
            most,
            former: directory.cursor().map_or(0, |place| place.number),
            directory,
            open: Mutex::default(),
            files: Mutex::new(files),
            last: Mutex::default(),
            lock: Mutex::default(),
            added: Notify::new(),
        })
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

    /// Adds whole lines.
    ///
    /// Returns an error if they are not in a file.
    pub(in crate::daemon) fn add(&self, lines: &[u8]) -> io::Result<()> {
        let count = count_lines(lines);
        let mut open = self.open.lock();
        let written = self.write(&mut open, lines);
        let mut files = self.files.lock();
        match &written {
            Ok(number) => {
                if let Some(file) = files.waiting.iter_mut().find(|file| file.number() == *number) {
                    file.grow(lines.len() as u64, count);
                }
                files.since.get_or_insert_with(Instant::now);
                files.is_failing = false;
            }
            Err(error) => {
                self.count_dropped(&mut files, count);
                RecordsLost::ShipWrite.emit(count);
                if !std::mem::replace(&mut files.is_failing, true) {
                    tracing::error!(%error, lines = count, "lines for shipping cannot be written, and are lost");
                }
            }
        }
        let dropped = self.drop_oldest(&mut files);
        drop(files);
        drop(open);
        for number in dropped {
            self.directory.remove(number);
        }
        self.added.notify_one();
        written.map(drop)
    }

    /// Returns the number of the file that the lines are in.
    fn write(&self, open: &mut Option<OpenFile>, lines: &[u8]) -> io::Result<u64> {
        let is_full =
            |file: &OpenFile| file.size > 0 && file.size + lines.len() as u64 > FILE_BYTES.min(self.most / 2);
        if let Some(full) = open.take_if(|file| is_full(file)) {
            // Whoever syncs lines later syncs the next file.
            full.file.sync_data()?;
        }
        if open.is_none() {
            let known = self.files.lock().waiting.back().map_or(0, SpoolFile::number);
            let (number, file) = self.directory.begin(known.max(self.former))?;
            let mut files = self.files.lock();
            files.open = Some(number);
            files.waiting.push_back(SpoolFile::new(number));
            *open = Some(OpenFile { number, file, size: 0 });
        }
        let Some(OpenFile { number, file, size }) = open else { return Err(io::ErrorKind::NotFound.into()) };
        let number = *number;
        let written = file.write_all(lines);
        if written.is_ok() {
            *size += lines.len() as u64;
        } else if file.set_len(*size).is_err() {
            // Half a line is at its end: nothing may follow it.
            *open = None;
            self.files.lock().open = None;
        }
        written.map(|()| number)
    }

    /// Drops the oldest files as long as too much waits. The one that is written to stays. Returns those that are to be
    /// removed.
    fn drop_oldest(&self, files: &mut SpoolFiles) -> Vec<u64> {
        let mut dropped = Vec::new();
        let mut lines = 0;
        let is_too_much = |files: &SpoolFiles| {
            files.waiting.len() > MOST_FILES
                || files.waiting.iter().map(SpoolFile::bytes_left).sum::<u64>() > self.most
        };
        while is_too_much(files) {
            let open = files.open;
            let Some(oldest) = files.waiting.pop_front_if(|file| Some(file.number()) != open) else { break };
            lines += oldest.lines_left();
            dropped.push(oldest.number());
        }
        if lines > 0 {
            self.count_dropped(files, lines);
            RecordsLost::ShipFull.emit(lines);
            tracing::error!(
                lines,
                "lines for shipping are lost: the oldest are dropped, since `ship.max_size` is used up"
            );
        }
        dropped
    }

    fn count_dropped(&self, files: &mut SpoolFiles, lines: u64) {
        files.dropped += lines;
        if let Err(error) = self.directory.add_dropped(lines) {
            tracing::warn!(%error, lines, "the number of dropped lines cannot be written; after a restart it is missing");
        }
    }

    /// Takes the files that other processes have left.
    ///
    /// Returns an error if the directory cannot be read.
    pub(super) fn adopt(&self) -> io::Result<SpoolAdoption> {
        let mut lock = self.lock.lock();
        if lock.is_none() {
            *lock = self.directory.lock()?;
        }
        if lock.is_none() {
            return Ok(SpoolAdoption::Refused);
        }
        drop(lock);
        // Before the directory is read: what is begun meanwhile is known then.
        let numbers = self.directory.numbers()?;
        let known: BTreeSet<u64> = self.files.lock().waiting.iter().map(SpoolFile::number).collect();
        let cursor = self.directory.cursor();
        let (mut found, mut adoption) = (Vec::new(), SpoolAdoption::Whole);
        for number in numbers.into_iter().filter(|number| !known.contains(number)) {
            match self.directory.left(number) {
                Ok(None) => adoption = SpoolAdoption::Partly,
                Ok(Some(file)) => found.push(self.behind(file, cursor)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => self.report_unusable(number, &error),
            }
        }
        let mut files = self.files.lock();
        // One that this process has begun meanwhile is in there already.
        found.retain(|found| files.waiting.iter().all(|known| known.number() != found.number()));
        files.waiting.extend(found);
        files.waiting.make_contiguous().sort_by_key(SpoolFile::number);
        Ok(adoption)
    }

    /// A file of which the lines before the cursor are shipped, if it stands in it, and at the beginning of a line.
    fn behind(&self, mut file: SpoolFile, cursor: Option<SpoolPlace>) -> SpoolFile {
        let Some(cursor) = cursor.filter(|cursor| cursor.number == file.number()) else { return file };
        let before =
            self.directory.read(SpoolPlace { offset: 0, ..cursor }, cursor.offset).unwrap_or_default();
        if before.ends_with(b"\n") && before.len() as u64 == cursor.offset {
            file.send(cursor.offset, count_lines(&before));
        }
        file
    }

    fn report_unusable(&self, number: u64, error: &io::Error) {
        if self.files.lock().unusable.insert(number) {
            let file = self.directory.path(number);
            tracing::error!(%error, file = %file.display(), "lines in this file are not shipped: it cannot be used");
        }
    }

    /// The next lines, at most so many; none if none wait.
    ///
    /// Returns an error if they cannot be read now.
    pub(super) fn next(&self, most: usize) -> io::Result<Option<Batch>> {
        let (done, next) = {
            let mut files = self.files.lock();
            let open = files.open;
            let mut done = Vec::new();
            while let Some(file) =
                files.waiting.pop_front_if(|file| file.bytes_left() == 0 && Some(file.number()) != open)
            {
                done.push(file.number());
            }
            let next = files.waiting.iter().find(|file| file.bytes_left() > 0);
            (done, next.map(|file| (file.place(), file.bytes_left())))
        };
        for number in done {
            self.directory.remove(number);
        }
        let Some((from, left)) = next else { return Ok(None) };
        match self.lines(from, left, most) {
            Ok(bytes) => {
                let name = self.directory.name_of(from, bytes.len() as u64);
                Ok(Some(Batch { lines: count_lines(&bytes), bytes, from, name }))
            }
            // It was removed or shortened, and what was in it is gone.
            Err(error) if [io::ErrorKind::NotFound, io::ErrorKind::UnexpectedEof].contains(&error.kind()) => {
                self.lose(from, &error);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Whole lines from a place on, at most so many; more bytes than usual where one line is as large.
    fn lines(&self, from: SpoolPlace, left: u64, most: usize) -> io::Result<Vec<u8>> {
        let last = *self.last.lock();
        if let Some((_, length)) = last.filter(|(place, _)| *place == from) {
            let bytes = self.directory.read(from, length)?;
            // A server may have asked for fewer lines.
            if bytes.len() as u64 == length && count_lines(&bytes) <= most as u64 {
                return Ok(bytes);
            }
        }
        let mut bytes = self.directory.read(from, left.min(BATCH_BYTES))?;
        if !bytes.contains(&b'\n') {
            bytes = self.directory.read(from, left)?;
        }
        let end = memchr::memchr_iter(b'\n', &bytes).take(most).last();
        bytes.truncate(end.ok_or(io::ErrorKind::UnexpectedEof)? + 1);
        *self.last.lock() = Some((from, bytes.len() as u64));
        Ok(bytes)
    }

    /// The rest of a file is gone.
    fn lose(&self, from: SpoolPlace, error: &io::Error) {
        let mut open = self.open.lock();
        let mut files = self.files.lock();
        let Some(at) = files.waiting.iter().position(|file| file.place() == from) else { return };
        let Some(lost) = files.waiting.remove(at) else { return };
        if files.open == Some(lost.number()) {
            files.open = None;
            *open = None;
        }
        let lines = lost.lines_left();
        self.count_dropped(&mut files, lines);
        RecordsLost::ShipWrite.emit(lines);
        let file = self.directory.path(lost.number());
        tracing::error!(%error, lines, file = %file.display(), "lines for shipping are lost: their file is gone or cut");
    }

    /// The server has these lines, but for so many that it has refused.
    pub(super) fn shipped(&self, batch: &Batch, refused: u64) {
        if self.pass(batch) {
            let refused = refused.min(batch.lines);
            let mut files = self.files.lock();
            files.shipped += batch.lines - refused;
            self.count_dropped(&mut files, refused);
            LinesShipped(batch.lines - refused).emit();
            RecordsLost::ShipRefused.emit(refused);
        }
    }

    /// Goes on behind these lines. Returns whether they still waited.
    fn pass(&self, batch: &Batch) -> bool {
        let mut files = self.files.lock();
        let Some(file) = files.waiting.iter_mut().find(|file| file.place() == batch.from) else {
            return false;
        };
        file.send(batch.bytes.len() as u64, batch.lines);
        let place = file.place();
        let is_rest = files.waiting.iter().any(|file| file.bytes_left() > 0);
        files.since = is_rest.then(Instant::now);
        drop(files);
        if let Err(error) = self.directory.write_cursor(place) {
            tracing::warn!(%error, "it cannot be written how far lines are shipped; after a restart some are sent again");
        }
        true
    }

    /// Syncs the open file to the disk. Those before it are synced when they are closed.
    pub(in crate::daemon) fn sync(&self) -> io::Result<()> {
        let open = self.open.lock();
        open.as_ref().map_or(Ok(()), |open| open.file.sync_data())
    }

    /// Closes the open file, and lets another process ship.
    pub(super) fn release(&self) {
        *self.open.lock() = None;
        self.files.lock().open = None;
        *self.lock.lock() = None;
    }
}
