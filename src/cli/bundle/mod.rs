//! `bundle`: make, sign, compare and publish bundles of hooks, and take one on this machine.

mod build;
mod diff;
mod install;
mod keygen;
mod push;
mod sign;
mod signed_file;
mod source;
mod verify;

use std::pin::Pin;

use clap::{Args, Subcommand};

use super::{exit::CliResult, screen::Screen};

const FOOTER: &str = "\
Examples:
  hookyard bundle keygen guards.key
  hookyard bundle build guards --name acme/guards --version 412 --expires 90d --output guards-412.tar.gz
  hookyard bundle sign guards-412.tar.gz --key guards.key
  hookyard bundle verify guards-412.tar.gz
  hookyard bundle diff guards-411.tar.gz guards-412.tar.gz
  hookyard bundle push guards-412.tar.gz /srv/www/guards.bundle
  hookyard bundle install guards-412.tar.gz

The page `docs/fleet.md` has the way from a key to a guard that is in force on every machine.";

/// Make, sign and publish bundles of hooks that machines take over the network
///
/// A bundle is one archive with workspaces and packs, and a signed statement about it. Its hooks are a level of their own
/// above those of users, which nothing below switches off.
#[derive(Debug, Args)]
#[command(after_help = FOOTER)]
pub(super) struct BundleCommand {
    #[command(subcommand)]
    action: BundleAction,
}

#[derive(Debug, Subcommand)]
enum BundleAction {
    Keygen(keygen::KeygenAction),
    Build(build::BuildAction),
    Sign(sign::SignAction),
    Verify(verify::VerifyAction),
    Diff(diff::DiffAction),
    Push(push::PushAction),
    Install(install::InstallAction),
}

impl BundleCommand {
    /// `on_runtime` runs what waits for a server.
    pub(super) fn run(
        self,
        screen: &Screen,
        on_runtime: fn(Pin<Box<dyn Future<Output = CliResult> + '_>>) -> CliResult,
    ) -> CliResult {
        match self.action {
            BundleAction::Keygen(keygen) => keygen.run(screen),
            BundleAction::Build(build) => build.run(screen),
            BundleAction::Sign(sign) => sign.run(screen),
            BundleAction::Verify(verify) => verify.run(screen),
            BundleAction::Diff(diff) => diff.run(screen),
            BundleAction::Push(push) => on_runtime(Box::pin(push.run(screen))),
            BundleAction::Install(install) => install.run(screen),
        }
    }
}
