//! `cluster status`: the nodes, and the servers of their store.

use std::time::Duration;

use clap::Args;
use serde::Serialize;

use super::store::{cluster_settings, operator};
use crate::cli::{
    escape,
    exit::{CliError, CliResult, Exit},
    flags::{JsonFlag, SettingsFlags},
    screen::Screen,
    table::{AdaptiveTable, EMPTY_CELL, Page},
    units::{coarse_duration, plural},
};
use crate::{
    config::Settings,
    daemon::queue_options,
    store::{ClusterError, ClusterSurvey, QueueOperator, QueueReport},
};

/// From how many hundredths of its size on a queue is nearly full.
pub(super) const NEARLY_FULL: u64 = 80;

/// How long it is told that the queue was made again.
const LOSS_TOLD: Duration = Duration::from_hours(7 * 24);

/// Show the nodes of the cluster, the servers of its store, and its queue
#[derive(Debug, Args)]
pub(super) struct StatusAction {
    #[command(flatten)]
    settings: SettingsFlags,

    #[command(flatten)]
    output: JsonFlag,
}

#[derive(Debug, Serialize)]
struct ClusterListing {
    store: StoreRow,
    halts: usize,
    nodes: Vec<NodeRow>,
    /// None if no lifecycle events are queued.
    queue: Option<QueueReport>,
    /// Why the queue cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    queue_error: Option<String>,
}

#[derive(Debug, Serialize)]
struct StoreRow {
    version: String,
    leader: Option<String>,
    replicas: usize,
    followers: Vec<FollowerRow>,
}

#[derive(Debug, Serialize)]
struct FollowerRow {
    server: String,
    current: bool,
}

#[derive(Debug, Serialize)]
struct NodeRow {
    node: String,
    instance: String,
    version: String,
    phase: String,
    #[serde(rename = "heard_ms", serialize_with = "crate::model::milliseconds")]
    heard: Duration,
    bundle: Option<u64>,
    hooks: usize,
    runs: usize,
    halts: usize,
    unstored: usize,
}

impl StatusAction {
    pub(super) async fn run(self, screen: &Screen) -> CliResult {
        let settings = cluster_settings(&self.settings, screen)?;
        let survey = operator(&settings).await?.survey().await.map_err(CliError::new)?;
        let queue = queue_report(&settings).await;
        let found_by_nodes = survey.nodes.iter().filter_map(|(beat, _)| beat.facts.queue_lost_ms).min();
        let queue = queue.map(|queue| {
            queue.map(|queue| {
                let lost_ms = queue.lost_ms.into_iter().chain(found_by_nodes).min();
                QueueReport { lost_ms, ..queue }
            })
        });
        let listing = listing(survey, queue);
        if self.output.json {
            screen.print_json(&listing)?;
        } else {
            screen.print(&view(&listing, screen))?;
        }
        Ok(Exit::Done)
    }
}

pub(super) async fn queue_report(settings: &Settings) -> Result<Option<QueueReport>, ClusterError> {
    QueueOperator::connect(queue_options(settings)).await?.report().await
}

fn listing(survey: ClusterSurvey, queue: Result<Option<QueueReport>, ClusterError>) -> ClusterListing {
    let followers = survey.report.followers.into_iter();
    let nodes = survey.nodes.into_iter().map(|(beat, heard)| NodeRow {
        node: beat.node,
        instance: beat.instance,
        version: beat.version,
        phase: beat.facts.phase,
        heard,
        bundle: beat.facts.bundle,
        hooks: beat.facts.hooks,
        runs: beat.facts.runs,
        halts: beat.halts,
        unstored: beat.unstored,
    });
    ClusterListing {
        store: StoreRow {
            version: survey.report.version,
            leader: survey.report.leader,
            replicas: survey.report.replicas,
            followers: followers.map(|(server, current)| FollowerRow { server, current }).collect(),
        },
        halts: survey.halts.len(),
        nodes: nodes.collect(),
        queue_error: queue.as_ref().err().map(ToString::to_string),
        queue: queue.ok().flatten(),
    }
}

/// The queue in a line: what is in it, and who takes it out.
fn queue_line(listing: &ClusterListing) -> Option<String> {
    if let Some(error) = &listing.queue_error {
        return Some(format!("cannot be read: {}", escape::line(error)));
    }
    let queue = listing.queue.as_ref()?;
    let letters = usize::try_from(queue.dead_letters).unwrap_or(usize::MAX);
    let workers = queue.workers.iter().map(|worker| {
        let name = escape::line(&worker.node);
        if worker.under_way == 0 { name.into_owned() } else { format!("{name} has {}", worker.under_way) }
    });
    let workers = workers.collect::<Vec<_>>().join(", ");
    let workers = if workers.is_empty() { "no worker answers".to_owned() } else { workers };
    let full = queue.percent_full();
    let full = if full < NEARLY_FULL { String::new() } else { format!(" ({full} % full)") };
    Some(format!(
        "{} waiting{full}, {} under way, {}; {workers}",
        queue.waiting,
        queue.under_way,
        plural(letters, "dead letter")
    ))
}

/// That what waited in the queue was lost, as long as somebody may want to know.
fn loss_line(listing: &ClusterListing) -> Option<String> {
    let queue = listing.queue.as_ref()?;
    let since = |age: Option<u64>| age.map(Duration::from_millis).filter(|age| *age < LOSS_TOLD);
    if let Some(age) = since(queue.made_again_ms) {
        let age = coarse_duration(age);
        return Some(format!(
            "was made again {age} ago: accepted events that waited in the former one are lost"
        ));
    }
    let age = coarse_duration(since(queue.lost_ms)?);
    Some(format!("lost accepted events {age} ago or before: the logs of nodes and workers say how"))
}

fn view(listing: &ClusterListing, screen: &Screen) -> String {
    let paint = screen.out.paint;
    let mut page = Page::default();
    let store = &listing.store;
    let leader = store.leader.as_deref().unwrap_or("nobody: no halt can be stored");
    let followers = store.followers.iter().map(|follower| {
        let name = escape::line(&follower.server);
        if follower.current { name.into_owned() } else { format!("{name} (behind, or away)") }
    });
    let followers = followers.collect::<Vec<_>>().join(", ");
    let followers = if followers.is_empty() { String::new() } else { format!("; {followers} follow") };
    page.line(&format!(
        "{}  NATS {} on {}; {} leads{followers}",
        paint.dim("store"),
        escape::line(&store.version),
        plural(store.replicas, "server"),
        escape::line(leader),
    ));
    page.line(&format!("{}  {}", paint.dim("halts"), listing.halts));
    if let Some(queue) = queue_line(listing) {
        page.line(&format!("{}  {queue}", paint.dim("queue")));
    }
    if let Some(loss) = loss_line(listing) {
        page.line(&format!("{}  {loss}", paint.dim("queue")));
    }
    if listing.nodes.is_empty() {
        page.line("no node has been heard of");
        return page.into_text();
    }
    let header =
        vec!["node", "phase", "heard", "version", "bundle", "hooks", "runs", "halts", "unstored", "instance"];
    let mut table = AdaptiveTable::new(header, paint).text_columns(&["phase", "version", "instance"]);
    for node in &listing.nodes {
        let number = |number: usize| if number == 0 { EMPTY_CELL.to_owned() } else { number.to_string() };
        table.add(vec![
            escape::line(&node.node).into_owned(),
            escape::line(&node.phase).into_owned(),
            format!("{} ago", coarse_duration(node.heard)),
            escape::line(&node.version).into_owned(),
            node.bundle.map_or_else(|| EMPTY_CELL.to_owned(), |version| version.to_string()),
            number(node.hooks),
            number(node.runs),
            number(node.halts),
            number(node.unstored),
            escape::line(&node.instance).into_owned(),
        ]);
    }
    page.block(&table.render("instance", screen.table_width()));
    page.into_text()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn listing(bytes: u64, made_again_ms: Option<u64>, lost_ms: Option<u64>) -> ClusterListing {
        let workers = json!([{"node": "w1", "instance": "1", "version": "1", "under_way": 2}]);
        let queue = QueueReport {
            waiting: 3,
            under_way: 2,
            bytes,
            max_bytes: Some(1000),
            made_again_ms,
            lost_ms,
            dead_letters: 1,
            workers: serde_json::from_value(workers).expect("a report"),
        };
        ClusterListing {
            store: StoreRow {
                version: "2.14.2".to_owned(),
                leader: None,
                replicas: 3,
                followers: Vec::new(),
            },
            halts: 0,
            nodes: Vec::new(),
            queue: Some(queue),
            queue_error: None,
        }
    }

    #[test]
    fn a_queue_that_is_nearly_full_or_has_lost_events_says_so() {
        let day = 24 * 3_600_000;
        for (bytes, made_again, lost, line, loss) in [
            (799, None, None, "3 waiting, 2 under way, 1 dead letter; w1 has 2", None),
            (
                800,
                Some(7 * day),
                Some(7 * day),
                "3 waiting (80 % full), 2 under way, 1 dead letter; w1 has 2",
                None,
            ),
            (
                0,
                Some(day),
                Some(day),
                "3 waiting, 2 under way, 1 dead letter; w1 has 2",
                Some("was made again 1 d 0 h ago: accepted events that waited in the former one are lost"),
            ),
            (
                0,
                None,
                Some(day),
                "3 waiting, 2 under way, 1 dead letter; w1 has 2",
                Some("lost accepted events 1 d 0 h ago or before: the logs of nodes and workers say how"),
            ),
        ] {
            let listing = listing(bytes, made_again, lost);
            assert_eq!(queue_line(&listing).as_deref(), Some(line));
            assert_eq!(loss_line(&listing).as_deref(), loss);
        }
    }
}
