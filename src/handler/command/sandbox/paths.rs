//! The directories of `PATH` that a hook in a sandbox may read, so that interpreters run.

use std::{
    env,
    ffi::OsString,
    path::{Path, PathBuf},
};

use crate::platform::PROGRAM_DIRECTORIES;

/// The directories of the hook's `PATH` that are not below those of the system, so that programs that a user installed
/// run. Not the home directory itself or one above it.
pub(super) fn readable_in_path(environment: &[(OsString, OsString)], root: &Path) -> Vec<PathBuf> {
    let value =
        |name: &str| environment.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value);
    let home = value("HOME").map(Path::new);
    let Some(path) = value("PATH") else { return Vec::new() };
    let is_extra = |directory: &PathBuf| {
        directory.is_absolute()
            && !PROGRAM_DIRECTORIES.iter().any(|known| directory.starts_with(known))
            && !directory.starts_with(root)
            && !root.starts_with(directory)
            && home.is_none_or(|home| !home.starts_with(directory))
    };
    env::split_paths(path).filter(is_extra).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_opens_neither_the_home_directory_nor_what_is_above_it() {
        let environment = [
            ("PATH".into(), "/usr/bin:/home/a/bin:/home/a:/home:/:rel:/srv/shop/bin:/srv:/snap/bin".into()),
            ("HOME".into(), "/home/a".into()),
        ];
        let found = readable_in_path(&environment, Path::new("/srv/shop"));
        assert_eq!(found, [Path::new("/home/a/bin"), Path::new("/snap/bin")]);
    }
}
