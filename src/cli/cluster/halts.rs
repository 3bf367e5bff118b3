//! `cluster halts`: the runs that are halted on all nodes.

use std::time::Duration;

use clap::Args;
use serde::Serialize;

use super::store::{cluster_settings, operator};
use crate::{
    cli::{
        escape,
        exit::{CliError, CliResult, Exit},
        flags::{JsonFlag, SettingsFlags},
        screen::Screen,
        table::{AdaptiveTable, EMPTY_CELL},
        units::coarse_duration,
    },
    model::{RunId, RunKey, WorkspaceId},
};

/// Show the runs that are halted on all nodes, or end the halt of one
#[derive(Debug, Args)]
pub(super) struct HaltsAction {
    /// End the halt of this run, on all nodes
    #[arg(long, value_name = "RUN", requires = "workspace", value_parser = run_id)]
    forget: Option<RunId>,

    /// Workspace of the run
    #[arg(long, value_name = "ID", value_parser = workspace_id)]
    workspace: Option<WorkspaceId>,

    #[command(flatten)]
    settings: SettingsFlags,

    #[command(flatten)]
    output: JsonFlag,
}

#[derive(Debug, Serialize)]
struct HaltRow {
    workspace_id: String,
    run_id: String,
    #[serde(rename = "age_ms", serialize_with = "crate::model::milliseconds")]
    age: Duration,
    by: Option<String>,
    reason: Option<String>,
}

fn run_id(text: &str) -> Result<RunId, String> {
    RunId::new(text).map_err(|error| error.to_string())
}

fn workspace_id(text: &str) -> Result<WorkspaceId, String> {
    WorkspaceId::new(text).map_err(|error| error.to_string())
}

impl HaltsAction {
    pub(super) async fn run(self, screen: &Screen) -> CliResult {
        let settings = cluster_settings(&self.settings, screen)?;
        let operator = operator(&settings).await?;
        if let Some((run, workspace)) = self.forget.zip(self.workspace.clone()) {
            let key = RunKey { workspace, run };
            let survey = operator.survey().await.map_err(CliError::new)?;
            if survey.halts.iter().all(|(halted, ..)| *halted != key) {
                let what = format!("the run {} is not halted", escape::line(key.run.as_str()));
                return Err(CliError::with_help(what, "`hookyard cluster halts` shows those that are"));
            }
            operator.forget(&key).await.map_err(CliError::new)?;
            screen
                .print(&format!("the halt of {} is over on all nodes\n", escape::line(key.run.as_str())))?;
            return Ok(Exit::Done);
        }
        let survey = operator.survey().await.map_err(CliError::new)?;
        let rows = survey
            .halts
            .into_iter()
            .filter(|(key, ..)| self.workspace.as_ref().is_none_or(|workspace| key.workspace == *workspace));
        let rows: Vec<HaltRow> = rows
            .map(|(key, halt, age)| HaltRow {
                workspace_id: key.workspace.to_string(),
                run_id: key.run.to_string(),
                age,
                by: halt.by.map(|by| by.to_string()),
                reason: halt.reason.map(|reason| reason.to_string()),
            })
            .collect();
        if self.output.json {
            screen.print_json(&rows)?;
        } else if rows.is_empty() {
            screen.note("no run is halted");
        } else {
            screen.print(&table(&rows, screen))?;
        }
        Ok(Exit::Done)
    }
}

fn table(rows: &[HaltRow], screen: &Screen) -> String {
    let header = vec!["run", "workspace", "age", "by", "reason"];
    let mut table = AdaptiveTable::new(header, screen.out.paint).text_columns(&["workspace", "by", "reason"]);
    for row in rows {
        let text = |text: Option<&String>| {
            text.map_or_else(|| EMPTY_CELL.to_owned(), |text| escape::line(text).into_owned())
        };
        table.add(vec![
            escape::line(&row.run_id).into_owned(),
            escape::line(&row.workspace_id).into_owned(),
            coarse_duration(row.age),
            text(row.by.as_ref()),
            text(row.reason.as_ref()),
        ]);
    }
    table.render("reason", screen.table_width())
}
