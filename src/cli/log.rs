//! `log`: show what hooks block, and which of them fail.

use std::{
    collections::HashSet,
    path::PathBuf,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use clap::Args;
use serde::Deserialize;
use serde_json::Value;

use super::{
    audit::{AuditCommand, AuditPlace},
    daemon_flag::{SocketFlag, WorkspaceIdFlag},
    escape,
    exit::{CliError, CliResult, Exit},
    flags::JsonFlag,
    paths::display_path,
    screen::Screen,
    units::{coarse_duration, plural},
    verdict_line::VerdictLine,
    wrap,
};
use crate::daemon::{Client, ClientError};

const FOOTER: &str = "\
Examples:
  hookyard log
  hookyard log --follow
  hookyard log --follow --workspace-id shop --all
  hookyard log --lines 100

The past is that of the audit, if the daemon writes one; `hookyard audit` searches that. Otherwise the daemon remembers \
the last 2,000 such decisions until it ends. Without a daemon, the audit that its settings name is read. Entries that a \
busy daemon could not send in time are counted as lost.

Exit codes: 0 decisions were shown; 1 there are none, or neither a daemon nor an audit.";

/// How many decisions of the past are shown.
const DEFAULT_LINES: u32 = 20;

/// The most that a daemon lists.
const MOST_LINES: u32 = 4000;

/// Show what is blocked and why
///
/// Shows each decision to ask, block or halt with its reason, and each in which a hook failed: the last ones, and with
/// `--follow` those that come.
#[derive(Debug, Args)]
#[command(after_help = FOOTER)]
pub(super) struct LogCommand {
    #[command(flatten)]
    workspace: WorkspaceIdFlag,

    /// Then show decisions as they are made, until interrupted. With `--json` or `--lines`, only those
    #[arg(long, short)]
    follow: bool,

    /// Show every decision, also to proceed. Past ones are remembered where the daemon has a TCP address
    #[arg(long, requires = "follow")]
    all: bool,

    /// How many decisions to show, 20 by default; with `--follow` it ends after so many new ones
    #[arg(long, short = 'n', value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    lines: Option<u32>,

    #[command(flatten)]
    socket: SocketFlag,

    #[command(flatten)]
    output: JsonFlag,
}

/// Decisions as the daemon lists them, the newest first.
#[derive(Debug, Deserialize)]
struct RememberedDecisions {
    decisions: Vec<Value>,
    left_out: usize,
    /// How far back the daemon's memory goes, in milliseconds since 1970.
    since: u64,
}

impl RememberedDecisions {
    /// How far back they go.
    fn reach(&self) -> String {
        let since = UNIX_EPOCH + Duration::from_millis(self.since);
        coarse_duration(SystemTime::now().duration_since(since).unwrap_or_default())
    }

    /// How many there are, and how far back they go.
    fn count(&self) -> String {
        let reach = self.reach();
        match (self.decisions.len(), self.left_out) {
            (0, _) => {
                format!("nothing was asked, blocked or halted, and no hook failed, in the last {reach}")
            }
            (shown, 0) => format!("{} in the last {reach}", plural(shown, "decision")),
            (shown, more) => format!("the last {shown} of {} decisions in {reach}", shown + more),
        }
    }

    fn print(&self, output: JsonFlag, screen: &Screen) -> Result<(), CliError> {
        self.decisions.iter().rev().try_for_each(|kept| {
            if output.json {
                screen.print(&escape::json(&kept.to_string()))
            } else {
                screen.print(&VerdictLine::of_memory(kept).render(screen))
            }
        })
    }
}

impl LogCommand {
    pub(super) fn run(self, screen: &Screen) -> CliResult {
        if self.follow { self.follow(screen) } else { self.show_past(screen) }
    }

    /// Shows the last decisions of the audit, or else those that the daemon remembers.
    fn show_past(self, screen: &Screen) -> CliResult {
        let client = self.socket.interactive_client();
        let kept_in = match AuditPlace::of(&client)? {
            AuditPlace::File(file) => return self.show_audit(file, screen),
            AuditPlace::Stdout => "all are in its standard output",
            AuditPlace::Nowhere => "with `audit.to` in its settings, it keeps all in a file",
        };
        let remembered = self.remembered(&client)?;
        remembered.print(self.output, screen)?;
        let note = format!("{}, which is as far back as the daemon remembers; {kept_in}", remembered.count());
        tell(&note, screen);
        Ok(if remembered.decisions.is_empty() { Exit::Failed } else { Exit::Done })
    }

    fn show_audit(self, file: PathBuf, screen: &Screen) -> CliResult {
        let lines = self.lines() as usize;
        let Self { workspace, socket, output, .. } = self;
        let from = format!("from the audit {}", display_path(&file));
        let shown =
            AuditCommand::last_notable(file, lines, workspace.workspace_id, (socket, output)).run(screen)?;
        tell(&from, screen);
        Ok(shown)
    }

    /// What the daemon remembers.
    ///
    /// Returns an error that says what to do if it is of a version that does not.
    fn remembered(&self, client: &Client) -> Result<RememberedDecisions, CliError> {
        let workspace = self.workspace.query(client)?.map(|workspace| format!("&{workspace}"));
        let notable = if self.all { "" } else { "&notable=true" };
        let limit = self.lines().min(MOST_LINES);
        let path = format!("/v1/decisions?limit={limit}{notable}{}", workspace.unwrap_or_default());
        client.ask("GET", &path, None).map_err(|error| match error {
            ClientError::Refused { status: 400 | 404 | 409, .. } | ClientError::Unreadable { .. } => {
                let what = "the daemon is older than this program, and does not tell what it remembers";
                CliError::with_help(what, "`hookyard log --follow` shows what is blocked from now on; `hookyard doctor` says how to start the daemon anew")
            }
            error => error.into(),
        })
    }

    fn lines(&self) -> u32 {
        self.lines.unwrap_or(DEFAULT_LINES)
    }

    /// Shows what the daemon remembers, and then decisions as they are made.
    fn follow(&self, screen: &Screen) -> CliResult {
        let client = self.socket.interactive_client();
        let query = self.workspace.query(&client)?.unwrap_or_default();
        // Before the past is asked for: what is decided meanwhile is in both.
        let mut stream = client.stream(&format!("/v1/stream?{query}"))?;
        let known = self.past_before_new(&client, screen)?;
        let mut event = String::new();
        let mut shown = 0;
        while let Some(line) = stream.next()? {
            match line.split_once(": ") {
                Some(("event", name)) => name.clone_into(&mut event),
                Some(("data", data)) => {
                    shown += u32::from(self.show(&event, data, &known, screen)?);
                    if self.lines.is_some_and(|most| shown >= most) {
                        return Ok(Exit::Done);
                    }
                }
                _ => {}
            }
        }
        Err(CliError::with_help("the daemon ended the stream".to_owned(), "look at the daemon's log"))
    }

    /// Shows what the daemon remembers. Returns the ids of these decisions.
    fn past_before_new(&self, client: &Client, screen: &Screen) -> Result<HashSet<String>, CliError> {
        if self.output.json || self.lines.is_some() {
            return Ok(HashSet::new());
        }
        // An older daemon tells of new ones only.
        let Ok(remembered) = self.remembered(client) else { return Ok(HashSet::new()) };
        remembered.print(self.output, screen)?;
        tell(&format!("{}; new ones follow", remembered.count()), screen);
        let ids = remembered.decisions.iter().filter_map(|kept| kept["decision_id"].as_str());
        Ok(ids.map(str::to_owned).collect())
    }

    /// Shows an entry of the stream. Returns whether it is a decision that was asked for, and not known yet.
    fn show(
        &self,
        event: &str,
        data: &str,
        known: &HashSet<String>,
        screen: &Screen,
    ) -> Result<bool, CliError> {
        // The daemon may be newer: what is unknown is left out.
        let Ok(entry) = serde_json::from_str::<Value>(data) else { return Ok(false) };
        if event == "dropped" {
            screen.note(&format!("{} entries were lost: the daemon is too busy", entry["dropped"]));
        }
        if event != "outcome" {
            return Ok(false);
        }
        let line = VerdictLine::of_stream(&entry, SystemTime::now());
        let is_known = entry["outcome"]["decision_id"].as_str().is_some_and(|id| known.contains(id));
        if is_known || !(self.all || line.is_notable()) {
            return Ok(false);
        }
        if self.output.json {
            screen.print(&escape::json(data))?;
        } else {
            screen.print(&line.render(screen))?;
        }
        Ok(true)
    }
}

/// Says where decisions are from, on the lines of the screen.
fn tell(note: &str, screen: &Screen) {
    screen.note(&wrap::hanging(note, screen.table_width(), 0));
}
