//! A machine that bundles are offered to.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::super::{
    super::{Settings, managed_level::ManagedLevel, settings::DataDirectory},
    BundleInForce, BundleStore, BundleTaker, ChangedFiles, KeptFault, OlderBundles, StatementCheck,
    TakenBundle,
};
use crate::{
    bundle::{
        BundleFile, BundleManifest, BundleName, BundlePath, BundleRejection, BundleSigningKey,
        BundleStatement, BundleTime, SignedStatement, sha256_hex, write_archive,
    },
    model::{FailurePolicy, Hook},
};

pub(super) const GUARD: &str = "name: guard\nevents: [before_tool_dispatch]\non_error: deny\n\
                     handler: {type: command, command: \"./guard.sh\"}\n";

pub(super) const RULE: &str = "name: rule\nevents: [before_tool_dispatch]\non_error: deny\n\
                    handler: {type: rule, deny: tool.name == 'x', reason: \"'no'\"}\n";

/// The beginning of a bundle's time.
pub(super) const START: u64 = 1_700_000_000;

pub(super) const DAY: u64 = 86_400;

/// A machine, and who signs for it.
pub(super) struct TestMachine {
    pub(super) directory: tempfile::TempDir,
    pub(super) settings: Settings,
    pub(super) key: BundleSigningKey,
    pub(super) other: BundleSigningKey,
}

/// A bundle as it is offered.
#[derive(Clone)]
pub(super) struct OfferedBundle {
    pub(super) statement: Vec<u8>,
    pub(super) archive: Vec<u8>,
}

pub(super) fn clock(seconds: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(seconds)
}

pub(super) fn file(path: &str, text: &str) -> BundleFile {
    let is_executable = text.starts_with("#!");
    BundleFile { path: BundlePath::new(path).unwrap(), bytes: text.as_bytes().to_vec(), is_executable }
}

pub(super) fn usual_files(version: u64) -> Vec<BundleFile> {
    vec![
        file("core/.openharness/hooks/guard.yaml", GUARD),
        file("core/guard.sh", &format!("#!/bin/sh\n# {version}\nexit 0\n")),
        file("rules/.openharness/hooks/rule.yaml", RULE),
    ]
}

pub(super) fn manifest_of(name: &str, version: u64, files: &[BundleFile]) -> BundleManifest {
    BundleManifest {
        name: BundleName::new(name).unwrap(),
        version,
        not_before: BundleTime::from_seconds(START),
        expires: Some(BundleTime::from_seconds(START + 90 * DAY)),
        min_hookyard: "0.1".to_owned(),
        required: vec!["guard".to_owned()],
        files: files.iter().map(|file| (file.path.clone(), sha256_hex(&file.bytes))).collect(),
    }
}

pub(super) fn offer_of(
    manifest: &BundleManifest,
    files: &[BundleFile],
    key: &BundleSigningKey,
) -> OfferedBundle {
    let archive = write_archive(&manifest.write(), files).unwrap();
    let mut signed = SignedStatement::unsigned(BundleStatement::about(manifest, &archive));
    signed.sign(key).unwrap();
    OfferedBundle { statement: signed.write().into_bytes(), archive }
}

impl TestMachine {
    pub(super) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let [key, other] = [(); 2].map(|()| BundleSigningKey::generate().unwrap());
        let mut settings = Settings {
            home: Some(directory.path().join("home")),
            system_directory: Some(directory.path().join("etc")),
            data: DataDirectory::At(directory.path().join("data")),
            ..Settings::default()
        };
        settings.bundle.keys = vec![key.public().to_string()];
        Self { directory, settings, key, other }
    }

    pub(super) fn store(&self) -> BundleStore {
        BundleStore::in_data(&self.directory.path().join("data"))
    }

    pub(super) fn offer(&self, version: u64) -> OfferedBundle {
        let files = usual_files(version);
        offer_of(&manifest_of("acme/guards", version, &files), &files, &self.key)
    }

    pub(super) fn take_with(
        &self,
        offer: &OfferedBundle,
        at: u64,
        older: OlderBundles,
    ) -> Result<TakenBundle, BundleRejection> {
        let signed = SignedStatement::read(&offer.statement)?;
        self.taker(older).take(&signed, &offer.archive, clock(at))
    }

    fn taker(&self, older: OlderBundles) -> BundleTaker<'_> {
        BundleTaker {
            store: self.store(),
            settings: &self.settings,
            environment: &|_| None,
            models: &|_| false,
            older,
        }
    }

    /// What a statement comes to before its archive is fetched.
    pub(super) fn check(&self, signed: &SignedStatement, at: u64) -> Result<StatementCheck, BundleRejection> {
        self.taker(OlderBundles::Refused).check(signed, clock(at))
    }

    pub(super) fn take(&self, offer: &OfferedBundle, at: u64) -> Result<TakenBundle, BundleRejection> {
        self.take_with(offer, at, OlderBundles::Refused)
    }

    pub(super) fn in_force(&self, changed: ChangedFiles) -> BundleInForce {
        BundleInForce::read(&self.settings, &|_| None, &|_| false, changed)
    }

    pub(super) fn version(&self) -> Option<u64> {
        let found = self.in_force(ChangedFiles::Reported).found.ok()?;
        Some(found.0.signed.statement.version)
    }

    pub(super) fn level(&self, at: u64) -> ManagedLevel {
        let found = self.in_force(ChangedFiles::Reported);
        found.level(&self.settings, found.moment(clock(at)))
    }

    /// The fault of what is kept.
    pub(super) fn fault(&self) -> Option<KeptFault> {
        self.in_force(ChangedFiles::Reported).found.err()
    }
}

pub(super) fn names(hooks: &[Hook]) -> Vec<&str> {
    hooks.iter().map(|hook| hook.name.as_str()).collect()
}

/// The policy of the block, if there is one.
pub(super) fn block(level: &ManagedLevel) -> Option<FailurePolicy> {
    let block = level.hooks.iter().find(|hook| hook.name.as_str() == "bundle")?;
    assert!(block.trust.approval().is_none() && block.source.bundle.is_some());
    Some(block.on_error)
}
