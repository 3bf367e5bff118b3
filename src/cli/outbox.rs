//! `outbox`: show the lifecycle events that are not delivered yet, try them again, or drop them.

use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    daemon_flag::ControlSocketFlags,
    escape,
    exit::{CliResult, Exit},
    flags::JsonFlag,
    screen::{ListWords, Screen},
    table::{AdaptiveTable, EMPTY_CELL},
    units::{coarse_duration, plural},
    wrap,
};

const FOOTER: &str = "\
Examples:
  hookyard outbox list
  hookyard outbox list --state dead --json | jq '.events[].error'
  hookyard outbox retry 17 18
  hookyard outbox retry --all
  hookyard outbox drop --all

`retry` and `drop` need the right to control the daemon. They exit with 1 if an event is unknown or under way; the \
others are changed all the same.

A lifecycle event stays in the outbox until its hooks have ended. What fails is tried five times, then it is a dead letter.";

/// Show lifecycle events that are not delivered yet, try them again, or drop them
///
/// The daemon keeps them in the directory of `data`, so that a restart loses none.
#[derive(Debug, Args)]
#[command(after_help = FOOTER)]
pub(super) struct OutboxCommand {
    #[command(subcommand)]
    action: OutboxAction,
}

#[derive(Debug, Subcommand)]
enum OutboxAction {
    /// List the events, oldest first
    List(ListAction),
    /// Try events again now, dead letters among them
    Retry(ChangeAction),
    /// Remove events that are waiting or dead; their hooks never run for them
    Drop(ChangeAction),
}

#[derive(Debug, Args)]
struct ListAction {
    /// Show only events in this state
    #[arg(long, value_name = "STATE")]
    state: Option<StateChoice>,

    /// Show at most this many events
    #[arg(long, value_name = "NUMBER", default_value = "100", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    limit: u32,

    #[command(flatten)]
    sockets: ControlSocketFlags,

    #[command(flatten)]
    output: JsonFlag,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
#[value(rename_all = "snake_case")]
enum StateChoice {
    /// Their hooks run
    UnderWay,
    /// They wait to be tried again
    Waiting,
    /// They are not tried any more
    Dead,
}

#[derive(Debug, Args)]
struct ChangeAction {
    /// Events by their ids, as `outbox list` shows them
    #[arg(value_name = "ID", required_unless_present = "all", conflicts_with = "all")]
    ids: Vec<u64>,

    /// All dead letters
    #[arg(long)]
    all: bool,

    #[command(flatten)]
    sockets: ControlSocketFlags,

    #[command(flatten)]
    output: JsonFlag,
}

#[derive(Debug, Serialize, Deserialize)]
struct OutboxListing {
    events: Vec<Value>,
    left_out: usize,
}

/// An event as the daemon lists it.
#[derive(Debug, Deserialize)]
struct OutboxRow {
    id: u64,
    state: String,
    workspace_id: String,
    run_id: String,
    event: String,
    age_ms: f64,
    deliveries: u32,
    #[serde(default)]
    next_ms: Option<u64>,
    #[serde(default)]
    error: Option<String>,
    #[serde(default)]
    reason: Option<String>,
}

/// What became of the events that were to be changed.
#[derive(Debug, Serialize, Deserialize)]
struct ChangedEvents {
    ids: Vec<u64>,
    /// Those that are unknown or under way.
    #[serde(default)]
    missing: Vec<u64>,
}

impl OutboxRow {
    fn age(&self) -> Duration {
        Duration::try_from_secs_f64(self.age_ms / 1000.0).unwrap_or_default()
    }
}

impl OutboxCommand {
    pub(super) fn run(self, screen: &Screen) -> CliResult {
        match self.action {
            OutboxAction::List(list) => list.run(screen),
            OutboxAction::Retry(change) => change.run("retry", "tried again", screen),
            OutboxAction::Drop(change) => change.run("drop", "dropped", screen),
        }
    }
}

impl ListAction {
    fn run(self, screen: &Screen) -> CliResult {
        let client = self.sockets.event_socket.interactive_client();
        let state = self.state.map(|state| match state {
            StateChoice::UnderWay => "&state=under_way",
            StateChoice::Waiting => "&state=waiting",
            StateChoice::Dead => "&state=dead",
        });
        let path = format!("/v1/outbox?limit={}{}", self.limit, state.unwrap_or_default());
        let list: OutboxListing = client.ask("GET", &path, None)?;
        if self.output.json {
            screen.print_json(&list)?;
            return Ok(Exit::Done);
        }
        let empty = match self.state {
            None => "the outbox is empty",
            Some(StateChoice::UnderWay) => "no event is under way",
            Some(StateChoice::Waiting) => "no event waits to be tried again",
            Some(StateChoice::Dead) => "there are no dead letters",
        };
        let words = ListWords { list: "the daemon's outbox", empty };
        screen.print_list(list.events, list.left_out, words, table)
    }
}

/// A table, or on a terminal that is too narrow for it some lines for each event: the last error is what people look for.
fn table(rows: &[OutboxRow], screen: &Screen) -> String {
    let table = wide_table(rows, screen);
    match screen.table_width() {
        Some(width) if table.lines().any(|line| line.chars().count() > width) => {
            rows.iter().map(|row| block(row, screen, width)).collect()
        }
        _ => table,
    }
}

fn block(row: &OutboxRow, screen: &Screen, width: usize) -> String {
    let (id, indent) = (row.id.to_string(), "  ");
    let what = format!(
        "{}: {} of run {} in workspace {}, {} old, {}",
        state_text(row),
        escape::line(&row.event),
        escape::line(&row.run_id),
        escape::line(&row.workspace_id),
        coarse_duration(row.age()),
        plural_deliveries(row.deliveries),
    );
    let lines = [what, error_text(row)].map(|text| wrap::hanging(&text, Some(width), indent.len()));
    let [what, error] = lines;
    format!("{}\n{indent}{what}\n{indent}{error}\n", screen.out.paint.bold(&id))
}

fn plural_deliveries(number: u32) -> String {
    if number == 1 { "1 delivery".to_owned() } else { format!("{number} deliveries") }
}

fn state_text(row: &OutboxRow) -> String {
    match (&*row.state, row.next_ms) {
        ("waiting", Some(next)) => {
            format!("waiting, again in {}", coarse_duration(Duration::from_millis(next)))
        }
        ("under_way", _) => "under way".to_owned(),
        (state, _) => escape::line(state).into_owned(),
    }
}

fn wide_table(rows: &[OutboxRow], screen: &Screen) -> String {
    let header = vec!["id", "state", "event", "workspace", "run", "age", "deliveries", "last error"];
    let mut table = AdaptiveTable::new(header, screen.out.paint).text_columns(&[
        "state",
        "event",
        "workspace",
        "run",
        "last error",
    ]);
    for row in rows {
        table.add(vec![
            row.id.to_string(),
            state_text(row),
            escape::line(&row.event).into_owned(),
            escape::line(&row.workspace_id).into_owned(),
            escape::line(&row.run_id).into_owned(),
            coarse_duration(row.age()),
            row.deliveries.to_string(),
            error_text(row),
        ]);
    }
    table.render("", None)
}

fn error_text(row: &OutboxRow) -> String {
    match (row.reason.as_deref(), &row.error) {
        (Some("no_workspace"), _) => "its workspace is not registered".to_owned(),
        (Some("workspace_gone"), _) => "its workspace was removed, or has another directory now".to_owned(),
        (_, Some(error)) => escape::line(error).into_owned(),
        (_, None) => EMPTY_CELL.to_owned(),
    }
}

impl ChangeAction {
    fn run(self, verb: &str, done: &str, screen: &Screen) -> CliResult {
        let client = self.sockets.interactive_client();
        let body = if self.all { json!({ "dead": true }) } else { json!({ "ids": self.ids }) };
        let path = format!("/v1/outbox/{verb}");
        let mut changed: ChangedEvents = client.ask("POST", &path, Some(body.to_string().as_bytes()))?;
        changed.missing = self.ids.iter().copied().filter(|id| !changed.ids.contains(id)).collect();
        changed.missing.sort_unstable();
        changed.missing.dedup();
        if self.output.json {
            screen.print_json(&changed)?;
        } else {
            // Others may wait: without ids, only dead letters are meant.
            let what = if self.all { "dead letter" } else { "event" };
            let changed = match changed.ids.len() {
                0 => format!("no {what}"),
                number => plural(number, what),
            };
            screen.print(&format!("{changed} {done}\n"))?;
        }
        if changed.missing.is_empty() {
            return Ok(Exit::Done);
        }
        let missing: Vec<String> = changed.missing.iter().map(u64::to_string).collect();
        screen.note(&format!("unknown or under way: {}", missing.join(", ")));
        Ok(Exit::Failed)
    }
}
