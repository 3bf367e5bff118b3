//! `status`, `reload`: how a running daemon is, and having it read its files again. Refuses to judge: a daemon with broken
//! files is up, and says so.

use std::time::Duration;

use clap::Args;
use serde::{Deserialize, Serialize};

use super::{
    arguments::JsonFlag,
    escape,
    exit::{Ending, Exit},
    page::Page,
    screen::Screen,
    talk::SocketFlag,
    workspace::counted,
};
use crate::daemon::{AuditStatus, Status as DaemonStatus};

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
pub(super) struct Status {
    #[command(flatten)]
    socket: SocketFlag,

    #[command(flatten)]
    output: JsonFlag,
}

impl Status {
    pub(super) fn run(self, screen: &Screen) -> Ending {
        let status: DaemonStatus = self.socket.asking().ask("GET", "/v1/status", None)?;
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
    let up = duration(Duration::from_millis(status.uptime_ms));
    fact("hookyard", &format!("{} {}, pid {}, up {up}", status.version, status.phase, status.pid));
    let tcp = status.tcp.as_ref().map(|address| format!(" and http://{address}")).unwrap_or_default();
    let metrics = status.metrics.as_ref();
    let metrics = metrics.map(|address| format!(", metrics at http://{address}/metrics")).unwrap_or_default();
    fact("listens", &format!("{}{tcp}{metrics}", status.socket));
    let (workspaces, hooks) = (counted(status.workspaces, "workspace"), counted(status.hooks, "hook"));
    fact("serves", &format!("{workspaces} with {hooks}; watching their files: {}", status.watch));
    let (runs, events) = (counted(status.runs, "run"), counted(status.events_in_flight, "event"));
    fact("works on", &format!("{events} at the moment; {runs} known, {} active", status.active_runs));
    if let Some(AuditStatus { to, written, dropped_queue, dropped_write }) = &status.audit {
        let lines = usize::try_from(*written).unwrap_or(usize::MAX);
        let dropped = match dropped_queue + dropped_write {
            0 => String::new(),
            dropped => format!("; {dropped} lost, of which {dropped_queue} while too many waited"),
        };
        fact("audit", &format!("{} in {to}{dropped}", counted(lines, "line")));
    }
    for broken in &status.broken {
        let errors = counted(broken.errors, "mistake");
        page.line(&format!("{} {}: {errors}", paint.red("broken"), escape::line(&broken.id)));
        page.line(&format!("  {}", escape::line(&broken.first)));
        for file in &broken.kept {
            page.line(&format!("  {} keeps its former rules", escape::line(file)));
        }
    }
    page.into_text()
}

/// A duration in its largest units.
pub(super) fn duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0 => format!("{} ms", duration.as_millis()),
        1..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
        _ => format!("{} d {} h", seconds / 86_400, seconds / 3600 % 24),
    }
}

/// Has the daemon read its hook files again
///
/// Events under way keep the hooks they began with. A file that is broken now keeps its former rules.
#[derive(Debug, Args)]
#[command(after_help = RELOAD_EXAMPLES)]
pub(super) struct Reload {
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
struct Reloaded {
    id: String,
    root: String,
    version: u64,
    hooks: usize,
    errors: usize,
    kept: Vec<String>,
    changes: Changes,
}

#[derive(Debug, Serialize, Deserialize)]
struct Changes {
    added: Vec<String>,
    removed: Vec<String>,
    changed: Vec<String>,
}

impl Reload {
    pub(super) fn run(self, screen: &Screen) -> Ending {
        let query = self.id.as_deref().map(|id| format!("?workspace_id={}", encoded(id)));
        let path = format!("/v1/reload{}", query.unwrap_or_default());
        let reloaded: Vec<Reloaded> = self.socket.asking().ask("POST", &path, None)?;
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

fn tell(workspace: &Reloaded, page: &mut Page, screen: &Screen) {
    let paint = screen.out.paint;
    let hooks = counted(workspace.hooks, "hook");
    let Changes { added, removed, changed } = &workspace.changes;
    let same =
        if [added, removed, changed].iter().all(|names| names.is_empty()) { ", none changed" } else { "" };
    page.line(&format!("{}  {hooks}{same}", paint.bold(&escape::line(&workspace.id))));
    for (word, names) in [("added", added), ("removed", removed), ("changed", changed)] {
        if !names.is_empty() {
            page.line(&format!("  {word} {}", escape::line(&names.join(", "))));
        }
    }
    if workspace.errors > 0 {
        let errors = counted(workspace.errors, "mistake");
        let check = format!("`hookyard check --workspace {}` shows them", escape::line(&workspace.root));
        page.line(&format!("  {} {errors}; {check}", paint.red("broken")));
    }
    for file in &workspace.kept {
        page.line(&format!("  {} keeps its former rules", escape::line(file)));
    }
}

/// A text as a part of a path or a query.
pub(super) fn encoded(text: &str) -> String {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~".contains(byte);
    let one = |byte: u8| {
        if is_plain(&byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }
    };
    text.bytes().map(one).collect()
}
