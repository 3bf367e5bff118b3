//! The bundle of this machine on disk: the signed statement, the archive, its files, and what is remembered of time.
//!
//! A bundle is complete before the one file that names it is replaced, so that there is always a whole one or none.

use std::{
    fs::{self, DirBuilder},
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use serde::{Deserialize, Serialize};

use super::{super::state_directory::StateDirectory, disk};
use crate::{
    bundle::{
        BundleRejection, BundleTime, BundleVerifyingKey, MAX_ARCHIVE, MAX_STATEMENT, RejectionKind,
        SignedStatement, VerifiedBundle, check_time, check_version, open_bundle,
    },
    model::io_reason,
};

/// The directory of bundles, in the data directory.
const DIRECTORY: &str = "bundle";

/// What names the bundle in force.
const STATE: &str = "state.json";

/// The largest of these files, in bytes.
const LARGEST_STATE: u64 = 4096;

/// The digits of the digest of an archive, which names its directory.
const ARCHIVE_DIGITS: usize = 64;

/// The files of a kept bundle.
const STATEMENT: &str = "statement";
const ARCHIVE: &str = "archive.tar.gz";
const FILES: &str = "files";

/// How far the remembered time may lag behind before it is written again.
const SEEN_STEP: Duration = Duration::from_mins(5);

/// Whether a bundle may be older than the one in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OlderBundles {
    Refused,
    /// A person says so.
    #[cfg_attr(not(feature = "cli"), expect(dead_code, reason = "only a command permits it"))]
    Permitted,
}

/// Whether anything else says the time that a clock says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClockTrust {
    Alone,
    Confirmed,
}

/// What is remembered beside the bundle. Times are seconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenState {
    v: u32,
    /// The SHA-256 of the archive of the bundle in force.
    archive: String,
    /// The one before: processes of its hooks may still run.
    former: Option<String>,
    /// Since when it is in force.
    since: u64,
    /// When a server has confirmed it last.
    confirmed: u64,
    /// The latest time that was seen: a clock that is set back revives nothing.
    seen: u64,
}

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
}

/// Why there is no bundle that can be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum KeptFault {
    /// None was taken yet.
    Missing,
    /// What is kept is not what was signed, or not by one of the keys.
    Unusable(String),
}

/// What is done about unpacked files that are not as they were signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChangedFiles {
    /// They are unpacked again.
    Replaced,
    /// They are reported: the caller only looks.
    Reported,
}

fn storage(path: &Path, error: &std::io::Error) -> BundleRejection {
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

    fn state(&self) -> Result<Option<WrittenState>, KeptFault> {
        let read = StateDirectory(&self.directory).read(STATE, LARGEST_STATE);
        let bytes = read.map_err(|error| KeptFault::Unusable(error.to_string()))?;
        let Some(bytes) = bytes else { return Ok(None) };
        let state: Option<WrittenState> = serde_json::from_slice(&bytes).ok();
        let is_digest =
            |text: &str| text.len() == ARCHIVE_DIGITS && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        state.filter(|state| state.v == 1 && is_digest(&state.archive)).map(Some).ok_or_else(|| {
            let file = self.directory.join(STATE);
            KeptFault::Unusable(format!("{} is damaged, or of a later hookyard", file.display()))
        })
    }

    /// The digest of the archive that is in force, as the disk says.
    pub(crate) fn archive_in_force(&self) -> Option<String> {
        Some(self.state().ok()??.archive)
    }

    /// The bundle that is kept, with its signature, its archive and its files verified.
    pub(crate) fn read(
        &self,
        keys: &[BundleVerifyingKey],
        changed: ChangedFiles,
    ) -> Result<KeptBundle, KeptFault> {
        let unusable = |why: String| KeptFault::Unusable(why);
        let state = self.state()?.ok_or(KeptFault::Missing)?;
        let place = self.directory.join(&state.archive);
        let part = |name: &str, largest: usize| {
            let bytes = StateDirectory(&place).read(name, largest as u64);
            let bytes = bytes.map_err(|error| unusable(error.to_string()))?;
            bytes.ok_or_else(|| unusable(format!("{} is gone", place.join(name).display())))
        };
        let refused = |refusal: BundleRejection| unusable(refusal.message);
        let signed = SignedStatement::read(&part(STATEMENT, MAX_STATEMENT)?).map_err(refused)?;
        let signed_by = signed.verify(keys).map_err(refused)?;
        let bundle = open_bundle(&signed.statement, &part(ARCHIVE, MAX_ARCHIVE)?).map_err(refused)?;
        let files = place.join(FILES);
        if let Err(why) = disk::compare(&files, &bundle.files) {
            if changed == ChangedFiles::Reported {
                return Err(unusable(format!("{why}, in {}; run `hookyard reload`", files.display())));
            }
            tracing::error!(%why, directory = %files.display(), "files of the bundle are unpacked again");
            self.unpack_again(&files, &bundle).map_err(refused)?;
        }
        Ok(KeptBundle {
            signed,
            bundle: Arc::new(bundle),
            signed_by,
            files,
            since: BundleTime::from_seconds(state.since),
            confirmed: BundleTime::from_seconds(state.confirmed),
            seen: BundleTime::from_seconds(state.seen),
        })
    }

    fn unpack_again(&self, files: &Path, bundle: &VerifiedBundle) -> Result<(), BundleRejection> {
        let written = (|| {
            if files.symlink_metadata().is_ok_and(|found| found.is_dir()) {
                disk::remove(files)?;
            } else if files.symlink_metadata().is_ok() {
                fs::remove_file(files)?;
            }
            disk::unpack(files, &bundle.files)
        })();
        written.map_err(|error| storage(&self.directory, &error))
    }

    /// Verifies what somebody offers, as far as the statement goes: before its archive is fetched.
    ///
    /// Returns whether it is what is in force already.
    pub(crate) fn check_offer(
        &self,
        signed: &SignedStatement,
        keys: &[BundleVerifyingKey],
        clock: SystemTime,
        older: OlderBundles,
    ) -> Result<bool, BundleRejection> {
        signed.verify(keys)?;
        // Damaged, it says nothing of what was in force; the statements beside it do.
        let state = self.state().ok().flatten();
        let seen = state.as_ref().map_or(BundleTime::default(), |state| BundleTime::from_seconds(state.seen));
        let now = BundleTime::of(clock).max(seen);
        if state.as_ref().is_some_and(|state| state.archive == signed.statement.archive) {
            return Ok(true);
        }
        check_time(&signed.statement, now)?;
        if older == OlderBundles::Refused {
            for former in self.former_statements(state.as_ref())? {
                if former.statement.archive != signed.statement.archive {
                    check_version(&signed.statement, &former.statement)?;
                }
            }
        }
        Ok(false)
    }

    /// The statement of what is in force, whoever has signed it: also a bundle whose key was revoked is not followed by an
    /// older one. Where nothing says what is in force, those of all bundles that are kept.
    ///
    /// Returns an error if it cannot be told of which version a bundle was in force.
    fn former_statements(
        &self,
        state: Option<&WrittenState>,
    ) -> Result<Vec<SignedStatement>, BundleRejection> {
        let read = |archive: &str| {
            let place = self.directory.join(archive);
            let bytes = StateDirectory(&place).read(STATEMENT, MAX_STATEMENT as u64).ok()??;
            SignedStatement::read(&bytes).ok()
        };
        let Some(state) = state else {
            return Ok(self.kept_archives().iter().filter_map(|archive| read(archive)).collect());
        };
        let former = read(&state.archive).ok_or_else(|| {
            let why = format!(
                "the statement in {} is gone or damaged, so this may be an older bundle; `hookyard bundle install \
                 --allow-older` takes one",
                self.directory.join(&state.archive).display()
            );
            BundleRejection::new(RejectionKind::Storage, why)
        })?;
        Ok(vec![former])
    }

    /// The names of the directories with bundles.
    fn kept_archives(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.directory).into_iter().flatten().flatten();
        let bundles = entries.filter(|entry| {
            entry.file_name().len() == ARCHIVE_DIGITS && entry.file_type().is_ok_and(|found| found.is_dir())
        });
        bundles.filter_map(|entry| entry.file_name().into_string().ok()).collect()
    }

    /// Unpacks a bundle beside the one in force, to be looked at before it takes its place. Everything about it was verified.
    pub(crate) fn stage(
        &self,
        signed: &SignedStatement,
        archive: &[u8],
        bundle: &VerifiedBundle,
    ) -> Result<PathBuf, BundleRejection> {
        let failed = |error: std::io::Error| storage(&self.directory, &error);
        StateDirectory(&self.directory)
            .make()
            .map_err(|error| BundleRejection::new(RejectionKind::Storage, error.to_string()))?;
        let place = self.directory.join(&signed.statement.archive);
        if place.symlink_metadata().is_ok() {
            disk::remove(&place).map_err(failed)?;
        }
        let written = (|| {
            DirBuilder::new().mode(0o700).create(&place)?;
            disk::write_new(&place.join(STATEMENT), signed.write().as_bytes(), 0o600)?;
            disk::write_new(&place.join(ARCHIVE), archive, 0o600)?;
            disk::unpack(&place.join(FILES), &bundle.files)?;
            fs::File::open(&place)?.sync_all()?;
            fs::File::open(&self.directory)?.sync_all()
        })();
        if let Err(error) = written {
            // What is left is removed when the next one is staged.
            disk::remove(&place).ok();
            return Err(failed(error));
        }
        Ok(place.join(FILES))
    }

    /// Gives up what was staged.
    pub(crate) fn discard(&self, signed: &SignedStatement) {
        disk::remove(&self.directory.join(&signed.statement.archive)).ok();
    }

    /// Puts what was staged in force, and removes what nobody needs any more.
    pub(crate) fn activate(
        &self,
        signed: &SignedStatement,
        clock: SystemTime,
    ) -> Result<(), BundleRejection> {
        let before = self.state().ok().flatten();
        let now = BundleTime::of(clock);
        let seen = before.as_ref().map_or(now, |state| BundleTime::from_seconds(state.seen).max(now));
        let state = WrittenState {
            v: 1,
            archive: signed.statement.archive.clone(),
            former: before.map(|state| state.archive),
            since: now.seconds(),
            confirmed: now.seconds(),
            seen: seen.seconds(),
        };
        self.write(&state)?;
        self.remove_others(&state);
        Ok(())
    }

    /// Notes that a server has confirmed what is in force. Where its time bears out the clock, what that said before counts no
    /// more: it was set wrong for a while.
    pub(crate) fn confirm(&self, clock: SystemTime, time: ClockTrust) -> Result<(), BundleRejection> {
        let Ok(Some(state)) = self.state() else { return Ok(()) };
        let now = BundleTime::of(clock);
        let seen = match time {
            ClockTrust::Confirmed => now,
            ClockTrust::Alone => now.max(BundleTime::from_seconds(state.seen)),
        };
        let new = WrittenState { confirmed: now.seconds(), seen: seen.seconds(), ..state.clone() };
        self.write_if_later(&state, &new)
    }

    /// Notes the time without word of a server.
    pub(crate) fn note_time(&self, clock: SystemTime) -> Result<(), BundleRejection> {
        let Ok(Some(state)) = self.state() else { return Ok(()) };
        let seen = BundleTime::of(clock).max(BundleTime::from_seconds(state.seen));
        let new = WrittenState { seen: seen.seconds(), ..state.clone() };
        self.write_if_later(&state, &new)
    }

    /// Writes a state whose times have moved far enough, in whatever direction.
    fn write_if_later(&self, old: &WrittenState, new: &WrittenState) -> Result<(), BundleRejection> {
        let has_moved = |old: u64, new: u64| old.abs_diff(new) >= SEEN_STEP.as_secs();
        if has_moved(old.seen, new.seen) || has_moved(old.confirmed, new.confirmed) {
            self.write(new)?;
        }
        Ok(())
    }

    fn write(&self, state: &WrittenState) -> Result<(), BundleRejection> {
        let bytes = serde_json::to_vec(state).unwrap_or_default();
        StateDirectory(&self.directory)
            .replace(STATE, &bytes)
            .map_err(|error| BundleRejection::new(RejectionKind::Storage, error.to_string()))
    }

    /// Removes the bundles that are neither in force nor were just before.
    fn remove_others(&self, state: &WrittenState) {
        for archive in self.kept_archives() {
            if archive != state.archive && Some(&archive) != state.former.as_ref() {
                disk::remove(&self.directory.join(archive)).ok();
            }
        }
    }
}
