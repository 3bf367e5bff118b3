//! How a load goes on, on a terminal; nothing where a program reads it.

use std::{sync::Arc, time::Duration};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tokio::{
    task::JoinHandle,
    time::{Instant, interval},
};

use super::{
    super::{screen::Screen, units::precise_duration},
    tally::SharedTally,
};

/// How often it is drawn.
const PERIOD: Duration = Duration::from_millis(250);

/// The same for the bar, in frames a second.
const FRAMES: u8 = 4;

/// A line that shows how a load goes on, and is gone with this.
#[derive(Debug)]
pub(super) struct LoadProgress {
    bar: ProgressBar,
    task: JoinHandle<()>,
}

impl LoadProgress {
    /// Shows how a load of some length goes on; nothing if standard error is no terminal.
    pub(super) fn show(
        tally: &Arc<SharedTally>,
        length: Duration,
        what: &str,
        screen: &Screen,
    ) -> Option<Self> {
        if !screen.err.is_terminal {
            return None;
        }
        let milliseconds = u64::try_from(length.as_millis()).ok();
        let bar = ProgressBar::with_draw_target(milliseconds, ProgressDrawTarget::stderr_with_hz(FRAMES));
        let style = ProgressStyle::with_template("{prefix} {wide_bar} {msg}");
        let bar = bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.set_prefix(what.to_owned());
        let task = tokio::spawn(draw(bar.clone(), Arc::clone(tally), length));
        Some(Self { bar, task })
    }
}

impl Drop for LoadProgress {
    fn drop(&mut self) {
        self.task.abort();
        self.bar.finish_and_clear();
    }
}

async fn draw(bar: ProgressBar, tally: Arc<SharedTally>, length: Duration) {
    let begun = Instant::now();
    let mut ticks = interval(PERIOD);
    let mut before = 0;
    loop {
        ticks.tick().await;
        let elapsed = begun.elapsed();
        bar.set_position(u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX));
        let (outcomes, p99) = tally.so_far(0.99);
        let rate = (outcomes - before) * u64::try_from(1000 / PERIOD.as_millis()).unwrap_or(1);
        before = outcomes;
        let left = precise_duration(Duration::from_secs(length.saturating_sub(elapsed).as_secs()));
        let p99 = p99.map_or_else(|| "warming up".to_owned(), |p99| format!("p99 {}", precise_duration(p99)));
        bar.set_message(format!("{rate}/s, {p99}, {left} left"));
    }
}
