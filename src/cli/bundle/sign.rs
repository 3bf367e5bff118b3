//! `bundle sign`: write the signed statement beside an archive.

use std::path::PathBuf;

use clap::Args;

use super::{
    super::{
        escape,
        exit::{CliError, CliResult, Exit},
        paths::display_path,
        screen::Screen,
    },
    signed_file::{BundleOnDisk, refused, replace_file},
};
use crate::{
    bundle::{BundleSigningKey, BundleStatement, SignedStatement},
    config,
};

/// The largest file of a key, in bytes.
const LARGEST_KEY: u64 = 1024;

/// Sign an archive
///
/// Writes the statement that machines check beside it: the name of the archive, and `.sig`. Signatures of other keys that
/// are there already stay, so that machines with the old and with the new key take it.
#[derive(Debug, Args)]
pub(super) struct SignAction {
    /// Archive of `hookyard bundle build`
    #[arg(value_name = "ARCHIVE")]
    archive: PathBuf,

    /// File with the private key, as `hookyard bundle keygen` wrote it
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
}

impl SignAction {
    pub(super) fn run(self, screen: &Screen) -> CliResult {
        let key = self.signing_key()?;
        let found = BundleOnDisk::read(&self.archive)?;
        let statement = BundleStatement::about(&found.bundle.manifest, &found.archive);
        let mut signed = found.signed.clone().unwrap_or_else(|| SignedStatement::unsigned(statement));
        signed.sign(&key).map_err(|refusal| refused(&found.signature_file, &refusal))?;
        replace_file(&found.signature_file, signed.write().as_bytes())?;
        let title = found.title();
        screen.print(&format!(
            "{title}: signed by {} in {}",
            key.public(),
            display_path(&found.signature_file)
        ))?;
        Ok(Exit::Done)
    }

    fn signing_key(&self) -> Result<BundleSigningKey, CliError> {
        let name = escape::path(&self.key);
        let bytes = config::read_private(&self.key, LARGEST_KEY)
            .map_err(|why| CliError::new(format!("the key {name} {why}")))?;
        let key = std::str::from_utf8(&bytes).ok().and_then(BundleSigningKey::parse);
        key.ok_or_else(|| {
            CliError::with_help(
                format!("{name} is no private key"),
                "make one with `hookyard bundle keygen FILE`",
            )
        })
    }
}
