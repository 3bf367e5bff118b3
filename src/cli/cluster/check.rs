//! `cluster check`: whether halts are safe in the store, and the nodes agree.

use std::{collections::BTreeSet, time::Duration};

use clap::Args;

use super::store::{cluster_settings, operator};
use crate::{
    cli::{
        escape,
        exit::{CliError, CliResult, Exit},
        flags::SettingsFlags,
        screen::Screen,
        units::{coarse_duration, plural},
    },
    config::Settings,
    daemon::{StoreSync, store_sync},
    store::ClusterSurvey,
};

/// After how long without a word a node counts as gone.
const GONE: Duration = Duration::from_secs(5);

/// Check that halts are safe in the store of the cluster, and that its nodes agree
///
/// Exits with 1 if something is wrong.
#[derive(Debug, Args)]
pub(super) struct CheckAction {
    #[command(flatten)]
    settings: SettingsFlags,
}

impl CheckAction {
    pub(super) async fn run(self, screen: &Screen) -> CliResult {
        let settings = cluster_settings(&self.settings, screen)?;
        let operator = operator(&settings).await?;
        let survey = operator.survey().await.map_err(CliError::new)?;
        let names = operator.shared_names().await.map_err(CliError::new)?;
        let mut problems = of_sync(&settings).await;
        problems.extend(of_survey(&survey));
        problems.extend(names.iter().map(|name| {
            format!("several daemons have the name {}: give each its own `node`", escape::line(name))
        }));
        for problem in &problems {
            screen.error(problem, None);
        }
        if settings.cluster.store.len() == 1 && settings.cluster.replicas.get() > 1 {
            screen.note(
                "`cluster.store` names one server: unless its name stands for all, no node starts with the halts of the others while \
                 that one is away",
            );
        }
        if !problems.is_empty() {
            return Ok(Exit::Failed);
        }
        screen.print(&format!(
            "the store is NATS {} on {}, and safe for halts; {} agree\n",
            escape::line(&survey.report.version),
            plural(survey.report.replicas, "server"),
            plural(survey.nodes.len(), "node"),
        ))?;
        Ok(Exit::Done)
    }
}

/// What is wrong with how the servers write to disk.
async fn of_sync(settings: &Settings) -> Vec<String> {
    let mut problems = Vec::new();
    for address in settings.cluster.monitored() {
        match store_sync(&address).await {
            StoreSync::Always => {}
            StoreSync::Late(server) => problems.push(format!(
                "the server {} confirms what it has not written to disk: set `sync_interval: always`",
                escape::line(&server)
            )),
            StoreSync::Unknown(_) if settings.cluster.trust_sync => {}
            StoreSync::Unknown(why) => {
                problems.push(format!(
                    "{} does not say how it writes to disk: {why}",
                    escape::line(&address.server())
                ));
            }
        }
    }
    problems
}

/// What is wrong with what the bucket has.
fn of_survey(survey: &ClusterSurvey) -> Vec<String> {
    let mut problems = Vec::new();
    if survey.report.leader.is_none() {
        problems.push("no server of the store leads: no halt can be stored".to_owned());
    }
    let behind = survey.report.followers.iter().filter(|(_, is_current)| !is_current);
    problems.extend(behind.map(|(server, _)| {
        format!("the server {} is behind or away: one more failure may stop the store", escape::line(server))
    }));
    let (here, gone): (Vec<_>, Vec<_>) = survey.nodes.iter().partition(|(_, heard)| *heard < GONE);
    problems.extend(gone.iter().map(|(beat, heard)| {
        format!("the node {} has not been heard of for {}", escape::line(&beat.node), coarse_duration(*heard))
    }));
    problems.extend(here.iter().filter(|(beat, _)| beat.unstored > 0).map(|(beat, _)| {
        format!(
            "the node {} has {} that the store does not have",
            escape::line(&beat.node),
            plural(beat.unstored, "halt")
        )
    }));
    let stored = survey.halts.len();
    problems.extend(here.iter().filter(|(beat, _)| beat.halts > stored + beat.unstored).map(|(beat, _)| {
        format!(
            "the node {} knows {}, and the store has {stored}: nodes that start do not know the others",
            escape::line(&beat.node),
            plural(beat.halts, "halt"),
        )
    }));
    let promises: BTreeSet<_> = here.iter().map(|(beat, _)| beat.is_strict).collect();
    if promises.len() > 1 {
        problems.push(
            "`cluster.halts` is `strict` on some nodes and `watch` on others: nothing strict is promised"
                .to_owned(),
        );
    }
    let versions: BTreeSet<_> = here.iter().map(|(beat, _)| beat.version.as_str()).collect();
    let bundles: BTreeSet<_> = here.iter().map(|(beat, _)| beat.facts.bundle).collect();
    let hooks: BTreeSet<_> = here.iter().map(|(beat, _)| beat.facts.hooks).collect();
    if versions.len() > 1 {
        let versions: Vec<_> = versions.into_iter().map(escape::line).collect();
        problems.push(format!("the nodes have different versions of hookyard: {}", versions.join(", ")));
    }
    if bundles.len() > 1 {
        problems.push(
            "the nodes have different bundles of hooks: `hookyard cluster status` shows them".to_owned(),
        );
    } else if hooks.len() > 1 {
        problems.push(
            "the nodes have different numbers of hooks: `hookyard cluster status` shows them".to_owned(),
        );
    }
    let unreadable = survey.unreadable.iter();
    problems.extend(unreadable.map(|key| {
        format!(
            "the key {} of the bucket cannot be read, and the run that it may halt is not known",
            escape::line(key)
        )
    }));
    problems
}
