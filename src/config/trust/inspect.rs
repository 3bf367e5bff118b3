//! From a hook as it was read to what a person would agree to.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet, HashMap},
    ops::Range,
    path::{Path, PathBuf},
    sync::Arc,
};

use serde_json::{Value, json};

use super::{
    super::files::{self, DefinitionFiles, SymlinkPolicy},
    coverage,
    record::{Grants, RecordedPolicies, TreeFile, TrustRecord, sha256},
    shell_words::{quoted, shell_words},
    tree::{TreeReader, inside},
};
use crate::model::{
    CommandHandler, CommandLine, DialectName, Draft, Event, Handler, Hook, RunId, SessionId, Workspace,
};

/// The largest script whose text is searched for what it imports, in bytes.
const LARGEST_SCRIPT: u64 = 1 << 20;

/// How many files beside a script are followed.
const MOST_FOLLOWED: usize = 256;

/// A word of a command that names a file of the workspace.
#[derive(Debug)]
pub(super) struct NamedFile {
    path: PathBuf,
    place: WordPlace,
}

/// Where a command names a file.
#[derive(Debug)]
enum WordPlace {
    /// At this place of the shell line.
    Line(Range<usize>),
    /// It is the program.
    Program,
    /// It is this argument.
    Argument(usize),
}

/// Reads what the hooks of a workspace run.
pub(super) struct Inspector<'a> {
    workspace: &'a Workspace,
    /// The files with definitions, as the hooks were read from them.
    definitions: &'a DefinitionFiles,
    pub(super) trees: TreeReader<'a>,
    settings: RefCell<HashMap<PathBuf, Option<Arc<Value>>>>,
}

impl<'a> Inspector<'a> {
    pub(super) fn new(workspace: &'a Workspace, definitions: &'a DefinitionFiles) -> Self {
        Self { workspace, definitions, trees: TreeReader::new(&workspace.root), settings: RefCell::default() }
    }

    /// What a person would agree to about a hook.
    ///
    /// Returns why nobody can: a file cannot be read, say.
    pub(super) fn inspect(&self, hook: &Hook, in_place: bool) -> Result<TrustRecord, String> {
        let file = hook.source.file.as_deref().ok_or("it has no file")?;
        let definition = self.definition(hook, file)?;
        let mut grants = Grants::named_in(&definition);
        let mut texts = Vec::new();
        let mut tree = BTreeMap::new();
        let mut outside = Vec::new();
        match &hook.handler {
            Handler::Command(command) => outside = self.command(hook, command, &mut tree)?,
            Handler::Http(http) => grants.hosts.push(http.address.server()),
            Handler::Prompt(prompt) => {
                grants.models.push(prompt.model.reference.to_string());
                texts.push(sha256(prompt.prompt.as_bytes()));
            }
            Handler::Agent(task) => {
                let agent = &task.agent;
                let tools: Vec<&str> = agent.tools.iter().map(|tool| tool.as_str()).collect();
                let role = json!([agent.system, tools, agent.max_turns.get(), &*task.task]);
                grants.models.push(agent.model.reference.to_string());
                texts.push(sha256(role.to_string().as_bytes()));
            }
            Handler::Native(_) => {}
        }
        Ok(TrustRecord {
            root: self.root()?,
            hook: hook.name.to_string(),
            dialect: hook.dialect.name().to_string(),
            scope: hook.source.scope.to_string(),
            priority: hook.priority,
            file: utf8(file.strip_prefix(&self.workspace.root).unwrap_or(file))?,
            definition,
            handler: hook.handler.kind().to_string(),
            policies: RecordedPolicies::of(hook),
            tree: tree.into_values().collect(),
            texts,
            grants,
            outside,
            in_place,
        })
    }

    /// The directory of the workspace.
    pub(super) fn root(&self) -> Result<String, String> {
        utf8(&self.workspace.root)
    }

    /// The text of a hook's definition: its file, or its entry in an agent's settings.
    fn definition(&self, hook: &Hook, file: &Path) -> Result<String, String> {
        let text = self.text(file)?;
        if hook.dialect.name() == DialectName::OpenHarness {
            return Ok(text.to_string());
        }
        let mut settings = self.settings.borrow_mut();
        let parsed = settings
            .entry(file.to_owned())
            .or_insert_with(|| serde_json::from_str(text).ok().map(Arc::new))
            .clone();
        // The whole file where the entry is not found in it: each change of the file then counts.
        Ok(parsed.and_then(|settings| entry_of(hook, &settings)).unwrap_or_else(|| text.to_string()))
    }

    fn text(&self, file: &Path) -> Result<&'a str, String> {
        let shown = file.strip_prefix(&self.workspace.root).unwrap_or(file).display();
        let bytes = self.definitions.get(file).ok_or_else(|| format!("`{shown}` was not read"))?;
        std::str::from_utf8(bytes).map_err(|_| format!("`{shown}` is not UTF-8"))
    }

    /// Collects the files that a command runs. Returns what it reaches besides.
    fn command(
        &self,
        hook: &Hook,
        command: &CommandHandler,
        tree: &mut BTreeMap<String, TreeFile>,
    ) -> Result<Vec<String>, String> {
        let own = self.workspace.root.join(".openharness");
        let is_openharness = hook.dialect.name() == DialectName::OpenHarness;
        if is_openharness && own.is_dir() {
            self.add_directory(&own, tree)?;
        }
        let (named, mut outside) = self.named_files(hook, command);
        let mut followed = BTreeSet::new();
        for NamedFile { path, .. } in named {
            if path.components().any(|part| part.as_os_str() == "node_modules") {
                outside.push("it runs a program of `node_modules`".to_owned());
            }
            match hooks_directory(&self.workspace.root, &path) {
                Some(directory) => self.add_directory(directory, tree)?,
                None if is_openharness && path.starts_with(&own) => {}
                None => self.follow(&path, &mut followed, tree)?,
            }
            let file = self.trees.file(&path)?;
            tree.insert(file.path.clone(), file);
            followed.insert(path);
        }
        for script in &followed {
            outside.extend(self.imports(script, tree));
        }
        outside.sort();
        outside.dedup();
        Ok(outside)
    }

    fn add_directory(&self, directory: &Path, tree: &mut BTreeMap<String, TreeFile>) -> Result<(), String> {
        let files = self.trees.directory(directory)?;
        tree.extend(files.iter().map(|file| (file.path.clone(), file.clone())));
        Ok(())
    }

    /// Adds a script, and the files beside and below it that its text names.
    fn follow(
        &self,
        script: &Path,
        followed: &mut BTreeSet<PathBuf>,
        tree: &mut BTreeMap<String, TreeFile>,
    ) -> Result<(), String> {
        if followed.len() >= MOST_FOLLOWED || !followed.insert(script.to_owned()) {
            return Ok(());
        }
        let file = self.trees.file(script)?;
        tree.insert(file.path.clone(), file);
        let Some(directory) = script.parent() else { return Ok(()) };
        let Some(text) = script_text(script) else { return Ok(()) };
        let names: BTreeSet<&str> = text
            .split(|c: char| !(c.is_ascii_alphanumeric() || "._-/".contains(c)))
            .map(|name| name.trim_start_matches("./").trim_end_matches('.'))
            .filter(|name| !name.is_empty() && name.len() < 128 && !name.starts_with('/'))
            .collect();
        for entry in names.into_iter().flat_map(|name| {
            ["", ".py", ".js", ".mjs", ".cjs", ".ts", ".sh", ".json"].map(|end| format!("{name}{end}"))
        }) {
            if let Some(path) = inside(self.trees.root(), directory, &entry).filter(|path| path.is_file()) {
                self.follow(&path, followed, tree)?;
            }
        }
        Ok(())
    }

    /// What a script imports that is not in the tree.
    fn imports(&self, script: &Path, tree: &BTreeMap<String, TreeFile>) -> Vec<String> {
        let root = self.trees.root();
        let Some(text) = script_text(script) else { return Vec::new() };
        let shown = script.strip_prefix(root).unwrap_or(script).to_string_lossy();
        let directory = script.parent().unwrap_or(root);
        let exists = |import: &str| {
            let path = inside(root, directory, import);
            path.and_then(|path| Some(path.strip_prefix(root).ok()?.to_str()?.to_owned()))
                .is_some_and(|path| tree.contains_key(&path))
        };
        coverage::of_script(&shown, &text, &exists)
    }

    /// The files of the workspace that a command names, and what it reaches besides.
    pub(super) fn named_files(&self, hook: &Hook, command: &CommandHandler) -> (Vec<NamedFile>, Vec<String>) {
        let file = |text: &str| {
            let path = inside(&self.workspace.root, &command.cwd, text)?;
            path.is_file().then_some(path)
        };
        match &command.line {
            CommandLine::Exec { program, args } => {
                if let Some((at, line)) = shell_line(program, args) {
                    let (named, outside) = self.named_in_line(hook, command, line);
                    let place = |known: NamedFile| NamedFile { place: WordPlace::Argument(at), ..known };
                    // The line is one argument: it is rewritten as a whole.
                    return (named.into_iter().map(place).collect(), outside);
                }
                let words = std::iter::once((program.to_str(), WordPlace::Program)).chain(
                    args.iter().enumerate().map(|(at, arg)| (Some(arg.as_str()), WordPlace::Argument(at))),
                );
                let named = words.filter_map(|(text, place)| Some(NamedFile { path: file(text?)?, place }));
                let line = command.line.to_string();
                let outside = coverage::of_words(&line, &shell_words(&line, &|_| None));
                (named.collect(), outside)
            }
            CommandLine::Shell(line) => self.named_in_line(hook, command, line),
        }
    }

    fn named_in_line(
        &self,
        hook: &Hook,
        command: &CommandHandler,
        line: &str,
    ) -> (Vec<NamedFile>, Vec<String>) {
        let variables = self.variables(hook, command);
        let words = shell_words(line, &|name| {
            let (_, value) = variables.iter().find(|(known, _)| known == name)?;
            Some(value.clone())
        });
        let named = words.iter().filter_map(|word| {
            let path = inside(&self.workspace.root, &command.cwd, word.text.as_deref()?)?;
            path.is_file().then(|| NamedFile { path, place: WordPlace::Line(word.range.clone()) })
        });
        (named.collect(), coverage::of_words(line, &words))
    }

    /// The variables of the hook's environment that name the workspace.
    fn variables(&self, hook: &Hook, command: &CommandHandler) -> Vec<(String, String)> {
        let sample = || {
            let kind = hook.events.iter().next()?;
            let event = Event::new(kind, SessionId::new("unknown").ok()?, RunId::new("unknown").ok()?);
            let draft = Draft::new(Arc::new(event));
            Some(hook.dialect.environment(&draft, self.workspace, hook.timeout))
        };
        let root = self.workspace.root.to_str();
        let of_dialect =
            sample().unwrap_or_default().into_iter().map(|(name, value)| (name.to_owned(), value));
        let cwd = command.cwd.to_str().map(|cwd| ("PWD".to_owned(), cwd.to_owned()));
        let is_own = |name: &str| command.environment.iter().any(|(own, _)| own == name);
        of_dialect
            .filter(|(_, value)| Some(value.as_str()) == root)
            .chain(cwd)
            .filter(|(name, _)| !is_own(name))
            .collect()
    }

    /// The command with the files of the tree in their private copy.
    pub(super) fn redirected(
        &self,
        hook: &Hook,
        command: &CommandHandler,
        copy: &Path,
    ) -> Option<CommandLine> {
        let target = |path: &Path| {
            let copied = copy.join(path.strip_prefix(&self.workspace.root).ok()?);
            copied.is_file().then_some(copied)?.to_str().map(str::to_owned)
        };
        match &command.line {
            CommandLine::Shell(line) => {
                let (named, _) = self.named_in_line(hook, command, line);
                Some(CommandLine::Shell(redirect_line(line, &named, &target)?))
            }
            CommandLine::Exec { program, args } => {
                let (mut program, mut args) = (program.clone(), args.clone());
                if let Some((at, line)) = shell_line(&program, &args) {
                    let (named, _) = self.named_in_line(hook, command, line);
                    args[at] = redirect_line(line, &named, &target)?;
                    return Some(CommandLine::Exec { program, args });
                }
                for NamedFile { path, place } in self.named_files(hook, command).0 {
                    match place {
                        WordPlace::Program => program = target(&path)?.into(),
                        WordPlace::Argument(at) => args[at] = target(&path)?,
                        WordPlace::Line(_) => {}
                    }
                }
                Some(CommandLine::Exec { program, args })
            }
        }
    }
}

/// The line that a shell is given as an argument, and its place.
fn shell_line<'c>(program: &Path, args: &'c [String]) -> Option<(usize, &'c str)> {
    match args {
        [option, line] if option == "-c" && (program.ends_with("bash") || program.ends_with("sh")) => {
            Some((1, line))
        }
        _ => None,
    }
}

fn redirect_line(
    line: &str,
    named: &[NamedFile],
    target: &dyn Fn(&Path) -> Option<String>,
) -> Option<String> {
    let mut redirected = line.to_owned();
    for NamedFile { path, place } in named.iter().rev() {
        if let WordPlace::Line(range) = place {
            redirected.replace_range(range.clone(), &quoted(&target(path)?));
        }
    }
    Some(redirected)
}

/// The nearest directory named `hooks` above a file, below the root.
fn hooks_directory<'p>(root: &Path, file: &'p Path) -> Option<&'p Path> {
    file.ancestors().skip(1).take_while(|above| *above != root).find(|above| above.ends_with("hooks"))
}

/// The entry of an agent's settings that a hook was made of, with this hook alone. The name of such a hook says where
/// it stands: `claude.project.PreToolUse.1.2`.
fn entry_of(hook: &Hook, settings: &Value) -> Option<String> {
    let mut parts = hook.name.as_str().rsplitn(4, '.');
    let number: usize = parts.next()?.parse().ok()?;
    let entry: usize = parts.next()?.parse().ok()?;
    let event = parts.next()?;
    let entry = settings.get("hooks")?.get(event)?.get(entry.checked_sub(1)?)?;
    let own = entry.get("hooks")?.get(number.checked_sub(1)?)?.clone();
    let mut entry = entry.as_object()?.clone();
    entry.insert("hooks".to_owned(), Value::Array(vec![own]));
    serde_json::to_string_pretty(&json!({ event: [entry] })).ok()
}

fn script_text(path: &Path) -> Option<String> {
    String::from_utf8(read(&path.canonicalize().ok()?, LARGEST_SCRIPT).ok()?).ok()
}

fn read(path: &Path, largest: u64) -> Result<Vec<u8>, String> {
    files::read_open(files::open_regular(path, SymlinkPolicy::Refused)?, largest)
}

fn utf8(path: &Path) -> Result<String, String> {
    path.to_str().map(str::to_owned).ok_or_else(|| format!("`{}` is not UTF-8", path.display()))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{
        super::super::{LoadedWorkspace, Settings, TrustPolicy, load_workspace},
        *,
    };

    #[test]
    fn a_definition_is_what_the_hook_was_read_from_whatever_the_file_says_now() {
        let place = tempfile::tempdir().unwrap();
        let hooks = place.path().join(".openharness/hooks");
        fs::create_dir_all(&hooks).unwrap();
        let text = "name: guard\nevents: [before_tool_dispatch]\nhandler: {type: command, command: exit 2}\n";
        fs::write(hooks.join("guard.yaml"), text).unwrap();
        let settings = Settings { trust: TrustPolicy::Off, ..Settings::default() };
        let LoadedWorkspace { workspace, hooks: loaded, definitions, .. } =
            load_workspace(place.path(), None, &settings, &|_| None);
        fs::write(hooks.join("guard.yaml"), text.replace("exit 2", "exit 0")).unwrap();
        let inspector = Inspector::new(&workspace, &definitions);
        assert_eq!(inspector.inspect(&loaded[0], false).unwrap().definition, text);
        let elsewhere = DefinitionFiles::new();
        let unread = Inspector::new(&workspace, &elsewhere).inspect(&loaded[0], false);
        assert!(unread.unwrap_err().contains("was not read"));
    }
}
