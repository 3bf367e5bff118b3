//! `fire`: one event, its hooks, one outcome. Owns in which form the outcome is told.

use clap::Args;

use super::{
    escape,
    event_input::EventInput,
    exit::{CliResult, Exit},
    flags::{EventFlags, JsonFlag, WorkspaceFlags},
    outcome_view,
    screen::Screen,
    session::CommandSession,
    workspace::LocatedWorkspace,
};
use crate::{
    DispatchError, dialect,
    handler::command::OF_A_HOOK,
    model::{DialectName, Event, EventError, Outcome},
};

const EXAMPLES: &str = "\
Examples:
  hookyard fire --event event.json
  hookyard fire --event event.json --json | jq -r .verdict
  sed -n 25p session.jsonl | hookyard fire --dialect openharness --event - --native
  hookyard fire --dialect claude --event pre-tool-use.json --native

An event is a JSON object such as
  {\"event\": \"before_tool_dispatch\", \"session_id\": \"s\", \"run_id\": \"r\",
   \"tool_name\": \"Bash\", \"tool_input\": {\"command\": \"ls\"}}

Exit codes: 0: the event was read and there is an outcome; 1: it could not be
read, or there is no outcome (guards that deny on errors still answer); with
--native the exit code is the dialect's own.";

/// Runs the hooks for one event, and shows what a host would be told
///
/// On a terminal the outcome is laid out to be read; elsewhere, or with `--json`, it is canonical JSON.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct FireCommand {
    #[command(flatten)]
    event: EventFlags,

    #[command(flatten)]
    workspace: WorkspaceFlags,

    /// Answers as a hook of the dialect would: its output, its standard error, its exit code
    #[arg(long, conflicts_with = "json")]
    native: bool,

    #[command(flatten)]
    output: JsonFlag,
}

/// What became of the event.
enum FireResult {
    /// Its hooks ran.
    Answered(Box<Event>, Outcome),
    /// It cannot be read; there may be a block all the same.
    Unreadable(EventError, Option<Outcome>),
    /// There is no outcome.
    NoOutcome(DispatchError),
}

impl FireCommand {
    /// Whether the host reads standard error.
    pub(super) fn is_native(&self) -> bool {
        self.native
    }

    pub(super) async fn run(self, screen: &Screen) -> CliResult {
        if self.native && self.event.dialect.dialect == DialectName::Canonical {
            let what = "--native answers in the words of a dialect; add --dialect openharness, say";
            screen.error(what, Some("`hookyard fire --help` has an example"));
            return Ok(Exit::Usage);
        }
        // As a hook of hookyard's own it has no opinion. Not a word on standard error, which is one in some dialects.
        if self.native && std::env::var_os(OF_A_HOOK).is_some() {
            return Ok(Exit::Done);
        }
        let found = LocatedWorkspace::find_valid(&self.workspace, screen)?;
        let source = EventInput::read(&self.event.event, found.settings.limits.payload, screen)?;
        let mut started = CommandSession::start(&found).await?;
        if !self.native {
            found.note_problems(&started.report.diagnostics, &started.report.files, screen);
        }
        let (orchestrator, workspace) = (started.orchestrator.clone(), started.workspace.clone());
        let dialect = self.event.dialect.dialect;
        let fire = async {
            match orchestrator.read(dialect, &source.bytes) {
                Ok(event) => match orchestrator.dispatch_in(&workspace, event.clone()).await {
                    Ok(outcome) => FireResult::Answered(Box::new(event), outcome),
                    Err(error) => FireResult::NoOutcome(error),
                },
                Err(error) => {
                    let block =
                        orchestrator.block_unreadable(Some(&workspace), dialect, &source.bytes, &error);
                    FireResult::Unreadable(error, block)
                }
            }
        };
        let fired = match started.until_interrupted(fire).await {
            Ok(fired) => fired,
            Err(exit) => return Ok(started.abort(exit, "before there was an outcome", screen).await),
        };
        // The answer comes first: hooks that nobody waits for may still run.
        let told = self.print_result(&source, fired, screen);
        match started.stop(screen).await {
            Ok(()) => told,
            Err(exit) => Ok(exit),
        }
    }

    fn print_result(&self, source: &EventInput, fired: FireResult, screen: &Screen) -> CliResult {
        let dialect = self.event.dialect.dialect;
        match fired {
            FireResult::Answered(event, outcome) => self.answer(Some(&event), &outcome, screen),
            FireResult::Unreadable(error, block) => {
                source.report_error(&error, dialect, screen);
                match block {
                    // A host takes the dialect's exit code for the answer; any other would let the event pass.
                    Some(block) if self.native => self.answer(None, &block, screen),
                    Some(block) => self.answer(None, &block, screen).map(|_| Exit::Failed),
                    None => Ok(Exit::Failed),
                }
            }
            FireResult::NoOutcome(error) => {
                let what = format!("the event got no outcome: {}", escape::line(&error.to_string()));
                screen.error(&what, None);
                Ok(Exit::Failed)
            }
        }
    }

    fn answer(&self, event: Option<&Event>, outcome: &Outcome, screen: &Screen) -> CliResult {
        if self.native {
            return self.native_answer(event, outcome, screen);
        }
        if self.output.json || !screen.out.is_terminal {
            screen.print_json(outcome)?;
        } else {
            screen.print(&outcome_view::render(event, outcome, screen.out.paint, screen.table_width()))?;
        }
        Ok(Exit::Done)
    }

    fn native_answer(&self, event: Option<&Event>, outcome: &Outcome, screen: &Screen) -> CliResult {
        let dialect = self.event.dialect.dialect;
        let answer = match event {
            Some(event) => Some(dialect::named(dialect).write_response(event, outcome)),
            None => dialect::unreadable_event_response(dialect, outcome),
        };
        let Some(answer) = answer else { return Ok(Exit::Failed) };
        if !answer.stdout.is_empty() {
            screen.print(&answer.stdout)?;
        }
        if !answer.stderr.is_empty() {
            screen.note(answer.stderr.trim_end());
        }
        Ok(Exit::Native(answer.exit_code))
    }
}
