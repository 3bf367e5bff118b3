//! The tool `glob`: lists paths that match a pattern.

use std::{
    ops::ControlFlow,
    path::{Path, PathBuf},
    sync::atomic::AtomicBool,
};

use super::{arguments::GlobArguments, escape, output::ToolOutput, pattern::PathPattern, walk::walk};
use crate::root_dir::{OpenedPath, RootDir};

/// The most paths.
const MAX_PATHS: usize = 500;

pub(super) fn run(
    root_dir: &RootDir,
    arguments: &GlobArguments,
    stop: &AtomicBool,
) -> Result<String, String> {
    let pattern = PathPattern::of_path(&arguments.pattern)?;
    let Ok(OpenedPath::Directory(root)) = root_dir.find(Path::new(".")) else {
        return Err("the workspace's directory cannot be read".to_owned());
    };
    let mut answer = ToolOutput::default();
    let mut left = MAX_PATHS;
    let mut cut = false;
    let omitted = walk(root, PathBuf::new(), stop, |leaf| {
        if !pattern.accepts(leaf.path) {
            return ControlFlow::Continue(());
        }
        if left == 0 || answer.line(&escape::path(leaf.path)).is_err() {
            cut = true;
            return ControlFlow::Break(());
        }
        left -= 1;
        ControlFlow::Continue(())
    });
    if cut {
        answer.note(&format!("stopped early after {} paths: use a narrower pattern", MAX_PATHS - left));
    }
    omitted.tell(&mut answer);
    Ok(answer.finish("no path matches"))
}
