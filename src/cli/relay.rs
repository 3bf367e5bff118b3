//! `relay`: pass an event from standard input to the daemon and print its answer, as a hook of an agent. It starts no
//! runtime, since agents run it for every event.

use std::io::Read;

use clap::{Args, ValueEnum};

use super::{
    daemon_flag::SocketFlag,
    escape,
    exit::{BLOCK, Exit},
    inside_hook,
    screen::Screen,
};
use crate::{
    daemon::{ClientError, ProcessAnswer},
    dialect,
    handler::command::{TRACEPARENT, mark_of_environment},
    model::{DialectName, EventKind, HostResponse, Outcome, Verdict},
    run::next_decision_id,
};

/// The largest event that is read, in bytes. The daemon has a limit of its own.
const LARGEST: u64 = 256 << 20;

/// The status with which the daemon answers what its own hooks have started.
const OWN_HOOK: u16 = 508;

const FOOTER: &str = "\
Examples:
  cat event.json | hookyard relay --dialect gemini
  hookyard relay --dialect codebuddy --if-down block

Use a line like the second one as the `command` of a hook in the agent's settings. Start the daemon with \
`hookyard serve`. Without an answer from the daemon, `--if-down allow` prints a note on standard error and lets the \
agent proceed; use `--if-down block` for hooks that guard.";

/// Pass an agent's event to the daemon, and its answer back
///
/// For agents whose hooks are commands. Output and exit code are those of a hook of the dialect.
#[derive(Debug, Args)]
#[command(after_help = FOOTER)]
pub(super) struct RelayCommand {
    /// Event format (dialect)
    #[arg(long, short, value_name = "NAME")]
    dialect: DialectName,

    /// What to answer if the daemon is down or does not answer
    #[arg(long, value_name = "ANSWER", default_value = "allow")]
    if_down: IfDown,

    #[command(flatten)]
    socket: SocketFlag,
}

/// The answer without a daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum IfDown {
    /// Let the agent proceed, as if there were no hooks
    Allow,
    /// Block what can be blocked
    Block,
}

impl RelayCommand {
    pub(super) fn run(self, screen: &Screen) -> Exit {
        if inside_hook::is_below_hookyard() {
            return Exit::Done;
        }
        let mut event = Vec::new();
        // What was read before an error is the beginning of the event, which the daemon finds invalid.
        let read = std::io::stdin().lock().take(LARGEST).read_to_end(&mut event);
        if let Err(error) = read {
            screen.note(&format!("note: standard input ended with an error: {error}"));
        }
        let path = format!("/v1/events/{}?as=process", self.dialect);
        let trace = std::env::var(TRACEPARENT).ok().and_then(|trace| trace.parse().ok());
        let client = self.socket.client().trace(trace).hook_mark(mark_of_environment());
        let answer: Result<ProcessAnswer, _> = client.ask("POST", &path, Some(&event));
        let response = match answer {
            Ok(ProcessAnswer { stdout, stderr, exit_code }) => HostResponse { stdout, stderr, exit_code },
            // No opinion, and nothing on standard error, which is one in some dialects.
            Err(ClientError::Refused { status: OWN_HOOK, .. }) => HostResponse::default(),
            Err(error) => match self.answer_without_daemon(&error, &event, screen) {
                Some(response) => response,
                None => return Exit::Done,
            },
        };
        // An answer that cannot be printed must not read as consent.
        screen.print_response(&response).unwrap_or(Exit::Native(BLOCK))
    }

    /// The answer if the daemon gives none; `None` lets the agent proceed.
    fn answer_without_daemon(
        &self,
        error: &ClientError,
        event: &[u8],
        screen: &Screen,
    ) -> Option<HostResponse> {
        let what = escape::line(&error.to_string()).into_owned();
        let kind = dialect::named(self.dialect).kind_of(event);
        let can_block = kind.is_none_or(|kind| kind.is_interceptor() || kind == EventKind::HostEvent);
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
        let by_exit_code = || HostResponse { stdout: String::new(), stderr: reason, exit_code: BLOCK };
        Some(response.unwrap_or_else(by_exit_code))
    }
}
