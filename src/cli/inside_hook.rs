//! Whether a command is run inside a hook of hookyard.

use std::fs;

use crate::handler::command::is_inside_hook;

/// How many ancestors of this process are looked at.
const MAX_ANCESTORS: usize = 64;

/// Whether this process is inside a hook and descends from another one of this program, which starts nothing but hooks:
/// hookyard found the command in an agent's settings and runs it as a hook. It has no opinion then, and says nothing on
/// standard error, which is an opinion in some dialects.
///
/// The variable of a hook alone does not prove it, because a workspace can set it for its agent.
pub(super) fn is_below_hookyard() -> bool {
    if !is_inside_hook() {
        return false;
    }
    let Ok(program) = fs::read_link("/proc/self/exe") else { return false };
    let mut ancestors = std::iter::successors(parent("self"), |pid| parent(pid)).take(MAX_ANCESTORS);
    ancestors.any(|pid| fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|other| other == program))
}

/// The parent of a process.
fn parent(pid: &str) -> Option<String> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim();
    (parent != "0").then(|| parent.to_owned())
}
