//! `serve`: the daemon, from its start to the signal that ends it.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    pin::pin,
    time::Duration,
};

use clap::Args;
use rustix::process::setsid;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::{
    escape,
    exit::{CliError, CliResult, Exit},
    flags::SettingsFlags,
    logs::LogFormat,
    paths::{absolute, display_path},
    screen::{MessageFormat, Screen},
    sd_notify,
    serve_check::ServeCheckFlags,
    session::{StopSignals, start_error},
    settings::{SettingsSource, VariablePolicy, set_keys, settings_from, settings_of, tell},
    tcp_address::tcp_address,
    units::plural,
};
use crate::{
    config::{self, LifecyclePlace, Settings, WorkspaceSettings},
    daemon::{Daemon, HandedOver, ListenerSource, StoppableStart},
    handler::command::Adoption,
    model::{Severity, WorkspaceId},
    platform::{HookCgroup, LOST_PROMISES, hide_memory},
};

const FOOTER: &str = "\
Examples:
  hookyard serve --workspace ~/projects/shop
  hookyard serve --config /etc/hookyard/hookyard.yaml
  hookyard serve --set 'workspace_roots=[/srv]' --tcp 127.0.0.1:8787
  hookyard serve --config /etc/hookyard/hookyard.yaml --check
  hookyard serve --config /etc/hookyard/hookyard.yaml --replace

Then, in another terminal:
  hookyard status
  curl --unix-socket $XDG_RUNTIME_DIR/hookyard.sock --json @event.json http://hookyard/v1/events

Signals: SIGTERM and SIGINT stop the daemon once `listen.lameduck` is over and in-flight events are done; a second one \
stops it at once. SIGHUP reloads hook files and tokens.

Exit codes of `--check`: 0 the daemon would start, or would once the running one has stopped, though hook files may have \
errors without `--strict`; 1 it would not, or with `--strict` something is wrong.";

/// Start the daemon, which runs hooks for hosts in any language
///
/// Listens on two Unix sockets that only its user can open: the event socket takes events, the control socket also
/// controls the daemon. With `--tcp` it listens on a TCP address too.
///
/// Settings come from a file, from environment variables such as `HOOKYARD_LISTEN_TCP`, and from flags. Environment
/// variables override the file; flags override both.
#[derive(Debug, Args)]
#[command(after_help = FOOTER)]
pub(super) struct ServeCommand {
    /// Workspace to serve, in addition to those of the settings. Its id is the directory's name; can be repeated
    #[arg(long, short, value_name = "DIR")]
    pub(super) workspace: Vec<PathBuf>,

    /// Event socket; default: the setting `listen.socket`, or `$XDG_RUNTIME_DIR/hookyard.sock`
    #[arg(long, value_name = "PATH")]
    pub(super) socket: Option<PathBuf>,

    /// Control socket; default: the setting `listen.control_socket`, or beside the event socket: `hookyard-control.sock`
    /// beside `hookyard.sock`
    #[arg(long, value_name = "PATH")]
    pub(super) control_socket: Option<PathBuf>,

    /// TCP address to listen on as well: IP address and port, such as `127.0.0.1:8787`
    #[arg(long, value_name = "ADDRESS", value_parser = tcp_address)]
    pub(super) tcp: Option<SocketAddr>,

    /// File with the token that TCP clients must send
    #[arg(long, value_name = "FILE")]
    pub(super) token_file: Option<PathBuf>,

    /// File with the token of TCP clients that control the daemon
    #[arg(long, value_name = "FILE")]
    pub(super) control_token_file: Option<PathBuf>,

    /// Take over from the running daemon: it hands its sockets over once this one has loaded its workspaces, and finishes
    /// what it has. Without a running daemon, start as usual
    #[arg(long)]
    pub(super) replace: bool,

    /// End after this time without events, such as `30m`. Runs at work and readers of the stream keep the daemon running
    #[arg(long, value_name = "DURATION", value_parser = idle_timeout)]
    pub(super) exit_when_idle: Option<Duration>,

    /// Run in a new session, so that signals to that of the caller and the end of its terminal do not reach the daemon
    #[arg(long)]
    pub(super) own_session: bool,

    /// Permit debuggers and core dumps. Processes of this user, hooks among them, can then read the daemon's memory and
    /// environment, with its secrets
    #[arg(long)]
    pub(super) debuggable: bool,

    /// Format of logs and messages on standard error. In systemd's journal each line has its priority
    #[arg(long, value_name = "FORMAT", default_value = "auto", overrides_with = "log")]
    pub(super) log: LogFormat,

    #[command(flatten)]
    pub(super) check: ServeCheckFlags,

    #[command(flatten)]
    pub(super) settings: SettingsFlags,

    /// Where hooks of lifecycle events run, if the command decides that
    #[arg(skip)]
    pub(super) lifecycle: Option<LifecyclePlace>,
}

fn idle_timeout(text: &str) -> Result<Duration, &'static str> {
    config::duration(text).filter(|timeout| !timeout.is_zero()).ok_or("write it with its unit, such as `30m`")
}

impl ServeCommand {
    pub(super) fn log_format(&self) -> LogFormat {
        if self.check.check { LogFormat::Human } else { self.log }
    }

    /// Whether it only checks what a start needs.
    pub(super) fn only_checks(&self) -> bool {
        self.check.check
    }

    /// Shows what a start would find.
    pub(super) fn show_check(self, screen: &Screen) -> CliResult {
        let (settings, diagnostics) = settings_of(&self.settings, VariablePolicy::Read)?;
        let is_wrong = diagnostics.iter().any(|diagnostic| diagnostic.severity == Severity::Error);
        let settings = if is_wrong { Err(CliError::AlreadyReported) } else { self.with_flags(settings) };
        self.check.run(&settings, &diagnostics, self.replace, screen)
    }

    /// Where its listeners come from. Call it before there are other threads.
    ///
    /// Returns an error if the service manager hands over what cannot be used.
    pub(super) fn listener_source(&self) -> Result<ListenerSource, CliError> {
        let handed_over = HandedOver::from_service_manager().map_err(|error| start_error(&error))?;
        match (self.replace, handed_over.is_empty()) {
            (false, _) => Ok(ListenerSource::HandedOver(handed_over)),
            (true, true) => Ok(ListenerSource::Replace),
            (true, false) => Err(CliError::with_help(
                "`--replace` cannot be used where the service manager hands over sockets",
                "restart the service; connections wait in its sockets",
            )),
        }
    }

    pub(super) async fn run(self, source: ListenerSource, screen: &Screen) -> CliResult {
        if self.own_session {
            // Fails only for the leader of a group, which signals to the caller's group do not reach either.
            setsid().ok();
        }
        if !self.debuggable {
            hide_from_debuggers();
        }
        let file = SettingsSource::of(&self.settings, VariablePolicy::Read)?;
        let (settings, diagnostics) = settings_from(file.as_ref(), &self.settings, VariablePolicy::Read)?;
        tell(&diagnostics, screen)?;
        let settings = self.with_flags(settings)?;
        let set = self.set_keys(set_keys(file.as_ref(), &self.settings), &settings);
        let deadline = settings.shutdown_deadline;
        // Before the first hook runs: a signal that comes earlier ends a program that has nothing to clean up.
        let mut stop_signals = StopSignals::for_service().map_err(|error| start_error(&error))?;
        let mut hangup = signal(SignalKind::hangup()).map_err(|error| start_error(&error))?;
        // Where files may not grow any more, writing one fails, and the daemon goes on.
        let _file_size = signal(SignalKind::from_raw(rustix::process::Signal::XFSZ.as_raw()))
            .map_err(|error| start_error(&error))?;
        for lost in LOST_PROMISES {
            tracing::warn!("not on this system: {lost}");
        }
        // Dropped last: they end what hooks left.
        let _cgroup = HookCgroup::enter();
        let _adoption = Adoption::begin();
        let start = StoppableStart::with_settings(set);
        let environment = |name: &str| std::env::var(name).ok();
        let mut starting = pin!(Daemon::start_with(settings, &environment, source, &start));
        let started = loop {
            tokio::select! {
                started = &mut starting => break started,
                exit = stop_signals.next() => if !start.stop() { return Ok(exit) },
            }
        };
        let daemon = started.map_err(|error| start_error(&error))?;
        let _watchdog = sd_notify::feed_watchdog(daemon.control_socket());
        if daemon.is_loaded() {
            announce(&daemon, screen);
            sd_notify::notify("READY=1");
        }
        let reason = if start.is_stopped() {
            StopReason::Signal
        } else {
            serve(&daemon, self.exit_when_idle, &mut stop_signals, &mut hangup).await
        };
        sd_notify::notify("STOPPING=1");
        let exit = stop(daemon, reason, deadline, &mut stop_signals, screen).await;
        tracing::info!(reason = reason.as_str(), "stopped");
        Ok(exit)
    }

    /// The settings, overridden by flags.
    fn with_flags(&self, mut settings: Settings) -> Result<Settings, CliError> {
        if let Some(lifecycle) = self.lifecycle {
            settings.cluster.lifecycle = lifecycle;
        }
        let listen = &mut settings.listen;
        override_path(&mut listen.socket, self.socket.as_deref())?;
        override_path(&mut listen.control_socket, self.control_socket.as_deref())?;
        listen.tcp = self.tcp.or(listen.tcp);
        override_path(&mut listen.token_file, self.token_file.as_deref())?;
        override_path(&mut listen.control_token_file, self.control_token_file.as_deref())?;
        for given in &self.workspace {
            let root = given.canonicalize().map_err(|error| {
                let name = escape::path(given);
                CliError::new(format!(
                    "the workspace `{name}` cannot be used: {}",
                    crate::model::io_reason(&error)
                ))
            })?;
            let id = WorkspaceId::of_directory(&root);
            if let Some(other) = settings.workspaces.insert(id.clone(), WorkspaceSettings::new(&root))
                && other.root != root
            {
                return Err(same_id(&id, &other.root, &root));
            }
        }
        Ok(settings)
    }
}

/// Replaces the path of a setting by that of a flag, if it was given.
fn override_path(setting: &mut Option<PathBuf>, flag: Option<&Path>) -> Result<(), CliError> {
    if let Some(path) = flag {
        *setting = Some(absolute(path)?);
    }
    Ok(())
}

fn same_id(id: &WorkspaceId, one: &Path, other: &Path) -> CliError {
    CliError::with_help(
        format!("two workspaces have the id `{id}`: {} and {}", one.display(), other.display()),
        "name them in a settings file, each under its own id",
    )
}

/// Keeps processes of the same user, which hooks are, from the daemon's memory and environment.
fn hide_from_debuggers() {
    if let Err(error) = hide_memory() {
        tracing::warn!(%error, "hooks can read the memory of the daemon");
    }
}

/// Reports where the daemon listens.
fn announce(daemon: &Daemon, screen: &Screen) {
    let reports = daemon.orchestrator().load_reports();
    let hooks: usize = reports.values().map(|report| report.hooks).sum();
    let errors: usize = reports.values().map(|report| report.errors().count()).sum();
    let workspaces = plural(reports.len(), "workspace");
    let hooks = plural(hooks, "hook");
    // A log is read elsewhere, where a relative path means nothing.
    let socket = match screen.message_format {
        MessageFormat::Text => display_path(daemon.socket()),
        MessageFormat::Log => escape::path(daemon.socket()),
    };
    let tcp = daemon.tcp().map(|address| format!(" and http://{address}")).unwrap_or_default();
    screen.note(&format!("listening on {socket}{tcp}: {workspaces}, {hooks}"));
    if !daemon.knows_workspaces() {
        screen.note(
            "note: no workspace: run `hookyard workspaces add DIR`, or `hookyard connect` for an agent; or start with \
             `--workspace DIR`",
        );
    }
    if errors > 0 {
        let errors = plural(errors, "error");
        screen.note(&format!(
            "note: {errors} in hook files; `hookyard status` lists them, and which rules stay in force"
        ));
    }
}

/// Why the daemon stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StopReason {
    Signal,
    /// A client of the API has asked for it.
    Request,
    /// No event has come for a while.
    Idle,
}

impl StopReason {
    fn as_str(self) -> &'static str {
        match self {
            Self::Signal => "signal",
            Self::Request => "request of a client",
            Self::Idle => "no events",
        }
    }
}

/// Serves until a signal or a client of the API ends it.
async fn serve(
    daemon: &Daemon,
    exit_when_idle: Option<Duration>,
    stop_signals: &mut StopSignals,
    hangup: &mut Signal,
) -> StopReason {
    let mut idle = pin!(idle_for(daemon, exit_when_idle));
    loop {
        tokio::select! {
            // In this order: a signal after a request must not count as the first of two.
            biased;
            () = daemon.stop_requested() => return StopReason::Request,
            _ = stop_signals.next() => return StopReason::Signal,
            () = &mut idle => {
                tracing::info!("stopping after a time without events");
                return StopReason::Idle;
            }
            _ = hangup.recv() => {
                tracing::info!("reloading hook files and tokens after SIGHUP");
                tokio::select! {
                    biased;
                    () = daemon.stop_requested() => return StopReason::Request,
                    _ = stop_signals.next() => return StopReason::Signal,
                    reloaded = daemon.reload() => if let Err(error) = reloaded {
                        tracing::error!(%error, "hook files could not be reloaded");
                    },
                }
            }
        }
    }
}

/// Waits until the daemon has had no events for a time; without a limit, for ever.
async fn idle_for(daemon: &Daemon, limit: Option<Duration>) {
    match limit {
        Some(limit) => daemon.idle_for(limit).await,
        None => std::future::pending().await,
    }
}

/// Waits for in-flight events; a second signal ends the program, and every hook, at once. After a request of the API, the
/// first signal only ends the lame duck phase.
async fn stop(
    daemon: Daemon,
    reason: StopReason,
    deadline: Duration,
    stop_signals: &mut StopSignals,
    screen: &Screen,
) -> Exit {
    let in_flight = daemon.orchestrator().in_flight();
    if in_flight > 0 {
        screen.note(&format!("stopping; waiting for {} in flight", plural(in_flight, "event")));
    }
    let lameduck_over = daemon.lameduck_over();
    let mut had_signal = reason == StopReason::Signal;
    let mut stopped = pin!(daemon.stop(deadline));
    loop {
        tokio::select! {
            finished = &mut stopped => {
                if !finished {
                    let seconds = deadline.as_secs_f64();
                    screen.note(&format!("note: events not finished after {seconds} s were cancelled"));
                }
                return Exit::Done;
            }
            exit = stop_signals.next() => {
                if std::mem::replace(&mut had_signal, true) {
                    screen.note("stopped at once");
                    return exit;
                }
                lameduck_over.cancel();
            }
        }
    }
}
