//! `cluster dead`: the dead letters of the queue.

use clap::{Args, Subcommand};
use serde::Serialize;
use serde_json::Value;

use super::store::{cluster_settings, queue_operator};
use crate::{
    cli::{
        escape,
        exit::{CliError, CliResult, Exit},
        flags::{JsonFlag, SettingsFlags},
        screen::Screen,
        table::{AdaptiveTable, EMPTY_CELL},
        units::{coarse_duration, plural},
    },
    store::{DeadMessage, NotRetried, QueueOperator},
};

const FOOTER: &str = "\
Examples:
  hookyard cluster dead list
  hookyard cluster dead show 17
  hookyard cluster dead retry 17 18
  hookyard cluster dead drop --all

A lifecycle event of the queue is a dead letter when its hooks have failed five times, no worker has a hook for it, or it cannot be \
read. `retry` and `drop` exit with 1 if a letter is unknown or cannot be tried again; the others are changed all the same.";

/// Show the dead letters of the queue, try them again, or drop them
#[derive(Debug, Args)]
#[command(after_help = FOOTER)]
pub(super) struct DeadAction {
    #[command(subcommand)]
    verb: DeadVerb,
}

#[derive(Debug, Subcommand)]
enum DeadVerb {
    /// List the dead letters, oldest first
    List(ListVerb),
    /// Show a dead letter with its event
    Show(ShowVerb),
    /// Put dead letters into the queue again, as repetitions
    Retry(ChangeVerb),
    /// Remove dead letters; their hooks never run for them
    Drop(ChangeVerb),
}

#[derive(Debug, Args)]
struct ListVerb {
    /// Show at most this many
    #[arg(long, value_name = "NUMBER", default_value = "100", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    limit: u32,

    #[command(flatten)]
    settings: SettingsFlags,

    #[command(flatten)]
    output: JsonFlag,
}

#[derive(Debug, Args)]
struct ShowVerb {
    /// The letter by its id, as `cluster dead list` shows it
    #[arg(value_name = "ID")]
    id: u64,

    #[command(flatten)]
    settings: SettingsFlags,

    #[command(flatten)]
    output: JsonFlag,
}

#[derive(Debug, Args)]
struct ChangeVerb {
    /// Letters by their ids, as `cluster dead list` shows them
    #[arg(value_name = "ID", required_unless_present = "all", conflicts_with = "all")]
    ids: Vec<u64>,

    /// All dead letters
    #[arg(long)]
    all: bool,

    #[command(flatten)]
    settings: SettingsFlags,

    #[command(flatten)]
    output: JsonFlag,
}

#[derive(Debug, Serialize)]
struct DeadListing {
    letters: Vec<LetterRow>,
    left_out: usize,
}

#[derive(Debug, Serialize)]
struct LetterRow {
    id: u64,
    #[serde(rename = "age_ms", serialize_with = "crate::model::milliseconds")]
    age: std::time::Duration,
    reason: String,
    error: Option<String>,
    event: Option<String>,
    workspace_id: Option<String>,
    run_id: Option<String>,
    /// How often a worker had it.
    taken: u32,
    worker: String,
    /// The bytes that it had, if the servers have kept fewer.
    #[serde(skip_serializing_if = "Option::is_none")]
    cut_from: Option<usize>,
    /// The message as it was in the queue; only where one is shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<Value>,
}

/// What became of the letters that were to be changed.
#[derive(Debug, Default, Serialize)]
struct ChangedLetters {
    ids: Vec<u64>,
    unchanged: Vec<UnchangedLetter>,
}

#[derive(Debug, Serialize)]
struct UnchangedLetter {
    id: u64,
    why: String,
}

impl DeadAction {
    pub(super) async fn run(self, screen: &Screen) -> CliResult {
        match self.verb {
            DeadVerb::List(list) => list.run(screen).await,
            DeadVerb::Show(show) => show.run(screen).await,
            DeadVerb::Retry(change) => change.run(Change::Retry, screen).await,
            DeadVerb::Drop(change) => change.run(Change::Drop, screen).await,
        }
    }
}

impl ListVerb {
    async fn run(self, screen: &Screen) -> CliResult {
        let settings = cluster_settings(&self.settings, screen)?;
        let limit = usize::try_from(self.limit).unwrap_or(usize::MAX);
        let (letters, left_out) =
            queue_operator(&settings).await?.dead_letters(limit).await.map_err(CliError::new)?;
        let letters: Vec<LetterRow> = letters.iter().map(LetterRow::of).collect();
        if self.output.json {
            screen.print_json(&DeadListing { letters, left_out })?;
        } else if letters.is_empty() {
            screen.note("there are no dead letters");
        } else {
            screen.print(&table(&letters, screen))?;
            if left_out > 0 {
                screen.note(&format!("and {left_out} more; `--limit` shows them"));
            }
        }
        Ok(Exit::Done)
    }
}

impl ShowVerb {
    async fn run(self, screen: &Screen) -> CliResult {
        let settings = cluster_settings(&self.settings, screen)?;
        let letter = queue_operator(&settings).await?.dead_letter(self.id).await.map_err(CliError::new)?;
        let Some(letter) = letter else {
            let what = format!("there is no dead letter {}", self.id);
            return Err(CliError::with_help(what, "`hookyard cluster dead list` shows those that are there"));
        };
        let mut row = LetterRow::of(&letter);
        if self.output.json {
            let text = || Value::String(String::from_utf8_lossy(&letter.payload).into_owned());
            row.message = Some(serde_json::from_slice(&letter.payload).unwrap_or_else(|_| text()));
            screen.print_json(&row)?;
        } else {
            screen.print(&page(&row, &letter))?;
        }
        Ok(Exit::Done)
    }
}

/// What is done to letters.
#[derive(Debug, Clone, Copy)]
enum Change {
    Retry,
    Drop,
}

impl Change {
    async fn make(self, operator: &QueueOperator, id: u64) -> Result<(), NotRetried> {
        match self {
            Self::Retry => operator.retry(id).await,
            Self::Drop => operator.drop_letter(id).await?.then_some(()).ok_or(NotRetried::Unknown),
        }
    }

    fn done(self) -> &'static str {
        match self {
            Self::Retry => "in the queue again",
            Self::Drop => "dropped",
        }
    }
}

impl ChangeVerb {
    async fn run(mut self, change: Change, screen: &Screen) -> CliResult {
        let settings = cluster_settings(&self.settings, screen)?;
        let operator = queue_operator(&settings).await?;
        if self.all {
            let (letters, _) = operator.dead_letters(usize::MAX).await.map_err(CliError::new)?;
            self.ids = letters.iter().map(|letter| letter.id).collect();
        }
        let mut changed = ChangedLetters::default();
        for id in self.ids {
            match change.make(&operator, id).await {
                Ok(()) => changed.ids.push(id),
                Err(NotRetried::Store(error)) => return Err(CliError::new(error)),
                Err(why) => changed.unchanged.push(UnchangedLetter { id, why: why.to_string() }),
            }
        }
        if self.output.json {
            screen.print_json(&changed)?;
        } else {
            let letters = match changed.ids.len() {
                0 => "no dead letter".to_owned(),
                number => plural(number, "dead letter"),
            };
            screen.print(&format!("{letters} {}\n", change.done()))?;
        }
        for UnchangedLetter { id, why } in &changed.unchanged {
            screen.note(&format!("{id}: {}", escape::line(why)));
        }
        Ok(if changed.unchanged.is_empty() { Exit::Done } else { Exit::Failed })
    }
}

impl LetterRow {
    fn of(letter: &DeadMessage) -> Self {
        Self {
            id: letter.id,
            age: letter.age,
            reason: letter.reason.clone(),
            error: Some(letter.error.clone()).filter(|error| !error.is_empty()),
            event: letter.summary.event.clone(),
            workspace_id: letter.summary.workspace.clone(),
            run_id: letter.summary.run.clone(),
            taken: letter.taken,
            worker: letter.worker.clone(),
            cut_from: letter.cut_from,
            message: None,
        }
    }
}

fn cell(text: Option<&String>) -> String {
    text.map_or_else(|| EMPTY_CELL.to_owned(), |text| escape::line(text).into_owned())
}

fn table(rows: &[LetterRow], screen: &Screen) -> String {
    let header = vec!["id", "reason", "event", "workspace", "run", "age", "taken", "error"];
    let mut table = AdaptiveTable::new(header, screen.out.paint).text_columns(&[
        "reason",
        "event",
        "workspace",
        "run",
        "error",
    ]);
    for row in rows {
        table.add(vec![
            row.id.to_string(),
            escape::line(&row.reason).into_owned(),
            cell(row.event.as_ref()),
            cell(row.workspace_id.as_ref()),
            cell(row.run_id.as_ref()),
            coarse_duration(row.age),
            row.taken.to_string(),
            cell(row.error.as_ref()),
        ]);
    }
    table.render("error", screen.table_width())
}

fn page(row: &LetterRow, letter: &DeadMessage) -> String {
    let message: Option<Value> = serde_json::from_slice(&letter.payload).ok();
    let message = message.and_then(|message| serde_json::to_string_pretty(&message).ok());
    let message = message.unwrap_or_else(|| String::from_utf8_lossy(&letter.payload).into_owned());
    let cut = row.cut_from.map(|bytes| format!("cut       of {bytes} bytes\n")).unwrap_or_default();
    format!(
        "letter    {}, {} old\nreason    {}\nerror     {}\ntaken     {} of the queue, last by {}\n{cut}{}\n",
        row.id,
        coarse_duration(row.age),
        escape::line(&row.reason),
        cell(row.error.as_ref()),
        if row.taken == 1 { "once out".to_owned() } else { format!("{} times out", row.taken) },
        escape::line(&row.worker),
        message.lines().map(escape::line).collect::<Vec<_>>().join("\n"),
    )
}
