//! What a hook's command and its scripts reach outside the files that are agreed to, as far as can be seen. Pure.

use super::shell_words::ShellWord;

/// Programs that run what other files of the workspace say.
const RUNNERS: [&str; 38] = [
    "ant",
    "bazel",
    "bun",
    "bundle",
    "bunx",
    "cargo",
    "composer",
    "deno",
    "docker",
    "eslint",
    "git",
    "go",
    "gradle",
    "gradlew",
    "jest",
    "just",
    "lefthook",
    "make",
    "mvn",
    "mypy",
    "nox",
    "npm",
    "npx",
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
    "uv",
    "uvx",
    "vitest",
    "yarn",
    "zx",
];

/// Programs of the shell that change what later words mean.
const SHELL_WORDS: [&str; 4] = ["cd", "eval", "pushd", "xargs"];

/// Interpreters whose options take code or modules.
const INTERPRETERS: [&str; 12] =
    ["ash", "bash", "dash", "deno", "node", "perl", "php", "python", "python3", "ruby", "sh", "zsh"];

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

/// What the words of a command reach.
pub(super) fn of_words(line: &str, words: &[ShellWord]) -> Vec<String> {
    let mut reached = Vec::new();
    let mut interpreter = None;
    for word in words {
        let shown = &line[word.range.clone()];
        let text = word.text.as_deref();
        let name = text.map(|text| text.rsplit('/').next().unwrap_or(text));
        if word.is_program {
            interpreter = name.filter(|name| INTERPRETERS.contains(name));
            match name {
                None => reached.push(format!("`{shown}` is known only when it runs")),
                Some(name) if RUNNERS.contains(&name) => {
                    reached.push(format!("`{name}` runs what files of the workspace say"));
                }
                Some(name) if SHELL_WORDS.contains(&name) => {
                    reached.push(format!("`{name}` decides what runs only when it runs"));
                }
                Some(_) => {}
            }
        } else if text.is_none() && (shown.contains(['/', '`']) || shown.ends_with('$')) {
            reached.push(format!("`{shown}` is known only when it runs"));
        } else if interpreter.is_some() && text.is_some_and(takes_code) {
            reached.push(format!("`{}` with `{shown}` may run other files", interpreter.unwrap_or_default()));
        }
    }
    reached
}

fn takes_code(option: &str) -> bool {
    ["-c", "-e", "-m", "-p", "-r", "--eval", "--require", "--import", "--loader"].contains(&option)
}

/// What a script imports that `exists` does not find among the files that are agreed to.
pub(super) fn of_script(path: &str, text: &str, exists: &dyn Fn(&str) -> bool) -> Vec<String> {
    match path.rsplit('.').next() {
        Some("js" | "mjs" | "cjs" | "ts" | "mts") => {
            let imports = quoted_after(text, &["from", "import", "require(", "import("]);
            let missing = imports.filter(|import| !is_covered(import, exists));
            missing.map(|import| format!("`{path}` imports `{import}`")).collect()
        }
        Some("py") if text.contains("sys.path") => vec![format!("`{path}` changes where it imports from")],
        _ => Vec::new(),
    }
}

fn is_covered(import: &str, exists: &dyn Fn(&str) -> bool) -> bool {
    let own = import.split('/').next().unwrap_or(import);
    if import.starts_with("node:") || NODE_MODULES.contains(&own) {
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

#[cfg(test)]
mod tests {
    use super::{super::shell_words::shell_words, *};

    fn reached(line: &str) -> usize {
        of_words(line, &shell_words(line, &|_| None)).len()
    }

    #[test]
    fn commands_that_reach_outside_say_so() {
        for line in [
            "npm run lint",
            "make guard",
            "cd x && ./y",
            "$TOOL/run",
            "node -e 'x'",
            "bash -c './x'",
            "cat $(ls a)",
        ] {
            assert!(reached(line) > 0, "{line}");
        }
        for line in ["node .claude/hooks/x.mjs", "grep -q rm; exit 2", "jq -r .tool_name", "sh a.sh"] {
            assert_eq!(reached(line), 0, "{line}");
        }
    }

    #[test]
    fn imports_outside_the_tree_are_seen() {
        let text = "import fs from 'node:fs';\nimport { a } from \"./lib/a.mjs\";\nimport z from 'zod';\nconst c = require('../../c');\nimport path from 'path';";
        let exists = |import: &str| import == "./lib/a.mjs";
        assert_eq!(of_script("x.mjs", text, &exists), ["`x.mjs` imports `../../c`", "`x.mjs` imports `zod`"]);
    }
}
