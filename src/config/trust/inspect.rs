//! From a hook as it was read to what a person would agree to.

use std::{
    cell::RefCell,
    collections::HashMap,
    ops::Range,
    path::{Path, PathBuf},
    sync::Arc,
};

use serde_json::{Value, json};

use super::{
    super::{digests::sha256, files::DefinitionFiles},
    coverage::{self, Coverage},
    record::{Grants, RecordedPolicies, TreeFile, TrustRecord},
    scripts::{ScriptCaller, ScriptFollower, script_text, word_path},
    shell_words::{WordLookup, WordPath, quoted, shell_line},
    tree::{RunPlace, TreeReader},
};
use crate::model::{
    CommandHandler, CommandLine, DialectName, Draft, Event, Handler, Hook, RunId, SecretReference, SessionId,
    Workspace,
};

/// A word of a command that names a file of the workspace.
#[derive(Debug)]
pub(super) struct NamedFile {
    path: PathBuf,
    place: WordPlace,
}

/// Where a command names a file.
#[derive(Debug)]
enum WordPlace {
    /// In the shell line.
    Line,
    /// It is the program.
    Program,
    /// It is this argument.
    Argument(usize),
}

/// Reads what the hooks of a workspace run.
pub(super) struct Inspector<'a> {
    pub(super) workspace: &'a Workspace,
    /// The files with definitions, as the hooks were read from them.
    pub(super) definitions: &'a DefinitionFiles,
    pub(super) trees: TreeReader<'a>,
    /// The directory with the workspace's own hooks, if there is one.
    own: Option<PathBuf>,
    settings: RefCell<HashMap<PathBuf, Option<Arc<Value>>>>,
    /// Where words of commands lead, by the directory they are read in.
    words: RefCell<HashMap<(PathBuf, String), WordPath>>,
}

impl<'a> Inspector<'a> {
    pub(super) fn new(workspace: &'a Workspace, definitions: &'a DefinitionFiles) -> Self {
        let trees = TreeReader::new(&workspace.root);
        let own = Some(workspace.root.join(".openharness")).filter(|own| own.is_dir());
        Self { workspace, definitions, trees, own, settings: RefCell::default(), words: RefCell::default() }
    }

    /// What a person would agree to about a hook.
    ///
    /// Returns why nobody can: a file cannot be read, say.
    pub(super) fn inspect(&self, hook: &Hook, in_place: bool) -> Result<TrustRecord, String> {
        let file = hook.source.file.as_deref().ok_or("it has no file")?;
        let definition = self.definition(hook, file)?;
        let is_of_model = matches!(hook.handler, Handler::Prompt(_) | Handler::Agent(_));
        // The key of a model is the operator's, not the hook's.
        let mut references = if is_of_model { Vec::new() } else { hook.handler.references() };
        let variables = &hook.execution.variables;
        references.extend(variables.iter().map(|(name, _)| SecretReference::Variable(name.clone())));
        let mut grants = Grants::of(references);
        let mut texts: Vec<_> =
            variables.iter().map(|(name, value)| sha256(format!("{name}={value}").as_bytes())).collect();
        let mut tree = Arc::default();
        let mut outside = Vec::new();
        match &hook.handler {
            Handler::Command(command) => {
                (tree, outside) = self.command(hook, command, RunPlace::of(in_place))?;
            }
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
            Handler::Rule(rule) | Handler::Rego(rule) => {
                texts.extend(rule.files.iter().map(|file| sha256(file.text.as_bytes())));
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
            tree,
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
    pub(super) fn definition(&self, hook: &Hook, file: &Path) -> Result<String, String> {
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

    /// The files that a command runs, and what it reaches besides.
    fn command(
        &self,
        hook: &Hook,
        command: &CommandHandler,
        place: RunPlace,
    ) -> Result<(Arc<[TreeFile]>, Vec<String>), String> {
        let is_openharness = hook.dialect.name() == DialectName::OpenHarness;
        let own = self.own.as_deref().filter(|_| is_openharness);
        let mut scripts = ScriptFollower::new(&self.trees, place);
        if let Some(own) = own {
            scripts.add_directory(own)?;
        }
        let (named, mut outside) = self.named_files(hook, command);
        let caller = match &command.line {
            CommandLine::Shell(line) => ScriptCaller::of(line),
            CommandLine::Exec { program, args } => {
                ScriptCaller::of(&format!("{} {}", program.display(), args.join(" ")))
            }
        };
        for NamedFile { path, .. } in named {
            if path.components().any(|part| part.as_os_str() == "node_modules") {
                outside.push("it runs a program of `node_modules`".to_owned());
            }
            match hooks_directory(&self.workspace.root, &path) {
                Some(directory) => scripts.add_directory(directory)?,
                None if own.is_some_and(|own| path.starts_with(own)) => {}
                None => scripts.follow(&path, caller)?,
            }
            scripts.add_script(path, caller)?;
        }
        outside.extend(scripts.imports());
        outside.sort();
        outside.dedup();
        Ok((scripts.into_tree(), outside))
    }

    /// The files of the workspace that a command names, and what it reaches besides.
    pub(super) fn named_files(&self, hook: &Hook, command: &CommandHandler) -> (Vec<NamedFile>, Vec<String>) {
        let (named, mut outside) = match &command.line {
            CommandLine::Exec { program, args } => {
                if let Some((at, line)) = self.line_of_shell(command, program, args) {
                    let Coverage { named, outside } = self.of_line(hook, command, line);
                    // The line is one argument: it is rewritten as a whole.
                    let place = |(_, path)| NamedFile { path, place: WordPlace::Argument(at) };
                    (named.into_iter().map(place).collect(), outside)
                } else {
                    self.of_words(command, program, args)
                }
            }
            CommandLine::Shell(line) => {
                let Coverage { named, outside } = self.of_line(hook, command, line);
                let place = |(_, path)| NamedFile { path, place: WordPlace::Line };
                (named.into_iter().map(place).collect::<Vec<_>>(), outside)
            }
        };
        outside.extend(command.environment.iter().filter_map(|(name, _)| coverage::of_variable(name)));
        (named, outside)
    }

    fn of_words(
        &self,
        command: &CommandHandler,
        program: &Path,
        args: &[String],
    ) -> (Vec<NamedFile>, Vec<String>) {
        let program = program.to_string_lossy().into_owned();
        let words: Vec<String> = std::iter::once(program).chain(args.iter().cloned()).collect();
        let Coverage { named, outside } = coverage::of_words(&words, &command.cwd, self);
        let starts: Vec<usize> =
            words.iter().scan(0, |at, word| Some(std::mem::replace(at, *at + word.len() + 1))).collect();
        let place = |(range, path): (Range<usize>, PathBuf)| {
            let place = match starts.iter().position(|start| *start == range.start) {
                Some(at) if at > 0 => WordPlace::Argument(at - 1),
                _ => WordPlace::Program,
            };
            NamedFile { path, place }
        };
        (named.into_iter().map(place).collect(), outside)
    }

    fn of_line(&self, hook: &Hook, command: &CommandHandler, line: &str) -> Coverage {
        let variables = self.variables(hook, command);
        let read = shell_line(line, &|name| {
            let (_, value) = variables.iter().find(|(known, _)| known == name)?;
            // After `cd`, the working directory is another one.
            (name != "PWD" || !line.contains("cd")).then(|| value.clone())
        });
        let known: Vec<String> = variables.into_iter().map(|(name, _)| name).collect();
        coverage::of_line(line, &read, &command.cwd, &known, self)
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

    /// The line that a shell of the system is given as an argument, and its place.
    fn line_of_shell<'c>(
        &self,
        command: &CommandHandler,
        program: &Path,
        args: &'c [String],
    ) -> Option<(usize, &'c str)> {
        let [option, line] = args else { return None };
        let text = program.to_str()?;
        let is_shell = program.ends_with("bash") || program.ends_with("sh");
        let is_of_system = || !text.contains('/') || self.path(&command.cwd, text) == WordPath::System;
        (option == "-c" && is_shell && is_of_system()).then_some((1, line))
    }

    /// The command with the files of the tree in their private copy; none if it runs another one.
    pub(super) fn redirected(
        &self,
        hook: &Hook,
        command: &CommandHandler,
        copy: &Path,
        tree: &[TreeFile],
    ) -> Option<CommandLine> {
        let target = |path: &Path| {
            let relative = path.strip_prefix(&self.workspace.root).ok()?;
            let name = relative.to_str()?;
            tree.binary_search_by(|file| file.path.as_str().cmp(name)).ok()?;
            copy.join(relative).to_str().map(str::to_owned)
        };
        match &command.line {
            CommandLine::Shell(line) => {
                let named = self.of_line(hook, command, line).named;
                Some(CommandLine::Shell(redirect_line(line, named, &target)?))
            }
            CommandLine::Exec { program, args } => {
                let (mut program, mut args) = (program.clone(), args.clone());
                if let Some((at, line)) = self.line_of_shell(command, &program, &args) {
                    let named = self.of_line(hook, command, line).named;
                    args[at] = redirect_line(line, named, &target)?;
                    return Some(CommandLine::Exec { program, args });
                }
                for NamedFile { path, place } in self.named_files(hook, command).0 {
                    match place {
                        WordPlace::Program => program = target(&path)?.into(),
                        WordPlace::Argument(at) => args[at] = target(&path)?,
                        WordPlace::Line => {}
                    }
                }
                Some(CommandLine::Exec { program, args })
            }
        }
    }
}

fn redirect_line(
    line: &str,
    mut named: Vec<(Range<usize>, PathBuf)>,
    target: &dyn Fn(&Path) -> Option<String>,
) -> Option<String> {
    named.sort_by_key(|(range, _)| std::cmp::Reverse(range.start));
    let mut redirected = line.to_owned();
    for (range, path) in named {
        redirected.replace_range(range, &quoted(&target(&path)?));
    }
    Some(redirected)
}

impl WordLookup for Inspector<'_> {
    fn path(&self, directory: &Path, text: &str) -> WordPath {
        let place = (directory.to_owned(), text.to_owned());
        let look_up = || word_path(&self.trees, directory, text);
        self.words.borrow_mut().entry(place).or_insert_with(look_up).clone()
    }

    fn directory(&self, directory: &Path, text: &str) -> Option<PathBuf> {
        match self.path(directory, text) {
            WordPath::Directory => directory.join(text).canonicalize().ok(),
            _ => None,
        }
    }

    fn interpreter_line(&self, file: &Path) -> Option<Arc<str>> {
        self.trees.interpreter_line(file)
    }

    fn text(&self, file: &Path) -> Option<String> {
        script_text(&self.trees, file)
    }
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
    let entry = settings.get("hooks").unwrap_or(settings).get(event)?.get(entry.checked_sub(1)?)?;
    let own = entry.get("hooks")?.get(number.checked_sub(1)?)?.clone();
    let mut entry = entry.as_object()?.clone();
    entry.insert("hooks".to_owned(), Value::Array(vec![own]));
    serde_json::to_string_pretty(&json!({ event: [entry] })).ok()
}

fn utf8(path: &Path) -> Result<String, String> {
    path.to_str().map(str::to_owned).ok_or_else(|| format!("`{}` is not UTF-8", path.display()))
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt};

    use super::{
        super::super::{LoadedWorkspace, Settings, TrustPolicy, load_workspace},
        *,
    };

    /// What is said of a command: the files of its tree, or a part of why it is not covered.
    #[derive(Debug, Clone, Copy)]
    enum Said<'a> {
        Covered(&'a [&'a str]),
        Reaches(&'a str),
    }
    use Said::{Covered, Reaches};

    const GUARD: &str = ".claude/hooks/guard.py";
    const SHELL: &str = ".claude/hooks/guard.sh";
    const NODE: &str = "tools/x.mjs";

    const COMMANDS: [(&str, Said<'_>); 183] = [
        // What the settings of agents usually say.
        (r#""$CLAUDE_PROJECT_DIR"/.claude/hooks/guard.py --x"#, Covered(&[GUARD, SHELL])),
        (r#"python3 "$CLAUDE_PROJECT_DIR"/.claude/hooks/guard.py"#, Covered(&[GUARD, SHELL])),
        ("python3 $CLAUDE_PROJECT_DIR/.claude/hooks/guard.py", Covered(&[GUARD, SHELL])),
        (
            r#"python3 -u "${CLAUDE_PROJECT_DIR}/.claude/hooks/guard.py" --mode strict"#,
            Covered(&[GUARD, SHELL]),
        ),
        ("./.claude/hooks/guard.sh", Covered(&[GUARD, SHELL])),
        (".claude/hooks/guard.sh", Covered(&[GUARD, SHELL])),
        ("sh '.claude/hooks/guard.sh'", Covered(&[GUARD, SHELL])),
        (r"sh .claude/hooks/guard\.sh", Covered(&[GUARD, SHELL])),
        ("bash -euo pipefail .claude/hooks/guard.sh", Covered(&[GUARD, SHELL])),
        ("exec sh .claude/hooks/guard.sh", Covered(&[GUARD, SHELL])),
        ("env LEVEL=3 sh .claude/hooks/guard.sh", Covered(&[GUARD, SHELL])),
        ("LEVEL=3 sh .claude/hooks/guard.sh", Covered(&[GUARD, SHELL])),
        ("NODE_ENV=production node tools/x.mjs", Covered(&[NODE])),
        ("timeout 5 sh .claude/hooks/guard.sh", Covered(&[GUARD, SHELL])),
        ("timeout -k 1 5s python3 -I .claude/hooks/guard.py", Covered(&[GUARD, SHELL])),
        ("node tools/x.mjs | tee log.txt", Covered(&[NODE])),
        ("node --no-warnings tools/x.mjs > log.txt 2>&1", Covered(&[NODE])),
        ("node tools/x.mjs; exit 2", Covered(&[NODE])),
        ("if grep -q rm; then exit 2; fi", Covered(&[])),
        ("grep -q rm && exit 2 || exit 0", Covered(&[])),
        ("jq -r .tool_name | grep -qx Bash", Covered(&[])),
        ("jq -e '.tool_input.command | test(\"rm\")' > /dev/null", Covered(&[])),
        ("jq . >> log.txt", Covered(&[])),
        ("cat < rules.json", Covered(&["rules.json"])),
        ("grep -qf rules.json", Covered(&["rules.json"])),
        ("echo \"$TOOL\"; exit 1", Covered(&[])),
        ("cd \"$CLAUDE_PROJECT_DIR\" && node tools/x.mjs", Covered(&[NODE])),
        ("cd tools && node x.mjs", Covered(&[NODE])),
        ("cd tools && node ./x.mjs | tee out", Covered(&[NODE])),
        ("cd . ; node tools/x.mjs", Covered(&[NODE])),
        (". ./.claude/hooks/guard.sh", Covered(&[GUARD, SHELL])),
        ("test -x .claude/hooks/guard.sh && .claude/hooks/guard.sh", Covered(&[GUARD, SHELL])),
        ("command -v jq > /dev/null || exit 0", Covered(&[])),
        ("set -eu; sh .claude/hooks/guard.sh", Covered(&[GUARD, SHELL])),
        ("export LEVEL=3 && sh .claude/hooks/guard.sh", Covered(&[GUARD, SHELL])),
        ("{ node tools/x.mjs; } 2>/dev/null", Covered(&[NODE])),
        ("(node tools/x.mjs)", Covered(&[NODE])),
        ("/bin/sh .claude/hooks/guard.sh", Covered(&[GUARD, SHELL])),
        ("true", Covered(&[])),
        ("exit 2 # sh src/a.sh", Covered(&[])),
        // Indirect ways to a script.
        ("X=src/a.sh; sh $X", Reaches("`$X` is known only when it runs")),
        ("X=src/a.sh sh .claude/hooks/guard.sh", Reaches("`src/a.sh` of the workspace")),
        ("bash -lc \"sh src/a.sh\"", Reaches("`bash` with `-lc`")),
        ("sh -c 'sh src/a.sh'", Reaches("`sh` with `-c`")),
        ("timeout 5 sh -c 'src/a.sh'", Reaches("`sh` with `-c`")),
        ("timeout --unknown 5 sh src/a.sh", Reaches("what `timeout` runs")),
        ("BASH_ENV=src/a.sh bash .claude/hooks/guard.sh", Reaches("`BASH_ENV` may make")),
        ("ENV=src/a.sh sh -i .claude/hooks/guard.sh", Reaches("`ENV` may make")),
        ("env PYTHONPATH=src python3 .claude/hooks/guard.py", Reaches("`PYTHONPATH` may make")),
        ("PATH=src:$PATH guard", Reaches("`PATH` may make")),
        ("NODE_OPTIONS=--import=./src/a.mjs node tools/x.mjs", Reaches("`NODE_OPTIONS` may make")),
        ("sh /proc/self/cwd/src/a.sh", Reaches("`/proc/self/cwd/src/a.sh` is known only")),
        ("sh /dev/fd/3 3< src/a.sh", Reaches("`/dev/fd/3` is known only")),
        ("sh linked/../a.sh", Reaches("has `..` after a link")),
        ("sh linked/a.sh", Reaches("`linked/a.sh` is a link to `")),
        ("sh < src/a.sh", Reaches("runs what it reads from its input")),
        ("cat src/a.sh | sh", Reaches("runs what it reads from its input")),
        ("python3 - < src/a.py", Reaches("`python3` with `-`")),
        ("sh <<END\nsh src/a.sh\nEND", Reaches("a here-document")),
        ("sh <(cat src/a.sh)", Reaches("a process substitution")),
        ("$(cat src/a.sh)", Reaches("a command substitution")),
        ("`cat src/a.sh`", Reaches("a command substitution")),
        ("echo \"$(sh src/a.sh)\"", Reaches("a command substitution")),
        ("eval sh src/a.sh", Reaches("`eval` decides")),
        ("ls src | xargs sh", Reaches("`xargs` decides")),
        ("find src -name a.sh -exec sh {} +", Reaches("`find` decides")),
        ("awk 'BEGIN { system(\"sh src/a.sh\") }'", Reaches("`awk` decides")),
        ("sed -n '1e sh src/a.sh' rules.json", Reaches("`sed` decides")),
        ("python3 -m src.a", Reaches("`python3` with `-m`")),
        ("python3 src", Reaches("`python3` runs what is in `src`")),
        ("node -e 'require(\"./src/a\")'", Reaches("`node` with `-e`")),
        ("node --import=./src/a.mjs tools/x.mjs", Reaches("`node` with `--import")),
        ("node .", Reaches("`node` runs what is in `.`")),
        ("perl -Isrc tools/x.pl", Reaches("`perl` with `-Isrc`")),
        ("cd src; sh a.sh", Reaches("`cd` decides")),
        ("cd src || sh a.sh", Reaches("`cd` decides")),
        ("(cd src) && sh a.sh", Reaches("`cd` decides")),
        ("! cd nowhere && sh a.sh", Reaches("`cd` decides")),
        ("cd src && sh $PWD/a.sh", Reaches("`$PWD/a.sh` is known only")),
        ("CLAUDE_PROJECT_DIR=src; sh $CLAUDE_PROJECT_DIR/a.sh", Reaches("it sets `CLAUDE_PROJECT_DIR`")),
        ("sh src/*.sh", Reaches("`src/*.sh` is known only")),
        ("sh src/{a,b}.sh", Reaches("`src/{a,b}.sh` is known only")),
        ("sh ~/a.sh", Reaches("`~/a.sh` is known only")),
        ("sh /etc/hosts", Reaches("`/etc/hosts` is outside")),
        ("sh src/later.sh", Reaches("`src/later.sh` is not there yet")),
        ("src/later.sh", Reaches("`src/later.sh` is not there yet")),
        (". guard.sh", Reaches("runs what is found when it runs")),
        ("for x in src/a.sh; do sh $x; done", Reaches("a loop or a choice")),
        ("grep() { sh src/a.sh; }; grep -q x", Reaches("a function or a pattern")),
        ("npm run lint", Reaches("`npm` runs what files")),
        ("npx eslint --fix", Reaches("`npx` runs what files")),
        ("uv run .claude/hooks/guard.py", Reaches("`uv` runs what files")),
        ("make guard", Reaches("`make` runs what files")),
        ("prettier --check tools/x.mjs", Reaches("`prettier` runs what files")),
        ("my-guard --config rules.json", Reaches("what `my-guard` runs and reads is not known")),
        ("src/uv-script", Reaches("the first line of `src/uv-script` starts")),
        ("src/bare-script", Reaches("the first line of `src/bare-script` starts `sh`")),
        ("src/env-script", Reaches("the first line of `src/env-script` starts `src/env sh`")),
        ("src/latin-script", Reaches("the first line of `src/latin-script` starts `src/i`")),
        ("src/large-script", Reaches("the first line of `src/large-script` starts `src/i`")),
        ("src/plain-script", Covered(&["src/plain-script"])),
        ("perl src/latin-script", Reaches("the first line of `src/latin-script` starts `src/i`")),
        ("./tools/bash -c 'exit 2'", Reaches("`bash` with `-c`")),
        ("./tools/timeout src/a.sh true", Reaches("what `./tools/timeout` runs here")),
        ("./tools/tee src/a.sh", Covered(&["src/a.sh", "tools/tee"])),
        // What else shells and programs evaluate or read.
        ("jq -L . 'include \"policy\"; deny'", Reaches("`jq` with `-L`")),
        ("jq -rL. 'deny'", Reaches("`jq` with `-rL.`")),
        ("jq --library-path . deny", Reaches("`jq` with `--library-path`")),
        ("jq 'import \"policy\" as p {search: \"./\"}; p::deny'", Reaches("`jq` reads modules")),
        ("jq 'include\"policy\"; deny'", Reaches("`jq` reads modules")),
        ("jq -f src/policy.jq", Reaches("`jq` reads modules")),
        ("jq -f rules.json", Covered(&["rules.json"])),
        ("jq -e 'select(.important or .included)'", Covered(&[])),
        ("test -v 'a[$(sh src/a.sh)]'", Reaches("`test` with `-v`")),
        ("[ -n x -a -v 'a[0]' ]", Reaches("`[` with `-v`")),
        ("X=-v; [ $X 'a[$(sh src/a.sh)]' ]", Reaches("`[` with `a[$(sh src/a.sh)]`")),
        ("wait -p 'a[$(sh src/a.sh)]' -n", Reaches("`wait` with `-p`")),
        ("wait -np'a[$(sh src/a.sh)]'", Reaches("`wait` with `-np")),
        ("printf -v'a[$(sh src/a.sh)]' x", Reaches("`printf` with `-v")),
        ("[ -n x ] && wait && printf '%s' -v", Covered(&[])),
        ("grep -r rm", Reaches("`grep` with `-r`")),
        ("grep -qR rm", Reaches("`grep` with `-qR`")),
        ("grep --recursive rm", Reaches("`grep` with `--recursive`")),
        ("egrep -d recurse rm", Reaches("`egrep` with `-d`")),
        ("grep --directories=recurse rm", Reaches("`grep` with `--directories=recurse`")),
        ("grep -qe -rf && exit 2", Covered(&[])),
        ("grep -q -- -rf && exit 2", Covered(&[])),
        ("grep -erf --regexp -rf", Covered(&[])),
        // What arithmetic and options in the values of variables evaluate.
        ("[ -n \"$TOOL\" ] && exit 2", Covered(&[])),
        ("[ ! -n \"$TOOL\" ] && exit 2", Covered(&[])),
        ("[ \"$TOOL\" = Bash ] && exit 2 || exit 0", Covered(&[])),
        ("test \"$A\" != \"$B\" && exit 2", Covered(&[])),
        ("[ \"$TOOL\" ] && exit 2", Covered(&[])),
        ("[ 3 -gt -2 ] && exit 2", Covered(&[])),
        ("printf '%s: %b\\n' \"$TOOL\" x && exit 2", Covered(&[])),
        ("printf '%d' 3; exit 2", Covered(&[])),
        ("X='a[$(sh src/a.sh)]'; [ $V \"$X\" ]", Reaches("`[` with `$V`")),
        ("X='a[$(sh src/a.sh)]'; true", Reaches("may evaluate what `X` is set to")),
        ("X='a[`sh src/a.sh`]' true", Reaches("may evaluate what `X` is set to")),
        ("X='a[${ sh src/a.sh; }]'; true", Reaches("may evaluate what `X` is set to")),
        ("[ $V \"$X\" ]", Reaches("`[` with `$V`")),
        ("[ \"$V\" \"$X\" ]", Reaches("`[` with `\"$V\"`")),
        ("test $X", Reaches("`test` with `$X`")),
        ("[ $X = a ]", Reaches("`[` with `$X`")),
        ("[ -n \"$X\" -o \"$V\" \"$Y\" ]", Reaches("`[` with `\"$X\"`")),
        ("[ -n \"$@\" ]", Reaches("`[` with `\"$@\"`")),
        ("[ -f *.sh ]", Reaches("`[` with `*.sh`")),
        ("[ ! $V \"$X\" ]", Reaches("`[` with `$V`")),
        ("[ -t \"$X\" ]", Reaches("`[` with `\"$X\"`")),
        ("[ \"$X\" -eq 0 ]", Reaches("`[` with `\"$X\"`")),
        ("test 0 -lt \"$X\"", Reaches("`test` with `\"$X\"`")),
        ("[ 'b[X]' -ne 1 ]", Reaches("`[` with `'b[X]'`")),
        ("[ \"a\"$X\"b\" ]", Reaches("`[` with")),
        ("wait \"$X\"", Reaches("`wait` with `\"$X\"`")),
        ("printf \"$X\"", Reaches("`printf` with `\"$X\"`")),
        ("printf '%d' \"$X\"", Reaches("`printf` with `\"$X\"`")),
        ("printf -- '%*d' \"$X\" 1", Reaches("`printf` with `\"$X\"`")),
        ("printf '%(x)T' X", Reaches("`printf` with `X`")),
        ("exit \"$X\"", Reaches("`exit` with `\"$X\"`")),
        ("exit X", Reaches("`exit` with `X`")),
        ("OPTIND=$X; true", Reaches("may evaluate what `OPTIND` is set to")),
        ("RANDOM=X; true", Reaches("may evaluate what `RANDOM` is set to")),
        ("export X; node tools/x.mjs", Reaches("what `export X` passes on")),
        ("export \"$X\"; node tools/x.mjs", Reaches("passes on is not known")),
        ("export -n PATH", Reaches("what `export -n` passes on")),
        ("echo $[X]", Reaches("an arithmetic expansion")),
        ("echo $((X))", Reaches("a command substitution")),
        ("((X))", Reaches("what `X` runs")),
        ("[[ $X -eq 0 ]]", Reaches("a loop or a choice")),
        ("let X", Reaches("what `let` runs")),
        ("read \"$X\"", Reaches("what `read` runs")),
        ("declare -i Y=X", Reaches("what `declare` runs")),
        ("typeset -i Y=X", Reaches("what `typeset` runs")),
        ("local Y=X", Reaches("what `local` runs")),
        ("readonly \"$X\"", Reaches("what `readonly` runs")),
        ("mapfile \"$X\"", Reaches("what `mapfile` runs")),
        ("unset \"$X\"", Reaches("what `unset` runs")),
        ("getopts a \"$X\"", Reaches("what `getopts` runs")),
        ("a[X]=1", Reaches("`a[X]=1` is known only")),
        ("a=([X]=1)", Reaches("a function or a pattern")),
        ("echo \"${Y:X}\"", Reaches("an expansion")),
        ("echo {a[X]}>out", Reaches("a descriptor in a variable")),
        ("echo $'\\''; sh src/a.sh #'", Reaches("a quotation of bash")),
    ];

    #[test]
    fn only_simple_commands_of_known_programs_are_covered() {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().join("shop");
        let files = [
            (GUARD, "import sys\n"),
            (SHELL, "exit 0\n"),
            (NODE, "export {};\n"),
            ("tools/x.pl", ""),
            ("src/a.sh", ""),
            ("src/uv-script", "#!/usr/bin/env -S uv run\n"),
            ("src/bare-script", "#!sh\n"),
            ("src/env-script", "#!src/env sh\n"),
            ("src/plain-script", "#! /bin/sh -e\n"),
            ("src/policy.jq", "# Rules.\ninclude \"rules\";\ndeny"),
            ("tools/bash", "#!/bin/sh\n"),
            ("tools/timeout", "#!/bin/sh\n. $1\n"),
            ("tools/tee", "#!/bin/sh\n. $1\n"),
            ("rules.json", "{}"),
            ("../elsewhere/sub/a.sh", ""),
        ];
        for (path, text) in files {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        fs::write(root.join("src/latin-script"), b"#!src/i\n# \xff\n").unwrap();
        fs::write(root.join("src/large-script"), format!("#!src/i\n{}", "#".repeat(2 << 20))).unwrap();
        std::os::unix::fs::symlink("../elsewhere/sub", root.join("linked")).unwrap();
        fs::write(place.path().join("elsewhere/a.sh"), "").unwrap();
        fs::write(root.join("a.sh"), "").unwrap();
        let hooks: Vec<Value> =
            COMMANDS.iter().map(|(command, _)| json!({ "type": "command", "command": command })).collect();
        let settings = json!({ "hooks": { "PreToolUse": [{ "hooks": hooks }] } });
        fs::write(root.join(".claude/settings.json"), settings.to_string()).unwrap();
        let settings = Settings { trust: TrustPolicy::Off, ..Settings::default() };
        let LoadedWorkspace { workspace, hooks: loaded, definitions, .. } =
            load_workspace(&root, None, &settings, &|_| None);
        let inspector = Inspector::new(&workspace, &definitions);
        assert_eq!(loaded.len(), COMMANDS.len());
        let mut wrong = Vec::new();
        for hook in &loaded {
            let number = hook.name.as_str().rsplit('.').next().unwrap();
            let (command, expected) = COMMANDS[number.parse::<usize>().unwrap() - 1];
            let record = inspector.inspect(hook, false).unwrap();
            let tree: Vec<&str> = record.tree.iter().map(|file| file.path.as_str()).collect();
            let is_as_expected = match expected {
                Covered(files) => tree == files && record.outside.is_empty(),
                Reaches(why) => record.outside.join("\n").contains(why),
            };
            if !is_as_expected {
                wrong.push(format!("{command}: {tree:?}, {:?}", record.outside));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn what_a_script_runs_or_imports_without_naming_its_kind_is_in_the_tree() {
        const CASES: [(&str, &[&str]); 4] = [
            ("python3 tools/guard", &["tools/guard", "tools/json.py"]),
            ("sh src/runs.sh", &["src/inner", "src/json.py", "src/runs.sh"]),
            ("sh lib/outer.sh", &["lib/deep/more.sh", "lib/inc.sh", "lib/outer.sh"]),
            ("sh lib/inc.sh", &["lib/inc.sh"]),
        ];
        let place = tempfile::tempdir().unwrap();
        let root = place.path();
        let files = [
            ("tools/guard", "import json\n"),
            ("tools/json.py", ""),
            ("src/runs.sh", "python3 \"$(dirname \"$0\")/inner\"\n"),
            ("src/inner", "import json\n"),
            ("src/json.py", ""),
            ("lib/outer.sh", ". \"$(dirname \"$0\")/inc.sh\"\n. \"${0%/*}\"/deep/more.sh\n"),
            ("lib/inc.sh", ""),
            ("lib/deep/more.sh", ""),
        ];
        for (path, text) in files {
            fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
            fs::write(root.join(path), text).unwrap();
        }
        let hooks: Vec<Value> =
            CASES.iter().map(|(command, _)| json!({ "type": "command", "command": command })).collect();
        let settings = json!({ "hooks": { "PreToolUse": [{ "hooks": hooks }] } });
        fs::create_dir(root.join(".claude")).unwrap();
        fs::write(root.join(".claude/settings.json"), settings.to_string()).unwrap();
        let settings = Settings { trust: TrustPolicy::Off, ..Settings::default() };
        let LoadedWorkspace { workspace, hooks: loaded, definitions, .. } =
            load_workspace(root, None, &settings, &|_| None);
        let inspector = Inspector::new(&workspace, &definitions);
        assert_eq!(loaded.len(), CASES.len());
        for hook in &loaded {
            let number = hook.name.as_str().rsplit('.').next().unwrap();
            let (command, expected) = CASES[number.parse::<usize>().unwrap() - 1];
            let record = inspector.inspect(hook, true).unwrap();
            let tree: Vec<&str> = record.tree.iter().map(|file| file.path.as_str()).collect();
            assert_eq!(tree, expected, "{command}");
        }
    }

    #[test]
    fn the_shell_of_a_line_is_of_the_system() {
        const CASES: [(&str, &[&str], Said<'_>); 6] = [
            ("bash", &["-c", "sh src/a.sh"], Covered(&["src/a.sh"])),
            ("/bin/sh", &["-c", "sh src/a.sh"], Covered(&["src/a.sh"])),
            ("./tools/bash", &["-c", "exit 2"], Reaches("`bash` with `-c`")),
            ("./tools/sh", &["-c", "exit 2"], Reaches("`sh` with `-c`")),
            ("$CLAUDE_PROJECT_DIR/tools/bash", &["-c", "exit 2"], Reaches("`bash` with `-c`")),
            ("./tools/bash", &["-e", "src/a.sh"], Covered(&["src/a.sh", "tools/bash"])),
        ];
        let place = tempfile::tempdir().unwrap();
        let root = place.path();
        for path in ["tools/bash", "tools/sh", "src/a.sh", ".claude/x"] {
            fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
            fs::write(root.join(path), "").unwrap();
            fs::set_permissions(root.join(path), fs::Permissions::from_mode(0o755)).unwrap();
        }
        let hooks: Vec<Value> = CASES
            .iter()
            .map(|(command, args, _)| json!({ "type": "command", "command": command, "args": args }))
            .collect();
        let settings = json!({ "hooks": { "PreToolUse": [{ "hooks": hooks }] } });
        fs::write(root.join(".claude/settings.json"), settings.to_string()).unwrap();
        let own = root.join(".openharness/hooks");
        fs::create_dir_all(&own).unwrap();
        for (at, (command, args, _)) in CASES.iter().enumerate().filter(|(_, case)| !case.0.contains('$')) {
            let words: Vec<&str> = std::iter::once(command).chain(*args).copied().collect();
            let handler = json!({ "type": "command", "args": words });
            let hook = json!({ "name": format!("own.{}", at + 1), "events": ["before_tool_dispatch"], "handler": handler });
            fs::write(own.join(format!("{at}.yaml")), hook.to_string()).unwrap();
        }
        let settings = Settings { trust: TrustPolicy::Off, ..Settings::default() };
        let LoadedWorkspace { workspace, hooks: loaded, definitions, .. } =
            load_workspace(root, None, &settings, &|_| None);
        let inspector = Inspector::new(&workspace, &definitions);
        assert_eq!(loaded.len(), 2 * CASES.len() - 1);
        for hook in &loaded {
            let number = hook.name.as_str().rsplit('.').next().unwrap();
            let (command, args, expected) = CASES[number.parse::<usize>().unwrap() - 1];
            let record = inspector.inspect(hook, false).unwrap();
            let tree: Vec<&str> = record.tree.iter().map(|file| file.path.as_str()).collect();
            let is_as_expected = match expected {
                Covered(files) => tree == files && record.outside.is_empty(),
                Reaches(why) => record.outside.join("\n").contains(why),
            };
            assert!(is_as_expected, "{} {command} {args:?}: {tree:?}, {:?}", hook.name, record.outside);
        }
    }

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
