//! The command line: what each command prints, and the exit code it ends with. Owns the words and colours a
//! person sees; refuses to decide anything about hooks, which is the library's part.
//!
//! `arguments` is what was typed; each command then has a file of its own and ends with an `exit::CliResult`.
//! Everything that comes from outside passes through `escape` before a terminal sees it.

mod arguments;
mod check;
mod completions;
mod convert;
#[cfg(feature = "daemon")]
mod daemon_flag;
mod diagnostics;
mod escape;
mod event_input;
mod exit;
mod explain;
mod fire;
mod flags;
mod interrupt;
mod json_diff;
mod list;
mod logs;
mod new;
mod outcome_view;
mod page;
mod paint;
mod paths;
#[cfg(feature = "daemon")]
mod relay;
mod replay;
#[cfg(feature = "daemon")]
mod runs;
mod schema;
mod screen;
#[cfg(feature = "daemon")]
mod sd_notify;
#[cfg(feature = "daemon")]
mod serve;
mod session;
mod settings;
#[cfg(feature = "daemon")]
mod status;
mod table;
#[cfg(feature = "daemon")]
mod top;
mod units;
mod verdict_counts;
mod worker_probe;
mod workspace;
mod wrap;

use std::{ffi::OsString, process::ExitCode, time::Duration};

use clap::{CommandFactory, Parser};

use arguments::{Arguments, CliCommand};
use exit::{CliError, CliResult, Exit};
use logs::{DefaultLogs, LogFormat};
use screen::{MessageFormat, Screen};

/// Does what the arguments say, of which the first is the program's name, and tells the exit code: 0 done, 1
/// the work failed or found errors, 2 the arguments make no sense, 128 + n ended by signal n. `fire --native` and
/// `relay` have the exit codes of their dialect.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments = match Arguments::try_parse_from(arguments) {
        Ok(arguments) => arguments,
        Err(error) => {
            // With nobody left to read the text there is nobody to tell.
            drop(error.print());
            return if error.use_stderr() { Exit::Usage } else { Exit::Done }.code();
        }
    };
    let screen = Screen::new(arguments.color);
    let form = log_form(&arguments.command, &screen);
    let screen =
        screen.with_messages(if form == LogFormat::Json { MessageFormat::Log } else { MessageFormat::Text });
    logs::start(&screen, usual_logs(&arguments.command), form);
    let ending = match arguments.command {
        CliCommand::Check(check) => on_runtime(check.run(&screen)),
        CliCommand::List(list) => list.run(&screen),
        CliCommand::Explain(explain) => explain.run(&screen),
        CliCommand::Fire(fire) => on_runtime(fire.run(&screen)),
        CliCommand::Replay(replay) => on_runtime(replay.run(&screen)),
        CliCommand::New(new) => new.run(&screen),
        CliCommand::Schema(schema) => schema.run(&screen),
        CliCommand::Convert(convert) => convert.run(&screen),
        #[cfg(feature = "daemon")]
        CliCommand::Serve(serve) => on_runtime(serve.run(&screen)),
        #[cfg(feature = "daemon")]
        CliCommand::Relay(relay) => relay.run(&screen),
        #[cfg(feature = "daemon")]
        CliCommand::Status(status) => status.run(&screen),
        #[cfg(feature = "daemon")]
        CliCommand::Runs(runs) => runs.run(&screen),
        #[cfg(feature = "daemon")]
        CliCommand::Top(top) => on_runtime(async { top.run(&screen) }),
        #[cfg(feature = "daemon")]
        CliCommand::Reload(reload) => reload.run(&screen),
        CliCommand::Completions(completions) => completions.run(&screen),
    };
    screen.end(ending).code()
}

/// How much a command logs where nobody asks for anything else.
fn usual_logs(command: &CliCommand) -> DefaultLogs {
    match command {
        CliCommand::Fire(fire) if fire.is_native() => DefaultLogs::Nothing,
        #[cfg(feature = "daemon")]
        CliCommand::Relay(_) | CliCommand::Top(_) => DefaultLogs::Nothing,
        #[cfg(feature = "daemon")]
        CliCommand::Serve(_) => DefaultLogs::Events,
        _ => DefaultLogs::Warnings,
    }
}

/// How a command writes its logs, and all that it says: a service has one form for both.
fn log_form(command: &CliCommand, screen: &Screen) -> LogFormat {
    match command {
        #[cfg(feature = "daemon")]
        CliCommand::Serve(serve) => serve.log_form().on(screen),
        _ => LogFormat::Human,
    }
}

/// How long a look at a disk that does not answer may keep the program from its end.
const LAST_LOOK: Duration = Duration::from_secs(1);

/// Does what needs a runtime.
fn on_runtime(work: impl Future<Output = CliResult>) -> CliResult {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| CliError::new(format!("the runtime did not start: {error}")))?;
    let ending = runtime.block_on(work);
    // What still runs is dropped, and with it every process that belongs to it.
    runtime.shutdown_timeout(LAST_LOOK);
    ending
}

/// The command line as `clap` knows it, for documentation and completions.
pub fn command() -> clap::Command {
    Arguments::command()
}
