//! Takes a bundle that is offered: what it must be newer than, and how it gets into the place of the one in force.

use std::{
    collections::BTreeMap,
    fs::{DirBuilder, File},
    os::unix::fs::DirBuilderExt,
    path::PathBuf,
    time::SystemTime,
};

use super::{
    super::state_directory::StateDirectory,
    disk,
    record::{TakenVersion, WrittenState},
    store::{ARCHIVE, BundleStore, FILES, STATEMENT, storage},
    trusted::BundleTrust,
};
use crate::bundle::{
    BundleRejection, BundleTime, BundleVerifyingKey, MAX_ARCHIVE, MAX_STATEMENT, RejectionKind,
    SignedStatement, VerifiedBundle, check_time, check_version, open_bundle,
};

/// Of how many keys the version that was taken last is remembered.
const MOST_VERSIONS: usize = 16;

/// Whether a bundle may be older than the one in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OlderBundles {
    Refused,
    /// A person says so.
    Permitted,
}

impl BundleStore {
    /// Verifies what somebody offers, as far as the statement goes: before its archive is fetched.
    ///
    /// Returns whether it is what is in force already.
    pub(crate) fn check_offer(
        &self,
        signed: &SignedStatement,
        trust: &BundleTrust,
        clock: SystemTime,
        older: OlderBundles,
    ) -> Result<bool, BundleRejection> {
        trust.check(signed)?;
        // Damaged, it says nothing of what was in force; the statements beside it do.
        let state = self.state().ok().flatten();
        let seen = state.as_ref().map_or(BundleTime::default(), |state| BundleTime::from_seconds(state.seen));
        let now = BundleTime::of(clock).max(seen);
        if state.as_ref().is_some_and(|state| state.archive == signed.statement.archive) {
            return Ok(true);
        }
        check_time(&signed.statement, now)?;
        if older == OlderBundles::Refused {
            for former in self.former_versions(state.as_ref(), signed, trust)? {
                check_version(&signed.statement, &former.name, former.version)?;
            }
        }
        Ok(false)
    }

    /// What a bundle that is offered must be newer than: the versions that keys of the settings have signed, of the bundle that
    /// the settings name. A key that was revoked has no say, as it may have been used for the highest version there is.
    ///
    /// Returns an error if it cannot be told of which version a bundle was in force.
    fn former_versions(
        &self,
        state: Option<&WrittenState>,
        offered: &SignedStatement,
        trust: &BundleTrust,
    ) -> Result<Vec<TakenVersion>, BundleRejection> {
        let mut former = match state {
            Some(state) if !state.versions.is_empty() => {
                let known = state.versions.iter().filter(|(key, _)| trust.has(key));
                known.map(|(_, version)| version.clone()).collect()
            }
            _ => self.versions_on_disk(state, offered, trust)?,
        };
        former.retain(|former| trust.name.as_ref().is_none_or(|name| *name == former.name));
        Ok(former)
    }

    /// The same from the statements that are kept, where no record says so. If the record is gone, what was in force may be
    /// taken once more: it is the newest of what is kept then.
    fn versions_on_disk(
        &self,
        state: Option<&WrittenState>,
        offered: &SignedStatement,
        trust: &BundleTrust,
    ) -> Result<Vec<TakenVersion>, BundleRejection> {
        let statement = |archive: &str| {
            let bytes = self.part(archive, STATEMENT, MAX_STATEMENT).ok()?;
            SignedStatement::read(&bytes).ok()
        };
        let kept: Vec<SignedStatement> = match state {
            None => {
                let archives = self.kept_archives();
                let others = archives.iter().filter(|archive| **archive != offered.statement.archive);
                others.filter_map(|archive| statement(archive)).collect()
            }
            Some(state) => {
                let found = statement(&state.archive).ok_or_else(|| {
                    let why = format!(
                        "the statement in {} is gone or damaged, so this may be an older bundle; `hookyard bundle \
                         install --allow-older` takes one",
                        self.directory().join(&state.archive).display()
                    );
                    BundleRejection::new(RejectionKind::Storage, why)
                })?;
                vec![found]
            }
        };
        let trusted = kept.iter().filter(|signed| signed.verify(&trust.keys).is_ok());
        Ok(trusted.map(TakenVersion::of).collect())
    }

    /// Keeps the signatures that a statement about the bundle in force has beyond those that are kept. So a bundle outlives the
    /// key that it came with. Its statement may be damaged, and is mended then.
    ///
    /// Returns whether there were any.
    pub(crate) fn keep_signatures(
        &self,
        signed: &SignedStatement,
        trust: &BundleTrust,
    ) -> Result<bool, BundleRejection> {
        if self.with_signatures(signed, trust)?.is_none() {
            return Ok(false);
        }
        let _lock = self.lock()?;
        let Some((state, merged)) = self.with_signatures(signed, trust)? else { return Ok(false) };
        let place = self.directory().join(&state.archive);
        let written = StateDirectory(&place).replace(STATEMENT, merged.write().as_bytes());
        written.map_err(|error| BundleRejection::new(RejectionKind::Storage, error.to_string()))?;
        let versions = versions_after(state.versions.clone(), &merged, trust);
        self.write(&WrittenState { versions, ..state })?;
        Ok(true)
    }

    /// The statement of what is in force with the signatures of another; nothing if they bring nothing.
    fn with_signatures(
        &self,
        signed: &SignedStatement,
        trust: &BundleTrust,
    ) -> Result<Option<(WrittenState, SignedStatement)>, BundleRejection> {
        let archive = &signed.statement.archive;
        let state = self.state().ok().flatten().filter(|state| state.archive == *archive);
        let Some(state) = state else { return Ok(None) };
        let kept = self.part(archive, STATEMENT, MAX_STATEMENT).ok();
        let Some(kept) = kept.and_then(|bytes| SignedStatement::read(&bytes).ok()) else {
            let bytes = self.part(archive, ARCHIVE, MAX_ARCHIVE);
            let is_whole = bytes.is_ok_and(|bytes| open_bundle(&signed.statement, &bytes).is_ok());
            return Ok(is_whole.then(|| (state, signed.clone())));
        };
        if kept.statement != signed.statement {
            let message = "another statement about the same archive is in force";
            return Err(BundleRejection::new(RejectionKind::Manifest, message));
        }
        let merged = kept.merged(signed, &trust.keys);
        Ok((merged != kept).then_some((state, merged)))
    }

    /// Unpacks a bundle beside the one in force, to be looked at before it takes its place. Everything about it was verified.
    pub(super) fn stage(
        &self,
        signed: &SignedStatement,
        archive: &[u8],
        bundle: &VerifiedBundle,
    ) -> Result<PathBuf, BundleRejection> {
        let failed = |error: std::io::Error| storage(self.directory(), &error);
        let place = self.directory().join(&signed.statement.archive);
        if place.symlink_metadata().is_ok() {
            disk::remove(&place).map_err(failed)?;
        }
        let written = (|| {
            DirBuilder::new().mode(0o700).create(&place)?;
            disk::write_new(&place.join(STATEMENT), signed.write().as_bytes(), 0o600)?;
            disk::write_new(&place.join(ARCHIVE), archive, 0o600)?;
            disk::unpack(&place.join(FILES), &bundle.files)?;
            File::open(&place)?.sync_all()?;
            File::open(self.directory())?.sync_all()
        })();
        if let Err(error) = written {
            // What is left is removed when the next one is staged.
            disk::remove(&place).ok();
            return Err(failed(error));
        }
        Ok(place.join(FILES))
    }

    /// Gives up what was staged.
    pub(super) fn discard(&self, signed: &SignedStatement) {
        disk::remove(&self.directory().join(&signed.statement.archive)).ok();
    }

    /// Puts what was staged in force, and removes what nobody needs any more.
    pub(super) fn activate(
        &self,
        signed: &SignedStatement,
        trust: &BundleTrust,
        clock: SystemTime,
        older: OlderBundles,
    ) -> Result<(), BundleRejection> {
        let before = self.state().ok().flatten();
        let now = BundleTime::of(clock);
        let seen = before.as_ref().map_or(now, |state| BundleTime::from_seconds(state.seen).max(now));
        let known = before.as_ref().map(|state| state.versions.clone()).unwrap_or_default();
        if !known.is_empty() && !known.keys().any(|key| trust.has(key)) {
            let name = signed.statement.name.as_str();
            tracing::warn!(
                name,
                "no key in `bundle.keys` has signed a version that was in force before: none of them counts"
            );
        }
        // Who permits an older one wants newer ones to follow it.
        let known = if older == OlderBundles::Permitted { BTreeMap::new() } else { known };
        let archive = signed.statement.archive.clone();
        let former = before
            .and_then(|state| if state.archive == archive { state.former } else { Some(state.archive) });
        let state = WrittenState {
            v: 1,
            archive,
            former,
            since: now.seconds(),
            confirmed: now.seconds(),
            seen: seen.seconds(),
            versions: versions_after(known, signed, trust),
        };
        self.write(&state)?;
        self.remove_others(&state);
        Ok(())
    }

    /// Removes the bundles that are neither in force nor were just before.
    fn remove_others(&self, state: &WrittenState) {
        for archive in self.kept_archives() {
            if archive != state.archive && Some(&archive) != state.former.as_ref() {
                disk::remove(&self.directory().join(archive)).ok();
            }
        }
    }
}

impl TakenVersion {
    fn of(signed: &SignedStatement) -> Self {
        Self { name: signed.statement.name.as_str().to_owned(), version: signed.statement.version }
    }
}

/// The versions by key once a bundle was taken. Also keys that are not in the settings yet count: they may come there.
fn versions_after(
    mut versions: BTreeMap<String, TakenVersion>,
    signed: &SignedStatement,
    trust: &BundleTrust,
) -> BTreeMap<String, TakenVersion> {
    // Another name was let in on purpose: the former one has no say any more.
    versions.retain(|_, taken| taken.name == signed.statement.name.as_str());
    let signers: Vec<String> = signed.signers().map(BundleVerifyingKey::to_string).collect();
    versions.extend(signers.iter().map(|key| (key.clone(), TakenVersion::of(signed))));
    let is_needed = |key: &str| trust.has(key);
    while versions.len() > MOST_VERSIONS {
        // A statement has fewer signatures than that.
        let least = versions.keys().find(|key| !is_needed(key) && !signers.contains(key));
        let Some(least) = least.or_else(|| versions.keys().find(|key| !is_needed(key))).cloned() else {
            break;
        };
        versions.remove(&least);
    }
    versions
}
