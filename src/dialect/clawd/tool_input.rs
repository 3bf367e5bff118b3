//! The path or command that a tool works on, from the fields of its input.

use crate::{dialect::event_reader::unquoted, model::Json};

/// The fields that name a file; the first one present counts.
const PATHS: [&str; 5] = ["file_path", "path", "filePath", "file", "target"];

/// The fields that hold a command.
const COMMANDS: [&str; 3] = ["command", "cmd", "script"];

/// The tools that run commands.
const SHELLS: [&str; 2] = ["Bash", "Shell"];

/// The file that a tool's input names.
pub(super) fn path(input: &Json) -> Option<String> {
    first(&PATHS, input)
}

/// The command of a tool that runs commands.
pub(super) fn command(tool: &str, input: &Json) -> Option<String> {
    SHELLS.contains(&tool).then(|| first(&COMMANDS, input)).flatten()
}

fn first(names: &[&str], input: &Json) -> Option<String> {
    let fields = input.fields()?;
    let texts = names.iter().filter_map(|name| fields.get(name).and_then(unquoted));
    texts.map(std::borrow::Cow::into_owned).find(|text| !text.is_empty())
}
