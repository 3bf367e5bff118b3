//! `fire`: run the hooks for one event and print the outcome.

use std::fmt::Display;

use clap::Args;
use rustix::process::getpid;

use super::{
    escape,
    event_input::EventInput,
    exit::{BLOCK, CliError, CliResult, Exit},
    flags::{EventFlags, JsonFlag, TrustFlag, WorkspaceFlags},
    outcome_view,
    rule_trace::{self, RuleTrace},
    screen::Screen,
    session::CommandSession,
    workspace::LocatedWorkspace,
};
use crate::{
    DispatchError, Orchestrator, dialect,
    handler::command::is_inside_hook,
    model::{DialectName, Event, EventError, EventKind, Note, Outcome, PartialEvent, Redactor, WorkspaceId},
    platform::{self, raw},
    run::next_decision_id,
};

/// How many ancestors of this process are looked at.
const MAX_ANCESTORS: usize = 64;

const FOOTER: &str = "\
Examples:
  hookyard fire --event event.json
  hookyard fire --event event.json --json | jq -r .verdict
  hookyard fire --event event.json --trace
  sed -n 25p session.jsonl | hookyard fire --dialect openharness --event - --native
  hookyard fire --dialect claude --event pre-tool-use.json --native

An event is a JSON object such as
  {\"event\": \"before_tool_dispatch\", \"session_id\": \"s\", \"run_id\": \"r\",
   \"tool_name\": \"Bash\", \"tool_input\": {\"command\": \"ls\"}}

Exit codes: 0 there is an outcome; 1 the event is invalid or got no outcome, though guards with `on_error: deny` still \
block it. With `--native` the exit code is that of the dialect.";

/// Run the hooks for one event and print the outcome
///
/// On a terminal the outcome is printed for people; elsewhere, or with `--json`, as canonical JSON.
#[derive(Debug, Args)]
#[command(after_help = FOOTER)]
pub(super) struct FireCommand {
    #[command(flatten)]
    event: EventFlags,

    #[command(flatten)]
    trust: TrustFlag,

    #[command(flatten)]
    workspace: WorkspaceFlags,

    /// Answer as a hook of the dialect would: with its output, standard error and exit code
    #[arg(long, conflicts_with = "json")]
    native: bool,

    /// Print on standard error which expressions of rules decide the event as it was sent, and from which values
    #[arg(long, conflicts_with = "native")]
    trace: bool,

    #[command(flatten)]
    output: JsonFlag,
}

/// What became of the event.
enum FireResult {
    /// Its hooks ran.
    Answered(Box<Event>, Outcome),
    /// It is invalid. Guards that deny on errors may block it all the same.
    Invalid(EventError, Option<Outcome>),
    /// It is valid, but there is no outcome. Guards that deny on errors may block it all the same.
    NoOutcome(Box<Event>, DispatchError, Option<Outcome>),
}

impl FireCommand {
    /// Whether the host reads standard error.
    pub(super) fn is_native(&self) -> bool {
        self.native
    }

    pub(super) async fn run(self, screen: &Screen) -> CliResult {
        let native = self.native;
        match self.judge(screen).await {
            // No hook was asked, and an agent would take any other exit code for consent.
            Err(error @ (CliError::Message { .. } | CliError::AlreadyReported)) if native => {
                screen.report(Err(error));
                Ok(Exit::Native(BLOCK))
            }
            result => result,
        }
    }

    async fn judge(self, screen: &Screen) -> CliResult {
        if self.native && self.event.dialect.dialect == DialectName::Canonical {
            let what = "--native answers in the format of a dialect; add, for example, --dialect openharness";
            screen.error(what, Some("`hookyard fire --help` has an example"));
            return Ok(Exit::Usage);
        }
        let found = LocatedWorkspace::find_valid(&self.workspace, screen)?.trusting(self.trust);
        let input = EventInput::read(&self.event.event, found.settings.limits.payload, screen)?;
        let mut session = CommandSession::start(&found).await?;
        if !self.native {
            found.note_problems(&session.report.diagnostics, &session.report.files, screen);
        }
        let orchestrator = session.orchestrator.clone();
        let workspace = session.workspace.clone();
        let fired = match session.until_signal(self.fire(&orchestrator, &workspace, &input.bytes)).await {
            Ok(fired) => fired,
            Err(exit) => return Ok(session.abort(exit, "before there was an outcome", screen).await),
        };
        let traces = self.traces(&orchestrator, &workspace, &fired, screen);
        // The answer comes first: background hooks may still run.
        let result = self.print_result(&input, fired, &session.redactor, screen);
        for line in &traces {
            screen.note(line);
        }
        match session.stop(screen).await {
            Ok(()) => result,
            Err(exit) => Ok(exit),
        }
    }

    async fn fire(&self, orchestrator: &Orchestrator, workspace: &WorkspaceId, bytes: &[u8]) -> FireResult {
        let dialect = self.event.dialect.dialect;
        match orchestrator.read(dialect, bytes) {
            Ok(event) => match orchestrator.dispatch_in(workspace, event.clone()).await {
                Ok(outcome) => FireResult::Answered(Box::new(event), outcome),
                Err(error) => {
                    let event = Event { workspace_id: Some(workspace.clone()), ..event };
                    let block = orchestrator.block_undispatched(&event, &error);
                    FireResult::NoOutcome(Box::new(event), error, block)
                }
            },
            Err(error) => {
                let block = orchestrator.block_unreadable(Some(workspace), dialect, bytes, &error);
                FireResult::Invalid(error, block)
            }
        }
    }

    /// What there is to say of rules with `--trace`.
    fn traces(
        &self,
        orchestrator: &Orchestrator,
        workspace: &WorkspaceId,
        fired: &FireResult,
        screen: &Screen,
    ) -> Vec<String> {
        let FireResult::Answered(event, _) = fired else { return Vec::new() };
        let snapshot = orchestrator.snapshot(Some(workspace)).filter(|_| self.trace);
        let Some(snapshot) = snapshot else { return Vec::new() };
        let traces = rule_trace::of(&snapshot, &snapshot.explain(event).plan, event);
        let with_name = |trace: RuleTrace| {
            let lines = trace.lines(screen.err.paint).into_iter().map(|line| format!("  {line}"));
            std::iter::once(trace.hook.clone()).chain(lines).collect::<Vec<_>>()
        };
        if traces.is_empty() {
            return vec!["no rule takes part".to_owned()];
        }
        traces.into_iter().flat_map(with_name).collect()
    }

    fn print_result(
        &self,
        input: &EventInput,
        fired: FireResult,
        redactor: &Redactor,
        screen: &Screen,
    ) -> CliResult {
        match fired {
            FireResult::Answered(event, outcome) => self.answer(Some(&event), &outcome, redactor, screen),
            // A host takes the dialect's exit code for the answer; any other would let the event pass.
            FireResult::Invalid(error, block) if self.native => {
                let event = dialect::read_partial(self.event.dialect.dialect, &input.bytes);
                self.native_without_hooks(&event, block, &error, screen)
            }
            FireResult::NoOutcome(event, error, block) if self.native => {
                self.native_without_hooks(&PartialEvent::of(&event), block, &error, screen)
            }
            FireResult::Invalid(error, block) => {
                input.report_error(&error, self.event.dialect.dialect, screen);
                if let Some(block) = block {
                    self.answer(None, &block, redactor, screen)?;
                }
                Ok(Exit::Failed)
            }
            FireResult::NoOutcome(_, error, _) => {
                let what = format!("the event got no outcome: {}", escape::line(&error.to_string()));
                screen.error(&what, None);
                Ok(Exit::Failed)
            }
        }
    }

    /// Answers for hooks that were not asked: with the block of a guard, else with no opinion and a note to the person.
    /// Standard error has nothing else, because some hosts take it for an opinion.
    fn native_without_hooks(
        &self,
        event: &PartialEvent,
        block: Option<Outcome>,
        error: &dyn Display,
        screen: &Screen,
    ) -> CliResult {
        let outcome = block.unwrap_or_else(|| {
            let kind = event.kind.unwrap_or(EventKind::HostEvent);
            let mut outcome = Outcome::proceed(next_decision_id(), kind, 0);
            let text = format!("hookyard ran no hooks for this event: {error}");
            outcome.notes.extend(Note::of_hookyard(&text));
            outcome
        });
        screen.print_response(&dialect::unasked_response(self.event.dialect.dialect, event, &outcome))
    }

    /// Prints an outcome: for a host as the host gets it, for people without secrets.
    fn answer(
        &self,
        event: Option<&Event>,
        outcome: &Outcome,
        redactor: &Redactor,
        screen: &Screen,
    ) -> CliResult {
        if let (true, Some(event)) = (self.native, event) {
            let response = dialect::named(self.event.dialect.dialect).write_response(event, outcome);
            return screen.print_response(&response);
        }
        if self.output.json || !screen.out.is_terminal {
            screen.print_json(outcome)?;
        } else {
            let shown = redactor.outcome(outcome);
            screen.print(&outcome_view::render(event, &shown, screen.out.paint, screen.table_width()))?;
        }
        Ok(Exit::Done)
    }
}

/// Whether this process is inside a hook and descends from another one of this program, which starts nothing but hooks:
/// hookyard found the command in an agent's settings and runs it as a hook. It has no opinion then, and says nothing on
/// standard error, which is an opinion in some dialects.
///
/// The variable of a hook alone does not prove it, because a workspace can set it for its agent.
pub(super) fn is_below_hookyard() -> bool {
    if !is_inside_hook() {
        return false;
    }
    let Ok(program) = platform::executable(raw(getpid())) else { return false };
    let parent =
        |pid: i32| platform::process(pid).ok().map(|found| found.parent).filter(|parent| *parent != 0);
    let mut ancestors = std::iter::successors(parent(raw(getpid())), |pid| parent(*pid)).take(MAX_ANCESTORS);
    ancestors.any(|pid| platform::executable(pid).is_ok_and(|other| other == program))
}
