//! What a check of a start says of the store, with servers of NATS: those of `HOOKYARD_NATS_SERVER`.

use std::net::TcpListener;

use super::*;
use crate::{daemon::StartFindingLevel, store::NatsServer};

fn free_ports<const N: usize>() -> [u16; N] {
    let listeners = [(); N].map(|()| TcpListener::bind("127.0.0.1:0").expect("a port"));
    listeners.map(|listener| listener.local_addr().expect("an address").port())
}

fn settings(server: &NatsServer, monitoring: u16) -> Settings {
    let mut settings = Settings::default();
    let cluster = &mut settings.cluster;
    cluster.store = vec![format!("nats://127.0.0.1:{}", server.port)];
    cluster.monitoring = vec![Address::parse(&format!("http://127.0.0.1:{monitoring}")).expect("an address")];
    cluster.replicas = 1.try_into().expect("a number");
    cluster.lifecycle = LifecyclePlace::Queue;
    settings
}

/// The errors, after a while if the servers do not answer at first.
async fn errors(settings: &Settings) -> Vec<String> {
    for _ in 0..100 {
        let found = check_store(settings).await;
        if found.iter().all(|finding| finding.level != StartFindingLevel::Warning) {
            let errors = found.into_iter().filter(|finding| finding.level == StartFindingLevel::Error);
            return errors.map(|finding| format!("{}: {}", finding.subject, finding.message)).collect();
        }
        sleep(Duration::from_millis(100)).await;
    }
    panic!("the servers do not answer");
}

#[tokio::test]
#[ignore = "needs a nats-server"]
async fn a_check_finds_too_few_servers_and_a_queue_that_is_not_safe() {
    let [first, second, monitor, other_monitor] = free_ports();
    let member = |name: &str, own: u16, other: u16, http: u16| {
        NatsServer::start_with(&format!(
            "server_name: {name}\nhttp: \"127.0.0.1:{http}\"\ncluster {{ name: c, listen: \"127.0.0.1:{own}\", routes: \
             [\"nats://127.0.0.1:{own}\", \"nats://127.0.0.1:{other}\"] }}"
        ))
    };
    let server = member("s1", first, second, monitor);
    let _other = member("s2", second, first, other_monitor);
    let mut settings = settings(&server, monitor);
    assert_eq!(errors(&settings).await, [""; 0], "one server of two is enough");
    settings.cluster.replicas = 3.try_into().expect("a number");
    let [error] = &*errors(&settings).await else { panic!("one error") };
    assert!(error.contains("cannot be made on 3 servers: so many servers are there: 2"), "{error}");
    settings.cluster.replicas = 1.try_into().expect("a number");
    let queue = crate::store::LifecycleQueue::connect(queue_options(&settings)).await.expect("a connection");
    while queue.open().await.is_err() {
        sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(errors(&settings).await, [""; 0], "it is safe");
    settings.cluster.replicas = 2.try_into().expect("a number");
    let [error] = &*errors(&settings).await else { panic!("one error") };
    assert!(error.contains("`QUEUE_hookyard` has num_replicas 1, and events are safe only with"), "{error}");
}

#[tokio::test]
#[ignore = "needs a nats-server"]
async fn a_check_finds_a_server_that_syncs_late_also_when_it_is_trusted_or_the_store_is_away() {
    let [monitor] = free_ports();
    let server = NatsServer::start_that_syncs("2m", &format!("http: \"127.0.0.1:{monitor}\""));
    let mut settings = settings(&server, monitor);
    settings.cluster.trust_sync = true;
    let late = errors(&settings).await;
    assert!(late.len() == 1 && late[0].starts_with("cluster.monitoring: "), "{late:?}");
    let [nobody] = free_ports();
    settings.cluster.store = vec![format!("nats://127.0.0.1:{nobody}")];
    let found = check_store(&settings).await;
    let levels: Vec<_> = found.iter().map(|finding| finding.level).collect();
    assert_eq!(levels, [StartFindingLevel::Warning, StartFindingLevel::Error], "{found:?}");
}
