//! Events that the queue has lost, and what looks like it.

use futures_util::StreamExt;

use super::*;

fn lost(queue: &LifecycleQueue) -> u64 {
    queue.seen().losses()
}

async fn put(queue: &LifecycleQueue, name: &str, count: usize) {
    for number in 0..count {
        let event = event(&format!("{name}{number}"));
        until(async || queue.put(&event).await.is_ok(), "an event in the queue").await;
    }
}

async fn look(queue: &LifecycleQueue) {
    until(async || queue.look(true).await.is_ok_and(|is_known| is_known), "a look at the queue").await;
}

#[tokio::test]
#[ignore = "needs a nats-server"]
async fn a_queue_that_was_deleted_and_made_again_is_noticed() {
    let server = Server::start();
    let (node, other) = (server.queue("n1").await, server.queue("w1").await);
    put(&node, "a", 3).await;
    other.open().await.unwrap();
    assert_eq!((lost(&node), lost(&other)), (0, 0), "it is the same");
    other.jetstream().delete_stream(other.queue_name()).await.unwrap();
    other.open().await.unwrap();
    assert_eq!(lost(&other), 1, "by one that opens it");
    assert_eq!(node.put(&event("c")).await, Ok(false));
    assert_eq!(lost(&node), 1, "by one that puts events there");
    assert_eq!(node.put(&event("d")).await, Ok(false));
    assert_eq!(lost(&node), 1, "once");
}

/// What is done after a queue was set back: whether the node is told by an event that it puts there, and how much others put there.
#[tokio::test]
#[ignore = "needs a nats-server"]
async fn a_queue_that_was_set_back_is_noticed_by_few_events_and_when_others_have_filled_it() {
    for (what, filled, puts) in
        [("by a look", 0, false), ("when others filled it", 6, false), ("by an event", 0, true)]
    {
        let mut server = Server::start();
        let (node, worker) = (server.queue("n1").await, server.queue("w1").await);
        put(&node, "a", 2).await;
        server.back_up();
        look(&node).await;
        put(&node, "b", 3).await;
        for queue in [&node, &worker] {
            look(queue).await;
            look(queue).await;
        }
        assert_eq!((lost(&node), lost(&worker)), (0, 0), "{what}: it is as it was");
        server.restore();
        put(&server.queue("n2").await, "c", filled).await;
        if puts {
            put(&node, "d", 1).await;
            assert_eq!(lost(&node), 1, "{what}");
        }
        for queue in [&node, &worker] {
            look(queue).await;
            assert_eq!(lost(queue), 1, "{what}");
        }
        put(&node, "e", 5).await;
        for queue in [&node, &worker] {
            look(queue).await;
            assert_eq!(lost(queue), 1, "{what}: once");
        }
    }
}

#[tokio::test]
#[ignore = "needs a nats-server"]
async fn events_that_are_removed_before_a_worker_had_them_are_noticed() {
    let server = Server::start();
    let (node, worker) = (server.queue("n1").await, server.queue("w1").await);
    let stream = node.queue_stream().await.unwrap();
    let mut expected = 0;
    for has_consumer in [false, true] {
        if has_consumer {
            worker.consumer().await.unwrap();
        }
        for single in [false, true] {
            look(&node).await;
            put(&node, &format!("{has_consumer}{single}"), 3).await;
            look(&node).await;
            assert_eq!(lost(&node), expected, "they wait");
            if single {
                let last = node.queue_stream().await.unwrap().cached_info().state.last_sequence;
                stream.delete_message(last - 1).await.unwrap();
                // It is passed over once the others are given out.
                let consumer = worker.consumer().await.unwrap();
                let mut taken = consumer.fetch().max_messages(2).messages().await.unwrap();
                while let Some(message) = taken.next().await {
                    message.unwrap().double_ack().await.unwrap();
                }
            } else {
                stream.purge().await.unwrap();
            }
            look(&node).await;
            expected += 1;
            assert_eq!(lost(&node), expected, "consumer: {has_consumer}, one of them: {single}");
            look(&node).await;
            assert_eq!(lost(&node), expected, "once");
        }
    }
}

#[tokio::test]
#[ignore = "needs a nats-server"]
async fn work_and_servers_that_are_killed_lose_nothing_and_nothing_is_said() {
    let mut server = Server::start();
    let node = server.queue("n1").await;
    let (_worker, intake) = server.worker().await;
    let mut ended = 0;
    for round in 0..4 {
        put(&node, &format!("r{round}"), 20).await;
        look(&node).await;
        for _ in 0..15 {
            intake.end(intake.taken(ended).await.0).await;
            ended += 1;
        }
        if round % 2 == 0 {
            server.kill_and_start();
        }
        look(&node).await;
        for _ in 0..5 {
            intake.end(intake.taken(ended).await.0).await;
            ended += 1;
        }
        look(&node).await;
        assert_eq!(lost(&node), 0, "round {round}");
    }
}

#[tokio::test]
#[ignore = "needs a nats-server"]
async fn a_worker_takes_an_event_for_no_other_one_that_had_its_number() {
    let mut server = Server::start();
    let node = server.queue("n1").await;
    put(&node, "a", 1).await;
    let (worker, intake) = server.worker().await;
    intake.end(intake.taken(0).await.0).await;
    server.back_up();
    put(&node, "b", 2).await;
    intake.end(intake.taken(1).await.0).await;
    let (held, name, _) = intake.taken(2).await;
    assert_eq!((held, &*name), (3, "b1"));
    server.restore();
    put(&server.queue("n2").await, "c", 3).await;
    until(async || worker.losses() == 1, "the worker to notice").await;
    intake.end(held).await;
    for number in 0..3 {
        let (id, name, _) = intake.taken(3 + number).await;
        assert!(name.starts_with('c'), "{name}");
        intake.end(id).await;
    }
    let operator = QueueOperator::connect(server.options("operator")).await.unwrap();
    let report = operator.report().await.unwrap().unwrap();
    assert_eq!((report.waiting, report.under_way, worker.losses()), (0, 0, 1));
    assert!(report.lost_ms.is_some(), "an operator hears of it");
}
