//! `serve`: the daemon, from its start to the signal that ends it. Owns what signals mean; refuses to answer anything
//! itself.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use clap::Args;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::{
    escape,
    exit::{CliError, CliResult, Exit},
    flags::SettingsFlags,
    interrupt::StopSignals,
    logs::LogFormat,
    paths::display_path,
    screen::Screen,
    sd_notify,
    settings::{settings_of, tell},
    units::plural,
};
use crate::{
    config::{Settings, WorkspaceSettings},
    daemon::Daemon,
    model::WorkspaceId,
};

const EXAMPLES: &str = "\
Examples:
  hookyard serve --workspace ~/projects/shop
  hookyard serve --config /etc/hookyard/hookyard.yaml
  hookyard serve --set 'workspace_roots=[/srv]' --tcp 127.0.0.1:8787

Then, from another terminal:
  hookyard status
  curl --unix-socket $XDG_RUNTIME_DIR/hookyard.sock --json @event.json http://hookyard/v1/events

Signals: TERM and INT end it when the events under way are done, a second one at
once; HUP has hook files read again.";

/// Runs hooks for hosts in any language, over a socket
///
/// Listens on a Unix socket that only its user can open, and on TCP if told so. Settings come from a file, from
/// variables such as `HOOKYARD_LISTEN_TCP`, and from flags; later ones count.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ServeCommand {
    /// A workspace to be registered under its directory's name, beside those of the settings; can be repeated
    #[arg(long, short, value_name = "DIR")]
    workspace: Vec<PathBuf>,

    /// The Unix socket; without it, that of the settings, or `$XDG_RUNTIME_DIR/hookyard.sock`
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,

    /// A TCP address to listen on as well, such as `127.0.0.1:8787`
    #[arg(long, value_name = "ADDRESS")]
    tcp: Option<SocketAddr>,

    /// A file with the token that TCP clients must send
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,

    /// How to write what it logs and says on standard error
    #[arg(long, value_name = "FORM", default_value = "auto", overrides_with = "log")]
    log: LogFormat,

    #[command(flatten)]
    settings: SettingsFlags,
}

impl ServeCommand {
    pub(super) fn log_form(&self) -> LogFormat {
        self.log
    }

    pub(super) async fn run(self, screen: &Screen) -> CliResult {
        let (settings, diagnostics) = settings_of(&self.settings)?;
        tell(&diagnostics, screen)?;
        let settings = self.with_flags(settings)?;
        let deadline = settings.shutdown_deadline;
        let trouble = |error: &dyn std::fmt::Display| {
            CliError::new(format!("hookyard did not start: {}", escape::line(&error.to_string())))
        };
        // Before the first hook runs: a signal that comes earlier ends a program that has nothing to tidy up.
        let mut interrupt = StopSignals::for_service().map_err(|error| trouble(&error))?;
        let mut hangup = signal(SignalKind::hangup()).map_err(|error| trouble(&error))?;
        // Where files may not grow any more, writing them fails, and nothing else ends.
        let _file_size = signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw()))
            .map_err(|error| trouble(&error))?;
        let started = tokio::select! {
            started = Daemon::start(settings, &|name| std::env::var(name).ok()) => started,
            exit = interrupt.next() => return Ok(exit),
        };
        let daemon = started.map_err(|error| trouble(&error))?;
        announce(&daemon, screen);
        sd_notify::notify("READY=1");
        serve(&daemon, &mut interrupt, &mut hangup).await;
        sd_notify::notify("STOPPING=1");
        Ok(stop(daemon, deadline, &mut interrupt, screen).await)
    }

    /// The settings with what the flags say.
    fn with_flags(&self, mut settings: Settings) -> Result<Settings, CliError> {
        let listen = &mut settings.listen;
        listen.socket = self.socket.as_deref().map(absolute).transpose()?.or_else(|| listen.socket.take());
        listen.tcp = self.tcp.or(listen.tcp);
        let token_file = self.token_file.as_deref().map(absolute).transpose()?;
        listen.token_file = token_file.or_else(|| listen.token_file.take());
        for given in &self.workspace {
            let root = given.canonicalize().map_err(|error| {
                CliError::new(format!("the workspace `{}` cannot be used: {error}", escape::path(given)))
            })?;
            let id = WorkspaceId::of_directory(&root);
            if let Some(other) = settings.workspaces.insert(id.clone(), WorkspaceSettings::new(&root))
                && other.root != root
            {
                let what = format!(
                    "two workspaces have the id `{id}`: {} and {}",
                    other.root.display(),
                    root.display()
                );
                return Err(CliError::with_help(
                    what,
                    "name them in a settings file, each under an id of its own",
                ));
            }
        }
        Ok(settings)
    }
}

/// A path that is the same wherever the program is.
fn absolute(given: &Path) -> Result<PathBuf, CliError> {
    std::path::absolute(given)
        .map_err(|error| CliError::new(format!("the path `{}` cannot be used: {error}", escape::path(given))))
}

/// Says that it is there.
fn announce(daemon: &Daemon, screen: &Screen) {
    let reports = daemon.orchestrator().load_reports();
    let hooks: usize = reports.values().map(|report| report.hooks).sum();
    let errors: usize = reports.values().map(|report| report.errors().count()).sum();
    let (workspaces, hooks) = (plural(reports.len(), "workspace"), plural(hooks, "hook"));
    let tcp = daemon.tcp().map(|address| format!(" and http://{address}")).unwrap_or_default();
    screen.note(&format!("listening on {}{tcp}: {workspaces}, {hooks}", display_path(daemon.socket())));
    if errors > 0 {
        let errors = plural(errors, "mistake");
        screen.note(&format!(
            "note: {errors} in hook files, whose hooks are left out; `hookyard status` tells"
        ));
    }
}

/// Serves until a signal ends it.
async fn serve(daemon: &Daemon, interrupt: &mut StopSignals, hangup: &mut Signal) {
    loop {
        tokio::select! {
            _ = interrupt.next() => return,
            _ = hangup.recv() => {
                tracing::info!("reading hook files again, as SIGHUP asks");
                if let Err(error) = daemon.reload().await {
                    tracing::error!(%error, "hook files could not be read again");
                }
            }
        }
    }
}

/// Lets events under way finish; a second signal ends the program at once, and every hook with it.
async fn stop(daemon: Daemon, deadline: Duration, interrupt: &mut StopSignals, screen: &Screen) -> Exit {
    let underway = daemon.orchestrator().in_flight();
    if underway > 0 {
        screen.note(&format!("stopping; waiting for {} under way", plural(underway, "event")));
    }
    tokio::select! {
        finished = daemon.stop(deadline) => {
            if !finished {
                let seconds = deadline.as_secs_f64();
                screen.note(&format!("note: events that were not done after {seconds} s were cancelled"));
            }
            Exit::Done
        }
        exit = interrupt.next() => {
            screen.note("stopped at once");
            exit
        }
    }
}
