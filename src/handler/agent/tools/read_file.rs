//! The tool `read_file`: the text of one file, a page at a time.

use std::{path::Path, sync::atomic::AtomicBool};

use super::{
    arguments::ReadFileArguments,
    contents,
    output::{self, ToolOutput, refusal},
};
use crate::root_dir::{OpenedPath, RootDir};

/// The largest file, in bytes.
const MAX_FILE: u64 = 8 << 20;

pub(super) fn run(
    root_dir: &RootDir,
    arguments: &ReadFileArguments,
    stop: &AtomicBool,
) -> Result<String, String> {
    let about = |what: &dyn std::fmt::Display| format!("`{}` {what}", output::short(&arguments.path, 300));
    let file = match root_dir.find(Path::new(&arguments.path)) {
        Ok(OpenedPath::File(file)) => file,
        Ok(OpenedPath::Directory(_)) => return Err(about(&"is a directory; the glob tool lists files")),
        Err(error) => return Err(about(&refusal(&error))),
    };
    let bytes = contents::read(file, MAX_FILE, stop).map_err(|unread| about(&unread))?;
    if !contents::is_text(&bytes) {
        return Err(about(&format!("is not text but a binary file of {} bytes", bytes.len())));
    }
    let first = arguments.first_line.map_or(1, usize::from);
    let most = arguments.lines.map_or(usize::MAX, usize::from);
    let total = lines(&bytes).count();
    if first > total.max(1) {
        return Err(about(&format!("has only {total} lines")));
    }
    Ok(page(&bytes, first, most, total))
}

fn lines(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    bytes.split_inclusive(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\n").unwrap_or(line))
}

fn page(bytes: &[u8], first: usize, most: usize, total: usize) -> String {
    let mut answer = ToolOutput::default();
    let mut shown = 0;
    for line in lines(bytes).skip(first - 1).take(most) {
        let line = String::from_utf8_lossy(line);
        if answer.line(&line).is_ok() {
            shown += 1;
        } else if shown == 0 {
            shown += 1;
            // A page that shows nothing would be asked for again and again.
            _ = answer.line(&line[..line.floor_char_boundary(answer.room())]);
            answer.note(&format!("line {first} is {} bytes long; only its beginning is shown", line.len()));
            break;
        } else {
            break;
        }
    }
    let next = first + shown;
    if next <= total {
        answer.note(&format!("lines {first} to {} of {total}; go on with first_line: {next}", next - 1));
    } else if first > 1 {
        answer.note(&format!("lines {first} to {total} of {total}"));
    }
    answer.finish("(the file is empty)")
}
