//! Resolves what hook files refer to: directories, programs, text files, agents, models, secrets.
//! Files and directories must be inside the workspace.

use std::{
    cell::RefCell,
    collections::BTreeSet,
    os::unix::fs::PermissionsExt,
    path::{Component, Path, PathBuf},
};

use super::{discover::WORKSPACE_DIRECTORY, files, models::ModelCatalog, secrets::SecretStore};
use crate::{
    dialect::{ReferenceLookup, ResolvedPath},
    model::{Model, Secret, SecretText},
};

/// Where programs are looked up if the environment has no `PATH`.
const USUAL_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// The longest name of an agent, in bytes.
const LONGEST_AGENT: usize = 64;

/// The largest text file a handler may name, in bytes.
const LARGEST_TEXT: u64 = 256 << 10;

/// Resolves references with a workspace on disk, the environment, secrets and models.
pub(super) struct ReferenceResolver<'a> {
    root: &'a Path,
    environment: &'a dyn Fn(&str) -> Option<String>,
    secrets: &'a SecretStore<'a>,
    models: &'a ModelCatalog<'a>,
    path: Vec<PathBuf>,
    /// The files that were examined, also those that do not exist.
    read: RefCell<BTreeSet<PathBuf>>,
}

impl<'a> ReferenceResolver<'a> {
    /// A resolver for a workspace whose root has no symbolic links.
    ///
    /// Of the `PATH`, only absolute entries outside the workspace are searched: anyone who can write to the
    /// workspace could put a program of a common name into the others.
    pub(super) fn new(
        root: &'a Path,
        environment: &'a dyn Fn(&str) -> Option<String>,
        secrets: &'a SecretStore<'a>,
        models: &'a ModelCatalog<'a>,
    ) -> Self {
        let path = environment("PATH").unwrap_or_else(|| USUAL_PATH.to_owned());
        let path = std::env::split_paths(&path)
            .filter(|entry| entry.is_absolute() && !entry.starts_with(root))
            .collect();
        Self { root, environment, secrets, models, path, read: RefCell::default() }
    }

    /// The files that were examined for the hooks, besides hook files.
    pub(super) fn into_read(self) -> BTreeSet<PathBuf> {
        self.read.into_inner()
    }

    fn read(&self, path: &Path, shown: &str) -> Result<Vec<u8>, String> {
        self.read.borrow_mut().insert(path.to_owned());
        read_inside(self.root, path, shown)
    }

    fn in_path(&self, name: &str) -> ResolvedPath {
        let found = self.path.iter().map(|entry| entry.join(name)).find(|path| problem(path).is_none());
        found.map_or_else(
            || {
                let entry = self.path.first().map_or(Path::new("/usr/bin"), PathBuf::as_path);
                ResolvedPath::Missing(entry.join(name), format!("`{name}` was not found in PATH"))
            },
            ResolvedPath::Found,
        )
    }
}

impl ReferenceLookup for ReferenceResolver<'_> {
    fn variable(&self, name: &str) -> Option<SecretText> {
        let value = (self.environment)(name)?;
        Some(if self.secrets.is_variable(name) {
            SecretText::secret(Secret::new(value))
        } else {
            value.into()
        })
    }

    fn secret(&self, name: &str) -> Result<Secret, (String, String)> {
        self.secrets.find(name)
    }

    fn directory(&self, relative: &str) -> ResolvedPath {
        let Some(path) = inside(self.root, self.root, relative) else {
            return ResolvedPath::Refused(format!("`{relative}` leads outside the workspace"));
        };
        match files::directory_inside(self.root, &path) {
            Ok(Some(real)) => ResolvedPath::Found(real),
            Ok(None) => ResolvedPath::Missing(path, format!("`{relative}` does not exist")),
            Err(why) => ResolvedPath::Refused(format!("`{relative}` {why}")),
        }
    }

    fn program(&self, name: &str, cwd: &Path) -> ResolvedPath {
        if name.is_empty() {
            return ResolvedPath::Refused("the program's name is empty".to_owned());
        }
        if !name.contains('/') {
            return self.in_path(name);
        }
        let path = if name.starts_with('/') {
            PathBuf::from(name)
        } else {
            match inside(self.root, cwd, name) {
                Some(path) => path,
                None => return ResolvedPath::Refused(format!("`{name}` leads outside the workspace")),
            }
        };
        match problem(&path) {
            None => ResolvedPath::Found(path),
            Some(why) => ResolvedPath::Missing(path, format!("`{name}` {why}")),
        }
    }

    fn text_file(&self, relative: &str) -> Result<String, String> {
        self.read.borrow_mut().extend(inside(self.root, self.root, relative));
        text_inside(self.root, relative)
    }

    fn agent_file(&self, name: &str) -> Result<(PathBuf, Vec<u8>), (String, String)> {
        if !is_agent_name(name) {
            let help = format!("use 1 to {LONGEST_AGENT} of `A-Z a-z 0-9 . _ -`, not beginning with `.`");
            return Err(("this is no name for an agent".into(), help));
        }
        let relative = format!("{WORKSPACE_DIRECTORY}/agents/{name}.md");
        let path = self.root.join(&relative);
        match self.read(&path, &relative) {
            Ok(bytes) => Ok((path, bytes)),
            Err(why) => Err((why, "write the agent there, or name another one".into())),
        }
    }

    fn model(&self, reference: &str) -> Result<Model, (String, String)> {
        self.models.find(reference, self)
    }
}

fn is_agent_name(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with('.')
        && name.len() <= LONGEST_AGENT
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
}

/// The text of a small regular file inside a workspace.
pub(super) fn text_inside(root: &Path, relative: &str) -> Result<String, String> {
    let path = inside(root, root, relative);
    let path = path.ok_or_else(|| format!("`{relative}` leads outside the workspace"))?;
    let bytes = read_inside(root, &path, relative)?;
    String::from_utf8(bytes).map_err(|_| format!("`{relative}` is not UTF-8"))
}

/// The bytes of a small regular file inside a workspace, as `shown` names it.
fn read_inside(root: &Path, path: &Path, shown: &str) -> Result<Vec<u8>, String> {
    match path.canonicalize() {
        Ok(real) if !real.starts_with(root) => Err(format!("`{shown}` leads outside the workspace")),
        Ok(_) => files::read_regular(path, LARGEST_TEXT).map_err(|why| format!("`{shown}` {why}")),
        Err(_) => Err(format!("`{shown}` does not exist")),
    }
}

/// A path relative to a directory of the workspace, without `.` and `..`, if it stays in the workspace.
/// Links in it are not resolved: a program in the workspace may be a link to one outside, as in Python's environments.
fn inside(root: &Path, from: &Path, relative: &str) -> Option<PathBuf> {
    let mut path = from.to_path_buf();
    for component in Path::new(relative).components() {
        match component {
            Component::Normal(name) => path.push(name),
            Component::CurDir => {}
            Component::ParentDir => {
                path.pop();
            }
            Component::RootDir | Component::Prefix(_) => return None,
        }
        if !path.starts_with(root) {
            return None;
        }
    }
    path.starts_with(root).then_some(path)
}

/// Why a program cannot be run, or `None`.
fn problem(path: &Path) -> Option<&'static str> {
    match path.metadata() {
        Err(_) => Some("does not exist"),
        Ok(metadata) if !metadata.is_file() => Some("is not a file"),
        Ok(metadata) if metadata.permissions().mode() & 0o111 == 0 => Some("is not executable"),
        Ok(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::{config::SecretSources, model::WorkspaceId};

    #[test]
    fn paths_stay_in_the_workspace() {
        let root = Path::new("/w");
        let cases = [
            ("a/b", Some("/w/a/b")),
            ("./a", Some("/w/a")),
            ("a/../b", Some("/w/b")),
            ("..", None),
            ("a/../../w/b", None),
            ("/w/a", None),
            ("", Some("/w")),
        ];
        for (relative, expected) in cases {
            assert_eq!(inside(root, root, relative).as_deref(), expected.map(Path::new), "{relative}");
        }
        assert_eq!(inside(root, Path::new("/w/a"), "../b").as_deref(), Some(Path::new("/w/b")));
    }

    #[test]
    fn programs_are_found_where_a_child_would_find_them() {
        let root = Path::new("/nowhere");
        let environment = |name: &str| (name == "PATH").then(|| ".::/nowhere/bin:/bin:/usr/bin".to_owned());
        let sources = SecretSources::default();
        let workspace = WorkspaceId::of_directory(root);
        let secrets = SecretStore::new(&sources, &environment, &workspace);
        let models = ModelCatalog { known: &BTreeMap::new(), of_host: &|_| false, workspace: &workspace };
        let disk = ReferenceResolver::new(root, &environment, &secrets, &models);
        assert_eq!(disk.path, [Path::new("/bin"), Path::new("/usr/bin")]);
        assert_eq!(disk.program("sh", root), ResolvedPath::Found("/bin/sh".into()));
        assert_eq!(disk.program("/bin/sh", root), ResolvedPath::Found("/bin/sh".into()));
        let missing = |path: &str, why: &str| ResolvedPath::Missing(path.into(), why.into());
        assert_eq!(disk.program("no-such", root), missing("/bin/no-such", "`no-such` was not found in PATH"));
        assert_eq!(disk.program("./x", root), missing("/nowhere/x", "`./x` does not exist"));
        assert_eq!(
            disk.program("/etc/passwd", root),
            missing("/etc/passwd", "`/etc/passwd` is not executable")
        );
        assert!(matches!(disk.program("../x", root), ResolvedPath::Refused(_)));
    }
}
