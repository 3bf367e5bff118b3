//! Lookup of secrets in directories, environment variables and a file.
//! No message contains a value.

use std::{
    cell::OnceCell,
    collections::HashMap,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use super::{
    files::{self, SymlinkPolicy},
    settings::SecretSources,
};
use crate::{
    dialect::Document,
    model::{Secret, WorkspaceId},
};

/// The largest secret, in bytes: a certificate chain fits, a file put there by mistake does not.
const LARGEST_SECRET: u64 = 64 << 10;

/// The largest file of secrets, in bytes.
const LARGEST_FILE: u64 = 256 << 10;

/// What is wrong with a secret, and what to do; neither contains a value.
pub(super) type SecretProblem = (String, String);

/// The sources of secrets for one workspace while it is loaded.
pub(super) struct SecretStore<'a> {
    sources: &'a SecretSources,
    /// The directory with the workspace's own secrets.
    own: Option<PathBuf>,
    environment: &'a dyn Fn(&str) -> Option<String>,
    /// Read when the first secret is in no source before it, so that an invalid file fails only the hooks that need it.
    file: OnceCell<Result<HashMap<String, Option<String>>, SecretProblem>>,
}

impl<'a> SecretStore<'a> {
    /// The sources for a workspace that the settings declare under an id, or for one that they do not declare. Such a
    /// one has no secrets of its own: its id is only the name of its directory, which anybody can choose.
    pub(super) fn new(
        sources: &'a SecretSources,
        environment: &'a dyn Fn(&str) -> Option<String>,
        declared: Option<&WorkspaceId>,
    ) -> Self {
        // An id that is no plain name must not lead to the directory of another workspace.
        let is_name =
            |id: &&WorkspaceId| Path::new(id.as_str()).file_name().is_some_and(|name| name == id.as_str());
        let id = declared.filter(is_name);
        let own = sources.by_workspace.as_ref().zip(id).map(|(dir, id)| dir.join(id.as_str()));
        Self { sources, own, environment, file: OnceCell::new() }
    }

    /// Whether a variable of hookyard's environment holds a secret, also where a hook refers to it as `${env.NAME}`.
    pub(super) fn is_variable(&self, name: &str) -> bool {
        self.sources.env_prefix.as_deref().is_some_and(|prefix| name.starts_with(prefix))
    }

    /// The secret of a name.
    ///
    /// Returns what is wrong if no source has it, or a source that is searched before cannot be used.
    pub(super) fn find(&self, name: &str) -> Result<Secret, SecretProblem> {
        match self.value(name)? {
            Some(value) if value.is_empty() => {
                Err((format!("the secret `{name}` is empty"), "give it a value".into()))
            }
            Some(value) if value.len() as u64 > LARGEST_SECRET => {
                let message =
                    format!("the secret `{name}` is larger than the {LARGEST_SECRET} bytes allowed");
                Err((message, "check that it is the value that was meant".into()))
            }
            Some(value) => Ok(Secret::new(value)),
            None => Err(self.unknown(name)),
        }
    }

    /// The value in the first source that has it.
    fn value(&self, name: &str) -> Result<Option<String>, SecretProblem> {
        if let Some(value) = in_directory(self.own.as_deref(), name)? {
            return Ok(Some(value));
        }
        if let Some(value) = self.in_environment(name) {
            return Ok(Some(value));
        }
        match in_directory(self.sources.dir.as_deref(), name)? {
            Some(value) => Ok(Some(value)),
            None => self.in_file(name),
        }
    }

    fn in_environment(&self, name: &str) -> Option<String> {
        let prefix = self.sources.env_prefix.as_deref()?;
        (self.environment)(&format!("{prefix}{name}"))
    }

    fn in_file(&self, name: &str) -> Result<Option<String>, SecretProblem> {
        let Some(path) = &self.sources.file else { return Ok(None) };
        let file = self.file.get_or_init(|| read_file(path)).as_ref().map_err(Clone::clone)?;
        match file.get(name) {
            None => Ok(None),
            Some(Some(value)) => Ok(Some(value.clone())),
            Some(None) => {
                let message = format!("the secret `{name}` in {} is not a string", path.display());
                Err((message, "put it in quotes".into()))
            }
        }
    }

    fn unknown(&self, name: &str) -> SecretProblem {
        let SecretSources { by_workspace, env_prefix, dir, file } = self.sources;
        let own = self.own.as_ref().map(|dir| format!("the directory {}", dir.display()));
        let variables = env_prefix.as_ref().map(|prefix| format!("the variable `{prefix}{name}`"));
        let directory = dir.as_ref().map(|dir| format!("the directory {}", dir.display()));
        let file = file.as_ref().map(|file| format!("the file {}", file.display()));
        let sources: Vec<_> = [own, variables, directory, file].into_iter().flatten().collect();
        if sources.is_empty() && by_workspace.is_none() {
            let message = format!("secret `{name}` not found: no source of secrets is configured");
            return (message, "set `secrets` in the settings".into());
        }
        let message = if sources.is_empty() {
            format!("secret `{name}` not found: the workspace has no secrets of its own")
        } else {
            format!("secret `{name}` not found in {}", sources.join(", "))
        };
        if by_workspace.is_some() && self.own.is_none() {
            let help = "declare the workspace with its `root` under `workspaces` in the settings: \
                        only then it has secrets of its own";
            return (message, help.into());
        }
        (message, "add it there".into())
    }
}

fn in_directory(dir: Option<&Path>, name: &str) -> Result<Option<String>, SecretProblem> {
    let Some(dir) = dir else { return Ok(None) };
    let path = dir.join(name);
    if path.symlink_metadata().is_err_and(|e| e.kind() == std::io::ErrorKind::NotFound) {
        return Ok(None);
    }
    let text = read_secret(&path).map_err(|why| {
        (format!("the secret file {} {why}", path.display()), "it must be a small text file".to_owned())
    })?;
    let value = text.strip_suffix('\n').unwrap_or(&text);
    Ok(Some(value.strip_suffix('\r').unwrap_or(value).to_owned()))
}

fn read_secret(path: &Path) -> Result<String, String> {
    // Container orchestrators mount secrets as links to their current version.
    let file = files::open_regular(path, SymlinkPolicy::Followed)?;
    let bytes = files::read_open(file, LARGEST_SECRET)?;
    String::from_utf8(bytes).map_err(|_| "is not UTF-8".to_owned())
}

fn read_file(path: &Path) -> Result<HashMap<String, Option<String>>, SecretProblem> {
    let shown = path.display();
    let file = files::open_regular(path, SymlinkPolicy::Refused).map_err(|why| invalid_file(path, &why))?;
    let metadata = file.metadata().map_err(|error| invalid_file(path, &files::unreadable(error)))?;
    let mode = metadata.mode() & 0o777;
    if mode & 0o077 != 0 {
        let message = format!("the file of secrets {shown} is open to others: its mode is {mode:04o}");
        return Err((message, format!("run `chmod 600 {shown}`")));
    }
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        let message = format!("the file of secrets {shown} belongs to another user");
        return Err((message, "it must belong to the user who runs hookyard".into()));
    }
    let bytes = files::read_open(file, LARGEST_FILE).map_err(|why| invalid_file(path, &why))?;
    // The message of a diagnostic may quote the file, so only its line is reported.
    let document = Document::parse(&bytes, path)
        .map_err(|diagnostic| invalid_file(path, &format!("cannot be read from line {}", diagnostic.line)))?;
    let mapping = document.root().filter(|_| !document.has_errors());
    let mapping = mapping.ok_or_else(|| invalid_file(path, "is not a mapping"))?;
    Ok(mapping.values().map(|value| (value.name().to_owned(), value.as_text().map(str::to_owned))).collect())
}

fn invalid_file(path: &Path, why: &str) -> SecretProblem {
    let message = format!("the file of secrets {} {why}", path.display());
    (message, "it must be a YAML mapping of names to strings".to_owned())
}
