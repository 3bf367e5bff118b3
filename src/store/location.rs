//! The directory and the files of the store: who owns them, whether the file is still the one that was opened, and whether
//! its log is its own and has a beginning.

use std::{
    fmt::Write as _,
    fs::{self, DirBuilder, File, Metadata},
    io::{self, Read, Write as _},
    os::unix::{
        ffi::OsStrExt,
        fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    },
    path::{Path, PathBuf},
};

use rusqlite::{Connection, OpenFlags};
#[cfg(all(feature = "cli", feature = "daemon"))]
use rustix::fs::{Access, access};
use rustix::{
    fs::{CWD, Mode, OFlags, RenameFlags, open, renameat_with},
    io::Errno,
    process::geteuid,
};

use super::error::StoreError;

/// The file in the directory.
const FILE: &str = "runs.db";

/// The file beside it that stays when it is removed, and what that says. Its name begins otherwise, so that whoever removes
/// the database with its log leaves it there.
const TRACE: &str = "store-made";
const TRACE_TEXT: &str = "hookyard keeps the state of runs in runs.db beside this file. If that is missing, a start warns that \
                          halts are forgotten. Remove both to begin anew on purpose.\n";

/// The smallest page of a database, in bytes. All others are multiples of it.
const SMALLEST_PAGE: u64 = 512;

/// The size of the head of a log, in bytes, and that of what precedes each page in it.
const LOG_HEAD: usize = 32;
const FRAME_HEAD: usize = 24;

/// The first version of the format whose file says which log is its own.
const KNOWS_LOG: i64 = 3;

/// The first number of a log, whose last bit says in which order the bytes of its checksums are.
const LOG_MAGIC: u32 = 0x377f_0682;

/// The identity of a file that is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileIdentity {
    device: u64,
    inode: u64,
}

impl FileIdentity {
    fn of(metadata: &Metadata) -> Self {
        Self { device: metadata.dev(), inode: metadata.ino() }
    }

    /// The file that a path names now, if there is one.
    pub(super) fn at(path: &Path) -> Option<Self> {
        path.symlink_metadata().ok().map(|metadata| Self::of(&metadata))
    }
}

/// Makes the directory where it is missing. Returns the path of the file in it, which may be missing.
///
/// Returns an error unless both belong to this user, and nobody else may write the directory or read the file.
pub(super) fn prepare(directory: &Path) -> Result<PathBuf, StoreError> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(directory);
    made.map_err(|error| StoreError::io(directory, &cannot_make(error)))?;
    let directory = check_directory(directory)?;
    let path = directory.join(FILE);
    for ending in ["", "-wal", "-journal"] {
        let mut name = path.clone().into_os_string();
        name.push(ending);
        check_file(Path::new(&name))?;
    }
    check_length(&path, SMALLEST_PAGE)?;
    Ok(path)
}

/// Makes the file where it is missing, with what `fill` writes into it. It is there as a whole or not at all, so that an empty
/// one has lost what it had. Returns whether it was missing.
pub(super) fn make_file(
    path: &Path,
    fill: impl FnOnce(&Path) -> Result<(), StoreError>,
) -> Result<bool, StoreError> {
    if path.symlink_metadata().is_ok() {
        return Ok(false);
    }
    let unfinished = path.with_added_extension(format!("{}.new", std::process::id()));
    // Of a killed process with the same id.
    fs::remove_file(&unfinished).ok();
    let made = fill_new(&unfinished, fill).and_then(|()| publish(&unfinished, path));
    // It is gone if it has its name.
    fs::remove_file(&unfinished).ok();
    made.map_err(|error| match error {
        // Nobody knows the other name.
        StoreError::Unusable { why, .. } => StoreError::unusable(path, why),
        other => other,
    })
}

fn fill_new(path: &Path, fill: impl FnOnce(&Path) -> Result<(), StoreError>) -> Result<(), StoreError> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    open(path, flags, Mode::RUSR | Mode::WUSR).map_err(|error| StoreError::io(path, &error.into()))?;
    fill(path)
}

/// Gives a file its name, unless another process was faster. Returns whether it has it.
fn publish(unfinished: &Path, path: &Path) -> Result<bool, StoreError> {
    let failed = |error: io::Error| StoreError::io(path, &error);
    match renameat_with(CWD, unfinished, CWD, path, RenameFlags::NOREPLACE) {
        Ok(()) => {}
        Err(Errno::EXIST) => return Ok(false),
        // The file system replaces files only.
        Err(Errno::INVAL | Errno::NOSYS) => fs::rename(unfinished, path).map_err(failed)?,
        Err(error) => return Err(failed(error.into())),
    }
    let directory = path.parent().unwrap_or(Path::new("/"));
    File::open(directory).and_then(|directory| directory.sync_all()).map_err(failed)?;
    Ok(true)
}

/// Whether there was a database before: it has left its trace.
pub(super) fn has_trace(database: &Path) -> bool {
    database.with_file_name(TRACE).symlink_metadata().is_ok()
}

/// Leaves a trace of a database, by which its loss is noticed.
pub(super) fn leave_trace(database: &Path) {
    let path = database.with_file_name(TRACE);
    let made = File::options().write(true).create_new(true).mode(0o600).open(&path);
    match made.and_then(|mut file| file.write_all(TRACE_TEXT.as_bytes())) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            let path = path.display();
            tracing::warn!(%path, %error, "a loss of the state of runs would not be noticed");
        }
        _ => {}
    }
}

/// Why a directory cannot be made: what exists already is something else.
fn cannot_make(error: io::Error) -> io::Error {
    if error.kind() == io::ErrorKind::AlreadyExists { Errno::NOTDIR.into() } else { error }
}

/// The real path of the directory, unless it belongs to another user, or others may write it.
fn check_directory(directory: &Path) -> Result<PathBuf, StoreError> {
    let directory = directory.canonicalize().map_err(|error| StoreError::io(directory, &error))?;
    let metadata = fs::metadata(&directory).map_err(|error| StoreError::io(&directory, &error))?;
    let why = match () {
        () if metadata.uid() != geteuid().as_raw() => Some("it belongs to another user"),
        () if metadata.mode() & 0o022 != 0 => Some("others may write to it; run `chmod go-w` on it"),
        () => None,
    };
    if let Some(why) = why {
        return Err(StoreError::unusable(&directory, why));
    }
    Ok(directory)
}

/// The path of the file in a directory.
#[cfg(all(feature = "cli", feature = "daemon"))]
pub(super) fn file_in(directory: &Path) -> PathBuf {
    directory.join(FILE)
}

/// Whether the directory has a file of the store, or its log.
#[cfg(all(feature = "cli", feature = "daemon"))]
pub(super) fn has_file(directory: &Path) -> bool {
    let path = file_in(directory);
    [&log_of(&path), &path].into_iter().any(|file| file.symlink_metadata().is_ok())
}

/// Checks a directory without a file of the store: whether one can be made there.
#[cfg(all(feature = "cli", feature = "daemon"))]
pub(super) fn check_absent(directory: &Path) -> Result<(), StoreError> {
    let is_there = |path: &&Path| path.symlink_metadata().is_ok();
    let nearest = directory.ancestors().find(is_there).unwrap_or(Path::new("/"));
    if !nearest.is_dir() {
        return Err(StoreError::io(directory, &Errno::NOTDIR.into()));
    }
    if nearest == directory {
        check_directory(directory)?;
    }
    let usable = access(nearest, Access::WRITE_OK | Access::EXEC_OK);
    usable.map_err(|error| StoreError::io(nearest, &error.into()))
}

/// Refuses a file that ends in the middle of a page, unless its log may have the rest. The database would take a file
/// without a whole page for a new one, and the rest of a last page for zeros.
pub(super) fn check_length(path: &Path, page: u64) -> Result<(), StoreError> {
    let length = |path: &Path| path.symlink_metadata().ok().map(|metadata| metadata.len());
    let has_log = length(&log_of(path)).is_some_and(|length| length > 0);
    match length(path) {
        None if has_log => Err(StoreError::damaged(path, "it is missing, and its log is there")),
        None => Ok(()),
        Some(0) => Err(StoreError::damaged(path, "it is empty")),
        Some(length) if length >= page && (has_log || length.is_multiple_of(page)) => Ok(()),
        Some(_) => Err(StoreError::damaged(path, "it is cut off")),
    }
}

/// RAII guard: removes the log that opening a database makes, if there was none and nothing was written to it.
#[cfg(all(feature = "cli", feature = "daemon"))]
pub(super) struct AbsentLog(Option<PathBuf>);

#[cfg(all(feature = "cli", feature = "daemon"))]
impl AbsentLog {
    /// Of a database that is about to be opened.
    pub(super) fn of(database: &Path) -> Self {
        Self(Some(log_of(database)).filter(|log| log.symlink_metadata().is_err()))
    }
}

#[cfg(all(feature = "cli", feature = "daemon"))]
impl Drop for AbsentLog {
    fn drop(&mut self) {
        let Some(log) = &self.0 else { return };
        if log.symlink_metadata().is_ok_and(|metadata| metadata.len() == 0) {
            // An empty log that stays harms nobody.
            fs::remove_file(log).ok();
        }
    }
}

fn log_of(path: &Path) -> PathBuf {
    let mut log = path.to_owned().into_os_string();
    log.push("-wal");
    log.into()
}

/// Whether the log of a database is there, and begins as one that a process left there. The database would take one
/// that does not for an empty one.
///
/// A log that begins anew gets its head first, with the next number, while the first page of the former one is still
/// there.
pub(super) fn has_log(database: &Path) -> bool {
    let path = log_of(database);
    let length = path.symlink_metadata().map_or(0, |metadata| metadata.len());
    let mut start = [0; LOG_HEAD + FRAME_HEAD];
    // Another process has no locks on the log that closing it would give up.
    if File::open(&path).and_then(|mut log| log.read_exact(&mut start)).is_err() {
        return false;
    }
    let (head, frame) = start.split_at(LOG_HEAD);
    let page = u64::from(number(head, 8));
    let (salt, first_salt) = (number(head, 16), number(frame, 8));
    let is_whole = number(head, 0) | 1 == LOG_MAGIC | 1
        && log_checksum(&head[..24], number(head, 0) & 1 == 1) == (number(head, 24), number(head, 28))
        && length >= (LOG_HEAD + FRAME_HEAD) as u64 + page;
    is_whole && (first_salt == salt || first_salt.wrapping_add(1) == salt)
}

/// What stays the same in the head of a log however often it begins anew: its first salt, which grows by one each time, less
/// the number of times. None without a head.
pub(super) fn log_id(database: &Path) -> Option<i64> {
    let mut head = [0; LOG_HEAD];
    File::open(log_of(database)).and_then(|mut log| log.read_exact(&mut head)).ok()?;
    Some(number(&head, 16).wrapping_sub(number(&head, 12)).into())
}

/// A number in a log.
fn number(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// The URI of a file, without parameters.
fn uri(path: &Path) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-".contains(&byte);
    let mut uri = "file:".to_owned();
    for byte in path.as_os_str().as_bytes() {
        // Writing to a string cannot fail.
        _ = if is_plain(*byte) { uri.write_char(char::from(*byte)) } else { write!(uri, "%{byte:02X}") };
    }
    uri
}

/// Returns an error if the log that is there is not that of the file: one of them was replaced, and both together are a
/// mixture.
pub(super) fn check_log(connection: &Connection, path: &Path, has_log: bool) -> Result<(), StoreError> {
    if !has_log {
        return Ok(());
    }
    let of_database = |error: rusqlite::Error| StoreError::of_database(path, &error);
    let file = connect_without_log(path).map_err(of_database)?;
    let is_own = match version_of(&file).map_err(of_database)? {
        // The tables are made before the log.
        0 => false,
        1..KNOWS_LOG => true,
        _ => {
            // Its page may be in the log only.
            let in_file = Mark::read(&file).unwrap_or_default();
            let with_log = Mark::read(connection).map_err(of_database)?;
            let is_noted = in_file.log.is_some() && in_file.log == log_id(path);
            // Whoever opened it was killed before its mark was in the file.
            let is_new = with_log.id.is_some() && with_log.id != in_file.id;
            is_noted || is_new && with_log.former_id == in_file.id
        }
    };
    if is_own { Ok(()) } else { Err(StoreError::ForeignLog { path: path.to_owned() }) }
}

/// What the mark of a database says.
#[derive(Default)]
struct Mark {
    /// The last opening.
    id: Option<i64>,
    /// The opening before that.
    former_id: Option<i64>,
    /// Its log.
    log: Option<i64>,
}

impl Mark {
    fn read(connection: &Connection) -> rusqlite::Result<Self> {
        let mark = "SELECT max(id), max(former_id), max(log) FROM in_use";
        connection
            .query_row(mark, (), |row| Ok(Self { id: row.get(0)?, former_id: row.get(1)?, log: row.get(2)? }))
    }
}

/// Opens the file to read it as it is without its log.
fn connect_without_log(path: &Path) -> rusqlite::Result<Connection> {
    let flags =
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    Connection::open_with_flags(format!("{}?immutable=1", uri(path)), flags)
}

fn version_of(database: &Connection) -> rusqlite::Result<i64> {
    database.pragma_query_value(None, "user_version", |row| row.get(0))
}

/// The checksum of the head of a log.
fn log_checksum(bytes: &[u8], is_big_endian: bool) -> (u32, u32) {
    let mut words = bytes.chunks_exact(4).map(|word| {
        let word = [word[0], word[1], word[2], word[3]];
        if is_big_endian { u32::from_be_bytes(word) } else { u32::from_le_bytes(word) }
    });
    let (mut first, mut second) = (0_u32, 0_u32);
    while let (Some(even), Some(odd)) = (words.next(), words.next()) {
        first = first.wrapping_add(even).wrapping_add(second);
        second = second.wrapping_add(odd).wrapping_add(first);
    }
    (first, second)
}

fn check_file(path: &Path) -> Result<(), StoreError> {
    let metadata = match path.symlink_metadata() {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(StoreError::io(path, &error)),
    };
    let why = match () {
        () if metadata.is_symlink() => "it is a symbolic link",
        () if !metadata.is_file() => "it is no regular file",
        () if metadata.uid() != geteuid().as_raw() => "it belongs to another user",
        () if metadata.mode() & 0o077 != 0 => "others may read or write it; run `chmod go=` on it",
        () if metadata.nlink() > 1 => "it has another name",
        () => return Ok(()),
    };
    Err(StoreError::unusable(path, why))
}
