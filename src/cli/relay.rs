//! `relay`: pass an event from standard input to the daemon and print its answer, as a hook of an agent. It starts no
//! runtime, since agents run it for every event.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    io::{self, Read},
    path::PathBuf,
    thread,
    time::Duration,
};

use clap::{Args, ValueEnum};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    net::{Shutdown, shutdown},
};
use tokio::time::Instant;

use super::{
    attempt::Attempt,
    connect::{OnDemandDaemon, StartFailed},
    daemon_flag::SocketFlag,
    escape,
    exit::{BLOCK, Exit},
    fire::is_below_hookyard,
    remote_relay::{RemoteError, RemoteFlags, RemoteTimes},
    screen::Screen,
};
use crate::{
    config,
    daemon::{Client, ClientError, ClientResponse, Exchange, ProcessAnswer},
    dialect,
    handler::command::{TRACEPARENT, mark_of_environment},
    model::{Address, DialectName, EventKind, HostResponse, Outcome, Verdict},
    run::next_decision_id,
};

/// The largest event that is read, in bytes. The daemon has a limit of its own.
const LARGEST: u64 = 256 << 20;

/// The most that is read of an event with what came back, in bytes.
const LARGEST_ATTEMPT: u64 = 2 * LARGEST;

/// The default of `--wait` for hooks that guard.
const GUARD_WAIT: Duration = Duration::from_secs(5);

/// The default of `--wait` for a daemon that is started on demand.
const START_WAIT: Duration = Duration::from_secs(30);

/// How long an agent is waited for that reads the answer.
const READ_PATIENCE: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

/// The longest `--wait`: agents' own timeouts of hooks are shorter.
const MAX_WAIT: Duration = Duration::from_hours(1);

/// The pause before the second attempt. It doubles with each further one.
const FIRST_PAUSE: Duration = Duration::from_millis(10);

/// The longest pause between two attempts.
const MAX_PAUSE: Duration = Duration::from_millis(160);

/// The header with the code of the error that an agent's answer stands for.
const ERROR_HEADER: &str = "x-hookyard-error";

/// The errors of a daemon that restarts, or that its service manager may start again. No hook has run.
const RESTARTING: [&str; 3] = ["starting", "shutting_down", "not_started"];

/// The status with which the daemon answers what its own hooks have started.
const OWN_HOOK: u16 = 508;

const FOOTER: &str = "\
Examples:
  cat event.json | hookyard relay --dialect gemini
  hookyard relay --dialect codebuddy --if-down block
  hookyard relay --dialect claude --if-down block --url https://hooks.example.com --token-file ~/.hooks-token --workspace shop

Use a line like the second one as the `command` of a hook in the agent's settings. Start the daemon with \
`hookyard serve`. Without an answer from the daemon, `--if-down allow` prints a note on standard error and lets the \
agent proceed; use `--if-down block` for hooks that guard. It retries for `--wait` while the daemon restarts. It never sends \
an event twice if its hooks may have run, unless the event has an id by which they can recognise a repetition. Events for \
`--url` have one always. Choose a \
shorter wait and a shorter timeout than the agent has for the hook in its settings.";

/// Pass an agent's event to the daemon, and its answer back
///
/// For agents whose hooks are commands. Output and exit code are those of a hook of the dialect.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
#[command(after_help = FOOTER)]
pub(super) struct RelayCommand {
    /// Event format (dialect)
    #[arg(long, short, value_name = "NAME")]
    dialect: DialectName,

    /// What to answer if the daemon is down or does not answer
    #[arg(long, value_name = "ANSWER", default_value = "allow")]
    if_down: IfDown,

    /// Where no daemon listens, start the one that `hookyard connect` has recorded in this state directory
    #[arg(long, value_name = "DIR")]
    start: Option<PathBuf>,

    /// hookyard runs the hooks that the agent's settings had: `hookyard connect --adopt` has taken them over
    #[arg(long)]
    adopted: bool,

    /// How long to try again while the daemon starts or restarts: `2s`, `500ms`, or `0`; default: `30s` with `--start`, `5s`
    /// with `--if-down block`, else `0`
    #[arg(long, value_name = "DURATION", value_parser = wait)]
    wait: Option<Duration>,

    /// How long to wait for the answer of a running daemon before `--if-down` decides
    #[arg(long, value_name = "DURATION", value_parser = answer_timeout, default_value = "590s")]
    timeout: Duration,

    /// Standard input is what `hookyard-relay` has tried already
    #[arg(long, hide = true)]
    attempted: bool,

    #[command(flatten)]
    remote: RemoteFlags,

    #[command(flatten)]
    socket: SocketFlag,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
enum RelayError {
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error(transparent)]
    NotStarted(#[from] StartFailed),
    #[error(transparent)]
    Remote(#[from] RemoteError),
}

/// Reads a duration longer than zero.
pub(super) fn answer_timeout(text: &str) -> Result<Duration, String> {
    match wait(text)? {
        Duration::ZERO => Err("it must be longer than zero".to_owned()),
        timeout => Ok(timeout),
    }
}

/// Reads a duration, which may be `0`.
pub(super) fn wait(text: &str) -> Result<Duration, String> {
    if matches!(text, "0" | "0s" | "0ms") {
        return Ok(Duration::ZERO);
    }
    let wait = config::duration(text).ok_or("write it with its unit, such as `5s` or `500ms`, or `0`")?;
    if wait > MAX_WAIT { Err("at most `1h`".to_owned()) } else { Ok(wait) }
}

/// The answer without a daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum IfDown {
    /// Let the agent proceed, as if there were no hooks
    Allow,
    /// Block what can be blocked
    Block,
}

impl RelayCommand {
    /// The default of `--timeout`: shorter than the ten minutes that agents give their hooks, so that an agent hears of it.
    pub(super) const DEFAULT_TIMEOUT: Duration = Duration::from_secs(590);

    pub(super) fn new(
        (dialect, if_down): (DialectName, IfDown),
        start: Option<PathBuf>,
        adopted: bool,
        (wait, timeout): (Option<Duration>, Duration),
        socket: Option<OsString>,
    ) -> Self {
        let socket = SocketFlag::at(socket);
        let remote = RemoteFlags::default();
        Self { dialect, if_down, start, adopted, wait, timeout, attempted: false, remote, socket }
    }

    pub(super) fn run(self, screen: &Screen) -> Exit {
        if is_below_hookyard() {
            return Exit::Done;
        }
        let Attempt { event, exchange } = if self.attempted {
            Attempt::read(&read_input(LARGEST_ATTEMPT, screen))
        } else {
            Attempt { event: read_event(screen), exchange: None }
        };
        let asked = match &self.remote.url {
            Some(server) => self.ask_remote(server, &event),
            None => self.ask(&self.client(), &event, exchange),
        };
        let response = match asked {
            Ok(answer) => answer.into_response(),
            // No opinion, and nothing on standard error, which is one in some dialects.
            Err(RelayError::Client(ClientError::Refused { status: OWN_HOOK, .. })) => HostResponse::default(),
            Err(error) => match self.answer_without_daemon(&error, &event, screen) {
                Some(response) => response,
                None => return Exit::Done,
            },
        };
        self.print(&response, screen)
    }

    /// Prints an answer. One that cannot be printed must not read as consent.
    pub(super) fn print(&self, response: &HostResponse, screen: &Screen) -> Exit {
        let exit = screen.print_response(response).unwrap_or(Exit::Native(BLOCK));
        if self.dialect == DialectName::CodeBuddy && !response.stdout.is_empty() {
            wait_until_read();
        }
        exit
    }

    /// Where events are sent to, below the socket.
    pub(super) fn path(&self) -> String {
        format!("/v1/events/{}?as=process", self.dialect)
    }

    /// The client that sends the event.
    pub(super) fn client(&self) -> Client {
        let trace = std::env::var(TRACEPARENT).ok().and_then(|trace| trace.parse().ok());
        let client = self.socket.client().timeout(self.timeout).trace(trace).hook_mark(mark_of_environment());
        let client = client.environment(&variables_of(self.dialect)).project(self.project());
        client.keeps_hooks(!self.adopted)
    }

    /// Whether the agent goes on if nobody can be asked.
    pub(super) fn allows_if_down(&self) -> bool {
        self.if_down == IfDown::Allow
    }

    /// The project of the agent's session, without symbolic links.
    fn project(&self) -> Option<String> {
        let directory = std::env::var_os(dialect::project_variable(self.dialect)?)?;
        std::fs::canonicalize(directory).ok()?.into_os_string().into_string().ok()
    }

    /// Sends the event, again and again while the daemon restarts and `--wait` lasts. It may have been sent once already.
    fn ask(
        &self,
        client: &Client,
        event: &[u8],
        mut earlier: Option<Exchange>,
    ) -> Result<ProcessAnswer, RelayError> {
        let deadline = Instant::now() + self.wait();
        let daemon = self.start.as_deref().map(OnDemandDaemon::new);
        let path = self.path();
        let mut pause = FIRST_PAUSE;
        loop {
            let sent = match earlier.take() {
                Some(exchange) => client.response(exchange),
                None => client.send("POST", &path, Some(event)),
            };
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() || !self.may_send_again(&sent, event) {
                return Ok(sent.and_then(|response| client.read(&response))?);
            }
            if let Some(daemon) = daemon.as_ref().filter(|_| is_absent(&sent)) {
                daemon.attempt(client.socket(), deadline)?;
            }
            thread::sleep(pause.min(left));
            pause = (pause * 2).min(MAX_PAUSE);
        }
    }

    /// Sends the event to a server elsewhere.
    fn ask_remote(&self, server: &Address, event: &[u8]) -> Result<ProcessAnswer, RelayError> {
        let times = RemoteTimes { timeout: self.timeout, wait: self.wait() };
        Ok(self.remote.ask(server, (self.dialect, event), times)?)
    }

    fn wait(&self) -> Duration {
        let default = match self.if_down {
            _ if self.start.is_some() => START_WAIT,
            IfDown::Block => GUARD_WAIT,
            IfDown::Allow => Duration::ZERO,
        };
        self.wait.unwrap_or(default)
    }

    /// Whether the daemon restarts, and the event may be sent to the next one.
    fn may_send_again(&self, sent: &Result<ClientResponse, ClientError>, event: &[u8]) -> bool {
        match sent {
            Ok(response) => is_restarting(response),
            Err(ClientError::Down { .. }) => is_absent(sent),
            // The daemon may have died in the middle of the event.
            Err(ClientError::Broken { .. }) => self.has_id(event),
            Err(_) => false,
        }
    }

    /// Whether hooks can tell that the event is the same as before.
    fn has_id(&self, event: &[u8]) -> bool {
        let event = dialect::named(self.dialect).read_event(event);
        event.is_ok_and(|event| event.id.is_some() || event.tool_call_id.is_some())
    }

    /// The answer if the daemon gives none; `None` lets the agent proceed.
    fn answer_without_daemon(
        &self,
        error: &RelayError,
        event: &[u8],
        screen: &Screen,
    ) -> Option<HostResponse> {
        let what = escape::line(&error.to_string()).into_owned();
        let kind = dialect::named(self.dialect).kind_of(event);
        let can_block = kind.is_none_or(|kind| {
            // To block the end of a turn means to make the agent go on, as long as nobody can be asked.
            let ends_turn = matches!(kind, EventKind::AgentStopping | EventKind::SubagentStopping);
            (kind.is_interceptor() || kind == EventKind::HostEvent) && !ends_turn
        });
        if self.if_down == IfDown::Allow || !can_block {
            screen.note(&format!("note: {what}; going on without hooks"));
            return None;
        }
        let reason = format!("no hook could be asked: {what}");
        let outcome = kind.filter(|kind| *kind != EventKind::HostEvent).map(|kind| Outcome {
            verdict: Verdict::Block,
            reason: Some(reason.as_str().into()),
            ..Outcome::proceed(next_decision_id(), kind, 0)
        });
        let response = outcome.and_then(|outcome| dialect::unreadable_event_response(self.dialect, &outcome));
        let by_exit_code = || HostResponse { stderr: reason, exit_code: BLOCK, ..HostResponse::default() };
        Some(response.unwrap_or_else(by_exit_code))
    }
}

/// Reads the event from standard input.
pub(super) fn read_event(screen: &Screen) -> Vec<u8> {
    read_input(LARGEST, screen)
}

/// Reads standard input to its end, or to an error: what was read before it is the beginning of an event, which the daemon
/// finds invalid.
fn read_input(largest: u64, screen: &Screen) -> Vec<u8> {
    let mut input = Vec::new();
    if let Err(error) = io::stdin().lock().take(largest).read_to_end(&mut input) {
        screen.note(&format!("note: standard input ended with an error: {error}"));
    }
    input
}

/// Ends standard output and waits until the agent has closed its end. For agents that read nothing more of a process once it
/// has ended: with empty output, it would be consent.
///
/// Outputs that are no sockets are left as they are: no agent written in JavaScript has such.
fn wait_until_read() {
    let output = io::stdout();
    if shutdown(&output, Shutdown::Write).is_ok() {
        // That the other end is closed is told unasked. If it is not in time, what was printed is there all the same.
        poll(&mut [PollFd::new(&output, PollFlags::empty())], Some(&READ_PATIENCE)).ok();
    }
}

/// Whether no daemon listens on the socket.
fn is_absent(sent: &Result<ClientResponse, ClientError>) -> bool {
    let Err(ClientError::Down { source, .. }) = sent else { return false };
    matches!(source.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused)
}

/// The variables that an agent gives its hooks.
fn variables_of(agent: DialectName) -> BTreeMap<&'static str, String> {
    let set = |name: &&'static str| Some((*name, std::env::var(name).ok()?));
    dialect::host_variables(agent).iter().filter_map(set).collect()
}

/// Whether a response comes from a daemon that is not ready yet, or takes no more events.
fn is_restarting(response: &ClientResponse) -> bool {
    if let Some(code) = response.header(ERROR_HEADER) {
        return RESTARTING.contains(&code);
    }
    // Hosts with canonical events get the error itself.
    matches!(response.error_response(), ClientError::Refused { status: 503, code, .. } if RESTARTING.contains(&&*code))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_has_a_unit_or_is_zero() {
        assert_eq!(wait("0"), Ok(Duration::ZERO));
        assert_eq!(wait("1.5s"), Ok(Duration::from_millis(1500)));
        for text in ["", "5", "-1s", "2h", "soon"] {
            assert!(wait(text).is_err(), "{text}");
        }
    }
}
