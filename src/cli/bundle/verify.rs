//! `bundle verify`: check an archive as a machine does.

use std::{path::PathBuf, time::SystemTime};

use clap::Args;
use serde_json::json;

use super::{
    super::{
        exit::{CliError, CliResult, Exit},
        flags::{JsonFlag, SettingsFlags},
        screen::Screen,
        settings::{VariablePolicy, settings_of, tell},
        units::plural,
    },
    signed_file::{BundleOnDisk, public_key, refused},
};
use crate::{
    bundle::{BundleTime, BundleVerifyingKey, check_time},
    config::{self, BundleTrust},
};

const FOOTER: &str = "\
Examples:
  hookyard bundle verify guards-412.tar.gz
  hookyard bundle verify guards-412.tar.gz --config /etc/hookyard/hookyard.yaml

Exit codes: 0 a machine with these keys takes it now; 1 it does not.";

/// Check an archive as a machine does before it takes it
///
/// Checks its signature, its name if `bundle.name` is set, its time, the hookyard that it needs, each file and each hook.
/// Without `--key`, the keys are those of the settings.
#[derive(Debug, Args)]
#[command(after_help = FOOTER)]
pub(super) struct VerifyAction {
    /// Archive, with its signature beside it
    #[arg(value_name = "ARCHIVE")]
    archive: PathBuf,

    /// Public key; one of those given must have signed it. Can be repeated
    #[arg(long, value_name = "KEY", value_parser = public_key)]
    key: Vec<BundleVerifyingKey>,

    #[command(flatten)]
    settings: SettingsFlags,

    #[command(flatten)]
    output: JsonFlag,
}

impl VerifyAction {
    pub(super) fn run(self, screen: &Screen) -> CliResult {
        let (settings, diagnostics) = settings_of(&self.settings, VariablePolicy::Ignored)?;
        tell(&diagnostics, screen)?;
        let trust = BundleTrust::of(&settings);
        let trust = if self.key.is_empty() { trust } else { trust.with_keys(&self.key) };
        if !trust.has_keys() {
            return Err(CliError::with_help(
                "there is no key to check the signature with",
                "name one with `--key`, or in `bundle.keys` of the settings",
            ));
        }
        let found = BundleOnDisk::read(&self.archive)?;
        let signed = found.signed(&self.archive)?;
        let refuse = |refusal| refused(&self.archive, &refusal);
        let signed_by = trust.check(signed).map_err(refuse)?;
        check_time(&signed.statement, BundleTime::of(SystemTime::now())).map_err(refuse)?;
        found.bundle.manifest.check_hookyard().map_err(refuse)?;
        let environment = |name: &str| std::env::var(name).ok();
        let hooks = config::check_bundle(&found.bundle, &settings, &environment).map_err(refuse)?;
        let manifest = &found.bundle.manifest;
        let expires = manifest.expires.map(|moment| moment.to_string());
        if self.output.json {
            screen.print_json(&json!({
                "name": manifest.name.as_str(),
                "version": manifest.version,
                "signed_by": signed_by.to_string(),
                "not_before": manifest.not_before.to_string(),
                "expires": expires,
                "min_hookyard": manifest.min_hookyard,
                "required": manifest.required,
                "files": manifest.files.len(),
                "hooks": hooks.hooks.iter().map(|hook| hook.name.as_str()).collect::<Vec<_>>(),
            }))?;
            return Ok(Exit::Done);
        }
        let counts = (plural(hooks.hooks.len(), "hook"), plural(manifest.files.len(), "file"));
        let expires = expires.unwrap_or_else(|| "never".to_owned());
        screen.print(&format!(
            "{}: good, signed by {signed_by}\n{}, {}, counts from {}, expires {expires}\n",
            found.title(),
            counts.0,
            counts.1,
            manifest.not_before,
        ))?;
        Ok(Exit::Done)
    }
}
