//! `cluster drain`: a node takes no more events, and stops.

use clap::Args;

use super::store::{cluster_settings, operator};
use crate::cli::{
    escape,
    exit::{CliError, CliResult, Exit},
    flags::SettingsFlags,
    screen::Screen,
};

/// Have a node stop, as `hookyard stop` has the daemon of this machine
///
/// It says that it is not ready, takes events for `listen.lameduck`, finishes those in flight, and ends.
#[derive(Debug, Args)]
pub(super) struct DrainAction {
    /// Node, as `cluster status` shows it
    #[arg(value_name = "NODE")]
    node: String,

    #[command(flatten)]
    settings: SettingsFlags,
}

impl DrainAction {
    pub(super) async fn run(self, screen: &Screen) -> CliResult {
        let settings = cluster_settings(&self.settings, screen)?;
        let operator = operator(&settings).await?;
        let survey = operator.survey().await.map_err(CliError::new)?;
        let node = escape::line(&self.node);
        let Some((beat, _)) = survey.nodes.iter().find(|(beat, _)| beat.node == self.node) else {
            let what = format!("no node `{node}` has been heard of");
            return Err(CliError::with_help(what, "`hookyard cluster status` shows the nodes"));
        };
        operator.drain(beat).await.map_err(CliError::new)?;
        screen.print(&format!("the node {node} is asked to stop\n"))?;
        Ok(Exit::Done)
    }
}
