//! `bundle build`: make an archive of workspaces and packs.

use std::{
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use clap::Args;
use serde_json::json;

use super::{
    super::{
        escape,
        exit::{CliError, CliResult, Exit},
        flags::JsonFlag,
        paths::display_path,
        screen::Screen,
        units::{byte_size, plural},
    },
    signed_file::{refused, replace_file},
    source::files_of,
};
use crate::{
    bundle::{BundleManifest, BundleName, BundleTime, open_archive, sha256_hex, write_archive},
    config,
};

const FOOTER: &str = "\
Examples:
  hookyard bundle build guards --name acme/guards --version 412 --expires 90d --output guards-412.tar.gz
  hookyard bundle build guards --name acme/guards --version 412 --expires 2027-03-01T00:00:00Z \
--require no-force-push --output guards-412.tar.gz

DIR has workspaces (directories with `.openharness/hooks/`) and packs (directories with hook files, whose cases are not \
needed). The same files and flags give the same bytes; with a duration in `--expires`, only in the same second.";

/// Make an archive of workspaces and packs
///
/// Loads every hook of it, and fails if one cannot be loaded.
#[derive(Debug, Args)]
#[command(after_help = FOOTER)]
pub(super) struct BuildAction {
    /// Directory with the workspaces and packs
    #[arg(value_name = "DIR")]
    directory: PathBuf,

    /// Name of the bundle, such as `acme/guards`. Machines take no other bundle in its place
    #[arg(long, value_parser = bundle_name)]
    name: BundleName,

    /// Version, a number. Machines take only a higher one than they have
    #[arg(long, value_name = "NUMBER")]
    version: u64,

    /// When it expires: a time such as `2027-03-01T00:00:00Z`, a duration from now such as `90d`, or `never`
    #[arg(long, value_name = "TIME", value_parser = expiry)]
    expires: Expiry,

    /// From when on it counts; default: at once
    #[arg(long, value_name = "TIME", value_parser = moment)]
    not_before: Option<BundleTime>,

    /// Oldest hookyard that takes it; default: the minor version of this one
    #[arg(long, value_name = "VERSION")]
    min_hookyard: Option<String>,

    /// Hook of the bundle that must be in force: its events are blocked where it is not, fails or times out. Can be repeated
    #[arg(long, value_name = "HOOK")]
    require: Vec<String>,

    /// Archive to write
    #[arg(long, short, value_name = "FILE")]
    output: PathBuf,

    #[command(flatten)]
    form: JsonFlag,
}

/// When a bundle expires.
#[derive(Debug, Clone, Copy)]
enum Expiry {
    At(BundleTime),
    After(Duration),
    Never,
}

fn bundle_name(text: &str) -> Result<BundleName, &'static str> {
    BundleName::new(text).ok_or(
        "write lower-case letters, digits, `.`, `_` and `-`, with at most one `/`, such as `acme/guards`",
    )
}

fn moment(text: &str) -> Result<BundleTime, &'static str> {
    BundleTime::parse(text).ok_or("write it in UTC, such as `2027-03-01T00:00:00Z`")
}

fn expiry(text: &str) -> Result<Expiry, &'static str> {
    if text == "never" {
        return Ok(Expiry::Never);
    }
    if let Some(days) = text.strip_suffix('d').and_then(|days| days.parse::<u64>().ok()) {
        let seconds = days.checked_mul(86_400).filter(|seconds| *seconds > 0);
        return seconds.map(|seconds| Expiry::After(Duration::from_secs(seconds))).ok_or("that is no time");
    }
    if let Some(duration) = config::duration(text) {
        return Ok(Expiry::After(duration));
    }
    moment(text).map(Expiry::At)
}

impl BuildAction {
    pub(super) fn run(self, screen: &Screen) -> CliResult {
        let files = files_of(&self.directory)?;
        let expires = match self.expires {
            Expiry::At(moment) => Some(moment),
            Expiry::After(duration) => Some(BundleTime::of(SystemTime::now()).plus(duration)),
            Expiry::Never => None,
        };
        let not_before = self.not_before.unwrap_or_default();
        if expires.is_some_and(|expires| expires <= not_before) {
            return Err(CliError::new("it expires before it counts; see `--expires` and `--not-before`"));
        }
        let mut required = self.require.clone();
        required.sort();
        required.dedup();
        let manifest = BundleManifest {
            name: self.name.clone(),
            version: self.version,
            not_before,
            expires,
            min_hookyard: self.min_hookyard.clone().unwrap_or_else(|| minor_version().to_owned()),
            required,
            files: files.iter().map(|file| (file.path.clone(), sha256_hex(&file.bytes))).collect(),
        };
        let written = write_archive(&manifest.write(), &files);
        let archive = written.map_err(|refusal| refused(&self.directory, &refusal))?;
        let bundle = open_archive(&archive).map_err(|refusal| refused(&self.directory, &refusal))?;
        let checked = config::check_bundle(&bundle, &super::signed_file::settings_of_maker(), &|name| {
            std::env::var(name).ok()
        });
        let hooks = checked.map_err(|refusal| refused(&self.directory, &refusal))?;
        for warning in &hooks.diagnostics {
            screen.note(&format!(
                "{} {}",
                screen.err.paint.yellow("warning:"),
                escape::line(&warning.to_string())
            ));
        }
        replace_file(&self.output, &archive)?;
        self.report(&archive, (files.len(), hooks.hooks.len()), expires, screen)
    }

    fn report(
        &self,
        archive: &[u8],
        (files, hooks): (usize, usize),
        expires: Option<BundleTime>,
        screen: &Screen,
    ) -> CliResult {
        if self.form.json {
            screen.print_json(&json!({
                "name": self.name.as_str(),
                "version": self.version,
                "archive": shown(&self.output),
                "sha256": sha256_hex(archive),
                "bytes": archive.len(),
                "files": files,
                "hooks": hooks,
                "expires": expires.map(|moment| moment.to_string()),
            }))?;
            return Ok(Exit::Done);
        }
        let (hooks, files) = (plural(hooks, "hook"), plural(files, "file"));
        let expires =
            expires.map_or_else(|| "never expires".to_owned(), |moment| format!("expires {moment}"));
        screen.print(&format!(
            "{} {}: {hooks}, {files}, {}, {expires}\n{} sha256:{}\n",
            self.name,
            self.version,
            byte_size(archive.len()),
            display_path(&self.output),
            sha256_hex(archive)
        ))?;
        screen.note("sign it with `hookyard bundle sign`");
        Ok(Exit::Done)
    }
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

/// The first two numbers of the version of this program.
fn minor_version() -> &'static str {
    let version = env!("CARGO_PKG_VERSION");
    version.rsplit_once('.').map_or(version, |(minor, _)| minor)
}
