//! The Python interpreter for workers, started in its quickest way.
#![allow(clippy::disallowed_methods, reason = "the interpreter is asked where it is")]

use std::{process::Command, sync::OnceLock};

/// The interpreter itself, since `python3` may be a script that looks for it, without what sites add to it.
pub(crate) fn python() -> &'static str {
    static COMMAND: OnceLock<String> = OnceLock::new();
    COMMAND.get_or_init(|| {
        let output = Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output();
        let path = output.ok().and_then(|output| String::from_utf8(output.stdout).ok()).unwrap_or_default();
        format!("{} -IS", if path.trim().is_empty() { "python3" } else { path.trim() })
    })
}
