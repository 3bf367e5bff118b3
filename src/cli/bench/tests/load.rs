//! Laws of loads, by a clock that the tests own.

use std::{sync::Arc, time::Duration};

use tokio_util::sync::CancellationToken;

use super::super::{
    arrivals::ArrivalClock,
    events::{EventPlace, EventSource},
    load::{LoadEnd, LoadGenerator, LoadResult, LoadSubject},
    scenario::{LoadMode, LoadPlan, Scenario},
    scenario_file,
    schedule::ArrivalProcess,
    tally::SharedTally,
    target::BenchTarget,
    tests::ScriptedTarget,
};

const MILLISECOND: Duration = Duration::from_millis(1);

fn subject(target: ScriptedTarget) -> LoadSubject {
    let scenario = Scenario { sessions: 1000, ..scenario_file::built_in().unwrap() };
    let events = EventSource::of_scenario(&scenario, EventPlace::default(), 1, "b".to_owned());
    LoadSubject { target: Arc::new(BenchTarget::Scripted(target)), events: Arc::new(events) }
}

fn plan(mode: LoadMode) -> LoadPlan {
    LoadPlan {
        mode,
        ramp: Duration::ZERO,
        warm_up: Duration::from_secs(1),
        duration: Duration::from_secs(10),
        timeout: Duration::from_mins(1),
        rounds: 10,
        seed: 1,
    }
}

fn open(rate: f64, in_flight: u32) -> LoadMode {
    LoadMode::Open { rate, arrivals: ArrivalProcess::Constant, in_flight }
}

fn generator() -> LoadGenerator {
    LoadGenerator { clock: ArrivalClock::Task, interrupt: CancellationToken::new() }
}

async fn run(target: ScriptedTarget, plan: &LoadPlan) -> LoadResult {
    let rounds = usize::try_from(plan.rounds).unwrap();
    generator().run(&subject(target), plan, Arc::new(SharedTally::new(rounds))).await.unwrap()
}

/// Every event that should have started while the target stood still, has waited for the rest of that time.
#[tokio::test(start_paused = true)]
async fn a_stall_shows_in_every_event_that_should_have_started_meanwhile() {
    let (from, to) = (Duration::from_secs(5), Duration::from_secs(7));
    let length = to.saturating_sub(from);
    // With one sender or with many: who waits for whom makes no difference.
    for in_flight in [1, 7, 500] {
        let target = ScriptedTarget::new(MILLISECOND).stall(from, to);
        let result = run(target, &plan(open(100.0, in_flight))).await;
        let tally = &result.tally;
        assert_eq!((tally.outcomes(), tally.unsent, result.end), (1000, 0, LoadEnd::Complete));
        // The stall takes 2 s, so of 100 events a second, 200 should have started in it, 10 ms after each other.
        let mut limit = MILLISECOND * 2;
        while limit < length {
            let slow = tally.latency.longer_than(limit);
            let expected = length.saturating_sub(limit).as_millis() / 10;
            let difference = u128::from(slow).abs_diff(expected);
            // The backlog is worked off one after the other, 1 ms each for each sender.
            let allowed = 4 + 22 / u128::from(in_flight);
            assert!(difference <= allowed, "{in_flight} senders: {slow} over {limit:?}, not {expected}");
            limit += MILLISECOND * 100;
        }
        assert!(tally.latency.longest().unwrap() + MILLISECOND * 20 >= length);
    }
}

#[tokio::test(start_paused = true)]
async fn a_closed_loop_hides_the_stall_that_an_open_one_shows() {
    let target = ScriptedTarget::new(MILLISECOND * 10).stall(Duration::from_secs(5), Duration::from_secs(7));
    let result = run(target, &plan(LoadMode::Closed { concurrency: 1 })).await;
    assert_eq!(result.tally.latency.longer_than(Duration::from_secs(1)), 1);
    // 100 a second in the 8 s in which it works.
    assert!((795..=805).contains(&result.tally.outcomes()), "{}", result.tally.outcomes());
}

#[tokio::test(start_paused = true)]
async fn what_is_due_and_never_sent_has_waited_until_the_end() {
    // Two senders with 100 ms each are good for 20 a second of the 100 that come.
    let result = run(ScriptedTarget::new(MILLISECOND * 100), &plan(open(100.0, 2))).await;
    let tally = &result.tally;
    assert_eq!(tally.outcomes() + tally.unsent, 1000);
    assert!(tally.unsent > 700, "{}", tally.unsent);
    assert_eq!(tally.waited, tally.outcomes(), "all senders were always busy");
    let p50 = tally.latency.quantile(0.5).unwrap();
    assert!(p50 > Duration::from_secs(4), "{p50:?}");
    let (slow, all) = tally.slower_than(Duration::from_millis(200));
    assert!(all == 1000 && slow > 950, "{slow}");
}

#[tokio::test(start_paused = true)]
async fn the_warm_up_and_the_ramp_are_sent_and_not_counted() {
    let plan = LoadPlan { ramp: Duration::from_secs(4), ..plan(open(50.0, 10)) };
    let result = run(ScriptedTarget::new(MILLISECOND), &plan).await;
    assert_eq!(result.tally.outcomes(), 500);
    assert_eq!(result.tally.rounds.iter().map(|round| round.outcomes).collect::<Vec<_>>(), [50; 10]);
    assert_eq!(result.measured, Duration::from_secs(10));
}

#[tokio::test(start_paused = true)]
async fn a_target_that_dies_leaves_what_was_measured_until_then() {
    let target = ScriptedTarget::new(MILLISECOND).dies_after(400);
    let result = run(target, &plan(open(100.0, 5))).await;
    assert_eq!(result.end, LoadEnd::TargetGone("it died".to_owned()));
    // 100 of the 400 were for the warm-up.
    assert_eq!(result.tally.outcomes(), 300);
    assert!(
        result.measured.abs_diff(Duration::from_secs(3)) < Duration::from_millis(200),
        "{:?}",
        result.measured
    );
}

#[tokio::test(start_paused = true)]
async fn an_interruption_leaves_what_was_measured_until_then() {
    let generator = generator();
    let interrupt = generator.interrupt.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_secs(6)).await;
        interrupt.cancel();
    });
    let subject = subject(ScriptedTarget::new(MILLISECOND));
    let tally = Arc::new(SharedTally::new(10));
    let result = generator.run(&subject, &plan(open(100.0, 5)), tally).await.unwrap();
    assert_eq!(result.end, LoadEnd::Interrupted);
    assert!((495..=502).contains(&result.tally.outcomes()), "{}", result.tally.outcomes());
    assert!(result.measured.abs_diff(Duration::from_secs(5)) < Duration::from_millis(50));
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_does_not_come_counts_with_its_wait() {
    let plan = LoadPlan { timeout: Duration::from_secs(3), ..plan(open(10.0, 100)) };
    let result = run(ScriptedTarget::new(Duration::from_mins(1)), &plan).await;
    assert_eq!((result.tally.outcomes(), result.tally.failed()), (0, 100));
    let p50 = result.tally.latency.quantile(0.5).unwrap();
    assert!(p50.abs_diff(Duration::from_secs(3)) < Duration::from_millis(10), "{p50:?}");
}

#[tokio::test]
async fn the_clock_of_a_thread_sends_everything_and_seldom_late() {
    let generator = LoadGenerator { clock: ArrivalClock::Thread, interrupt: CancellationToken::new() };
    let plan = LoadPlan {
        warm_up: Duration::from_millis(50),
        duration: Duration::from_millis(300),
        rounds: 2,
        ..plan(open(1000.0, 50))
    };
    let subject = subject(ScriptedTarget::new(MILLISECOND));
    let result = generator.run(&subject, &plan, Arc::new(SharedTally::new(2))).await.unwrap();
    let tally = &result.tally;
    assert_eq!(tally.outcomes() + tally.unsent, 300);
    assert!(tally.lateness.count() + tally.waited >= 290, "{tally:?}");
}
