//! The directory that a bundle is built from: its workspaces, and packs, which become workspaces.

use std::{fs, io::Read, os::unix::fs::PermissionsExt, path::Path};

use super::super::{exit::CliError, paths::display_path};
use crate::{
    bundle::{BundleFile, BundlePath},
    config,
    model::io_reason,
};

/// Where the hook files of a workspace are.
const HOOKS: &str = ".openharness/hooks/";

/// What marks a workspace.
const WORKSPACE: &str = ".openharness";

/// Directories that are no part of a bundle: of version control, and code that Python makes anew.
const LEFT_OUT: [&str; 2] = [".git", "__pycache__"];

/// The most files and directories that are looked at.
const MOST_ENTRIES: usize = 20_000;

/// The largest file, in bytes.
const LARGEST_FILE: u64 = 16 << 20;

/// The files of a directory, in the order of their paths in the bundle.
///
/// Returns an error if one may not be in a bundle, or a hook file would not be loaded.
pub(super) fn files_of(directory: &Path) -> Result<Vec<BundleFile>, CliError> {
    let mut reader = SourceReader { root: directory, files: Vec::new(), seen: 0 };
    reader.read_directory("")?;
    let packs = reader.packs();
    let mut files: Vec<BundleFile> = Vec::new();
    for (path, bytes, is_executable) in reader.files {
        let path = in_bundle(&path, &packs);
        if is_hook_file(&path, &bytes) && !is_loaded(&path) {
            return Err(CliError::with_help(
                format!(
                    "{} is a hook file that no workspace would load",
                    display_path(&directory.join(&path))
                ),
                "move it to `.openharness/hooks/` of a workspace, or directly into the directory of a pack, with the ending \
                 `.yaml`; data needs another ending",
            ));
        }
        let name = BundlePath::new(&path).map_err(|why| {
            let shown = display_path(&directory.join(&path));
            CliError::with_help(
                format!("{shown} cannot be in a bundle: {why}"),
                "rename it, or move it elsewhere",
            )
        })?;
        files.push(BundleFile { path: name, bytes, is_executable });
    }
    files.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(files)
}

struct SourceReader<'a> {
    root: &'a Path,
    /// Paths with `/`, contents, and whether they are programs.
    files: Vec<(String, Vec<u8>, bool)>,
    seen: usize,
}

impl SourceReader<'_> {
    fn read_directory(&mut self, relative: &str) -> Result<(), CliError> {
        let directory = self.root.join(relative);
        let unreadable = |error: std::io::Error| {
            CliError::new(format!("{} cannot be read: {}", display_path(&directory), io_reason(&error)))
        };
        for entry in fs::read_dir(&directory).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
            let path = entry.path();
            let wrong = |why: &str| {
                CliError::with_help(
                    format!("{} cannot be in a bundle: {why}", display_path(&path)),
                    "a bundle has plain files and directories only",
                )
            };
            self.seen += 1;
            if self.seen > MOST_ENTRIES {
                return Err(wrong("there are too many files"));
            }
            let name = entry.file_name().into_string().map_err(|_| wrong("its name is no text"))?;
            let below = if relative.is_empty() { name.clone() } else { format!("{relative}/{name}") };
            let kind = entry.file_type().map_err(unreadable)?;
            if kind.is_dir() {
                if !LEFT_OUT.contains(&name.as_str()) {
                    self.read_directory(&below)?;
                }
            } else if kind.is_file() {
                self.read_file(below, &path)?;
            } else if kind.is_symlink() {
                return Err(wrong("it is a symbolic link"));
            } else {
                return Err(wrong("it is no regular file"));
            }
        }
        Ok(())
    }

    fn read_file(&mut self, relative: String, path: &Path) -> Result<(), CliError> {
        let unreadable = |error: std::io::Error| {
            CliError::new(format!("{} cannot be read: {}", display_path(path), io_reason(&error)))
        };
        let file = fs::File::open(path).map_err(unreadable)?;
        let mode = file.metadata().map_err(unreadable)?.permissions().mode();
        let mut bytes = Vec::new();
        file.take(LARGEST_FILE + 1).read_to_end(&mut bytes).map_err(unreadable)?;
        if bytes.len() as u64 > LARGEST_FILE {
            return Err(CliError::new(format!("{} has more than {LARGEST_FILE} bytes", display_path(path))));
        }
        self.files.push((relative, bytes, mode & 0o100 != 0));
        Ok(())
    }

    /// The directories with hook files of their own that are no workspaces: the directory itself, or one right below it. Each
    /// with a `/` at its end, unless it is empty.
    fn packs(&self) -> Vec<String> {
        let mut packs: Vec<String> = Vec::new();
        for (path, bytes, _) in &self.files {
            let pack = path.rsplit_once('/').map_or("", |(directory, _)| directory);
            let prefix = if pack.is_empty() { String::new() } else { format!("{pack}/") };
            let workspace = format!("{prefix}{WORKSPACE}/");
            let is_workspace = self.files.iter().any(|(other, ..)| other.starts_with(&workspace));
            if !pack.contains('/') && pack != WORKSPACE && is_hook_file(path, bytes) && !is_workspace {
                packs.push(prefix);
            }
        }
        packs.sort();
        packs.dedup();
        packs
    }
}

/// The path of a file in the bundle: a hook file of a pack has the place that it has in a workspace.
fn in_bundle(path: &str, packs: &[String]) -> String {
    let pack = packs.iter().find(|pack| {
        let rest = path.strip_prefix(pack.as_str());
        rest.is_some_and(|rest| !rest.contains('/') && is_yaml(rest))
    });
    match pack {
        Some(pack) => format!("{pack}{HOOKS}{}", &path[pack.len()..]),
        None => path.to_owned(),
    }
}

/// Whether the loader takes a file for a hook file, by its ending.
fn is_yaml(path: &str) -> bool {
    [".yaml", ".yml"].iter().any(|ending| path.ends_with(ending))
}

/// Whether a file is meant as a hook file. Also with an ending that the loader passes over.
fn is_hook_file(path: &str, bytes: &[u8]) -> bool {
    let lower = path.to_ascii_lowercase();
    [".yaml", ".yml", ".json"].iter().any(|ending| lower.ends_with(ending)) && config::is_meant_as_hook(bytes)
}

/// Whether a workspace loads it.
fn is_loaded(path: &str) -> bool {
    let Some((directory, _)) = path.rsplit_once('/') else { return false };
    let hooks = HOOKS.trim_end_matches('/');
    is_yaml(path) && (directory == hooks || directory.ends_with(&format!("/{hooks}")))
}
