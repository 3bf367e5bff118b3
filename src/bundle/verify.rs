//! The checks of a bundle, from its signature to each file.

use std::time::Duration;

use super::{
    archive::{ArchiveContents, BundleFile, read_archive},
    manifest::{BundleManifest, sha256_hex},
    rejection::{BundleRejection, RejectionKind},
    statement::BundleStatement,
    time::BundleTime,
};

/// How much earlier than its `not_before` a bundle is taken: the clock of an edge may be a day late, and a guard that comes
/// a day early does no harm.
const NOT_BEFORE_TOLERANCE: Duration = Duration::from_hours(24);

/// A bundle whose archive is the one that was signed, with all of its files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct VerifiedBundle {
    pub(crate) manifest: BundleManifest,
    pub(crate) files: Vec<BundleFile>,
}

/// Opens an archive that somebody has signed a statement about. The statement's signature is checked before.
pub(crate) fn open_bundle(
    statement: &BundleStatement,
    archive: &[u8],
) -> Result<VerifiedBundle, BundleRejection> {
    let damaged = |message: &str| BundleRejection::new(RejectionKind::Damaged, message);
    if archive.len() != statement.size || sha256_hex(archive) != statement.archive {
        return Err(damaged("its archive is not the one that was signed"));
    }
    let ArchiveContents { manifest, files } = read_archive(archive)?;
    if sha256_hex(&manifest) != statement.manifest {
        return Err(damaged("its manifest is not the one that was signed"));
    }
    let manifest = BundleManifest::read(&manifest)?;
    if !statement.agrees_with(&manifest) {
        let message = "its manifest and what was signed do not say the same";
        return Err(BundleRejection::new(RejectionKind::Manifest, message));
    }
    check_files(&manifest, &files)?;
    manifest.check_hookyard()?;
    Ok(VerifiedBundle { manifest, files })
}

/// Opens an archive, whoever has signed it or nobody: for those who make bundles.
#[cfg(any(feature = "cli", test))]
pub(crate) fn open_archive(archive: &[u8]) -> Result<VerifiedBundle, BundleRejection> {
    let ArchiveContents { manifest, files } = read_archive(archive)?;
    let manifest = BundleManifest::read(&manifest)?;
    check_files(&manifest, &files)?;
    Ok(VerifiedBundle { manifest, files })
}

/// Checks that the files are those of the manifest.
fn check_files(manifest: &BundleManifest, files: &[BundleFile]) -> Result<(), BundleRejection> {
    let wrong = |message: String| BundleRejection::new(RejectionKind::Manifest, message);
    for file in files {
        match manifest.files.get(&file.path) {
            None => return Err(wrong(format!("`{}` is not in its manifest", file.path))),
            Some(digest) if *digest != sha256_hex(&file.bytes) => {
                return Err(wrong(format!("`{}` is not as its manifest says", file.path)));
            }
            Some(_) => {}
        }
    }
    let missing = manifest.files.keys().find(|path| !files.iter().any(|file| file.path == **path));
    missing.map_or(Ok(()), |path| Err(wrong(format!("`{path}` is in its manifest and not in its archive"))))
}

/// Whether a bundle may be taken at a time.
pub(crate) fn check_time(statement: &BundleStatement, now: BundleTime) -> Result<(), BundleRejection> {
    if now.plus(NOT_BEFORE_TOLERANCE) < statement.not_before {
        let message = format!("it counts from {} on; the time here is {now}", statement.not_before);
        return Err(BundleRejection::new(RejectionKind::NotYet, message));
    }
    match statement.expires {
        Some(expires) if expires <= now => {
            let message = format!("it expired at {expires}; the time here is {now}");
            Err(BundleRejection::new(RejectionKind::Expired, message))
        }
        _ => Ok(()),
    }
}

/// Whether a bundle may follow another one: it has its name, and is newer.
pub(crate) fn check_version(
    statement: &BundleStatement,
    name: &str,
    version: u64,
) -> Result<(), BundleRejection> {
    if statement.name.as_str() != name {
        let message = format!("it is `{}`, and `{name}` is in force", statement.name);
        return Err(BundleRejection::new(RejectionKind::Name, message));
    }
    if statement.version > version {
        return Ok(());
    }
    let message = if statement.version == version {
        format!("version {version} is in force with another content")
    } else {
        format!("it is version {}, and {version} is in force", statement.version)
    };
    Err(BundleRejection::new(RejectionKind::Older, message))
}
