//! `explain`: show which hooks an event selects, and why the others are left out. Runs nothing.

use std::collections::BTreeMap;

use clap::Args;
use serde::Serialize;

use super::{
    escape,
    event_input::EventInput,
    exit::{CliResult, Exit},
    flags::{EventFlags, JsonFlag, WorkspaceFlags},
    list::{handler, scope},
    rule_trace::{self, RuleTrace},
    screen::Screen,
    table::Page,
    units::plural,
    workspace::{LocatedWorkspace, snapshot},
    wrap,
};
use crate::{
    dialect,
    handler::command::needs_no_shell,
    model::{CommandLine, Event, EventError, Handler, Hook},
    registry::Explanation,
};

/// With less room than this beside the names of hooks, the rest is printed below them.
const LEAST_ROOM: usize = 48;

const FOOTER: &str = "\
Examples:
  hookyard explain --event event.json
  sed -n 25p session.jsonl | hookyard explain --dialect openharness --event -

An event is a JSON object such as
  {\"event\": \"before_tool_dispatch\", \"session_id\": \"s\", \"run_id\": \"r\",
   \"tool_name\": \"Bash\", \"tool_input\": {\"command\": \"ls\"}}";

/// Show which hooks an event selects, and why
///
/// Hooks run in stages, one stage after the other. Hooks of one stage run at the same time. Of rules it shows which
/// expressions decide, and from which values, as if no other hook ran. This command runs nothing.
#[derive(Debug, Args)]
#[command(after_help = FOOTER)]
pub(super) struct ExplainCommand {
    #[command(flatten)]
    event: EventFlags,

    #[command(flatten)]
    workspace: WorkspaceFlags,

    #[command(flatten)]
    output: JsonFlag,
}

#[derive(Serialize)]
struct ExplainReport<'a> {
    stages: Vec<Vec<&'a str>>,
    skipped: Vec<SkippedHook<'a>>,
    /// The signed bundle of each hook that is of one.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    bundles: BTreeMap<&'a str, String>,
    /// What the expressions of rules are, and from which values.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    rules: &'a [RuleTrace],
}

#[derive(Serialize)]
struct SkippedHook<'a> {
    hook: &'a str,
    why: String,
}

impl ExplainCommand {
    pub(super) fn run(self, screen: &Screen) -> CliResult {
        let found = LocatedWorkspace::find_valid(&self.workspace, screen)?;
        let limit = found.settings.limits.payload;
        let source = EventInput::read(&self.event.event, limit, screen)?;
        let size = source.bytes.len();
        let read = if size > limit {
            Err(EventError::TooLarge { size, limit })
        } else {
            dialect::named(self.event.dialect.dialect).read_event(&source.bytes)
        };
        let event = match read {
            Ok(event) => event,
            Err(error) => {
                source.report_error(&error, self.event.dialect.dialect, screen);
                return Ok(Exit::Failed);
            }
        };
        let mut loaded = found.load_in_force();
        let diagnostics = std::mem::take(&mut loaded.diagnostics);
        let files = std::mem::take(&mut loaded.files);
        let snapshot = snapshot(loaded);
        let explanation = snapshot.explain(&event);
        let traces = rule_trace::of(&snapshot, &explanation.plan, &event);
        if self.output.json {
            screen.print_json(&report(&explanation, &traces))?;
        } else {
            screen.print(&view(&event, &explanation, &traces, screen))?;
        }
        found.note_problems(&diagnostics, &files, screen);
        Ok(Exit::Done)
    }
}

fn report<'a>(explanation: &'a Explanation, rules: &'a [RuleTrace]) -> ExplainReport<'a> {
    let stages = explanation.plan.stages();
    let of_bundles = explanation.plan.steps().iter().filter_map(|step| {
        let bundle = step.hook.source.bundle.as_ref()?;
        Some((step.hook.name.as_str(), bundle.to_string()))
    });
    ExplainReport {
        bundles: of_bundles.collect(),
        stages: stages.map(|stage| stage.iter().map(|step| step.hook.name.as_str()).collect()).collect(),
        skipped: explanation
            .skipped
            .iter()
            .map(|skipped| SkippedHook {
                hook: skipped.hook.hook.name.as_str(),
                why: skipped.why.to_string(),
            })
            .collect(),
        rules,
    }
}

fn view(event: &Event, explanation: &Explanation, traces: &[RuleTrace], screen: &Screen) -> String {
    let paint = screen.out.paint;
    let plan = &explanation.plan;
    let skipped = &explanation.skipped;
    let names = plan.steps().iter().chain(skipped.iter().map(|skipped| &skipped.hook));
    let width = names.map(|known| known.hook.name.as_str().len()).max().unwrap_or(0);
    let mut page = Page::default();
    page.line(&format!("{}{}", paint.bold(event.kind.as_str()), matched(event)));
    match plan.stages().count() {
        0 => page.line("No hook runs: the host would get `proceed` at once."),
        1 => {}
        stages => {
            let hooks = plural(plan.steps().len(), "hook");
            let stages = plural(stages, "stage");
            page.line(&format!("{hooks} in {stages}, one after the other:"));
        }
    }
    for (number, stage) in (1..).zip(plan.stages()) {
        for (position, step) in stage.iter().enumerate() {
            let number = if position == 0 { format!("{number:>3}") } else { "  +".to_owned() };
            let name = paint.green(&format!("{:<width$}", step.hook.name));
            page.line(&format!(
                "{number}  {name}  {}",
                beside_names(
                    &format!("{}{}", how_it_runs(&step.hook.handler), of_bundle(&step.hook)),
                    width,
                    screen
                )
            ));
            if let Some(reason) = step.hook.trust.refusal() {
                let refused = format!("does not run: {}", escape::line(reason));
                page.line(&format!("{:5}{:<width$}  {}", "", "", beside_names(&refused, width, screen)));
            }
            let trace = traces.iter().find(|trace| trace.hook == step.hook.name.as_str());
            for line in trace.iter().flat_map(|trace| trace.lines(paint)) {
                page.line(&format!("     {}", wrap::hanging(&line, screen.table_width(), 9)));
            }
        }
    }
    if plan.stages().any(|stage| stage.len() > 1) {
        page.line(&paint.dim("  + runs at the same time as the hook above it"));
    }
    if !skipped.is_empty() {
        page.line("Left out:");
    }
    for skipped in skipped {
        let name = &skipped.hook.hook.name;
        let why = skipped.why.to_string();
        page.line(&format!("  -  {name:<width$}  {}", beside_names(&escape::line(&why), width, screen)));
    }
    page.into_text()
}

/// What runs for a hook, and whether a shell line is run without a shell.
fn how_it_runs(of_hook: &Handler) -> String {
    let is_direct = match of_hook {
        Handler::Command(command) => match &command.line {
            CommandLine::Shell(line) => command.sandbox.is_none() && needs_no_shell(line),
            CommandLine::Exec { .. } => false,
        },
        _ => false,
    };
    let how = if is_direct { " (without a shell)" } else { "" };
    format!("{}{how}", handler(of_hook))
}

/// The level and the bundle of a hook, where it is of one.
fn of_bundle(hook: &Hook) -> String {
    hook.source.bundle.as_ref().map(|_| format!(" [{}]", scope(hook))).unwrap_or_default()
}

/// A text in the column beside names of this width; below them where there is little room.
fn beside_names(text: &str, width: usize, screen: &Screen) -> String {
    match screen.table_width() {
        Some(columns) if columns < width + 7 + LEAST_ROOM => {
            format!("\n{:5}{}", "", wrap::hanging(text, Some(columns), 5))
        }
        columns => wrap::hanging(text, columns, width + 7),
    }
}

/// What the matchers look at.
fn matched(event: &Event) -> String {
    let field = event.kind.match_field().zip(event.match_text());
    field
        .map(|(field, value)| format!(", {} {}", field.as_str(), escape::short(value, 80)))
        .unwrap_or_default()
}
