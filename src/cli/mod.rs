//! The command line: one file per command, what it prints and its exit code.
//!
//! Text from outside passes through `escape` before it reaches a terminal.

#[cfg(feature = "daemon")]
mod add;
mod arguments;
#[cfg(feature = "daemon")]
mod attempt;
#[cfg(feature = "daemon")]
mod audit;
#[cfg(feature = "daemon")]
mod bench;
#[cfg(feature = "daemon")]
mod bundle;
mod change_text;
mod check;
#[cfg(feature = "cluster")]
mod cluster;
mod cluster_check;
#[cfg(feature = "daemon")]
mod connect;
mod convert;
#[cfg(feature = "daemon")]
mod daemon_flag;
mod diagnostics;
#[cfg(feature = "daemon")]
mod doctor;
mod escape;
mod event_input;
mod exit;
mod explain;
mod fire;
mod flags;
#[cfg(feature = "daemon")]
mod guard;
#[cfg(feature = "daemon")]
mod handlers;
mod help;
mod journal;
mod list;
#[cfg(feature = "daemon")]
mod log;
mod logs;
mod new;
mod new_file;
#[cfg(feature = "daemon")]
mod outbox;
mod outcome_view;
mod paint;
mod paths;
#[cfg(feature = "daemon")]
mod plain_relay;
#[cfg(feature = "daemon")]
mod record;
#[cfg(feature = "daemon")]
mod relay;
#[cfg(feature = "daemon")]
mod reload;
#[cfg(feature = "daemon")]
mod remote_relay;
mod replay;
mod rule_trace;
#[cfg(feature = "daemon")]
mod runs;
mod schema;
mod screen;
#[cfg(feature = "daemon")]
mod sd_notify;
#[cfg(feature = "daemon")]
mod serve;
#[cfg(feature = "daemon")]
mod serve_check;
#[cfg(feature = "daemon")]
mod serve_settings;
mod session;
mod settings;
#[cfg(feature = "daemon")]
mod small_relay;
#[cfg(feature = "daemon")]
mod status;
#[cfg(feature = "daemon")]
mod stop;
mod table;
#[cfg(feature = "daemon")]
mod tcp_address;
mod test;
#[cfg(feature = "daemon")]
mod top;
mod trust;
#[cfg(feature = "daemon")]
mod tune;
#[cfg(feature = "daemon")]
mod ui;
mod units;
#[cfg(feature = "daemon")]
mod verdict_line;
#[cfg(feature = "cluster")]
mod work;
mod worker_probe;
mod workspace;
#[cfg(feature = "daemon")]
mod workspaces;
mod wrap;

use std::{
    ffi::OsString,
    io::{self, Write},
    pin::Pin,
    process::ExitCode,
    time::Duration,
};

use clap::{ColorChoice, CommandFactory, Parser};

use arguments::{Arguments, CliCommand};
use exit::{BLOCK, CliError, CliResult, Exit};
use fire::is_below_hookyard;
use logs::{DefaultLogs, LogFormat};
use screen::{MessageFormat, Screen};

use crate::handler::command::{is_inside_hook, sandbox::launch_if_asked};

/// Runs the command line. The first argument is the program's name.
///
/// Returns the exit code: 0 success, 1 the command failed or found errors, 2 invalid arguments, 128 + n ended by
/// signal n. `fire --native` and `relay` return the exit codes of their dialect.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<_> = arguments.into_iter().collect();
    // First of all: the launcher of a sandbox must have one thread, and reads no environment variable.
    launch_if_asked(arguments.iter().cloned());
    #[cfg(feature = "daemon")]
    if let Some(relay) = plain_relay::plain_relay(&arguments).filter(|_| !logs::are_asked_for()) {
        return relay.run(&Screen::plain()).code();
    }
    run_arguments(&arguments)
}

/// Runs `hookyard-relay`: the command line of [`run`], of which it does what `relay` usually does, and leaves the rest to the
/// program `hookyard` beside it. The first argument is the program's name.
///
/// Returns the exit code of the dialect.
#[cfg(feature = "daemon")]
pub fn run_relay(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    small_relay::run(&arguments.into_iter().collect::<Vec<_>>()).code()
}

/// The command line as `clap` knows it, for documentation and completions.
pub fn command() -> clap::Command {
    Arguments::command()
}

fn run_arguments(arguments: &[OsString]) -> ExitCode {
    match Arguments::try_parse_from(arguments) {
        Ok(arguments) => run_command(arguments).code(),
        Err(error) => print_help(arguments, error).code(),
    }
}

/// Prints the help, or what is wrong with the arguments.
fn print_help(arguments: &[OsString], error: clap::Error) -> Exit {
    let is_usage_error = error.use_stderr();
    let text = help::render(arguments, error, &Screen::new(ColorChoice::Auto));
    // A closed pipe has no reader to tell.
    if is_usage_error {
        drop(write!(io::stderr().lock(), "{text}"));
        return Exit::Usage;
    }
    drop(write!(io::stdout().lock(), "{text}"));
    Exit::Done
}

fn run_command(arguments: Arguments) -> Exit {
    let screen = Screen::new(arguments.color);
    let format = log_format(&arguments.command, &screen);
    let messages = if format == LogFormat::Json { MessageFormat::Log } else { MessageFormat::Text };
    let screen = screen.with_messages(messages);
    logs::start(&screen, default_logs(&arguments.command), format);
    if let Some(exit) = refusal_inside_hook(&arguments.command, &screen) {
        return exit;
    }
    let result = match arguments.command {
        CliCommand::Check(check) => on_runtime(Box::pin(check.run(&screen))),
        CliCommand::List(list) => list.run(&screen),
        CliCommand::Explain(explain) => explain.run(&screen),
        CliCommand::Fire(fire) => on_runtime(Box::pin(fire.run(&screen))),
        CliCommand::Replay(replay) => on_runtime(Box::pin(replay.run(&screen))),
        CliCommand::Test(test) => on_runtime(Box::pin(test.run(&screen))),
        CliCommand::New(new) => new.run(&screen),
        CliCommand::Trust(trust) => trust.run(&screen),
        CliCommand::Schema(schema) => schema.run(&screen),
        CliCommand::Convert(convert) => on_runtime(Box::pin(convert.run(&screen))),
        CliCommand::Completions(completions) => completions.run(&mut command(), &screen),
        CliCommand::Man(man) => man.run(command(), help::footer_of, &screen),
        #[cfg(feature = "daemon")]
        of_daemon => run_of_daemon(of_daemon, &screen),
    };
    screen.report(result)
}

/// Runs a command that asks the daemon, or that only builds with it have.
#[cfg(feature = "daemon")]
fn run_of_daemon(command: CliCommand, screen: &Screen) -> CliResult {
    match command {
        CliCommand::Add(add) => add.run(screen),
        CliCommand::Enable(enable) => enable.run(screen),
        CliCommand::Disable(disable) => disable.run(screen),
        CliCommand::Tune(tune) => on_runtime(Box::pin(tune.run(screen))),
        CliCommand::Bench(bench) => on_runtime(Box::pin(bench.run(screen))),
        CliCommand::Connect(connect) => connect.run(screen),
        CliCommand::Disconnect(disconnect) => disconnect.run(screen),
        CliCommand::Bundle(bundle) => bundle.run(screen, on_runtime),
        #[cfg(feature = "cluster")]
        CliCommand::Cluster(cluster) => on_runtime(Box::pin(cluster.run(screen))),
        CliCommand::Doctor(doctor) => doctor.run(screen),
        CliCommand::Serve(serve) if serve.only_checks() => serve.show_check(screen),
        CliCommand::Serve(serve) => {
            serve.listener_source().and_then(|source| on_runtime(Box::pin(serve.run(source, screen))))
        }
        #[cfg(feature = "cluster")]
        CliCommand::Work(work) if work.only_checks() => work.show_check(screen),
        #[cfg(feature = "cluster")]
        CliCommand::Work(work) => {
            work.prepared().and_then(|(daemon, source)| on_runtime(Box::pin(daemon.run(source, screen))))
        }
        CliCommand::Relay(relay) => Ok(relay.run(screen)),
        CliCommand::Record(record) => record.run(screen),
        CliCommand::Stop(stop) => stop.run(screen),
        CliCommand::Status(status) => status.run(screen),
        CliCommand::Runs(runs) => runs.run(screen),
        CliCommand::Ui(ui) => ui.run(screen),
        CliCommand::Top(top) => on_runtime(Box::pin(async { top.run(screen) })),
        CliCommand::Log(log) => log.run(screen),
        CliCommand::Audit(audit) => audit.run(screen),
        CliCommand::Outbox(outbox) => outbox.run(screen),
        CliCommand::Reload(reload) => reload.run(screen),
        CliCommand::Workspaces(workspaces) => workspaces.run(screen),
        _ => Ok(Exit::Usage),
    }
}

/// How a command ends that would start hooks, if it is run inside one. Otherwise hooks that call hookyard could start
/// each other without end.
fn refusal_inside_hook(command: &CliCommand, screen: &Screen) -> Option<Exit> {
    let exit = match command {
        CliCommand::Fire(fire) if fire.is_native() && is_below_hookyard() => return Some(Exit::Done),
        // A host must not take the refusal for consent.
        CliCommand::Fire(fire) if fire.is_native() => Exit::Native(BLOCK),
        CliCommand::Fire(_) | CliCommand::Replay(_) | CliCommand::Test(_) => Exit::Failed,
        #[cfg(feature = "daemon")]
        CliCommand::Serve(_) | CliCommand::Tune(_) | CliCommand::Bench(_) => Exit::Failed,
        #[cfg(feature = "cluster")]
        CliCommand::Work(_) => Exit::Failed,
        #[cfg(feature = "daemon")]
        CliCommand::Convert(convert) if convert.starts_hooks() => Exit::Failed,
        // They start no hooks, or decide themselves.
        CliCommand::Check(_)
        | CliCommand::List(_)
        | CliCommand::Explain(_)
        | CliCommand::New(_)
        | CliCommand::Trust(_)
        | CliCommand::Schema(_)
        | CliCommand::Convert(_)
        | CliCommand::Completions(_)
        | CliCommand::Man(_) => return None,
        #[cfg(feature = "daemon")]
        CliCommand::Add(_)
        | CliCommand::Enable(_)
        | CliCommand::Disable(_)
        | CliCommand::Connect(_)
        | CliCommand::Disconnect(_)
        | CliCommand::Bundle(_)
        | CliCommand::Doctor(_)
        | CliCommand::Stop(_)
        | CliCommand::Relay(_)
        | CliCommand::Record(_)
        | CliCommand::Status(_)
        | CliCommand::Runs(_)
        | CliCommand::Top(_)
        | CliCommand::Ui(_)
        | CliCommand::Log(_)
        | CliCommand::Audit(_)
        | CliCommand::Outbox(_)
        | CliCommand::Reload(_)
        | CliCommand::Workspaces(_) => return None,
        #[cfg(feature = "cluster")]
        CliCommand::Cluster(_) => return None,
    };
    is_inside_hook().then(|| {
        screen.error(
            "this process was started by a hook of hookyard, and starts no hooks itself",
            Some("run it outside; the variable `HOOKYARD_HOOK` says that this is inside"),
        );
        exit
    })
}

/// What a command logs unless `HOOKYARD_LOG` says otherwise.
fn default_logs(command: &CliCommand) -> DefaultLogs {
    match command {
        CliCommand::Fire(fire) if fire.is_native() => DefaultLogs::Nothing,
        #[cfg(feature = "daemon")]
        CliCommand::Relay(_) | CliCommand::Top(_) => DefaultLogs::Nothing,
        #[cfg(feature = "daemon")]
        CliCommand::Serve(_) => DefaultLogs::Events,
        #[cfg(feature = "cluster")]
        CliCommand::Work(_) => DefaultLogs::Events,
        _ => DefaultLogs::Warnings,
    }
}

/// The format of a command's logs. A daemon writes its messages in it too.
#[cfg_attr(
    not(feature = "daemon"),
    expect(unused_variables, reason = "only the daemon's format depends on the screen")
)]
fn log_format(command: &CliCommand, screen: &Screen) -> LogFormat {
    match command {
        #[cfg(feature = "daemon")]
        CliCommand::Serve(serve) => serve.log_format().resolve(screen),
        #[cfg(feature = "cluster")]
        CliCommand::Work(work) => work.log_format().resolve(screen),
        _ => LogFormat::Human,
    }
}

/// How long a file operation that does not return may delay the end of the program.
const RUNTIME_SHUTDOWN: Duration = Duration::from_secs(1);

/// Runs a command that needs a runtime. Boxed, so that the runtime is compiled once for all of them.
fn on_runtime(work: Pin<Box<dyn Future<Output = CliResult> + '_>>) -> CliResult {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| CliError::new(format!("the runtime did not start: {error}")))?;
    let result = runtime.block_on(work);
    // Drops the remaining tasks, and with them every process that belongs to one.
    runtime.shutdown_timeout(RUNTIME_SHUTDOWN);
    result
}
