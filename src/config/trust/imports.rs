//! What a script imports besides the files that are agreed to, as far as its text shows. Pure.

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
    use super::*;

    #[test]
    fn imports_outside_the_tree_are_seen() {
        let text = "import fs from 'node:fs';\nimport { a } from \"./lib/a.mjs\";\nimport z from 'zod';\nconst c = require('../../c');\nimport path from 'path';";
        let exists = |import: &str| import == "./lib/a.mjs";
        assert_eq!(of_script("x.mjs", text, &exists), ["`x.mjs` imports `../../c`", "`x.mjs` imports `zod`"]);
    }
}
