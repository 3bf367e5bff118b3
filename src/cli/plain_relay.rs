//! The arguments of `relay` as the entries of agents write them, read without `clap`: describing all commands to it takes
//! longer than the rest of `relay`, which agents run for every event.
//!
//! Whatever else there is, among it everything that is wrong, is left to `clap`.

use std::{ffi::OsString, path::PathBuf};

use super::relay::{IfDown, RelayCommand, answer_timeout, wait};
use crate::model::DialectName;

/// The command, if its arguments are plain.
pub(super) fn plain_relay(arguments: &[OsString]) -> Option<RelayCommand> {
    let [_, command, rest @ ..] = arguments else { return None };
    if command != "relay" {
        return None;
    }
    let mut given = Given::default();
    let mut rest = rest.iter();
    while let Some(flag) = rest.next() {
        let flag = flag.to_str()?;
        if flag == "--adopted" {
            set(&mut given.adopted, ())?;
            continue;
        }
        let (name, value) = match flag.split_once('=') {
            Some((name, value)) if name.starts_with("--") => (name, OsString::from(value)),
            Some(_) => return None,
            None => (flag, rest.next()?.clone()),
        };
        given.add(name, value)?;
    }
    given.command()
}

/// The flags that were there.
#[derive(Default)]
struct Given {
    dialect: Option<OsString>,
    if_down: Option<OsString>,
    start: Option<OsString>,
    adopted: Option<()>,
    wait: Option<OsString>,
    timeout: Option<OsString>,
    socket: Option<OsString>,
}

impl Given {
    fn add(&mut self, name: &str, value: OsString) -> Option<()> {
        // `clap` may take an empty value, or one that looks like a flag, for something else.
        if value.is_empty() || value.as_encoded_bytes().starts_with(b"-") {
            return None;
        }
        match name {
            "--dialect" | "-d" => set(&mut self.dialect, value),
            "--if-down" => set(&mut self.if_down, value),
            "--start" => set(&mut self.start, value),
            "--wait" => set(&mut self.wait, value),
            "--timeout" => set(&mut self.timeout, value),
            "--socket" => set(&mut self.socket, value),
            _ => None,
        }
    }

    fn command(self) -> Option<RelayCommand> {
        let Self { dialect, if_down, start, adopted, wait: waits, timeout, socket } = self;
        let dialect = dialect?;
        let dialect = *DialectName::ALL.iter().find(|name| *dialect == *name.as_str())?;
        let if_down = match if_down.as_deref().map(|answer| answer.to_str()) {
            None | Some(Some("allow")) => IfDown::Allow,
            Some(Some("block")) => IfDown::Block,
            Some(_) => return None,
        };
        let waits = match waits {
            Some(text) => Some(wait(text.to_str()?).ok()?),
            None => None,
        };
        let timeout = match timeout {
            Some(text) => answer_timeout(text.to_str()?).ok()?,
            None => RelayCommand::DEFAULT_TIMEOUT,
        };
        let start = start.map(PathBuf::from);
        Some(RelayCommand::new((dialect, if_down), start, adopted.is_some(), (waits, timeout), socket))
    }
}

/// Sets what may be there once.
fn set<T>(place: &mut Option<T>, value: T) -> Option<()> {
    place.replace(value).is_none().then_some(())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::arguments::{Arguments, CliCommand};

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    fn by_clap(line: &str) -> Option<RelayCommand> {
        match Arguments::try_parse_from(words(line)).ok()?.command {
            CliCommand::Relay(relay) => Some(relay),
            _ => None,
        }
    }

    #[test]
    fn what_is_plain_is_what_clap_reads() {
        for line in [
            "hookyard relay --dialect claude",
            "hookyard relay -d gemini --if-down block",
            "hookyard relay --dialect=codex --if-down=allow --socket=/run/x=y.sock",
            "/opt/hookyard relay --dialect claude --socket /run/h.sock --timeout 9m --start /home/a/.local --adopted",
            "hookyard relay --wait 0 --timeout 1.5s --dialect canonical --if-down block",
        ] {
            let plain = plain_relay(&words(line)).expect(line);
            assert_eq!(Some(&plain), by_clap(line).as_ref(), "{line}");
        }
    }

    #[test]
    fn what_is_not_plain_is_left_to_clap() {
        for line in [
            "hookyard",
            "hookyard relay",
            "hookyard status --dialect claude",
            "hookyard --color never relay --dialect claude",
            "hookyard relay --dialect claude --color never",
            "hookyard relay --dialect latin",
            "hookyard relay --dialect claude --dialect claude",
            "hookyard relay --dialect claude --if-down perhaps",
            "hookyard relay --dialect claude --wait 2h",
            "hookyard relay --dialect claude --timeout 0",
            "hookyard relay --dialect claude --timeout",
            "hookyard relay --dialect claude --socket ",
            "hookyard relay --dialect claude --socket -x",
            "hookyard relay --dialect claude --help",
            "hookyard relay -dclaude",
            "hookyard relay -d=claude",
            "hookyard relay --dialect claude --adopted=true",
            "hookyard relay --dialect claude -- x",
        ] {
            assert_eq!(plain_relay(&words(line)), None, "{line}");
        }
    }
}
