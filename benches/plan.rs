//! What it costs to find the hooks of an event: with few and many hooks, and where some match.

mod common;

use std::hint::black_box;

use common::{SHAPES, hooks, place, tool_event};
use criterion::{Criterion, criterion_group, criterion_main};
use hookyard::registry::Snapshot;

fn no_hook_matches(c: &mut Criterion) {
    let mut group = c.benchmark_group("plan/no_hook_matches");
    let event = tool_event(1);
    for (shape, pattern) in SHAPES {
        for count in [10, 10_000] {
            let snapshot = Snapshot::new(1, place(), hooks(count, pattern));
            assert!(snapshot.plan(&event).is_empty());
            group.bench_function(format!("{shape}/{count}"), |b| b.iter(|| snapshot.plan(black_box(&event))));
        }
    }
}

fn five_hooks_match(c: &mut Criterion) {
    let event = tool_event(1);
    let mut all = hooks(10_000, "^tool_#$");
    all.splice(..5, hooks(5, "^Bash$"));
    let snapshot = Snapshot::new(1, place(), all);
    assert_eq!(snapshot.plan(&event).steps().len(), 5);
    c.bench_function("plan/five_of_10000_match", |b| b.iter(|| snapshot.plan(black_box(&event))));
}

criterion_group!(benches, no_hook_matches, five_hooks_match);
criterion_main!(benches);
