//! Temporary directories of sandboxed hooks: one for each hook of a workspace, removed when hookyard stops.

use std::{
    collections::HashMap,
    env, fs, io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    process,
};

use parking_lot::Mutex;

use crate::model::HookName;

/// How many names are tried for the directory, should others exist.
const MAX_ATTEMPTS: u32 = 1000;

/// The directories, made on first use.
#[derive(Debug, Default)]
pub(in crate::handler::command) struct PrivateTemp(Mutex<TempState>);

#[derive(Debug, Default)]
struct TempState {
    /// The directory that holds the others.
    base: Option<PathBuf>,
    of_hooks: HashMap<(PathBuf, HookName), PathBuf>,
}

impl PrivateTemp {
    /// The directory of a hook. `None` if it cannot be made, which is logged: the hook then has none.
    pub(in crate::handler::command) fn of(&self, root: &Path, hook: &HookName) -> Option<PathBuf> {
        let mut state = self.0.lock();
        let key = (root.to_owned(), hook.clone());
        if let Some(known) = state.of_hooks.get(&key) {
            return Some(known.clone());
        }
        match state.create() {
            Ok(path) => {
                state.of_hooks.insert(key, path.clone());
                Some(path)
            }
            Err(error) => {
                tracing::warn!(%error, hook = hook.as_str(), "no temporary directory for a sandboxed hook");
                None
            }
        }
    }
}

impl TempState {
    fn create(&mut self) -> io::Result<PathBuf> {
        let base = match &self.base {
            Some(base) => base.clone(),
            None => self.base.insert(create_base()?).clone(),
        };
        let path = base.join(self.of_hooks.len().to_string());
        private_directory(&path)?;
        Ok(path)
    }
}

impl Drop for TempState {
    fn drop(&mut self) {
        if let Some(base) = self.base.take()
            && let Err(error) = fs::remove_dir_all(&base)
        {
            tracing::warn!(%error, directory = %base.display(), "temporary files of hooks could not be removed");
        }
    }
}

/// A directory that did not exist before: nobody else has prepared what is in it.
fn create_base() -> io::Result<PathBuf> {
    let directory = env::temp_dir().canonicalize()?;
    let mut attempt = 0;
    loop {
        let path = directory.join(format!("hookyard-{}-{attempt}", process::id()));
        match private_directory(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && attempt < MAX_ATTEMPTS => {
                attempt += 1;
            }
            made => return made.map(|()| path),
        }
    }
}

fn private_directory(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().mode(0o700).create(path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn each_hook_has_its_own_directory_until_the_end() {
        let temp = PrivateTemp::default();
        let of = |root: &str, hook: &str| temp.of(Path::new(root), &HookName::new(hook).unwrap()).unwrap();
        let directory = of("/srv/shop", "guard");
        assert_eq!(of("/srv/shop", "guard"), directory);
        assert!(of("/srv/shop", "other") != directory && of("/srv/blog", "guard") != directory);
        assert_eq!(directory.metadata().unwrap().permissions().mode() & 0o777, 0o700);
        fs::write(directory.join("left"), "x").unwrap();
        drop(temp);
        assert!(!directory.parent().unwrap().exists());
    }
}
