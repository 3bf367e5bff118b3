//! What the pure core costs for an event with five serial hooks: stages, verdicts, patches and envelopes,
//! without actors.

mod common;

use std::{sync::Arc, time::Duration};

use common::{hooks, place, tool_event};
use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use hookyard::{
    model::{Conclusion, Json, Reply, Target},
    registry::Snapshot,
    run::{Course, Progress},
};

fn drive(mut course: Course, mut progress: Progress, reply: impl Fn() -> Reply, envelopes: bool) -> Course {
    while let Progress::Run(steps) = progress {
        progress = Progress::Done;
        for step in steps {
            if envelopes {
                std::hint::black_box(course.envelope(step));
            }
            progress = course.conclude(step, Conclusion::ran(Ok(reply()), Duration::ZERO));
        }
    }
    course
}

fn five_serial_hooks(c: &mut Criterion) {
    let event = Arc::new(tool_event(1));
    let snapshot = Arc::new(Snapshot::new(1, place(), hooks(5, "Bash")));
    let patch = Json::parse(r#"{"timeout":5}"#).expect("JSON");
    let begin = || Course::begin(Arc::clone(&event), snapshot.plan(&event), Arc::clone(&snapshot));
    let mut group = c.benchmark_group("course/five_serial_hooks");
    group.bench_function("no_opinion", |b| {
        b.iter_batched(
            begin,
            |(course, next)| {
                drive(course, next, Reply::proceed, false).into_outcome(hookyard::run::next_decision_id())
            },
            BatchSize::SmallInput,
        );
    });
    group.bench_function("with_envelopes", |b| {
        b.iter_batched(
            begin,
            |(course, next)| {
                drive(course, next, Reply::proceed, true).into_outcome(hookyard::run::next_decision_id())
            },
            BatchSize::SmallInput,
        );
    });
    group.bench_function("each_patches", |b| {
        let reply = || Reply::proceed().patch(Target::ToolInput, patch.clone());
        b.iter_batched(
            begin,
            |(course, next)| drive(course, next, reply, true).into_outcome(hookyard::run::next_decision_id()),
            BatchSize::SmallInput,
        );
    });
}

criterion_group!(benches, five_serial_hooks);
criterion_main!(benches);
