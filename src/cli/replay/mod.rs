//! `replay`: run the hooks for a recorded session and summarise what they did.

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

pub(super) use self::recording::Recording;
use self::{play::ReplayPlayer, report::ReplayReport, tally::ReplayTally};
use super::{
    escape,
    exit::{CliError, CliResult, Exit},
    flags::{DialectFlag, JsonFlag, TrustFlag, WorkspaceFlags},
    screen::Screen,
    session::CommandSession,
    units::plural,
    workspace::LocatedWorkspace,
};

/// How often the progress bar is drawn per second.
const FRAMES: u8 = 10;

/// How many unreadable lines are listed.
const MOST_LISTED: usize = 10;

const FOOTER: &str = "\
Examples:
  hookyard replay session.jsonl
  hookyard replay session.jsonl --dialect openharness --verbose
  hookyard replay session.jsonl --sessions 100 --concurrency 32
  hookyard replay session.jsonl --json | jq '.events[] | select(.verdict == \"block\")'

The events of a run are replayed in the order of the file, each after the answer to the previous one. Runs are \
replayed in parallel. With `--sessions N`, each id gets a suffix from `#1` to `#N`.

Exit codes: 0 every event got an outcome, also if hooks blocked it or failed; 1 a line is invalid, or an event got no \
outcome.";

/// Run the hooks for a recorded session and summarise the outcomes
#[derive(Debug, Args)]
#[command(after_help = FOOTER)]
pub(super) struct ReplayCommand {
    /// Recording: one JSON event per line; `-` reads standard input
    #[arg(value_name = "FILE.jsonl")]
    recording: PathBuf,

    /// Replay the recording N times, each time as its own session
    #[arg(long, short = 'n', value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    sessions: u32,

    /// How many runs are replayed in parallel; default: twice the number of processors
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    concurrency: Option<u32>,

    /// Print every event as it is answered, and every finding at the end
    #[arg(long, short, conflicts_with = "json")]
    verbose: bool,

    #[command(flatten)]
    dialect: DialectFlag,

    #[command(flatten)]
    trust: TrustFlag,

    #[command(flatten)]
    workspace: WorkspaceFlags,

    #[command(flatten)]
    output: JsonFlag,
}

impl ReplayCommand {
    pub(super) async fn run(self, screen: &Screen) -> CliResult {
        let found = LocatedWorkspace::find_valid(&self.workspace, screen)?.trusting(self.trust);
        let limit = found.settings.limits.payload;
        let recording = Recording::read(&self.recording, self.dialect.dialect, limit)?;
        print_unreadable_lines(&recording, screen);
        if recording.events == 0 {
            return Err(no_events(&recording));
        }
        let mut session = CommandSession::start(&found).await?;
        found.note_problems(&session.report.diagnostics, &session.report.files, screen);
        let mut tally = ReplayTally::new(self.output.json);
        let start = Instant::now();
        let played = self.play(&recording, &mut session, &mut tally, screen).await;
        let took = start.elapsed();
        if let Err(exit) = played? {
            let all = recording.events * u64::from(self.sessions);
            let when = format!("after {} of {all} events", tally.events());
            return Ok(session.abort(exit, &when, screen).await);
        }
        let result = self.print_result(&recording, &session, tally, took, screen);
        match session.stop(screen).await {
            Ok(()) => result,
            Err(exit) => Ok(exit),
        }
    }

    /// Replays everything, or until a signal: the inner error. The outer error is one of the output.
    async fn play(
        &self,
        recording: &Recording,
        session: &mut CommandSession,
        tally: &mut ReplayTally,
        screen: &Screen,
    ) -> Result<Result<(), Exit>, CliError> {
        let replayer = ReplayPlayer::new(session, self.sessions, self.concurrency());
        let bar = self.progress(recording, screen);
        let work = async {
            let mut played = replayer.play(recording);
            while let Some(played) = played.next().await {
                if self.verbose {
                    let line = view::event(&played, &replayer, screen);
                    bar.suspend(|| screen.print(&line))?;
                }
                tally.add(played);
                bar.inc(1);
            }
            Ok(())
        };
        let ended = session.until_signal(work).await;
        bar.finish_and_clear();
        match ended {
            Ok(Ok(())) => Ok(Ok(())),
            Ok(Err(trouble)) => Err(trouble),
            Err(exit) => Ok(Err(exit)),
        }
    }

    fn print_result(
        &self,
        recording: &Recording,
        session: &CommandSession,
        tally: ReplayTally,
        took: Duration,
        screen: &Screen,
    ) -> CliResult {
        let failed = !recording.unreadable.is_empty() || tally.without_outcome() > 0;
        if let Some(snapshot) = session.orchestrator.snapshot(Some(&session.workspace)) {
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
        match self.concurrency {
            Some(runs) => usize::try_from(runs).unwrap_or(usize::MAX),
            None => std::thread::available_parallelism().map_or(1, NonZeroUsize::get) * 2,
        }
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

pub(super) fn print_unreadable_lines(recording: &Recording, screen: &Screen) {
    let name = escape::path(&recording.name);
    for unreadable in recording.unreadable.iter().take(MOST_LISTED) {
        screen.error(
            &format!("{name}:{}: {}", unreadable.line, escape::line(&unreadable.message)),
            unreadable.help.as_deref(),
        );
    }
    let more = recording.unreadable.len().saturating_sub(MOST_LISTED);
    if more > 0 {
        screen.note(&format!("and {}", plural(more, "more line")));
    }
}

fn no_events(recording: &Recording) -> CliError {
    let name = escape::path(&recording.name);
    match recording.unreadable.len() {
        0 => CliError::with_help(format!("{name} has no events"), "a recording has one JSON event per line"),
        unreadable => {
            CliError::new(format!("{name} has no events: {} could not be read", plural(unreadable, "line")))
        }
    }
}
