//! Programs that run the command in their arguments, and where in them it stands.

mod options;
mod special;
mod table;

use super::word::Field;
pub(super) use options::InnerRun;
use options::{has, plain};

/// Whether a program is a shell.
pub(super) fn is_shell(name: &str) -> bool {
    // A login shell is named `-bash`.
    let name = name.strip_prefix('-').unwrap_or(name);
    table::SHELLS.contains(&name)
}

/// What a command runs, by its name and arguments.
pub(super) fn found(name: &str, args: &[Field]) -> Vec<InnerRun> {
    if name.is_empty() {
        return Vec::new();
    }
    if is_shell(name) {
        return special::shell(args);
    }
    match name {
        "eval" => special::evaluated(args),
        "alias" => special::aliases(args),
        "trap" => special::trap(args),
        "env" => special::environment(args),
        "find" => special::find(args, &["-exec", "-execdir", "-ok", "-okdir"]),
        "fd" | "fdfind" => special::find(args, &["-x", "--exec", "-X", "--exec-batch"]),
        "su" | "runuser" => special::switch_user(name, args),
        "script" => special::script(args),
        "flock" => special::flock(args),
        "watch" => special::watch(args),
        "parallel" => special::parallel(args),
        "ssh" => special::remote(args),
        "command" if has(args, "-v") || has(args, "-V") => Vec::new(),
        "sudo" if has(args, "-e") || has(args, "--edit") || has(args, "-l") => Vec::new(),
        _ => match table::options(name) {
            Some(options) => plain(args, options),
            None => Vec::new(),
        },
    }
}
