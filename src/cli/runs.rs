//! `runs`: list the runs of a daemon, or cancel one.

use std::time::Duration;

use clap::Args;
use serde::{Deserialize, Deserializer, Serialize};

use super::{
    daemon_flag::{ControlSocketFlags, WorkspaceIdFlag},
    escape,
    exit::{CliResult, Exit},
    flags::JsonFlag,
    screen::{ListWords, Screen},
    table::{AdaptiveTable, EMPTY_CELL},
    units::{coarse_duration, plural},
};
use crate::daemon::{Client, percent_encoded};

const FOOTER: &str = "\
Examples:
  hookyard runs
  hookyard runs --limit 1000 --json | jq '.runs[] | select(.pending >= 10).run_id'
  hookyard runs --cancel 7f3a --workspace-id shop

A run is listed from its first event that selects a hook until it ends or has been idle for a while.";

/// List the daemon's runs, or cancel one
///
/// The oldest runs come first. Cancelling a run kills the processes of its hooks and answers its waiting events with
/// `halt`.
#[derive(Debug, Args)]
#[command(after_help = FOOTER)]
pub(super) struct RunsCommand {
    #[command(flatten)]
    workspace: WorkspaceIdFlag,

    /// Show at most this many runs
    #[arg(long, value_name = "NUMBER", default_value = "100", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    limit: u32,

    /// Cancel this run instead of listing runs
    #[arg(long, value_name = "RUN")]
    cancel: Option<String>,

    #[command(flatten)]
    sockets: ControlSocketFlags,

    #[command(flatten)]
    output: JsonFlag,
}

#[derive(Debug, Serialize, Deserialize)]
struct RunListing {
    runs: Vec<serde_json::Value>,
    left_out: usize,
}

/// A run as the daemon lists it.
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

/// Reads milliseconds with fractions.
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
        let Some(run) = &self.cancel else {
            let client = self.sockets.event_socket.interactive_client();
            let workspace = self.workspace.query(&client)?;
            return self.list(workspace, &client, screen);
        };
        let client = self.sockets.interactive_client();
        let workspace = self.workspace.query(&client)?;
        self.cancel(run, workspace, &client, screen)
    }

    fn cancel(&self, run: &str, workspace: Option<String>, client: &Client, screen: &Screen) -> CliResult {
        let query = workspace.map(|query| format!("?{query}")).unwrap_or_default();
        let path = format!("/v1/runs/{}{query}", percent_encoded(run));
        let cancelled: CancelResponse = client.ask("DELETE", &path, None)?;
        if self.output.json {
            screen.print_json(&cancelled)?;
        } else {
            let events = plural(cancelled.events, "event");
            screen.print(&format!("cancelled {} with {events} in flight\n", escape::line(run)))?;
        }
        Ok(Exit::Done)
    }

    fn list(&self, workspace: Option<String>, client: &Client, screen: &Screen) -> CliResult {
        let query: Vec<String> =
            [Some(format!("limit={}", self.limit)), workspace].into_iter().flatten().collect();
        let list: RunListing = client.ask("GET", &format!("/v1/runs?{}", query.join("&")), None)?;
        if self.output.json {
            screen.print_json(&list)?;
            return Ok(Exit::Done);
        }
        let words =
            ListWords { list: "the daemon's list of runs", empty: "no run is active or was active recently" };
        screen.print_list(list.runs, list.left_out, words, table)
    }
}

fn table(rows: &[RunRow], screen: &Screen) -> String {
    let header = vec!["run", "workspace", "age", "events", "pending", "now"];
    let mut table = AdaptiveTable::new(header, screen.out.paint).text_columns(&["workspace", "now"]);
    for row in rows {
        let pending = if row.pending == 0 { EMPTY_CELL.to_owned() } else { row.pending.to_string() };
        table.add(vec![
            escape::line(&row.run_id).into_owned(),
            escape::line(&row.workspace_id).into_owned(),
            coarse_duration(row.age),
            row.events.to_string(),
            pending,
            row.now(),
        ]);
    }
    table.render("workspace", screen.table_width())
}

impl RunRow {
    /// What the run does now: its oldest in-flight event, and the hooks that run for it.
    pub(super) fn now(&self) -> String {
        let Some(oldest) = self.under_way.first() else { return idle_text(self) };
        let hooks =
            if oldest.hooks.is_empty() { String::new() } else { format!(": {}", oldest.hooks.join(", ")) };
        let others = self.under_way.len() - 1;
        let more = if others > 0 { format!(" and {others} more") } else { String::new() };
        escape::line(&format!("{} {}{hooks}{more}", oldest.event, coarse_duration(oldest.since))).into_owned()
    }

    /// How long its oldest event has been in flight.
    pub(super) fn busy(&self) -> Duration {
        self.under_way.first().map_or(Duration::ZERO, |oldest| oldest.since)
    }
}

fn idle_text(row: &RunRow) -> String {
    let idle = format!("idle {}", coarse_duration(row.idle));
    match &row.halted {
        Some(HaltState { by: Some(hook) }) => format!("halted by {}, {idle}", escape::line(hook)),
        Some(HaltState { by: None }) => format!("halted, {idle}"),
        None => idle,
    }
}
