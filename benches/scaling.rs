//! Prints how the cost of an event grows with what there is: hooks, open runs, the payload, hooks one after the other,
//! hooks at the same time, and cores. Each row has the figure for the least as its floor, from the same run. Groups can be
//! named: `cargo bench --bench scaling -- hooks runs payload serial fan-out cores`. Refuses to judge: it fails nothing.
#![allow(clippy::cast_precision_loss, reason = "figures are printed with three digits")]

mod common;

use std::{hint::black_box, time::Duration};

use common::{native_hooks, orchestrator, tool_event};
use hdrhistogram::Histogram;
use hookyard::{
    NativeHook, Orchestrator,
    model::{DialectName, Event, EventKind, Reply, RunId, SessionId},
};
use tokio::{runtime::Runtime, task::JoinSet, time::Instant};

/// The allocator of the program.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// How long events are sent for one figure.
const ROUND: Duration = Duration::from_millis(600);

fn main() {
    let named: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let wanted = |rows: &str| named.is_empty() || named.iter().any(|name| name == rows);
    // One thread, where one event is sent after the other: to wake another takes longer than most events.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    println!("| what | how much | an event | against the first | a second |");
    println!("| --- | --- | --- | --- | --- |");
    if wanted("hooks") {
        runtime.block_on(hooks());
    }
    if wanted("runs") {
        runtime.block_on(runs());
    }
    if wanted("payload") {
        runtime.block_on(payload());
    }
    if wanted("serial") {
        runtime.block_on(serial());
    }
    if wanted("fan-out") {
        runtime.block_on(fan_out());
    }
    if wanted("cores") {
        drop(runtime);
        cores();
    }
}

/// The rows of one group: each is compared with the first.
struct Rows {
    what: &'static str,
    first: Option<Duration>,
}

impl Rows {
    fn of(what: &'static str) -> Self {
        Self { what, first: None }
    }

    fn print(&mut self, how_much: &str, p50: Duration) {
        let first = *self.first.get_or_insert(p50);
        let (ratio, rate) = (p50.as_secs_f64() / first.as_secs_f64(), 1.0 / p50.as_secs_f64());
        println!("| {} | {how_much} | p50 {} | {ratio:.2} | {rate:.0} |", self.what, shown(p50));
    }
}

fn shown(time: Duration) -> String {
    match time.as_secs_f64() * 1e6 {
        micros if micros < 10.0 => format!("{micros:.2} µs"),
        micros if micros < 1e3 => format!("{micros:.0} µs"),
        micros => format!("{:.1} ms", micros / 1e3),
    }
}

/// The median time of an event, one after the other.
async fn p50<F: Future<Output = ()>>(mut one: impl FnMut(usize) -> F) -> Duration {
    let mut times = Histogram::<u64>::new(3).expect("a histogram");
    let begun = Instant::now();
    let mut number = 0;
    // At least a few, however long they take.
    while begun.elapsed() < ROUND || number < 5 {
        let one = one(number);
        let sent = Instant::now();
        one.await;
        times.record(u64::try_from(sent.elapsed().as_nanos()).unwrap_or(u64::MAX)).expect("it grows");
        number += 1;
    }
    Duration::from_nanos(times.value_at_quantile(0.5))
}

async fn dispatch(orchestrator: &Orchestrator, event: Event) {
    black_box(orchestrator.dispatch(event).await.expect("an outcome"));
}

/// Hooks of which none, and of which five want the event.
async fn hooks() {
    let mut rows = Rows::of("loaded hooks, none wants the event");
    for count in [10, 100, 1_000, 10_000] {
        let orchestrator = orchestrator(count, "^tool_#$").await;
        rows.print(&count.to_string(), p50(|_| dispatch(&orchestrator, tool_event(1))).await);
    }
    let mut rows = Rows::of("loaded hooks, five want the event");
    for count in [10, 100, 1_000, 10_000] {
        let five = (0..5).map(|number| proceeding(format!("five-{number}")).matcher("^Bash$"));
        let builder = five.fold(native_hooks(count - 5, "^tool_#$"), hookyard::Builder::native_hook);
        let orchestrator = builder.start().await.expect("an orchestrator");
        rows.print(&count.to_string(), p50(|_| dispatch(&orchestrator, tool_event(1))).await);
    }
}

fn proceeding(name: String) -> NativeHook {
    NativeHook::inline(name, [EventKind::BeforeToolDispatch], |_| Ok(Reply::proceed()))
}

/// Runs that are open, of which each event is of another one.
async fn runs() {
    let mut rows = Rows::of("open runs, each event in another one");
    let orchestrator = orchestrator(1, "Bash").await;
    let mut open = 0;
    for count in [1, 1_000, 100_000, 1_000_000] {
        for run in open..count {
            dispatch(&orchestrator, tool_event(run)).await;
        }
        open = count;
        // A step without common factors goes through all of them.
        let run = |number: usize| number.wrapping_mul(7_919) % count;
        rows.print(&count.to_string(), p50(|number| dispatch(&orchestrator, tool_event(run(number)))).await);
    }
}

/// Events of an agent, from their bytes, with one hook.
async fn payload() {
    let mut rows = Rows::of("bytes of an event of Claude Code");
    let orchestrator = orchestrator(1, "Write").await;
    for (shown, size) in [("1 KiB", 1 << 10), ("64 KiB", 64 << 10), ("1 MiB", 1 << 20), ("15 MiB", 15 << 20)]
    {
        let event = format!(
            r#"{{"session_id":"s","cwd":"/","hook_event_name":"PreToolUse","tool_name":"Write","tool_input":{{"file_path":"a","content":"{}"}}}}"#,
            "const a = 1;\\n".repeat(size / 14)
        );
        let one = |_| {
            let event = event.as_bytes();
            let orchestrator = &orchestrator;
            async move {
                black_box(orchestrator.dispatch_json(DialectName::Claude, event).await.expect("an outcome"));
            }
        };
        rows.print(shown, p50(one).await);
    }
}

async fn serial() {
    let mut rows = Rows::of("native hooks one after the other");
    for count in [1, 5, 20] {
        let orchestrator = orchestrator(count, "Bash").await;
        rows.print(&count.to_string(), p50(|_| dispatch(&orchestrator, tool_event(1))).await);
    }
}

/// Lifecycle hooks, which run as tasks at the same time.
async fn fan_out() {
    let mut rows = Rows::of("lifecycle hooks at the same time");
    for count in [1, 10, 100, 1_000] {
        let hook = |number| {
            NativeHook::task(format!("hook-{number}"), [EventKind::RunCompleted], async |_| {
                Ok(Reply::proceed())
            })
        };
        let builder = (0..count).map(hook).fold(Orchestrator::builder(), hookyard::Builder::native_hook);
        let orchestrator = builder.start().await.expect("an orchestrator");
        let event = |number: usize| {
            let id = format!("run-{}", number % 64);
            let (session, run) = (SessionId::new(&id).expect("an id"), RunId::new(&id).expect("an id"));
            Event::new(EventKind::RunCompleted, session, run)
        };
        rows.print(&count.to_string(), p50(|number| dispatch(&orchestrator, event(number))).await);
    }
}

/// 64 runs at the same time, on one core and on all.
fn cores() {
    let mut rows = Rows::of("threads, five native hooks in 64 runs");
    let all = std::thread::available_parallelism().map_or(1, usize::from);
    let counts = (0..).map(|power| 1 << power).take_while(|count| *count <= all);
    for count in counts {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(count).enable_all().build();
        rows.print(&count.to_string(), at_once(&runtime.expect("a runtime")));
    }
}

/// The mean time between two answers.
fn at_once(runtime: &Runtime) -> Duration {
    const EACH: u32 = 4_000;
    const RUNS: u32 = 64;
    runtime.block_on(async {
        let orchestrator = orchestrator(5, "Bash").await;
        let begun = Instant::now();
        let mut runs = JoinSet::new();
        for run in 0..RUNS as usize {
            let orchestrator = orchestrator.clone();
            runs.spawn(async move {
                for _ in 0..EACH {
                    dispatch(&orchestrator, tool_event(run)).await;
                }
            });
        }
        runs.join_all().await;
        begun.elapsed() / (RUNS * EACH)
    })
}
