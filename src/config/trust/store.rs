//! The file with the records of trust. It is used only if nobody but this user can have written it, and is never
//! overwritten otherwise.

use std::{
    fs::{self, DirBuilder, File},
    io::{self, Read, Write},
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use rustix::{
    fs::{FlockOperation, Mode, OFlags, flock, open},
    io::Errno,
    process::geteuid,
};
use serde::{Deserialize, Serialize};

use super::record::TrustRecord;

/// The version of the format.
const VERSION: u32 = 1;

/// The largest file, in bytes.
const LARGEST_FILE: u64 = 64 << 20;

/// The file, in the state directory.
const FILE: &str = "trust.json";

/// Why the records cannot be used or written: what is wrong, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {why}", path = path.display())]
pub(crate) struct TrustError {
    pub(crate) path: PathBuf,
    pub(crate) why: String,
    pub(crate) help: String,
}

impl TrustError {
    pub(super) fn new(path: &Path, why: impl Into<String>, help: impl Into<String>) -> Self {
        Self { path: path.to_owned(), why: why.into(), help: help.into() }
    }

    fn io(path: &Path, error: &io::Error) -> Self {
        Self::new(path, error.kind().to_string(), "check its permissions and the space on its disk")
    }
}

/// The file as it is written.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoreFile {
    version: u32,
    records: Vec<TrustRecord>,
}

/// Only the version, which a later format keeps.
#[derive(Deserialize)]
struct StoreVersion {
    version: u32,
}

/// The records of trust of one user.
#[derive(Debug, Clone)]
pub(crate) struct TrustStore {
    directory: PathBuf,
}

impl TrustStore {
    /// The store in a state directory, which need not exist yet. `root` is the workspace, which must not contain it.
    pub(super) fn new(directory: &Path, root: &Path) -> Result<Self, TrustError> {
        let real = directory.ancestors().find_map(|above| {
            let rest = directory.strip_prefix(above).ok()?;
            Some(above.canonicalize().ok()?.join(rest))
        });
        if directory.starts_with(root) || real.is_some_and(|real| real.starts_with(root)) {
            let why = "the state directory is inside the workspace, which could then trust itself";
            return Err(TrustError::new(directory, why, "set `state_directory` to another directory"));
        }
        Ok(Self { directory: directory.to_owned() })
    }

    /// The file with the records.
    pub(super) fn file(&self) -> PathBuf {
        self.directory.join(FILE)
    }

    /// The directory of the private copies.
    pub(super) fn copies(&self) -> PathBuf {
        self.directory.join("trees")
    }

    /// The records; none if nobody has trusted anything yet.
    pub(super) fn read(&self) -> Result<Vec<TrustRecord>, TrustError> {
        match self.directory.symlink_metadata() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(TrustError::io(&self.directory, &error)),
            Ok(_) => check_directory(&self.directory)?,
        }
        let path = self.file();
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match open(&path, flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(Errno::NOENT) => return Ok(Vec::new()),
            Err(Errno::LOOP) => return Err(refused(&path, "it is a symbolic link")),
            Err(error) => return Err(TrustError::io(&path, &error.into())),
        };
        let metadata = file.metadata().map_err(|error| TrustError::io(&path, &error))?;
        let why = match () {
            () if !metadata.is_file() => Some("it is no regular file"),
            () if metadata.uid() != geteuid().as_raw() => Some("it belongs to another user"),
            () if metadata.mode() & 0o077 != 0 => Some("others may read or write it"),
            () if metadata.nlink() > 1 => Some("it has another name"),
            () if metadata.len() > LARGEST_FILE => Some("it is too large"),
            () => None,
        };
        if let Some(why) = why {
            return Err(refused(&path, why));
        }
        let mut bytes = Vec::new();
        file.take(LARGEST_FILE).read_to_end(&mut bytes).map_err(|error| TrustError::io(&path, &error))?;
        parse(&bytes).map_err(|why| refused(&path, &why))
    }

    /// Changes the records under a lock. They are written at once or not at all.
    pub(super) fn update(&self, change: impl FnOnce(&mut Vec<TrustRecord>)) -> Result<(), TrustError> {
        private_directory(&self.directory)?;
        check_directory(&self.directory)?;
        let path = self.directory.join("trust.lock");
        let fault = |error: io::Error| TrustError::io(&path, &error);
        let flags = i32::try_from(OFlags::NOFOLLOW.bits()).unwrap_or_default();
        let mut options = File::options();
        options.create(true).truncate(false).write(true).mode(0o600).custom_flags(flags);
        let lock = options.open(&path).map_err(fault)?;
        flock(&lock, FlockOperation::LockExclusive).map_err(|error| fault(error.into()))?;
        let mut records = self.read()?;
        change(&mut records);
        records.sort_by(|one, other| (&one.root, &one.hook).cmp(&(&other.root, &other.hook)));
        self.write(&StoreFile { version: VERSION, records })
    }

    fn write(&self, file: &StoreFile) -> Result<(), TrustError> {
        let path = self.file();
        let new = self.directory.join("trust.json.new");
        let write = || {
            match fs::remove_file(&new) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            let mut target = File::options().create_new(true).write(true).mode(0o600).open(&new)?;
            target.write_all(&serde_json::to_vec_pretty(file)?)?;
            target.sync_all()?;
            fs::rename(&new, &path)?;
            File::open(&self.directory)?.sync_all()
        };
        write().map_err(|error| TrustError::io(&path, &error))
    }
}

/// Makes a directory that only this user can enter, with those above it.
pub(super) fn private_directory(directory: &Path) -> Result<(), TrustError> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(directory);
    made.map_err(|error| TrustError::io(directory, &error))
}

fn check_directory(directory: &Path) -> Result<(), TrustError> {
    let metadata = directory.symlink_metadata().map_err(|error| TrustError::io(directory, &error))?;
    let why = match () {
        () if metadata.is_symlink() => "it is a symbolic link",
        () if !metadata.is_dir() => "it is no directory",
        () if metadata.uid() != geteuid().as_raw() => "it belongs to another user",
        () if metadata.mode() & 0o022 != 0 => "others may write to it",
        () => return Ok(()),
    };
    Err(refused(directory, why))
}

fn refused(path: &Path, why: &str) -> TrustError {
    let help =
        "no hook of a workspace is trusted until it is mended or moved away; then run `hookyard trust` again";
    TrustError::new(path, format!("the record of trust cannot be used: {why}"), help)
}

fn parse(bytes: &[u8]) -> Result<Vec<TrustRecord>, String> {
    let version: StoreVersion = serde_json::from_slice(bytes).map_err(|_| "it is damaged".to_owned())?;
    if version.version != VERSION {
        return Err(format!("its version is {}, and this hookyard knows {VERSION}", version.version));
    }
    let file: StoreFile = serde_json::from_slice(bytes).map_err(|_| "it is damaged".to_owned())?;
    Ok(file.records)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::{super::record::tests::record, *};

    fn store(directory: &Path) -> TrustStore {
        TrustStore::new(&directory.join("state"), Path::new("/workspace")).unwrap()
    }

    #[test]
    fn records_are_kept_in_a_file_for_this_user_alone() {
        let place = tempfile::tempdir().unwrap();
        let store = store(place.path());
        assert_eq!(store.read().unwrap(), []);
        store.update(|records| records.push(record("b"))).unwrap();
        store.update(|records| records.push(record("a"))).unwrap();
        assert_eq!(store.read().unwrap(), [record("a"), record("b")]);
        let mode = |path: &Path| path.metadata().unwrap().mode() & 0o777;
        assert_eq!((mode(&store.directory), mode(&store.file())), (0o700, 0o600));
    }

    #[test]
    fn a_file_that_cannot_be_trusted_is_neither_used_nor_overwritten() {
        type Spoil = fn(&Path);
        let spoils: [(&str, Spoil); 7] = [
            ("it is damaged", |file| fs::write(file, &fs::read(file).unwrap()[..40]).unwrap()),
            ("it is damaged", |file| fs::write(file, "").unwrap()),
            ("its version is 2", |file| fs::write(file, r#"{"version":2,"later":[]}"#).unwrap()),
            ("others may read or write it", |file| {
                fs::set_permissions(file, fs::Permissions::from_mode(0o620)).unwrap();
            }),
            ("it has another name", |file| fs::hard_link(file, file.with_extension("twin")).unwrap()),
            ("it is a symbolic link", |file| {
                fs::rename(file, file.with_extension("old")).unwrap();
                symlink(file.with_extension("old"), file).unwrap();
            }),
            ("others may write to it", |file| {
                fs::set_permissions(file.parent().unwrap(), fs::Permissions::from_mode(0o777)).unwrap();
            }),
        ];
        for (expected, spoil) in spoils {
            let place = tempfile::tempdir().unwrap();
            let store = store(place.path());
            store.update(|records| records.push(record("a"))).unwrap();
            spoil(&store.file());
            let before = fs::read(store.file()).unwrap();
            let error = store.read().unwrap_err();
            assert!(error.why.contains(expected), "{error}");
            assert_eq!(store.update(Vec::clear).unwrap_err(), error);
            assert_eq!(fs::read(store.file()).unwrap(), before, "{expected}");
        }
    }

    #[test]
    fn a_workspace_cannot_hold_the_record_of_itself() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap();
        assert!(TrustStore::new(&root.join("not/there/yet"), &root).is_err());
        symlink(&root, root.with_extension("link")).unwrap();
        let through_link = TrustStore::new(&root.with_extension("link").join("state"), &root);
        fs::remove_file(root.with_extension("link")).unwrap();
        assert!(through_link.is_err());
    }
}
