//! Writes the file with the records of trust. A file that cannot be used is never overwritten.

use super::{
    super::state_directory::StateDirectory,
    record::TrustRecord,
    store::{FILE, StoreFile, TrustError, TrustStore},
};

impl TrustStore {
    /// Changes the records under a lock. They are written at once or not at all.
    pub(super) fn update(&self, change: impl FnOnce(&mut Vec<TrustRecord>)) -> Result<(), TrustError> {
        let directory = StateDirectory(&self.directory);
        let _lock = directory.lock("trust.lock")?;
        let mut records = self.read()?;
        change(&mut records);
        records.sort_by(|one, other| (&one.root, &one.hook).cmp(&(&other.root, &other.hook)));
        let unwritable = |error: serde_json::Error| {
            TrustError::new(&self.file(), error.to_string(), "report this as a fault of hookyard")
        };
        let bytes = serde_json::to_vec_pretty(&StoreFile::new(records)).map_err(unwritable)?;
        Ok(directory.replace(FILE, &bytes)?)
    }
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink},
        path::Path,
    };

    use rustix::{
        fs::{CWD, FileType, Mode, mknodat},
        process::geteuid,
    };

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

    /// What a regular file has: reading a FIFO would wait.
    fn content(file: &Path) -> Option<Vec<u8>> {
        file.is_file().then(|| fs::read(file).unwrap())
    }

    #[test]
    fn a_file_that_cannot_be_trusted_is_neither_used_nor_overwritten() {
        type Spoil = fn(&Path);
        let spoils: [(&str, Spoil); 16] = [
            ("it is damaged", |file| fs::write(file, &fs::read(file).unwrap()[..40]).unwrap()),
            ("it is damaged", |file| fs::write(file, "").unwrap()),
            ("its version is 3", |file| fs::write(file, r#"{"version":3,"later":[]}"#).unwrap()),
            ("others may read or write it", |file| {
                fs::set_permissions(file, fs::Permissions::from_mode(0o620)).unwrap();
            }),
            ("others may read or write it", |file| {
                fs::set_permissions(file, fs::Permissions::from_mode(0o604)).unwrap();
            }),
            ("its version is 4294967295", |file| {
                fs::write(file, r#"{"version":4294967295,"records":{}}"#).unwrap();
            }),
            ("it is damaged", |file| {
                fs::write(file, r#"{"version":2,"trees":{},"records":[],"more":1}"#).unwrap();
            }),
            ("it is damaged", |file| {
                let text = fs::read_to_string(file).unwrap();
                fs::write(file, text.replacen("\"tree\": \"", "\"tree\": \"0", 1)).unwrap();
            }),
            ("it is damaged", |file| fs::write(file, r#"{"version":1,"version":2,"records":[]}"#).unwrap()),
            ("it is no regular file", |file| {
                fs::remove_file(file).unwrap();
                fs::create_dir(file).unwrap();
            }),
            ("it is no regular file", |file| {
                fs::remove_file(file).unwrap();
                mknodat(CWD, file, FileType::Fifo, Mode::from(0o600), 0).unwrap();
            }),
            ("it is a symbolic link", |file| {
                fs::remove_file(file).unwrap();
                symlink("nowhere", file).unwrap();
            }),
            ("it is a symbolic link", |file| {
                let directory = file.parent().unwrap();
                fs::rename(directory, directory.with_extension("old")).unwrap();
                symlink(directory.with_extension("old"), directory).unwrap();
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
            let before = content(&store.file());
            let error = store.read().unwrap_err();
            assert!(error.why.contains(expected), "{error}");
            assert_eq!(store.update(Vec::clear).unwrap_err(), error);
            assert_eq!(content(&store.file()), before, "{expected}");
        }
    }

    #[test]
    fn the_first_version_is_read_and_written_as_the_current_one() {
        let place = tempfile::tempdir().unwrap();
        let store = store(place.path());
        store.update(|_| {}).unwrap();
        let first = serde_json::json!({ "version": 1, "records": [record("a"), record("b")] });
        fs::write(store.file(), first.to_string()).unwrap();
        assert_eq!(store.read().unwrap(), [record("a"), record("b")]);
        store.update(|_| {}).unwrap();
        assert_eq!(store.read().unwrap(), [record("a"), record("b")]);
        let text = fs::read_to_string(store.file()).unwrap();
        assert!(text.contains("\"version\": 2") && text.matches("a.sh").count() == 1, "{text}");
    }

    #[test]
    fn a_file_that_was_cut_anywhere_is_neither_used_nor_overwritten() {
        let place = tempfile::tempdir().unwrap();
        let store = store(place.path());
        store.update(|records| records.push(record("a"))).unwrap();
        let whole = fs::read(store.file()).unwrap();
        for length in 0..whole.len() {
            fs::write(store.file(), &whole[..length]).unwrap();
            let error = store.read().unwrap_err();
            assert!(error.why.contains("it is damaged"), "{length} bytes: {error}");
            assert_eq!(store.update(Vec::clear).unwrap_err(), error, "{length} bytes");
            assert_eq!(fs::read(store.file()).unwrap(), whole[..length]);
        }
        fs::write(store.file(), whole).unwrap();
        assert_eq!(store.read().unwrap(), [record("a")]);
    }

    /// Only root can give a file away.
    #[test]
    fn what_belongs_to_another_user_is_neither_used_nor_overwritten() {
        if !geteuid().is_root() {
            return;
        }
        for of in [TrustStore::file, |store: &TrustStore| store.directory.clone()] {
            let place = tempfile::tempdir().unwrap();
            let store = store(place.path());
            store.update(|records| records.push(record("a"))).unwrap();
            chown(of(&store), Some(65534), None).unwrap();
            let before = fs::read(store.file()).unwrap();
            let error = store.read().unwrap_err();
            assert!(error.why.contains("it belongs to another user"), "{error}");
            assert_eq!(store.update(Vec::clear).unwrap_err(), error);
            assert_eq!(fs::read(store.file()).unwrap(), before);
        }
    }

    #[test]
    fn a_file_in_the_place_of_the_directory_is_not_used() {
        let place = tempfile::tempdir().unwrap();
        let store = store(place.path());
        fs::write(&store.directory, "").unwrap();
        assert!(store.read().unwrap_err().why.contains("it is no directory"));
        assert!(store.update(Vec::clear).is_err());
        assert_eq!(fs::read(&store.directory).unwrap(), b"");
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
