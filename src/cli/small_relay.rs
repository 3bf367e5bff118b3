//! `hookyard-relay`: what `hookyard relay` does as long as nothing is unusual, in a program that starts faster. Whatever else
//! there is, it becomes the program `hookyard` beside it, with what it has read so far.

use std::{
    ffi::OsString,
    fs::File,
    io::{self, Seek, Write},
    os::unix::process::CommandExt,
    path::PathBuf,
    process::Command,
};

use super::{
    attempt::Attempt,
    exit::{BLOCK, Exit},
    logs,
    plain_relay::plain_relay,
    relay::{RelayCommand, read_event},
    screen::Screen,
};
use crate::{
    config::WHOLE_PROGRAM,
    daemon::{Exchange, ProcessAnswer, whole_body},
    handler::command::is_inside_hook,
    model::io_reason,
    platform::unnamed_file,
};

/// The flag that says what is on its standard input.
const ATTEMPTED: &str = "--attempted";

pub(super) fn run(arguments: &[OsString]) -> Exit {
    let screen = Screen::plain();
    let usual = plain_relay(arguments).filter(|_| !logs::are_asked_for() && !is_inside_hook());
    let Some(relay) = usual else {
        let why = become_whole(arguments, None);
        screen.note(&format!("error: {why}"));
        return Exit::Native(BLOCK);
    };
    let event = read_event(&screen);
    // Whatever is wrong with the connection: nothing was sent on it.
    let exchange = relay.client().exchange("POST", &relay.path(), Some(&event)).ok();
    if let Some(answer) = exchange.as_ref().and_then(answer_in) {
        return relay.print(&answer.into_response(), &screen);
    }
    hand_over(arguments, &relay, (&event, exchange.as_ref()), &screen)
}

/// The answer, if that is all that came back.
fn answer_in(exchange: &Exchange) -> Option<ProcessAnswer> {
    exchange.read.as_ref().ok()?;
    serde_json::from_slice(whole_body(&exchange.bytes)?).ok()
}

/// Leaves everything else to `hookyard relay`. Returns only if that cannot be started.
fn hand_over(
    arguments: &[OsString],
    relay: &RelayCommand,
    (event, exchange): (&[u8], Option<&Exchange>),
    screen: &Screen,
) -> Exit {
    let why = match written(event, exchange) {
        Ok(input) => become_whole(arguments, Some((input, exchange.is_some()))),
        Err(error) => format!("the event could not be handed over: {}", io_reason(&error)),
    };
    if relay.allows_if_down() {
        screen.note(&format!("note: {why}; going on without hooks"));
        return Exit::Done;
    }
    screen.note(&format!("no hook could be asked: {why}"));
    Exit::Native(BLOCK)
}

/// A file with the event, and with what came back if it was sent.
fn written(event: &[u8], exchange: Option<&Exchange>) -> io::Result<File> {
    let mut file = unnamed_file()?;
    match exchange {
        Some(exchange) => Attempt::write(event, exchange, &mut file)?,
        None => file.write_all(event)?,
    }
    file.rewind()?;
    Ok(file)
}

/// Becomes the program beside this one. Returns why not.
#[expect(clippy::disallowed_methods, reason = "it is hookyard itself")]
fn become_whole(arguments: &[OsString], input: Option<(File, bool)>) -> String {
    let program = match whole_program() {
        Ok(program) => program,
        Err(error) => return format!("the program `{WHOLE_PROGRAM}` cannot be found: {}", io_reason(&error)),
    };
    let mut command = Command::new(&program);
    command.args(arguments.iter().skip(1));
    if let Some((file, is_attempted)) = input {
        command.args(is_attempted.then_some(ATTEMPTED)).stdin(file);
    }
    let error = command.exec();
    format!("{} cannot be started: {}", program.display(), io_reason(&error))
}

fn whole_program() -> io::Result<PathBuf> {
    let own = std::env::current_exe()?;
    let whole = own.with_file_name(WHOLE_PROGRAM);
    // It would start itself without end.
    if whole == own { Err(io::ErrorKind::NotFound.into()) } else { Ok(whole) }
}
