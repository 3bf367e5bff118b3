//! Tries all that a start would open, and releases it again. Nothing is served.

use std::{
    io,
    net::{SocketAddr, TcpListener},
    path::{Path, PathBuf},
    time::Duration,
};

use serde::Serialize;

use super::{
    audit::Audit,
    client::Client,
    handed_over::HandedOverError,
    ledger_claim::LedgerClaim,
    listeners::{check_addresses_apart, check_sockets_apart},
    routes::DaemonStatus,
    served_roots::real_directory,
    socket::{Socket, SocketError, default_control_socket, default_socket},
    start_error::ServeError,
    tokens::TcpTokens,
};
use crate::{
    config::{self, AuditDestination, DataDirectory, LastGoodStore, Settings},
    platform,
    store::{self, StoreCheck},
};

/// How long a daemon may take to say that it is one.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);

/// The largest file of secrets that is read, in bytes.
const LARGEST_SECRETS: u64 = 1 << 20;

/// What a finding means for a start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum StartFindingLevel {
    /// As it should be.
    Ok,
    /// What this system cannot do: nobody can mend it.
    Note,
    /// The daemon starts, and something is missing or in the way.
    Warning,
    /// The daemon does not start.
    Error,
}

/// What was found about one thing that a start needs.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct StartFinding {
    pub(crate) level: StartFindingLevel,
    /// What was looked at: a setting, or `workspace`.
    pub(crate) subject: String,
    pub(crate) message: String,
    /// What to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) help: Option<String>,
}

impl StartFinding {
    pub(crate) fn ok(subject: &str, message: impl Into<String>) -> Self {
        Self {
            level: StartFindingLevel::Ok,
            subject: subject.to_owned(),
            message: message.into(),
            help: None,
        }
    }

    #[cfg(feature = "cli")]
    pub(crate) fn note(subject: &str, message: impl Into<String>) -> Self {
        Self { level: StartFindingLevel::Note, ..Self::ok(subject, message) }
    }

    pub(crate) fn warning(subject: &str, message: impl Into<String>) -> Self {
        Self { level: StartFindingLevel::Warning, ..Self::ok(subject, message) }
    }

    pub(crate) fn error(subject: &str, message: impl Into<String>) -> Self {
        Self { level: StartFindingLevel::Error, ..Self::ok(subject, message) }
    }

    #[must_use]
    pub(crate) fn help(self, help: impl Into<String>) -> Self {
        Self { help: Some(help.into()), ..self }
    }
}

/// What a start would find.
#[derive(Debug)]
pub(crate) struct StartCheck {
    pub(crate) findings: Vec<StartFinding>,
    /// The daemon that runs already.
    pub(crate) running: Option<RunningDaemon>,
}

/// A daemon that is there when another one is to start.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct RunningDaemon {
    pub(crate) pid: u32,
    /// Whether the new daemon would take over from it. Otherwise it must stop first.
    pub(crate) replaced: bool,
}

/// What a daemon of these settings would find when it starts. `replaces` says whether it would take over from a running
/// one. Blocks.
pub(crate) fn preflight(
    settings: &Settings,
    environment: &dyn Fn(&str) -> Option<String>,
    replaces: bool,
) -> StartCheck {
    let event_path = settings.listen.socket.clone().unwrap_or_else(|| default_socket(environment));
    let control_path = settings.listen.control_socket.clone();
    let control_path = control_path.unwrap_or_else(|| default_control_socket(&event_path));
    // A new daemon asks for the other one at the control socket.
    let predecessor = if replaces { status_at(&control_path) } else { None };
    let is_replaced = predecessor.is_some();
    let running = predecessor.or_else(|| status_at(&event_path));
    let lines_path = settings.listen.lines.clone();
    let check = Preflight { settings, event_path, control_path, lines_path, running, replaces, is_replaced };
    let mut findings = check.tokens();
    findings.extend(check.sockets());
    findings.extend(check.addresses());
    findings.push(check.audit());
    findings.extend(check.data(environment));
    findings.extend(settings.secrets.file.as_deref().map(secrets));
    findings.extend(settings.workspace_roots.iter().map(|root| workspace_root(root)));
    let running = check.running.map(|running| RunningDaemon { pid: running.pid, replaced: is_replaced });
    StartCheck { findings, running }
}

/// What the daemon at a socket says of itself.
fn status_at(socket: &Path) -> Option<DaemonStatus> {
    // The service manager would not answer, and keep the question for the daemon that starts.
    let is_served = Socket::listener_pid(socket).is_some_and(|pid| pid != 1);
    let client = is_served.then(|| Client::new(socket).timeout(ANSWER_TIMEOUT))?;
    client.ask("GET", "/v1/status", None).ok()
}

struct Preflight<'a> {
    settings: &'a Settings,
    event_path: PathBuf,
    control_path: PathBuf,
    lines_path: Option<PathBuf>,
    /// The daemon that listens on one of the sockets.
    running: Option<DaemonStatus>,
    /// Whether the new daemon is to take over from it.
    replaces: bool,
    /// Whether it can: the other one answers at the control socket.
    is_replaced: bool,
}

impl Preflight<'_> {
    fn tokens(&self) -> Vec<StartFinding> {
        let listen = &self.settings.listen;
        let tokens = match TcpTokens::read(listen) {
            Ok(tokens) => tokens,
            Err(error) => return vec![StartFinding::error("listen.token_file", error.to_string())],
        };
        if let Some(Err(error)) = listen.tcp.map(|address| tokens.permit(address)) {
            return vec![StartFinding::error("listen.token_file", error.to_string())];
        }
        let files = [
            ("listen.token_file", &listen.token_file),
            ("listen.control_token_file", &listen.control_token_file),
        ];
        let named = files.iter().filter_map(|(subject, file)| Some((subject, file.as_deref()?)));
        named.map(|(subject, file)| StartFinding::ok(subject, file.display().to_string())).collect()
    }

    /// What a running daemon of this user means: it must stop first, unless the new one takes over.
    fn of_running(&self, subject: &str, what: &str, running: &DaemonStatus) -> StartFinding {
        let daemon = format!("hookyard {}, pid {}, node {}", running.version, running.pid, running.node);
        if self.is_replaced {
            StartFinding::ok(subject, format!("{what}, of {daemon}, which is replaced"))
        } else {
            StartFinding::warning(subject, format!("{what} is used by {daemon}"))
                .help("stop it first, or start with `--replace`")
        }
    }

    /// The sockets, and the record of process groups beside them.
    fn sockets(&self) -> Vec<StartFinding> {
        let lines_path = self.lines_path.as_deref();
        if let Err(error) = check_sockets_apart(&self.event_path, &self.control_path, lines_path) {
            let subject = match &error {
                SocketError::Shared { settings: [_, subject], .. } => subject,
                _ => "listen.control_socket",
            };
            return vec![StartFinding::error(subject, error.to_string())];
        }
        let of_running = self.running.as_ref();
        let events = of_running.map(|running| Path::new(&running.socket));
        let control = of_running.map(|running| Path::new(&running.control_socket));
        let mut found = vec![
            self.socket(("listen.socket", "events"), &self.event_path, events),
            self.socket(("listen.control_socket", "control"), &self.control_path, control),
        ];
        // That of the running daemon may be at another place: it is closed then.
        found.extend(lines_path.map(|path| self.socket(("listen.lines", "lines"), path, None)));
        // A start gets as far as the record only if the directory can be used. It creates the default one.
        let is_there = self.event_path.parent().is_none_or(Path::exists);
        let is_usable = is_there && found[0].level != StartFindingLevel::Error;
        let ledger = if is_usable { self.ledger() } else { None };
        found.into_iter().chain(ledger).collect()
    }

    /// One socket. `running` is that of the running daemon for the same.
    fn socket(
        &self,
        (subject, role): (&str, &'static str),
        path: &Path,
        running: Option<&Path>,
    ) -> StartFinding {
        let shown = path.display();
        if self.is_replaced
            && let Some(found) = running.filter(|found| *found != path)
        {
            let (found, expected) = (found.display().to_string(), shown.to_string());
            let error = HandedOverError::Elsewhere { role, found, expected };
            return StartFinding::error(subject, error.to_string());
        }
        if let Some(running) = self.running.as_ref().filter(|running| {
            let sockets = [Some(&running.socket), Some(&running.control_socket), running.lines.as_ref()];
            sockets.into_iter().flatten().any(|socket| Path::new(socket) == path)
        }) {
            if !self.replaces || self.is_replaced {
                return self.of_running(subject, &shown.to_string(), running);
            }
            let error = SocketError::Taken(path.to_owned());
            return StartFinding::error(subject, error.to_string()).help(format!(
                "`--replace` looks for it at {}, and its control socket is {}",
                self.control_path.display(),
                running.control_socket
            ));
        }
        match Socket::check(path) {
            Ok(()) => StartFinding::ok(subject, shown.to_string()),
            Err(SocketError::Taken(_)) => taken(subject, path),
            Err(error) => StartFinding::error(subject, error.to_string()),
        }
    }

    /// What is wrong with the record of process groups.
    fn ledger(&self) -> Option<StartFinding> {
        let subject = "listen.socket";
        match LedgerClaim::check(&self.event_path, self.is_replaced) {
            // The socket is among the findings.
            Ok(()) | Err(ServeError::Socket(SocketError::Taken(_))) => None,
            Err(error @ ServeError::Finishing { .. }) => {
                let seconds = self.settings.shutdown_deadline.as_secs();
                Some(StartFinding::warning(subject, error.to_string()).help(format!(
                    "a start waits for it, little longer than the {seconds} s of `shutdown_deadline`"
                )))
            }
            Err(error) => Some(StartFinding::error(subject, error.to_string())),
        }
    }

    /// The TCP addresses, all of them open at once, as those of a daemon are.
    fn addresses(&self) -> Vec<StartFinding> {
        let listen = &self.settings.listen;
        if let Err(error) = check_addresses_apart(listen) {
            return vec![StartFinding::error("listen.metrics", error.to_string())];
        }
        let mut open = Vec::new();
        let own = |of: fn(&DaemonStatus) -> Option<&str>| self.running.as_ref().and_then(of);
        let (tcp, metrics) =
            (own(|running| running.tcp.as_deref()), own(|running| running.metrics.as_deref()));
        let addresses = [("listen.tcp", listen.tcp, tcp), ("listen.metrics", listen.metrics, metrics)];
        let given =
            addresses.into_iter().filter_map(|(subject, address, own)| Some((subject, address?, own)));
        given.map(|(subject, address, own)| self.address(subject, address, own, &mut open)).collect()
    }

    /// One address. `own` is that of the running daemon for the same.
    fn address(
        &self,
        subject: &str,
        address: SocketAddr,
        own: Option<&str>,
        open: &mut Vec<TcpListener>,
    ) -> StartFinding {
        let source = match TcpListener::bind(address) {
            Ok(listener) => {
                open.push(listener);
                return StartFinding::ok(subject, address.to_string());
            }
            Err(source) => source,
        };
        let shown = address.to_string();
        let running = self.running.as_ref().filter(|running| {
            // Only what has the same use is handed over; a daemon that stops gives up all.
            let others = [running.tcp.as_deref(), running.metrics.as_deref()];
            own == Some(&*shown) || (!self.replaces && others.contains(&Some(&*shown)))
        });
        if let Some(running) = running {
            return self.of_running(subject, &shown, running);
        }
        let help = match source.kind() {
            io::ErrorKind::AddrInUse => {
                format!("`ss -ltnp 'sport = :{}'` names the program that has it", address.port())
            }
            _ => format!("set `{subject}` to another address"),
        };
        StartFinding::error(subject, ServeError::Tcp { address, source }.to_string()).help(help)
    }

    fn audit(&self) -> StartFinding {
        let subject = "audit.to";
        match (&self.settings.audit.to, Audit::check(&self.settings.audit)) {
            (_, Err(error)) => StartFinding::error(subject, error.to_string()),
            (None, Ok(())) => StartFinding::ok(subject, "no audit"),
            (Some(AuditDestination::Stdout), Ok(())) => StartFinding::ok(subject, "standard output"),
            (Some(AuditDestination::File(path)), Ok(())) => {
                StartFinding::ok(subject, path.display().to_string())
            }
        }
    }

    fn data(&self, environment: &dyn Fn(&str) -> Option<String>) -> Vec<StartFinding> {
        let subject = "data";
        let directory = match (&self.settings.data, config::data_directory(self.settings, environment)) {
            (DataDirectory::Memory, _) => {
                return vec![StartFinding::ok(subject, "in memory only: a restart forgets it")];
            }
            (_, None) => {
                return vec![StartFinding::error(subject, store::StoreError::NoDirectory.to_string())];
            }
            (_, Some(directory)) => directory,
        };
        let running = self.running.as_ref().filter(|running| {
            let used = running.data.as_ref().map(|data| Path::new(&data.directory));
            used.is_some_and(|used| {
                used == directory || directory.canonicalize().is_ok_and(|real| real == used)
            })
        });
        let state = match (store::check(&directory), running) {
            (Ok(StoreCheck::Usable), _) => StartFinding::ok(subject, directory.display().to_string()),
            (Ok(StoreCheck::Gone), _) => {
                let directory = directory.display();
                let message =
                    format!("the state of runs is gone from {directory}; halts in it would be forgotten");
                StartFinding::warning(subject, message)
                    .help("put runs.db back if it was not removed on purpose")
            }
            (Err(store::StoreError::InUse { .. }), Some(running)) => {
                self.of_running(subject, &directory.display().to_string(), running)
            }
            (Err(error), _) => StartFinding::error(subject, error.to_string()),
        };
        let rules = LastGoodStore::check(&directory).err();
        [Some(state), rules.map(|error| StartFinding::error(subject, error.to_string()))]
            .into_iter()
            .flatten()
            .collect()
    }
}

/// The finding about a socket on which something listens that is not a daemon of this user, or does not answer.
fn taken(subject: &str, path: &Path) -> StartFinding {
    let error = StartFinding::error(subject, SocketError::Taken(path.to_owned()).to_string());
    match Socket::listener_pid(path) {
        Some(1) => {
            StartFinding::ok(subject, format!("{}, which the service manager hands over", path.display()))
        }
        Some(pid) => {
            let name = platform::name(pid).map_or("a program".to_owned(), |name| format!("`{name}`"));
            error.help(format!("it is {name}, pid {pid}"))
        }
        None => error,
    }
}

fn workspace_root(root: &Path) -> StartFinding {
    let subject = "workspace_roots";
    match real_directory(root) {
        Ok(_) => StartFinding::ok(subject, root.display().to_string()),
        Err(why) => StartFinding::warning(subject, format!("{} cannot be used: {why}", root.display()))
            .help("events from below it are refused"),
    }
}

fn secrets(file: &Path) -> StartFinding {
    let subject = "secrets.file";
    match config::read_private(file, LARGEST_SECRETS) {
        Ok(_) => StartFinding::ok(subject, file.display().to_string()),
        Err(why) => StartFinding::warning(subject, format!("{} {why}", file.display()))
            .help("hooks with secrets are not loaded until it can be read"),
    }
}
