//! The bundle of this machine on disk: the signed statement, the archive, its files, and what is remembered of time.
//!
//! A bundle is complete before the one file that names it is replaced, so that there is always a whole one or none.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    sync::Arc,
    thread,
    time::{Duration, SystemTime},
};

use super::{
    super::state_directory::StateDirectory,
    disk,
    record::{ARCHIVE_DIGITS, ClockTrust, LARGEST_STATE, SEEN_STEP, STATE, WrittenState, seen_after},
    trusted::BundleTrust,
};
use crate::{
    bundle::{
        BundleRejection, BundleTime, BundleVerifyingKey, MAX_ARCHIVE, MAX_STATEMENT, RejectionKind,
        SignedStatement, VerifiedBundle, open_bundle,
    },
    model::io_reason,
};

/// The directory of bundles, in the data directory.
const DIRECTORY: &str = "bundle";

/// The files of a kept bundle.
pub(super) const STATEMENT: &str = "statement";
pub(super) const ARCHIVE: &str = "archive.tar.gz";
pub(super) const FILES: &str = "files";

/// What is locked by who changes anything.
const LOCK: &str = "lock";

/// How often the lock is tried, and the pause between: half a minute. Taking a bundle is a matter of a second.
const LOCK_TRIES: u32 = 600;
const LOCK_PAUSE: Duration = Duration::from_millis(50);

/// How often what is kept is read while others take bundles.
const READ_TRIES: u32 = 5;

/// The bundles in a data directory.
#[derive(Debug, Clone)]
pub(crate) struct BundleStore {
    directory: PathBuf,
}

/// A bundle that is kept and verified.
#[derive(Debug, Clone)]
pub(crate) struct KeptBundle {
    pub(crate) signed: SignedStatement,
    pub(crate) bundle: Arc<VerifiedBundle>,
    pub(crate) signed_by: BundleVerifyingKey,
    /// The directory with its files.
    pub(crate) files: PathBuf,
    pub(crate) since: BundleTime,
    pub(crate) confirmed: BundleTime,
    pub(crate) seen: BundleTime,
    /// What was wrong with its files, which were unpacked again.
    pub(crate) restored: Option<String>,
}

/// Why there is no bundle that can be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum KeptFault {
    /// None was taken yet.
    Missing,
    /// What is kept is not what was signed, or not by one of the keys.
    Unusable(String),
    /// It is what was signed, and one of its hooks cannot be loaded here.
    Hooks(String),
}

/// What is done about unpacked files that are not as they were signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChangedFiles {
    /// They are unpacked again.
    Replaced,
    /// They are reported: the caller only looks.
    Reported,
}

pub(super) fn storage(path: &Path, error: &std::io::Error) -> BundleRejection {
    let message = format!("it cannot be kept in {}: {}", path.display(), io_reason(error));
    BundleRejection::new(RejectionKind::Storage, message)
}

impl BundleStore {
    pub(crate) fn in_data(data: &Path) -> Self {
        Self { directory: data.join(DIRECTORY) }
    }

    /// The directory, for messages.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Keeps others, of this process too, from changing anything until it is dropped.
    ///
    /// Returns an error if one of them takes too long.
    pub(super) fn lock(&self) -> Result<File, BundleRejection> {
        let failed = |why: String| BundleRejection::new(RejectionKind::Storage, why);
        StateDirectory(&self.directory).make().map_err(|error| failed(error.to_string()))?;
        for _ in 0..LOCK_TRIES {
            let lock = StateDirectory(&self.directory).try_lock(LOCK);
            if let Some(lock) = lock.map_err(|error| failed(error.to_string()))? {
                return Ok(lock);
            }
            thread::sleep(LOCK_PAUSE);
        }
        Err(failed(format!("another process has {} locked", self.directory.join(LOCK).display())))
    }

    /// The digest of the archive that is in force, as the disk says.
    pub(crate) fn archive_in_force(&self) -> Option<String> {
        Some(self.state().ok()??.archive)
    }

    /// The bundle that is kept, with its signature, its archive and its files verified.
    pub(crate) fn read(&self, trust: &BundleTrust, changed: ChangedFiles) -> Result<KeptBundle, KeptFault> {
        let mut state = self.state()?.ok_or(KeptFault::Missing)?;
        for _ in 1..READ_TRIES {
            let found = self.read_one(&state, trust, changed);
            let now = self.state()?.ok_or(KeptFault::Missing)?;
            if found.is_ok() || now.archive == state.archive {
                return found;
            }
            // Another one was taken meanwhile, and this one removed.
            state = now;
        }
        self.read_one(&state, trust, changed)
    }

    fn read_one(
        &self,
        state: &WrittenState,
        trust: &BundleTrust,
        changed: ChangedFiles,
    ) -> Result<KeptBundle, KeptFault> {
        let unusable = |why: String| KeptFault::Unusable(why);
        let refused = |refusal: BundleRejection| unusable(refusal.message);
        let bytes = self.part(&state.archive, STATEMENT, MAX_STATEMENT).map_err(unusable)?;
        let signed = SignedStatement::read(&bytes).map_err(refused)?;
        let signed_by = trust.check(&signed).map_err(refused)?;
        let archive = self.part(&state.archive, ARCHIVE, MAX_ARCHIVE).map_err(unusable)?;
        let bundle = open_bundle(&signed.statement, &archive).map_err(refused)?;
        let files = self.directory.join(&state.archive).join(FILES);
        let mut restored = None;
        if let Err(why) = disk::compare(&files, &bundle.files) {
            if changed == ChangedFiles::Reported {
                return Err(unusable(format!("{why}, in {}; run `hookyard reload`", files.display())));
            }
            self.unpack_again(&files, &bundle).map_err(refused)?;
            restored = Some(why);
        }
        Ok(KeptBundle {
            signed,
            bundle: Arc::new(bundle),
            signed_by,
            files,
            since: BundleTime::from_seconds(state.since),
            confirmed: BundleTime::from_seconds(state.confirmed),
            seen: BundleTime::from_seconds(state.seen),
            restored,
        })
    }

    /// A file of a kept bundle.
    ///
    /// Returns why it cannot be read.
    pub(super) fn part(&self, archive: &str, name: &str, largest: usize) -> Result<Vec<u8>, String> {
        let place = self.directory.join(archive);
        let bytes = StateDirectory(&place).read(name, largest as u64).map_err(|error| error.to_string())?;
        bytes.ok_or_else(|| format!("{} is gone", place.join(name).display()))
    }

    /// Unpacks the files of a bundle again that are not as they were signed.
    pub(crate) fn restore(&self, kept: &KeptBundle) -> Result<(), BundleRejection> {
        self.unpack_again(&kept.files, &kept.bundle)
    }

    fn unpack_again(&self, files: &Path, bundle: &VerifiedBundle) -> Result<(), BundleRejection> {
        let _lock = self.lock()?;
        // Another process may have done so meanwhile.
        if disk::compare(files, &bundle.files).is_ok() {
            return Ok(());
        }
        disk::replace(files, &bundle.files).map_err(|error| storage(&self.directory, &error))
    }

    /// The names of the directories with bundles.
    pub(super) fn kept_archives(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.directory).into_iter().flatten().flatten();
        let bundles = entries.filter(|entry| {
            entry.file_name().len() == ARCHIVE_DIGITS && entry.file_type().is_ok_and(|found| found.is_dir())
        });
        bundles.filter_map(|entry| entry.file_name().into_string().ok()).collect()
    }
}

impl BundleStore {
    pub(super) fn state(&self) -> Result<Option<WrittenState>, KeptFault> {
        let read = StateDirectory(self.directory()).read(STATE, LARGEST_STATE);
        let bytes = read.map_err(|error| KeptFault::Unusable(error.to_string()))?;
        let Some(bytes) = bytes else { return Ok(None) };
        let state: Option<WrittenState> = serde_json::from_slice(&bytes).ok();
        let is_digest =
            |text: &str| text.len() == ARCHIVE_DIGITS && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        state.filter(|state| state.v == 1 && is_digest(&state.archive)).map(Some).ok_or_else(|| {
            let file = self.directory().join(STATE);
            KeptFault::Unusable(format!("{} is damaged, or of a later hookyard", file.display()))
        })
    }

    /// Replaces the state. Only who has the lock may.
    pub(super) fn write(&self, state: &WrittenState) -> Result<(), BundleRejection> {
        let bytes = serde_json::to_vec(state).unwrap_or_default();
        StateDirectory(self.directory())
            .replace(STATE, &bytes)
            .map_err(|error| BundleRejection::new(RejectionKind::Storage, error.to_string()))
    }

    /// Notes that a server has confirmed what is in force.
    pub(crate) fn confirm(&self, clock: SystemTime, trust: ClockTrust) -> Result<(), BundleRejection> {
        let now = BundleTime::of(clock);
        self.note(|state| {
            let seen = seen_after(state, now, trust).seconds();
            WrittenState { confirmed: now.seconds(), seen, ..state.clone() }
        })
    }

    /// Notes the time. Where a server bears out the clock, what that said before counts no more: it was set wrong for a while.
    pub(crate) fn note_time(&self, clock: SystemTime, trust: ClockTrust) -> Result<(), BundleRejection> {
        let now = BundleTime::of(clock);
        self.note(|state| {
            let seen = seen_after(state, now, trust).seconds();
            // What a clock that was ahead has written is not younger than now.
            WrittenState { confirmed: state.confirmed.min(seen), seen, ..state.clone() }
        })
    }

    /// Writes a state whose times have moved far enough, in whatever direction.
    fn note(&self, change: impl Fn(&WrittenState) -> WrittenState) -> Result<(), BundleRejection> {
        let has_moved = |old: u64, new: u64| old.abs_diff(new) >= SEEN_STEP.as_secs();
        let is_worth_it = |old: &WrittenState, new: &WrittenState| {
            has_moved(old.seen, new.seen) || has_moved(old.confirmed, new.confirmed)
        };
        let moved = || {
            let state = self.state().ok().flatten()?;
            Some(change(&state)).filter(|new| is_worth_it(&state, new))
        };
        if moved().is_none() {
            return Ok(());
        }
        // Somebody else may have taken another bundle meanwhile.
        let _lock = self.lock()?;
        moved().map_or(Ok(()), |new| self.write(&new))
    }
}
