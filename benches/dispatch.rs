//! What an event costs from the library's front door to its outcome, beside a bare actor call and a bare
//! process in the same run.

use std::{hint::black_box, time::Duration};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use hookyard::{
    NativeHook, Orchestrator,
    model::{Event, EventKind, Json, Reply, RunId, SessionId, Target},
};
use tokio::{runtime::Runtime, task::JoinSet};

/// Runs at the same time.
const RUNS: u64 = 64;

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime")
}

fn tool_event(run: u64, tool: &str) -> Event {
    let id = format!("run-{run}");
    let session = SessionId::new(&id).expect("an id");
    let mut event = Event::new(EventKind::BeforeToolDispatch, session, RunId::new(&id).expect("an id"));
    event.facts.tool_name = Some(tool.into());
    event.targets.set(Target::ToolInput, Json::parse(r#"{"command":"npm run lint"}"#).expect("JSON"));
    event
}

async fn with_hooks(count: usize, matcher: impl Fn(usize) -> String) -> Orchestrator {
    let hook =
        |number: usize| {
            NativeHook::inline(format!("hook-{number}"), [EventKind::BeforeToolDispatch], |_| {
                Ok(Reply::proceed())
            })
            .matcher(matcher(number))
        };
    let builder =
        (0..count).fold(Orchestrator::builder(), |builder, number| builder.native_hook(hook(number)));
    builder.start().await.expect("an orchestrator")
}

fn nothing_to_run(c: &mut Criterion) {
    let runtime = runtime();
    let mut group = c.benchmark_group("nothing_to_run");
    // `#` stands for the hook's number: whole names, parts of names, and what only a pattern can say.
    for (shape, pattern) in
        [("exact", "^tool_#$"), ("contained", "tool_#_"), ("patterns", "^mcp__server_#__.*_write$")]
    {
        let matcher = |number: usize| pattern.replace('#', &number.to_string());
        for count in [10, 10_000] {
            let orchestrator = runtime.block_on(with_hooks(count, matcher));
            let event = tool_event(1, "Bash");
            group.bench_function(format!("{shape}/{count}"), |b| {
                b.iter_batched(
                    || event.clone(),
                    |event| runtime.block_on(orchestrator.dispatch(black_box(event))).expect("an outcome"),
                    criterion::BatchSize::SmallInput,
                );
            });
            assert_eq!(orchestrator.run_count().known, 0, "an event with nothing to run touches no actor");
        }
    }
    group.finish();
}

fn five_native_hooks(c: &mut Criterion) {
    let runtime = runtime();
    let orchestrator = runtime.block_on(with_hooks(5, |_| "Bash".to_owned()));
    let mut group = c.benchmark_group("five_native_hooks");
    let each = 100;
    group
        .throughput(Throughput::Elements(RUNS * each))
        .sample_size(20)
        .measurement_time(Duration::from_secs(5));
    group.bench_function("64_runs", |b| {
        b.to_async(&runtime).iter(|| async {
            let mut runs = JoinSet::new();
            for run in 0..RUNS {
                let orchestrator = orchestrator.clone();
                runs.spawn(async move {
                    let event = tool_event(run, "Bash");
                    for _ in 0..each {
                        orchestrator.dispatch(event.clone()).await.expect("an outcome");
                    }
                });
            }
            runs.join_all().await;
        });
    });
    group.finish();
}

criterion_group!(benches, nothing_to_run, five_native_hooks);
criterion_main!(benches);
