//! `cluster check`: whether halts are safe in the store, and the nodes agree.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use clap::Args;

use super::{
    status::{NEARLY_FULL, queue_report},
    store::{cluster_settings, operator},
};
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
    store::{ClusterError, ClusterSurvey, QueueReport},
};

/// After how long without a word a node counts as gone.
const GONE: Duration = Duration::from_secs(5);

/// Check that halts are safe in the store of the cluster, that its nodes agree, and that its queue is served
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
        problems.extend(operator.check_servers().await.err().map(|error| error.to_string()));
        problems.extend(of_survey(&survey));
        problems.extend(names.iter().map(|name| {
            format!("several daemons have the name {}: give each its own `node`", escape::line(name))
        }));
        problems.extend(of_queue(queue_report(&settings).await));
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

/// What is wrong with the queue, if there is one.
fn of_queue(queue: Result<Option<QueueReport>, ClusterError>) -> Vec<String> {
    let queue = match queue {
        Ok(Some(queue)) => queue,
        Ok(None) => return Vec::new(),
        Err(error) => return vec![format!("the queue cannot be read: {error}")],
    };
    let mut problems = Vec::new();
    if queue.workers.is_empty() && queue.waiting > 0 {
        let waiting = usize::try_from(queue.waiting).unwrap_or(usize::MAX);
        problems.push(format!(
            "no worker of the queue answers, with {} waiting: start `hookyard work`",
            plural(waiting, "event")
        ));
    }
    let full = queue.percent_full();
    if full >= NEARLY_FULL {
        problems.push(format!(
            "the queue is {full} % full: start more workers, or raise the `max_bytes` of its stream with `nats stream edit`"
        ));
    }
    let mut counts = BTreeMap::<_, usize>::new();
    queue.workers.iter().for_each(|worker| *counts.entry(worker.node.as_str()).or_default() += 1);
    problems.extend(counts.into_iter().filter(|(_, count)| *count > 1).map(|(name, count)| {
        format!("{count} workers have the name {}: give each its own `node`", escape::line(name))
    }));
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
        let what = if key.starts_with("node.") { "node that it is about" } else { "run that it may halt" };
        format!("the key {} of the bucket cannot be read, and the {what} is not known", escape::line(key))
    }));
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(waiting: u64, bytes: u64, workers: &[&str]) -> QueueReport {
        let report = |node: &&str| {
            let report = serde_json::json!({"node": node, "instance": "1", "version": "1", "under_way": 0});
            serde_json::from_value(report).expect("a report")
        };
        QueueReport {
            waiting,
            under_way: 0,
            bytes,
            max_bytes: Some(1000),
            made_again_ms: None,
            lost_ms: None,
            dead_letters: 0,
            workers: workers.iter().map(report).collect(),
        }
    }

    #[test]
    fn a_queue_that_nobody_serves_is_full_or_has_workers_of_one_name_is_a_problem() {
        for (queue, wrong) in [
            (queue(0, 0, &[]), None),
            (queue(9, 799, &["a", "b"]), None),
            (
                queue(1, 10, &[]),
                Some("no worker of the queue answers, with 1 event waiting: start `hookyard work`"),
            ),
            (queue(0, 800, &["a"]), Some("the queue is 80 % full")),
            (queue(0, 0, &["a", "b", "a"]), Some("2 workers have the name a: give each its own `node`")),
        ] {
            let found = of_queue(Ok(Some(queue)));
            assert_eq!(found.len(), usize::from(wrong.is_some()), "{found:?}");
            assert!(wrong.is_none_or(|wrong| found[0].starts_with(wrong)), "{found:?}");
        }
        assert!(of_queue(Ok(None)).is_empty());
        let unreachable = of_queue(Err(ClusterError::Unreachable("it is away".to_owned())));
        assert!(unreachable[0].starts_with("the queue cannot be read: "), "{unreachable:?}");
    }
}
