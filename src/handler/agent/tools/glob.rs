//! The tool that lists paths. Owns how many; refuses to look into files.

use std::{ops::ControlFlow, path::PathBuf, sync::atomic::AtomicBool};

use super::{
    answer::Answer,
    arguments::Glob,
    beneath::{Beneath, Found},
    pattern::Pattern,
    spell,
    walk::walk,
};

/// The most paths.
const MOST_PATHS: usize = 500;

pub(super) fn run(beneath: &Beneath, arguments: &Glob, stop: &AtomicBool) -> Result<String, String> {
    let pattern = Pattern::of_path(&arguments.pattern)?;
    let Ok(Found::Directory(root)) = beneath.find(".") else {
        return Err("the workspace's directory cannot be read".to_owned());
    };
    let mut answer = Answer::default();
    let mut left = MOST_PATHS;
    let mut cut = false;
    let omitted = walk(root, PathBuf::new(), stop, |leaf| {
        if !pattern.accepts(leaf.path) {
            return ControlFlow::Continue(());
        }
        if left == 0 || answer.line(&spell::path(leaf.path)).is_err() {
            cut = true;
            return ControlFlow::Break(());
        }
        left -= 1;
        ControlFlow::Continue(())
    });
    if cut {
        answer.note(&format!("stopped early after {} paths: use a narrower pattern", MOST_PATHS - left));
    }
    omitted.tell(&mut answer);
    Ok(answer.finish("no path matches"))
}
