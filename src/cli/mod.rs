//! The command line: what each command prints, and the exit code it ends with. Owns the words and colours a
//! person sees; refuses to decide anything about hooks, which is the library's part.
//!
//! `arguments` is what was typed; each command then has a file of its own and ends with an `exit::Ending`.
//! Everything that comes from outside passes through `escape` before a terminal sees it.

mod arguments;
mod check;
mod completions;
mod convert;
mod diagnostics;
mod difference;
mod escape;
mod event_source;
mod exit;
mod explain;
mod fire;
mod greetings;
mod interrupt;
mod list;
mod logs;
mod new;
mod outcome_view;
mod page;
mod paint;
mod replay;
mod schema;
mod screen;
mod settings;
mod started;
mod table;
mod workspace;
mod wrap;

use std::{ffi::OsString, process::ExitCode};

use clap::{CommandFactory, Parser};

use arguments::{Arguments, Command};
use exit::Exit;
use logs::Quiet;
use screen::Screen;

/// Does what the arguments say, of which the first is the program's name, and tells the exit code: 0 done, 1
/// the work failed or found errors, 2 the arguments make no sense, 128 + n ended by signal n. `fire --native`
/// has the exit codes of its dialect.
pub async fn run(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments = match Arguments::try_parse_from(arguments) {
        Ok(arguments) => arguments,
        Err(error) => {
            // With nobody left to read the text there is nobody to tell.
            drop(error.print());
            return if error.use_stderr() { Exit::Usage } else { Exit::Done }.code();
        }
    };
    let screen = Screen::new(arguments.color);
    let quiet = match &arguments.command {
        Command::Fire(fire) if fire.is_native() => Quiet::Yes,
        _ => Quiet::No,
    };
    logs::start(&screen, quiet);
    let ending = match arguments.command {
        Command::Check(check) => check.run(&screen).await,
        Command::List(list) => list.run(&screen),
        Command::Explain(explain) => explain.run(&screen),
        Command::Fire(fire) => fire.run(&screen).await,
        Command::Replay(replay) => replay.run(&screen).await,
        Command::New(new) => new.run(&screen),
        Command::Schema(schema) => schema.run(&screen),
        Command::Convert(convert) => convert.run(&screen),
        Command::Completions(completions) => completions.run(&screen),
    };
    screen.end(ending).code()
}

/// The command line as `clap` knows it, for documentation and completions.
pub fn command() -> clap::Command {
    Arguments::command()
}

/// Tells that there is no runtime to work on.
pub fn cannot_start(error: &std::io::Error) -> ExitCode {
    Screen::new(clap::ColorChoice::Never).note(&format!("error: the runtime did not start: {error}"));
    Exit::Failed.code()
}
