//! What an event costs from the library's front door to its outcome: with nothing to run, and with five native
//! hooks in 64 runs at a time. `floors` measures the same beside what it is compared with.

mod common;

use std::{hint::black_box, time::Duration};

use common::{SHAPES, orchestrator, runtime, tool_event};
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use tokio::task::JoinSet;

/// Runs at the same time.
const RUNS: usize = 64;

/// Events of each run in one iteration.
const EVENTS: usize = 100;

fn nothing_to_run(c: &mut Criterion) {
    let runtime = runtime();
    let mut group = c.benchmark_group("dispatch/nothing_to_run");
    for (shape, pattern) in SHAPES {
        for count in [10, 10_000] {
            let orchestrator = runtime.block_on(orchestrator(count, pattern));
            let event = tool_event(1);
            group.bench_function(format!("{shape}/{count}"), |b| {
                b.iter_batched(
                    || event.clone(),
                    |event| runtime.block_on(orchestrator.dispatch(black_box(event))).expect("an outcome"),
                    BatchSize::SmallInput,
                );
            });
            assert_eq!(orchestrator.run_count().known, 0, "an event with nothing to run touches no actor");
        }
    }
}

fn five_native_hooks(c: &mut Criterion) {
    let runtime = runtime();
    let orchestrator = runtime.block_on(orchestrator(5, "Bash"));
    let mut group = c.benchmark_group("dispatch/five_native_hooks");
    group.throughput(Throughput::Elements((RUNS * EVENTS) as u64)).measurement_time(Duration::from_secs(5));
    group.sample_size(20).bench_function("64_runs", |b| {
        b.to_async(&runtime).iter(|| async {
            let mut runs = JoinSet::new();
            for run in 0..RUNS {
                let orchestrator = orchestrator.clone();
                runs.spawn(async move {
                    let event = tool_event(run);
                    for _ in 0..EVENTS {
                        orchestrator.dispatch(event.clone()).await.expect("an outcome");
                    }
                });
            }
            runs.join_all().await;
        });
    });
}

criterion_group!(benches, nothing_to_run, five_native_hooks);
criterion_main!(benches);
