//! The queue with a server of NATS: that of `HOOKYARD_NATS_SERVER`, as `scripts/test` sets it.
#![cfg(feature = "cli")]

mod losses;

use std::{
    path::Path,
    process::{Child, Command, Stdio},
    sync::Arc,
    time::{Duration, SystemTime},
};

use async_nats::jetstream::stream::DiscardPolicy;
use parking_lot::Mutex;
use tempfile::TempDir;

use super::{
    EventIntake, LifecycleQueue, NotPut, NotRetried, QueueOperator, QueueOptions, QueueWorker, QueuedEvent,
    held::HeldMessages, message::Death,
};
use crate::{
    model::{Event, EventId, EventKind, HookName, RunId, SessionId, WorkspaceId},
    store::{
        ClusterOptions, DeadLetter, DeadLetterReason, DeliveryProgress, OutboxRow, OutboxStore, WhenUnsure,
    },
};

/// A server that ends with the test.
pub(crate) struct Server {
    directory: TempDir,
    pub(crate) port: u16,
    process: Child,
}

impl Server {
    fn start() -> Self {
        Self::start_with("")
    }

    pub(crate) fn start_with(more: &str) -> Self {
        Self::start_that_syncs("always", more)
    }

    pub(crate) fn start_that_syncs(sync: &str, more: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let store = directory.path().join("store").display().to_string();
        let text = format!(
            "listen: \"127.0.0.1:{port}\"\njetstream {{ store_dir: \"{store}\", sync_interval: {sync}, max_file_store: 1GB }}\n{more}\n"
        );
        std::fs::write(directory.path().join("nats.conf"), text).unwrap();
        let process = Self::run(&directory);
        Self { directory, port, process }
    }

    #[expect(clippy::disallowed_methods, reason = "a server for the test")]
    fn run(directory: &TempDir) -> Child {
        let program =
            std::env::var_os("HOOKYARD_NATS_SERVER").expect("HOOKYARD_NATS_SERVER names a nats-server");
        let mut command = Command::new(program);
        command.arg("--config").arg(directory.path().join("nats.conf"));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }

    /// As `kill -9`, and its start.
    fn kill_and_start(&mut self) {
        self.kill();
        self.restart();
    }

    fn restart(&mut self) {
        self.process = Self::run(&self.directory);
    }

    /// Keeps a copy of what is on its disk, which is that of another time when it is put back.
    fn back_up(&mut self) {
        self.kill();
        copy(&self.directory.path().join("store"), &self.directory.path().join("backup"));
        self.restart();
    }

    fn restore(&mut self) {
        self.kill();
        std::fs::remove_dir_all(self.directory.path().join("store")).unwrap();
        copy(&self.directory.path().join("backup"), &self.directory.path().join("store"));
        self.restart();
    }

    pub(crate) fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    fn options(&self, node: &str) -> QueueOptions {
        QueueOptions {
            cluster: ClusterOptions {
                servers: vec![format!("nats://127.0.0.1:{}", self.port)],
                bucket: "test".to_owned(),
                credentials: None,
                replicas: 1,
                node: node.to_owned(),
                instance: format!("{node}-1"),
                run_forget: Duration::from_hours(1),
                stale_after: Duration::from_secs(2),
                when_unsure: WhenUnsure::Answer,
                is_strict: false,
            },
            size: 1 << 20,
            dead: 100,
            dead_size: 1 << 20,
            silence: Duration::from_secs(30),
            at_once: 1,
        }
    }

    async fn queue(&self, node: &str) -> LifecycleQueue {
        let queue = LifecycleQueue::connect(self.options(node)).await.unwrap();
        until(async || queue.open().await.is_ok(), "an open queue").await;
        queue
    }

    async fn worker(&self) -> (QueueWorker, Arc<Intake>) {
        let queue = self.queue("w1").await;
        let mut made = None;
        let worker = QueueWorker::start(queue, |held| {
            let intake = Arc::new(Intake { held, rows: Mutex::default(), settled: Mutex::default() });
            made = Some(Arc::clone(&intake));
            intake
        });
        (worker, made.unwrap())
    }
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &to);
        } else {
            std::fs::copy(entry.path(), to).unwrap();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Hooks that run until the test says otherwise.
struct Intake {
    held: Arc<HeldMessages>,
    rows: Mutex<Vec<OutboxRow>>,
    settled: Mutex<Vec<u64>>,
}

impl EventIntake for Intake {
    fn take_in(&self, row: OutboxRow) {
        self.rows.lock().push(row);
    }

    fn settled(&self, id: u64) {
        self.settled.lock().push(id);
    }
}

impl Intake {
    /// The event that comes as the one with this number, and how often its hooks have had it before.
    async fn taken(&self, number: usize) -> (u64, String, u32) {
        until(async || self.rows.lock().len() > number, "an event").await;
        let row = self.rows.lock()[number].clone();
        (row.id, row.event.id.as_ref().unwrap().to_string(), row.progress.deliveries)
    }

    async fn end(&self, id: u64) {
        self.held.remove(id);
        until(async || self.settled.lock().contains(&id), "the end of an event").await;
    }

    async fn die(&self, id: u64) {
        let letter = DeadLetter { reason: DeadLetterReason::Tries, at: SystemTime::now() };
        let error = Some("exit code 3".into());
        self.held.update(id, &DeliveryProgress { dead: Some(letter), error, ..DeliveryProgress::default() });
        until(async || self.settled.lock().contains(&id), "a dead letter").await;
    }
}

async fn until(mut condition: impl AsyncFnMut() -> bool, what: &str) {
    for _ in 0..6000 {
        if condition().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("waited a minute for {what}");
}

fn event(id: &str) -> QueuedEvent {
    let mut event =
        Event::new(EventKind::RunCompleted, SessionId::new("session").unwrap(), RunId::new("run").unwrap());
    event.id = EventId::new(id).ok();
    let workspace = WorkspaceId::new("shop").unwrap();
    QueuedEvent { workspace, event: Arc::new(event), delivery: 1, done: Vec::new(), required: Vec::new() }
}

#[tokio::test]
#[ignore = "needs a nats-server"]
async fn an_event_is_in_the_queue_once_until_its_hooks_have_ended() {
    let server = Server::start();
    let queue = server.queue("n1").await;
    let operator = QueueOperator::connect(server.options("operator")).await.unwrap();
    assert_eq!((queue.put(&event("a")).await, queue.put(&event("a")).await), (Ok(false), Ok(true)));
    queue.put(&event("b")).await.unwrap();
    let report = operator.report().await.unwrap().unwrap();
    assert_eq!((report.waiting, report.under_way, report.workers.len()), (2, 0, 0));
    let (_worker, intake) = server.worker().await;
    let (first, name, before) = intake.taken(0).await;
    assert_eq!((&*name, before), ("a", 0));
    let report = operator.report().await.unwrap().unwrap();
    assert_eq!((report.waiting, report.under_way), (1, 1), "one at a time");
    assert_eq!((&*report.workers[0].node, report.workers[0].under_way), ("w1", 1));
    intake.end(first).await;
    let (second, name, _) = intake.taken(1).await;
    assert_eq!(name, "b");
    intake.end(second).await;
    let report = operator.report().await.unwrap().unwrap();
    assert_eq!((report.waiting, report.under_way, report.bytes), (0, 0, 0));
}

#[tokio::test]
#[ignore = "needs a nats-server"]
async fn what_a_server_may_have_forgotten_runs_marked_or_not_again() {
    let mut server = Server::start();
    let queue = server.queue("n1").await;
    for id in ["a", "b"] {
        queue.put(&event(id)).await.unwrap();
    }
    let (_worker, intake) = server.worker().await;
    let (first, ..) = intake.taken(0).await;
    server.kill_and_start();
    intake.end(first).await;
    let (second, name, before) = intake.taken(1).await;
    assert_eq!((&*name, before), ("b", 1), "another worker may have had it");
    until(async || queue.put(&event("c")).await.is_ok(), "the queue").await;
    intake.end(second).await;
    let (third, name, before) = intake.taken(2).await;
    assert_eq!((&*name, before), ("c", 0), "it came later");
    intake.end(third).await;
    assert_eq!(intake.rows.lock().len(), 3, "what had ended did not run again");
}

#[tokio::test]
#[ignore = "needs a nats-server"]
async fn a_server_that_does_not_know_its_user_is_said_to() {
    let server = Server::start_with("authorization { user: hookyard, password: other }");
    let words = QueueOperator::connect(server.options("n1")).await.unwrap_err().to_string();
    assert!(words.contains("authorization violation") && words.contains("`cluster.credentials`"), "{words}");
}

#[tokio::test]
#[ignore = "needs a nats-server"]
async fn dead_letters_are_listed_tried_again_and_dropped() {
    let server = Server::start();
    let queue = server.queue("n1").await;
    let operator = QueueOperator::connect(server.options("operator")).await.unwrap();
    assert_eq!(operator.dead_letters(9).await.unwrap(), (Vec::new(), 0));
    queue.put(&event("a")).await.unwrap();
    let (_worker, intake) = server.worker().await;
    intake.die(intake.taken(0).await.0).await;
    let (letters, left_out) = operator.dead_letters(9).await.unwrap();
    let [letter] = &*letters else { panic!("{letters:?}") };
    assert_eq!((&*letter.reason, &*letter.error, &*letter.worker), ("tries", "exit code 3", "w1"));
    assert_eq!((letter.taken, left_out, letter.summary.run.as_deref()), (1, 0, Some("run")));
    assert!(matches!(operator.retry(letter.id + 1).await, Err(NotRetried::Unknown)));
    operator.retry(letter.id).await.unwrap();
    let (again, name, before) = intake.taken(1).await;
    assert_eq!((&*name, before), ("a", 1), "it is a repetition");
    assert!(operator.dead_letter(letter.id).await.unwrap().is_none());
    intake.die(again).await;
    let bad = queue.client().publish(queue.queue_subject("run_completed"), "no event".into()).await;
    bad.unwrap();
    until(async || operator.dead_letters(9).await.unwrap().0.len() == 2, "a second letter").await;
    let (letters, _) = operator.dead_letters(9).await.unwrap();
    let (first, left_out) = operator.dead_letters(1).await.unwrap();
    assert_eq!((first.len(), first[0].id, left_out), (1, letters[0].id, 1));
    assert!(matches!(operator.retry(letters[1].id).await, Err(NotRetried::Unreadable(_))));
    for letter in &letters {
        assert!(operator.drop_letter(letter.id).await.unwrap());
        assert!(!operator.drop_letter(letter.id).await.unwrap(), "it is gone");
    }
    assert_eq!(operator.report().await.unwrap().unwrap().dead_letters, 0);
}

/// What is said of a message that a stream does not take.
#[tokio::test]
#[ignore = "needs a nats-server"]
async fn a_stream_that_has_no_room_is_named() {
    let account = "accounts { A { jetstream: { max_file: 64KB }, users: [{ user: u, password: p }] } }\nno_auth_user: u";
    for (what, server, (bytes, messages), is_dead, words) in [
        ("bytes", "", (20_000, -1), false, "the stream QUEUE_test is full: start more workers, or raise"),
        ("events", "", (-1, 3), false, "the stream QUEUE_test is full: start more workers, or raise"),
        ("bytes of letters", "", (20_000, -1), true, "the stream DEAD_test is full: raise its limits"),
        ("letters", "", (-1, 3), true, "the stream DEAD_test is full: raise its limits"),
        (
            "the account",
            account,
            (-1, -1),
            false,
            "no room for the stream QUEUE_test: raise their `max_file_store`",
        ),
        ("the account, by letters", account, (-1, -1), true, "no room for the stream DEAD_test: raise"),
    ] {
        let server = Server::start_with(server);
        let mut options = server.options("n1");
        (options.size, options.dead_size) = (30_000, 30_000);
        let queue = LifecycleQueue::connect(options).await.unwrap();
        until(async || queue.open().await.is_ok(), "an open queue").await;
        let name = if is_dead { queue.dead_name() } else { queue.queue_name() };
        let mut config = queue.jetstream().get_stream(name).await.unwrap().cached_info().config.clone();
        // As an operator may change it.
        (config.max_bytes, config.max_messages, config.discard) = (bytes, messages, DiscardPolicy::New);
        queue.jetstream().update_stream(config).await.unwrap();
        let mut refused = None;
        for number in 0..100 {
            let put = if is_dead {
                let death = Death { reason: "tries", error: None, taken: 1 };
                queue.bury(number, &[b'x'; 3000], &death).await
            } else {
                let mut event = event(&format!("{what}{number}"));
                event.done = (0..100).map(|hook| HookName::new(format!("hook-{hook}")).unwrap()).collect();
                queue.put(&event).await
            };
            refused = put.err();
            if refused.is_some() {
                break;
            }
        }
        let Some(NotPut::NotSent(why)) = refused else { panic!("{what}: {refused:?}") };
        assert!(why.contains(words), "{what}: {why}");
    }
}

#[tokio::test]
#[ignore = "needs a nats-server"]
async fn a_worker_without_an_open_request_marks_what_comes_of_a_consumer_that_was_made_again() {
    let server = Server::start();
    let queue = server.queue("n1").await;
    for id in ["a", "b"] {
        queue.put(&event(id)).await.unwrap();
    }
    let (_worker, intake) = server.worker().await;
    let (first, ..) = intake.taken(0).await;
    // The worker has all that it may have, and asks for nothing.
    tokio::time::sleep(Duration::from_millis(500)).await;
    let other = server.queue("w2").await;
    other.queue_stream().await.unwrap().delete_consumer(super::streams::WORKERS).await.unwrap();
    let consumer = other.consumer().await.unwrap();
    drop(consumer);
    intake.end(first).await;
    let (second, name, before) = intake.taken(1).await;
    assert_eq!((&*name, before), ("b", 1), "another worker may have had it");
    intake.end(second).await;
    queue.put(&event("c")).await.unwrap();
    assert_eq!(intake.taken(2).await.2, 0, "it came later");
}

#[tokio::test]
#[ignore = "needs a nats-server"]
async fn a_worker_that_ends_is_no_namesake() {
    let server = Server::start();
    let ((former, _), (_worker, _)) = (server.worker().await, server.worker().await);
    let operator = QueueOperator::connect(server.options("operator")).await.unwrap();
    let ending = async || {
        let report = operator.report().await.unwrap().unwrap();
        report
            .workers
            .iter()
            .map(|worker| (worker.pid > 0 && !worker.machine.is_empty(), worker.ending))
            .collect::<Vec<_>>()
    };
    until(async || ending().await.len() == 2, "two workers").await;
    assert_eq!(ending().await, [(true, false), (true, false)]);
    former.stop_pulling();
    let mut found = ending().await;
    found.sort_unstable();
    assert_eq!(found, [(true, false), (true, true)]);
}
