//! `cluster`: the nodes that share halts, as their store has them.

mod check;
mod dead;
mod drain;
mod halts;
mod status;
mod store;

use clap::{Args, Subcommand};

use super::{exit::CliResult, screen::Screen};

const FOOTER: &str = "\
Examples:
  hookyard cluster status
  hookyard cluster check --config /etc/hookyard/hookyard.yaml
  hookyard cluster halts
  hookyard cluster halts --forget run-7 --workspace shop
  hookyard cluster drain node-2
  hookyard cluster dead list

They ask the store that `cluster.store` names, with the credentials of the settings, and no node.";

/// Show the nodes and the queue of a cluster, check its store, end halts, stop nodes, and handle dead letters
///
/// Nodes are daemons behind a balancer that share the halts of runs. The page `docs/scale.md` has what they are for.
#[derive(Debug, Args)]
#[command(after_help = FOOTER)]
pub(super) struct ClusterCommand {
    #[command(subcommand)]
    action: ClusterAction,
}

#[derive(Debug, Subcommand)]
enum ClusterAction {
    Status(status::StatusAction),
    Check(check::CheckAction),
    Halts(halts::HaltsAction),
    Drain(drain::DrainAction),
    Dead(dead::DeadAction),
}

impl ClusterCommand {
    pub(super) async fn run(self, screen: &Screen) -> CliResult {
        match self.action {
            ClusterAction::Status(status) => status.run(screen).await,
            ClusterAction::Check(check) => check.run(screen).await,
            ClusterAction::Halts(halts) => halts.run(screen).await,
            ClusterAction::Drain(drain) => drain.run(screen).await,
            ClusterAction::Dead(dead) => dead.run(screen).await,
        }
    }
}
