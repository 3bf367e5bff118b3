//! `bundle install`: take a bundle on this machine.

use std::{path::PathBuf, time::SystemTime};

use clap::Args;

use super::{
    super::{
        escape,
        exit::{CliError, CliResult, Exit},
        flags::SettingsFlags,
        screen::Screen,
        settings::{VariablePolicy, settings_of, tell},
    },
    signed_file::BundleOnDisk,
};
use crate::{
    bundle::{BundleRejection, RejectionKind},
    config::{self, BundleStore, BundleTaker, OlderBundles, TakenBundle},
};

const FOOTER: &str = "\
Examples:
  hookyard bundle install guards-412.tar.gz
  hookyard bundle install guards-411.tar.gz --allow-older

A running daemon takes it over with the next `hookyard reload`, or by itself within `bundle.poll`.";

/// Take a bundle on this machine
///
/// Checks it as a bundle from the network: one of the keys in `bundle.keys` must have signed it. It is kept in the directory
/// of `data`.
#[derive(Debug, Args)]
#[command(after_help = FOOTER)]
pub(super) struct InstallAction {
    /// Archive, with its signature beside it
    #[arg(value_name = "ARCHIVE")]
    archive: PathBuf,

    /// Take a version that is older than the one in force, or a bundle of another name. A server that has a newer one brings
    /// that back
    #[arg(long)]
    allow_older: bool,

    #[command(flatten)]
    settings: SettingsFlags,
}

impl InstallAction {
    pub(super) fn run(self, screen: &Screen) -> CliResult {
        let (settings, diagnostics) = settings_of(&self.settings, VariablePolicy::Ignored)?;
        tell(&diagnostics, screen)?;
        if settings.bundle.keys.is_empty() {
            return Err(CliError::with_help(
                "no key may sign a bundle for this machine",
                "name a public key in `bundle.keys` of the settings file",
            ));
        }
        let environment = |name: &str| std::env::var(name).ok();
        let data = config::data_directory(&settings, &environment).ok_or_else(|| {
            CliError::with_help(
                "there is no directory to keep a bundle in",
                "set `data` in the settings file",
            )
        })?;
        let found = BundleOnDisk::read(&self.archive)?;
        let signed = found.signed(&self.archive)?;
        let older = if self.allow_older { OlderBundles::Permitted } else { OlderBundles::Refused };
        let taker = BundleTaker {
            store: BundleStore::in_data(&data),
            settings: &settings,
            environment: &environment,
            // As in the daemon: only a program that embeds it has models of its own.
            models: &|_| false,
            older,
        };
        let title = found.title();
        let result = taker.take(signed, &found.archive, SystemTime::now());
        match result.map_err(|refusal| not_taken(&title, &refusal))? {
            TakenBundle::Now => {}
            TakenBundle::Already => {
                screen.print(&format!("{title}: in force already"))?;
                return Ok(Exit::Done);
            }
            TakenBundle::Signed => {
                screen.print(&format!("{title}: in force already; its new signatures are kept"))?;
                return Ok(Exit::Done);
            }
        }
        screen.print(&format!("{title}: taken; kept in {}", escape::path(taker.store.directory())))?;
        screen.note("a running daemon takes it over within `bundle.poll`; `hookyard reload` does so at once");
        Ok(Exit::Done)
    }
}

fn not_taken(title: &str, refusal: &BundleRejection) -> CliError {
    let what = format!("{title} is not taken: {}", escape::line(&refusal.message));
    match refusal.kind {
        RejectionKind::Older | RejectionKind::Name => {
            CliError::with_help(what, "to take it all the same, add `--allow-older`")
        }
        RejectionKind::Signature => {
            CliError::with_help(what, "add the key to `bundle.keys`, or have it signed by one that is there")
        }
        _ => CliError::new(what),
    }
}
