//! `log`: show what hooks block, and which of them fail.

use std::time::SystemTime;

use clap::Args;
use serde_json::Value;

use super::{
    audit::AuditCommand,
    daemon_flag::{SocketFlag, WorkspaceIdFlag},
    escape,
    exit::{CliError, CliResult, Exit},
    flags::JsonFlag,
    screen::Screen,
    verdict_line::VerdictLine,
};
use crate::model::{Timestamp, Verdict};

const FOOTER: &str = "\
Examples:
  hookyard log --follow
  hookyard log --follow --workspace-id shop --all
  hookyard log --lines 100

Without `--follow` it reads the audit, if the daemon writes one; `hookyard audit` searches that. Entries that a busy \
daemon could not send in time are counted as lost.";

/// How many decisions of the past are shown.
const DEFAULT_LINES: usize = 20;

/// Show what is blocked and why
///
/// Each decision to ask, block or halt is shown with its reason: the last ones of the audit, or with `--follow` those from
/// now on, and also each in which a hook failed.
#[derive(Debug, Args)]
#[command(after_help = FOOTER)]
pub(super) struct LogCommand {
    #[command(flatten)]
    workspace: WorkspaceIdFlag,

    /// Show decisions as they are made, until interrupted
    #[arg(long, short)]
    follow: bool,

    /// Show every decision, also to proceed
    #[arg(long, requires = "follow")]
    all: bool,

    /// How many decisions to show; with `--follow` it ends after so many
    #[arg(long, short = 'n', value_name = "NUMBER")]
    lines: Option<usize>,

    #[command(flatten)]
    socket: SocketFlag,

    #[command(flatten)]
    output: JsonFlag,
}

impl LogCommand {
    pub(super) fn run(self, screen: &Screen) -> CliResult {
        if !self.follow {
            let lines = self.lines.unwrap_or(DEFAULT_LINES);
            let Self { workspace, socket, output, .. } = self;
            return AuditCommand::last_stops(lines, workspace.workspace_id, socket, output).run(screen);
        }
        let client = self.socket.interactive_client();
        let query = self.workspace.query(&client)?.unwrap_or_default();
        let mut stream = client.stream(&format!("/v1/stream?{query}"))?;
        let mut event = String::new();
        let mut shown = 0;
        while let Some(line) = stream.next()? {
            match line.split_once(": ") {
                Some(("event", name)) => name.clone_into(&mut event),
                Some(("data", data)) => {
                    shown += usize::from(self.show(&event, data, screen)?);
                    if self.lines.is_some_and(|most| shown >= most) {
                        return Ok(Exit::Done);
                    }
                }
                _ => {}
            }
        }
        Err(CliError::with_help("the daemon ended the stream".to_owned(), "look at the daemon's log"))
    }

    /// Shows an entry of the stream. Returns whether it is a decision that was asked for.
    fn show(&self, event: &str, data: &str, screen: &Screen) -> Result<bool, CliError> {
        // The daemon may be newer: what is unknown is left out.
        let Ok(entry) = serde_json::from_str::<Value>(data) else { return Ok(false) };
        if event == "dropped" {
            screen.note(&format!("{} entries were lost: the daemon is too busy", entry["dropped"]));
        }
        if event != "outcome" {
            return Ok(false);
        }
        let at = Timestamp::of(SystemTime::now()).to_string();
        let line = VerdictLine::of_stream(&entry, &at);
        let stops = line.verdict().is_none_or(|verdict| verdict > Verdict::Allow);
        if !(self.all || stops || line.has_failure()) {
            return Ok(false);
        }
        if self.output.json {
            screen.print(&escape::json(data))?;
        } else {
            screen.print(&line.render(screen.out.paint))?;
        }
        Ok(true)
    }
}
