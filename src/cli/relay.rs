//! `relay`: an event from standard input to the daemon, its answer back, as a hook of an agent that only runs commands.
//! Owns what is answered when the daemon is down; refuses to need a runtime, since it is started for every event.

use std::io::Read;

use clap::{Args, ValueEnum};

use super::{
    daemon_flag::SocketFlag,
    escape,
    exit::{CliResult, Exit},
    screen::Screen,
};
use crate::{
    daemon::{ClientError, ProcessAnswer},
    dialect,
    handler::command::{OF_A_HOOK, TRACEPARENT},
    model::{DialectName, EventKind, HostResponse, Outcome, Verdict},
    run::next_decision_id,
};

/// The largest event that is read, in bytes; the daemon has a limit of its own.
const LARGEST: u64 = 256 << 20;

/// The exit code of a block, in every dialect.
const BLOCK: u8 = 2;

const EXAMPLES: &str = "\
Examples:
  cat event.json | hookyard relay --dialect gemini
  hookyard relay --dialect codebuddy --if-down block

In an agent's settings, the second line is the `command` of a hook. The daemon is
`serve`; without an answer from it, `allow` says so on standard error and lets the
agent go on, and `block` is for hooks that guard.";

/// Passes an agent's event on to the daemon, and its answer back
///
/// For agents whose hooks are commands. Output and exit code are those of a hook of the dialect.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct RelayCommand {
    /// Whose words the event is written in
    #[arg(long, short, value_name = "NAME")]
    dialect: DialectName,

    /// What to answer when there is no daemon, or none that answers this event
    #[arg(long, value_name = "ANSWER", default_value = "allow")]
    if_down: IfDown,

    #[command(flatten)]
    socket: SocketFlag,
}

/// What is answered when there is no daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum IfDown {
    /// Nothing: the agent goes on as without hooks
    Allow,
    /// What can be blocked is blocked
    Block,
}

impl RelayCommand {
    pub(super) fn run(self, screen: &Screen) -> CliResult {
        // As a hook of hookyard's own it has no opinion. Not a word on standard error, which is one in some dialects.
        if std::env::var_os(OF_A_HOOK).is_some() {
            return Ok(Exit::Done);
        }
        let mut event = Vec::new();
        std::io::stdin().lock().take(LARGEST).read_to_end(&mut event)?;
        let path = format!("/v1/events/{}?as=process", self.dialect);
        let trace = std::env::var(TRACEPARENT).ok().and_then(|trace| trace.parse().ok());
        let client = self.socket.client().trace(trace);
        let answer: Result<ProcessAnswer, _> = client.ask("POST", &path, Some(&event));
        match answer {
            Ok(ProcessAnswer { stdout, stderr, exit_code }) => {
                print_answer(&HostResponse { stdout, stderr, exit_code }, screen)
            }
            Err(error) => self.answer_without_daemon(&error, &event, screen),
        }
    }

    /// Answers in the daemon's place.
    fn answer_without_daemon(&self, error: &ClientError, event: &[u8], screen: &Screen) -> CliResult {
        let what = escape::line(&error.to_string()).into_owned();
        let kind = dialect::named(self.dialect).kind_of(event);
        let can_block = kind.is_none_or(|kind| kind.is_interceptor() || kind == EventKind::HostEvent);
        if self.if_down == IfDown::Allow || !can_block {
            screen.note(&format!("note: {what}; going on without hooks"));
            return Ok(Exit::Done);
        }
        let reason = format!("no hook could be asked: {what}");
        let outcome = kind.filter(|kind| *kind != EventKind::HostEvent).map(|kind| Outcome {
            verdict: Verdict::Block,
            reason: Some(reason.as_str().into()),
            ..Outcome::proceed(next_decision_id(), kind, 0)
        });
        match outcome.and_then(|outcome| dialect::unreadable_event_response(self.dialect, &outcome)) {
            Some(answer) => print_answer(&answer, screen),
            None => print_answer(
                &HostResponse { stdout: String::new(), stderr: reason, exit_code: BLOCK },
                screen,
            ),
        }
    }
}

fn print_answer(answer: &HostResponse, screen: &Screen) -> CliResult {
    if !answer.stdout.is_empty() {
        screen.print(&answer.stdout)?;
    }
    if !answer.stderr.is_empty() {
        screen.note(answer.stderr.trim_end());
    }
    Ok(Exit::Native(answer.exit_code))
}
