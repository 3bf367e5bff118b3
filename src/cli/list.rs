//! `list`: show the hooks of a workspace in the order in which they run. Runs nothing.

use clap::Args;

use super::{
    escape,
    exit::{CliResult, Exit},
    flags::{JsonFlag, WorkspaceFlags},
    paths::display_path,
    screen::Screen,
    table::{Page, TextTable},
    units,
    workspace::{LocatedWorkspace, note_last_good, snapshot},
    wrap,
};
use crate::{
    model::{CommandMode, EventKind, Handler, Hook, HostRuns, TrustState},
    registry::{HookListing, Snapshot},
};

/// How much of what a handler runs is shown, in characters.
const LONGEST_HANDLER: usize = 60;

const FOOTER: &str = "\
Examples:
  hookyard list
  hookyard list --workspace ~/projects/shop
  hookyard list --json | jq -r '.[] | select(.matcher == null) | .name'

Hooks are ordered by scope (those of the signed bundle, managed, user, project, local), then dialect, then priority (lower first), then file \
name. `trusted, in part` is a hook that reaches more than its files; `hookyard trust` and `--json` say what.";

/// List the hooks of a workspace in the order in which they run
///
/// Hooks whose files have errors are not listed; `hookyard check` shows what is wrong with them.
#[derive(Debug, Args)]
#[command(after_help = FOOTER)]
pub(super) struct ListCommand {
    #[command(flatten)]
    workspace: WorkspaceFlags,

    #[command(flatten)]
    output: JsonFlag,
}

impl ListCommand {
    pub(super) fn run(self, screen: &Screen) -> CliResult {
        let found = LocatedWorkspace::find_valid(&self.workspace, screen)?;
        let mut loaded = found.load();
        let remarks = found.last_good_remarks(&loaded);
        let diagnostics = std::mem::take(&mut loaded.diagnostics);
        let files = std::mem::take(&mut loaded.files);
        let snapshot = snapshot(loaded);
        if self.output.json {
            let rows: Vec<_> = snapshot.hooks().iter().map(|known| HookListing::of(&known.hook)).collect();
            screen.print_json(&rows)?;
        } else {
            let entries = snapshot.hooks().len() - shown(&snapshot).count();
            if shown(&snapshot).next().is_some() {
                screen.print(&view(&snapshot, screen))?;
            }
            if entries > 0 {
                let entries = units::entries(entries);
                screen.note(&format!("{entries} by which agents ask hookyard: see `--json`"));
            }
        }
        found.note_problems(&diagnostics, &files, screen);
        note_last_good(&remarks, screen);
        Ok(Exit::Done)
    }
}

/// The hooks, without the entries by which agents ask hookyard.
fn shown(snapshot: &Snapshot) -> impl Iterator<Item = &Hook> {
    let hooks = snapshot.hooks().iter().map(|registered| &registered.hook);
    hooks.filter(|hook| hook.execution.host_runs != HostRuns::Entry)
}

fn view(snapshot: &Snapshot, screen: &Screen) -> String {
    let rows = rows(snapshot, screen);
    if rows.fits(screen.table_width()) { rows.render() } else { records(snapshot, screen) }
}

/// A hook on each line.
fn rows(snapshot: &Snapshot, screen: &Screen) -> TextTable {
    let header = ["name", "events", "matcher", "handler", "scope", "trust", "file"];
    let mut rows = TextTable::new(&header, screen.out.paint);
    for hook in shown(snapshot) {
        rows.add([
            name(hook),
            events(hook),
            matched(hook),
            handler(&hook.handler),
            scope(hook),
            trust(hook),
            location(hook),
        ]);
    }
    rows
}

/// A few lines for each hook, where a table would be too wide.
fn records(snapshot: &Snapshot, screen: &Screen) -> String {
    let paint = screen.out.paint;
    let mut page = Page::default();
    let width = screen.table_width();
    for hook in shown(snapshot) {
        let matcher = matcher(hook).map(|matcher| format!("  matching {matcher}"));
        let condition = condition(hook).map(|condition| format!("  needing {condition}"));
        page.line(&paint.bold(&name(hook)));
        let on = [Some(events(hook)), matcher, condition].into_iter().flatten().collect::<String>();
        page.line(&format!("  {}  {}", paint.dim("on  "), wrap::hanging(&on, width, 8)));
        page.line(&format!("  {}  {}", paint.dim("runs"), wrap::hanging(&handler(&hook.handler), width, 8)));
        let scope = scope(hook);
        let trust = trust(hook);
        page.line(&format!("  {}  {} ({scope}, trust: {trust})", paint.dim("from"), location(hook)));
        for reached in hook.trust.not_covered() {
            let what = format!("not covered by its trust: {}", escape::line(reached));
            page.line(&format!("  {}  {}", paint.dim("but "), wrap::hanging(&what, width, 8)));
        }
    }
    page.into_text()
}

/// The scope of a hook, with the bundle that it is of, or how far around the workspace it is.
pub(super) fn scope(hook: &Hook) -> String {
    if let Some(bundle) = &hook.source.bundle {
        return format!("{} ({bundle})", hook.source.scope);
    }
    match hook.distance() {
        0 => hook.source.scope.to_string(),
        distance => format!("{} {distance} up", hook.source.scope),
    }
}

/// What is known about the trust in a hook.
fn trust(hook: &Hook) -> String {
    let state = hook.trust.state().map_or("off", TrustState::as_str);
    if hook.trust.not_covered().is_empty() { state.to_owned() } else { format!("{state}, in part") }
}

fn name(hook: &Hook) -> String {
    match &hook.execution.switches.disabled_by {
        _ if hook.enabled && hook.execution.host_runs.is_by_agent() => {
            format!("{} (run by {})", hook.name, hook.dialect.name())
        }
        _ if hook.enabled => hook.name.to_string(),
        None => format!("{} (disabled)", hook.name),
        Some(switch) => format!("{} (disabled by {})", hook.name, escape::line(switch)),
    }
}

fn events(hook: &Hook) -> String {
    let names: Vec<&str> = hook.events.iter().map(|kind| event(hook, kind)).collect();
    names.join(", ")
}

/// A kind of event; of host events, the name of the one that the hook declares.
fn event(hook: &Hook, kind: EventKind) -> &str {
    match &hook.execution.host_event {
        Some(name) if kind == EventKind::HostEvent => name,
        _ => kind.as_str(),
    }
}

fn matcher(hook: &Hook) -> Option<String> {
    hook.matcher.as_ref().map(|matcher| escape::line(matcher.pattern()).into_owned())
}

/// What an event must have besides what the matcher looks at.
fn condition(hook: &Hook) -> Option<String> {
    let condition = hook.execution.condition.as_ref()?;
    Some(escape::line(&condition.text()).into_owned())
}

/// The events of its kinds that a hook wants.
fn matched(hook: &Hook) -> String {
    let matcher = matcher(hook).unwrap_or_else(|| "any".to_owned());
    condition(hook).map_or_else(|| matcher.clone(), |condition| format!("{matcher}; needs {condition}"))
}

/// What a hook runs, on one line.
pub(super) fn handler(handler: &Handler) -> String {
    let what = match handler {
        Handler::Command(command) => command.line.to_string(),
        Handler::Http(http) => format!("{} {}", http.method.as_str(), http.address),
        Handler::Prompt(prompt) => prompt.model.reference.to_string(),
        Handler::Agent(task) => task.agent.name.clone(),
        Handler::Rule(rule) | Handler::Rego(rule) => rule.shown.to_string(),
        Handler::Native(_) => return handler.kind().to_string(),
    };
    let mode = handler.mode().filter(|mode| *mode != CommandMode::Oneshot.as_str());
    let mode = mode.map(|mode| format!(" ({mode})")).unwrap_or_default();
    format!("{}{mode}: {}", handler.kind(), escape::short(&what, LONGEST_HANDLER))
}

fn location(hook: &Hook) -> String {
    let file = hook.source.file.as_deref();
    file.map_or_else(
        || "the program itself".to_owned(),
        |file| format!("{}:{}", display_path(file), hook.source.line),
    )
}
