//! `replay`: a recorded session, as often as wanted, and how its hooks fared. Owns the course of the command;
//! reading, playing, counting and showing have a file each.

mod finding;
mod play;
mod recording;
mod report;
mod tally;
mod view;

use std::{num::NonZeroUsize, path::PathBuf, time::Duration};

use clap::Args;
use futures_util::StreamExt;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tokio::time::Instant;

use self::{play::ReplayPlayer, recording::Recording, report::ReplayReport, tally::ReplayTally};
use super::{
    escape,
    exit::{CliError, CliResult, Exit},
    flags::{DialectFlag, JsonFlag, WorkspaceFlags},
    screen::Screen,
    session::CommandSession,
    units::plural,
    workspace::LocatedWorkspace,
};

/// How often the progress bar is drawn, in a second.
const FRAMES: u8 = 10;

/// How many lines that cannot be read are shown.
const MOST_BROKEN: usize = 10;

const EXAMPLES: &str = "\
Examples:
  hookyard replay session.jsonl
  hookyard replay session.jsonl --dialect openharness --verbose
  hookyard replay session.jsonl --sessions 100 --concurrency 32
  hookyard replay session.jsonl --json | jq '.events[] | select(.verdict == \"block\")'

The events of a run are played in the order of the file, each after the answer
to the one before; runs are played side by side. With --sessions N, each id
gets the suffix #1 to #N.

Exit code 1 means that a line could not be read, or that an event got no
outcome. Blocks and failing hooks are part of the result.";

/// Plays a recorded session, and shows what its hooks did and how long they took
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ReplayCommand {
    /// A recording: one event as JSON on each line; `-` is standard input
    #[arg(value_name = "FILE.jsonl")]
    recording: PathBuf,

    /// Plays the recording N times, each time as a session of its own
    #[arg(long, short = 'n', value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    sessions: u32,

    /// How many runs are played at the same time; without it, twice the number of processors
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    concurrency: Option<u32>,

    /// Prints every event as it is answered, and every finding at the end
    #[arg(long, short, conflicts_with = "json")]
    verbose: bool,

    #[command(flatten)]
    dialect: DialectFlag,

    #[command(flatten)]
    workspace: WorkspaceFlags,

    #[command(flatten)]
    output: JsonFlag,
}

impl ReplayCommand {
    pub(super) async fn run(self, screen: &Screen) -> CliResult {
        let found = LocatedWorkspace::find_valid(&self.workspace, screen)?;
        let limit = found.settings.limits.payload;
        let recording = Recording::read(&self.recording, self.dialect.dialect, limit)?;
        print_unreadable_lines(&recording, screen);
        if recording.events == 0 {
            return Err(empty(&recording));
        }
        let mut started = CommandSession::start(&found).await?;
        found.note_problems(&started.report.diagnostics, &started.report.files, screen);
        let mut tally = ReplayTally::new(self.output.json);
        let begun = Instant::now();
        let played = self.play(&recording, &mut started, &mut tally, screen).await;
        let took = begun.elapsed();
        if let Err(exit) = played? {
            let all = recording.events * u64::from(self.sessions);
            let when = format!("after {} of {all} events", tally.events());
            return Ok(started.abort(exit, &when, screen).await);
        }
        let told = self.tell(&recording, &started, tally, took, screen);
        match started.stop(screen).await {
            Ok(()) => told,
            Err(exit) => Ok(exit),
        }
    }

    /// Plays everything, or until a signal; the outer error is that of the output.
    async fn play(
        &self,
        recording: &Recording,
        started: &mut CommandSession,
        tally: &mut ReplayTally,
        screen: &Screen,
    ) -> Result<Result<(), Exit>, CliError> {
        let player = ReplayPlayer::new(started, self.sessions, self.concurrency());
        let bar = self.progress(recording, screen);
        let work = async {
            let mut finished = player.play(recording);
            while let Some(finished) = finished.next().await {
                if self.verbose {
                    let line = view::event(&finished, &player, screen);
                    bar.suspend(|| screen.print(&line))?;
                }
                tally.add(finished);
                bar.inc(1);
            }
            Ok(())
        };
        let ended = started.until_interrupted(work).await;
        bar.finish_and_clear();
        match ended {
            Ok(Ok(())) => Ok(Ok(())),
            Ok(Err(trouble)) => Err(trouble),
            Err(exit) => Ok(Err(exit)),
        }
    }

    fn tell(
        &self,
        recording: &Recording,
        started: &CommandSession,
        tally: ReplayTally,
        took: Duration,
        screen: &Screen,
    ) -> CliResult {
        let failed = !recording.unreadable.is_empty() || tally.without_outcome() > 0;
        if let Some(snapshot) = started.orchestrator.snapshot(Some(&started.workspace)) {
            let report = ReplayReport::new(recording, self.sessions, tally, took, &snapshot);
            if self.output.json {
                screen.print_json(&report)?;
            } else {
                screen.print(&view::summary(&report, self.verbose, screen))?;
            }
        }
        Ok(if failed { Exit::Failed } else { Exit::Done })
    }

    fn concurrency(&self) -> usize {
        let processors = || std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        self.concurrency.map_or_else(|| processors() * 2, |runs| usize::try_from(runs).unwrap_or(usize::MAX))
    }

    fn progress(&self, recording: &Recording, screen: &Screen) -> ProgressBar {
        let events = recording.events * u64::from(self.sessions);
        if !screen.err.is_terminal {
            return ProgressBar::hidden();
        }
        let bar = ProgressBar::with_draw_target(Some(events), ProgressDrawTarget::stderr_with_hz(FRAMES));
        let template = "{wide_bar} {pos} of {len} events, {eta} left";
        bar.with_style(
            ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()),
        )
    }
}

fn print_unreadable_lines(recording: &Recording, screen: &Screen) {
    let name = escape::path(&recording.name);
    for unreadable in recording.unreadable.iter().take(MOST_BROKEN) {
        screen.error(
            &format!("{name}:{}: {}", unreadable.line, escape::line(&unreadable.message)),
            unreadable.help,
        );
    }
    let more = recording.unreadable.len().saturating_sub(MOST_BROKEN);
    if more > 0 {
        screen.note(&format!("and {}", plural(more, "more line")));
    }
}

fn empty(recording: &Recording) -> CliError {
    let name = escape::path(&recording.name);
    match recording.unreadable.len() {
        0 => CliError::with_help(
            format!("{name} has no events"),
            "a recording has one event as JSON on each line",
        ),
        unreadable => {
            CliError::new(format!("{name} has no events: {} could not be read", plural(unreadable, "line")))
        }
    }
}
