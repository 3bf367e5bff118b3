//! Tries all that a start would open, and releases it again. Nothing is served.

use std::{
    fs, io,
    net::{SocketAddr, TcpListener},
    path::Path,
    time::Duration,
};

use serde::Serialize;

use super::{
    audit::Audit,
    client::Client,
    routes::DaemonStatus,
    socket::{Socket, SocketError, default_control_socket, default_socket},
    tokens::TcpTokens,
};
use crate::{
    config::{self, AuditDestination, DataDirectory, LastGoodStore, Settings},
    model::io_reason,
    store,
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

/// What a daemon of these settings would find when it starts. `replaces` says whether it would take over from a running
/// one. Blocks.
pub(crate) fn preflight(
    settings: &Settings,
    environment: &dyn Fn(&str) -> Option<String>,
    replaces: bool,
) -> Vec<StartFinding> {
    let socket = settings.listen.socket.clone().unwrap_or_else(|| default_socket(environment));
    let control = settings.listen.control_socket.clone();
    let control = control.unwrap_or_else(|| default_control_socket(&socket));
    // The service manager would not answer, and keep the question for the daemon that starts.
    let is_served = Socket::listener_pid(&socket).is_some_and(|pid| pid != 1);
    let client = is_served.then(|| Client::new(&socket).timeout(ANSWER_TIMEOUT));
    let running = client.and_then(|client| client.ask("GET", "/v1/status", None).ok());
    let check = Preflight { settings, running, replaces };
    let mut findings = check.tokens();
    findings.push(check.socket("listen.socket", &socket));
    findings.push(check.socket("listen.control_socket", &control));
    let listen = &settings.listen;
    findings.extend(listen.tcp.map(|address| check.address("listen.tcp", address)));
    findings.extend(listen.metrics.map(|address| check.address("listen.metrics", address)));
    findings.push(check.audit());
    findings.extend(check.data(environment));
    findings.extend(settings.secrets.file.as_deref().map(secrets));
    findings
}

struct Preflight<'a> {
    settings: &'a Settings,
    /// The daemon that listens on the socket.
    running: Option<DaemonStatus>,
    replaces: bool,
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
        if self.replaces {
            StartFinding::ok(subject, format!("{what}, of {daemon}, which is replaced"))
        } else {
            StartFinding::warning(subject, format!("{what} is used by {daemon}"))
                .help("stop it first, or start with `--replace`")
        }
    }

    fn socket(&self, subject: &str, path: &Path) -> StartFinding {
        let shown = path.display();
        if let Some(running) = self.running.as_ref().filter(|running| {
            [&running.socket, &running.control_socket].iter().any(|socket| Path::new(socket) == path)
        }) {
            return self.of_running(subject, &shown.to_string(), running);
        }
        match Socket::prepare(path).and_then(|()| Socket::probe(path)) {
            Ok(()) => StartFinding::ok(subject, shown.to_string()),
            Err(SocketError::Taken(_)) => taken(subject, path),
            Err(error) => StartFinding::error(subject, error.to_string()),
        }
    }

    fn address(&self, subject: &str, address: SocketAddr) -> StartFinding {
        let Err(error) = TcpListener::bind(address) else {
            return StartFinding::ok(subject, address.to_string());
        };
        let own = self.running.as_ref().filter(|running| {
            let addresses = [&running.tcp, &running.metrics];
            addresses.iter().any(|known| known.as_deref() == Some(&*address.to_string()))
        });
        if let Some(running) = own {
            return self.of_running(subject, &address.to_string(), running);
        }
        let message = format!("cannot listen on {address}: {}", io_reason(&error));
        let help = match error.kind() {
            io::ErrorKind::AddrInUse => {
                format!("`ss -ltnp 'sport = :{}'` names the program that has it", address.port())
            }
            _ => format!("set `{subject}` to another address"),
        };
        StartFinding::error(subject, message).help(help)
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
            (Ok(()), _) => StartFinding::ok(subject, directory.display().to_string()),
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
    let shown = path.display();
    match Socket::listener_pid(path) {
        Some(1) => StartFinding::ok(subject, format!("{shown}, which the service manager hands over")),
        Some(pid) => {
            let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            let name =
                if name.is_empty() { "a program".to_owned() } else { format!("`{}`", name.trim_end()) };
            StartFinding::error(subject, format!("{name}, pid {pid}, listens on {shown}"))
                .help(format!("stop it, or set `{subject}` to another path"))
        }
        None => StartFinding::error(subject, SocketError::Taken(path.to_owned()).to_string()),
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
