//! What is known of programs and variables that commands of hooks name. Pure.

/// What a program does with its words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProgramKind {
    /// It opens and runs nothing that they name.
    Plain,
    /// It may read the files that they name.
    Reader,
    /// It writes the files that they name.
    Writer,
    /// It runs the script that is the first of them.
    Interpreter,
    /// It runs them as a command.
    Wrapper,
    /// It has the shell run the script that they name.
    Source,
    /// It sets variables.
    Export,
    /// It sets options of the shell.
    Set,
    /// It changes the directory.
    ChangeDirectory,
    /// It runs what configuration files of the workspace say.
    Runner,
    /// It makes other words into commands.
    Indirect,
    /// Nothing is known about it.
    Unknown,
}

const PLAIN: [&str; 18] = [
    ":", "[", "basename", "date", "dirname", "echo", "exit", "expr", "false", "printf", "pwd", "return",
    "sleep", "test", "true", "uname", "wait", "whoami",
];

const READERS: [&str; 17] = [
    "cat",
    "cmp",
    "cut",
    "egrep",
    "fgrep",
    "fold",
    "grep",
    "head",
    "jq",
    "md5sum",
    "nl",
    "sha256sum",
    "tac",
    "tail",
    "tr",
    "uniq",
    "wc",
];

const WRITERS: [&str; 3] = ["mkdir", "tee", "touch"];

/// Shells, whose options are alike.
const SHELLS: [&str; 6] = ["ash", "bash", "dash", "ksh", "sh", "zsh"];

const OTHER_INTERPRETERS: [&str; 7] = ["node", "nodejs", "perl", "php", "python", "python3", "ruby"];

const WRAPPERS: [&str; 8] = ["command", "env", "exec", "nice", "nohup", "setsid", "time", "timeout"];

/// Programs that run what other files of the workspace say.
const RUNNERS: [&str; 44] = [
    "ant",
    "bazel",
    "black",
    "bun",
    "bundle",
    "bunx",
    "cargo",
    "composer",
    "deno",
    "docker",
    "eslint",
    "flake8",
    "git",
    "go",
    "gradle",
    "gradlew",
    "husky",
    "jest",
    "just",
    "lefthook",
    "make",
    "mix",
    "mvn",
    "mypy",
    "nox",
    "npm",
    "npx",
    "nx",
    "pnpm",
    "poetry",
    "pre-commit",
    "prettier",
    "pytest",
    "rake",
    "ruff",
    "task",
    "tox",
    "tsc",
    "tsx",
    "uv",
    "uvx",
    "vitest",
    "yarn",
    "zx",
];

const INDIRECT: [&str; 13] = [
    "alias", "awk", "builtin", "eval", "find", "gawk", "hash", "parallel", "popd", "pushd", "sed", "trap",
    "xargs",
];

/// Programs that the shell has itself.
const BUILTINS: [&str; 15] = [
    ".", ":", "[", "alias", "builtin", "cd", "command", "eval", "exec", "exit", "export", "return", "set",
    "source", "trap",
];

/// Variables that make programs run or find other files, besides those with the beginnings below.
const DECIDING_VARIABLES: [&str; 22] = [
    "CDPATH",
    "CLASSPATH",
    "DOTNET_STARTUP_HOOKS",
    "EDITOR",
    "ENV",
    "GCONV_PATH",
    "GLIBC_TUNABLES",
    "HOME",
    "IFS",
    "JDK_JAVA_OPTIONS",
    "LESSOPEN",
    "MANPAGER",
    "NIX_PATH",
    "OPENSSL_CONF",
    "PAGER",
    "PATH",
    "PS4",
    "SHELL",
    "SHELLOPTS",
    "VIRTUAL_ENV",
    "VISUAL",
    "ZDOTDIR",
];

const DECIDING_BEGINNINGS: [&str; 17] = [
    "BASH", "BUN_", "DENO_", "DYLD_", "GIT_", "JAVA_", "LD_", "LUA_", "NODE_", "NPM_", "PERL", "PHP",
    "PYTHON", "RUBY", "UV_", "XDG_", "npm_",
];

/// Of those, the ones that decide nothing about files.
const HARMLESS_VARIABLES: [&str; 9] = [
    "NODE_ENV",
    "NODE_NO_WARNINGS",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONHASHSEED",
    "PYTHONIOENCODING",
    "PYTHONNOUSERSITE",
    "PYTHONSAFEPATH",
    "PYTHONUNBUFFERED",
    "PYTHONUTF8",
];

/// What a program does with its words.
pub(super) fn kind(name: &str) -> ProgramKind {
    match name {
        "." | "source" => ProgramKind::Source,
        "cd" => ProgramKind::ChangeDirectory,
        "export" => ProgramKind::Export,
        "set" => ProgramKind::Set,
        _ if PLAIN.contains(&name) => ProgramKind::Plain,
        _ if READERS.contains(&name) => ProgramKind::Reader,
        _ if WRITERS.contains(&name) => ProgramKind::Writer,
        _ if is_interpreter(name) => ProgramKind::Interpreter,
        _ if WRAPPERS.contains(&name) => ProgramKind::Wrapper,
        _ if RUNNERS.contains(&name) => ProgramKind::Runner,
        _ if INDIRECT.contains(&name) => ProgramKind::Indirect,
        _ => ProgramKind::Unknown,
    }
}

fn is_interpreter(name: &str) -> bool {
    let version = name.strip_prefix("python").unwrap_or("x");
    SHELLS.contains(&name)
        || OTHER_INTERPRETERS.contains(&name)
        || version.bytes().all(|b| b.is_ascii_digit() || b == b'.')
}

/// Whether the shell has a program of this name itself.
pub(super) fn is_builtin(name: &str) -> bool {
    BUILTINS.contains(&name)
}

/// Whether a program of the system with this name does only what is known with its words. A file of the workspace with
/// such a name may do anything with them.
pub(super) fn is_bounded(name: &str) -> bool {
    matches!(kind(name), ProgramKind::Plain | ProgramKind::Reader | ProgramKind::Writer)
}

/// Whether a variable makes programs run or find other files.
pub(super) fn decides_what_runs(name: &str) -> bool {
    let begins = DECIDING_BEGINNINGS.iter().any(|beginning| name.starts_with(beginning));
    (begins || DECIDING_VARIABLES.contains(&name)) && !HARMLESS_VARIABLES.contains(&name)
}

/// Whether an option of an interpreter neither takes code nor makes it read other files.
pub(super) fn is_harmless_option(interpreter: &str, option: &str) -> bool {
    let letters = |known: &str| {
        let letters = option.strip_prefix('-').unwrap_or_default();
        !letters.is_empty() && letters.chars().all(|letter| known.contains(letter))
    };
    match interpreter {
        _ if SHELLS.contains(&interpreter) => letters("efuxo") || option == "--posix",
        "node" | "nodejs" => [
            "--enable-source-maps",
            "--experimental-strip-types",
            "--no-deprecation",
            "--no-warnings",
            "--trace-uncaught",
            "--use-strict",
        ]
        .contains(&option),
        "perl" => letters("tTwW"),
        "ruby" => letters("w"),
        "php" => false,
        _ => letters("bBdEIOPqsSu"),
    }
}

/// Where in the words of a wrapper the command begins that it runs; `None` where that cannot be said. The words
/// before it are options and assignments.
pub(super) fn wrapped(name: &str, words: &[Option<&str>]) -> Option<usize> {
    let mut at = 0;
    loop {
        let word = (*words.get(at)?)?;
        let is_assignment = name == "env" && word.contains('=') && !word.starts_with('-');
        let has_value = matches!((name, word), ("timeout", "-k" | "-s") | ("nice", "-n") | ("env", "-u"));
        let is_option = matches!(
            (name, word),
            ("timeout", "--foreground" | "--preserve-status" | "-v" | "--verbose")
                | ("env", "-i" | "-" | "--ignore-environment")
                | ("time", "-p")
                | ("setsid", "-w" | "--wait")
        );
        let is_attached =
            name == "timeout" && ["--kill-after=", "--signal="].iter().any(|option| word.starts_with(option));
        at += match () {
            () if has_value => 2,
            () if is_option || is_assignment || is_attached => 1,
            () if word.starts_with('-') => return None,
            () => break,
        };
    }
    // The first word of `timeout` is how long.
    let start = if name == "timeout" { at + 1 } else { at };
    words.get(start)?.map(|_| start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_program_is_of_one_kind() {
        let mut all: Vec<&str> =
            [&PLAIN[..], &READERS, &WRITERS, &SHELLS, &OTHER_INTERPRETERS, &WRAPPERS, &RUNNERS, &INDIRECT]
                .concat();
        let number = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), number);
        assert_eq!(kind("python3.12"), ProgramKind::Interpreter);
        assert_eq!(kind("pythonx"), ProgramKind::Unknown);
    }

    #[test]
    fn the_command_of_a_wrapper_is_found() {
        let start = |line: &str| {
            let words: Vec<&str> = line.split(' ').collect();
            wrapped(words[0], &words[1..].iter().map(|word| Some(*word)).collect::<Vec<_>>())
        };
        assert_eq!(start("timeout 5 sh a"), Some(1));
        assert_eq!(start("timeout -k 1 --foreground 5 sh a"), Some(4));
        assert_eq!(start("env -i A=1 -u B sh a"), Some(4));
        assert_eq!(start("env -S sh"), None);
        assert_eq!(start("exec -a x sh"), None);
        assert_eq!(start("nice -n 5 sh"), Some(2));
        assert_eq!(start("command -v sh"), None);
    }
}
