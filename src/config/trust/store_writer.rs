//! Writes the file with the records of trust. A file that cannot be used is never overwritten.

use std::{
    fs::{self, DirBuilder, File},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::Path,
};

use rustix::fs::{FlockOperation, OFlags, flock};

use super::{
    record::TrustRecord,
    store::{StoreFile, TrustError, TrustStore, VERSION, check_directory},
};

impl TrustStore {
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

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

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
