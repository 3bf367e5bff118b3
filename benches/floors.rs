//! Prints what hookyard costs beside the least it could cost: each figure is measured alternately with its
//! floor, in one run, on one machine. Rows can be named: `cargo bench --bench floors -- oneshot modes`, or
//! `-- halts outbox cancel store restart`. Refuses to
//! judge: it fails nothing.
#![allow(clippy::cast_precision_loss, reason = "figures are printed with three digits")]

mod common;
mod models;
mod modes;
mod rules;
mod runs;
mod store;
mod trust;

use std::{
    process::Stdio,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicUsize, Ordering},
    },
};

use common::{SHAPES, orchestrator, runtime, tool_event, with_hook};
use hdrhistogram::Histogram;
use hookyard::{
    Orchestrator,
    config::{HttpSettings, Settings},
    telemetry::PrometheusMetrics,
};
use ractor::{Actor, ActorProcessingErr, ActorRef, RpcReplyPort};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    task::JoinSet,
    time::Instant,
};

/// Pairs of rounds; the median of the pairs' ratios is what counts.
const PAIRS: usize = 15;

/// The allocator of the program.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    let runtime = runtime();
    let named: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let wanted = |rows: &str| named.is_empty() || named.iter().any(|name| name == rows);
    println!("| what | hookyard | floor | ratio | goal |");
    println!("| --- | --- | --- | --- | --- |");
    for (shape, pattern) in SHAPES.into_iter().filter(|_| wanted("plan")) {
        runtime.block_on(nothing_to_run(shape, pattern));
    }
    if wanted("native") {
        runtime.block_on(five_native_hooks());
    }
    if wanted("oneshot") {
        runtime.block_on(oneshot());
    }
    if wanted("http") {
        runtime.block_on(http());
    }
    if wanted("models") {
        runtime.block_on(models::print());
    }
    if wanted("modes") {
        runtime.block_on(modes::print());
    }
    if wanted("rules") {
        runtime.block_on(rules::print());
    }
    if wanted("trust") {
        runtime.block_on(trust::print());
    }
    if wanted("runs") {
        runtime.block_on(runs::print());
    }
    if wanted("halts") {
        runtime.block_on(store::halts());
    }
    if wanted("outbox") {
        runtime.block_on(store::outbox());
    }
    if wanted("cancel") {
        runtime.block_on(store::cancel());
    }
    if wanted("store") {
        runtime.block_on(store::hot_path());
    }
    if wanted("restart") {
        runtime.block_on(store::restart());
    }
    // Last: from here on the metrics are recorded.
    if wanted("recorded") {
        runtime.block_on(recorded());
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// The median time of one dispatch, in nanoseconds.
async fn dispatch_p50(orchestrator: &Orchestrator) -> f64 {
    let mut times = Histogram::<u64>::new(3).expect("a histogram");
    let event = tool_event(1);
    for _ in 0..20_000 {
        let event = event.clone();
        let begun = Instant::now();
        std::hint::black_box(orchestrator.dispatch(event).await.expect("an outcome"));
        let time = u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
        times.record(time).expect("a histogram grows with its values");
    }
    times.value_at_quantile(0.5) as f64
}

async fn nothing_to_run(shape: &str, pattern: &str) {
    let (few, many) = (orchestrator(10, pattern).await, orchestrator(10_000, pattern).await);
    let (mut with_few, mut with_many) = (Vec::new(), Vec::new());
    for _ in 0..PAIRS {
        with_few.push(dispatch_p50(&few).await);
        with_many.push(dispatch_p50(&many).await);
    }
    assert_eq!(many.run_count().known, 0, "an event with nothing to run touches no actor");
    let (few, many) = (median(with_few), median(with_many));
    let ratio = many / few;
    println!(
        "| event with nothing to run, 10,000 hooks ({shape}) | p50 {many:.0} ns | 10 hooks: {few:.0} ns | {ratio:.2} | ≤ 1 µs, ≤ 3 |"
    );
}

/// An actor that answers, and nothing else.
struct Echo;

impl Actor for Echo {
    type Msg = RpcReplyPort<()>;
    type State = ();
    type Arguments = ();

    async fn pre_start(&self, _: ActorRef<Self::Msg>, (): ()) -> Result<(), ActorProcessingErr> {
        Ok(())
    }

    async fn handle(
        &self,
        _: ActorRef<Self::Msg>,
        port: Self::Msg,
        (): &mut (),
    ) -> Result<(), ActorProcessingErr> {
        Ok(port.send(())?)
    }
}

/// Calls in 64 tasks at once; returns how many were made in a second.
async fn rate<F: Future<Output = ()> + Send + 'static>(each: usize, work: impl Fn(usize) -> F) -> f64 {
    let begun = Instant::now();
    let mut tasks = JoinSet::new();
    for task in 0..64 {
        tasks.spawn(work(task));
    }
    tasks.join_all().await;
    (64 * each) as f64 / begun.elapsed().as_secs_f64()
}

/// How many events of 64 runs at once are answered in a second.
async fn speed(orchestrator: &Orchestrator, each: usize) -> f64 {
    let one = |run: usize| {
        let orchestrator = orchestrator.clone();
        async move {
            let event = tool_event(run);
            for _ in 0..each {
                orchestrator.dispatch(event.clone()).await.expect("an outcome");
            }
        }
    };
    rate(each, one).await
}

#[allow(clippy::disallowed_methods, reason = "the floor is measured without our supervisor")]
async fn five_native_hooks() {
    const EACH: usize = 2_000;
    let orchestrator = orchestrator(5, "Bash").await;
    let mut echoes = Vec::new();
    for _ in 0..64 {
        echoes.push(Actor::spawn(None, Echo, ()).await.expect("an actor").0);
    }
    let bare = |task: usize| {
        let echo = echoes[task].clone();
        async move {
            for _ in 0..EACH {
                ractor::call!(echo, |port| port).expect("an answer");
            }
        }
    };
    let (mut hookyard, mut floor) = (Vec::new(), Vec::new());
    for _ in 0..PAIRS {
        hookyard.push(speed(&orchestrator, EACH).await);
        floor.push(rate(EACH, bare).await);
    }
    let (hookyard, floor) = (median(hookyard), median(floor));
    let ratio = hookyard / floor;
    println!(
        "| 5 serial native hooks, 64 runs at once | {hookyard:.0} events/s | one ractor call: {floor:.0}/s | {ratio:.2} | ≥ 100,000/s |"
    );
}

/// What it costs that somebody records the metrics. Handles are resolved when hooks are loaded, so an orchestrator from
/// before there is a recorder goes without one.
async fn recorded() {
    const EACH: usize = 5_000;
    let rows = [
        ("event with nothing to run", 10, "^tool_#$", "≥ 0.90"),
        ("5 serial native hooks", 5, "Bash", "≥ 0.95"),
    ];
    let mut without = Vec::new();
    for (_, hooks, pattern, _) in rows {
        without.push(orchestrator(hooks, pattern).await);
    }
    PrometheusMetrics::install().expect("the only recorder");
    for ((what, hooks, pattern, goal), without) in rows.into_iter().zip(&without) {
        let with = orchestrator(hooks, pattern).await;
        let (mut ours, mut floors, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..PAIRS {
            let (recorded, plain) = (speed(&with, EACH).await, speed(without, EACH).await);
            ours.push(recorded);
            floors.push(plain);
            ratios.push(recorded / plain);
        }
        let (ours, floor, ratio) = (median(ours), median(floors), median(ratios));
        println!(
            "| {what}, metrics recorded | {ours:.0} events/s | no recorder: {floor:.0}/s | {ratio:.2} | {goal} |"
        );
    }
}

/// So many calls in all, so many of them at once; returns how many were made in a second.
async fn calls<F: Future<Output = ()> + Send + 'static>(
    total: usize,
    at_once: usize,
    one: impl Fn(usize) -> F + Copy + Send + 'static,
) -> f64 {
    let taken = Arc::new(AtomicUsize::new(0));
    let begun = Instant::now();
    let mut tasks = JoinSet::new();
    for task in 0..at_once {
        let taken = Arc::clone(&taken);
        tasks.spawn(async move {
            while taken.fetch_add(1, Ordering::Relaxed) < total {
                one(task).await;
            }
        });
    }
    tasks.join_all().await;
    total as f64 / begun.elapsed().as_secs_f64()
}

async fn oneshot() {
    let hook =
        "name: nothing\nevents: [before_tool_dispatch]\nhandler:\n  type: command\n  command: 'true'\n";
    let (workspace, orchestrator) = with_hook(hook, Settings::default()).await;
    // A reference that lives as long as the program makes the closures `Copy`.
    let orchestrator: &'static Orchestrator = Box::leak(Box::new(orchestrator));
    let ours = move |run: usize| async move {
        let outcome = orchestrator.dispatch(tool_event(run)).await.expect("an outcome");
        assert!(outcome.hooks[0].error.is_none(), "{outcome:?}");
    };
    let (hookyard, floor, ratio) = compare(400, 16, ours, bare).await;
    println!(
        "| oneshot command hook `true`, 16 at once | {hookyard:.0}/s | bare tokio Command: {floor:.0}/s | {ratio:.2} | ≥ 1.00 |"
    );
    drop(workspace);
}

/// Measures two kinds of calls in turns; returns the median rate of each, and of their ratio.
async fn compare<A, B>(
    total: usize,
    at_once: usize,
    ours: impl Fn(usize) -> A + Copy + Send + 'static,
    bare: impl Fn(usize) -> B + Copy + Send + 'static,
) -> (f64, f64, f64)
where
    A: Future<Output = ()> + Send + 'static,
    B: Future<Output = ()> + Send + 'static,
{
    let (mut hookyard, mut floor, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    calls(total, at_once, ours).await;
    calls(total, at_once, bare).await;
    for pair in 0..PAIRS {
        // The order within a pair alternates too: whoever comes second finds the caches warm.
        let (a, b) = if pair % 2 == 0 {
            let a = calls(total, at_once, ours).await;
            (a, calls(total, at_once, bare).await)
        } else {
            let b = calls(total, at_once, bare).await;
            (calls(total, at_once, ours).await, b)
        };
        hookyard.push(a);
        floor.push(b);
        ratios.push(a / b);
    }
    (median(hookyard), median(floor), median(ratios))
}

#[allow(clippy::disallowed_methods, reason = "the floor is measured without our own code")]
async fn bare(_: usize) {
    let mut child = tokio::process::Command::new("/bin/sh")
        .args(["-c", "true"])
        .env_clear()
        .envs(["PATH", "HOME", "LANG"].into_iter().filter_map(|name| Some((name, std::env::var_os(name)?))))
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("a process");
    let mut stdin = child.stdin.take().expect("a pipe");
    let mut stdout = child.stdout.take().expect("a pipe");
    let mut stderr = child.stderr.take().expect("a pipe");
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let feed = async {
        // `true` may be gone before it is told anything.
        drop(stdin.write_all(&[b' '; 300]).await);
        drop(stdin);
    };
    let ((), out_read, err_read, status) =
        tokio::join!(feed, stdout.read_to_end(&mut out), stderr.read_to_end(&mut err), child.wait());
    assert!(out_read.is_ok() && err_read.is_ok() && status.expect("a status").success());
}

/// A server that reads the whole request and has no opinion; it ends with the runtime. The first body it is sent
/// is kept.
async fn echo_server(first: Arc<OnceLock<axum::body::Bytes>>) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/", listener.local_addr().expect("an address"));
    let echo = async move |body: axum::body::Bytes| -> axum::body::Bytes {
        assert!(!body.is_empty());
        first.get_or_init(|| body);
        axum::body::Bytes::from_static(b"{}")
    };
    let router = axum::Router::new().route("/", axum::routing::post(echo));
    tokio::spawn(async move { axum::serve(listener, router).await });
    url
}

async fn http() {
    let envelope: &'static Arc<OnceLock<_>> = Box::leak(Box::default());
    let url: &'static str = Box::leak(echo_server(Arc::clone(envelope)).await.into_boxed_str());
    let hook = format!("name: asks\nevents: [before_tool_dispatch]\nhandler:\n  type: http\n  url: {url}\n");
    let allow = vec!["127.0.0.1".parse().expect("a target")];
    let settings = Settings { http: HttpSettings { allow }, ..Settings::default() };
    let (workspace, orchestrator) = with_hook(&hook, settings).await;
    // References that live as long as the program make the closures `Copy`.
    let orchestrator: &'static Orchestrator = Box::leak(Box::new(orchestrator));
    let client: &'static reqwest::Client = Box::leak(Box::new(bare_client()));
    let ours = move |run: usize| async move {
        let outcome = orchestrator.dispatch(tool_event(run)).await.expect("an outcome");
        assert!(outcome.hooks[0].error.is_none(), "{outcome:?}");
    };
    let bare = move |_: usize| async move {
        let request = client.post(url).header("content-type", "application/json");
        let request = request.header("x-hookyard-event", "before_tool_dispatch");
        let request = request.body(envelope.get().expect("ours was first").to_vec());
        let answer = request.send().await.expect("an answer").bytes().await.expect("a body");
        assert_eq!(answer, "{}");
    };
    let (hookyard, floor, ratio) = compare(10_000, 32, ours, bare).await;
    println!(
        "| http hook, 32 at once, loopback | {hookyard:.0}/s | reqwest → axum: {floor:.0}/s | {ratio:.2} | ≥ 0.85 |"
    );
    drop(workspace);
}

/// A client that sends what ours sends.
fn bare_client() -> reqwest::Client {
    reqwest::Client::builder()
        .tls_backend_preconfigured(no_tls())
        .user_agent(concat!("hookyard/", env!("CARGO_PKG_VERSION")))
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .referer(false)
        .no_proxy()
        .http1_only()
        .build()
        .expect("a client")
}

/// The bare client needs a provider of TLS, though it encrypts nothing.
fn no_tls() -> rustls::ClientConfig {
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(provider);
    let builder = builder.with_safe_default_protocol_versions().expect("versions");
    builder.with_root_certificates(rustls::RootCertStore::empty()).with_no_client_auth()
}
