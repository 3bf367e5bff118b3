//! `status`, `reload`: how a running daemon is, and having it read its files again. Refuses to judge: a daemon with broken
//! files is up, and says so.

use std::time::Duration;

use clap::Args;
use serde::{Deserialize, Serialize};

use super::{
    daemon_flag::{SocketFlag, percent_encoded},
    escape,
    exit::{CliResult, Exit},
    flags::JsonFlag,
    page::Page,
    screen::Screen,
    units::{coarse_duration, plural},
};
use crate::daemon::{AuditStatus, DaemonStatus};

const STATUS_EXAMPLES: &str = "\
Examples:
  hookyard status
  hookyard status --json | jq .active_runs

Exit codes: 0: it is up; 1: it is not.";

const RELOAD_EXAMPLES: &str = "\
Examples:
  hookyard reload
  hookyard reload --id shop

Exit codes: 0: everything was read; 1: a file has mistakes, or there is no daemon.";

/// Shows how the daemon is
#[derive(Debug, Args)]
#[command(after_help = STATUS_EXAMPLES)]
pub(super) struct StatusCommand {
    #[command(flatten)]
    socket: SocketFlag,

    #[command(flatten)]
    output: JsonFlag,
}

impl StatusCommand {
    pub(super) fn run(self, screen: &Screen) -> CliResult {
        let status: DaemonStatus = self.socket.interactive_client().ask("GET", "/v1/status", None)?;
        if self.output.json {
            screen.print_json(&status)?;
        } else {
            screen.print(&view(&status, screen))?;
        }
        Ok(Exit::Done)
    }
}

fn view(status: &DaemonStatus, screen: &Screen) -> String {
    let paint = screen.out.paint;
    let mut page = Page::default();
    let mut fact = |name: &str, value: &str| {
        page.line(&format!("{}  {}", paint.dim(&format!("{name:<10}")), escape::line(value)));
    };
    let up = coarse_duration(Duration::from_millis(status.uptime_ms));
    fact("hookyard", &format!("{} {}, pid {}, up {up}", status.version, status.phase, status.pid));
    let tcp = status.tcp.as_ref().map(|address| format!(" and http://{address}")).unwrap_or_default();
    let metrics = status.metrics.as_ref();
    let metrics = metrics.map(|address| format!(", metrics at http://{address}/metrics")).unwrap_or_default();
    fact("listens", &format!("{}{tcp}{metrics}", status.socket));
    let (workspaces, hooks) = (plural(status.workspaces, "workspace"), plural(status.hooks, "hook"));
    fact("serves", &format!("{workspaces} with {hooks}; watching their files: {}", status.watch));
    let (runs, events) = (plural(status.runs, "run"), plural(status.events_in_flight, "event"));
    fact("works on", &format!("{events} at the moment; {runs} known, {} active", status.active_runs));
    if let Some(AuditStatus { to, written, dropped_queue, dropped_write }) = &status.audit {
        let lines = usize::try_from(*written).unwrap_or(usize::MAX);
        let dropped = match dropped_queue + dropped_write {
            0 => String::new(),
            dropped => format!("; {dropped} lost, of which {dropped_queue} while too many waited"),
        };
        fact("audit", &format!("{} in {to}{dropped}", plural(lines, "line")));
    }
    for broken in &status.broken {
        let errors = plural(broken.errors, "mistake");
        page.line(&format!("{} {}: {errors}", paint.red("broken"), escape::line(&broken.id)));
        page.line(&format!("  {}", escape::line(&broken.first)));
        for file in &broken.kept {
            page.line(&format!("  {} keeps its former rules", escape::line(file)));
        }
    }
    page.into_text()
}

/// Has the daemon read its hook files again
///
/// Events under way keep the hooks they began with. A file that is broken now keeps its former rules.
#[derive(Debug, Args)]
#[command(after_help = RELOAD_EXAMPLES)]
pub(super) struct ReloadCommand {
    /// Those of this workspace only
    #[arg(long, value_name = "ID")]
    id: Option<String>,

    #[command(flatten)]
    socket: SocketFlag,

    #[command(flatten)]
    output: JsonFlag,
}

/// What became of a workspace.
#[derive(Debug, Serialize, Deserialize)]
struct ReloadedWorkspace {
    id: String,
    root: String,
    version: u64,
    hooks: usize,
    errors: usize,
    kept: Vec<String>,
    changes: HookChanges,
}

#[derive(Debug, Serialize, Deserialize)]
struct HookChanges {
    added: Vec<String>,
    removed: Vec<String>,
    changed: Vec<String>,
}

impl ReloadCommand {
    pub(super) fn run(self, screen: &Screen) -> CliResult {
        let query = self.id.as_deref().map(|id| format!("?workspace_id={}", percent_encoded(id)));
        let path = format!("/v1/reload{}", query.unwrap_or_default());
        let reloaded: Vec<ReloadedWorkspace> = self.socket.interactive_client().ask("POST", &path, None)?;
        if self.output.json {
            screen.print_json(&reloaded)?;
        } else if reloaded.is_empty() {
            screen.note("there is no workspace yet");
        } else {
            let mut page = Page::default();
            for workspace in &reloaded {
                tell(workspace, &mut page, screen);
            }
            screen.print(&page.into_text())?;
        }
        let broken = reloaded.iter().any(|workspace| workspace.errors > 0);
        Ok(if broken { Exit::Failed } else { Exit::Done })
    }
}

fn tell(workspace: &ReloadedWorkspace, page: &mut Page, screen: &Screen) {
    let paint = screen.out.paint;
    let hooks = plural(workspace.hooks, "hook");
    let HookChanges { added, removed, changed } = &workspace.changes;
    let same =
        if [added, removed, changed].iter().all(|names| names.is_empty()) { ", none changed" } else { "" };
    page.line(&format!("{}  {hooks}{same}", paint.bold(&escape::line(&workspace.id))));
    for (word, names) in [("added", added), ("removed", removed), ("changed", changed)] {
        if !names.is_empty() {
            page.line(&format!("  {word} {}", escape::line(&names.join(", "))));
        }
    }
    if workspace.errors > 0 {
        let errors = plural(workspace.errors, "mistake");
        let check = format!("`hookyard check --workspace {}` shows them", escape::line(&workspace.root));
        page.line(&format!("  {} {errors}; {check}", paint.red("broken")));
    }
    for file in &workspace.kept {
        page.line(&format!("  {} keeps its former rules", escape::line(file)));
    }
}
