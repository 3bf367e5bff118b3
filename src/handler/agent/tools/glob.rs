//! Globs that a model writes, and the tool `glob`, which lists the paths that match one.

use std::{
    ops::ControlFlow,
    path::{Path, PathBuf},
    sync::atomic::AtomicBool,
};

use globset::{Error, GlobBuilder, GlobSet};

use super::{
    arguments::GlobArguments,
    output::{self, ToolOutput},
    walk::walk,
};
use crate::root_dir::{OpenedPath, RootDir};

/// The most paths.
const MAX_PATHS: usize = 500;

/// The longest glob, in bytes.
const MAX_BYTES: usize = 1024;

/// A glob for paths of the workspace.
#[derive(Debug)]
pub(super) struct PathPattern(GlobSet);

impl PathPattern {
    /// A glob for whole paths relative to the workspace's directory.
    ///
    /// Returns an error message if it is invalid, too long or absolute.
    pub(super) fn of_path(glob: &str) -> Result<Self, String> {
        if glob.len() > MAX_BYTES {
            return Err(format!("the glob is {} bytes long; at most {MAX_BYTES} are allowed", glob.len()));
        }
        if glob.starts_with('/') {
            return Err(
                "the glob is absolute; it is compared with paths relative to the workspace".to_owned()
            );
        }
        let wrong = |e: Error| format!("the glob is invalid: {}", output::short(&e.kind().to_string(), 300));
        let glob = GlobBuilder::new(glob.trim_start_matches("./")).literal_separator(true).build();
        // A matcher of the one glob would panic if its expression were refused; a set returns an error.
        let set = GlobSet::builder().add(glob.map_err(wrong)?).build();
        set.map(Self).map_err(wrong)
    }

    /// The same, except that a glob without a slash matches file names in any directory.
    pub(super) fn of_path_or_name(glob: &str) -> Result<Self, String> {
        if glob.contains('/') { Self::of_path(glob) } else { Self::of_path(&format!("**/{glob}")) }
    }

    pub(super) fn accepts(&self, path: &Path) -> bool {
        self.0.is_match(path)
    }
}

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
        if left == 0 || answer.line(&output::shown_path(leaf.path)).is_err() {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stays_within_a_directory() {
        let accepts = |glob: &str, path: &str| PathPattern::of_path(glob).unwrap().accepts(Path::new(path));
        assert!(accepts("*.rs", "a.rs") && !accepts("*.rs", "src/a.rs"));
        assert!(accepts("**/*.rs", "a.rs") && accepts("**/*.rs", "src/b/a.rs"));
        assert!(accepts("./src/**", "src/b/.a") && accepts("{src,tests}/*", "tests/a"));
        let named = PathPattern::of_path_or_name("*.rs").unwrap();
        assert!(named.accepts(Path::new("src/b/a.rs")) && named.accepts(Path::new("a.rs")));
    }

    #[test]
    fn a_bad_glob_is_explained() {
        let wrong = |glob: &str| PathPattern::of_path(glob).expect_err(glob);
        assert!(wrong("[a").contains("invalid"), "{}", wrong("[a"));
        assert!(wrong("{a").contains("invalid"));
        assert!(wrong("/etc/*").contains("absolute"));
        assert!(wrong(&"a".repeat(2000)).contains("2000 bytes"));
        let nested = format!("{}a{}", "{".repeat(500), "}".repeat(500));
        assert!(PathPattern::of_path(&nested).is_err());
    }
}
