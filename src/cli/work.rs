//! `work`: a daemon that takes lifecycle events out of the queue of a cluster.

use std::{net::SocketAddr, path::PathBuf};

use clap::Args;

use super::{
    exit::{CliError, CliResult},
    flags::SettingsFlags,
    logs::LogFormat,
    screen::Screen,
    serve::ServeCommand,
    serve_check::ServeCheckFlags,
    tcp_address::tcp_address,
};
use crate::{config::LifecyclePlace, daemon::ListenerSource};

const FOOTER: &str = "\
Examples:
  hookyard work --config /etc/hookyard/worker.yaml
  hookyard work --config /etc/hookyard/worker.yaml --check
  hookyard cluster status --config /etc/hookyard/worker.yaml

Signals: SIGTERM and SIGINT stop it: it takes no further events, waits for hooks that run until `shutdown_deadline`, and \
gives what is left back to the queue. A second one stops it at once. SIGHUP reloads hook files.";

/// Run the hooks of lifecycle events from the queue of a cluster
///
/// Nodes with `cluster.lifecycle: queue` put events into it that nobody waits for. A worker needs the workspaces, the bundle and
/// the `cluster` of the nodes in its settings, and a directory `data` of its own. It takes no events from hosts; `status`,
/// `reload`, `stop` and metrics are those of a daemon.
#[derive(Debug, Args)]
#[command(after_help = FOOTER)]
pub(super) struct WorkCommand {
    /// Workspace whose hooks it runs, in addition to those of the settings. Its id is the directory's name; can be repeated
    #[arg(long, short, value_name = "DIR")]
    workspace: Vec<PathBuf>,

    /// Event socket, which takes no events; default: the setting `listen.socket`, or `$XDG_RUNTIME_DIR/hookyard.sock`
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,

    /// Control socket; default: the setting `listen.control_socket`, or beside the event socket
    #[arg(long, value_name = "PATH")]
    control_socket: Option<PathBuf>,

    /// TCP address to listen on as well, for `status` and metrics
    #[arg(long, value_name = "ADDRESS", value_parser = tcp_address)]
    tcp: Option<SocketAddr>,

    /// File with the token that TCP clients must send
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,

    /// Format of logs and messages on standard error. In systemd's journal each line has its priority
    #[arg(long, value_name = "FORMAT", default_value = "auto", overrides_with = "log")]
    log: LogFormat,

    #[command(flatten)]
    check: ServeCheckFlags,

    #[command(flatten)]
    settings: SettingsFlags,
}

impl WorkCommand {
    pub(super) fn log_format(&self) -> LogFormat {
        if self.check.check { LogFormat::Human } else { self.log }
    }

    pub(super) fn only_checks(&self) -> bool {
        self.check.check
    }

    /// The daemon that it is.
    fn daemon(self) -> ServeCommand {
        ServeCommand {
            workspace: self.workspace,
            socket: self.socket,
            control_socket: self.control_socket,
            tcp: self.tcp,
            token_file: self.token_file,
            control_token_file: None,
            replace: false,
            exit_when_idle: None,
            own_session: false,
            debuggable: false,
            log: self.log,
            check: self.check,
            settings: self.settings,
            lifecycle: Some(LifecyclePlace::Work),
        }
    }

    /// Shows what a start would find.
    pub(super) fn show_check(self, screen: &Screen) -> CliResult {
        self.daemon().show_check(screen)
    }

    /// The daemon that it is, and where its listeners come from. Call it before there are other threads.
    ///
    /// Returns an error if the service manager hands over what cannot be used.
    pub(super) fn prepared(self) -> Result<(ServeCommand, ListenerSource), CliError> {
        let daemon = self.daemon();
        let source = daemon.listener_source()?;
        Ok((daemon, source))
    }
}
