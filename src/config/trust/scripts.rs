//! The files that commands and scripts name and import, as far as their texts show.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Component, Path, PathBuf},
    sync::Arc,
};

use super::{
    super::files,
    record::TreeFile,
    shell_words::WordPath,
    tree::{RunPlace, TreeReader},
};

/// The largest script whose text is searched for what it imports, in bytes.
const LARGEST_SCRIPT: u64 = 1 << 20;

/// How many files beside a script are followed.
const MOST_FOLLOWED: usize = 256;

/// Where the programs of a system are.
const SYSTEM_DIRECTORIES: [&str; 9] =
    ["/bin", "/sbin", "/usr", "/lib", "/lib64", "/opt", "/nix", "/etc/alternatives", "/run/current-system"];

/// Devices that say nothing about what runs.
const HARMLESS_DEVICES: [&str; 5] = ["/dev/null", "/dev/stderr", "/dev/stdin", "/dev/stdout", "/dev/tty"];

/// Modules that Node.js has itself, written without `node:`.
const NODE_MODULES: [&str; 32] = [
    "assert",
    "async_hooks",
    "buffer",
    "child_process",
    "cluster",
    "console",
    "constants",
    "crypto",
    "dgram",
    "dns",
    "events",
    "fs",
    "http",
    "http2",
    "https",
    "module",
    "net",
    "os",
    "path",
    "perf_hooks",
    "process",
    "punycode",
    "querystring",
    "readline",
    "stream",
    "string_decoder",
    "timers",
    "tls",
    "url",
    "util",
    "worker_threads",
    "zlib",
];

/// Their parts that are modules of their own.
const NODE_SUBMODULES: [&str; 11] = [
    "assert/strict",
    "dns/promises",
    "fs/promises",
    "path/posix",
    "path/win32",
    "readline/promises",
    "stream/consumers",
    "stream/promises",
    "stream/web",
    "timers/promises",
    "util/types",
];

/// What a script imports that `exists` does not find among the files that are agreed to.
fn imports_of(path: &str, text: &str, is_python: bool, exists: &dyn Fn(&str) -> bool) -> Vec<String> {
    match path.rsplit('.').next() {
        Some("js" | "mjs" | "cjs" | "ts" | "mts") => {
            let imports = quoted_after(text, &["from", "import", "require(", "import("]);
            let missing = imports.filter(|import| !is_covered(import, exists));
            missing.map(|import| format!("`{path}` imports `{import}`")).collect()
        }
        _ if is_python && text.contains("sys.path") => {
            vec![format!("`{path}` changes where it imports from")]
        }
        _ => Vec::new(),
    }
}

fn is_covered(import: &str, exists: &dyn Fn(&str) -> bool) -> bool {
    // `util/` is a package.
    if import.starts_with("node:") || NODE_MODULES.contains(&import) || NODE_SUBMODULES.contains(&import) {
        return true;
    }
    import.starts_with('.')
        && ["", ".js", ".mjs", ".cjs", ".ts", ".json", "/index.js"]
            .iter()
            .any(|end| exists(&format!("{import}{end}")))
}

/// The quoted texts that follow one of the words.
fn quoted_after<'t>(text: &'t str, words: &[&str]) -> impl Iterator<Item = &'t str> {
    let mut found = Vec::new();
    for word in words {
        for (at, _) in text.match_indices(word) {
            let is_part_of_name =
                text[..at].ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.');
            let rest = text[at + word.len()..].trim_start();
            let Some(quote) = rest.chars().next().filter(|c| "'\"`".contains(*c)) else { continue };
            let quoted = rest[1..].split_once(quote).map(|(quoted, _)| quoted);
            found.extend(quoted.filter(|quoted| !is_part_of_name && !quoted.contains('\n')));
        }
    }
    found.sort_unstable();
    found.dedup();
    found.into_iter()
}

/// What may run a script that a text names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ScriptCaller {
    Python,
    Other,
}

impl ScriptCaller {
    /// What a command or a script may run the files with that it names.
    pub(super) fn of(text: &str) -> Self {
        if text.contains("python") { Self::Python } else { Self::Other }
    }
}

/// The scripts of a hook that were followed, and their files.
pub(super) struct ScriptFollower<'a> {
    trees: &'a TreeReader<'a>,
    place: RunPlace,
    followed: BTreeSet<PathBuf>,
    /// Those that Python may run: by their names, their first lines, or what runs them.
    python: BTreeSet<PathBuf>,
    /// The files of a directory, as long as all others are among them.
    whole: Option<Arc<[TreeFile]>>,
    tree: BTreeMap<String, TreeFile>,
}

impl<'a> ScriptFollower<'a> {
    pub(super) fn new(trees: &'a TreeReader<'a>, place: RunPlace) -> Self {
        Self {
            trees,
            place,
            followed: BTreeSet::new(),
            python: BTreeSet::new(),
            whole: None,
            tree: BTreeMap::new(),
        }
    }

    /// Adds a file that is run, whose directory is in the tree or has been followed.
    pub(super) fn add_script(&mut self, script: PathBuf, caller: ScriptCaller) -> Result<(), String> {
        self.add(self.trees.file(&script)?);
        if caller == ScriptCaller::Python || is_python(self.trees, &script) {
            self.python.insert(script.clone());
        }
        self.followed.insert(script);
        Ok(())
    }

    pub(super) fn add_directory(&mut self, directory: &Path) -> Result<(), String> {
        let files = self.trees.directory(directory, self.place)?;
        if self.whole.is_none() && self.tree.is_empty() {
            self.whole = Some(files);
        } else {
            for file in files.iter() {
                self.add(file.clone());
            }
        }
        Ok(())
    }

    fn add(&mut self, file: TreeFile) {
        if let Some(whole) = &self.whole {
            if whole.binary_search(&file).is_ok() {
                return;
            }
            self.tree.extend(whole.iter().map(|file| (file.path.clone(), file.clone())));
            self.whole = None;
        }
        self.tree.insert(file.path.clone(), file);
    }

    /// Adds a script, and the files beside and below it that its text names.
    pub(super) fn follow(&mut self, script: &Path, caller: ScriptCaller) -> Result<(), String> {
        if self.followed.len() >= MOST_FOLLOWED || !self.followed.insert(script.to_owned()) {
            return Ok(());
        }
        self.add(self.trees.file(script)?);
        let Some(directory) = script.parent() else { return Ok(()) };
        if caller == ScriptCaller::Python || is_python(self.trees, script) {
            self.python.insert(script.to_owned());
            if self.place == RunPlace::Workspace {
                for file in self.trees.importable(directory)? {
                    self.add(file);
                }
            }
        }
        let Some(text) = script_text(self.trees, script) else { return Ok(()) };
        let caller = ScriptCaller::of(&text);
        if self.place == RunPlace::Workspace {
            // A file that appears under one of the names counts too.
            self.trees.note_directory(directory);
        }
        for name in names_in(&text) {
            if self.place == RunPlace::Workspace
                && let Some(path) = inside(self.trees.root(), directory, name)
                && let Some(parent) = path.parent().filter(|parent| *parent != directory)
            {
                self.trees.note_directory(parent);
            }
            if let Some(path) = inside(self.trees.root(), directory, name).filter(|path| is_module(path)) {
                self.add_directory(&path)?;
            }
            for end in ["", ".py", ".js", ".mjs", ".cjs", ".ts", ".sh", ".json"] {
                let path = inside(self.trees.root(), directory, &format!("{name}{end}"));
                if let Some(path) = path.filter(|path| path.is_file()) {
                    self.follow(&path, caller)?;
                }
            }
        }
        Ok(())
    }

    /// The files, sorted.
    pub(super) fn into_tree(self) -> Arc<[TreeFile]> {
        self.whole.unwrap_or_else(|| self.tree.into_values().collect())
    }

    fn has(&self, path: &str) -> bool {
        match &self.whole {
            Some(whole) => whole.binary_search_by(|file| file.path.as_str().cmp(path)).is_ok(),
            None => self.tree.contains_key(path),
        }
    }

    /// What the scripts import that is not in the tree.
    pub(super) fn imports(&self) -> Vec<String> {
        let root = self.trees.root();
        let mut found = Vec::new();
        for script in &self.followed {
            let is_python = self.python.contains(script);
            if !is_python && !may_import(script) {
                continue;
            }
            let Some(text) = script_text(self.trees, script) else { continue };
            let shown = script.strip_prefix(root).unwrap_or(script).to_string_lossy();
            let directory = script.parent().unwrap_or(root);
            let exists = |import: &str| {
                let path = inside(root, directory, import);
                path.and_then(|path| Some(path.strip_prefix(root).ok()?.to_str()?.to_owned()))
                    .is_some_and(|path| self.has(&path))
            };
            found.extend(imports_of(&shown, &text, is_python, &exists));
        }
        found
    }
}

/// Whether imports of scripts of this kind are looked for.
fn may_import(script: &Path) -> bool {
    let end = script.extension().and_then(|end| end.to_str()).unwrap_or_default();
    ["js", "mjs", "cjs", "ts", "mts"].contains(&end)
}

/// Whether a script says by its name or its first line that Python runs it.
fn is_python(trees: &TreeReader<'_>, script: &Path) -> bool {
    script.extension().is_some_and(|end| end == "py")
        || trees.interpreter_line(script).is_some_and(|line| line.contains("python"))
}

/// The texts of a script that could name files, also after a directory that is known only when it runs:
/// `"$(dirname "$0")"/name`.
fn names_in(text: &str) -> BTreeSet<&str> {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || "._-/".contains(c)))
        .map(|name| name.trim_start_matches('/'))
        .map(|name| name.trim_start_matches("./").trim_end_matches('.'))
        .filter(|name| !name.is_empty() && name.len() < 128 && !name.starts_with('/'))
        .collect()
}

/// Whether a directory is one that scripts import by its name.
fn is_module(path: &Path) -> bool {
    path.is_dir() && ["__init__.py", "index.js", "package.json"].iter().any(|file| path.join(file).is_file())
}

/// The text of a script that is not too large.
pub(super) fn script_text(trees: &TreeReader<'_>, path: &Path) -> Option<String> {
    let file = trees.open(path).ok()?;
    String::from_utf8(files::read_open(file, LARGEST_SCRIPT).ok()?).ok()
}

/// Where a word of a command leads from a directory of the workspace.
pub(super) fn word_path(trees: &TreeReader<'_>, from: &Path, text: &str) -> WordPath {
    const DYNAMIC: [&str; 2] = ["/proc", "/dev"];
    if text.is_empty() || text.contains('\0') {
        return WordPath::Absent;
    }
    let joined = from.join(text);
    let plain = without_dots(from, text);
    if DYNAMIC.iter().any(|directory| joined.starts_with(directory) || plain.starts_with(directory)) {
        let is_stream = HARMLESS_DEVICES.iter().any(|device| joined.as_os_str() == *device);
        let why = "is known only when it runs";
        return if is_stream { WordPath::System } else { WordPath::Elsewhere { why } };
    }
    // As the kernel follows it: a `..` after a link leads elsewhere than the text says.
    let Some((real, kind)) = trees.real_path(&joined) else { return WordPath::Absent };
    let root = trees.root();
    if !plain.starts_with(root) {
        let is_of_system =
            |path: &Path| SYSTEM_DIRECTORIES.iter().any(|directory| path.starts_with(directory));
        return match () {
            () if real.starts_with(root) => {
                WordPath::Elsewhere { why: "leads into the workspace from outside" }
            }
            () if is_of_system(&plain) && is_of_system(&real) => WordPath::System,
            () => WordPath::Elsewhere { why: "is outside the workspace" },
        };
    }
    match () {
        // Without `..`, both are the same.
        () if text.contains("..") && plain.canonicalize().ok().as_deref() != Some(&*real) => {
            WordPath::Elsewhere { why: "has `..` after a link" }
        }
        () if kind.is_file() && !real.starts_with(root) => WordPath::LinksOut { target: real },
        () if !real.starts_with(root) => {
            WordPath::Elsewhere { why: "is a link that leads outside the workspace" }
        }
        () if kind.is_file() => WordPath::File(plain),
        () if kind.is_dir() => WordPath::Directory,
        () => WordPath::Elsewhere { why: "is no regular file" },
    }
}

fn without_dots(from: &Path, text: &str) -> PathBuf {
    inside(Path::new("/"), from, text).unwrap_or_else(|| PathBuf::from("/"))
}

/// A path without `.` and `..`, if it stays below the root.
fn inside(root: &Path, from: &Path, text: &str) -> Option<PathBuf> {
    let mut path = from.to_path_buf();
    for component in Path::new(text).components() {
        match component {
            Component::Normal(name) => path.push(name),
            Component::CurDir => {}
            Component::ParentDir => {
                path.pop();
            }
            Component::RootDir => path = PathBuf::from("/"),
            Component::Prefix(_) => return None,
        }
    }
    (path.starts_with(root) && path != root).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn imports_outside_the_tree_are_seen() {
        let text = "import fs from 'node:fs';\nimport { a } from \"./lib/a.mjs\";\nimport z from 'zod';\nconst c = require('../../c');\nimport path from 'path';";
        let exists = |import: &str| import == "./lib/a.mjs";
        assert_eq!(
            imports_of("x.mjs", text, false, &exists),
            ["`x.mjs` imports `../../c`", "`x.mjs` imports `zod`"]
        );
        for (import, is_builtin) in
            [("fs/promises", true), ("node:test", true), ("buffer/", false), ("util/x", false)]
        {
            assert_eq!(is_covered(import, &exists), is_builtin, "{import}");
        }
    }
}
