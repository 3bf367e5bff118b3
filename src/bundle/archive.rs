//! The archive of a bundle: a tar file, compressed with gzip, that is written in one way and read in no other.

#[cfg(any(feature = "cli", test))]
use std::io::Write;
use std::io::{self, Read};

use flate2::bufread::GzDecoder;
#[cfg(any(feature = "cli", test))]
use flate2::{Compression, GzBuilder};
use tar::{Archive, EntryType, Header};

use super::{
    manifest::{MAX_FILES, MAX_MANIFEST},
    path::{BundlePath, DistinctPaths},
    rejection::{BundleRejection, RejectionKind},
};

/// The largest archive, in bytes.
pub(crate) const MAX_ARCHIVE: usize = 32 << 20;

/// The largest size of an archive when it is unpacked, in bytes, the blocks of tar included.
pub(super) const MAX_UNPACKED: usize = 64 << 20;

/// The name of the manifest, which is the first file of the archive.
const MANIFEST: &str = "manifest.json";

/// What ends a tar file.
const END: u64 = 1024;

/// The size of a block of tar, which a header and each content fill up.
const BLOCK: u64 = 512;

/// A file of a bundle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BundleFile {
    pub(crate) path: BundlePath,
    pub(crate) bytes: Vec<u8>,
    pub(crate) is_executable: bool,
}

/// What an archive has, before anything is compared with the manifest.
pub(super) struct ArchiveContents {
    pub(super) manifest: Vec<u8>,
    pub(super) files: Vec<BundleFile>,
}

fn refused(message: impl Into<String>) -> BundleRejection {
    BundleRejection::new(RejectionKind::Archive, message)
}

/// The header of a file: without owner, without time, with one of two modes.
fn header_of(path: &str, size: u64, is_executable: bool) -> io::Result<Header> {
    let mut header = Header::new_ustar();
    header.set_path(path)?;
    header.set_entry_type(EntryType::Regular);
    header.set_size(size);
    header.set_mode(if is_executable { 0o755 } else { 0o644 });
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header.set_cksum();
    Ok(header)
}

/// Writes an archive: the same bytes for the same files, in the order of their paths.
///
/// Returns an error if it would be too large.
#[cfg(any(feature = "cli", test))]
pub(crate) fn write_archive(manifest: &[u8], files: &[BundleFile]) -> Result<Vec<u8>, BundleRejection> {
    let written = write_tar(manifest, files).and_then(|tar| {
        let gzip = GzBuilder::new().mtime(0).operating_system(255);
        let mut gzip = gzip.write(Vec::new(), Compression::best());
        gzip.write_all(&tar)?;
        Ok((tar.len(), gzip.finish()?))
    });
    let (unpacked, archive) = written.map_err(|error| refused(format!("it cannot be written: {error}")))?;
    if unpacked > MAX_UNPACKED || archive.len() > MAX_ARCHIVE {
        return Err(refused(format!(
            "it has {unpacked} bytes, and {} compressed; at most {MAX_UNPACKED} and {MAX_ARCHIVE} are taken",
            archive.len()
        )));
    }
    Ok(archive)
}

#[cfg(any(feature = "cli", test))]
fn write_tar(manifest: &[u8], files: &[BundleFile]) -> io::Result<Vec<u8>> {
    let mut tar = tar::Builder::new(Vec::new());
    tar.append(&header_of(MANIFEST, manifest.len() as u64, false)?, manifest)?;
    for file in files {
        let header = header_of(file.path.as_str(), file.bytes.len() as u64, file.is_executable)?;
        tar.append(&header, file.bytes.as_slice())?;
    }
    tar.into_inner()
}

/// Reads an archive that was written so; anything else is refused. Nothing is written anywhere.
pub(super) fn read_archive(archive: &[u8]) -> Result<ArchiveContents, BundleRejection> {
    if archive.len() > MAX_ARCHIVE {
        return Err(refused("it is too large"));
    }
    let tar = decompress(archive)?;
    let mut reader = Archive::new(tar.as_slice());
    let entries = reader.entries().map_err(|error| refused(format!("it is no archive: {error}")))?;
    let mut found = ArchiveContents { manifest: Vec::new(), files: Vec::new() };
    let mut distinct = DistinctPaths::default();
    let mut end = 0;
    for (at, entry) in entries.raw(true).enumerate() {
        let mut entry = entry.map_err(|error| refused(format!("it is damaged: {error}")))?;
        if at > MAX_FILES {
            return Err(refused(format!("it has more than {MAX_FILES} files")));
        }
        let file = read_entry(&mut entry, if at == 0 { MAX_MANIFEST } else { MAX_UNPACKED })?;
        let content_end = entry.raw_file_position() + file.bytes.len() as u64;
        end = content_end.next_multiple_of(BLOCK);
        let shown = file.path.to_string();
        if !is_blank(&tar, content_end, end) {
            return Err(refused(format!("something follows `{shown}` in its last block")));
        }
        distinct.add(&file.path).map_err(|other| refused(format!("`{shown}` and `{other}` collide")))?;
        match (at, shown.as_str()) {
            (0, MANIFEST) => found.manifest = file.bytes,
            (0, _) => return Err(refused(format!("it begins with `{shown}`, and not with `{MANIFEST}`"))),
            _ if found.files.last().is_some_and(|last| last.path >= file.path) => {
                return Err(refused(format!("`{shown}` is not in its order")));
            }
            _ => found.files.push(file),
        }
    }
    let length = tar.len() as u64;
    if found.manifest.is_empty() || end + END != length || !is_blank(&tar, end, length) {
        return Err(refused("it does not end as it should"));
    }
    Ok(found)
}

/// Whether a part of a tar file is there, and has zeros only.
fn is_blank(tar: &[u8], from: u64, to: u64) -> bool {
    let range = usize::try_from(from).ok().zip(usize::try_from(to).ok());
    let part = range.and_then(|(from, to)| tar.get(from..to));
    part.is_some_and(|part| part.iter().all(|byte| *byte == 0))
}

fn decompress(archive: &[u8]) -> Result<Vec<u8>, BundleRejection> {
    let mut gzip = GzDecoder::new(archive);
    let mut tar = Vec::new();
    let most = MAX_UNPACKED as u64 + 1;
    let read = gzip.by_ref().take(most).read_to_end(&mut tar);
    read.map_err(|error| refused(format!("it is no gzip: {error}")))?;
    if tar.len() > MAX_UNPACKED {
        return Err(refused(format!("it has more than {MAX_UNPACKED} bytes when it is unpacked")));
    }
    if !gzip.into_inner().is_empty() {
        return Err(refused("something follows it"));
    }
    Ok(tar)
}

fn read_entry(entry: &mut tar::Entry<'_, &[u8]>, most: usize) -> Result<BundleFile, BundleRejection> {
    let header = entry.header().clone();
    let path = header.path_bytes();
    let path = std::str::from_utf8(&path).map_err(|_| refused("the name of a file in it is no text"))?;
    let shown = path.escape_debug();
    if header.entry_type() != EntryType::Regular {
        return Err(refused(format!("`{shown}` is {}", kind_of(header.entry_type()))));
    }
    let name = BundlePath::new(path).map_err(|why| refused(format!("`{shown}` may not be in it: {why}")))?;
    let size = header.size().map_err(|_| refused(format!("`{shown}` has a damaged size")))?;
    if size > most as u64 {
        return Err(refused(format!("`{shown}` is too large")));
    }
    let is_executable = header.mode().is_ok_and(|mode| mode & 0o111 != 0);
    let expected = header_of(path, size, is_executable).ok();
    if expected.is_none_or(|expected| expected.as_bytes() != header.as_bytes()) {
        return Err(refused(format!("`{shown}` has attributes that no file of a bundle has")));
    }
    let mut bytes = Vec::new();
    let read = entry.take(size).read_to_end(&mut bytes);
    read.map_err(|error| refused(format!("`{shown}` is damaged: {error}")))?;
    if bytes.len() as u64 != size {
        return Err(refused(format!("`{shown}` is cut off")));
    }
    Ok(BundleFile { path: name, bytes, is_executable })
}

fn kind_of(entry: EntryType) -> &'static str {
    match entry {
        EntryType::Link => "a hard link",
        EntryType::Symlink => "a symbolic link",
        EntryType::Char | EntryType::Block => "a device",
        EntryType::Directory => "a directory of its own",
        EntryType::Fifo => "a pipe",
        _ => "no plain file",
    }
}
