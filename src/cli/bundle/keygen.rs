//! `bundle keygen`: make a key that signs bundles.

use std::{
    fs::File,
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::PathBuf,
};

use clap::Args;
use serde_json::json;

use super::super::{
    escape,
    exit::{CliError, CliResult, Exit},
    flags::JsonFlag,
    screen::Screen,
};
use crate::{bundle::BundleSigningKey, model::io_reason};

/// Make a key that signs bundles, and print its public key
///
/// The public key goes into `bundle.keys` of the settings of each machine. Who has the file decides which hooks run there.
#[derive(Debug, Args)]
pub(super) struct KeygenAction {
    /// File for the private key; its mode is 0600, and it must not exist yet
    #[arg(value_name = "FILE")]
    file: PathBuf,

    #[command(flatten)]
    output: JsonFlag,
}

impl KeygenAction {
    pub(super) fn run(self, screen: &Screen) -> CliResult {
        let key = BundleSigningKey::generate()
            .ok_or_else(|| CliError::new("this system gave no random numbers, so there is no key"))?;
        let written =
            File::options().write(true).create_new(true).mode(0o600).open(&self.file).and_then(|mut file| {
                file.write_all(key.secret_line().as_bytes())?;
                file.sync_all()
            });
        written.map_err(|error| self.unwritten(&error))?;
        if self.output.json {
            screen.print_json(&json!({ "public_key": key.public().to_string() }))?;
        } else {
            screen.print(&key.public().to_string())?;
            screen.note("add it to `bundle.keys` in the settings of each machine, and keep the file where nobody else reads it");
        }
        Ok(Exit::Done)
    }

    fn unwritten(&self, error: &io::Error) -> CliError {
        let name = escape::path(&self.file);
        if error.kind() == io::ErrorKind::AlreadyExists {
            return CliError::with_help(
                format!("{name} is there already"),
                "a key that is overwritten cannot sign any more; name another file",
            );
        }
        CliError::new(format!("the key cannot be written to {name}: {}", io_reason(error)))
    }
}
