//! Asks the other daemons whether they know a halt, and answers them: with `cluster.halts: strict`, a halt is answered once no
//! daemon answers events that does not know it.

use std::{collections::hash_map::Entry, sync::Arc, time::Duration};

use async_nats::Message;
use futures_util::{StreamExt, future::join_all};
use serde::{Deserialize, Serialize};
use tokio::{
    sync::oneshot,
    task::JoinSet,
    time::{Instant, sleep, sleep_until, timeout},
};

use super::core::ClusterCore;
use crate::model::RunKey;

/// How long a daemon may take to answer, before it is waited for until it knows by itself that it is not up to date.
const ANSWER_PATIENCE: Duration = Duration::from_millis(400);

/// How long a question waits for the message that it is about.
const READ_PATIENCE: Duration = Duration::from_millis(300);

/// The most questions that wait at once.
const MOST_QUESTIONS: usize = 1024;

/// How much longer than `cluster.stale_after` a daemon is waited for: two clocks do not run at the very same speed.
const CLOCK_MARGIN: Duration = Duration::from_millis(100);

/// The wait before questions are listened for anew.
const PAUSE: Duration = Duration::from_millis(250);

/// What a daemon answers that knows a halt.
const KNOWN: &[u8] = b"known";

/// Whether a daemon knows that a run is halted.
#[derive(Debug, Serialize, Deserialize)]
struct Question {
    workspace: String,
    run: String,
    /// The number of the message in the bucket that halts it.
    number: u64,
}

/// A receiver that is notified once no daemon answers events that does not know that a run is halted, or once it is not halted.
/// It costs a question to the others, once for each halt.
pub(super) fn known(core: &Arc<ClusterCore>, key: &RunKey) -> oneshot::Receiver<()> {
    let (notified, receiver) = oneshot::channel();
    if core.table.lock().may_be_answered(key) {
        // The receiver is there.
        notified.send(()).ok();
        return receiver;
    }
    match core.questions.lock().waiting.entry(key.clone()) {
        Entry::Occupied(mut asked) => asked.get_mut().push(notified),
        Entry::Vacant(vacant) => {
            vacant.insert(vec![notified]);
            tokio::spawn(ask(Arc::clone(core), key.clone()));
        }
    }
    receiver
}

async fn ask(core: Arc<ClusterCore>, key: RunKey) {
    let flushed = core.table.lock().flushed(Some(&key));
    // The sender lives as long as the core.
    flushed.await.ok();
    let asked = core.table.lock().unasked(&key);
    if let Some(number) = asked {
        known_by_all(&core, &key, number).await;
        core.table.lock().known_by_all(&key, number);
    }
    let waiting = core.questions.lock().waiting.remove(&key);
    for notified in waiting.into_iter().flatten() {
        // A send fails only if whoever waited has given up.
        notified.send(()).ok();
    }
}

/// Answers questions until the task is dropped.
pub(super) async fn answer(core: Arc<ClusterCore>) {
    let subject = core.bucket.inbox_of(&core.bucket.options().instance);
    loop {
        let mut waiting = JoinSet::new();
        if let Ok(mut questions) = core.bucket.client().subscribe(subject.clone()).await {
            while let Some(question) = questions.next().await {
                while waiting.try_join_next().is_some() {}
                if waiting.len() < MOST_QUESTIONS {
                    waiting.spawn(answer_one(Arc::clone(&core), question));
                }
            }
        }
        sleep(PAUSE).await;
    }
}

async fn answer_one(core: Arc<ClusterCore>, message: Message) {
    let (Some(asker), Ok(question)) = (message.reply, serde_json::from_slice::<Question>(&message.payload))
    else {
        return;
    };
    let Some(key) = RunKey::of_texts(question.workspace, question.run) else { return };
    let mut position = core.position.subscribe();
    // The sender lives as long as the core. A halt that is not known then is over, or not heard of: no answer.
    timeout(READ_PATIENCE, position.wait_for(|read| *read >= question.number)).await.ok();
    if core.listener.is_halted(&key) {
        // Whoever asked waits in vain if this fails, for as long as without an answer.
        drop(core.bucket.client().publish(asker, KNOWN.into()).await);
    }
}

/// Waits until no daemon answers events that does not know that a run is halted. The message that says so has this number.
pub(super) async fn known_by_all(core: &ClusterCore, key: &RunKey, number: u64) {
    let stale_after = core.bucket.options().stale_after + CLOCK_MARGIN;
    // Whoever has not read the message by then takes itself for not up to date.
    let latest = Instant::now() + stale_after;
    let mut position = core.position.subscribe();
    // Until it is read here, other daemons may have been heard of that are not known yet.
    if timeout(stale_after, position.wait_for(|read| *read >= number)).await.is_err() {
        return;
    }
    let others = core.heard_within(stale_after);
    // Among the messages that were missed may be the beats of a daemon that nothing else was heard of.
    let are_all = !core.has_missed_within(stale_after);
    let answers = join_all(others.iter().map(|instance| knows(core, instance, key, number))).await;
    if !are_all || !answers.into_iter().all(|knows| knows) {
        sleep_until(latest).await;
    }
}

async fn knows(core: &ClusterCore, instance: &str, key: &RunKey, number: u64) -> bool {
    let question = Question { workspace: key.workspace.to_string(), run: key.run.to_string(), number };
    let question = serde_json::to_vec(&question).expect("texts and a number");
    let asked = core.bucket.client().request(core.bucket.inbox_of(instance), question.into());
    matches!(timeout(ANSWER_PATIENCE, asked).await, Ok(Ok(answer)) if answer.payload == KNOWN)
}
