//! Workers say that they are there: to operators, and to each other, since no two may have one name.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use async_nats::Client;
use futures_util::StreamExt;
use tokio::time::{Instant, sleep, timeout_at};

use super::{held::HeldMessages, message::WorkerReport, streams::LifecycleQueue};
use crate::store::shared::{ClusterError, unreachable};

/// How long workers may take to say that they are there.
const ROLL_CALL: Duration = Duration::from_millis(400);

/// The most workers that are heard.
const MOST_WORKERS: usize = 1000;

/// How often a worker looks for others of its name, and again for one that it has just found: one that hands over to this one ends soon.
const PAUSE: Duration = Duration::from_mins(5);
const PAUSE_FOR_FOUND: Duration = Duration::from_secs(3);

/// Between two attempts to hear questions.
const RETRY: Duration = Duration::from_millis(250);

/// Says that this worker is there whenever somebody asks.
pub(super) async fn answer(queue: Arc<LifecycleQueue>, held: Arc<HeldMessages>) {
    let own = &queue.options().cluster;
    loop {
        if let Ok(mut asked) = queue.client().subscribe(queue.roll_call_subject()).await {
            while let Some(question) = asked.next().await {
                let Some(asker) = question.reply else { continue };
                let report = WorkerReport {
                    node: own.node.clone(),
                    instance: own.instance.clone(),
                    version: env!("CARGO_PKG_VERSION").to_owned(),
                    machine: machine(),
                    pid: std::process::id(),
                    under_way: held.len(),
                    ending: held.are_last(),
                    queue_lost_ms: queue.lost_ms(),
                };
                let report = serde_json::to_vec(&report).expect("texts and numbers");
                // Whoever asked does not list this worker if it fails.
                drop(queue.client().publish(asker, report.into()).await);
            }
        }
        sleep(RETRY).await;
    }
}

/// The workers that say they are there, by name.
///
/// Returns an error if they cannot be asked.
pub(super) async fn ask(client: &Client, subject: String) -> Result<Vec<WorkerReport>, ClusterError> {
    let inbox = client.new_inbox();
    let mut answers = client.subscribe(inbox.clone()).await.map_err(|error| unreachable(&error))?;
    let asked = client.publish_with_reply(subject, inbox, "".into()).await;
    asked.map_err(|error| unreachable(&error))?;
    let end = Instant::now() + ROLL_CALL;
    let mut workers = Vec::new();
    while workers.len() < MOST_WORKERS
        && let Ok(Some(answer)) = timeout_at(end, answers.next()).await
    {
        workers.extend(serde_json::from_slice::<WorkerReport>(&answer.payload));
    }
    workers.sort_by(|a, b| (&a.node, &a.instance).cmp(&(&b.node, &b.instance)));
    Ok(workers)
}

/// Says so if another worker has the name of this one, and goes on.
pub(super) async fn look_for_namesakes(queue: Arc<LifecycleQueue>) {
    let own = &queue.options().cluster;
    let mut found = Namesakes::default();
    loop {
        let workers = ask(queue.client(), queue.roll_call_subject()).await.unwrap_or_default();
        for other in found.told(&own.node, &own.instance, &workers) {
            let WorkerReport { machine: other_machine, pid: other_pid, .. } = other;
            let (machine, pid) = (machine(), std::process::id());
            tracing::error!(
                worker = own.node,
                machine,
                pid,
                other_machine,
                other_pid,
                "another worker has the name of this one, so that nobody can tell which one has an event: give each its own `node`"
            );
        }
        sleep(if found.is_unsure() { PAUSE_FOR_FOUND } else { PAUSE }).await;
    }
}

fn machine() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// Other workers of the same name, and whether that was told.
#[derive(Debug, Default)]
struct Namesakes(BTreeMap<String, bool>);

impl Namesakes {
    /// Those that have been there twice and that nobody was told of. One that ends is none.
    fn told<'a>(&mut self, name: &str, instance: &str, workers: &'a [WorkerReport]) -> Vec<&'a WorkerReport> {
        let former = std::mem::take(&mut self.0);
        let mut told = Vec::new();
        for other in workers {
            if other.node != name || other.instance == instance || other.ending {
                continue;
            }
            let known = former.get(&other.instance);
            if known == Some(&false) {
                told.push(other);
            }
            self.0.insert(other.instance.clone(), known.is_some());
        }
        told
    }

    /// Whether one was found that may end soon.
    fn is_unsure(&self) -> bool {
        self.0.values().any(|is_told| !is_told)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namesake_that_stays_is_told_once_and_one_that_ends_is_not() {
        let worker = |(node, instance, ending): &(&str, &str, bool)| WorkerReport {
            node: (*node).to_owned(),
            instance: (*instance).to_owned(),
            version: "1".to_owned(),
            machine: String::new(),
            pid: 0,
            under_way: 0,
            ending: *ending,
            queue_lost_ms: None,
        };
        let (own, other, third) = (("w", "1", false), ("w", "2", false), ("w", "3", false));
        for (what, calls, expected) in [
            ("alone", vec![vec![own], vec![own, ("v", "2", false)]], vec![]),
            ("one that stays", vec![vec![own, other], vec![own, other], vec![own, other]], vec!["2"]),
            ("one that was replaced", vec![vec![own, other], vec![own]], vec![]),
            ("one that ends", vec![vec![own, other], vec![own, ("w", "2", true)], vec![own, other]], vec![]),
            ("two", vec![vec![own, other], vec![other, third], vec![third]], vec!["2", "3"]),
        ] {
            let mut found = Namesakes::default();
            let calls: Vec<Vec<_>> = calls.iter().map(|call| call.iter().map(worker).collect()).collect();
            let mut told = Vec::new();
            for call in &calls {
                told.extend(found.told("w", "1", call).into_iter().map(|other| &*other.instance));
            }
            assert_eq!(told, expected, "{what}");
        }
    }
}
