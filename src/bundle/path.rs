//! The path of a file in a bundle: one that means the same on every file system.

use std::{collections::BTreeMap, fmt};

/// The longest path, in bytes: what the plain header of an archive has room for at every depth.
const LONGEST: usize = 150;

/// The most directories above a file.
const DEEPEST: usize = 12;

/// Names that Windows keeps for devices.
const DEVICES: [&str; 4] = ["con", "prn", "aux", "nul"];

/// A path relative to the bundle, with `/` between names of plain ASCII. There is one way to write it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct BundlePath(Box<str>);

impl BundlePath {
    /// Returns why if it may not be in a bundle.
    pub(crate) fn new(text: &str) -> Result<Self, &'static str> {
        if text.is_empty() || text.len() > LONGEST {
            return Err("a path has 1 to 150 bytes");
        }
        if text.starts_with('/') {
            return Err("an absolute path");
        }
        if text.split('/').count() > DEEPEST + 1 {
            return Err("it is too deep");
        }
        text.split('/').try_for_each(check_name)?;
        Ok(Self(text.into()))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

fn check_name(name: &str) -> Result<(), &'static str> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-+@=~ ".contains(&byte);
    if name.is_empty() || name == "." || name == ".." {
        return Err("a name in it is empty, `.` or `..`");
    }
    if !name.bytes().all(is_plain) {
        return Err("names have ASCII letters, digits, blanks and `._-+@=~` only");
    }
    if name.ends_with(['.', ' ']) || name.starts_with(' ') {
        return Err("a name begins with a blank, or ends with one or with a point");
    }
    let stem = name.split('.').next().unwrap_or_default().to_ascii_lowercase();
    if DEVICES.contains(&stem.as_str()) {
        return Err("a name is that of a device");
    }
    Ok(())
}

impl fmt::Display for BundlePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// The paths of a bundle, among which no two are one on a file system that knows no case, and none is a file and a directory.
#[derive(Debug, Default)]
pub(super) struct DistinctPaths(BTreeMap<String, (String, PathRole)>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PathRole {
    File,
    Directory,
}

impl DistinctPaths {
    /// Returns the path that it collides with, if it does.
    pub(super) fn add(&mut self, path: &BundlePath) -> Result<(), String> {
        let ends = path.as_str().match_indices('/').map(|(at, _)| at);
        for end in ends {
            self.note(&path.as_str()[..end], PathRole::Directory)?;
        }
        self.note(path.as_str(), PathRole::File)
    }

    fn note(&mut self, path: &str, role: PathRole) -> Result<(), String> {
        match self.0.get(&path.to_ascii_lowercase()) {
            Some((known, PathRole::Directory)) if known == path && role == PathRole::Directory => Ok(()),
            Some((known, _)) => Err(known.clone()),
            None => {
                self.0.insert(path.to_ascii_lowercase(), (path.to_owned(), role));
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_paths_that_mean_the_same_everywhere_are_taken() {
        let deep = "d/".repeat(13) + "f";
        let long = "x".repeat(151);
        for wrong in [
            "",
            "/etc/passwd",
            "../x",
            "a/../b",
            "a//b",
            "./a",
            "a/",
            "a/.",
            "a\\b",
            "a:b",
            "a\nb",
            "a\0b",
            "caf\u{e9}",
            "\u{ff21}",
            "a.",
            "a ",
            " a",
            "con",
            "x/NUL.txt",
            &deep,
            &long,
        ] {
            assert!(BundlePath::new(wrong).is_err(), "{wrong:?}");
        }
        for right in [".openharness/hooks/guard.yaml", "team a/x-1_2+3@4=5~", "...x"] {
            assert!(BundlePath::new(right).is_ok(), "{right}");
        }
    }

    #[test]
    fn paths_that_differ_in_case_or_are_a_file_and_a_directory_collide() {
        let clash = |paths: &[&str]| {
            let mut known = DistinctPaths::default();
            paths.iter().find_map(|path| known.add(&BundlePath::new(path).unwrap()).err())
        };
        assert_eq!(clash(&["a/b", "a/c", "b"]), None);
        assert_eq!(clash(&["a/b", "A/c"]).as_deref(), Some("a"));
        assert_eq!(clash(&["Guard", "guard"]).as_deref(), Some("Guard"));
        assert_eq!(clash(&["a", "a/b"]).as_deref(), Some("a"));
        assert_eq!(clash(&["a/b", "a"]).as_deref(), Some("a"));
        assert_eq!(clash(&["a", "a"]).as_deref(), Some("a"));
    }
}
