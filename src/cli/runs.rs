//! `runs`: the runs a daemon works on, and cancelling one. Refuses to decide which one that is.

use std::time::Duration;

use clap::Args;
use serde::{Deserialize, Deserializer, Serialize};

use super::{
    daemon_flag::{SocketFlag, percent_encoded},
    escape,
    exit::{CliError, CliResult, Exit},
    flags::JsonFlag,
    screen::Screen,
    table::{AdaptiveTable, EMPTY_CELL},
    units::{coarse_duration, plural},
};

const EXAMPLES: &str = "\
Examples:
  hookyard runs
  hookyard runs --limit 1000 --json | jq '.runs[] | select(.pending >= 10).run_id'
  hookyard runs --cancel 7f3a --id shop

A run is there from the first event that a hook wants until it ends or is idle.";

/// Shows the runs the daemon works on, or cancels one
///
/// The runs that have been there longest come first. Cancelling kills the processes of a run's hooks and answers its
/// waiting events with `halt`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct RunsCommand {
    /// Those of this workspace only
    #[arg(long, value_name = "ID")]
    id: Option<String>,

    /// How many are shown at most
    #[arg(long, value_name = "NUMBER", default_value = "100", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    limit: u32,

    /// Cancels this run instead
    #[arg(long, value_name = "RUN")]
    cancel: Option<String>,

    #[command(flatten)]
    socket: SocketFlag,

    #[command(flatten)]
    output: JsonFlag,
}

#[derive(Debug, Serialize, Deserialize)]
struct RunListing {
    runs: Vec<serde_json::Value>,
    left_out: usize,
}

/// What is shown of a run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct RunRow {
    pub(super) workspace_id: String,
    pub(super) run_id: String,
    #[serde(
        rename = "age_ms",
        deserialize_with = "milliseconds",
        serialize_with = "crate::model::milliseconds"
    )]
    pub(super) age: Duration,
    #[serde(
        rename = "idle_ms",
        deserialize_with = "milliseconds",
        serialize_with = "crate::model::milliseconds"
    )]
    idle: Duration,
    pub(super) events: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    halted: Option<HaltState>,
    #[serde(default)]
    under_way: Vec<InFlightEvent>,
    #[serde(default)]
    pub(super) pending: usize,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct HaltState {
    by: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct InFlightEvent {
    event: String,
    #[serde(
        rename = "since_ms",
        deserialize_with = "milliseconds",
        serialize_with = "crate::model::milliseconds"
    )]
    since: Duration,
    hooks: Vec<String>,
}

/// Milliseconds, which have fractions.
fn milliseconds<'de, D: Deserializer<'de>>(value: D) -> Result<Duration, D::Error> {
    let milliseconds = f64::deserialize(value)?;
    Ok(Duration::try_from_secs_f64(milliseconds / 1000.0).unwrap_or_default())
}

#[derive(Debug, Serialize, Deserialize)]
struct CancelResponse {
    events: usize,
}

impl RunsCommand {
    pub(super) fn run(self, screen: &Screen) -> CliResult {
        let workspace = self.id.as_deref().map(|id| format!("workspace_id={}", percent_encoded(id)));
        match &self.cancel {
            Some(run) => self.cancel(run, workspace, screen),
            None => self.list(workspace, screen),
        }
    }

    fn cancel(&self, run: &str, workspace: Option<String>, screen: &Screen) -> CliResult {
        let query = workspace.map(|query| format!("?{query}")).unwrap_or_default();
        let path = format!("/v1/runs/{}{query}", percent_encoded(run));
        let cancelled: CancelResponse = self.socket.interactive_client().ask("DELETE", &path, None)?;
        if self.output.json {
            screen.print_json(&cancelled)?;
        } else {
            let events = plural(cancelled.events, "event");
            screen.print(&format!("cancelled {} with {events} under way\n", escape::line(run)))?;
        }
        Ok(Exit::Done)
    }

    fn list(&self, workspace: Option<String>, screen: &Screen) -> CliResult {
        let query: Vec<String> =
            [Some(format!("limit={}", self.limit)), workspace].into_iter().flatten().collect();
        let list: RunListing =
            self.socket.interactive_client().ask("GET", &format!("/v1/runs?{}", query.join("&")), None)?;
        if self.output.json {
            screen.print_json(&list)?;
            return Ok(Exit::Done);
        }
        let rows: Vec<RunRow> =
            list.runs.into_iter().map(serde_json::from_value).collect::<Result<_, _>>().map_err(|error| {
                let what = format!("the daemon lists its runs in another way: {error}");
                CliError::with_help(what, "it may be of another version; `--json` shows what it says")
            })?;
        if rows.is_empty() {
            screen.note("no run has work in flight, or had it lately");
            return Ok(Exit::Done);
        }
        screen.print(&table(&rows, screen))?;
        if list.left_out > 0 {
            screen.note(&format!("and {} more; `--limit` shows them", list.left_out));
        }
        Ok(Exit::Done)
    }
}

fn table(rows: &[RunRow], screen: &Screen) -> String {
    let header = vec!["run", "workspace", "age", "events", "pending", "now"];
    let mut grid = AdaptiveTable::new(header, screen.out.paint).words(&["workspace", "now"]);
    for row in rows {
        let pending = if row.pending == 0 { EMPTY_CELL.to_owned() } else { row.pending.to_string() };
        grid.add(vec![
            escape::line(&row.run_id).into_owned(),
            escape::line(&row.workspace_id).into_owned(),
            coarse_duration(row.age),
            row.events.to_string(),
            pending,
            row.now(),
        ]);
    }
    grid.render("workspace", screen.table_width())
}

impl RunRow {
    /// What the run does at the moment: the oldest of its events, and the hooks that work on it.
    pub(super) fn now(&self) -> String {
        let Some(oldest) = self.under_way.first() else { return at_rest(self) };
        let hooks =
            if oldest.hooks.is_empty() { String::new() } else { format!(": {}", oldest.hooks.join(", ")) };
        let others = self.under_way.len() - 1;
        let more = if others > 0 { format!(" and {others} more") } else { String::new() };
        escape::line(&format!("{} {}{hooks}{more}", oldest.event, coarse_duration(oldest.since))).into_owned()
    }

    /// For how long its oldest event has been under way.
    pub(super) fn busy(&self) -> Duration {
        self.under_way.first().map_or(Duration::ZERO, |oldest| oldest.since)
    }
}

fn at_rest(row: &RunRow) -> String {
    let idle = format!("idle {}", coarse_duration(row.idle));
    match &row.halted {
        Some(HaltState { by: Some(hook) }) => format!("halted by {}, {idle}", escape::line(hook)),
        Some(HaltState { by: None }) => format!("halted, {idle}"),
        None => idle,
    }
}
