//! An archive on disk, and the file with the signed statement beside it.

use std::{
    ffi::OsString,
    fs,
    io::Read,
    path::{Path, PathBuf},
};

use super::super::{
    escape,
    exit::CliError,
    paths::{display_path, open_input},
};
use crate::{
    bundle::{
        BundleRejection, BundleStatement, BundleVerifyingKey, MAX_ARCHIVE, MAX_STATEMENT, SignedStatement,
        VerifiedBundle, open_archive,
    },
    config::Settings,
    model::io_reason,
};

/// A bundle that was read from disk, whoever has signed it.
pub(super) struct BundleOnDisk {
    pub(super) archive: Vec<u8>,
    pub(super) bundle: VerifiedBundle,
    /// The statement beside it, if there is one.
    pub(super) signed: Option<SignedStatement>,
    /// Where that is.
    pub(super) signature_file: PathBuf,
}

impl BundleOnDisk {
    /// Reads an archive and what is beside it.
    ///
    /// Returns an error if the archive is none of a bundle, or the statement is about another one.
    pub(super) fn read(file: &Path) -> Result<Self, CliError> {
        let archive = bytes_of(file, MAX_ARCHIVE)?;
        let bundle = open_archive(&archive).map_err(|refusal| refused(file, &refusal))?;
        let signature_file = beside(file);
        let signed = match signature_file.symlink_metadata() {
            Ok(_) => {
                let bytes = bytes_of(&signature_file, MAX_STATEMENT)?;
                Some(SignedStatement::read(&bytes).map_err(|refusal| refused(&signature_file, &refusal))?)
            }
            Err(_) => None,
        };
        let statement = BundleStatement::about(&bundle.manifest, &archive);
        if signed.as_ref().is_some_and(|signed| signed.statement != statement) {
            return Err(CliError::with_help(
                format!(
                    "{} is about another archive than {}",
                    display_path(&signature_file),
                    display_path(file)
                ),
                "remove it, and sign the archive with `hookyard bundle sign`",
            ));
        }
        Ok(Self { archive, bundle, signed, signature_file })
    }

    /// The statement, which somebody must have signed.
    pub(super) fn signed(&self, file: &Path) -> Result<&SignedStatement, CliError> {
        let is_signed = |signed: &&SignedStatement| signed.keys().next().is_some();
        self.signed.as_ref().filter(is_signed).ok_or_else(|| {
            CliError::with_help(
                format!("nobody has signed {}", display_path(file)),
                "run `hookyard bundle sign ARCHIVE --key FILE`",
            )
        })
    }

    /// What it is called, with its version.
    pub(super) fn title(&self) -> String {
        let manifest = &self.bundle.manifest;
        format!("{} {}", manifest.name, manifest.version)
    }
}

/// The file beside an archive: its name, and `.sig`.
fn beside(file: &Path) -> PathBuf {
    let mut name: OsString = file.file_name().unwrap_or_default().to_owned();
    name.push(".sig");
    file.with_file_name(name)
}

/// The settings that hooks are looked at with where bundles are made: machines may permit what is refused by default.
pub(super) fn settings_of_maker() -> Settings {
    Settings { allow_unix_sockets: true, ..Settings::default() }
}

/// The error about a bundle that is refused.
pub(super) fn refused(file: &Path, refusal: &BundleRejection) -> CliError {
    CliError::new(format!("{}: {}", display_path(file), escape::line(&refusal.message)))
}

/// A public key of the command line.
pub(super) fn public_key(text: &str) -> Result<BundleVerifyingKey, &'static str> {
    BundleVerifyingKey::parse(text).ok_or(
        "write a public key as `hookyard bundle keygen` prints it: `ed25519:` and 64 hexadecimal digits",
    )
}

/// The bytes of a file with a bound.
pub(super) fn bytes_of(file: &Path, largest: usize) -> Result<Vec<u8>, CliError> {
    let mut bytes = Vec::new();
    let read = open_input(file).and_then(|opened| opened.take(largest as u64 + 1).read_to_end(&mut bytes));
    read.map_err(|error| {
        CliError::new(format!("{} cannot be read: {}", display_path(file), io_reason(&error)))
    })?;
    if bytes.len() > largest {
        return Err(CliError::new(format!("{} has more than {largest} bytes", display_path(file))));
    }
    Ok(bytes)
}

/// Writes a file at once: whoever reads it meanwhile gets the former one or this one. It is on disk when this returns, so
/// that no later one is there without it.
pub(super) fn replace_file(file: &Path, bytes: &[u8]) -> Result<(), CliError> {
    let mut name: OsString = file.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let new = file.with_file_name(name);
    let written = fs::write(&new, bytes)
        .and_then(|()| fs::File::open(&new)?.sync_all())
        .and_then(|()| fs::rename(&new, file))
        .and_then(|()| {
            fs::File::open(file.parent().filter(|above| *above != Path::new("")).unwrap_or(Path::new(".")))?
                .sync_all()
        });
    written.map_err(|error| {
        fs::remove_file(&new).ok();
        CliError::new(format!("{} cannot be written: {}", display_path(file), io_reason(&error)))
    })
}
